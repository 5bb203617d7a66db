"""The oracles against numbers worked by hand and reference values for twelve two-decimal forecasts."""

import math
from fractions import Fraction

import pytest

from . import bins, distances, errors, lenses, local

PROBABILITIES = [
    [0.80, 0.15, 0.05],
    [0.10, 0.70, 0.20],
    [0.25, 0.25, 0.50],
    [0.60, 0.30, 0.10],
    [0.33, 0.34, 0.33],
    [0.05, 0.90, 0.05],
    [0.45, 0.10, 0.45],
    [0.02, 0.03, 0.95],
    [0.55, 0.40, 0.05],
    [0.20, 0.65, 0.15],
    [0.12, 0.18, 0.70],
    [0.98, 0.01, 0.01],
]
LABELS = [0, 1, 2, 1, 0, 1, 2, 2, 0, 0, 2, 0]
LOGITS = [[round(1.7 * math.log(value), 4) for value in row] for row in PROBABILITIES]
CONFIDENCE = [0.80, 0.70, 0.50, 0.60, 0.34, 0.90, 0.45, 0.95, 0.55, 0.65, 0.70, 0.98]
HITS = [1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1]


def exactly(value):
    return pytest.approx(value, rel=0, abs=1e-12)


def to_ten_digits(value):
    return pytest.approx(value, rel=0, abs=1e-9)


def equal_width(scores, n_bins, closed="right"):
    return bins.from_indices(bins.equal_width(scores, n_bins, closed), n_bins)


# --- lenses ---------------------------------------------------------------------------------------


def test_the_top_label_of_a_tied_row_is_its_lowest_class():
    assert lenses.top_label(PROBABILITIES, LABELS) == (CONFIDENCE, HITS)


def test_accuracy_and_mean_confidence_of_the_twelve():
    assert errors.accuracy(PROBABILITIES, LABELS) == exactly(8 / 12)
    assert errors.mean_ranked_output(PROBABILITIES, 1) == to_ten_digits(0.6766666667)


def test_top_k_has_one_coordinate_for_the_rest():
    outputs, targets = lenses.top_k([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25]], [0, 1], 2)
    assert outputs == [exactly([0.6, 0.3, 0.1]), [0.5, 0.25, 0.25]]
    assert targets == [[0, 0, 1], [0, 1, 0]]


def test_top_k_of_all_classes_ends_in_a_zero_column():
    outputs, targets = lenses.top_k(PROBABILITIES, LABELS, 3)
    assert [row[-1] for row in outputs] == exactly([0.0] * 12)
    assert [row[-1] for row in targets] == [0.0] * 12


