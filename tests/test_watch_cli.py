"""The command that watches, its page and its repairs; and the guide, as a new user would follow it."""

import csv
import datetime
import importlib.util
import itertools
import json
import math
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.binning import cells
from calibrant.cli import commands
from calibrant.door.logs import sigmoid
from calibrant.files import SHIPPED
from calibrant.watch import Watch, WatchSettings, cell_counts, watch_state
from calibrant.watch.bets import CellCounts, middles
from calibrant.watch.refitting import log_favour, refitted, repair
from calibrant.watch.watch_page import watch_page
from calibrant.watch.watch_status import gap_sentence
from calibrant.watch.watch_store import WatchStore
from typed import typed

GUIDE = Path(__file__).parents[1] / "docs" / "watch.md"
BESIDE = Path(__file__).parents[2] / "shared" / "data"


def run(*words):
    return CliRunner().invoke(commands.group, ["watch", *map(str, words)])


def logit(p):
    return np.log(p / (1 - p))


def days(shift=1.0, change=10, count=24, rows=200, seed=0, name="day {:02}"):
    rng = np.random.default_rng(seed)
    for number in range(count):
        p = rng.uniform(0.02, 0.98, rows)
        y = rng.random(rows) < sigmoid(logit(p) + shift * (number >= change))
        yield name.format(number), watch_state(cal.Predictions.from_probs(y.astype(int), p))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with an alarm."""
    path = tmp_path_factory.mktemp("watch") / "model.watch"
    watch = Watch(path)
    for name, state in days():
        watch.append(name, state)
    return path


def written(folder, days=8):
    rng = np.random.default_rng(1)
    for place in ("predictions", "labels"):
        (folder / place).mkdir()
    for number in range(days):
        day = datetime.date(2025, 1, 1) + datetime.timedelta(days=number)
        p = rng.random(30)
        with (folder / "predictions" / f"{day}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [("id", "time", "p"), *((f"{day}/{row}", f"{day}T09:00", p[row]) for row in range(30))]
            )
        with (folder / "labels" / f"{day}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [("id", "label"), *((f"{day}/{row}", int(rng.random() < p[row])) for row in range(30))]
            )
    return ("--predictions", folder / "predictions", "--labels", folder / "labels")


def test_an_alarm_is_status_1_in_one_line(store):
    result = run(store)
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith(
        "Alarm: forecasts and outcomes do not agree, likely since day 10; raised by day 12, e-value "
    )
    assert line.endswith("(alarm at 20) after 24 windows with 4,800 rows.")


def test_a_store_that_cannot_be_written_to_can_be_looked_at(store, monkeypatch):
    expected = run(store).stdout

    def refused(_):
        raise AssertionError("a look writes nothing")

    monkeypatch.setattr(os, "access", lambda place, mode, **_: mode != os.W_OK)
    monkeypatch.setattr(WatchStore, "writing", refused)
    assert run(store).stdout == expected


def test_no_alarm_is_status_0(tmp_path):
    files = written(tmp_path)
    result = run(tmp_path / "w", *files, "--close-after", "1d")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "Closed 6 windows, 2025-01-01 to 2025-01-06: 180 rows."
    assert result.stdout.splitlines()[1].startswith("No alarm: e-value ")
    again = run(tmp_path / "w", *files)
    assert again.stdout.splitlines() == result.stdout.splitlines()[1:]


def test_json_says_all_of_it(store):
    result = run(store, "--format", "json")
    content = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (content["alarm"], content["since"], content["windows"], content["rows"]) == ("day 12", "day 10", 24, 4800)
    assert content["mean_gap"]["level"] == 0.95
    assert content["mean_gap"]["low"] < content["mean_gap"]["value"] < content["mean_gap"]["high"] < 0
    assert content["log_e_value"] > np.log(20)
    assert content["status"].startswith("Alarm: ")


def test_a_store_that_is_not_there_is_not_begun_by_a_look(tmp_path, monkeypatch, capsys):
    for words in ((), ("--format", "json"), ("--restart",)):
        ended = typed(monkeypatch, capsys, ("watch", str(tmp_path / "w"), *words))
        assert (ended.code, ended.out) == (3, "")
        assert "there is no such store; a first run gets --predictions, --labels or --states" in ended.err
    assert not (tmp_path / "w").exists()


def test_an_empty_store_has_no_evidence(tmp_path):
    Watch(tmp_path / "w")
    result = run(tmp_path / "w", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "No window is closed yet: there is no evidence."


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--level", "0.01"), 2, "cannot be changed, got 0.01; begin another store"),
        (("--independent", "nothing"), 2, "is not one of"),
        (("--predictions", "no-such-folder"), 3, "no-such-folder"),
        (("--forget", "day 99"), 3, "must be a closed window, got 'day 99'"),
        (("-o", "no-such-folder/page.html"), 4, "no-such-folder"),
    ],
)
def test_wrong_use_is_told(store, monkeypatch, capsys, words, status, said):
    ended = typed(monkeypatch, capsys, ("watch", store, *words))
    assert ended.code == status
    assert said in ended.err


def test_a_store_needs_a_rule_by_which_windows_are_closed(tmp_path):
    result = run(tmp_path / "w", *written(tmp_path))
    assert result.exit_code == 2
    assert "must say when a window is closed" in result.stderr
    assert not (tmp_path / "w").exists()


def test_a_run_that_was_refused_may_be_typed_again_with_other_settings(tmp_path):
    files = written(tmp_path)
    result = run(tmp_path / "w", *files, "--close-after", "3d", "--id", "request")
    assert "'request', got none; say which column it is with --id; there are: id, p, time" in str(result.exception)
    result = run(tmp_path / "w", *files, "--close-after", "2d", "--level", "0.01")
    assert result.exit_code == 0
    assert Watch(tmp_path / "w").joining.id == "id"
    assert run(tmp_path / "w", "--close-after", "2d").exit_code == 0
    result = run(tmp_path / "w", "--close-after", "3d")
    assert result.exit_code == 2
    assert "settings: --close-after = '2d' of" in result.stderr


def test_too_many_groups_are_refused_before_anything_is_taken(tmp_path):
    rows = [(row, f"2025-01-0{1 + row % 2}", 0.3, row // 2) for row in range(402)]
    with open(tmp_path / "p.csv", "w", newline="") as file:
        csv.writer(file).writerows([("id", "time", "p", "customer"), *rows])
    words = (tmp_path / "w", "--predictions", tmp_path / "p.csv", "--close-after", "1d")
    result = run(*words, "--by", "customer")
    assert "values of customer: must be at most 200 to be watched, got 201" in str(result.exception)
    assert run(*words).exit_code == 0
    assert Watch(tmp_path / "w").joining.by is None


def test_too_many_classes_are_refused_before_anything_is_taken(tmp_path):
    with open(tmp_path / "p.csv", "w", newline="") as file:
        header = ("id", "time", *(f"p_{number}" for number in range(201)))
        csv.writer(file).writerows([header, ("a", "2025-01-01", *[1 / 201] * 201)])
    words = (tmp_path / "w", "--predictions", tmp_path / "p.csv", "--close-after", "1d")
    assert "classes: must be at most 200 to be watched, got 201" in str(run(*words, "--classes").exception)
    assert run(*words).exit_code == 0


def test_a_share_of_labels_has_no_meaning_where_only_what_happened_is_reported(tmp_path):
    result = run(tmp_path / "w", *written(tmp_path), "--close-at", "0.9", "--unlabelled", "0")
    assert result.exit_code == 2
    assert "unlabelled: must go with --close-after alone" in result.stderr
    assert not (tmp_path / "w").exists()


def test_states_are_appended_under_the_names_of_their_files(tmp_path):
    for name, state in days(count=3):
        state.save(tmp_path / f"{name}.state")
    result = run(tmp_path / "w", "--states", tmp_path / "*.state")
    assert result.exit_code == 0, result.output
    assert [line.window for line in Watch(tmp_path / "w").log()] == ["day 00", "day 01", "day 02"]


def test_the_page_has_no_network_and_no_markup_of_names(tmp_path):
    watch = Watch(tmp_path / "w")
    for name, state in days(count=12, change=4, shift=2.0, name="<script>alert({})</script>"):
        watch.append(name, state)
    result = run(tmp_path / "w", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert result.exit_code == 1
    assert "<script>alert" not in page
    assert "default-src &#39;none&#39;" in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    for heading in ("Evidence", "Gap of each window", "Which forecasts moved", "What is not guaranteed", "Methods"):
        assert f">{heading}</h2>" in page
    assert page.count("<svg") >= 3  # the patterns and two pictures
    assert "Alarm: forecasts and outcomes do not agree" in page


def test_the_page_names_groups_and_what_breaks_the_promise(tmp_path):
    rng, watch = np.random.default_rng(0), Watch(tmp_path / "w")
    for number in range(25):
        p, region = rng.uniform(0.05, 0.95, 400), rng.integers(0, 2, 400)
        effect = 0.8 * rng.choice([-1, 1])
        y = rng.random(400) < sigmoid(logit(p) + effect + 2.0 * (region == 1) * (number > 8))
        watch.append(str(number), watch_state(cal.Predictions.from_probs(y.astype(int), p, region=region), by="region"))
    page = watch_page(watch.look(), "model")
    remarks = page.verdict.supporting
    assert any("Windows scatter" in sentence and "--independent windows" in sentence for sentence in remarks)
    assert any(section.identity == "group-values" for section in page.sections)
    assert "--repair map.json" in remarks[-1]
    assert page.verdict.tone == "poor"


def test_a_restart_and_a_forgotten_window_are_told(tmp_path):
    watch = Watch(tmp_path / "w")
    for name, state in days(change=2, count=8):
        watch.append(name, state)
    assert run(tmp_path / "w", "--forget", "day 03").exit_code == 1
    result = run(tmp_path / "w", "--restart")
    assert (result.exit_code, result.stdout) == (0, "No window is closed yet: there is no evidence.\n")


def test_a_repair_is_written_once_later_windows_favour_it(store, tmp_path):
    result = run(store, "--repair", tmp_path / "map.json")
    assert result.exit_code == 1
    assert "Wrote " in result.stdout.splitlines()[0]
    text = (tmp_path / "map.json").read_text()
    fitted = getattr(cal, json.loads(text)["method"]).from_json(text)
    assert float(fitted.predict_proba([0.5])[0]) == pytest.approx(sigmoid(np.array(1.0)), abs=0.1)


def test_a_repair_goes_to_standard_output_and_all_else_to_standard_error(store, tmp_path):
    run(store, "--repair", tmp_path / "map.json")
    result = run(store, "--repair", "-")
    assert result.exit_code == 1
    assert result.stdout == (tmp_path / "map.json").read_text()
    assert result.stderr.startswith("Wrote -: ")
    both = run(store, "--repair", "-", "-o", "-")
    assert (both.exit_code, both.stdout) == (2, "")
    assert "two outputs would go to -" in both.stderr


def test_where_a_repair_goes_is_checked_before_any_work(tmp_path):
    result = run(tmp_path / "none.watch", "--repair", tmp_path / "nowhere" / "map.json")
    assert isinstance(result.exception, FileNotFoundError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["map.zzz", "map"])
def test_a_repair_has_a_known_ending_before_any_work(tmp_path, name):
    result = run(tmp_path / "none.watch", "--repair", tmp_path / name)
    assert result.exit_code == 2
    assert "must end in .json or .onnx" in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_mean_gap_and_its_interval_point_the_same_way(store, tmp_path):
    look = Watch(store).look()
    low, high = (json.loads(run(store, "--format", "json").stdout)["mean_gap"][end] for end in ("low", "high"))
    ends = f"{-100 * low:.2f} points below to {-100 * high:.2f} points below"
    assert f"points below outcomes on average (95% confidence sequence: {ends})." in gap_sentence(look)


def test_days_that_move_together_have_no_interval_of_the_mean_gap(tmp_path):
    rng = np.random.default_rng(0)
    watch = Watch(tmp_path / "w")
    for number in range(40):
        p = rng.uniform(0.1, 0.9, 400)
        y = rng.random(400) < sigmoid(logit(p) + (0.5 if number % 2 else -0.5))
        watch.append(f"{number:02}", watch_state(cal.Predictions.from_probs(y.astype(int), p)))
    assert watch.look().moves_together
    assert gap_sentence(watch.look()) is None
    assert json.loads(run(tmp_path / "w", "--format", "json").stdout)["mean_gap"] is None


def test_windows_taken_as_independent_have_an_interval_of_their_mean_gap(tmp_path):
    rng, gaps = np.random.default_rng(0), []
    watch = Watch(tmp_path / "w", WatchSettings(independent="windows"))
    for number in range(40):
        p = rng.uniform(0.1, 0.9, 100 + 10 * number)
        y = rng.random(len(p)) < sigmoid(logit(p) + (0.5 if number % 2 else -0.5))
        gaps.append(p.mean() - y.mean())
        watch.append(f"{number:02}", watch_state(cal.Predictions.from_probs(y.astype(int), p)))
    gap = json.loads(run(tmp_path / "w", "--format", "json").stdout)["mean_gap"]
    assert gap["value"] == pytest.approx(np.mean(gaps))
    assert gap["low"] < gap["value"] < gap["high"]
    assert "on average over windows, each of which counts alike (95% confidence" in gap_sentence(watch.look())


def test_a_repair_waits_for_windows_after_the_alarm(tmp_path):
    watch = Watch(tmp_path / "w")
    states = days(change=2)
    while watch.look().alarm is None:
        watch.append(*next(states))
    result = run(tmp_path / "w", "--repair", tmp_path / "map.json")
    assert result.stdout.splitlines()[0].startswith("No map yet: ")
    assert not (tmp_path / "map.json").exists()


def test_a_repair_of_calibrated_forecasts_is_rarely_favoured():
    """40 pairs of calibrated windows, seed 3; at level 5% the chance of more than 7 is below 1 in 1,000."""
    states = [state for _, state in days(shift=0.0, count=80, seed=3)]
    favoured = sum(repair(a, b, 0.05).is_favoured for a, b in zip(states[::2], states[1::2], strict=True))
    assert favoured <= 7


def test_maps_from_cells_are_those_of_rows_at_their_means():
    rng = np.random.default_rng(0)
    p = np.array([0.1, 0.3, 0.55, 0.9])
    rows = np.repeat(p, 50)
    y = rng.random(200) < sigmoid(logit(rows) + 0.5)
    hits = y.reshape(4, 50).sum(1).astype(float)
    maps = refitted(CellCounts(cells.numbers(p), np.full(4, 50.0), hits, 50 * p))
    for name, method in (("platt", cal.PlattScaling), ("beta", cal.BetaCalibration), ("prior_shift", cal.PriorShift)):
        direct = method("probabilities").fit(rows, y.astype(int)).predict_proba(p)
        assert maps[name].predict_proba(p) == pytest.approx(direct, abs=1e-8)  # both end a search within 1e-9


def test_the_favour_of_a_map_is_the_likelihood_ratio_of_rows_at_atoms():
    p = np.array([0.25, 0.5])  # cells of their own
    counts = CellCounts(cells.numbers(p), np.array([8.0, 6.0]), np.array([5.0, 4.0]), np.array([2.0, 3.0]))
    method = refitted(counts)["prior_shift"]
    g = method.predict_proba(p)
    ratio = (
        5 * np.log(g[0] / 0.25) + 3 * np.log((1 - g[0]) / 0.75) + 4 * np.log(g[1] / 0.5) + 2 * np.log((1 - g[1]) / 0.5)
    )
    assert log_favour(method, counts) == pytest.approx(ratio)


@pytest.mark.parametrize("name", ["platt", "beta", "isotonic", "prior_shift"])
def test_the_favour_of_a_map_is_at_most_that_of_rows_and_fair(name):
    """A map is a shift in each cell: its e-value from cells is at most that from rows, whose mean is 1 exactly."""
    rng = np.random.default_rng(5)
    train = rng.random(500)
    fitted_to = cell_counts(watch_state(cal.Predictions.from_probs((rng.random(500) < train**2).astype(int), train)))
    method = refitted(fitted_to["all", ""])[name]
    p = sigmoid(logit(0.4) + 0.01 * rng.standard_normal(9))
    expected = 0.0
    for y in itertools.product([0, 1], repeat=9):
        counts = cell_counts(watch_state(cal.Predictions.from_probs(y, p)))["all", ""]
        assert len(counts.cell) < 9
        middle = middles()[cells.numbers(p)]
        shift = logit(method.predict_proba(middle)) - logit(middle)
        rows = (np.array(y) * shift - np.log1p(p * np.expm1(shift))).sum()
        assert log_favour(method, counts) <= rows + 1e-12
        expected += math.prod(q if happened else 1 - q for q, happened in zip(p, y, strict=True)) * math.exp(rows)
    assert expected == pytest.approx(1)


def test_forecasts_of_0_and_1_that_are_right_favour_no_map():
    """A falling map, which takes 1 for 0 and 0 for 1: only wrong outcomes could pay for it."""
    p, happened = np.repeat([0.2, 0.8], 50), np.tile(np.repeat([1, 0], [40, 10]), 2)
    happened[50:] = 1 - happened[50:]
    method = cal.PlattScaling("probabilities").fit(p, happened)
    right = CellCounts(cells.numbers(np.array([0.0, 1.0])), np.full(2, 50.0), np.array([0.0, 50]), np.array([0.0, 50]))
    assert method.predict_proba([0.0, 1.0]) == pytest.approx([1, 0], abs=1e-9)
    assert log_favour(method, right) == 0.0


def test_a_map_is_judged_fairly_also_if_forecasts_follow_earlier_outcomes():
    """After four of eight outcomes, a forecast comes that moves the mean of the cell to where the map is higher."""
    cell = int(cells.numbers(np.array([0.4512]))[0])
    low, high = cells.firsts()[cell], cells.lasts()[cell]
    means = np.array([cells.lasts()[cell - 1], low + 0.2 * (high - low)])
    count, hits = np.array([100.0, 100.0]), np.array([30.0, 60.0])
    method = refitted(CellCounts(np.array([cell - 1, cell]), count, hits, 100 * means))["isotonic"]
    expected = 0.0
    for y in itertools.product([0, 1], repeat=9):
        p = np.array([low] * 8 + [high])
        chance = math.prod(q if happened else 1 - q for q, happened in zip(p, y, strict=True))
        rows = 9 if sum(y[:8]) >= 4 else 8
        totals = (np.array([each]) for each in (float(rows), float(sum(y[:rows])), p[:rows].sum()))
        expected += chance * math.exp(log_favour(method, CellCounts(np.array([cell]), *totals)))
    assert expected <= 1 + 1e-12


def test_maps_are_written_as_onnx(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnx.reference")
    p = np.array([0.1, 0.3, 0.6, 0.9])
    counts = CellCounts(cells.numbers(p), np.full(4, 100.0), np.array([20.0, 40.0, 70.0, 95.0]), 100 * p)
    from calibrant.watch.refitting import Repair

    for name, method in refitted(counts).items():
        path = tmp_path / f"{name}.onnx"
        if name == "isotonic":
            with pytest.raises(cal.CalibrationInputError, match=r"write \.json"):
                Repair(name, method, 9.0, 4.0).save(path)
            continue
        Repair(name, method, 9.0, 4.0).save(path)
        scores = p.astype(np.float32)
        (mapped,) = runtime.ReferenceEvaluator(str(path)).run(None, {"scores": scores})
        assert mapped == pytest.approx(method.predict_proba(scores.astype(float)), abs=1e-6)  # float32


def test_the_guide_runs(tmp_path, monkeypatch):
    """Its Python makes two folders; its commands are typed as they stand, and print what stands below them."""
    text = GUIDE.read_text("utf-8")
    source = re.search(r"```python\n(>>> import csv.*?)\n```", text, re.DOTALL)[1]
    program = "\n".join(line[4:] for line in source.splitlines()).replace("tempfile.TemporaryDirectory()", "Here()")
    exec(program, {"Here": type("Here", (), {"name": str(tmp_path)})})
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^    calibrant (watch .*)\n\n((?:    .*\n)+)", text, re.MULTILINE)
    assert len(blocks) == 2
    for command, printed in blocks:
        result = run(*shlex.split(command)[1:])
        assert result.exit_code == 1, result.output
        expected = [line.strip() for line in printed.splitlines()]
        assert result.stdout.splitlines()[: len(expected)] == expected
    assert Path("watch.html").exists()


def test_a_look_at_a_year_reads_no_state(tmp_path):
    """365 windows in the log alone. How long it takes is measured by scripts/watch_study.py."""
    from calibrant.watch.closed_windows import ClosedWindow, Memories
    from calibrant.watch.watch_store import LogLine

    watch, memories = Watch(tmp_path / "w"), Memories()
    (_, state), *_ = days(count=1, rows=5000)
    with watch.store.writing() as connection:
        for number in range(365):
            window = ClosedWindow.of(str(number), state, memories, WatchSettings())
            memories = memories.after(window) if number < 5 else memories
            watch.store.write(connection, LogLine("close", str(number), window.to_dict()))
    assert len(Watch(tmp_path / "w").look().windows) == 365  # whose states are not there
    with pytest.raises(cal.CalibrationInputError, match="there are none"):
        watch.state("0", "1")


@pytest.mark.skipif(not BESIDE.is_dir(), reason="other people's predictions are not here")
def test_cells_pay_no_more_than_rows_on_real_predictions_cut_into_days():
    place = Path(__file__).parents[1] / "scripts" / "bracket_study.py"
    spec = importlib.util.spec_from_file_location("bracket_study", place)
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    checked = 0
    for _, y, p in itertools.islice(study.events(BESIDE), 0, None, 40):  # all of them pass, and take a minute
        checked += _compared(np.asarray(y), np.asarray(p, float), days=10)
    assert checked > 20


def test_cells_pay_no_more_than_rows_on_the_shipped_predictions():
    predictions = cal.files.read(SHIPPED / "fashion_mnist_test.npz")
    view = cal.TopLabel()(predictions)
    assert _compared((view.targets == 0).astype(int), view.outputs[:, 0, 0].astype(float), days=20) == 20


def _compared(y, p, days):
    """Bets on each day, learnt from those before, on its cells and on its rows; how many days there were."""
    from calibrant.watch.closed_windows import BETTING

    for key, betting in BETTING.items():
        memory = None
        for rows in np.array_split(np.arange(len(p)), days):
            state = watch_state(cal.Predictions.from_probs(y[rows], p[rows]))
            counts = cell_counts(state)["all", ""]
            single = CellCounts(cells.numbers(p[rows]), np.ones(len(rows)), y[rows].astype(float), p[rows])
            bets = betting.bets(memory)
            assert (betting.paid(bets, counts) <= betting.paid(bets, single) + 1e-9).all(), key
            memory = betting.remembered(memory, betting.lesson(counts))
    return days
