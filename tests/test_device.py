"""Tensors on a device: checked and reduced where they are, with the numbers of the host.

No device is needed: some tensors in the memory of the host are treated as if they were on one.
"""

import pickle

import numpy as np
import pytest

import calibrant as cal

torch = pytest.importorskip("torch")

from calibrant.kernels import tensors  # noqa: E402 - needs torch
from calibrant.kernels import torch as backend  # noqa: E402
from calibrant.kernels.tensors import DeviceArray  # noqa: E402
from calibrant.lenses.lens import view_of  # noqa: E402

N, K = 300, 20
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
LENSES = [
    cal.TopLabel(),
    cal.InTopK(3),
    cal.Ranked(2),
    cal.OneClass(3),
    cal.Classwise(),
    cal.Flat(),
    cal.ByLabel(cal.TopLabel()),
    cal.ByPrediction(cal.InTopK(2)),
    cal.Above(cal.Classwise(), 0.01),
    cal.Between(cal.TopLabel(), 0.2, 0.6),
    cal.ByLabel(cal.ByPrediction(cal.Ranked(2))),
]
FIXED = [cal.EqualWidth(), cal.EqualWidth(10, closed="left"), cal.Edges([0, 0.3, 1]), cal.EqualWidth(100)]
TABLES = [cal.EqualMass(7), cal.Quantiles(5), cal.Sweep(cal.EqualMass())]
SCORES = [cal.brier_score, cal.log_score]


@pytest.fixture
def fetches(monkeypatch):
    """Tensors that are marked as far are on a device; the list of the sizes of what comes back from there."""
    monkeypatch.setattr("calibrant.door.foreign.stays", lambda tensor: getattr(tensor, "is_far", False))
    sizes = []

    def fetched(tensor):
        sizes.append(tensor.numel())
        return tensor.detach().clone().numpy()

    monkeypatch.setattr(tensors, "fetched", fetched)
    monkeypatch.setattr(backend, "fetched", fetched)
    return sizes


def far(array):
    tensor = torch.as_tensor(array).clone()
    tensor.is_far = True
    return tensor


def forecasts(kind="probs", dtype=torch.float32, n=N):
    """Labels and forecasts with ties, edges, zeros and ones among them."""
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 2, (n, K)).astype(np.float32)
    logits[::7] = np.round(logits[::7])
    labels = np.where(rng.random(n) < 0.6, logits.argmax(axis=1), rng.integers(0, K, n))
    if kind == "logits":
        return labels, torch.tensor(logits).to(dtype)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[::11] = np.eye(K)[rng.integers(0, K, len(p[::11]))]
    p[1::11] = np.repeat([0.1, 0.0, -0.0], [10, 5, 5])
    return labels, torch.tensor(p).to(dtype)


def both(kind="probs", dtype=torch.float32, **options):
    """The same predictions on the host and on the device."""
    labels, values = forecasts(kind, dtype)
    make = cal.Predictions.from_probs if kind == "probs" else cal.Predictions.from_logits
    there = make(far(labels), far(values), **options)
    assert isinstance(there.values, DeviceArray)
    return make(labels, values, **options), there


