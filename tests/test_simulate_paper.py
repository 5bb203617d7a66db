"""Published simulations, repeated: Roelofs et al. (2022). Seeds are fixed, so each test passes always or never.

Tolerances are those of two simulations' Monte Carlo errors: ours with the replicates said, the other with its own.
"""

import time

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import IDENTITY, PUBLISHED, UNIFORM, BetaScores, curve_with_error, logistic_curve

pytestmark = pytest.mark.slow

SIZES = (200, 400, 800, 1600, 3200, 6400)
FIGURE_4 = {
    2: (-4.34, -4.52, -4.65, -4.72, -4.78, -4.82),
    4: (-3.28, -3.71, -4.02, -4.21, -4.34, -4.42),
    8: (-1.43, -2.14, -2.69, -3.04, -3.26, -3.40),
    16: (0.62, -0.37, -1.12, -1.67, -2.01, -2.24),
    32: (2.66, 1.50, 0.52, -0.26, -0.83, -1.22),
    64: (4.54, 3.32, 2.14, 1.13, 0.30, -0.30),
}
TABLE_3 = {
    # an independent simulation with the printed parameters, and what the paper prints
    "resnet110_c10": (9.23, 8.42),
    "resnet110_SD_c10": (8.26, 8.79),
    "resnet_wide32_c10": (8.33, 8.44),
    "densenet40_c10": (8.79, 8.09),
    "resnet110_c100": (18.58, 18.87),
    "resnet110_SD_c100": (17.01, 15.78),
    "resnet_wide32_c100": (18.16, 17.53),
    "densenet40_c100": (19.87, 19.69),
    "resnet152_imgnet": (9.66, 9.26),
    "densenet161_imgnet": (7.29, 6.87),
}
FIGURE_6 = {
    # an independent simulation, 300 replicates: bias in points of the five estimators
    ("resnet110_c10", 200): (0.39, 1.30, -0.63, -3.14, 0.25),
    ("resnet_wide32_c100", 200): (-1.11, 1.06, -0.82, -5.99, -0.72),
    ("resnet152_imgnet", 200): (5.64, 3.49, -1.27, -0.43, 0.91),
    ("resnet110_c10", 3200): (-2.17, -0.14, -0.25, -4.52, -0.22),
    ("resnet_wide32_c100", 3200): (-3.54, -0.30, -0.42, -5.91, -0.55),
    ("resnet152_imgnet", 3200): (-0.04, 0.12, -0.19, -0.84, -0.05),
}
ROOTED = {"distance": cal.squared, "aggregate": cal.root_mean}
LEFT = cal.EqualWidth(15, closed="left")
METRICS = {
    "EW": cal.BinnedError(binning=LEFT, **ROOTED),
    "EM": cal.BinnedError(binning=cal.EqualMass(15), **ROOTED),
    "EMdebias": cal.ECE_DEBIASED,
    "EWsweep": cal.BinnedError(binning=cal.Sweep(LEFT), **ROOTED),
    "EMsweep": cal.BinnedError(binning=cal.Sweep(), **ROOTED),
}


def test_figure_4_in_full_and_in_time():
    fit = PUBLISHED["resnet110_c10"]
    start = time.process_time()
    grid = simulate.bias_grid(
        {"EW": METRICS["EW"]}, fit.scores, fit.curve, SIZES, tuple(FIGURE_4), replicates=1000, seed=0
    )
    assert time.process_time() - start < 30
    biases = np.array([[100 * grid[f"EW {bins}", n].bias for n in SIZES] for bins in FIGURE_4])
    differences = np.abs(biases - np.array(list(FIGURE_4.values())))
    assert differences.max() < 0.35  # the bound asked for; the errors of both sides are 0.09 each at most
    assert differences.mean() < 0.08
    best = [min(FIGURE_4, key=lambda bins, n=n: abs(grid[f"EW {bins}", n].bias)) for n in SIZES]
    assert best == [16, 16, 32, 32, 64, 64]  # grows with n, as printed


def test_figure_1_calibrated_models_look_off():
    estimate = simulate.bias({"EW": METRICS["EW"]}, BetaScores(2.8, 0.05), IDENTITY, n=200, replicates=4000)["EW"]
    assert estimate.truth == 0
    assert 100 * estimate.mean == pytest.approx(6.73, abs=0.2)  # 0.03 ours, 0.06 theirs, at 1000 replicates
    assert 100 * estimate.sd == pytest.approx(1.87, abs=0.1)


@pytest.mark.parametrize("name", list(TABLE_3))
def test_table_3_simulated(name):
    fit = PUBLISHED[name]
    estimate = simulate.bias({"EW": METRICS["EW"]}, fit.scores, fit.curve, n=1000, replicates=400, seed=0)["EW"]
    independent, printed = TABLE_3[name]
    assert 100 * estimate.mean == pytest.approx(independent, abs=0.3)  # 0.07 each: three of the difference
    assert 100 * estimate.mean == pytest.approx(printed, abs=1.4)  # printed ones are of curves fitted to other data
    assert fit.simulated == pytest.approx(printed / 100)


