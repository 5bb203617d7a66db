"""What is simulated for claims: models, estimators, and their values over replicates of several seeds, drawn once.

Numbers are in points (hundredths). A bias counts by its size.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import calibrant as cal
from calibrant import simulate

LEFT = cal.EqualWidth(15, closed="left")
ROOTED: Mapping[str, Any] = {"distance": cal.squared, "aggregate": cal.root_mean}
ESTIMATORS: Mapping[str, cal.Metric] = {
    "EW": cal.BinnedError(binning=LEFT, **ROOTED),
    "EM": cal.BinnedError(binning=cal.EqualMass(15), **ROOTED),
    "EMdebias": cal.ECE_DEBIASED,
    "EWsweep": cal.BinnedError(binning=cal.Sweep(LEFT), **ROOTED),
    "EMsweep": cal.BinnedError(binning=cal.Sweep(), **ROOTED),
    "KDE": cal.KDEError(order=2),
}
CLASS_METRICS: Mapping[str, cal.Metric] = {"ECE": cal.ECE, "SCE": cal.SCE, "ACE": cal.ACE, "TACE": cal.TACE}
CLASS_SCORES = simulate.SoftmaxScores(10, 3.0)
BINS = (2, 4, 8, 16, 32, 64)
ERRORS = (0.0, 0.02, 0.03, 0.05, 0.08, 0.10)
REFERENCE = ("resnet110_c10", "resnet_wide32_c100", "resnet152_imgnet")
LAWS = {"uniform": simulate.UNIFORM, "Beta(1.1, 0.1)": simulate.BetaScores(1.1, 0.1)}


class Model(NamedTuple):
    """A law of scores and a calibration curve, under a name."""

    name: str
    scores: Any
    curve: Any


PUBLISHED = tuple(Model(name, fit.scores, fit.curve) for name, fit in simulate.PUBLISHED.items())
CALIBRATED = Model("Beta(2.8, 0.05), calibrated", simulate.BetaScores(2.8, 0.05), simulate.IDENTITY)
UNIFORM = Model("uniform, calibrated", simulate.UNIFORM, simulate.IDENTITY)
LOGISTIC = Model("uniform, logistic(10 s - 5)", simulate.UNIFORM, simulate.logistic_curve(10, -5))


@dataclass(frozen=True, eq=False)
class Simulation:
    """What was simulated: so many replicates of each seed, of these models, seen by these estimators.

    With `apart`, every estimator and every model has draws of its own, so that equal ones differ by chance alone.
    """

    seeds: int = 10
    replicates: int = 100
    first: int = 0
    fits: tuple[Model, ...] = PUBLISHED
    sizes: tuple[int, ...] = (200, 400, 800, 1600, 3200)
    extremes: tuple[int, int] = (200, 6400)
    estimators: Mapping[str, cal.Metric] = field(default_factory=lambda: ESTIMATORS)
    apart: bool = False
    calibrated_size: int = 200
    calibrated_sizes: tuple[int, int] = (200, 5000)
    errors: tuple[float, ...] = ERRORS
    twelve: tuple[float, float] = (0.05, 0.08)
    """True errors of the uniform and the beta law at which an estimate of 12 points is expected."""
    chosen: tuple[Model, Model] = (LOGISTIC, UNIFORM)
    """A miscalibrated and a calibrated model, of which the sweep chooses bins."""
    detectable: tuple[float, ...] = ERRORS[1:]
    detected: tuple[int, ...] = (200, 500, 2000)
    few: tuple[int, ...] = (200, 300, 400, 499)
    hard: tuple[float, int] = (0.02, 10_000)
    """An error that is hard to detect, and a number of samples that does not suffice."""
    class_metrics: Mapping[str, cal.Metric] = field(default_factory=lambda: CLASS_METRICS)
    class_sizes: tuple[int, ...] = (200, 500, 1000, 2000, 5000)
    class_replicates: int = 10
    temperatures: tuple[float, ...] = (1.5, 2.0, 4.0, np.inf)
    kept: dict[Any, Any] = field(default_factory=dict)

    def values(self, name: str, model: Model, n: int, bins: int | None = None) -> Any:
        """An estimator's values, (seeds, replicates), in points."""
        return 100 * self._drawn(name, model, n, bins)[..., 0]

    def bins_chosen(self, name: str, model: Model, n: int) -> Any:
        """How many bins a sweep chose, a mean for each seed."""
        return self._drawn(name, model, n, None)[..., 1].mean(axis=1)

    def bias(self, name: str, model: Model, n: int, bins: int | None = None) -> Any:
        """Mean less truth for each seed, in points."""
        return self.values(name, model, n, bins).mean(axis=1) - self.truth(name, model)

    def truth(self, name: str, model: Model) -> float:
        """What an estimator estimates, in points."""
        return true_value(self._metric(name, None), model.scores, model.curve)

    def missed(self, name: str, error: float, n: int) -> Any:
        """The per cent of cases in which an error goes unnoticed, for each seed; uniform scores, power curve."""
        key = "missed", name, error, n
        if key not in self.kept:
            curve = simulate.curve_with_error(simulate.UNIFORM, error)
            metric = {name: self._metric(name, None)}
            several = (
                simulate.power(metric, simulate.UNIFORM, curve, n, replicates=2 * self.replicates, seed=seed)[
                    name
                ].type_two
                for seed in self._seeds(name, f"missed {error}")
            )
            self.kept[key] = 100 * np.array(list(several))
        return self.kept[key]

    def _metric(self, name: str, bins: int | None) -> Any:
        metric: Any = {**self.estimators, **self.class_metrics}[name]
        return metric if bins is None else replace(metric, binning=replace(metric.binning, n_bins=bins))

    def _seeds(self, name: str, model: str) -> range:
        start = self.first + (zlib.crc32(f"{name}, {model}".encode()) if self.apart else 0)
        return range(start, start + self.seeds)

    def _drawn(self, name: str, model: Model, n: int, bins: int | None) -> Any:
        key = "drawn", name, model.name, n, bins
        if key not in self.kept:
            replicates = self.replicates
            if name in self.class_metrics:
                replicates = self.class_replicates
            elif isinstance(self._metric(name, None), cal.KDEError):
                replicates = max(2, 3 * replicates // 10)
            metric = {name: self._metric(name, bins)}
            several = (
                simulate.estimates(metric, model.scores, model.curve, n, replicates, seed)[name]
                for seed in self._seeds(name, model.name)
            )
            self.kept[key] = np.array(list(several))
        return self.kept[key]


@cache
def true_value(metric: cal.Metric, scores: Any, curve: Any) -> float:
    """What a metric estimates, in points; found once."""
    return 100 * simulate.true_value(metric, scores, curve).value


def size(values: Any) -> Any:
    """Values, one a seed, with the sign that makes their mean positive: the size of a bias, still linear in it."""
    return values * np.sign(np.mean(values))


def along(law: str, error: float, place: int = 0) -> Model:
    """A law of scores with the power curve that has a true error."""
    return Model(f"{law}, error {error:g}, {place}", LAWS[law], simulate.curve_with_error(LAWS[law], error))


def at_temperature(temperature: float) -> Model:
    """Ten classes whose true probabilities are the forecasts at another temperature."""
    return Model(f"classes, temperature {temperature:g}", CLASS_SCORES, simulate.Tempered(temperature))


@cache
def class_truth(temperature: float) -> float:
    """The mean distance of forecasts from true class probabilities, over rows and classes, in points: one truth for all
    metrics of classes."""
    forecasts = CLASS_SCORES.draw(np.random.default_rng(0), 200_000)
    return 100 * float(np.abs(forecasts - simulate.Tempered(temperature)(forecasts)).mean())
