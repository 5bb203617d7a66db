"""Outcomes: what came of a trial, and the NPZ file that keeps it; none is believed before it is checked."""

from __future__ import annotations

import json
import shutil
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.trials import Trial
from calibrant.files import npz
from calibrant.files.writing import whole_file
from calibrant.kernels.totals import Floats
from calibrant.predictions import Predictions

SPLITS = ("train", "validation")
"""What is measured after epochs, in the order of a curve's second axis."""
IN_THE_MAKING = 3600.0
"""Seconds for which a file that is not whole may still become so."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Logits (n, K) on rows that were not trained on, and their labels."""

    logits: Array
    labels: Array


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Logits (epochs, n, K) after the measured epochs: of the measured training rows, whose labels are here, and of the
    validation rows. In 16 bits, or in 32 from the first epoch on whose logits are too large for that.

    >>> first = Snapshots.of(np.ones((3, 2)), np.zeros((4, 2)), labels=np.array([0, 1, 1]))
    >>> first.followed_by(first).train.shape, first.train.dtype
    ((2, 3, 2), dtype('float16'))
    """

    train: Array
    validation: Array
    labels: Array

    @classmethod
    def of(cls, train: Array, validation: Array, *, labels: Array) -> Snapshots:
        """Those of one epoch, from logits (n, K)."""
        return cls(narrowed(train, "float16")[None], narrowed(validation, "float16")[None], labels)

    def followed_by(self, later: Snapshots) -> Snapshots:
        """These, and those of a later epoch."""
        train = np.concatenate([self.train, later.train])
        return Snapshots(train, np.concatenate([self.validation, later.validation]), self.labels)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a trial: answers on validation and test rows, metrics after epochs, and what else was kept then.

    >>> rows = Answers(np.array([[2.0, 0.0]]), np.array([0]))
    >>> Outcome("{}", rows, rows, ("cat", "dog")).predictions("test").probabilities.round(3).tolist()
    [[0.881, 0.119]]
    """

    description: str
    """The trial's JSON."""
    validation: Answers
    test: Answers
    classes: tuple[str, ...]
    hierarchy: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """The metrics of the curves."""
    epochs: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """After which epochs they were measured, counted from 1."""
    curves: Floats = field(default_factory=lambda: np.zeros((0, 2, 0)))
    """(epochs, train and validation, metrics)."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Device, versions and seconds: what may differ when nothing else does."""
    kept: Snapshots | None = None
    """Logits after epochs, where the study asked for them."""

    def predictions(self, split: str) -> Predictions:
        """The answers on "validation" or "test" rows, with their classes' names."""
        answers: Answers = getattr(self, split)
        return self._named(answers.labels, answers.logits)

    def over_training(self, split: str) -> Iterator[tuple[int, Predictions]]:
        """Measured epochs and the answers then, on "train" or "validation" rows; none where none were kept."""
        if self.kept is None:
            return
        labels = self.kept.labels if split == "train" else self.validation.labels
        for epoch, logits in zip(self.epochs.tolist(), getattr(self.kept, split), strict=True):
            yield epoch, self._named(labels, logits)

    def _named(self, labels: Array, logits: Array) -> Predictions:
        wide = logits.astype(np.float32) if logits.dtype == np.float16 else logits
        return Predictions.from_logits(labels, wide, classes=list(self.classes), copy=False)


def pooled(outcomes: Sequence[Outcome]) -> Outcome:
    """What an ensemble answers: the logarithms of the mean probabilities of networks that answer the same rows.

    References: Lakshminarayanan, Pritzel & Blundell (2017), section 2.4.

    >>> rows = [Answers(np.log([[chance, 1 - chance]]), np.array([0])) for chance in (0.9, 0.5)]
    >>> together = pooled([Outcome("{}", each, each, ("cat", "dog")) for each in rows])
    >>> together.predictions("test").probabilities.round(3).tolist()
    [[0.7, 0.3]]
    """
    validation, test = (_pooled([getattr(each, split) for each in outcomes]) for split in ("validation", "test"))
    return Outcome(outcomes[0].description, validation, test, outcomes[0].classes, outcomes[0].hierarchy)


def _pooled(several: Sequence[Answers]) -> Answers:
    labels = several[0].labels
    if any(not np.array_equal(each.labels, labels) for each in several):
        got = "others: runs of given predictions must share a validation file, or share and seed"
        raise CalibrationInputError("ensemble", "must be of networks that answer the same rows", got=got)
    logits = np.stack([each.logits.astype(np.float64) for each in several])
    logs = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return Answers(np.logaddexp.reduce(logs, axis=0) - np.log(len(several)), labels)


def write_outcome(path: Path, outcome: Outcome, *, logits: str = "float32") -> None:
    """Keep an outcome: the file has its name only when all of it is on the disk.

    Logits too large for 16 bits are kept in 32.
    """
    meta = {
        "trial": json.loads(outcome.description),
        "classes": list(outcome.classes),
        "hierarchy": outcome.hierarchy,
        "names": list(outcome.names),
        "about": dict(outcome.about),
    }
    arrays: dict[str, Any] = {"meta": np.array(json.dumps(meta)), "epochs": outcome.epochs, "curves": outcome.curves}
    for split in ("validation", "test"):
        answers: Answers = getattr(outcome, split)
        arrays[f"{split}_logits"] = narrowed(answers.logits, logits)
        arrays[f"{split}_labels"] = answers.labels.astype(np.int32)
    write_arrays(path, {**arrays, **snapshot_arrays(outcome.kept)})