def test_in_top_k_adds_outputs_and_label_mass():
    assert lenses.in_top_k([[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], [1, 0], 2) == ([0.75, 0.875], [1, 0])


def test_ranked_asks_about_the_kth_likeliest_class_alone():
    assert lenses.ranked([[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], [1, 0], 2) == ([0.25, 0.25], [1, 0])
    assert lenses.ranked([[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], [1, 0], 3) == ([0.25, 0.125], [0, 1])


def test_groups_of_single_classes_are_the_full_lens():
    assert lenses.groups(PROBABILITIES, LABELS, [[0], [1], [2]]) == lenses.full(PROBABILITIES, LABELS)


def test_groups_must_cover_every_class_once():
    with pytest.raises(AssertionError):
        lenses.groups(PROBABILITIES, LABELS, [[0], [1]])


def test_class_wise_asks_one_class_after_another():
    views = lenses.class_wise(PROBABILITIES, LABELS)
    assert views == [lenses.one_class(PROBABILITIES, LABELS, c) for c in (0, 1, 2)]
    assert views[1][0][:3] == [0.15, 0.70, 0.25]
    assert views[1][1] == [0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]


def test_a_hit_under_soft_labels_is_the_mass_on_the_predicted_class():
    assert lenses.top_label([[0.2, 0.8]], [[0.4, 0.6]]) == ([0.8], [0.6])


def test_above_is_strict():
    assert lenses.above([0.1, 0.2, 0.3], [1, 0, 1], 0.2) == ([0.3], [1])


def test_intervals_partition_the_unit_interval():
    scores = [0.0, 0.33, 0.66, 1.0]
    edges = [(0.0, 0.33), (0.33, 0.66), (0.66, 1.0)]
    left = [lenses.between(scores, scores, low, high)[0] for low, high in edges]
    right = [lenses.between(scores, scores, low, high, "right")[0] for low, high in edges]
    assert left == [[0.0], [0.33], [0.66, 1.0]]
    assert right == [[0.0, 0.33], [0.66], [1.0]]


# --- binnings -------------------------------------------------------------------------------------


def test_forecasts_of_zero_and_one_fall_in_the_outermost_bins():
    assert bins.equal_width([0.0, 1.0], 10, "right") == [0, 9]
    assert bins.equal_width([0.0, 1.0], 10, "left") == [0, 9]


def test_every_decimal_edge_closes_the_bin_below_or_opens_the_one_above():
    scores = [k / 10 for k in range(1, 10)]
    assert bins.equal_width(scores, 10, "right") == list(range(9))
    assert bins.equal_width(scores, 10, "left") == list(range(1, 10))


@pytest.mark.parametrize("k", [29, 57, 58])
def test_edges_of_a_hundred_bins_that_a_product_misplaces(k):
    assert math.floor(k / 100 * 100) == k - 1
    assert bins.equal_width([k / 100], 100, "left") == [k]


def test_equal_mass_bins_by_rank():
    assert bins.equal_mass_stable(CONFIDENCE, 5) == [3, 2, 0, 1, 0, 3, 0, 4, 1, 2, 2, 4]


def test_equal_mass_bins_by_value():
    assert bins.quantile(CONFIDENCE, 5) == [3, 3, 1, 1, 0, 3, 0, 4, 1, 2, 3, 4]


def test_tied_scores_lie_in_each_bin_with_the_same_share():
    third = Fraction(1, 3)
    assert bins.equal_mass([0.5, 0.5, 0.5, 0.9], 4) == [
        [(0, third), (1, third), (2, third)],
        [(0, third), (1, third), (2, third)],
        [(0, third), (1, third), (2, third)],
        [(3, Fraction(1))],
    ]


def test_more_equal_mass_bins_than_samples_leaves_empty_ones():
    assert [len(members) for members in bins.equal_mass([0.2, 0.4], 4)] == [1, 0, 1, 0]


@pytest.mark.parametrize("unit", [None, Fraction(1, 2**52)])
def test_leaves_of_the_full_lens(unit):
    expected = [[1, 4, 5, 9], [2, 7, 10], [0, 3, 6, 8, 11]]
    assert bins.kd_tree(PROBABILITIES, 0.5, unit=unit) == expected


def test_leaves_of_six_scores():
    rows, _ = lenses.event_pairs([0.1, 0.2, 0.3, 0.4, 0.9, 0.95], [0, 1, 0, 1, 1, 1])
    assert bins.kd_tree(rows, 0.5) == [[0, 1], [2, 3], [4, 5]]


def test_points_that_coincide_stay_in_one_leaf():
    assert bins.kd_tree([[0.5, 0.5]] * 5, 0.1) == [[0, 1, 2, 3, 4]]


def test_a_grid_leaves_out_the_last_axis_and_empty_cells():
    rows = [[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.2, 0.8]]
    assert bins.grid(rows, 2) == [[1, 3], [0, 2]]


def test_a_sweep_stops_where_the_labels_fall():
    scores, labels = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0, 0, 1, 0, 1, 1]
    n_bins, chosen = bins.sweep_equal_mass(scores, labels)
    assert n_bins == 3
    assert errors.binned_error(scores, labels, chosen) == to_ten_digits(0.25)
    assert errors.binned_error(scores, labels, chosen, p=2) == to_ten_digits(0.2872281323)


@pytest.mark.parametrize(("hits", "value"), [([0, 1, 1, 0], 0.1), ([0, 0, 1, 1], 0.5), ([1, 1, 0, 0], 0.1)])
def test_a_stable_sweep_of_ties_depends_on_the_row_order_and_an_averaged_one_does_not(hits, value):
    scores = [0.6] * 4
    stable = bins.sweep_equal_mass(scores, hits, ties="stable")[1]
    averaged = bins.sweep_equal_mass(scores, hits)[1]
    assert errors.binned_error(scores, hits, stable) == exactly(value)
    assert errors.binned_error(scores, hits, averaged) == exactly(0.1)


def test_a_sweep_over_sorted_labels_reaches_one_bin_a_sample():
    assert bins.sweep_equal_mass([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])[0] == 4


@pytest.mark.parametrize(
    ("closed", "n_bins", "l1", "l2"),
    [
        ("left", 4, 0.12166666666666663, 0.17351152699460634),
        ("right", 6, 0.17166666666666663, 0.19670903498427425),
    ],
)
def test_sweeps_over_equal_widths(closed, n_bins, l1, l2):
    assert bins.sweep_equal_width(CONFIDENCE, HITS, closed)[0] == n_bins
    assert errors.ece_sweep_equal_width(PROBABILITIES, LABELS, closed) == exactly(l1)
    assert errors.ece_sweep_equal_width(PROBABILITIES, LABELS, closed, p=2) == exactly(l2)


def test_the_sweep_over_equal_masses():
    assert bins.sweep_equal_mass(CONFIDENCE, HITS)[0] == 5
    assert errors.ece_sweep(PROBABILITIES, LABELS) == exactly(0.07166666666666663)
    assert errors.ece_sweep(PROBABILITIES, LABELS, p=2) == exactly(0.08542378019159663)


# --- the top label --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_bins", "closed", "l1", "l2", "largest", "static"),
    [
        (4, "left", 0.12166666666666663, 0.17351152699460634, 0.395, 0.10555555555555556),
        (4, "right", 0.0716666666666667, 0.07651706418251497, 0.09666666666666668, 0.10388888888888888),
        (5, "left", 0.155, 0.16802364251629723, 0.34, 0.16944444444444443),
        (5, "right", 0.06333333333333332, 0.10541913699345316, 0.34, 0.14722222222222223),
        (10, "left", 0.32999999999999996, 0.3851659094179777, 0.625, 0.225),
        (10, "right", 0.07999999999999999, 0.12294420595448073, 0.34, 0.19555555555555557),
        (15, "left", 0.32999999999999996, 0.38560558433024106, 0.625, 0.2438888888888889),
        (15, "right", 0.255, 0.32071534627038556, 0.65, 0.23277777777777775),
    ],
)
def test_errors_over_equal_widths(n_bins, closed, l1, l2, largest, static):
    assert errors.ece(PROBABILITIES, LABELS, n_bins, closed) == exactly(l1)
    assert errors.rmsce(PROBABILITIES, LABELS, n_bins, closed) == exactly(l2)
    assert errors.mce(PROBABILITIES, LABELS, n_bins, closed) == exactly(largest)
    assert errors.sce(PROBABILITIES, LABELS, n_bins, closed) == exactly(static)


def test_edges_made_by_multiplication_give_another_number():
    edges = [k * 0.1 for k in range(11)]
    misplaced = bins.from_indices(bins.by_edges(CONFIDENCE, edges, "left"), 10)
    assert errors.binned_error(CONFIDENCE, HITS, misplaced) == to_ten_digits(0.13)


@pytest.mark.parametrize(
    ("n_bins", "l1", "l2", "debiased"),
    [
        (3, 0.09833333333333333, 0.11039701082909807, -0.04336805555555555),
        (4, 0.17166666666666663, 0.19670903498427425, -0.016861111111111122),
        (5, 0.07166666666666663, 0.08542378019159663, -0.089925),
    ],
)
def test_errors_over_equal_masses(n_bins, l1, l2, debiased):
    assert errors.adaptive_ece(PROBABILITIES, LABELS, n_bins) == exactly(l1)
    assert errors.adaptive_ece(PROBABILITIES, LABELS, n_bins, p=2) == exactly(l2)
    chosen = bins.equal_mass(CONFIDENCE, n_bins)
    assert errors.debiased_squared_error(CONFIDENCE, HITS, chosen) == exactly(debiased)
    assert errors.ece_debiased(PROBABILITIES, LABELS, n_bins) == 0


def test_five_hits_among_ten_scores_of_nine_tenths():
    scores, hits = [0.9] * 10, [1] * 5 + [0] * 5
    chosen = bins.equal_mass(scores, 1)
    assert errors.debiased_squared_error(scores, hits, chosen) == to_ten_digits(0.1322222222)
    assert errors.debiased_error(scores, hits, chosen) == to_ten_digits(0.3636237372)
    assert errors.binned_error(scores, hits, chosen, p=2) == exactly(0.4)


def test_a_bin_of_one_sample_adds_nothing_to_the_debiased_square():
    assert errors.debiased_squared_error([0.2, 0.9], [1, 0], bins.equal_mass([0.2, 0.9], 2)) == 0


@pytest.mark.parametrize(
    ("closed", "l1", "l2"),
    [("left", 0.13277777777777777, 0.1869343319041327), ("right", 0.08, 0.09972183534434394)],
)
def test_label_binned_errors(closed, l1, l2):
    assert errors.ece_label_binned(PROBABILITIES, LABELS, 4, closed) == exactly(l1)
    assert errors.ece_label_binned(PROBABILITIES, LABELS, 4, closed, p=2) == exactly(l2)


def test_the_bin_as_neighbourhood_gives_the_label_binned_error():
    indices = bins.equal_width(CONFIDENCE, 4, "left")
    neighbours = [[j for j in range(12) if indices[j] == indices[i]] for i in range(12)]
    assert errors.neighbour_error(CONFIDENCE, HITS, neighbours) == exactly(0.13277777777777777)
    assert errors.neighbour_error(CONFIDENCE, HITS, neighbours, p=2) == exactly(0.1869343319041327)


def test_whole_weights_are_repetition():
    weights = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    rows, labels = bins.repeat(PROBABILITIES, weights), bins.repeat(LABELS, weights)
    assert errors.ece(PROBABILITIES, LABELS, weights=weights) == exactly(errors.ece(rows, labels))
    assert errors.sce(PROBABILITIES, LABELS, weights=weights) == exactly(errors.sce(rows, labels))
    assert errors.ece_label_binned(PROBABILITIES, LABELS, weights=weights) == exactly(
        errors.ece_label_binned(rows, labels)
    )


def test_the_first_of_the_ranked_and_of_the_top_k_is_the_top_label():
    expected = errors.ece(PROBABILITIES, LABELS)
    assert errors.in_top_k_ece(PROBABILITIES, LABELS, 1) == expected
    assert errors.ranked_ece(PROBABILITIES, LABELS, 1) == expected


def test_top_two_and_second_by_hand():
    rows, labels = [[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], [1, 0]
    assert errors.in_top_k_ece(rows, labels, 2, n_bins=1) == exactly(0.8125 - 0.5)
    assert errors.in_top_k_ece(rows, labels, 2, n_bins=4) == exactly((0.25 + 0.875) / 2)
    assert errors.ranked_ece(rows, labels, 2, n_bins=4) == exactly(0.25)
    assert errors.top_k_accuracy(rows, labels, 2) == 0.5


def test_nothing_selected_is_nan():
    assert math.isnan(errors.ece([], []))
    assert math.isnan(errors.mce([], []))
    assert math.isnan(errors.adaptive_ece([], []))
    assert math.isnan(errors.ece_label_binned([], []))
    assert math.isnan(errors.ece_debiased([], []))
    assert math.isnan(errors.wsmcs([], [])["value"])


# --- every class ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_bins", "count", "uniform"),
    [
        (3, 0.12444444444444443, 0.12444444444444443),
        (4, 0.10944444444444444, 0.10944444444444444),
        (5, 0.1561111111111111, 0.17355555555555555),
    ],
)
def test_adaptive_errors(n_bins, count, uniform):
    assert errors.ace(PROBABILITIES, LABELS, n_bins) == exactly(count)
    assert errors.ace(PROBABILITIES, LABELS, n_bins, distances.uniform) == exactly(uniform)


@pytest.mark.parametrize(
    ("n_bins", "threshold", "count", "flat_count", "uniform", "flat_uniform"),
    [
        (3, 0.01, 0.09896464646464646, 0.0576470588235294, 0.10351851851851852, 0.05694444444444443),
        (3, 0.1, 0.18608465608465607, 0.0452, 0.19000000000000003, 0.046157407407407404),
        (4, 0.01, 0.16734848484848483, 0.07882352941176471, 0.1676388888888889, 0.07715277777777778),
        (4, 0.1, 0.1939153439153439, 0.058799999999999984, 0.18930555555555553, 0.059761904761904745),
        (5, 0.01, 0.18169191919191918, 0.08588235294117648, 0.19633333333333333, 0.08804761904761907),
        (5, 0.1, 0.22830687830687832, 0.08440000000000002, 0.21233333333333335, 0.0844),
    ],
)
def test_thresholded_adaptive_errors(n_bins, threshold, count, flat_count, uniform, flat_uniform):
    data = (PROBABILITIES, LABELS, n_bins, threshold)
    assert errors.tace(*data) == exactly(count)
    assert errors.tace_flat(*data) == exactly(flat_count)
    assert errors.tace(*data, distances.uniform) == exactly(uniform)
    assert errors.tace_flat(*data, distances.uniform) == exactly(flat_uniform)


def test_adaptive_errors_with_cuts_at_values():
    assert errors.ace(PROBABILITIES, LABELS, 5, binned="value") == to_ten_digits(0.1744444444)
    assert errors.tace(PROBABILITIES, LABELS, 3, 0.1, binned="value") == to_ten_digits(0.1546560847)


def test_thresholded_adaptive_error_of_four_samples():
    rows, labels = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]], [0, 1, 0, 1]
    by_class = errors.class_errors(rows, labels, lambda scores: bins.equal_mass(scores, 2), threshold=0.15)
    assert by_class == [exactly((4, 0.2)), exactly((3, 0.7 / 3))]
    assert errors.tace(rows, labels, 2, 0.15) == to_ten_digits(0.2166666667)
    assert errors.tace(rows, labels, 2, 0.15, distances.uniform) == to_ten_digits(0.225)
    assert errors.tace_flat(rows, labels, 2, 0.15) == to_ten_digits(0.1285714286)
    assert errors.tace_flat(rows, labels, 2, 0.15, distances.uniform) == to_ten_digits(0.1291666667)


