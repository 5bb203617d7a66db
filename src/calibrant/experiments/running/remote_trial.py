"""The remote trial: what a worker of a cluster does for one trial; it has neither the store nor its folder."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import calibrant
from calibrant.exceptions import reason_of
from calibrant.experiments.training.trainer import StoppedError, Surroundings, dataset, train
from calibrant.experiments.training.trial_outcomes import Outcome, write_outcome
from calibrant.experiments.training.trials import Trial

DONE, STOPPED, FAILED, UNFIT = "done", "stopped", "failed", "unfit"
"""How it ends: with an outcome, early, with a reason that is the trial's, or with one that is the worker's."""
PAUSE = 1.0
"""Seconds between words of how far a trial is, and between looks whether it may begin."""
STALE = 7 * 24 * 3600.0
"""Seconds after which a worker's own checkpoint, whose trial was finished elsewhere, is removed."""

Reply = tuple[str, Any, str]
"""How it ended, the outcome's file or the reason, and the worker's address."""


@dataclass(frozen=True)
class RemoteTrial:
    """All that a worker is told; plain values, which travel anywhere."""

    description: str
    """The trial's JSON."""
    version: str
    device: str
    data: str | None
    checkpoints: str
    """The store's folder of checkpoints, which the worker may or may not reach."""
    seconds_between_checkpoints: float
    topic: str
    """Where to tell of epochs."""

    def task(self) -> Callable[[], Reply]:
        """The trial as a function that travels whole: a scheduler, or a worker that is unfit, need not know calibrant.

        >>> RemoteTrial("{}", "0", "cpu", None, "", 60.0, "").task().__name__
        'carried_out'
        """
        told = asdict(self)

        def carried_out() -> Reply:
            import distributed

            try:
                from calibrant.experiments.running import remote_trial
            except ImportError as missing:
                reason = f"{missing}; install calibrant {told['version']} there"
                return "unfit", reason, distributed.get_worker().address
            return remote_trial.carry_out(remote_trial.RemoteTrial(**told))

        return carried_out


def carry_out(remote: RemoteTrial) -> Reply:
    """On a worker: train the trial, or go on with it, and send back the file that the bare worker would write."""
    import distributed

    worker = distributed.get_worker()
    place = _Place(worker, worker.get_current_task(), remote.topic)
    with _alone(place) as free:
        how, what = _carried_out(remote, place) if free else (STOPPED, "before it began")
    return how, what, worker.address


_ONE = threading.Lock()
"""Torch's settings and its generator belong to the process: it trains one trial at a time."""


@contextmanager
def _alone(place: _Place) -> Iterator[bool]:
    """Whether nothing else is trained in this process from now on; False where the trial is no longer wanted."""
    while not (free := _ONE.acquire(timeout=PAUSE)):
        if place.is_unwanted():
            break
    try:
        yield free
    finally:
        if free:
            _ONE.release()


def _carried_out(remote: RemoteTrial, place: _Place) -> tuple[str, Any]:
    trial = Trial.from_json(remote.description)
    reason = _unfit(remote, trial)
    if reason is not None:
        return UNFIT, reason
    try:
        content = _content(train(trial, _surroundings(remote, trial, place)), trial, place.folder)
        place.checkpoint(trial).unlink(missing_ok=True)
        return DONE, content
    except StoppedError as stopped:
        return STOPPED, str(stopped)
    except Exception as error:
        reason = reason_of(error)
        return (UNFIT if isinstance(error, OSError) or "CUDA error" in reason else FAILED), reason


def _unfit(remote: RemoteTrial, trial: Trial) -> str | None:
    """Why this worker can train no trial of the study; None where it can."""
    if calibrant.__version__ != remote.version:
        return f"it has calibrant {calibrant.__version__}; install {remote.version} there"
    if trial.predictions is not None:
        return None
    try:
        import torch
    except ImportError:
        return "it has no torch; pip install 'calibrant[experiments]' there"
    try:
        torch.zeros(1, device=remote.device)
        dataset(trial.data, remote.data)
    except Exception as error:
        return str(error) if isinstance(error, OSError) else reason_of(error)
    return None


def _surroundings(remote: RemoteTrial, trial: Trial, place: _Place) -> Surroundings:
    """What the training needs; its checkpoint is in the store where that can be reached, else in the worker's place."""
    shared = Path(remote.checkpoints)
    reached = shared.is_dir() and os.access(shared, os.W_OK)
    checkpoint = shared / f"{trial.id}.npz" if reached else place.checkpoint(trial)
    between = remote.seconds_between_checkpoints
    return Surroundings(remote.device, remote.data, checkpoint, between, place.teller(trial.id), place.is_unwanted)


def _content(outcome: Outcome, trial: Trial, folder: Path) -> bytes:
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        path = Path(beside, f"{trial.id}.npz")
        write_outcome(path, outcome, logits=trial.logits)
        return path.read_bytes()


@dataclass(frozen=True)
class _Place:
    """A worker of the cluster, with the task that it does."""

    worker: Any
    task: Any
    topic: str

    @property
    def folder(self) -> Path:
        return Path(self.worker.local_directory)

    def checkpoint(self, trial: Trial) -> Path:
        """A file beside the worker's own folder, which goes with the worker: the next one here finds it."""
        folder = self.folder.parent / "calibrant-checkpoints"
        for path in folder.glob("*.npz"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()
        return folder / f"{trial.id}.npz"

    def is_unwanted(self) -> bool:
        """Whether nobody waits for the task any more: it was cancelled, who asked for it left, or the worker ends."""
        known = self.worker.state.tasks.get(self.task)
        return known is None or known.state != "executing" or self.worker.status.name in ("closing", "closed", "failed")

    def teller(self, trial: str) -> Callable[[int, int], None]:
        """What hears of epochs, and tells of some."""
        told = [0.0]

        def tell(epoch: int, epochs: int) -> None:
            if time.monotonic() - told[0] > PAUSE:
                told[0] = time.monotonic()
                self.worker.log_event(self.topic, [trial, epoch, epochs])

        return tell
