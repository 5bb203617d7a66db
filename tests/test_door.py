"""The door: which arrays are let in as they are, and what is said of those that are not."""

import array
import collections
import copy
import dataclasses
import datetime
import decimal
import math
import pickle
import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant import CalibrationInputError, Predictions
from calibrant.metric import checked

Y = [0, 2, 1, 2]
M = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
E = [1, 0, 1, 0]
P = [0.9, 0.2, 0.7, 0.4]
NAMES = ["cat", "dog", "owl"]

DOORS = {
    "from_probs": Predictions.from_probs,
    "from_logits": Predictions.from_logits,
    "from_confidence": Predictions.from_confidence,
    "ECE": cal.ECE,
}
FORECAST = {"from_probs": "y_proba", "from_logits": "logits", "from_confidence": "confidence", "ECE": "y_proba"}
TRUTH = {"from_probs": "y_true", "from_logits": "y_true", "from_confidence": "correct", "ECE": "y_true"}
OF_PROBABILITIES = ["from_probs", "from_confidence", "ECE"]
OF_CLASSES = ["from_probs", "from_logits", "ECE"]


def need(package):
    return pytest.importorskip(package)


def refusal(match, call, *arguments, **keywords):
    """The error that the call raises; its message is one line of readable length."""
    with pytest.raises(CalibrationInputError, match=match) as caught:
        call(*arguments, **keywords)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    return caught.value


def assert_same(made, plain):
    """Equal to the bit: the arrays behind the door and the numbers made of them."""
    assert made.values.dtype == plain.values.dtype
    assert made.values.flags.c_contiguous
    assert made.precision == plain.precision
    assert np.array_equal(made.values, plain.values)
    assert np.array_equal(made.labels, plain.labels)
    assert made.classes == plain.classes
    assert made.notes == plain.notes
    metrics = [cal.ECE, cal.ADAPTIVE_ECE, cal.BRIER] + ([cal.SCE, cal.FULL_ECE] if made.kind == "classes" else [])
    for metric in metrics:
        assert metric(made).value == metric(plain).value


# ---- the error itself ------------------------------------------------------------------------------------------------


def test_the_error_is_a_value_error_with_its_parts_as_fields():
    error = refusal("y_proba: must be finite, got nan at row 1", cal.ECE, [0, 1], [0.5, np.nan])
    assert isinstance(error, ValueError)
    assert (error.parameter, error.expected, error.got, error.where) == ("y_proba", "must be finite", "nan", "row 1")


def test_the_error_travels_between_processes():
    error = CalibrationInputError("y_proba", "rows must sum to 1", got=0.93, where="row 17", hint="normalise them")
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is CalibrationInputError
    assert str(arrived) == str(error) == "y_proba: rows must sum to 1, got 0.93 at row 17; normalise them"
    assert vars(arrived) == vars(error)


# ---- forecasts that are no arrays of numbers -------------------------------------------------------------------------

NO_NUMBERS = {
    "nan": (lambda: [0.1, np.nan], "must be finite, got nan at row 1", "row 1"),
    "infinity": (lambda: [np.inf, 0.1], "must be finite, got inf at row 0", "row 0"),
    "minus infinity": (lambda: [0.1, -np.inf], "must be finite, got -inf at row 1", "row 1"),
    "None": (lambda: None, "is required, got None", None),
    "None among numbers": (lambda: [0.1, None], "must have no missing values, got None at row 1", "row 1"),
    "single number": (lambda: 0.5, "must be an array, got the single value 0.5", None),
    "0-D array": (lambda: np.array(0.5), "must be an array", None),
    "dictionary": (lambda: {0: 0.1, 1: 0.2}, "must be an array", None),
    "set": (lambda: {0.1, 0.2}, "must be an array", None),
    "ragged rows": (lambda: [[0.5, 0.5], [0.2, 0.3, 0.5]], "must be a rectangular array", "row 1"),
    "objects": (lambda: np.array([0.1, object()]), "must hold plain numbers or strings, got an? object", "row 1"),
    "array of lists": (lambda: np.array([[0.5], [0.2, 0.3]], object), "must be a rectangular array", None),
    "words": (lambda: ["low", "high"], "must hold numbers, got dtype <U4", None),
    "digits as text": (lambda: ["0.1", "0.9"], "must hold numbers, got dtype <U3", None),
    "bytes": (lambda: [b"a", b"b"], "must hold numbers", None),
    "decimals": (lambda: [decimal.Decimal("0.1")] * 2, "must hold plain numbers or strings, got a Decimal", "row 0"),
    "complex": (lambda: [0.1 + 0j, 0.2], "must hold numbers.*, got dtype complex128", None),
    "dates": (lambda: np.array(["2020", "2021"], "M8[Y]"), "must hold numbers.*, got dtype datetime64", None),
    "date objects": (lambda: [datetime.date(2020, 1, 1)] * 2, "must hold plain numbers.*, got a date", "row 0"),
    "durations": (lambda: np.array([1, 2], "m8[D]"), "must hold numbers.*, got dtype timedelta64", None),
    "records": (lambda: np.zeros(2, [("a", "f8")]), "must hold numbers.*, got dtype", None),
    "masked": (lambda: np.ma.array([0.1, 0.2], mask=[0, 1]), "must have no masked entries, got 1 of them", None),
    "sparse": (lambda: need("scipy.sparse").csr_matrix([[0.5, 0.5], [0.2, 0.8]]), "must be dense", None),
    "sparse array": (lambda: need("scipy.sparse").coo_array(np.eye(2)), "must be dense, got a sparse", None),
    "generator": (lambda: (p for p in [0.1, 0.2]), "must be an array, got a generator; collect it with list", None),
    "map": (lambda: map(float, [0.1, 0.2]), "must be an array, got a map; collect it with list", None),
    "pandas NA": (lambda: need("pandas").Series([0.1, need("pandas").NA]), "must have no missing values", "row 1"),
    "pandas nullable": (lambda: need("pandas").Series([0.1, None], dtype="Float64"), "got (nan|<NA>)", "row 1"),
    "pandas None": (lambda: need("pandas").Series([0.1, None]), "got nan at row 1", "row 1"),
    "pandas arrow": (lambda: need("pandas").Series([0.1, None], dtype="double[pyarrow]"), "at row 1", "row 1"),
    "polars null": (lambda: need("polars").Series([0.1, None]), "got (nan|None) at row 1", "row 1"),
    "pyarrow null": (lambda: need("pyarrow").array([0.1, None]), "must have no missing values", "row 1"),
    "pyarrow chunks": (lambda: need("pyarrow").chunked_array([[0.1], [None]]), "must have no missing values", "row 1"),
    "pyarrow decimal": (lambda: need("pyarrow").array([decimal.Decimal("0.1")] * 2), "got a Decimal", "row 0"),
    "polars lazy": (lambda: need("polars").LazyFrame({"p": [0.1, 0.2]}), "must be an array", None),
    "predictions": (lambda: Predictions.from_probs([0, 1], [0.1, 0.2]), "Predictions", None),
}  # fmt: skip


@pytest.mark.parametrize(
    ("door", "case"),
    [(door, case) for door in DOORS for case in NO_NUMBERS if (door, case) != ("from_logits", "minus infinity")],
)
def test_forecasts_that_are_no_array_of_numbers_are_refused_at_every_door(door, case):
    make, message, where = NO_NUMBERS[case]
    error = refusal(message, DOORS[door], [0, 1], make())
    if case == "predictions" and door == "ECE":
        return  # the metric has its own word for it
    assert error.parameter == FORECAST[door]
    if where is not None:
        assert error.where == where


@pytest.mark.parametrize(
    ("door", "value"),
    [
        (door, value)
        for door in OF_CLASSES
        for value in (np.nan, np.inf, -np.inf)
        if (door, value) != ("from_logits", -np.inf)
    ],
)
def test_a_matrix_with_a_value_that_is_not_finite_names_its_row_and_column(door, value):
    forecasts = np.array(M)
    forecasts[2, 1] = value
    error = refusal("must be finite", DOORS[door], Y, forecasts)
    assert (error.parameter, error.got, error.where) == (FORECAST[door], str(value), "row 2, column 1")


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: need("pyarrow").array([[0.5, 0.5], [0.5, None]]),
        lambda: need("pandas").DataFrame([[0.5, 0.5], [0.5, None]]).astype("Float64"),
        lambda: need("pandas").DataFrame([[0.5, 0.5], [0.5, None]], dtype=object),
        lambda: [[0.5, 0.5], [0.5, None]],
    ],
    ids=["pyarrow lists", "pandas nullable", "pandas objects", "lists"],
)
def test_a_matrix_with_a_missing_value_names_its_row_and_column(door, make):
    error = refusal("missing|finite", DOORS[door], [0, 1], make())
    assert (error.parameter, error.where) == (FORECAST[door], "row 1, column 1")


# ---- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
def test_empty_forecasts_of_an_event_are_refused(door):
    error = refusal(r"must not be empty, got shape \(0,\)", DOORS[door], [], [])
    assert error.parameter == FORECAST[door]


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (2, 0)])
def test_an_empty_matrix_is_refused(door, shape):
    error = refusal(
        "must not be empty|needs at least two columns", DOORS[door], np.zeros(shape[0], int), np.zeros(shape)
    )
    assert error.parameter == FORECAST[door]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("truth", [[1], [1, 0, 1], [[1, 0]], [[1, 0], [0, 1]], np.zeros((2, 2, 2), int)])
def test_truth_of_another_length_or_shape_than_the_forecasts_is_refused(door, truth):
    error = refusal(r"must match .* of shape \(2,\), got shape", DOORS[door], truth, [0.1, 0.2])
    assert error.parameter == TRUTH[door]
    assert error.got == f"shape {np.shape(truth)}"


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize("truth", [[0], [0, 1, 2, 0, 1], [[0, 1, 2, 0]], np.zeros((4, 3, 1), int)])
def test_truth_of_another_length_or_shape_than_the_matrix_is_refused(door, truth):
    error = refusal(r"must match .* of shape \(4, 3\), got shape", DOORS[door], truth, M)
    assert error.parameter == "y_true"


@pytest.mark.parametrize("door", OF_CLASSES)
def test_a_matrix_of_one_column_is_refused_and_pointed_to_one_dimension(door):
    error = refusal("needs at least two columns, got one", DOORS[door], [0, 1], [[0.1], [0.7]])
    assert (error.parameter, error.hint) == (FORECAST[door], "pass a 1-D array for one event")


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 2, 3, 4)])
def test_more_than_two_dimensions_need_a_class_axis(door, shape):
    error = refusal(
        r"must be \(n,\) or \(n, K\)", DOORS[door], np.zeros(shape[:-1], int), np.full(shape, 1 / shape[-1])
    )
    assert error.parameter == FORECAST[door]
    assert "class_axis" in error.hint


def test_confidences_are_one_dimensional():
    error = refusal(r"confidence: must be 1-D, got shape \(4, 3\)", Predictions.from_confidence, E, M)
    assert error.parameter == "confidence"


# ---- numbers that are no probabilities -------------------------------------------------------------------------------

NO_PROBABILITIES = {
    "negative": ([-0.1, 0.5], r"must lie in \[0, 1\], got -0.1 at row 0", None),
    "above one": ([0.5, 1.02], r"must lie in \[0, 1\], got 1.02 at row 1", None),
    "just above the tolerance": ([0.5, 1.000002], r"must lie in \[0, 1\], got 1.000002 at row 1", None),
    "just below the tolerance": ([-0.000002, 0.5], r"must lie in \[0, 1\], got -2e-06 at row 0", None),
    "logits": ([-3.0, 2.5], r"must lie in \[0, 1\], got -3 at row 0", "from_logits"),
    "percentages": ([20.0, 95.0], r"must lie in \[0, 1\], got 95 at row 1", "percentages, divide by 100"),
    "whole percentages": ([20, 95], r"must lie in \[0, 1\], got 95 at row 1", "percentages, divide by 100"),
}


@pytest.mark.parametrize("door", OF_PROBABILITIES)
@pytest.mark.parametrize("case", NO_PROBABILITIES)
def test_numbers_that_are_no_probabilities_are_refused(door, case):
    forecasts, message, hint = NO_PROBABILITIES[case]
    error = refusal(message, DOORS[door], [0, 1], forecasts)
    assert error.parameter == FORECAST[door]
    assert (error.hint is None) if hint is None else (hint in error.hint)


