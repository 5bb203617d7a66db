"""The store: a folder that keeps a study, its trials, who works on them, and what came of them.

A database in SQLite holds states and numbers, NPZ files hold logits. A trial is claimed by one worker at a time; a
claim that is not renewed runs out, and one whose process has ended is void at once. A file that has its name is whole.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running.claim_owners import is_dead
from calibrant.experiments.training.trial_outcomes import Outcome, read_outcome, sweep
from calibrant.experiments.training.trials import Trial

LEASE = 60.0
"""Seconds after which a claim that was not renewed is void."""
PATIENCE = 30.0
"""Seconds that a process waits for another one's transaction."""
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
_SCHEMA = """
create table if not exists study (
    one integer primary key check (one = 1), name text not null, text text not null);
create table if not exists trials (
    id text primary key, place integer not null, wanted integer not null, description text not null,
    state text not null, owner text, renewed real, epoch integer not null default 0, epochs integer not null default 0,
    attempts integer not null default 0, reason text not null default '', seconds real);
create table if not exists measurements (
    trial text not null, method text not null, split text not null, metric text not null, result text not null,
    primary key (trial, method, split, metric));
create table if not exists maps (
    trial text not null, method text not null, text text not null, primary key (trial, method));
"""


@dataclass(frozen=True)
class Row:
    """A trial as the store knows it."""

    trial: Trial
    state: str
    owner: str | None
    age: float
    """Seconds since its claim was renewed."""
    epoch: int
    epochs: int
    attempts: int
    reason: str
    seconds: float | None


