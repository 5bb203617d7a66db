"""Gaussian-process calibration: one smooth latent function that the logit of every class goes through."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import whole
from calibrant.predictions import sigmoid
from calibrant.recalibrate.certificate import Ending
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.scores import Lesson, Scores, softmax
from calibrant.totals import Floats, Ints

ELEMENTS = 1 << 20
"""Rows times classes times inducing points that are learnt from."""
LEAST = 1000
"""Different rows that are learnt from however many classes there are."""
MOST_POINTS = 200
"""Inducing points that are allowed: their covariance has half as many squared parameters."""
STEEPEST = 1e-5
"""The largest slope of the mean bound at which the search has converged."""
_JITTER = 1e-8
"""Share of the output variance that each inducing point has to itself, so that close ones stay apart in floats."""
_FLOOR = 1e-3
"""The smallest output scale and noise: less moves no forecast by more than a thousandth."""
_BLOCK = 1 << 13
"""Kernel entries that are worked on at once: they stay in cache, and matrices too small to be worth threads."""


@dataclass(eq=False)
class GPCalibration(Recalibrator):
    r"""A latent function g with a Gaussian-process prior around the identity: softmax(g(z_1), ..., g(z_K)).

    .. math:: g \sim \mathcal{GP}\big(z, \; s^2 e^{-(z - z')^2 / 2 \ell^2} + \sigma^2 [z = z']\big), \qquad
        \hat g(z) = z + \sum_{j=1}^m \alpha_j s^2 e^{-(z - c_j)^2 / 2 \ell^2}

    where the posterior mean :math:`\hat g` is what is used: probabilities are those of the mean, no draws. One g serves
    all classes, and is the identity far from the inducing points c. The z are logits as given (a constant added to a
    row is felt) or logarithms of probabilities. An event is sigmoid(g(z)) of its log-odds: its g may move 0.5, which two
    columns under one g cannot, so that it differs from two columns. g need not increase: the likeliest class can change.

    The c are `n_inducing` quantiles of the scores, from the lowest to the highest, each counted by the standard
    deviation of its class, sqrt(p (1 - p)): where g matters. The values of g there have a normal posterior; what g is
    beyond them counts as independent noise. Mean and covariance of that posterior, l, s and sigma together maximise a
    lower bound of the log evidence (`Evidence.bound`), by L-BFGS from one start; scales are sought in wide bounds, whose
    ends (no smooth part, no noise, a straight line) are no failures. Rows that are alike become one row with the sum of
    their weights, so that neither their order nor their repetition matters. Of more than max(1,000, 2^20 / (K m))
    different rows as many are drawn with `seed`, and the others are not learnt from.

    References: Wenger, Kjellström & Triebel (2020), who expand the expected log likelihood to second order where it is
    bounded here; Snelson & Ghahramani (2006) for the noise beyond the inducing points.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 1000)
    >>> happened = rng.random(1000) < 1 / (1 + np.exp(-z - 2 * np.sin(z)))
    >>> fitted = GPCalibration().fit(z, happened)
    >>> fitted.predict_proba([-1.5, 0.0, 1.5, 50.0]).round(2).tolist()
    """

    input: str = "logits"
    n_inducing: int = 10
    seed: int = 0
    classes: Sequence[Any] | None = None
    learns: ClassVar[tuple[str, ...]] = ("inducing_", "weights_", "lengthscale_", "output_scale_", "noise_")

    def _check(self) -> None:
        super()._check()
        whole(self.n_inducing, "n_inducing", 1, MOST_POINTS)
        whole(self.seed, "seed", 0)

    def _learn(self, given: Lesson) -> Ending:
        evidence = Evidence.of(given, self.n_inducing, self.seed)
        posterior, ending = fit_posterior(evidence)
        kernel = posterior.kernel
        self.inducing_, self.weights_ = evidence.inducing, posterior.weights(evidence.inducing)
        self.lengthscale_, self.output_scale_, self.noise_ = kernel.lengthscale, kernel.output_scale, kernel.noise
        return ending

    def _map(self, given: Scores) -> Floats:
        z = _latents(given)
        kernel = Kernel(self.lengthscale_, self.output_scale_, self.noise_)
        g = z + kernel.between(z, self.inducing_) @ self.weights_
        return sigmoid(g) if given.event else softmax(g)


@dataclass(frozen=True)
class Kernel:
    """The prior's covariance: how far g is alike, by how much it leaves the identity, and how much noise is on it.

    >>> Kernel(1.0, 2.0, 0.1).between(np.array([0.0]), np.array([0.0, 1.0])).round(4).tolist()
    [[4.0, 2.4261]]
    """

    lengthscale: float
    output_scale: float
    noise: float

    def squares(self, these: Floats, those: Floats) -> Floats:
        """Squared distances of each of these and each of those (a last axis more), in lengthscales."""
        with np.errstate(over="ignore"):
            return ((these[..., None] - those) / self.lengthscale) ** 2

    def between(self, these: Floats, those: Floats) -> Floats:
        """The smooth part of the covariance of each of these and each of those."""
        return self.output_scale**2 * np.exp(-0.5 * self.squares(these, those))

    def factor(self, points: Floats) -> Floats:
        """The Cholesky factor L of the covariance of g at some points."""
        own = self.noise**2 + _JITTER * self.output_scale**2
        return np.linalg.cholesky(self.between(points, points) + own * np.eye(len(points)))


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed of g at the inducing points: g(c) = c + L v with v ~ N(mean, R R'), which was N(0, I) before.

    >>> Posterior(np.zeros(2), np.eye(2), Kernel(1.0, 1.0, 0.1)).divergence
    0.0
    """

    mean: Floats
    factor: Floats
    kernel: Kernel

    @classmethod
    def of(cls, parameters: Floats) -> Posterior:
        """From one row of numbers: mean, R with logarithms on its diagonal, logarithms of the kernel's numbers."""
        m = (math.isqrt(8 * len(parameters) - 15) - 3) // 2  # there are m + m (m + 1) / 2 + 3 numbers
        factor = np.zeros((m, m))
        factor[np.tril_indices(m)] = parameters[m:-3]
        factor[np.diag_indices(m)] = np.exp(np.diag(factor))
        return cls(parameters[:m], factor, Kernel(*np.exp(parameters[-3:]).tolist()))

    @property
    def parameters(self) -> Floats:
        """The numbers that `of` takes."""
        factor = self.factor.copy()
        factor[np.diag_indices(len(factor))] = np.log(np.diag(factor))
        kernel = [self.kernel.lengthscale, self.kernel.output_scale, self.kernel.noise]
        return np.concatenate([self.mean, factor[np.tril_indices(len(factor))], np.log(kernel)])

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence from what was believed before."""
        size = (self.factor**2).sum() + (self.mean**2).sum() - len(self.mean)
        return float(0.5 * size - np.linalg.slogdet(self.factor)[1])

    def weights(self, points: Floats) -> Floats:
        """The weights of the mean of g: E g(z) = z + k(z, c) weights."""
        return np.linalg.solve(self.kernel.factor(points).T, self.mean)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What g is learnt from: distinct rows of latent inputs (n, K), their true columns and weights."""

    latents: Floats
    labels: Ints
    weight: Floats
    moved: Floats
    """1 for columns that go through g; an event has a first column of zeros that does not."""
    inducing: Floats

    @classmethod
    def of(cls, given: Lesson, n_inducing: int, seed: int = 0) -> Evidence:
        """The rows of a lesson, or as many of them as are learnt from."""
        z = _latents(given.scores)
        latents, labels, weight = _distinct(z.reshape(len(z), -1), given.labels, given.weight)
        rows = _drawn(len(labels), max(LEAST, ELEMENTS // (given.width * n_inducing)), seed)
        latents, labels, weight = latents[rows], labels[rows], weight[rows]
        inducing = _quantiles(latents, weight, n_inducing)
        if given.scores.event:
            return cls(np.pad(latents, ((0, 0), (1, 0))), labels, weight, np.array([0.0, 1.0]), inducing)
        return cls(latents, labels, weight, np.ones(given.width), inducing)

    def bound(self, parameters: Floats) -> tuple[float, Floats]:
        r"""A lower bound of the log evidence over the sum of weights, and its slopes.

        .. math:: \frac{1}{\sum_i w_i} \Big[ - \sum_i w_i \ln \sum_k e^{\mathrm E(g_{ik} - g_{iy_i}) +
            \frac12 \mathrm{Var}(g_{ik} - g_{iy_i})} - \mathrm{KL}(q \,\|\, p) \Big]

        E and Var under the posterior. By Jensen's inequality the first sum is at most the expected log likelihood: its
        difference from the log evidence is never negative, which an expansion to second order does not promise.
        """
        posterior = Posterior.of(parameters)
        inverse = np.linalg.inv(posterior.kernel.factor(self.inducing))
        sums = _added([seen.slopes(posterior, inverse, self.moved) for seen in self._seen(posterior, inverse)])
        value, slopes = sums.value - posterior.divergence, sums.in_order(posterior, inverse, self.inducing)
        return value / self.weight.sum(), slopes / self.weight.sum()

    def look(self, posterior: Posterior) -> Outlook:
        """What the rows say about the mean and the covariance of a posterior."""
        inverse = np.linalg.inv(posterior.kernel.factor(self.inducing))
        return Outlook.of(posterior, [seen.pulls() for seen in self._seen(posterior, inverse)])

    def _seen(self, posterior: Posterior, inverse: Floats) -> Iterator[_Seen]:
        """The rows as a posterior sees them, in blocks."""
        step = max(1, _BLOCK // (self.latents.shape[1] * len(self.inducing)))
        for start in range(0, len(self.labels), step):
            yield self._block(slice(start, start + step), posterior, inverse)

    def _block(self, rows: slice, posterior: Posterior, inverse: Floats) -> _Seen:
        latents, weight, kernel = self.latents[rows], self.weight[rows], posterior.kernel
        own = np.arange(len(latents)), self.labels[rows]
        squares = kernel.squares(latents, self.inducing)
        smooth = kernel.output_scale**2 * np.exp(-0.5 * squares)
        basis = _times(smooth, inverse.T) * self.moved[:, None]
        apart = basis - basis[own][:, None]
        spread = _times(apart, posterior.factor)
        beyond = (kernel.output_scale**2 + kernel.noise**2 - _sizes(basis)) * self.moved
        odds = latents - latents[own][:, None] + apart @ posterior.mean
        odds += 0.5 * (_sizes(spread) + beyond + beyond[own][:, None])
        odds[own] = 0.0
        top = odds.max(axis=1)
        others = np.exp(odds - top[:, None])
        total = others.sum(axis=1)
        others *= (weight / total)[:, None]
        others[own] = 0.0
        return _Seen(own, weight, basis, smooth * squares, apart, spread, others, -float(weight @ (top + np.log(total))))


def fit_posterior(evidence: Evidence, *, most: int = 200) -> tuple[Posterior, Ending]:
    """The posterior and kernel of the largest bound, after at most so many kernels, and how the search ended.

    For each kernel the best posterior is found by Newton steps, in which the bound is concave; only the three numbers
    of the kernel are searched for by L-BFGS.
    """
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    start, bounds = _start(evidence.inducing)

    def lost(scales: Floats) -> tuple[float, Floats]:
        value, slopes = evidence.bound(settled(evidence, Kernel(*np.exp(scales).tolist())).parameters)
        return -value, -slopes[-3:]

    search = {"maxiter": most, "maxcor": 10, "ftol": 0.0, "gtol": STEEPEST / 10}
    found = minimize(lost, start, jac=True, method="L-BFGS-B", bounds=bounds, options=search)
    posterior = settled(evidence, Kernel(*np.exp(found.x).tolist()))
    slopes = evidence.bound(posterior.parameters)[1]
    slopes[-3:] = np.clip(found.x + slopes[-3:], *np.transpose(bounds)) - found.x  # none where it points out of bounds
    steepest = float(np.abs(slopes).max())
    converged = steepest <= STEEPEST
    message = "" if converged else f"the search ended at a slope of {steepest:.1e} after {found.nit:,} steps"
    return posterior, Ending(converged, steepest, int(found.nit), message=message)


def settled(evidence: Evidence, kernel: Kernel) -> Posterior:
    """The best posterior under one kernel."""
    m = len(evidence.inducing)
    outlook = evidence.look(Posterior(np.zeros(m), 1e-3 * np.eye(m), kernel))
    for _ in range(100):
        if outlook.gain < 1e-10:
            break
        outlook = _nearer(evidence, outlook)
    found = outlook.posterior
    return Posterior(found.mean, np.linalg.cholesky(found.factor @ found.factor.T), kernel)


def _nearer(evidence: Evidence, outlook: Outlook) -> Outlook:
    """The outlook after a step, halved until it is no worse."""
    for halvings in range(30):
        found = evidence.look(outlook.moved(0.5**halvings))
        if found.value >= outlook.value - 1e-9:
            return found
    return found


def _start(points: Floats) -> tuple[Floats, list[tuple[float, float]]]:
    """Logarithms of a kernel's numbers that the search starts from, and their bounds."""
    span = float(np.ptp(points)) or 1.0
    middle = float(np.subtract(*np.quantile(points, [0.75, 0.25]))) or span
    scales = np.log([[span / 100, middle, 10 * span], [_FLOOR, 1.0, 10 + 10 * span], [_FLOOR, 0.1, 10.0]])
    return scales[:, 1], [(low, high) for low, _, high in scales.tolist()]


@dataclass(frozen=True)
class Outlook:
    """The bound at a posterior and its derivatives, in coordinates where that posterior is N(0, I)."""

    posterior: Posterior
    value: float
    precision: Floats
    step: Floats
    stretch: Floats
    gain: float

    @classmethod
    def of(cls, posterior, parts):
        value, slope, squares, between, within = (sum(each) for each in zip(*parts, strict=True))
        R = posterior.factor
        m = len(R)
        prior = R.T @ R
        Q = prior + within
        slope = slope.copy()
        slope[:m] -= R.T @ posterior.mean
        slope[m:] += 0.5 - 0.5 * np.diag(prior)
        V = squares - between
        V[:m, :m] += prior
        V[range(m, 2 * m), range(m, 2 * m)] += 0.5 * np.diag(Q)
        d = np.linalg.solve(V, slope)
        damp = 0.5 * np.add.outer(np.diag(Q), np.diag(Q)) + 4 * squares[m:, m:]
        stretch = -Q / damp
        gain = 0.5 * slope @ d + 0.5 * (np.tril(Q, -1) ** 2 / damp).sum()
        stretch[np.diag_indices(m)] = np.sign(d[m:]) * np.log1p(np.abs(d[m:]))
        return cls(posterior, value - posterior.divergence, Q, d[:m], stretch, gain)

    def moved(self, share):
        R = self.posterior.factor
        sizes, turn = np.linalg.eigh(self.stretch)
        return Posterior(
            self.posterior.mean + share * R @ self.step, R @ (turn * np.exp(0.5 * share * sizes)) @ turn.T, self.posterior.kernel
        )


@dataclass(frozen=True)
class _Seen:
    own: tuple[Ints, Ints]
    weight: Floats
    basis: Floats
    reach: Floats
    apart: Floats
    spread: Floats
    others: Floats
    value: float

    def pulls(self):
        features = np.concatenate([self.spread, 0.5 * self.spread**2], axis=2)
        heavy = features * self.others[..., None]
        each = heavy.sum(axis=1)
        m = self.spread.shape[2]
        within = _flat(heavy)[:, :m].T @ _flat(self.spread)
        return self.value, -each.sum(axis=0), _flat(heavy).T @ _flat(features), (each / self.weight[:, None]).T @ each, within

    def slopes(self, posterior, inverse, moved):
        pull = -self.others
        pull[self.own] = self.others.sum(axis=1)
        heavy = self.apart * self.others[..., None]
        slope = _times(heavy, -posterior.factor @ posterior.factor.T)
        slope[self.own] -= slope.sum(axis=1)
        slope += pull[..., None] * posterior.mean
        slope += np.abs(pull)[..., None] * self.basis
        slope *= moved[:, None]
        return _Sums(
            value=self.value,
            mean=-heavy.sum(axis=(0, 1)),
            covariance=-0.5 * _flat(heavy).T @ _flat(self.apart),
            basis=_flat(slope).T @ _flat(self.basis),
            reach=float(np.vdot(_times(slope, inverse), self.reach)),
            beyond=-0.5 * float((np.abs(pull) * moved).sum()),
        )


@dataclass(frozen=True)
class _Sums:
    """Sums over rows: the bound, and its slopes in the mean, R R', b (times b), the length, and the noise beyond."""

    value: float
    mean: Floats
    covariance: Floats
    basis: Floats
    reach: float
    beyond: float

    def in_order(self, posterior: Posterior, inverse: Floats, points: Floats) -> Floats:
        """Slopes of the sum less the divergence in the order of `Posterior.of`."""
        factor, kernel, diagonal = posterior.factor, posterior.kernel, np.diag_indices(len(points))
        within = np.tril(-self.basis)  # back through b = k(z, c) L^-T and the Cholesky factor L
        within[diagonal] *= 0.5
        within = inverse.T @ within @ inverse
        smooth, own = kernel.between(points, points), np.trace(within)
        output, noise = kernel.output_scale**2, kernel.noise**2
        lower = 2 * self.covariance @ factor - factor
        lower[diagonal] = lower[diagonal] * factor[diagonal] + 1
        return np.concatenate(
            [
                self.mean - posterior.mean,
                lower[np.tril_indices(len(points))],
                [
                    self.reach + np.vdot(within, smooth * kernel.squares(points, points)),
                    2 * (np.trace(self.basis) + np.vdot(within, smooth) + output * (self.beyond + _JITTER * own)),
                    2 * noise * (self.beyond + own),
                ],
            ]
        )


def _latents(given: Scores) -> Floats:
    """What goes through g: log-odds of an event, logits of classes."""
    return given.log_odds if given.event else given.logits.astype(np.float64)


def _distinct(latents: Floats, labels: Ints, weight: Floats) -> tuple[Floats, Ints, Floats]:
    """Each different row of positive weight once, in order, with the sum of its weights."""
    kept = weight > 0
    rows, which = np.unique(np.column_stack([latents, labels])[kept], axis=0, return_inverse=True)
    return rows[:, :-1], rows[:, -1].astype(np.int64), np.bincount(which.reshape(-1), weight[kept])


def _drawn(n: int, most: int, seed: int) -> Any:
    """Indices of at most so many of n rows."""
    if n <= most:
        return slice(None)
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    return np.sort(generator.choice(n, most, replace=False))


def _quantiles(latents: Floats, weight: Floats, m: int) -> Floats:
    """At most m quantiles of the latent inputs at equal steps, both ends included, where forecasts move most."""
    p = softmax(latents) if latents.shape[1] > 1 else sigmoid(latents)
    mass = (np.sqrt(p * (1 - p)) + 1e-9) * weight[:, None]  # a little where every forecast is 0 or 1
    values, which = np.unique(latents, return_inverse=True)
    share = np.cumsum(np.bincount(which.reshape(-1), mass.reshape(-1)))
    levels = np.linspace(0, 1, m) if m > 1 else np.array([0.5])
    places = np.searchsorted(share, (levels - 1e-12) * share[-1])  # less than rounding decides between neighbours
    return values[np.unique(places)]


def _added(parts):
    return _Sums(*(sum(getattr(part, field.name) for part in parts) for field in fields(_Sums)))


def _sizes(rows):
    return np.einsum("nkm,nkm->nk", rows, rows)


def _flat(rows: Floats) -> Floats:
    return rows.reshape(-1, rows.shape[-1])


def _times(rows: Floats, matrix: Floats) -> Floats:
    """The last axis through a matrix, in one product rather than one a row."""
    return (_flat(rows) @ matrix).reshape(rows.shape)
