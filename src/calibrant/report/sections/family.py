"""The family: every calibration number with its interval, its noise floor and the question it answers."""

from __future__ import annotations

import math

from calibrant import recipes
from calibrant.metric import Metric, Result
from calibrant.report.page import Cell, Grid, Section
from calibrant.report.study import Study

HEADER = ("metric", "value", "90% from", "90% to", "noise floor", "p", "what it asks")
_EVENT: dict[str, tuple[Metric, str, int]] = {
    "ECE": (recipes.ECE, "How far are forecasts from what came true, on average over 15 equal-width bins?", 1),
    "ECE, equal mass": (recipes.ADAPTIVE_ECE, "The same over 15 bins of equally many samples.", 1),
    "ECE, sweep": (recipes.ECE_SWEEP, "The same over as many bins as keep the curve rising.", 1),
    "ECE, debiased": (recipes.ECE_DEBIASED, "Root mean squared gap, less what chance adds to it.", 1),
    "smooth ECE": (recipes.SMECE, "The same without bins, with a kernel as wide as the error.", 4),
    "MCE": (recipes.MCE, "How large is the largest gap of any bin?", 1),
    "MCS": (recipes.MCS, "Signed: how much more is promised than kept? Above 0 is over-confident.", 1),
    "largest drift": (
        recipes.ECCE_MAD,
        "How far do outcomes ever run from forecasts, summed in order of forecast?",
        1,
    ),
}
_CLASSES: dict[str, tuple[Metric, str, int]] = {
    "SCE": (recipes.SCE, "ECE of each class's own probability, averaged over the classes.", 1),
    "ACE": (recipes.ACE, "The same over bins of equally many samples.", 1),
    "TACE": (recipes.TACE, "The same for probabilities above 0.01 only.", 1),
    "wsECE": (recipes.WSECE, "ECE of the rows of each true class, averaged by their number.", 1),
    "full ECE": (recipes.FULL_ECE, "How far is the whole vector of probabilities off, over a kd-tree's bins?", 1),
    "top-5 ECE": (recipes.TOP5_ECE, "The same for the five likeliest classes.", 1),
}


def family_section(study: Study) -> Section:
    """The table of the family."""
    rows, left_out = [], []
    for about_event, metrics in ((True, _EVENT), (False, _CLASSES if study.predictions.kind == "classes" else {})):
        for name, (metric, question, share) in metrics.items():
            too_wide = name == "full ECE" and study.width > 100
            found = None if too_wide else study.measured(metric, about_event=about_event, share=share)
            if found is None:
                left_out.append(name)
            else:
                rows.append(row(name, found, question))
    said = [
        f"Intervals and noise floors are from {study.resamples} resamples (one event) and "
        f"{study.wide_resamples or 'no'} resamples (all classes); the counts shrink as the data grow."
    ]
    if left_out:
        said.append(f"Not defined, or too costly, for these data: {', '.join(left_out)}.")
    return Section("family", "The calibration numbers", said, (), (Grid(HEADER, rows, "Calibration numbers"),))


def row(name: str, result: Result, question: str) -> tuple[Cell, ...]:
    """A result as a row: value, interval, noise floor, p-value."""
    ends = (math.nan, math.nan) if result.interval is None else (result.interval.low, result.interval.high)
    noise = (result.details.get(key, math.nan) for key in ("noise_floor", "null_p_value"))
    return (name, result.value, *ends, *noise, question)