NO_DISTRIBUTIONS = {
    "negative": ([0.7, 0.4, -0.1], r"must lie in \[0, 1\], got -0.1 at row 1, column 2", None),
    "above one": ([1.02, -0.01, -0.01], r"must lie in \[0, 1\], got 1.02 at row 1, column 0", None),
    "logits": ([2.0, -1.0, 0.5], r"must lie in \[0, 1\], got 2 at row 1, column 0", "from_logits"),
    "short of one": ([0.7, 0.2, 0.07], "rows must sum to 1, got 0.97 at row 1", "normalize=True"),
    "beyond one": ([0.7, 0.2, 0.13], "rows must sum to 1, got 1.03 at row 1", "normalize=True"),
    "just short": ([0.7, 0.2, 0.0989], "rows must sum to 1, got 0.9989 at row 1", "normalize=True"),
    "zero": ([0.0, 0.0, 0.0], "rows must sum to 1, got 0 at row 1", None),
}


@pytest.mark.parametrize("door", ["from_probs", "ECE"])
@pytest.mark.parametrize("case", NO_DISTRIBUTIONS)
def test_rows_that_are_no_distributions_are_refused(door, case):
    row, message, hint = NO_DISTRIBUTIONS[case]
    error = refusal(message, DOORS[door], [0, 1, 2], [M[0], row, M[1]])
    assert error.parameter == "y_proba"
    if hint is not None:
        assert hint in error.hint


@pytest.mark.parametrize("door", ["from_probs", "ECE"])
def test_rows_of_percentages_are_recognised(door):
    error = refusal(r"must lie in \[0, 1\], got 70 at row 0, column 0", DOORS[door], Y, np.array(M) * 100)
    assert error.hint == "these look like percentages: divide by 100"


def test_percentages_of_labels_are_recognised():
    error = refusal(
        r"must lie in \[0, 1\], got 90", Predictions.from_multilabel, [[0, 1], [1, 0]], [[20.0, 90], [0, 60]]
    )
    assert error.hint == "if these are percentages, divide by 100; if they are logits of labels, pass logits=True"


def test_rows_of_several_labels_are_told_of_their_constructor():
    error = refusal("rows must sum to 1, got 1.7", cal.ECE, [[0, 1], [1, 1]], [[0.1, 0.9], [0.8, 0.9]])
    assert "Predictions.from_multilabel" in error.hint


def test_a_row_of_zeros_is_not_told_to_normalise():
    error = refusal("rows must sum to 1, got 0 at row 1", cal.ECE, [0, 1], [[0.5, 0.5], [0, 0]])
    assert "normalize" not in (error.hint or "")


def test_the_worst_row_is_found_far_down():
    forecasts = np.full((300_000, 2), 0.5)
    forecasts[287_654] = [0.5, 0.4]
    error = refusal("rows must sum to 1, got 0.9", cal.ECE, np.zeros(300_000, int), forecasts)
    assert error.where == "row 287654"


def test_normalize_divides_rows_by_their_sums_and_says_so():
    made = Predictions.from_probs([0, 1], [[2, 6], [0.5, 0.5]], normalize=True)
    assert made.values.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert made.notes == (f"{len(made)} rows were divided by their sums",)
    assert cal.ECE(made).notes[0] == made.notes[0]


@pytest.mark.parametrize("row", [[0, 0], [-1, 2], [np.nan, 1], [np.inf, 1]])
def test_a_row_that_cannot_be_normalised_is_refused(row):
    error = refusal("y_proba: ", Predictions.from_probs, [0, 1], [[0.5, 0.5], row], normalize=True)
    assert error.where.startswith("row 1")


def test_one_event_cannot_be_normalised():
    refusal("normalize: needs rows of classes", Predictions.from_probs, E, P, normalize=True)


# ---- labels ----------------------------------------------------------------------------------------------------------

NO_TRUTH = {
    "None": (lambda: None, "is required, got None", None),
    "None among numbers": (lambda: [0, None], "must have no missing values, got None at row 1", "row 1"),
    "nan": (lambda: [0, np.nan], "must have no missing values, got nan at row 1", "row 1"),
    "single number": (lambda: 1, "must be an array, got the single value 1", None),
    "text": (lambda: "01", "must be an array, got the single value '01'", None),
    "masked": (lambda: np.ma.array([0, 1], mask=[1, 0]), "must have no masked entries", None),
    "generator": (lambda: (y for y in [0, 1]), "must be an array, got a generator", None),
    "sparse": (lambda: need("scipy.sparse").csr_matrix([[0, 1]]), "must be dense", None),
    "ragged": (lambda: [[0], [0, 1]], "must be a rectangular array", "row 1"),
    "complex": (lambda: [0j, 1], "got dtype complex128", None),
    "dates": (lambda: np.array(["2020", "2021"], "M8[Y]"), "got dtype datetime64", None),
    "objects": (lambda: [object(), object()], "must hold plain numbers or strings", "row 0"),
    "pandas NA": (lambda: need("pandas").Series([0, None], dtype="Int64"), "must have no missing values", "row 1"),
    "pandas object NA": (lambda: need("pandas").Series([0, need("pandas").NA]), "must have no missing values", "row 1"),
    "polars null": (lambda: need("polars").Series([0, None]), "must have no missing values", "row 1"),
    "pyarrow null": (lambda: need("pyarrow").array([0, None]), "must have no missing values", "row 1"),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", NO_TRUTH)
def test_truth_that_is_no_array_of_labels_is_refused_at_every_door(door, case):
    make, message, where = NO_TRUTH[case]
    error = refusal(message, DOORS[door], make(), [0.1, 0.2])
    assert error.parameter == TRUTH[door]
    if where is not None:
        assert error.where == where


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("label", "shown"), [(2, "2"), (-1, "-1"), (1.5, "1.5"), (1.0000001, "1.0000001")])
def test_an_outcome_of_an_event_is_between_0_and_1(door, label, shown):
    error = refusal("must be 0 or 1", DOORS[door], [1, label], [0.1, 0.2])
    assert (error.parameter, str(error.got), error.where) == (TRUTH[door], shown, "row 1")


@pytest.mark.parametrize("door", ["from_probs", "from_logits", "ECE"])
def test_names_of_an_event_need_two_class_names(door):
    error = refusal("y_true: must be 0 or 1, got 'no'", DOORS[door], ["no", "yes"], [0.1, 0.2])
    assert "classes=" in error.hint


NO_CLASS = {
    "fraction": ([0, 1, 1.5, 2], "must be whole class indices, got 1.5 at row 2", None),
    "nearly whole": ([0, 1, 1.0000001, 2], "must be whole class indices, got 1.0000001 at row 2", None),
    "beyond the classes": ([0, 1, 5, 2], r"must lie in 0\.\.2, got 5 at row 2", None),
    "counted from one": ([1, 2, 3, 2], r"must lie in 0\.\.2, got 3 at row 2", "labels count from 0"),
    "minus one": ([0, 1, -1, 2], r"must lie in 0\.\.2, got -1 at row 2", "ignore_index=-1"),
    "255": (np.array([0, 1, 255, 2], np.uint8), r"must lie in 0\.\.2, got 255 at row 2", "ignore_index=255"),
    "infinity": ([0, 1, np.inf, 2], "got inf at row 2", None),
    "unsigned": (np.array([0, 1, 2**64 - 1, 2], np.uint64), "got 18446744073709551615 at row 2", None),
    "None": ([0, 1, None, 2], "must have no missing values, got None at row 2", None),
    "nan": ([0, 1, np.nan, 2], "must have no missing values, got nan at row 2", None),
    "names": (["cat", "dog", "owl", "owl"], "must be class indices, got 'cat'", "pass classes="),
    "digits as text": (["0", "1", "2", "2"], "must be class indices, got '0'", "pass classes="),
}


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize("case", NO_CLASS)
def test_labels_that_are_no_classes_are_refused(door, case):
    labels, message, hint = NO_CLASS[case]
    error = refusal(message, DOORS[door], labels, M)
    assert error.parameter == "y_true"
    if hint is not None:
        assert hint in error.hint


NO_SOFT = {
    "two columns": (np.full((4, 2), 0.5), "soft labels need 3 columns, got 2", None),
    "negative": ([[1.5, -0.5, 0]] * 4, r"must lie in \[0, 1\], got 1.5 at row 0, column 0", "row 0, column 0"),
    "short of one": ([[1, 0, 0]] * 3 + [[0.5, 0.2, 0.1]], "rows must sum to 1, got 0.8 at row 3", "row 3"),
    "several classes": ([[1, 0, 0]] * 3 + [[1, 1, 0]], "rows must sum to 1, got 2 at row 3", "row 3"),
    "no class": ([[1, 0, 0]] * 3 + [[0, 0, 0]], "rows must sum to 1, got 0 at row 3", "row 3"),
    "nan": ([[1, 0, 0]] * 3 + [[np.nan, 0.5, 0.5]], "must be finite, got nan at row 3, column 0", "row 3, column 0"),
    "text": ([["a", "b", "c"]] * 4, "must hold numbers", None),
}


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize("case", NO_SOFT)
def test_rows_that_are_no_soft_labels_are_refused(door, case):
    labels, message, where = NO_SOFT[case]
    error = refusal(message, DOORS[door], labels, M)
    assert (error.parameter, error.where) == ("y_true", where)


def test_soft_labels_are_not_told_to_be_normalised_by_an_option_for_forecasts():
    error = refusal("y_true: rows must sum to 1", cal.ECE, [[0.5, 0.2, 0.1]] * 4, M)
    assert "normalize=True" not in (error.hint or "")


# ---- swapped arguments -----------------------------------------------------------------------------------------------

SWAPPED = {
    "event": (P, E),
    "event of classes": (P, [0, 2, 1, 2]),
    "matrix": (M, Y),
    "single precision": (np.array(M, np.float32), Y),
    "one-hot": (M, np.eye(3)[Y]),
    "one-hot of whole numbers": (M, np.eye(3, dtype=int)[Y]),
}


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize("case", SWAPPED)
def test_swapped_arguments_are_recognised_and_named(door, case):
    error = refusal("y_true: must be the labels", DOORS[door], *SWAPPED[case])
    assert "swapped" in error.hint
    assert "truth comes first" in error.hint


def test_swapped_confidences_are_recognised_and_named():
    error = refusal("correct: ", Predictions.from_confidence, P, E)
    assert "swapped" in error.hint


def test_names_in_the_place_of_forecasts_point_to_the_order():
    error = refusal("y_proba: must hold numbers", cal.ECE, P, ["no", "yes", "no", "yes"])
    assert "truth comes first" in error.hint


def test_logits_in_the_place_of_labels_are_recognised():
    error = refusal("y_true: must be the labels", Predictions.from_logits, np.log(M), Y)
    assert "swapped" in error.hint


# ---- metrics and predictions -----------------------------------------------------------------------------------------


def test_a_metric_takes_predictions_or_arrays_but_not_both():
    made = Predictions.from_probs(Y, M)
    refusal("y_proba: must be left out", cal.ECE, made, M)
    refusal("sample_weight: must be left out", cal.ECE, made, sample_weight=[1.0] * len(made))
    refusal("y_true: must be left out", cal.ECE, Y, made)
    refusal("y_proba: is required", cal.ECE, Y)
    assert cal.ECE(made).value == cal.ECE(Y, M).value


def test_a_tie_can_be_left_out_and_leaves_hard_labels():
    made = cal.Predictions.from_probs([1, 0.5, 0], [0.9, 0.4, 0.6], ignore_index=0.5)
    assert made.soft is None
    assert made.labels.tolist() == [1, 0]
    assert made.notes == ("1 row was left out: label 0.5",)


def test_what_an_error_advises_can_be_done_where_it_was_raised():
    assert cal.ECE([0, 1], [[0.9, 0.1], [0.5, 0.4]], normalize=True).n == 2
    assert cal.ECE([0, -1], [[0.9, 0.1], [0.5, 0.5]], ignore_index=-1).n == 1
    assert cal.ECE(["cat", "dog"], [[0.9, 0.1], [0.5, 0.5]], classes=["cat", "dog"]).n == 2
    with pytest.raises(CalibrationInputError, match="did you mean 'sample_weight'"):  # never a column
        cal.ECE([0, 1], [0.9, 0.1], sample_weights=[1, 2])


def test_weights_may_stand_beside_labels_and_forecasts():
    weighted = cal.Predictions.from_probs([1, 0, 1], [0.9, 0.4, 0.6], sample_weight=[1, 2, 3])
    assert cal.ECE([1, 0, 1], [0.9, 0.4, 0.6], sample_weight=[1, 2, 3]).value == cal.ECE(weighted).value
    assert cal.ECE(weighted).value != cal.ECE([1, 0, 1], [0.9, 0.4, 0.6]).value


@pytest.mark.parametrize(
    "call",
    [
        lambda: cal.consistency(cal.ECE, [1, 0], [0.9, 0.2]),
        lambda: cal.sensitivity(cal.ECE, [1, 0]),
        lambda: cal.compare(cal.ECE, [1, 0], [0.9, 0.2]),
        lambda: cal.table([1, 0], {"ece": cal.ECE}),
    ],
)
def test_bare_arrays_are_refused_where_checked_predictions_are_needed(call):
    with pytest.raises(CalibrationInputError, match=r"must be Predictions, got list.*from_probs"):
        call()