@pytest.mark.parametrize(("name", "n"), list(FIGURE_6))
def test_figures_6_and_9_to_11_bias_and_ranking(name, n):
    fit = PUBLISHED[name]
    biases = simulate.bias(METRICS, fit.scores, fit.curve, n=n, replicates=400 if n == 3200 else 1000, seed=0)
    known = dict(zip(METRICS, FIGURE_6[name, n], strict=True))
    error = {
        metric: 100 * np.hypot(estimate.mc_error, estimate.sd / np.sqrt(300)) for metric, estimate in biases.items()
    }
    for metric, estimate in biases.items():
        assert 100 * estimate.bias == pytest.approx(known[metric], abs=3 * error[metric])  # 1 in 400 each, correlated
    for better in METRICS:  # the same order, but for those that either simulation can hardly tell apart
        for worse in METRICS:
            if abs(known[worse]) - abs(known[better]) > 3 * (error[better] + error[worse]):
                assert abs(biases[better].bias) < abs(biases[worse].bias)


def test_the_debiased_error_varies_more_than_the_sweep_at_small_n():
    for name in ("resnet110_c10", "resnet_wide32_c100", "resnet152_imgnet"):
        fit = PUBLISHED[name]
        biases = simulate.bias(METRICS, fit.scores, fit.curve, n=200, replicates=1000)
        assert biases["EMdebias"].sd > biases["EMsweep"].sd


@pytest.mark.parametrize(
    ("scores", "n", "error", "ew", "sweep"),
    [
        (UNIFORM, 200, 0.05, 11.78, None),
        (BetaScores(1.1, 0.1), 200, 0.08, 12.14, None),
        (UNIFORM, 200, 0.0, 10.95, 6.23),
        (BetaScores(1.1, 0.1), 200, 0.0, 10.30, 4.46),
        (UNIFORM, 5000, 0.0, 2.21, 2.10),
        (BetaScores(1.1, 0.1), 5000, 0.0, 2.18, 1.02),
    ],
)
def test_figure_7_mean_estimates(scores, n, error, ew, sweep):
    biases = simulate.bias(METRICS, scores, curve_with_error(scores, error), n=n, replicates=1000 if n == 200 else 150)
    for name, known in (("EW", ew), ("EMsweep", sweep)):
        estimate = biases[name]
        if known is not None:  # the other side's replicates are some 1000
            allowed = 400 * np.hypot(estimate.mc_error, estimate.sd / np.sqrt(1000))
            assert 100 * estimate.mean == pytest.approx(known, abs=allowed)


@pytest.mark.parametrize(
    ("n", "error", "ew", "sweep"),
    [(200, 0.02, 0.95, 0.94), (200, 0.08, 0.70, 0.50), (200, 0.10, 0.53, 0.24), (500, 0.05, 0.74, 0.52),
     (500, 0.08, 0.26, 0.07), (500, 0.10, 0.06, 0.01), (2000, 0.03, 0.52, 0.36), (2000, 0.05, 0.07, 0.02)],
)  # fmt: skip
def test_figure_8_missed_miscalibration(n, error, ew, sweep):
    chosen = {"EW": METRICS["EW"], "EMsweep": METRICS["EMsweep"]}
    detections = simulate.power(
        chosen, UNIFORM, curve_with_error(UNIFORM, error), n=n, replicates=1000 if n < 2000 else 400, seed=1
    )
    for name, known in (("EW", ew), ("EMsweep", sweep)):
        # the other side has 400 replicates: its own error, critical value included, is like ours at as many
        allowed = 3 * detections[name].mc_error * np.hypot(1, np.sqrt(detections[name].replicates / 400)) + 0.01
        assert detections[name].type_two == pytest.approx(known, abs=allowed)


@pytest.mark.parametrize(
    ("curve", "known"),
    [(logistic_curve(10, -5), (7.7, 8.7, 9.4, 11.1, 12.9)), (IDENTITY, (6.4, 7.6, 9.2, 11.0, 13.4))],
    ids=["logistic", "calibrated"],
)
def test_figure_15_bins_that_the_sweep_chooses(curve, known):
    for n, bins in zip(SIZES[:4], known, strict=False):
        chosen = simulate.estimates({"it": METRICS["EMsweep"]}, UNIFORM, curve, n=n, replicates=500)["it"][:, 1]
        assert chosen.mean() == pytest.approx(bins, abs=4 * chosen.std() / np.sqrt(300) + 0.05)  # printed to a tenth


def test_the_density_error_is_not_the_most_biased_once_its_root_is_taken():
    fit = PUBLISHED["resnet110_c10"]
    biases = simulate.bias({"KDE": cal.KDEError(order=2), **METRICS}, fit.scores, fit.curve, n=200, replicates=60)
    assert abs(biases["KDE"].bias) < abs(biases["EWsweep"].bias)
    without_root = biases["KDE"].mean ** 2 + biases["KDE"].sd ** 2 - biases["KDE"].truth
    assert without_root < -0.08
