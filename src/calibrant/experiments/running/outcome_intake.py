"""Outcome intake: what was trained elsewhere comes into a store, each outcome checked first."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running.study_store import DONE, Store
from calibrant.experiments.training.trial_outcomes import Outcome, read_outcome, unpack, write_outcome
from calibrant.experiments.training.trials import Trial


@dataclass
class Collected:
    """How many outcomes were taken, how many were there already, and what was left out and why."""

    taken: int = 0
    known: int = 0
    refused: list[str] = field(default_factory=list)


def collect(store: Store, sources: Iterable[Path]) -> Collected:
    """Take outcomes from NPZ files, ZIP archives and folders of them; a damaged one hinders no other."""
    collected = Collected()
    with tempfile.TemporaryDirectory(dir=store.folder) as folder:
        for path in _files(sources, Path(folder), collected):
            try:
                _take(store, path, read_outcome(path), collected)
            except CalibrationInputError as error:
                collected.refused.append(str(error))
    return collected


def _files(sources: Iterable[Path], folder: Path, collected: Collected) -> Iterator[Path]:
    for source in sources:
        if source.is_dir():
            inside = [*source.glob("*.npz"), *source.glob("*.zip")]
            yield from _files(sorted(path for path in inside if not path.name.startswith(".")), folder, collected)
        elif source.suffix == ".zip":
            try:
                yield from unpack(source, folder)
            except (zipfile.BadZipFile, ValueError, EOFError) as reason:
                collected.refused.append(f"{source}: must be a whole ZIP archive, got {reason}")
        else:
            yield source


def _take(store: Store, path: Path, outcome: Outcome, collected: Collected) -> None:
    trial = Trial.from_json(outcome.description)
    states = {row.trial.id: row.state for row in store.rows()}
    if trial.id not in states:
        collected.refused.append(f"{path}: {trial.label} is no trial of this study")
    elif states[trial.id] == DONE and store.is_whole(trial.id):
        collected.known += 1
    else:
        write_outcome(store.result_path(trial.id), outcome, logits=trial.logits)
        store.adopt(trial.id, outcome.about.get("seconds"))
        collected.taken += 1
