"""Bias and spread by numbers of bins and samples, of three fits: figures 9-14 of Roelofs et al. (2022).

    python scripts/simulation_grids.py [--replicates 300]

Writes docs/simulation_grids.md, the numbers as CSV and two pictures into the folder of its name. Errors are L2; a sweep
chooses its own bins and stands beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from claim_tables import markdown
from simulation_world import BINS, ESTIMATORS, LEFT, PUBLISHED, REFERENCE
from study_keeping import draw

import calibrant as cal
from calibrant import simulate
from calibrant.files.writing import write_text
from calibrant.simulate.grids import SIZES, BiasGrid
from calibrant.text import as_csv

PAGE = Path(__file__).parents[1] / "docs" / "simulation_grids.md"
SHOWN = {
    "EW": ESTIMATORS["EW"],
    "EM": ESTIMATORS["EM"],
    "EWdebias": replace(cal.ECE_DEBIASED, binning=LEFT),
    "EMdebias": ESTIMATORS["EMdebias"],
    "EWsweep": ESTIMATORS["EWsweep"],
    "EMsweep": ESTIMATORS["EMsweep"],
}
SWEEPS = {"EW": "EWsweep", "EM": "EMsweep"}
"""Estimators, and those that choose their bins."""
Grids = dict[tuple[str, str], BiasGrid]
"""(fit, estimator) -> its grid of bins and samples."""


def main() -> None:
    """Simulate, keep the numbers, draw, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    folder = options.out.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    grids = simulated(options.replicates)
    write_text(folder / "grids.csv", as_csv(rows_of(grids)))
    for what in ("bias", "sd"):
        draw(simulate.grid_picture(panels(grids), what), folder / f"{what}.svg")
    write_text(options.out, "\n".join(page(grids, folder.name, options.replicates)).rstrip() + "\n")


def simulated(replicates: int) -> Grids:
    """Every estimator of three fits, at all numbers of bins and samples; the same draws for all."""
    fits = [fit for fit in PUBLISHED if fit.name in REFERENCE]
    return {
        (fit.name, name): simulate.bias_grid({name: metric}, fit.scores, fit.curve, SIZES, BINS, replicates, seed=0)
        for fit in fits
        for name, metric in SHOWN.items()
    }


def panels(grids: Grids) -> dict[str, BiasGrid]:
    """A panel for each fit and estimator, a line for each number of bins, and one for a sweep over them."""
    shown: dict[str, BiasGrid] = {}
    for (fit, name), grid in grids.items():
        if name in SWEEPS.values():
            continue
        cells = {(f"{words.removeprefix(name).strip()} bins", n): cell for (words, n), cell in grid.cells.items()}
        if name in SWEEPS:
            chosen = grids[fit, SWEEPS[name]].cells
            cells |= {("chosen by the sweep", n): cell for (_, n), cell in chosen.items()}
        shown[f"{fit}, {name}"] = replace(grid, cells=cells)
    return shown


def rows_of(grids: Grids) -> Iterator[list[Any]]:
    """The numbers, a row for each fit, estimator, number of bins and of samples."""
    yield ["fit", "estimator", "bins", "n", "truth", "bias", "bias error", "sd", "sd error"]
    for (fit, name), grid in grids.items():
        for (words, n), cell in grid.cells.items():
            bins = words.removeprefix(name).strip() or "chosen"
            values = (cell.truth, cell.bias, cell.mc_error, cell.sd, cell.sd_error)
            yield [fit, name, bins, str(int(n)), *(f"{value:.6f}" for value in values)]


def page(grids: Grids, folder: str, replicates: int) -> Iterator[str]:
    """The page, line by line."""
    yield "# Bias and spread by numbers of bins and samples"
    yield ""
    yield from answer(grids)
    yield f"Written by `scripts/simulation_grids.py`; do not edit. {replicates} replicates of each cell, one seed, L2"
    yield "errors in points. It repeats figures 9-14 of Roelofs et al. (2022), whose numbers are not printed there;"
    yield "scores and curves are those of their tables 1 and 2. [The study](simulation_study.md) tests what they claim."
    yield f"All numbers: `{folder}/grids.csv`."
    yield ""
    for what in ("bias", "sd"):
        title = {"bias": "Bias (figures 9-11)", "sd": "Standard deviation (figures 12-14)"}[what]
        yield f"## {title}"
        yield ""
        yield f"![{title}: a line for each number of bins.]({folder}/{what}.svg)"
        yield ""
        yield from markdown(["fit", "n", *SHOWN], table(grids, what))


def table(grids: Grids, what: str) -> Iterator[list[str]]:
    """The range over all numbers of bins, for the fewest and the most samples; one number for a sweep."""
    for fit in REFERENCE:
        for n in (SIZES[0], SIZES[-1]):
            cells = []
            for name in SHOWN:
                values = [100 * getattr(cell, what) for (_, size), cell in grids[fit, name].cells.items() if size == n]
                ends = [f"{end:+.2f}" if what == "bias" else f"{end:.2f}" for end in (min(values), max(values))]
                cells.append(" to ".join(dict.fromkeys(ends)))
            yield [fit, f"{n:,}", *cells]


def answer(grids: Grids) -> Iterator[str]:
    """What the figures show, in numbers of these grids."""
    sizes = {name: mean_size(grids, name) for name in SHOWN}
    least = min(sizes, key=sizes.__getitem__)
    averaged = f"the numbers of bins from {BINS[0]} to {BINS[-1]}"
    yield f"The size of the bias is averaged over three fits, six sizes and {averaged}."
    yield f"It is {', '.join(f'{value:.2f} ({name})' for name, value in sizes.items())} points:"
    yield f"{least} has the least."
    few, many = (mean_size(grids, "EW", n=n) for n in (SIZES[0], SIZES[-1]))
    yield f"Equal width is {few:.2f} points off with {SIZES[0]} samples and {many:.2f} with {SIZES[-1]:,}."
    spread = {name: mean_size(grids, name, what="sd") for name in ("EW", "EM", "EMsweep")}
    yield f"Standard deviations are {', '.join(f'{value:.2f} ({name})' for name, value in spread.items())} points"
    yield "on average."
    yield ""


def mean_size(grids: Grids, name: str, *, n: int | None = None, what: str = "bias") -> float:
    """The mean size of a bias or spread over fits, bins and sizes, in points."""
    cells = [
        cell
        for (_, estimator), grid in grids.items()
        for (_, size), cell in grid.cells.items()
        if estimator == name and n in (None, size)
    ]
    return 100 * float(np.mean([abs(getattr(cell, what)) for cell in cells]))


if __name__ == "__main__":
    main()
