"""Failures: how many errors remain when the least certain rows are left to somebody else."""

from __future__ import annotations

import math

import numpy as np

from calibrant.errors.risk import RiskCoverage
from calibrant.lenses.events import Answered
from calibrant.report.charts import Line, lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.quoting import percent
from calibrant.report.subject import Subject

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Shares of the rows that are referred."""


def failures_section(subject: Subject) -> Section | None:
    """Errors among the rows kept, most certain first, and the accuracy after referring some of them."""
    if subject.event.soft is not None or not subject.predictions.forecasts.answers:
        return None
    curve, n = RiskCoverage.of_view(Answered()(subject.event)), len(subject.event)
    shares = np.linspace(0.01, 1, 100)
    risks = curve.risk_of(shares * curve.total)
    picture = lines(
        "failures-picture",
        [Line("errors", shares.tolist(), risks.tolist())],
        ("share of rows kept, most certain first", "share of errors"),
        f"Errors against the share of rows kept, n = {n:,}",
        f"The share of errors among the rows kept; {curve.aurc:.4f} on average over all shares.",
    )
    rows: list[tuple[Cell, ...]] = [(f"{100 * share:g}%", curve.accuracy_after_referring(share)) for share in SHARES]
    grid = PageTable(("rows referred", "accuracy on the rest"), rows, "Accuracy after referring the least certain rows")
    caption = f"n = {n:,}. The mean of the curve, the area under risk and coverage, is {curve.aurc:.4f}."
    return Section(
        "failures",
        "Failure detection",
        _said(curve, subject.answer),
        (PageFigure("failures-figure", picture, caption, grid),),
    )


def _said(curve: RiskCoverage, answer: str) -> list[str]:
    wrong, half = percent(float(curve.risk_of(curve.total))), percent(1 - curve.accuracy_after_referring(0.5))
    paragraphs = [
        "Does low confidence warn of errors? If the least confident rows were left to somebody else, fewer of the rest "
        f"should be wrong. Here {answer} is wrong in {wrong} of all rows, and in {half} of the more "
        "confident half."
    ]
    if not math.isnan(curve.detection):
        paragraphs.append(
            f"A right row has more confidence than a wrong one in {percent(curve.detection)} of all such pairs (the "
            "area under the ROC curve; 50% is chance)."
        )
    return paragraphs
