"""Figures: findings as pictures, each drawn from the rows that are saved beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.experiments.findings import epoch_rows, figure_rows
from calibrant.experiments.findings.epoch_rows import COURSE
from calibrant.experiments.findings.figure_rows import Finding
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.running.evidence import Evidence
from calibrant.files.writing import whole_file, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = tuple[Any, ...]
FEWEST = 10
"""Samples that a bin must hold for a line to go through it; the rows beside the picture have all bins."""
MOST_MARKERS = 180
"""Points of a panel that are marked one by one; those of ordered series are not, their lines tell them apart."""


@dataclass(frozen=True)
class DrawnFinding:
    """A finding and how it is drawn: a panel for every value of some columns, bars or lines in it.

    `across` is the horizontal column, `up` the vertical one, `series` what has a colour of its own: one that follows
    from its place where the series are `ordered`. Lines may have the `diagonal` below them, or a logarithmic (`log`)
    axis; their panels are so many `inches` wide. `shows` is what the vertical axis says; without it, the metric of
    the panel or the column.
    """

    find: Finding
    across: str
    up: str
    series: str
    panels: tuple[str, ...] = ("model",)
    bars: bool = False
    ordered: bool = False
    diagonal: bool = False
    log: bool = False
    inches: float = 4.0
    shows: str = ""

    def axis(self, records: Sequence[dict[str, Any]]) -> str:
        """What stands beside the vertical axis of a panel."""
        names_metric = self.up == "value" and "metric" in self.panels
        return self.shows or (str(records[0]["metric"]) if names_metric else self.up)

    def draw(self, sheet: Sheet) -> Figure:
        """The picture of a sheet."""
        from calibrant.plots.panels import new_figure

        parts = _parts(sheet, self.panels)
        most = max(map(len, parts.values()), default=0)
        each = min(12.0, max(5.2, 0.085 * most)) if self.bars else self.inches
        columns = max(1, min(len(parts), int(12.0 / each)))
        height, width = math.ceil(len(parts) / columns), max(6.0, each * columns)
        picture = new_figure(width, 3.0 * height + 0.8)
        grid = picture.subplots(height, columns, squeeze=False).ravel()
        for panel in grid[len(parts) :]:
            panel.set_axis_off()
        names = list(dict.fromkeys(record[self.series] for record in sheet.records()))
        looks = {str(name): index for index, name in enumerate(sorted(names) if self.ordered else names)}
        for panel, (key, records) in zip(grid, parts.items(), strict=False):
            (_bars if self.bars else _lines)(panel, records, self, looks)
            panel.set_yscale("log" if self.log else "linear")
            panel.set_title(_words(" / ".join(map(str, key))), fontsize=8, loc="left")
        picture.suptitle(_words(sheet.title), fontsize=10)
        _legend(picture, list(grid), int(width / 1.9), list(looks), self.series if self.ordered else "")
        return picture


_SWEPT_AXES = ("gamma", "gamma", "share of the rows"), ("full ECE", "samples in a cell", "sd of resamples")


@dataclass(frozen=True)
class _Swept:
    """The error with its spread, the sizes of cells, and the spread of two errors against the share of rows."""

    find: Finding = figure_rows.gamma_sweep

    def draw(self, sheet: Sheet) -> Figure:
        from calibrant.plots.panels import new_figure

        parts = _parts(sheet, ("model",))
        picture = new_figure(9.0, 2.8 * max(1, len(parts)) + 0.6)
        grid = picture.subplots(max(1, len(parts)), 3, squeeze=False)
        for row, (key, records) in zip(grid, parts.items(), strict=False):
            swept = [record for record in records if record["over"] == "gamma"]
            settings = [record["setting"] for record in swept]
            row[0].errorbar(
                settings, [record["value"] for record in swept], [record["sd"] for record in swept], fmt="o-", capsize=2
            )
            for size, marker in (("smallest cell", "v"), ("median cell", "o"), ("largest cell", "^")):
                row[1].plot(settings, [record[size] for record in swept], marker=marker, label=size)
            shares = [record for record in records if record["over"] == "share"]
            for name, some in _series(shares, "metric").items():
                row[2].plot([each["setting"] for each in some], [each["sd"] for each in some], "s-", label=name)
            for panel, across, up in zip(row, *_SWEPT_AXES, strict=True):
                _dress(panel, across, up)
                panel.set_title(_words(str(key[0])), fontsize=8, loc="left")
            for panel in row[:2]:
                panel.set_xscale("log")
                panel.set_xticks(settings, labels=[f"{setting:g}" for setting in settings])
                panel.set_xticks([], minor=True)
            row[1].set_yscale("log")
            for panel in row[1:]:
                panel.legend(fontsize=6, frameon=False)
        picture.suptitle(_words(sheet.title), fontsize=10)
        return picture


FIGURES: dict[str, DrawnFinding | _Swept] = {
    "top_k": DrawnFinding(figure_rows.top_k, "method", "value", "measure", bars=True, shows="error"),
    "ranked_confidence": DrawnFinding(figure_rows.ranked_confidence, "k", "difference", "method"),
    "top_k_accuracy": DrawnFinding(figure_rows.top_k_accuracy, "k", "accuracy", "method"),
    "entropy": DrawnFinding(figure_rows.entropy, "method", "value", "measure", bars=True, shows="entropy, nats"),
    "groups": DrawnFinding(
        figure_rows.groups, "method", "value", "measure", ("model", "level"), bars=True, shows="error"
    ),
    "hierarchy": DrawnFinding(figure_rows.hierarchy, "method", "value", "level", bars=True, shows="error"),
    "group_confidence": DrawnFinding(
        figure_rows.group_confidence,
        "method",
        "value",
        "mean output of",
        ("model", "level", "samples of"),
        bars=True,
        shows="mean output",
    ),
    "likert_errors": DrawnFinding(figure_rows.likert_errors, "method", "value", "measure", bars=True, shows="error"),
    "likert_tvd": DrawnFinding(figure_rows.likert_tvd, "method", "value", "measure", bars=True, shows="error"),
    "likert_counts": DrawnFinding(figure_rows.likert_counts, "method", "value", "measure", bars=True, shows="samples"),
    "gamma_sweep": _Swept(),
    "over_training": DrawnFinding(epoch_rows.over_training, "epoch", "value", "rows", ("model", "method", "metric")),
    "range_bounds": DrawnFinding(
        epoch_rows.range_bounds, "epoch", "lower bound", "range", (*COURSE, "metric"), ordered=True, inches=3.0
    ),
    "range_errors": DrawnFinding(
        epoch_rows.range_errors, "epoch", "value", "rows", ("model", "method", "metric"), inches=3.0
    ),
    "bins_over_training": DrawnFinding(
        epoch_rows.bins_over_training, "epoch", "gap", "confidence", COURSE, ordered=True, inches=3.0
    ),
    "logit_norms": DrawnFinding(epoch_rows.logit_norms, "epoch", "length", "model", ("method", "rows"), log=True),
    "class_errors": DrawnFinding(figure_rows.class_errors, "class", "value", "metric", ("model", "metric"), bars=True),
    "datapoint": DrawnFinding(
        figure_rows.datapoint, "forecast", "frequency", "model", ("class",), diagonal=True, inches=2.4
    ),
    "decay_rates": DrawnFinding(
        figure_rows.decay_rates,
        "forecast",
        "frequency",
        "decay",
        ("model", "class"),
        ordered=True,
        diagonal=True,
        inches=2.4,
    ),
    "sharpness": DrawnFinding(figure_rows.sharpness, "forecast", "share", "model", ("of",), log=True, inches=3.0),
    "reliability": DrawnFinding(figure_rows.reliability, "confidence", "accuracy", "method", diagonal=True),
    "sizes": DrawnFinding(figure_rows.sizes, "size", "value", "measure", ("networks",), inches=3.0, shows="error"),
    "risk_coverage": DrawnFinding(figure_rows.risk_coverage, "referred", "accuracy of the rest", "method"),
}
"""Every figure by its name."""


def save_figures(
    evidence: Evidence, folder: str | Path, names: Sequence[str] | None = None, *, form: str = "svg"
) -> list[Path]:
    """Draw the figures that are asked for, or that the study names, or all; each with its rows as CSV.

    What has no rows is left out, such as groups of classes where a data set has none.
    """
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for name in names or evidence.study.figures or list(FIGURES):
        sheet = write_figure(evidence, name, where / f"{name}.{form}", form=form)
        if sheet.rows:
            write_text(where / f"{name}.csv", sheet.to_csv())
            paths += [where / f"{name}.csv", where / f"{name}.{form}"]
    return paths


def write_figure(evidence: Evidence, name: str, path: str | Path, *, form: str) -> Sheet:
    """Draw one figure into a file, and give the rows behind it; without rows, nothing is written."""
    sheet = FIGURES[name].find(evidence)
    if sheet.rows:
        picture = FIGURES[name].draw(sheet)
        with whole_file(path) as file:
            picture.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)
    return sheet


def _parts(sheet: Sheet, columns: Sequence[str]) -> dict[Panel, list[dict[str, Any]]]:
    """The rows of each panel."""
    parts: dict[Panel, list[dict[str, Any]]] = {}
    for record in sheet.records():
        parts.setdefault(tuple(record[name] for name in columns), []).append(record)
    return parts


def _series(records: Sequence[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    series: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        series.setdefault(str(record[name]), []).append(record)
    return series


def _bars(panel: Axes, records: Sequence[dict[str, Any]], figure: DrawnFinding, looks: Mapping[str, int]) -> None:
    """Bars side by side for each value across, with standard deviations over seeds."""
    places = list(dict.fromkeys(str(record[figure.across]) for record in records))
    series = _series(records, figure.series)
    width = 0.8 / len(series)
    for index, (name, some) in enumerate(series.items()):
        at = [places.index(str(record[figure.across])) + (index - (len(series) - 1) / 2) * width for record in some]
        means, sds = _spread(some, figure.up)
        hatch = ("", "////", "....")[looks[name] // 7 % 3]
        style: dict[str, Any] = {"color": _colour(looks[name]), "edgecolor": "white", "linewidth": 0.3, "hatch": hatch}
        there, places_at = ~np.isnan(means), np.array(at)
        bars = places_at[there], means[there], width
        panel.bar(*bars, yerr=sds[there], label=_words(name), error_kw={"linewidth": 0.7}, **style)
        empty = places_at[~there]  # a bar of 0 and none at all would look alike
        panel.plot(empty, np.zeros(len(empty)), "x", color=_colour(looks[name]), markersize=3)
    if any(np.isnan(_spread(some, figure.up)[0]).any() for some in series.values()):
        panel.text(1, 1, "x: no samples", transform=panel.transAxes, ha="right", va="bottom", fontsize=7)
    panel.set_xticks(range(len(places)), labels=[_words(place) for place in places], rotation=45, ha="right")
    _dress(panel, "" if figure.across == "method" else figure.across, figure.axis(records))


def _lines(panel: Axes, records: Sequence[dict[str, Any]], figure: DrawnFinding, looks: Mapping[str, int]) -> None:
    """A line a series, with standard deviations over seeds as a shade."""
    for name, some in sorted(_series(records, figure.series).items(), key=lambda pair: looks[pair[0]]):
        index = looks[name]
        across = np.array([float(record[figure.across]) for record in some])
        means, sds = _spread(some, figure.up)
        enough = np.array([record.get("samples", FEWEST) >= FEWEST for record in some])
        kept = ~np.isnan(across) & ~np.isnan(means) & enough & ((means > 0) | (not figure.log))
        style = _in_order(index, len(looks)) if figure.ordered else _apart(index)
        marker = "o" if len(records) <= MOST_MARKERS and not figure.ordered else ""
        panel.plot(across[kept], means[kept], marker=marker, markersize=2, linewidth=1.1, label=_words(name), **style)
        low, high = (means + sign * np.nan_to_num(sds) for sign in (-1, 1))
        low = np.where((low <= 0) & figure.log, means, low)  # a logarithmic axis has no place for the rest
        panel.fill_between(across[kept], low[kept], high[kept], color=style["color"], alpha=0.15, linewidth=0)
    if figure.diagonal:
        panel.plot([0, 1], [0, 1], color="#6E6E6E", linewidth=0.7, zorder=0)
    _dress(panel, figure.across, figure.axis(records))


def _spread(records: Sequence[dict[str, Any]], name: str) -> tuple[Any, Any]:
    """Means and standard deviations of a column; what is infinite is not drawn."""
    cells = [record[name] for record in records]
    means = np.array([cell.mean if isinstance(cell, Spread) else float(cell) for cell in cells])
    sds = np.array([cell.sd if isinstance(cell, Spread) else 0.0 for cell in cells])
    return np.where(np.isfinite(means), means, np.nan), np.nan_to_num(sds)


def _dress(panel: Axes, across: str, up: str) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=7, length=2.5)
    panel.set_xlabel(_words(across), fontsize=8)
    panel.set_ylabel(_words(up), fontsize=8)


def _legend(picture: Figure, panels: Sequence[Any], columns: int, order: Sequence[str], title: str) -> None:
    """One legend for all panels: a series looks the same in each."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    handles = {label: handles[label] for label in map(_words, order) if label in handles}
    if len(handles) > 1:
        style: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "fontsize": 7, "frameon": False}
        style |= {"title": _words(title), "title_fontsize": 7} if title else {}
        picture.legend(list(handles.values()), list(handles), **style)


def _apart(index: int) -> dict[str, Any]:
    """A look unlike its neighbours'."""
    return {"color": _colour(index), "linestyle": ("-", "--", "-.", ":")[index // 7 % 4]}


def _in_order(index: int, count: int) -> dict[str, Any]:
    """A look between those of its neighbours: from dark to light, up to what white paper still shows."""
    from matplotlib import colormaps

    return {"color": colormaps["viridis"](0.92 * index / max(1, count - 1)), "linestyle": "-"}


def _colour(index: int) -> str:
    from calibrant.plots.colours import SERIES

    return str(SERIES[index % len(SERIES)][0])


def _words(text: str) -> str:
    from calibrant.plots.colours import name

    return name(text, 60)
