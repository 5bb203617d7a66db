"""Choices: how much the number depends on how many bins are used."""

from __future__ import annotations

import numpy as np

from calibrant import recipes
from calibrant.binning.fixed import EqualWidth
from calibrant.errors.binned import BinnedError
from calibrant.inference.grouped import by_blocks
from calibrant.inference.sensitivity import Sensitivity, sensitivity
from calibrant.report.charts import Line, lines
from calibrant.report.page import Figure, Grid, Section
from calibrant.report.study import LEAST, SETTINGS, Study
from calibrant.report.words import Quoted, amount


def choices_section(study: Study) -> Section:
    """ECE against the number of bins, with the spread that resampling gives it."""
    found, resamples = _found(study)
    rows = [
        (int(setting), value, sd, *(Quoted(float(one), amount(one)) for one in size), "yes" if steady else "no")
        for setting, value, sd, size, steady in zip(
            found.settings, found.values.tolist(), found.sds.tolist(), found.bin_sizes, found.stable, strict=True
        )
    ]
    xs, values, sds = ([float(one[column]) for one in rows] for column in range(3))
    picture = lines(
        "choices-picture",
        [
            Line(
                "ECE",
                xs,
                values,
                low=[max(value - sd, 0.0) for value, sd in zip(values, sds, strict=True)],
                high=[value + sd for value, sd in zip(values, sds, strict=True)],
                marks=True,
            )
        ],
        ("number of equal-width bins", "ECE"),
        f"ECE against the number of bins, n = {study.ece.n:,}",
        "The shaded area is one standard deviation over resamples either way.",
        x_ticks=[(x, f"{x:g}") for x in xs],
    )
    header = ("bins", "ECE", "sd", "smallest bin", "median bin", "largest bin", "stable")
    grid = Grid(header, rows, "ECE by number of bins")
    caption = (
        f"n = {study.ece.n:,}; the band is one standard deviation over {resamples} resamples either way. Stable: "
        "within one standard deviation of the neighbouring settings. Bin sizes are of bins that hold samples."
    )
    figure = Figure("choices-figure", picture, caption, grid)
    return Section("choices", "Sensitivity to the number of bins", (_said(values, found),), (figure,))


def _found(study: Study) -> tuple[Sensitivity, int]:
    """ECE at each setting, and how many resamples its spread is from."""
    if not study.is_large:
        n = max(LEAST, min(100, study.resamples // 2))
        over = {"over": "n_bins", "values": SETTINGS, "bootstrap": n, "seed": study.seed}
        return sensitivity(recipes.ECE, study.event, **over), n  # type: ignore[arg-type]
    metrics = [BinnedError(binning=EqualWidth(setting)) for setting in SETTINGS]
    drawn = np.array([study.resampling.rows[metric] for metric in metrics])
    results = tuple(by_blocks(metric, study.event) for metric in metrics)
    settings = tuple(float(setting) for setting in SETTINGS)
    return Sensitivity("n_bins", settings, results, drawn.mean(axis=1), drawn.std(axis=1)), drawn.shape[1]


def _said(values: list[float], found: Sensitivity) -> str:
    """How far apart the settings are, and whether that matters."""
    low, high = min(values), max(values)
    tried = ", ".join(str(setting) for setting in SETTINGS)
    apart = "no farther apart" if all(found.stable) else "in part farther apart"
    return (
        f"Nobody asked for 15 bins. On the same forecasts, ECE with {tried} bins lies "
        f"between {low:.4f} and {high:.4f}; neighbouring settings are "
        f"{apart} than resampling spreads them. More bins see more, and more noise."
    )
