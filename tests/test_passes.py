"""Passes: metrics that follow the order of forecasts, in little memory, give the numbers of all rows to the bit."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.binning import cells, tallying
from calibrant.errors.asking import Pass
from calibrant.errors.cumulative import CumulativeError, kuiper
from calibrant.errors.isotonic import IsotonicError, logarithmic

ADAPTIVE = cal.BinnedError(binning=cal.EqualMass(15))
METRICS = {
    "equal mass": ADAPTIVE,
    "many bins": cal.BinnedError(binning=cal.EqualMass(100), aggregate=cal.maximum),
    "quantiles": cal.BinnedError(binning=cal.Quantiles(9)),
    "debiased": cal.ECE_DEBIASED.replace(binning=cal.EqualMass(8)),
    "sweep": cal.ECE_SWEEP,
    "width sweep": cal.BinnedError(binning=cal.Sweep(cal.EqualWidth())),
    "ks": CumulativeError(),
    "kuiper": CumulativeError(statistic=kuiper),
    "isotonic": IsotonicError(),
    "logarithmic": IsotonicError(score=logarithmic),
    "label-binned": cal.LabelBinnedError(binning=cal.EqualMass(5)),
    "range schemes": cal.EnsembleError(binnings=[cal.EqualMass(5), cal.EqualMass(12)]),
    "smooth": cal.SMECE,
    "neighbours": cal.NeighbourError(),
    "fixed edges": cal.ECE,
    "mean score": cal.BRIER,
    "tree": cal.BinnedError(binning=cal.KDTree(gamma=0.2)),
}
LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "middle": lambda rng, n: rng.beta(2, 2, n),
    "decimals": lambda rng, n: np.round(rng.random(n), 2),
    "few atoms": lambda rng, n: rng.choice([0.0, 0.1, 0.3, 0.30000001, 0.5, 0.9999, 1.0], n),
    "near 0": lambda rng, n: rng.beta(0.05, 0.5, n) ** 3,
    "near 1": lambda rng, n: 1 - 10.0 ** -rng.uniform(0, 14, n),
    "one cell": lambda rng, n: 0.371 + 1e-5 * rng.random(n),
}


def refined(metric, batches):
    """The result of several passes over batches, and how many entries each pass kept."""
    current, entries = metric.refine(), []
    while True:
        summary = sum(map(current.summarise, batches))
        entries.append(len(getattr(summary, "values", ())))
        following = current.refine(summary)
        if following == current:
            return current.conclude(summary), entries
        current = following
        assert len(entries) < 5


def assert_same(result, expected):
    """Equal in value, parts, bins and details to the bit; a p-value may use the means of cells."""
    assert result.metric == expected.metric
    assert result.about == expected.about
    numbers = [np.array([each.value, *each.values, *each.sizes]) for each in (result, expected)]
    assert np.array_equal(*numbers, equal_nan=True)
    apart = [{**each.details, "p_value": None} for each in (result, expected)]
    assert str(apart[0]) == str(apart[1])
    if expected.bins is not None:
        for name in ("size", "outputs", "targets"):
            assert getattr(result.bins, name).same(getattr(expected.bins, name)), name
        for name in ("low", "high", "requested"):
            ends = [getattr(each.bins, name) for each in (result, expected)]
            assert (ends[0] is ends[1] is None) or np.array_equal(*ends, equal_nan=True), name


@pytest.mark.parametrize(
    "lens", [cal.TopLabel(), cal.Classwise(), cal.ByLabel(cal.TopLabel()), cal.Above(cal.Classwise(), 0.3)]
)
def test_counting_in_cells_gives_the_table_that_sorting_gives(lens, monkeypatch):
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        p = rng.dirichlet(np.full(3, 0.4), 500)
        p = np.where(rng.random((500, 1)) < 0.5, p, p.round(2)).astype(dtype)
        rows = cal.Predictions.from_probs(rng.integers(0, 3, 500), p, normalize=True)
        for metric in (first := Pass(ADAPTIVE.replace(lens=lens)), first.refine(first.summarise(rows))):
            by_sorting = metric.summarise(rows).to_bytes()
            with monkeypatch.context() as context:
                context.setattr(tallying, "FEWEST", 1)
                context.setattr("calibrant.binning.ladder.distinct", None)  # nothing is sorted
                assert metric.summarise(rows).to_bytes() == by_sorting


def test_independent_labels_are_counted_in_cells_without_sorting(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random((500, 4))
    rows = cal.Predictions.from_multilabel((rng.random(p.shape) < p).astype(int), p)
    first = Pass(ADAPTIVE)
    by_sorting = first.summarise(rows).to_bytes()
    monkeypatch.setattr(tallying, "FEWEST", 1)
    monkeypatch.setattr("calibrant.binning.ladder.Forecasts.of", None)
    assert first.summarise(rows).to_bytes() == by_sorting


def in_batches(predictions, rng):
    """Rows in another order, in up to four batches."""
    places = np.sort(rng.integers(0, len(predictions) + 1, rng.integers(0, 4)))
    parts = np.split(rng.permutation(len(predictions)), places)
    return [predictions[part] for part in parts if len(part)]


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=15)
@given(
    law=st.sampled_from(list(LAWS)),
    n=st.sampled_from([1, 2, 3, 7, 30, 200, 1000, 5000]),
    kind=st.sampled_from([np.float32, np.float64]),
    power=st.sampled_from([0.0, 1.0, 2.0, 50.0]),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_passes_give_the_numbers_of_all_rows_to_the_bit(name, law, n, kind, power, weighted, seed):
    rng = np.random.default_rng(seed)
    n = min(n, 300) if name in ("tree", "neighbours", "smooth") else n
    p = np.clip(LAWS[law](rng, n), 0, 1).astype(kind)
    weight = np.append(1, rng.integers(0, 4, n - 1)) if weighted else None
    predictions = cal.Predictions.from_probs((rng.random(n) < p**power).astype(int), p, sample_weight=weight)
    metric = METRICS[name]
    result, _ = refined(metric, in_batches(predictions, rng))
    assert_same(result, metric(predictions))


@pytest.mark.parametrize("metric", [cal.ACE, cal.TACE])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_class_of_a_hundred_is_exact(metric, kind):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1500, 100)) * 3
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.where(rng.random(1500) < 0.7, p.argmax(axis=1), rng.integers(0, 100, 1500))
    predictions = cal.Predictions.from_probs(labels, p.astype(kind), normalize=True)
    result, entries = refined(metric, in_batches(predictions, rng))
    assert_same(result, metric(predictions))
    assert len(result.values) == 100
    assert len(entries) > 1


@pytest.mark.parametrize("name", ["equal mass", "quantiles", "sweep", "ks", "isotonic"])
@pytest.mark.parametrize("lens", [cal.ByLabel(cal.TopLabel()), cal.ByPrediction(cal.TopLabel()), cal.Flat()])
def test_lenses_with_groups_and_several_answers_a_row_are_asked_question_by_question(name, lens):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([0.5, 1, 2], 2000)
    predictions = cal.Predictions.from_probs(rng.integers(0, 3, 2000), p)
    metric = METRICS[name].replace(lens=lens)
    result, entries = refined(metric, in_batches(predictions, rng))
    assert_same(result, metric(predictions))
    assert len(entries) > 1 or name == "ks"


@pytest.mark.parametrize("name", ["equal mass", "quantiles", "sweep", "ks", "isotonic"])
def test_soft_labels_are_exact(name):
    rng = np.random.default_rng(2)
    p = np.round(rng.random(3000), 3)
    shares = rng.integers(0, 9, 3000) / 8
    predictions = cal.Predictions.from_probs(np.column_stack([1 - shares, shares]), np.column_stack([1 - p, p]))
    metric = METRICS[name].replace(lens=cal.OneClass(1))
    result, _ = refined(metric, in_batches(predictions, rng))
    assert_same(result, metric(predictions))


@pytest.mark.parametrize("name", METRICS)
def test_an_empty_selection_is_nan_as_before(name):
    predictions = cal.Predictions.from_probs([0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    metric = METRICS[name].replace(lens=cal.Classwise(), select=cal.confidence_between(0.9, 1.0))
    result, entries = refined(metric, [predictions])
    assert np.isnan(result.value)
    assert_same(result, metric(predictions))
    assert len(entries) == 1


def continuous(n=200_000, power=1.0):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    return cal.Predictions.from_probs((rng.random(n) < p**power).astype(int), p)


def test_a_second_pass_of_equal_mass_keeps_few_forecasts():
    predictions = continuous()
    result, (first, second) = refined(ADAPTIVE, [predictions])
    assert first < len(cells.lasts())
    assert first < second < 0.05 * len(predictions)
    assert_same(result, ADAPTIVE(predictions))


def test_a_path_far_from_0_needs_hardly_any_forecast():
    predictions = continuous(power=1.3)
    for name in ("ks", "kuiper"):
        result, (first, second) = refined(METRICS[name], [predictions])
        assert second - first < 0.01 * len(predictions)
        assert result.value == METRICS[name](predictions).value
        assert "p-value: forecasts count as the mean of their cell" in result.notes


def test_a_p_value_from_cells_uses_their_means():
    rng = np.random.default_rng(5)
    p = rng.beta(8, 2, 20_000)
    predictions = cal.Predictions.from_probs((rng.random(20_000) < p - 0.003).astype(int), p)
    metric = CumulativeError()
    result, _ = refined(metric, [predictions])
    expected = metric(predictions)
    assert 0.01 < expected.details["p_value"] < 0.9
    assert result.details["p_value"] == pytest.approx(expected.details["p_value"], rel=1e-6)
    assert result.notes == ("p-value: forecasts count as the mean of their cell",)
    assert expected.notes == ()


def test_a_sweep_takes_three_passes_and_leaves_many_cells_closed():
    predictions = continuous(50_000)
    result, entries = refined(cal.ECE_SWEEP, [predictions])
    assert_same(result, cal.ECE_SWEEP(predictions))
    assert len(entries) == 3
    assert entries[-1] < 0.9 * len(predictions)


def test_a_table_of_cells_keeps_no_rows_until_cells_are_opened():
    predictions = continuous(5000)
    first = ADAPTIVE.refine()
    summary = first.summarise(predictions)
    second = first.refine(summary)
    assert not summary.keeps_rows
    assert second.summarise(predictions).keeps_rows
    assert ADAPTIVE.summarise(predictions).keeps_rows


def test_forecasts_on_usual_edges_need_one_pass():
    rng = np.random.default_rng(6)
    p = rng.integers(0, 101, 5000) / 100
    predictions = cal.Predictions.from_probs((rng.random(5000) < p).astype(int), p)
    for name in ("equal mass", "quantiles", "sweep", "ks", "isotonic"):
        result, entries = refined(METRICS[name], [predictions])
        assert_same(result, METRICS[name](predictions))
        assert entries == [101]


def test_concluding_too_early_says_that_another_pass_is_needed():
    first = ADAPTIVE.refine()
    with pytest.raises(cal.CalibrationInputError, match=r"another pass is needed.*refine\(summary\)"):
        first.conclude(first.summarise(continuous(1000)))


def test_summaries_of_different_passes_refuse_each_other():
    predictions = continuous(5000)
    first = ADAPTIVE.refine()
    summary = first.summarise(predictions)
    second = first.refine(summary)
    for other in (ADAPTIVE, second):
        with pytest.raises(cal.CalibrationInputError, match="must come from one metric to be added"):
            summary + other.summarise(predictions)
    with pytest.raises(cal.CalibrationInputError, match="must be one of"):
        second.conclude(summary)
    with pytest.raises(cal.CalibrationInputError, match="must be one of"):
        second.refine(ADAPTIVE.summarise(predictions))


def test_a_first_pass_serves_every_metric_that_follows_from_the_table():
    predictions = continuous(5000)
    summary = ADAPTIVE.refine().summarise(predictions)
    following = CumulativeError().refine().refine(summary)
    assert following.conclude(following.summarise(predictions)).value == CumulativeError()(predictions).value


def test_passes_are_values():
    first = ADAPTIVE.refine()
    summary = first.summarise(continuous(5000))
    assert first == Pass(ADAPTIVE) == first.refine()
    assert hash(first) == hash(Pass(ADAPTIVE))
    assert first.refine(summary) == first.refine(summary) != first
    assert repr(first) == f"Pass({ADAPTIVE!r}, 0 cells opened)"
    assert (first.name, first.facts) == (ADAPTIVE.name, ADAPTIVE.facts)


@pytest.mark.parametrize("metric", [ADAPTIVE, cal.ECE_SWEEP, CumulativeError(), IsotonicError()], ids=str)
def test_passes_travel_as_json(metric):
    first = metric.refine()
    following = first.refine(first.summarise(continuous(2000)))
    for step in (first, following):
        again = cal.from_json(step.to_json())
        assert (again, again.name, again.reads) == (step, step.name, step.reads)


def test_what_is_no_pass_is_refused():
    document = json.loads(ADAPTIVE.refine().to_json())
    for wrong in (
        {"metric": 3},
        {"metric": document},
        {"metric": json.loads(cal.ECE.to_json())},
        {"opened": [3]},
        {"opened": [[0, 1, 2]]},
        {"opened": [["a", 1]]},
        {"opened": [[0, 0.5]]},
        {"opened": 3},
    ):
        with pytest.raises(cal.CalibrationInputError, match="Pass"):
            cal.from_json(json.dumps(document | wrong))


@pytest.mark.parametrize("name", ["label-binned", "smooth", "neighbours", "fixed edges", "mean score", "tree"])
def test_where_cells_are_of_no_use_one_pass_is_enough(name):
    assert METRICS[name].refine() is METRICS[name]


def test_ones_own_binning_needs_one_pass_with_all_forecasts():
    @dataclasses.dataclass(frozen=True)
    class Halves(type(cal.EqualMass()).__mro__[2]):
        def cuts(self, ladder):
            return np.array([0, ladder.n // 2, ladder.n])

    metric = cal.BinnedError(binning=Halves())
    predictions = continuous(100)
    assert metric.refine() is metric
    assert refined(metric, [predictions])[0].value == metric(predictions).value


def test_fractional_weights_are_refused_as_before():
    predictions = cal.Predictions.from_probs([0, 1], [0.2, 0.7], sample_weight=[0.5, 1])
    with pytest.raises(cal.CalibrationInputError, match="EqualMass: counts samples, so weights must be whole"):
        ADAPTIVE.refine().summarise(predictions)


# ---- cells -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=2))
def test_keys_and_cells_rise_with_forecasts(values):
    p = np.sort(values)
    assert (np.diff(cells.key(p)) >= 0).all()
    assert (np.diff(cells.numbers(p)) >= 0).all()
    assert (cells.key(p[1:]) > cells.key(p[:-1])).tolist() == (p[1:] > p[:-1]).tolist()
    inside = cells.numbers(p)
    assert (cells.firsts()[inside] <= p).all()
    assert (p <= cells.lasts()[inside]).all()


@given(st.floats(0.5, 1))
def test_keys_are_mirrored(p):
    assert cells.key(1 - p) == -cells.key(p)


@pytest.mark.parametrize(
    ("octave", "each"), [(1, 128), (3, 128), (4, 64), (7, 64), (8, 32), (15, 32), (16, 8), (31, 8)]
)
def test_cells_are_right_closed_below_a_half_and_mirrored_above(octave, each):
    bounds = 2.0 ** -(octave + 1) * (1 + np.arange(1, each + 1) / each)
    for bound, beyond in ((bounds, 1.0), (1 - bounds, 0.0)):
        assert (cells.numbers(bound) != cells.numbers(np.nextafter(bound, beyond))).all()
    there = np.unique(np.concatenate([cells.firsts(), cells.lasts()]))
    inside = there[(there > bounds[0] / (1 + 1 / each)) & (there <= bounds[-1])]
    atoms = cells.lasts()[cells.atoms()]
    usual = np.concatenate([np.nextafter(atoms, 0), atoms, np.nextafter(atoms, 1), bounds, np.nextafter(bounds, 1)])
    assert np.isin(inside[1:], usual).all()


def test_cells_are_narrow():
    first, last = cells.firsts(), cells.lasts()
    near = np.minimum(first, 1 - last)
    for least, width in ((2.0**-4, 1 / 128), (2.0**-8, 1 / 64), (2.0**-16, 1 / 32), (2.0**-32, 1 / 8)):
        assert ((last - first)[near >= least] <= near[near >= least] * width).all()
    assert (last - first).max() < 1 / 512
    assert len(last) < cells.COUNT


def test_every_edge_is_a_cell_of_its_own_in_every_precision():
    for b in cells.DIVISORS:
        edges = np.array([float(Fraction(k, b)) for k in range(b + 1)])
        bits = edges.astype(np.float32).view(np.uint32)
        brain = (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32)  # halves to even
        for rounded in (edges, edges.astype(np.float32), edges.astype(np.float16), brain):
            at = np.asarray(rounded, np.float64)
            number = cells.numbers(at)
            assert cells.atoms()[number].all()
            assert (cells.lasts()[number] == at).all()
            assert (cells.numbers(np.nextafter(at[1:], 0.0)) < number[1:]).all()
            assert (cells.numbers(np.nextafter(at[:-1], 1.0)) > number[:-1]).all()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_bins_at_usual_edges_follow_from_cells_alone(kind, closed):
    rng = np.random.default_rng(4)
    for b in (5, 7, 10, 15, 20, 100):
        edges = np.arange(b + 1) / b
        p = np.clip(np.concatenate([edges, rng.random(500), edges - 1e-9, edges + 1e-9]), 0, 1).astype(kind)
        predictions = cal.Predictions.from_probs(rng.integers(0, 2, len(p)), p)
        table = ADAPTIVE.refine().summarise(predictions)
        binning = cal.EqualWidth(b, closed)
        bins, expected = table.cut(binning.cuts), cal.BinnedError(binning=binning)(predictions).bins
        for name in ("size", "outputs", "targets"):
            assert getattr(bins, name).same(getattr(expected, name))


@pytest.mark.parametrize("metric", [ADAPTIVE, cal.ACE, cal.IsotonicError()], ids=lambda metric: metric.name)
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_of_cells_travel_and_can_be_taken_apart_again(metric, weighted):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 300)
    y, weight = rng.integers(0, 4, 300), rng.integers(1, 4, 300) if weighted else None
    first = metric.refine()
    predictions = cal.Predictions.from_probs(y, p, sample_weight=weight)
    whole = first.summarise(predictions)
    parts = [first.summarise(predictions[rows]) for rows in np.array_split(rng.permutation(300), 40)]
    assert sum(parts).to_bytes() == whole.to_bytes()
    assert cal.Summary.from_bytes(whole.to_bytes()).to_bytes() == whole.to_bytes()
    a, b = first.summarise(predictions[:200]), first.summarise(predictions[200:])
    assert ((a + b) - b).to_bytes() == a.to_bytes()
    assert len((whole - whole).values) == 0
    with pytest.raises(cal.CalibrationInputError, match="must hold all that is taken away"):
        b - a
    with pytest.raises(cal.CalibrationInputError, match="must keep no rows"):
        metric.summarise(predictions) - metric.summarise(predictions[:3])
