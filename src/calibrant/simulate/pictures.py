"""Pictures: fits, biases, powers and sample sizes, drawn with matplotlib (`pip install calibrant[plot]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.simulate.biases import Estimate
from calibrant.simulate.detection import Detection
from calibrant.simulate.drawing import draw_series, legend_below, panels_of, size_axis
from calibrant.simulate.grids import BiasGrid
from calibrant.simulate.model_like_yours import Like
from calibrant.simulate.sample_size import SamplesNeeded


def picture(comparison: Like) -> Any:
    """The calibration curve that was fitted, and beside it each estimator's mean and spread around its truth.

    Returns a matplotlib figure.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, draw, like, picture, power_curve
    >>> mine = like(draw(UNIFORM, power_curve(2), n=100), {"ECE": cal.ECE}, replicates=10)
    >>> [ax.get_title() for ax in picture(mine).axes]
    ['fitted calibration curve', 'estimators at n = 100']
    """
    figure, (left, right) = panels_of(2)
    scores = np.linspace(0, 1, 400)[1:-1]
    curve = comparison.fit.curves.curve
    left.plot([0, 1], [0, 1], color="grey", linewidth=1, label="calibrated")
    left.plot(scores, curve(scores), color="C0", label=f"fitted: {curve.formula}")
    left.set(xlabel="predicted probability s", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1))
    left.set_title("fitted calibration curve")
    legend_below(left)
    _rows(right, list(comparison.biases.values()))
    right.plot(list(comparison.observed.values()), range(len(comparison.biases)), "x", color="C1", label="observed")
    right.set_title(f"estimators at n = {comparison.n:,}")
    legend_below(right)
    return figure


def bias_picture(grid: BiasGrid) -> Any:
    """How far estimators are from the truth: their bias by the value that was varied, with the Monte Carlo error.

    Where nothing was varied, each estimator's mean and spread around its truth. Returns a matplotlib figure.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, bias_grid, bias_picture, power_curve
    >>> grid = bias_grid({"ece": cal.ECE}, UNIFORM, power_curve(2), n=[50, 500], replicates=20)
    >>> bias_picture(grid).axes[0].get_ylabel()
    'bias: mean less true error'
    """
    figure, (panel,) = panels_of(1)
    if len(grid.values) == 1:
        estimates = [grid[name, grid.values[0]] for name in grid.names]
        _rows(panel, estimates)
        panel.set_title(f"estimators at {grid.over} = {grid.values[0]:,g}")
    else:
        panel.axhline(0, color="grey", linewidth=1)
        for place, name in enumerate(grid.names):
            estimates = [grid[name, value] for value in grid.values]
            biases, errors = zip(*((estimate.bias, 2 * estimate.mc_error) for estimate in estimates), strict=True)
            draw_series(panel, place, name, grid.values, biases, errors)
        size_axis(panel, grid.values, grid.over)
        panel.set(ylabel="bias: mean less true error")
        panel.set_title("bias of estimators (bars: two Monte Carlo errors)")
    legend_below(panel)
    return figure


def power_picture(detections: Sequence[Detection]) -> Any:
    """How often each metric notices miscalibration, by the number of samples, with the Monte Carlo error.

    Returns a matplotlib figure.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, power, power_curve, power_picture
    >>> curve = power_curve(1.5)
    >>> runs = [power({"ece": cal.ECE}, UNIFORM, curve, n=n, replicates=20) for n in (50, 200)]
    >>> power_picture([run["ece"] for run in runs]).axes[0].get_xlabel()
    'n'
    """
    figure, (panel,) = panels_of(1)
    level = detections[0].level
    for place, name in enumerate(dict.fromkeys(detection.name for detection in detections)):
        own = [detection for detection in detections if detection.name == name]
        sizes, powers, errors = zip(*((each.n, each.power, 2 * each.mc_error) for each in own), strict=True)
        draw_series(panel, place, name, sizes, powers, errors)
    panel.axhline(level, color="grey", linewidth=1, linestyle="--", label=f"a calibrated model: {level:g}")
    size_axis(panel, [detection.n for detection in detections], "n")
    panel.set(ylabel="power: share of data sets noticed", ylim=(0, 1.02))
    panel.set_title("power to notice miscalibration (bars: two Monte Carlo errors)")
    legend_below(panel)
    return figure


def miss_picture(detections: Mapping[float, Sequence[Detection]]) -> Any:
    """How often miscalibration goes unnoticed, by the true error: a line a metric and number of samples.

    The keys are true errors, with the detections at each. Bars are two Monte Carlo errors. Returns a matplotlib figure.

    References: Roelofs et al. (2022), figure 8.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, curve_with_error, miss_picture, power
    >>> curves = {error: curve_with_error(UNIFORM, error) for error in (0.02, 0.1)}
    >>> runs = {error: power({"ece": cal.ECE}, UNIFORM, curve, n=100, replicates=20) for error, curve in curves.items()}
    >>> miss_picture({error: list(run.values()) for error, run in runs.items()}).axes[0].get_xlabel()
    'true calibration error'
    """
    figure, (panel,) = panels_of(1)
    every = [detection for at in detections.values() for detection in at]
    for place, (name, n) in enumerate(dict.fromkeys((detection.name, detection.n) for detection in every)):
        own = [(error, each) for error, at in detections.items() for each in at if (each.name, each.n) == (name, n)]
        misses, errors = zip(*((each.type_two, 2 * each.mc_error) for _, each in own), strict=True)
        draw_series(panel, place, f"{name}, n = {n:,}", [error for error, _ in own], misses, errors)
    panel.set(xlabel="true calibration error", ylabel="share of data sets not noticed", ylim=(0, 1.02))
    panel.set_title(f"misses at level {every[0].level:g} (bars: two Monte Carlo errors)")
    legend_below(panel)
    return figure


def samples_picture(needed: Mapping[str, SamplesNeeded]) -> Any:
    """The powers from which sample sizes were read: each size is a line, its interval the band about it.

    Returns a matplotlib figure.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, samples_needed, samples_picture
    >>> needed = {"mcs": samples_needed(cal.MCS, UNIFORM, 0.2, p=1, within=1, replicates=50)}
    >>> samples_picture(needed).axes[0].get_xlabel()
    'n'
    """
    figure, (panel,) = panels_of(1)
    for place, (name, answer) in enumerate(needed.items()):
        sizes, powers, errors = zip(
            *((each.n, each.power, 2 * each.mc_error) for each in answer.detections), strict=True
        )
        label = f"{name}: {answer.n:,} ({answer.low:,} to {answer.high:,})"
        draw_series(panel, place, label, sizes, powers, errors, joined=False)
        panel.axvspan(answer.low, answer.high, color=f"C{place}", alpha=0.15, linewidth=0)
        panel.axvline(answer.n, color=f"C{place}", linewidth=1)
    first = next(iter(needed.values()))
    panel.axhline(first.wanted, color="grey", linewidth=1, linestyle="--", label=f"wanted power {first.wanted:g}")
    size_axis(panel, [answer.n for answer in needed.values()], "n")
    panel.set(ylabel="power: share of data sets noticed")
    panel.set_title(
        f"samples to notice a true L{first.p:g} error of {first.error:g} ({first.confidence:.0%} intervals)"
    )
    legend_below(panel)
    return figure


def _rows(panel: Any, estimates: Sequence[Estimate]) -> None:
    """One row an estimator: its mean, its standard deviation to both sides, and the truth."""
    places = range(len(estimates))
    means, spreads, truths = np.array([[each.mean, each.sd, each.truth] for each in estimates]).T
    panel.errorbar(means, places, xerr=spreads, fmt="o", color="C0", label="mean ± sd over data sets")
    panel.plot(truths, places, "|", color="black", markersize=18, markeredgewidth=1.6, label="true error")
    panel.set_yticks(places, [f"{each.name}\n({each.target})" for each in estimates])
    panel.set_ylim(len(estimates) - 0.4, -0.6)
    panel.set_xlabel("calibration error")
