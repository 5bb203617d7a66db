"""Gates: a model that is not calibrated fails a test, and is not selected."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.mlflow import log_calibration


def drawn(power, n=800, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


def test_calibrated_forecasts_pass():
    assert cal.assert_calibrated(*drawn(1)).value > 0
    assert cal.assert_calibrated(cal.Predictions.from_probs(*drawn(1)), metric=cal.SMECE, n=40).name == "SMECE"


def test_others_fail_with_the_reason():
    with pytest.raises(AssertionError, match=r"ECE 0\.1.* is more than noise: calibrated forecasts would show 0\.0"):
        cal.assert_calibrated(*drawn(2))


def test_a_limit_is_held_by_size():
    y, p = drawn(2)
    assert cal.assert_calibrated(y, p, at_most=0.3).value < 0.3
    with pytest.raises(AssertionError, match=r"is above 0\.01"):
        cal.assert_calibrated(y, p, at_most=0.01)
    with pytest.raises(AssertionError, match=r"is above 0\.05"):
        cal.assert_calibrated(1 - y, p, metric=cal.MCS, at_most=0.05)


def test_a_confident_limit_is_held_by_the_nearer_end_of_the_interval():
    y, p = drawn(2)
    for metric in (cal.ECE, cal.MCS, cal.SLOPE, cal.BRIER):
        ends = metric(y, p, interval=cal.Confidence(0.8)).interval
        best = metric.facts.calibrated or 0.0
        nearer = max(ends.low - best, best - ends.high)
        assert cal.assert_calibrated(y, p, metric=metric, at_most=nearer + 1e-9, confident=True, level=0.1)
        if nearer > 0:
            with pytest.raises(AssertionError, match="is above"):
                cal.assert_calibrated(y, p, metric=metric, at_most=nearer - 1e-9, confident=True, level=0.1)
    with pytest.raises(AssertionError, match="is above"):  # the value alone would fail
        cal.assert_calibrated(y, p, at_most=cal.ECE(y, p).value - 1e-9)


def test_a_limit_above_and_below_calibration_counts_from_there():
    y, p = drawn(2)
    slope = cal.SLOPE(y, p).value
    assert cal.assert_calibrated(y, p, metric=cal.SLOPE, at_most=abs(slope - 1) + 1e-9).value == slope
    with pytest.raises(AssertionError):
        cal.assert_calibrated(y, p, metric=cal.SLOPE, at_most=abs(slope - 1) - 1e-9)


def test_what_does_not_exist_fails_and_what_has_no_interval_is_refused():
    with pytest.raises(AssertionError, match="inf"):
        cal.assert_calibrated([1, 0, 1], [0.0, 0.5, 0.7], metric=cal.LOG_LOSS, at_most=9, confident=True)
    with pytest.raises(cal.CalibrationInputError, match="needs an interval, got no interval is known"):
        cal.assert_calibrated(*drawn(1), metric=cal.MCE, at_most=1, confident=True)


def test_rows_of_one_group_do_not_count_as_many():
    """Each of 40 rows five times, seed 3: more than noise if rows were independent."""
    y, p = (np.repeat(part, 5) for part in drawn(1.5, n=40, seed=3))
    rows = cal.Predictions.from_probs(y, p, patient=np.repeat(np.arange(40), 5))
    with pytest.raises(AssertionError, match="more than noise"):
        cal.assert_calibrated(rows)
    assert cal.assert_calibrated(rows, groups="patient")
    scores = {"metric": cal.BRIER, "at_most": 0.8 * cal.BRIER(rows).value, "confident": True}
    with pytest.raises(AssertionError, match="is above"):
        cal.assert_calibrated(rows, **scores)
    assert cal.assert_calibrated(rows, groups="patient", **scores)


@pytest.mark.slow
def test_calibrated_forecasts_fail_as_often_as_the_level_says():
    """200 samples, seeds 0..199, level 10 %: between 8 and 34 failures, one false alarm in 1000."""
    failed = 0
    for seed in range(200):
        try:
            cal.assert_calibrated(*drawn(1, n=200, seed=seed), level=0.1, n=50)
        except AssertionError:
            failed += 1
    assert 8 <= failed <= 34


@pytest.mark.parametrize(
    "options",
    [
        {"level": 0},
        {"level": 95},
        {"n": 10},
        {"at_most": -1},
        {"at_most": "0.1"},
        {"confident": True},
        {"confident": True, "at_most": 1, "level": 0.5},
    ],
)
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(cal.CalibrationInputError):
        cal.assert_calibrated(*drawn(1), **options)


def test_a_scorer_selects_the_calibrated_model():
    model_selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = np.repeat((y + rng.normal(size=400))[:, None], 6, axis=1)
    names = np.array(["no", "yes"])[y]
    scores = [
        model_selection.cross_val_score(model, x, names, scoring=cal.Scorer(cal.ECE)).mean()
        for model in (GaussianNB(), cal.Recalibrated(GaussianNB()))
    ]
    assert scores[0] < scores[1] <= 0
    accuracy = cal.Scorer(cal.ACCURACY, greater_is_better=True)
    assert 0.5 < model_selection.cross_val_score(GaussianNB(), x, names, scoring=accuracy).mean() < 1


class Kept:
    """What a tracking server would keep."""

    def __init__(self):
        self.metrics, self.pages = {}, []

    def log_metric(self, name, value):
        self.metrics[name] = value

    def log_artifact(self, path):
        with open(path, encoding="utf-8") as file:
            self.pages.append(file.read())


@pytest.mark.slow
def test_numbers_and_the_page_are_logged():
    kept = Kept()
    predictions = cal.Predictions.from_probs(*drawn(2, n=300))
    results = log_calibration(predictions, client=kept)
    assert kept.metrics["calibration_ece"] == results["ece"].value == cal.ECE(predictions).value
    assert "Verdict" in kept.pages[0]


@pytest.mark.filterwarnings("ignore")
def test_a_real_tracking_store_takes_them(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run() as run:
        log_calibration(cal.Predictions.from_probs(*drawn(2, n=300)))
    assert mlflow.get_run(run.info.run_id).data.metrics["calibration_mcs"] > 0.1
