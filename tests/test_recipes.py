"""Recipes: reference values of the twelve forecasts, to 1e-12, and hand-worked cases."""

import dataclasses

import numpy as np
import pytest

import calibrant as cal
from toy import P, y

replace = dataclasses.replace
EW, EM = cal.EqualWidth, cal.EqualMass


def exactly(value):
    return pytest.approx(value, rel=0, abs=1e-12)


EQUAL_WIDTH = {
    # (bins, closed): ECE, RMSCE, MCE, SCE
    (4, "left"): (0.12166666666666663, 0.17351152699460634, 0.395, 0.10555555555555556),
    (4, "right"): (0.0716666666666667, 0.07651706418251497, 0.09666666666666668, 0.10388888888888888),
    (5, "left"): (0.155, 0.16802364251629723, 0.34, 0.16944444444444443),
    (5, "right"): (0.06333333333333332, 0.10541913699345316, 0.34, 0.14722222222222223),
    (10, "left"): (0.32999999999999996, 0.3851659094179777, 0.625, 0.225),
    (10, "right"): (0.07999999999999999, 0.12294420595448073, 0.34, 0.19555555555555557),
    (15, "left"): (0.32999999999999996, 0.38560558433024106, 0.625, 0.2438888888888889),
    (15, "right"): (0.255, 0.32071534627038556, 0.65, 0.23277777777777775),
}


@pytest.mark.parametrize(("choice", "expected"), EQUAL_WIDTH.items())
def test_equal_width_errors(choice, expected):
    metrics = (cal.ECE, cal.RMSCE, cal.MCE, cal.SCE)
    assert [replace(metric, binning=EW(*choice))(y, P).value for metric in metrics] == exactly(list(expected))


EQUAL_MASS = {
    # bins: L1, L2, debiased square, ACE by count, ACE by 1/r
    3: (0.09833333333333333, 0.11039701082909807, -0.04336805555555555, 0.12444444444444443, 0.12444444444444443),
    4: (0.17166666666666663, 0.19670903498427425, -0.016861111111111122, 0.10944444444444444, 0.10944444444444444),
    5: (0.07166666666666663, 0.08542378019159663, -0.089925, 0.1561111111111111, 0.17355555555555555),
}


@pytest.mark.parametrize(("bins", "expected"), EQUAL_MASS.items())
def test_equal_mass_errors(bins, expected):
    binning = EM(bins)
    debiased = replace(cal.ECE_DEBIASED, binning=binning)(y, P)
    found = [
        replace(cal.ECE, binning=binning)(y, P).value,
        replace(cal.RMSCE, binning=binning)(y, P).value,
        debiased.details["signed_square"],
        replace(cal.ACE, binning=binning)(y, P).value,
        replace(cal.ACE, binning=binning, aggregate=cal.uniform)(y, P).value,
    ]
    assert found == exactly(list(expected))
    assert debiased.value == 0.0


THRESHOLDED = {
    # (bins, threshold): class-wise by count, class-wise by 1/r, flat by count, flat by 1/r
    (3, 0.01): (0.09896464646464646, 0.10351851851851852, 0.0576470588235294, 0.05694444444444443),
    (3, 0.1): (0.18608465608465607, 0.19000000000000003, 0.0452, 0.046157407407407404),
    (4, 0.01): (0.16734848484848483, 0.1676388888888889, 0.07882352941176471, 0.07715277777777778),
    (4, 0.1): (0.1939153439153439, 0.18930555555555553, 0.058799999999999984, 0.059761904761904745),
    (5, 0.01): (0.18169191919191918, 0.19633333333333333, 0.08588235294117648, 0.08804761904761907),
    (5, 0.1): (0.22830687830687832, 0.21233333333333335, 0.08440000000000002, 0.0844),
}


@pytest.mark.parametrize(("choice", "expected"), THRESHOLDED.items())
def test_thresholded_adaptive_errors(choice, expected):
    bins, threshold = choice
    found = [
        replace(cal.TACE, lens=cal.Above(lens, threshold), binning=EM(bins), aggregate=aggregate)(y, P).value
        for lens in (cal.Classwise(), cal.Flat())
        for aggregate in (cal.mean, cal.uniform)
    ]
    assert found == exactly(list(expected))


SWEEPS = [
    (cal.Sweep(EM()), 0.07166666666666663, 0.08542378019159663, 5),
    (cal.Sweep(EW(closed="left")), 0.12166666666666663, 0.17351152699460634, 4),
    (cal.Sweep(EW(closed="right")), 0.17166666666666663, 0.19670903498427425, 6),
]


