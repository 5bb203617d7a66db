"""Bias by simulation: replicates at once and one by one, estimates, grids, what a stopped run keeps."""

import dataclasses
import json
import math
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import simulate
from calibrant.binning.ranked import ByRank
from calibrant.simulate import IDENTITY, UNIFORM, BetaScores, CalibrationCurve, EmpiricalScores, power_curve
from calibrant.simulate import grids as grids_module
from calibrant.simulate.biases import Estimate
from calibrant.simulate.replicated import values_of
from calibrant.simulate.sampling import Samples, sampled
from calibrant.simulate.store import FinishedCells

pytestmark = pytest.mark.slow

ROOTED = {"distance": cal.squared, "aggregate": cal.root_mean}
TIED = EmpiricalScores([0.0, 0.1, 0.1, 0.5, 0.7, 1.0])
SATURATED = BetaScores(2.7752, 0.0478)
AT_ONCE = {
    "equal width": cal.BinnedError(binning=cal.EqualWidth(15, closed="left"), **ROOTED),
    "right-closed": cal.ECE,
    "many bins": cal.BinnedError(binning=cal.EqualWidth(64)),
    "edges": cal.BinnedError(binning=cal.Edges([0, 0.1, 0.5, 1]), aggregate=cal.uniform),
    "equal mass": cal.BinnedError(binning=cal.EqualMass(7), **ROOTED),
    "quantiles": cal.BinnedError(binning=cal.Quantiles(7)),
    "debiased": cal.ECE_DEBIASED,
    "sweep": cal.ECE_SWEEP,
    "width sweep": cal.BinnedError(binning=cal.Sweep(cal.EqualWidth(closed="left")), **ROOTED),
    "largest": cal.MCE,
    "signed": cal.MCS,
    "label-binned": cal.ECE_LB,
    "label-binned sweep": cal.LabelBinnedError(binning=cal.Sweep(), p=2),
    "full": cal.BinnedError(lens=cal.Full()),
}


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=0, abs=tolerance, nan_ok=True)


# ---- replicates at once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(AT_ONCE))
@pytest.mark.parametrize("scores", [UNIFORM, SATURATED, TIED], ids=["uniform", "saturated", "tied"])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_replicates_at_once_are_what_they_are_one_by_one(name, scores, n):
    metric = AT_ONCE[name]
    samples = sampled(scores, power_curve(1.5), n, np.random.default_rng(n), 25)
    results = [metric(predictions) for predictions in samples]
    together = values_of(metric, samples)
    assert together[:, 0] == close([result.value for result in results], 1e-15)  # sums of padded rows round once more
    assert np.array_equal(together[:, 1], [result.details.get("n_bins", np.nan) for result in results], equal_nan=True)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), rounded=st.booleans())
def test_sweeps_agree_with_the_plain_loop(seed, n, rounded):
    rng = np.random.default_rng(seed)
    values = rng.random((3, n))
    values = np.round(values, 1) if rounded else values
    labels = (rng.random((3, n)) < values).astype(np.int64)
    together = values_of(AT_ONCE["sweep"], Samples(values, labels))
    for row, (p, y) in enumerate(zip(values, labels, strict=True)):
        result = cal.ECE_SWEEP(y, p)
        assert together[row].tolist() == [close(result.value, 1e-15), result.details["n_bins"]]


def test_hand_worked_sweep():
    samples = Samples(np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]]), np.array([[0, 0, 1, 0, 1, 1]]))
    assert values_of(cal.ECE_SWEEP, samples).tolist() == [[close(0.25), 3]]
    rooted = cal.BinnedError(binning=cal.Sweep(), **ROOTED)
    assert values_of(rooted, samples)[0, 0] == close(0.2872281323, 1e-10)


def test_outcomes_that_rise_make_as_many_bins_as_samples():
    samples = Samples(np.array([[0.1, 0.2, 0.9], [0.1, 0.2, 0.9]]), np.array([[0, 1, 1], [1, 0, 0]]))
    assert values_of(cal.ECE_SWEEP, samples)[:, 1].tolist() == [3, 1]


def test_metrics_without_bins_are_asked_one_by_one():
    samples = sampled(UNIFORM, power_curve(2), 40, np.random.default_rng(0), 3)
    for metric in (cal.SMECE, cal.ECE_KDE, cal.BRIER, cal.ECCE_MAD, cal.SKCE, cal.NeighbourError()):
        assert values_of(metric, samples)[:, 0].tolist() == [metric(predictions).value for predictions in samples]


