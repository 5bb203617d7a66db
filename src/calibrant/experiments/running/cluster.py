"""The cluster: a store's trials go to the workers of a Dask scheduler, and what comes of them comes back.

The process that runs this alone has the store: it claims trials, keeps the claims, and puts outcomes in place. Whatever
happens to a worker, the scheduler or this process, the store is as after any other interruption.
"""

from __future__ import annotations

import errno
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import calibrant
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.study_schema import Study
from calibrant.experiments.running.claim_owners import new_owner
from calibrant.experiments.running.remote_trial import DONE, FAILED, UNFIT, RemoteTrial
from calibrant.experiments.running.runner import (
    PAUSE,
    STOPPED,
    DiskFullError,
    Options,
    is_over,
    polite,
    reopen,
    watched,
)
from calibrant.experiments.running.scheduler import ClusterError, connected
from calibrant.experiments.running.sealed_database import DamagedStoreError
from calibrant.experiments.running.study_store import Store, is_full
from calibrant.experiments.training.trial_outcomes import Outcome, read_outcome
from calibrant.experiments.training.trials import Trial
from calibrant.files.writing import whole_file
from calibrant.text import inert

ADRIFT = 5.0
"""Seconds after which a task that no worker has is taken back."""
MARK = "calibrant-"
"""How the names of tasks begin that train a trial, whoever sent them."""


def run(folder: str | Path, options: Options, scheduler: str, *, shown: Callable[[Store], Any] | None = None) -> int:
    """Run the study of a store on a cluster; 0, or how it was stopped.

    The first interruption cancels what is trained, which stops after the epoch, with a checkpoint; the second one
    leaves at once. Every worker process trains one trial at a time.
    """
    study, store = reopen(folder, lease=options.lease)
    with connected(scheduler) as client, watched(store, shown), polite() as stop, new_owner(store.folder) as owner:
        Driver(study, store, options, client, scheduler, owner).work(stop.is_set)
        return STOPPED if stop.is_set() else 0


@dataclass
class _Sent:
    """A trial on its way."""

    trial: Trial
    future: Any
    renewed: float = field(default_factory=time.monotonic)
    seen: float = field(default_factory=time.monotonic)
    """When a worker was last known to have it."""
    epoch: int = 0
    epochs: int = 0
    told: int = 0
    """The last epoch that the store heard of."""


