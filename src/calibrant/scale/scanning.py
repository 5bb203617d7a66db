"""Scanning: metrics of files that no memory holds together, in one pass or in as many as exact values need."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast, final

import numpy as np

from calibrant.binning.ladder import Forecasts
from calibrant.checks import whole
from calibrant.door.options import LabelOptions, refuse_unknown
from calibrant.door.streams import require_name
from calibrant.errors.asking import Pass
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.scale.dask_cluster import absolute, on_cluster
from calibrant.scale.part_files import Part, parts
from calibrant.scale.part_states import Reading, Share, Skipped, merged, narrowed, peeked, share_of
from calibrant.scale.state import Results, State, first_pass
from calibrant.scale.state import reading as reading_of
from calibrant.table import MOST_GROUPS, Table

T = TypeVar("T")
Cell = tuple[int, int]
"""A question, and a cell of its forecasts."""
Gather = Callable[[Sequence[Part], Reading], Iterable[Share]]
"""What has parts summarised, somewhere, and gives their shares in any number of pieces."""


@final
@dataclass(frozen=True, eq=False)
class Scan(Mapping[str, Result]):
    """What a scan tells: each metric's result by its name, the state that was kept, and what was left out."""

    state: State
    """The counts of the first pass, which add, subtract and can be saved."""
    result: Callable[[str, str | None], Result]
    """The result of a metric by its name, of all rows (None) or of a value of the column."""
    skipped: tuple[Skipped, ...] = ()
    """Files that could not be read, and why."""
    passes: int = 1
    """How often the data were read."""

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @cached_property
    def results(self) -> Results:
        """The results of all rows; of one pass, those of which counts tell nothing are in `results.refused`."""
        return Results.of(self.state.metrics, lambda name: self.result(name, None))

    @property
    def table(self) -> Table:
        """The results of all rows and, where they are told apart, of each value of the column."""
        return self.state.table_of(self, self.result)


def scan(
    source: str | Path | Sequence[str | Path],
    metrics: Mapping[str, Metric],
    *,
    label: str | None = None,
    probs: str | None = None,
    logits: str | None = None,
    weight: str | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    scale: float | None = None,
    by: str | None = None,
    exact: bool = True,
    client: Any = None,
    threads: int = 1,
    resume: str | Path | None = None,
    skip_bad: bool = False,
    deadline: float | None = None,
    progress: Callable[[int], None] | None = None,
    pieces: Mapping[str, object] | None = None,
    **options: Unpack[LabelOptions],
) -> Scan:
    """Metrics of the predictions in many files: a folder, a pattern such as ``data/*.parquet``, or a list of files.

    Files are Parquet, Arrow IPC, CSV, JSONL, NPZ or two NPY files; labels, forecasts and columns are found as
    `calibrant.files.read` finds them, and `region=north` in the name of a folder is a column. No more than the needed
    columns of some rows is in memory.

    Values are those of all rows at once, to the bit. Metrics that follow the order of forecasts need further passes
    over the data for that; with `exact=False` there is one pass, and those metrics are told from counts in cells.

    With `threads`, so many files are read at once; with a Dask `client`, its workers read them, within `deadline`
    seconds. `resume` is a folder in which the state of each file is kept: a scan that was interrupted does not read
    those files again. With `skip_bad`, files that cannot be read are listed in `skipped`. `progress` is called with the
    number of rows read in this pass. `pieces` are those of the metrics that are not calibrant's own.

    >>> import pathlib, tempfile
    >>> import calibrant as cal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, rows in {"a": "1,0.9\\n0,0.2", "b": "1,0.6"}.items():
    ...         _ = pathlib.Path(folder, f"{name}.csv").write_text(f"label,p\\n{rows}\\n")
    ...     scanned = cal.scale.scan(folder, {"ece": cal.ECE, "adaptive": cal.ADAPTIVE_ECE})
    >>> print(scanned["ece"])
    ECE 0.2333 (n=3, event, 15 equal-width bins)
    >>> scanned["adaptive"].value == cal.ADAPTIVE_ECE([1, 0, 1], [.9, .2, .6]).value
    True
    """
    refuse_unknown(options, scan, LabelOptions.__optional_keys__)
    whole(threads, "threads", 1)
    if resume is not None:
        require_name(resume)
        Path(resume).mkdir(parents=True, exist_ok=True)
    keys: dict[str, str | float | None] = {"label": label, "probs": probs, "logits": logits, "weight": weight}
    keys |= {"confidence": confidence, "correct": correct, "scale": scale}
    folder = None if resume is None else str(Path(resume).absolute())
    reading = Reading(metrics, by, keys, options, None, skip_bad, folder, pieces)
    every, gather = parts(source), cast(Gather, partial(_in_threads, threads=threads))
    if client is not None:
        until = math.inf if deadline is None else time.monotonic() + deadline
        every, gather = list(map(absolute, every)), partial(on_cluster, client=client, until=until)
    return Scanning(every, _of_first(every, reading, narrowed), gather, progress).scan(exact)