def test_a_binning_of_ones_own_is_asked_one_by_one():
    class Halves(ByRank):
        def cuts(self, ladder):
            return np.searchsorted(ladder.values, [0.0, 0.5, 2.0])  # of one table

    samples = sampled(UNIFORM, power_curve(2), 40, np.random.default_rng(0), 3)
    for binning in (Halves(), cal.Sweep(Quarters())):
        metric = cal.BinnedError(binning=binning)
        assert values_of(metric, samples)[:, 0].tolist() == [metric(predictions).value for predictions in samples]


@dataclasses.dataclass(frozen=True)
class Quarters(ByRank):
    n_bins: int = 4

    def cuts(self, ladder):
        return np.append(np.searchsorted(ladder.values[: ladder.n], np.arange(self.n_bins) / self.n_bins), ladder.n)


def test_classes_are_asked_one_by_one():
    samples = sampled(simulate.SoftmaxScores(4, 2.0), simulate.Tempered(2), 50, np.random.default_rng(0), 3)
    for metric in (cal.ECE, cal.SCE, cal.FULL_ECE):
        assert values_of(metric, samples)[:, 0].tolist() == [metric(predictions).value for predictions in samples]


def test_outcomes_follow_the_curve():
    rng = np.random.default_rng(0)
    for curve, plain in (
        (power_curve(3), lambda s: s**3),
        (CalibrationCurve("logflip_logflip", -0.5, 0.3), lambda s: 1 - np.exp(-0.5) * (1 - s) ** 0.3),
    ):
        samples = sampled(UNIFORM, curve, 500, rng, 200)
        gap = samples.labels - plain(samples.values)
        assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(gap.size)  # false alarm 1 in 1e6
    drawn = sampled(simulate.SoftmaxScores(3, 1.0), simulate.Tempered(0.5), 500, rng, 100)
    truth = simulate.Tempered(0.5)(drawn.values)
    for label in range(3):
        gap = (drawn.labels == label) - truth[:, :, label]
        assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(gap.size)


def test_a_draw_is_repeatable_predictions():
    first, again, other = (simulate.draw(UNIFORM, power_curve(2), 50, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)
    assert cal.ECE(first).value == cal.ECE(cal.Predictions.from_probs(first.labels, first.values)).value


# ---- estimates -------------------------------------------------------------------------------------------------------


def test_an_estimate_is_mean_and_spread_of_its_replicates():
    metrics = {"ece": cal.ECE, "sweep": cal.ECE_SWEEP}
    values = simulate.estimates(metrics, UNIFORM, power_curve(2), n=80, replicates=50, seed=3)
    biases = simulate.bias(metrics, UNIFORM, power_curve(2), n=80, replicates=50, seed=3)
    for name in metrics:
        drawn = values[name][:, 0]
        assert biases[name].mean == close(sum(drawn) / 50)
        assert biases[name].sd == close(math.sqrt(sum((v - drawn.mean()) ** 2 for v in drawn) / 50))
        assert biases[name].bias == close(drawn.mean() - 1 / 6)
        assert biases[name].rmse == close(math.sqrt(sum((v - 1 / 6) ** 2 for v in drawn) / 50))
        assert biases[name].mc_error == close(biases[name].sd / math.sqrt(50))
        assert (biases[name].n, biases[name].replicates, biases[name].missing) == (80, 50, 0)
    assert biases["ece"].n_bins is None
    assert biases["sweep"].n_bins == values["sweep"][:, 1].mean()


def test_replicates_agree_with_the_plain_loop_over_drawn_samples():
    n, count = 30, 12
    rng = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(2 * n, 0)))
    samples = sampled(UNIFORM, power_curve(2), n, rng, count)
    values = simulate.estimates({"it": AT_ONCE["equal width"]}, UNIFORM, power_curve(2), n, count, seed=4)["it"][:, 0]
    for value, predictions in zip(values, samples, strict=True):
        sums = {}
        for p, y in zip(predictions.values.tolist(), predictions.labels.tolist(), strict=True):
            size, total, hits = sums.get(math.floor(p * 15), (0, 0.0, 0))
            sums[math.floor(p * 15)] = (size + 1, total + p, hits + y)
        plain = sum(size / n * (total / size - hits / size) ** 2 for size, total, hits in sums.values())
        assert value == close(math.sqrt(plain))


