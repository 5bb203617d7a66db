"""States: what is kept of predictions so that metrics can be told later, added up over files, days and machines."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from calibrant.door.streams import InputFile
from calibrant.errors.asking import IN_CELLS, Asking, OfTable, Pass
from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import whole_file
from calibrant.metric import Metric, from_json
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Result
from calibrant.specification.packing import packed, unpacked
from calibrant.summaries import Summary, apart, kinds
from calibrant.table import Table, split

MAGIC = b"calibrant state\x00"
"""How the bytes begin, and in the last byte the version of their format."""
ALL = "all"
"""The name of all rows, where they are not told apart."""


@final
@dataclass(frozen=True, eq=False)
class Results(Mapping[str, Result]):
    """Results by the names of their metrics, and why there are none of others.

    >>> import calibrant as cal
    >>> metrics = {"neighbours": cal.NeighbourError(), "ece": cal.ECE}
    >>> results = cal.scale.State.of(cal.Predictions.from_probs([1, 0], [.311, .312]), metrics).results()
    >>> list(results), results.refused["neighbours"]
    (['ece'], 'metric: must follow from forecasts in cells, got NeighbourError; measure the rows themselves')
    """

    told: Mapping[str, Result]
    refused: Mapping[str, str]
    """By the names of metrics of which nothing is told, the reason."""

    @classmethod
    def of(cls, names: Iterable[str], result: Callable[[str], Result]) -> Self:
        """The results of names, each by itself: what is refused does not keep others from being told."""
        told: dict[str, Result] = {}
        refused: dict[str, str] = {}
        for name in names:
            try:
                told[name] = result(name)
            except CalibrationInputError as error:
                refused[name] = str(error)
        return cls(told, refused)

    def __getitem__(self, name: str) -> Result:
        if name in self.refused:
            raise CalibrationInputError(name, "must be told by the counts that were kept", got=self.refused[name])
        return self.told[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.told)

    def __len__(self) -> int:
        return len(self.told)


@final
@dataclass(frozen=True, eq=False)
class State:
    """What is kept of predictions: summaries of named metrics, of all rows or of each value of a column.

    States add and subtract, exactly. None holds a row: forecasts are counted in bins, in scores, or in some thousand
    cells, from which the metrics that follow the order of forecasts are told, exactly or within bounds.

    >>> import calibrant as cal
    >>> from calibrant.scale import State
    >>> days = [cal.Predictions.from_probs([1, 0, 1], p) for p in ([.9, .2, .6], [.8, .1, .7])]
    >>> monday, tuesday = (State.of(day, {"ece": cal.ECE, "brier": cal.BRIER}) for day in days)
    >>> print((monday + tuesday).results()["ece"])
    ECE 0.2167 (n=6, event, 15 equal-width bins)
    >>> ((monday + tuesday) - tuesday).to_bytes() == monday.to_bytes()
    True
    """

    metrics: Mapping[str, Metric]
    by: str | None
    groups: Mapping[str, tuple[Summary, ...]]
    """Of each value of the column, a summary for each thing that the metrics read."""

    @classmethod
    def of(cls, predictions: Predictions, metrics: Mapping[str, Metric], by: str | None = None) -> Self:
        """The state of predictions; with `by`, of the rows of each value of a column."""
        state = cls.with_rows(predictions, metrics, by)
        for summaries in state.groups.values():
            for first, summary in zip(readings(metrics).values(), summaries, strict=True):
                if summary.keeps_rows:
                    hint = "leave it out, or measure the rows themselves"
                    raise CalibrationInputError("metrics", "of a state must keep no rows", got=first.name, hint=hint)
        return state

    @classmethod
    def with_rows(cls, predictions: Predictions, metrics: Mapping[str, Metric], by: str | None = None) -> Self:
        """The state of predictions, of metrics that may keep rows, as passes that open cells do: none to subtract."""
        require_predictions(predictions)
        if not metrics:
            raise CalibrationInputError("metrics", "must name at least one metric", got="none")
        passes = readings(metrics).values()
        parts = [(ALL, predictions)] if by is None else split(predictions, by)
        groups = {name: tuple(first.summarise(rows) for first in passes) for name, rows in parts}
        return cls(dict(metrics), by, groups)

    @property
    def n(self) -> int:
        """How many rows were summarised."""
        return sum(map(_rows, self.groups.values()))

    def results(self) -> Results:
        """Each metric of all rows; those of which counts tell nothing are in `refused`, with the reason.

        >>> import calibrant as cal
        >>> state = cal.scale.State.of(cal.Predictions.from_probs([1, 0], [.9, .2]), {"ece": cal.ECE})
        >>> state.results()["ece"].n, state.results().refused
        (2, {})
        """
        self._require_rows()
        return Results.of(self.metrics, lambda name: self.result(self.metrics[name]))

    def table(self, metrics: Mapping[str, Metric] | None = None) -> Table:
        """Each metric of all rows and, where the state tells them apart, of the rows of each value of the column.

        Metrics are those of the state of which its counts tell something, or others that follow from what it keeps.

        >>> import calibrant as cal
        >>> state = cal.scale.State.of(cal.Predictions.from_probs([1, 0], [.9, .2]), {"ece": cal.ECE})
        >>> print(state.table({"mce": cal.MCE}))
        rows  n  mce
        all   2  0.2000
        """
        asked = {name: self.metrics[name] for name in self.results()} if metrics is None else metrics
        return self.table_of(asked, lambda name, group: self.result(asked[name], group))

    def table_of(self, names: Iterable[str], result: Callable[[str, str | None], Result]) -> Table:
        """A table of all rows and of the state's groups, of the results of each name and group (None: all rows)."""
        rows = {ALL: {name: result(name, None) for name in names}}
        if self.by is not None:
            for group in sorted(self.groups):
                row = group if group != ALL else f"{ALL} (value)"
                rows[row] = {name: result(name, group) for name in rows[ALL]}
        return Table(self.by, rows)

    def result(self, metric: Metric, group: str | None = None) -> Result:
        """A metric of all rows or of a group: one of the state's own, or another that follows from what it keeps."""
        first, summary = first_pass(metric), self.summary(metric, group)
        in_cells = self._line(metric) == _in_cells(metric)
        return first.within(summary) if in_cells else first.conclude(summary)  # type: ignore[attr-defined]

    def summary(self, metric: Metric, group: str | None = None) -> Summary:
        """What is kept for a metric, of all rows or of a group."""
        self._require_rows()
        place = list(readings(self.metrics)).index(self._line(metric))
        groups = self.groups.values() if group is None else [self.groups[group]]
        return sum(summaries[place] for summaries in groups)  # type: ignore[return-value]  # there are some

    def _require_rows(self) -> None:
        if not self.groups:
            raise CalibrationInputError("state", "must have rows", got="none")

    def _line(self, metric: Metric) -> str:
        """The reading from which a metric follows: its own or, where the state has none, counts in cells."""
        own, known = reading(first_pass(metric)), readings(self.metrics)
        line = own if own in known else _in_cells(metric)
        if line not in known:
            raise CalibrationInputError(
                "metric",
                "must follow from what the state keeps",
                got=metric.name,
                hint=f"it has {', '.join(self.metrics)}",
            )
        return line

    def __add__(self, other: State | int) -> State:
        if isinstance(other, int) and other == 0:
            return self
        return self._joined(other, operator.add) if isinstance(other, State) else NotImplemented

    def __radd__(self, zero: int) -> State:
        """`0 + state`, so that `sum` works."""
        return self if zero == 0 else NotImplemented

    def __sub__(self, other: State) -> State:
        """The state without the rows of another; refused where there are fewer than are taken away."""
        return self._joined(other, operator.sub) if isinstance(other, State) else NotImplemented

    def _joined(self, other: State, join: Callable[[Summary, Summary], Summary]) -> State:
        self._require_like(other)
        groups = dict(self.groups)
        for name, theirs in other.groups.items():
            mine = groups.get(name)
            if join is operator.sub:
                _require_as_many(mine, theirs, name)
            groups[name] = theirs if mine is None else tuple(map(join, mine, theirs))
        filled = {name: summaries for name, summaries in groups.items() if _rows(summaries)}
        return State(self.metrics, self.by, filled)

    def _require_like(self, other: State) -> None:
        """Refuse a state of other metrics, or by another column, and name what differs."""
        choices = zip(_choices(self), _choices(other), strict=False)
        for here, there in [*choices, (len(self.metrics), len(other.metrics))]:
            if here != there:
                raise CalibrationInputError(
                    "states", "must be of the same metrics and column to be joined", got=apart(str(here), str(there))
                )

    def to_bytes(self) -> bytes:
        """The state as bytes: equal for equal content, however rows were batched, added and taken away."""
        return packed(_Stored.of(self), MAGIC)

    @classmethod
    def from_bytes(cls, data: bytes, pieces: Mapping[str, object] | None = None) -> Self:
        """The state that `to_bytes` wrote; `pieces` are those of its metrics that are not calibrant's own."""
        stored = unpacked(data, {**kinds(), "_Stored": _Stored}, MAGIC)
        metrics = {name: from_json(text, pieces) for name, text in stored.metrics}
        state = cls(metrics, stored.by, dict(stored.groups))
        passes = readings(metrics).values()
        for summaries in state.groups.values():
            if len(summaries) != len(passes):
                raise CalibrationInputError(
                    "state", "must have a summary for each thing that is read", got=len(summaries)
                )
            for first, summary in zip(passes, summaries, strict=True):
                if isinstance(first, Asking):
                    first.own(summary)
        return state

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all; the text "-" is standard output."""
        with whole_file(path) as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path | InputFile, pieces: Mapping[str, object] | None = None) -> Self:
        """The state in a file, a pipe or standard input ("-")."""
        with InputFile.of(path).open() as file:
            return cls.from_bytes(file.read(), pieces)


def readings(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The first passes over the data that metrics need, each thing that is read once.

    >>> import calibrant as cal
    >>> len(readings({"ece": cal.ECE, "mce": cal.MCE, "sweep": cal.ECE_SWEEP, "adaptive": cal.ADAPTIVE_ECE}))
    2
    """
    passes: dict[str, Metric] = {}
    for metric in metrics.values():
        first = first_pass(metric)
        passes.setdefault(reading(first), first)
    return passes


