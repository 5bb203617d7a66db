"""Claims that simulation can test: of Roelofs et al. (2022) and Nixon et al. (2019), each with data that make it false.

Every statistic is computed on each of several seeds and compared within seeds. Differences are in points (hundredths)
unless a claim says otherwise. A bias counts by its size.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import calibrant as cal
from calibrant import simulate
from calibrant.experiments.findings.claims import Claim, Difference, OutOfReach

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
OTHERS = ("EW", "EM", "EMdebias", "EWsweep")
"""What the sweep over equal mass is held against; KDE, which takes a hundred times longer, in a claim of its own."""
CLASS_METRICS: Mapping[str, cal.Metric] = {"ECE": cal.ECE, "SCE": cal.SCE, "ACE": cal.ACE, "TACE": cal.TACE}
CLASS_SCORES = simulate.SoftmaxScores(10, 3.0)
BINS = (2, 4, 8, 16, 32, 64)
ERRORS = (0.0, 0.02, 0.03, 0.05, 0.08, 0.10)
REFERENCE = ("resnet110_c10", "resnet_wide32_c100", "resnet152_imgnet")
LAWS = {"uniform": simulate.UNIFORM, "Beta(1.1, 0.1)": simulate.BetaScores(1.1, 0.1)}
SIMILAR = 0.5
"""Points within which two numbers are called similar."""
LARGE = 2.0
"""Points from which on an error is called large: what a calibrated model can still be off by (section 5.3)."""
CLEAR = np.log(1.25)
"""A standard deviation that changes by less than a quarter from 2 to 64 bins does not clearly depend on them."""
RELIABLE = 5.0
"""Per cent of cases that may be missed where something is detected reliably: as many as may be accused falsely."""
FALSE_SEEDS = 1_000_000
"""Seeds from here on are those of false data."""


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


# ---- what must be above 0 ------------------------------------------------------------------------------------------


def figure_1(world: Simulation) -> Iterator[Difference]:
    values = world.values("EW", CALIBRATED, world.calibrated_size).mean(axis=1)
    yield Difference.of(f"mean EW less {LARGE:g}", values - LARGE)


def over_and_under(world: Simulation) -> Iterator[Difference]:
    n = world.extremes[0]
    yield Difference.of("2 bins, truth less mean", -world.bias("EW", world.fits[0], n, 2))
    yield Difference.of("64 bins, mean less truth", world.bias("EW", world.fits[0], n, 64))


def best_number(world: Simulation, n: int) -> Any:
    """The number of bins whose bias is smallest, for each seed, as a power of 2."""
    biases = [np.abs(world.bias("EW", world.fits[0], n, bins)) for bins in BINS]
    return np.log2(np.array(BINS)[np.argmin(biases, axis=0)])


def growing_number(world: Simulation) -> Iterator[Difference]:
    few, many = world.extremes
    yield Difference.of(f"doublings from n = {few} to {many}", best_number(world, many) - best_number(world, few))


def mean_sizes(world: Simulation, name: str, fits: Sequence[Model], sizes: Sequence[int]) -> Any:
    """The mean size of an estimator's bias over fits and numbers of samples, for each seed."""
    return np.mean([size(world.bias(name, fit, n)) for fit in fits for n in sizes], axis=0)


PAIRS = (("EW", "EM"), ("EWsweep", "EMsweep"))


def equal_mass_overall(world: Simulation) -> Iterator[Difference]:
    for width, mass in PAIRS:
        sizes = [mean_sizes(world, name, world.fits, world.sizes) for name in (width, mass)]
        yield Difference.of(f"{width} less {mass}", sizes[0] - sizes[1])


def equal_mass_consistently(world: Simulation) -> Iterator[Difference]:
    for fit in world.fits:
        for width, mass in PAIRS:
            sizes = [mean_sizes(world, name, [fit], world.sizes) for name in (width, mass)]
            yield Difference.of(f"{fit.name}, {width} less {mass}", sizes[0] - sizes[1])


def similar_or_less(world: Simulation) -> Iterator[Difference]:
    for fit in world.fits:
        for n in world.sizes:
            sweep = size(world.bias("EMsweep", fit, n))
            for other in OTHERS:
                values = size(world.bias(other, fit, n)) + SIMILAR - sweep
                yield Difference.of(f"{fit.name}, n = {n}, {other} + {SIMILAR:g} less EMsweep", values)


