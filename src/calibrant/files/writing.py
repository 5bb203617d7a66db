"""Writing: files made beside their name and renamed, so that a name never holds half a file."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.files.columns import LABELS, MULTILABEL
from calibrant.files.npz import write_arrays
from calibrant.text import safe_cell


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name only when all of it is on the disk.

    >>> folder = tempfile.TemporaryDirectory()
    >>> with whole_file(Path(folder.name, "a.txt")) as file:
    ...     _ = file.write(b"all")
    >>> os.listdir(folder.name)
    ['a.txt']
    >>> folder.cleanup()
    """
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Text to a file, whole or not at all.

    >>> folder = tempfile.TemporaryDirectory()
    >>> write_text(Path(folder.name, "a.txt"), "all")
    >>> Path(folder.name, "a.txt").read_text()
    'all'
    >>> folder.cleanup()
    """
    with whole_file(Path(path)) as file:
        file.write(text.encode("utf-8"))


def write_npz(path: Path, probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array]) -> None:
    """Arrays `probs` and `classes` (an event: `p`; a confidence: that), and the columns."""
    named = {"probs": probabilities, "classes": np.array(classes)}
    named = named_forecasts(probabilities, classes, columns) if probabilities.ndim == 1 else named
    with whole_file(path) as file:
        write_arrays(file, {**named, **columns})


def write_csv(path: Path, probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array]) -> None:
    """The columns, then `p_<class>` (an event: `p`; a confidence: that), every digit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    forecasts = named_forecasts(probabilities, classes, columns)
    writer.writerow([safe_cell(name) for name in (*columns, *forecasts)])
    for index, row in enumerate(np.stack(list(forecasts.values()), axis=1).tolist()):
        writer.writerow([*(_cell(column[index]) for column in columns.values()), *map(repr, row)])
    write_text(path, text.getvalue())


def labelled(columns: Mapping[str, Array], classes: Sequence[str], *, together: bool) -> Mapping[str, Array]:
    """The columns with independent labels together in one matrix `multilabel`, or each in a column `y_<label>`.

    >>> list(labelled({"multilabel": np.array([[1, 0]])}, ["cat", "dog"], together=False))
    ['y_cat', 'y_dog']
    """
    truth = [f"y_{name}" for name in classes]
    moved = truth if together else [MULTILABEL]
    if not set(moved) <= set(columns) or set(LABELS) & set(columns):
        return columns
    labels = {MULTILABEL: np.column_stack([columns[name] for name in moved])}
    rest = {name: column for name, column in columns.items() if name not in moved}
    return (labels if together else dict(zip(truth, labels[MULTILABEL].T, strict=True))) | rest


def named_forecasts(
    probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """The columns of a table of forecasts: `p_<class>` or `p_<label>`, of an event `p`, `confidence` beside `correct`.

    >>> list(named_forecasts(np.array([[.75, .25]]), ["cat", "dog"]))
    ['p_cat', 'p_dog']
    """
    if probabilities.ndim == 1:
        return {"confidence" if "correct" in (columns or {}) else "p": probabilities}
    return {f"p_{name}": column for name, column in zip(classes, probabilities.T, strict=True)}


def _cell(value: Any) -> str:
    """Text made safe; a number as it is, so that -1 stays one."""
    return safe_cell(value) if isinstance(value, str) else str(value)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