def test_noise_floors_of_soft_labels_are_refused():
    soft = cal.Predictions.from_probs([0.3, 0.6], [0.2, 0.7])
    refusal("null: redraws hard labels", cal.table, soft, {"ece": cal.ECE}, null=10)


@pytest.mark.parametrize("name", cal.RECIPES)
def test_no_recipe_makes_a_number_of_bad_arrays(name):
    forecasts = np.full((3, 5), 0.2)
    forecasts[1, 2] = np.nan
    refusal("must be finite, got nan at row 1, column 2", cal.RECIPES[name], [0, 1, 2], forecasts)
    refusal(r"must lie in 0\.\.4, got 5 at row 2", cal.RECIPES[name], [0, 1, 5], np.full((3, 5), 0.2))
    refusal("rows must sum to 1, got 0.97", cal.RECIPES[name], [0], [[0.2, 0.2, 0.2, 0.2, 0.17]])


# ---- arrays that count as their plain copies -------------------------------------------------------------------------

MATRICES = {
    "lists": lambda: M,
    "tuples": lambda: tuple(map(tuple, M)),
    "list of arrays": lambda: [np.array(row) for row in M],
    "array": lambda: np.array(M),
    "big-endian": lambda: np.array(M, ">f8"),
    "Fortran order": lambda: np.asfortranarray(M),
    "negative strides": lambda: np.array(M)[::-1, ::-1].copy()[::-1, ::-1],
    "every other column": lambda: np.repeat(np.array(M), 2, axis=1)[:, ::2],
    "longer precision": lambda: np.array(M, np.longdouble),
    "masked without a mask": lambda: np.ma.array(M),
    "pandas": lambda: need("pandas").DataFrame(M, columns=NAMES),
    "pandas partly nullable": lambda: need("pandas").DataFrame(M).astype({0: "Float64"}),
    "pandas nullable": lambda: need("pandas").DataFrame(M).astype("Float64"),
    "pandas arrow": lambda: need("pandas").DataFrame(M).astype("double[pyarrow]"),
    "polars": lambda: need("polars").DataFrame(M, orient="row"),
    "polars arrays": lambda: need("polars").Series(M, dtype=need("polars").Array(need("polars").Float64, 3)),
    "polars lists": lambda: need("polars").Series(M),
    "pyarrow lists": lambda: need("pyarrow").array(M),
    "pyarrow large lists": lambda: need("pyarrow").array(M, need("pyarrow").large_list(need("pyarrow").float64())),
    "pyarrow fixed lists": lambda: need("pyarrow").array(M, need("pyarrow").list_(need("pyarrow").float64(), 3)),
    "pyarrow chunked lists": lambda: need("pyarrow").chunked_array([M[:1], M[1:]]),
    "pyarrow sliced lists": lambda: need("pyarrow").array([M[3], *M, M[3]])[1:5],
    "pyarrow table": lambda: need("pyarrow").table(np.transpose(M).tolist(), names=NAMES),
}


@pytest.mark.parametrize("case", MATRICES)
def test_a_matrix_of_any_kind_counts_as_its_plain_copy(case):
    names = NAMES if case in ("pandas", "pyarrow table") else None
    assert_same(Predictions.from_probs(Y, MATRICES[case]()), Predictions.from_probs(Y, np.array(M), classes=names))


@pytest.mark.parametrize("case", MATRICES)
def test_logits_of_any_kind_count_as_their_plain_copy(case):
    made, plain = (Predictions.from_logits(Y, forecasts) for forecasts in (MATRICES[case](), np.array(M)))
    assert np.array_equal(made.values, plain.values)
    assert cal.ECE(made).value == cal.ECE(plain).value


SINGLE = {
    "big-endian": lambda: np.array(M, ">f4"),
    "Fortran order": lambda: np.asfortranarray(np.array(M, np.float32)),
    "pandas": lambda: need("pandas").DataFrame(M, dtype="float32"),
    "pandas nullable": lambda: need("pandas").DataFrame(M).astype("Float32"),
    "polars": lambda: need("polars").DataFrame(np.array(M, np.float32)),
    "polars lists": lambda: need("polars").Series(M, dtype=need("polars").List(need("polars").Float32)),
    "pyarrow lists": lambda: need("pyarrow").array(M, need("pyarrow").list_(need("pyarrow").float32())),
    "pyarrow fixed lists": lambda: need("pyarrow").array(M, need("pyarrow").list_(need("pyarrow").float32(), 3)),
}


@pytest.mark.parametrize("case", SINGLE)
def test_single_precision_of_any_kind_stays_single_precision(case):
    assert_same(Predictions.from_probs(Y, SINGLE[case]()), Predictions.from_probs(Y, np.array(M, np.float32)))


EVENTS = {
    "list": lambda: P,
    "tuple": lambda: tuple(P),
    "array": lambda: np.array(P),
    "big-endian": lambda: np.array(P, ">f8"),
    "negative stride": lambda: np.array(P[::-1])[::-1],
    "every third": lambda: np.repeat(P, 3)[::3],
    "range of a memory": lambda: np.frombuffer(np.array(P).tobytes()),
    "pandas": lambda: need("pandas").Series(P, index=[7, 3, 3, 1]),
    "pandas nullable": lambda: need("pandas").Series(P, dtype="Float64"),
    "pandas arrow": lambda: need("pandas").Series(P, dtype="double[pyarrow]"),
    "pandas index": lambda: need("pandas").Index(P),
    "polars": lambda: need("polars").Series(P),
    "pyarrow": lambda: need("pyarrow").array(P),
    "pyarrow slice": lambda: need("pyarrow").array([0.0, *P, 0.0])[1:5],
    "pyarrow chunks": lambda: need("pyarrow").chunked_array([P[:1], P[1:]]),
}


@pytest.mark.parametrize("case", EVENTS)
def test_forecasts_of_an_event_of_any_kind_count_as_their_plain_copy(case):
    assert_same(Predictions.from_probs(E, EVENTS[case]()), Predictions.from_probs(E, np.array(P)))
    assert_same(Predictions.from_confidence(E, EVENTS[case]()), Predictions.from_confidence(E, np.array(P)))


OUTCOMES = {
    "small whole numbers": lambda: np.array(E, np.int8),
    "unsigned": lambda: np.array(E, np.uint64),
    "booleans": lambda: [bool(y) for y in E],
    "floats": lambda: [float(y) for y in E],
    "half precision": lambda: np.array(E, np.float16),
    "column": lambda: np.array(E)[:, None],
    "pandas": lambda: need("pandas").Series(E, index=[9, 8, 8, 7]),
    "pandas booleans": lambda: need("pandas").Series(E).astype("boolean"),
    "pandas nullable": lambda: need("pandas").Series(E, dtype="Int64"),
    "pandas column": lambda: need("pandas").DataFrame({"y": E}),
    "polars booleans": lambda: need("polars").Series(E).cast(need("polars").Boolean),
    "pyarrow booleans": lambda: need("pyarrow").array([bool(y) for y in E]),
    "pyarrow chunked booleans": lambda: need("pyarrow").chunked_array([[True, False], [True, False]]),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes_of_any_kind_count_as_their_plain_copy(case):
    assert_same(Predictions.from_probs(OUTCOMES[case](), P), Predictions.from_probs(E, P))


LABELS = {
    "big-endian": lambda: np.array(Y, ">i2"),
    "unsigned": lambda: np.array(Y, np.uint8),
    "floats": lambda: [float(y) for y in Y],
    "negative stride": lambda: np.array(Y[::-1])[::-1],
    "column": lambda: np.array(Y)[:, None],
    "one-hot": lambda: np.eye(3)[Y],
    "one-hot whole numbers": lambda: np.eye(3, dtype=np.int8)[Y],
    "one-hot booleans": lambda: np.eye(3, dtype=bool)[Y],
    "one-hot lists": lambda: np.eye(3)[Y].tolist(),
    "one-hot pandas": lambda: need("pandas").DataFrame(np.eye(3)[Y], columns=NAMES),
    "one-hot within the tolerance": lambda: np.eye(3)[Y] * (1 + 5e-7),
    "pandas": lambda: need("pandas").Series(Y),
    "pandas nullable": lambda: need("pandas").Series(Y, dtype="Int32"),
    "pandas categories": lambda: need("pandas").Categorical(Y),
    "polars": lambda: need("polars").Series(Y, dtype=need("polars").UInt8),
    "pyarrow": lambda: need("pyarrow").array(Y, need("pyarrow").int16()),
    "pyarrow chunks": lambda: need("pyarrow").chunked_array([Y[:3], Y[3:]]),
}


@pytest.mark.parametrize("case", LABELS)
def test_class_labels_of_any_kind_count_as_their_plain_copy(case):
    assert_same(Predictions.from_probs(LABELS[case](), M), Predictions.from_probs(Y, M))


SPELLED = [NAMES[y] for y in Y]
NAMED = {
    "list": lambda: SPELLED,
    "array": lambda: np.array(SPELLED),
    "objects": lambda: np.array(SPELLED, object),
    "bytes": lambda: np.array(SPELLED, "S3"),
    "pandas": lambda: need("pandas").Series(SPELLED),
    "pandas strings": lambda: need("pandas").Series(SPELLED, dtype="string"),
    "pandas objects": lambda: need("pandas").Series(SPELLED, dtype=object),
    "pandas categories": lambda: need("pandas").Categorical(SPELLED, categories=["owl", "dog", "cat", "yak"]),
    "pandas category column": lambda: need("pandas").Series(SPELLED, dtype="category"),
    "polars": lambda: need("polars").Series(SPELLED),
    "polars categories": lambda: need("polars").Series(SPELLED, dtype=need("polars").Categorical),
    "polars enumeration": lambda: need("polars").Series(SPELLED, dtype=need("polars").Enum(NAMES[::-1])),
    "pyarrow": lambda: need("pyarrow").array(SPELLED),
    "pyarrow dictionary": lambda: need("pyarrow").array(SPELLED).dictionary_encode(),
    "pyarrow chunks": lambda: need("pyarrow").chunked_array([SPELLED[:1], SPELLED[1:]]),
}


@pytest.mark.parametrize("case", NAMED)
def test_labels_by_name_count_as_labels_by_index(case):
    made = Predictions.from_probs(NAMED[case](), M, classes=NAMES)
    assert_same(made, Predictions.from_probs(Y, M, classes=NAMES))
    assert list(cal.SCE(made).parts) == NAMES


def test_a_name_of_an_event_is_its_place_among_the_two_names():
    made = Predictions.from_probs(["yes", "no", "yes", "no"], P, classes=("no", "yes"))
    assert_same(made, Predictions.from_probs(E, P, classes=("no", "yes")))
    assert cal.ECE(made).value == cal.ECE(E, P).value


def test_a_missing_name_is_refused():
    pandas = need("pandas")
    for labels in (
        ["cat", None, "owl", "owl"],
        pandas.Series(["cat", None, "owl", "owl"]),
        pandas.Series(["cat", None, "owl", "owl"], dtype="string"),
        pandas.Categorical(["cat", None, "owl", "owl"]),
        need("polars").Series(["cat", None, "owl", "owl"]),
        need("pyarrow").array(["cat", None, "owl", "owl"]),
    ):
        error = refusal("y_true: must have no missing values", Predictions.from_probs, labels, M, classes=NAMES)
        assert error.where == "row 1"


def test_a_misspelled_name_is_told_the_closest_class():
    error = refusal(
        "y_true: must name one of the classes, got 'dgo' at row 1",
        Predictions.from_probs, ["cat", "dgo", "owl", "owl"], M, classes=NAMES,
    )  # fmt: skip
    assert error.hint == "did you mean 'dog'?"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["cat", "dog"], "classes: must be 3 names, got 2 of them"),
        (["cat", "dog", "dog"], "classes: must differ from each other, got 'dog' twice"),
        ("cat", "classes: must be a sequence of names, got 'cat'"),
        (3, "classes: must be a sequence of names"),
        ({"cat", "dog", "owl"}, "classes: must be a sequence of names"),
    ],
)
def test_class_names_are_a_sequence_with_one_name_a_column(names, message):
    refusal(message, Predictions.from_probs, Y, M, classes=names)


def test_an_event_has_two_class_names():
    refusal("classes: must be 2 names, got 3 of them", Predictions.from_probs, E, P, classes=NAMES)


def test_whole_numbers_that_name_the_classes_are_read_as_names():
    made = Predictions.from_probs([3, 7, 5, 7], M, classes=[3, 5, 7])
    assert made.labels.tolist() == Y
    assert made.classes == ("3", "5", "7")
    counted_from_one = Predictions.from_probs([1, 2, 2, 1], M, classes=np.array([1, 2, 3]))
    assert counted_from_one.labels.tolist() == [0, 1, 1, 0]


