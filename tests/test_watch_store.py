"""The store of a watch: killed, run twice at once, fed twice or out of order, it has the same log, to the bit."""

import csv
import datetime
import errno
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

import calibrant as cal
from calibrant.door.logs import sigmoid
from calibrant.watch import Joining, Watch, WatchSettings, watch_state
from calibrant.watch.joining import OpenWindow, forecast_rows, label_rows, plain, seconds, span
from calibrant.watch.time_tree import above, completed, covering
from calibrant.watch.watch_store import WatchStore

START = datetime.date(2025, 1, 1)
RULE = Joining(close_after="3d")


def day(number):
    return START + datetime.timedelta(days=number)


def table(path):
    """The rows of a CSV file, without its header."""
    return list(csv.reader(path.read_text().splitlines()))[1:]


def write(path, header, rows):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def delivered(folder, days=12, rows=40, change=99, seed=0, delay=2):
    """A folder of predictions and one of labels, a file a day each; labels come two days later."""
    rng = np.random.default_rng(seed)
    for number in range(days):
        p = rng.random(rows)
        y = rng.random(rows) < sigmoid(np.log(p / (1 - p)) + (number >= change))
        ids = [f"{number}-{row}" for row in range(rows)]
        write(
            folder / "predictions" / f"{day(number)}.csv",
            ["id", "time", "p", "region"],
            [
                (name, f"{day(number)}T{row % 24:02}:30:00", repr(float(p[row])), "ns"[row % 2])
                for row, name in enumerate(ids)
            ],
        )
        write(folder / "labels" / f"{day(number + delay)}.csv", ["id", "label"], zip(ids, y.astype(int), strict=True))
    return sorted((folder / "predictions").iterdir()), sorted((folder / "labels").iterdir())


def fed(path, predictions, labels, rule=RULE, settings=None):
    watch = Watch(path, settings, rule)
    for file in predictions:
        watch.read_predictions(file)
    for file in labels:
        watch.read_labels(file)
    watch.close()
    return watch


def opened(path):
    """A connection to a store, by its own engine."""
    return closing(WatchStore(path).database.engine.connect(path))


def log_of(path):
    """The log as it is on the disk."""
    with opened(path) as database:
        return database.execute("select line, what, window_name, document, seal from log order by line").fetchall()


def states_of(path):
    with opened(path) as database:
        return [
            *database.execute("select place, name, state from windows order by place"),
            *database.execute("select level, place, state from nodes order by level, place"),
        ]


def test_windows_are_closed_by_their_rule_and_rows_go(tmp_path):
    watch = fed(tmp_path / "w", *delivered(tmp_path))
    names = [line.window for line in watch.log()]
    assert names == [str(day(number)) for number in range(8)]  # the last row is of day 11, 23:30
    with closing(sqlite3.connect(tmp_path / "w")) as database:
        kept = [
            name for (name,) in database.execute("select distinct window_name from predictions order by window_name")
        ]
    assert kept == [str(day(number)) for number in range(1, 12)]  # seven closed windows, and the open ones


def test_the_state_of_a_window_is_that_of_its_rows_in_one_file(tmp_path):
    predictions, labels = delivered(tmp_path)
    watch = fed(tmp_path / "w", predictions, labels)
    truth = dict(table(labels[3]))
    both = write(
        tmp_path / "both" / "a.csv", ["label", "p"], [(truth[row[0]], row[2]) for row in table(predictions[3])]
    )
    assert watch.state(str(day(3)), str(day(3))).to_bytes() == watch_state(cal.files.read(both)).to_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_files_that_come_twice_in_any_order_change_nothing(tmp_path, seed):
    predictions, labels = delivered(tmp_path)
    fed(tmp_path / "once", predictions, labels)
    twice = [*predictions, *predictions]
    random.Random(seed).shuffle(twice)
    copies = [write(tmp_path / "copies" / path.name, *_rewritten(path)) for path in predictions]
    watch = fed(tmp_path / "twice", twice, [*labels, *reversed(labels)][: len(labels) + 3])
    fed(tmp_path / "twice", copies, labels)
    assert log_of(tmp_path / "twice") == log_of(tmp_path / "once")
    assert states_of(tmp_path / "twice") == states_of(tmp_path / "once")
    assert not watch.read_predictions(predictions[0])