@pytest.mark.parametrize(("sweep", "l1", "l2", "bins"), SWEEPS)
def test_sweeps(sweep, l1, l2, bins):
    first, second = (replace(metric, binning=sweep)(y, P) for metric in (cal.ECE, cal.RMSCE))
    assert (first.value, second.value) == exactly((l1, l2))
    assert first.details["n_bins"] == second.details["n_bins"] == bins


@pytest.mark.parametrize(
    ("closed", "l1", "l2"),
    [("left", 0.13277777777777777, 0.1869343319041327), ("right", 0.08, 0.09972183534434394)],
)
def test_label_binned_errors(closed, l1, l2):
    found = [cal.LabelBinnedError(binning=EW(4, closed), p=p)(y, P).value for p in (1, 2)]
    assert found == exactly([l1, l2])


def test_quantile_bins_by_value():
    assert replace(cal.ACE, binning=cal.Quantiles(5))(y, P).value == pytest.approx(0.1744444444, abs=5e-11)
    tace = replace(cal.TACE, lens=cal.Above(cal.Classwise(), 0.1), binning=cal.Quantiles(3))
    assert tace(y, P).value == pytest.approx(0.1546560847, abs=5e-11)


GENERALISED = [
    (cal.TopK(2), cal.KDTree(0.5), cal.tvd, 0.2533333333333333),
    (cal.Full(), cal.KDTree(0.5), cal.tvd, 0.21249999999999997),
    (cal.Full(), cal.KDTree(0.25), cal.tvd, 0.2825),
    (cal.Full(), cal.KDTree(0.25, threshold="median"), cal.tvd, 0.32166666666666666),
    (cal.Full(), cal.KDTree(0.5), cal.mahalanobis(np.diag([1, 2, 0.5])), 0.2554724602317249),
    (cal.Full(), cal.KDTree(0.5), cal.weighted([1, 2, 0.5]), 0.2554724602317249),
    (cal.Groups({"a": [0], "b": [1, 2]}), cal.Grid(4, "left"), cal.tvd, 0.07583333333333328),
    (cal.Groups({"a": [0], "b": [1, 2]}), cal.Grid(4), cal.tvd, 0.0708333333333333),
    (cal.OneClass(1), cal.Grid(4, "left"), cal.tvd, 0.10083333333333333),
    (cal.OneClass(1), EW(4), cal.tvd, 0.10083333333333333),
]


@pytest.mark.parametrize(("lens", "binning", "distance", "expected"), GENERALISED)
def test_generalised_errors(lens, binning, distance, expected):
    assert cal.BinnedError(lens=lens, binning=binning, distance=distance)(y, P).value == exactly(expected)


def test_leaves_of_the_full_tree():
    view = cal.Full()(cal.Predictions.from_probs(y, P))
    codes = cal.KDTree(0.5).assign(view)[:, 0]
    assert [np.flatnonzero(codes == leaf).tolist() for leaf in range(3)] == [[1, 4, 5, 9], [2, 7, 10], [0, 3, 6, 8, 11]]


def test_signed_errors():
    assert cal.MCS(y, P).value == exactly(0.01)
    assert [part.value for part in cal.CWMCS(y, P).parts.values()] == exactly([0.064, 0.06666666666666665, -0.1])
    by_prediction = replace(cal.CWMCS, lens=cal.ByPrediction(cal.TopLabel()))(y, P)
    assert list(by_prediction.values) == pytest.approx([0.076, 0.1475, -0.2833333333], abs=5e-11)


def test_weighted_signed_balance_has_its_parts():
    result = cal.WSMCS(y, P)
    assert result.value == exactly(0.01777777777777778)
    assert dict(result.details) == exactly(
        {
            "weighted_over": 0.04333333333333334,
            "share_over": 0.6666666666666666,
            "mean_over": 0.06533333333333334,
            "count_over": 2,
            "weighted_under": -0.03333333333333334,
            "share_under": 0.3333333333333333,
            "mean_under": -0.1,
            "count_under": 1,
        }
    )


def test_errors_by_label():
    five = EW(5)
    parts = replace(cal.CWECE, binning=five)(y, P)
    assert list(parts.values) == exactly([0.25200000000000006, 0.3333333333333333, 0.1])
    assert replace(cal.MSECE, binning=five)(y, P).value == exactly(0.22844444444444445)
    assert replace(cal.WSECE, binning=five)(y, P).value == exactly(0.22166666666666668)
    assert replace(cal.CECE, binning=five)(y, P).value == exactly(0.2693800259403373)
    assert cal.WSECE(y, P).value == exactly(0.33)