def test_whole_numbers_that_name_an_event_are_read_as_names():
    assert Predictions.from_probs([5, 3, 5, 3], P, classes=[3, 5]).labels.tolist() == E


def test_read_only_arrays_are_read_and_left_alone():
    forecasts, labels = np.array(M), np.array(Y)
    forecasts.setflags(write=False)
    labels.setflags(write=False)
    before = forecasts.copy()
    for metric in cal.RECIPES.values():
        if metric is not cal.TOP5_ECE:
            assert np.array_equal(metric(labels, forecasts).value, metric(Y, M).value, equal_nan=True)
    assert np.array_equal(forecasts, before)


@pytest.mark.parametrize("metric", [cal.ECE, cal.SCE, cal.FULL_ECE, cal.ACE, cal.BRIER])
def test_no_metric_writes_into_the_arrays_it_is_given(metric):
    forecasts, weight = np.array([[1.0000001, 0, 0], *M[1:]], np.float32), np.array([1.0, 2, 0, 1])
    before = forecasts.copy(), weight.copy()
    metric(Predictions.from_probs(Y, forecasts, sample_weight=weight))
    assert np.array_equal(forecasts, before[0])
    assert np.array_equal(weight, before[1])


# ---- precision and clipping ------------------------------------------------------------------------------------------

GRID = [k / 10 for k in range(11)]
ALTERNATING = [1, 0] * 5 + [1]


@pytest.mark.parametrize("make", [Predictions.from_probs, Predictions.from_confidence])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ">f4", ">f2"])
@pytest.mark.parametrize(("closed", "counts"), [("right", [2] + [1] * 9), ("left", [1] * 9 + [2])])
def test_decimals_of_every_precision_fall_into_the_same_bins(make, dtype, closed, counts):
    metric = cal.BinnedError(binning=cal.EqualWidth(10, closed))
    result = metric(make(ALTERNATING, np.array(GRID, dtype)))
    assert result.bins.counts[0].tolist() == counts
    plain = metric(make(ALTERNATING, GRID))
    assert result.value == pytest.approx(
        plain.value, abs=float(np.finfo(np.dtype(dtype)).eps)
    )  # the forecasts' own rounding


def test_half_precision_in_arrow_stays_half_precision():
    forecasts = need("pyarrow").array(np.array(P, np.float16))
    assert_same(Predictions.from_probs(E, forecasts), Predictions.from_probs(E, np.array(P, np.float16)))


def test_single_and_double_precision_agree():
    for metric in (cal.ECE, cal.SCE, cal.ACE, cal.FULL_ECE, cal.BRIER):
        single, double = metric(Y, np.array(M, np.float32)).value, metric(Y, M).value
        assert single == pytest.approx(double, abs=1e-7)  # the rounding of float32 decimals


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_a_rounding_outside_are_clipped_and_noted(dtype):
    made = Predictions.from_probs([1, 0, 1], np.array([1.0000001, -1e-7, 0.5], dtype))
    assert made.values.tolist() == [1.0, 0.0, 0.5]
    assert made.notes == ("2 rows were clipped: probabilities within 1e-6 of [0, 1]",)
    assert made.notes[0] in cal.ECE(made).notes
    assert cal.ECE(made).value == cal.ECE([1, 0, 1], np.array([1.0, 0.0, 0.5], dtype)).value


def test_rows_a_rounding_outside_are_clipped_and_noted():
    made = Predictions.from_probs([0, 1], [[1 + 5e-7, -5e-7], [0.5, 0.5]])
    assert made.values.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert made.notes == ("1 row was clipped: probabilities within 1e-6 of [0, 1]",)


def test_probabilities_inside_are_neither_clipped_nor_noted():
    assert Predictions.from_probs([1, 0], [1.0, 0.0]).notes == ()


def test_one_value_a_rounding_above_one_does_not_turn_probabilities_into_logits():
    forecasts = np.linspace(0.05, 1.0, 20)
    outcomes = [1, 0] * 10
    above = np.append(forecasts[:-1], 1.0000001)
    assert cal.ECE(outcomes, above).value == cal.ECE(outcomes, forecasts).value


def test_a_forecast_of_one_falls_in_the_last_bin():
    assert cal.ECE([1, 0], [0.95, 1.0]).value == pytest.approx(0.475, abs=1e-15)


def test_rows_may_sum_to_one_within_a_thousandth():
    assert cal.ECE([0, 1], [[0.9, 0.0995], [0.5, 0.5]]).value == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logits_give_the_numbers_of_their_probabilities(dtype):
    made = Predictions.from_logits(Y, (np.log(M) + 3).astype(dtype))
    tolerance = 1e-12 if dtype == np.float64 else 1e-6  # the rounding of float32 logits
    assert made.probabilities == pytest.approx(np.array(M), abs=tolerance)
    for metric in (cal.ECE, cal.SCE, cal.BRIER, cal.LOG_LOSS):
        assert metric(made).value == pytest.approx(metric(Y, M).value, abs=tolerance)


def test_logits_of_an_event_go_through_the_sigmoid():
    made = Predictions.from_logits(E, [math.log(p / (1 - p)) for p in P])
    assert made.probabilities == pytest.approx(np.array(P), abs=1e-12)
    assert cal.ECE(made).value == pytest.approx(cal.ECE(E, P).value, abs=1e-12)


@pytest.mark.parametrize("size", [1e4, 1e30, 1e308])
def test_logits_of_any_finite_size_are_taken_without_a_warning(size):
    made = Predictions.from_logits([0, 1], [[size, -size], [size, -size]])
    assert made.probabilities.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert cal.ECE(made).value == 0.5
    assert Predictions.from_logits([0, 1], [size, -size]).probabilities.tolist() == [1.0, 0.0]


# ---- soft labels -----------------------------------------------------------------------------------------------------

SOFT = [[0.8, 0.1, 0.1], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]]


def test_soft_labels_count_by_their_mass_on_the_predicted_class():
    metric = cal.BinnedError(binning=cal.EqualWidth(1))
    result = metric(SOFT, M)
    assert result.value == pytest.approx(abs((0.7 + 0.6 + 0.5 + 0.4) - (0.8 + 0.5 + 1.0 + 0.6)) / 4, abs=1e-15)
    for labels in (np.array(SOFT, order="F"), np.array(SOFT, ">f8"), np.array(SOFT)[::-1][::-1]):
        assert metric(labels, M).value == result.value


def test_soft_outcomes_of_an_event_are_averaged():
    made = Predictions.from_probs([0.5, 1, 0, 0.25], P)
    assert made.labels is None
    assert made.soft.tolist() == [0.5, 1, 0, 0.25]
    assert cal.BinnedError(binning=cal.EqualWidth(1))(made).value == pytest.approx((2.2 - 1.75) / 4, abs=1e-15)


@pytest.mark.parametrize(
    "metric",
    [cal.WSECE, cal.CWMCS, cal.ECE_DEBIASED, cal.BinnedError(select=cal.label_in(0))],
    ids=["wsECE", "cwMCS", "debiased", "label_in"],
)
def test_what_needs_one_true_class_refuses_soft_labels(metric):
    refusal("needs one true class per row, got soft labels", metric, SOFT, M)


# ---- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in cal.RECIPES if name != "TOP5_ECE"])
def test_whole_weights_are_repetition_to_the_bit(name):
    weight = [3, 1, 0, 2]
    weighted = cal.RECIPES[name](Predictions.from_probs(Y, M, sample_weight=weight))
    repeated = cal.RECIPES[name](np.repeat(Y, weight), np.repeat(M, weight, axis=0))
    assert np.array_equal(weighted.value, repeated.value, equal_nan=True)


WEIGHTS = {
    "tuple": lambda: (3, 1, 0, 2),
    "booleans": lambda: [True, True, False, True],
    "half precision": lambda: np.array([3, 1, 0, 2], np.float16),
    "big-endian": lambda: np.array([3, 1, 0, 2], ">f4"),
    "column": lambda: np.array([[3], [1], [0], [2]]),
    "pandas": lambda: need("pandas").Series([3, 1, 0, 2]),
    "polars": lambda: need("polars").Series([3, 1, 0, 2]),
    "pyarrow": lambda: need("pyarrow").array([3, 1, 0, 2]),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_of_any_kind_count_as_their_plain_copy(case):
    weight = WEIGHTS[case]()
    made = Predictions.from_probs(Y, M, sample_weight=weight)
    plain = [1, 1, 0, 1] if case == "booleans" else [3, 1, 0, 2]
    assert made.weight.tolist() == plain
    assert cal.ECE(made).value == cal.ECE(Predictions.from_probs(Y, M, sample_weight=plain)).value


@pytest.mark.parametrize("door", ["from_probs", "from_logits", "from_confidence"])
def test_every_door_takes_weights_and_columns(door):
    made = DOORS[door](E, P, sample_weight=[1, 2, 3, 4], region=list("nnss"))
    assert made.weight.tolist() == [1, 2, 3, 4]
    assert made.columns["region"].tolist() == list("nnss")


# ---- sample columns --------------------------------------------------------------------------------------------------

COLUMNS = {
    "list": lambda: ["n", "n", "s", "s"],
    "objects": lambda: np.array(["n", "n", "s", "s"], object),
    "pandas": lambda: need("pandas").Series(["n", "n", "s", "s"], index=[3, 2, 1, 0]),
    "pandas categories": lambda: need("pandas").Categorical(["n", "n", "s", "s"]),
    "polars": lambda: need("polars").Series(["n", "n", "s", "s"]),
    "pyarrow": lambda: need("pyarrow").chunked_array([["n"], ["n", "s", "s"]]),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_sample_column_of_any_kind_selects_its_rows(case):
    made = Predictions.from_probs(E, P, region=COLUMNS[case](), age=[30, 40, 30, 50])
    assert cal.where(region="s")(made).tolist() == [False, False, True, True]
    assert cal.where(age=30, region="n")(made).tolist() == [True, False, False, False]
    assert list(cal.table(made, {"ece": cal.ECE}, by="region").results) == ["all", "n", "s"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1, 2, 3], r"region: must have one value per sample \(4\), got shape \(3,\)"),
        (np.zeros((4, 2)), r"region: must have one value per sample \(4\), got shape \(4, 2\)"),
        (np.zeros((2, 2)), r"region: must have one value per sample \(4\), got shape \(2, 2\)"),
        ("north", "region: must be an array"),
        ([1, None, 2, 3], "region: must have no missing values, got None at row 1"),
        (["a", None, "b", "c"], "region: must have no missing values, got None at row 1"),
        ([[1], [2, 3], [4], [5]], "region: must be a rectangular array"),
        ((i for i in range(4)), "region: must be an array, got a generator"),
    ],
)
def test_a_sample_column_has_one_value_a_row(column, message):
    assert refusal(message, Predictions.from_probs, E, P, region=column).parameter == "region"


def test_a_misspelled_keyword_is_taken_for_a_column_and_told_so():
    error = refusal("ignore_indx: ", Predictions.from_probs, E, P, ignore_indx=255)
    assert "sample columns" in error.hint


def test_an_unknown_column_is_told_the_closest_one():
    made = Predictions.from_probs(E, P, region=list("nnss"))
    assert refusal("column: is unknown, got 'regoin'", made.column, "regoin").hint == "did you mean 'region'?"


def test_confidences_may_have_columns_of_the_names_of_other_parameters():
    made = Predictions.from_confidence(E, P, y_true=[1, 2, 3, 4], logits=list("abcd"))
    assert made.columns["y_true"].tolist() == [1, 2, 3, 4]
    assert made.columns["logits"].tolist() == list("abcd")


@pytest.mark.parametrize("option", ["classes", "class_axis", "normalize"])
def test_an_option_that_confidences_do_not_have_is_never_a_column(option):
    refusal(f"{option}: is no option of confidence", Predictions.from_confidence, E, P, **{option: list("abcd")})


# ---- ignored labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ignore", [-1, 255, -100])
@pytest.mark.parametrize("door", ["from_probs", "from_logits"])
def test_rows_with_the_ignored_label_are_left_out_and_noted(door, ignore):
    labels = [0, ignore, 1, ignore]
    made = DOORS[door](labels, M, ignore_index=ignore, sample_weight=[1, 2, 3, 4], region=list("abcd"))
    plain = DOORS[door]([0, 1], [M[0], M[2]], sample_weight=[1, 3], region=["a", "c"])
    assert len(made) == 2
    assert made.weight.tolist() == [1, 3]
    assert made.columns["region"].tolist() == ["a", "c"]
    assert cal.ECE(made).value == cal.ECE(plain).value
    assert made.notes == (f"2 rows were left out: label {ignore}",)


def test_an_event_may_ignore_a_label():
    made = Predictions.from_probs([1, 255, 1, 0], P, ignore_index=255)
    assert made.values.tolist() == [0.9, 0.7, 0.4]
    assert made.labels.tolist() == [1, 1, 0]