def _rewritten(path):
    """The same rows in another order: another file, with the same content."""
    return ["id", "time", "p", "region"], table(path)[::-1]


def test_a_row_that_is_predicted_again_differently_is_refused_with_its_file(tmp_path):
    predictions, labels = delivered(tmp_path)
    watch = fed(tmp_path / "w", predictions, labels)
    before = states_of(tmp_path / "w")
    other = write(tmp_path / "x" / "a.csv", ["id", "time", "p"], [("11-1", f"{day(11)}T01:30:00", 0.5)])
    with pytest.raises(cal.CalibrationInputError, match="must not predict a row again, differently, got id '11-1'"):
        watch.read_predictions(other)
    assert states_of(tmp_path / "w") == before


def test_a_late_label_is_a_correction_with_its_own_line(tmp_path):
    predictions, labels = delivered(tmp_path)
    rows = table(labels[7])
    write(labels[7], ["id", "label"], rows[:-5])
    watch = fed(tmp_path / "w", predictions, labels)
    before, evidence = log_of(tmp_path / "w"), watch.look()
    watch.read_labels(write(tmp_path / "late" / "a.csv", ["id", "label"], rows[-5:]))
    (line,) = watch.close()
    assert (line.what, line.window, line.document["n"]) == ("correction", str(day(7)), 40)
    assert log_of(tmp_path / "w")[:-1] == before
    after = watch.look()
    assert after.log_e.tolist() == evidence.log_e.tolist()
    assert after.corrected != evidence.corrected
    whole = fed(tmp_path / "whole", predictions, [*labels[:7], tmp_path / "late" / "a.csv", *labels[7:]])
    assert states_of(tmp_path / "w") == states_of(tmp_path / "whole")  # the sums of the tree, too
    assert after.corrected == whole.look().log_e[-1]  # the last window: no later bet could have learnt from it
    assert Watch(tmp_path / "w").close() == []


def test_a_label_that_changes_is_a_correction_and_the_same_label_is_none(tmp_path):
    predictions, labels = delivered(tmp_path)
    watch = fed(tmp_path / "w", predictions, labels)
    name, label = table(labels[6])[0]
    watch.read_labels(write(tmp_path / "x" / "same.csv", ["id", "label"], [(name, label)]))
    assert watch.close() == []
    watch.read_labels(write(tmp_path / "x" / "other.csv", ["id", "label"], [(name, 1 - int(label))]))
    assert [line.what for line in watch.close()] == ["correction"]


def test_a_late_prediction_is_a_correction_too(tmp_path):
    predictions, labels = delivered(tmp_path)
    watch = fed(tmp_path / "w", predictions, labels)
    rows = [("new", f"{day(5)}T03:00:00", 0.25)]
    watch.read_predictions(write(tmp_path / "x" / "p.csv", ["id", "time", "p"], rows))
    assert watch.close() == []  # it has no label yet
    watch.read_labels(write(tmp_path / "x" / "l.csv", ["id", "label"], [("new", 1)]))
    assert [(line.what, line.document["n"]) for line in watch.close()] == [("correction", 41)]
    other = [("newer", f"{day(6)}T03:00:00", 0.25)]
    watch.read_labels(write(tmp_path / "x" / "l2.csv", ["id", "label"], [("newer", 0)]))
    watch.read_predictions(write(tmp_path / "x" / "p2.csv", ["id", "time", "p"], other))
    assert [(line.window, line.document["n"]) for line in watch.close()] == [(str(day(6)), 41)]


