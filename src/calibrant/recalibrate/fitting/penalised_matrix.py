"""Mixing: a matrix and intercepts of the smallest penalised log loss, and penalties chosen on rows held out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.likelihood import Likelihood, Point, Rows, minimised, usual_temperature

STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001)
"""Penalties of one entry, in units of the fitted temperature, among which cross-validation chooses."""
FOLDS = 3
"""Parts of the rows, each held out once."""
MANY = 200
"""With more classes only the first part is held out, and one strength serves for both penalties."""
_SPARE = 1e-6
"""Log loss that a search in cross-validation may leave to gain."""
_PRODUCTS = 200
"""Products with the Hessian that one step may take."""


def fit_matrix(rows: Rows, off_diagonal: float, intercept: float) -> tuple[Floats, Floats, Ending]:
    """The matrix and intercepts of the smallest penalised mean log loss, and how the search for them ended."""
    likelihood = MatrixLikelihood.of(rows, off_diagonal, intercept)
    point, ending = minimised(likelihood, _start(rows))
    raw = likelihood.raw(point.parameters)
    weights, bias = raw[:, :-1].copy(), raw[:, -1]
    if not ending.converged:
        hint = "leave off_diagonal=None, or use TemperatureScaling or VectorScaling(l2=0.01)"
        ending = dataclasses.replace(ending, message=f"{ending.message}; {hint}")
    return weights, bias - bias.mean(), ending


def chosen_strengths(rows: Rows, off_diagonal: float | None, intercept: float | None) -> tuple[float, float]:
    """The strengths with the smallest log loss on held-out rows, where they are not given."""
    if off_diagonal is not None and intercept is not None:
        return float(off_diagonal), float(intercept)
    width = rows.width
    entries = width * (width - 1) * usual_temperature(rows.given, rows.labels, rows.weight) ** 2
    trials = _trials(rows)
    if off_diagonal is None:
        best = _path(trials, [(c * entries, c * width if intercept is None else intercept) for c in STRENGTHS])
        off_diagonal, intercept = best if intercept is None and width > MANY else (best[0], intercept)
    if intercept is None:
        _, intercept = _path(trials, [(off_diagonal, d * width) for d in STRENGTHS])
    return float(off_diagonal), float(intercept)


def folds(rows: Rows, count: int) -> Ints:
    """The fold of each row; -1 for rows that are never held out.

    Rows of a class are ordered by the score of the true class against all others and dealt out in turns. Rows alike
    fall together, so that weights are repetition, and the order of rows does not matter.
    """
    fold = np.full(len(rows.labels), -1)
    lead = _lead(rows)
    for label in range(rows.width):
        mine = np.flatnonzero(rows.labels == label)
        kinds, place = np.unique(lead[mine], return_inverse=True)
        if len(kinds) > 1:
            fold[mine] = (place + label) % count
    return fold


@dataclass(frozen=True, eq=False)
class MatrixLikelihood(Likelihood):
    """Scores W z + b: parameters (K, K + 1), rows of W each followed by its intercept."""

    intercepts: ClassVar[Any] = np.s_[:, -1]

    @classmethod
    def of(cls, rows: Rows, off_diagonal: float, intercept: float) -> MatrixLikelihood:
        """With penalties on the entries off the diagonal and on the intercepts, towards 0."""
        width = rows.width
        penalty = np.full((width, width + 1), off_diagonal / (width * (width - 1)))
        penalty[:, :-1][np.diag_indices(width)] = 0.0
        penalty[:, -1] = intercept / width
        return cls(rows, penalty, np.zeros_like(penalty))

    def sloped(self, parameters: Floats, features: Floats) -> Floats:
        """W z."""
        return features @ parameters[:, :-1].T

    def leaned(self, residuals: Floats, features: Floats) -> Floats:
        """The transpose of `sloped`."""
        return np.column_stack([residuals.T @ features, np.zeros(features.shape[1])])

    def step(self, point: Point) -> Floats:
        """Newton's step by conjugate gradients, the more exact the smaller the gradient."""
        near = Nearby.of(self, point.probabilities)
        residual = -point.gradient
        step, eased = np.zeros_like(residual), near.solved(residual)
        direction, size = eased, float(np.vdot(residual, eased))
        enough = size * min(max(size, 1e-8), 0.01)
        for _ in range(_PRODUCTS):
            if size <= enough:
                break
            bent = self._bent(point.probabilities, direction)
            curvature = float(np.vdot(direction, bent))
            if curvature <= 1e-14 * size:  # flat but for rounding
                break
            length = size / curvature
            step, residual = step + length * direction, residual - length * bent
            eased = near.solved(residual)
            size, before = float(np.vdot(residual, eased)), size
            direction = eased + (size / before) * direction
        return step

    def _bent(self, probabilities: Floats, direction: Floats) -> Floats:
        """The Hessian times a direction."""
        change = self.scores(direction)
        change -= np.einsum("ij,ij->i", probabilities, change)[:, None]
        change *= probabilities
        change *= self.rows.weight[:, None]
        return self.gathered(change) + self.pulled(2 * self.penalty * self.raw(direction))


