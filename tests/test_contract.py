"""The contract: what every estimator holds to, whatever its settings; what is special to one is in its own file."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import CalibrationInputError
from calibrant.aggregates import maximum, sample_quantile
from calibrant.errors.cumulative import CumulativeError, kuiper
from calibrant.errors.curve import loess
from calibrant.errors.isotonic import IsotonicError, isotonic_curve, logarithmic
from calibrant.errors.kde import KDEError
from calibrant.errors.kernel import KernelError, biased, unbiased_blocks
from calibrant.errors.logistic import fitted_intercept
from calibrant.errors.neighbour import NeighbourError, forecasts_within, nearest_forecasts
from calibrant.errors.platt_excess import platt_excess
from calibrant.errors.similarity import exponential, gaussian
from calibrant.errors.smooth import SmoothError
from strategies import rows, same
from toy import P, y

TOP, EACH, TRUE = cal.TopLabel(), cal.Classwise(), cal.ByLabel(cal.TopLabel())
SEVERAL = (EACH, cal.mean_of_all), (TRUE, cal.weighted_by_size)
ALIKE = [cal.mean_of, cal.mean_of_all, cal.weighted_by_size]  # where all questions have the same size
EMPTY = "no samples: the selection is empty"
seeds = st.integers(0, 2**32 - 1)
FEWER = settings(max_examples=settings.default.max_examples // 3)  # each example asks every question alone

SETTINGS = {  # and what each takes besides events, hard labels and whole weights
    cal.BinnedError(): "fractions soft shares",
    cal.BinnedError(binning=cal.EqualWidth(5, "left"), distance=cal.squared, aggregate=cal.root_mean): (
        "fractions soft shares"
    ),
    cal.BinnedError(binning=cal.Edges([0, 0.3, 1]), distance=cal.signed): "fractions soft shares",
    cal.BinnedError(distance=cal.relative): "fractions soft shares",
    cal.BinnedError(distance=cal.log_odds()): "fractions soft",
    cal.BinnedError(lens=cal.Full(), binning=cal.Grid(3), distance=cal.lp(2)): "fractions soft shares vectors",
    cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(0.3)): "soft vectors",
    cal.BinnedError(binning=cal.EqualMass(4)): "soft",
    cal.BinnedError(binning=cal.EqualMass(4), distance=cal.debiased_squared, aggregate=cal.root_mean): "",
    cal.BinnedError(binning=cal.Quantiles(4), aggregate=maximum): "soft",
    cal.BinnedError(binning=cal.Sweep(cal.EqualMass())): "soft",
    cal.BinnedError(binning=cal.Sweep(cal.EqualWidth(closed="left"))): "soft",
    cal.LabelBinnedError(): "soft shares",
    cal.LabelBinnedError(binning=cal.EqualMass(4), p=2): "soft",
    cal.LabelBinnedError(binning=cal.Sweep(cal.EqualMass())): "soft",
    cal.EnsembleError(binnings=[cal.EqualMass(2), cal.EqualWidth(4)]): "soft",
    NeighbourError(neighbours=nearest_forecasts(3)): "soft",
    NeighbourError(neighbours=forecasts_within(0.1), p=2): "soft shares",
    KDEError(): "",
    KDEError(order=2): "",
    SmoothError(): "soft shares",
    SmoothError(bandwidth=0.05): "soft shares",
    KernelError(): "soft vectors",
    KernelError(kernel=exponential(0.5), estimator=biased): "soft shares vectors",
    KernelError(kernel=gaussian(), estimator=unbiased_blocks()): "soft vectors",
    KernelError(lens=TOP, kernel=gaussian(0.7), estimator=unbiased_blocks(3, seed=1)): "soft vectors",
    IsotonicError(): "soft shares",
    IsotonicError(score=logarithmic): "soft shares",
    CumulativeError(): "soft shares",
    CumulativeError(statistic=kuiper): "soft shares",
    cal.CurveError(): "soft",
    cal.CurveError(smoother=loess(0.5, 1), aggregate=sample_quantile(0.9)): "soft",
    cal.CurveError(smoother=isotonic_curve, aggregate=maximum): "soft shares",
    cal.BrierDecomposition(): "soft shares",
    cal.BrierDecomposition(binning=cal.EqualMass(4)): "soft",
    cal.NetBenefit(0.4): "soft shares",
    cal.OE_RATIO: "soft shares",
    cal.SLOPE: "soft shares",
    cal.INTERCEPT: "soft shares",
    cal.TableStatistic(statistic=fitted_intercept): "soft shares",
    cal.TableStatistic(statistic=platt_excess): "soft shares",
    cal.AUROC: "soft shares",
    cal.BRIER_SKILL: "soft shares",
    cal.AURC: "soft",
    cal.AUGRC: "soft shares",
    cal.E_AURC: "soft",
    cal.MeanScore(): "fractions soft vectors",
    cal.MeanScore(cal.Full(), cal.brier_score): "fractions soft vectors",
    cal.MeanScore(cal.Full(), cal.log_score): "fractions soft shares vectors",
    cal.MeanScore(TOP, cal.hit): "fractions soft shares",
    cal.MeanScore(TOP, cal.output): "fractions soft shares",
    cal.MeanScore(cal.Full(), cal.entropy): "fractions soft shares vectors",
}
"""
fractions   weights that are not whole
soft        labels that are shares of classes
shares      the number is that of rows repeated with hard labels in these shares: it is linear in each label
vectors     questions of several coordinates
"""
FIRST = {type(metric): metric for metric in reversed(SETTINGS)}.values()
ASKED = [*SETTINGS, *(metric.replace(lens=lens, across=across) for metric in FIRST for lens, across in SEVERAL)]


def over(metrics):
    return pytest.mark.parametrize("metric", metrics, ids=repr)


def taking(word):
    return over([metric for metric, takes in SETTINGS.items() if word in takes.split()])


def refusing(word):
    return over([metric for metric, takes in SETTINGS.items() if word not in takes.split()])


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12, nan_ok=True)


def numbers(result):
    return np.array([result.value, *result.details.values(), *result.values], float)


def untested(result):
    """Without p-values: for those a weighted row is one row."""
    details = {name: number for name, number in result.details.items() if not name.startswith("p_value")}
    return dataclasses.replace(result, details=details)


def test_every_estimator_is_under_contract():
    public = [getattr(cal, name) for name in cal.__all__]
    estimators = {one for one in public if isinstance(one, type) and issubclass(one, cal.Metric)} - {cal.Metric}
    assert {type(metric) for metric in SETTINGS} == estimators


# ---- the data may come in any form -----------------------------------------------------------------------------------


@over(ASKED)
@given(data=rows(), seed=seeds)
def test_batches_of_rows_in_any_order_change_no_bit(metric, data, seed):
    p, labels = data
    rng = np.random.default_rng(seed)
    whole = cal.Predictions.from_probs(labels, p)
    cuts = np.sort(rng.integers(0, len(labels) + 1, size=3))
    parts = [metric.summarise(whole[part]) for part in np.split(rng.permutation(len(labels)), cuts)]  # some are empty
    assert same(metric.conclude(sum(parts)), metric(whole))


@over(SETTINGS)
def test_a_batch_that_is_overwritten_later_was_read(metric):
    buffer, summaries = np.empty((6, 3)), []
    for start in (0, 6):
        buffer[:] = P[start : start + 6]
        summaries.append(metric.summarise(y[start : start + 6], buffer))
    buffer[:] = 1 / 3
    assert same(metric.conclude(sum(summaries)), metric(y, P))


@over(ASKED)
@given(data=rows(most=15), seed=seeds)
def test_whole_weights_are_repetition_to_the_bit(metric, data, seed):
    p, labels = data
    times = np.random.default_rng(seed).integers(0, 4, size=len(labels))
    times[0] = max(1, times[0])
    weighted = metric(labels, p, sample_weight=times)
    repeated = metric(np.repeat(labels, times), np.repeat(p, times, axis=0))
    assert np.array_equal(numbers(untested(weighted)), numbers(untested(repeated)), equal_nan=True)
    assert weighted.sizes == repeated.sizes
    assert weighted.n == len(labels)


@taking("fractions")
@given(data=rows(), seed=seeds)
def test_fractional_weights_are_free_of_order(metric, data, seed):
    p, labels = data
    rng = np.random.default_rng(seed)
    weight, order = rng.random(len(labels)) + 0.01, rng.permutation(len(labels))
    there = metric(labels[order], p[order], sample_weight=weight[order])
    assert same(metric(labels, p, sample_weight=weight), there)


@refusing("fractions")
def test_fractional_weights_are_refused_by_what_counts_samples(metric):
    piece = type(metric.binning if isinstance(metric, cal.BinnedError) else metric).__name__
    message = f"^{piece}: counts samples, so weights must be whole, got fractional weights"
    with pytest.raises(CalibrationInputError, match=message):
        metric(y, P, sample_weight=np.linspace(0.1, 1, 12))


@over([metric for metric in ASKED if not isinstance(getattr(metric, "binning", None), cal.KDTree)])  # splits at means
@given(seed=seeds, n=st.integers(1, 30))
def test_float32_copies_of_the_same_decimals_agree(metric, seed, n):
    rng = np.random.default_rng(seed)
    twentieths, labels = rng.multinomial(20, np.full(5, 0.2), size=n) / 20, rng.integers(0, 5, size=n)
    double, single = metric(labels, twentieths), metric(labels, twentieths.astype(np.float32))
    # float32 holds 7 digits; logarithms, kernels and their bandwidths carry its rounding further than sums do
    near = 1e-6 if isinstance(metric, (KernelError, cal.MeanScore, cal.CurveError, cal.KDEError)) else 1e-7
    # ratios and slopes, which have no bounds, are as near as their size allows
    share = 1e-5 if isinstance(metric, cal.TableStatistic) else 0
    expected = pytest.approx([double.value, *double.values], rel=share, abs=near, nan_ok=True)
    assert [single.value, *single.values] == expected
    if double.bins is not None:
        assert np.array_equal(double.bins.counts, single.bins.counts)


# ---- labels ----------------------------------------------------------------------------------------------------------

SOFT = np.concatenate([np.full((1, 3), 1 / 3), np.eye(3)[y]])  # one row is soft, so that all are held so
HELD_SOFT = cal.Predictions.from_probs(SOFT, np.concatenate([P[:1], P]))[1:]


@taking("soft")
@pytest.mark.parametrize("lens", [None, EACH], ids=["own lens", "Classwise()"])
def test_soft_labels_that_are_one_hot_give_the_hard_number(metric, lens):
    metric = metric if lens is None else metric.replace(lens=lens)
    assert HELD_SOFT.labels is None
    assert numbers(metric(HELD_SOFT)) == close(numbers(metric(y, P)))


@taking("shares")
@given(data=rows(most=12), seed=seeds)
def test_a_soft_label_is_the_share_of_outcomes_that_it_says(metric, data, seed):
    p = 0.99 * data[0] + 0.01 / data[0].shape[1]  # forecasts of 0 and 1 alone would look like labels
    pairs = np.stack([data[1], np.random.default_rng(seed).integers(0, p.shape[1], len(p))])
    soft = metric(np.eye(p.shape[1])[pairs].mean(axis=0), p)
    hard = metric(pairs.T.ravel(), np.repeat(p, 2, axis=0))
    assert soft.value == close(hard.value)


@refusing("soft")
def test_soft_labels_are_refused_by_what_needs_a_true_class(metric):
    with pytest.raises(CalibrationInputError, match="needs one true class per row, got soft labels") as refusal:
        metric([[0.6, 0.4], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]])
    assert refusal.value.parameter in repr(metric)


# ---- questions -------------------------------------------------------------------------------------------------------


@refusing("vectors")
def test_vectors_are_refused_where_only_events_are_asked(metric):
    piece, hint = type(metric).__name__, r"use TopLabel\(\), OneClass\(c\) or Classwise\(\)"
    if isinstance(metric, cal.BinnedError):
        piece, hint = type(metric.binning).__name__, "use (Grid or KDTree|KDTree or Grid) for vectors"
    if isinstance(metric, cal.MeanScore):
        piece, hint = metric.score.__name__, r"use a scalar lens such as TopLabel\(\)"
    message = f"^{piece}: needs a lens with one coordinate per question, got full distribution with 3; {hint}"
    with pytest.raises(CalibrationInputError, match=message):
        metric.replace(lens=cal.Full())(y, P)


@taking("vectors")
@pytest.mark.parametrize("lens", [cal.Full(), cal.TopK(2), cal.Groups({"a": [0], "b": [1, 2]})], ids=repr)
def test_vectors_are_taken_where_they_are_asked(metric, lens):
    result = metric.replace(lens=lens)(y, P)
    assert np.isfinite(result.value)
    assert result.n == 12


@over(SETTINGS)
@FEWER
@given(data=rows(classes=st.integers(2, 4)), across=st.sampled_from(ALIKE))
def test_each_class_of_classwise_is_as_if_asked_alone(metric, data, across):
    p, labels = data
    result = metric.replace(lens=EACH, across=across)(labels, p)
    alone = [metric.replace(lens=cal.OneClass(c))(labels, p) for c in range(p.shape[1])]
    check_questions(result, alone)
    assert result.value == close(mean([one.value for one in alone]))
    assert result.sizes == (len(labels),) * len(alone)


@over(SETTINGS)
@FEWER
@given(data=rows(most=15, classes=st.integers(2, 4)))
def test_each_label_is_as_if_selected_alone_and_empty_ones_are_left_out(metric, data):
    p, labels = data
    result = metric.replace(lens=TRUE)(labels, p)
    alone = [metric.replace(lens=TOP, select=cal.label_in(c))(labels, p) for c in range(p.shape[1])]
    check_questions(result, alone)
    assert result.sizes == tuple(one.n for one in alone)
    assert result.value == close(mean([one.value for one in alone if one.n]))


def mean(values):
    with np.errstate(invalid="ignore"):  # infinities of both signs have none
        return np.mean(values)


def check_questions(result, alone):
    """Every part is the question alone; the whole has no detail but means of theirs."""
    padded = (
        cal.BinnedError,
        cal.CurveError,
        cal.BrierDecomposition,
        cal.MeanScore,
    )  # sum over the empty bins of others, too; or take the logarithms of one event in a loop of their own
    bound = 1e-15 if isinstance(result.metric, padded) else 0
    assert result.values == pytest.approx([one.value for one in alone], rel=0, abs=bound, nan_ok=True)
    assert not result.details or isinstance(result.metric, (IsotonicError, cal.BrierDecomposition))
    for name, value in result.details.items():
        assert value == close(np.mean([one.details[name] for one in alone if one.n]))
    for part, one in zip(result.parts.values(), alone, strict=True):
        assert part.value == pytest.approx(one.value, rel=0, abs=bound, nan_ok=True)
        assert part.n == one.n
        if one.bins is not None:  # parts have the empty bins of the others, too
            here, there = (bins.counts > 0 for bins in (part.bins, one.bins))
            assert np.array_equal(part.bins.counts[here], one.bins.counts[there])
            assert np.array_equal(part.bins.gap[here], one.bins.gap[there])


@over(SETTINGS)
@pytest.mark.parametrize("lens", [None, EACH, TRUE], ids=["own lens", *map(repr, (EACH, TRUE))])
def test_an_empty_selection_is_nan_with_a_note(metric, lens):
    choices = {} if lens is None else {"lens": lens}
    result = metric.replace(select=cal.confidence_between(0, 0.1), **choices)(y, P)
    known = {name: number for name, number in result.details.items() if name != "n_bins"}
    assert np.isnan([result.value, *result.values, *known.values()]).all()
    assert result.notes == (EMPTY,)
    assert result.n == 0
    assert cal.Result.from_json(result.to_json()).to_json() == result.to_json()


# ---- specifications --------------------------------------------------------------------------------------------------


@over([*ASKED, *(metric.replace(select=cal.label_in(0, 2)) for metric in SETTINGS)])
def test_metric_and_result_travel_as_json(metric):
    again = cal.from_json(metric.to_json())
    assert again == metric
    assert hash(again) == hash(metric)
    assert again.to_json() == metric.to_json()
    result = metric(y, P)
    there = cal.Result.from_json(result.to_json())
    assert same(there, result)
    assert there.metric == metric
    assert (there.to_json(), str(there)) == (result.to_json(), str(result))
    if result.bins is not None:
        assert np.array_equal(there.bins.gap, result.bins.gap, equal_nan=True)


@over(SETTINGS)
def test_a_replaced_choice_is_another_metric(metric):
    for field in dataclasses.fields(metric):
        assert metric.replace(**{field.name: getattr(metric, field.name)}) == metric
    assert metric.replace(select=cal.label_in(1)) != metric
    assert len({metric, metric.replace(), metric.replace(across=cal.contraharmonic)}) == 2


@pytest.mark.parametrize(
    "select", [cal.TopLabel(), lambda p: np.arange(3), lambda p: np.ones(len(p)), lambda p: np.ones(3, bool)]
)
def test_a_selection_gives_a_boolean_for_each_row(select):
    """Row numbers would select in a value and mean something else in its interval."""
    with pytest.raises(cal.CalibrationInputError, match="must give 4 booleans, one a row"):
        cal.BinnedError(select=select)([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.6])
