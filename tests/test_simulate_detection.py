"""Detection by simulation: critical values, power, how many samples an error takes."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import IDENTITY, UNIFORM, BetaScores, EmpiricalScores, power_curve
from oracles import simulate as oracle

pytestmark = pytest.mark.slow

ROOTED = {"distance": cal.squared, "aggregate": cal.root_mean}
METRICS = {
    "EW": cal.BinnedError(binning=cal.EqualWidth(15, closed="left"), **ROOTED),
    "EMsweep": cal.BinnedError(binning=cal.Sweep(), **ROOTED),
}


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=0, abs=tolerance)


def test_power_is_the_share_above_the_quantile_of_calibrated_replicates():
    curve = power_curve(1.5)
    detections = simulate.power(METRICS, UNIFORM, curve, n=100, level=0.1, replicates=60, seed=2)
    null = simulate.estimates(METRICS, UNIFORM, IDENTITY, 100, 60, 2, stage=1)
    drawn = simulate.estimates(METRICS, UNIFORM, curve, 100, 60, 2)
    for name in METRICS:
        critical = oracle.quantile(null[name][:, 0].tolist(), 0.9)
        assert detections[name].critical == close(critical)
        assert detections[name].power == close(sum(value > critical for value in drawn[name][:, 0]) / 60)
        assert detections[name].type_two == close(1 - detections[name].power)
        assert (detections[name].n, detections[name].level, detections[name].replicates) == (100, 0.1, 60)


def test_a_calibrated_model_is_accused_at_the_level():
    detections = simulate.power(METRICS, BetaScores(1.1, 0.1), IDENTITY, n=200, level=0.1, replicates=2000, seed=0)
    for detection in detections.values():  # the null's replicates are other ones; false alarm 1 in 1e4 for both
        assert detection.power == pytest.approx(0.1, abs=4 * np.sqrt(2 * 0.1 * 0.9 / 2000))


def test_the_error_that_simulation_leaves_is_of_the_right_size():
    runs = [
        simulate.power({"EW": METRICS["EW"]}, UNIFORM, power_curve(1.5), 150, replicates=100, seed=s)["EW"]
        for s in range(40)
    ]
    spread = np.std([run.power for run in runs])
    assert np.mean([run.mc_error for run in runs]) == pytest.approx(spread, rel=0.4)  # forty runs know it to a ninth


def test_signed_metrics_are_compared_by_size():
    detection = simulate.power({"mcs": cal.MCS}, UNIFORM, power_curve(0.5), n=300, replicates=100)["mcs"]
    assert detection.critical > 0
    assert detection.power == 1  # under-confident: all values lie far below 0


def test_results_do_not_depend_on_processes():
    runs = [simulate.power(METRICS, UNIFORM, power_curve(1.2), n=2000, replicates=100, n_jobs=jobs) for jobs in (1, 2)]
    assert dict(runs[0]) == dict(runs[1])


def test_classes_can_be_tested():
    scores = simulate.SoftmaxScores(3, 2.0)
    detection = simulate.power({"sce": cal.SCE}, scores, simulate.Tempered(2.0), n=300, replicates=40)["sce"]
    assert detection.power > 0.9


def test_replicates_without_a_value_notice_nothing():
    detection = simulate.power({"kde": cal.ECE_KDE}, EmpiricalScores([0.5]), power_curve(3), n=5, replicates=5)["kde"]
    assert np.isnan(detection.power)
    few = simulate.power({"kde": cal.ECE_KDE}, UNIFORM, power_curve(6), n=4, replicates=60)["kde"]
    assert 0 <= few.power < 1


def test_a_table_of_detections():
    detections = simulate.power(METRICS, UNIFORM, power_curve(2), n=100, replicates=20)
    lines = str(detections).splitlines()
    assert lines[0].split() == ["metric", "n", "level", "critical", "power", "mc", "error"]
    assert len(lines) == 3
    assert json.loads(detections.to_json())["EW"]["power"] == detections["EW"].power
    assert (list(detections), len(detections)) == (["EW", "EMsweep"], 2)


def test_the_samples_that_an_error_takes():
    needed = simulate.samples_needed(METRICS["EMsweep"], UNIFORM, 0.1, replicates=200)
    assert needed.p == 2
    assert simulate.true_calibration_error(UNIFORM, needed.curve) == close(0.1, 1e-9)
    assert needed.too_few < needed.n <= 1.1 * needed.too_few
    again = [simulate.power({"it": METRICS["EMsweep"]}, UNIFORM, needed.curve, n, replicates=200)["it"].power
             for n in (needed.too_few, needed.n)]  # fmt: skip
    assert again[0] < 0.8 <= again[1] == needed.power
    assert str(needed).startswith(f"about {needed.n} samples")


def test_smaller_errors_take_more_samples():
    sizes = [simulate.samples_needed(cal.ECE_SWEEP, UNIFORM, error, replicates=100).n for error in (0.15, 0.08, 0.04)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 4 * sizes[0]


def test_a_huge_error_takes_the_fewest_that_are_tried():
    needed = simulate.samples_needed(cal.ECE, UNIFORM, 0.45, replicates=50)
    assert (needed.n, needed.too_few) == (20, 0)


def test_the_order_is_the_metrics_own_or_the_given_one():
    assert simulate.samples_needed(cal.ECE, UNIFORM, 0.3, replicates=20).p == 1
    assert simulate.samples_needed(cal.ECE, UNIFORM, 0.3, p=2, replicates=20).p == 2
    assert simulate.samples_needed(cal.MCE, UNIFORM, 0.3, replicates=20).p == 2


def test_an_error_that_is_never_noticed_is_refused():
    with pytest.raises(
        cal.CalibrationInputError, match=r"error: must be noticeable with 100 samples, got power 0\.\d+"
    ):
        simulate.samples_needed(cal.ECE, UNIFORM, 0.01, most=100, replicates=50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wanted": 1}, "wanted: must lie strictly between 0 and 1"),
        ({"most": 3}, "most: must be a whole number of at least 20"),
        ({"level": 5}, "level: must lie strictly between 0 and 1"),
        ({"error": 0.9}, "error: must lie between 0 and"),
        ({"error": -0.1}, "error: must lie between 0 and"),
        ({"scores": simulate.SoftmaxScores()}, "scores: must be a law of forecasts of one event"),
    ],
)
def test_what_cannot_be_asked_is_refused(change, message):
    options = {"metric": cal.ECE, "scores": UNIFORM, "error": 0.1, "replicates": 5}
    with pytest.raises(cal.CalibrationInputError, match=message):
        simulate.samples_needed(**{**options, **change})
    with pytest.raises(cal.CalibrationInputError, match=r"level: must lie strictly between 0 and 1, got 5; 5% is"):
        simulate.power(METRICS, UNIFORM, IDENTITY, n=10, level=5)
