"""What claims about simulations say is above 0: differences within seeds, in points unless a claim says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from simulation_world import (
    BINS,
    CALIBRATED,
    LAWS,
    REFERENCE,
    Model,
    Simulation,
    along,
    at_temperature,
    class_truth,
    size,
)

from calibrant.experiments.findings.claims import Difference

OTHERS = ("EW", "EM", "EMdebias", "EWsweep")
"""What the sweep over equal mass is held against; KDE, which takes a hundred times longer, in a claim of its own."""
SIMILAR = 0.5
"""Points within which two numbers are called similar."""
LARGE = 2.0
"""Points from which on an error is called large: what a calibrated model can still be off by (section 5.3)."""
CLEAR = np.log(1.25)
"""A standard deviation that changes by less than a quarter from 2 to 64 bins does not clearly depend on them."""
RELIABLE = 5.0
"""Per cent of cases that may be missed where something is detected reliably: as many as may be accused falsely."""


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
        yield Difference.among(name, seen, chance)


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
        yield Difference.of(
            f"{law}, truth {100 * error:g}: {SIMILAR:g} less the distance of EW from 12", SIMILAR - size(mean - 12)
        )


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
