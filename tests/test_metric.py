"""Metrics and results: one path, a number with its specification."""

import dataclasses
import json
import pickle

import numpy as np
import pytest

import calibrant as cal
from calibrant.specification.catalogue import find, names
from calibrant.summaries import About
from toy import P, y

replace = dataclasses.replace


def test_a_result_prints_as_a_person_would_want():
    assert str(cal.ECE(y, P)) == "ECE 0.2550 (n=12, top label, 15 equal-width bins)"
    assert str(cal.ECE(y == 0, P[:, 0])) == "ECE 0.2358 (n=12, event, 15 equal-width bins)"
    assert f"{cal.ECE(y, P):.3f}" == "0.255"
    mine = cal.BinnedError(select=cal.label_in(0, 2), lens=cal.TopK(2), binning=cal.KDTree(0.5), distance=cal.lp(2))
    assert str(mine(y, P)) == (
        "BinnedError 0.3095 (n=9, top 2 and the rest, where label_in(0, 2), kd-tree bins, gamma 0.5, lp 2)"
    )


def test_a_notebook_shows_hostile_names_as_text():
    result = cal.SCE(cal.Predictions.from_probs(y, P, classes=["<script>", "b", "c"]))
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_an_empty_selection_is_nan_with_a_note():
    for metric in (
        cal.ECE,
        cal.ADAPTIVE_ECE,
        cal.SCE,
        cal.FULL_ECE,
        cal.ECE_LB,
        cal.WSMCS,
        cal.CECE,
        cal.MCE,
        cal.RMSCE,
    ):
        result = replace(metric, select=cal.confidence_between(0, 0.1))(y, P)
        assert np.isnan(result.value), metric
        assert "no samples: the selection is empty" in result.notes
        assert result.n == 0


def test_selection_before_the_lens_equals_passing_only_those_rows():
    chosen = cal.label_in(0, 2) & ~cal.predicted_in(1) | cal.confidence_between(0.9, 1)
    mask = (np.isin(y, [0, 2]) & (P.argmax(axis=1) != 1)) | (P.max(axis=1) >= 0.9)
    assert replace(cal.ECE, select=chosen)(y, P).value == cal.ECE(y[mask], P[mask]).value