def test_what_comes_after_rows_are_gone_is_ignored(tmp_path):
    predictions, labels = delivered(tmp_path)
    watch = fed(tmp_path / "w", predictions, labels, Joining(close_after="3d", keep=2))
    before = log_of(tmp_path / "w")
    watch.read_predictions(write(tmp_path / "x" / "p.csv", ["id", "time", "p"], [("new", f"{day(1)}T01:00:00", 0.5)]))
    watch.read_labels(write(tmp_path / "x" / "l.csv", ["id", "label"], [("new", 1), ("1-3", 1)]))
    assert watch.close() == []
    assert log_of(tmp_path / "w") == before


def test_nothing_of_a_deleted_row_is_left_in_the_file(tmp_path):
    predictions, labels = delivered(tmp_path, days=6)
    watch = Watch(tmp_path / "w", None, Joining(close_after="1d", keep=0))
    rows = [(f"a secret name {row}", f"{day(0)}T03:00:00", 0.25) for row in range(400)]
    watch.read_predictions(write(tmp_path / "x" / "p.csv", ["id", "time", "p"], rows))
    watch.read_labels(write(tmp_path / "x" / "l.csv", ["id", "label"], [(row[0], 1) for row in rows]))
    assert b"a secret name 7" in (tmp_path / "w").read_bytes()
    fed(tmp_path / "w", predictions, labels, None)
    assert watch.log()[0].document["n"] == 440
    assert b"a secret name" not in (tmp_path / "w").read_bytes()


def test_labels_may_come_before_their_predictions(tmp_path):
    predictions, labels = delivered(tmp_path)
    fed(tmp_path / "a", predictions, labels)
    watch = Watch(tmp_path / "b", None, RULE)
    for file in labels:
        watch.read_labels(file)
    assert watch.close() == []
    fed(tmp_path / "b", predictions, ())
    assert log_of(tmp_path / "a") == log_of(tmp_path / "b")


def test_the_clock_says_nothing(tmp_path, monkeypatch):
    predictions, labels = delivered(tmp_path)
    fed(tmp_path / "a", predictions, labels)
    back = 1_000_000_000.0
    monkeypatch.setattr(time, "time", lambda: back)
    for file in predictions:
        os.utime(file, (back, back))
    fed(tmp_path / "b", predictions, labels)
    assert log_of(tmp_path / "a") == log_of(tmp_path / "b")


def test_times_of_the_future_are_times_as_others(tmp_path):
    file = write(tmp_path / "p" / "a.csv", ["id", "time", "p"], [("a", "2998-01-01", 0.5), ("b", "2999-01-01", 0.5)])
    labels = write(tmp_path / "l" / "a.csv", ["id", "label"], [("a", 1)])
    assert [line.window for line in fed(tmp_path / "w", [file], [labels]).log()] == ["2998-01-01"]


@pytest.mark.parametrize("moment", ["9999-12-31", "9999-12-31T23:00:00-05:00", "0001-01-01T00:00:00+05:00"])
def test_times_whose_window_has_no_end_are_refused(tmp_path, moment):
    file = write(tmp_path / "p" / "a.csv", ["id", "time", "p"], [("a", moment, 0.5)])
    with pytest.raises(cal.CalibrationInputError, match="must have times such as 2026-01-05"):
        fed(tmp_path / "w", [file], [])


@pytest.mark.parametrize(
    ("rule", "got"),
    [
        ({"close_after": "3d", "close_at": 0.9}, "close_at = 0.9"),
        ({"close_at": 0.9}, "close_at = 0.9"),
        ({"window": "release", "close_at": 0.9}, "close_at = 0.9"),
        ({"window": "release", "close_after": "3d"}, "window = 'release'"),
    ],
)
def test_windows_are_not_closed_by_their_outcomes(rule, got):
    with pytest.raises(cal.CalibrationInputError, match=f"unlabelled: must go with close_after alone: .*, got {got}"):
        Joining(unlabelled=0, **rule)


