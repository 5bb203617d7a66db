"""Gaussian-process calibration: one smooth latent function that the logit of every class goes through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import whole
from calibrant.door.logs import sigmoid
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores, softmax
from calibrant.recalibrate.recalibrator import Recalibrator

ELEMENTS = 1 << 20
"""Rows times classes times inducing points that are learnt from."""
LEAST = 500
"""Different rows that are learnt from however many classes there are."""
MOST_POINTS = 200
"""Inducing points that are allowed."""
STEEPEST = 1e-5
"""The largest slope of the mean evidence at which the search has converged."""
_FLOOR = 1e-3
"""The smallest output scale, noise and span of points: less moves no forecast by more than a thousandth."""
_JITTER = 1e-8
"""Share of the output variance that each inducing point has to itself, so that close ones stay apart in floats."""
_BLOCK = 1 << 13
"""Kernel entries that are worked on at once: they stay in cache, in matrices too small to be worth threads."""


@dataclass(eq=False)
class GPCalibration(Recalibrator):
    r"""A latent function g with a Gaussian-process prior around the identity: softmax(g(z_1), ..., g(z_K)).

    .. math:: g \sim \mathcal{GP}\big(z, \; s^2 e^{-(z - z')^2 / 2 \ell^2} + \sigma^2 [z = z']\big), \qquad
        \hat g(z) = z + \sum_{j=1}^m \alpha_j s^2 e^{-(z - c_j)^2 / 2 \ell^2}

    The map is that of the posterior mean :math:`\hat g`; the posterior's variance v of g(z) takes part in the fit only.
    Averages over it, which the authors draw, would move an event by about v p (1 - p) (1 - 2 p) / 2 towards 0.5, less
    as rows are added. One g serves all classes, and far from the inducing points c it is the identity. The z are logits
    as given (a constant added to a row is felt) or logarithms of probabilities. An event is sigmoid(g(z)) of its
    log-odds z, whose g may move 0.5: two columns under one g cannot. g need not increase, so classes may change.

    The c are up to `n_inducing` quantiles of the scores, both ends included, each score counted by sqrt(p (1 - p)):
    where g matters. Values of g there have a normal posterior; what g is beyond them counts as independent noise. Its
    mean, l, s and sigma maximise an evidence lower bound (`LatentEvidence.bound`) by L-BFGS from one start, g = z. Ends
    of the bounds of the scales (nothing but the identity, no noise, a straight line) are no failures.

    Rows that are alike become one row with the sum of their weights, so that neither order nor repetition matters.
    Of more than max(500, 2^20 / (K m)) different rows as many are drawn with `seed`; the others are not learnt from.
    A step of the search costs O(n K m^2), and a few hundred steps are enough.

    References: Wenger, Kjellström & Triebel (2020); Snelson & Ghahramani (2006) for the noise beyond the c.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 1000)
    >>> happened = rng.random(1000) < 1 / (1 + np.exp(-z - 2 * np.sin(z)))
    >>> fitted = GPCalibration().fit(z, happened)
    >>> fitted.predict_proba([-1.5, 0.0, 1.5, 50.0]).round(2).tolist()  # it was 0.03, 0.5, 0.97, 1
    [0.04, 0.52, 0.96, 1.0]
    """

    input: str = "logits"
    n_inducing: int = 10
    seed: int = 0
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "gp"
    costly: ClassVar[bool] = True
    learns: ClassVar[tuple[str, ...]] = ("inducing_", "weights_", "lengthscale_", "output_scale_", "noise_")

    def _check(self) -> None:
        super()._check()
        whole(self.n_inducing, "n_inducing", 1, MOST_POINTS)
        whole(self.seed, "seed", 0)

    def _learn(self, lesson: Lesson) -> Ending:
        evidence = LatentEvidence.of(lesson, self.n_inducing, self.seed)
        mean, kernel, ending = fit_latent(evidence)
        self.inducing_, self.weights_ = evidence.inducing, kernel.weights(mean, evidence.inducing)
        self.lengthscale_, self.output_scale_, self.noise_ = kernel.lengthscale, kernel.output_scale, kernel.noise
        return ending

    def require_possible(self) -> None:
        count = max(1, np.size(self.inducing_))
        for name in ("inducing_", "weights_"):
            possible.numbers(getattr(self, name), name, count)
        for name in ("lengthscale_", "output_scale_", "noise_"):
            possible.numbers(getattr(self, name), name, low=np.finfo(np.float64).tiny)

    def _logits(self, scores: ModelScores) -> Floats:
        z, kernel = _latents(scores), Kernel(self.lengthscale_, self.output_scale_, self.noise_)
        return z + (kernel.between(z, self.inducing_) * self.weights_).sum(axis=-1)  # the same bits in any company


@dataclass(frozen=True)
class Kernel:
    """The prior's covariance: how far g is alike, by how much it leaves the identity, and how noisy it is.

    >>> Kernel(1.0, 2.0, 0.1).between(np.array([0.0]), np.array([0.0, 1.0])).round(4).tolist()
    [[4.0, 2.4261]]
    """

    lengthscale: float
    output_scale: float
    noise: float

    @classmethod
    def of(cls, logarithms: Floats) -> Kernel:
        """From the logarithms of its three numbers."""
        return cls(*np.exp(logarithms).tolist())

    @property
    def steepness(self) -> float:
        """The standard deviation of the slope of g around 1."""
        return self.output_scale / self.lengthscale

    def squares(self, these: Floats, those: Floats) -> Floats:
        """Squared distances in lengthscales, of each of these (a last axis more) and each of those."""
        with np.errstate(over="ignore"):
            return ((these[..., None] - those) / self.lengthscale) ** 2

    def between(self, these: Floats, those: Floats) -> Floats:
        """The smooth part of the covariance of g at each of these and each of those."""
        return self.output_scale**2 * np.exp(-0.5 * self.squares(these, those))

    def factor(self, points: Floats) -> Floats:
        """The Cholesky factor L of the covariance of g at some points."""
        own = self.noise**2 + _JITTER * self.output_scale**2
        return np.linalg.cholesky(self.between(points, points) + own * np.eye(len(points))).astype(np.float64)

    def weights(self, mean: Floats, points: Floats) -> Floats:
        """The weights alpha of k(z, c) in E g(z), where g(c) = c + L v has E v = mean."""
        return np.linalg.solve(self.factor(points).T, mean).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LatentEvidence:
    """What g is learnt from: different rows of latent inputs (n, K), their true columns and weights."""

    latents: Floats
    labels: Ints
    weight: Floats
    moved: Floats
    """1 for columns that go through g; an event has a first column of zeros that does not."""
    inducing: Floats

    @classmethod
    def of(cls, lesson: Lesson, n_inducing: int, seed: int = 0) -> LatentEvidence:
        """The rows of a lesson, or as many of them as are learnt from."""
        z = _latents(lesson.scores)
        latents, labels, weight = _distinct(z.reshape(len(z), -1), lesson.labels, lesson.weight)
        rows = _drawn(len(labels), max(LEAST, ELEMENTS // (lesson.width * n_inducing)), seed)
        latents, labels, weight = latents[rows], labels[rows], weight[rows]
        inducing = _quantiles(latents, weight, n_inducing)
        if lesson.scores.event:
            return cls(np.pad(latents, ((0, 0), (1, 0))), labels, weight, np.array([0.0, 1.0]), inducing)
        return cls(latents, labels, weight, np.ones(lesson.width), inducing)

    def bound(self, parameters: Floats) -> tuple[float, Floats]:
        r"""The evidence lower bound over the sum of weights, and its slopes, at a mean and logarithms of the scales.

        With g(c) = c + L v, v ~ N(0, I) before and N(mu, S) after, and b(z) such that g(z) = z + b(z) v + noise of
        variance r(z):

        .. math:: \sum_i w_i \Big[ \ln p_{iy_i} - \tfrac12 \sum_k p_{ik} (1 - p_{ik}) r_{ik} \Big]
            - \tfrac12 \mu'\mu - \tfrac12 \ln |S^{-1}| - \tfrac12 (s / \ell)^2, \qquad
            S^{-1} = I + \sum_i w_i B_i' (\mathrm{diag}\, p_i - p_i p_i') B_i

        p being the forecasts at the mean and B_i the rows b(z_ik). It is the expected log likelihood, expanded to
        second order around the mean, less the divergence from the prior, at the S that makes it largest. The last term
        says that the slope of g is within a few units of 1; without it the expansion would praise any g steep enough to
        make a few separable rows certain.
        """
        mean, kernel = parameters[:-3], Kernel.of(parameters[-3:])
        inverse = np.linalg.inv(kernel.factor(self.inducing)).astype(np.float64)
        parts = list(self._parts(mean, kernel, inverse))
        precision = np.eye(len(mean)) + sum(part.precision for part in parts)
        taken = mean @ mean + np.linalg.slogdet(precision)[1] + kernel.steepness**2
        covariance = np.linalg.inv(precision).astype(np.float64)
        slopes = _Slopes.added([part.slopes(mean, inverse, covariance) for part in parts])
        ordered = np.concatenate([slopes.mean - mean, slopes.in_kernel(kernel, inverse, self.inducing)])
        ordered[-3:-1] += kernel.steepness**2 * np.array([1, -1])
        return (sum(part.value for part in parts) - 0.5 * float(taken)) / self.weight.sum(), ordered / self.weight.sum()

    def _parts(self, mean: Floats, kernel: Kernel, inverse: Floats) -> Iterator[_Part]:
        """Blocks of rows as they look at a mean."""
        step = max(1, _BLOCK // (self.latents.shape[1] * len(self.inducing)))
        for start in range(0, len(self.labels), step):
            latents, weight = self.latents[start : start + step], self.weight[start : start + step]
            squares = kernel.squares(latents, self.inducing)
            smooth = kernel.output_scale**2 * np.exp(-0.5 * squares)
            basis = _times(smooth, inverse.T) * self.moved[:, None]
            g = latents + basis @ mean
            p = softmax(g)
            sizes = np.einsum("nkm,nkm->nk", basis, basis)
            beyond = (kernel.output_scale**2 + kernel.noise**2 - sizes) * self.moved
            apart = basis - np.einsum("nk,nkm->nm", p, basis)[:, None]
            own = np.arange(len(latents)), self.labels[start : start + step]
            yield _Part(own, weight, g, p, basis, apart, beyond, smooth * squares, self.moved)


def fit_latent(evidence: LatentEvidence, *, most: int = 1000) -> tuple[Floats, Kernel, Ending]:
    """The mean and the kernel of the largest bound, sought in at most so many steps, and how the search ended."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    def lost(parameters: Floats) -> tuple[Any, ...]:
        return tuple(-part for part in evidence.bound(parameters))

    start, bounds = _start(evidence.inducing)
    search = {"maxiter": most, "maxfun": 10 * most, "maxcor": 20, "ftol": 0.0, "gtol": STEEPEST}
    end = minimize(lost, start, jac=True, method="L-BFGS-B", bounds=bounds, options=search)
    moved = np.clip(end.x - end.jac, *np.transpose(bounds)) - end.x  # a slope that points out of bounds is none
    steepest = float(np.abs(moved).max())
    converged = steepest <= STEEPEST
    message = "" if converged else f"the search ended at a slope of {steepest:.1e} after {end.nit:,} steps"
    return end.x[:-3], Kernel.of(end.x[-3:]), Ending(converged, steepest, int(end.nit), message=message)


