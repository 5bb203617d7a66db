"""Metrics of torchmetrics: the numbers of all rows at once, to the bit, in states that never grow."""

import copy
import functools
import pickle
import re

import numpy as np
import pytest

pytest.importorskip("torchmetrics")

import torch
from torchmetrics import MetricCollection

import calibrant as cal
import test_device
from calibrant.integrations.registers import MOST
from calibrant.integrations.torchmetrics import Calibration, state_of
from calibrant.scale import State

fetches = test_device.fetches
N, K = 300, 6
FIXED = {
    "ece": cal.ECE,
    "signed": cal.MCS,
    "classwise": cal.SCE,
    "by label": cal.CWECE,
    "brier": cal.BRIER,
    "log loss": cal.LOG_LOSS,
    "accuracy": cal.ACCURACY,
    "selected": cal.ECE.replace(select=cal.predicted_in(0, 1, 2)),
    "groups": cal.ECE.replace(lens=cal.OneClass(3), binning=cal.Edges([0, 0.1, 0.7, 1])),
}
IN_CELLS = {
    "adaptive": cal.ADAPTIVE_ECE,
    "class-wise": cal.ACE,
    "sweep": cal.ECE_SWEEP,
    "auroc": cal.AUROC.replace(lens=cal.TopLabel()),
    "isotonic": cal.IsotonicError(),
    "in top 2": cal.ADAPTIVE_ECE.replace(lens=cal.InTopK(2)),
}