def test_a_metric_alone_finds_what_it_finds_among_others():
    together = simulate.bias(AT_ONCE, UNIFORM, IDENTITY, n=40, replicates=30)
    alone = simulate.bias({"sweep": cal.ECE_SWEEP}, UNIFORM, IDENTITY, n=40, replicates=30)
    assert together["sweep"] == alone["sweep"]


def test_results_do_not_depend_on_processes():
    metrics = {"ece": cal.ECE, "brier": cal.BRIER, "sweep": cal.ECE_SWEEP}
    runs = [
        dict(simulate.bias(metrics, SATURATED, power_curve(2), n=3000, replicates=100, seed=1, n_jobs=jobs))
        for jobs in (1, 2)
    ]
    assert runs[0] == runs[1]


def test_other_seeds_and_sizes_are_other_draws():
    runs = [
        simulate.bias({"it": cal.ECE}, UNIFORM, IDENTITY, n=n, replicates=20, seed=seed)["it"].mean
        for n, seed in ((50, 0), (50, 1), (51, 0))
    ]
    assert len(set(runs)) == 3


def test_a_calibrated_binary_forecast_has_the_bias_that_theory_says():
    # one bin, scores all 1/2: sqrt of the mean square of the gap is sqrt(.25 / n); E |gap| of a binomial, n = 2, is 1/4
    half = EmpiricalScores([0.5])
    biases = simulate.bias({"one": cal.BinnedError(binning=cal.EqualWidth(1))}, half, IDENTITY, n=2, replicates=20_000)
    assert biases["one"].mean == pytest.approx(0.25, abs=5 * biases["one"].mc_error)  # false alarm 1 in 1e6
    assert biases["one"].truth == 0


def test_a_given_truth_is_used():
    estimate = simulate.bias({"it": cal.ECE}, UNIFORM, IDENTITY, n=20, replicates=5, truth={"it": 0.5})["it"]
    assert (estimate.truth, estimate.target, estimate.bias) == (0.5, "given", estimate.mean - 0.5)


def test_replicates_without_a_value_are_counted_and_left_out():
    estimate = simulate.bias({"kde": cal.ECE_KDE}, UNIFORM, power_curve(4), n=4, replicates=200, seed=0)["kde"]
    assert 0 < estimate.missing < 200  # nothing, or one score alone, came true
    assert np.isfinite([estimate.mean, estimate.sd, estimate.mc_error]).all()
    none = simulate.bias({"kde": cal.ECE_KDE}, EmpiricalScores([0.5]), IDENTITY, n=5, replicates=4)["kde"]
    assert none.missing == 4
    assert math.isnan(none.bias)
    assert json.loads(simulate.Biases({"kde": none}).to_json())["kde"]["bias"] == "nan"


def test_metrics_of_classes_are_estimated_against_their_limits():
    biases = simulate.bias(
        {"ece": cal.ECE, "sce": cal.SCE}, simulate.SoftmaxScores(3, 2.0), simulate.Tempered(2), n=400, replicates=20
    )
    assert {estimate.target for estimate in biases.values()} == {"its limit"}
    assert 0 < biases["sce"].bias < 0.03
    assert abs(biases["ece"].bias) < 0.03


def test_any_function_may_be_the_curve():
    estimate = simulate.bias({"it": cal.MCS}, UNIFORM, lambda s: 1 - s, n=100, replicates=200)["it"]
    assert estimate.truth == close(0, 1e-6)  # the limit's grid
    assert abs(estimate.bias) < 5 * estimate.mc_error


def test_a_table_of_estimates():
    biases = simulate.bias({"ece": cal.ECE}, UNIFORM, power_curve(2), n=50, replicates=20)
    header, line = str(biases).splitlines()
    assert header.split() == ["estimator", "estimates", "n", "truth", "mean", "bias", "sd", "rmse"]
    assert line.count(" ± ") == 3
    assert line.split()[:3] == ["ece", "L1", "error"]
    document = json.loads(biases.to_json())["ece"]
    assert document["bias"] == biases["ece"].bias
    assert list(biases) == ["ece"]
    assert len(biases) == 1


def test_monte_carlo_errors_are_of_the_right_size():
    runs = [
        simulate.bias({"ece": cal.ECE}, UNIFORM, power_curve(1.2), n=60, replicates=100, seed=s)["ece"]
        for s in range(60)
    ]
    for what, error in (("bias", "mc_error"), ("sd", "sd_error"), ("rmse", "rmse_error")):
        spread = np.std([getattr(run, what) for run in runs])  # sixty runs know it to an eleventh
        assert np.mean([getattr(run, error) for run in runs]) == pytest.approx(spread, rel=0.3), what


