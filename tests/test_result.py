"""Metrics and results as values: changed, named, compared, printed, turned into tables; refused with the way."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.specification.catalogue import find
from toy import P, y

EVENT = ([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.6])


def test_a_choice_is_changed_by_replace():
    assert cal.ECE.replace(binning=cal.EqualMass()) == cal.ADAPTIVE_ECE
    assert cal.ECE.replace() == cal.ECE
    way = r"n_bins: is no choice of ECE; .*binning"
    with pytest.raises(cal.CalibrationInputError, match=way):
        cal.ECE.replace(n_bins=3)
    with pytest.raises(cal.CalibrationInputError, match="did you mean 'binning'"):
        cal.ECE.replace(bining=cal.EqualMass())


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (cal.ECE, "ECE"),
        (cal.MSECE, "MSECE"),
        (cal.CWECE, "CWECE"),
        (cal.ECE.replace(binning=cal.EqualMass(30)), "ECE(binning=EqualMass(n_bins=30))"),
        (cal.ECE.replace(select=cal.label_in(1)), "ECE(select=label_in(1))"),
        (cal.SCE.replace(lens=cal.Flat()), "SCE(lens=Flat())"),
        (cal.SMECE.replace(bandwidth=0.1), "SMECE(bandwidth=0.1)"),
        (cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree(0.5)), "BinnedError"),
        (cal.MeanScore(cal.Full(), cal.entropy), "MeanScore"),
        (cal.IsotonicError(), "IsotonicError"),
    ],
)
def test_a_metric_is_called_by_its_recipe_and_the_change(metric, name):
    assert metric.name == name


def test_results_compare_with_numbers_and_results():
    low, high = cal.ECE(*EVENT), cal.MCE(*EVENT)
    assert low < high
    assert high > low
    assert low <= low
    assert low >= low.value
    assert low < 0.5
    assert high > 0.1
    assert not low > high
    assert low < 0.5
    assert sorted([high, low]) == [low, high]
    assert max(low, high) is high


def test_options_of_the_metric_given_to_a_call_name_the_way():
    way = r"n_bins.*ECE\.replace\(binning=EqualWidth\(n_bins=10\)\)\(y, p\)"
    with pytest.raises(cal.CalibrationInputError, match=way):
        cal.ECE(*EVENT, n_bins=10)
    with pytest.raises(cal.CalibrationInputError, match=r"lens.*ECE\.replace\(lens=\.\.\.\)"):
        cal.ECE(*EVENT, lens=cal.TopLabel())
    with pytest.raises(cal.CalibrationInputError, match="did you mean 'normalize'"):
        cal.ECE(*EVENT, normalise=True)


def test_a_metric_as_scoring_names_the_scorer():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    with pytest.raises(cal.CalibrationInputError, match=r"scoring=Scorer\(ECE\)"):
        cross_val_score(LogisticRegression(), x, labels, scoring=cal.ECE, error_score="raise")
    assert cross_val_score(LogisticRegression(), x, labels, scoring=cal.Scorer(cal.ECE)).max() <= 0


def test_bins_parts_and_tables_turn_into_frames_and_print():
    pandas = pytest.importorskip("pandas")
    result = cal.SCE(y, P, interval=cal.Bootstrap(20, seed=0))
    bins = result.bins.to_pandas()
    assert isinstance(bins, pandas.DataFrame)
    assert bins["count"].sum() == 36
    assert list(bins.columns) == ["question", "bin", "low", "high", "count", "forecast", "frequency", "gap"]
    parts = result.parts.to_pandas()
    assert parts["value"].tolist() == list(result.values)
    assert {"low", "high"} <= set(parts.columns)
    assert "interval" in str(result.parts).splitlines()[0]
    assert len(str(result.bins).splitlines()) == 1 + (result.bins.counts > 0).sum()
    table = cal.table(cal.Predictions.from_probs(y, P, ink=["a", "b"] * 6), {"ece": cal.ECE, "mcs": cal.MCS}, by="ink")
    frame = table.to_pandas()
    assert frame.loc["a", "ece"] == table["a"]["ece"].value
    assert frame.index.name == "ink"
    vectors = cal.FULL_ECE(y, P).bins.to_pandas()
    assert "forecast 2" in vectors.columns


def test_every_public_name_is_in_dir():
    names = dir(cal)
    assert set(cal.__all__) <= set(names)
    assert {"Recalibrated", "plots", "simulate", "TemperatureScaling", "BetaScores"} <= set(names)
    assert all(hasattr(cal, name) for name in cal.__all__)


# ---- specifications --------------------------------------------------------------------------------------------------


def mean(distances, bins):
    """Not calibrant's."""
    return distances.max(axis=1)


class Plain(cal.Metric):
    """A metric that is no dataclass."""

    def summarise(self, predictions):
        return predictions

    def conclude(self, summary):
        return cal.ECE(summary)


def test_a_piece_of_ones_own_with_a_name_of_calibrants_is_refused_when_written():
    metric = cal.ECE.replace(aggregate=mean)
    assert metric(y, P).value == cal.MCE(y, P).value
    with pytest.raises(cal.CalibrationInputError, match=r"must not call a piece of yours .*test_result\.mean"):
        metric.to_json()
    with pytest.raises(cal.CalibrationInputError, match="give it another name"):
        metric(y, P).to_json()


def test_a_piece_of_ones_own_travels_by_its_qualified_name():
    def worst(distances, bins):
        return distances.max(axis=1)

    metric = cal.ECE.replace(aggregate=worst)
    text = metric.to_json()
    assert json.loads(text)["aggregate"]["function"].endswith(".worst")
    for key in ("worst", json.loads(text)["aggregate"]["function"]):
        assert cal.from_json(text, pieces={key: worst}) == metric
    old = text.replace(json.loads(text)["aggregate"]["function"], "worst")  # as version 0.1 wrote it
    assert cal.from_json(old, pieces={"worst": worst}) == metric


def test_names_of_calibrant_cannot_be_taken_over_by_pieces():
    assert cal.from_json(cal.ECE.to_json(), pieces={"mean": mean}) == cal.ECE


def test_any_metric_prints():
    assert repr(Plain()) == "Plain()"
    assert Plain().name == "Plain"
    assert Plain()(y, P).value == cal.ECE(y, P).value
    with pytest.raises(cal.CalibrationInputError, match="pieces that have a name"):
        Plain().to_json()


def test_any_metric_is_resampled_and_held_against_calibration_the_plain_way():
    predictions = cal.Predictions.from_probs(y, P)
    result = Plain()(predictions, interval=cal.Bootstrap(20, seed=0))
    assert result.interval.low <= result.interval.high
    assert 0 < cal.consistency(Plain(), predictions, n=20, seed=0).p_value <= 1


# ---- names that moved ------------------------------------------------------------------------------------------------

MOVED = [
    "biased",
    "unbiased_blocks",
    "halves",
    "by_count",
    "quadratic",
    "ks",
    "kuiper",
    "exponential",
    "nearest_forecasts",
]


@pytest.mark.parametrize("name", MOVED)
def test_options_of_one_estimator_live_with_it_and_are_still_found(name):
    assert name not in cal.__all__
    with pytest.warns(DeprecationWarning, match=f"{name} is now in calibrant.errors."):
        piece = getattr(cal, name)
    assert find(name) is piece


def test_a_metric_with_such_an_option_is_still_read():
    assert cal.from_json(cal.SKCE.to_json()) == cal.SKCE


def test_a_star_import_shadows_no_name_of_numpy():
    assert not set(cal.__all__) & set(np.__all__)
    assert cal.mean is cal.ECE.aggregate
