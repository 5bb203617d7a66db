"""The store, trials, outcomes and tuning: what is kept, who may work on what, and what a killed process leaves."""

import errno
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.running import claim_owners
from calibrant.experiments.running.claim_owners import is_dead, new_owner
from calibrant.experiments.running.outcome_intake import collect
from calibrant.experiments.running.study_store import DONE, FAILED, RUNNING, WAITING, Store, is_full
from calibrant.experiments.training.trial_outcomes import (
    Answers,
    Outcome,
    Snapshots,
    pack,
    read_outcome,
    sweep,
    unpack,
    write_outcome,
)
from calibrant.experiments.training.trials import BLENDS, ORDER, Trial, read_trials, write_trials
from calibrant.experiments.training.tuning import Candidate, choose, lowest_admissible


def a_trial(seed=0, strength=0.0, kind="none"):
    return Trial({"name": "digits"}, {"name": "mlp"}, {"epochs": 2}, {"kind": kind, "strength": strength}, seed)


def an_outcome(trial, seed=0, n=12, classes=("a", "b", "c")):
    random = np.random.default_rng(seed)
    parts = [
        Answers(random.normal(size=(n, len(classes))).astype(np.float32), random.integers(0, len(classes), n))
        for _ in range(2)
    ]
    curves = random.random((2, 2, 1))
    hierarchy = {"level": {"x": ("a", "b"), "y": ("c",)}}
    return Outcome(trial.to_json(), *parts, classes, hierarchy, ("ece",), np.array([1, 2]), curves, {"seconds": 1.5})


@pytest.fixture
def store(tmp_path):
    new = Store(tmp_path / "store", create=True)
    new.want([a_trial(seed) for seed in range(3)])
    return new


# trials


def test_a_trial_and_its_json_rebuild_each_other():
    trial = a_trial(3, 0.1, "mixup")
    again = Trial.from_json(trial.to_json())
    assert again == trial
    assert again.id == trial.id
    assert trial.label == "mlp, mixup 0.1, seed 3"


def test_trials_that_differ_in_anything_have_other_names_and_other_streams():
    trials = [a_trial(0), a_trial(1), a_trial(0, 0.1, "mixup"), a_trial(0, 0.2, "mixup")]
    assert len({trial.id for trial in trials}) == 4
    streams = [trial.seed_of(stream, epoch) for trial in trials for stream in (ORDER, BLENDS) for epoch in (0, 1)]
    assert len(set(streams)) == len(streams)
    assert all(0 <= number < 2**63 for number in streams)


def test_a_trial_keeps_its_name_from_version_to_version():
    # a store made before must still know its trials
    assert a_trial(3, 0.1, "mixup").id == "863dfbb9afaf475b"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"seed": 0}', "nan", '{"a": ' * 2000])
def test_what_is_no_trial_is_refused(text):
    with pytest.raises(CalibrationInputError, match="must be the description of a trial"):
        Trial.from_json(text)


def test_a_line_that_is_no_trial_is_named(tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_text(write_trials([a_trial(0), a_trial(1)]) + "\n{}\n")
    with pytest.raises(CalibrationInputError, match="line 4"):
        read_trials(path)
    path.write_text(write_trials([a_trial(0), a_trial(1)]))
    assert read_trials(path) == [a_trial(0), a_trial(1)]


# tuning


GRID = [Candidate(0.05, 0.79, 0.05), Candidate(0.1, 0.76, 0.03), Candidate(0.2, 0.74, 0.01)]


@pytest.mark.parametrize("relative", [False, True])
def test_the_lowest_error_among_admissible_strengths_is_chosen(relative):
    # base .80: .74 loses 6 points, and 7.5 percent
    assert choose(GRID, lowest_admissible(0.8, relative=relative)) == 0.1


def test_exactly_the_allowed_loss_is_admissible():
    assert choose([Candidate(0.3, 0.75, 0.02)], lowest_admissible(0.8, loss=0.05)) == 0.3
    assert choose([Candidate(0.3, 0.7499, 0.02)], lowest_admissible(0.8, loss=0.05)) is None


def test_of_equal_errors_the_weaker_strength_is_chosen():
    grid = [Candidate(0.2, 0.8, 0.03), Candidate(0.1, 0.8, 0.03)]
    assert choose(grid, 0.75) == 0.1


def test_a_strength_that_failed_is_never_chosen():
    grid = [Candidate(0.1, float("nan"), float("nan")), Candidate(0.2, 0.8, 0.5)]
    assert choose(grid, 0.75) == 0.2
    assert choose(grid[:1], 0.75) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), max_size=8), st.floats(0, 1))