def _start(points: Floats) -> tuple[Floats, list[tuple[float, float]]]:
    """Parameters that the search starts from, and their bounds."""
    span = max(float(np.ptp(points)) or 1.0, _FLOOR)
    middle = float(np.subtract(*np.quantile(points, [0.75, 0.25]))) or span
    scales = np.log([[span / 100, middle, 5 * span], [_FLOOR, 1.0, 10 + 10 * span], [_FLOOR, 0.1, 10.0]])
    bounds = [(-np.inf, np.inf)] * len(points) + [(low, high) for low, _, high in scales.tolist()]
    return np.concatenate([np.zeros(len(points)), scales[:, 1]]), bounds


@dataclass(frozen=True, eq=False)
class _Part:
    """Some rows at a mean: their forecasts p, functions b, b less its mean under p, and the noise beyond b."""

    own: tuple[Ints, Ints]
    weight: Floats
    g: Floats
    p: Floats
    basis: Floats
    apart: Floats
    beyond: Floats
    reach: Floats
    """How the kernel grows with the logarithm of its lengthscale."""
    moved: Floats

    @property
    def value(self) -> float:
        """The log likelihood at the mean, less what the noise takes."""
        top = self.g.max(axis=1)
        likelihood = self.g[self.own] - top - np.log(np.exp(self.g - top[:, None]).sum(axis=1))
        return float(self.weight @ (likelihood - 0.5 * (self.p * (1 - self.p) * self.beyond).sum(axis=1)))

    @property
    def precision(self) -> Floats:
        """What the rows add to the posterior's precision."""
        return _flat(self.apart * self._heavy[..., None]).T @ _flat(self.apart)

    @property
    def _heavy(self) -> Floats:
        return self.p * self.weight[:, None]

    def slopes(self, mean: Floats, inverse: Floats, covariance: Floats) -> _Slopes:
        """What the rows add to the slopes, given the posterior's covariance."""
        heavy, along = self._heavy, _times(self.apart, covariance)
        lost = -0.5 * ((1 - 2 * self.p) * self.beyond + np.einsum("nkm,nkm->nk", along, self.apart))
        pull = heavy * (lost - (self.p * lost).sum(axis=1, keepdims=True) - 1)
        pull[self.own] += self.weight
        loose = -0.5 * heavy * (1 - self.p) * self.moved
        slope = pull[..., None] * mean
        along *= heavy[..., None]
        slope -= along
        slope -= (2 * loose)[..., None] * self.basis
        slope *= self.moved[:, None]
        return _Slopes(
            mean=pull.reshape(-1) @ _flat(self.basis),
            basis=_flat(slope).T @ _flat(self.basis),
            reach=float(np.vdot(_times(slope, inverse), self.reach)),
            beyond=float(loose.sum()),
        )


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Slopes in the mean, in b (times b), in the lengthscale where it reaches rows, and in the variance beyond b."""

    mean: Floats
    basis: Floats
    reach: float
    beyond: float

    @classmethod
    def added(cls, parts: list[_Slopes]) -> _Slopes:
        """The sum over blocks of rows."""
        return cls(*(sum(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))

    def in_kernel(self, kernel: Kernel, inverse: Floats, points: Floats) -> Floats:
        """Slopes in the logarithms of the kernel's numbers, back through b(z) = k(z, c) L'^-1 and L."""
        within = np.tril(-self.basis)
        within[np.diag_indices(len(points))] *= 0.5
        within = inverse.T @ within @ inverse
        smooth, own = kernel.between(points, points), np.trace(within)
        output, noise = kernel.output_scale**2, kernel.noise**2
        return np.array(
            [
                self.reach + np.vdot(within, smooth * kernel.squares(points, points)),
                2 * (np.trace(self.basis) + np.vdot(within, smooth) + output * (self.beyond + _JITTER * own)),
                2 * noise * (self.beyond + own),
            ]
        )


def _latents(scores: ModelScores) -> Floats:
    """What goes through g: log-odds of an event, logits of classes."""
    return scores.log_odds if scores.event else scores.logits.astype(np.float64)


def _distinct(latents: Floats, labels: Ints, weight: Floats) -> tuple[Floats, Ints, Floats]:
    """Each different row of positive weight once, in order, with the sum of its weights."""
    kept = weight > 0
    rows, which = np.unique(np.column_stack([latents, labels])[kept], axis=0, return_inverse=True)
    sums = np.bincount(which.reshape(-1), weight[kept]).astype(np.float64)
    return rows[:, :-1], rows[:, -1].astype(np.int64), sums


def _drawn(n: int, most: int, seed: int) -> Any:
    """At most so many of n rows, in order."""
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))).choice(n, most, replace=False))


def _quantiles(latents: Floats, weight: Floats, m: int) -> Floats:
    """At most m quantiles of the latent inputs at equal steps, both ends included, counted by how forecasts vary."""
    p = softmax(latents) if latents.shape[1] > 1 else sigmoid(latents)
    mass = (np.sqrt(p * (1 - p)) + 1e-9) * weight[:, None]  # a little, where every forecast is 0 or 1
    values, which = np.unique(latents, return_inverse=True)
    share = np.cumsum(np.bincount(which.reshape(-1), mass.reshape(-1)))
    levels = np.linspace(0, 1, m) if m > 1 else np.array([0.5])
    places = np.searchsorted(share, (levels - 1e-12) * share[-1])  # rounding does not decide between neighbours
    return values[np.unique(places)]


def _flat(rows: Floats) -> Floats:
    return rows.reshape(-1, rows.shape[-1])


def _times(rows: Floats, matrix: Floats) -> Floats:
    """The last axis through a matrix, in one product rather than one a row."""
    return (_flat(rows) @ matrix).reshape(rows.shape)