def test_a_class_with_nothing_kept_counts_zero():
    rows, labels = [[0.9, 0.1], [0.7, 0.3]], [0, 0]
    assert errors.tace(rows, labels, 1, 0.5) == exactly(0.2 / 2)


def test_uniform_weights_count_the_requested_bins_and_count_weights_do_not():
    scores, labels = [0.25, 0.75], [0, 0]
    chosen = equal_width(scores, 4)
    assert errors.event_error(scores, labels, chosen) == exactly(0.5)
    assert errors.event_error(scores, labels, chosen, aggregate=distances.uniform) == exactly(0.25)


def test_a_negative_threshold_keeps_everything():
    assert errors.tace(PROBABILITIES, LABELS, 5, -1.0) == errors.ace(PROBABILITIES, LABELS, 5)


@pytest.mark.parametrize(("query", "value"), [(0.25, 0.75), (0.4, 0.9995126706)])
def test_local_calibration_of_four_points(query, value):
    points, labels = [0.2, 0.2, 0.3, 0.6], [0, 1, 1, 1]
    assert local.local_calibration(points, labels, query, decay=0.5) == to_ten_digits(value)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (0.0, 0.06863251309256206),
        (0.2, 0.5613121444202123),
        (0.25, 0.27735012147636906),
        (0.5, 0.43725905531050785),
        (0.8, 0.9384543431862109),
        (1.0, 0.9807859486612331),
    ],
)
def test_local_calibration_of_the_first_class(query, value):
    points, labels = lenses.one_class(PROBABILITIES, LABELS, 0)
    assert local.local_calibration(points, labels, query) == exactly(value)


