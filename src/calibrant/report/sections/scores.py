"""Proper scores: the loss in all, and how much of it calibration, sharpness and the task itself make up."""

from __future__ import annotations

from calibrant import recipes
from calibrant.errors.isotonic import IsotonicError, logarithmic, quadratic
from calibrant.metric import Metric
from calibrant.report.page import Grid, Section
from calibrant.report.sections.family import HEADER, row
from calibrant.report.study import Study, tried


def scores_section(study: Study) -> Section:
    """Accuracy, log loss and Brier score with intervals; the decomposition of the main event's."""
    metrics: dict[str, tuple[Metric, str]] = {
        "log loss": (recipes.LOG_LOSS, "Minus the logarithm of the probability given to the truth, on average."),
        "Brier score": (recipes.BRIER, "Squared distance of the forecast from the truth, on average."),
    }
    if study.predictions.kind != "event":
        metrics["accuracy"] = (recipes.ACCURACY, "How often is the likeliest class right?")
    rows = []
    for name, (metric, question) in metrics.items():
        found = study.measured(metric, about_event=study.predictions.kind != "classes", null=False)
        if found is not None:
            rows.append(row(name, found, question))
    header = [name for name in HEADER if name not in ("noise floor", "p")]
    grids = [Grid(header, [(*one[:4], one[6]) for one in rows], "Proper scores and accuracy")]
    parts = _parts(study)
    if parts:
        names = ("score of the main event", "score", "miscalibration", "discrimination", "uncertainty")
        grids.append(Grid(names, parts, "score = miscalibration - discrimination + uncertainty"))
    said = (
        "Miscalibration is what an isotonic recalibration would take off the score, discrimination what forecasts "
        "gain over the base rate, uncertainty the score of the base rate itself."
    )
    return Section("scores", "Proper scores", (said,), (), grids)


def _parts(study: Study) -> list[tuple[str, float, float, float, float]]:
    made = []
    for name, score in (("Brier", quadratic), ("log loss", logarithmic)):
        found = tried(lambda score=score: IsotonicError(score=score)(study.event))  # type: ignore[misc]
        if found is not None:
            parts = [found.details[key] for key in ("score", "miscalibration", "discrimination", "uncertainty")]
            made.append((name, *parts))
    return made  # type: ignore[return-value]
