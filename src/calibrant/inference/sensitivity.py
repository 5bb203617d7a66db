"""Sensitivity: how much a number depends on a choice that nobody asked for, such as the number of bins."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.checks import number, whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import resampled
from calibrant.inference.draws import RowDraws, check_seed, clusters, replicate
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Result
from calibrant.selections import Mask
from calibrant.specification.naming import fields_of


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A metric's value at each setting, its bootstrap spread, and the sizes of its bins.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> predictions = cal.Predictions.from_probs(rng.random(400) < p, p)
    >>> print(cal.sensitivity(cal.ECE, predictions, over="n_bins", values=[5, 50], bootstrap=50, seed=0))
    n_bins   value      sd  smallest  median  largest  stable
         5  0.0354  0.0159        62      81       99       -
        50  0.1062  0.0114         4       9       14       -
    """

    over: str
    settings: tuple[float, ...]
    results: tuple[Result, ...]
    means: Floats
    """The mean over resamples."""
    sds: Floats
    """The standard deviation over resamples (ddof 0)."""

    @property
    def values(self) -> Floats:
        """The metric at each setting; of a share of the rows, its mean over draws."""
        return self.means if self.over == "share" else np.array([result.value for result in self.results])

    @property
    def bin_sizes(self) -> Floats:
        """The smallest, median and largest bin that holds samples: (settings, 3); nan where rows are drawn."""
        rows = []
        for result in self.results:
            sizes = (
                np.zeros(0)
                if result.bins is None or self.over == "share"
                else result.bins.counts[result.bins.counts > 0]
            )
            rows.append([sizes.min(), np.median(sizes), sizes.max()] if len(sizes) else [np.nan] * 3)
        return np.array(rows)

    @property
    def stable(self) -> Mask:
        """Where the value lies within one standard deviation of both neighbouring settings' values.

        The first and the last setting have one neighbour, so nothing is known of their other side: they are not called
        stable.
        """
        near = np.abs(np.diff(self.values)) <= np.maximum(self.sds[:-1], self.sds[1:])
        steady = np.zeros(len(self.settings), bool)
        steady[1:-1] = near[:-1] & near[1:]
        return steady

    @property
    def verdicts(self) -> list[str]:
        """Whether each setting is stable, in a word; "-" for the first and the last, which are not judged."""
        ends = (0, len(self.settings) - 1)
        return ["-" if place in ends else "yes" if steady else "no" for place, steady in enumerate(self.stable)]

    def __str__(self) -> str:
        header = [
            self.over,
            "mean of resamples" if self.over == "share" else "value",
            "sd",
            "smallest",
            "median",
            "largest",
            "stable",
        ]
        rows = [
            [f"{setting:g}", f"{value:.4f}", f"{sd:.4f}", *(f"{size:g}" for size in sizes), steady]
            for setting, value, sd, sizes, steady in zip(
                self.settings, self.values, self.sds, self.bin_sizes, self.verdicts, strict=True
            )
        ]
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]
        )


def sensitivity(
    metric: Metric,
    predictions: Predictions,
    over: str = "n_bins",
    values: Sequence[float] = (5, 10, 15, 20, 30, 50),
    bootstrap: int = 200,
    seed: int = 0,
    *,
    groups: str | None = None,
    n_jobs: int = 1,
) -> Sensitivity:
    """The metric for each value of one field of its binning, such as n_bins or gamma; or of a share of the rows.

    `over="share"` keeps the binning and draws fewer rows: n' = share * n with replacement. Bins are made
    anew in every resample. `groups` names a column whose values are drawn as a whole.

    References: Kirchenbauer, Oaks & Heim (2022), figures 7-9.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .8])
    >>> cal.sensitivity(cal.FULL_ECE, p, over="gamma", values=[0.5, 1.0], bootstrap=20, seed=0).values.round(4).tolist()
    [0.225, 0.125]
    """
    require_predictions(predictions)
    whole(bootstrap, "bootstrap", 1)
    check_seed(seed)
    if not len(values):
        raise CalibrationInputError("values", "must not be empty", got="none")
    results, means, sds = [], [], []
    for index, value in enumerate(values):
        number(value, "values", "must be numbers", lambda setting: setting == setting)
        changed = metric if over == "share" else _with(metric, over, value)
        share = float(value) if over == "share" else 1.0
        if not 0 < share <= 1:
            raise CalibrationInputError("share", "must lie in (0, 1]", got=value)
        work = resampled(changed, predictions, RowDraws(len(predictions), clusters(predictions, groups), share))
        drawn = replicate(work, bootstrap, seed, stage=3 + index, n_jobs=n_jobs, what=f"{over} {value:g}")[:, 0]
        results.append(changed(predictions))
        means.append(np.mean(drawn))
        sds.append(np.std(drawn))
    return Sensitivity(over, tuple(float(value) for value in values), tuple(results), np.array(means), np.array(sds))


def _with(metric: Metric, over: str, value: object) -> Metric:
    """The metric with one field of its binning changed."""
    binning = fields_of(metric).get("binning")
    fields = fields_of(binning)
    if over not in fields:
        raise CalibrationInputError(
            "over",
            f"must be a field of {binning!r}, or share",
            got=repr(over),
            hint=f"it has: {', '.join(sorted(fields))}",
        )
    return metric.replace(binning=dataclasses.replace(binning, **{over: value}))  # type: ignore[type-var]
