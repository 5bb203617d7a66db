"""The kernel error: do forecasts that are alike miss in the same direction? No bins, and a test of calibration."""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.checks import whole
from calibrant.errors.asking import Asking
from calibrant.errors.similarity import Kernel, Radial, Residuals, exponential
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.distributions import Full
from calibrant.lenses.lens import Lens
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, declare, facts_of
from calibrant.specification.naming import spoken
from calibrant.views import View

Estimator = Callable[[Residuals, Kernel], dict[str, float]]
REDRAWS = 99
"""How often `unbiased_blocks` redraws labels for its p-value."""


_SQUARED = Facts("estimator", "KernelError", sides=1, calibrated=0.0, lower_is_better=True)


@declare(dataclasses.replace(_SQUARED, low=0.0, high=2.0, cost=math.inf))
def biased(sample: Residuals, kernel: Kernel) -> dict[str, float]:
    r"""The mean over all pairs, each sample with itself too: :math:`\frac1{n^2} \sum_{i, j} h(i, j)`; never negative.

    `p_value_bound` is :math:`e^{-\max(0, \sqrt{n v / B} - 1)^2 / 2}`, a bound on the chance of v or more under
    calibration, with B = 1 for an event, else 2: it holds at every n, and is far from sharp.

    References: Widmann, Lindsten & Zachariah (2019), estimator SKCE_b.

    >>> from calibrant.errors.kernel import KernelError, biased, exponential
    >>> round(KernelError(kernel=exponential(1), estimator=biased)([1, 0], [.9, .9]).value, 6)
    0.16
    """
    value = max(0.0, sample.sums(kernel)[0] / sample.n**2)
    excess = max(0.0, math.sqrt(sample.n * value / sample.bound) - 1)
    return {"value": value, "p_value_bound": math.exp(-(excess**2) / 2)}


