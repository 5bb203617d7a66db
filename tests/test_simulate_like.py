"""A model like the given one: what is said of its estimators, and what is refused."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.files import SHIPPED, read
from calibrant.simulate import UNIFORM, BetaScores, EmpiricalScores, Estimate, like, power_curve
from calibrant.simulate.biases import Biases

pytestmark = pytest.mark.slow

FEW = {"ECE": cal.ECE, "ECE_SWEEP": cal.ECE_SWEEP, "ECE_DEBIASED": cal.ECE_DEBIASED}


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=0, abs=tolerance)


@pytest.fixture(scope="module")
def shipped():
    return like(read(SHIPPED / "fashion_mnist_test.npz")[:2000], FEW, replicates=60)


def test_what_is_observed_is_what_the_metrics_say(shipped):
    predictions = read(SHIPPED / "fashion_mnist_test.npz")[:2000]
    assert shipped.observed == {name: close(metric(predictions).value) for name, metric in FEW.items()}
    assert (shipped.n, shipped.question) == (2000, "top label")


def test_the_estimates_are_those_of_bias_on_the_fitted_model(shipped):
    biases = simulate.bias(FEW, shipped.fit.law, shipped.fit.curves.curve, n=2000, replicates=60)
    assert dict(shipped.biases) == dict(biases)
    assert shipped.relative("ECE") == close(biases["ECE"].rmse / biases["ECE"].truth)
    assert shipped.trusted == min(FEW, key=shipped.relative)
    assert shipped.fit.reproduces


def test_it_reads(shipped):
    text = str(shipped)
    assert text.startswith("2,000 predictions (top label), and simulated models like theirs at n = 2,000\nscores: ")
    assert f"Trust {shipped.trusted} " in text
    assert "reproduced" in text
    header, *rows = text.split("\n\n")[1].splitlines()
    names = header.replace("observed - bias", "observed-bias").split()
    assert names == ["estimator", "estimates", "observed", "truth", "mean", "bias", "sd", "rmse/truth", "observed-bias"]
    assert all(row.count("±") == 3 for row in rows)
    explained = text.split("\n\n")[2]
    assert all(name in explained for name in (*names[1:-1], "observed - bias", "±"))


def test_it_travels_as_json(shipped):
    document = json.loads(shipped.to_json())
    assert document["trusted"] == shipped.trusted
    assert document["estimators"]["ECE"]["bias"] == shipped.biases["ECE"].bias
    assert document["curve"]["name"] == shipped.fit.curves.best.name
    assert len(document["curves"]) == 13
    assert document["ties"] == list(shipped.ties)
    assert not document["law_replaced"]
    assert document["binned_errors"]["L2"]["observed"] == shipped.fit.observed["L2"]


def test_all_usual_estimators_are_compared():
    comparison = like(simulate.draw(BetaScores(1.2, 0.4), power_curve(1.5), n=150), replicates=8)
    assert list(comparison.biases) == ["ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "SMECE", "ECE_KDE"]
    assert {estimate.target for estimate in comparison.biases.values()} == {"L1 error", "L2 error"}


def test_the_sweep_is_trusted_where_equal_width_is_known_to_fail():
    fit = simulate.PUBLISHED["resnet152_imgnet"]
    comparison = like(
        simulate.draw(fit.scores, fit.curve, n=300, seed=3),
        {"ECE": cal.ECE, "ECE_SWEEP": cal.ECE_SWEEP},
        replicates=100,
    )
    assert comparison.trusted == "ECE_SWEEP"
    assert comparison.biases["ECE"].bias > 0.01


def test_another_number_of_samples_can_be_asked_about():
    predictions = simulate.draw(UNIFORM, power_curve(1.5), n=400)
    comparison = like(predictions, {"ECE": cal.ECE}, n=50, replicates=20)
    assert (comparison.n, comparison.biases["ECE"].n) == (50, 50)


def test_scores_no_law_fits_are_drawn_from_those_observed():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(3000) < 0.5, 0.2, 0.8)  # a law spread over all scores meets other gaps of the curve
    predictions = cal.Predictions.from_confidence(rng.random(3000) < x**3, x)
    chosen, forced = (
        like(predictions, {"ECE": cal.ECE}, replicates=40, empirical=empirical) for empirical in (None, False)
    )
    assert isinstance(chosen.fit.law, EmpiricalScores)
    assert isinstance(forced.fit.law, BetaScores)
    assert "do not behave like yours" in str(forced)
    assert "do not behave like yours" not in str(chosen)
    assert "scores: drawn from the 3,000 observed. They replace Beta(" in str(chosen)
    assert dict(chosen.fit.rejected) == dict(forced.fit.simulated)
    assert forced.fit.rejected is None
    assert json.loads(chosen.to_json())["law_replaced"]


def test_events_and_top_answers_are_named():
    x = np.random.default_rng(0).random(60)
    hits = np.random.default_rng(1).random(60) < x
    run = {"metrics": {"ECE": cal.ECE}, "replicates": 5}
    assert like(cal.Predictions.from_probs(hits, x), **run).question == "event"
    assert like(cal.Predictions.from_confidence(hits, x), **run).question == "top answer"


def test_processes_change_nothing():
    predictions = simulate.draw(UNIFORM, power_curve(2), n=2000)
    alone, together = (like(predictions, {"ECE": cal.ECE}, replicates=80, n_jobs=jobs) for jobs in (1, 2))
    assert alone.to_json() == together.to_json()


def test_an_estimator_without_values_is_never_trusted(shipped):
    none = Estimate("KDE", 10, 3, 0.1, "L1 error", float("nan"), float("nan"), 3)
    some = Estimate("ECE", 10, 3, 0.1, "L1 error", 0.4, 0.3)
    exact = Estimate("zero", 10, 3, 0.0, "L1 error", 0.0, 0.0)
    comparison = simulate.Like(
        10, "event", shipped.fit, Biases({"KDE": none, "zero": exact, "ECE": some}), {"KDE": 0, "ECE": 0, "zero": 0}
    )
    assert comparison.trusted == "ECE"


def estimate(name, sd, error, truth=0.1):
    return Estimate(name, 10, 100, truth, "L1 error", truth, sd, rmse_error=error)


def test_ties_within_monte_carlo_error_are_named(shipped):
    entries = {"far": estimate("far", 0.02, 0.001), "near": estimate("near", 0.0112, 0.0004),
               "best": estimate("best", 0.01, 0.0005)}  # fmt: skip
    comparison = simulate.Like(10, "event", shipped.fit, Biases(entries), dict.fromkeys(entries, 0.1))
    assert comparison.trusted == "best"
    assert comparison.ties == ("near",)  # 0.0012 apart; two standard errors of the difference are 0.00128
    assert "Trust best or one that ties with it. " in comparison.advice
    assert "best is off by 10.0% ± 0.5% of the truth" in comparison.advice
    assert comparison.advice.endswith("near ties with it within Monte Carlo error.")
    apart = Biases({**entries, "near": estimate("near", 0.0114, 0.0004)})
    assert apart.ties == ()
    alone = simulate.Like(10, "event", shipped.fit, apart, dict.fromkeys(entries, 0.1))
    assert alone.advice.startswith("Trust best most. ")


def test_where_every_truth_is_zero_the_smallest_error_ties_and_wins():
    biases = Biases({name: estimate(name, sd, 0.0005, 0.0) for name, sd in (("a", 0.02), ("b", 0.0101), ("c", 0.01))})
    assert (biases.closest, biases.ties) == ("c", ("b",))
    assert biases.verdict == (
        "c is off by 0.0100 ± 0.0005 (root mean squared error); b ties with it within Monte Carlo error"
    )


def test_calibrated_samples_mostly_have_a_true_error_of_zero():
    run = {"metrics": {"ECE": cal.ECE}, "replicates": 2}
    samples = [simulate.draw(BetaScores(1.2, 0.4), simulate.IDENTITY, n=500, seed=seed) for seed in range(30)]
    truths = [like(predictions, **run).biases["ECE"].truth for predictions in samples]
    assert truths.count(0.0) >= 24  # 95 % of such samples; 1 in 1000 would be fewer
    assert np.mean(truths) < 0.005
    comparison = like(samples[truths.index(0.0)], FEW, replicates=20)
    assert "No curve describes your predictions better than perfect calibration" in comparison.advice
    assert "Closest to 0: " in comparison.advice
    assert json.loads(comparison.to_json())["curve"]["name"] == "calibrated"


def test_a_miscalibrated_model_is_not_called_calibrated():
    samples = [simulate.draw(UNIFORM, power_curve(1.5), n=500, seed=seed) for seed in range(10)]
    assert "calibrated" not in {simulate.fit_curve(predictions).best.name for predictions in samples}


@pytest.mark.parametrize(
    ("hits", "scores", "message"),
    [
        (np.arange(10) % 2, np.linspace(0.1, 0.9, 10), "predictions: must be at least 20"),
        (np.ones(50, int), np.linspace(0.1, 0.9, 50), "hits: must hold both outcomes"),
        (np.zeros(50, int), np.linspace(0.1, 0.9, 50), "hits: must hold both outcomes"),
        (np.arange(50) % 2, np.ones(50), "scores: must differ for a law to be fitted, got 50 times 1"),
        (np.arange(50) % 2, np.full(50, 0.7), r"scores: must differ for a law to be fitted, got 50 times 0\.7"),
        (np.arange(50) % 2, np.arange(50) // 25 * 1.0, "hits: must hold both outcomes .* got 0 of 0"),
    ],
    ids=["few", "all true", "none true", "saturated", "equal", "certain"],
)
def test_what_has_no_model_is_refused(hits, scores, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        like(cal.Predictions.from_confidence(hits, scores), {"ECE": cal.ECE}, replicates=3)


def test_weights_and_soft_labels_are_refused():
    x = np.linspace(0.1, 0.9, 30)
    with pytest.raises(cal.CalibrationInputError, match="must count every row once"):
        like(cal.Predictions.from_probs(np.arange(30) % 2, x, sample_weight=np.ones(30)))
    with pytest.raises(cal.CalibrationInputError, match="needs one true class per row"):
        like(cal.Predictions.from_probs(x / 2, x))


def test_tied_and_half_saturated_scores_get_an_answer():
    rng = np.random.default_rng(0)
    for x in (np.round(rng.random(200), 1), np.where(rng.random(200) < 0.7, 1.0, rng.random(200)).astype(np.float32)):
        comparison = like(cal.Predictions.from_confidence(rng.random(200) < 0.8 * x, x), FEW, replicates=20)
        assert comparison.trusted in FEW
        assert np.isfinite([estimate.rmse for estimate in comparison.biases.values()]).all()


def test_a_picture_has_the_curve_and_every_estimator(shipped):
    pytest.importorskip("matplotlib")
    figure = simulate.picture(shipped)
    left, right = figure.axes
    assert [text.get_text().split()[0] for text in right.get_yticklabels()] == list(FEW)
    assert len(left.lines) == 2
