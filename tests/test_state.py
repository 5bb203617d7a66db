"""States add, subtract and travel; what they tell is what the rows tell."""

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.binning import cells
from calibrant.scale.state import State, first_pass, reading, readings

METRICS = {
    "ece": cal.ECE,
    "mce": cal.MCE,
    "sce": cal.SCE,
    "brier": cal.BRIER,
    "accuracy": cal.ACCURACY,
    "adaptive": cal.ADAPTIVE_ECE,
    "auroc": cal.AUROC,
}


def rows(seed, n=300, dtype=np.float64, classes=3):
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(classes), n).astype(dtype)
    y = generator.integers(0, classes, n)
    region = generator.choice(["north", "south", "west"], n)
    return cal.Predictions.from_probs(y, p, region=region, normalize=dtype != np.float64)


@pytest.mark.parametrize("by", [None, "region"])
def test_days_add_in_any_order_and_are_taken_away_to_the_bit(by):
    days = [State.of(rows(seed, dtype=dtype), METRICS, by) for seed, dtype in enumerate([float, np.float32, float])]
    assert sum(days).to_bytes() == (days[2] + days[0] + days[1]).to_bytes()
    for day in days:
        for other in days:
            assert ((day + other) - other).to_bytes() == day.to_bytes()
    assert (sum(days) - sum(days[1:])).to_bytes() == days[0].to_bytes()


def test_a_state_tells_what_the_rows_tell():
    whole = cal.Predictions.from_probs(
        np.concatenate([rows(seed).labels for seed in range(3)]),
        np.concatenate([rows(seed).values for seed in range(3)]),
    )
    names = ("ece", "mce", "sce", "brier", "accuracy")
    results = sum(State.of(rows(seed), {name: METRICS[name] for name in names}) for seed in range(3)).results()
    for name in names:
        assert results[name].value == METRICS[name](whole).value
        assert results[name].n == 900


def test_groups_are_told_apart_and_together():
    predictions = rows(0)
    metrics = {name: METRICS[name] for name in ("ece", "brier")}
    state = State.of(predictions, metrics, by="region")
    table = cal.table(predictions, metrics, by="region")
    assert {
        row: {name: float(each) for name, each in results.items()} for row, results in state.table().results.items()
    } == {row: {name: float(each) for name, each in results.items()} for row, results in table.results.items()}
    assert state.n == 300


def test_one_reading_serves_every_metric_that_shares_it():
    assert len(readings(METRICS)) == 5
    assert reading(first_pass(cal.ADAPTIVE_ECE)) == reading(first_pass(cal.AUROC)) != reading(cal.AUROC)


def test_bytes_come_back_and_damage_is_refused():
    state = State.of(rows(0), METRICS, by="region")
    data = state.to_bytes()
    again = State.from_bytes(data)
    assert again.to_bytes() == data
    assert again.metrics == METRICS
    for place in range(0, len(data), 97):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            with pytest.raises(cal.CalibrationInputError):
                State.from_bytes(bytes(damaged))


def test_a_file_is_written_and_read(tmp_path):
    state = State.of(rows(0), {"ece": cal.ECE})
    state.save(tmp_path / "monday.state")
    assert State.load(tmp_path / "monday.state").to_bytes() == state.to_bytes()


def test_what_cannot_be_joined_is_named():
    a, b = State.of(rows(0), {"ece": cal.ECE}), State.of(rows(0), {"ece": cal.ECE.replace(binning=cal.EqualWidth(10))})
    with pytest.raises(cal.CalibrationInputError, match="n_bins"):
        a + b
    with pytest.raises(cal.CalibrationInputError, match="by"):
        a + State.of(rows(0), {"ece": cal.ECE}, by="region")
    with pytest.raises(cal.CalibrationInputError, match="1 and 2"):
        a + State.of(rows(0), {"ece": cal.ECE, "mce": cal.MCE})


def test_nothing_is_taken_away_that_was_never_added():
    a, b = State.of(rows(0), METRICS), State.of(rows(1), METRICS)
    with pytest.raises(cal.CalibrationInputError, match="must hold all"):
        a - b
    north = rows(0)[rows(0).column("region") == "north"]
    with pytest.raises(cal.CalibrationInputError, match="no 'south'"):
        State.of(north, METRICS, by="region") - State.of(rows(0), METRICS, by="region")


def test_metrics_that_keep_rows_have_no_state():
    with pytest.raises(cal.CalibrationInputError, match="must keep no rows"):
        State.of(rows(0), {"full": cal.FULL_ECE})


