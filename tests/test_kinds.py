"""Kinds of forecasts: the likeliest classes alone, and independent labels, beside what the whole would say."""

import ast
import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant import CalibrationInputError, Predictions

SOURCE = Path(cal.__file__).parent
ANSWERED = ["ECE", "MCE", "RMSCE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "ECE_LB", "ECE_KDE", "SMECE", "MCS"]
ANSWERED += ["ACCURACY", "TOP5_ECE", "ECCE_MAD", "ECCE_R", "CWECE", "WSECE", "CWMCS", "WSMCS"]


def forecasts(n=400, classes=30, seed=0, dtype=np.float64, ties=False):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.2), n)
    if ties:
        p = np.full((n, classes), 0.0)
        p[:, :10] = rng.multinomial(20, np.full(10, 0.1), n) / 20
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, classes - 1), p.astype(dtype)


def shortlist(p, k, rng=None):
    ids = np.argsort(-p, axis=1, kind="stable")[:, :k]
    if rng is not None:
        ids = rng.permuted(ids, axis=1)
    return ids, np.take_along_axis(p, ids, axis=1)


def top_and_whole(k=8, shuffled=True, **options):
    y, p = forecasts(**options)
    ids, probs = shortlist(p, k, np.random.default_rng(1) if shuffled else None)
    group = np.arange(len(y)) % 3
    weight = np.arange(len(y)) % 4 + 1.0
    return (
        Predictions.from_top_k(y, ids, probs, n_classes=p.shape[1], sample_weight=weight, group=group),
        Predictions.from_probs(y, p, sample_weight=weight, group=group),
    )


@pytest.mark.parametrize("name", ANSWERED)
@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"ties": True}], ids=["float64", "float32", "ties"])
def test_the_likeliest_answer_as_the_whole_matrix_would(name, options):
    top, whole = top_and_whole(**options)
    metric = cal.RECIPES[name]
    assert metric(top).value == metric(whole).value
    assert np.array_equal(metric(top).values, metric(whole).values, equal_nan=True)
    assert str(metric(top)) == str(metric(whole))


@pytest.mark.parametrize(
    "lens", [cal.Ranked(3), cal.InTopK(8), cal.TopK(8), cal.ByPrediction(cal.TopLabel()), cal.ByLabel(cal.Ranked(2))]
)
def test_lenses_of_ranks_and_predictions_answer(lens):
    for seen in zip(*(np.broadcast_arrays(lens(p).outputs, lens(p).outputs) for p in top_and_whole()), strict=True):
        assert np.array_equal(*seen)
    top, whole = (lens(predictions) for predictions in top_and_whole())
    assert np.array_equal(top.targets, whole.targets)
    assert (top.about.names, top.about.question) == (whole.about.names, whole.about.question)


def test_selections_of_the_likeliest_are_those_of_the_whole():
    top, whole = top_and_whole()
    for select in (cal.label_in(3), cal.predicted_in(2, 4), cal.confidence_between(0.5, 0.9), cal.where(group=1)):
        assert np.array_equal(select(top), select(whole))
        assert cal.ECE.replace(select=select)(top).value == cal.ECE.replace(select=select)(whole).value


@pytest.mark.parametrize("name", ["SCE", "ACE", "TACE", "FULL_ECE", "BRIER", "LOG_LOSS", "SKCE"])
def test_what_needs_every_class_says_what_is_missing(name):
    top, _ = top_and_whole()
    with pytest.raises(CalibrationInputError, match=r"needs the probability of each of the 30 classes, got the 8 like"):
        cal.RECIPES[name](top)


@pytest.mark.parametrize("lens", [cal.Ranked(9), cal.TopK(9), cal.InTopK(9)])
def test_more_ranks_than_are_known_are_refused(lens):
    with pytest.raises(CalibrationInputError, match="needs the 9 likeliest, got 8"):
        lens(top_and_whole()[0])


