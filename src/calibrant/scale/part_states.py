"""States of parts: the one function that threads and clusters call for every part, and how states are put together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns
from calibrant.files.finding import Finder
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.scale.part_files import Part
from calibrant.scale.row_batches import Batch, batches, rows_of
from calibrant.scale.state import State


@dataclass(frozen=True)
class Reading:
    """What is read of every part, and how: it goes to where the part is read."""

    metrics: Mapping[str, Metric]
    by: str | None = None
    keys: Mapping[str, str | float | None] = field(default_factory=dict)
    """Where labels, probabilities, logits and weights are, where their names are not the usual ones."""
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    """The columns that are needed; None: all."""
    skip_bad: bool = False
    folder: str | None = None
    """Where the states of parts are kept, so that what was read is not read again."""
    pieces: Mapping[str, object] | None = None
    """The pieces of the metrics that are not calibrant's own."""
    about: tuple[int, str] | None = None
    """How many classes the first rows have, and what their forecasts are about, in words; all others must, too."""
    read: Callable[[Part, Sequence[str] | None, str], Iterator[Batch]] | None = None
    """What gives the rows of a part, batch by batch; None: what reads files."""

    def states(self, part: Part) -> Iterator[State]:
        """The state of each batch of a part; what is wrong is said of the file and of where it is."""
        for place, arrays in self.batches(part):
            with _placed(part, place):
                rows = self.predictions(part, self.finder(arrays))
                if len(rows):
                    yield State.with_rows(rows, self.metrics, self.by)

    def batches(self, part: Part) -> Iterator[Batch]:
        """The needed columns of a part, batch by batch."""
        return (self.read or batches)(part, self.columns, "probs" if self.keys.get("logits") is None else "logits")

    @property
    def drop(self) -> bool:
        """Whether rows with missing values are left out."""
        return self.options.get("missing") in ("drop", "wrong")

    def finder(self, arrays: Columns) -> Finder:
        """What finds labels and forecasts in a batch."""
        scale: Any = self.keys.get("scale")
        return Finder(arrays, self.drop, scale)

    def predictions(self, part: Part, finder: Finder) -> Predictions:
        """The predictions of a batch, with the columns that folders tell."""
        named = ("weight",) if part.labels is not None else tuple(name for name in self.keys if name != "scale")
        keys: dict[str, Any] = {name: self.keys.get(name) for name in named}
        rows = finder.predictions({**self.options}, **keys)  # type: ignore[typeddict-item]
        for name, _ in part.values:
            if name in rows.columns or name in finder.used:
                got = "in the file and in its folder's name"
                raise CalibrationInputError(part.path, f"must have {name!r} once", got=got)
        if self.about is not None and self.about[0] != rows.n_classes:
            expected = f"must have forecasts of {self.about[1]}, as those before it"
            raise CalibrationInputError(part.path, expected, got=rows.forecasts.words)
        told = {name: np.full(len(rows), value) for name, value in part.values}
        return replace(rows, columns={**rows.columns, **told})

    def key(self, part: Part) -> str:
        """A name that no other part, other content of the part, or other way of reading has."""
        metrics = [(name, metric.to_json()) for name, metric in self.metrics.items()]
        where = replace(part, path=str(Path(part.path).absolute()))
        choices = (where, metrics, self.by, sorted(self.keys.items()), sorted(self.options.items()), self.columns)
        return hashlib.sha256(repr(choices).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Skipped:
    """A part that could not be read, and why; rows where it says how many it has."""

    part: Part
    reason: str
    rows: int | None


@dataclass(frozen=True, eq=False)
class Share:
    """The state of some parts, None where they have no rows, and the parts that were left out."""

    state: State | None
    skipped: tuple[Skipped, ...] = ()


Parcel = tuple[bytes, tuple[Skipped, ...], CalibrationInputError | None]
"""What travels: the bytes of a state or none, the parts that were left out, and what is wrong."""


def parcel_of(share: Callable[[], Share]) -> Parcel:
    """The parcel of a share, or of what is wrong with its rows: an error that is raised far away loses its words."""
    try:
        whole = share()
    except CalibrationInputError as error:
        return b"", (), error
    return b"" if whole.state is None else whole.state.to_bytes(), whole.skipped, None


def together(parcels: Sequence[Parcel], pieces: Mapping[str, object] | None) -> Parcel:
    """Parcels as one; what is wrong with one is wrong with all."""
    return parcel_of(lambda: merged(opened(parcel, pieces) for parcel in parcels))


def opened(parcel: Parcel, pieces: Mapping[str, object] | None) -> Share:
    """The share in a parcel; what is wrong is raised."""
    state, skipped, error = parcel
    if error is not None:
        raise error
    return Share(State.from_bytes(state, pieces) if state else None, skipped)


def share_of(part: Part, reading: Reading) -> Share:
    """The state of a part: read, or kept from the last time."""
    kept = None if reading.folder is None else Path(reading.folder, f"{reading.key(part)}.state")
    if kept is not None and kept.exists():
        try:
            return Share(State.load(kept, reading.pieces))
        except CalibrationInputError:  # damaged: the part is read again
            kept.unlink(missing_ok=True)
    try:
        state = summed(reading.states(part))
        part.require_unchanged()
    except (CalibrationInputError, OSError) as error:
        if not reading.skip_bad:
            raise
        return Share(None, (Skipped(part, str(error), rows_of(part)),))
    if state is not None and kept is not None:
        state.save(kept)
    return Share(state)


def merged(shares: Iterable[Share]) -> Share:
    """Shares as one."""
    skipped: list[Skipped] = []

    def states() -> Iterator[State]:
        for share in shares:
            skipped.extend(share.skipped)
            if share.state is not None:
                yield share.state

    return Share(summed(states()), tuple(skipped))


def summed(states: Iterable[State]) -> State | None:
    """The sum of states, None of none; each is added to one of as many states, so that large ones are seldom copied.

    >>> summed([]) is None
    True
    """
    sums: list[tuple[int, State]] = []
    for state in states:
        count = 1
        while sums and sums[-1][0] <= count:
            more, other = sums.pop()
            count, state = count + more, other + state
        sums.append((count, state))
    return sum(state for _, state in reversed(sums)) if sums else None  # type: ignore[return-value]


@dataclass(frozen=True, eq=False, repr=False)
class Watched(Predictions):
    """Predictions that remember which of their sample columns were asked for."""

    asked: set[str] = field(default_factory=set)

    def column(self, name: str) -> Array:
        """A sample column by name."""
        self.asked.add(name)
        return super().column(name)


def peeked(reading: Reading, part: Part) -> tuple[Predictions, list[str], set[str]]:
    """The first rows of a part, the names of its columns, and those that tell labels, forecasts and weights."""
    for place, arrays in reading.batches(part):
        with _placed(part, place):
            finder = reading.finder(arrays)
            return reading.predictions(part, finder), list(arrays), finder.used
    raise CalibrationInputError(part.path, "must have rows", got="none")


def narrowed(reading: Reading, part: Part) -> Reading:
    """The reading with no more columns than its metrics ask for, as the first rows of a part show."""
    rows, names, used = peeked(reading, part)
    watched = Watched(**{each.name: getattr(rows, each.name) for each in fields(Predictions)})
    State.of(watched, reading.metrics, reading.by)
    told = [name for name, _ in part.values]
    columns = tuple(name for name in [*names, *told] if name in used | watched.asked)
    return replace(reading, columns=columns, about=(rows.n_classes, rows.forecasts.words))


@contextmanager
def _placed(part: Part, place: str) -> Iterator[None]:
    """What is wrong with rows is said of the file, and of where in it they stand."""
    try:
        yield
    except CalibrationInputError as error:
        about = error.parameter.removeprefix(part.path).removeprefix(": ")
        expected = f"{about} {error.expected}" if about else error.expected
        inside = _inside(place, error.where)
        raise CalibrationInputError(part.path, expected, got=error.got, where=inside, hint=error.hint) from None


def _inside(place: str, where: str | None) -> str | None:
    """A place in a batch of rows: a line is one of the file, whatever batch it came with; a row is one of the batch."""
    if not place or (where is not None and where.startswith("line ")):
        return where
    return f"{place}, {where} of these" if where else place
