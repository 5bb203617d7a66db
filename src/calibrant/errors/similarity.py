"""Similarities: kernels of forecasts, and the residuals whose pairs they weigh."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
import warnings
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant import kernels
from calibrant.checks import number
from calibrant.exceptions import CalibrationWarning
from calibrant.kernels.pairs import tiled_sums, weighed
from calibrant.kernels.progress import shown
from calibrant.kernels.totals import Floats, Ints
from calibrant.specification.facts import Facts
from calibrant.views import View

Kernel = Callable[[Floats, Floats], Floats]
"""Points (m, d) and (l, d) to their similarities (m, l), positive definite and at most 1."""
FITTED_ON = 1000
"""At most so many samples make the median distance."""
AT_ONCE = 10**10
"""Coordinates of pairs that are compared before progress is told."""


@dataclass(frozen=True)
class Radial(ABC):
    """A similarity that falls with distance, at a scale: a given one, or the median distance of the sample."""

    scale: float | None = None
    shape: ClassVar[str]
    """How it falls, and of which distance, as kernels know it."""
    facts: ClassVar[Facts] = Facts("kernel", estimator="KernelError")

    def __post_init__(self) -> None:
        if self.scale is not None:
            number(self.scale, "scale", "must be finite and above 0, or None", lambda scale: 0 < scale < math.inf)

    def __call__(self, a: Floats, b: Floats) -> Floats:
        return kernels.similarities(a, b, self.shape, self.scale or 1.0)

    def fitted(self, sample: Residuals) -> Radial:
        """Itself or, where it has no scale, with the median of the positive distances; with 1 if there are none."""
        if self.scale is not None:
            return self
        size = min(sample.n, FITTED_ON)
        ranks = np.arange(size) * sample.n // size
        points = sample.points[np.searchsorted(np.cumsum(sample.counts), ranks, side="right")]
        distances = kernels.distances(points, points, self.shape)[np.triu_indices(size, 1)]
        positive = distances[distances > 0]
        return dataclasses.replace(self, scale=float(np.median(positive)) if len(positive) else 1.0)

    def __str__(self) -> str:
        return f"{type(self).__name__} kernel of {'median scale' if self.scale is None else f'scale {self.scale:g}'}"


@dataclass(frozen=True)
class exponential(Radial):  # noqa: N801 - a kernel reads as a function
    r"""Similarity :math:`e^{-d(p, q) / s}` in the total variation distance d (for an event, :math:`|p - q|`).

    The scale s, if left out, is the median of the positive distances between samples, 1 where there are none; of
    more than 1000 samples, 1000 that are evenly spaced in the order of their forecasts are compared.

    >>> from calibrant.errors.similarity import exponential
    >>> exponential(0.5)(np.array([[.2, .8]]), np.array([[.7, .3]])).round(6).tolist()
    [[0.367879]]
    """

    shape: ClassVar[str] = "exponential"


@dataclass(frozen=True)
class gaussian(Radial):  # noqa: N801 - a kernel reads as a function
    r"""Similarity :math:`e^{-\|p - q\|^2 / 2 s^2}`; the scale, if left out, is found as for `exponential`.

    >>> from calibrant.errors.similarity import gaussian
    >>> gaussian(1)(np.array([[0., 1.]]), np.array([[1., 0.]])).round(6).tolist()
    [[0.367879]]
    """

    shape: ClassVar[str] = "gaussian"


@dataclass(frozen=True, eq=False)
class Residuals:
    """One question's distinct samples, sorted by forecast, then truth: where they lie and how far they miss."""

    points: Floats
    residuals: Floats
    """Truth less forecast, (m, d)."""
    counts: Ints

    @classmethod
    def of(cls, view: View, question: int) -> Residuals:
        """The answers to one question; whole weights count as repetition."""
        weight = np.ones(len(view.outputs)) if view.weight is None else view.weight
        rows = view.rows_of(question)
        rows = rows[weight[rows] > 0]
        answers = np.concatenate([view.outputs[rows, question % view.v], view.truth_of(question, rows)], axis=1)
        distinct, place = np.unique(answers.astype(np.float64), axis=0, return_inverse=True)
        counts = np.bincount(place.ravel(), weight[rows], len(distinct)).astype(np.int64)
        points = np.ascontiguousarray(distinct[:, : view.d])
        return cls(points, distinct[:, view.d :] - points, counts)

    def some(self, rows: Ints) -> Residuals:
        """Some of the samples."""
        return Residuals(self.points[rows], self.residuals[rows], self.counts[rows])

    @property
    def n(self) -> int:
        """How many samples there are."""
        return int(self.counts.sum())

    @property
    def hard(self) -> bool:
        """Whether every label is 0 or 1."""
        truth = self.points + self.residuals
        return bool(np.abs(truth - truth.round()).max() < 1e-9)

    @property
    def bound(self) -> int:
        """The largest squared length that a residual can have: 1 for an event, 2 on the simplex."""
        return min(2, self.points.shape[1])

    def terms(self, kernel: Kernel) -> Floats:
        """h(i, j) for each pair of these samples."""
        return weighed(kernel(self.points, self.points), self.residuals, self.residuals)

    def sums(self, kernel: Kernel) -> tuple[float, float]:
        """The sums of h over all n^2 ordered pairs, and over the n samples paired with themselves.

        Progress is shown on a terminal; a warning tells beforehand what will take over a minute.
        """
        parts, started = self._parts(), time.monotonic()
        sums = []
        for begin, end in shown(parts, len(parts), "comparing pairs of samples"):
            sums.append(self._sums(kernel, begin, end))
            seconds = (time.monotonic() - started) * len(parts)
            if len(sums) == 1 and len(parts) > 1 and seconds > 60:
                duration = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
                words = f"comparing all pairs of {len(self.points):,} samples takes about {duration}"
                hint = "KernelError(estimator=unbiased_blocks()) compares fewer"
                warnings.warn(f"{words}; {hint}", CalibrationWarning, stacklevel=2)
        pairs, selves = zip(*sums, strict=True)
        return math.fsum(pairs), math.fsum(selves)

    def _sums(self, kernel: Kernel, begin: int, end: int) -> tuple[float, float]:
        if isinstance(kernel, Radial):
            shape = kernel.shape, kernel.scale or 1.0
            return kernels.pair_sums(self.points, self.residuals, self.counts, *shape, begin, end)
        return tiled_sums(self.points, self.residuals, self.counts, kernel, begin, end)

    def _parts(self) -> list[tuple[int, int]]:
        """Stretches of rows whose pairs with the rows behind them are about as many, some seconds of work each."""
        n, d = self.points.shape
        count = max(1, round(n * n * d / 2 / AT_ONCE))
        ends = np.rint(n * (1 - np.sqrt(1 - np.arange(count + 1) / count))).astype(int).tolist()
        return [(begin, end) for begin, end in itertools.pairwise(ends) if begin < end]
