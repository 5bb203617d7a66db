"""CIFAR's files: pictures of 3 x 32 x 32 in the binary or the Python version, unpacked or still in the archive."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import BROKEN, exactly, refuse_size
from calibrant.experiments.training.datasets.pickled import array_of, read_pickle
from calibrant.experiments.training.datasets.source import Rows, checked_labels

_PIXELS = 3 * 32 * 32
_MOST_BYTES = 256 << 20
"""No one file of these sets is larger: the largest has 154 MB."""


@dataclass(frozen=True)
class Version:
    """One of the published forms of a set: its archive, its folder, its files, and how one of them is read."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    parse: Callable[[bytes, str], tuple[Array, Array]]
    """From a file's content and its name to pixels (n, 3072) and labels (n,)."""


def read_version(root: Path, versions: Sequence[Version], *, dataset: str, classes: int) -> tuple[Rows, Rows]:
    """The training and the test rows of the first version that the folder holds, unpacked or archived."""
    for version in versions:
        contents = _contents(root, version)
        if contents is not None:
            train, test = (_rows(version, contents, names, classes) for names in (version.train, version.test))
            return train, test
    raise CalibrationInputError(
        dataset,
        f"needs {' or '.join(version.archive for version in versions)}, or its folder unpacked",
        got=f"none in {root}",
        hint="it is published by the University of Toronto (Krizhevsky)",
    )


def parse_binary(label_bytes: int) -> Callable[[bytes, str], tuple[Array, Array]]:
    """How the binary version is read: records of some label bytes, of which the last counts, and the pixels."""

    def parse(content: bytes, name: str) -> tuple[Array, Array]:
        record = label_bytes + _PIXELS
        if not content or len(content) % record:
            raise CalibrationInputError(name, f"must be whole records of {record} bytes", got=f"{len(content):,} bytes")
        records = np.frombuffer(content, np.uint8).reshape(-1, record)
        return records[:, label_bytes:], records[:, label_bytes - 1]

    return parse


def parse_python(label_key: bytes) -> Callable[[bytes, str], tuple[Array, Array]]:
    """How the Python version is read: a dictionary with an array `data` and a list of labels, never unpickled."""

    def parse(content: bytes, name: str) -> tuple[Array, Array]:
        batch = read_pickle(content, name)
        if not isinstance(batch, dict) or not {b"data", label_key} <= batch.keys():
            raise CalibrationInputError(name, f"must hold data and {label_key.decode()}", got=type(batch).__name__)
        labels = batch[label_key]
        if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
            raise CalibrationInputError(name, "must have a list of small numbers as labels", got="another")
        return array_of(batch[b"data"], name), np.array(labels, np.uint8)

    return parse


def _rows(version: Version, contents: dict[str, bytes], names: tuple[str, ...], classes: int) -> Rows:
    pixels, labels = zip(*(_checked(version, contents.pop(name), name, classes) for name in names), strict=True)
    return Rows(np.concatenate(pixels).reshape(-1, 3, 32, 32), np.concatenate(labels))


def _checked(version: Version, content: bytes, name: str, classes: int) -> tuple[Array, Array]:
    pixels, labels = version.parse(content, name)
    if pixels.ndim != 2 or pixels.shape[1] != _PIXELS or len(pixels) != len(labels) or not len(labels):
        raise CalibrationInputError(
            name,
            f"must hold rows of {_PIXELS} bytes, each with a label",
            got=f"{pixels.shape} and {len(labels)} labels",
        )
    return pixels, checked_labels(labels, classes, name)


def _contents(root: Path, version: Version) -> dict[str, bytes] | None:
    """The content of the files by their names; None where the version is not there."""
    for folder in (root / version.folder, root):
        if all((folder / name).is_file() for name in version.train + version.test):
            return {name: _file(folder / name) for name in version.train + version.test}
    archive = root if root.name == version.archive else root / version.archive
    return _unpacked(archive, version) if archive.is_file() else None


def _file(path: Path) -> bytes:
    _refuse_large(path, path.stat().st_size, path.name)
    with path.open("rb") as file:
        return exactly(file, path.stat().st_size, path)


def _unpacked(archive: Path, version: Version) -> dict[str, bytes]:
    """The wanted members of an archive, found by name and read into memory; nothing is written to the disk."""
    wanted = {f"{version.folder}/{name}": name for name in version.train + version.test}
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                _refuse_large(archive, member.size, member.name)
                name = wanted.get(member.name.removeprefix("./"))
                file = tar.extractfile(member) if name is not None and member.isfile() else None
                if name is not None and file is not None:
                    contents[name] = exactly(file, member.size, archive)
    except (tarfile.TarError, *BROKEN) as reason:
        raise CalibrationInputError(str(archive), "must be a whole archive", got=str(reason)) from None
    missing = [member for member, name in wanted.items() if name not in contents]
    if missing:
        raise CalibrationInputError(str(archive), f"must hold {missing[0]}", got="none")
    return contents


def _refuse_large(path: Path, size: int, name: str) -> None:
    if size > _MOST_BYTES:
        raise CalibrationInputError(str(path), "must hold files of a reasonable size", got=f"{size:,} bytes in {name}")
    refuse_size(path, size)
