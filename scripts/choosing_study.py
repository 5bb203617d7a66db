"""Does `recalibrate.choose` leave calibrated models alone, change others, and keep what it promises?

python scripts/choosing_study.py --runs 300 --out docs/choosing_study.md

Labels are drawn from forecasts whose logits are then divided by a slope, or shifted. The truth of a promised gain is
the log loss on 20,000 new rows before and after the chosen map, which is fitted on all rows.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.files.writing import write_text
from calibrant.recalibrate.choice import UNCHANGED
from calibrant.recalibrate.methods import usual

NEW = 20_000
SETTINGS = [
    (name, classes, n, slope, shift)
    for name, slope, shift in (("calibrated", 1.0, 0.0), ("slope 0.7", 0.7, 0.0), ("shift 0.4", 1.0, 0.4))
    for classes in (2, 4)
    for n in (300, 1000)
]


def drawn(rng: np.random.Generator, n: int, classes: int, slope: float, shift: float) -> cal.Predictions:
    """Labels of logits z, forecast by (z + shift) / slope; of classes the first is shifted."""
    if classes == 2:
        z = rng.normal(0, 1.5, n)
        return cal.Predictions.from_logits(rng.random(n) < 1 / (1 + np.exp(-z)), (z + shift) / slope)
    z = rng.normal(0, 1.5, (n, classes))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return cal.Predictions.from_logits(labels, (z + shift * (np.arange(classes) == 0)) / slope)


def studied(runs: int, classes: int, n: int, slope: float, shift: float, skipped: list[str]) -> dict[str, float]:
    """How often the model is changed, what that does to new rows, and how often the interval holds it."""
    warnings.simplefilter("ignore", cal.CalibrationWarning)
    changed, held, gains, promised = [], [], [], []
    for run in range(runs):
        rng = np.random.default_rng([run, classes, n, round(10 * slope), round(10 * shift)])
        rows, new = (drawn(rng, size, classes, slope, shift) for size in (n, NEW))
        methods = {name: method for name, method in usual(rows).items() if name not in skipped}
        choice = cal.recalibrate.choose(rows, methods, seed=run)
        changed.append(choice.best != UNCHANGED)
        if choice.gain is not None:
            after = methods[choice.best].fit(rows).recalibrate(new)
            gains.append(cal.LOG_LOSS(new).value - cal.LOG_LOSS(after).value)
            promised.append(choice.gain.value)
            held.append(choice.gain.interval.low <= gains[-1] <= choice.gain.interval.high)
    means = [float(np.mean(each)) if each else np.nan for each in (held, promised, gains, [gain < 0 for gain in gains])]
    return {
        "changed": float(np.mean(changed)),
        **dict(zip(("held", "promised", "gained", "harmed"), means, strict=True)),
    }


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--skip", nargs="*", default=["gp", "matrix", "dirichlet", "cwmcs"], help="methods left out")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    header = "| forecasts | classes | n | changed | interval holds the gain | promised | gained | harmed |"
    lines = [*(__doc__ or "").split("\n\n")[:1], "", header, "|---|---|---|---|---|---|---|---|"]
    with ProcessPoolExecutor(options.workers) as pool:
        work = [pool.submit(studied, options.runs, *setting[1:], options.skip) for setting in SETTINGS]
        for (name, classes, n, *_), future in zip(SETTINGS, work, strict=True):
            row = future.result()
            shares = [f"{100 * row[key]:.1f} %" for key in ("changed", "held")]
            cells = [*shares, f"{row['promised']:.4f}", f"{row['gained']:.4f}", f"{100 * row['harmed']:.0f} %"]
            lines.append(f"| {name} | {classes} | {n:,} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if options.out:
        write_text(options.out, "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
