"""Summaries know what they read: they add and conclude with their own kind, and no sum can overflow."""

import dataclasses
import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.kernels.totals import Totals

RNG = np.random.default_rng(7)
ROWS = RNG.dirichlet(np.ones(3), 60).round(2)
ROWS[:, 2] = 1 - ROWS[:, 0] - ROWS[:, 1]
LABELS = RNG.integers(0, 3, 60)
CLASSES = cal.Predictions.from_probs(LABELS, ROWS, classes=["cat", "dog", "owl"])
EVENT = cal.Predictions.from_probs(LABELS % 2, ROWS[:, 0])


def refused(match, one, other, predictions=CLASSES):
    with pytest.raises(cal.CalibrationInputError, match=match):
        one.summarise(predictions) + other.summarise(predictions)
    with pytest.raises(cal.CalibrationInputError, match=match):
        one.conclude(other.summarise(predictions))


@pytest.mark.parametrize(
    ("match", "one", "other"),
    [
        ("score brier_score and log_score|score log_score and brier_score", cal.BRIER, cal.LOG_LOSS),
        ("left-closed", cal.ECE, cal.ECE.replace(binning=cal.EqualWidth(closed="left"))),
        ("selection .*label_in", cal.ECE, cal.ECE.replace(select=cal.label_in("cat"))),
        ("binning 15 .*1 |binning 1 .*15 ", cal.ECE, cal.MCS),
        ("lens", cal.ECE, cal.ECE.replace(lens=cal.OneClass(1))),
        ("lens", cal.FULL_ECE, cal.TOP5_ECE.replace(lens=cal.TopK(2))),
        ("binning", cal.ECE, cal.ADAPTIVE_ECE),
        ("lens", cal.ECE, cal.ACCURACY),
        ("binning|score", cal.ECE, cal.MeanScore(cal.TopLabel(), cal.hit)),
        ("lens .*rows|lens|binning", cal.SKCE, cal.ECE),
    ],
    ids=str,
)  # fmt: skip
def test_what_was_read_in_another_way_neither_adds_nor_concludes(match, one, other):
    refused(match, one, other)
    refused(match, other, one)


def test_class_names_matter_where_the_lens_names_them():
    swapped = cal.Predictions.from_probs(LABELS, ROWS, classes=["dog", "cat", "owl"])
    for metric in (cal.FULL_ECE, cal.SCE, cal.BRIER, cal.ECE.replace(select=cal.predicted_in(0))):
        with pytest.raises(cal.CalibrationInputError, match=r"classes 'cat'.* and 'dog'"):
            metric.summarise(CLASSES) + metric.summarise(swapped)
    both = cal.ECE.summarise(CLASSES) + cal.ECE.summarise(swapped)
    assert cal.ECE.conclude(both).n == 120
    by_name = cal.ECE.replace(select=cal.predicted_in("cat"))
    assert by_name.conclude(by_name.summarise(CLASSES) + by_name.summarise(swapped)).n > 0


def test_the_first_label_of_another_name_is_named():
    first, second = (
        cal.ECE.summarise(cal.Predictions.from_multilabel([[1, 0]], [[0.9, 0.2]], classes=["rain", name]))
        for name in ("hail", "snow")
    )
    with pytest.raises(cal.CalibrationInputError, match="same questions to be added, got 'hail' and 'snow'"):
        first + second


def test_what_is_not_read_may_differ():
    """Distance, aggregate, across, the number of equal-mass bins and precision."""
    summary = cal.ECE.summarise(CLASSES)
    for metric in (cal.MCE, cal.RMSCE, cal.ECE.replace(across=cal.weighted_by_size)):
        assert metric.conclude(summary).value == metric(CLASSES).value
    for metric in (
        cal.ECE_SWEEP,
        cal.SMECE,
        cal.ECE_KDE,
        cal.ADAPTIVE_ECE.replace(binning=cal.EqualMass(3)),
        cal.ECCE_R,
    ):
        assert metric.conclude(cal.ADAPTIVE_ECE.summarise(CLASSES)).value == metric(CLASSES).value
    narrow = cal.Predictions.from_probs(LABELS, ROWS.astype(np.float32), classes=["cat", "dog", "owl"])
    logits = cal.Predictions.from_logits(LABELS, np.log(ROWS + 1e-9), classes=["cat", "dog", "owl"])
    for metric in (cal.ECE, cal.FULL_ECE, cal.BRIER, cal.ADAPTIVE_ECE):
        assert metric.conclude(sum(map(metric.summarise, (CLASSES, narrow, logits)))).n == 180
    edges = cal.ECE.replace(binning=cal.Edges(np.arange(16) / 15))
    assert (edges.summarise(CLASSES) + cal.ECE.summarise(CLASSES)).about.n == 120


