"""Bias of errors of vectors: truth that follows a lens, the error without bins, and its bias in cells and samples."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import Induced, SoftmaxScores, Tempered, bias_grid, targets, true_value
from oracles import lenses
from oracles import simulate as plain

SCORES = SoftmaxScores(4, 1.5)
GROUPS = cal.Groups({"a": [0, 3], "b": [1], "c": [2]})
ROWS = SCORES.draw(np.random.default_rng(0), 40)


def members(lens, row):
    """The classes of each coordinate."""
    if lens == GROUPS:
        return [[0, 3], [1], [2]]
    if lens == cal.Full():
        return [[0], [1], [2], [3]]
    ranking = lenses.ranking(row)
    return [[ranking[0]], [ranking[1]], ranking[2:]]


def tempered(outputs, temperature=2.0):
    raised = [value ** (1 / temperature) for value in outputs]
    return [value / sum(raised) for value in raised]


LENSES = pytest.mark.parametrize("lens", [GROUPS, cal.TopK(2), cal.Full()], ids=str)


@LENSES
def test_induced_truth_agrees_with_the_plain_loop(lens):
    expected = [plain.induced_truth(row, members(lens, row), tempered) for row in ROWS.tolist()]
    assert Induced(lens, Tempered(2.0))(ROWS) == pytest.approx(np.array(expected), abs=1e-12)
    together = Induced(lens, Tempered(2.0))(ROWS.reshape(5, 8, 4))
    assert together.reshape(40, 4).tolist() == Induced(lens, Tempered(2.0))(ROWS).tolist()


def test_classes_of_a_coordinate_without_output_share_evenly():
    rows = Induced(GROUPS, lambda outputs: np.full_like(outputs, 1 / 3))(np.array([[0.0, 0.6, 0.4, 0.0]]))
    assert rows[0] == pytest.approx([1 / 6, 1 / 3, 1 / 3, 1 / 6])


@LENSES
def test_the_pointwise_error_agrees_with_the_plain_loop(lens, monkeypatch):
    monkeypatch.setattr(targets, "ROWS", 200)
    rows = SCORES.draw(np.random.default_rng(np.random.SeedSequence(3, spawn_key=(0,))), 200).tolist()
    outputs = [[sum(row[c] for c in classes) for classes in members(lens, row)] for row in rows]
    expected = plain.pointwise_error(outputs, [tempered(row) for row in outputs])
    metric = cal.BinnedError(lens=lens, binning=cal.KDTree())
    target = true_value(metric, SCORES, Induced(lens, Tempered(2.0)), seed=3, pointwise=True)
    assert (target.value, target.words) == (pytest.approx(expected, abs=1e-12), "pointwise error")


@LENSES
def test_the_limit_of_fixed_cells_is_never_above_the_pointwise_error(lens):
    """Kirchenbauer, Oaks & Heim (2022), eq. 15: pooled gaps cancel."""
    curve = Induced(lens, Tempered(2.0))
    errors = []
    for n_bins in (1, 3, 9):
        metric = cal.BinnedError(lens=lens, binning=cal.Grid(n_bins))
        errors.append(true_value(metric, SCORES, curve).value)
        errors.append(true_value(metric, SCORES, curve, pointwise=True).value)
    limits, truths = errors[::2], errors[1::2]
    assert truths[0] == truths[1] == truths[2]
    assert limits[0] < limits[1] < limits[2] < truths[0]


def test_bias_grows_with_cells_at_fixed_samples_and_falls_with_samples_at_fixed_cells():
    """Eqs. 14 and 16, of a calibrated model: its error is 0, and noise alone is seen."""
    metric = cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree())
    curve = Induced(cal.TopK(2), Tempered(1.0))
    options = {"n": (200, 800), "gamma": (0.5, 0.1, 0.02), "replicates": 10, "pointwise": True}
    grid = bias_grid({"top 2": metric}, SCORES, curve, **options)
    assert grid.names == ("top 2 0.5", "top 2 0.1", "top 2 0.02")
    biases = np.array([[grid[name, n].bias for n in grid.values] for name in grid.names])
    assert grid["top 2 0.1", 200].truth == 0
    assert (np.diff(biases, axis=0) > 0).all()
    assert (np.diff(biases, axis=1) < 0).all()
    single = simulate.bias({"it": metric}, SCORES, curve, n=200, replicates=10, pointwise=True)["it"]
    assert single.mean == grid["top 2 0.1", 200].mean


def test_what_is_not_known_without_bins_is_refused():
    metric = cal.BinnedError(lens=GROUPS, binning=cal.KDTree())
    for asked, scores, curve in (
        (metric, SCORES, Tempered(2.0)),  # the rest of the forecast matters to it
        (metric, SCORES, Induced(cal.TopK(1), Tempered(2.0))),
        (cal.BRIER, SCORES, Tempered(2.0)),
        (cal.SCE, SCORES, Tempered(2.0)),
        (cal.ECE, simulate.UNIFORM, simulate.power_curve(2)),
    ):
        with pytest.raises(cal.CalibrationInputError, match="whose truth follows what its lens shows"):
            true_value(asked, scores, curve, pointwise=True)
    for lens in (cal.TopLabel(), cal.Classwise(), cal.ByLabel(cal.Full())):
        with pytest.raises(cal.CalibrationInputError, match="must show one vector a row"):
            Induced(lens, Tempered(2.0))(ROWS)


def test_cells_of_other_truths_are_kept_apart(tmp_path):
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree())
    run = {"n": (30,), "replicates": 3, "folder": tmp_path}
    truths = [
        bias_grid({"it": metric}, SCORES, curve, pointwise=pointwise, **run)["it", 30].truth
        for curve in (Induced(cal.Full(), Tempered(2.0)), Induced(cal.TopK(2), Tempered(2.0)), Tempered(2.0))
        for pointwise in (True, False)
    ]
    assert len(set(truths)) == 4  # that of the whole forecast is the tempered truth itself, with and without bins
    assert len(list(tmp_path.iterdir())) == 6
