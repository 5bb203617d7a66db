"""Damaged stores: no number changes, nothing stops for good, what is damaged is named, set aside and done again."""

import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

import calibrant as cal
from calibrant.experiments.running import runner, sealed_database
from calibrant.experiments.running.store_repair import repaired
from calibrant.experiments.running.study_store import RUNNING, WAITING, Store
from calibrant.experiments.training.trial_outcomes import write_outcome
from stored import TEXT, compact, drawn_outcome, finished_store, found
from typed import typed


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "store"
    with pytest.MonkeyPatch.context() as patch:
        finished_store(folder, patch)
    compact(folder / "study.sqlite")
    return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """A copy of the finished study, and trials that would be drawn again."""
    monkeypatch.setattr(runner, "train", drawn_outcome)
    monkeypatch.setattr(runner, "dataset", lambda *arguments: None)
    shutil.copytree(finished, tmp_path / "store")
    return tmp_path / "store"


def go_on(folder, text=None):
    """What `resume` and, where the text is given, `run` do."""
    if text is None:
        repaired(folder)
    else:
        runner.open_study(folder, text)
    study, store = runner.reopen(folder)
    runner.work(study, store, runner.Options())
    return store


def flipped(path, place):
    whole = bytearray(path.read_bytes())
    whole[place // 8] ^= 1 << place % 8
    path.write_bytes(whole)


# the database


def test_no_flipped_bit_of_the_database_changes_a_table(folder, finished):
    """Some of the bits; tests/fuzz/RESULTS.md is about all of them."""
    path, expected, refusals = folder / "study.sqlite", found(finished), 0
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, 8 * len(whole), 100).tolist():
        for beside in folder.glob("study.sqlite?*"):
            beside.unlink()
        path.write_bytes(whole)
        flipped(path, place)
        try:
            assert found(folder) == expected, place
        except cal.CalibrationInputError:
            refusals += 1
    assert refusals > 10


def test_every_damaged_database_is_set_aside_and_nothing_is_trained_again(folder, finished, monkeypatch):
    monkeypatch.setattr(runner, "train", lambda *arguments: pytest.fail("it was trained again"))
    path, expected = folder / "study.sqlite", found(finished)
    whole = path.read_bytes()
    for place in np.random.default_rng(1).integers(0, 8 * len(whole), 8).tolist():
        for beside in folder.glob("study.sqlite?*"):
            beside.unlink()
        path.write_bytes(whole)
        flipped(path, place)
        go_on(folder, TEXT)
        assert found(folder) == expected, place


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"no database", bytes(4096)])
def test_a_database_that_is_none_is_refused_and_made_anew(folder, finished, content, capsys):
    (folder / "study.sqlite").write_bytes(content)
    with pytest.raises(cal.CalibrationInputError, match="must be as it was written"):
        found(folder)
    with pytest.raises(cal.CalibrationInputError, match="calibrant experiment run FILE --store"):
        repaired(folder)
    go_on(folder, TEXT)
    assert found(folder) == found(finished)
    assert (folder / "study.sqlite.damaged-1").read_bytes() == content
    assert "3 outcomes are whole and kept" in capsys.readouterr().err


def test_a_row_that_was_changed_is_refused_and_resume_goes_on(folder, finished, capsys):
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute("update trials set state = 'failed' where place = 1")
    database.close()
    with pytest.raises(cal.CalibrationInputError, match="a damaged row of trials; calibrant experiment resume"):
        found(folder)
    go_on(folder)
    assert found(folder) == found(finished)
    assert "study.sqlite.damaged-1" in capsys.readouterr().err


def test_a_row_that_is_lost_is_missed(folder, finished):
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute("delete from trials where place = 1")
    database.close()
    with pytest.raises(cal.CalibrationInputError, match="2 rows of trials that are not those written"):
        found(folder)
    go_on(folder)
    assert found(folder) == found(finished)


@pytest.mark.parametrize("rows", ["9e999", "'many'", "-1"])
def test_a_tally_that_is_none_is_damage(folder, rows):
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute(f"update tallies set rows = {rows}")
    database.close()
    with pytest.raises(cal.CalibrationInputError, match="must be as it was written"):
        found(folder)


def test_a_column_of_another_name_is_damage(folder):
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute("alter table trials rename column owner to ovner")
    database.close()
    with pytest.raises(cal.CalibrationInputError, match="damaged columns of trials"):
        found(folder)


def test_a_measurement_that_was_changed_is_measured_again(folder, finished):
    with sqlite3.connect(folder / "study.sqlite") as database:
        changed = database.execute("update measurements set result = replace(result, '0.', '0.9')")
        assert changed.rowcount > 3
        database.execute("update maps set text = replace(text, '1', '2')")
    database.close()
    assert found(folder) == found(finished)