def read_outcome(path: Path) -> Outcome:
    """An outcome from its file, checked: whole, without objects, with finite logits that fit the labels."""
    archive = npz.Archive(path)
    try:
        meta = json.loads(str(archive["meta"]))
        outcome = Outcome(
            Trial(**meta["trial"]).to_json(),
            Answers(archive["validation_logits"], archive["validation_labels"].astype(np.int64)),
            Answers(archive["test_logits"], archive["test_labels"].astype(np.int64)),
            tuple(meta["classes"]),
            {
                level: {name: tuple(classes) for name, classes in groups.items()}
                for level, groups in meta["hierarchy"].items()
            },
            tuple(meta["names"]),
            archive["epochs"],
            archive["curves"],
            meta["about"],
            snapshots_in(archive),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as reason:
        raise CalibrationInputError(str(path), "must be the outcome of a trial", got=str(reason)) from None
    _check(outcome, path)
    return outcome


def snapshot_arrays(kept: Snapshots | None) -> dict[str, Array]:
    """Snapshots as arrays by the names that files know them by; none where none were kept."""
    return {} if kept is None else {f"kept_{name}": getattr(kept, name) for name in Snapshots.__dataclass_fields__}


def snapshots_in(arrays: Mapping[str, Array]) -> Snapshots | None:
    """The snapshots among the arrays of a file."""
    if "kept_labels" not in arrays:
        return None
    return Snapshots(*(arrays[f"kept_{name}"] for name in Snapshots.__dataclass_fields__))


def narrowed(logits: Array, kind: str) -> Array:
    """Logits as "float16" or "float32" numbers; those too large for 16 bits take 32."""
    if kind == "float16" and np.abs(logits).max(initial=0.0) <= np.finfo(np.float16).max:
        return logits.astype(np.float16)
    return logits.astype(np.float32)


def write_arrays(path: Path, arrays: Mapping[str, Any], *, small: bool = True) -> None:
    """Arrays to a NPZ file, whole or not at all; compressed where it may be small.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder, "a.npz"), {"a": np.arange(2)})
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.npz']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        npz.write_arrays(file, arrays, compressed=small)


def pack(files: Iterable[Path], prefix: Path, *, most: int = 15 << 20) -> list[Path]:
    """Files in as few ZIP archives of at most so many bytes as fit one after the other: prefix-1.zip, prefix-2.zip, ..

    For machines that hand back only a few files of limited size.
    """
    archives: list[Path] = []
    for number, group in enumerate(_groups(sorted(files), most), start=1):
        path = prefix.with_name(f"{prefix.name}-{number}.zip")
        with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
            for outcome in group:
                archive.write(outcome, outcome.name)
        archives.append(path)
    return archives


def unpack(path: Path, folder: Path) -> list[Path]:
    """The NPZ files of an archive that `pack` made, into a folder; other names and too large files are left out."""
    files: list[Path] = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = Path(member.filename).name
            if name != member.filename or not name.endswith(".npz") or member.file_size > 1 << 30:
                continue
            with archive.open(member) as source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target)
            files.append(folder / name)
    return files


def sweep(folder: Path) -> None:
    """Remove what killed processes left beside their files; what is young may still be in the making."""
    for path in folder.glob(".*.npz.*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > IN_THE_MAKING:
                path.unlink()


def _groups(files: list[Path], most: int) -> Iterator[list[Path]]:
    group: list[Path] = []
    size = 0
    for path in files:
        room = path.stat().st_size + 2 * len(path.name) + 200  # the headers of an archive's member
        if group and size + room > most:
            yield group
            group, size = [], 0
        group.append(path)
        size += room
    if group:
        yield group


def _check(outcome: Outcome, path: Path) -> None:
    for split in ("validation", "test"):
        answers: Answers = getattr(outcome, split)
        n, classes = len(answers.labels), len(outcome.classes)
        if answers.logits.shape != (n, classes) or answers.logits.dtype.kind != "f" or n == 0:
            raise CalibrationInputError(
                str(path), f"must have {split} logits ({n}, {classes})", got=str(answers.logits.shape)
            )
        if not np.isfinite(answers.logits).all():
            raise CalibrationInputError(str(path), f"must have finite {split} logits", got="others")
        if answers.labels.min() < 0 or answers.labels.max() >= classes:
            raise CalibrationInputError(str(path), f"must have {split} labels in 0..{classes - 1}", got="others")
    shape = (len(outcome.epochs), len(SPLITS), len(outcome.names))
    if outcome.curves.shape != shape:
        raise CalibrationInputError(str(path), f"must have curves {shape}", got=str(outcome.curves.shape))
    if outcome.kept is not None:
        _check_kept(outcome, outcome.kept, path)


def _check_kept(outcome: Outcome, kept: Snapshots, path: Path) -> None:
    epochs, classes = len(outcome.epochs), len(outcome.classes)
    for split, n in (("train", len(kept.labels)), ("validation", len(outcome.validation.labels))):
        logits: Array = getattr(kept, split)
        if logits.shape != (epochs, n, classes) or logits.dtype.kind != "f":
            expected = f"must have kept {split} logits ({epochs}, {n}, {classes})"
            raise CalibrationInputError(str(path), expected, got=str(logits.shape))
        if not np.isfinite(logits).all():
            raise CalibrationInputError(str(path), f"must have finite kept {split} logits", got="others")
    if kept.labels.dtype.kind not in "iu" or kept.labels.min(initial=0) < 0 or kept.labels.max(initial=0) >= classes:
        raise CalibrationInputError(str(path), f"must have kept labels in 0..{classes - 1}", got="others")