CHILD = """
import os, signal, sys
from calibrant.experiments.running.sealed_database import SealedDatabase
from calibrant.watch import Joining, Watch
path, folder, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
put = SealedDatabase.put
def counted(*arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    put(*arguments)
SealedDatabase.put = counted
watch = Watch(path, None, Joining(close_after="3d"))
for kind, read in (("predictions", watch.read_predictions), ("labels", watch.read_labels)):
    for name in sorted(os.listdir(os.path.join(folder, kind))):
        read(os.path.join(folder, kind, name))
watch.close()
"""


def child(path, folder, writes=0):
    """Another process that reads all files; it is killed at the n-th thing that it writes, if n is not 0."""
    return subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(folder), str(writes)])


ENDINGS = pytest.mark.parametrize("ending", ["watch", "duckdb"])


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@ENDINGS
def test_killed_and_started_again_it_has_the_same_log(tmp_path, ending):
    """Killed while it makes the store, reads files, and closes windows."""
    require(ending)
    killed, whole = tmp_path / f"killed.{ending}", tmp_path / "whole"
    fed(whole, *delivered(tmp_path, days=9))
    for writes in (2, 17, 25):
        with child(killed, tmp_path, writes) as process:
            assert process.wait() == -signal.SIGKILL
    with child(killed, tmp_path) as process:
        assert process.wait() == 0
    assert log_of(killed) == log_of(whole)
    assert states_of(killed) == states_of(whole)