def test_the_choice_is_what_a_plain_loop_finds(rows, floor):
    candidates = [Candidate(*row) for row in rows]
    best = None
    for strength, accuracy, error in sorted(rows):
        if accuracy >= floor - 1e-9 and (best is None or error < best[1]):
            best = (strength, error)
    assert choose(candidates, floor) == (None if best is None else best[0])


# outcomes


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_an_outcome_and_its_file_rebuild_each_other(tmp_path, kind):
    trial, path = a_trial(), tmp_path / "a.npz"
    outcome = an_outcome(trial)
    write_outcome(path, outcome, logits=kind)
    again = read_outcome(path)
    assert again.test.logits.dtype == kind
    np.testing.assert_array_equal(again.test.logits, outcome.test.logits.astype(kind))
    np.testing.assert_array_equal(again.curves, outcome.curves)
    assert (again.classes, again.hierarchy, again.names) == (outcome.classes, outcome.hierarchy, outcome.names)
    assert Trial.from_json(again.description).id == trial.id
    assert again.predictions("test").classes == ("a", "b", "c")
    assert os.listdir(tmp_path) == ["a.npz"]


def test_logits_too_large_for_16_bits_are_kept_in_32(tmp_path):
    outcome = an_outcome(a_trial())
    outcome.test.logits[0, 0] = 1e6
    write_outcome(tmp_path / "a.npz", outcome, logits="float16")
    assert read_outcome(tmp_path / "a.npz").test.logits[0, 0] == 1e6


@pytest.mark.parametrize("damage", ["cut", "flip", "objects", "nan", "labels", "shape", "empty", "text"])
def test_a_damaged_outcome_is_refused(tmp_path, damage):
    path, outcome = tmp_path / "a.npz", an_outcome(a_trial())
    if damage == "nan":
        outcome.test.logits[3, 1] = np.nan
    if damage == "labels":
        outcome.validation.labels[0] = 7
    write_outcome(path, outcome)
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "flip":
        path.write_bytes(bytes([*whole[:200], whole[200] ^ 255, *whole[201:]]))
    elif damage == "objects":
        np.savez(path, meta=np.array([{}], object))
    elif damage == "shape":
        arrays = dict(np.load(path))
        np.savez(path, **{**arrays, "test_labels": arrays["test_labels"][1:]})
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("no archive")
    with pytest.raises(CalibrationInputError, match=r"a\.npz"):
        read_outcome(path)


def an_outcome_with_snapshots(size=1.0):
    outcome, random = an_outcome(a_trial()), np.random.default_rng(1)
    labels = random.integers(0, 3, 5)
    epochs = [Snapshots.of(size * random.normal(size=(5, 3)), random.normal(size=(12, 3)), labels=labels) for _ in "ab"]
    return replace(outcome, kept=epochs[0].followed_by(epochs[1]))


@pytest.mark.parametrize(("size", "kind"), [(1.0, np.float16), (1e6, np.float32)])
def test_logits_kept_after_epochs_come_back_as_they_were(tmp_path, size, kind):
    outcome = an_outcome_with_snapshots(size)
    write_outcome(tmp_path / "a.npz", outcome)
    again = read_outcome(tmp_path / "a.npz")
    assert outcome.kept.train.dtype == kind
    for name in ("train", "validation", "labels"):
        kept = getattr(again.kept, name)
        assert kept.dtype == getattr(outcome.kept, name).dtype
        np.testing.assert_array_equal(kept, getattr(outcome.kept, name))
    assert [epoch for epoch, _ in again.over_training("train")] == [1, 2]


