"""Draws: rows resampled, whole clusters of rows resampled, labels redrawn; each block from a seed of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.checks import is_number, is_whole
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.progress import shown
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions

BLOCK = 20
"""Replicates per seed: the same whatever the number of processes, so that results are too."""

ROW = "row"
"""The column by which the labels of one row belong together."""

Work = Callable[[np.random.Generator, int], Floats]


def replicate(
    work: Work, n: int, seed: int, *, stage: int, n_jobs: int = 1, block: int = BLOCK, what: str = "resampling"
) -> Floats:
    """n replicates, stacked: `work(generator, count)` makes a few of them (count, ...).

    Block b draws from SeedSequence(seed, spawn_key=(stage, b)).

    >>> replicate(lambda rng, count: rng.random((count, 1)), 45, seed=0, stage=0).shape
    (45, 1)
    """
    sizes = [min(block, n - start) for start in range(0, n, block)]
    tasks = [(seed, stage, index, size) for index, size in enumerate(sizes)]
    blocks = shown(_run(work, tasks, n_jobs), len(tasks), what)
    return np.concatenate(list(blocks))


def _run(work: Work, tasks: list[tuple[int, int, int, int]], n_jobs: int) -> Iterator[Floats]:
    if n_jobs == 1 or len(tasks) == 1:
        yield from (_one(work, task) for task in tasks)
        return
    from concurrent.futures import ProcessPoolExecutor  # slow to import

    with ProcessPoolExecutor(n_jobs, initializer=_receive, initargs=(work,)) as pool:
        yield from pool.map(_one_elsewhere, tasks)


def _one(work: Work, task: tuple[int, int, int, int]) -> Floats:
    seed, stage, index, size = task
    return work(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stage, index))), size)


_received: list[Work] = []
"""The work of a worker process, sent to it once."""


def _receive(work: Work) -> None:
    _received[:] = [work]


def _one_elsewhere(task: tuple[int, int, int, int]) -> Floats:
    return _one(_received[0], task)


@dataclass(frozen=True, eq=False)
class RowDraws:
    """How often each row is drawn: rows with replacement, or whole clusters of rows.

    >>> [counts.sum() for counts in RowDraws(4)(np.random.default_rng(0), 2)]
    [np.int64(4), np.int64(4)]
    """

    rows: int
    cluster: Ints | None = None
    """The cluster of each row, or None: every row is its own."""
    share: float = 1.0
    """The share of the rows (or clusters) that is drawn."""

    def __call__(self, rng: np.random.Generator, count: int) -> Iterator[Ints]:
        """How often each row is drawn, so many times; one at a time, so that a vector stays in cache."""
        units = self.rows if self.cluster is None else int(self.cluster.max()) + 1
        wanted = max(1, round(self.share * units))
        for _ in range(count):
            counts = np.bincount(rng.integers(0, units, wanted), minlength=units)
            yield counts if self.cluster is None else counts[self.cluster]


def clusters(predictions: Predictions, column: str | None) -> Ints | None:
    """The cluster of each row by the values of a column."""
    if column is None:
        return None
    values, codes = np.unique(predictions.column(column), return_inverse=True)
    if len(values) < 2:
        raise CalibrationInputError("groups", "needs at least two values to resample", got=f"one in {column!r}")
    return codes.ravel()


def linked(predictions: Predictions, column: str | None) -> tuple[Predictions, str | None]:
    """Predictions and the column whose values are independent: the one that is named; of several labels, else the row.

    None where every forecast is independent of the others.

    >>> rows, column = linked(Predictions.from_multilabel([[1, 0], [0, 0]], [[.9, .1], [.2, .3]]), None)
    >>> column, rows.column("row").tolist()
    ('row', [0, 1])
    """
    if column is not None or not (predictions.n_classes and predictions.forecasts.of_events) or len(predictions) < 2:
        return predictions, column
    return dataclasses.replace(predictions, columns={ROW: np.arange(len(predictions))}), ROW


def check_seed(seed: object) -> None:
    """Refuse what does not make a run repeatable."""
    if not is_whole(seed) or seed < 0:
        raise CalibrationInputError(
            "seed", "must be a whole number, so that the run can be repeated", got=repr(seed), hint="such as seed=0"
        )


def check_level(level: object) -> None:
    """Refuse a level that is none, percentages above all."""
    if not is_number(level) or not 0 < level < 1:
        hint = f"{level}% is level={level / 100:g}" if is_number(level) and 1 < level < 100 else None
        raise CalibrationInputError("level", "must lie strictly between 0 and 1", got=repr(level), hint=hint)
