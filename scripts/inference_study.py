"""Do the intervals cover, do the tests keep their level, where is the noise floor? Writes docs/inference_study.md.

    python scripts/inference_study.py [--datasets 200] [--resamples 200] [--runs 1000] [--jobs 2]

Scores follow one of three laws, outcomes one of three calibration curves T(c) = c^d, so the limit of each metric as
n grows is known: the same metric on a fine grid of scores with T(c) as soft labels.
"""

import argparse
import dataclasses
import itertools
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.door.class_kinds import redrawn_labels
from calibrant.errors.kernel import unbiased_blocks
from calibrant.inference.bootstrap import KINDS, left_out, mostly_noise
from calibrant.inference.engines import exact
from calibrant.inference.pivots import pivot

LAWS = {"uniform": (1.0, 1.0), "Beta(2.8, 0.5)": (2.8, 0.5), "Beta(1.1, 0.1)": (1.1, 0.1)}
CURVES = {"calibrated": 1.0, "slightly off": 1.15, "clearly off": 2.0}
SIZES = (500, 5000)
LEVEL = 0.9
SHARES = {"ECE": 1.0, "SCE": 1.0, "ECE_DEBIASED": 1.0, "SMECE": 0.25}
"""The share of the data sets that each metric is given: the smooth error is slow."""
METRICS = {"ECE": cal.ECE, "SCE": cal.SCE, "ECE_DEBIASED": cal.ECE_DEBIASED, "SMECE": cal.SMECE}
NULL_SCALE = 1.5
"""Standard deviation of the logits of the calibrated models behind the noise floors."""


def predictions_of(scores, truth, name):
    """SCE asks about classes, the others about the event."""
    if name == "SCE":
        if truth.dtype.kind == "f":
            truth = np.column_stack([1 - truth, truth])
        return cal.Predictions.from_probs(truth, np.column_stack([1 - scores, scores]))
    return cal.Predictions.from_probs(truth, scores)


def limit(name, law, curve, points=400_000):
    """The metric's value as n grows without bound."""
    from scipy.stats import beta

    scores = np.clip(beta(*LAWS[law]).ppf((np.arange(points) + 0.5) / points), 0, 1)
    metric = METRICS[name]
    if name == "ECE_DEBIASED":  # its variance term vanishes, and soft labels need none
        metric = dataclasses.replace(metric, distance=cal.squared)
    return metric(predictions_of(scores, scores ** CURVES[curve] + 0.0, name)).value


def coverage(task):
    """The share of intervals, of each kind, that hold the limit; and how often the interval was flagged as noise."""
    name, law, curve, size, datasets, resamples = task
    datasets = round(SHARES[name] * datasets)
    metric, target = METRICS[name], limit(name, law, curve)
    held = dict.fromkeys(KINDS, 0)
    wide = dict.fromkeys(KINDS, 0.0)
    flagged = 0
    for index in range(datasets):
        rng = np.random.default_rng([index, size, *name.encode(), *law.encode(), *curve.encode()])
        scores = rng.beta(*LAWS[law], size)
        outcomes = (rng.random(size) < scores ** CURVES[curve]).astype(int)
        predictions = predictions_of(scores, outcomes, name)
        result = metric(predictions)
        pivoted = pivot(metric, several=bool(result.values))
        estimate, centre = pivoted.metric(predictions).value, pivoted.limit(predictions).value
        drawn = cal.Bootstrap(resamples, seed=index).replicates(pivoted.metric, predictions)[:, 0]
        jackknife = left_out(exact(pivoted.metric, predictions), size, None)[:, 0]
        flagged += pivoted.limit is pivoted.metric and mostly_noise(drawn, estimate)
        for kind, ends in KINDS.items():
            interval = np.array(ends(drawn + (estimate - centre), estimate, LEVEL, jackknife))
            low, high = np.clip(pivoted.back(interval), metric.facts.low, metric.facts.high)
            held[kind] += low - 1e-12 <= target <= high + 1e-12
            wide[kind] += (high - low) / datasets
    shares = {kind: count / datasets for kind, count in held.items()}
    return name, law, curve, size, target, shares, wide, flagged / datasets


def type_one(task):
    """The share of calibrated data sets that a test rejects at 5 %."""
    name, runs = task
    test = TESTS[name]
    return name, sum(test(np.random.default_rng([run, *name.encode()]), run) <= 0.05 for run in range(runs)) / runs


def event(rng, n=300):
    scores = rng.beta(2.8, 0.5, n)
    return cal.Predictions.from_probs((rng.random(n) < scores).astype(int), scores)


