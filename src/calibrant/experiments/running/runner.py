"""The runner: workers that take trials from a store until none is left, whatever happens to any of them."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from calibrant.exceptions import reason_of
from calibrant.experiments.design.study_schema import Study
from calibrant.experiments.running.claim_owners import new_owner
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.running.sealed_database import DamagedStoreError
from calibrant.experiments.running.store_repair import repaired, study_in
from calibrant.experiments.running.study_store import LEASE, Store, is_full
from calibrant.experiments.training.given_predictions import require_files
from calibrant.experiments.training.given_weights import weights_in
from calibrant.experiments.training.trainer import StoppedError, Surroundings, dataset, train
from calibrant.experiments.training.trial_outcomes import write_outcome
from calibrant.experiments.training.trials import Trial

PAUSE = 0.5
"""Seconds between looks at a store in which others still work."""
FULL, STOPPED = 4, 130
"""How a worker ends that found no room on the disk, or was asked to stop."""


class DiskFullError(OSError):
    """There is no room for a checkpoint or an outcome; the store is as it was before."""


@dataclass(frozen=True)
class Options:
    """How a study is run; none of it changes what comes of it (on a CPU, to the bit)."""

    device: str = "cpu"
    data: str | None = None
    """The folder that data lie in."""
    lease: float = LEASE
    seconds_between_checkpoints: float = 60.0


def open_study(folder: str | Path, text: str, *, lease: float = LEASE) -> tuple[Study, Store]:
    """The store of a study, made where there is none, and repaired; trials that can be named are wanted."""
    study = study_in(text, folder)
    if Path(folder, "study.sqlite").exists():
        repaired(folder, lease=lease, text=text)
    store = Store(folder, create=True, lease=lease)
    store.set_study(study.name, text)
    extend(study, store)
    return study, store


def reopen(folder: str | Path, *, lease: float = LEASE) -> tuple[Study, Store]:
    """The study that a store holds."""
    store = Store(folder, lease=lease)
    return study_in(store.study_text, folder), store


def extend(study: Study, store: Store) -> None:
    """Want what the study asks for now: strengths that have been chosen are trained on all seeds."""
    known = {row.trial.id for row in store.rows()}
    wanted = study.trials()
    if not {trial.id for trial in wanted} <= known:
        store.want(wanted)
    evidence = Evidence(study, store)
    store.want(study.trials(evidence.chosen, evidence.bases))


def work(study: Study, store: Store, options: Options, stop: Callable[[], bool] = lambda: False) -> None:
    """Take trials until none is left; wait for those that others work on, and take them over if their workers end."""
    with new_owner(store.folder) as owner:
        while not stop():
            trial = store.claim(owner)
            if trial is not None:
                _attempt(store, trial, owner, options, stop)
            elif is_over(study, store):
                return
            elif store.counts()["running"]:
                time.sleep(PAUSE)


def is_over(study: Study, store: Store) -> bool:
    """Whether nothing is left: nobody works on a trial, and what has been chosen by now asks for no more."""
    if store.counts()["running"]:
        return False
    extend(study, store)
    return not store.counts()["waiting"]


def run(folder: str | Path, options: Options, *, jobs: int = 1, shown: Callable[[Store], Any] | None = None) -> int:
    """Run the study of a store with so many processes; 0, or how the worst of them ended.

    The first interruption stops after the epoch, with a checkpoint; the second at once.
    """
    study, store = reopen(folder, lease=options.lease)
    _require(study, options)
    with watched(store, shown), polite() as stop:
        if jobs == 1:
            work(study, store, options, stop.is_set)
            return STOPPED if stop.is_set() else 0
        return _several(folder, options, jobs, stop.is_set)


def _require(study: Study, options: Options) -> None:
    """Say what is missing before any trial begins: files of predictions or weights, torch, data."""
    trials = study.trials()
    for trial in trials:
        if trial.predictions is not None:
            require_files(trial, options.data)
        elif "weights" in trial.model:
            weights_in(trial.model["weights"], options.data)
    for trial in [trial for trial in trials if trial.predictions is None][:1]:
        import torch  # noqa: F401

        dataset(trial.data, options.data)


def _several(folder: str | Path, options: Options, jobs: int, stop: Callable[[], bool]) -> int:
    context = multiprocessing.get_context("spawn")  # threads and torch do not survive a fork
    workers = [context.Process(target=_worker, args=(str(folder), options)) for _ in range(jobs)]
    try:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(_start, workers).result()
        while working := [worker for worker in workers if worker.is_alive()]:
            wait([worker.sentinel for worker in working], PAUSE)
            if stop():
                _interrupt(working)
    except BaseException:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
                worker.join()
        raise
    return _ended([worker.exitcode for worker in workers], Store(folder).counts())


def _start(workers: list[Any]) -> None:
    """Start processes that no interruption disturbs before they listen: the mask of this thread is theirs at first."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # it would clear the mask
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for worker in workers:
        worker.start()


