"""Detection by simulation: critical values, power, how many samples an error takes."""

import json
import math
from statistics import NormalDist

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import IDENTITY, UNIFORM, BetaScores, Detection, Detections, EmpiricalScores, power_curve
from calibrant.simulate.sample_size import reaching
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
    spread = np.std([run.critical for run in runs])
    assert np.mean([run.critical_error for run in runs]) == pytest.approx(spread, rel=0.4)


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
    assert lines[0].split() == ["metric", "n", "level", "critical", "power"]
    assert lines[1].count(" ± ") == 2
    assert len(lines) == 3
    assert json.loads(detections.to_json())["EW"]["power"] == detections["EW"].power
    assert (list(detections), len(detections)) == (["EW", "EMsweep"], 2)


def test_powers_within_two_errors_of_their_difference_tie():
    powers = {"a": (0.5, 0.03), "b": (0.6, 0.04), "c": (0.49, 0.03), "none": (math.nan, math.nan)}
    detections = Detections(
        {name: Detection(name, 100, 0.05, 0.1, power, error, 100) for name, (power, error) in powers.items()}
    )
    assert (detections.strongest, detections.ties) == ("b", ("a",))  # 0.1 apart: two errors of the difference
    assert detections.verdict == ("b notices it most often, 60.0% ± 4.0%; a ties with it within Monte Carlo error")


def test_the_samples_that_an_error_takes():
    needed = simulate.samples_needed(METRICS["EMsweep"], UNIFORM, 0.1, within=0.2)
    assert needed.p == 2
    assert simulate.true_calibration_error(UNIFORM, needed.curve) == close(0.1, 1e-9)
    assert needed.low < needed.n < needed.high
    assert needed.high - needed.low <= 0.2 * needed.n + 2  # both ends are rounded outwards
    sizes = [detection.n for detection in needed.detections]
    assert len(sizes) == 6
    assert sizes[0] <= needed.n <= sizes[-1]
    assert {detection.replicates for detection in needed.detections} == {needed.replicates}
    it = {"it": METRICS["EMsweep"]}
    again = simulate.power(it, UNIFORM, needed.curve, sizes[2], replicates=needed.replicates)["it"]
    assert again.power == needed.detections[2].power
    assert str(needed).startswith(f"about {needed.n} samples (90% interval {needed.low} to {needed.high}; ")
    assert json.loads(needed.to_json())["high"] == needed.high


def needed_in_theory(error, wanted, level=0.05):
    """Of the mean gap of uniform scores under s^d, whose law is nearly normal."""
    d = 1 / (0.5 - error) - 1
    variance = 1 / 3 - 2 / (d + 2) + 1 / (d + 1) - error**2
    normal = NormalDist()
    return (
        (normal.inv_cdf(1 - level / 2) * math.sqrt(1 / 6) + normal.inv_cdf(wanted) * math.sqrt(variance)) / error
    ) ** 2


def test_the_interval_holds_the_known_truth_as_often_as_it_says_and_is_no_wider_than_it_must_be():
    truth = needed_in_theory(0.1, 0.8)
    run = {"p": 1, "within": 0.25, "replicates": 200}
    answers = [simulate.samples_needed(cal.MCS, UNIFORM, 0.1, seed=seed, **run) for seed in range(24)]
    assert sum(answer.low <= truth <= answer.high for answer in answers) >= 18  # fewer than 18 of 24: 1 in 100
    spread = np.std([answer.n for answer in answers])
    widths = np.mean([answer.high - answer.low for answer in answers]) / 2
    assert widths / NormalDist().inv_cdf(0.95) == pytest.approx(spread, rel=0.45)  # 24 answers know it to a seventh


def test_narrower_intervals_take_more_replicates():
    wide, narrow = (simulate.samples_needed(cal.MCS, UNIFORM, 0.1, p=1, within=share) for share in (0.5, 0.08))
    assert narrow.replicates > 2 * wide.replicates
    assert narrow.high - narrow.low < wide.high - wide.low
    assert narrow.low <= needed_in_theory(0.1, 0.8) <= narrow.high


def test_smaller_errors_take_more_samples():
    sizes = [simulate.samples_needed(cal.ECE_SWEEP, UNIFORM, error, within=0.3).n for error in (0.15, 0.08, 0.04)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 4 * sizes[0]


def test_a_huge_error_takes_the_fewest_that_are_tried():
    needed = simulate.samples_needed(cal.ECE, UNIFORM, 0.45, replicates=50)
    assert (needed.n, needed.low, needed.high, needed.at_most) == (20, 1, 20, True)
    assert str(needed).startswith("20 samples or fewer (50 replicates) to notice a true L1 error of 0.45")


def test_a_power_that_does_not_rise_has_no_answer():
    flat = tuple(Detection("it", n, 0.05, 0.1, 0.8, 0.05, 100) for n in (90, 100, 110))
    assert reaching(0.8, flat)[1:] == (1.0, math.inf)


def test_the_answer_and_its_interval_by_hand():
    """Exact probits on a line through 0.8 at n = 100: the answer is 100, the interval solves Fieller's equation."""
    normal = NormalDist()
    detections = tuple(
        Detection("it", n, 0.05, 0.1, normal.cdf(normal.inv_cdf(0.8) + 0.15 * (math.sqrt(n) - 10)), 0.001, 10**9)
        for n in (81, 100, 121)
    )
    n, low, high = reaching(0.8, detections)
    assert n == pytest.approx(100, abs=1e-4)  # half a replicate of a milliard is added
    error = np.sqrt(np.mean([(0.001 / normal.pdf(normal.inv_cdf(d.power))) ** 2 for d in detections]))
    for end in (low, high):
        off = math.sqrt(end) - 10
        far = normal.inv_cdf(0.95) * error * math.sqrt(1 / 3 + off**2 / 2)
        assert abs(0.15 * off) == pytest.approx(far, rel=1e-4)


def test_the_order_is_the_metrics_own_or_the_given_one():
    assert simulate.samples_needed(cal.ECE, UNIFORM, 0.3, replicates=20, within=1).p == 1
    assert simulate.samples_needed(cal.ECE, UNIFORM, 0.3, p=2, replicates=20, within=1).p == 2
    assert simulate.samples_needed(cal.MCE, UNIFORM, 0.3, replicates=20, within=1).p == 2


def test_an_error_that_is_never_noticed_is_refused():
    with pytest.raises(
        cal.CalibrationInputError, match=r"error: must be noticeable with 100 samples, got power 0\.\d+"
    ):
        simulate.samples_needed(cal.ECE, UNIFORM, 0.01, most=100, replicates=50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wanted": 1}, "wanted: must lie strictly between 0 and 1"),
        ({"within": 0}, "within: must be a share above 0"),
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
