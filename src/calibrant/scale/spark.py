"""Spark: the rows of DataFrames are summarised by the executors of a cluster, and their states are added up there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from calibrant.door.options import LabelOptions, refuse_unknown
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import refuse_twice
from calibrant.files.parquet import arrow_columns
from calibrant.metric import Metric
from calibrant.scale.part_files import Part
from calibrant.scale.part_states import Parcel, Reading, Share, narrowed, opened, parcel_of, summed, together
from calibrant.scale.row_batches import MOST_ROWS, NUMBERS, Batch, columns_read
from calibrant.scale.scanning import Scan, Scanning

ROWS = Part("df", 0, 0)
"""The rows of DataFrames, as errors call them."""
SOURCE = InputFile("df", "", None)
PARCELS = "partition int, state binary, error array<string>"
"""What comes back of partitions: their states, or what is wrong with their rows."""
FIRST = 100
"""Of how many rows the driver looks which columns are needed."""


def summarise(
    df: Any,
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
    pieces: Mapping[str, object] | None = None,
    **options: Unpack[LabelOptions],
) -> Scan:
    """Metrics of the predictions in a Spark DataFrame, or in several that have the same columns.

    Labels, forecasts and columns are found as `calibrant.scale.scan` finds them in files: an event, a column for each
    class, an array column, the k likeliest classes, independent labels, or confidence and correct. The vector column
    `probability` of Spark's own classifiers is found, too; other vector columns are named by `probs` or `logits`.

    Executors summarise the partitions and add up their states. The driver gets few states, and some first rows to see
    what they hold. Values and the state are those of all rows in memory, to the bit. Rows of float and rows of double
    must come in two DataFrames to be told apart, since Spark makes a column of both double. Rows are computed once a
    pass: cache them where they are costly, or random.

    Executors need calibrant with pyarrow. `exact` and `pieces` are those of `scan`.

    >>> from pyspark.sql import SparkSession
    >>> import calibrant as cal
    >>> from calibrant.scale.spark import summarise
    >>> spark = SparkSession.builder.getOrCreate()
    >>> df = spark.createDataFrame([(1, 0.9), (0, 0.2), (1, 0.6)], "label int, p double")
    >>> print(summarise(df, {"ece": cal.ECE})["ece"])
    ECE 0.2333 (n=3, event, 15 equal-width bins)
    """
    refuse_unknown(options, summarise, LabelOptions.__optional_keys__)
    frames = list(df) if isinstance(df, (list, tuple)) else [df]
    _require_frames(frames)
    if not (probs or logits or confidence) and "probability" in _vectors(frames[0]):
        probs = "probability"
    keys: dict[str, str | float | None] = {"label": label, "probs": probs, "logits": logits, "weight": weight}
    keys |= {"confidence": confidence, "correct": correct, "scale": scale}
    reading = Reading(metrics, by, keys, options, pieces=pieces)
    frames = [_readable(frame, keys) for frame in frames]
    with _modules_named():
        return Scanning([ROWS], _narrowed(frames, reading), partial(_on_executors, frames=frames)).scan(exact)


def summarised(batches: Iterable[Any], reading: Reading) -> Iterator[Any]:
    """The parcel of a partition: what a task does."""
    from pyspark import TaskContext

    partition = TaskContext.get().partitionId()
    states = replace(reading, read=lambda _, names, __: _tables(batches, names or (), partition)).states(ROWS)
    yield _sent(partition, parcel_of(lambda: Share(summed(states))))


def added(batches: Iterable[Any], pieces: Mapping[str, object] | None) -> Iterator[Any]:
    """The parcels of some partitions as one."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    if rows:
        yield _sent(*_added(rows, pieces))


def _on_executors(_: Sequence[Part], reading: Reading, *, frames: Sequence[Any]) -> Iterator[Share]:
    """The share of each DataFrame, which is a job: after tasks that summarise, fewer ones add up their states."""
    for frame in frames:
        columns = [_column(name).alias(f"column_{place}") for place, name in enumerate(reading.columns or ())]
        parcels = frame.select(columns).mapInArrow(partial(summarised, reading=reading), PARCELS)
        rows = parcels.repartition("partition").mapInArrow(partial(added, pieces=reading.pieces), PARCELS).collect()
        yield opened(_added([row.asDict() for row in rows], reading.pieces)[1], reading.pieces)