def rows(n=N, dtype=torch.float32, seed=0):
    """Probabilities of classes with ties, edges and zeros among them, and labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (n, K))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    p[::9] = np.eye(K)[rng.integers(0, K, len(p[::9]))]
    p[1::9] = np.repeat([0.3, 0.2, 0.0], [2, 2, 2])
    labels = np.where(rng.random(n) < 0.6, p.argmax(axis=1), rng.integers(0, K, n))
    return torch.tensor(p).to(dtype), torch.tensor(labels)


def batches(preds, target, sizes=(1, 100, 7)):
    """Uneven batches; the last has what is left."""
    stops = np.cumsum(sizes).tolist()
    return zip(torch.tensor_split(preds, stops), torch.tensor_split(target, stops), strict=True)


def updated(metric, preds, target, **options):
    calibration = Calibration(metric, **options)
    for each in batches(preds, target):
        calibration.update(*each)
    return calibration


def streamed(metric, preds, target, **options):
    stream = cal.Stream(metric)
    for p, y in batches(preds, target):
        stream.update(y, p, **options)
    return stream.result()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("metric", FIXED.values(), ids=FIXED)
def test_fixed_bins_and_mean_scores_are_those_of_all_rows_to_the_bit(metric, dtype):
    preds, target = rows(dtype=dtype)
    options = {"normalize": True} if dtype in (torch.float16, torch.bfloat16) else {}
    calibration = updated(metric, preds, target, **options)
    whole, streaming = metric(target, preds, **options), streamed(metric, preds, target, **options)
    for result in (whole, streaming):
        assert calibration.compute().item() == result.value
        assert str(calibration.result()) == str(result)
        assert calibration.result().values == result.values
        assert calibration.result().notes == result.notes


@pytest.mark.parametrize("metric", IN_CELLS.values(), ids=IN_CELLS)
def test_metrics_of_sorted_forecasts_are_told_from_cells_as_a_state_tells_them(metric):
    preds, target = rows()
    result = updated(metric, preds, target).result()
    state = State.of(cal.Predictions.from_probs(target, preds), {metric.name: metric})
    assert result.to_dict() == state.results()[metric.name].to_dict()
    exact = metric(target, preds).value
    assert result.bounds is None or result.bounds[0] <= exact <= result.bounds[1]


def test_of_forecasts_at_usual_edges_a_metric_of_their_order_is_exact():
    rng = np.random.default_rng(0)
    p = torch.tensor(rng.integers(0, 11, 500) / 10)
    target = torch.tensor(rng.integers(0, 2, 500))
    calibration = updated(cal.ADAPTIVE_ECE, p, target)
    assert calibration.result().bounds is None
    assert calibration.compute().item() == cal.ADAPTIVE_ECE(target, p).value


@pytest.mark.parametrize("metric", [*FIXED.values(), *IN_CELLS.values()], ids=[*FIXED, *IN_CELLS])
def test_the_state_is_in_bytes_that_of_the_rows(metric):
    """Of float32 and float64 rows, mixed."""
    (p, y), (q, z) = rows(), rows(dtype=torch.float64, seed=1)
    calibration = Calibration(metric)
    for each in (*batches(p, y), *batches(q, z)):
        calibration.update(*each)
    states = [State.of(cal.Predictions.from_probs(*each), {metric.name: metric}) for each in ((y, p), (z, q))]
    assert calibration.state().to_bytes() == sum(states).to_bytes()


@pytest.mark.parametrize("name", cal.RECIPES)
def test_every_recipe_is_kept_as_a_state_keeps_it_or_refused_as_a_state_refuses_it(name):
    metric, (preds, target) = cal.RECIPES[name], rows()
    told, refusals = 0, []
    for p, y in ((preds, target), (preds[:, 0].contiguous(), target % 2)):
        predictions = cal.Predictions.from_probs(y, p)
        try:
            state = State.of(predictions, {metric.name: metric})
        except cal.CalibrationInputError as error:
            refusals.append(str(error))
            with pytest.raises(cal.CalibrationInputError):
                Calibration(metric).update(p, y)
            continue
        assert updated(metric, p, y).state().to_bytes() == state.to_bytes()
        told += 1
    assert told or any("must keep no rows" in refusal for refusal in refusals)


@pytest.mark.parametrize("metric", [cal.ECE, cal.SCE, cal.BRIER, cal.ADAPTIVE_ECE], ids=str)
def test_states_are_whole_numbers_that_are_summed_and_never_grow(metric):
    calibration, (preds, target) = Calibration(metric), rows()
    calibration.update(preds[:1], target[:1])
    first = {name: (state.shape, state.dtype) for name, state in calibration.metric_state.items()}
    for each in batches(preds, target):
        calibration.update(*each)
    assert {name: (state.shape, state.dtype) for name, state in calibration.metric_state.items()} == first
    assert {dtype for _, dtype in first.values()} == {torch.int64}
    assert {reduction.__name__ for reduction in calibration._reductions.values()} == {"dim_zero_sum"}


@pytest.mark.parametrize("metric", [cal.ECE, cal.ADAPTIVE_ECE], ids=str)
def test_forward_gives_the_value_of_the_batch_and_adds_it(metric):
    preds, target = rows()
    calibration, reference = Calibration(metric), updated(metric, preds, target)
    for p, y in batches(preds, target):
        alone = Calibration(metric)
        alone.update(p, y)
        assert calibration(p, y).item() == alone.compute().item()
    for state, expected in zip(calibration.metric_state.values(), reference.metric_state.values(), strict=True):
        assert torch.equal(state, expected)


def test_forward_that_synchronises_on_step_adds_once():
    preds, target = rows()
    calibration = Calibration(cal.ECE, dist_sync_on_step=True)
    for p, y in batches(preds, target):
        calibration(p, y)
    assert calibration.compute().item() == cal.ECE(target, preds).value


def test_states_of_two_metrics_are_merged_and_one_without_batches_is_nothing():
    preds, target = rows()
    first, second, whole = Calibration(cal.ECE), Calibration(cal.ECE), cal.ECE(target, preds).value
    first.update(preds, target)
    second.merge_state(first)
    assert second.state().to_bytes() == first.state().to_bytes()
    first.merge_state(Calibration(cal.ECE))
    assert first.compute().item() == whole


def test_reset_forgets_all_batches():
    preds, target = rows()
    calibration = updated(cal.ECE, preds, target)
    calibration.reset()
    with (
        pytest.warns(UserWarning, match="before the"),
        pytest.raises(cal.CalibrationInputError, match="seen predictio"),
    ):
        calibration.compute()
    calibration.update(preds[:9, :3].softmax(1), target[:9] % 3)  # of another number of classes
    assert calibration.result().n == 9


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric)), Calibration.clone]
)
@pytest.mark.parametrize("metric", [cal.ECE, cal.ADAPTIVE_ECE], ids=str)
def test_copies_go_on_by_themselves(metric, copied):
    preds, target = rows()
    calibration = Calibration(metric, cal.Predictions.from_probs, ignore_index=5)
    calibration.update(preds[:100], target[:100])
    other = copied(calibration)
    other.update(preds[100:], target[100:])
    assert calibration.result().n == int((target[:100] != 5).sum())
    whole = cal.Predictions.from_probs(target, preds, ignore_index=5)
    assert other.state().to_bytes() == State.of(whole, {metric.name: metric}).to_bytes()


def test_states_are_saved_with_a_module_where_that_is_asked():
    preds, target = rows()
    calibration = updated(cal.ADAPTIVE_ECE, preds, target)
    calibration.persistent(True)
    other = Calibration(cal.ADAPTIVE_ECE)
    other.load_state_dict(calibration.state_dict())
    assert other.state().to_bytes() == calibration.state().to_bytes()


def test_a_module_in_half_precision_leaves_the_states_whole():
    preds, target = rows()
    calibration = updated(cal.ECE, preds, target)
    for metric in (calibration.half(), calibration.to(torch.bfloat16), calibration.set_dtype(torch.float16)):
        assert {state.dtype for state in metric.metric_state.values()} == {torch.int64}
        assert metric.compute().item() == cal.ECE(target, preds).value


def test_a_collection_shares_the_states_of_metrics_that_read_the_same():
    preds, target = rows()
    metrics = {"ece": cal.ECE, "mce": cal.MCE, "sce": cal.SCE, "brier": cal.BRIER, "ace": cal.ACE}
    collection = MetricCollection({name: Calibration(metric) for name, metric in metrics.items()})
    for each in batches(preds, target):
        collection.update(*each)
    assert ["ece", "mce"] in [sorted(group) for group in collection.compute_groups.values()]
    assert len(collection.compute_groups) == 4
    values = collection.compute()
    for name in ("ece", "mce", "sce", "brier"):
        assert values[name].item() == metrics[name](target, preds).value
    collection.reset()
    assert collection(preds, target)["ece"].item() == metrics["ece"](target, preds).value


@pytest.mark.parametrize(
    "other",
    [
        Calibration(cal.ECE.replace(binning=cal.EqualWidth(15, closed="left"))),
        Calibration(cal.ECE, missing="drop"),
        Calibration(cal.ECE, functools.partial(cal.Predictions.from_probs, ignore_index=3)),
    ],
)
def test_a_collection_keeps_apart_what_is_read_otherwise_though_the_first_batch_is_equal(other):
    """torchmetrics compares states after the first batch."""
    first, second = Calibration(cal.ECE), other
    collection = MetricCollection({"first": first, "second": second})
    preds, target = torch.tensor([[0.65, 0.35], [0.15, 0.85]]), torch.tensor([0, 1])
    collection.update(preds, target)
    assert torch.equal(first.totals, second.totals)
    assert len(collection.compute_groups) == 2


def test_options_go_to_the_predictions_and_notes_count_their_rows():
    preds, target = rows()
    target = torch.where(target == 2, -100, target)
    calibration = updated(cal.ECE, preds, target, ignore_index=-100)
    whole = cal.ECE(target, preds, ignore_index=-100)
    assert calibration.result().notes == whole.notes != ()
    assert calibration.compute().item() == whole.value
    gaps = preds.double().clone()
    gaps[5::10, 0] = torch.nan
    result = updated(cal.BRIER, gaps, target, ignore_index=-100, missing="drop").result()
    assert len(result.notes) == 2
    assert result.notes == cal.BRIER(target, gaps, ignore_index=-100, missing="drop").notes
    above = preds.clone()
    above[1, 0] += 5e-7
    above[0, 0], above[0, 1:] = 1 + 5e-7, 0
    assert "clipped" in updated(cal.BRIER, above, target, ignore_index=-100).result().notes[0]


def test_rows_that_only_the_predictions_know_to_leave_out_are_refused():
    preds, target = rows()
    calibration = Calibration(cal.ECE, functools.partial(cal.Predictions.from_probs, ignore_index=3))
    with pytest.raises(cal.CalibrationInputError, match="pass ignore_index to Calibration itself"):
        calibration.update(preds, target)


def test_states_that_are_too_large_are_refused_before_they_are_made():
    with pytest.raises(cal.CalibrationInputError, match=r"must need at most 1 GiB, got 1\.2 GiB"):
        Calibration(cal.ACE).update(torch.eye(3000)[:2], torch.tensor([0, 1]))


def test_batches_are_added_in_and_out_of_inference_mode():
    preds, target = rows()
    calibration = Calibration(cal.ADAPTIVE_ECE)
    with torch.inference_mode():
        calibration.update(preds[:50], target[:50])
    calibration.update(preds[50:].requires_grad_(), target[50:])
    assert calibration.state().to_bytes() == updated(cal.ADAPTIVE_ECE, preds, target).state().to_bytes()


def test_logits_maps_labels_and_events_are_read_as_predictions_say():
    logits, target = (
        torch.randn(4, K, 5, generator=torch.Generator().manual_seed(0)),
        torch.arange(20).reshape(4, 5) % K,
    )
    calibration = Calibration(cal.LOG_LOSS, cal.Predictions.from_logits, class_axis=1)
    calibration.update(logits[:3], target[:3])
    calibration.update(logits[3:], target[3:])
    expected = cal.LOG_LOSS(cal.Predictions.from_logits(target, logits, class_axis=1))
    assert calibration.compute().item() == expected.value

    preds, labels = torch.rand(40, 3, generator=torch.Generator().manual_seed(1)), torch.arange(120).reshape(40, 3) % 2
    several = Calibration(cal.SCE, cal.Predictions.from_multilabel, classes=["a", "b", "c"])
    several.update(preds, labels)
    assert str(several.result()) == str(
        cal.SCE(cal.Predictions.from_multilabel(labels, preds, classes=["a", "b", "c"]))
    )

    right = Calibration(cal.AUROC, cal.Predictions.from_confidence)
    right.update(preds[:, 0], labels[:, 0])
    state = State.of(cal.Predictions.from_confidence(labels[:, 0], preds[:, 0]), {"AUROC": cal.AUROC})
    assert right.state().to_bytes() == state.to_bytes()


def test_soft_labels_are_counted():
    preds, _ = rows()
    soft = torch.tensor(np.random.default_rng(5).dirichlet(np.ones(K), N))
    preds = 0.9 * preds + 0.1 / K  # no row that could be taken for labels
    for metric in (cal.ECE, cal.BRIER, cal.ADAPTIVE_ECE):
        assert updated(metric, preds, soft).result().value == pytest.approx(metric(soft, preds).value, abs=0.02)
        state = sum(State.of(cal.Predictions.from_probs(y, p), {metric.name: metric}) for p, y in batches(preds, soft))
        assert updated(metric, preds, soft).state().to_bytes() == state.to_bytes()


@pytest.mark.parametrize(
    "metric",
    [cal.FULL_ECE, cal.SKCE, cal.BinnedError(lens=cal.Full(), binning=cal.Grid(4))],
    ids=lambda each: each.name,
)
def test_metrics_that_keep_rows_are_refused(metric):
    preds, target = rows()
    with pytest.raises(cal.CalibrationInputError, match=f"no rows, got {re.escape(metric.name)};"):
        Calibration(metric).update(preds, target)


def test_what_is_no_metric_and_what_is_no_option_is_refused():
    with pytest.raises(cal.CalibrationInputError, match="must be a metric"):
        Calibration("ece")
    with pytest.raises(ValueError, match="sample_weight"):
        Calibration(cal.ECE, sample_weight=[1])


def test_a_batch_that_is_refused_leaves_the_states_as_they_were():
    preds, target = rows()
    calibration = updated(cal.ECE, preds, target)
    with pytest.raises(cal.CalibrationInputError, match="if these are logits"):
        calibration.update(preds * 2, target)
    with pytest.raises(cal.CalibrationInputError, match="same number of classes"):
        calibration.update(preds[:, :3].softmax(1), target % 3)
    with pytest.raises(cal.CalibrationInputError, match="same number of classes"):
        calibration.update(preds[:, 0], target % 2)
    assert calibration.compute().item() == cal.ECE(target, preds).value


def test_states_of_other_metrics_are_refused_when_they_were_merged():
    preds, target = rows()
    calibration = updated(cal.ECE, preds, target)
    with pytest.raises(cal.CalibrationInputError, match="must be of one metric"):
        calibration.merge_state(updated(cal.SCE, preds, target))
    calibration.merge_state(updated(cal.ECE.replace(binning=cal.EqualWidth(15, closed="left")), preds, target))
    with pytest.raises(cal.CalibrationInputError, match="must be of one metric"):
        calibration.compute()


def test_one_state_of_several_metrics_needs_the_same_batches():
    preds, target = rows()
    first = updated(cal.ECE, preds, target)
    others = (updated(cal.ECE, preds, target, missing="drop"), Calibration(cal.MCE))
    others[1].update(preds[:5], target[:5])
    for other in others:
        with pytest.raises(cal.CalibrationInputError, match="must see the same batches, with the same options"):
            state_of({"first": first, "other": other})


def test_two_to_the_20_processes_stay_within_whole_numbers_of_64_bits():
    """The largest state that is let through, once for each process."""
    logits = torch.tensor([[float(MOST - 5), 0.0]], dtype=torch.float64)
    calibration = Calibration(cal.LOG_LOSS, cal.Predictions.from_logits)
    calibration.update(logits, torch.tensor([1]))
    calibration.update(torch.tensor([[0.7, 0.0]], dtype=torch.float64), torch.tensor([1]))
    one = calibration.state().results()["LOG_LOSS"].value
    for name, state in calibration.metric_state.items():
        assert (state.abs() < 1 << 43).all()
        setattr(calibration, name, state << 20)
    calibration._computed = None
    result = calibration.result()
    assert result.n == 2 << 20
    assert result.value == one
    with pytest.raises(cal.CalibrationInputError, match="must stay below 2"):
        calibration.update(logits, torch.tensor([1]))


def test_a_total_that_would_leave_its_range_is_refused():
    calibration = Calibration(cal.LOG_LOSS, cal.Predictions.from_logits)
    logits = torch.tensor([[float(MOST // 2), 0.0]], dtype=torch.float64)
    calibration.update(logits, torch.tensor([1]))
    before = {name: state.clone() for name, state in calibration.metric_state.items()}
    with pytest.raises(cal.CalibrationInputError, match="of one process must stay below"):
        calibration.update(logits, torch.tensor([1]))
    with pytest.raises(cal.CalibrationInputError, match="of one process must stay below"):
        calibration.update(logits * 4, torch.tensor([1]))
    assert all(torch.equal(before[name], state) for name, state in calibration.metric_state.items())


def test_which_way_is_better_is_what_the_metric_says():
    metrics = (cal.ECE, cal.ACCURACY, cal.MeanScore(cal.TopLabel(), cal.output))
    assert [Calibration(metric).higher_is_better for metric in metrics] == [False, True, None]


def test_it_prints_its_metric():
    assert repr(Calibration(cal.ECE)) == "Calibration(ECE)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("metric", [*FIXED.values(), *IN_CELLS.values()], ids=[*FIXED, *IN_CELLS])
def test_of_tensors_on_a_device_no_matrix_comes_to_the_host(metric, dtype, fetches):
    """Totals come back, or the distinct forecasts of one question after another."""
    preds, target = rows(dtype=dtype)
    there, here = Calibration(metric), updated(metric, preds, target)
    for p, y in batches(preds, target):
        fetches.clear()
        there.update(test_device.far(p), test_device.far(y))
        assert 0 < max(fetches) <= max(len(p), 5 * 15 * K)
    if metric is cal.LOG_LOSS:  # logarithms differ in their last bit
        assert there.compute().item() == pytest.approx(here.compute().item(), rel=1e-12)
    else:
        assert there.state().to_bytes() == here.state().to_bytes()


def test_logits_on_a_device_say_that_they_were_exponentiated_in_float32(fetches):
    preds, target = rows()
    calibration = Calibration(cal.BRIER, cal.Predictions.from_logits)
    calibration.update(test_device.far(preds), test_device.far(target))
    assert max(fetches) <= K
    assert "float32" in calibration.result().notes[0]