def less_at_low_n(world: Simulation) -> Iterator[Difference]:
    n = world.sizes[0]
    for fit in world.fits:
        for other in OTHERS:
            values = size(world.bias(other, fit, n)) - size(world.bias("EMsweep", fit, n))
            yield Difference.of(f"{fit.name}, {other} less EMsweep", values)


def no_gain_of_equal_width(world: Simulation) -> Iterator[Difference]:
    swept = mean_sizes(world, "EWsweep", world.fits, world.sizes)
    for other in ("EW", "EM", "EMdebias"):
        yield Difference.of(f"EWsweep less {other}", swept - mean_sizes(world, other, world.fits, world.sizes))


def kde_most_biased(world: Simulation) -> Iterator[Difference]:
    for fit in world.fits:
        for n in (world.sizes[0], world.sizes[-1]) if fit.name in REFERENCE else ():
            for other in (*OTHERS, "EMsweep"):
                values = size(world.bias("KDE", fit, n)) - size(world.bias(other, fit, n))
                yield Difference.of(f"{fit.name}, n = {n}, KDE less {other}", values)


def debiased_second(world: Simulation) -> Iterator[Difference]:
    debiased = mean_sizes(world, "EMdebias", world.fits, world.sizes)
    for other in ("EW", "EM", "EWsweep"):
        yield Difference.of(f"{other} less EMdebias", mean_sizes(world, other, world.fits, world.sizes) - debiased)


def sweep_before_debiased(world: Simulation) -> Iterator[Difference]:
    for n in world.sizes[:2]:
        sizes = [mean_sizes(world, name, world.fits, [n]) for name in ("EMdebias", "EMsweep")]
        yield Difference.of(f"n = {n}, EMdebias less EMsweep", sizes[0] - sizes[1])


def debiased_varies_more(world: Simulation) -> Iterator[Difference]:
    n = world.sizes[0]
    for fit in world.fits:
        for bins in (8, 16, 32, 64) if fit.name in REFERENCE else ():
            spreads = [
                world.values(*asked).std(axis=1, ddof=1)
                for asked in (("EMdebias", fit, n, bins), ("EMsweep", fit, n, None))
            ]
            yield Difference.of(f"{fit.name}, {bins} bins", spreads[0] - spreads[1])


def spread_by_bins(world: Simulation) -> Iterator[Difference]:
    n, doublings = world.sizes[0], np.log2(BINS) - np.log2(BINS).mean()
    for fit in world.fits:
        for name in ("EW", "EM") if fit.name in REFERENCE else ():
            spreads = np.array([np.log(world.values(name, fit, n, bins).std(axis=1, ddof=1)) for bins in BINS])
            change = np.ptp(doublings) * doublings @ spreads / (doublings**2).sum()
            yield Difference.of(f"{fit.name}, {name}", 100 * (CLEAR - size(change)))


def growing_bias(world: Simulation) -> Iterator[Difference]:
    few, many = world.sizes[0], world.sizes[-1]
    for fit in world.fits:
        for name, kind in (("EW", "_c10"), ("EWsweep", "_c10"), ("EW", "_c100")):
            if fit.name.endswith(kind):
                values = size(world.bias(name, fit, many)) - size(world.bias(name, fit, few))
                yield Difference.of(f"{fit.name}, {name}", values)


def data_set_matters(world: Simulation) -> Iterator[Difference]:
    """How much more biases differ between data sets than within, beside what other assignments of fits would show."""
    labels = np.array([fit.name.rsplit("_", 1)[1] for fit in world.fits])
    for name in ("EW", "EM", "EMsweep"):
        biases = np.array([world.bias(name, fit, world.sizes[0]).mean() for fit in world.fits])
        shuffled = np.random.default_rng(0).permuted(np.tile(labels, (999, 1)), axis=1)
        seen, *chance = _between_less_within(biases, np.vstack([labels, shuffled]))
        yield Difference(name, seen - float(np.mean(chance)), float(np.std(chance)), len(chance) - 1)


def _between_less_within(biases: Any, labels: Any) -> Any:
    """The mean distance of biases of other labels less that of the same ones, for each row of labels."""
    first, second = np.triu_indices(len(biases), 1)
    gaps, same = np.abs(biases[first] - biases[second]), labels[:, first] == labels[:, second]
    return (gaps * ~same).sum(axis=1) / (~same).sum(axis=1) - (gaps * same).sum(axis=1) / same.sum(axis=1)