def classes(rng, n=300, k=4):
    logits = rng.normal(0, NULL_SCALE, (n, k))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return cal.Predictions.from_probs(redrawn_labels(shares, rng), shares)


def by_consistency(metric, make):
    return lambda rng, run: cal.consistency(metric, make(rng), n=99, seed=run).p_value


TESTS = {
    "consistency of ECE": by_consistency(cal.ECE, event),
    "consistency of ECE_SWEEP": by_consistency(cal.ECE_SWEEP, event),
    "consistency of MCS": by_consistency(cal.MCS, event),
    "consistency of SCE": by_consistency(cal.SCE, classes),
    "consistency of WSMCS": by_consistency(cal.WSMCS, classes),
    "consistency of FULL_ECE": by_consistency(cal.FULL_ECE, classes),
    "KS (ECCE_MAD)": lambda rng, run: cal.ECCE_MAD(event(rng)).details["p_value"],
    "Kuiper (ECCE_R)": lambda rng, run: cal.ECCE_R(event(rng)).details["p_value"],
    "kernel error in blocks": lambda rng, run: cal.KernelError(estimator=unbiased_blocks(2))(
        classes(rng, n=1000)
    ).details["p_value"],
}


def null_mean(task):
    """The mean full ECE of calibrated models, and its standard error."""
    k, gamma, models, redraws = task
    metric = dataclasses.replace(cal.FULL_ECE, binning=cal.KDTree(gamma))
    means = [
        cal.consistency(metric, classes(np.random.default_rng(model), 2000, k), n=redraws, seed=model).mean
        for model in range(models)
    ]
    return k, gamma, np.mean(means), np.std(means) / np.sqrt(models)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "inference_study.md")
    options = parser.parse_args()
    tasks = [(*cell, options.datasets, options.resamples) for cell in itertools.product(METRICS, LAWS, CURVES, SIZES)]
    with ProcessPoolExecutor(options.jobs) as pool:
        covered = list(pool.map(coverage, tasks))
        levels = list(pool.map(type_one, [(name, options.runs) for name in TESTS]))
        floors = list(pool.map(null_mean, itertools.product((10, 3), (0.1, 2**-7), (40,), (10,))))
    lines = [
        "# Do the intervals cover, do the tests keep their level?",
        "",
        "Written by `scripts/inference_study.py`; do not edit.",
        "",
        f"## Coverage of {LEVEL:.0%} intervals",
        "",
        f"Share of {options.datasets} data sets (a quarter as many for SMECE) whose interval ({options.resamples} "
        "resamples) holds the metric's value as n grows without bound; scores from three laws, outcomes from "
        f"T(c) = c^d with d = {', '.join(f'{d:g} ({name})' for name, d in CURVES.items())}. Monte Carlo error about "
        f"{np.sqrt(0.09 / options.datasets):.0%} (SMECE {np.sqrt(0.36 / options.datasets):.0%}). The last column is "
        "how often the interval came with the note that about half of the error or more is noise.",
        "",
        "| metric | scores | outcomes | n | limit | basic | percentile | bca | mean width, basic | noted as noise |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, law, curve, size, target, shares, wide, flagged in covered:
        kinds = " | ".join(f"{shares[kind]:.0%}" for kind in ("basic", "percentile", "bca"))
        lines.append(
            f"| {name} | {law} | {curve} | {size} | {target:.4f} | {kinds} | {wide['basic']:.4f} | {flagged:.0%} |"
        )
    mean = {kind: np.mean([shares[kind] for *_, shares, _, _ in covered]) for kind in KINDS}
    lines += [
        "",
        "Mean over the table: " + ", ".join(f"{kind} {share:.0%}" for kind, share in mean.items()) + ".",
        "",
        "## Type I error at 5 %",
        "",
        f"Share of {options.runs} calibrated data sets that each test rejects (two standard errors: "
        f"{2 * np.sqrt(0.05 * 0.95 / options.runs):.1%}); consistency with 99 redraws.",
        "",
        "| test | rejects |",
        "|---|---|",
        *(f"| {name} | {share:.1%} |" for name, share in levels),
        "",
        "## The noise floor of the full error",
        "",
        "Mean full ECE of perfectly calibrated models with 2,000 samples, their logits normal with standard deviation "
        f"{NULL_SCALE}.",
        "",
        "| classes | gamma | mean | standard error |",
        "|---|---|---|---|",
        *(f"| {k} | {gamma:g} | {floor:.4f} | {error:.4f} |" for k, gamma, floor, error in floors),
        "",
    ]
    options.out.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