def test_an_error_that_is_kept_keeps_no_lock(folder, monkeypatch):
    """Python 3.13 keeps it until cycles are collected, whoever catches it."""
    monkeypatch.setattr(sealed_database, "PATIENCE", 0.2)
    with closing(sqlite3.connect(folder / "study.sqlite")) as database, database:
        database.execute("update maps set text = cast(x'ff' as text)")
    sealed = Store(folder).database
    with sealed.reading() as database, pytest.raises(sqlite3.OperationalError, match="decode") as caught:
        sealed.rows(database, "maps")
    with sealed.writing() as database:
        database.execute("delete from maps")
    assert caught.tb is not None


def test_rows_and_their_tally_are_read_at_one_moment(folder, monkeypatch):
    store = Store(folder, create=True)
    trial, other, tally = store.rows()[0].trial.id, Store(folder), store.database._tally

    def written_in_between(database, table):
        with other.database.writing() as connection:
            for record in other.database.rows(connection, "trials", id=trial):
                other.database.put(connection, "trials", {**record, "epoch": record["epoch"] + 1})
        return tally(database, table)

    monkeypatch.setattr(store.database, "_tally", written_in_between)
    assert [row.epoch for row in store.rows()] == [0, 0, 0]
    monkeypatch.undo()
    assert [row.epoch for row in store.rows()] == [1, 0, 0]


def test_a_store_of_version_0_1_is_read_as_it_is_and_sealed_when_it_is_written_to(tmp_path):
    shutil.copytree(Path(__file__).parent / "written_by_0_1_0" / "store", tmp_path / "store")
    store = Store(tmp_path / "store")
    before, text = store.rows(), store.study_text
    assert store.database.is_whole()
    assert store.retry() == 0
    assert [(row.trial, row.state, row.seconds) for row in store.rows()] == [
        (row.trial, row.state, row.seconds) for row in before
    ]
    assert store.study_text == text
    with sqlite3.connect(store.database.path) as database:
        database.execute("update trials set seconds = seconds + 1")
    database.close()
    with pytest.raises(cal.CalibrationInputError, match="a damaged row of trials"):
        store.rows()


def test_an_index_that_leads_to_another_row_is_not_followed(folder, finished):
    """Found by mutation: the entries of an index that were exchanged lead to the whole rows of other trials."""
    store = Store(folder)
    first, second, _ = (row.trial.id for row in store.rows())
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute("pragma writable_schema = on")
        (page,) = database.execute(
            "select rootpage from sqlite_master where name = 'sqlite_autoindex_maps_1'"
        ).fetchone()
    database.close()
    whole = bytearray((folder / "study.sqlite").read_bytes())
    index = whole[512 * (page - 1) : 512 * page]
    exchanged = index.replace(first.encode(), b"*" * 16).replace(second.encode(), first.encode())
    whole[512 * (page - 1) : 512 * page] = exchanged.replace(b"*" * 16, second.encode())
    (folder / "study.sqlite").write_bytes(whole)
    with store.database.reading() as database, pytest.raises(cal.CalibrationInputError, match="a damaged row of maps"):
        store.database.rows(database, "maps", trial=first, method="temperature")
    assert store.fitted(first, "temperature") is None


def test_damage_that_is_met_while_measuring_is_no_failure_of_a_method(folder, monkeypatch):
    """Found by mutation: what cannot be kept was taken for a method that cannot be fitted."""
    from calibrant.experiments.running.sealed_database import DamagedStoreError

    store = Store(folder)
    with store.database.writing() as database:
        for table in ("measurements", "maps"):
            store.database.remove(database, table, "method = ?", ("temperature",))

    def damaged(self, *arguments):
        raise DamagedStoreError(self.database.path, "a damaged page")

    monkeypatch.setattr(Store, "keep_fitted", damaged)
    with pytest.raises(DamagedStoreError):
        found(folder)


# outcomes


def test_an_outcome_copied_from_another_trial_is_not_believed(folder, finished, capsys):
    store = Store(folder)
    first, second, _ = (row.trial.id for row in store.rows())
    shutil.copyfile(store.result_path(second), store.result_path(first))
    with store.database.writing() as database:  # nothing has been measured yet
        for table in ("measurements", "maps"):
            store.database.remove(database, table, "trial = ?", (first,))
    with pytest.raises(cal.CalibrationInputError, match="got another trial's"):
        found(folder)
    go_on(folder)
    assert found(folder) == found(finished)
    assert f"the outcome of mlp, none, seed 0 ({first})" in capsys.readouterr().err
    assert [path.name for path in (folder / "damaged").iterdir()] == [f"{first}-1.npz"]


