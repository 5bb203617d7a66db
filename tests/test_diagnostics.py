"""Diagnostics: hand-worked cases."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import diagnostics
from oracles import errors
from toy import P, y

PREDICTIONS = cal.Predictions.from_probs(y, P)


def test_failure_detection_by_entropy():
    curve = diagnostics.risk_coverage(PREDICTIONS, cal.entropy)
    found = [curve.accuracy_after_referring(share) for share in (0, 0.25, 0.5, 0.75)]
    assert found == pytest.approx([0.6666666666666666, 0.7777777777777778, 1.0, 1.0], rel=0, abs=1e-12)
    assert np.isnan(curve.accuracy_after_referring(1))
    assert curve.aurc == pytest.approx(0.1044402356902357, rel=0, abs=1e-12)
    with pytest.raises(cal.CalibrationInputError, match="share"):
        curve.accuracy_after_referring(1.5)


def test_models_beside_each_other_when_samples_are_referred():
    rng = np.random.default_rng(0)
    other = cal.Predictions.from_probs(y, rng.dirichlet(np.ones(3), 12))
    table = diagnostics.failure_detection({"toy": PREDICTIONS, "other": other}, [0, 0.3, 0.5, 0.9])
    for name, predictions in (("toy", PREDICTIONS), ("other", other)):
        rows, labels = predictions.probabilities.tolist(), y.tolist()
        expected = errors.accuracy_after_referral(rows, labels, [0, 0.3, 0.5, 0.9])
        assert table.accuracies[name] == pytest.approx(expected, abs=1e-12)
        assert table.curves[name].augrc == pytest.approx(errors.augrc(rows, labels), abs=1e-12)
    assert table.gains("other")["toy"] == pytest.approx(table.accuracies["toy"] - table.accuracies["other"])
    assert not table.gains("toy")["toy"].any()
    assert [line.split()[0] for line in str(table).splitlines()] == ["accuracy", "toy", "other"]
    assert f"{table.curves['toy'].aurc:.4f}" in str(table)
    with pytest.raises(cal.CalibrationInputError, match="must be one of the models"):
        table.gains("nobody")
    with pytest.raises(cal.CalibrationInputError, match="must have predictions"):
        diagnostics.failure_detection({})
    surest = diagnostics.failure_detection({"toy": PREDICTIONS}, uncertainty=None).curves["toy"]
    assert surest.augrc == pytest.approx(cal.AUGRC(PREDICTIONS).value, abs=1e-15)


def test_ranks_by_two_metrics():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    labels = rng.random(200) < p
    shapes = {"steep": 2.0, "plain": 1.0, "flat": 0.6, "again": 1.0}
    models = {name: cal.Predictions.from_probs(labels, p**power) for name, power in shapes.items()}
    changes = diagnostics.rank_changes(models, {"ECE": cal.ECE, "AUROC": cal.AUROC})
    values = [cal.ECE(model).value for model in models.values()]
    assert changes.values[:, 0].tolist() == values
    assert changes.ranks[:, 0].tolist() == errors.ranks(values)
    assert changes.ranks[:, 1].tolist() == [1, 1, 1, 1]  # the order of samples is the same
    assert changes.changed == ("steep", "flat")
    assert changes.relative == pytest.approx((changes.values[:, 0] - changes.values[:, 1]) / changes.values[:, 0])
    best_first = [line.split()[0] for line in str(changes).splitlines()[1:]]
    assert best_first == ["plain", "again", *sorted(["steep", "flat"], key=lambda name: cal.ECE(models[name]).value)]
    inverted = models | {"inverted": cal.Predictions.from_probs(labels, 1 - p)}
    by_area = diagnostics.rank_changes(inverted, {"AUROC": cal.AUROC, "MCS": cal.MCS})
    assert by_area.ranks[-1, 0] == 5  # a larger area is better
    assert by_area.ranks[:, 1].tolist() == errors.ranks([abs(cal.MCS(model).value) for model in inverted.values()])
    with pytest.raises(cal.CalibrationInputError, match="must be two"):
        diagnostics.rank_changes(models, {"ECE": cal.ECE})
    perfect = cal.Predictions.from_probs([1, 0], [1.0, 0.0])
    assert np.isnan(diagnostics.rank_changes({"it": perfect}, {"a": cal.ECE, "b": cal.BRIER}).relative).all()


def test_failure_detection_ignores_row_order_even_in_ties():
    p, labels = np.repeat(P, 3, axis=0), np.r_[y, y, (y + 1) % 3]
    order = np.random.default_rng(0).permutation(len(p))
    for uncertainty in (cal.entropy, diagnostics.doubt):
        one = diagnostics.risk_coverage(cal.Predictions.from_probs(labels, p), uncertainty)
        other = diagnostics.risk_coverage(cal.Predictions.from_probs(labels[order], p[order]), uncertainty)
        assert np.array_equal(one.risk, other.risk)


def test_failure_detection_of_top_answers_needs_only_confidences():
    answers = cal.Predictions.from_confidence([1, 0, 1], [0.9, 0.6, 0.8])
    curve = diagnostics.risk_coverage(answers, diagnostics.doubt)
    assert curve.risk.tolist() == pytest.approx([0, 0, 1 / 3])


def test_an_event_is_answered_with_yes_above_one_half():
    event = cal.Predictions.from_probs([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.5])
    curve = diagnostics.risk_coverage(event)  # in order of doubt: .9 right, .2 right, .4 wrong, .5 (no) right
    assert curve.risk == pytest.approx([0, 0, 1 / 3, 1 / 4], abs=1e-12)
    for uncertainty in (cal.entropy, diagnostics.doubt):
        assert diagnostics.risk_coverage(event, uncertainty).risk == pytest.approx(curve.risk, abs=1e-12)
    soft = cal.Predictions.from_probs([0.5, 0.25], [0.9, 0.2])  # wrong by one half; an answer "no", wrong by a quarter
    assert diagnostics.risk_coverage(soft).wrong.tolist() == [0.5, 0.75]
    with pytest.raises(cal.CalibrationInputError, match="needs one true class per row"):
        diagnostics.risk_coverage(soft, cal.entropy)
    labels = cal.Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.4], [0.7, 0.6]])
    with pytest.raises(cal.CalibrationInputError, match="risk_coverage: needs one answer a row, got 2 questions"):
        diagnostics.risk_coverage(labels)


def test_mean_ranked_outputs_against_a_baseline():
    means = diagnostics.mean_ranked_outputs(PREDICTIONS, 3)
    assert means == pytest.approx(np.sort(P, axis=1)[:, ::-1].mean(axis=0), abs=1e-12)
    flat = cal.Predictions.from_probs(y, np.full((12, 3), 1 / 3))
    assert diagnostics.mean_ranked_outputs(PREDICTIONS, 3, baseline=flat) == pytest.approx(means - 1 / 3, abs=1e-12)


def test_top_k_accuracies_rise_to_one():
    assert diagnostics.top_k_accuracies(PREDICTIONS, 3).tolist() == pytest.approx([8 / 12, 1.0, 1.0])


def test_group_outputs_given_the_label_group():
    groups = {"first": [0], "rest": [1, 2]}
    outputs = diagnostics.group_outputs(PREDICTIONS, groups)
    assert outputs["first"]["first"] == pytest.approx(P[y == 0, 0].mean(), abs=1e-12)
    assert outputs["rest"]["first"] == pytest.approx(P[y != 0, 0].mean(), abs=1e-12)
    assert np.isnan(diagnostics.group_outputs(PREDICTIONS[y == 0], groups)["rest"]["rest"])


def test_interval_counts_share_out_all_answers():
    assert diagnostics.interval_counts(PREDICTIONS, [0, 0.33, 0.66, 1]) == [0, 6, 6]
    assert diagnostics.interval_counts(PREDICTIONS, [0, 0.5, 1], closed="right") == [3, 9]
    assert sum(diagnostics.interval_counts(PREDICTIONS, [0, 0.2, 1], lens=cal.Classwise())) == 36


def test_a_share_of_29_percent_of_a_hundred_is_29():
    answers = cal.Predictions.from_confidence([1] * 71 + [0] * 29, np.linspace(0.99, 0.01, 100))
    assert diagnostics.risk_coverage(answers, diagnostics.doubt).accuracy_after_referring(0.29) == 1.0
