"""Grids: bias over sample sizes and numbers of bins, over label noise; resumed where a run was stopped."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant import __version__
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.simulate.biases import Estimate, check_metrics, estimates, summarised
from calibrant.simulate.calibration_curves import described
from calibrant.simulate.classes import SoftmaxScores, Tempered
from calibrant.simulate.named import to_json
from calibrant.simulate.sampling import Law, check_law
from calibrant.simulate.scores import Scores
from calibrant.simulate.store import FinishedCells
from calibrant.simulate.targets import true_value
from calibrant.simulate.truth import curve_with_error
from calibrant.simulate.wording import plus_minus
from calibrant.specification.encoding import encode
from calibrant.specification.naming import fields_of
from calibrant.text import aligned

SIZES = (200, 400, 800, 1600, 3200, 6400)


@dataclass(frozen=True, eq=False)
class BiasGrid:
    """Estimates by name and by the value of what was varied; prints the bias as a table.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, bias_grid, power_curve
    >>> grid = bias_grid({"ece": cal.ECE}, UNIFORM, power_curve(2), n=[50, 100], n_bins=[5, 20], replicates=20)
    >>> list(grid.names), grid.values, grid["ece 5", 50].n
    (['ece 5', 'ece 20'], (50, 100), 50)
    """

    over: str
    """What was varied, besides the metrics."""
    values: tuple[float, ...]
    cells: Mapping[tuple[str, float], Estimate]

    @property
    def names(self) -> tuple[str, ...]:
        """The estimators."""
        return tuple(dict.fromkeys(name for name, _ in self.cells))

    def __getitem__(self, where: tuple[str, float]) -> Estimate:
        if where not in self.cells:
            raise CalibrationInputError("cell", "must be a name and a value of the grid", got=repr(where))
        return self.cells[where]

    def table(self, what: str = "bias") -> str:
        """One attribute of the estimates, such as "sd", "mean" or "n_bins", by name and value, with its error."""
        rows = [[name, *(_shown(self[name, value], what) for value in self.values)] for name in self.names]
        return aligned([f"{what}, by {self.over}", *(f"{value:g}" for value in self.values)], rows, right=True)

    def __str__(self) -> str:
        return self.table()

    def to_json(self) -> str:
        """The grid as JSON."""
        return to_json([{self.over: value, **cell.to_dict()} for (_, value), cell in self.cells.items()])


def bias_grid(
    metrics: Mapping[str, Metric],
    scores: Law,
    curve: Any,
    n: Sequence[int] = SIZES,
    n_bins: Sequence[int] | None = None,
    replicates: int = 1000,
    seed: int = 0,
    *,
    gamma: Sequence[float] | None = None,
    n_jobs: int = 1,
    p: float | None = None,
    pointwise: bool = False,
    folder: str | Path | None = None,
) -> BiasGrid:
    """How does bias depend on the number of samples, and of bins?

    With `n_bins`, each metric whose binning has a number of bins is asked with each of these, and named so; a sweep,
    which chooses its own, is asked once. `gamma` does the same for kd-trees: the share of samples in a cell. In a
    `folder`, finished cells are kept: the same call goes on where a former one was stopped, and skips what is done.
    Each cell equals what `bias` finds for it; `p` and `pointwise` are those of `bias`.

    References: Roelofs et al. (2022), figures 4, 6 and 9-15; Nixon et al. (2019), figure 7; Kirchenbauer, Oaks & Heim
    (2022), eqs. 14-16.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, bias_grid, power_curve
    >>> print(bias_grid({"ece": cal.ECE}, UNIFORM, power_curve(2), n=[50, 500], replicates=50))
    bias, by n                50               500
    ece         +0.0414 ± 0.0056  -0.0010 ± 0.0028
    """
    check_metrics(metrics)
    asked = metrics if n_bins is None else _binned(metrics, "n_bins", n_bins)
    asked = asked if gamma is None else _binned(asked, "gamma", gamma)
    if not len(n):
        raise CalibrationInputError("n", "must not be empty", got="none")
    rows = {size: _cells(asked, scores, curve, size, replicates, seed, n_jobs, folder, p, pointwise) for size in n}
    return BiasGrid("n", tuple(n), {(name, size): rows[size][name] for name in asked for size in n})


def error_grid(
    metrics: Mapping[str, Metric],
    scores: Scores,
    errors: Sequence[float],
    n: int = 200,
    replicates: int = 1000,
    seed: int = 0,
    *,
    n_jobs: int = 1,
    p: float = 2,
    folder: str | Path | None = None,
) -> BiasGrid:
    """How does bias depend on how miscalibrated the model is? The same scores, curves s^d of several true errors.

    `errors` are true L^p errors; every metric is compared with the one that it is given, whatever it estimates.

    References: Roelofs et al. (2022), section 5.3 and figure 7.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, error_grid
    >>> grid = error_grid({"ece": cal.RMSCE}, UNIFORM, [0.0, 0.1], n=200, replicates=50)
    >>> bool(grid["ece", 0.0].bias > grid["ece", 0.1].bias > 0)
    True
    """
    check_metrics(metrics)
    if not len(errors):
        raise CalibrationInputError("errors", "must not be empty", got="none")
    curves = {error: curve_with_error(scores, error, p) for error in errors}
    rows = {error: _cells(metrics, scores, curves[error], n, replicates, seed, n_jobs, folder, p) for error in errors}
    cells = {(name, error): rows[error][name] for name in metrics for error in errors}
    return BiasGrid(f"true L{p:g} error", tuple(errors), cells)


def label_noise(
    metrics: Mapping[str, Metric],
    scores: SoftmaxScores,
    noise: Sequence[float],
    n: int = 1000,
    replicates: int = 100,
    seed: int = 0,
    *,
    n_jobs: int = 1,
    folder: str | Path | None = None,
) -> BiasGrid:
    """How does bias depend on label noise? The same forecasts, their truth at several temperatures.

    `noise` are temperatures of `Tempered`: at 0 labels are certain, at 1 the model is calibrated, at infinity every
    class is equally likely. Each metric is compared with its own limit.

    References: Nixon et al. (2019), figure 8.

    >>> import calibrant as cal
    >>> from calibrant.simulate import SoftmaxScores, label_noise
    >>> grid = label_noise({"sce": cal.SCE}, SoftmaxScores(3, 2.0), [0.5, 2.0], n=200, replicates=20)
    >>> bool(grid["sce", 2.0].truth > grid["sce", 0.5].truth > 0)
    True
    """
    check_metrics(metrics)
    rows = {heat: _cells(metrics, scores, Tempered(heat), n, replicates, seed, n_jobs, folder) for heat in noise}
    return BiasGrid("noise", tuple(noise), {(name, heat): rows[heat][name] for name in metrics for heat in noise})


def _cells(
    metrics: Mapping[str, Metric],
    scores: Law,
    curve: Any,
    n: int,
    replicates: int,
    seed: int,
    n_jobs: int,
    folder: str | Path | None,
    p: float | None = None,
    pointwise: bool = False,
) -> dict[str, Estimate]:
    """The estimates at one setting: those that a folder has, and the others, which it is given."""
    check_law(scores)
    store = None if folder is None else FinishedCells(folder)
    keys: dict[str, dict[str, Any]] = {}
    cells: dict[str, Estimate] = {}
    if store is not None:
        keys = {name: _cell(metric, scores, curve, n, replicates, seed, p) for name, metric in metrics.items()}
        keys = {name: key | {"pointwise": True} for name, key in keys.items()} if pointwise else keys
        cells = {name: _restored(name, kept) for name, key in keys.items() if (kept := store.read(key)) is not None}
    missing = {name: metric for name, metric in metrics.items() if name not in cells}
    if missing:
        values = estimates(missing, scores, curve, n, replicates, seed, n_jobs=n_jobs)
        for name, metric in missing.items():
            cells[name] = summarised(name, n, true_value(metric, scores, curve, p=p, pointwise=pointwise), values[name])
            if store is not None:
                store.write(keys[name], vars(cells[name]))
    return cells


def _cell(
    metric: Metric, scores: Law, curve: Any, n: int, replicates: int, seed: int, p: float | None
) -> dict[str, Any]:
    """All that a cell's numbers depend on."""
    run = {"n": n, "replicates": replicates, "seed": seed, "p": p, "calibrant": __version__}
    return {"metric": encode(metric), **scores.described(), **described(curve), **run}