def test_an_outcome_without_kept_logits_is_written_as_before_there_were_any(tmp_path):
    write_outcome(tmp_path / "a.npz", an_outcome(a_trial()))
    with np.load(tmp_path / "a.npz") as arrays:
        assert not [name for name in arrays.files if name.startswith("kept")]
    assert read_outcome(tmp_path / "a.npz").kept is None


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("train", np.zeros((2, 4, 3))),
        ("validation", np.zeros((1, 12, 3))),
        ("validation", np.zeros((2, 12, 3), np.int64)),
        ("train", np.full((2, 5, 3), np.nan)),
        ("labels", np.full(5, 3)),
        ("labels", np.zeros(5)),
    ],
)
def test_kept_logits_that_fit_nothing_are_refused(tmp_path, name, damaged):
    outcome = an_outcome_with_snapshots()
    write_outcome(tmp_path / "a.npz", replace(outcome, kept=replace(outcome.kept, **{name: damaged})))
    with pytest.raises(CalibrationInputError, match=r"must have (finite )?kept"):
        read_outcome(tmp_path / "a.npz")


def test_outcomes_travel_in_archives_of_limited_size(tmp_path):
    files = []
    for seed in range(5):
        files.append(tmp_path / f"{a_trial(seed).id}.npz")
        write_outcome(files[-1], an_outcome(a_trial(seed), seed))
    most = 2 * files[0].stat().st_size + 700
    archives = pack(files, tmp_path / "results", most=most)
    assert [path.name for path in archives] == ["results-1.zip", "results-2.zip", "results-3.zip"]
    assert all(path.stat().st_size <= most for path in archives)
    target = tmp_path / "out"
    target.mkdir()
    assert sorted(path.name for archive in archives for path in unpack(archive, target)) == sorted(
        path.name for path in files
    )
    assert (target / files[0].name).read_bytes() == files[0].read_bytes()


def test_an_archive_cannot_write_outside_its_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../evil.npz", b"x")
        archive.writestr("/evil.npz", b"x")
        archive.writestr("sub/evil.npz", b"x")
        archive.writestr("evil.txt", b"x")
    target = tmp_path / "out"
    target.mkdir()
    assert unpack(tmp_path / "evil.zip", target) == []
    assert list(target.iterdir()) == []


def test_what_killed_processes_left_is_swept_once_it_is_old(tmp_path):
    old, young = tmp_path / ".a.npz.x1", tmp_path / ".b.npz.x2"
    for path in (old, young):
        path.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [young.name]


# claims


def test_a_trial_is_claimed_once_and_in_order(store):
    assert [store.claim("me") for _ in range(4)] == [a_trial(0), a_trial(1), a_trial(2), None]
    assert store.counts() == {WAITING: 0, RUNNING: 3, DONE: 0, FAILED: 0}


def test_many_threads_never_claim_the_same_trial(tmp_path):
    store = Store(tmp_path / "many", create=True)
    store.want([a_trial(seed) for seed in range(40)])
    with ThreadPoolExecutor(8) as pool:
        claimed = [trial.id for trial in pool.map(lambda index: store.claim(f"worker {index}"), range(40))]
    assert len(set(claimed)) == 40


def test_a_claim_that_is_not_renewed_runs_out(tmp_path):
    store = Store(tmp_path / "short", create=True, lease=0.2)
    store.want([a_trial()])
    first = store.claim("elsewhere|1|0|ab")
    assert store.renew(first.id, "elsewhere|1|0|ab", 1, 2)
    assert store.claim("other") is None
    time.sleep(0.3)
    assert store.claim("other") == first
    assert not store.renew(first.id, "elsewhere|1|0|ab", 2, 2)
    store.finish(first.id, "elsewhere|1|0|ab")  # comes too late to count
    assert store.counts()[RUNNING] == 1


KILLED = """
import os, sys
from pathlib import Path
from calibrant.experiments.running.claim_owners import new_owner
with new_owner(Path(sys.argv[1])) as owner:
    print(owner, flush=True)
    os._exit(9)  # as a signal would end it: nothing is cleaned up
"""


def killed_owner(folder):
    """The name of a worker that was killed."""
    ended = subprocess.run([sys.executable, "-c", KILLED, folder], capture_output=True, text=True, check=False)
    assert ended.returncode == 9, ended.stderr
    return ended.stdout.strip()


LOCKS = pytest.mark.skipif(not claim_owners.HAS_LOCKS, reason="needs locks that end with their process")