def same_bins(first, second):
    return all(getattr(first, name).same(getattr(second, name)) for name in ("size", "outputs", "targets"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lens", LENSES, ids=str)
def test_of_fixed_edges_the_same_totals_come_back_and_nothing_else(lens, dtype, fetches):
    host, there = both(dtype=dtype)
    for binning in FIXED:
        metric = cal.BinnedError(lens=lens, binning=binning)
        fetches.clear()
        summary = metric.summarise(there)
        assert fetches == [5 * summary.size.hi.size]
        assert same_bins(summary, metric.summarise(host))


@pytest.mark.parametrize("lens", LENSES, ids=str)
def test_batches_of_any_size_add_up_to_the_same_totals(lens, fetches, monkeypatch):
    host, there = both()
    metric = cal.BinnedError(lens=lens)
    expected = metric.summarise(host)
    for block, at_once in ((1500, 1 << 27), (1 << 24, 1500)):
        monkeypatch.setattr("calibrant.kernels.rowwise.BLOCK", block)
        monkeypatch.setattr(DeviceArray, "at_once", at_once)
        monkeypatch.setattr("calibrant.binning.fixed.STREAM", at_once)
        assert same_bins(metric.summarise(there), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("binning", TABLES, ids=str)
def test_the_table_of_forecasts_is_that_of_the_host(binning, dtype, fetches):
    host, there = both(dtype=dtype)
    for lens in (cal.TopLabel(), cal.Classwise(), cal.ByLabel(cal.TopLabel()), cal.Above(cal.Classwise(), 0.01)):
        metric = cal.BinnedError(lens=lens, binning=binning)
        first, second = metric.summarise(there), metric.summarise(host)
        for name in ("values", "counts", "targets", "starts"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
        assert first.values.dtype == second.values.dtype
        assert metric(there).value == metric(host).value


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("n_bins", "long", "counts"), [(1, 4096, 1 << 30), (7, 4096, 1 << 30), (7, 1, 1 << 14), (N + 50, 1, 1 << 30)]
)
def test_columns_are_cut_at_ranks_without_being_sorted(n_bins, long, counts, dtype, fetches, monkeypatch):
    monkeypatch.setattr("calibrant.kernels.order_statistics.LONG", long)
    monkeypatch.setattr("calibrant.kernels.order_statistics.COUNTS", counts)
    host, there = both(dtype=dtype)
    metric = cal.ACE.replace(binning=cal.EqualMass(n_bins))
    summary = metric.summarise(there)
    fetches.clear()
    first, second = metric.conclude(summary), metric(host)
    assert same_bins(first.bins, second.bins)
    for name in ("low", "high", "requested"):
        assert np.array_equal(getattr(first.bins, name), getattr(second.bins, name), equal_nan=True)
    assert (len(fetches) == 2) == (dtype is not torch.float64)


def test_unsorted_columns_are_a_table_for_all_else(fetches):
    host, there = both()
    expected = cal.ACE.summarise(host)
    unsorted = cal.ACE.summarise(there)
    assert unsorted.to_bytes() == expected.to_bytes()
    assert cal.Summary.from_bytes(unsorted.to_bytes()).to_bytes() == expected.to_bytes()
    halves = [(part[:100], part[100:]) for part in (there, host)]
    for sides in ((0, 0), (0, 1), (1, 0)):
        total = sum(cal.ACE.summarise(halves[side][half]) for half, side in enumerate(sides))
        assert total.to_bytes() == expected.to_bytes()
    sweep = cal.ACE.replace(binning=cal.Sweep(cal.EqualMass()))
    assert sweep.conclude(unsorted).value == sweep(host).value
    current = cal.ACE.refine()
    while (following := current.refine(cells := current.summarise(there))) != current:
        current = following
    assert current.conclude(cells).value == cal.ACE(host).value


@pytest.mark.parametrize("name", cal.RECIPES)
def test_every_recipe_has_the_number_of_the_host(name, fetches):
    host, there = both()
    assert cal.RECIPES[name](there).value == pytest.approx(
        cal.RECIPES[name](host).value, rel=1e-12, abs=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_of_logits_every_number_is_within_the_bound(dtype, fetches):
    host, there = both("logits", dtype)
    bound = 1e-12 if dtype is torch.float64 else 1e-6
    metrics = [cal.MeanScore(lens, score) for lens in (cal.TopLabel(), cal.InTopK(3), cal.Full()) for score in SCORES]
    for metric in (cal.ECE, cal.SCE, cal.ADAPTIVE_ECE, cal.ACCURACY, *metrics):
        first, second = metric(there), metric(host)
        assert first.value == pytest.approx(second.value, abs=bound)
        assert any("float32" in note for note in first.notes) == (dtype is not torch.float64)


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_scores_of_whole_rows_are_summed_on_the_device(kind, fetches):
    host, there = both(kind)
    fetches.clear()
    for metric in (cal.BRIER, cal.LOG_LOSS, cal.ACCURACY):
        first, second = metric.summarise(there), metric.summarise(host)
        exact = kind == "probs" and metric is not cal.LOG_LOSS
        assert first.total.same(second.total) if exact else True
        assert first.total.value == pytest.approx(second.total.value, abs=1e-6 * N if kind == "logits" else 1e-10)
    assert max(fetches) == 4


def test_an_infinite_log_loss_is_counted_apart(fetches):
    values = far(np.array([[1.0, 0.0], [0.5, 0.5]], np.float32))
    assert cal.LOG_LOSS(far([1, 1]), values).value == np.inf


def test_scores_too_large_for_two_limbs_are_summed_on_the_host(fetches):
    logits = np.array([[0.0, 1e20], [0.0, 1.0]], np.float32)
    first = cal.LOG_LOSS(cal.Predictions.from_logits([0, 1], far(logits)))
    assert first.value == pytest.approx(cal.LOG_LOSS(cal.Predictions.from_logits([0, 1], logits)).value, rel=1e-6)


BROKEN = {
    "nan": lambda p: p.__setitem__((5, 2), np.nan),
    "infinite": lambda p: p.__setitem__((5, 2), np.inf),
    "negative": lambda p: p.__setitem__((5, 2), -0.5),
    "uneven": lambda p: p.__setitem__(5, p[5] * 0.9),
    "percentages": lambda p: p.__imul__(100),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_wrong_is_said_in_the_words_of_the_host(fault, fetches):
    labels, values = forecasts()
    BROKEN[fault](values)
    with pytest.raises(cal.CalibrationInputError) as expected:
        cal.ECE(labels, values.numpy())
    with pytest.raises(cal.CalibrationInputError) as reason:
        cal.ECE(far(labels), far(values))
    assert str(reason.value) == str(expected.value)


def test_nan_is_seen_where_the_extremes_of_rows_pass_it_over(fetches, monkeypatch):
    """As those of Triton's kernels do: the sum of the row is nan."""
    labels, values = forecasts()
    values[5, 2] = torch.nan
    walk = backend.rowwise.tops

    def passing_over(rows, labels):
        top, place, (low, high, _, _, outside) = walk(rows.nan_to_num(0.0), labels)
        return top, place, torch.stack((low, high, *(rows.sum(dim=1).sum(dim=0, keepdim=True),) * 2, outside))

    monkeypatch.setattr(backend.rowwise, "tops", passing_over)
    with pytest.raises(cal.CalibrationInputError, match="must be finite, got nan at row 5, column 2"):
        cal.ECE(far(labels), far(values))


@pytest.mark.parametrize("label", [-1, K, 255])
def test_labels_out_of_range_are_named_as_on_the_host(label, fetches):
    labels, values = forecasts()
    labels[7] = label
    with pytest.raises(cal.CalibrationInputError) as expected:
        cal.ECE(labels, values.numpy())
    with pytest.raises(cal.CalibrationInputError) as reason:
        cal.ECE(far(labels), far(values))
    assert str(reason.value) == str(expected.value)


def test_minus_infinity_is_refused_on_a_device(fetches):
    labels, values = forecasts("logits")
    values[3, 4] = -np.inf
    with pytest.raises(cal.CalibrationInputError, match="must be finite, got -inf at row 3, column 4"):
        cal.Predictions.from_logits(far(labels), far(values))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_named_as_on_the_host(value, fetches):
    labels, values = forecasts("logits")
    values[3, 4] = value
    with pytest.raises(cal.CalibrationInputError) as expected:
        cal.Predictions.from_logits(labels, values.numpy())
    with pytest.raises(cal.CalibrationInputError) as reason:
        cal.Predictions.from_logits(far(labels), far(values))
    assert str(reason.value) == str(expected.value)


def test_checks_fetch_a_few_numbers_once(fetches):
    both()
    assert fetches == [5]  # the ends of all rows


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_labels_beside_forecasts_are_looked_at_in_the_walk_over_these(kind, fetches, monkeypatch):
    """Another look at them would wait for the device once more."""
    walks = []
    walk = backend.extremes
    monkeypatch.setattr(backend, "extremes", lambda values: walks.append(values.shape) or walk(values))
    host, there = both(kind)
    assert walks == []
    assert np.array_equal(np.asarray(there.labels), host.labels)


def test_labels_of_the_host_and_of_the_device_are_the_same(fetches):
    labels, values = forecasts()
    names = [f"class {index}" for index in range(K)]
    expected = cal.CWECE(labels, values.numpy()).value
    assert cal.CWECE(labels, far(values)).value == expected
    assert cal.CWECE(far(labels), values.numpy()).value == expected
    assert cal.CWECE([names[label] for label in labels], far(values), classes=names).value == expected


def test_clipped_rows_are_counted_and_clipped(fetches):
    labels, values = forecasts()
    values[5] = 0
    values[5, :2] = torch.tensor([1 + 5e-7, -5e-7])
    first, second = cal.ECE(far(labels), far(values)), cal.ECE(labels, values.numpy())
    assert (first.value, first.notes) == (second.value, second.notes)
    assert "clipped" in first.notes[0]


@pytest.mark.parametrize(
    "options", [{"ignore_index": 3}, {"normalize": True}, {"missing": "drop"}, {"sample_weight": np.arange(N) % 3}]
)
def test_options_do_what_they_do_on_the_host(options, fetches):
    labels, values = forecasts()
    for metric in (cal.ECE, cal.SCE, cal.BRIER):
        first, second = metric(far(labels), far(values), **options), metric(labels, values.numpy(), **options)
        assert (first.value, first.notes) == (second.value, second.notes)


def test_maps_of_classes_stay_on_the_device(fetches):
    rng = np.random.default_rng(0)
    maps = rng.dirichlet(np.ones(4), (2, 5, 3)).astype(np.float32)
    labels = rng.integers(0, 4, (2, 5, 3))
    expected = cal.SCE(labels, np.moveaxis(maps, -1, 1), class_axis=1)
    there = cal.Predictions.from_probs(far(labels), far(np.moveaxis(maps, -1, 1).copy()), class_axis=1)
    assert isinstance(there.values, DeviceArray)
    assert cal.SCE(there).value == expected.value


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_forecasts_of_an_event_are_reduced_on_the_device(kind, fetches):
    rng = np.random.default_rng(1)
    p = rng.random(200).astype(np.float32)
    labels = (rng.random(200) < p).astype(int)
    make = cal.Predictions.from_probs if kind == "probs" else cal.Predictions.from_logits
    there, host = make(far(labels), far(p)), make(labels, p)
    for metric in (cal.ECE, cal.ADAPTIVE_ECE, cal.BRIER, cal.LOG_LOSS, cal.AUROC):
        assert metric(there).value == pytest.approx(metric(host).value, rel=1e-12)
    if kind == "probs":
        fetches.clear()
        cal.ECE(there)
        assert fetches == [5 * 15]


def test_soft_labels_agree(fetches):
    labels, values = forecasts()
    soft = 0.9 * np.eye(K)[labels] + 0.1 / K
    for metric in (cal.ECE, cal.SCE, cal.BRIER, cal.LOG_LOSS):
        assert metric(soft, far(values)).value == pytest.approx(metric(soft, values.numpy()).value, rel=1e-12)


def test_the_tensor_is_neither_copied_nor_changed(fetches):
    labels, values = forecasts("logits", torch.float64)
    there = far(values)
    predictions = cal.Predictions.from_logits(labels, there)
    assert predictions.values.tensor.data_ptr() == there.data_ptr()
    for recipe in cal.RECIPES.values():
        recipe(predictions)
    assert torch.equal(there, values)


def test_the_top_class_is_looked_for_once(fetches, monkeypatch):
    walks = []
    walk = backend.rowwise.tops
    monkeypatch.setattr(backend.rowwise, "tops", lambda *arrays: walks.append(1) or walk(*arrays))
    _, there = both()
    cal.ECE(there)
    cal.ADAPTIVE_ECE(there)
    assert len(walks) == 1


def test_what_a_device_cannot_do_is_done_on_the_host(fetches):
    host, there = both()
    interval = cal.Bootstrap(20, seed=0)
    assert cal.ECE(there, interval=interval).interval == cal.ECE(host, interval=interval).interval
    assert cal.consistency(cal.ECE, there, n=10).p_value == cal.consistency(cal.ECE, host, n=10).p_value
    assert np.array_equal(pickle.loads(pickle.dumps(there)).probabilities, host.probabilities)
    selected = cal.BinnedError(select=cal.confidence_between(0.2, 0.8) & cal.label_in(1, 2, 3))
    assert selected(there).value == selected(host).value
    assert cal.ECE(there[::-1]).value == cal.ECE(host[::-1]).value


def test_a_lens_of_ones_own_may_give_arrays_of_the_host(fetches):
    def lens(predictions):
        outputs = np.asarray(predictions.confidence)[:, None, None] ** 2
        return view_of(predictions, outputs, (predictions.labels < K // 2) * 1 - 1, "one's own", None)

    host, there = both()
    for binning in (cal.EqualWidth(), cal.EqualMass()):
        metric = cal.BinnedError(lens=lens, binning=binning)
        assert isinstance(lens(there).targets, np.ndarray)
        assert metric.summarise(there).to_bytes() == metric.summarise(host).to_bytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_a_temperature_is_fitted_on_the_device(dtype, fetches):
    labels, values = forecasts("logits", dtype)
    first = cal.TemperatureScaling().fit(far(values), far(labels))
    assert max(fetches) <= N * K  # a digest of some entries; no more than one number a row otherwise
    assert sorted(fetches)[-2] <= N
    second = cal.TemperatureScaling().fit(values, labels)
    assert first.temperature_ == pytest.approx(second.temperature_, rel=1e-5)
    certificates = first.certificate_, second.certificate_
    assert certificates[0].log_loss_after == pytest.approx(certificates[1].log_loss_after, rel=1e-6)
    assert certificates[0].accuracy_after == certificates[1].accuracy_after


@pytest.mark.parametrize("method", ["VectorScaling", "PlattScaling", "HistogramBinning"])
def test_other_methods_learn_on_the_host(method, fetches):
    labels, values = forecasts("logits")
    fits = [getattr(cal, method)().fit(x, y) for x, y in ((far(values), far(labels)), (values, labels))]
    assert np.array_equal(*(fitted.predict_proba(values) for fitted in fits))


# ---- device arrays as arrays of NumPy --------------------------------------------------------------------------------


def test_functions_of_numpy_stay_on_the_device_or_get_a_copy(fetches):
    array = DeviceArray(torch.tensor([[0.25, 0.5], [1.0, 0.0]]))
    truth = array > np.float32(0.3)
    kept = (np.where(truth[:, 0], 0, -1), np.take_along_axis(array, np.array([[1], [0]]), axis=1), 1.0 - array)
    assert all(isinstance(each, DeviceArray) for each in (truth, *kept))
    assert fetches == []
    assert [np.asarray(each).tolist() for each in kept] == [[-1, 0], [[0.5], [1.0]], [[0.75, 0.5], [0.0, 1.0]]]
    assert np.exp(array).tolist() == np.exp(array.host).tolist()
    assert array[0, 1] == 0.5
    assert array[::-1].tolist() == [[1.0, 0.0], [0.25, 0.5]]
    assert array.T.tolist() == [[0.25, 1.0], [0.5, 0.0]]


def test_halves_are_compared_as_float32(fetches):
    array = DeviceArray(torch.tensor([0.3], dtype=torch.bfloat16))
    assert (array > np.float32(0.3)).tolist() == (array.host > np.float32(0.3)).tolist() == [True]


@pytest.mark.parametrize("groups", [None, "group"])
@pytest.mark.parametrize("name", [name for name in cal.RECIPES if name not in ("FULL_ECE", "SKCE")])
def test_intervals_are_those_of_the_host(fetches, name, groups):
    metric, asked = cal.RECIPES[name], 0
    rng = np.random.default_rng(0)
    p = rng.random(300).astype(np.float32)
    for labels, values in (forecasts(n=300), ((rng.random(300) < p).astype(int), torch.tensor(p))):
        group = np.arange(300) % 40
        host = cal.Predictions.from_probs(labels, values.numpy(), group=group)
        there = cal.Predictions.from_probs(far(labels), far(values), group=group)
        interval = cal.Confidence(groups=groups)
        try:
            expected = metric(host, interval=interval)
        except cal.CalibrationInputError:  # a question about classes, of an event
            continue
        found, asked = metric(there, interval=interval), asked + 1
        assert found.notes == expected.notes
        assert (found.interval is None) == (expected.interval is None)
        if found.interval is not None:
            ends = [(each.low, each.high) for each in (found.interval, expected.interval)]
            assert ends[0] == pytest.approx(ends[1], abs=1e-9, nan_ok=True)
    assert asked
