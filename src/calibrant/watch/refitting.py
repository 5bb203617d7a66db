"""Refitting: maps that repair forecasts, fitted from counts in cells, and used only once later windows favour them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import STANDARD_OUTPUT, write_text
from calibrant.kernels.totals import Floats
from calibrant.recalibrate import BetaCalibration, IsotonicCalibration, PlattScaling, PriorShift
from calibrant.recalibrate.export import to_onnx
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.scale import State
from calibrant.watch.bets import CellCounts, middles
from calibrant.watch.closed_windows import OVERALL, cell_counts
from calibrant.watch.looks import Look

LEAST = 2.0**-32
"""Forecasts nearer to 0 or 1 are taken as this near where scores are compared."""


@final
@dataclass(frozen=True, eq=False)
class Repair:
    """The map that later windows favour most, and the logarithm of the e-value by which they do."""

    name: str
    recalibrator: Recalibrator
    log_e: float
    limit: float
    """What the logarithm must reach for the map to be used."""

    @property
    def is_favoured(self) -> bool:
        """Whether the map may be used."""
        return self.log_e >= self.limit

    def save(self, path: str | Path) -> None:
        """Write the map: as JSON (.json), or as an ONNX model from `scores` to `probabilities` (.onnx)."""
        if ending_of(path) == ".json":
            write_text(path, self.recalibrator.to_json())
            return
        weights = _weights(self.recalibrator)
        if weights is None:
            expected = "can hold maps of the form softmax(W ln p + b)"
            raise CalibrationInputError(str(path), expected, got=self.name, hint="write .json")
        to_onnx(path, self.name, *weights, event=True, takes_logits=False)


def ending_of(path: str | Path) -> str:
    """The ending of a file that a map may be written to; on standard output ("-"), it is JSON.

    >>> ending_of("map.txt")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: map.txt: must end in .json or .onnx, got '.txt'
    """
    ending = ".json" if path in STANDARD_OUTPUT else Path(path).suffix.lower()
    if ending not in (".json", ".onnx"):
        raise CalibrationInputError(str(path), "must end in .json or .onnx", got=repr(ending))
    return ending


def refitted(counts: CellCounts) -> dict[str, Recalibrator]:
    """Maps of an event's forecasts fitted to counts in cells, as if the forecasts of a cell were at their mean.

    >>> from calibrant.binning import cells
    >>> p = np.array([.1, .3, .6, .9])
    >>> counts = CellCounts(cells.numbers(p), np.full(4, 100.), np.array([20., 40., 70., 95.]), 100 * p)
    >>> {name: method.predict_proba([.3]).round(3).tolist() for name, method in refitted(counts).items()}
    {'platt': [0.431], 'beta': [0.407], 'isotonic': [0.4], 'prior_shift': [0.426]}
    """
    p = np.tile(counts.mean, 2)
    happened = np.repeat([1, 0], len(counts.mean))
    weight = np.concatenate([counts.hits, counts.count - counts.hits])
    there = weight > 0
    methods: tuple[Recalibrator, ...] = (
        PlattScaling("probabilities"),
        BetaCalibration("probabilities"),
        IsotonicCalibration("probabilities"),
        PriorShift("probabilities"),
    )
    return {
        type(method).short: method.fit(p[there], happened[there], sample_weight=weight[there]) for method in methods
    }


def log_favour(method: Recalibrator, counts: CellCounts) -> float:
    r"""The logarithm of an e-value for a map g against the forecasts themselves, on windows that it was not fitted to.

    .. math:: \sum_c y_c \delta_c - n_c \ln(1 + m_c (e^{\delta_c} - 1)), \quad
              \delta_c = \ln \frac{g(x_c)}{1 - g(x_c)} - \ln \frac{x_c}{1 - x_c}

    over the cells: n forecasts of mean m, y of which came true. The map is taken as the shift of log-odds that it is at
    the middle x of a cell. That is a bet on rows, of any map, which is fixed before rows come. So the value is at most
    that of the rows (`RowBets.paid`), which may be looked at after each window. If the outcomes of each window happen
    with the probabilities of its forecasts, independently of each other, given all of these and the windows before, the
    chance that the value is ever at least 20 is at most 1 / 20. No tolerance enters, and rows must be independent also
    in a watch of independent windows.
    """
    x = np.clip(middles()[counts.cell], LEAST, 1 - LEAST)
    mapped = np.clip(method.predict_proba(x), LEAST, 1 - LEAST)
    shift = np.log(mapped / (1 - mapped)) - np.log(x / (1 - x))
    with np.errstate(divide="ignore"):  # forecasts of 0 and 1
        price = np.logaddexp(np.log1p(-counts.mean), np.log(counts.mean) + shift)
    return float((counts.hits * shift - counts.count * price).sum())


def repair(fitted_to: State, later: State, level: float) -> Repair:
    """The best of four maps fitted to one state, judged on a later one; favoured if its e-value is at least 4 / level.

    Four maps are tried, so that the chance to ever use one where forecasts are right is at most the level, however
    often the later state grows. Rows must be independent, and no tolerance enters (`log_favour`).
    """
    methods = refitted(cell_counts(fitted_to)[OVERALL])
    counts = cell_counts(later)[OVERALL]
    favours: Mapping[str, float] = {name: log_favour(method, counts) for name, method in methods.items()}
    best = max(favours, key=lambda name: favours[name])
    return Repair(best, methods[best], favours[best], math.log(len(methods) / level))


def repair_windows(look: Look) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """The first and last windows to fit a map to, and to judge it on: from the change to the alarm, and after it."""
    if look.alarm is None or look.since is None or look.alarm + 1 >= len(look.windows):
        return None
    names = [window.name for window in look.windows]
    return (names[look.since], names[look.alarm]), (names[look.alarm + 1], names[-1])


def _weights(method: Recalibrator) -> tuple[Floats, Floats] | None:
    """W and b of a map of an event that is softmax(W (ln(1 - p), ln p) + b); None of other maps."""
    if method.affine is not None:
        return method.affine
    learnt = {name: getattr(method, name) for name in type(method).learns}
    if set(learnt) == {"slope_", "intercept_"}:
        failed, happened, intercept = learnt["slope_"], learnt["slope_"], learnt["intercept_"]
    elif set(learnt) == {"a_", "b_", "c_"}:
        failed, happened, intercept = learnt["b_"], learnt["a_"], learnt["c_"]
    else:
        return None
    return np.array([[0.0, 0.0], [-failed, happened]]), np.array([0.0, intercept])