@LOCKS
def test_the_claims_of_a_process_that_has_ended_are_void_at_once(store):
    ended = killed_owner(store.folder)
    assert [store.claim(ended) for _ in range(2)] == [a_trial(0), a_trial(0)]  # void before the second is made
    assert is_dead(ended, store.folder)
    with new_owner(store.folder) as owner:
        assert [store.claim(owner) for _ in range(3)] == [a_trial(0), a_trial(1), a_trial(2)]
        assert store.claim("other") is None
    assert store.rows()[0].attempts == 3
    assert store.claim("other") == a_trial(0)  # a worker that went by itself has no claims, either
    assert list(store.folder.glob(".*")) == []


def test_a_process_that_lives_and_strangers_are_not_dead(store):
    with new_owner(store.folder) as owner:
        assert not is_dead(owner, store.folder)
        machine, process, _ = owner.split("|")
        earlier = f"{machine}/boot/pid:[1]|{process}|123|0123abcd"  # as version 0.1 wrote it
        for stranger in ("", "me", "a|b|c|d", f"{machine}|1|", f"{machine}|1|../a", f"elsewhere|{process}|ab", earlier):
            assert not is_dead(stranger, store.folder)


@LOCKS
def test_a_number_that_another_process_has_now_is_dead(store):
    machine, _, word = killed_owner(store.folder).split("|")
    assert is_dead(f"{machine}|{os.getpid()}|{word}", store.folder)


def test_where_there_are_no_locks_the_lease_alone_tells(store, monkeypatch):
    monkeypatch.setattr(claim_owners, "HAS_LOCKS", False)
    with new_owner(store.folder) as owner:
        assert store.claim(owner) == a_trial(0)
    assert not is_dead(owner, store.folder)
    assert store.claim("other") == a_trial(1)


def test_failed_trials_wait_only_when_asked(store):
    trial = store.claim("me")
    store.fail(trial.id, "me", "it diverged")
    assert store.rows()[0].reason == "it diverged"
    assert store.claim("me") == a_trial(1)
    assert store.retry() == 1
    assert store.claim("me") == trial


def test_what_a_study_no_longer_wants_is_kept_but_not_shown(store):
    trial = store.claim("me")
    write_outcome(store.result_path(trial.id), an_outcome(trial))
    store.finish(trial.id, "me", 1.0)
    store.want([a_trial(7)])
    assert [row.trial for row in store.rows()] == [a_trial(7)]
    store.want([a_trial(0), a_trial(7)])
    assert [row.state for row in store.rows()] == [DONE, WAITING]


def test_a_done_trial_whose_file_is_lost_waits_again(store):
    for _ in range(2):
        trial = store.claim("me")
        write_outcome(store.result_path(trial.id), an_outcome(trial))
        store.finish(trial.id, "me")
    store.result_path(a_trial(0).id).write_bytes(b"PK half")
    assert store.mend() == [a_trial(0).id]
    assert [row.state for row in store.rows()] == [WAITING, DONE, WAITING]


def test_a_checkpoint_of_a_done_trial_is_removed_and_the_others_are_kept(store):
    """A worker may be killed between the row and the file, or overtaken by an outcome from elsewhere."""
    done, lost, waiting = (a_trial(seed).id for seed in (0, 1, 2))
    for trial in (store.claim("me"), store.claim("me")):
        write_outcome(store.result_path(trial.id), an_outcome(trial))
        store.finish(trial.id, "me")
    store.result_path(lost).unlink()
    for trial in (done, lost, waiting):
        store.checkpoint_path(trial).write_bytes(b"PK")
    assert store.mend() == [lost]
    assert sorted(store.checkpoints.iterdir()) == sorted(store.checkpoint_path(trial) for trial in (lost, waiting))


def test_a_file_under_another_trials_name_is_not_taken_for_its_outcome(store):
    write_outcome(store.result_path(a_trial(0).id), an_outcome(a_trial(1)))
    assert not store.is_whole(a_trial(0).id)


def test_a_store_holds_one_study(store):
    store.set_study("first", "name: first")
    store.set_study("first", "name: first\nseeds: [1]")
    assert store.study_text.endswith("seeds: [1]")
    with pytest.raises(CalibrationInputError, match="must hold the study 'second', got 'first'"):
        store.set_study("second", "")


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    with pytest.raises(CalibrationInputError, match="must be the folder of a study"):
        Store(tmp_path)
    (tmp_path / "study.sqlite").write_text("this is no database, whatever its name may be")
    with pytest.raises(CalibrationInputError, match="must be as it was written, got file is not a database"):
        Store(tmp_path).rows()


