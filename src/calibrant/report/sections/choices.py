"""Choices: how much the number depends on how many bins are used."""

from __future__ import annotations

from calibrant import recipes
from calibrant.inference.sensitivity import sensitivity
from calibrant.report.charts import Line, lines
from calibrant.report.page import Figure, Grid, Section
from calibrant.report.study import LEAST, Study

SETTINGS = (5, 10, 15, 20, 30, 50)


def choices_section(study: Study) -> Section:
    """ECE against the number of bins, with the spread that resampling gives it."""
    n = max(LEAST, min(100, study.resamples // 2))
    found = sensitivity(recipes.ECE, study.event, over="n_bins", values=SETTINGS, bootstrap=n, seed=study.seed)
    sizes = found.bin_sizes
    rows = [
        (int(setting), value, sd, *map(float, size), "yes" if steady else "no")
        for setting, value, sd, size, steady in zip(
            found.settings, found.values.tolist(), found.sds.tolist(), sizes, found.stable, strict=True
        )
    ]
    spread = [(value - sd, value + sd) for _, value, sd, *_ in rows]
    picture = lines(
        "choices-picture",
        [
            Line(
                "ECE",
                [float(one[0]) for one in rows],
                [one[1] for one in rows],
                low=[max(one[0], 0.0) for one in spread],
                high=[one[1] for one in spread],
                marks=True,
            )
        ],
        ("number of equal-width bins", "ECE"),
        f"ECE against the number of bins, n = {study.ece.n:,}",
        "The shaded area is one standard deviation over resamples either way.",
        x_ticks=[(float(setting), str(setting)) for setting in SETTINGS],
    )
    low, high = (min(one[1] for one in rows), max(one[1] for one in rows))
    said = f"Between {SETTINGS[0]} and {SETTINGS[-1]} bins ECE goes from {low:.4f} to {high:.4f} on the same forecasts."
    header = ("bins", "ECE", "sd", "smallest bin", "median bin", "largest bin", "stable")
    grid = Grid(header, rows, "ECE by number of bins")
    caption = f"n = {study.ece.n:,}, {n} resamples. Stable: within one standard deviation of the neighbouring settings."
    figure = Figure("choices-figure", picture, caption, grid)
    return Section("choices", "Sensitivity to the number of bins", (said,), (figure,))