def falling_bias(world: Simulation) -> Iterator[Difference]:
    n = world.calibrated_sizes[0]
    for law in LAWS:
        for name in ("EW", "EMsweep"):
            several = [world.bias(name, along(law, error, place), n) for place, error in enumerate(world.errors)]
            for (first, before), (second, after) in pairwise(zip(world.errors, several, strict=True)):
                steps = f"{100 * first:g} less {100 * second:g}"
                yield Difference.of(f"{law}, {name}, truth {steps}", before - after)


def twelve_points(world: Simulation) -> Iterator[Difference]:
    for law, error in zip(LAWS, world.twelve, strict=True):
        mean = world.values("EW", along(law, error), world.calibrated_sizes[0]).mean(axis=1)
        yield Difference.of(f"{law}, truth {100 * error:g}: {SIMILAR:g} less |EW - 12|", SIMILAR - size(mean - 12))


def still_off(world: Simulation) -> Iterator[Difference]:
    n = world.calibrated_sizes[1]
    for law in LAWS:
        yield Difference.of(f"{law}, EW less {LARGE:g}", world.values("EW", along(law, 0.0), n).mean(axis=1) - LARGE)


def sweep_reduces(world: Simulation) -> Iterator[Difference]:
    for law in LAWS:
        for n in world.calibrated_sizes:
            biases = [world.bias(name, along(law, 0.0), n) for name in ("EW", "EMsweep")]
            yield Difference.of(f"{law}, n = {n}, EW less EMsweep", biases[0] - biases[1])


def sweep_misses_less(world: Simulation) -> Iterator[Difference]:
    for n in world.detected:
        missed = [
            np.mean([world.missed(name, error, n) for error in world.detectable], axis=0) for name in ("EW", "EMsweep")
        ]
        yield Difference.of(f"n = {n}, EW less EMsweep", missed[0] - missed[1])


def below_500(world: Simulation) -> Iterator[Difference]:
    for n in world.few:
        yield Difference.of(f"n = {n}, missed less {RELIABLE:g}", world.missed("EMsweep", 0.1, n) - RELIABLE)


def over_10000(world: Simulation) -> Iterator[Difference]:
    error, n = world.hard
    for name in ("EW", "EMsweep"):
        yield Difference.of(f"{name}, missed less {RELIABLE:g}", world.missed(name, error, n) - RELIABLE)


def near_best_bins(world: Simulation) -> Iterator[Difference]:
    for n in world.sizes:
        yield Difference.of(f"n = {n}", SIMILAR - size(world.bias("EMsweep", world.chosen[0], n)))


def too_many_bins(world: Simulation) -> Iterator[Difference]:
    model = world.chosen[1]
    for n in world.sizes:
        yield Difference.of(f"n = {n}, bins chosen less 4", world.bins_chosen("EMsweep", model, n) - 4)
        biases = [size(world.bias("EM", model, n, bins)) for bins in (5, 4)]
        yield Difference.of(f"n = {n}, bias of 5 bins less that of 4", biases[0] - biases[1])


def from_truth(world: Simulation, name: str, temperature: float, n: int) -> Any:
    """How far a metric of classes lies from the one truth, for each seed."""
    mean = world.values(name, at_temperature(temperature), n).mean(axis=1)
    return size(mean - class_truth(temperature))


def nearer_truth(world: Simulation) -> Iterator[Difference]:
    for n in world.class_sizes:
        for name in ("ACE", "TACE"):
            values = from_truth(world, "ECE", world.temperatures[1], n) - from_truth(
                world, name, world.temperatures[1], n
            )
            yield Difference.of(f"n = {n}, ECE less {name}", values)


def varies_less(world: Simulation) -> Iterator[Difference]:
    for n in world.class_sizes:
        several = [world.values(name, at_temperature(2.0), n) for name in ("ECE", "ACE", "TACE")]
        relative = [100 * values.std(axis=1, ddof=1) / values.mean(axis=1) for values in several]
        for name, own in zip(("ACE", "TACE"), relative[1:], strict=True):
            yield Difference.of(f"n = {n}, ECE less {name}", relative[0] - own)


def outperformed(world: Simulation) -> Iterator[Difference]:
    for temperature in world.temperatures:
        for name in ("ACE", "TACE"):
            values = from_truth(world, "ECE", temperature, 1000) - from_truth(world, name, temperature, 1000)
            yield Difference.of(f"temperature {temperature:g}, ECE less {name}", values)