def test_a_metric_of_which_counts_tell_nothing_does_not_hide_the_others():
    near = cal.Predictions.from_probs([1, 0, 1], [0.311, 0.312, 0.3111])
    state = State.of(near, {"neighbours": cal.NeighbourError(), "ece": cal.ECE, "auroc": cal.AUROC})
    results = state.results()
    assert list(results) == ["ece", "auroc"]
    assert results["ece"].value == cal.ECE(near).value
    assert list(results.refused) == ["neighbours"]
    with pytest.raises(cal.CalibrationInputError, match=r"neighbours: must be told by the counts.*NeighbourError"):
        results["neighbours"]
    assert list(state.table().results["all"]) == ["ece", "auroc"]


def test_an_empty_state_says_so():
    state = State.of(rows(0), {"ece": cal.ECE})
    empty = state - state
    assert empty.n == 0
    with pytest.raises(cal.CalibrationInputError, match="must have rows"):
        empty.results()
    assert (empty + state).to_bytes() == state.to_bytes()


def test_other_summaries_in_the_place_of_the_right_ones_are_refused():
    state, other = State.of(rows(0), {"ece": cal.ECE}), State.of(rows(0), {"ece": cal.SCE})
    swapped = dataclasses.replace(state, groups=other.groups)
    with pytest.raises(cal.CalibrationInputError, match="must be one of ECE"):
        State.from_bytes(swapped.to_bytes())


@pytest.mark.parametrize(("n", "most"), [(10_000, 33_000), (1_000_000, 49_000)])
def test_a_state_of_cells_is_small(n, most):
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(rng.normal(1, 1.5, n)))
    state = State.of(cal.Predictions.from_probs(rng.random(n) < p, p), {"adaptive": cal.ADAPTIVE_ECE})
    assert len(state.to_bytes()) <= most


def test_a_state_of_a_billion_rows_in_all_cells_is_below_96_kilobytes():
    rng = np.random.default_rng(0)
    p = np.repeat(cells.firsts(), 20) + rng.random(20 * len(cells.lasts())) * np.repeat(
        cells.lasts() - cells.firsts(), 20
    )
    few = State.of(cal.Predictions.from_probs(rng.random(len(p)) < p, p), {"adaptive": cal.ADAPTIVE_ECE})
    assert len(few.groups["all"][0].values) == len(cells.lasts())
    many = few
    while many.n < 1e9:
        many = many + many
    assert many.n > 1e9
    assert len(many.to_bytes()) <= 96_000
    assert State.from_bytes(many.to_bytes()).to_bytes() == many.to_bytes()


# ---- the script that compares ways -----------------------------------------------------------------------------------


@pytest.fixture
def digests():
    path = Path(__file__).parents[1] / "scripts" / "one_digest.py"
    specification = importlib.util.spec_from_file_location("one_digest", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("stays", [False, True], ids=["host", "as on a device"])
def test_tensors_on_a_device_give_the_state_of_the_files(digests, tmp_path, monkeypatch, stays):
    pytest.importorskip("torch")
    pytest.importorskip("pyarrow")
    source = digests.Source(tmp_path, 4000, 4, "cpu")
    source.write()
    expected = digests.of_memory(source).to_bytes()
    monkeypatch.setattr("calibrant.door.foreign.stays", lambda tensor: stays)
    assert digests.of_device(source).to_bytes() == expected
    assert {p.dtype.name for _, p in source.parts()} == {"float32", "float64"}


def test_a_way_that_is_run_elsewhere_joins_the_page(digests):
    outcome = "a" * 64, 100, 40, {"ECE": "0.25"}, 1.0
    page, same = digests.page({"memory": outcome, "dask": "not run: its packages are not installed"}, 40, 2)
    assert same
    joined, same = digests.page({"device": outcome}, 40, 2, page, "a GPU")
    assert same
    assert [line.split()[1] for line in joined.splitlines() if "`aaaa" in line] == ["memory", "device"]
    assert "a device, by `State.of`; the states are added: a GPU | 40 | 100 |" in joined
    for other in (("b" * 64, *outcome[1:]), (*outcome[:3], {"ECE": "0.26"}, 1.0)):
        text, same = digests.page({"device": other}, 40, 2, page)
        assert not same
        assert "**They differ.**" in text
    assert "memory" not in digests.page({"device": outcome}, 80, 2, page)[0].split("|---|", 1)[1]
