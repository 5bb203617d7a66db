"""Reading and writing prediction files: which array is the truth, which the forecast, which a column."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from calibrant.checks import is_whole
from calibrant.door.arrays import MISSING, Array, absent
from calibrant.door.options import OPTIONS, LabelOptions, changed, refuse_unknown
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.files.columns import LABELS, MULTILABEL, Columns
from calibrant.files.formats import read_arrays
from calibrant.files.parquet import write_parquet
from calibrant.files.writing import labelled, write_csv, write_npz
from calibrant.predictions import Predictions

SHIPPED = Path(__file__).parents[1] / "data"
"""The predictions that come with the package: fashion_mnist_validation.npz and fashion_mnist_test.npz."""


def read(
    path: str | Path | Sequence[str | Path],
    *,
    label: str | None = None,
    probs: str | None = None,
    logits: str | None = None,
    weight: str | None = None,
    **options: Unpack[LabelOptions],
) -> Predictions:
    """Predictions from a NPZ, CSV, Parquet or JSONL file, or from a pair of NPY files, labels first.

    Labels are looked for under `label`, `labels` or `y`; forecasts under `p` (an event), `p_<class>` columns,
    `probs`, `logits`, or `confidence` with `correct`. Other names are given by `label`, `probs` or `logits`;
    other columns of one value per row become sample columns. An array `classes` or `class_names` names the classes.
    The options are those of `Predictions.from_probs`; with `missing="drop"`, empty cells and nulls are missing values.

    The k likeliest classes alone are in `class_1` .. `class_k` and `prob_1` .. `prob_k`, or in lists (a matrix each)
    `ids` and `probs`; then `classes` is the number of all classes, or their names. Independent labels are in
    `y_<label>` (0 or 1) and `p_<label>`, or in lists (a matrix each) `multilabel` and `probs`.

    >>> from calibrant.files.reading import SHIPPED, read
    >>> read(SHIPPED / "fashion_mnist_test.npz")
    Predictions(n=10000, 10 classes, logits)
    """
    refuse_unknown(options, read, LabelOptions.__optional_keys__)
    paths = [Path(name) for name in ([path] if isinstance(path, (str, Path)) else path)]
    if len(paths) == 2:
        if label is not None or probs is not None or weight is not None:
            raise CalibrationInputError("label, probs and weight", "name arrays in one file", got="two files")
        return _pair(*paths, logits=logits is not None, **options)
    if len(paths) != 1:
        raise CalibrationInputError("path", "must be one file, or two NPY files", got=len(paths))
    arrays = read_arrays(paths[0])
    if set(arrays) == {"array"} and paths[0].suffix.lower() == ".npy":
        raise CalibrationInputError(
            str(paths[0]), "needs its labels", got="one NPY file", hint="give two: labels.npy forecasts.npy"
        )
    drop = options.get("missing") == "drop"
    return _Finder(paths[0], arrays, drop).predictions(label, probs, logits, weight, options)


def read_scores(
    path: str | Path, *, probs: str | None = None, logits: str | None = None
) -> tuple[Array, bool, tuple[str, ...] | None, dict[str, Array]]:
    """The forecasts of a file whose labels may be missing, whether they are logits, class names, all other columns.

    >>> from calibrant.files.reading import SHIPPED, read_scores
    >>> scores, are_logits, names, others = read_scores(SHIPPED / "fashion_mnist_test.npz")
    >>> scores.shape, are_logits, names[1], sorted(others)
    ((10000, 10), True, 'Trouser', ['ink', 'labels'])
    """
    arrays = read_arrays(Path(path))
    if set(arrays) == {"array"}:
        return arrays["array"], logits is not None, None, {}
    finder = _Finder(Path(path), arrays)
    if probs is None and logits is None and {"confidence", "correct"} <= set(arrays):
        probs = "confidence"
    if probs is None and logits is None and finder._shortlist() is not None:
        raise CalibrationInputError(str(path), "must have the probability of every class", got="the likeliest alone")
    forecasts, names, raw = finder._forecasts(probs, logits)
    if names is None and (classes_given := finder._class_names()) is not None:
        names = tuple(map(str, classes_given.tolist()))
    truth = {MULTILABEL: arrays[MULTILABEL]} if MULTILABEL in arrays else {}
    return forecasts, raw, names, truth | finder._columns(forecasts, reserved=())


def write(path: str | Path, probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array]) -> None:
    """Probabilities and columns to a NPZ, CSV or Parquet file that `read` understands; written beside and renamed.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "forecasts.csv")
    >>> write(path, np.array([[.75, .25]]), ["cat", "dog"], {"label": np.array(["cat"])})
    >>> path.read_text().splitlines()
    ['label,p_cat,p_dog', 'cat,0.75,0.25']
    >>> folder.cleanup()
    """
    kinds = {".npz": write_npz, ".csv": write_csv, ".parquet": write_parquet}
    target = Path(path)
    if target.suffix.lower() not in kinds:
        raise CalibrationInputError(str(path), "must end in .npz, .csv or .parquet", got=repr(target.suffix))
    ending = target.suffix.lower()
    kinds[ending](target, probabilities, classes, labelled(columns, classes, together=ending == ".npz"))


_RANK = re.compile("[1-9][0-9]{0,3}")
_RESERVED = {
    *OPTIONS, "y_true", "y_proba", "logits", "copy", "correct", "confidence", "self", "cls",
}  # fmt: skip
"""Names that the constructors of `Predictions` keep for themselves."""


class _Finder:
    """Finds truth, forecasts and columns among the arrays of a file."""

    def __init__(self, path: Path, arrays: Columns, drop: bool = False) -> None:
        self.path, self.arrays, self.drop = path, arrays, drop
        self.used: set[str] = set()

    def predictions(
        self,
        label: str | None,
        probs: str | None,
        logits: str | None,
        weight: str | None,
        options: LabelOptions,
    ) -> Predictions:
        if probs is not None and logits is not None:
            raise CalibrationInputError("probs", "and logits exclude each other", got="both")
        heavy = None if weight is None else self._take(weight)
        if options.get("classes") is None:
            options["classes"] = self._class_names()
        if label is None and probs is None and logits is None and {"confidence", "correct"} <= set(self.arrays):
            correct, confidence = _outcomes(self._take("correct")), self._numbers("confidence")
            columns = self._columns(confidence)
            known = self._known(options, heavy, "ignore_index")
            return Predictions.from_confidence(correct, confidence, **known, **columns)
        if label is None and logits is None and self._is_multilabel(probs):
            return self._multilabel(probs, heavy, options)
        if probs is None and logits is None and (shortlist := self._shortlist()) is not None:
            return self._likeliest(self._truth(label), *shortlist, heavy, options)
        truth = self._truth(label)
        forecasts, names, raw = self._forecasts(probs, logits)
        if options["classes"] is None:
            options["classes"] = names
        make = Predictions.from_logits if raw else Predictions.from_probs
        if forecasts.ndim == 1 and options["classes"] is None:
            truth = _outcomes(truth)
        columns = self._columns(truth)
        return make(self._by_name(truth, names), forecasts, sample_weight=heavy, copy=False, **options, **columns)

    def _is_multilabel(self, probs: str | None) -> bool:
        """Whether rows have a 0 or 1 for each of several labels, rather than one label."""
        pairs = probs is None and self._after("y_") and self._after("p_")
        return bool(MULTILABEL in self.arrays or pairs) and not any(name in self.arrays for name in LABELS)

    def _known(self, options: LabelOptions, heavy: Array | None, *allowed: str) -> dict[str, Any]:
        """The options that forecasts other than of whole rows have; those that they do not have are refused."""
        for name in {*changed(options)} - {"classes", "missing", *allowed}:
            expected = "needs one label and the probability of every class a row"
            raise CalibrationInputError(name, expected, got=str(self.path))
        known = {name: options[name] for name in ("missing", *allowed) if name in options}  # type: ignore[literal-required]
        return {"sample_weight": heavy, "copy": False, **known}

    def _multilabel(self, probs: str | None, heavy: Array | None, options: LabelOptions) -> Predictions:
        known = self._known(options, heavy)
        if MULTILABEL in self.arrays:
            truth, (forecasts, names, raw) = self._take(MULTILABEL), self._forecasts(probs, None)
            if raw:
                raise CalibrationInputError(str(self.path), "must have probabilities of labels", got="logits")
        else:
            every = [f"{prefix}{name}" for name in self._after("p_") + self._after("y_") for prefix in ("y_", "p_")]
            hint = "name the labels with label=... if each row has one"
            self._require(every, "must have y_<label> and p_<label> of every label", hint)
            names = tuple(self._after("p_"))
            truth = np.column_stack([_outcomes(self._take(f"y_{name}")) for name in names])
            forecasts = np.column_stack([self._numbers(f"p_{name}") for name in names])
        classes = names if options["classes"] is None else options["classes"]
        return Predictions.from_multilabel(truth, forecasts, classes=classes, **known, **self._columns(truth))

    def _shortlist(self) -> tuple[Array, Array] | None:
        """The likeliest classes and their probabilities, where a file has no others."""
        if {"ids", "probs"} <= set(self.arrays):
            values = self._numbers("probs")
            alone = values.ndim != 2 or self.arrays.loose("ids", len(values)) is not None
            return None if alone else (self._take("ids"), values)
        ranks = [[int(rank) for rank in self._after(prefix) if _RANK.fullmatch(rank)] for prefix in ("class_", "prob_")]
        if not all(ranks) or self._after("p_") or any(name in self.arrays for name in ("p", "probs", "logits")):
            return None
        classes, probs = (
            [f"{prefix}_{rank + 1}" for rank in range(max(map(max, ranks)))] for prefix in ("class", "prob")
        )
        self._require([*classes, *probs], f"must have class_1 .. {classes[-1]} and prob_1 .. {probs[-1]}")
        return np.column_stack(list(map(self._take, classes))), np.column_stack(list(map(self._numbers, probs)))

    def _likeliest(
        self, truth: Array, ids: Array, probs: Array, heavy: Array | None, options: LabelOptions
    ) -> Predictions:
        known, classes = self._known(options, heavy, "ignore_index"), options["classes"]
        if classes is None:
            hint = "pass classes=K, the number of all classes, or their names"
            raise CalibrationInputError(
                str(self.path), "needs the number of all classes", got="the likeliest", hint=hint
            )
        known |= {"n_classes": int(classes)} if is_whole(classes) else {"classes": classes}
        if not is_whole(classes) and truth.dtype.kind == ids.dtype.kind:
            every = self._by_name(np.append(ids, truth), tuple(map(str, classes)))
            ids, truth = every[: ids.size].reshape(ids.shape), every[ids.size :]
        columns = self._columns(truth, {*_RESERVED, "ids", "probs", "n_classes"})
        return Predictions.from_top_k(truth, ids, probs, **known, **columns)

    def _after(self, prefix: str) -> list[str]:
        """What follows a prefix in the names that have it."""
        return [name.removeprefix(prefix) for name in self.arrays if name.startswith(prefix)]

    def _require(self, names: Sequence[str], expected: str, hint: str | None = None) -> None:
        missing = [name for name in dict.fromkeys(names) if name not in self.arrays]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 6 else ""
            got = f"no {', '.join(missing[: 5 if more else 6])}{more}"
            raise CalibrationInputError(str(self.path), expected, got=got, hint=hint)

    def _class_names(self) -> Array | None:
        """An array that names the classes; in a table, where every column has a value a row, there is none."""
        names = ("classes",) if self.path.suffix.lower() not in (".npz", ".npy") else ("classes", "class_names")
        key = next((name for name in names if name in self.arrays), None)
        return None if key is None else self._take(key)

    def _truth(self, label: str | None) -> Array:
        if label is not None:
            return self._take(label)
        keys = [name for name in LABELS if name in self.arrays]
        if len(keys) != 1:
            raise CalibrationInputError(
                str(self.path),
                f"must have one of the columns {', '.join(LABELS)}",
                got=" and ".join(keys) or "none of them",
                hint=f"name it with label=...; there are: {', '.join(map(repr, self.arrays))}",
            )
        return self._take(keys[0])

    def _forecasts(self, probs: str | None, logits: str | None) -> tuple[Array, tuple[str, ...] | None, bool]:
        """The forecasts, the class names where columns tell them, and whether they are logits."""
        named = probs or logits
        if named is not None:
            if named in self.arrays:
                return self._numbers(named), None, logits is not None
            return *self._wide(f"{named}_"), logits is not None
        keys = [name for name in ("p", "probs", "logits") if name in self.arrays]
        wide = bool(self._after("p_"))
        if len(keys) + wide != 1:
            raise CalibrationInputError(
                str(self.path),
                "must have p, p_<class>, probs, logits, class_1 .. and prob_1 .., or confidence and correct",
                got=" and ".join([*keys, *(["p_<class>"] if wide else [])]) or f"only {', '.join(self.arrays)}",
                hint="name the forecasts with probs=... or logits=...",
            )
        return (*self._wide("p_"), False) if wide else (self._numbers(keys[0]), None, keys[0] == "logits")

    def _wide(self, prefix: str) -> tuple[Array, tuple[str, ...]]:
        names = [name for name in self.arrays if name.startswith(prefix)]
        if len(names) < 2:
            raise CalibrationInputError(
                str(self.path),
                f"must have the column {prefix[:-1]!r} or several {prefix}<class>",
                got=len(names),
                hint=nearest(prefix[:-1], self.arrays),
            )
        columns = [self._numbers(name) for name in names]
        for name, column in zip(names, columns, strict=True):
            if column.ndim != 1 or column.dtype.kind not in "fiub":
                raise CalibrationInputError(
                    str(self.path), "must have a number a row in each forecast column", got=name
                )
        return np.column_stack(columns), tuple(name[len(prefix) :] for name in names)

    def _by_name(self, truth: Array, names: tuple[str, ...] | None) -> Array:
        """Labels as names where numbers name the columns: p_3, p_5 with labels 3 and 5."""
        gaps = absent(truth)
        if names is None or truth.ndim != 1 or truth.dtype.kind not in "iubf"[: 3 + gaps.any()]:
            return truth
        spelled = np.where(gaps, 0, truth).astype(np.int64).astype(str)
        if set(np.unique(spelled[~gaps]).tolist()) <= set(names):
            return np.where(gaps, MISSING, spelled)
        if all(name.isdigit() for name in names):
            raise CalibrationInputError(
                str(self.path),
                f"labels must be among the class names {', '.join(names)}",
                got=str(next(label for label in spelled.tolist() if label not in names)),
            )
        return truth

    def _take(self, name: str) -> Array:
        if name not in self.arrays:
            raise CalibrationInputError(
                str(self.path), "lacks a column", got=repr(name), hint=nearest(name, self.arrays)
            )
        self.used.add(name)
        return self.arrays.sparse(name) if self.drop else self.arrays[name]

    def _numbers(self, name: str) -> Array:
        """A column that makes sense as numbers only, so that the first cell that is none can be named."""
        if name not in self.arrays:
            return self._take(name)
        self.used.add(name)
        numbers = self.arrays.sparse(name, numeric=True) if self.drop else self.arrays.read_numbers(name)
        if numbers.dtype.kind == "U":
            got = repr(str(numbers.flat[0])) if numbers.size else "nothing"
            raise CalibrationInputError(str(self.path), f"{name!r} must be numbers", got=got)
        return numbers

    def _columns(self, rows: Array, reserved: Collection[str] = _RESERVED) -> dict[str, Any]:
        """What else has one value per row."""
        n = len(rows) if rows.ndim else 0
        names = [name for name in self.arrays if name and name not in self.used and name not in reserved]
        columns = {name: self.arrays.loose(name, n) for name in names}
        return {name: column for name, column in columns.items() if column is not None}


def _outcomes(truth: Array) -> Array:
    """Outcomes of an event in words, true and false, as Python and spreadsheets write them."""
    gaps = absent(truth)
    if truth.dtype.kind != "U" or not np.isin(np.char.lower(truth[~gaps]), ("true", "false")).all():
        return truth
    return np.where(gaps, np.nan, np.char.lower(truth) == "true") if gaps.any() else np.char.lower(truth) == "true"


def _pair(first: Path, second: Path, *, logits: bool, **options: Any) -> Predictions:
    truth, forecasts = read_arrays(first), read_arrays(second)
    for path, arrays in ((first, truth), (second, forecasts)):
        if set(arrays) != {"array"}:
            raise CalibrationInputError(str(path), "of a pair must be a NPY file", got="another kind")
    make = Predictions.from_logits if logits else Predictions.from_probs
    return make(truth["array"], forecasts["array"], copy=False, **options)