def worse_with_noise(world: Simulation) -> Iterator[Difference]:
    for first, second in pairwise(world.temperatures):
        values = from_truth(world, "ECE", second, 1000) - from_truth(world, "ECE", first, 1000)
        yield Difference.of(f"temperature {second:g} less {first:g}", values)


# ---- data under which a claim is false ------------------------------------------------------------------------------


def drawn(**changes: Any) -> Callable[[int], Simulation]:
    """From a seed, a small simulation in which something is otherwise; of one fit and one size unless said."""
    small = {"seeds": 6, "replicates": 10, "class_replicates": 5, "fits": PUBLISHED[:1], "sizes": (200,), **changes}
    return lambda seed: Simulation(first=FALSE_SEEDS + 100 * seed, **small)


def one_estimator(name: str, *aliases: str) -> Mapping[str, cal.Metric]:
    """The estimators, some of which are in truth one and the same."""
    return {**ESTIMATORS, **dict.fromkeys(aliases, ESTIMATORS[name])}


def shuffled_data_sets(seed: int) -> Simulation:
    names = np.random.default_rng(seed).permutation([fit.name for fit in PUBLISHED])
    fits = tuple(fit._replace(name=name) for fit, name in zip(PUBLISHED, names, strict=True))
    return drawn(fits=fits, seeds=2)(seed)


NOT_EQUAL_MASS = drawn(estimators={**one_estimator("EW", "EM"), "EMsweep": ESTIMATORS["EWsweep"]}, apart=True)
ALL_EM = drawn(estimators=dict.fromkeys(ESTIMATORS, ESTIMATORS["EM"]), apart=True)
ROELOFS, NIXON = "Roelofs et al. (2022)", "Nixon et al. (2019)"