def first_pass(metric: Metric) -> Metric:
    """The metric itself, or the one that counts forecasts in cells where the metric would keep them all.

    >>> import calibrant as cal
    >>> first_pass(cal.ECE) == cal.ECE, first_pass(cal.AUROC).opened
    (True, ())
    """
    return Pass(metric) if isinstance(metric, Asking) and metric.reading == OfTable.reading else metric


def reading(metric: Metric) -> str:
    """What a metric reads, as a line that is equal where summaries add."""
    return repr(metric.reads) if isinstance(metric, Asking) else metric.to_json()


def _in_cells(metric: Metric) -> str:
    """The line of counts in cells of what a metric selects and asks; none where it does neither."""
    return repr((*metric.reads[:2], IN_CELLS)) if isinstance(metric, Asking) else ""


@dataclass(frozen=True, eq=False)
class _Stored:
    """A state as it is packed."""

    metrics: tuple[tuple[str, str], ...]
    by: str | None
    groups: tuple[tuple[str, tuple[Summary, ...]], ...]

    @classmethod
    def of(cls, state: State) -> _Stored:
        metrics = tuple((name, metric.to_json()) for name, metric in state.metrics.items())
        groups = {name: tuple(each.canonical() for each in state.groups[name]) for name in sorted(state.groups)}
        return cls(metrics, state.by, tuple(groups.items()))

    def canonical(self) -> _Stored:
        return self

    def faults(self) -> Iterator[str]:
        names, groups = ([name for name, _ in pairs] for pairs in (self.metrics, self.groups))
        if len(set(names)) < len(names) or groups != sorted(set(groups)) or (self.by is None and len(groups) > 1):
            yield "names that stand twice or out of order"
        for _, summaries in self.groups:
            if not _rows(summaries):
                yield "a group without rows"
            for summary in summaries:
                yield from summary.faults()


def _rows(summaries: tuple[Summary, ...]) -> int:
    """How many rows there are; a metric that selects some has fewer."""
    return max((summary.about.n for summary in summaries), default=0)


def _choices(state: State) -> list[str]:
    """What states must share, a line each."""
    metrics = [f"{name}: {metric!r}" for name, metric in state.metrics.items()]
    return ["by no column" if state.by is None else f"by {state.by}", *metrics]


def _require_as_many(mine: tuple[Summary, ...] | None, theirs: tuple[Summary, ...], name: str) -> None:
    """Refuse to take away rows that were never added, and say how many there are."""
    if mine is None or _rows(mine) < _rows(theirs):
        got = f"no {name!r}"
        if mine is not None or name == ALL:
            of = "" if name == ALL else f" of {name!r}"
            got = f"{_rows(mine or ()):,} rows{of}, of which {_rows(theirs):,} should go"
        raise CalibrationInputError("state", "must hold all that is taken away from it", got=got)