class Driver:
    """Sends the trials of a store to workers that have none, and takes in what comes back."""

    def __init__(self, study: Study, store: Store, options: Options, client: Any, scheduler: str, owner: str) -> None:
        self.study, self.store, self.options = study, store, options
        self.client, self.scheduler, self.owner = client, scheduler, owner
        self.topic = MARK + secrets.token_hex(8)
        self.sent: dict[str, _Sent] = {}
        self.unfit: dict[str, str] = {}
        """Workers that cannot train, and why."""
        self.said: set[str] = set()
        self._woken = threading.Event()

    def work(self, stop: Callable[[], bool]) -> None:
        """Go on until nothing is left; what is on its way when this ends is cancelled, and waits again."""
        self.client.subscribe_topic(self.topic, self._hear)
        try:
            while not stop():
                self._woken.clear()
                self._take_in()
                self._keep_claims()
                self._send_out()
                if not self.sent and not self.store.counts()["waiting"] and is_over(self.study, self.store):
                    return
                self._rest(stop)
        except Exception as error:
            if is_full(error):
                message = (
                    "the disk is full: what was on its way was stopped and the store is whole; make room and resume"
                )
                raise DiskFullError(errno.ENOSPC, message, str(self.store.folder)) from error
            if self.client.status != "running":
                raise self._gone() from error
            raise
        finally:
            self._let_go()

    def _rest(self, stop: Callable[[], bool]) -> None:
        """Wait until something has happened, but not for long."""
        until = time.monotonic() + PAUSE
        while not self._woken.wait(0.05) and time.monotonic() < until and not stop():
            pass

    def _send_out(self) -> None:
        """A trial for every worker that has none, as long as there are trials."""
        for worker in self._free():
            trial = self._claimed()
            if trial is None:
                return
            self._send(trial, worker)

    def _claimed(self) -> Trial | None:
        """The next trial that is still to be trained, now ours."""
        while (trial := self.store.claim(self.owner)) is not None and self.store.is_whole(trial.id):
            self.store.finish(trial.id, self.owner)  # somebody ended between the file and the database
        return trial

    def _free(self) -> list[str | None]:
        """The workers that train nothing; None for whichever comes first, where there are no workers yet."""
        busy: Mapping[str, Any] = self.client.processing()
        self._take_back(busy)
        fit = {worker: tasks for worker, tasks in busy.items() if worker not in self.unfit}
        if busy and not fit:
            raise ClusterError(f"no worker can train this study: {_reasons(self.unfit)}", self.scheduler)
        if not busy:
            self._say("no workers yet", f"dask worker {self.scheduler} starts one")
            return [] if self.sent else [None]
        free = [worker for worker, tasks in fit.items() if not any(str(task).startswith(MARK) for task in tasks)]
        return [*free[: max(0, len(fit) - len(self.sent))]]

    def _take_back(self, busy: Mapping[str, Any]) -> None:
        """What no worker has, though there are some, waits again: its worker died when there was no other one."""
        known = {task for tasks in busy.values() for task in tasks}
        for sent in [sent for sent in self.sent.values() if not sent.future.done()]:
            if not busy or sent.future.key in known:
                sent.seen = time.monotonic()
            elif time.monotonic() - sent.seen > ADRIFT:
                self._give_up(sent)
                self.store.release(sent.trial.id, self.owner)

    def _give_up(self, sent: _Sent) -> None:
        sent.future.cancel()
        del self.sent[sent.trial.id]

    def _gone(self) -> ClusterError:
        return ClusterError("the Dask scheduler is gone; what came back is kept: start it and resume", self.scheduler)

    def _send(self, trial: Trial, worker: str | None) -> None:
        remote = RemoteTrial(
            trial.to_json(),
            calibrant.__version__,
            self.options.device,
            _everywhere(self.options.data),
            str(self.store.checkpoints.absolute()),
            self.options.seconds_between_checkpoints,
            self.topic,
        )
        name = f"{MARK}{trial.id}-{secrets.token_hex(4)}"
        place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        try:
            future = self.client.submit(remote.task(), key=name, pure=False, **place)
        except BaseException:
            self.store.release(trial.id, self.owner)
            raise
        self.sent[trial.id] = _Sent(trial, future)
        future.add_done_callback(lambda _: self._woken.set())

    def _hear(self, event: tuple[float, Any]) -> None:
        """A worker tells how far it is."""
        trial, epoch, epochs = event[1]
        sent = self.sent.get(trial)
        if sent is not None:
            sent.epoch, sent.epochs = epoch, epochs
            self._woken.set()

    def _keep_claims(self) -> None:
        """Renew what is due, and tell the store of epochs; what is somebody else's by now is given up."""
        for sent in list(self.sent.values()):
            is_due = time.monotonic() - sent.renewed > min(10.0, self.store.lease / 4)
            if sent.epoch <= sent.told and not is_due:
                continue
            if not self.store.renew(sent.trial.id, self.owner, sent.epoch, sent.epochs):
                self._give_up(sent)
            sent.renewed, sent.told = time.monotonic(), sent.epoch

    def _take_in(self) -> None:
        """What has come back since the last look."""
        if self.client.status != "running":
            raise self._gone()
        for sent in [sent for sent in self.sent.values() if sent.future.done()]:
            with suppress(TimeoutError, CancelledError):  # its worker died just now: it is looked at again
                self._settle(sent)
                del self.sent[sent.trial.id]

    def _settle(self, sent: _Sent) -> None:
        from distributed import KilledWorker

        trial, future = sent.trial.id, sent.future
        if future.cancelled():
            self.store.release(trial, self.owner)
            return
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, KilledWorker):
                raise ClusterError(f"a trial could not be sent: {type(error).__name__}: {error}", self.scheduler)
            self.store.fail(trial, self.owner, _died(error))
            return
        how, what, worker = future.result(timeout=max(1.0, self.store.lease / 2))
        if how == DONE:
            self._keep(sent.trial, what)
        elif how == FAILED:
            self.store.fail(trial, self.owner, what)
        else:
            self.store.release(trial, self.owner)
            if how == UNFIT:
                self.unfit[worker] = what
                self._say(f"left out: {worker}", what)

    def _keep(self, trial: Trial, content: bytes) -> None:
        """Put an outcome in place, once it is known to be whole and this trial's."""
        try:
            outcome = take(self.store, trial, content)
        except CalibrationInputError as error:
            self.store.fail(trial.id, self.owner, str(error))
            return
        self.store.finish(trial.id, self.owner, outcome.about.get("seconds"))

    def _say(self, what: str, why: str) -> None:
        """Say something once."""
        if what not in self.said:
            self.said.add(what)
            print(f"{inert(what)}: {inert(why, 400)}", file=sys.stderr, flush=True)

    def _let_go(self) -> None:
        """Cancel what is on its way; its trials wait again."""
        with suppress(Exception):  # the scheduler may be gone, which cancels, too
            self.client.cancel([sent.future for sent in self.sent.values()])
        for sent in self.sent.values():
            with suppress(DamagedStoreError, OSError):
                self.store.release(sent.trial.id, self.owner)
        self.sent.clear()


def take(store: Store, trial: Trial, content: bytes) -> Outcome:
    """A trial's outcome from the bytes of its file, which is in its place afterwards; nothing is believed unchecked."""
    path = store.results / f".{trial.id}.npz.arrived"  # swept one day where this process is killed
    try:
        with whole_file(path) as file:
            file.write(content)
        outcome = read_outcome(path)
        if Trial.from_json(outcome.description).id != trial.id:
            raise CalibrationInputError("outcome", f"must be that of {trial.label}", got="another trial's")
        path.replace(store.result_path(trial.id))
    finally:
        path.unlink(missing_ok=True)
    return outcome


def _everywhere(folder: str | None) -> str | None:
    """A folder that is here by its whole name: workers have another working folder; others as they are given."""
    return str(Path(folder).absolute()) if folder is not None and Path(folder).exists() else folder


def _died(error: Any) -> str:
    last = getattr(error.last_worker, "address", error.last_worker)
    return f"too many of its workers died ({int(error.allowed_failures) + 1}, the last was {last}): see their logs"


def _reasons(unfit: Mapping[str, str]) -> str:
    """Every reason once, with the first worker that has it."""
    first: dict[str, str] = {}
    for worker, reason in unfit.items():
        first.setdefault(reason, worker)
    return "; ".join(f"{worker}: {reason}" for reason, worker in first.items())
