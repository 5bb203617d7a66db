"""Columns: the named arrays of a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.door.arrays import DROP, MISSING, Array, absent
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError

ROLES = {"y_true": "labels", "correct": "labels"}
ROLES |= dict.fromkeys(("y_proba", "logits", "confidence", "probs"), "forecasts")
"""What of a file a parameter of `Predictions` is."""
MULTILABEL = "multilabel"
"""Where a matrix of independent labels is: 0 or 1 of each, beside their probabilities in `probs`."""
_ROW = re.compile(r"row (\d+)")


class Columns(Mapping[str, Array]):
    """The named arrays of a file, each checked when it is asked for: what nobody needs may be as it is."""

    def __init__(
        self,
        source: InputFile,
        raw: Mapping[str, Any],
        read: Callable[[str], Array],
        read_numbers: Callable[[str], Array] | None = None,
        read_present: Callable[[str, bool], tuple[Array, list[bool]]] | None = None,
        kind: str | None = None,
        groups: str | None = None,
        lines: Sequence[int] | None = None,
    ) -> None:
        """`kind` says, in words, what forecasts a log has that could have been others; `groups` is a column whose rows
        belong together, such as the answers to one question; `lines` are those of a text that the rows stand on."""
        self.source, self.raw, self.read = source, raw, read
        self.read_numbers = read_numbers or read
        self.read_present = read_present
        self.kind, self.groups, self.lines = kind, groups, lines

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __contains__(self, name: object) -> bool:  # without reading the column
        return name in self.raw

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, name: str) -> Array:
        if name not in self.raw:
            raise KeyError(name)
        return self.read(name)

    def sparse(self, name: str, *, numeric: bool = False) -> Array:
        """A column in which values may be missing: they are nan among numbers, and MISSING among text."""
        if self.read_present is None or name not in self.raw:
            return self.read_numbers(name) if numeric else self[name]
        values, present = self.read_present(name, numeric)
        if all(present):
            return values
        filler = np.array(MISSING if values.dtype.kind == "U" else np.nan)
        column = np.full((len(present), *values.shape[1:]), filler, np.result_type(values, filler))
        column[np.array(present)] = values
        return column

    def whole(self, name: str, *, numeric: bool = False) -> Array:
        """A column in which no value may be missing; the refusal of one where some are says what to do about it."""
        try:
            return self.read_numbers(name) if numeric else self[name]
        except CalibrationInputError as error:
            if error.hint is not None or not self._has_gaps_alone(name, numeric=numeric):
                raise
            raise CalibrationInputError(
                error.parameter, error.expected, got=error.got, where=error.where, hint=DROP
            ) from None

    def _has_gaps_alone(self, name: str, *, numeric: bool) -> bool:
        """Whether a column would do if values may be missing."""
        try:
            self.sparse(name, numeric=numeric)
        except CalibrationInputError:
            return False
        return True

    def found_at(self, where: str | None) -> str | None:
        """A place such as "row 2" as people find it in the file: in a text by its line, since its header is one."""
        row = None if where is None else _ROW.match(where)
        if row is None or self.lines is None:
            return where
        return f"line {self.lines[int(row[1])]}{row.string[row.end() :]}"

    def loose(self, name: str, n: int) -> Array | None:
        """A column of n values as numbers or else as text; None where it is no such column."""
        try:
            array = self[name]
        except CalibrationInputError:
            values = self.raw[name]
            values = values.to_pylist() if hasattr(values, "to_pylist") else values
            if not isinstance(values, list) or any(isinstance(value, (list, dict)) for value in values):
                return None
            array = np.array([str(value) for value in values])
        return array if array.shape == (n,) and array.dtype.kind in "fiubU" else None


def refuse_twice(names: list[str], source: InputFile) -> None:
    """Refuse names of which one stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CalibrationInputError(str(source), "must name each column once", got=f"{name!r} twice")
        seen.add(name)


def percentages(texts: Array) -> Array | None:
    """Numbers written as "90%"; None where any is not.

    >>> percentages(np.array(["90%", "5.5 %"]))
    array([0.9  , 0.055])
    """
    gaps = absent(texts)
    try:
        if not np.char.endswith(texts[~gaps], "%").all():
            return None
        numbers = np.char.rstrip(np.where(gaps, "nan", texts), "% ").astype(np.float64) / 100
    except ValueError:
        return None
    return numbers


def outcomes(truth: Array) -> Array:
    """Outcomes of an event in words, true and false, as Python and spreadsheets write them, as truth values.

    >>> outcomes(np.array(["True", "FALSE"]))
    array([ True, False])
    """
    gaps = absent(truth)
    if truth.dtype.kind != "U" or not np.isin(np.char.lower(truth[~gaps]), ("true", "false")).all():
        return truth
    return np.where(gaps, np.nan, np.char.lower(truth) == "true") if gaps.any() else np.char.lower(truth) == "true"