def test_zero_adds_on_both_sides_and_nothing_else_does():
    summary = cal.ECE.summarise(CLASSES)
    assert summary + 0 is summary
    assert 0 + summary is summary
    for other in (1, None, "a", 0.5):
        with pytest.raises(TypeError):
            summary + other
    with pytest.raises(TypeError):
        summary + cal.BRIER.summarise(CLASSES).about
    with pytest.raises(cal.CalibrationInputError, match="must be what summarise gave, got 0"):
        cal.ECE.conclude(sum([]))


def test_summaries_have_a_digest_of_what_they_read():
    assert cal.ECE.summarise(CLASSES).about.digest == cal.MCE.summarise(CLASSES[:5]).about.digest
    assert cal.ECE.summarise(CLASSES).about.digest != cal.MCS.summarise(CLASSES).about.digest


def test_scores_of_ones_own_are_told_apart():
    def score(k):
        def powered(view):
            return view.outputs[:, :, 0] ** k

        return powered

    one, two = (cal.MeanScore(score=score(k)) for k in (1, 2))
    refused("score", one, two, EVENT)
    assert one.conclude(one.summarise(EVENT) + one.summarise(EVENT)).value == one(EVENT).value


def test_summarise_works_like_a_call():
    weight = RNG.integers(0, 3, 60)
    options = {"sample_weight": weight, "classes": ["a", "b", "c"]}
    for metric in (cal.ECE, cal.BRIER, cal.FULL_ECE):
        summary = metric.summarise(LABELS, ROWS, **options)
        assert metric.conclude(summary).value == metric(LABELS, ROWS, **options).value


# ---- notes are counts ------------------------------------------------------------------------------------------------


def test_rows_that_were_left_out_are_counted_whatever_the_batches():
    p = np.full((8, 2), 0.5)
    y = np.array([0, 9, 1, 9, 9, 0, 1, 9])
    whole = cal.Predictions.from_probs(y, p, ignore_index=9)
    assert whole.notes == ("4 rows were left out: label 9",)
    made = [cal.Predictions.from_probs(y[a:b], p[a:b], ignore_index=9) for a, b in ((0, 2), (2, 6), (6, 8))]
    sliced = [whole[a:b] for a, b in ((0, 1), (1, 3), (3, 4))]
    for batches in (made, sliced, sliced[::-1]):
        summary = sum(cal.ECE.summarise(batch) for batch in batches)
        assert cal.ECE.conclude(summary).notes == cal.ECE(whole).notes
        assert summary.about == cal.ECE.summarise(whole).about


def test_flags_are_counts_of_rows():
    soft = [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]
    p = cal.Predictions.from_probs(soft, ROWS[:3], sample_weight=[1.5, 2, 0.5])
    about = cal.ECE.summarise(p).about
    assert (about.soft, about.fractional) == (2, 2)
    parts = sum(cal.ECE.summarise(p[i : i + 1]) for i in range(3)).about
    assert parts == about


def test_soft_rows_are_refused_by_what_needs_hard_ones_when_it_concludes():
    soft = cal.Predictions.from_probs([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], ROWS[:2])
    with pytest.raises(cal.CalibrationInputError, match="soft labels"):
        cal.ECE_KDE.conclude(cal.ADAPTIVE_ECE.summarise(soft))
    assert cal.ECE_DEBIASED(soft[1:]).n == 1  # this row is hard


# ---- sums without an end ---------------------------------------------------------------------------------------------

DOUBLINGS = 40


def values(result):
    return [result.value, *result.values, *result.details.values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", cal.RECIPES)
@pytest.mark.parametrize("rows", ["classes", "event", "weighted"])
def test_a_summary_doubled_forty_times_is_right_or_refused(name, rows, monkeypatch):
    """Means do not change when every row is there twice; what depends on n is held against fewer doublings."""
    monkeypatch.setattr("calibrant.views.MOST_BYTES", 1 << 22)
    metric = cal.RECIPES[name]
    predictions = {
        "classes": CLASSES[:12],
        "event": EVENT[:12],
        "weighted": dataclasses.replace(CLASSES[:12], weight=np.arange(1.0, 13.0) * 4e7),
    }[rows]
    try:
        summary = metric.summarise(predictions)
    except cal.CalibrationInputError as reason:
        pytest.skip(str(reason))
    of_n = ("ECE_SWEEP", "ECE_DEBIASED", "ECE_KDE", "SKCE", "ADAPTIVE_ECE", "ACE", "TACE", "E90", "AURC", "E_AURC")
    scale_free = name not in of_n
    expected = metric.conclude(summary)
    for doubling in range(1, DOUBLINGS + 1):
        try:
            summary = summary + summary
            result = metric.conclude(summary) if doubling % 8 == 0 or doubling > 30 else None
        except cal.CalibrationInputError:
            totals = ("ECE", "BRIER", "SCE", "MCS", "LOG_LOSS", "ACCURACY", "WSMCS")
            assert name not in totals or doubling == DOUBLINGS  # squares of weights reach 2^99 last
            return
        if result is None:
            continue
        assert result.n == len(predictions) << doubling
        assert np.isfinite([value for value in values(result) if not math.isinf(value)]).all() or not scale_free
        if scale_free:
            numbers = [result.value, *result.values], [expected.value, *expected.values]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-12, nan_ok=True)