# --- the generalised error ------------------------------------------------------------------------


def test_the_completed_top_label_gives_the_expected_calibration_error():
    outputs, targets = lenses.top_k(PROBABILITIES, LABELS, 1)
    chosen = bins.whole(bins.grid(outputs, 15))
    assert errors.generalised_error(outputs, targets, chosen) == exactly(0.255)
    assert errors.generalised_error(outputs, targets, chosen, aggregate=distances.maximum) == exactly(0.65)


@pytest.mark.parametrize(
    ("gamma", "threshold", "value"),
    [
        (0.5, "mean", 0.21249999999999997),
        (0.25, "mean", 0.2825),
        (0.25, "median", 0.32166666666666666),
    ],
)
def test_the_full_lens_over_a_tree(gamma, threshold, value):
    outputs, targets = lenses.full(PROBABILITIES, LABELS)
    chosen = bins.whole(bins.kd_tree(outputs, gamma, threshold))
    assert errors.generalised_error(outputs, targets, chosen) == exactly(value)
    assert errors.generalised_error(outputs, targets, chosen, distances.lp(1)) == exactly(2 * value)


def test_the_top_two_over_a_tree():
    outputs, targets = lenses.top_k(PROBABILITIES, LABELS, 2)
    chosen = bins.whole(bins.kd_tree(outputs, 0.5))
    assert errors.generalised_error(outputs, targets, chosen) == exactly(0.2533333333333333)