def _added(rows: Sequence[Mapping[str, Any]], pieces: Mapping[str, object] | None) -> tuple[int, Parcel]:
    """Parcels as one, with the partition of what is wrong: the same one, in whatever order partitions come."""
    ordered = sorted(rows, key=lambda row: (row["error"] is None, row["partition"]))
    parcels: list[Parcel] = [(bytes(row["state"]), (), row["error"] and _error(row["error"])) for row in ordered]
    return ordered[0]["partition"] if ordered else 0, together(parcels, pieces)


def _sent(partition: int, parcel: Parcel) -> Any:
    """A record batch of one row: a parcel, and of which partition it is."""
    import pyarrow

    state, _, error = parcel
    types = [pyarrow.int32(), pyarrow.binary(), pyarrow.list_(pyarrow.string())]
    values = [partition, state, error and _words(error)]
    arrays = [pyarrow.array([value], kind) for value, kind in zip(values, types, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, ["partition", "state", "error"])


def _words(error: CalibrationInputError) -> list[str | None]:
    got = None if error.got is None else str(error.got)
    return [error.parameter, error.expected, got, error.where, error.hint]


def _error(words: Sequence[Any]) -> CalibrationInputError:
    parameter, expected, got, where, hint = words
    return CalibrationInputError(parameter, expected, got=got, where=where, hint=hint)


def _tables(batches: Iterable[Any], names: Sequence[str], partition: int) -> Iterator[Batch]:
    """The rows of a partition, about as many at a time as of a file, with the names that Spark cannot pass on."""
    import pyarrow

    first = 0
    for several in _gathered(batches):
        table = pyarrow.Table.from_batches(several).rename_columns(list(names))
        yield f"partition {partition}, rows {first} to {first + len(table) - 1}", arrow_columns(table, SOURCE)
        first += len(table)


def _gathered(batches: Iterable[Any]) -> Iterator[list[Any]]:
    waiting: list[Any] = []
    for batch in batches:
        waiting += [batch] if batch.num_rows else []
        numbers, rows = sum(each.nbytes for each in waiting) // 8, sum(each.num_rows for each in waiting)
        if numbers >= NUMBERS or rows >= MOST_ROWS:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _require_frames(frames: Sequence[Any]) -> None:
    for frame in frames or [frames]:
        if not hasattr(frame, "mapInArrow"):
            raise CalibrationInputError("df", "must be a Spark DataFrame", got=type(frame).__name__)
        refuse_twice(frame.columns, SOURCE)


def _vectors(frame: Any) -> set[str]:
    """The columns that hold vectors of Spark's own models."""
    return {field.name for field in frame.schema.fields if field.dataType.simpleString() == "vector"}


def _readable(frame: Any, keys: Mapping[str, str | float | None]) -> Any:
    """The columns that may tell something; of vectors, those that are named, as arrays: features may be of any size."""
    from pyspark.sql import functions, types

    simple = (types.NumericType, types.BooleanType, types.StringType, types.DatetimeType, types.ArrayType)
    columns = [_column(field.name) for field in frame.schema.fields if isinstance(field.dataType, simple)]
    for name in _vectors(frame) & {*keys.values(), "probs", "logits"}:
        from pyspark.ml.functions import vector_to_array

        vector = _column(name)
        columns.append(functions.when(vector.isNotNull(), vector_to_array(vector)).alias(name))
    return frame.select(columns)


def _column(name: str) -> Any:
    """The column of this very name, whatever letters it has."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def _narrowed(frames: Sequence[Any], reading: Reading) -> Reading:
    """The reading with no more columns than metrics ask for, as the first rows show; all DataFrames must have them."""
    import pyarrow

    rows = pyarrow.Table.from_pylist([row.asDict() for row in frames[0].head(FIRST)])
    every = [("", arrow_columns(rows, SOURCE))] if len(rows) else []
    columns = narrowed(replace(reading, read=lambda *_: iter(every)), ROWS).columns
    for frame in frames:
        columns_read(frame.columns, ROWS, SOURCE, columns)
    return replace(reading, columns=columns)


@contextmanager
def _modules_named() -> Iterator[None]:
    """Name the module that executors lack; what else fails there is told in Spark's own words."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", str(error))
        if missing is None:
            raise
        hint = "install it there, or send it along with --py-files"
        raise CalibrationInputError("df", f"needs {missing[1]} on Spark's executors", hint=hint) from None
