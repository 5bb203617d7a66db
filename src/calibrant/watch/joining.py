"""Joining: predictions and labels that arrive apart, read from files, put in windows and joined by an id."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, final

import numpy as np

from calibrant import checks
from calibrant.door.arrays import Array, absent
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.files.column_names import LABELS, OTHER_LABELS, called
from calibrant.files.columns import Columns
from calibrant.files.finding import Finder
from calibrant.files.formats import read_arrays
from calibrant.predictions import Predictions
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.watch.closed_windows import require_few

EVERY = ("hour", "day", "week", "month")
_UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def seconds(text: str) -> int:
    """A time that is spelled as 36h, 3d or 2w, in seconds.

    >>> seconds("36h"), seconds("3d")
    (129600, 259200)
    """
    spelled = re.fullmatch(r"([0-9]{1,6})([hdw])", text)
    if spelled is None:
        raise CalibrationInputError("close_after", "must be a number of hours, days or weeks such as 3d", got=text)
    return int(spelled[1]) * _UNITS[spelled[2]]


@final
@dataclass(frozen=True)
class Joining:
    """How rows are named, put in windows and joined, and when a window is closed; fixed before the first row.

    A row belongs to the hour, day, week or month (`every`) of its `time`, or to the value of its `window` column where
    one is named. A window is closed when rows have arrived that are later than its end by `close_after`, or earlier, as
    soon as it is over, once a share `close_at` of its rows has a label. Rows without a label are left out then;
    `unlabelled` says what else no label means, as 0 where only what happened is reported. It needs `close_after`
    alone: a share of labels would close windows by their outcomes.

    >>> Joining(close_after="3d").every
    'day'
    """

    id: str = "id"
    time: str = "time"
    window: str | None = None
    every: str = "day"
    close_after: str | None = None
    close_at: float | None = None
    unlabelled: int | None = None
    label: str | None = None
    probs: str | None = None
    logits: str | None = None
    by: str | None = None
    classes: bool = False
    map: str | None = None
    """The JSON of a fitted recalibrator through which forecasts go before they are counted."""
    keep: int = 7
    """Closed windows whose rows are kept, so that late labels can correct them."""

    def __post_init__(self) -> None:
        checks.word(self.every, "every", *EVERY)
        checks.flag(self.classes, "classes")
        checks.whole(self.keep, "keep", 0)
        if self.map is not None:
            Recalibrator.from_json(self.map)
        if self.unlabelled is not None:
            checks.whole(self.unlabelled, "unlabelled", 0)
        if self.close_at is not None:
            checks.number(self.close_at, "close_at", "must be a share in (0, 1]", lambda share: 0 < share <= 1)
        if self.close_after is not None:
            seconds(self.close_after)
        if self.close_after is None and self.close_at is None:
            expected, hint = "must say when a window is closed", "give close_after (3d) or close_at (0.99)"
            raise CalibrationInputError("close_after", expected, got="neither it nor close_at", hint=hint)
        if self.unlabelled is not None and (self.close_at is not None or self.window is not None):
            expected = "must go with close_after alone: a share of labels would close windows by their outcomes"
            got = f"close_at = {self.close_at:g}" if self.close_at is not None else f"window = {self.window!r}"
            by_time = "put rows in windows by their time (every), or report the labels of both outcomes"
            hint = "leave close_at out" if self.window is None else by_time
            raise CalibrationInputError("unlabelled", expected, got=got, hint=hint)
        if self.window is not None and self.close_at is None:
            expected = "must be given where windows are named by a column"
            raise CalibrationInputError("close_at", expected, got="none", hint="such as 0.99")

    def is_due(self, window: OpenWindow, latest: float, newest: bool) -> bool:
        """Whether a window is to be closed when so late a row has arrived; `newest`: no later window has begun.

        >>> rule = Joining(close_after="1d", close_at=0.9)
        >>> window = OpenWindow("2026-01-05", 100.0, rows=10, labelled=5)
        >>> [rule.is_due(window, latest, newest=False) for latest in (100.0, 100.0 + 86400)]
        [False, True]
        """
        if not window.rows or (not window.labelled and self.unlabelled is None):
            return False
        over = not newest if math.isnan(window.end) else latest >= window.end
        complete = self.close_at is not None and window.labelled >= self.close_at * window.rows
        late = self.close_after is not None and latest >= window.end + seconds(self.close_after)
        return over and (complete or late)


@final
@dataclass(frozen=True)
class OpenWindow:
    """A window that is not closed: when it ends (nan: unknown), its rows, and how many have a label."""

    name: str
    end: float
    rows: int
    labelled: int


@final
@dataclass(frozen=True, eq=False)
class ForecastRows:
    """Predictions of a file: ids, windows, when these end, forecasts, and what is known of them."""

    ids: list[str]
    windows: list[str]
    ends: list[float]
    latest: float
    scores: Array
    logits: bool
    names: tuple[str, ...] | None
    groups: list[str]


def forecast_rows(path: str | Path, joining: Joining) -> ForecastRows:
    """The predictions of a file; labels that stand beside them are not read."""
    arrays = read_arrays(path)
    finder = Finder(arrays)
    scores, names, logits = finder.forecasts(joining.probs, joining.logits)
    if names is None and isinstance(named := finder.class_names(), np.ndarray):
        names = tuple(map(str, named.tolist()))
    ids = texts(arrays, joining.id, "id")
    groups = [""] * len(ids) if joining.by is None else texts(arrays, joining.by, "by")
    if joining.window is None:
        times = [_moment(text, arrays.source) for text in texts(arrays, joining.time, "time")]
        spans = {moment: span(moment, joining.every) for moment in set(times)}
        windows, ends = [spans[moment][0] for moment in times], [spans[moment][1] for moment in times]
        latest = max(times).timestamp()
    else:
        windows = texts(arrays, joining.window, "window")
        ends, latest = [math.nan] * len(ids), -math.inf
    _require_once(ids, joining.id, arrays.source)
    if joining.by is not None:
        groups_of_windows = Counter(window for window, _ in set(zip(windows, groups, strict=True)))
        require_few(max(groups_of_windows.values()), f"values of {joining.by}")
    if joining.classes and scores.ndim == 2:
        require_few(scores.shape[1], "classes")
    return ForecastRows(ids, windows, ends, latest, scores, logits, names, groups)


def label_rows(path: str | Path, joining: Joining) -> tuple[list[str], list[Any]]:
    """The ids and labels of a file; of an id that stands twice, the last label."""
    arrays = read_arrays(path)
    usual = [name for name in LABELS if name in arrays] or called(arrays, OTHER_LABELS)
    known = [joining.label] if joining.label else usual
    if len(known) != 1 or known[0] not in arrays:
        expected = f"must have labels under {joining.label or ', '.join(LABELS)}"
        got, hint = " and ".join(usual) or "none of them", nearest(joining.label or "label", arrays)
        raise CalibrationInputError(str(arrays.source), expected, got=got, hint=hint)
    labels = arrays.sparse(known[0])
    present = ~absent(labels)
    ids = texts(arrays, joining.id, "id")
    pairs = [(name, plain(label)) for name, label, there in zip(ids, labels.tolist(), present, strict=True) if there]
    return [name for name, _ in pairs], [label for _, label in pairs]


def joined(labels: Sequence[Any], scores: Array, logits: bool, names: Sequence[str] | None, by: str | None,
           groups: Sequence[str], where: str) -> Predictions:  # fmt: skip
    """The predictions of a window, read as if they had stood in one file."""
    kind = "logits" if logits else "p" if scores.ndim == 1 else "probs"
    raw: dict[str, Array] = {"label": np.array(labels), kind: scores}
    if names is not None and scores.ndim == 2:
        raw["classes"] = np.array(names)
    if by is not None:
        raw[by] = np.array(groups)
    arrays = Columns(InputFile(where, ".npz", None, b""), raw, raw.__getitem__)
    return Finder(arrays).predictions({})


def texts(arrays: Columns, name: str, option: str) -> list[str]:
    """A column as it was written: ids are never read as numbers, of which some are equal."""
    if name not in arrays:
        hint = f"say which column it is with --{option}; {nearest(name, arrays)}"
        raise CalibrationInputError(str(arrays.source), f"must have a column {name!r}", got="none", hint=hint)
    values = arrays.raw[name]
    if not isinstance(values, list):
        values = values.to_pylist() if hasattr(values, "to_pylist") else arrays[name].tolist()
    for row, value in enumerate(values):
        if value is None or value == "":
            raise CalibrationInputError(
                str(arrays.source), f"{name!r} must have a value", got="none", where=f"row {row}"
            )
    return [value if isinstance(value, str) else str(value) for value in values]


def span(moment: datetime, every: str) -> tuple[str, float]:
    """The name of the hour, day, week (by its Monday) or month of a moment, and its end in seconds since 1970.

    >>> span(datetime(2026, 1, 7, 13, 5, tzinfo=UTC), "week")
    ('2026-01-05', 1768176000.0)
    """
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if every == "hour":
        start = moment.replace(minute=0, second=0, microsecond=0)
        return start.strftime("%Y-%m-%dT%H"), (start + timedelta(hours=1)).timestamp()
    if every == "month":
        start = midnight.replace(day=1)
        return start.strftime("%Y-%m"), (start + timedelta(days=32)).replace(day=1).timestamp()
    start = midnight - timedelta(days=moment.weekday()) if every == "week" else midnight
    return start.strftime("%Y-%m-%d"), (start + timedelta(days=7 if every == "week" else 1)).timestamp()


def plain(label: Any) -> Any:
    """A label as a database keeps it: whole numbers as such, words as they are; "true" and "false" as 1 and 0.

    >>> plain(1.0), plain(True), plain("False"), plain("cat")
    (1, 1, 0, 'cat')
    """
    if isinstance(label, str):
        return {"true": 1, "false": 0}.get(label.lower(), label)
    return int(label) if label == int(label) else label


def _moment(text: str, source: InputFile) -> datetime:
    """A time as ISO 8601 or as seconds since 1970; without a zone it is taken as UTC."""
    try:
        if re.fullmatch(r"[0-9]{9,11}(\.[0-9]*)?", text):
            return datetime.fromtimestamp(float(text), UTC)
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        moment + timedelta(days=32)  # its window must end before the year 10000
    except (ValueError, OverflowError):
        expected = "must have times such as 2026-01-05T13:00:00, or seconds since 1970"
        raise CalibrationInputError(str(source), expected, got=text) from None
    return moment


def _require_once(ids: Sequence[str], name: str, source: InputFile) -> None:
    for repeated in _repeated(ids):
        raise CalibrationInputError(str(source), f"must have each {name!r} once", got=f"{repeated!r} twice")


def _repeated(ids: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            yield each
        seen.add(each)