@pytest.mark.parametrize("step", range(0, 35, 7))
def test_a_process_that_ends_between_two_statements_leaves_all_or_nothing(tmp_path, monkeypatch, step):
    """The n-th statement that writes fails, as if the process ended there; then everything is done again."""
    predictions, labels = delivered(tmp_path, days=6, rows=10)
    fed(tmp_path / "whole", predictions, labels)
    from calibrant.experiments.running.sealed_database import SealedDatabase

    left, put = [step], SealedDatabase.put

    def ending(self, *arguments):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        put(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(SealedDatabase, "put", ending)
        with pytest.raises(KeyboardInterrupt):
            fed(tmp_path / "ended", predictions, labels)
    fed(tmp_path / "ended", predictions, labels)
    assert log_of(tmp_path / "ended") == log_of(tmp_path / "whole")
    assert states_of(tmp_path / "ended") == states_of(tmp_path / "whole")


@ENDINGS
def test_two_runs_at_once_make_the_log_of_one(tmp_path, ending):
    require(ending)
    both = tmp_path / f"both.{ending}"
    fed(tmp_path / "alone", *delivered(tmp_path, days=6))
    runs = [child(both, tmp_path) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert log_of(both) == log_of(tmp_path / "alone")
    assert states_of(both) == states_of(tmp_path / "alone")


def require(ending):
    if ending == "duckdb":
        pytest.importorskip("duckdb")


def test_a_store_of_duckdb_has_the_same_bits(tmp_path):
    """Files in any order and twice, labels that change late, one of them twice in a file, and a forgotten window."""
    pytest.importorskip("duckdb")
    predictions, labels = delivered(tmp_path, days=6, rows=20)
    changed = [(name, 1 - int(label)) for name, label in table(labels[1])]
    late = write(tmp_path / "x" / "late.csv", ["id", "label"], [(changed[0][0], 1 - changed[0][1]), *changed])
    stores = [tmp_path / "a.watch", tmp_path / "b.duckdb"]
    for path, order in zip(stores, (1, -1), strict=True):
        fed(path, predictions[::order], labels[::order])
        watch = fed(path, predictions, [*labels, late], None)
        watch.forget(str(day(0)))
    assert log_of(stores[0]) == log_of(stores[1])
    assert states_of(stores[0]) == states_of(stores[1])
    looks = [Watch(path).look() for path in stores]
    assert looks[0].log_e.tolist() == looks[1].log_e.tolist()
    assert looks[0].corrected == looks[1].corrected != looks[0].log_e[-1]


@ENDINGS
def test_the_end_of_a_window_is_kept_to_the_second(tmp_path, ending):
    require(ending)
    watch = Watch(tmp_path / f"w.{ending}", None, Joining(every="hour", close_after="1h"))
    rows = [("a", "2025-01-01T04:10:00", 0.5), ("b", "2025-01-01T06:00:00", 0.5)]
    watch.read_predictions(write(tmp_path / "x" / "p.csv", ["id", "time", "p"], rows))
    watch.read_labels(write(tmp_path / "x" / "l.csv", ["id", "label"], [("a", 1), ("b", 0)]))
    assert [line.window for line in watch.close()] == ["2025-01-01T04"]


def test_releases_in_duckdb_are_closed_in_their_order(tmp_path):
    pytest.importorskip("duckdb")
    watch = Watch(tmp_path / "w.duckdb", None, Joining(window="release", close_at=1.0, keep=0))
    for release in ("v9", "v10", "v2"):
        rows = [(f"{release}-{row}", release, 0.5) for row in range(4)]
        watch.read_predictions(write(tmp_path / "x" / f"{release}.csv", ["id", "release", "p"], rows))
        marks = [(name, word) for (name, *_), word in zip(rows, ("true", "false") * 2, strict=True)]
        watch.read_labels(write(tmp_path / "x" / f"{release}-l.csv", ["id", "label"], marks))
    assert [(line.window, line.document["hits"]) for line in watch.close()] == [("v9", 2.0), ("v10", 2.0)]


def test_a_store_of_duckdb_needs_duckdb(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(
        cal.CalibrationInputError, match=r"needs duckdb, got none installed; pip install 'calibrant\[duck"
    ):
        Watch(tmp_path / "w.duckdb")
    assert not (tmp_path / "w.duckdb").exists()


def test_another_file_is_no_store_of_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "w.duckdb").write_text("hello, this is no database at all; " * 100)
    with pytest.raises(cal.CalibrationInputError, match="not a valid DuckDB database file"):
        Watch(tmp_path / "w.duckdb")
    with closing(duckdb.connect(str(tmp_path / "other.duckdb"))) as database:
        database.execute("create table trials (a integer)")
    with pytest.raises(cal.CalibrationInputError, match="must be the store of a watch, got another database"):
        Watch(tmp_path / "other.duckdb")


def test_a_damaged_log_in_duckdb_is_refused(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "w.duckdb"
    fed(path, *delivered(tmp_path, days=5))
    with opened(path) as database:
        database.execute("update log set document = replace(document, '\"n\": 40', '\"n\": 41') where line = 0")
    with pytest.raises(cal.CalibrationInputError, match="damaged row of log; put back a copy that is whole"):
        Watch(path).look()


def test_a_store_of_duckdb_that_another_process_has_is_waited_for(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    path = tmp_path / "w.duckdb"
    Watch(path)
    holding = f"import duckdb, time; c = duckdb.connect({str(path)!r}); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        monkeypatch.setattr("calibrant.watch.duckdb_engine.PATIENCE", 0.2)
        with pytest.raises(OSError, match="lock") as refusal:
            Watch(path)
        assert refusal.value.errno == errno.EBUSY
        process.kill()
    assert Watch(path).look().alarm is None


def test_a_damaged_log_is_refused(tmp_path):
    fed(tmp_path / "w", *delivered(tmp_path))
    with closing(sqlite3.connect(tmp_path / "w")) as database:
        database.execute("update log set document = replace(document, '\"n\": 40', '\"n\": 41') where line = 3")
        database.commit()
    with pytest.raises(cal.CalibrationInputError, match="damaged row of log; put back a copy that is whole"):
        Watch(tmp_path / "w").look()


def states(count, seed=0, rows=30):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p = rng.random(rows)
        yield watch_state(cal.Predictions.from_probs((rng.random(rows) < p).astype(int), p))


def test_states_may_come_from_elsewhere_and_twice(tmp_path):
    watch, made_elsewhere = Watch(tmp_path / "w"), list(states(5))
    for number, state in enumerate(made_elsewhere):
        watch.append(f"day {number}", state)
    before = log_of(tmp_path / "w")
    for number, state in reversed(list(enumerate(made_elsewhere))):
        Watch(tmp_path / "w").append(f"day {number}", state)
    assert log_of(tmp_path / "w") == before
    watch.append("day 2", next(states(1, seed=9)))
    assert [line.what for line in watch.log()] == ["close"] * 5 + ["correction"]


def test_a_state_without_rows_is_refused(tmp_path):
    watch, predictions = Watch(tmp_path / "w"), cal.Predictions.from_probs([1, 0], [0.9, 0.2])
    with pytest.raises(cal.CalibrationInputError, match="state: must have a row at least, got none"):
        watch.append("monday", watch_state(predictions[np.zeros(2, bool)]))
    assert watch.log() == []


def test_a_state_of_other_metrics_is_refused(tmp_path):
    watch = Watch(tmp_path / "w")
    watch.append("a", next(states(1)))
    other = cal.scale.State.of(cal.Predictions.from_probs([1, 0], [0.9, 0.2]), {"adaptive_ece": cal.ADAPTIVE_ECE})
    with pytest.raises(cal.CalibrationInputError, match="must be of the same metrics"):
        watch.append("b", other)
    assert len(watch.log()) == 1


def test_any_stretch_is_the_sum_of_its_windows(tmp_path):
    watch, each = Watch(tmp_path / "w"), list(states(9))
    for number, state in enumerate(each):
        watch.append(f"{number:02}", state)
    for start, stop in itertools.combinations(range(10), 2):
        merged = watch.state(f"{start:02}", f"{stop - 1:02}")
        assert merged.to_bytes() == sum(each[start:stop]).to_bytes()


def test_a_window_that_is_forgotten_is_in_no_sum(tmp_path):
    watch, each = Watch(tmp_path / "w"), list(states(9))
    for number, state in enumerate(each):
        watch.append(str(number), state)
    evidence = watch.look()
    watch.forget("3")
    watch.forget("3")
    assert watch.state().to_bytes() == sum([*each[:3], *each[4:]]).to_bytes()
    assert watch.look().log_e.tolist() == evidence.log_e.tolist()
    watch.append("3", each[3])  # it stays forgotten
    assert [line.what for line in watch.log()] == ["close"] * 9 + ["forget"]
    with pytest.raises(cal.CalibrationInputError, match="at least one that was not forgotten"):
        watch.state("3", "3")


def test_nodes_cover_stretches_with_few():
    for start, stop in itertools.combinations(range(70), 2):
        nodes = covering(start, stop)
        windows = [place * 2**level + step for level, place in nodes for step in range(2**level)]
        assert windows == list(range(start, stop))
        assert len(nodes) <= 2 * (stop - start).bit_length()
    for window in range(40):
        assert set(completed(window)) == set(above(window, window + 1)) - {
            node for node in above(window, window + 1) if (node[1] + 1) << node[0] != window + 1
        }


def test_a_restart_begins_anew(tmp_path):
    watch = Watch(tmp_path / "w")
    for number, state in enumerate(states(8)):
        watch.append(f"{number:02}", state)
    watch.restart()
    assert len(watch.look().windows) == 0
    for number, state in enumerate(states(8)):
        watch.append(f"again {number:02}", state)
    other = Watch(tmp_path / "other")
    for number, state in enumerate(states(8)):
        other.append(f"{number:02}", state)
    assert watch.look().log_e.tolist() == other.look().log_e.tolist()
    assert Watch(tmp_path / "w").look().log_e.tolist() == other.look().log_e.tolist()


def test_settings_of_a_store_stay(tmp_path):
    Watch(tmp_path / "w", WatchSettings(level=0.2), RULE)
    watch = Watch(tmp_path / "w", WatchSettings(level=0.01))  # nothing was taken yet
    watch.append("monday", next(states(1)))
    assert Watch(tmp_path / "w").settings.level == 0.01
    assert Watch(tmp_path / "w").joining == RULE
    with pytest.raises(cal.CalibrationInputError, match=r"settings: level = 0\.01 of .*w cannot be changed, got 0\.05"):
        Watch(tmp_path / "w", WatchSettings())


def test_another_file_is_no_store(tmp_path):
    (tmp_path / "w").write_text("hello, this is no database at all; " * 100)
    with pytest.raises(cal.CalibrationInputError, match="file is not a database"):
        Watch(tmp_path / "w")
    with closing(sqlite3.connect(tmp_path / "other")) as database:
        database.execute("create table trials (a)")
        database.commit()
    with pytest.raises(cal.CalibrationInputError, match="must be the store of a watch, got another database"):
        Watch(tmp_path / "other")


@pytest.mark.parametrize(
    ("rule", "latest", "labelled", "due"),
    [
        (Joining(close_after="1d"), 86399.0, 10, False),
        (Joining(close_after="1d"), 86400.0, 1, True),
        (Joining(close_after="1d"), 86400.0, 0, False),
        (Joining(close_after="1d", unlabelled=0), 86400.0, 0, True),
        (Joining(close_at=0.9), 0.0, 9, True),
        (Joining(close_at=0.9), 0.0, 8, False),
        (Joining(close_at=0.9), -1.0, 10, False),
        (Joining(close_after="1d", close_at=0.9), 86400.0, 5, True),
    ],
)
def test_a_window_is_due_by_its_rule(rule, latest, labelled, due):
    assert rule.is_due(OpenWindow("a", 0.0, 10, labelled), latest, newest=False) is due


def test_releases_are_windows_closed_when_the_next_one_has_begun(tmp_path):
    rule = Joining(window="release", close_at=1.0)
    rows = [(f"{release}-{row}", release, 0.1 + 0.08 * row) for release in ("v10", "v9", "v11") for row in range(10)]
    file = write(tmp_path / "p" / "a.csv", ["id", "release", "p"], rows)
    labels = write(
        tmp_path / "l" / "a.csv", ["id", "label"], [(name, index % 2) for index, (name, _, _) in enumerate(rows)]
    )
    watch = fed(tmp_path / "w", [file], [labels], rule)
    assert [line.window for line in watch.log()] == ["v10", "v9"]


def test_no_label_may_mean_that_nothing_happened(tmp_path):
    rows = [(str(row), f"{day(row // 10)}T00:00:00", 0.1) for row in range(30)]
    file = write(tmp_path / "p" / "a.csv", ["id", "time", "p"], rows)
    labels = write(tmp_path / "l" / "a.csv", ["id", "label"], [("3", 1)])
    watch = fed(tmp_path / "w", [file], [labels], Joining(close_after="24h", unlabelled=0))
    assert [(line.window, line.document["n"], line.document["hits"]) for line in watch.log()] == [
        (str(day(0)), 10, 1.0)
    ]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "npz"])
def test_ids_are_never_taken_as_numbers(tmp_path, ending):
    """Two ids that one float64 would be; in every format they stay two rows."""
    ids, p = ["9007199254740993", "9007199254740992"], [0.2, 0.7]
    columns = {
        "id": [int(name) for name in ids] if ending in ("jsonl", "parquet", "npz") else ids,
        "time": ["2025-01-01"] * 2,
        "p": p,
    }
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        write(path, list(columns), zip(*columns.values(), strict=True))
    elif ending == "jsonl":
        path.write_text(
            "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
        )
    elif ending == "npz":
        np.savez(path, **{name: np.array(column) for name, column in columns.items()})
    else:
        pyarrow = pytest.importorskip("pyarrow")
        __import__("pyarrow.parquet").parquet.write_table(pyarrow.table(columns), path)
    assert forecast_rows(path, RULE).ids == ids


def test_classes_are_joined_by_name(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 60)
    header, rows = ["id", "time", "p_cat", "p_dog", "p_eel"], []
    for row, forecast in enumerate(p):
        rows.append((f"{row:02}", f"{day(row // 30)}T00:00:00", *map(repr, map(float, forecast))))
    file = write(tmp_path / "p" / "a.csv", header, rows)
    names = [["cat", "dog", "eel"][rng.integers(3)] for _ in rows]
    labels = write(
        tmp_path / "l" / "a.csv", ["id", "label"], [(row[0], name) for row, name in zip(rows, names, strict=True)]
    )
    watch = fed(tmp_path / "w", [file], [labels], Joining(close_at=1.0, classes=True))
    expected = watch_state(cal.Predictions.from_probs(names[:30], p[:30], classes=["cat", "dog", "eel"]), classes=True)
    assert watch.state().to_bytes() == expected.to_bytes()
    assert set(watch.look().questions) == {("all", ""), ("class", "cat"), ("class", "dog"), ("class", "eel")}


def test_forecasts_may_go_through_a_map_first(tmp_path):
    """Odds that were twice as high in the reference as forecast, and are so still: no alarm, but without the map."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1, 4000)
    fitted = cal.PriorShift("probabilities").fit(sigmoid(z), (rng.random(4000) < sigmoid(z + 0.7)).astype(int))
    rows, truth = [], []
    for number, x in itertools.product(range(12), rng.normal(0, 1, 150)):
        rows.append((str(len(rows)), f"{day(number)}T03:00:00", repr(float(sigmoid(np.array(x))))))
        truth.append((rows[-1][0], int(rng.random() < sigmoid(np.array(x + 0.7)))))
    file = write(tmp_path / "p" / "a.csv", ["id", "time", "p"], rows)
    labels = write(tmp_path / "l" / "a.csv", ["id", "label"], truth)
    plain_watch = fed(tmp_path / "plain", [file], [labels], Joining(close_after="1h"))
    mapped = fed(tmp_path / "mapped", [file], [labels], Joining(close_after="1h", map=fitted.to_json()))
    assert plain_watch.look().alarm is not None
    assert mapped.look().alarm is None
    p = np.array([float(row[2]) for row in rows[:150]])
    direct = fitted.recalibrate(cal.Predictions.from_probs([label for _, label in truth[:150]], p))
    assert mapped.state(str(day(0)), str(day(0))).to_bytes() == watch_state(direct).to_bytes()
    with pytest.raises(cal.CalibrationInputError):
        Joining(close_after="1h", map="no map")


def test_missing_labels_and_words_are_understood(tmp_path):
    file = write(tmp_path / "l" / "a.csv", ["id", "label"], [("a", "True"), ("b", "False"), ("c", "true")])
    assert label_rows(file, RULE) == (["a", "b", "c"], [1, 0, 1])
    file = write(tmp_path / "l" / "b.csv", ["id", "label"], [("a", "1"), ("b", ""), ("c", "0")])
    assert label_rows(file, RULE) == (["a", "c"], [1, 0])
    assert plain(np.float64(1.0)) == 1


@pytest.mark.parametrize(
    ("every", "name", "end"),
    [("hour", "2025-03-05T13", "2025-03-05T14"), ("day", "2025-03-05", "2025-03-06"),
     ("week", "2025-03-03", "2025-03-10"), ("month", "2025-03", "2025-04-01")],
)  # fmt: skip
def test_windows_are_spans_of_time(every, name, end):
    moment = datetime.datetime(2025, 3, 5, 13, 59, 59, tzinfo=datetime.UTC)
    stop = datetime.datetime.fromisoformat(end if len(end) > 10 else f"{end}T00").replace(tzinfo=datetime.UTC)
    assert span(moment, every) == (name, stop.timestamp())


def test_times_are_spelled_in_hours_days_and_weeks():
    assert [seconds(text) for text in ("1h", "2d", "1w")] == [3600, 172800, 604800]
    with pytest.raises(cal.CalibrationInputError, match="such as 3d, got 3 days"):
        seconds("3 days")
    with pytest.raises(cal.CalibrationInputError, match="must say when a window is closed"):
        Joining()