METRICS = [
    *cal.RECIPES.values(),
    cal.BinnedError(
        select=cal.where(region="north", age=3) & ~(cal.label_in("cat", 2) | cal.output_between(0, 0.5, of=1)),
        lens=cal.Between(cal.ByPrediction(cal.Groups({"a": [0, "x"], "b": [2]})), 0.2, 1, "right"),
        binning=cal.Sweep(cal.EqualWidth(closed="left")),
        distance=cal.mahalanobis([[1, 0.5], [0.5, 1]]),
        aggregate=cal.root(3),
        across=cal.signed_balance,
    ),
    cal.BinnedError(binning=cal.Edges([0, 0.1, 1]), distance=cal.weighted([1, 2]), select=cal.predicted_in(1)),
    cal.LabelBinnedError(binning=cal.EqualMass(3), p=2.5, select=cal.confidence_between(0.2, 0.3)),
    cal.MeanScore(cal.InTopK(3), cal.hit),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_and_its_json_rebuild_each_other(metric):
    again = cal.from_json(metric.to_json())
    assert again == metric
    assert hash(again) == hash(metric)
    assert again.to_json() == metric.to_json()


def test_a_piece_of_ones_own_travels_by_name():
    def third(predictions):
        return cal.Ranked(3)(predictions)

    metric = cal.BinnedError(lens=third)
    with pytest.raises(cal.CalibrationInputError, match=r"unknown piece.*third'"):
        cal.from_json(metric.to_json())
    assert cal.from_json(metric.to_json(), pieces={"third": third}) == metric
    assert metric(y, P).value == cal.BinnedError(lens=cal.Ranked(3))(y, P).value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON"),
        ('{"piece": "EqualWidth", "n_bins": 3, "closed": "right"}', "must specify a metric"),
        ('{"piece": "EqualWidht"}', "did you mean 'EqualWidth'"),
        ('{"piece": "BinnedError", "colour": 1}', "does not fit BinnedError"),
        ('{"piece": "os"}', "unknown piece"),
    ],
)
def test_json_that_is_no_metric_is_refused(text, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        cal.from_json(text)


def test_nan_travels_as_a_string():
    result = replace(cal.ECE, select=cal.confidence_between(0, 0.1))(y, P)
    assert json.loads(result.to_json())["value"] == "nan"
    assert np.isnan(cal.Result.from_json(result.to_json()).value)


def test_parts_are_results_with_their_own_bins():
    parts = cal.SCE(y, P).parts
    for index, (name, part) in enumerate(parts.items()):
        alone = cal.BinnedError(lens=cal.OneClass(index))(y, P)
        assert name == str(index)
        assert part.value == alone.value
        assert np.array_equal(part.bins.gap, alone.bins.gap)
        assert part.n == 12


def test_parts_by_label_count_their_own_samples():
    assert [part.n for part in cal.CWECE(y, P).parts.values()] == [5, 3, 4]


def test_summaries_and_results_pickle_between_processes():
    predictions = cal.Predictions.from_probs(y, P)
    for metric in cal.RECIPES.values():
        if metric is cal.TOP5_ECE:
            continue
        summary = pickle.loads(pickle.dumps(metric.summarise(predictions)))
        assert pickle.loads(pickle.dumps(metric.conclude(summary))).value == metric(predictions).value
    error = pickle.loads(pickle.dumps(cal.CalibrationInputError("a", "b", got=1, where="c", hint="d")))
    assert (str(error), error.hint) == ("a: b, got 1 at c; d", "d")


def test_a_batch_buffer_may_be_used_again():
    buffer, summaries = np.empty((6, 3)), {}
    for name in ("FULL_ECE", "ECE", "ADAPTIVE_ECE", "BRIER"):
        metric = cal.RECIPES[name]
        summaries[name] = []
        for start in (0, 6):
            buffer[:] = P[start : start + 6]
            summaries[name].append(metric.summarise(cal.Predictions.from_probs(y[start : start + 6], buffer)))
        assert metric.conclude(sum(summaries[name])).value == metric(y, P).value


def test_a_metric_takes_predictions_or_truth_and_forecasts_and_nothing_else():
    predictions = cal.Predictions.from_probs(y, P)
    assert cal.ECE(predictions).value == cal.ECE(y, P).value
    for arguments, message in [((predictions, P), "left out"), ((y, predictions), "left out"), ((y,), "is required")]:
        with pytest.raises(cal.CalibrationInputError, match=message):
            cal.ECE(*arguments)


def test_class_questions_asked_of_an_event_name_the_way_out():
    for metric in (cal.SCE, cal.ACE, cal.TACE, cal.TOP5_ECE, cal.WSMCS, cal.CWECE, cal.ACCURACY):
        with pytest.raises(cal.CalibrationInputError, match="column_stack"):
            metric([1, 0], [0.9, 0.2])


def test_the_top_answer_alone_has_an_accuracy():
    answers = cal.Predictions.from_confidence([True, False, True], [0.9, 0.8, 0.7])
    assert cal.ACCURACY(answers).value == pytest.approx(2 / 3)
    assert str(cal.ECE(answers)).endswith("(n=3, top answer, 15 equal-width bins)")


def test_soft_labels_are_refused_where_a_true_class_is_needed():
    soft = cal.Predictions.from_probs([[0.5, 0.5, 0.0]] * 12, P)
    for metric in (cal.WSMCS, cal.ECE_DEBIASED, replace(cal.ECE, select=cal.label_in(1))):
        with pytest.raises(cal.CalibrationInputError, match="soft labels"):
            metric(soft)


def test_summaries_of_the_same_questions_remember_notes_and_rows():
    one = About(3, "event", remarks=(("left out", 1),)) + About(
        4, "event", soft=2, remarks=(("clipped", 1), ("left out", 1))
    )
    assert (one.n, one.notes, one.soft) == (7, ("1 row was clipped", "2 rows were left out"), 2)


def test_a_table_too_large_to_hold_is_refused_before_it_is_made():
    with pytest.raises(cal.CalibrationInputError, match="GiB"):
        replace(cal.SCE, binning=cal.EqualWidth(1_000_000))([0], [np.full(1000, 0.001)])


def test_a_metric_prints_as_python_would_make_it():
    assert repr(cal.MCS) == (
        "BinnedError(select=everything, lens=TopLabel(), binning=EqualWidth(n_bins=1, closed='right'), "
        "distance=signed, aggregate=mean, across=mean_of)"
    )
    for metric in METRICS:
        assert eval(repr(metric), {name: find(name) for name in names()}) == metric


def test_a_piece_without_a_name_works_but_does_not_travel():
    import functools

    def scaled(bins, by):
        return by * cal.tvd(bins)

    metric = cal.BinnedError(distance=functools.partial(scaled, by=2.0))
    assert metric(y, P).value == 2 * cal.ECE(y, P).value
    with pytest.raises(cal.CalibrationInputError, match="pieces that have a name"):
        metric.to_json()


def test_infinite_parameters_travel():
    metric = cal.BinnedError(lens=cal.Above(cal.Classwise(), float("-inf")))
    assert cal.from_json(metric.to_json()) == metric


@pytest.mark.parametrize("text", ["", "{}", "[]", "3"])
def test_json_that_is_no_result_is_refused(text):
    with pytest.raises(cal.CalibrationInputError, match="JSON of a result"):
        cal.Result.from_json(text)


def test_parts_of_a_sweep_tell_their_number_of_bins():
    result = replace(cal.SCE, binning=cal.Sweep())(y, P)
    assert [part.details["n_bins"] for part in result.parts.values()] == result.bins.requested.tolist()


def test_choices_are_told_by_the_questions_and_not_by_their_names():
    named = cal.Predictions.from_probs(y, P, classes=["a by b", "every class", "c"])
    assert "mean of all" not in str(cal.BinnedError(lens=cal.OneClass("a by b"), across=cal.mean_of_all)(named))
