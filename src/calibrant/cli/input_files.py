"""Reading options: how a command is told where labels and forecasts are in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from calibrant.cli.group import reading
from calibrant.door.options import OPTIONS
from calibrant.door.streams import STANDARD_INPUT, InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files import reading as io
from calibrant.files.column_names import LABELS
from calibrant.inference.confidence import FEWEST_GROUPS
from calibrant.predictions import Predictions

_FORECASTS = ("p", "probs", "logits", "confidence")

F = TypeVar("F", bound=Callable[..., Any])
Source = str | InputFile
"""A file by its name, or the content of what can be read once."""

_OPTIONS = (
    click.option("--label", metavar="KEY", help="The column of labels, if not label, labels or y."),
    click.option("--probs", metavar="KEY", help="The column of probabilities, if not p, p_<class> or probs."),
    click.option("--logits", metavar="KEY", help="The column of logits, if not logits."),
    click.option("--confidence", metavar="KEY", help="The column of the confidence in each answer; needs --correct."),
    click.option("--correct", metavar="KEY", help="The column that says whether each answer was correct."),
    click.option("--scale", type=float, metavar="N", help="Divide predictions by N: 100 for percentages."),
    click.option("--weight", metavar="KEY", help="The column of sample weights."),
    click.option(
        "--classes",
        metavar="NAMES",
        help="Class names, separated by commas. For a file of the top k classes: or the number of all classes.",
    ),
    click.option("--normalize", is_flag=True, help=OPTIONS["normalize"].meaning),
    click.option("--ignore-index", type=float, metavar="LABEL", help=OPTIONS["ignore_index"].meaning),
    click.option("--class-axis", type=int, metavar="AXIS", help=OPTIONS["class_axis"].meaning),
    click.option(
        "--missing", type=click.Choice(["error", "drop", "wrong"]), default="error", help=OPTIONS["missing"].meaning
    ),
)


def reading_options(command: F) -> F:
    """The options that say how a file of predictions is read; `read` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def streams_read(files: Sequence[str]) -> tuple[Source, ...]:
    """The files, of which pipes and standard input are read now, so that a look at them does not use them up."""
    with reading():
        return tuple(InputFile.of(file) if is_stream(file) else file for file in files)


def is_stream(file: str) -> bool:
    """Whether a file is standard input or a pipe."""
    return file in STANDARD_INPUT or Path(file).is_fifo()


def read(files: Sequence[Source], *, classes: str | None = None, **keys: Any) -> Predictions:
    """The predictions in one file, or in two NPY files, read as the options say."""
    if len(files) > 2:
        raise click.UsageError(f"give one file, or two NPY files, labels first; got {len(files)}")
    try:
        with reading():
            return io.read(files, **chosen(classes=classes, **keys))
    except CalibrationInputError as error:
        names = ["standard input" if file in STANDARD_INPUT else str(file) for file in files]
        if any(name in str(error) for name in names):
            raise
        named = f"{Path(names[0 if error.parameter == 'y_true' else -1]).name}: {error.parameter}"
        raise CalibrationInputError(named, error.expected, got=error.got, where=error.where, hint=error.hint) from None


def chosen(*, classes: str | None, **keys: Any) -> dict[str, Any]:
    """What the options say, in the words of the library."""
    if keys["probs"] and keys["logits"]:
        raise click.UsageError("--probs and --logits exclude each other")
    return {"classes": None if classes is None else _classes(classes), **keys}


def _classes(text: str) -> list[str] | int:
    """Names, or how many classes there are."""
    return int(text) if text.isascii() and text.isdigit() else text.split(",")


def described(predictions: Predictions) -> str:
    """What the predictions are, in a few words."""
    what = predictions.forecasts.words
    soft = "" if predictions.soft is None else f"; outcomes are soft ({_fractions(predictions)})"
    unused = [name for name in ("weight", "weights") if name in predictions.columns and predictions.weight is None]
    equal = "".join(f"; all count equally (--weight {name} would weigh them)" for name in unused[:1])
    values = "logits" if predictions.logits else "probabilities"
    return f"{len(predictions):,} rows, {what}, {values}{_guessed(predictions)}{soft}{equal}"


def _guessed(predictions: Predictions) -> str:
    """What was taken for labels and forecasts, where they are called otherwise than calibrant calls them."""
    labels, forecasts = (predictions.origin.get(role, "") for role in ("labels", "forecasts"))
    usual = forecasts in (*_FORECASTS, "") or forecasts.startswith("p_")  # the k likeliest have no other names
    if not labels or (labels in (*LABELS, "correct") and usual):
        return ""
    return f" (labels: {labels!r}, forecasts: {forecasts!r})" if forecasts else f" (labels: {labels!r})"


def grouped(predictions: Predictions, groups: str | None) -> str | None:
    """The column whose rows belong together: the one that is named, else the one that a log has for it."""
    return groups or predictions.origin.get("groups")


def told_groups(predictions: Predictions, groups: str | None) -> str:
    """That a log's own groups were used, where nobody named them; or which column could be named."""
    column = grouped(predictions, groups)
    if groups is not None:
        return ""
    if column is not None:
        return f"note: intervals and p-values keep the rows of one {column} together, as --groups {column} does\n"
    known = next(filter(partial(_repeats, predictions), _TOGETHER), None)
    return "" if known is None else f"note: {_DEPENDENT.format(column=known)}\n"


_TOGETHER = ("question", "question_id", "prompt", "prompt_id", "subject", "topic")
"""Columns whose rows are likely to depend on each other."""
_DEPENDENT = (
    "rows of one {column} may depend on each other; --groups {column} lets intervals and p-values allow for that"
)


def _repeats(predictions: Predictions, name: str) -> bool:
    """Whether a column puts rows into groups, as many as intervals need."""
    column = predictions.columns.get(name)
    return column is not None and FEWEST_GROUPS <= len(np.unique(column)) < len(column)


def _fractions(predictions: Predictions) -> str:
    """How many rows have an outcome between 0 and 1, in words."""
    soft = np.asarray(predictions.soft).reshape(len(predictions), -1)
    count = int(((soft > 0) & (soft < 1)).any(axis=1).sum())
    return "1 row is no 0 or 1" if count == 1 else f"{count:,} rows are no 0 or 1"
