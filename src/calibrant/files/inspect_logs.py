"""Logs of Inspect: language models' answers with their scores, in .eval archives or JSON files."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns
from calibrant.specification import strict_json

ZSTANDARD = 93
"""The number of this way of packing in ZIP archives, which Python's own reader lacks."""
MOST_BYTES = 1 << 28
"""No sample of a log is larger."""
VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": math.nan}
"""Correct, partly so, incorrect, no answer."""

Sample = Mapping[str, Any]


def read_eval(source: InputFile) -> Columns:
    """The answers in a log of Inspect that is an archive (.eval)."""
    try:
        with source.open() as file, zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if each.filename.startswith("samples/")]
            return columns_of([_sample(member, archive, source) for member in members], source)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as reason:
        raise CalibrationInputError(str(source), "must be a whole log of Inspect", got=str(reason)) from None


def columns_of(samples: list[Any], source: InputFile) -> Columns:
    """Of each sample: whether the answer was right, by the first scorer, how sure the model was, and what it is about.

    How sure: the `confidence` that a scorer noted; else the probability of the token that is the answer; else that of
    all tokens together: the first of these that any sample has.
    """
    if not samples:
        raise CalibrationInputError(str(source), "must have samples", got="none")
    try:
        columns, kind = _columns(samples, source)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as reason:
        if isinstance(reason, CalibrationInputError):
            raise
        raise CalibrationInputError(str(source), "must be a log of Inspect", got=str(reason)) from None
    again = "id" if len(np.unique(columns["id"])) < len(samples) else None
    return Columns(source, columns, lambda name: columns[name], kind=kind, groups=again)


def _columns(samples: list[Any], source: InputFile) -> tuple[dict[str, Any], str]:
    scores: list[Any] = [next(iter((sample.get("scores") or {}).values()), {}) for sample in samples]
    kind, sure = _confidence(list(zip(samples, scores, strict=True)), source)
    columns: dict[str, Any] = {
        "confidence": np.array([math.nan if value is None else value for value in sure]),
        "correct": np.array([_right(score, source) for score in scores]),
        "id": np.array([str(sample.get("id")) for sample in samples]),
        "epoch": np.array([int(sample.get("epoch") or 1) for sample in samples]),
    }
    for name in dict.fromkeys(name for sample in samples for name in sample.get("metadata") or {}):
        values = [(sample.get("metadata") or {}).get(name) for sample in samples]
        if name not in columns and all(isinstance(value, str) for value in values):
            columns[name] = np.array(values)
    return columns, kind


def _confidence(pairs: list[tuple[Any, Any]], source: InputFile) -> tuple[str, list[float | None]]:
    """How sure the model was of each answer, and in what sense."""
    for words, confidence in KINDS.items():
        sure = [confidence(sample, score) for sample, score in pairs]
        if any(value is not None for value in sure):
            return words, sure
    hint = "run inspect with --logprobs, or let a scorer note metadata={'confidence': ...}"
    raise CalibrationInputError(str(source), "must say how sure the model was", got="answers alone", hint=hint)


def _right(score: Mapping[str, Any], source: InputFile) -> float:
    value = score.get("value", "N")
    number = VALUES.get(value) if isinstance(value, str) else value
    if isinstance(number, (int, float)) and (number != number or 0 <= number <= 1):
        return float(number)
    raise CalibrationInputError(str(source), "must score answers C, P, I or N, or from 0 to 1", got=repr(value)[:60])


def _stated(sample: Sample, score: Mapping[str, Any]) -> float | None:
    value = (score.get("metadata") or {}).get("confidence")
    return float(value) if isinstance(value, (int, float)) else None


def _of_token(sample: Sample, score: Mapping[str, Any]) -> float | None:
    answer = str(score.get("answer") or "").strip()
    tokens = [each["logprob"] for each in _tokens(sample) if answer and str(each["token"]).strip() == answer]
    return math.exp(tokens[-1]) if tokens else None


def _of_text(sample: Sample, score: Mapping[str, Any]) -> float | None:
    tokens = [each["logprob"] for each in _tokens(sample)]
    return math.exp(sum(tokens)) if tokens else None


KINDS: dict[str, Callable[[Sample, Mapping[str, Any]], float | None]] = {
    "given the confidence that a scorer noted": _stated,
    "given the probability of the answer's token as confidence": _of_token,
    "given the probability of the whole text as confidence": _of_text,
}
"""Ways to tell how sure a model was, in the order in which they are tried."""


def _tokens(sample: Sample) -> Iterator[Mapping[str, Any]]:
    choices = (sample.get("output") or {}).get("choices") or [{}]
    yield from ((choices[0].get("logprobs") or {}).get("content")) or ()


def _sample(member: zipfile.ZipInfo, archive: zipfile.ZipFile, source: InputFile) -> Sample:
    if member.file_size > MOST_BYTES:
        raise CalibrationInputError(
            str(source), f"must have samples of at most {MOST_BYTES:,} bytes", got=member.filename
        )
    content = _unpacked(member, archive) if member.compress_type == ZSTANDARD else archive.read(member)
    try:
        sample = strict_json.read(content.decode())
    except ValueError as reason:
        raise CalibrationInputError(str(source), f"must hold JSON in {member.filename}", got=str(reason)) from None
    if not isinstance(sample, dict):
        raise CalibrationInputError(str(source), f"must hold an object in {member.filename}", got=type(sample).__name__)
    return sample


def _unpacked(member: zipfile.ZipInfo, archive: zipfile.ZipFile) -> bytes:
    """A member that is packed by Zstandard, which pyarrow unpacks; its checksum is compared."""
    import pyarrow

    file: Any = archive.fp
    file.seek(member.header_offset + 26)
    name, extra = int.from_bytes(file.read(2), "little"), int.from_bytes(file.read(2), "little")
    file.seek(name + extra, 1)
    packed = file.read(member.compress_size)
    try:
        content = pyarrow.decompress(packed, member.file_size, codec="zstd", asbytes=True)
    except (pyarrow.ArrowException, OSError) as reason:
        raise zipfile.BadZipFile(f"{member.filename}: {reason}") from None
    if zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile(f"{member.filename}: its checksum differs")
    return content
