"""Collecting: outcomes that were made elsewhere come into a store, each checked first."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.trials import Trial
from calibrant.experiments.running.outcomes import Outcome, read_outcome, unpack, write_outcome
from calibrant.experiments.running.store import DONE, Store


@dataclass
class Collected:
    """How many outcomes were taken, how many were there already, and what was left out and why."""

    taken: int = 0
    known: int = 0
    refused: list[str] = field(default_factory=list)


def collect(store: Store, sources: Iterable[Path]) -> Collected:
    """Take outcomes from NPZ files, ZIP archives and folders of them; a damaged one hinders no other."""
    made = Collected()
    with tempfile.TemporaryDirectory(dir=store.folder) as folder:
        for path in _files(sources, Path(folder), made):
            try:
                _take(store, path, read_outcome(path), made)
            except CalibrationInputError as error:
                made.refused.append(str(error))
    return made


def _files(sources: Iterable[Path], folder: Path, made: Collected) -> Iterator[Path]:
    for source in sources:
        if source.is_dir():
            inside = [*source.glob("*.npz"), *source.glob("*.zip")]
            yield from _files(sorted(path for path in inside if not path.name.startswith(".")), folder, made)
        elif source.suffix == ".zip":
            try:
                yield from unpack(source, folder)
            except (zipfile.BadZipFile, ValueError, EOFError) as reason:
                made.refused.append(f"{source}: must be a whole ZIP archive, got {reason}")
        else:
            yield source


def _take(store: Store, path: Path, outcome: Outcome, made: Collected) -> None:
    trial = Trial.from_json(outcome.description)
    states = {row.trial.id: row.state for row in store.rows()}
    if trial.id not in states:
        made.refused.append(f"{path}: {trial.label} is no trial of this study")
    elif states[trial.id] == DONE and store.is_whole(trial.id):
        made.known += 1
    else:
        write_outcome(store.result_path(trial.id), outcome, logits=trial.logits)
        store.adopt(trial.id, outcome.about.get("seconds"))
        made.taken += 1