@dataclass(frozen=True, eq=False)
class Nearby:
    r"""A Hessian near that of a `MatrixLikelihood` likelihood, and easy to solve for: one block for each class.

    Class k has the block :math:`a_k C + D - f e_k e_k'` with :math:`a_k` its mean p (1 - p), C the mean outer product
    of (z, 1) over rows by how undecided they are, D twice the penalties, and f what the free diagonal does not bear.
    """

    basis: Floats
    """Columns in which C is the identity and D diagonal."""
    spread: Floats
    """(K, K + 1): the inverse of each block without f, in these columns."""
    free: float
    """f."""

    @classmethod
    def of(cls, likelihood: MatrixLikelihood, probabilities: Floats) -> Nearby:
        """For the probabilities at a point."""
        weight, width = likelihood.rows.weight[:, None], likelihood.rows.width
        unsure = probabilities * (1.0 - probabilities) * weight
        penalty = 2 * np.append(np.full(width, likelihood.penalty[0, 1]), likelihood.penalty[0, -1])
        share = unsure.sum(axis=0)
        heavy = (
            unsure.sum(axis=1) / max(share.sum(), 1e-200) + 1e-4 * weight[:, 0]
        )  # a saturated row still shows its directions
        basis, bears = _basis(likelihood.rows, heavy, penalty)
        share = np.maximum(share, 1e-12 * share.max() + 1e-200)
        return cls(basis, 1.0 / (share[:, None] + bears), float(penalty[0]))

    def solved(self, gradient: Floats) -> Floats:
        """What the Hessian takes to a gradient, by the inverse of each block and a correction of rank 1."""
        plain = self._plain(gradient)
        if self.free:
            kept = 1.0 - self.free * self._single.diagonal()
            return plain + self._single * (self.free * plain.diagonal() / np.maximum(kept, 1e-12))[:, None]
        return plain - plain.mean(axis=0)  # without a penalty nothing else keeps what all classes share from drifting

    @cached_property
    def _single(self) -> Floats:
        """(K, K + 1): what each block without f takes to its unit vector."""
        return self._plain(np.eye(*self.spread.shape))

    def _plain(self, gradient: Floats) -> Floats:
        return ((gradient @ self.basis) * self.spread) @ self.basis.T


def _basis(rows: Rows, heavy: Floats, penalty: Floats) -> tuple[Floats, Floats]:
    """Columns in which the second moments of (z, 1) are the identity and the penalties diagonal, and that diagonal."""
    heavy, features = heavy / heavy.sum(), rows.features
    moments = np.empty((len(penalty),) * 2)
    moments[:-1, :-1] = (features * heavy[:, None]).T @ features
    moments[-1, :-1] = moments[:-1, -1] = heavy @ features
    moments[-1, -1] = 1.0
    own = moments.diagonal().copy()
    own[:-1] = np.maximum(own[:-1], max(1e-12 * own[:-1].max(), 1e-200))
    scale = 1.0 / np.sqrt(own)
    sizes, axes = np.linalg.eigh(moments * scale * scale[:, None])
    seen = np.sqrt(np.maximum(sizes, 1e-8))
    if not penalty[0]:
        seen[sizes < 1e-12] = np.inf  # directions that no row shows stay as they are
    white = scale[:, None] * axes / seen
    raw = white.copy()
    raw[-1] -= rows.middle @ white[:-1]
    bears, turn = np.linalg.eigh((raw * penalty[:, None]).T @ raw)
    return white @ turn, np.maximum(bears, 0.0)


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Rows to learn from and rows held out."""

    taught: Rows
    asked: Rows
    share: float
    """The weight of the rows held out."""

    @classmethod
    def of(cls, rows: Rows, asked: Array) -> HoldOut:
        """With those rows held out."""
        return cls(rows[~asked], rows[asked], float(rows.weight[asked].sum()))

    def loss(self, parameters: Floats) -> float:
        """The part of the held-out log loss that falls on these rows."""
        return self.share * MatrixLikelihood.of(self.asked, 0.0, 0.0).at(parameters).loss


def _trials(rows: Rows) -> list[HoldOut]:
    fold = folds(rows, FOLDS)
    held = range(FOLDS if rows.width <= MANY else 1)
    return [HoldOut.of(rows, fold == index) for index in held if (fold == index).any()]


def _path(trials: list[HoldOut], strengths: list[tuple[float, float]]) -> tuple[float, float]:
    """The strengths with the smallest held-out loss, from strong to weak until it rises; the first if none is held out.

    Each search starts where the one before it ended.
    """
    at = [_start(trial.taught) for trial in trials]
    best, least = strengths[0], np.inf
    for pair in strengths if trials else []:
        ends = [
            minimised(MatrixLikelihood.of(trial.taught, *pair), start, spare=_SPARE)[0].parameters
            for trial, start in zip(trials, at, strict=True)
        ]
        loss = sum(trial.loss(each) for trial, each in zip(trials, ends, strict=True))
        if loss >= least:
            break
        best, least, at = pair, loss, ends
    return best


def _start(rows: Rows) -> Floats:
    """The fitted temperature as a matrix."""
    plain = np.eye(rows.width, rows.width + 1) / usual_temperature(rows.given, rows.labels, rows.weight)
    return MatrixLikelihood.of(rows, 0.0, 0.0).moved(plain)


def _lead(rows: Rows) -> Floats:
    """The score of the true class less the log-sum of the others', to nine digits: what rounding does is not seen."""
    others = rows.given
    others /= usual_temperature(others, rows.labels, rows.weight)
    truth = rows.of_truth(others)
    others[np.arange(len(others)), rows.labels] = -np.inf
    top = others.max(axis=1)
    lead = truth - top - np.log(np.exp(others - top[:, None]).sum(axis=1))
    return np.round(lead / max(np.abs(lead).max(), 1e-200), 9)