def test_a_class_that_is_on_no_list_has_no_probability():
    top = Predictions.from_top_k([0, 1], [[0, 1], [1, 2]], [[0.6, 0.2], [0.5, 0.3]], n_classes=4)
    for asked in (cal.OneClass(3), cal.Groups({"a": [0, 1], "b": [2, 3]}), cal.Flat(), cal.Classwise()):
        with pytest.raises(CalibrationInputError, match="needs the probability of each of the 4 classes"):
            asked(top)
    with pytest.raises(CalibrationInputError, match="needs the probability of each of the 4 classes"):
        cal.output_between(0, 0.5, of=0)(top)


def test_intervals_and_nulls_of_the_likeliest_are_those_of_the_whole():
    top, whole = (dataclasses.replace(each, weight=None) for each in top_and_whole())
    ends = [cal.ECE(each, interval=cal.Bootstrap(50, seed=0)).interval for each in (top, whole)]
    assert ends[0] == ends[1]
    assert cal.consistency(cal.ECE, top, 50).values.tolist() == cal.consistency(cal.ECE, whole, 50).values.tolist()
    with pytest.raises(CalibrationInputError, match="needs every probability"):
        cal.consistency(cal.CWECE, top, 10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0], [[0, 0]], [[0.5, 0.2]]), "ids: must differ within a row"),
        (([0], [[0, 9]], [[0.5, 0.2]]), "ids: must lie in 0..4, got 9"),
        (([7], [[0, 1]], [[0.5, 0.2]]), "y_true: must lie in 0..4, got 7"),
        (([0], [[0, 1]], [[0.9, 0.2]]), "probs: rows must sum to at most 1"),
        (([0], [[0, 1]], [[0.5, -0.2]]), "probs: must lie in"),
        (([0], [[0, 1]], [0.5]), "ids: must be (n, k), like probs"),
        (([0], [[0, 1, 2]], [[0.5, 0.2]]), "ids: must be (n, k), like probs"),
        (([0], [[0, 1.5]], [[0.5, 0.2]]), "ids: must be whole class indices"),
        (([0, 1], [[0, 1]], [[0.5, 0.2]]), "y_true: must match probs"),
    ],
)
def test_shortlists_that_cannot_be_are_refused(arguments, words):
    with pytest.raises(CalibrationInputError) as refusal:
        Predictions.from_top_k(*arguments, n_classes=5)
    assert words in str(refusal.value)


def test_the_number_of_classes_is_asked_for():
    with pytest.raises(CalibrationInputError, match="n_classes: is required"):
        Predictions.from_top_k([0], [[0]], [[0.5]])
    with pytest.raises(CalibrationInputError, match=r"n_classes: must be a whole number of at least 2"):
        Predictions.from_top_k([0], [[0]], [[0.5]], n_classes=1)


def test_shortlists_go_by_name():
    names = ["ant", "bee", "cat", "dog"]
    by_name = Predictions.from_top_k(["cat", "ant"], [["dog", "cat"], ["ant", "bee"]], [[0.6, 0.3]] * 2, classes=names)
    by_index = Predictions.from_top_k([2, 0], [[3, 2], [0, 1]], [[0.6, 0.3]] * 2, n_classes=4)
    assert by_name.predicted.tolist() == by_index.predicted.tolist() == [3, 0]
    assert cal.MeanScore(cal.InTopK(2), cal.hit)(by_name).value == 1.0
    assert cal.label_in("cat")(by_name).tolist() == [True, False]


def labelled(n=300, labels=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, (n, labels)).astype(dtype)
    names = [f"label {index}" for index in range(labels)]
    y = (rng.random(p.shape) < p**1.3).astype(int)
    return y, p, Predictions.from_multilabel(y, p, classes=names, group=np.arange(n) % 2)