CLAIMS: tuple[Claim[Simulation] | OutOfReach, ...] = (
    Claim(
        "Of a perfectly calibrated model, the binned error systematically shows large errors",
        f"{ROELOFS}, figure 1",
        f"the mean of EW (15 bins) exceeds {LARGE:g} at n = 200",
        lambda world: list(figure_1(world)), drawn(calibrated_size=10_000), "10,000 samples, whose mean is below 2",
    ),
    Claim(
        "With finite samples the binned error can under- and overestimate the true error",
        f"{ROELOFS}, section 3, figure 4",
        "at n = 200 the bias with 2 bins is below 0 and with 64 bins above it",
        lambda world: list(over_and_under(world)),
        drawn(fits=(CALIBRATED,)), "a calibrated model, whose error cannot be underestimated",
    ),
    Claim(
        "The best number of bins grows with the number of samples",
        f"{ROELOFS}, section 3, figure 4",
        "the number of equal-width bins of least bias, found for each seed, is larger at n = 6400 than at 200",
        lambda world: list(growing_number(world)), drawn(extremes=(400, 401)), "n = 401 against n = 400", unit="doublings",
    ),
    Claim(
        "Overall, equal mass is less biased than equal width",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over ten fits and five sizes: EW above EM, and EWsweep above EMsweep",
        lambda world: list(equal_mass_overall(world)), NOT_EQUAL_MASS, "EM is EW and EMsweep is EWsweep, drawn anew",
    ),
    Claim(
        "Equal mass consistently outperforms equal width",
        f"{ROELOFS}, figure 6 (caption)",
        "the same for every one of the ten fits, mean over five sizes",
        lambda world: list(equal_mass_consistently(world)), NOT_EQUAL_MASS, "EM is EW and EMsweep is EWsweep, drawn anew",
    ),
    Claim(
        "EMsweep has similar or less bias than the alternatives",
        f"{ROELOFS}, section 5.2",
        f"its bias exceeds that of EW, EM, EMdebias and EWsweep by less than {SIMILAR:g} in every fit and size",
        lambda world: list(similar_or_less(world)),
        drawn(estimators={**ESTIMATORS, "EMsweep": cal.BinnedError(binning=cal.EqualWidth(8), **ROOTED)}),
        "EMsweep is an error of eight bins of equal width",
    ),
    Claim(
        "At low sample sizes EMsweep is consistently less biased than all other metrics",
        f"{ROELOFS}, section 5.2",
        "at n = 200, in every fit, its bias is smaller than that of EW, EM, EMdebias and EWsweep",
        lambda world: list(less_at_low_n(world)), ALL_EM, "all estimators are EM, drawn anew",
    ),
    Claim(
        "With equal width, the sweep does not improve on other metrics",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over fits and sizes: EWsweep above EW, EM and EMdebias",
        lambda world: list(no_gain_of_equal_width(world)),
        drawn(estimators=one_estimator("EW", "EWsweep"), apart=True, sizes=(3200,)), "EWsweep is EW, drawn anew",
    ),
    Claim(
        "KDE is much more biased than all other metrics",
        f"{ROELOFS}, section 5.2",
        "in the three reference fits, at n = 200 and 3200, its bias is larger than that of each of the five others",
        lambda world: list(kde_most_biased(world)), ALL_EM, "all estimators are EM, drawn anew",
    ),
    Claim(
        "After EMsweep, EMdebias is the most competitive metric",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over fits and sizes: EW, EM and EWsweep above EMdebias",
        lambda world: list(debiased_second(world)), ALL_EM, "all estimators are EM, drawn anew",
    ),
    Claim(
        "EMsweep outperforms EMdebias for low sample sizes",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over the ten fits, at n = 200 and at 400: EMdebias above EMsweep",
        lambda world: list(sweep_before_debiased(world)),
        drawn(estimators=one_estimator("EMsweep", "EMdebias"), apart=True, sizes=(200, 400)),
        "EMdebias is EMsweep, drawn anew",
    ),
    Claim(
        "EMdebias varies more than EMsweep when it has more than 4 bins",
        f"{ROELOFS}, section 5.2, figures 12-14",
        "standard deviation at n = 200 in the three reference fits, with 8, 16, 32 and 64 bins",
        lambda world: list(debiased_varies_more(world)),
        drawn(estimators=one_estimator("EM", "EMdebias", "EMsweep"), apart=True, replicates=30), "both are EM, drawn anew",
    ),
    Claim(
        "The variance does not clearly depend on the number of bins",
        f"{ROELOFS}, appendix B.2, figures 12-14",
        "in the three reference fits, the trend of log sd from 2 to 64 bins (EW, EM; n = 200) is less than a quarter",
        lambda world: list(spread_by_bins(world)),
        drawn(estimators=one_estimator("EMdebias", "EM"), replicates=30), "EM is EMdebias, whose sd nearly doubles",
        unit="per cent",
    ),
    Claim(
        "The bias of EW and EWsweep on CIFAR-10, and of EW on CIFAR-100, grows with the number of samples",
        f"{ROELOFS}, section 5.2",
        "size of the bias at n = 3200 less that at 200, in each of these twelve cases",
        lambda world: list(growing_bias(world)),
        drawn(fits=(PUBLISHED[0],), sizes=(400, 401)), "n = 401 against n = 400",
    ),
    Claim(
        "The data set influences the bias more than the architecture",
        f"{ROELOFS}, section 5.2, figure 6",
        "n = 200, EW, EM, EMsweep: biases differ more between data sets than within, against 999 random assignments",
        lambda world: list(data_set_matters(world)), shuffled_data_sets, "fits assigned to data sets at random",
    ),
    Claim(
        "The bias is highest for perfectly calibrated models and falls as the true error grows",
        f"{ROELOFS}, section 5.3, figure 7",
        "n = 200, two laws, EW and EMsweep: it falls at each step from a truth of 0 over 2, 3, 5 and 8 to 10",
        lambda world: list(falling_bias(world)),
        drawn(errors=(0.05, 0.05), apart=True), "the same truth twice, drawn anew",
    ),
    Claim(
        "At n = 200 an EW of 12 can stand for a truth of 5 or of 8, by the law of the scores",
        f"{ROELOFS}, figure 7 (caption)",
        f"uniform scores, truth 5, and Beta(1.1, 0.1), truth 8: the mean of EW lies within {SIMILAR:g} of 12",
        lambda world: list(twelve_points(world)), drawn(twelve=(0.08, 0.05), replicates=30), "the two truths exchanged",
    ),
    Claim(
        "With 5,000 samples of a calibrated model, EW can still be off by 2",
        f"{ROELOFS}, section 5.3, figure 7",
        f"its mean exceeds {LARGE:g} for one of the two laws",
        lambda world: list(still_off(world)), drawn(calibrated_sizes=(200, 7000)), "7,000 samples", share=0.5,
    ),
    Claim(
        "EMsweep significantly reduces the bias of calibrated models",
        f"{ROELOFS}, section 5.3, figure 7",
        "EW less EMsweep, two laws, n = 200 and 5000",
        lambda world: list(sweep_reduces(world)),
        drawn(estimators=one_estimator("EW", "EMsweep"), apart=True, calibrated_sizes=(200, 300)), "EMsweep is EW, drawn anew",
    ),
    Claim(
        "EMsweep misses miscalibration less often than EW, above all below 10,000 samples",
        f"{ROELOFS}, section 5.4, figure 8",
        "share of cases missed, mean over truths of 2, 3, 5, 8 and 10, at n = 200, 500 and 2,000",
        lambda world: list(sweep_misses_less(world)),
        drawn(estimators=one_estimator("EW", "EMsweep"), apart=True, detected=(200,), detectable=(0.08,)), "EMsweep is EW, drawn anew",
        unit="per cent",
    ),
    Claim(
        "Below 500 samples an error must exceed 10 to be detected reliably",
        f"{ROELOFS}, section 5.4",
        "an error of 10 is missed by EMsweep in more than 5 % of the cases at n = 200, 300, 400 and 499",
        lambda world: list(below_500(world)), drawn(few=(400, 499)), "400 and 499 samples alone", unit="per cent",
    ),
    Claim(
        "It takes over 10,000 samples to detect an error of 2",
        f"{ROELOFS}, section 5.4",
        "at n = 10,000 EW and EMsweep miss it in more than 5 % of the cases",
        lambda world: list(over_10000(world)), drawn(hard=(0.05, 2500)), "an error of 5 and 2,500 samples", unit="per cent",
    ),
    Claim(
        "Of an uncalibrated model, the sweep chooses a number of bins close to the best",
        f"{ROELOFS}, figure 15 (left)",
        f"uniform scores, logistic curve: the bias of EMsweep is smaller than {SIMILAR:g} at each of five sizes",
        lambda world: list(near_best_bins(world)), drawn(chosen=(UNIFORM, UNIFORM)), "a calibrated model",
    ),
    Claim(
        "Of a calibrated model the best number of bins is at most 4, and the sweep misses it",
        f"{ROELOFS}, figure 15 (right)",
        "at each of five sizes: more than 4 bins are chosen, and 5 bins are more biased than 4",
        lambda world: list(too_many_bins(world)), drawn(chosen=(LOGISTIC, LOGISTIC)), "an uncalibrated model",
        unit="bins and points",
    ),
    OutOfReach(
        "The choice between ECE and ECE sweep changes which recalibration method is preferred",
        f"{ROELOFS}, figure 2, tables 4-7",
        "it needs the logits of ten networks, which are not here; the recalibration study asks it of others",
    ),
    OutOfReach(
        "The average ECE is above the averages of ACE and TACE",
        f"{NIXON}, section 8.3, figure 7",
        "it follows from the definitions: ACE and TACE are means over classes, most of whose forecasts are near 0",
    ),
    Claim(
        "ACE and TACE come nearer to the true calibration error than ECE, at every number of samples",
        f"{NIXON}, section 8.3, figure 7",
        "distance of the mean from one truth, the mean distance of forecasts from true class probabilities (temperature 2)",
        lambda world: list(nearer_truth(world)),
        drawn(temperatures=(1.0, 1.0), class_sizes=(1000,)), "calibrated forecasts, of which TACE is the larger",
    ),
    Claim(
        "ACE and TACE vary less than ECE",
        f"{NIXON}, section 8.3, figure 7",
        "standard deviation relative to the mean, at each of five sizes",
        lambda world: list(varies_less(world)),
        drawn(class_metrics=dict.fromkeys(CLASS_METRICS, cal.ECE), apart=True, class_sizes=(200,)),
        "ACE and TACE are ECE, drawn anew", unit="per cent of the mean",
    ),
    Claim(
        "As label noise grows, ACE and TACE outperform ECE",
        f"{NIXON}, figure 8",
        "distance from the one truth at n = 1000, temperatures of 1.5, 2, 4 and infinity",
        lambda world: list(outperformed(world)), drawn(temperatures=(1.0,)), "calibrated forecasts",
    ),
    Claim(
        "As label noise grows, ECE becomes a worse approximation of the true calibration error",
        f"{NIXON}, figure 8 (caption)",
        "its distance from the one truth grows from temperature 1.5 over 2 and 4 to infinity, n = 1000",
        lambda world: list(worse_with_noise(world)),
        drawn(temperatures=(0.0, 0.5, 1.0)), "noise that brings forecasts nearer to the truth (temperatures 0, 0.5, 1)",
    ),
)  # fmt: skip
"""Every claim, in the order of the papers."""