def test_the_mahalanobis_distance_over_a_tree():
    outputs, targets = lenses.full(PROBABILITIES, LABELS)
    chosen = bins.whole(bins.kd_tree(outputs, 0.5))
    diagonal = distances.mahalanobis([[1, 0, 0], [0, 2, 0], [0, 0, 0.5]])
    assert errors.generalised_error(outputs, targets, chosen, diagonal) == exactly(0.2554724602317249)
    by_weights = distances.weighted([1, 2, 0.5])
    assert errors.generalised_error(outputs, targets, chosen, by_weights) == exactly(0.2554724602317249)


@pytest.mark.parametrize(("closed", "value"), [("left", 0.07583333333333328), ("right", 0.0708333333333333)])
def test_two_groups_over_a_grid(closed, value):
    outputs, targets = lenses.groups(PROBABILITIES, LABELS, [[0], [1, 2]])
    chosen = bins.whole(bins.grid(outputs, 4, closed))
    assert errors.generalised_error(outputs, targets, chosen) == exactly(value)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_one_class_over_a_grid(closed):
    outputs, targets = lenses.event_pairs(*lenses.one_class(PROBABILITIES, LABELS, 1))
    chosen = bins.whole(bins.grid(outputs, 4, closed))
    assert errors.generalised_error(outputs, targets, chosen) == exactly(0.10083333333333333)