class Store:
    """The trials of a study in a folder; any number of processes may work on it.

    >>> import tempfile
    >>> trial = Trial({}, {"name": "mlp"}, {"epochs": 2}, {"kind": "none", "strength": 0.0}, seed=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder, create=True)
    ...     store.want([trial])
    ...     claimed = store.claim("me")
    ...     claimed == trial, store.claim("you") is None, store.counts()["running"]
    (True, True, 1)
    """

    def __init__(self, folder: str | Path, *, create: bool = False, lease: float = LEASE) -> None:
        self.folder, self.lease = Path(folder), lease
        self.database = self.folder / "study.sqlite"
        if create:
            for part in (self.results, self.checkpoints):
                part.mkdir(parents=True, exist_ok=True)
        elif not self.database.is_file():
            raise CalibrationInputError(
                str(folder), "must be the folder of a study", got="none", hint="calibrant experiment run makes one"
            )
        if create:
            self._create()

    def _create(self) -> None:
        """Make the database; where another process is just doing so, wait for it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._reading() as database:
                    database.execute("pragma journal_mode = wal")
                with self._writing() as database:
                    for statement in _SCHEMA.split(";"):
                        database.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @property
    def results(self) -> Path:
        """Where outcomes are."""
        return self.folder / "results"

    @property
    def checkpoints(self) -> Path:
        """Where trainings that are not finished stand."""
        return self.folder / "checkpoints"

    def result_path(self, trial: str) -> Path:
        """The file of a trial's outcome."""
        return self.results / f"{trial}.npz"

    def checkpoint_path(self, trial: str) -> Path:
        """The file that knows where a trial's training stands."""
        return self.checkpoints / f"{trial}.npz"

    def outcome(self, trial: str) -> Outcome:
        """What came of a trial."""
        return read_outcome(self.result_path(trial))

    @property
    def study_text(self) -> str:
        """The YAML of the study, as it was given last."""
        with self._reading() as database:
            row = database.execute("select text from study").fetchone()
        if row is None:
            raise CalibrationInputError(str(self.folder), "must hold a study", got="none")
        return str(row[0])

    def set_study(self, name: str, text: str) -> None:
        """Keep the study; a store holds one, though its file may grow: trials that are the same are not done again."""
        with self._writing() as database:
            row = database.execute("select name from study").fetchone()
            if row is not None and row[0] != name:
                raise CalibrationInputError(
                    str(self.folder), f"must hold the study {name!r}", got=repr(row[0]), hint="use another folder"
                )
            database.execute("insert or replace into study values (1, ?, ?)", (name, text))

    def want(self, trials: Iterable[Trial]) -> None:
        """These are the trials of the study now; what is known of others is kept."""
        with self._writing() as database:
            database.execute("update trials set wanted = 0")
            for place, trial in enumerate(trials):
                database.execute(
                    "insert into trials (id, place, wanted, description, state) values (?, ?, 1, ?, ?)"
                    " on conflict (id) do update set wanted = 1, place = excluded.place",
                    (trial.id, place, trial.to_json(), WAITING),
                )

    def rows(self) -> list[Row]:
        """The trials of the study, in their order."""
        query = (
            "select description, state, owner, renewed, epoch, epochs, attempts, reason, seconds from trials"
            " where wanted order by place"
        )
        now = time.time()
        with self._reading() as database:
            return [
                Row(Trial.from_json(text), state, owner, now - (renewed or now), *others)
                for text, state, owner, renewed, *others in database.execute(query)
            ]

    def counts(self) -> dict[str, int]:
        """How many trials are in each state."""
        with self._reading() as database:
            counts = dict(database.execute("select state, count(*) from trials where wanted group by state"))
        return {state: int(counts.get(state, 0)) for state in (WAITING, RUNNING, DONE, FAILED)}

    def claim(self, owner: str) -> Trial | None:
        """The next trial that nobody works on, now this owner's; None where there is none."""
        with self._writing() as database:
            self._void(database)
            row = database.execute(
                "select id, description from trials where wanted and state = ? order by place limit 1", (WAITING,)
            ).fetchone()
            if row is None:
                return None
            database.execute(
                "update trials set state = ?, owner = ?, renewed = ?, attempts = attempts + 1 where id = ?",
                (RUNNING, owner, time.time(), row[0]),
            )
        return Trial.from_json(row[1])

    def _void(self, database: sqlite3.Connection) -> None:
        """Trials whose claims have run out, or whose owners have ended, wait again."""
        running = database.execute("select id, owner, renewed from trials where state = ?", (RUNNING,)).fetchall()
        for trial, owner, renewed in running:
            if time.time() - renewed > self.lease or is_dead(owner, self.folder):
                database.execute("update trials set state = ?, owner = null where id = ?", (WAITING, trial))

    def renew(self, trial: str, owner: str, epoch: int, epochs: int) -> bool:
        """Say that a trial is still being worked on; False where it is somebody else's by now."""
        with self._writing() as database:
            changed = database.execute(
                "update trials set renewed = ?, epoch = ?, epochs = ? where id = ? and owner = ? and state = ?",
                (time.time(), epoch, epochs, trial, owner, RUNNING),
            )
            return changed.rowcount == 1

    def release(self, trial: str, owner: str) -> None:
        """Give a trial back, to be gone on with later."""
        self._settle(trial, owner, WAITING, "", None)

    def fail(self, trial: str, owner: str, reason: str) -> None:
        """A trial that cannot be finished, and why; it is not tried again unless asked for."""
        self._settle(trial, owner, FAILED, reason, None)

    def finish(self, trial: str, owner: str, seconds: float | None = None) -> None:
        """A trial whose outcome is in its file."""
        self._settle(trial, owner, DONE, "", seconds)
        self.checkpoint_path(trial).unlink(missing_ok=True)

    def _settle(self, trial: str, owner: str, state: str, reason: str, seconds: float | None) -> None:
        with self._writing() as database:
            database.execute(
                "update trials set state = ?, owner = null, reason = ?, seconds = ? where id = ? and owner = ?",
                (state, reason, seconds, trial, owner),
            )

    def retry(self) -> int:
        """Trials that failed wait again; how many."""
        with self._writing() as database:
            changed = database.execute("update trials set state = ?, reason = '' where state = ?", (WAITING, FAILED))
            return changed.rowcount

    def adopt(self, trial: str, seconds: float | None) -> bool:
        """A trial whose outcome came from elsewhere is done; False where the store does not know it."""
        with self._writing() as database:
            changed = database.execute(
                "update trials set state = ?, owner = null, reason = '', seconds = ? where id = ?",
                (DONE, seconds, trial),
            )
            return changed.rowcount == 1

    def mend(self) -> list[str]:
        """Trials said to be done whose files are missing or damaged wait again; which."""
        sweep(self.results)
        sweep(self.checkpoints)
        lost = [row.trial.id for row in self.rows() if row.state == DONE and not self.is_whole(row.trial.id)]
        with self._writing() as database:
            for trial in lost:
                database.execute("update trials set state = ? where id = ? and state = ?", (WAITING, trial, DONE))
        return lost

    def is_whole(self, trial: str) -> bool:
        """Whether a trial's outcome is there, can be read, and is that trial's."""
        try:
            return Trial.from_json(self.outcome(trial).description).id == trial
        except (CalibrationInputError, OSError):
            return False

    def measured(self, trial: str, method: str, split: str) -> dict[str, Any]:
        """What has been measured of a trial's answers, after a method ("" for none)."""
        query = "select metric, result from measurements where trial = ? and method = ? and split = ?"
        with self._reading() as database:
            return {metric: json.loads(text) for metric, text in database.execute(query, (trial, method, split))}

    def keep(self, trial: str, method: str, split: str, results: dict[str, Any]) -> None:
        """Keep what was measured."""
        with self._writing() as database:
            database.executemany(
                "insert or replace into measurements values (?, ?, ?, ?, ?)",
                [(trial, method, split, metric, json.dumps(result)) for metric, result in results.items()],
            )

    def fitted(self, trial: str, method: str) -> str | None:
        """The map that a method learnt on a trial's validation rows, as JSON, where it is kept."""
        with self._reading() as database:
            row = database.execute("select text from maps where trial = ? and method = ?", (trial, method)).fetchone()
        return None if row is None else str(row[0])

    def keep_fitted(self, trial: str, method: str, text: str) -> None:
        """Keep what a method learnt."""
        with self._writing() as database:
            database.execute("insert or replace into maps values (?, ?, ?)", (trial, method, text))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        database = self._connect()
        try:
            yield database
        finally:
            database.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it, or nothing."""
        database = self._connect()
        try:
            database.execute("begin immediate")
            yield database
            database.execute("commit")
        except BaseException:
            if database.in_transaction:
                database.execute("rollback")
            raise
        finally:
            database.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            database = sqlite3.connect(self.database, timeout=PATIENCE, isolation_level=None)
            database.execute("pragma synchronous = full")
        except sqlite3.DatabaseError as reason:
            if isinstance(reason, sqlite3.OperationalError):
                raise
            raise CalibrationInputError(str(self.database), "must be a store's database", got=str(reason)) from None
        return database


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk is full.

    >>> is_full(OSError(28, "No space left on device")), is_full(ValueError())
    (True, False)
    """
    import errno

    if isinstance(error, sqlite3.OperationalError):
        return "full" in str(error)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
