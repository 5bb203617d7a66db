"""The kernel error: do forecasts that are alike miss in the same direction? No bins, and a test of calibration."""

from __future__ import annotations

import dataclasses
import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.errors.asking import choices, combine, views
from calibrant.exceptions import CalibrationInputError
from calibrant.lenses import Full, Lens
from calibrant.metric import Metric, Result
from calibrant.predictions import Predictions
from calibrant.selections import Selection, everything
from calibrant.totals import Floats, Ints
from calibrant.views import View

Kernel = Callable[[Floats, Floats], Floats]
"""Points (m, d) and (l, d) to their similarities (m, l), positive definite and at most 1."""
Estimator = Callable[["Residuals", Kernel], dict[str, float]]
TILE = 512
"""Pairs are visited in squares of this side, so that memory is bounded."""
FITTED_ON = 1000
"""At most so many samples make the median distance."""


@dataclass(frozen=True)
class Radial(ABC):
    """A similarity that falls with distance, at a scale: a given one, or the median distance of the sample."""

    scale: float | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.scale, (int, float)) and not isinstance(self.scale, bool)
        if self.scale is not None and not (number and 0 < self.scale < math.inf):
            raise CalibrationInputError("scale", "must be finite and above 0, or None", got=repr(self.scale))

    @abstractmethod
    def distances(self, a: Floats, b: Floats) -> Floats:
        """The distance of each point of a, (m, d), to each of b, (l, d)."""

    @abstractmethod
    def __call__(self, a: Floats, b: Floats) -> Floats: ...

    def fitted(self, sample: Residuals) -> Radial:
        """Itself or, where it has no scale, with the median of the positive distances; with 1 if there are none."""
        if self.scale is not None:
            return self
        size = min(sample.n, FITTED_ON)
        points = sample.points[sample.each[np.arange(size) * sample.n // size]]
        distances = self.distances(points, points)[np.triu_indices(size, 1)]
        positive = distances[distances > 0]
        return dataclasses.replace(self, scale=float(np.median(positive)) if len(positive) else 1.0)

    def __str__(self) -> str:
        return f"{type(self).__name__} kernel of {'median scale' if self.scale is None else f'scale {self.scale:g}'}"


@dataclass(frozen=True)
class exponential(Radial):  # noqa: N801 - a kernel reads as a function
    r"""Similarity :math:`e^{-d(p, q) / s}` in the total variation distance d (for an event, :math:`|p - q|`).

    The scale s, if left out, is the median of the positive distances between samples, 1 where there are none; of
    more than 1000 samples, 1000 that are evenly spaced in the order of their forecasts are compared.

    >>> from calibrant.errors.kernel import exponential
    >>> exponential(0.5)(np.array([[.2, .8]]), np.array([[.7, .3]])).round(6).tolist()
    [[0.367879]]
    """

    def distances(self, a: Floats, b: Floats) -> Floats:
        """Half the summed absolute differences; of one coordinate, the whole."""
        return _distances(a, b, "cityblock") / min(2, a.shape[1])

    def __call__(self, a: Floats, b: Floats) -> Floats:
        return np.exp(-self.distances(a, b) / (self.scale or 1.0))


@dataclass(frozen=True)
class gaussian(Radial):  # noqa: N801 - a kernel reads as a function
    r"""Similarity :math:`e^{-\|p - q\|^2 / 2 s^2}`; the scale, if left out, is found as for `exponential`.

    >>> from calibrant.errors.kernel import gaussian
    >>> gaussian(1)(np.array([[0., 1.]]), np.array([[1., 0.]])).round(6).tolist()
    [[0.367879]]
    """

    def distances(self, a: Floats, b: Floats) -> Floats:
        """Euclidean distances."""
        return _distances(a, b, "euclidean")

    def __call__(self, a: Floats, b: Floats) -> Floats:
        return np.exp(-np.square(self.distances(a, b) / (self.scale or 1.0)) / 2)


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

    def __getitem__(self, rows: Any) -> Residuals:
        return Residuals(self.points[rows], self.residuals[rows], self.counts[rows])

    @property
    def n(self) -> int:
        """How many samples there are."""
        return int(self.counts.sum())

    @property
    def each(self) -> Ints:
        """The row of each sample, repeated ones one by one."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def bound(self) -> int:
        """The largest squared length that a residual can have: 1 for an event, 2 on the simplex."""
        return min(2, self.points.shape[1])

    def terms(self, other: Residuals, kernel: Kernel) -> Floats:
        """h(i, j) for each of these samples and each of the others."""
        across = np.ascontiguousarray(other.residuals.T)
        inner = np.einsum("ic,cj->ij", self.residuals, across)  # unlike @, the same bits for any number of threads
        return kernel(self.points, other.points) * inner

    def sums(self, kernel: Kernel) -> tuple[float, float]:
        """The sums of h over all n^2 ordered pairs, and over the n samples paired with themselves."""
        heavy = dataclasses.replace(self, residuals=self.residuals * self.counts[:, None])
        tiles = [heavy[start : start + TILE] for start in range(0, len(self.counts), TILE)]
        pairs, selves = [], []
        for index, tile in enumerate(tiles):
            terms = tile.terms(tile, kernel)
            pairs.append(terms.sum())
            selves.append((terms.diagonal() / tile.counts).sum())
            pairs += [2 * tile.terms(other, kernel).sum() for other in tiles[index + 1 :]]  # h is symmetric
        return math.fsum(pairs), math.fsum(selves)


def biased(sample: Residuals, kernel: Kernel) -> dict[str, float]:
    r"""The mean over all pairs, each sample with itself too: :math:`\frac1{n^2} \sum_{i, j} h(i, j)`; never negative.

    `p_value` is :math:`e^{-\max(0, \sqrt{n v / B} - 1)^2 / 2}`, a bound on the chance of a value of v or more under
    calibration, with B = 1 for an event, else 2: it holds at every n, and is far from sharp.

    References: Widmann, Lindsten & Zachariah (2019), estimator SKCE_b.
    """
    value = max(0.0, sample.sums(kernel)[0] / sample.n**2)
    excess = max(0.0, math.sqrt(sample.n * value / sample.bound) - 1)
    return {"value": value, "p_value": math.exp(-(excess**2) / 2)}


def unbiased(sample: Residuals, kernel: Kernel) -> dict[str, float]:
    r"""The mean over pairs of two samples: :math:`\frac2{n (n - 1)} \sum_{i < j} h(i, j)`; may be negative.

    `p_value` is :math:`e^{-\lfloor n / 2 \rfloor \max(0, v / B)^2 / 2}`, a bound on the chance of a value of v or more
    under calibration, with B = 1 for an event, else 2: it holds at every n, and is far from sharp. One sample: nan.

    References: Widmann, Lindsten & Zachariah (2019), estimator SKCE_uq.
    """
    n = sample.n
    pairs, selves = sample.sums(kernel) if n > 1 else (math.nan, math.nan)
    value = (pairs - selves) / max(1, n * (n - 1))
    return {"value": value, "p_value": math.exp(-(n // 2) * np.maximum(0.0, value / sample.bound) ** 2 / 2)}


@dataclass(frozen=True)
class unbiased_blocks:  # noqa: N801 - an estimator reads as a function
    r"""The mean of the `unbiased` values of small blocks of samples: linear in n, with a test that is sharp.

    The sorted samples are shuffled, by a generator made of `seed` and their labels, and cut into blocks of `size`; what
    is left over is dropped. So blocks depend on the data and not on the order of rows, and the mean over seeds is
    the `unbiased` value. (Labels take part since tied forecasts are sorted by them: with one shuffle for all
    labels, the verdict on tied forecasts would be the seed's.)

    `standard_error` is :math:`\mathrm{sd} / \sqrt m` of the m blocks' values, ddof 1, and `p_value` the chance that a
    standard normal exceeds value / standard_error, for many blocks; nan where they are fewer than two or all alike.
    Costs O(n size d).

    References: Widmann, Lindsten & Zachariah (2019), estimator SKCE_ul, which has size 2.

    >>> from calibrant.errors.kernel import KernelError, unbiased_blocks
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> tests = [KernelError(estimator=unbiased_blocks())(rng.random(2000) < rate, p) for rate in (p, p**2)]
    >>> [test.details["p_value"] < 0.05 for test in tests]
    [False, True]
    """

    size: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("size", 2), ("seed", 0)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise CalibrationInputError(name, f"must be a whole number of at least {least}", got=repr(number))

    def __call__(self, sample: Residuals, kernel: Kernel) -> dict[str, float]:
        blocks = self._blocks(sample)
        step = max(1, 64 // self.size)  # a call for some blocks at once is faster, though most of its pairs go unused
        parts = [self._values(sample, blocks[start : start + step], kernel) for start in range(0, len(blocks), step)]
        values = np.concatenate([np.empty(0), *parts])
        value = math.fsum(values) / len(values) if len(values) else math.nan
        error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        p_value = math.erfc(value / error / math.sqrt(2)) / 2 if error > 0 else math.nan
        return {"value": value, "p_value": p_value, "standard_error": error}

    def _blocks(self, sample: Residuals) -> Ints:
        """The rows of each block, (blocks, size)."""
        labels = zlib.crc32(sample.counts.tobytes(), zlib.crc32(np.packbits(sample.residuals > 0).tobytes()))
        shuffled = np.random.default_rng([self.seed, labels]).permutation(sample.each)
        return shuffled[: sample.n // self.size * self.size].reshape(-1, self.size)

    def _values(self, sample: Residuals, blocks: Ints, kernel: Kernel) -> Floats:
        """The mean of h over the pairs within each block."""
        alone = dataclasses.replace(sample[blocks.ravel()], counts=np.ones(blocks.size, np.int64))
        if len(blocks) == 1:
            return np.array([unbiased(alone, kernel)["value"]])
        block, (first, second) = np.arange(len(blocks)), np.triu_indices(self.size, 1)
        terms = alone.terms(alone, kernel).reshape(blocks.shape + blocks.shape)
        return terms[block, :, block, :][:, first, second].mean(axis=1)

    def __str__(self) -> str:
        return f"unbiased over blocks of {self.size}, seed {self.seed}"


@dataclass(frozen=True)
class KernelError(Metric):
    r"""The squared kernel calibration error: do forecasts that are alike miss in the same direction?

    .. math:: h(i, j) = k(p_i, p_j) \, \langle y_i - p_i, y_j - p_j \rangle

    averaged over pairs of samples as the estimator says. :math:`y_i` is the one-hot or soft label; for an event, the
    inner product is :math:`(y_i - p_i)(y_j - p_j)`. In expectation 0 if and, with the kernels here, only if the lens's
    question is calibrated.

    Of one question, the details have the kernel's scale and a `p_value` for "it is calibrated and samples are
    independent"; each estimator says which. (A median scale leaves it valid, since forecasts alone determine it.)
    Whole weights are repetition; fractional weights are refused. An empty selection is nan with a note, and so are
    fewer samples than the estimator needs. Costs O(n^2 d) in bounded memory, O(n d) with `unbiased_blocks`.

    References: Widmann, Lindsten & Zachariah (2019).

    >>> from calibrant.errors.kernel import KernelError, biased, gaussian
    >>> print(KernelError(kernel=gaussian(1), estimator=biased)([1, 0], [[1., 0.], [0., 1.]]))  # 1 - 1 / e
    KernelError 0.6321 (n=2, full distribution, gaussian kernel of scale 1, biased)
    """

    select: Selection = everything
    lens: Lens = Full()  # noqa: RUF009 - a lens is frozen
    kernel: Kernel = exponential()
    estimator: Estimator = unbiased
    across: Across = mean_of

    def __post_init__(self) -> None:
        for name, such in (("kernel", "exponential()"), ("estimator", "unbiased")):
            if isinstance(getattr(self, name), type) or not callable(getattr(self, name)):
                raise CalibrationInputError(name, f"must be a piece such as {such}", got=repr(getattr(self, name)))

    def summarise(self, predictions: Predictions) -> View:
        """The rows themselves: every pair of them counts."""
        return sum(self.summarise_view(view) for view in views(self, predictions, None))  # type: ignore[return-value]

    def summarise_view(self, view: View) -> View:
        """The rows that the lens saw."""
        view.require_whole_weights("KernelError")
        return dataclasses.replace(view, outputs=view.outputs.copy())  # a batch's buffer may be used again

    def conclude(self, summary: Any) -> Result:
        """Sort and count each question's rows, so that no order of them can matter; then average over pairs."""
        samples = [Residuals.of(summary, question) for question in range(summary.questions)]
        found = [self._estimate(sample) for sample in samples]
        values, sizes = np.array([one.pop("value") for one in found]), np.array([float(one.n) for one in samples])
        about = summary.about
        if np.isnan(values[sizes > 0]).any():
            about = dataclasses.replace(about, notes=(*about.notes, "too few samples for the estimator"))
        named = getattr(self.estimator, "__name__", str(self.estimator))
        words = ", ".join(word for word in (choices(self), str(self.kernel), named) if word)
        return combine(self, about, values, sizes, words, details=found[0] if len(found) == 1 else {})

    def _estimate(self, sample: Residuals) -> dict[str, float]:
        """One question's value and details."""
        if sample.n == 0:
            return {"value": math.nan}
        if not isinstance(self.kernel, Radial):
            return self.estimator(sample, self.kernel)
        kernel = self.kernel.fitted(sample)
        return {"scale": float(kernel.scale or 1.0), **self.estimator(sample, kernel)}


def _distances(a: Floats, b: Floats, metric: str) -> Floats:
    from scipy.spatial.distance import cdist  # type: ignore[import-untyped]

    return cdist(a, b, metric)
