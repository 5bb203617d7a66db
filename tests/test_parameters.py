"""Parameters: every piece refuses, when it is made or first used, what it cannot mean."""

import contextlib
import dataclasses
import functools
import math
import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant import CalibrationInputError, Predictions

Y = [0, 2, 1, 2]
M = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
CLASSES = Predictions.from_probs(Y, M, classes=["cat", "dog", "owl"], region=list("nnss"), age=[30, 40, 30, 50])
EVENT = Predictions.from_probs([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.4])
CONFIDENCE = Predictions.from_confidence([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.4])


def refusal(match, call, *arguments, **keywords):
    """The error that the call raises; its message is one line of readable length."""
    with pytest.raises(CalibrationInputError, match=match) as caught:
        call(*arguments, **keywords)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    return caught.value


@contextlib.contextmanager
def memory_below(limit):
    """What is done inside allocates at no time more than so many bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


# ---- binnings --------------------------------------------------------------------------------------------------------

COUNTED = [cal.EqualWidth, cal.EqualMass, cal.Quantiles, cal.Grid]
NO_COUNT = [0, -1, 2.5, 15.0, True, np.True_, "15", None, math.nan, math.inf, [15], 10**9, 1_000_001, np.int64(0)]


@pytest.mark.parametrize("binning", COUNTED)
@pytest.mark.parametrize("n_bins", NO_COUNT, ids=repr)
def test_a_number_of_bins_is_a_whole_number_up_to_a_million(binning, n_bins):
    error = refusal(r"n_bins: must be a whole number in 1\.\.1,000,000, got ", binning, n_bins)
    assert (error.parameter, error.got) == ("n_bins", repr(n_bins))


@pytest.mark.parametrize("binning", COUNTED)
def test_a_number_of_bins_may_be_a_whole_number_of_numpy(binning):
    lens = cal.Full() if binning is cal.Grid else cal.TopLabel()
    plain, made = (cal.BinnedError(lens=lens, binning=binning(n))(CLASSES) for n in (3, np.int64(3)))
    assert made.value == plain.value
    assert cal.from_json(made.metric.to_json()) == plain.metric


def test_a_replaced_or_rebuilt_binning_is_checked_again():
    refusal("n_bins: must be a whole number", dataclasses.replace, cal.EqualWidth(), n_bins=0)
    refusal("n_bins: must be a whole number", cal.from_json, cal.ECE.to_json().replace('"n_bins": 15', '"n_bins": 0'))


@pytest.mark.parametrize("binning", [cal.EqualWidth(100), cal.EqualMass(100), cal.Quantiles(100)], ids=str)
def test_more_bins_than_samples_are_allowed_and_noted(binning):
    result = cal.BinnedError(binning=binning)(EVENT)
    assert result.value == pytest.approx((0.1 + 0.2 + 0.3 + 0.4) / 4, abs=1e-15)
    assert "more bins than samples" in result.notes
    assert cal.BinnedError(binning=dataclasses.replace(binning, n_bins=4))(EVENT).notes == ()


def test_the_largest_number_of_bins_works():
    assert cal.BinnedError(binning=cal.EqualWidth(1_000_000))(EVENT).value == pytest.approx(0.25, abs=1e-15)


@pytest.mark.parametrize("binning", [cal.EqualWidth, cal.Grid, functools.partial(cal.Edges, [0, 0.5, 1])])
@pytest.mark.parametrize("closed", ["both", "neither", "Left", "", None, True, ["right"]], ids=repr)
def test_bins_are_closed_on_the_left_or_on_the_right(binning, closed):
    error = refusal('closed: must be "left" or "right", got ', binning, closed=closed)
    assert (error.parameter, error.got) == ("closed", repr(closed))


@pytest.mark.parametrize("closed", ["open", "Left", "", None, True], ids=repr)
@pytest.mark.parametrize(
    "piece", [functools.partial(cal.Between, cal.TopLabel()), cal.output_between, cal.confidence_between]
)
def test_an_interval_is_closed_on_the_left_on_the_right_on_both_or_on_neither(piece, closed):
    error = refusal('closed: must be "left", "right", "both" or "neither"', piece, 0.2, 0.8, closed=closed)
    assert error.got == repr(closed)


@pytest.mark.parametrize("of", [7, -1, "bird", "4"], ids=repr)
@pytest.mark.parametrize(
    "lens", [cal.Full(), cal.TopK(2), cal.Groups({"a": [0], "b": [1, 2]}), cal.TopLabel()], ids=str
)
def test_a_coordinate_that_a_lens_does_not_have_is_refused(lens, of):
    refusal("needs of= one of the", cal.Between(lens, 0.1, 0.9, of=of), CLASSES)
    refusal("must be a class index or a name", cal.Between, lens, 0.1, 0.9, of=0.5)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0, 0.7, 0.3, 1], "must increase"),
        ([0, 0.5, 0.5, 1], "must increase"),
        ([0, math.nan, 1], "must increase"),
        ([1, 0.5, 0], "must start at 0 and end at 1"),
        ([0.1, 0.5, 1], "must start at 0 and end at 1"),
        ([0, 0.5, 0.9], "must start at 0 and end at 1"),
        ([-1, 0.5, 1], "must start at 0 and end at 1"),
        ([0, 0.5, 2], "must start at 0 and end at 1"),
        ([0, math.inf], "must start at 0 and end at 1"),
        ([0, 0.5, 1.0000001], "must start at 0 and end at 1"),
        ([], "must start at 0 and end at 1"),
        ([0], "must start at 0 and end at 1"),
        (15, ""),
        (None, ""),
        ("0, 1", ""),
        ([0, "0.5", 1], ""),
        ([0, None, 1], ""),
        ([[0, 0.5, 1]], ""),
        ([0, 0.5 + 0j, 1], ""),
    ],
    ids=repr,
)
def test_edges_increase_from_0_to_1(edges, message):
    assert refusal(f"edges: {message}", cal.Edges, edges).parameter == "edges"


@pytest.mark.parametrize("edges", [(0, 0.5, 1), [0.0, 0.5, 1.0], np.array([0, 0.5, 1]), np.array([0, 0.5, 1], "f4")])
def test_edges_may_be_any_sequence_of_numbers(edges):
    assert cal.Edges(edges) == cal.Edges([0, 0.5, 1])


@pytest.mark.parametrize("gamma", [0, -0.1, 1.0000001, 2, True, "0.1", None, math.nan, math.inf, [0.1]], ids=repr)
def test_gamma_lies_above_0_and_up_to_1(gamma):
    error = refusal(r"gamma: must lie in \(0, 1\], got ", cal.KDTree, gamma)
    assert (error.parameter, error.got) == ("gamma", repr(gamma))


@pytest.mark.parametrize("gamma", [1, 1.0, np.float64(1), np.float32(1), np.int64(1)], ids=repr)
def test_gamma_may_be_any_kind_of_number(gamma):
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(gamma))
    assert metric(CLASSES).value == cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(1))(CLASSES).value


@pytest.mark.parametrize("threshold", ["mode", "Mean", "", None, 0.5], ids=repr)
def test_a_tree_splits_at_means_or_at_medians(threshold):
    error = refusal('threshold: must be "mean" or "median"', cal.KDTree, 0.1, threshold)
    assert error.got == repr(threshold)


@pytest.mark.parametrize(
    "inner",
    [cal.KDTree(), cal.Edges([0, 1]), cal.Grid(3), cal.Sweep(), cal.EqualMass, "equal_mass", 15, None],
    ids=repr,
)
def test_a_sweep_goes_over_bins_of_an_event_that_have_a_number(inner):
    refusal(r"Sweep: takes a binning of an event with a number of bins, got .*EqualMass\(\)", cal.Sweep, inner)


@pytest.mark.parametrize("binning", [cal.KDTree(), cal.Grid(3), cal.EqualWidth, 15, None], ids=repr)
def test_label_binned_errors_need_bins_of_one_coordinate(binning):
    error = refusal("LabelBinnedError: needs bins of one coordinate", cal.LabelBinnedError, binning=binning)
    assert "EqualWidth" in error.hint


# ---- distances and aggregates ----------------------------------------------------------------------------------------

ORDERED = [cal.power, cal.lp, cal.root, lambda p: cal.LabelBinnedError(p=p)]
ORDER_NAMES = ["power", "lp", "root", "LabelBinnedError"]


@pytest.mark.parametrize("piece", ORDERED, ids=ORDER_NAMES)
@pytest.mark.parametrize("order", [0, -1, 0.5, math.inf, math.nan, True, "2", None, 2 + 0j, [2]], ids=repr)
def test_the_order_of_a_norm_is_finite_and_at_least_1(piece, order):
    error = refusal("(needs|must be) a finite order .*of at least 1, got ", piece, order)
    assert error.got == repr(order)


@pytest.mark.parametrize("piece", ORDERED, ids=ORDER_NAMES)
@pytest.mark.parametrize("order", [np.int64(2), np.float32(2), np.float64(2)], ids=repr)
def test_the_order_of_a_norm_may_be_a_number_of_numpy(piece, order):
    assert piece(order) == piece(2)


@pytest.mark.parametrize(
    "weights",
    [[], [0, 0, 0], [-1, 1, 1], [math.nan, 1, 1], [math.inf, 1, 1], ["1", "2", "3"], "123", None, 3, [1, None, 1],
     [[1, 2, 3]], [1j, 1, 1]],
    ids=repr,
)  # fmt: skip
def test_weights_of_a_distance_are_finite_and_not_negative_and_not_all_zero(weights):
    refusal("weighted: needs finite weights of at least 0, some above", cal.weighted, weights)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 2, 3], [4, 5, 6]], r"needs a square finite matrix, got shape \(2, 3\)"),
        ([1, 2], r"needs a square finite matrix, got shape \(2,\)"),
        (1, r"needs a square finite matrix, got shape \(\)"),
        ([], "needs a square finite matrix"),
        (np.zeros((0, 0)), "needs a square finite matrix"),
        (np.ones((2, 2, 2)), "needs a square finite matrix"),
        ([[math.nan, 0], [0, 1]], "needs a square finite matrix"),
        ([[math.inf, 0], [0, 1]], "needs a square finite matrix"),
        ([[1, 2], [3]], "needs a square finite matrix"),
        ([["a", "b"], ["c", "d"]], "needs a square finite matrix"),
        ([[1j, 0], [0, 1]], "needs a square finite matrix"),
        (None, "needs a square finite matrix"),
        ([[1, 2], [0, 1]], "needs a symmetric matrix"),
        ([[-1, 0], [0, 1]], "needs a positive semi-definite matrix, got the eigenvalue -1"),
        ([[1, 2], [2, 1]], "needs a positive semi-definite matrix, got the eigenvalue -1"),
    ],
    ids=["wide", "vector", "number", "nothing", "empty", "cube", "nan", "infinity", "ragged", "text", "complex", "None",
         "asymmetric", "negative", "indefinite"],
)  # fmt: skip
def test_a_mahalanobis_matrix_is_square_symmetric_and_positive_semi_definite(matrix, message):
    refusal(f"mahalanobis: {message}", cal.mahalanobis, matrix)


@pytest.mark.parametrize("distance", [cal.weighted([1, 2]), cal.mahalanobis([[1, 0], [0, 1]])], ids=str)
def test_a_distance_made_for_two_coordinates_refuses_three(distance):
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(), distance=distance)
    error = refusal("is made for 2 coordinates, got full distribution with 3", metric, CLASSES)
    assert error.hint == "one entry per coordinate of the lens"


@pytest.mark.parametrize(
    "piece",
    [cal.inter_interval, cal.interval_tvd, cal.output_between, cal.confidence_between,
     functools.partial(cal.Between, cal.TopLabel())],
    ids=["inter_interval", "interval_tvd", "output_between", "confidence_between", "Between"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("low", "high"),
    [(0.5, 0.2), (-0.1, 0.5), (0.5, 1.1), (math.nan, 0.5), (0.2, math.nan), (0, math.inf), ("0", "1"), (None, 0.5),
     (0, [1])],
)  # fmt: skip
def test_an_interval_lies_in_order_between_0_and_1(piece, low, high):
    refusal("needs 0 <= low <= high <= 1, got ", piece, low, high)


@pytest.mark.parametrize("scale", [[], [0.5], [0, 0.5, 0.3, 1], [0, 2], [0, math.nan, 1], [(0, 0.5), (0.5,)],
                                   [(0, 0.5, 1)], [(0.5, 0.2)], "abc", 3, None, [0, "1"], [("a", "b")]],
                         ids=repr)  # fmt: skip
def test_a_likert_scale_is_edges_or_pairs_in_order_between_0_and_1(scale):
    refusal("needs at least two edges|needs 0 <= low <= high <= 1", cal.likert, scale)


def test_uniform_needs_a_known_number_of_bins():
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.Grid(3), aggregate=cal.uniform)
    refusal("uniform: needs a known number of bins, got a Grid", metric, CLASSES)


# ---- lenses ----------------------------------------------------------------------------------------------------------

RANKED = [cal.TopK, cal.InTopK, cal.Ranked]


@pytest.mark.parametrize("lens", RANKED)
@pytest.mark.parametrize("k", [0, -1, 2.5, 2.0, True, "2", None, math.nan], ids=repr)
def test_k_is_a_whole_number_of_at_least_1(lens, k):
    error = refusal("k: must be a whole number of at least 1, got ", lens, k)
    assert (error.parameter, error.got) == ("k", repr(k))


@pytest.mark.parametrize("lens", RANKED)
@pytest.mark.parametrize("k", [4, 10**9])
def test_k_is_at_most_the_number_of_classes(lens, k):
    error = refusal(f"{lens.__name__}: needs at least {k} classes, got 3", lens(k), CLASSES)
    assert (error.got, error.hint) == (3, "use a smaller k")
    assert len(lens(3)(CLASSES).outputs) == 4


def test_a_recipe_of_five_classes_refuses_three():
    refusal("TopK: needs at least 5 classes, got 3", cal.TOP5_ECE, CLASSES)


@pytest.mark.parametrize("t", [math.nan, "0.1", None, True, [0.1]], ids=repr)
def test_a_threshold_of_answers_is_a_number(t):
    assert refusal("^(Above|t): ", cal.Above, cal.Classwise(), t).got == repr(t)


def test_answers_of_several_coordinates_have_no_threshold():
    error = refusal("needs a lens with one coordinate per question", cal.Above(cal.Full(), 0.1), CLASSES)
    assert "a scalar lens" in error.hint


OF_CLASSES = {
    "Classwise": cal.Classwise(),
    "Flat": cal.Flat(),
    "TopK": cal.TopK(1),
    "InTopK": cal.InTopK(1),
    "Ranked": cal.Ranked(2),
    "OneClass": cal.OneClass(0),
    "Groups": cal.Groups({"a": [0], "b": [1]}),
    "ByLabel": cal.ByLabel(cal.TopLabel()),
    "ByPrediction": cal.ByPrediction(cal.TopLabel()),
    "label_in": cal.label_in(0),
    "predicted_in": cal.predicted_in(0),
    "output_between": cal.output_between(0, 0.5, of=0),
}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_questions_about_classes_asked_of_an_event_name_the_way_out(name):
    error = refusal("is a question about classes, got forecasts of one event", OF_CLASSES[name], EVENT)
    assert "np.column_stack([1 - p, p])" in error.hint


@pytest.mark.parametrize("name", OF_CLASSES)
def test_confidences_have_no_classes_to_ask_about(name):
    error = refusal("is a question about classes, got confidences of top answers", OF_CLASSES[name], CONFIDENCE)
    assert error.hint is None


NAMING = {
    "OneClass": cal.OneClass,
    "label_in": cal.label_in,
    "predicted_in": cal.predicted_in,
    "output_between": lambda name: cal.output_between(0, 0.5, of=name),
    "Groups": lambda name: cal.Groups({"one": [name], "other": ["cat", "owl"]}),
}


@pytest.mark.parametrize("piece", NAMING)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (3, r"class: must lie in 0\.\.2, got 3"),
        (-1, r"class: must lie in 0\.\.2, got -1"),
        ("dgo", "class: is unknown, got 'dgo'; did you mean 'dog'?"),
        ("x", "class: is unknown, got 'x'; there are: cat, dog, owl"),
        (1.5, "class.*, got 1.5"),
        (math.nan, "class.*, got nan"),
        (True, "class.*, got True"),
        ([1], r"class.*, got \[1\]"),
    ],
    ids=repr,
)
def test_a_class_is_an_index_or_a_name(piece, name, message):
    refusal(message, lambda: NAMING[piece](name)(CLASSES))


@pytest.mark.parametrize("piece", NAMING)
def test_a_class_may_be_a_whole_number_of_numpy(piece):
    assert repr(NAMING[piece](np.int64(1))(CLASSES)) == repr(NAMING[piece]("dog")(CLASSES))


def test_an_output_of_several_classes_needs_a_class():
    refusal("output_between: needs of=class", cal.output_between(0, 0.5), CLASSES)


@pytest.mark.parametrize("groups", [{}, {"all": [0, 1, 2]}, None, 3, "ab", {"a": 0, "b": 1}, [1, 2]], ids=repr)
def test_groups_are_at_least_two_named_lists_of_classes(groups):
    refusal("Groups: ", cal.Groups, groups)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": [0], "b": [0, 1, 2]}, "Groups: must not share classes, got 'cat' twice"),
        ({"a": [0], "b": ["cat", 1, 2]}, "Groups: must not share classes, got 'cat' twice"),
        ({"a": [0], "b": [1]}, "Groups: must cover every class, got no group for 'owl'"),
    ],
)
def test_groups_share_out_all_classes(groups, message):
    refusal(message, cal.Groups(groups), CLASSES)


# ---- selections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", [cal.label_in, cal.predicted_in, cal.where])
def test_a_selection_names_what_it_selects(selection):
    refusal("needs at least one argument, got none", selection)


def test_a_misspelled_column_is_told_the_closest_one():
    error = refusal("column: is unknown, got 'regoin'", cal.where(regoin="n"), CLASSES)
    assert error.hint == "did you mean 'region'?"
    assert refusal("column: is unknown", cal.where(region="n"), EVENT).hint == "there are none"
    assert refusal("column: is unknown", cal.table, CLASSES, {"ece": cal.ECE}, by="regoin").hint == error.hint


@pytest.mark.parametrize("value", [[30, 40], [30, 40, 30, 50], (30,), math.nan, None], ids=repr)
def test_a_column_is_selected_by_one_value(value):
    refusal("where: ", lambda: cal.where(age=value)(CLASSES))


def test_a_table_has_a_metric():
    refusal("metrics: must be a dictionary from names to metrics", cal.table, CLASSES, {})
    refusal("metrics: must be a dictionary from names to metrics", cal.table, CLASSES, [cal.ECE])
    refusal("column: is unknown", cal.table, CLASSES, {"ece": cal.ECE}, by=["ink"])
    refusal(r"interval: must be a method, got 100.*Confidence\(\)", cal.ECE, CLASSES, interval=100)


def test_a_table_by_a_column_of_many_values_is_refused():
    many = Predictions.from_probs([0] * 1001, [0.5] * 1001, number=np.arange(1001))
    error = refusal("by: must have at most 1000 values, got 1001", cal.table, many, {"ece": cal.ECE}, by="number")
    assert error.hint == "cut it into ranges"


# ---- pieces that do not fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "binning", [cal.EqualWidth(3), cal.EqualMass(3), cal.Quantiles(3), cal.Edges([0, 1]), cal.Sweep()], ids=str
)
@pytest.mark.parametrize("lens", [cal.Full(), cal.TopK(2), cal.Groups({"a": [0], "b": [1, 2]})], ids=str)
def test_bins_of_one_coordinate_refuse_vectors_and_name_others(lens, binning):
    error = refusal(
        "needs a lens with one coordinate per question", cal.BinnedError(lens=lens, binning=binning), CLASSES
    )
    assert error.parameter == type(binning).__name__
    assert "KDTree" in error.hint
    assert "Grid" in error.hint


@pytest.mark.parametrize("distance", [cal.signed, cal.inter_interval(0, 1), cal.interval_tvd(0, 1)])
def test_distances_of_one_coordinate_refuse_vectors_and_name_others(distance):
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(), distance=distance)
    assert "tvd" in refusal("needs a lens with one coordinate per question", metric, CLASSES).hint


@pytest.mark.parametrize(
    "metric",
    [
        cal.ADAPTIVE_ECE, cal.ECE_SWEEP, cal.FULL_ECE, cal.ECE_LB, cal.BinnedError(binning=cal.Quantiles(3)),
        cal.BinnedError(distance=cal.debiased_squared),
    ],
    ids=["equal mass", "sweep", "tree", "label-binned", "quantiles", "debiased"],
)  # fmt: skip
def test_what_counts_samples_refuses_fractional_weights(metric):
    weighted = Predictions.from_probs(Y, M, sample_weight=[0.5, 1, 1, 2])
    refusal("counts samples, so weights must be whole", metric, weighted)
    assert cal.ECE(weighted).value > 0


# ---- options of the door ---------------------------------------------------------------------------------------------

NO_WEIGHT = {
    "negative": ([1, -1, 1, 1], "must be finite and not negative, got -1 at row 1"),
    "nan": ([1, math.nan, 1, 1], "must be finite and not negative, got nan at row 1"),
    "infinity": ([1, math.inf, 1, 1], "must be finite and not negative, got inf at row 1"),
    "all zero": ([0, 0, 0, 0], "must sum to more than 0"),
    "lost in rounding": ([1e-300] * 4, "must sum to more than"),
    "too large": ([1e30] * 4, "must sum to .* less than 2\\^36, got 4e\\+30"),
    "overflowing": ([1e308] * 4, "must sum to .* less than 2\\^36"),
    "too short": ([1, 1, 1], r"must have one value per sample \(4\), got shape \(3,\)"),
    "too long": ([1] * 5, r"must have one value per sample \(4\), got shape \(5,\)"),
    "square": ([[1, 1], [1, 1]], r"must have one value per sample \(4\), got shape \(2, 2\)"),
    "one for all": (1.0, "must be an array"),
    "None among them": ([1, None, 1, 1], "must have no missing values, got None at row 1"),
    "text": (list("abcd"), "must hold numbers"),
    "complex": ([1j, 1, 1, 1], ".*got dtype complex128"),
    "masked": (np.ma.array([1, 1, 1, 1], mask=[0, 0, 0, 1]), "must have no masked entries"),
}


@pytest.mark.parametrize("case", NO_WEIGHT)
@pytest.mark.parametrize("door", [Predictions.from_probs, Predictions.from_logits, Predictions.from_confidence])
def test_sample_weights_are_finite_and_not_negative_and_not_all_zero(door, case):
    weight, message = NO_WEIGHT[case]
    error = refusal(f"sample_weight: {message}", door, [1, 0, 1, 0], [0.9, 0.2, 0.7, 0.4], sample_weight=weight)
    assert error.parameter == "sample_weight"


@pytest.mark.parametrize("case", ["all zero", "too short", "text"])
def test_the_hint_for_sample_weights_is_about_sample_weights(case):
    weight, message = NO_WEIGHT[case]
    error = refusal(message, Predictions.from_probs, Y, M, sample_weight=weight)
    for word in ("sample columns", "truth comes first", "divide the weights by their mean"):
        assert word not in (error.hint or "")


@pytest.mark.parametrize("ignore", ["-1", True, [-1, 255], math.nan], ids=repr)
@pytest.mark.parametrize("door", [Predictions.from_probs, Predictions.from_logits])
def test_the_ignored_label_is_a_number(door, ignore):
    error = refusal("ignore_index: ", door, Y, M, ignore_index=ignore)
    assert error.parameter == "ignore_index"


MAPS = np.full((2, 3, 4), 1 / 3)


@pytest.mark.parametrize("axis", [3, 9, -4, "1", 1.0, True, [1]], ids=repr)
@pytest.mark.parametrize("door", [Predictions.from_probs, Predictions.from_logits])
def test_the_class_axis_is_one_of_the_axes(door, axis):
    error = refusal("class_axis: ", door, np.zeros((2, 4), int), MAPS, class_axis=axis)
    assert error.parameter == "class_axis"


def test_forecasts_of_an_event_have_no_class_axis():
    refusal("class_axis: ", Predictions.from_probs, [1, 0], [0.9, 0.2], class_axis=1)


# ---- resampling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, 1.5, math.nan, math.inf, True, "0.9", None], ids=repr)
def test_a_level_lies_strictly_between_0_and_1(level):
    error = refusal("level: must lie strictly between 0 and 1", cal.Bootstrap, 100, level=level)
    assert error.got == repr(level)


def test_a_level_in_percent_is_recognised():
    assert "0.95" in refusal("level: ", cal.Bootstrap, level=95).hint


@pytest.mark.parametrize("n", [0, -1, 2.5, 100.0, True, "100", None, math.nan], ids=repr)
def test_a_number_of_resamples_is_a_whole_number_of_at_least_1(n):
    resampling = [
        lambda: cal.Bootstrap(n),
        lambda: cal.consistency(cal.ECE, EVENT, n=n),
        lambda: cal.compare(cal.ECE, EVENT, EVENT, n=n),
    ]
    for call in resampling:
        error = refusal("n: must be a whole number of at least 1", call)
        assert error.got == repr(n)


@pytest.mark.parametrize(
    "options", [{"kind": "normal"}, {"engine": "fast"}, {"seed": None}, {"seed": 0.5}, {"n_jobs": 0}]
)
def test_other_options_of_the_bootstrap_are_refused_by_name(options):
    assert refusal("must be", cal.Bootstrap, 10, **options).parameter == next(iter(options))


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_classes_are_measured_in_a_few_bins():
    forecasts = np.zeros((1, 1_000_000))
    forecasts[0, 7] = 1.0
    metric = cal.BinnedError(lens=cal.Classwise(), binning=cal.EqualWidth(2), across=cal.mean_of_all)
    assert metric([7], forecasts).value == 0.0
    assert metric([8], forecasts).value == pytest.approx(2e-6, abs=1e-18)


@pytest.mark.slow
@pytest.mark.parametrize("binning", [cal.EqualWidth(1000), cal.Edges(np.arange(1001) / 1000)], ids=["width", "edges"])
def test_a_table_too_large_is_refused_by_an_estimate(binning):
    forecasts = np.zeros((1, 1_000_000), np.float32)
    forecasts[0, 7] = 1.0
    predictions = Predictions.from_probs([7], forecasts)
    metric = cal.BinnedError(lens=cal.Classwise(), binning=binning)
    message = "bins: of all questions must fit 4 GiB, got 1,000,000 questions x 1,000 bins"
    with memory_below(100 << 20):
        error = refusal(message, metric, predictions)
    assert "GiB" in error.got


@pytest.mark.parametrize("binning", [cal.EqualMass(20_000), cal.Quantiles(20_000)], ids=["mass", "quantiles"])
def test_the_estimate_comes_before_the_table(binning, monkeypatch):
    monkeypatch.setattr("calibrant.bins.MOST_BYTES", 1 << 20)
    predictions = Predictions.from_probs([0, 1], np.full((2, 50), 0.02))
    metric = cal.BinnedError(lens=cal.Classwise(), binning=binning)
    with memory_below(8 << 20):
        refusal("bins: of all questions must fit", metric, predictions)