def _interrupt(workers: list[Any]) -> None:
    """Ask processes to stop after the epoch, as often as it takes: those that are still starting do not hear it."""
    if os.name == "posix":  # elsewhere a signal ends a process, and a console tells all of them itself
        for worker in workers:
            with suppress(OSError):
                os.kill(worker.pid, signal.SIGINT)


def _ended(codes: list[int | None], counts: dict[str, int]) -> int:
    """How several workers ended together: what one of them left behind, others may have done."""
    told = [code for code in (FULL, STOPPED) if code in codes]
    return told[0] if told else int(counts["waiting"] + counts["running"] > 0)


def _worker(folder: str, options: Options) -> None:
    """A process of its own that works on a store, until it is asked to stop or its parent has ended."""
    import sys

    _ignore_interruptions()
    study, store = reopen(folder, lease=options.lease)
    parent = multiprocessing.parent_process()
    try:
        with polite(twice=False) as stop:
            work(study, store, options, lambda: stop.is_set() or (parent is not None and not parent.is_alive()))
    except DiskFullError as error:
        print(error, file=sys.stderr)
        sys.exit(FULL)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    if stop.is_set():
        sys.exit(STOPPED)


def _ignore_interruptions() -> None:
    """Interruptions mean nothing until this process listens, and once it has listened; its parent repeats them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _attempt(store: Store, trial: Trial, owner: str, options: Options, stop: Callable[[], bool]) -> None:
    """Train a trial, or go on with it, and keep its outcome; whatever goes wrong leaves the store as it should be."""
    if store.is_whole(trial.id):  # a worker ended between the file and the database
        store.finish(trial.id, owner, store.outcome(trial.id).about.get("seconds"))
        return
    try:
        with _Heart(store, trial.id, owner) as heart:
            around = Surroundings(
                options.device,
                options.data,
                store.checkpoint_path(trial.id),
                options.seconds_between_checkpoints,
                heart.told,
                lambda: stop() or heart.lost.is_set(),
            )
            outcome = train(trial, around)
            write_outcome(store.result_path(trial.id), outcome, logits=trial.logits)
        store.finish(trial.id, owner, outcome.about["seconds"])
    except StoppedError:
        store.release(trial.id, owner)
    except BaseException as error:
        _settle(store, trial, owner, error)


def _settle(store: Store, trial: Trial, owner: str, error: BaseException) -> None:
    """What a trial that did not end well leaves behind: it waits again, or has failed."""
    if is_full(error):
        with suppress(DamagedStoreError, OSError):
            store.release(trial.id, owner)
        message = f"the disk is full: {trial.label} was stopped and the store is whole; make room and resume"
        raise DiskFullError(errno.ENOSPC, message, str(store.folder)) from error
    if isinstance(error, Exception) and not isinstance(error, (DamagedStoreError, OSError)):
        store.fail(trial.id, owner, reason_of(error))
        return
    with suppress(DamagedStoreError, OSError):
        store.release(trial.id, owner)
    raise error


class _Heart:
    """Renews a claim while a trial is trained; `lost` is set once it is somebody else's."""

    def __init__(self, store: Store, trial: str, owner: str) -> None:
        self.store, self.trial, self.owner = store, trial, owner
        self.epoch = self.epochs = 0
        self.lost, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def told(self, epoch: int, epochs: int) -> None:
        """How far the training is."""
        self.epoch, self.epochs = epoch, epochs

    def _beat(self) -> None:
        while not self._ended.wait(min(1.0, self.store.lease / 4)):
            with suppress(DamagedStoreError, OSError):  # a busy or full disk: the lease allows for a few beats
                if not self.store.renew(self.trial, self.owner, self.epoch, self.epochs):
                    self.lost.set()

    def __enter__(self) -> _Heart:
        self._thread.start()
        return self

    def __exit__(self, *how: object) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def polite(*, twice: bool = True) -> Iterator[threading.Event]:
    """An event that the first interruption sets; the second one interrupts.

    Where `twice` is false it does not: a process that both a terminal and its parent interrupt was asked once.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def interrupted(number: int, frame: Any) -> None:
        if twice and stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def watched(store: Store, shown: Callable[[Store], Any] | None) -> Iterator[None]:
    """While something runs, a thread that shows how far it is."""
    ended = threading.Event()
    display = None if shown is None else shown(store)

    def watch() -> None:
        while not ended.wait(PAUSE):
            with suppress(DamagedStoreError, OSError):
                display.update()  # type: ignore[union-attr]

    thread = threading.Thread(target=watch, daemon=True)
    if display is not None:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if display is not None:
            thread.join()
            display.close()