def _restored(name: str, kept: dict[str, Any]) -> Estimate:
    numbers = {
        key: float(kept[key]) for key in ("truth", "mean", "sd", "sd_error", "rmse_error")
    }  # nan is kept as text
    return Estimate(**{**kept, **numbers, "name": name})


def _binned(metrics: Mapping[str, Metric], field: str, settings: Sequence[float]) -> dict[str, Metric]:
    """Each metric with each setting of its binning; as it is where its binning has none to choose."""
    asked: dict[str, Metric] = {}
    for name, metric in metrics.items():
        binning = fields_of(metric).get("binning")
        if field not in fields_of(binning):
            asked[name] = metric
            continue
        for setting in settings:
            changed = dataclasses.replace(binning, **{field: setting})  # type: ignore[type-var]
            asked[f"{name} {setting:g}"] = metric.replace(binning=changed)
    return asked


def _shown(estimate: Estimate, what: str) -> str:
    """An attribute as text, with the error that simulation leaves where it is known."""
    value = getattr(estimate, what)
    errors = {"bias": "mc_error", "mean": "mc_error", "sd": "sd_error", "rmse": "rmse_error"}
    if isinstance(value, float):
        return plus_minus(value, getattr(estimate, errors.get(what, ""), math.nan), "+.4f" if what == "bias" else ".4f")
    return "-" if value is None else str(value)