def first_rows(
    source: str | Path | Sequence[str | Path],
    *,
    label: str | None = None,
    probs: str | None = None,
    logits: str | None = None,
    weight: str | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    scale: float | None = None,
    skip_bad: bool = False,
    **options: Unpack[LabelOptions],
) -> Predictions:
    """The first rows of files, to see what they hold; the options are those of `scan`.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("label,p\\n1,0.9\\n0,0.2\\n")
    ...     first_rows(folder)
    Predictions(n=2, one event, probabilities)
    """
    keys: dict[str, str | float | None] = {"label": label, "probs": probs, "logits": logits, "weight": weight}
    keys |= {"confidence": confidence, "correct": correct, "scale": scale}
    reading = Reading({}, None, keys, options, None, skip_bad)
    return _of_first(parts(source), reading, peeked)[0]


@dataclass
class Scanning:
    """A scan on its way: the parts that can be read, how, with no more columns than are needed, and by whom."""

    parts: Sequence[Part]
    reading: Reading
    gather: Gather
    progress: Callable[[int], None] | None = None
    skipped: list[Skipped] = field(default_factory=list)
    passes: int = 0

    def scan(self, exact: bool) -> Scan:
        """Each metric, from as many passes as exact values need, or from one."""
        state = self._read(self.reading.metrics)
        result = self._exactly(state) if exact else lambda name, group: state.result(state.metrics[name], group)
        return Scan(state, result, tuple(self.skipped), self.passes)

    def _read(self, metrics: Mapping[str, Metric]) -> State:
        """The state of all parts; those that cannot be read are left out of later passes, too."""
        total = merged(self._told(self.gather(self.parts, replace(self.reading, metrics=metrics))))
        self.skipped += total.skipped
        bad = {each.part for each in self.skipped}
        self.parts, self.passes = [part for part in self.parts if part not in bad], self.passes + 1
        if total.state is None:
            reason = self.skipped[0].reason if self.skipped else "none"
            raise CalibrationInputError("source", "must have rows that can be read", got=reason)
        if len(total.state.groups) > MOST_GROUPS:
            raise CalibrationInputError("by", f"must have at most {MOST_GROUPS} values", got=len(total.state.groups))
        return total.state

    def _told(self, shares: Iterable[Share]) -> Iterator[Share]:
        """The shares, with the rows read so far told as they come."""
        rows = 0
        for share in shares:
            yield share
            rows += 0 if share.state is None else share.state.n
            if self.progress is not None:
                self.progress(rows)

    def _exactly(self, state: State) -> Callable[[str, str | None], Result]:
        """The results of as many passes as it takes until nothing is undecided, of all rows and in every group."""
        metrics = self.reading.metrics
        passes = {name: cast(Pass, first_pass(each)) for name, each in metrics.items() if first_pass(each) is not each}
        decided: dict[str, tuple[State, Metric]] = {
            name: (state, metrics[name]) for name in metrics if name not in passes
        }
        while passes:
            opened: dict[str, set[Cell]] = {}
            for name, current in list(passes.items()):
                cells = _undecided(current, state)
                if cells:
                    opened.setdefault(reading_of(first_pass(current.metric)), set()).update(cells)
                else:
                    decided[name] = state, passes.pop(name)
            passes = {
                name: replace(current, opened=tuple(sorted(opened[reading_of(first_pass(current.metric))])))
                for name, current in passes.items()
            }
            state = self._read(passes) if passes else state
        return lambda name, group: decided[name][0].result(decided[name][1], group)


def _of_first(every: Sequence[Part], reading: Reading, look: Callable[[Reading, Part], T]) -> T:
    """What a look at the first part gives; a bad part is passed over where that is allowed."""
    for part in every[:-1]:
        try:
            return look(reading, part)
        except (CalibrationInputError, OSError):
            if not reading.skip_bad:
                raise
    return look(reading, every[-1])


def _in_threads(every: Sequence[Part], reading: Reading, *, threads: int) -> Iterator[Share]:
    """The share of each part in turn; where one cannot be read, those that wait are not begun."""
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(partial(share_of, reading=reading), every)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _undecided(current: Pass, state: State) -> set[Cell]:
    """The cells that must be open for the values of all rows and of each group to be exact; none where they are."""
    cells: set[Cell] = set()
    for group in [None, *(state.groups if state.by is not None else ())]:
        table = cast(Forecasts, state.summary(current, group))
        following = current.refine(table)
        if following is current.metric:
            cells.update(table.cells_at(np.asarray(table.closed, bool)))
        elif following is not current:
            cells.update(cast(Pass, following).opened)
    return cells | set(current.opened) if cells else cells
