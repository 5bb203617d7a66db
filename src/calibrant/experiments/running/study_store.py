"""The store: a folder that keeps a study, its trials, who works on them, and what came of them.

A database holds states and numbers, NPZ files hold logits; both tell when they are damaged. A trial is claimed by one
worker at a time; a claim that is not renewed runs out, and one whose process has ended is void at once. Clocks of
machines differ: who looks at a claim counts by its own clock how long the claim has stayed as it is.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.checks import number
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running.claim_owners import is_dead
from calibrant.experiments.running.sealed_database import Connection, DamagedStoreError, Record, SealedDatabase
from calibrant.experiments.training.trial_outcomes import Outcome, read_outcome, sweep
from calibrant.experiments.training.trials import Trial

LEASE = 60.0
"""Seconds after which a claim that was not renewed is void."""
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
_SCHEMA = {
    "study": "create table if not exists study (one integer primary key check (one = 1), name text not null,"
    " text text not null, seal text not null)",
    "trials": "create table if not exists trials (id text primary key, place integer not null, wanted integer not null,"
    " description text not null, state text not null, owner text, renewed real, beats integer,"
    " epoch integer not null, epochs integer not null, attempts integer not null, reason text not null,"
    " seconds real, seal text not null)",
    "measurements": "create table if not exists measurements (trial text not null, method text not null,"
    " split text not null, metric text not null, result text not null, seal text not null,"
    " primary key (trial, method, split, metric))",
    "maps": "create table if not exists maps (trial text not null, method text not null, text text not null,"
    " seal text not null, primary key (trial, method))",
}
_KEYS = {
    "study": ("one",),
    "trials": ("id",),
    "measurements": ("trial", "method", "split", "metric"),
    "maps": ("trial", "method"),
}
_NEW: Record = {"owner": None, "renewed": None, "epoch": 0, "epochs": 0, "attempts": 0, "reason": "", "seconds": None}
"""A trial that nobody has worked on."""


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
        number(lease, "lease", "must be a finite number of seconds above 0", lambda seconds: 0 < seconds < float("inf"))
        self.folder, self.lease = Path(folder), lease
        self.database = SealedDatabase(self.folder / "study.sqlite", _SCHEMA, _KEYS)
        self._claims: dict[str, tuple[Any, float]] = {}
        """What the claims of others were when they were seen to change last, and when that was by this clock."""
        if create:
            for part in (self.results, self.checkpoints):
                part.mkdir(parents=True, exist_ok=True)
            self.database.create()
        elif not self.database.path.is_file():
            raise CalibrationInputError(
                str(folder), "must be the folder of a study", got="none", hint="calibrant experiment run makes one"
            )

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
        """What came of a trial; a file that is damaged, or another trial's, is refused."""
        outcome = read_outcome(self.result_path(trial))
        if Trial.from_json(outcome.description).id != trial:
            path, hint = str(self.result_path(trial)), "calibrant experiment resume does it again"
            raise CalibrationInputError(path, f"must be the outcome of {trial}", got="another trial's", hint=hint)
        return outcome

    @property
    def study_text(self) -> str:
        """The YAML of the study, as it was given last."""
        with self.database.reading() as database:
            rows = self.database.rows(database, "study")
        if not rows:
            raise CalibrationInputError(str(self.folder), "must hold a study", got="none")
        return str(rows[0]["text"])

    def set_study(self, name: str, text: str) -> None:
        """Keep the study; a store holds one, though its file may grow: trials that are the same are not done again."""
        with self.database.writing() as database:
            rows = self.database.rows(database, "study")
            if rows and rows[0]["name"] != name:
                raise CalibrationInputError(
                    str(self.folder),
                    f"must hold the study {name!r}",
                    got=repr(rows[0]["name"]),
                    hint="use another folder",
                )
            self.database.put(database, "study", {"one": 1, "name": name, "text": text})

    def want(self, trials: Iterable[Trial]) -> None:
        """These are the trials of the study now; what is known of others is kept."""
        places = {trial.id: (place, trial) for place, trial in enumerate(trials)}
        with self.database.writing() as database:
            known = {record["id"]: record for record in self.database.rows(database, "trials")}
            for id, (place, trial) in places.items():
                new = {"id": id, "description": trial.to_json(), "state": WAITING, **_NEW}
                self._change(database, known.pop(id, new), wanted=1, place=place)
            for record in known.values():
                self._change(database, record, wanted=0)

    def _change(self, database: Connection, record: Record, **changes: Any) -> None:
        """Write a trial's row with some values changed, if any is."""
        if any(record.get(name, ...) != value for name, value in changes.items()):
            self.database.put(database, "trials", {**record, **changes})

    def _records(self) -> list[Record]:
        """What is known of the trials of the study, in their order."""
        with self.database.reading() as database:
            records = self.database.rows(database, "trials")
        return sorted((record for record in records if record["wanted"]), key=lambda record: record["place"])

    def rows(self) -> list[Row]:
        """The trials of the study, in their order."""
        now = time.time()
        parts = ("epoch", "epochs", "attempts", "reason", "seconds")
        return [
            Row(
                Trial.from_json(record["description"]),
                record["state"],
                record["owner"],
                max(0.0, now - (record["renewed"] or now)),
                *(record[part] for part in parts),
            )
            for record in self._records()
        ]

    def counts(self) -> dict[str, int]:
        """How many trials are in each state."""
        states = [record["state"] for record in self._records()]
        return {state: states.count(state) for state in (WAITING, RUNNING, DONE, FAILED)}

    def claim(self, owner: str) -> Trial | None:
        """The next trial that nobody works on, now this owner's; None where there is none."""
        with self.database.writing() as database:
            self._void(database)
            waiting = [each for each in self.database.rows(database, "trials", state=WAITING) if each["wanted"]]
            for record in sorted(waiting, key=lambda each: each["place"])[:1]:
                attempts, beats = record["attempts"] + 1, (record.get("beats") or 0) + 1
                changes = {"state": RUNNING, "owner": owner, "renewed": time.time(), "attempts": attempts}
                self._change(database, record, beats=beats, **changes)
                return Trial.from_json(record["description"])
        return None

    def _void(self, database: Connection) -> None:
        """Trials whose claims have stayed as they are for a lease, or whose owners have ended, wait again."""
        running = self.database.rows(database, "trials", state=RUNNING)
        for record in running:
            claim = record["owner"], record.get("beats"), record["renewed"]
            known, since = self._claims.get(record["id"], (None, 0.0))
            if known != claim:
                since = time.monotonic()
                self._claims[record["id"]] = claim, since
            if time.monotonic() - since > self.lease or is_dead(record["owner"], self.folder):
                self._change(database, record, state=WAITING, owner=None)

    def _own(self, database: Connection, trial: str, owner: str) -> list[Record]:
        """A trial's row, where the trial is this owner's."""
        return self.database.rows(database, "trials", id=trial, owner=owner)

    def renew(self, trial: str, owner: str, epoch: int, epochs: int) -> bool:
        """Say that a trial is still being worked on; False where it is somebody else's by now."""
        with self.database.writing() as database:
            records = [record for record in self._own(database, trial, owner) if record["state"] == RUNNING]
            for record in records:
                beats = (record.get("beats") or 0) + 1
                self._change(database, record, renewed=time.time(), beats=beats, epoch=epoch, epochs=epochs)
            return bool(records)

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
        with self.database.writing() as database:
            for record in self._own(database, trial, owner):
                self._change(database, record, state=state, owner=None, reason=reason, seconds=seconds)

    def retry(self) -> int:
        """Trials that failed wait again; how many."""
        with self.database.writing() as database:
            failed = self.database.rows(database, "trials", state=FAILED)
            for record in failed:
                self._change(database, record, state=WAITING, reason="")
            return len(failed)

    def adopt(self, trial: str, seconds: float | None) -> bool:
        """A trial whose outcome came from elsewhere is done; False where the store does not know it."""
        with self.database.writing() as database:
            records = self.database.rows(database, "trials", id=trial)
            for record in records:
                self._change(database, record, state=DONE, owner=None, reason="", seconds=seconds)
            return bool(records)

    def mend(self) -> list[str]:
        """Trials said to be done whose files are missing or damaged wait again; which. Damaged files are set aside.

        Checkpoints of the others, left by a process that ended in between or was overtaken, are removed.
        """
        sweep(self.results)
        sweep(self.checkpoints)
        done = {record["id"]: self.is_whole(record["id"]) for record in self._records() if record["state"] == DONE}
        lost = [trial for trial, whole in done.items() if not whole]
        for path in self.checkpoints.glob("*.npz"):
            if done.get(path.stem):
                with suppress(OSError):
                    path.unlink()
        for trial in lost:
            self._set_aside(self.result_path(trial))
        with self.database.writing() as database:
            for trial in lost:
                for record in self.database.rows(database, "trials", id=trial, state=DONE):
                    self._change(database, record, state=WAITING)
                for table in ("measurements", "maps"):  # made of the file that is no more; ensembles, too
                    self.database.remove(database, table, "instr(trial, ?)", (trial,))
        return lost

    def _set_aside(self, path: Path) -> None:
        """Keep a damaged file under another name."""
        if path.exists():
            folder = self.folder / "damaged"
            folder.mkdir(exist_ok=True)
            path.replace(folder / f"{path.stem}-{len(list(folder.iterdir())) + 1}{path.suffix}")

    def is_whole(self, trial: str) -> bool:
        """Whether a trial's outcome is there, can be read, and is that trial's."""
        try:
            self.outcome(trial)
            return True
        except (CalibrationInputError, OSError):
            return False

    def measured(self, trial: str, method: str, split: str) -> dict[str, Any]:
        """What has been measured of a trial's answers, after a method ("" for none); nothing, where that is damaged."""
        try:
            with self.database.reading() as database:
                rows = self.database.rows(database, "measurements", trial=trial, method=method, split=split)
        except DamagedStoreError:
            return {}
        return {row["metric"]: json.loads(row["result"]) for row in rows}

    def keep(self, trial: str, method: str, split: str, results: dict[str, Any]) -> None:
        """Keep what was measured, where the folder can be written to."""
        keys = {"trial": trial, "method": method, "split": split}
        records = [{**keys, "metric": metric, "result": json.dumps(result)} for metric, result in results.items()]
        self._keep("measurements", records)

    def fitted(self, trial: str, method: str) -> str | None:
        """The map that a method learnt on a trial's validation rows, as JSON, where it is kept."""
        try:
            with self.database.reading() as database:
                rows = self.database.rows(database, "maps", trial=trial, method=method)
        except DamagedStoreError:
            return None
        return str(rows[0]["text"]) if rows else None

    def keep_fitted(self, trial: str, method: str, text: str) -> None:
        """Keep what a method learnt, where the folder can be written to."""
        self._keep("maps", [{"trial": trial, "method": method, "text": text}])

    def _keep(self, table: str, records: list[Record]) -> None:
        if self.database.is_writable:  # to look at a study, nothing has to be written
            with self.database.writing() as database:
                for record in records:
                    self.database.put(database, table, record)


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk is full.

    >>> is_full(OSError(28, "No space left on device")), is_full(ValueError())
    (True, False)
    """
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
