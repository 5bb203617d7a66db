"""Choices: how much the number depends on how many bins are used."""

from __future__ import annotations

import numpy as np

from calibrant import recipes
from calibrant.binning.fixed import EqualWidth
from calibrant.errors.binned import BinnedError
from calibrant.inference.grouped import by_blocks
from calibrant.inference.sensitivity import Sensitivity, sensitivity
from calibrant.report.charts import Line, lines
from calibrant.report.page import PageFigure, PageTable, Section
from calibrant.report.quoting import Quoted, amount
from calibrant.report.subject import LEAST, SETTINGS, Subject


def choices_section(subject: Subject) -> Section:
    """ECE against the number of bins, with the spread that resampling gives it."""
    dependence, resamples = _dependence(subject)
    rows = [
        (int(setting), value, sd, *(Quoted(float(count), amount(count)) for count in size), steady)
        for setting, value, sd, size, steady in zip(
            dependence.settings,
            dependence.values.tolist(),
            dependence.sds.tolist(),
            dependence.bin_sizes,
            dependence.verdicts,
            strict=True,
        )
    ]
    xs, values, sds = ([float(row[column]) for row in rows] for column in range(3))
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
        f"ECE against the number of bins, {subject.size}",
        "The shaded area is one standard deviation over resamples either way.",
        x_ticks=[(x, f"{x:g}") for x in xs],
    )
    header = ("bins", "ECE", "sd", "smallest bin", "median bin", "largest bin", "stable")
    caption = (
        f"{subject.size}. The band is one standard deviation over {resamples} resamples either way. Stable: "
        "within one standard deviation of both neighbouring settings. The first and the last setting are not judged."
    )
    figure = PageFigure("choices-figure", picture, caption, PageTable(header, rows, "ECE by number of bins"))
    return Section("choices", "Sensitivity to the number of bins", (_said(values, dependence),), (figure,))


def _dependence(subject: Subject) -> tuple[Sensitivity, int]:
    """ECE at each setting, and how many resamples its spread is from."""
    if not subject.is_large:
        n = max(LEAST, min(100, subject.resamples // 2))
        over = {"over": "n_bins", "values": SETTINGS, "bootstrap": n, "seed": subject.seed, "groups": subject.groups}
        return sensitivity(subject.asked(recipes.ECE), subject.sampled, **over), n  # type: ignore[arg-type]
    metrics = [subject.asked(BinnedError(binning=EqualWidth(setting))) for setting in SETTINGS]
    drawn = np.array([subject.resampling.rows[metric] for metric in metrics])
    results = tuple(by_blocks(metric, subject.sampled) for metric in metrics)
    settings = tuple(float(setting) for setting in SETTINGS)
    return Sensitivity("n_bins", settings, results, drawn.mean(axis=1), drawn.std(axis=1)), drawn.shape[1]


def _said(values: list[float], dependence: Sensitivity) -> str:
    """How far apart the settings are, and whether that matters."""
    low, high = min(values), max(values)
    tried = ", ".join(str(setting) for setting in SETTINGS)
    stable = dependence.stable[1:-1].all()
    apart = "Neighbouring settings differ by less" if stable else "Some neighbouring settings differ by more"
    advice = "the number of bins matters little" if stable else "state the number of bins beside ECE"
    return (
        f"How much does ECE depend on the number of bins? With {tried} bins it lies between {low:.4f} and {high:.4f}. "
        f"{apart} than one standard deviation over resamples: {advice}."
    )