def test_six_scores_over_a_tree():
    outputs, targets = lenses.event_pairs([0.1, 0.2, 0.3, 0.4, 0.9, 0.95], [0, 1, 0, 1, 1, 1])
    chosen = bins.whole(bins.kd_tree(outputs, 0.5))
    assert errors.generalised_error(outputs, targets, chosen) == to_ten_digits(0.1916666667)


def test_an_interval_forgives_labels_inside_it():
    scores, labels = [0.1, 0.2, 0.25, 0.3], [1, 0, 1, 1]
    one_bin = bins.whole([[0, 1, 2, 3]])
    low = distances.inter_interval(0, 0.33)
    assert errors.event_error(scores, labels, one_bin, low) == exactly(0.42)
    assert errors.event_error(scores, labels, one_bin) == exactly(0.5375)
    assert errors.event_error(scores, labels, one_bin, distances.interval_tvd(0, 0.33)) == exactly(0.5375)
    assert errors.event_error(scores, labels, one_bin, distances.interval_tvd(0.7, 1)) == 0
    assert errors.inter_interval_error(scores, labels, 0, 0.33, n_bins=1) == exactly(0.42)


# --- subsets of rows by class ---------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [1, 4, 10, 15])
def test_the_miscalibration_score_does_not_depend_on_the_bins(n_bins):
    assert errors.mcs(PROBABILITIES, LABELS) == exactly(0.01)
    assert errors.signed_error(CONFIDENCE, HITS, equal_width(CONFIDENCE, n_bins)) == exactly(0.01)


def test_scores_by_true_class():
    expected = [(5, 0.06400000000000003), (3, 0.06666666666666665), (4, -0.10000000000000002)]
    assert errors.subset_mcs(PROBABILITIES, LABELS) == [exactly(pair) for pair in expected]


def test_scores_by_predicted_class():
    values = [value for _, value in errors.subset_mcs(PROBABILITIES, LABELS, by="prediction")]
    assert values == to_ten_digits([0.076, 0.1475, -0.2833333333])


def test_calibration_errors_by_true_class():
    values = [value for _, value in errors.subset_eces(PROBABILITIES, LABELS, 5)]
    assert values == exactly([0.25200000000000006, 0.3333333333333333, 0.10000000000000003])
    assert errors.wsece(PROBABILITIES, LABELS, 5) == exactly(0.22166666666666668)
    assert errors.wsece(PROBABILITIES, LABELS) == to_ten_digits(0.33)
    assert errors.msece(PROBABILITIES, LABELS, 5) == exactly(0.22844444444444445)
    assert errors.cece(PROBABILITIES, LABELS, 5) == exactly(0.2693800259403373)


def test_the_weighted_subset_score_and_its_parts():
    assert errors.wsmcs(PROBABILITIES, LABELS) == exactly(
        {
            "value": 0.01777777777777778,
            "over": 0.04333333333333334,
            "under": -0.03333333333333334,
            "over_share": 0.6666666666666666,
            "under_share": 0.3333333333333333,
            "over_mean": 0.06533333333333334,
            "under_mean": -0.10000000000000002,
        }
    )


