"""Pictures of simulations draw the numbers that were found, and name every series."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import UNIFORM, BiasGrid, Detection, Estimate, SamplesNeeded, power_curve

pytest.importorskip("matplotlib")

DETECTIONS = [
    Detection(name, n, 0.05, 0.1, share, 0.02, 100)
    for name, share in (("ece", 0.4), ("sweep", 0.6))
    for n in (100, 400)
]


def estimate(name, n, mean):
    return Estimate(name, n, 100, 0.05, "L1 error", mean, 0.02)


def bars(container):
    """The points of a series, and from where to where its bars go."""
    line, _, (segments,) = container
    ends = np.array(segments.get_segments())
    return line.get_xydata(), ends[:, :, 1]


def names(panel):
    return [text.get_text() for text in panel.get_legend().get_texts()]


def test_a_grid_is_drawn_with_two_monte_carlo_errors():
    cells = {(name, n): estimate(name, n, mean) for name, n, mean in (
        ("ece", 100, 0.09), ("ece", 400, 0.06), ("sweep", 100, 0.05), ("sweep", 400, 0.049))}  # fmt: skip
    (panel,) = simulate.bias_picture(BiasGrid("n", (100, 400), cells)).axes
    assert names(panel) == ["ece", "sweep"]
    points, ends = bars(panel.containers[0])
    assert points.tolist() == [[100, pytest.approx(0.04)], [400, pytest.approx(0.01)]]
    assert ends[0] == pytest.approx([0.04 - 2 * 0.002, 0.04 + 2 * 0.002])
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["100", "400"]


def test_one_size_is_drawn_as_rows_around_the_truth():
    cells = {(name, 100): estimate(name, 100, mean) for name, mean in (("ece", 0.09), ("sweep", 0.05))}
    (panel,) = simulate.bias_picture(BiasGrid("n", (100,), cells)).axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["ece\n(L1 error)", "sweep\n(L1 error)"]
    assert panel.containers[0][0].get_xdata().tolist() == [0.09, 0.05]
    assert panel.lines[-1].get_xdata().tolist() == [0.05, 0.05]
    assert panel.get_title() == "estimators at n = 100"


def test_powers_are_drawn_by_metric_with_the_level():
    (panel,) = simulate.power_picture(DETECTIONS).axes
    assert names(panel) == ["a calibrated model: 0.05", "ece", "sweep"]
    points, ends = bars(panel.containers[1])
    assert points.tolist() == [[100, 0.6], [400, 0.6]]
    assert ends[0] == pytest.approx([0.56, 0.64])


def test_sizes_are_drawn_with_their_intervals():
    needed = SamplesNeeded(200, 180, 230, 0.9, 100, tuple(DETECTIONS[:2]), 0.05, power_curve(2), 0.8, 0.05, 1.0)
    (panel,) = simulate.samples_picture({"ece": needed}).axes
    assert "ece: 200 (180 to 230)" in names(panel)
    band = panel.patches[0].get_extents().transformed(panel.transData.inverted())
    assert (band.x0, band.x1) == (pytest.approx(180), pytest.approx(230))
    assert panel.get_title() == "samples to notice a true L1 error of 0.05 (90% intervals)"


def test_a_fit_is_drawn_with_its_curve_and_what_was_observed():
    mine = simulate.like(simulate.draw(UNIFORM, power_curve(2), n=200), {"ECE": cal.ECE}, replicates=10)
    left, right = simulate.picture(mine).axes
    x, y = left.lines[1].get_data()
    assert y == pytest.approx(mine.fit.curves.curve(x))
    assert right.lines[-1].get_xdata() == [mine.observed["ECE"]]
    assert names(right) == ["true error", "observed", "mean ± sd over data sets"]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def swept(name, n, mean, bins):
    return Estimate(name, n, 100, 0.05, "L1 error", mean, 0.02, n_bins=bins, sd_error=0.003, rmse_error=0.004)


def grid(name, means, bins):
    cells = {(name, n): swept(name, n, mean, chosen) for n, mean, chosen in zip((100, 400), means, bins, strict=True)}
    return BiasGrid("n", (100, 400), cells)


GRIDS = {"first": grid("ece", (0.09, 0.06), (None, None)), "second": grid("sweep", (0.05, 0.04), (6.5, 9.0))}


@pytest.mark.parametrize(
    ("what", "heights", "error"),
    [("bias", [0.04, 0.01], 0.002), ("sd", [0.02, 0.02], 0.003), ("mean", [0.09, 0.06], 0.002)],
)
def test_a_panel_a_grid_shows_what_is_asked_for(what, heights, error):
    figure = simulate.grid_picture(GRIDS, what)
    assert [panel.get_title() for panel in figure.axes] == ["first", "second"]
    assert legend(figure) == ["ece", "sweep"]
    points, ends = bars(figure.axes[0].containers[0])
    assert points[:, 0].tolist() == [100, 400]
    assert points[:, 1] == pytest.approx(heights)
    assert ends[:, 1] - ends[:, 0] == pytest.approx(4 * error)
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_estimators_that_choose_no_bins_are_left_out_where_bins_are_drawn():
    figure = simulate.grid_picture(GRIDS, "n_bins")
    assert legend(figure) == ["sweep"]
    assert figure.axes[1].containers[0][0].get_ydata().tolist() == [6.5, 9.0]
    assert not figure.axes[0].containers
    with pytest.raises(cal.CalibrationInputError, match="must be one of bias, mean, sd, rmse, n_bins"):
        simulate.grid_picture(GRIDS, "variance")
    with pytest.raises(cal.CalibrationInputError, match="of at least one grid"):
        simulate.grid_picture({})


def test_the_bins_that_a_sweep_chose_stand_where_it_chose_them():
    cells = {(f"em {bins}", n): swept(f"em {bins}", n, bins / n, None) for bins in (2, 8) for n in (100, 400)}
    cells |= {("sweep", n): swept("sweep", n, 0.05, n / 50) for n in (100, 400)}
    (panel,) = simulate.bins_picture(BiasGrid("n", (100, 400), cells), "em", "sweep", [2, 8]).axes
    assert panel.containers[1][0].get_xydata().tolist() == [[2, 2 / 400], [8, 8 / 400]]
    chosen = [line.get_xdata()[0] for line in panel.lines if line.get_linestyle() == ":"]
    assert chosen == [2.0, 8.0]
    assert [line.get_ydata()[0] for line in panel.lines if line.get_linestyle() == "--"] == [0.05]
    with pytest.raises(cal.CalibrationInputError, match="must choose its bins"):
        simulate.bins_picture(BiasGrid("n", (100, 400), cells), "em", "em 2", [2, 8])


def test_means_are_drawn_beside_the_errors_that_they_should_be():
    metrics = {"ece": cal.RMSCE, "l1": cal.ECE}
    grid = simulate.error_grid(metrics, UNIFORM, [0.02, 0.1], n=60, replicates=10, seed=3)
    assert [grid["l1", error].truth for error in grid.values] == pytest.approx([0.02, 0.1], abs=1e-9)
    curve = simulate.curve_with_error(UNIFORM, 0.1)
    known = simulate.bias(metrics, UNIFORM, curve, n=60, replicates=10, seed=3, p=2)
    assert grid["ece", 0.1].mean == known["ece"].mean
    panel = simulate.grid_picture({"n = 60": grid}, "mean").axes[0]
    assert panel.lines[0].get_ydata() == pytest.approx([0.02, 0.1], abs=1e-9)
    assert panel.containers[0][0].get_ydata().tolist() == [grid["ece", 0.02].mean, grid["ece", 0.1].mean]
    with pytest.raises(cal.CalibrationInputError, match="must not be empty"):
        simulate.error_grid(metrics, UNIFORM, [])


def test_misses_are_drawn_by_the_true_error():
    at = {0.02: DETECTIONS, 0.1: [d for d in DETECTIONS if d.n == 100]}
    (panel,) = simulate.miss_picture(at).axes
    assert names(panel) == ["ece, n = 100", "ece, n = 400", "sweep, n = 100", "sweep, n = 400"]
    points, ends = bars(panel.containers[0])
    assert points.tolist() == [[0.02, 0.6], [0.1, 0.6]]
    assert ends.tolist() == [pytest.approx([0.56, 0.64])] * 2
    assert len(bars(panel.containers[1])[0]) == 1


def test_fits_are_drawn_by_their_scores_curves_and_errors():
    mine = simulate.fit_model(simulate.draw(UNIFORM, power_curve(2), n=400, seed=1), replicates=10)
    published = simulate.PUBLISHED["resnet110_c10"]
    figure = simulate.fits_picture({"mine": mine, "published": published})
    left, middle, right = figure.axes
    assert legend(figure) == ["mine", "published"]
    shares = left.patches[1].get_data().values
    assert np.nansum(shares) == pytest.approx(1.0, abs=1e-3)
    assert shares[-1] == pytest.approx(0.89, abs=0.03)  # most scores of that network lie near 1
    assert np.nanmax(left.patches[0].get_data().values) < 0.06  # uniform scores do not
    curve = middle.lines[2]
    assert curve.get_ydata().tolist() == published.curve(curve.get_xdata()).tolist()
    assert right.lines[1].get_xydata().tolist() == [[published.observed, published.simulated]]
    assert right.lines[0].get_xydata().tolist() == [[mine.observed["L2"], mine.simulated["L2"].mean]]
    with pytest.raises(cal.CalibrationInputError, match="must not be empty"):
        simulate.fits_picture({})
