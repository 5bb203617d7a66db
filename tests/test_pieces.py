"""Cases that once went wrong: pieces that look alike, rooted facts, parts with bounds of their own, odd names."""

import dataclasses
import functools

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors.isotonic import quadratic
from calibrant.errors.local import LocalCalibration
from calibrant.inference.bootstrap import Resampled, resampled
from calibrant.inference.draws import RowDraws
from calibrant.kernels.totals import Totals
from calibrant.selections import Selection
from calibrant.specification.facts import Facts, declare
from calibrant.specification.naming import identity

EVENT = cal.Predictions.from_probs([1, 0, 1], [0.9, 0.2, 0.6])
CLASSES = cal.Predictions.from_probs([0, 1, 2, 1], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.2, 0.5, 0.3]])


def cost(view, price):
    return price * cal.brier_score(view)


class Scaled:
    """A piece that is no dataclass."""

    def __init__(self, price):
        self.price = price

    def __call__(self, view):
        return cost(view, self.price)

    def method(self, view):
        return cost(view, self.price)


@pytest.mark.parametrize(
    "pieces",
    [
        [functools.partial(cost, price=1), functools.partial(cost, price=10)],
        [Scaled(1), Scaled(10)],
        [Scaled(1).method, Scaled(10).method],
        [lambda view: view.outputs.sum(2), lambda view: 7 * view.outputs.sum(2)],
    ],
    ids=["partial", "instance", "method", "lambda"],
)
def test_pieces_that_differ_do_not_share_a_summary(pieces):
    one, two = (cal.MeanScore(cal.Full(), piece) for piece in pieces)
    assert identity(pieces[0]) != identity(pieces[1])
    with pytest.raises(cal.CalibrationInputError, match="score"):
        two.conclude(one.summarise(EVENT))
    assert one.conclude(one.summarise(EVENT) + one.summarise(EVENT)).value == one(EVENT).value


def test_a_piece_that_is_gone_shares_its_summary_with_no_other():
    summaries = [cal.MeanScore(cal.Full(), lambda view, k=k: k * view.outputs.sum(2)).summarise(EVENT) for k in (1, 7)]
    with pytest.raises(cal.CalibrationInputError, match="score"):
        sum(summaries)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cal.TopK(3), cal.TopK(np.int64(3))),
        (cal.OneClass(1), cal.OneClass(np.int64(1))),
        (cal.Above(cal.Classwise(), 0.5), cal.Above(cal.Classwise(), np.float64(0.5))),
        (cal.Between(cal.TopLabel(), 0, 1), cal.Between(cal.TopLabel(), 0.0, 1.0)),
        (cal.label_in(1), cal.label_in(np.int64(1))),
        (cal.output_between(0, 1), cal.output_between(0.0, 1.0)),
        (~cal.confidence_between(0.2, 1), ~cal.confidence_between(np.float64(0.2), 1.0)),
    ],
    ids=str,
)  # fmt: skip
def test_pieces_that_are_equal_share_their_line(one, other):
    assert one == other
    assert identity(one) == identity(other)
    field = "select" if isinstance(one, Selection) else "lens"
    text = cal.ECE.replace(**{field: other}).to_json()
    assert cal.from_json(text) == cal.ECE.replace(**{field: one})


def test_what_was_read_is_said_in_the_words_of_the_public_names():
    reads = dict(cal.ECE.replace(select=~cal.label_in(1)).summarise(CLASSES).about.reads)
    assert reads["selection"] == "~label_in(classes=(1,))"
    assert dict(cal.ECE.summarise(CLASSES).about.reads)["selection"] == "everything"


def test_a_class_named_like_a_number_is_no_index():
    one, other = cal.ECE.replace(select=cal.label_in(1)), cal.ECE.replace(select=cal.label_in("1"))
    assert identity(one.select) != identity(other.select)
    assert identity(cal.OneClass(1)) != identity(cal.OneClass("1"))
    with pytest.raises(cal.CalibrationInputError, match="selection"):
        one.conclude(other.summarise(CLASSES))


def test_edges_that_are_equal_share_their_line():
    one, other = (cal.ECE.replace(binning=cal.Edges([zero, 0.5, 1])) for zero in (0.0, -0.0))
    assert one.conclude(one.summarise(EVENT) + other.summarise(EVENT)).n == 6


def under():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.5, 2000)
    return cal.Predictions.from_probs(rng.random(2000) < 1.5 * p, p)


def test_a_root_keeps_the_sides_of_what_it_is_the_root_of():
    @declare(Facts("distance", low=0.0, sides=2, calibrated=1.0))
    def ratio(bins):
        rate = bins.frequency[:, :, 0]
        return np.where(rate > 0, bins.forecast[:, :, 0] / np.where(rate > 0, rate, 1.0), 1.0)

    def undeclared(bins):
        return 1 - np.abs(bins.gap[:, :, 0])

    for distance in (ratio, undeclared):
        metric = cal.ECE.replace(distance=distance, aggregate=cal.root_mean)
        assert metric.facts.sides == 2
        assert cal.consistency(metric, under(), n=99, seed=0).p_value <= 0.02
    assert cal.ECE.replace(distance=ratio, aggregate=cal.root_mean).facts.calibrated == 1.0