def test_one_order_of_the_true_error_may_be_asked_of_every_metric():
    metrics = {"ece": cal.ECE, "mce": cal.MCE}
    run = {"n": 40, "replicates": 5}
    biases = simulate.bias(metrics, UNIFORM, power_curve(2), p=2, **run)
    truth = simulate.true_calibration_error(UNIFORM, power_curve(2), p=2)
    assert [(estimate.truth, estimate.target) for estimate in biases.values()] == [(truth, "L2 error")] * 2
    own = simulate.bias(metrics, UNIFORM, power_curve(2), **run)
    assert own["ece"].mean == biases["ece"].mean
    assert [estimate.target for estimate in own.values()] == ["L1 error", "its limit"]


def test_a_folder_tells_orders_of_the_true_error_apart(tmp_path):
    run = {"n": (30,), "replicates": 4, "folder": tmp_path}
    truths = [
        simulate.bias_grid({"ece": cal.ECE}, UNIFORM, power_curve(2), p=p, **run)["ece", 30].truth for p in (1, 2, 1)
    ]
    assert truths[0] == truths[2] != truths[1]


def test_memory_does_not_grow_with_replicates():
    def peak(replicates):
        tracemalloc.start()
        simulate.estimates({"ece": cal.ECE, "sweep": cal.ECE_SWEEP}, UNIFORM, IDENTITY, n=2000, replicates=replicates)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(65)  # what is imported and cached on the way
    assert peak(650) < 1.1 * peak(65)  # ten blocks against one


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": {}}, "metrics: must name at least one metric"),
        ({"metrics": cal.ECE}, "metrics: must name at least one metric"),
        ({"metrics": {"ece": "ECE"}}, "metrics: must map names to metrics"),
        ({"scores": 3}, "scores: must be BetaScores"),
        ({"curve": 3}, "curve: must be a CalibrationCurve or a function"),
        ({"n": 0}, "n: must be a whole number of at least 1"),
        ({"n": 2.5}, "n: must be a whole number"),
        ({"replicates": 0}, "replicates: must be a whole number"),
        ({"seed": -1}, "seed: must be a whole number"),
        ({"seed": None}, "seed: must be a whole number"),
        ({"n_jobs": 0}, "n_jobs: must be a whole number"),
        ({"metrics": {"sce": cal.SCE}}, "is a question about classes"),
        ({"scores": simulate.SoftmaxScores(3)}, "curve: must be a function of rows"),
        ({"curve": simulate.Tempered(2)}, "curve: must"),
    ],
)
def test_what_cannot_be_simulated_is_refused(change, message):
    options = {"metrics": {"ece": cal.ECE}, "scores": UNIFORM, "curve": IDENTITY, "n": 20, "replicates": 3, "seed": 0}
    with pytest.raises(cal.CalibrationInputError, match=message):
        simulate.bias(**{**options, **change})


# ---- grids -----------------------------------------------------------------------------------------------------------


def test_a_grid_holds_what_bias_finds():
    metrics = {"EW": AT_ONCE["equal width"], "sweep": cal.ECE_SWEEP}
    grid = simulate.bias_grid(metrics, UNIFORM, power_curve(2), n=(30, 60), n_bins=(5, 15), replicates=20, seed=2)
    assert grid.names == ("EW 5", "EW 15", "sweep")
    for n in (30, 60):
        alone = simulate.bias(metrics, UNIFORM, power_curve(2), n=n, replicates=20, seed=2)
        assert grid["sweep", n] == alone["sweep"]
        assert grid["EW 15", n].mean == alone["EW"].mean
    assert grid.table("sd").splitlines()[0].split() == ["sd,", "by", "n", "30", "60"]
    assert grid.table("n_bins").splitlines()[1].split()[-1] == "-"
    assert len(json.loads(grid.to_json())) == 6
    with pytest.raises(cal.CalibrationInputError, match="cell: must be a name and a value of the grid"):
        grid["EW 7", 30]


def test_a_grid_needs_sizes():
    with pytest.raises(cal.CalibrationInputError, match="n: must not be empty"):
        simulate.bias_grid({"ece": cal.ECE}, UNIFORM, IDENTITY, n=())
    with pytest.raises(cal.CalibrationInputError, match="n_bins: must be a whole number"):
        simulate.bias_grid({"ece": cal.ECE}, UNIFORM, IDENTITY, n=(20,), n_bins=(0,))