def _write_until_killed(folder):
    store, number = Store(folder), 0
    while True:
        trial = a_trial(number % 50)
        store.keep(trial.id, "", "test", {f"m{number}": {"value": number}})
        write_outcome(store.result_path(trial.id), an_outcome(trial, number))
        number += 1


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_whole_files_and_a_whole_database(store):
    random = np.random.default_rng(0)
    context = multiprocessing.get_context("spawn")
    for _ in range(3):
        for path in store.results.iterdir():
            path.unlink()
        writer = context.Process(target=_write_until_killed, args=(store.folder,))
        writer.start()
        deadline = time.monotonic() + 20
        while not list(store.results.glob("*.npz")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.random() * 0.15)
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        for path in store.results.glob("*.npz"):
            read_outcome(path)
        with closing(sqlite3.connect(store.database.path)) as database:
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_known_by_its_errors():
    assert is_full(OSError(errno.ENOSPC, "No space left on device"))
    assert is_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert not is_full(OSError(errno.EBUSY, "database is locked"))
    assert not is_full(FileNotFoundError(2, "No such file"))


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    write_outcome(path, an_outcome(a_trial(), 1))
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_outcome(path, an_outcome(a_trial(), 2))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]


# collecting


def test_outcomes_from_elsewhere_are_taken_once_and_strange_ones_are_named(store, tmp_path):
    folder = tmp_path / "elsewhere"
    for seed in (0, 1, 9):
        write_outcome(folder / f"{a_trial(seed).id}.npz", an_outcome(a_trial(seed), seed))
    (folder / "broken.npz").write_bytes(b"PK")
    (folder / "broken.zip").write_bytes(b"PK")
    collected = collect(store, [folder])
    assert (collected.taken, collected.known) == (2, 0)
    assert sorted(reason.rsplit("/", 1)[-1].split(":")[0].split(" ")[0] for reason in collected.refused) == sorted(
        ["broken.npz", "broken.zip", f"{a_trial(9).id}.npz"]
    )
    assert [row.state for row in store.rows()] == [DONE, DONE, WAITING]
    archive = pack([folder / f"{a_trial(0).id}.npz"], tmp_path / "packed")
    assert collect(store, archive).known == 1
    write_outcome(folder / "named_differently.npz", an_outcome(a_trial(2)))
    assert collect(store, [folder / "named_differently.npz"]).taken == 1
    assert store.counts()[DONE] == 3
    assert [path.name for path in store.folder.iterdir() if path.is_dir()].count("results") == 1


# sheets


def test_a_spread_is_the_mean_and_the_standard_deviation_over_seeds():
    spread = Spread.of([0.9, 0.92, 0.97])
    # mean .93; deviations -.03 -.01 .04, squares sum to .0026, over 2: .0013
    assert spread.mean == pytest.approx(0.93)
    assert spread.sd == pytest.approx(np.sqrt(0.0013))
    assert str(Spread.of([np.nan, np.nan])) == "-"
    assert str(Spread.of([np.inf, np.inf])) == "inf"
    assert str(Spread.of([0.5], factor=100, digits=1)) == "50.0"


def test_names_are_inert_in_markdown_and_csv():
    sheet = Sheet("a", "T", ("model", "value"), (("=cmd|x", 0.25), ("<script>\x1b[31m*_", Spread.of([1.0, 2.0]))))
    text = sheet.to_markdown()
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "=cmd\\|x" in text
    lines = sheet.to_csv().splitlines()
    assert lines[0] == "model,value,value sd,value seeds"
    assert lines[1].startswith("'=cmd|x,0.25,")
    assert lines[2].endswith(",1.5,0.7071067811865476,2")


def test_kept_measurements_come_back_to_the_last_digit(store):
    result = cal.ECE([1, 0, 1], [0.9, 0.2, 0.6]).to_dict(bins=False)
    store.keep("t", "", "test", {"ece": result})
    assert store.measured("t", "", "test") == {"ece": json.loads(json.dumps(result))}
    assert store.measured("t", "other", "test") == {}
