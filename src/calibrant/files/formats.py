"""Files: prediction files as named arrays; the content tells the format, then the ending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns
from calibrant.files.csv import read_csv
from calibrant.files.inspect_logs import read_eval
from calibrant.files.jsonl import read_json, read_jsonl
from calibrant.files.npz import Archive, read_npy
from calibrant.files.parquet import read_parquet


def read_arrays(path: str | Path | InputFile) -> Columns:
    """The named arrays of a NPZ, NPY, CSV, Parquet or JSONL file, pipe or standard input ("-"), which gzip may pack.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "forecasts.csv")
    >>> _ = path.write_text("label,p\\n1,0.9\\n0,0.2\\n")
    >>> {name: array.tolist() for name, array in read_arrays(path).items()}
    {'label': [1, 0], 'p': [0.9, 0.2]}
    >>> folder.cleanup()
    """
    source = InputFile.of(path)
    with source.open() as file:
        start = file.read(_START)
    if not start:
        raise CalibrationInputError(str(source), "must not be empty", got="0 bytes")
    source = replace(source, ending=_ending(start, source))
    return _READERS[source.ending](source)


_START = 1 << 12
_READERS: dict[str, Callable[[InputFile], Columns]] = {
    ".npz": Archive,
    ".npy": read_npy,
    ".parquet": read_parquet,
    ".jsonl": read_jsonl,
    ".json": read_json,
    ".eval": read_eval,
    ".csv": read_csv,
    ".tsv": read_csv,
}
_MAGIC = {b"PK": ".npz", b"\x93NUMPY": ".npy", b"PAR1": ".parquet"}
_OTHER_ENDINGS = {".ndjson": ".jsonl", ".txt": ".csv"}


def _ending(start: bytes, source: InputFile) -> str:
    """The usual ending of the format: as the first bytes say, else the name; of what has none, as the text looks."""
    for magic, ending in _MAGIC.items():
        if start.startswith(magic):
            return ".eval" if (ending, source.ending) == (".npz", ".eval") else ending
    ending = _OTHER_ENDINGS.get(source.ending, source.ending)
    if ending in _MAGIC.values():
        raise CalibrationInputError(str(source), f"must be a {ending[1:]} file", got="other content")
    if ending in _READERS:
        return ending
    if not source.is_stream and (source.path is not None or ending):
        got = f"the ending {source.ending or '(none)'!r}"
        raise CalibrationInputError(str(source), "must be NPZ, NPY, CSV, Parquet or JSONL", got=got)
    header = start.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n")[0]
    return ".jsonl" if header.startswith(b"{") else ".tsv" if b"\t" in header and b"," not in header else ".csv"