def test_absent_classes_are_no_classes_and_zero_classes_are_on_neither_side():
    balance = distances.signed_balance([(2, 0.5), (2, 0.0), (0, math.nan)])
    assert (balance["over_share"], balance["under_share"]) == (0.5, 0.0)
    assert balance["value"] == exactly(0.5 * 0.25)
    assert distances.mean_of([(2, 0.5), (0, math.nan)]) == 0.5
    assert distances.mean_of_all([(2, 0.5), (0, math.nan)]) == 0.25
    assert distances.root_mean_of([(2, 0.5), (2, -0.18), (0, math.nan)]) == exactly(0.4)
    assert distances.root_mean_of([(2, 0.5), (2, -0.7)]) == 0
    assert distances.contraharmonic([(2, 0.0), (0, math.nan)]) == 0


# --- scores and failure detection -----------------------------------------------------------------


def test_brier_sums_over_classes():
    assert errors.brier([[0.8, 0.2], [0.4, 0.6]], [0, 0]) == exactly((0.08 + 0.72) / 2)
    assert errors.brier_event([0.8, 0.4], [1, 1]) == exactly((0.04 + 0.36) / 2)


def test_log_loss_is_natural_and_infinite_where_the_truth_was_ruled_out():
    assert errors.log_loss([[0.5, 0.5]], [1]) == exactly(math.log(2))
    assert errors.log_loss([[1.0, 0.0]], [0]) == 0
    assert errors.log_loss([[1.0, 0.0]], [1]) == math.inf
    assert errors.log_loss_event([0.25], [0]) == exactly(-math.log(0.75))


def test_the_log_loss_of_the_scaled_logits():
    assert errors.log_loss(lenses.softmax(LOGITS), LABELS) == exactly(0.5705916977292435)
    scaled = lenses.softmax(LOGITS, 1.1489377003113457)
    assert errors.log_loss(scaled, LABELS) == to_ten_digits(0.5666264042787762)


def test_the_log_loss_of_the_scaled_and_shifted_logits():
    shift = [0.24130352987035122, -0.5479230844879919, 0.3066195546176406]
    shifted = [[z / 1.0928492215044376 + b for z, b in zip(row, shift, strict=True)] for row in LOGITS]
    assert errors.log_loss(lenses.softmax(shifted), LABELS) == to_ten_digits(0.5341375827788032)


def test_the_calibration_error_of_the_scaled_logits():
    assert errors.ece(lenses.softmax(LOGITS, 1.9000000000000001), LABELS) == to_ten_digits(0.1608251285371676)
    assert errors.ece(lenses.softmax(LOGITS, 1.1489377003), LABELS, 5) == to_ten_digits(0.1631392951)


def test_a_temperature_for_every_class():
    temperature, strength = 1.1489377003113457, -0.306
    scores = [value for _, value in errors.subset_mcs(lenses.softmax(LOGITS, temperature), LABELS)]
    largest = max(abs(score) for score in scores)
    normalised = [score / largest for score in scores]
    temperatures = [temperature * (1 + strength * score) for score in normalised]
    scaled = lenses.vector_softmax(LOGITS, temperatures)
    assert normalised == to_ten_digits([0.7606380685540525, 1.0, -0.18770765560227598])
    assert temperatures == to_ten_digits([0.8815164198156961, 0.7973627640160739, 1.2149310073718507])
    assert errors.ece(scaled, LABELS, 5) == to_ten_digits(0.08259793655675284)
    assert errors.accuracy(scaled, LABELS) == 0.75


def test_accuracy_after_referring_the_most_uncertain():
    values = errors.accuracy_after_referral(PROBABILITIES, LABELS, [0, 0.25, 0.5, 0.75, 1])
    assert values[:4] == exactly([0.6666666666666666, 0.7777777777777778, 1.0, 1.0])
    assert math.isnan(values[4])


def test_risk_and_coverage_of_three_samples():
    rows, labels = [[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]], [0, 1, 0]
    expected = [(1 / 3, 0), (2 / 3, 0), (1, 1 / 3)]
    assert errors.risk_coverage(rows, labels) == [exactly(pair) for pair in expected]
    assert errors.aurc(rows, labels) == exactly((0 + 0 + 1 / 3) / 3)


def test_entropy_is_in_nats():
    assert errors.entropy([0.25] * 4) == exactly(math.log(4))
    assert errors.entropy([1.0, 0.0]) == 0
    assert errors.mean_entropy([[0.5, 0.5], [1.0, 0.0]]) == exactly(math.log(2) / 2)