def test_scores():
    assert cal.ACCURACY(y, P).value == exactly(8 / 12)
    assert cal.BRIER(y, P).value == exactly(0.3528833333333334)
    assert cal.LOG_LOSS(y, P).value == exactly(0.5937429312807964)


def test_scores_of_soft_labels():
    soft = cal.Predictions.from_probs([[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5], [0.8, 0.2]])
    assert cal.LOG_LOSS(soft).value == exactly((np.log(2) - np.log(0.8)) / 2)
    assert cal.BRIER(soft).value == exactly((2 * 0.25**2 + 2 * 0.2**2) / 2)
    event = cal.Predictions.from_probs([0.25, 1.0], [0.5, 0.8])
    assert cal.LOG_LOSS(event).value == exactly((np.log(2) - np.log(0.8)) / 2)
    assert cal.BRIER(event).value == exactly((0.25**2 + 0.2**2) / 2)


def test_one_impossible_truth_makes_the_log_loss_infinite():
    assert cal.LOG_LOSS([0, 1], [[1.0, 0.0], [1.0, 0.0]]).value == np.inf


def test_a_tree_sends_a_value_at_the_mean_to_the_right():
    bins = cal.BinnedError(binning=cal.KDTree(0.9))([0, 0, 1], [0.25, 0.5, 0.75]).bins
    assert bins.counts.tolist() == [[1, 2]]


def test_hand_worked_thresholded_error():
    p, labels = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]], [0, 1, 0, 1]
    tace = replace(cal.TACE, lens=cal.Above(cal.Classwise(), 0.15), binning=EM(2))
    assert tace(labels, p).value == pytest.approx(0.2166666667, abs=5e-11)
    assert replace(tace, aggregate=cal.uniform)(labels, p).value == pytest.approx(0.225, abs=5e-11)
    flat = replace(tace, lens=cal.Above(cal.Flat(), 0.15))
    assert flat(labels, p).value == pytest.approx(0.1285714286, abs=5e-11)
    assert replace(flat, aggregate=cal.uniform)(labels, p).value == pytest.approx(0.1291666667, abs=5e-11)


def test_hand_worked_debiased_error():
    debiased = replace(cal.ECE_DEBIASED, binning=EM(1))([1, 0] * 5, [0.9] * 10)
    assert debiased.details["signed_square"] == pytest.approx(0.1322222222, abs=5e-11)
    assert debiased.value == pytest.approx(0.3636237372, abs=5e-11)


def test_a_class_that_is_always_right_on_average_is_neither_over_nor_under_confident():
    details = cal.WSMCS([0, 0], [[0.66, 0.2, 0.14], [0.33, 0.34, 0.33]]).details  # .66 + .34 is not 1 in units
    assert (details["count_over"], details["count_under"]) == (0, 0)


def test_msece_makes_the_choices_of_the_class_wise_error_and_prints_its_own_name():
    assert cal.MSECE == cal.CWECE
    result = cal.MSECE(y, P)
    assert str(result).startswith("MSECE ")
    assert cal.Result.from_json(result.to_json()).name == "MSECE"


def test_likert_categories_partition_the_samples():
    scale = cal.likert([0, 0.33, 0.66, 1])
    sizes = [metric(y, P).bins.counts.sum() for metric in scale.values()]
    assert sizes == [0, 6, 6]
    assert np.isnan(scale["[0, 0.33)"](y, P).value)


def test_likert_takes_pairs():
    scale = cal.likert([(0.9, 1.0), (0.0, 0.8)])
    assert list(scale) == ["[0.9, 1]", "[0, 0.8)"]
    scale = cal.likert([(0.9, 1.0), (0.0, 0.8)], closed="both")
    assert list(scale) == ["[0.9, 1]", "[0, 0.8]"]
    p, happened = [0.8, 0.8, 0.85, 0.9, 1.0], [1, 1, 0, 0, 1]
    assert [metric(happened, p).bins.counts.sum() for metric in scale.values()] == [2, 2]  # 0.85 is in no category
    assert scale["[0, 0.8]"](happened, p).value == pytest.approx(0.2)
    counts = cal.diagnostics.interval_counts
    pairs, event = [(0.0, 0.8), (0.9, 1.0)], cal.Predictions.from_probs(happened, p)
    assert [counts(event, pairs, closed=side) for side in ("left", "both", "neither")] == [[0, 2], [2, 2], [0, 0]]


def test_recipes_by_name_are_the_recipes():
    for name, recipe in cal.RECIPES.items():
        assert getattr(cal, name) is recipe
        assert recipe.name == name
