"""Over training: findings about how a network becomes what it is, a row a point; means and deviations over seeds.

Metrics were measured while networks were trained. All else reads the logits that a study kept after epochs
(`over_training: {keep: true}`) and finds nothing where none were kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.binning import EqualMass, EqualWidth
from calibrant.errors.binned import BinnedError
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.training.trial_outcomes import SPLITS, Outcome
from calibrant.kernels.totals import Floats
from calibrant.predictions import Predictions
from calibrant.recipes import ACE, ECE, TACE

RANGES = {"ACE": ACE, "TACE": TACE}
"""Errors whose ranges move with the forecasts: of all of them, and of those above the threshold."""
FINER_RANGES = {
    "ACE, 100 ranges": replace(ACE, binning=EqualMass(100)),
    "TACE, 50 ranges": replace(TACE, binning=EqualMass(50)),
}
TENTHS = EqualWidth(10)
COURSE = ("model", "method", "rows")
"""What the rows of a course are about: a model, what was done to its training, and which rows were asked."""


def over_training(evidence: Evidence) -> Sheet:
    """Metrics after every epoch, on training and validation rows (Nixon et al. 2019, figs. 5, 6 and 10)."""
    rows: list[tuple[Any, ...]] = []
    for model, method, outcomes in _networks(evidence):
        curves = np.stack([outcome.curves for outcome in outcomes])
        for split, part in enumerate(SPLITS):
            for index, name in enumerate(outcomes[0].names):
                points = zip(outcomes[0].epochs.tolist(), curves[:, :, split, index].T, strict=True)
                rows += [(model, method, part, name, epoch, Spread.of(values)) for epoch, values in points]
    return Sheet("over_training", "Metrics over training", (*COURSE, "metric", "epoch", "value"), tuple(rows))


def range_bounds(evidence: Evidence) -> Sheet:
    """Where ranges of equally many forecasts begin after every epoch, means over classes: of all forecasts and of those
    above the threshold (Nixon et al. 2019, fig. 3, top)."""
    rows = [
        (*moment.named, name, number, moment.epoch, Spread.of(bounds))
        for moment in _moments(evidence)
        for name, metric in RANGES.items()
        for number, bounds in enumerate(moment.each(_lower_bounds(metric)).T, start=1)
    ]
    title = "Lower bounds of ranges of equal mass, over training"
    return Sheet("range_bounds", title, (*COURSE, "metric", "range", "epoch", "lower bound"), tuple(rows))


def range_errors(evidence: Evidence) -> Sheet:
    """Errors of many ranges of equal mass after every epoch (Nixon et al. 2019, fig. 3, bottom)."""
    rows = [
        (*moment.named, name, moment.epoch, Spread.of([metric(each).value for each in moment.answers], digits=5))
        for moment in _moments(evidence)
        for name, metric in FINER_RANGES.items()
    ]
    title = "Errors of many ranges of equal mass, over training"
    return Sheet("range_errors", title, (*COURSE, "metric", "epoch", "value"), tuple(rows))


def bins_over_training(evidence: Evidence) -> Sheet:
    """Confidence less accuracy in ten bins of equal width after every epoch (Nixon et al. 2019, fig. 9, top).

    Samples are means over seeds; a bin that no seed has a sample in has no row.
    """
    rows: list[tuple[Any, ...]] = []
    for moment in _moments(evidence):
        counts, gaps = np.moveaxis(moment.each(_counts_and_gaps), 1, 0)
        for low, samples, gap in zip(TENTHS.edges[:-1], counts.T, gaps.T, strict=True):
            if samples.any():
                name = f"{low:.1f}-{low + 0.1:.1f}"
                rows.append((*moment.named, name, moment.epoch, float(samples.mean()), Spread.of(gap)))
    title = "Confidence less accuracy by confidence, over training"
    return Sheet("bins_over_training", title, (*COURSE, "confidence", "epoch", "samples", "gap"), tuple(rows))


def logit_norms(evidence: Evidence) -> Sheet:
    """The mean Euclidean length of the logits after every epoch (Nixon et al. 2019, fig. 9, bottom left)."""
    rows = [
        (*moment.named, moment.epoch, Spread.of(moment.each(_mean_length), digits=2)) for moment in _moments(evidence)
    ]
    return Sheet("logit_norms", "Mean length of the logits over training", (*COURSE, "epoch", "length"), tuple(rows))


@dataclass(frozen=True)
class _Moment:
    """One network after one epoch, on training or validation rows: the answers of each seed."""

    named: tuple[str, str, str]
    epoch: int
    answers: Sequence[Predictions]

    def each(self, asked: Callable[[Predictions], Any]) -> Floats:
        """What is asked, of each seed's answers."""
        return np.array([asked(predictions) for predictions in self.answers])


def _moments(evidence: Evidence) -> Iterator[_Moment]:
    for model, method, outcomes in _networks(evidence):
        for split in SPLITS:
            for together in zip(*(outcome.over_training(split) for outcome in outcomes), strict=True):
                yield _Moment((model, method, split), together[0][0], [answers for _, answers in together])


def _networks(evidence: Evidence) -> Iterator[tuple[str, str, list[Outcome]]]:
    """The base and the interventions of every model, an outcome a seed."""
    for variant in evidence.variants():
        if not variant.method:
            yield variant.model, variant.label, [evidence.outcome(trial) for trial in variant.trials]


def _lower_bounds(metric: BinnedError) -> Callable[[Predictions], Floats]:
    """The mean over classes of the bound of each range; classes without a forecast in it are left out."""

    def asked(predictions: Predictions) -> Floats:
        bins = metric(predictions).bins
        assert bins is not None
        assert bins.low is not None
        there = bins.counts > 0
        with np.errstate(invalid="ignore"):
            bounds: Floats = np.where(there, bins.low, 0.0).sum(axis=0) / there.sum(axis=0)
        return bounds

    return asked


def _counts_and_gaps(predictions: Predictions) -> Floats:
    """How many samples each bin has, and its gap, nan where it has none: (2, bins)."""
    bins = replace(ECE, binning=TENTHS)(predictions).bins
    assert bins is not None
    return np.stack([bins.counts[0], np.where(bins.counts[0] > 0, bins.gap[0, :, 0], np.nan)])


def _mean_length(predictions: Predictions) -> float:
    return float(np.linalg.norm(predictions.values.astype(np.float64), axis=1).mean())
