"""Failures: how many errors remain when the least certain rows are left to somebody else."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.kernels.totals import Floats
from calibrant.report.charts import Line, lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.quoting import percent
from calibrant.report.subject import Subject

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Shares of the rows that are referred."""


@dataclass(frozen=True, eq=False)
class Referral:
    """Rows from the most certain to the least: how many, and how many of them wrong, up to each distinct certainty.

    Equally certain rows share their errors evenly.
    """

    kept: Floats
    wrong: Floats

    @classmethod
    def of(cls, subject: Subject) -> Referral:
        """The rows of the subject; an answer to one event is yes where its forecast is above one half."""
        table, event = subject.table, subject.event
        if table is None:
            p, size = np.asarray(event.probabilities, np.float64), np.asarray(event.weight)
            hits = size * event.truth_rows
        else:
            p, size = table.values.astype(np.float64), table.counts.astype(np.float64)
            hits = np.asarray(table.targets, np.float64)
        missed = size - hits
        if not subject.predictions.forecasts.answers:
            p, missed = np.maximum(p, 1 - p), np.where(p > 0.5, missed, hits)
        levels, place = np.unique(-p, return_inverse=True)
        sizes, errors = (np.bincount(place.ravel(), part, len(levels)) for part in (size, missed))
        held = sizes > 0
        return cls(np.cumsum(sizes[held]), np.cumsum(errors[held]))

    @property
    def total(self) -> float:
        """All the rows, or all their weight."""
        return float(self.kept[-1])

    def risk(self, kept: float) -> float:
        """The share of errors among so many rows, the most certain ones."""
        return float(np.interp(kept, np.append(0.0, self.kept), np.append(0.0, self.wrong))) / kept

    def accuracy_without(self, share: float) -> float:
        """The accuracy on the rest, when this share of the rows (in whole rows) is referred."""
        whole = bool((self.kept == np.floor(self.kept)).all())
        referred = math.floor(share * self.total + 1e-9) if whole else share * self.total
        return 1 - self.risk(self.total - referred)

    @property
    def mean_risk(self) -> float:
        r"""The mean of the risk over k = 1..n rows: the area under the curve of risk and coverage.

        Between a and b rows of equal certainty with error rate e, after W errors, it sums to
        :math:`e (b - a) + (W - e a) (H_b - H_a)` with harmonic numbers H.
        """
        a, before = (np.append(0.0, part[:-1]) for part in (self.kept, self.wrong))
        rate = (self.wrong - before) / (self.kept - a)
        summed = harmonic(self.kept) - harmonic(a)
        return float((rate * (self.kept - a) + (before - rate * a) * summed).sum()) / self.total

    @property
    def detection(self) -> float:
        """How often a right row is more certain than a wrong one, ties counting half; nan where all are alike."""
        wrong = np.diff(self.wrong, prepend=0.0)
        right = np.diff(self.kept, prepend=0.0) - wrong
        pairs = right.sum() * wrong.sum()
        later = wrong.sum() - np.cumsum(wrong)
        return float((right * (later + wrong / 2)).sum() / pairs) if pairs > 0 else math.nan


def harmonic(x: Floats) -> Floats:
    r"""The harmonic numbers 1 + 1/2 + .. + 1/x less Euler's constant, of x at least 0 that need not be whole.

    With y = x + 16, :math:`H_x = \ln y + \frac1{2y} - \frac1{12 y^2} + \frac1{120 y^4} - \frac1{252 y^6} +
    \frac1{240 y^8} - \sum_{k=1}^{16} \frac1{x + k}`, to 1e-14: a page need not wait for SciPy to be loaded.

    >>> (harmonic(np.array([3.0])) - harmonic(np.array([0.0]))).round(12).tolist()
    [1.833333333333]
    """
    y = x + 16
    series = np.log(y) + 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6) + 1 / (240 * y**8)
    return series - sum(1 / (x + k) for k in range(1, 17))


def failures_section(subject: Subject) -> Section | None:
    """Errors among the rows kept, most certain first, and the accuracy after referring some of them."""
    if subject.event.soft is not None or subject.together:
        return None
    order, n = Referral.of(subject), len(subject.event)
    shares = np.linspace(0.01, 1, 100)
    risks = [order.risk(share * order.total) for share in shares.tolist()]
    picture = lines(
        "failures-picture",
        [Line("errors", shares.tolist(), risks)],
        ("share of rows kept, most certain first", "share of errors"),
        f"Errors against the share of rows kept, n = {n:,}",
        f"The share of errors among the rows kept; {order.mean_risk:.4f} on average over all shares.",
    )
    rows: list[tuple[Cell, ...]] = [(f"{100 * share:g}%", order.accuracy_without(share)) for share in SHARES]
    grid = PageTable(("rows referred", "accuracy on the rest"), rows, "Accuracy after referring the least certain rows")
    caption = f"n = {n:,}. The mean of the curve, the area under risk and coverage, is {order.mean_risk:.4f}."
    return Section(
        "failures", "Failure detection", _said(subject, order), (PageFigure("failures-figure", picture, caption, grid),)
    )


def _said(subject: Subject, order: Referral) -> list[str]:
    is_event = not subject.predictions.forecasts.answers
    answer = "the answer (yes above one half)" if is_event else "the likeliest class"
    certainty = "how far its forecast is from one half" if is_event else "its largest probability"
    paragraphs = [
        "Does doubt warn of errors? If the least certain rows were left to somebody else, fewer of the rest should be "
        f"wrong. How certain a row is, is {certainty}. Here {answer} is wrong in "
        f"{percent(order.risk(order.total))} of all rows, and in "
        f"{percent(1 - order.accuracy_without(0.5))} of the more certain half."
    ]
    if not math.isnan(order.detection):
        paragraphs.append(
            f"A right row is more certain than a wrong one in {percent(order.detection)} of all such pairs (the area "
            "under the ROC curve; 50% is chance)."
        )
    return paragraphs