MEANS = ["ECE", "MCE", "RMSCE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "ECE_LB", "ECE_KDE", "SMECE", "MCS"]
MEANS += ["SCE", "ACE", "TACE", "BRIER", "LOG_LOSS", "ECCE_MAD", "FULL_ECE", "SKCE"]


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_independent_labels_are_answered_label_by_label(name, dtype):
    y, p, predictions = labelled(dtype=dtype)
    event = {"SCE": "ECE", "ACE": "ADAPTIVE_ECE"}.get(name, name)
    metric = cal.TACE.replace(lens=cal.Above(cal.TopLabel(), 0.01)) if name == "TACE" else cal.RECIPES[event]
    result, alone = cal.RECIPES[name](predictions), [metric(y[:, k], p[:, k]).value for k in range(5)]
    assert list(result.values) == (alone if name != "ECE_SWEEP" else pytest.approx(alone, rel=1e-15))  # it is padded
    assert result.value == pytest.approx(np.mean(alone), rel=1e-14)
    assert list(result.parts) == [f"label {index}" for index in range(5)]
    assert result.question.startswith("every label")
    assert "mean of" in str(result)


@pytest.mark.parametrize(
    "metric",
    [cal.CWECE, cal.ACCURACY, cal.TOP5_ECE, cal.ECE.replace(lens=cal.ByPrediction(cal.TopLabel()))],
    ids=lambda metric: metric.name,
)
def test_labels_of_which_any_may_be_true_have_no_answer(metric):
    with pytest.raises(CalibrationInputError, match="needs classes of which one is true, got independent labels"):
        metric(labelled()[2])


def test_a_label_can_be_asked_alone_and_selected_by():
    y, p, predictions = labelled()
    assert cal.ECE.replace(lens=cal.OneClass("label 2"))(predictions).value == cal.ECE(y[:, 2], p[:, 2]).value
    assert cal.ECE.replace(lens=cal.Flat())(predictions).value == cal.ECE(y.ravel(), p.ravel()).value
    assert np.array_equal(cal.label_in("label 1", "label 3")(predictions), (y[:, 1] == 1) | (y[:, 3] == 1))
    assert np.array_equal(cal.output_between(0.2, 0.5, of=4)(predictions), (p[:, 4] >= 0.2) & (p[:, 4] < 0.5))
    selected = cal.BRIER.replace(select=cal.label_in(0))(predictions)
    assert selected.n == y[:, 0].sum()
    assert cal.ECE(predictions[predictions.column("group") == 1]).n == 150


def test_labels_of_zero_and_one_are_not_soft():
    predictions = labelled()[2]
    assert predictions.soft is None
    assert cal.ECE.summarise(predictions).about.soft == 0
    assert cal.ECE_DEBIASED(predictions).value >= 0


def test_nulls_draw_labels_independently():
    _, p, _ = labelled(n=4000, labels=3)
    predictions = Predictions.from_multilabel(np.zeros(p.shape), p)
    drawn = predictions.forecasts.redrawn(np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(p.mean(axis=0), abs=0.03)
    together = np.corrcoef((drawn - p).T)
    assert np.abs(together[np.triu_indices(3, 1)]).max() < 0.06  # of one class a row it would be about -0.3
    null = cal.consistency(cal.ECE, predictions[:500], n=40, seed=0)
    columns = [cal.Predictions.from_probs([0] * 500, p[:500, k]) for k in range(3)]
    alone = [cal.consistency(cal.ECE, column, n=40, seed=k) for k, column in enumerate(columns)]
    assert null.parts.mean(axis=0) == pytest.approx([each.mean for each in alone], abs=0.006)


def test_resampled_rows_keep_their_labels_together():
    y, p, _ = labelled(n=200)
    y[:, 1] = y[:, 0]
    p = np.column_stack([p[:, 0], p[:, 0]])
    predictions = Predictions.from_multilabel(y[:, :2], p)
    result = cal.BRIER(predictions, interval=cal.Bootstrap(40, seed=0))
    alone = cal.BRIER(y[:, 0], p[:, 0], interval=cal.Bootstrap(40, seed=0))
    assert result.interval.low == pytest.approx(alone.interval.low, rel=1e-12)


@pytest.mark.parametrize(
    ("y", "p", "words"),
    [
        ([[1, 2]], [[0.5, 0.5]], "y_true: must hold 0 and 1, got 2 at row 0, column 1"),
        ([[1, 0.5]], [[0.5, 0.5]], "y_true: must hold 0 and 1, got 0.5"),
        ([[1, np.nan]], [[0.5, 0.5]], "y_true: must hold 0 and 1, got nan"),
        ([1, 0], [0.5, 0.5], "y_true: must be (n, L)"),
        ([1, 0], [[0.5, 0.5], [0.1, 0.9]], "y_true: must be (n, L)"),
        ([[1, 0]], [[0.5, 1.5]], "y_proba: must lie in [0, 1]"),
        ([["a", "b"]], [[0.5, 0.5]], "y_true: must hold 0 and 1"),
    ],
)
def test_labels_that_cannot_be_are_refused(y, p, words):
    with pytest.raises(CalibrationInputError) as refusal:
        Predictions.from_multilabel(y, p)
    assert words in str(refusal.value)


def of_every_kind():
    y, p = forecasts(n=40, classes=4)
    return {
        "event": Predictions.from_probs(y % 2, p[:, 0]),
        "event of logits": Predictions.from_logits(y % 2, p[:, 0]),
        "answer": Predictions.from_confidence(y % 2, p[:, 0]),
        "classes": Predictions.from_probs(y, p),
        "logits": Predictions.from_logits(y, p),
        "top k": top_and_whole()[0],
        "labels": labelled()[2],
    }


@pytest.mark.parametrize("kind", of_every_kind())
def test_every_kind_travels_is_locked_and_can_be_taken_apart(kind):
    predictions = of_every_kind()[kind]
    copy = pickle.loads(pickle.dumps(predictions))
    assert cal.ECE(copy).value == cal.ECE(predictions).value
    for each in (predictions, copy):
        for array in vars(each.forecasts).values():
            assert not (isinstance(array, np.ndarray) and array.flags.writeable)
    halves = [cal.ECE.summarise(predictions[:17]), cal.ECE.summarise(predictions[17:])]
    assert cal.ECE.conclude(sum(halves)).value == cal.ECE(predictions).value
    assert np.isnan(cal.ECE(predictions[:0]).value)
    assert predictions.forecasts.words in repr(predictions)


def test_lenses_do_not_touch_the_values_and_nobody_asks_for_the_kind():
    for path in [*SOURCE.glob("lenses/*.py"), SOURCE / "selections.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Attribute) and node.attr == "values"), path
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asked = isinstance(node, ast.Attribute) and node.attr == "kind" and isinstance(node.ctx, ast.Load)
            owner = ast.unparse(node.value) if asked else ""
            assert not any(word in owner for word in ("predictions", "event", "forecasts")), (path, owner)


def test_columns_of_a_shortlist_are_ranks_and_no_classes():
    pandas = pytest.importorskip("pandas")
    ids, probs = [[3, 0], [2, 0]], [[0.9, 0.05], [0.8, 0.1]]
    for columns in ([1, 2], ["prob_1", "prob_2"]):
        frame = pandas.DataFrame(probs, columns=columns)
        predictions = Predictions.from_top_k([3, 2], ids, frame, n_classes=4)
        assert cal.ACCURACY(predictions).value == 1.0
        assert len(predictions.classes) == 4
        assert cal.CWECE(predictions).value == cal.CWECE(Predictions.from_top_k([3, 2], ids, probs, n_classes=4)).value
    with pytest.raises(CalibrationInputError, match="ids"):
        Predictions.from_top_k(
            pandas.Series([1, 2], index=["a", "b"]),
            pandas.DataFrame([[1, 2], [2, 1]], index=["b", "a"]),
            pandas.DataFrame([[0.5, 0.3], [0.4, 0.4]], index=["a", "b"]),
            n_classes=4,
        )


def test_rows_of_a_shortlist_with_gaps_are_left_out():
    ids = [[1, None], [2, 1], [0, 1]]
    dropped = Predictions.from_top_k([1, 2, 0], ids, [[0.5, 0.3], [0.5, 0.3], [0.6, None]], n_classes=4, missing="drop")
    assert (len(dropped), dropped.predicted.tolist()) == (1, [2])
    assert dropped.notes == ("2 rows were left out: missing values",)
    ignored = Predictions.from_top_k([1, -1], [[1, 0], [2, 1]], [[0.5, 0.3]] * 2, n_classes=4, ignore_index=-1)
    assert len(ignored) == 1


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([1], [[1, 0]], [[0.1, 0.1]]), {"n_classes": 2}, "cannot make up the rest"),
        (([1], [[1, 0]], [[0.1, 0.1]]), {"n_classes": 3}, "cannot make up the rest"),
        (([1], [[1, -1]], [[0.5, 0.3]]), {"n_classes": 4}, "ids: must lie in 0..3, got -1 at index (0, 1)"),
        (([0], [[0, 1]], [[0.5, 0.2]]), {"classes": 1}, "classes: must be a sequence of names"),
    ],
)
def test_more_shortlists_that_cannot_be(arguments, options, words):
    with pytest.raises(CalibrationInputError) as refusal:
        Predictions.from_top_k(*arguments, **options)
    assert words in str(refusal.value)
    assert "ignore_index" not in str(refusal.value)