def test_no_flipped_bit_of_an_outcome_stops_a_study(folder, finished):
    store, expected = Store(folder), found(finished)
    path = store.result_path(store.rows()[0].trial.id)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, 8 * len(whole), 12).tolist():
        path.write_bytes(whole)
        flipped(path, place)
        go_on(folder)
        assert found(folder) == expected, place


def test_a_broken_array_header_is_damage(folder):
    """A bracket that is never closed: NumPy raises what no other reader does."""
    store = Store(folder)
    trial = store.rows()[0].trial
    outcome = drawn_outcome(trial)
    write_outcome(store.result_path(trial.id), outcome)
    arrays = dict(np.load(store.result_path(trial.id)))
    np.savez(store.result_path(trial.id), **arrays)
    whole = store.result_path(trial.id).read_bytes()
    store.result_path(trial.id).write_bytes(whole.replace(b"'shape': (12, 3)", b"'shape': (12, 3("))
    assert store.mend() == [trial.id]


def test_a_failure_that_was_damage_is_not_kept(folder, finished):
    store = Store(folder)
    trial = store.rows()[0].trial.id
    with store.database.writing() as database:
        store.database.remove(database, "measurements", "trial = ?", (trial,))
    store.result_path(trial).write_bytes(b"PK")
    with pytest.raises(cal.CalibrationInputError):
        found(folder)
    go_on(folder)
    assert found(folder) == found(finished)


# places that cannot be written to


@pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="needs a user to change from")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_finished_study_is_looked_at_where_nothing_can_be_written(folder, finished):
    expected = found(finished)
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute("pragma journal_mode = wal")
    database.close()
    with tempfile.TemporaryDirectory() as place:  # where another user can look, unlike in the folders of pytest
        Path(place).chmod(0o755)
        copy = shutil.copytree(folder, Path(place, "study"))
        paths = (copy, *copy.rglob("*"))
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            os._exit(0 if found(copy) == expected and not os.access(copy, os.W_OK) else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for path in paths:
            path.chmod(0o755)
    assert status == 0


def test_looking_writes_nothing_where_nothing_can_be_written(folder, finished, monkeypatch):
    from calibrant.experiments.running.sealed_database import SealedDatabase

    store = Store(folder)
    with store.database.writing() as database:
        store.database.remove(database, "measurements", "split = ?", ("test",))
    monkeypatch.setattr(SealedDatabase, "is_writable", property(lambda self: False))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert found(folder) == found(finished)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


# clocks


@pytest.mark.parametrize("lives", [True, False])
@pytest.mark.parametrize("ahead", [-1e6, 1e6])
def test_a_claim_runs_out_whatever_the_clock_of_its_owner_said(folder, monkeypatch, ahead, lives):
    owner, now = "elsewhere|1|abc", time.time()
    store = Store(folder, lease=0.3)
    with store.database.writing() as database:
        for record in store.database.rows(database, "trials"):
            store.database.put(database, "trials", {**record, "state": WAITING})
    monkeypatch.setattr(time, "time", lambda: now + ahead)
    trial = store.claim(owner)
    assert store.renew(trial.id, owner, 1, 2)
    monkeypatch.setattr(time, "time", lambda: now)
    observer = Store(folder, lease=0.3)
    assert [observer.claim("me") for _ in range(3)][-1] is None
    assert observer.counts()[RUNNING] == 3  # a claim that was made long ago by its own clock holds at first
    assert all(row.age >= 0 for row in observer.rows())
    time.sleep(0.2)
    if lives:
        assert store.renew(trial.id, owner, 1, 2)
    time.sleep(0.2)
    assert (observer.claim("me") == trial) != lives
    if lives:
        time.sleep(0.4)
        assert trial in [observer.claim("you") for _ in range(3)]


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "0", "-inf"])
def test_a_lease_is_a_number_of_seconds(folder, monkeypatch, capsys, seconds):
    with pytest.raises(cal.CalibrationInputError, match="lease: must be a finite number of seconds above 0"):
        Store(folder, lease=float(seconds))
    assert typed(monkeypatch, capsys, ["experiment", "resume", str(folder), "--lease", seconds]).code == 2


# the command


def test_the_command_says_in_a_line_what_is_damaged(folder, monkeypatch, capsys):
    (folder / "study.sqlite").write_bytes(b"no database")
    for command in ("status", "table", "figure", "resume"):
        ended = typed(monkeypatch, capsys, ["experiment", command, str(folder)])
        assert ended.code == 3, command
        assert ended.err.count("\n") == 1, ended.err
        assert "study.sqlite: must be as it was written, got file is not a database" in ended.err