def test_a_difference_of_scores_is_bounded_by_their_range():
    @declare(Facts("score", estimator="IsotonicError", low=-1.0, high=0.0))
    def shifted(forecast, rate):
        return quadratic(forecast, rate) - 1

    known, moved = (
        cal.IsotonicError(score=score)(under(), interval=cal.Bootstrap(50, seed=0)) for score in (quadratic, shifted)
    )
    assert moved.interval.low == pytest.approx(known.interval.low, abs=1e-12)
    assert moved.interval.high == pytest.approx(known.interval.high, abs=1e-12)
    assert moved.interval.high > 0


def test_parts_have_bounds_of_their_own():
    @declare(Facts("across", passes=lambda facts: dataclasses.replace(facts, low=facts.low / 2, high=facts.high / 2)))
    def halved(values, sizes):
        return {"value": float(values[sizes > 0].mean() / 2)}

    wrong = cal.Predictions.from_probs([0] * 40, [[0.01, 0.99]] * 40)
    metric = cal.BinnedError(lens=cal.Classwise(), across=halved, binning=cal.EqualWidth(1))
    result = metric(wrong, interval=cal.Bootstrap(20, seed=0))
    assert result.intervals[0].low == pytest.approx(0.99)


def test_errors_by_label_say_where_they_are_mostly_noise():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 400)
    y = (p.cumsum(axis=1) < rng.random(400)[:, None]).sum(axis=1)
    for metric in (cal.CWECE, cal.CECE, cal.ECE.replace(binning=cal.EqualWidth(50))):
        assert any("noise" in note for note in metric(y, p, interval=cal.Bootstrap(60, seed=0)).notes)


def test_rows_that_answer_twice_are_resampled_as_rows():
    rng = np.random.default_rng(0)
    q = rng.random(400)
    p = cal.Predictions.from_probs(rng.integers(0, 2, 400), np.column_stack([q, 1 - q]), half=["a"] * 200 + ["b"] * 200)
    metric = cal.BinnedError(lens=cal.Flat(), select=cal.where(half="a"))
    assert isinstance(resampled(metric, p, RowDraws(400)), Resampled)


def test_small_negative_totals_beside_large_ones_keep_their_digits():
    totals = Totals.exactly(np.array([1 << 100, -3, -(1 << 100)], object))
    assert totals.value.tolist() == [2.0**48, -3 * 2.0**-52, -(2.0**48)]
    assert float(Totals.of(np.float64(1e12)).value) == 1e12
    assert float(Totals.of(np.float64(0.5), np.float64(1e9)).value) == 5e8


@dataclasses.dataclass(frozen=True)
class in_group(Selection):  # noqa: N801
    """A selection of one's own, whose field has a name that calibrant uses."""

    classes: tuple[int, ...]

    def __call__(self, predictions):
        return np.isin(predictions.predicted, self.classes)


def test_selections_of_ones_own_travel_whatever_their_fields_are_called():
    for select in (in_group((0, 1)), in_group((0,)) & cal.label_in(0), ~in_group((2,))):
        metric = cal.ECE.replace(select=select)
        assert cal.from_json(metric.to_json(), pieces={"in_group": in_group}) == metric


def test_classes_that_are_called_like_numbers_travel():
    metric = cal.ECE.replace(lens=cal.OneClass("nan"), select=cal.label_in("inf", "-inf"))
    assert cal.from_json(metric.to_json()) == metric


def test_a_distance_that_looks_at_the_ends_of_bins_is_resampled():
    def midpoint(bins):
        return np.nan_to_num(np.abs((bins.low + bins.high) / 2 - bins.frequency[:, :, 0]))

    for distance in (midpoint, declare(Facts("distance", low=0.0))(lambda bins: midpoint(bins))):
        result = cal.ECE.replace(distance=distance)(under(), interval=cal.Bootstrap(40, seed=0))
        assert result.interval.low <= result.value <= result.interval.high


def test_opposite_events_do_not_add():
    one = cal.Predictions.from_probs(["y", "n"], [0.9, 0.2], classes=["n", "y"])
    other = cal.Predictions.from_probs(["y", "n"], [0.1, 0.8], classes=["y", "n"])
    for metric in (cal.ECE, cal.BRIER):
        with pytest.raises(cal.CalibrationInputError, match="classes"):
            metric.summarise(one) + metric.summarise(other)
        assert metric.conclude(metric.summarise(one) + metric.summarise(one)).n == 4


def test_local_calibration_takes_its_own_tables_only():
    with pytest.raises(cal.CalibrationInputError, match="must be one of LocalCalibration"):
        LocalCalibration().conclude(cal.ADAPTIVE_ECE.summarise(CLASSES))


def test_scores_of_minus_infinity_are_refused():
    with pytest.raises(cal.CalibrationInputError, match="minus infinity"):
        cal.MeanScore(cal.Full(), lambda view: -cal.log_score(view))([0, 0], [[0.0, 1.0], [0.5, 0.5]])


def test_results_do_not_compare_with_text():
    with pytest.raises(TypeError, match="not with str"):
        assert cal.ECE(EVENT) < "0.5"


def test_a_large_label_that_is_left_out_is_written_in_full():
    p = cal.Predictions.from_probs([1_000_000, 0], [[0.5, 0.5]] * 2, ignore_index=1_000_000)
    assert p.notes == ("1 row was left out: label 1000000",)