def test_merged_brier_scores_of_4e11_rows_are_right():
    summary = cal.BRIER.summarise(CLASSES)
    for _ in range(33):
        summary = summary + summary
    assert summary.about.n > 4e11
    assert cal.BRIER.conclude(summary).value == pytest.approx(cal.BRIER(CLASSES).value, rel=1e-12)


def test_large_weights_in_several_batches_are_right():
    p = cal.Predictions.from_probs(LABELS, ROWS, sample_weight=np.full(60, 4e7) + np.arange(60))
    for metric in (cal.ECE, cal.BRIER, cal.MCS, cal.SCE):
        tripled = metric.conclude(sum(metric.summarise(p) for _ in range(60))).value
        assert tripled == pytest.approx(metric(p).value, rel=1e-12)


def test_whole_weights_repeat_to_the_bit_however_large():
    times = np.array([3, 1 << 29, 5, (1 << 31) + 1])
    values_ = np.array([0.1, 0.7, 1 / 3, 0.9])
    weighted = Totals.of(values_, times.astype(float))
    assert weighted.same(Totals.of(values_).times(times))
    assert weighted.units.tolist() == [int(u) * int(t) for u, t in zip(Totals.of(values_).units, times, strict=True)]


def test_totals_carry_into_a_third_limb_and_back():
    large = Totals.whole(np.array([1 << 40, 3]))
    assert large.top is not None
    back = large - Totals.whole(np.array([(1 << 40) - 1, 2]))
    assert back.top is None
    assert back.value.tolist() == [1.0, 1.0]
    minus = Totals.whole(np.array([5])) - Totals.whole(np.array([1 << 50]))
    assert minus.units.tolist() == [(5 - (1 << 50)) << 52]
    assert (minus + Totals.whole(np.array([1 << 50]))).same(Totals.whole(np.array([5])))
    assert large.sum(0).units == ((1 << 40) + 3) << 52
    assert large.cumulative().units.tolist() == [0, (1 << 40) << 52, ((1 << 40) + 3) << 52]
    with pytest.raises(cal.CalibrationInputError, match="below 2\\^99"):
        Totals.whole(np.array([1 << 62])).times(np.array([1 << 62]))


# ---- what a weight means ---------------------------------------------------------------------------------------------


def test_entries_carry_the_sum_of_squared_weights():
    weight = np.array([1.0, 2.0, 3.0, 2.0])
    p = cal.Predictions.from_probs([1, 0, 1, 1], [0.2, 0.2, 0.9, 0.9], sample_weight=weight)
    bins = cal.ECE(p).bins
    filled = bins.counts[0] > 0
    assert bins.squares.value[0][filled].tolist() == [5.0, 13.0]
    assert bins.effective[0][filled].tolist() == [9 / 5, 25 / 13]
    assert cal.ADAPTIVE_ECE.summarise(p).squares.value.tolist() == [5.0, 13.0]
    assert cal.BRIER.summarise(p).squares.value.tolist() == [18.0]
    assert cal.FULL_ECE.replace(binning=cal.KDTree(1.0))(p).bins.squares.value.sum() == 18.0
    plain = cal.ECE([1, 0, 1, 1], [0.2, 0.2, 0.9, 0.9]).bins
    assert plain.squares is None
    assert plain.effective.sum() == 4
    both = cal.ECE.summarise(p) + cal.ECE.summarise([1, 0, 1, 1], [0.2, 0.2, 0.9, 0.9])
    assert both.squares.value[0][filled].tolist() == [7.0, 15.0]
    tables = cal.ADAPTIVE_ECE.summarise(p) + cal.ADAPTIVE_ECE.summarise([1, 0, 1, 1], [0.2, 0.2, 0.9, 0.9])
    assert tables.squares.value.tolist() == [7.0, 15.0]


def test_squares_survive_json():
    p = cal.Predictions.from_probs(LABELS % 2, ROWS[:, 0], sample_weight=np.arange(60))
    result = cal.ECE(p)
    again = cal.Result.from_json(result.to_json())
    assert again.bins.squares.same(result.bins.squares)


def test_a_weighted_row_is_one_row_to_the_bootstrap():
    """Repetition says that there are more rows, weights that some count more: the first interval is shorter."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    once = cal.MCS(y, p, interval=cal.Bootstrap(300, seed=0)).interval
    heavy = cal.MCS(y, p, sample_weight=np.full(200, 9.0), interval=cal.Bootstrap(300, seed=0)).interval
    many = cal.MCS(np.repeat(y, 9), np.repeat(p, 9), interval=cal.Bootstrap(300, seed=0)).interval
    assert heavy.high - heavy.low == pytest.approx(once.high - once.low, rel=0.2)
    assert many.high - many.low < 0.5 * (once.high - once.low)
