"""The bare worker: trains the trials in a file of JSON lines, with NumPy and torch alone.

    python -m calibrant.experiments.running.trial trials.jsonl results --device cuda --jobs 4 --minutes 25

Each trial that is finished becomes `results/<id>.npz`; what is there already is not done again, and several workers may
share a folder. `calibrant experiment plan` writes the file, `calibrant experiment collect` takes in the results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from calibrant.exceptions import CalibrationInputError, reason_of
from calibrant.experiments.running.claim_owners import locked
from calibrant.experiments.training.trainer import StoppedError, Surroundings, dataset, train
from calibrant.experiments.training.trial_outcomes import pack, read_outcome, sweep, write_outcome
from calibrant.experiments.training.trials import Trial, read_trials
from calibrant.files.writing import write_text

STALE = 30 * 60.0
"""Seconds after which a failed trial's note is no reason to leave it out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what can be trained in the time there is; 0 where every trial is done, 3 where some are left or failed.

    What all trials need is asked for first: data, and the folder that archives go to.
    """
    asked = _parser().parse_args(arguments)
    deadline = time.monotonic() + 60 * asked.minutes if asked.minutes else float("inf")
    folder = Path(asked.results)
    for needed in (folder, *([Path(asked.pack).parent] if asked.pack else [])):
        needed.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    trials = read_trials(asked.trials)
    for trial in [trial for trial in trials if trial.predictions is None][:1]:
        try:
            dataset(trial.data, asked.data)
        except CalibrationInputError as error:
            print(error, file=sys.stderr)
            return 3
    if asked.jobs > 1:
        _several(asked, deadline)
    else:
        _alone(trials, folder, asked, lambda: time.monotonic() > deadline)
    return _concluded(trials, folder, asked) if not asked.quiet else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.experiments.running.trial", description=__doc__.split("\n")[0]
    )
    parser.add_argument("trials", help="a file of trials, one JSON a line")
    parser.add_argument("results", help="the folder that results go to")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, .. (default: cpu)")
    parser.add_argument("--data", help="the folder that data lie in")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the trials (default: 1)")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long (default: never)")
    parser.add_argument("--checkpoint-seconds", type=float, default=120.0, help="seconds between checkpoints")
    parser.add_argument("--pack", metavar="PREFIX", help="put the results into PREFIX-1.zip, PREFIX-2.zip, ..")
    parser.add_argument("--pack-mib", type=float, default=15.0, help="the most that one archive holds (default: 15)")
    parser.add_argument("--quiet", action="store_true", help=argparse.SUPPRESS)
    return parser


def _several(asked: argparse.Namespace, deadline: float) -> None:
    """The same worker several times, each in a process of its own; they share the trials by locks."""
    command = [sys.executable, "-m", "calibrant.experiments.running.trial", asked.trials, asked.results, "--quiet"]
    command += ["--device", asked.device, "--checkpoint-seconds", str(asked.checkpoint_seconds)]
    command += ["--minutes", str((deadline - time.monotonic()) / 60)] if asked.minutes else []
    command += ["--data", asked.data] if asked.data else []
    workers = [subprocess.Popen(command) for _ in range(asked.jobs)]
    try:
        for worker in workers:
            worker.wait()
    except BaseException:
        for worker in workers:
            worker.terminate()
        raise


def _alone(trials: Sequence[Trial], folder: Path, asked: argparse.Namespace, over: Callable[[], bool]) -> None:
    for number, trial in enumerate(trials, start=1):
        if over():
            return
        if is_settled(trial, folder):
            continue
        with locked(folder / f".{trial.id}.lock") as is_mine:
            if is_mine and not is_settled(trial, folder):
                print(f"{number}/{len(trials)} {_attempt(trial, folder, asked, over)}: {trial.label}", flush=True)


def is_settled(trial: Trial, folder: Path) -> bool:
    """Whether a trial is done, or failed a short while ago."""
    note = folder / f"{trial.id}.failed.json"
    if note.exists() and time.time() - note.stat().st_mtime < STALE:
        return True
    path = folder / f"{trial.id}.npz"
    try:
        return path.exists() and Trial.from_json(read_outcome(path).description).id == trial.id
    except CalibrationInputError:
        return False


def _attempt(trial: Trial, folder: Path, asked: argparse.Namespace, over: Callable[[], bool]) -> str:
    """Train one trial; how it ended, in a word or two. A full disk ends the worker."""
    checkpoint = folder / "checkpoints" / f"{trial.id}.npz"
    note = folder / f"{trial.id}.failed.json"
    note.unlink(missing_ok=True)
    around = Surroundings(asked.device, asked.data, checkpoint, asked.checkpoint_seconds, stop=over)
    try:
        outcome = train(trial, around)
    except StoppedError as stopped:
        return f"stopped {stopped}"
    except OSError:
        raise
    except Exception as error:
        reason = reason_of(error)
        if "CUDA error" in reason:  # nothing works any more in a process whose device has failed
            raise
        write_text(note, json.dumps({"trial": json.loads(trial.to_json()), "reason": reason}))
        return f"failed ({reason})"
    write_outcome(folder / f"{trial.id}.npz", outcome, logits=trial.logits)
    checkpoint.unlink(missing_ok=True)
    hits = float((outcome.test.logits.argmax(1) == outcome.test.labels).mean())
    return f"done in {outcome.about['seconds']:.1f} s, test accuracy {hits:.4f}"


def _concluded(trials: Sequence[Trial], folder: Path, asked: argparse.Namespace) -> int:
    """Say how many are done, and pack them where asked to."""
    done = [path for trial in trials if (path := folder / f"{trial.id}.npz").exists()]
    notes = list(folder.glob("*.failed.json"))
    print(f"{len(done)} of {len(trials)} trials are done, {len(notes)} failed, {len(trials) - len(done)} are left")
    if asked.pack:
        for path in pack(done, Path(asked.pack), most=int(asked.pack_mib * 2**20)):
            print(f"packed: {path} ({path.stat().st_size:,} bytes)")
    return 0 if len(done) == len(trials) else 3


if __name__ == "__main__":
    sys.exit(main())
