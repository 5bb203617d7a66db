"""Pictures of grids and fits: bias, spread and bins chosen of many simulations; what models were fitted by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.simulate.drawing import MARKERS, draw_series, legend_of_all, panels_of, size_axis
from calibrant.simulate.grids import BiasGrid
from calibrant.simulate.model_fit import ModelFit
from calibrant.simulate.published import PublishedFit

SHOWN = {
    "bias": ("bias: mean less true error", "mc_error"),
    "mean": ("mean of the estimates", "mc_error"),
    "sd": ("standard deviation", "sd_error"),
    "rmse": ("root mean squared error", "rmse_error"),
    "n_bins": ("bins chosen, mean", ""),
}
"""What can be drawn of estimates, in words, and where its Monte Carlo error is."""
CELLS = 40
"""Equal stretches of [0, 1] in which scores are counted."""


def grid_picture(grids: Mapping[str, BiasGrid], what: str = "bias", *, columns: int = 2) -> Any:
    """Bias, spread or bins chosen of several simulations: a panel a grid, a line an estimator, one scale for all.

    `what` is "bias", "mean", "sd", "rmse" or "n_bins" (of estimators that choose it). Bars are two Monte Carlo errors.
    With one grid a fitted model and all estimators at several n, it is how estimators compare across models; with one
    grid an estimator and several numbers of bins (`bias_grid(..., n_bins=...)`), how bins and samples act together.
    Beside means the grey line is the truth, where it is one for all estimators (as in `error_grid`). Returns a
    matplotlib figure.

    References: Roelofs et al. (2022), figures 6, 7 and 9-14.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, bias_grid, grid_picture, power_curve
    >>> grid = bias_grid({"ece": cal.ECE}, UNIFORM, power_curve(2), n=[50, 500], n_bins=[5, 20], replicates=20)
    >>> [panel.get_title() for panel in grid_picture({"uniform scores": grid}, "sd").axes]
    ['uniform scores']
    """
    if what not in SHOWN or not grids:
        got = repr(what) if what not in SHOWN else "no grid"
        raise CalibrationInputError("what", f"must be one of {', '.join(SHOWN)}, of at least one grid", got=got)
    words, error = SHOWN[what]
    figure, panels = panels_of(len(grids), columns, share=True)
    names = list(dict.fromkeys(name for grid in grids.values() for name in grid.names))
    for panel, (title, grid) in zip(panels, grids.items(), strict=True):
        if what == "bias":
            panel.axhline(0, color="grey", linewidth=1)
        truths = {tuple(grid[name, value].truth for value in grid.values) for name in grid.names}
        if what == "mean" and len(truths) == 1:
            panel.plot(grid.values, truths.pop(), color="grey", linewidth=1)
        for name in grid.names:
            cells = [grid[name, value] for value in grid.values]
            heights = [getattr(cell, what) for cell in cells]
            if None in heights:  # it chooses no bins
                continue
            errors = [2 * getattr(cell, error) for cell in cells] if error else None
            draw_series(panel, names.index(name), name, grid.values, heights, errors)
        size_axis(panel, grid.values, grid.over)
        panel.set_title(title)
        panel.set_ylabel(words)
        panel.label_outer()
    legend_of_all(figure, panels)
    return figure


def bins_picture(grid: BiasGrid, name: str, sweep: str, n_bins: Sequence[int]) -> Any:
    """Does a sweep choose good numbers of bins? The mean error by number of bins, and the mean number it chose.

    `grid` has the estimator `name` at each of `n_bins`, and the `sweep`. The broken horizontal line is the true error:
    the number of bins is good where a curve meets it. Returns a matplotlib figure.

    References: Roelofs et al. (2022), figure 15.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, bias_grid, bins_picture, power_curve
    >>> metrics = {"ece": cal.ADAPTIVE_ECE, "sweep": cal.ECE_SWEEP}
    >>> grid = bias_grid(metrics, UNIFORM, power_curve(2), n=[100], n_bins=[2, 8], replicates=20)
    >>> bins_picture(grid, "ece", "sweep", [2, 8]).axes[0].get_xlabel()
    'number of bins'
    """
    figure, (panel,) = panels_of(1)
    for place, n in enumerate(grid.values):
        cells = [grid[f"{name} {bins}", n] for bins in n_bins]
        errors = [2 * cell.mc_error for cell in cells]
        draw_series(panel, place, f"n = {n:,g}", n_bins, [cell.mean for cell in cells], errors)
        chosen = grid[sweep, n].n_bins
        if chosen is None:
            raise CalibrationInputError("sweep", "must choose its bins", got=repr(sweep))
        style = {"color": f"C{place}", "linestyle": ":", "marker": MARKERS[place % len(MARKERS)], "markevery": [1]}
        panel.plot([chosen, chosen], [0, 1], transform=panel.get_xaxis_transform(), clip_on=False, **style)
    truth = grid[sweep, grid.values[0]].truth
    panel.axhline(truth, color="black", linestyle="--", linewidth=1, label=f"true error {truth:.4f}")
    size_axis(panel, list(n_bins), "number of bins")
    panel.set_ylabel("mean of the estimates")
    panel.set_title(f"{name}; dotted: mean number of bins that {sweep} chose")
    legend_of_all(figure, [panel])
    return figure


def fits_picture(fits: Mapping[str, ModelFit | PublishedFit]) -> Any:
    """What several models were fitted by: how their scores lie, their calibration curves, and whether errors agree.

    The left panel counts scores in 40 equal stretches (logarithmic). The right one has each model's binned error, as
    observed and as its fit makes it on average: points on the line are reproduced. Returns a matplotlib figure.

    References: Roelofs et al. (2022), figures 3 and 5.

    >>> from calibrant.simulate import PUBLISHED, fits_picture
    >>> some = {name: PUBLISHED[name] for name in ("resnet110_c10", "resnet152_imgnet")}
    >>> [panel.get_title() for panel in fits_picture(some).axes]
    ['scores', 'calibration curve', 'binned error']
    """
    if not fits:
        raise CalibrationInputError("fits", "must not be empty", got="none")
    figure, (left, middle, right) = panels_of(3)
    grid = np.linspace(0, 1, 400)[1:-1]
    middle.plot([0, 1], [0, 1], color="grey", linewidth=1)
    for place, (name, fit) in enumerate(fits.items()):
        law, curve, observed, simulated = fit.drawn
        style = {"color": f"C{place % 10}", "label": name, "linestyle": ("-", "--", ":", "-.")[place // 10 % 4]}
        left.stairs(_shares(law.quantiles(1 << 14)[0]), np.linspace(0, 1, CELLS + 1), **style)
        middle.plot(grid, curve(grid), **style)
        right.plot(observed, simulated, marker=MARKERS[place % len(MARKERS)], color=style["color"])
    most = 1.08 * max(max(fit.drawn[2:]) for fit in fits.values())
    right.plot([0, most], [0, most], color="grey", linewidth=1, zorder=0)
    left.set(yscale="log", xlim=(0, 1), xlabel="predicted probability s", ylabel=f"share of scores in 1/{CELLS}")
    middle.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability s", ylabel="observed frequency")
    right.set(xlim=(0, most), ylim=(0, most), xlabel="observed", ylabel="mean of simulated data sets")
    for panel, title in zip((left, middle, right), ("scores", "calibration curve", "binned error"), strict=True):
        panel.set_title(title)
    legend_of_all(figure, [left])
    return figure


def _shares(values: Any) -> Any:
    """The share of values in each stretch; none is shown as nothing, since the axis is logarithmic."""
    shares = np.histogram(values, CELLS, (0.0, 1.0))[0] / len(values)
    return np.where(shares > 0, shares, np.nan)
