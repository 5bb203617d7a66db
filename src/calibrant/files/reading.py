"""Reading and writing prediction files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from calibrant.checks import word
from calibrant.door.arrays import Array
from calibrant.door.options import LabelOptions, refuse_unknown
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.finding import Finder
from calibrant.files.formats import read_arrays
from calibrant.files.harness_logs import answers, is_harness_log
from calibrant.files.parquet import write_parquet
from calibrant.files.score_columns import ScoreColumns, scores_found
from calibrant.files.writing import labelled, write_csv, write_npz
from calibrant.predictions import Predictions

FORMATS = ("npz", "csv", "parquet")
"""What predictions can be written as."""
SHIPPED = Path(__file__).parents[1] / "data"
"""The predictions that come with the package: fashion_mnist_validation.npz and fashion_mnist_test.npz."""


def read(
    path: str | Path | InputFile | Sequence[str | Path | InputFile],
    *,
    label: str | None = None,
    probs: str | None = None,
    logits: str | None = None,
    weight: str | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    scale: float | None = None,
    **options: Unpack[LabelOptions],
) -> Predictions:
    """Predictions from a NPZ, CSV, Parquet or JSONL file, or from a pair of NPY files, labels first.

    Files may be packed by gzip. The text "-" is standard input; it and pipes are read once, and their content tells
    the format.

    Labels are looked for under `label`, `labels` or `y`; forecasts under `p` (an event), `p_<class>` columns,
    `probs`, `logits`, or `confidence` with `correct`; then under names that other tools use, such as `y_true`,
    `target`, `y_prob`, `score` or `pred_proba` (`origin` says what was taken). Other names are given by `label`,
    `probs` or `logits`, or by `confidence` and `correct`. Percentages ("90%") are read as shares; `scale=100` divides
    forecasts by 100.
    Other columns of one value per row become sample columns. An array `classes` or `class_names` names the classes.
    The options are those of `Predictions.from_probs`; with `missing="drop"`, empty cells and nulls are missing values.

    Logs of language models are read as they are: those of lm-evaluation-harness (samples_*.jsonl) where questions have
    given choices, whose log-likelihoods are logits, and those of Inspect (.eval, .json), whose answers have a
    confidence. What questions are about (`subject`, `category`) are columns; a note says what kind of confidence it is.
    Where a question has several answers, which depend on each other, `origin["groups"]` is the column of its id.

    The k likeliest classes alone are in `class_1` .. `class_k` and `prob_1` .. `prob_k`, or in lists (a matrix each)
    `ids` and `probs`; then `classes` is the number of all classes, or their names. Independent labels are in
    `y_<label>` (0 or 1) and `p_<label>`, in pairs of other names such as `label_<label>` and `prob_<label>`, or in
    lists (a matrix each) `multilabel` and `probs`. With a line for each class of each row, they are in `row` (the row's
    number or name), `class`, `p` and the label, the same on all lines of a row; these lines stand together.

    >>> from calibrant.files.reading import SHIPPED, read
    >>> read(SHIPPED / "fashion_mnist_test.npz")
    Predictions(n=10000, 10 classes, logits)
    """
    refuse_unknown(options, read, LabelOptions.__optional_keys__)
    paths = [path] if isinstance(path, (str, Path, InputFile)) else list(path)
    if len(paths) == 2:
        if any(name is not None for name in (label, probs, weight, confidence, correct)):
            raise CalibrationInputError("label, probs and weight", "name arrays in one file", got="two files")
        return _pair(*paths, scale=scale, logits=logits is not None, **options)
    if len(paths) != 1:
        raise CalibrationInputError("path", "must be one file, or two NPY files", got=len(paths))
    arrays = read_arrays(paths[0])
    if arrays.source.ending == ".npy":
        raise CalibrationInputError(
            str(arrays.source), "needs its labels", got="one NPY file", hint="give two: labels.npy forecasts.npy"
        )
    drop = options.get("missing") in ("drop", "wrong")
    keys = {"label": label, "probs": probs, "logits": logits, "weight": weight}
    if not any((*keys.values(), confidence, correct)) and is_harness_log(arrays):
        arrays = answers(arrays)
    return Finder(arrays, drop, scale).predictions(options, **keys, confidence=confidence, correct=correct)


def read_scores(
    path: str | Path,
    *,
    label: str | None = None,
    probs: str | None = None,
    logits: str | None = None,
    weight: str | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    scale: float | None = None,
    classes: Any = None,
    ignore_index: float | None = None,
    missing: str = "error",
) -> ScoreColumns:
    """The forecasts of a file whose labels may be missing: their `values`, whether they `are_logits`, names of
    `classes`, all other `columns`, and `remarks`, how many rows were left out and why.

    The options are those of `read`. Columns that are named must be there, and stay columns; the one that `correct`
    names is called so. Rows without a forecast are left out with `missing="drop"`, those whose label is `ignore_index`
    always; a row without a label stays.

    >>> from calibrant.files.reading import SHIPPED, read_scores
    >>> scores = read_scores(SHIPPED / "fashion_mnist_test.npz")
    >>> scores.values.shape, scores.are_logits, scores.classes[1], sorted(scores.columns)
    ((10000, 10), True, 'Trouser', ['ink', 'labels'])
    """
    word(missing, "missing", "error", "drop", "wrong")
    arrays = read_arrays(path)
    keys = {"label": label, "weight": weight, "correct": correct}
    if not any((*keys.values(), probs, logits, confidence)) and is_harness_log(arrays):
        arrays = answers(arrays)
    if confidence is not None and (probs or logits or label):
        raise CalibrationInputError("confidence", "excludes label, probs and logits", got=repr(confidence))
    finder = Finder(arrays, missing != "error", scale)
    return scores_found(finder, keys, confidence or probs, logits, classes=classes, ignore_index=ignore_index)


def write(
    path: str | Path,
    probabilities: Array,
    classes: Sequence[str],
    columns: Mapping[str, Array],
    *,
    format: str | None = None,
) -> None:
    """Probabilities and columns to a NPZ, CSV or Parquet file that `read` understands; written beside and renamed.

    The format is "npz", "csv" or "parquet"; without it, the ending tells. The text "-" is standard output.

    >>> import pathlib, tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "forecasts.csv")
    >>> write(path, np.array([[.75, .25]]), ["cat", "dog"], {"label": np.array(["cat"])})
    >>> path.read_text().splitlines()
    ['label,p_cat,p_dog', 'cat,0.75,0.25']
    >>> folder.cleanup()
    """
    form = format or format_named(path)
    if probabilities.ndim > 2 and form != "npz":
        hint = "write a file that ends in .npz"
        raise CalibrationInputError(str(path), "can hold a row a sample", got="maps of classes", hint=hint)
    writers = dict(zip(FORMATS, (write_npz, write_csv, write_parquet), strict=True))
    writers[form](path, probabilities, classes, labelled(columns, classes, together=form == "npz"))


def format_named(path: str | Path) -> str:
    """The format that the ending of a file to be written names.

    >>> format_named("forecasts.csv")
    'csv'
    """
    ending = Path(path).suffix.lower()
    if ending.removeprefix(".") not in FORMATS:
        raise CalibrationInputError(str(path), "must end in .npz, .csv or .parquet", got=repr(ending))
    return ending.removeprefix(".")


def _pair(
    first: str | Path | InputFile,
    second: str | Path | InputFile,
    *,
    scale: float | None,
    logits: bool,
    **options: Any,
) -> Predictions:
    truth, forecasts = read_arrays(first), read_arrays(second)
    for path, arrays in ((first, truth), (second, forecasts)):
        if set(arrays) != {"array"}:
            raise CalibrationInputError(str(path), "of a pair must be a NPY file", got="another kind")
    make = Predictions.from_logits if logits else Predictions.from_probs
    values = Finder(forecasts, scale=scale).numbers("array")
    return make(truth["array"], values, copy=False, **options)
