"""Files: prediction files as named arrays; the content tells the format, then the ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns
from calibrant.files.csv import read_csv
from calibrant.files.jsonl import read_jsonl
from calibrant.files.npz import Archive, read_npy
from calibrant.files.parquet import read_parquet


def read_arrays(path: Path) -> Columns:
    """The named arrays of a NPZ, NPY, CSV, Parquet or JSONL file.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "forecasts.csv")
    >>> _ = path.write_text("label,p\\n1,0.9\\n0,0.2\\n")
    >>> {name: array.tolist() for name, array in read_arrays(path).items()}
    {'label': [1, 0], 'p': [0.9, 0.2]}
    >>> folder.cleanup()
    """
    with path.open("rb") as file:  # a missing file, a folder and a lack of permission speak for themselves
        start = file.read(8)
    if not start:
        raise CalibrationInputError(str(path), "must not be empty", got="0 bytes")
    return _reader(start, path)(path)


def _reader(start: bytes, path: Path) -> Callable[[Path], Columns]:
    ending = path.suffix.lower()
    if start.startswith(b"PK"):
        return Archive
    if start.startswith(b"\x93NUMPY"):
        return read_npy
    if start.startswith(b"PAR1"):
        return read_parquet
    if start.startswith(b"\x1f\x8b"):
        raise CalibrationInputError(str(path), "must not be compressed", got="a gzip file", hint="gunzip it first")
    if ending in (".npz", ".npy", ".parquet"):
        raise CalibrationInputError(str(path), f"must be a {ending[1:]} file", got="other content")
    if ending in (".jsonl", ".ndjson", ".json"):
        return read_jsonl
    if ending in (".csv", ".tsv", ".txt"):
        return read_csv
    raise CalibrationInputError(
        str(path), "must be NPZ, NPY, CSV, Parquet or JSONL", got=f"the ending {path.suffix or '(none)'!r}"
    )