@declare(dataclasses.replace(_SQUARED, tends_to=biased, cost=math.inf))
def unbiased(sample: Residuals, kernel: Kernel) -> dict[str, float]:
    r"""The mean over pairs of two samples: :math:`\frac2{n (n - 1)} \sum_{i < j} h(i, j)`; may be negative.

    `p_value_bound` is :math:`e^{-\lfloor n / 2 \rfloor \max(0, v / B)^2 / 2}`, a bound on the chance of v or more
    under calibration, with B = 1 for an event, else 2: it holds at every n, and is far from sharp. One sample: nan.

    References: Widmann, Lindsten & Zachariah (2019), estimator SKCE_uq.

    >>> from calibrant.errors.kernel import KernelError, exponential, unbiased
    >>> round(KernelError(kernel=exponential(1), estimator=unbiased)([1, 0], [.9, .9]).value, 6)
    -0.09
    """
    n = sample.n
    pairs, selves = sample.sums(kernel) if n > 1 else (math.nan, math.nan)
    value = (pairs - selves) / max(1, n * (n - 1))
    return {"value": value, "p_value_bound": math.exp(-(n // 2) * np.maximum(0.0, value / sample.bound) ** 2 / 2)}


@dataclass(frozen=True)
class unbiased_blocks:  # noqa: N801 - an estimator reads as a function
    r"""The mean of the `unbiased` values of small blocks of samples: linear in n, with a test.

    The sorted samples are shuffled, by a generator made of `seed` and their labels, and cut into blocks of `size`; what
    is left over is dropped. So blocks depend on the data and not on the order of rows, and the mean over seeds is
    the `unbiased` value. (Labels take part since tied forecasts are sorted by them: with one shuffle for all
    labels, the verdict on tied forecasts would be the seed's.)

    `standard_error` is :math:`\mathrm{sd} / \sqrt m` of the m blocks' values, ddof 1, and `p_value` the share of values
    at least as large, this one included, when the labels of the same blocks are redrawn 99 times from their forecasts.
    It holds its level at every n, and has less power than `consistency` of `unbiased`, which sees all pairs. Under soft
    labels, and without a whole block, it is nan. Costs O(n size d).

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
    facts: ClassVar[Facts] = dataclasses.replace(_SQUARED, tends_to=biased)

    def __post_init__(self) -> None:
        whole(self.size, "size", 2)
        whole(self.seed, "seed", 0)

    def __call__(self, sample: Residuals, kernel: Kernel) -> dict[str, float]:
        blocks = self._blocks(sample)
        step = max(1, 64 // self.size)  # a call for some blocks at once is faster, though most of its pairs go unused
        starts = range(0, len(blocks), step)
        values = np.concatenate([np.empty(0), *(self._values(sample, blocks[i : i + step], kernel) for i in starts)])
        value = math.fsum(values) / len(values) if len(values) else math.nan
        error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        p_value = math.nan
        if len(values) and sample.hard:
            rng = np.random.default_rng([self.seed, len(blocks)])
            null = sum(self._redrawn(sample.points[blocks[i : i + step]], kernel, rng) for i in starts) / len(values)
            p_value = float(1 + np.sum(null >= value - 1e-12)) / (REDRAWS + 1)  # equal sums may differ by some 1e-16
        return {"value": value, "p_value": p_value, "standard_error": error}

    def _blocks(self, sample: Residuals) -> Ints:
        """The rows of each block, (blocks, size)."""
        labels = zlib.crc32(sample.counts.tobytes(), zlib.crc32(np.packbits(sample.residuals > 0).tobytes()))
        shuffled = np.random.default_rng([self.seed, labels]).permutation(
            np.repeat(np.arange(len(sample.counts)), sample.counts)
        )
        return shuffled[: sample.n // self.size * self.size].reshape(-1, self.size)

    def _values(self, sample: Residuals, blocks: Ints, kernel: Kernel) -> Floats:
        """The mean of h over the pairs within each block."""
        alone = dataclasses.replace(sample.some(blocks.ravel()), counts=np.ones(blocks.size, np.int64))
        if len(blocks) == 1:
            return np.array([unbiased(alone, kernel)["value"]])
        block, (first, second) = np.arange(len(blocks)), np.triu_indices(self.size, 1)
        terms = alone.terms(kernel).reshape(blocks.shape + blocks.shape)
        return terms[block, :, block, :][:, first, second].mean(axis=1)

    def _redrawn(self, points: Floats, kernel: Kernel, rng: np.random.Generator) -> Floats:
        """The sum of the values of blocks of points (blocks, size, d), under each redraw of their labels."""
        count, size, d = points.shape
        block, (first, second) = np.arange(count), np.triu_indices(size, 1)
        flat = points.reshape(-1, d)
        similar = kernel(flat, flat).reshape(count, size, count, size)[block, :, block, :]
        ends = np.cumsum(points, axis=2)
        if d > 1:
            ends /= ends[..., -1:]
        passed = rng.random((REDRAWS, count, size, 1)) < ends
        residuals = np.diff(passed.astype(np.float64), axis=3, prepend=0.0) - points
        inner = np.einsum("rbid,rbjd->rbij", residuals, residuals)
        return (inner * similar)[:, :, first, second].mean(axis=2).sum(axis=1)

    def __str__(self) -> str:
        return f"unbiased over blocks of {self.size}, seed {self.seed}"


@dataclass(frozen=True, repr=False)
class KernelError(Asking[View]):
    r"""The squared kernel calibration error: do forecasts that are alike miss in the same direction?

    .. math:: h(i, j) = k(p_i, p_j) \, \langle y_i - p_i, y_j - p_j \rangle

    averaged over pairs of samples as the estimator says. :math:`y_i` is the one-hot or soft label; for an event, the
    inner product is :math:`(y_i - p_i)(y_j - p_j)`. In expectation 0 if and, with the kernels here, only if the lens's
    question is calibrated.

    Of one question, the details have the kernel's scale and, under "it is calibrated and samples are independent",
    a `p_value` (`unbiased_blocks`) or a bound on it. (A median scale leaves both valid: forecasts alone make it.)
    Whole weights are repetition in the value; both are nan where a weight is above 1, since a weighted row is
    one independent row. Fractional weights are refused. An empty selection is nan with a note, and so are
    fewer samples than the estimator needs. Costs O(n^2 d) in bounded memory, O(n d) with `unbiased_blocks`.

    References: Widmann, Lindsten & Zachariah (2019).

    >>> from calibrant.errors.kernel import KernelError, biased
    >>> from calibrant.errors.similarity import gaussian
    >>> print(KernelError(kernel=gaussian(1), estimator=biased)([1, 0], [[1., 0.], [0., 1.]]))  # 1 - 1 / e
    KernelError 0.6321 (n=2, full distribution, gaussian kernel of scale 1, biased)
    """

    select: Selection = everything
    lens: Lens = Full()
    kernel: Kernel = exponential()
    estimator: Estimator = unbiased
    across: Across = mean_of

    def __post_init__(self) -> None:
        for name, such in (("kernel", "exponential()"), ("estimator", "unbiased")):
            if isinstance(getattr(self, name), type) or not callable(getattr(self, name)):
                raise CalibrationInputError(name, f"must be a piece such as {such}", got=repr(getattr(self, name)))

    @property
    def part_facts(self) -> Facts:
        """What is known of the estimator."""
        return facts_of(self.estimator)

    @property
    def facts(self) -> Facts:
        """What is known of the parts, and the metric that takes this one's place when rows are resampled."""
        facts = self.facts_across()
        limit = None if facts.tends_to is None else self.replace(estimator=facts.tends_to)
        return dataclasses.replace(facts, tends_to=limit)

    @property
    def reading(self) -> tuple[str, str]:
        """The rows, whatever is made of them."""
        return "binning", "rows"

    def summarise_view(self, view: View) -> View:
        """The rows that the lens saw: every pair of them counts."""
        view.require_whole_weights("KernelError")
        return dataclasses.replace(view, outputs=view.outputs.copy(), logits=None)  # a batch's buffer may be used again

    def answer(self, summary: View) -> Result:
        """Sort and count each question's rows, so that no order of them can matter; then average over pairs."""
        samples = [Residuals.of(summary, question) for question in range(summary.questions)]
        estimates = [self._estimate(sample) for sample in samples]
        values = np.array([estimate.pop("value") for estimate in estimates])
        sizes = np.array([float(sample.n) for sample in samples])
        notes = ("too few samples for the estimator",) if np.isnan(values[sizes > 0]).any() else ()
        details = estimates[0] if len(estimates) == 1 else {}
        if summary.weight is not None and (summary.weight > 1).any():
            details |= {name: math.nan for name in details if name.startswith("p_value")}
        words = spoken(self.kernel), spoken(self.estimator)
        return self.combined(summary.about, values, sizes, *words, details=details, notes=notes)

    def _estimate(self, sample: Residuals) -> dict[str, float]:
        """One question's value and details."""
        if sample.n == 0:
            return {"value": math.nan}
        if not isinstance(self.kernel, Radial):
            return self.estimator(sample, self.kernel)
        kernel = self.kernel.fitted(sample)
        return {"scale": float(kernel.scale or 1.0), **self.estimator(sample, kernel)}