def test_a_stopped_grid_goes_on_where_it_was(tmp_path, monkeypatch):
    asked = []
    real = grids_module.estimates

    def counted(metrics, scores, curve, n, *rest, **options):
        asked.append((tuple(metrics), n))
        if stop_at == n:
            raise KeyboardInterrupt
        return real(metrics, scores, curve, n, *rest, **options)

    monkeypatch.setattr(grids_module, "estimates", counted)

    def run(sizes, metrics=None, **options):
        chosen = metrics or {"ece": cal.ECE, "kde": cal.ECE_KDE}
        return simulate.bias_grid(
            chosen, UNIFORM, power_curve(4), n=sizes, **{"replicates": 10, "folder": tmp_path, **options}
        )

    stop_at = 60
    with pytest.raises(KeyboardInterrupt):
        run((4, 30, 60))
    assert asked == [(("ece", "kde"), 4), (("ece", "kde"), 30), (("ece", "kde"), 60)]
    stop_at = None
    asked.clear()
    resumed = run((4, 30, 60))
    assert asked == [(("ece", "kde"), 60)]
    asked.clear()
    assert run((4, 30, 60)).cells == resumed.cells
    assert asked == []
    assert (
        resumed.cells
        == simulate.bias_grid(
            {"ece": cal.ECE, "kde": cal.ECE_KDE}, UNIFORM, power_curve(4), n=(4, 30, 60), replicates=10
        ).cells
    )
    asked.clear()
    run((30,), {"named otherwise": cal.ECE})  # what it is called does not matter
    run((30,), seed=1)
    run((30,), replicates=11)
    run((30,), {"ece": cal.MCE})
    assert [names for names, _ in asked] == [("ece", "kde"), ("ece", "kde"), ("ece",)]
    assert not [name for name in os.listdir(tmp_path) if not name.endswith(".json")]


def test_a_cell_without_a_value_is_kept_as_such(tmp_path):
    def run():
        return simulate.bias_grid(
            {"kde": cal.ECE_KDE}, EmpiricalScores([0.5]), IDENTITY, n=(5,), replicates=3, folder=tmp_path
        )

    first, again = run()["kde", 5], run()["kde", 5]
    assert math.isnan(first.mean)
    assert math.isnan(again.mean)
    assert again.missing == 3


def test_a_spoilt_cell_is_said_to_be(tmp_path):
    store = FinishedCells(tmp_path / "new")
    store.write({"n": 1}, {"mean": math.nan})
    assert store.read({"n": 1}) == {"mean": "nan"}
    (path,) = (tmp_path / "new").iterdir()
    path.write_text('{"cell": ')
    with pytest.raises(cal.CalibrationInputError, match="must be a finished cell, got other content; delete it"):
        store.read({"n": 1})
    path.write_text('{"cell": {"n": 2}, "found": {}}')
    assert store.read({"n": 1}) is None


def test_a_nameless_curve_cannot_be_kept(tmp_path):
    with pytest.raises(cal.CalibrationInputError, match="curve: must have a name of its own to be kept"):
        simulate.bias_grid({"ece": cal.ECE}, UNIFORM, lambda s: s, n=(20,), replicates=2, folder=tmp_path)


def test_label_noise_moves_the_truth():
    scores = simulate.SoftmaxScores(3, 2.0)
    grid = simulate.label_noise({"sce": cal.SCE, "ece": cal.ECE}, scores, (0.0, 1.0, math.inf), n=200, replicates=10)
    assert grid["sce", 1.0].truth == close(0)
    assert grid["sce", 0.0].truth > 0.02
    assert grid["sce", math.inf].truth > 0.1
    assert grid.values == (0.0, 1.0, math.inf)
    assert str(grid).splitlines()[0].split()[-3:] == ["0", "1", "inf"]


def test_convergence_of_metrics_of_classes():
    scores, curve = simulate.SoftmaxScores(4, 2.0), simulate.Tempered(2)
    grid = simulate.bias_grid({"sce": cal.SCE, "ace": cal.ACE}, scores, curve, n=(100, 1600), replicates=20)
    for name in grid.names:
        assert grid[name, 1600].bias < grid[name, 100].bias / 2
        assert grid[name, 1600].sd < grid[name, 100].sd / 2


def test_an_estimate_of_nothing_has_no_error():
    assert math.isnan(Estimate("x", 1, 3, 0.0, "L1 error", math.nan, math.nan, missing=3).mc_error)