def test_an_ignored_label_that_does_not_occur_changes_nothing():
    assert_same(Predictions.from_probs(Y, M, ignore_index=-1), Predictions.from_probs(Y, M))


def test_a_class_may_be_ignored():
    assert Predictions.from_probs(Y, M, ignore_index=2).labels.tolist() == [0, 1]


def test_labels_that_are_all_ignored_are_refused():
    refusal("y_true: has no row left, got only label -1", Predictions.from_probs, [-1] * 4, M, ignore_index=-1)


def test_other_wrong_labels_are_still_refused_beside_ignored_ones():
    error = refusal(r"must lie in 0\.\.2, got 7", Predictions.from_probs, [0, -1, 7, 1], M, ignore_index=-1)
    assert error.where == "row 2"


def test_weights_that_are_all_on_ignored_rows_are_refused():
    refusal(
        "sample_weight: must sum to more than 0",
        Predictions.from_probs, [0, -1, 1, 2], M, ignore_index=-1, sample_weight=[0, 1, 0, 0],
    )  # fmt: skip


# ---- maps ------------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(20)
LAST = RNG.dirichlet(np.ones(3), (2, 4, 5))
FIRST = np.moveaxis(LAST, -1, 1)
PIXELS = RNG.integers(0, 3, (2, 4, 5))
PLAIN = Predictions.from_probs(PIXELS.ravel(), LAST.reshape(-1, 3))


@pytest.mark.parametrize(("maps", "axis"), [(FIRST, 1), (FIRST, -3), (LAST, 3), (LAST, -1)])
def test_maps_count_as_their_pixels_wherever_the_class_axis_is(maps, axis):
    assert_same(Predictions.from_probs(PIXELS, maps, class_axis=axis), PLAIN)
    assert_same(Predictions.from_probs(PIXELS.ravel(), maps, class_axis=axis), PLAIN)


def test_one_picture_and_a_transposed_matrix_are_maps_too():
    made = Predictions.from_probs(PIXELS[0], FIRST[0], class_axis=0)
    assert_same(made, Predictions.from_probs(PIXELS[0].ravel(), LAST[0].reshape(-1, 3)))
    assert_same(Predictions.from_probs(Y, np.transpose(M), class_axis=0), Predictions.from_probs(Y, M))


def test_maps_of_logits_count_as_their_pixels():
    made = Predictions.from_logits(PIXELS, np.log(FIRST), class_axis=1)
    plain = Predictions.from_logits(PIXELS.ravel(), np.log(LAST).reshape(-1, 3))
    assert np.array_equal(made.values, plain.values)
    assert cal.ECE(made).value == cal.ECE(plain).value


def test_maps_of_one_hot_and_of_soft_labels_have_the_classes_where_the_forecasts_have():
    one_hot = np.moveaxis(np.eye(3)[PIXELS], -1, 1)
    assert_same(Predictions.from_probs(one_hot, FIRST, class_axis=1), PLAIN)
    soft = Predictions.from_probs(FIRST, FIRST, class_axis=1)
    assert np.array_equal(soft.soft, LAST.reshape(-1, 3))
    assert cal.SCE(soft).value == 0


def test_maps_of_names_count_as_maps_of_indices():
    made = Predictions.from_probs(np.array(NAMES)[PIXELS], FIRST, class_axis=1, classes=NAMES)
    assert np.array_equal(made.labels, PLAIN.labels)


def test_volumes_are_maps_too():
    volumes = RNG.dirichlet(np.ones(2), (2, 3, 4, 5))
    labels = RNG.integers(0, 2, (2, 3, 4, 5))
    made = Predictions.from_probs(labels, np.moveaxis(volumes, -1, 1), class_axis=1)
    assert_same(made, Predictions.from_probs(labels.ravel(), volumes.reshape(-1, 2)))


def test_a_column_has_a_value_for_every_picture_or_for_every_pixel():
    made = Predictions.from_probs(
        PIXELS, FIRST, class_axis=1, site=["a", "b"], depth=PIXELS * 10, place=np.arange(40), sample_weight=[1, 3]
    )
    assert made.columns["site"].tolist() == ["a"] * 20 + ["b"] * 20
    assert made.columns["depth"].tolist() == (PIXELS * 10).ravel().tolist()
    assert made.columns["place"].tolist() == list(range(40))
    assert made.weight.tolist() == [1] * 20 + [3] * 20
    first = cal.ECE(made[cal.where(site="a")(made)])
    assert first.value == cal.ECE(PIXELS[0].ravel(), LAST[0].reshape(-1, 3)).value


@pytest.mark.parametrize("shape", [(3,), (2, 5, 4), (5, 4, 2), (8, 5), (2, 20), (2, 4)])
@pytest.mark.parametrize("name", ["site", "sample_weight"])
def test_a_column_of_maps_in_any_other_shape_is_refused(name, shape):
    error = refusal(
        f"{name}: must have one value per sample", Predictions.from_probs,
        PIXELS, FIRST, class_axis=1, **{name: np.ones(shape)},
    )  # fmt: skip
    assert error.got == f"shape {shape}"


def test_ignored_pixels_are_left_out_of_maps_and_their_columns():
    labels = np.where(PIXELS == 2, 255, PIXELS)
    made = Predictions.from_probs(labels, FIRST, class_axis=1, ignore_index=255, site=["a", "b"])
    kept = PIXELS.ravel() != 2
    assert cal.ECE(made).value == cal.ECE(PLAIN[kept]).value
    assert made.columns["site"].tolist() == np.repeat(["a", "b"], 20)[kept].tolist()


@pytest.mark.parametrize("labels", [PIXELS[:1], PIXELS.transpose(0, 2, 1), PIXELS[:, :3], PIXELS.ravel()[:-1]])
def test_labels_of_another_shape_than_the_maps_are_refused_by_the_shape_that_was_given(labels):
    error = refusal("y_true: must match", Predictions.from_probs, labels, FIRST, class_axis=1)
    assert "(2, 3, 4, 5)" in error.expected
    assert error.got == f"shape {labels.shape}"


def test_the_wrong_class_axis_is_noticed_by_the_sums():
    square = np.moveaxis(RNG.dirichlet(np.ones(4), (2, 4, 4)), -1, 1)
    labels = RNG.integers(0, 4, (2, 4, 4))
    assert len(Predictions.from_probs(labels, square, class_axis=1)) == 32
    refusal("y_proba: rows must sum to 1", Predictions.from_probs, labels, square, class_axis=2)


@pytest.mark.parametrize("door", ["from_probs", "from_logits"])
def test_a_bad_value_in_a_map_is_named_by_its_place_in_the_map(door):
    maps = FIRST.copy()
    maps[1, 0, 3, 2] = np.nan
    error = refusal("must be finite, got nan", DOORS[door], PIXELS, maps, class_axis=1)
    assert error.where == "index (1, 0, 3, 2)"


# ---- one sample, one class, no sample --------------------------------------------------------------------------------