def test_names_may_come_one_by_one():
    predictions = Predictions.from_top_k(["a"], [["a", "b"]], [[0.5, 0.4]], classes=iter("abc"))
    assert predictions.classes == ("a", "b", "c")


def test_labels_know_their_names_from_either_frame_and_say_where_logits_go():
    pandas = pytest.importorskip("pandas")
    truth = pandas.DataFrame({"b": [1, 0], "a": [0, 1]})
    assert Predictions.from_multilabel(truth, [[0.9, 0.2], [0.1, 0.7]]).classes == ("b", "a")
    with pytest.raises(CalibrationInputError, match="in their order"):
        Predictions.from_multilabel(truth, [[0.9, 0.2], [0.1, 0.7]], classes=["a", "b"])
    with pytest.raises(CalibrationInputError, match="logits=True"):
        Predictions.from_multilabel([[1, 0]], [[3.0, -2.0]])
    with pytest.raises(CalibrationInputError, match="from_multilabel"):
        cal.ECE([[1, 0], [1, 1]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(CalibrationInputError, match="must be True or False"):
        Predictions.from_probs([0, 1], [[2, 2], [3, 1]], normalize="no")
    with pytest.raises(CalibrationInputError):
        Predictions.from_probs(np.zeros((2, 0)), [[None, 1], [0, 1]], missing="drop")


def test_what_is_known_of_rows_stays_with_the_rows_and_not_with_other_values():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 4))
    whole = cal.Predictions.from_logits(rng.integers(0, 4, 50), logits).forecasts
    for rows in (slice(10, 20), np.arange(50) % 3 == 0, [4, 4, 1]):
        fresh = type(whole)(logits[rows], True)
        assert np.array_equal(whole[rows].leaders(1), fresh.leaders(1))
        assert np.array_equal(whole[rows].confidence, fresh.confidence)
    other = dataclasses.replace(whole, values=-logits)
    assert np.array_equal(other.leaders(1), np.argmin(logits, axis=1)[:, None])
    assert np.array_equal(other.probabilities, type(whole)(-logits, True).probabilities)


@pytest.mark.parametrize("make", [cal.Predictions.from_probs, cal.Predictions.from_logits])
def test_the_leaders_of_rows_are_found_once(make, monkeypatch):
    p = np.random.default_rng(0).dirichlet(np.ones(5), 300)
    predictions = make(np.zeros(300, int), p)
    for name in ("row_survey", "logits_survey", "leaders"):
        for backend in cal.kernels.backends().values():
            monkeypatch.delattr(backend, name)
    for asked in (predictions, predictions[:200], predictions[::2]):
        for metric in (cal.ECE, cal.ADAPTIVE_ECE, cal.ACCURACY):
            assert metric(asked).n == len(asked)