ONE = {
    "ECE": 0.4, "MCE": 0.4, "RMSCE": 0.4, "ADAPTIVE_ECE": 0.4, "ECE_SWEEP": 0.4, "ECE_DEBIASED": 0.0, "ECE_LB": 0.4,
    "SCE": 0.16, "ACE": 0.16, "TACE": 0.16, "CWECE": 0.4, "WSECE": 0.4, "MSECE": 0.4, "CECE": 0.4, "MCS": -0.4,
    "CWMCS": -0.4, "WSMCS": -0.4, "FULL_ECE": 0.4, "TOP5_ECE": 0.4, "BRIER": 0.2, "LOG_LOSS": -math.log(0.6),
    "ACCURACY": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("n", [1, 3])
def test_one_sample_and_one_class_are_enough(name, n):
    result = cal.RECIPES[name]([1] * n, [[0.1, 0.6, 0.1, 0.1, 0.1]] * n)
    assert result.value == pytest.approx(ONE[name], abs=1e-12)
    assert result.n == n


EVENT = {
    "ECE": 0.1, "MCE": 0.1, "RMSCE": 0.1, "ADAPTIVE_ECE": 0.1, "ECE_SWEEP": 0.1, "ECE_DEBIASED": 0.0, "ECE_LB": 0.1,
    "MCS": -0.1, "FULL_ECE": 0.1, "BRIER": 0.01, "LOG_LOSS": -math.log(0.9),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENT)
@pytest.mark.parametrize("make", [Predictions.from_probs, Predictions.from_confidence])
def test_one_forecast_of_an_event_is_enough(name, make):
    assert cal.RECIPES[name](make([1], [0.9])).value == pytest.approx(EVENT[name], abs=1e-12)


@pytest.mark.parametrize("name", cal.RECIPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_an_empty_selection_is_nan_with_a_note(name, weighted):
    made = Predictions.from_probs(
        [0, 1, 2], np.full((3, 5), 0.2), region=list("abc"), sample_weight=[1, 2, 1] if weighted else None
    )
    none = made[np.zeros(3, bool)]
    assert len(none) == 0
    assert none.columns["region"].shape == (0,)
    result = cal.RECIPES[name](none)
    assert math.isnan(result.value)
    assert result.n == 0
    assert "no samples: the selection is empty" in result.notes


@pytest.mark.parametrize("name", EVENT)
def test_an_empty_selection_of_an_event_is_nan_with_a_note(name):
    for rows in ([], slice(0, 0), np.zeros(4, bool), np.zeros(0, int)):
        result = cal.RECIPES[name](Predictions.from_probs(E, P)[rows])
        assert math.isnan(result.value)
        assert "no samples: the selection is empty" in result.notes


def test_a_selection_inside_a_metric_may_be_empty():
    result = dataclasses.replace(cal.ECE, select=cal.label_in(0) & ~cal.label_in(0))(Y, M)
    assert math.isnan(result.value)
    assert result.n == 0


@pytest.mark.parametrize(
    "rows",
    [slice(1, 3), [1, 2], np.array([1, 2]), np.array([False, True, True, False]), [False, True, True, False]],
    ids=["slice", "list", "indices", "mask", "list mask"],
)
def test_some_of_the_rows_count_as_predictions_of_those_rows(rows):
    made = Predictions.from_probs(Y, M, region=list("abcd"), sample_weight=[1, 2, 3, 4], classes=NAMES)[rows]
    assert_same(made, Predictions.from_probs(Y[1:3], M[1:3], sample_weight=[2, 3], classes=NAMES))
    assert made.weight.tolist() == [2, 3]
    assert made.columns["region"].tolist() == ["b", "c"]


def test_one_row_by_its_number_is_a_prediction_of_one_row():
    made = Predictions.from_probs(Y, M, sample_weight=[1, 2, 3, 4])[2]
    assert len(made) == 1
    assert cal.ECE(made).value == cal.ECE([Y[2]], [M[2]]).value


def test_a_mask_of_another_length_is_an_error():
    with pytest.raises((IndexError, CalibrationInputError)):
        Predictions.from_probs(Y, M)[np.array([True, False])]


# ---- size ------------------------------------------------------------------------------------------------------------


def peak_of(call, *arguments, **keywords):
    """The most memory, in bytes, that a call needs at any time."""
    tracemalloc.start()
    try:
        call(*arguments, **keywords)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [Predictions.from_probs, Predictions.from_logits])
def test_a_matrix_passes_the_door_without_a_copiedwhere_none_is_wanted(make):
    forecasts = np.full((100_000, 50), 0.02, np.float32)
    labels = np.zeros(100_000, int)
    assert np.shares_memory(make(labels, forecasts, copy=False).values, forecasts)
    assert peak_of(make, labels, forecasts, copy=False) < forecasts.nbytes


@pytest.mark.parametrize("copied", [True, False])
def test_the_likeliest_class_is_found_without_a_copy(copied):
    forecasts = np.full((100_000, 50), 0.02, np.float32)
    made = Predictions.from_probs(np.zeros(100_000, int), forecasts, copy=copied)
    assert peak_of(made.leaders, 1) < 0.5 * forecasts.nbytes


CONVERTED = {
    "as it is": lambda plain: plain,
    "Fortran order": np.asfortranarray,
    "big-endian": lambda plain: plain.astype(">f4"),
    "every other column": lambda plain: np.repeat(plain, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("case", CONVERTED)
def test_a_matrix_is_copied_once_at_most(case):
    forecasts = CONVERTED[case](np.full((100_000, 50), 0.02, np.float32))
    assert peak_of(Predictions.from_logits, np.zeros(100_000, int), forecasts) < 1.5 * forecasts.nbytes


def test_rows_that_are_left_out_are_not_copied():
    forecasts = np.full((20_000, 200), 0.02, np.float32)  # wide rows: what is known of each takes little beside it
    labels = np.repeat([0, -1], [5_000, 15_000])
    assert peak_of(Predictions.from_logits, labels, forecasts, ignore_index=-1) < 0.5 * forecasts.nbytes


# ---- what passed the door cannot change behind it --------------------------------------------------------------------


class Wrapped:
    """What has an array and gives it away."""

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        return self.held


OWNERS = {
    "array": lambda x: x,
    "view": lambda x: x[:],
    "read-only view": lambda x: np.broadcast_to(x, x.shape),
    "negative stride": lambda x: x[::-1],
    "masked without a mask": lambda x: np.ma.array(x, copy=False),
    "wrapped": Wrapped,
    "torch": lambda x: need("torch").from_numpy(x),
    "torch view": lambda x: need("torch").from_numpy(x)[:],
    "pandas": lambda x: need("pandas").Series(x, copy=False),
    "pandas frame": lambda x: need("pandas").DataFrame({"x": x}, copy=False)["x"],
    "pandas nullable": lambda x: need("pandas").arrays.FloatingArray(x, np.zeros(len(x), bool)),
    "polars": lambda x: need("polars").Series(x),
    "dask": lambda x: need("dask.array").from_array(x, chunks=-1),
    "list of arrays": list,
}
"""Ways to give an array away while keeping a hand on its memory."""


@pytest.mark.parametrize("door", ["from_probs", "from_logits", "from_confidence"])
@pytest.mark.parametrize("owner", [owner for owner in OWNERS if owner != "list of arrays"])
def test_arrays_that_are_overwritten_change_no_predictions(door, owner):
    give = OWNERS[owner]
    forecasts, outcomes, weight, age = np.array(P), np.array(E, float), np.array([1.0, 2, 3, 4]), np.array(P) * 100
    made = DOORS[door](give(outcomes), give(forecasts), sample_weight=give(weight), age=give(age))
    before = made.values.copy(), made.labels.copy(), made.weight.copy(), made.column("age").copy()
    ece = cal.ECE(made).value
    for given in (forecasts, outcomes, weight, age):
        given[:] = np.nan
    after = made.values, made.labels, made.weight, made.column("age")
    assert all(map(np.array_equal, after, before))
    assert cal.ECE(made).value == ece


@pytest.mark.parametrize(("labels", "forecasts"), [(E, P), (Y, M)], ids=["event", "classes"])
def test_whole_labels_that_are_overwritten_change_no_predictions(labels, forecasts):
    labels = np.array(labels, np.int64)
    made, shared = (Predictions.from_probs(labels, forecasts, copy=copied) for copied in (True, False))
    before = made.labels.copy()
    assert np.shares_memory(shared.labels, labels)
    assert not shared.labels.flags.writeable
    labels[:] = 1 - labels
    assert np.array_equal(made.labels, before)


@pytest.mark.parametrize("door", ["from_probs", "from_logits"])
@pytest.mark.parametrize("owner", ["array", "read-only view", "wrapped", "torch", "polars", "list of arrays"])
def test_matrices_that_are_overwritten_change_no_predictions(door, owner):
    forecasts, soft = np.array(M), np.array(SOFT)
    made = DOORS[door](OWNERS[owner](soft), OWNERS[owner](forecasts))
    forecasts[:], soft[:] = np.nan, np.nan
    assert np.array_equal(made.values, M)
    assert np.array_equal(made.soft, SOFT)


def test_maps_that_are_overwritten_change_no_predictions():
    maps, depth = LAST.copy(), PIXELS.copy()
    made = Predictions.from_probs(PIXELS, maps, class_axis=-1, depth=depth)
    maps[:], depth[:] = np.nan, -1
    assert np.array_equal(made.values, LAST.reshape(-1, 3))
    assert np.array_equal(made.column("depth"), PIXELS.ravel())


def test_names_that_are_overwritten_change_no_predictions():
    region, animals = np.array(["n", "n", "s", "s"]), np.array(NAMES)
    made = Predictions.from_probs(Y, M, classes=animals, region=region)
    region[:], animals[:] = "x", "x"
    assert made.column("region").tolist() == ["n", "n", "s", "s"]
    assert made.classes == tuple(NAMES)


@pytest.mark.parametrize("give", [lambda x: x, memoryview])
def test_an_array_of_the_standard_library_that_is_overwritten_changes_no_predictions(give):
    forecasts = array.array("d", P)
    made = Predictions.from_probs(E, give(forecasts))
    forecasts[0] = math.nan
    assert made.values.tolist() == P


@pytest.mark.parametrize("door", ["from_probs", "from_logits"])
def test_a_buffer_may_be_used_again_for_every_batch(door):
    forecasts, labels, weight = np.empty((2, 3)), np.empty(2, int), np.empty(2)
    batches = []
    for start in (0, 2):
        forecasts[:], labels[:], weight[:] = M[start : start + 2], Y[start : start + 2], [start + 1, start + 2]
        batches.append(DOORS[door](labels, forecasts, sample_weight=weight))
    whole = cal.ECE(DOORS[door](Y, M, sample_weight=[1, 2, 3, 4]))
    assert cal.ECE.conclude(sum(cal.ECE.summarise(batch) for batch in batches)).value == whole.value


def test_without_a_copiedpredictions_change_with_the_arrays_that_were_given():
    forecasts, age = np.array(P), np.array([30, 40, 30, 50])
    made = Predictions.from_probs(E, forecasts, age=age, copy=False)
    forecasts[0], age[0] = 0.5, 20
    assert made.values[0] == 0.5
    assert made.column("age")[0] == 20


@pytest.mark.parametrize("door", ["from_probs", "from_logits", "from_confidence"])
def test_whether_to_copiedis_yes_or_no(door):
    error = refusal("copy: must be True or False, got list", DOORS[door], E, P, copy=[1, 2, 3, 4])
    assert error.hint == "a sample column needs another name"


def test_metrics_and_pictures_of_bare_arrays_copy_nothing():
    class Door(cal.Metric):
        def summarise(self, predictions):
            return predictions

        def conclude(self, summary):
            return summary

    forecasts = np.array(M)
    assert np.shares_memory(Door()(Y, forecasts).values, forecasts)
    assert np.shares_memory(checked(Y, forecasts, {}, checked).values, forecasts)  # what pictures take, too


def arrays_of(made):
    every = (made.values, made.labels, made.soft, made.weight, made.confidence, *made.columns.values())
    return [part for part in every if part is not None]


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("door", ["from_probs", "from_logits", "from_confidence"])
@pytest.mark.parametrize(
    "part",
    [
        lambda made: made,
        lambda made: made[1:],
        lambda made: made[np.array(E, bool)],
        lambda made: made[[0, 2]],
        lambda made: dataclasses.replace(made, weight=np.ones(4), columns={"age": np.ones(4)}),
        lambda made: pickle.loads(pickle.dumps(made)),
        copy.copy,
        copy.deepcopy,
    ],
    ids=["whole", "slice", "mask", "indices", "replaced", "pickled", "copied", "deeply copied"],
)
def test_what_predictions_hold_is_read_only(part, door, copied):
    for truth in (E, np.array(E), [0.5, 0.25, 1, 0]):
        made = part(DOORS[door](truth, np.array(P), sample_weight=np.array(P), age=np.array(P), copy=copied))
        for held in arrays_of(made):
            with pytest.raises(ValueError, match="read-only"):
                held[0] = 1
        with pytest.raises(TypeError):
            made.columns["age"] = np.zeros(len(made))


def test_what_is_remembered_of_rows_of_classes_is_read_only():
    made = Predictions.from_probs(Y, np.array(M))
    for held in (made.values, made.labels, made.confidence, made.predicted, made.leaders(1)):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 0


def test_predictions_arrive_as_they_were_in_another_process():
    made = Predictions.from_probs(Y, M, classes=NAMES, sample_weight=[1, 2, 3, 4], region=list("nnss"))
    arrived = pickle.loads(pickle.dumps(made))
    assert_same(arrived, made)
    assert arrived.weight.tolist() == [1, 2, 3, 4]
    assert arrived.columns["region"].tolist() == list("nnss")


@pytest.mark.parametrize("copied", [True, False])
def test_arrays_that_were_given_can_still_be_written_to(copied):
    forecasts, labels, weight, age = np.array(P), np.array(E), np.array(P), np.array(P)
    made = Predictions.from_probs(labels, forecasts, sample_weight=weight, age=age, copy=copied)
    cal.ECE(made)
    cal.ECE(labels, forecasts, sample_weight=weight)
    dataclasses.replace(made, forecasts=dataclasses.replace(made.forecasts, values=forecasts))
    assert all(given.flags.writeable for given in (forecasts, labels, weight, age))


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_maps_are_not_copied(tmp_path, mode):
    np.save(tmp_path / "forecasts.npy", np.array(M))
    forecasts = np.load(tmp_path / "forecasts.npy", mmap_mode=mode)
    for given in (forecasts, forecasts[1:], np.asarray(forecasts), forecasts.view(np.ndarray)[:2]):
        made = Predictions.from_probs(Y[: len(given)], given, first=given[:, 0])
        assert np.shares_memory(made.values, forecasts)
        assert np.shares_memory(made.column("first"), forecasts)
        assert not made.values.flags.writeable


def test_what_is_no_memory_map_any_more_is_copied(tmp_path):
    np.save(tmp_path / "forecasts.npy", np.array(M))
    forecasts = np.load(tmp_path / "forecasts.npy", mmap_mode="c").copy()
    made = Predictions.from_probs(Y, forecasts)
    forecasts[:] = np.nan
    assert np.array_equal(made.values, M)


def test_arrow_buffers_are_not_copied():
    arrow = need("pyarrow")
    given = arrow.array(P)
    made = Predictions.from_probs(E, given, age=given)
    assert np.shares_memory(made.values, given.to_numpy())
    assert np.shares_memory(made.column("age"), given.to_numpy())
    rows = arrow.array(M)
    assert np.shares_memory(Predictions.from_probs(Y, rows).values, rows.flatten().to_numpy())


def test_a_copiedof_forecasts_for_fitting_rows_is_still_recognised():
    labels = [0, 2, 1, 0]
    fitted = cal.TemperatureScaling().fit(np.log(M), labels)
    with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
        made = Predictions.from_probs(labels, fitted.predict_proba(np.log(M)))
    for again in (made.values, made[:3].values):
        with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
            cal.ECE(labels[: len(again)], again)


# ---- masks -----------------------------------------------------------------------------------------------------------


def half_masked(values):
    return np.ma.array(values, mask=[0] * (len(values) - 1) + [1])


def of_objects(*rows):
    made = np.empty(len(rows), object)
    made[:] = rows
    return made


MASKED = {
    "array": half_masked,
    "entry of a list": lambda values: [*values[:-1], np.ma.masked],
    "entry of a tuple": lambda values: (*values[:-1], np.ma.masked),
    "entry of a queue": lambda values: collections.deque([*values[:-1], np.ma.masked]),
    "entry of objects": lambda values: of_objects(*values[:-1], np.ma.masked),
    "array of an entry each": lambda values: [np.ma.array([value], mask=[value == values[-1]]) for value in values],
    "wrapped": lambda values: Wrapped(half_masked(values)),
    "wrapped entry": lambda values: [*values[:-1], Wrapped(np.ma.masked)],
    "pandas": lambda values: need("pandas").Series(of_objects(*values[:-1], np.ma.masked), dtype=object),
    "dask": lambda values: need("dask.array").ma.masked_array(values, mask=half_masked(values).mask, chunks=2),
    "dask without saying so": lambda values: need("dask.array").from_array(half_masked(values), chunks=2),
    "records": lambda values: half_masked(np.array([(value,) for value in values], [("x", float)])),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", MASKED)
def test_masked_entries_are_refused_wherever_they_hide(door, case):
    error = refusal("must have no masked entries, got 1 of them", DOORS[door], E, MASKED[case](P))
    assert error.parameter == FORECAST[door]
    assert refusal("no masked entries", DOORS[door], MASKED[case](E), P).parameter == TRUTH[door]
    assert refusal("no masked entries", DOORS[door], E, P, sample_weight=MASKED[case](P)).parameter == "sample_weight"
    if door != "ECE":
        assert refusal("no masked entries", DOORS[door], E, P, age=MASKED[case](P)).parameter == "age"


@pytest.mark.parametrize("door", OF_CLASSES)
@pytest.mark.parametrize(
    "inside", [list, tuple, lambda rows: of_objects(*rows), lambda rows: [Wrapped(r) for r in rows]]
)
def test_masked_rows_are_refused_wherever_they_hide(door, inside):
    rows = [half_masked(row) for row in M]
    refusal("y_proba|logits: must have no masked entries, got 4 of them", DOORS[door], Y, inside(rows))
    refusal("y_true: must have no masked entries, got 4 of them", DOORS[door], inside(rows), M)


def test_masked_names_of_classes_are_refused():
    for classes in (half_masked(NAMES), [*NAMES[:2], np.ma.masked]):
        refusal("classes: must have no masked entries", Predictions.from_probs, Y, M, classes=classes)


def test_a_list_that_holds_itself_is_refused():
    forecasts = [0.5, 0.5]
    forecasts.append(forecasts)
    refusal("y_proba: must be a rectangular array", Predictions.from_probs, E, forecasts)


@pytest.mark.parametrize("wrap", [list, Wrapped, lambda rows: need("dask.array").from_array(rows, chunks=2)])
def test_masks_that_mask_nothing_are_no_matter(wrap):
    unmasked = np.ma.array(M, mask=np.zeros((4, 3), bool))
    assert_same(Predictions.from_probs(Y, wrap(unmasked)), Predictions.from_probs(Y, M))


# ---- torch -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_tensor_counts_as_its_array(torch, dtype):
    tensor = torch.tensor(M, dtype=getattr(torch, dtype))
    plain = Predictions.from_probs(Y, np.array(M, dtype))
    assert_same(Predictions.from_probs(torch.tensor(Y), tensor), plain)
    assert_same(Predictions.from_probs(torch.tensor(Y, dtype=torch.uint8), tensor.clone().requires_grad_()), plain)
    assert_same(Predictions.from_probs(torch.tensor(Y), torch.nn.Parameter(tensor)), plain)
    assert_same(Predictions.from_probs(torch.tensor(Y), tensor.T.contiguous().T), plain)


def test_a_tensor_with_gradients_is_left_as_it_was(torch):
    tensor = torch.tensor(M, requires_grad=True)
    cal.ECE(torch.tensor(Y), tensor)
    assert tensor.requires_grad
    assert tensor.grad is None


def test_tensors_of_an_event_count_as_their_arrays(torch):
    plain = Predictions.from_probs(E, np.array(P))
    forecasts = torch.tensor(P, dtype=torch.float64, requires_grad=True)
    assert_same(Predictions.from_probs(torch.tensor(E, dtype=torch.bool), forecasts), plain)
    assert_same(Predictions.from_probs(torch.tensor(E)[:, None], forecasts), plain)
    made = Predictions.from_probs(E, P, sample_weight=forecasts, region=torch.tensor(E))
    assert made.weight.tolist() == P
    assert made.columns["region"].tolist() == E


def test_lazily_negated_tensors_are_resolved(torch):
    negated = (
        torch.complex(torch.zeros(2, dtype=torch.float64), torch.tensor([2.0, -1.0], dtype=torch.float64)).conj().imag
    )
    assert negated.is_neg()
    assert Predictions.from_logits([0, 1], negated).values.tolist() == [-2.0, 1.0]


@pytest.mark.parametrize("make", [Predictions.from_probs, Predictions.from_confidence])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("closed", "counts"), [("right", [2] + [1] * 9), ("left", [1] * 9 + [2])])
def test_decimals_in_tensors_of_every_precision_fall_into_the_same_bins(torch, make, dtype, closed, counts):
    dtype = getattr(torch, dtype)
    forecasts = torch.tensor(GRID, dtype=torch.float64).to(dtype)
    metric = cal.BinnedError(binning=cal.EqualWidth(10, closed))
    result = metric(make(ALTERNATING, forecasts))
    assert result.bins.counts[0].tolist() == counts
    plain = metric(make(ALTERNATING, GRID)).value
    assert result.value == pytest.approx(plain, abs=torch.finfo(dtype).eps)  # the forecasts' own rounding


def test_rows_in_bfloat16_are_accepted_as_far_as_it_can_sum_to_one(torch):
    forecasts = torch.tensor(M, dtype=torch.float64).to(torch.bfloat16)
    made = Predictions.from_probs(Y, forecasts.requires_grad_())
    assert made.values.dtype == np.float32
    assert made.precision.bits == 8
    assert np.array_equal(made.values, forecasts.detach().float().numpy())
    assert cal.ECE(made).value == pytest.approx(cal.ECE(Y, M).value, abs=2**-8)  # the rounding of bfloat16
    refusal("rows must sum to 1", cal.ECE, [0], torch.tensor([[0.7, 0.2, 0.05]]).to(torch.bfloat16))


def test_logits_in_bfloat16_are_accepted(torch):
    logits = torch.tensor([[2.0, 0.5], [-1.0, 3.0]])
    made = Predictions.from_logits([0, 1], logits.to(torch.bfloat16))
    assert cal.ECE(made).value == cal.ECE(Predictions.from_logits([0, 1], logits)).value


def test_maps_of_tensors_count_as_their_pixels(torch):
    made = Predictions.from_probs(torch.tensor(PIXELS), torch.tensor(FIRST.copy()), class_axis=1, site=["a", "b"])
    assert_same(made, PLAIN)


@pytest.mark.parametrize("door", DOORS)
def test_tensors_that_are_no_plain_numbers_are_refused_at_every_door(torch, door):
    cases = {
        "must be dense": torch.eye(2).to_sparse(),
        "must be finite, got nan at row 1": torch.tensor([0.5, math.nan]),
        "must be an array": torch.tensor(0.5),
        "got dtype complex64": torch.tensor([0.5 + 0j, 0.5]),
        "must not be empty": torch.zeros(0),
    }
    for message, forecasts in cases.items():
        labels = torch.zeros(0) if forecasts.numel() == 0 else [0, 1]
        assert refusal(message, DOORS[door], labels, forecasts).parameter == FORECAST[door]


def test_tensors_that_hold_nothing_numpy_can_read_are_refused(torch):
    for forecasts in (
        torch.empty(2, device="meta"),
        torch.tensor([0.5, 0.25]).to(torch.float8_e4m3fn),
        [torch.tensor([0.5, 0.5], requires_grad=True)] * 2,
        [torch.tensor([0.5, 0.5], dtype=torch.bfloat16)] * 2,
    ):
        error = refusal("y_proba: ", cal.ECE, [0, 1], forecasts)
        assert error.got != "rows of different lengths"


def test_a_size_of_torch_is_read_as_the_tuple_it_is(torch):
    assert Predictions.from_probs(torch.Size([1, 0]), [0.9, 0.2]).labels.tolist() == [1, 0]


def test_a_tensor_on_a_device_counts_as_its_array(torch):
    if not torch.cuda.is_available():
        pytest.skip("no device")
    made = Predictions.from_probs(torch.tensor(Y, device="cuda"), torch.tensor(M, device="cuda", requires_grad=True))
    assert_same(made, Predictions.from_probs(Y, np.array(M, np.float32)))


# ---- missing values --------------------------------------------------------------------------------------------------

ABSENT = {
    "None": lambda values: [None, *values[1:]],
    "nan": lambda values: [math.nan, *values[1:]],
    "array": lambda values: np.array([math.nan, *values[1:]]),
    "objects": lambda values: np.array([math.nan, *values[1:]], object),
    "masked array": lambda values: np.ma.array(values, mask=[1, *[0] * (len(values) - 1)]),
    "masked entry": lambda values: [np.ma.masked, *values[1:]],
    "wrapped mask": lambda values: Wrapped(np.ma.array(values, mask=[1, *[0] * (len(values) - 1)])),
    "pandas": lambda values: need("pandas").Series([math.nan, *values[1:]]),
    "pandas NA": lambda values: need("pandas").Series([need("pandas").NA, *values[1:]], dtype="Float64"),
    "pandas objects": lambda values: need("pandas").Series([need("pandas").NaT, *values[1:]], dtype=object),
    "polars": lambda values: need("polars").Series([None, *values[1:]]),
    "pyarrow": lambda values: need("pyarrow").array([None, *values[1:]]),
    "pyarrow chunks": lambda values: need("pyarrow").chunked_array([[None, values[1]], values[2:]]),
    "torch": lambda values: need("torch").tensor([math.nan, *values[1:]], dtype=need("torch").float64),
}


@pytest.mark.parametrize("door", ["from_probs", "from_logits", "from_confidence"])
@pytest.mark.parametrize("case", ABSENT)
def test_missing_values_of_any_kind_are_refused_or_left_out_alike(door, case):
    make, absent = DOORS[door], ABSENT[case]
    rest = make(E[1:], P[1:], sample_weight=[2.0, 3.0, 4.0])
    weight = [1.0, 2.0, 3.0, 4.0]
    for truth, forecasts, weights in ((absent(E), P, weight), (E, absent(P), weight), (E, P, absent(weight))):
        refusal("missing|masked|finite", make, truth, forecasts, sample_weight=weights)
        made = make(truth, forecasts, sample_weight=weights, missing="drop")
        assert made.notes == ("1 row was left out: missing values",)
        assert np.array_equal(made.values, rest.values)
        assert np.array_equal(made.labels, rest.labels)
        assert np.array_equal(made.weight, rest.weight)


@pytest.mark.parametrize(
    "rows",
    [
        lambda: [[None, 0.2, 0.1], *M[1:]],
        lambda: [None, *M[1:]],
        lambda: np.array([[math.nan] * 3, *M[1:]]),
        lambda: np.ma.array(M, mask=[[0, 1, 0]] + [[0, 0, 0]] * 3),
        lambda: [np.ma.array(M[0], mask=[0, 0, 1]), *M[1:]],
        lambda: need("pandas").DataFrame([[None, 0.2, 0.1], *M[1:]]),
        lambda: need("pandas").DataFrame([[None, 0.2, 0.1], *M[1:]]).astype("Float64"),
        lambda: need("pandas").Series([None, *M[1:]]),
        lambda: need("polars").DataFrame([[None, 0.2, 0.1], *M[1:]], orient="row"),
        lambda: need("polars").Series([None, *M[1:]]),
        lambda: need("pyarrow").array([None, *M[1:]]),
        lambda: need("pyarrow").array([[None, 0.2, 0.1], *M[1:]]),
    ],
)
def test_rows_with_missing_forecasts_or_soft_labels_are_left_out(rows):
    refusal("missing|masked|finite|rectangular", Predictions.from_probs, Y, rows())
    made = Predictions.from_probs(Y, rows(), missing="drop", site=list("abcd"))
    assert np.array_equal(made.values, M[1:])
    assert made.labels.tolist() == Y[1:]
    assert made.columns["site"].tolist() == list("bcd")
    soft = Predictions.from_probs(rows(), M, missing="drop")
    assert np.array_equal(soft.soft, M[1:])


@pytest.mark.parametrize("absent", [None, math.nan, np.ma.masked])
def test_missing_names_are_left_out(absent):
    made = Predictions.from_probs(["owl", absent, "dog", "cat"], M, classes=NAMES, missing="drop")
    assert made.labels.tolist() == [2, 1, 0]
    longer = Predictions.from_probs(["a", absent, "b", "a"], M, classes=["elephant", "a", "b"], missing="drop")
    assert longer.labels.tolist() == [1, 2, 1]
    small = np.array([255, 1, 1, 1], np.uint8)
    assert Predictions.from_probs(small, P, classes=[300, 1], ignore_index=255).labels.tolist() == [1, 1, 1]
    assert Predictions.from_probs([absent, 1, 0, 2], M, missing="drop").labels.tolist() == [1, 0, 2]
    assert Predictions.from_probs([absent, 5, 3, 5], P, classes=[3, 5], missing="drop").labels.tolist() == [1, 0, 1]


def test_single_precision_with_missing_values_stays_single_precision():
    forecasts = np.array(P, np.float32)
    for data in (np.ma.array(forecasts, mask=[1, 0, 0, 0]), np.where([1, 0, 0, 0], np.float32(np.nan), forecasts)):
        made = Predictions.from_probs(E, data, missing="drop")
        plain = Predictions.from_probs(E[1:], forecasts[1:])
        assert made.values.dtype == np.float32
        assert made.precision == plain.precision
        assert np.array_equal(made.values, plain.values)


def test_what_is_left_out_for_missing_values_does_not_hide_other_errors():
    error = refusal(r"must lie in 0\.\.2, got 7", Predictions.from_probs, [0, None, 7, 1], M, missing="drop")
    assert error.where == "row 2"
    forecasts = np.array(P)
    forecasts[:2] = np.nan, np.inf
    refusal("must be finite, got inf at row 1", Predictions.from_probs, E, forecasts, missing="drop")
    refusal("must be finite, got inf at row 1", Predictions.from_logits, E, forecasts, missing="drop")
    refusal(
        "sample_weight: must be finite", Predictions.from_probs, E, P, missing="drop", sample_weight=[1, math.inf, 1, 1]
    )
    refusal("age: must have no missing values", Predictions.from_probs, E, P, missing="drop", age=[1, None, 1, 1])


def test_nothing_left_is_an_error():
    refusal("y_true: has no row left, got only missing values", Predictions.from_probs, [None] * 4, P, missing="drop")
    refusal("y_true: has no row left", Predictions.from_probs, E, [math.nan] * 4, missing="drop")
    refusal(
        "has no row left, got only missing values and label 1",
        Predictions.from_probs, [1, None, 1, 1], P, missing="drop", ignore_index=1,
    )  # fmt: skip


def test_missing_is_one_of_two_words():
    refusal('missing: must be "error" or "drop", got \'skip\'', Predictions.from_probs, E, P, missing="skip")


def test_a_refusal_of_missing_values_names_the_option():
    for truth, forecasts in (([None, 1], [0.5, 0.5]), ([0, 1], [None, 0.5]), ([0, 1], [math.nan, 0.5])):
        assert 'missing="drop"' in refusal("must", Predictions.from_probs, truth, forecasts).hint
    assert "missing" not in str(
        refusal("groups", cal.cross_fit, cal.TemperatureScaling(), P, E, groups=[None] * 4).hint
    )


def test_nothing_is_copied_to_look_for_missing_values_where_there_are_none():
    forecasts = np.array(M)
    made = Predictions.from_probs(Y, forecasts, missing="drop", copy=False)
    assert np.shares_memory(made.values, forecasts)
    assert made.notes == ()


# ---- maps of one event -----------------------------------------------------------------------------------------------

SHADES = np.random.default_rng(8).random((2, 4, 5))
MARKED = (np.random.default_rng(9).random((2, 4, 5)) < SHADES).astype(int)


@pytest.mark.parametrize("door", OF_CLASSES)
def test_maps_of_one_event_count_as_their_pixels(door):
    made, plain = DOORS[door](MARKED, SHADES), DOORS[door](MARKED.ravel(), SHADES.ravel())
    if door == "ECE":
        assert made.value == plain.value
    else:
        assert_same(made, plain)
        assert made.kind == "event"


def test_maps_of_one_event_have_ignored_pixels_columns_weights_and_soft_labels():
    labels = MARKED.copy()
    labels[0, 1] = 255
    made = Predictions.from_probs(labels, SHADES, ignore_index=255, site=["a", "b"], sample_weight=[1, 3])
    assert made.notes == ("5 rows were left out: label 255",)
    assert made.columns["site"].tolist() == ["a"] * 15 + ["b"] * 20
    assert made.weight.tolist() == [1.0] * 15 + [3.0] * 20
    depth = np.arange(40.0).reshape(2, 4, 5)
    made = Predictions.from_probs(SHADES, SHADES, depth=depth, sample_weight=depth + 1)
    assert np.array_equal(made.soft, SHADES.ravel())
    assert np.array_equal(made.columns["depth"], depth.ravel())
    assert np.array_equal(made.weight, depth.ravel() + 1)
    forecasts = SHADES.copy()
    forecasts[1, 2, 3] = np.nan
    error = refusal("y_proba: must be finite, got nan", Predictions.from_probs, MARKED, forecasts)
    assert error.where == "index (1, 2, 3)"
    assert len(Predictions.from_probs(MARKED, forecasts, missing="drop")) == 39


def test_maps_of_one_event_may_be_tensors():
    torch = need("torch")
    made = Predictions.from_probs(torch.tensor(MARKED), torch.tensor(SHADES))
    assert_same(made, Predictions.from_probs(MARKED.ravel(), SHADES.ravel()))


def test_maps_that_may_be_of_classes_are_refused_and_the_axis_is_named():
    one_hot = np.moveaxis(np.eye(3)[PIXELS], -1, 1)
    for truth in (one_hot, FIRST):
        for make in (Predictions.from_probs, Predictions.from_logits):
            error = refusal("must be of one event where .* got labels that sum to 1 along axis 1", make, truth, FIRST)
            assert "class_axis=1" in error.hint
        assert len(Predictions.from_probs(truth, FIRST, class_axis=1)) == PIXELS.size
    refusal(r"must be \(n,\) or \(n, K\)", Predictions.from_probs, MARKED.ravel(), SHADES)
    refusal("outcomes of an event must be 0 or 1, got 2", Predictions.from_probs, MARKED + 1, SHADES)
    named = Predictions.from_probs(np.where(MARKED, "tumour", "none"), SHADES, classes=["none", "tumour"])
    assert np.array_equal(named.labels, MARKED.ravel())


# ---- rows and columns of frames --------------------------------------------------------------------------------------

ROWS = ["r", "s", "t", "u"]


def series(values, index=None):
    return need("pandas").Series(values, index=index)


def frame(columns=None, index=None, values=M):
    return need("pandas").DataFrame(values, columns=columns, index=index)


def test_indexes_that_agree_and_rows_that_are_counted_are_taken_by_position():
    plain = Predictions.from_probs(Y, M)
    assert_same(Predictions.from_probs(series(Y, ROWS), frame(index=ROWS)), plain)
    assert_same(Predictions.from_probs(series(Y), frame(index=ROWS)), plain)
    assert_same(Predictions.from_probs(series(Y, ROWS), frame()), plain)
    assert_same(Predictions.from_probs(series(Y, [3, 1, 0, 2]), np.array(M)), plain)
    assert_same(
        Predictions.from_probs(series(Y, [7.0, math.nan, 1.0, 1.0]), frame(index=[7.0, math.nan, 1.0, 1.0])), plain
    )


@pytest.mark.parametrize("door", OF_CLASSES)
def test_the_same_rows_in_another_order_are_refused(door):
    error = refusal(
        f"y_true: must have the index of {FORECAST[door]}, got the same labels in another order: 's' where",
        DOORS[door], series(Y, ["s", "r", "t", "u"]), frame(index=ROWS),
    )  # fmt: skip
    assert error.where == "row 0"
    assert "to_numpy" in error.hint


def test_other_rows_are_refused_in_weights_and_columns_too():
    other = ["r", "s", "t", "x"]
    match = "must have the index of y_proba, got other labels: 'x' where y_proba has 'u' at row 3"
    refusal(f"y_true: {match}", Predictions.from_probs, series(Y, other), frame(index=ROWS))
    for name in ("sample_weight", "region"):
        refusal(f"{name}: {match}", Predictions.from_probs, Y, frame(index=ROWS), **{name: series([1.0] * 4, other)})
    refusal(
        "region: must have the index of y_true",
        Predictions.from_probs, series(Y, ROWS), M, region=series(list("abcd"), other),
    )  # fmt: skip
    shifted = series(E, range(1, 5))
    refusal("correct: must have the index of confidence", Predictions.from_confidence, shifted, series(P, ROWS))


FRAMES = {
    "pandas": lambda columns: frame(columns),
    "polars": lambda columns: need("polars").DataFrame(M, schema=columns, orient="row"),
    "pyarrow": lambda columns: need("pyarrow").table(np.transpose(M).tolist(), names=columns),
}


@pytest.mark.parametrize("case", FRAMES)
def test_names_of_columns_are_classes(case):
    made = Predictions.from_probs(["cat", "owl", "dog", "owl"], FRAMES[case](NAMES))
    assert_same(made, Predictions.from_probs(Y, M, classes=NAMES))
    assert_same(Predictions.from_probs(Y, FRAMES[case](NAMES), classes=NAMES), made)
    refusal("must name one of the classes, got 'cow'", Predictions.from_probs, ["cow"] * 4, FRAMES[case](NAMES))
    for classes in (["dog", "cat", "owl"], ["a", "b", "c"]):
        error = refusal(
            "classes: must be the columns of y_proba, in their order: cat, dog, owl, got " + ", ".join(classes),
            Predictions.from_probs, Y, FRAMES[case](NAMES), classes=classes,
        )  # fmt: skip
        assert "to_numpy" in error.hint
    digits = Predictions.from_probs([3, 7, 5, 7], FRAMES[case](["3", "5", "7"]))
    assert digits.labels.tolist() == Y
    assert digits.classes == ("3", "5", "7")
    assert Predictions.from_probs([3, 7, -1, 7], FRAMES[case](["3", "5", "7"]), ignore_index=-1).labels.tolist() == [
        0,
        2,
        2,
    ]


def test_numbers_of_columns_are_places_or_labels():
    assert Predictions.from_probs(Y, frame()).classes == ("0", "1", "2")
    assert Predictions.from_probs(Y, frame(["0", "1", "2"])).classes == ("0", "1", "2")
    assert Predictions.from_probs(Y, frame(), classes=NAMES).classes == tuple(NAMES)
    assert Predictions.from_probs([3, 7, 5, 7], frame([3, 5, 7])).labels.tolist() == Y
    assert Predictions.from_probs([2, 1, 0, 1], frame([2, 0, 1])).labels.tolist() == Y
    assert Predictions.from_probs(Y, frame([("a", 1), ("a", 2), ("b", 1)])).classes == ("0", "1", "2")
    assert Predictions.from_probs(Y, need("polars").DataFrame(np.array(M))).classes == ("0", "1", "2")


def test_columns_that_stand_twice_are_refused():
    refusal(
        "y_proba: must have each column once, got 'cat' twice", Predictions.from_probs, Y, frame(["cat", "dog", "cat"])
    )


def test_columns_of_soft_labels_are_those_of_the_forecasts():
    refusal(
        "y_true: must be the columns of y_proba, in their order: cat, dog, owl, got dog, cat, owl",
        Predictions.from_probs, frame(["dog", "cat", "owl"]), frame(NAMES),
    )  # fmt: skip
    assert np.array_equal(Predictions.from_probs(frame(NAMES), frame(NAMES)).soft, M)


def test_recalibrators_know_their_columns():
    logits = frame(NAMES, values=np.log(M))
    fitted = cal.TemperatureScaling().fit(logits, ["cat", "owl", "dog", "dog"])
    assert fitted.classes_.tolist() == NAMES
    assert np.array_equal(fitted.predict_proba(logits), fitted.predict_proba(np.log(M)))
    refusal("classes: must be the columns of X", fitted.predict_proba, logits[["dog", "cat", "owl"]])
    unnamed = cal.TemperatureScaling().fit(np.log(M), [0, 2, 1, 1])
    assert np.array_equal(unnamed.predict_proba(logits), unnamed.predict_proba(np.log(M)))
    refusal("y: must have the index of X", cal.TemperatureScaling().fit, frame(index=ROWS), series(Y, ROWS[::-1]))


def test_pandas_is_not_imported_to_look_at_arrays():
    import subprocess
    import sys

    program = "import sys, calibrant as cal; cal.ECE([1, 0], [.9, .2], missing='drop'); print('pandas' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


# ---- whatever comes --------------------------------------------------------------------------------------------------


def hostile(rng, shape, odd):
    """Something that someone might give: odd kinds, gaps and frames."""
    values = rng.choice([0, 1, 0.5, 2, -1, 255, np.nan, np.inf, 1e308] if odd else [0, 1, 0.5, np.nan], shape)
    gaps = rng.random(shape) < 0.3
    makers = [
        lambda: values,
        lambda: values.tolist(),
        lambda: np.ma.array(values, mask=gaps),
        lambda: np.where(gaps, None, values),
        lambda: np.where(gaps, "cat", "dog"),
        lambda: np.where(gaps, None, "dog"),
        lambda: [values.tolist(), None],
        lambda: need("pandas").DataFrame(values.reshape(shape[0] if shape else 1, -1) if values.size else []),
        lambda: need("pandas").Series(values.ravel(), index=rng.permutation(values.size)),
        lambda: need("polars").Series(values.ravel().tolist(), strict=False),
        lambda: need("pyarrow").array([None, *values.ravel().tolist()[1:]]),
        lambda: need("polars").DataFrame({"a": [0.5, None], "b": ["x", None]}),
        lambda: {"a": 1},
    ]
    return makers[rng.integers(0, len(makers) if odd else 4)]()


def ask_with_anything(seed):
    """Whether there was a number, for labels, forecasts and options drawn at random."""
    rng = np.random.default_rng(seed)
    odd = rng.random() < 0.5
    shape = tuple(rng.integers(0 if odd else 1, 4, rng.integers(0 if odd else 1, 4)))
    other = tuple(rng.integers(0, 4, rng.integers(0, 4))) if odd else shape[: rng.integers(1, 4)]
    options = {
        "missing": rng.choice(["error", "drop"]).item(),
        "class_axis": rng.choice([None, 0, 1, 2, -1, 9]) if odd else None,
        "normalize": bool(rng.random() < 0.3),
        "ignore_index": rng.choice([None, 255, 0, 0.5]),
        "sample_weight": hostile(rng, other, odd) if rng.random() < 0.2 else None,
        "classes": hostile(rng, other, odd) if rng.random() < 0.2 else None,
    }
    truth, forecasts = hostile(rng, other, odd), hostile(rng, shape, odd)
    doors = [Predictions.from_probs, Predictions.from_logits]
    doors += [lambda y, p, **options: cal.TemperatureScaling(input="probabilities").fit(p, y, **options)] if odd else []
    made = 0
    for door in doors:
        try:
            door(truth, forecasts, **options)
            made += 1
        except CalibrationInputError as error:
            assert str(error).isprintable()  # noqa: PT017 - most are refused, and some are not
    return made


def test_whatever_comes_there_is_a_number_or_one_clear_refusal():
    assert sum(map(ask_with_anything, range(1500))) > 100
