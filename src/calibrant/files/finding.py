"""Finding: which array of a file is the truth, which the forecast, which a column."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from calibrant.checks import is_whole, number
from calibrant.door.arrays import DROP, Array, absent
from calibrant.door.labels import ROW_TOLERANCE
from calibrant.door.options import OPTIONS, LabelOptions, changed
from calibrant.door.samples import refuse_other_names
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.files.column_names import LABELS, OTHER_FORECASTS, OTHER_LABELS, OTHER_PREFIXES, called, paired, prefixed
from calibrant.files.columns import MULTILABEL, ROLES, Columns, outcomes, percentages
from calibrant.files.long_layout import LONG, is_long, widened
from calibrant.predictions import Predictions

_RANK = re.compile("[1-9][0-9]{0,3}")
_RESERVED = {
    *OPTIONS, "y_true", "y_proba", "logits", "copy", "correct", "confidence", "self", "cls",
}  # fmt: skip
"""Names that the constructors of `Predictions` keep for themselves."""


class Finder:
    """Finds truth, forecasts and columns among the arrays of a file."""

    def __init__(self, arrays: Columns, drop: bool = False, scale: float | None = None) -> None:
        long = is_long(arrays)
        self.source, self.arrays, self.drop = arrays.source, widened(arrays) if long else arrays, drop
        self.used: set[str] = set(LONG) if long else set()
        if scale is not None:
            number(scale, "scale", "must be positive", lambda value: 0 < value < np.inf)
        self.scale = 1.0 if scale is None else float(scale)
        """What forecasts are divided by."""
        self.origin: dict[str, str] = {} if arrays.groups is None else {"groups": arrays.groups}
        """Which columns labels, forecasts and rows that belong together were read from."""

    def predictions(
        self,
        options: LabelOptions,
        *,
        label: str | None = None,
        probs: str | None = None,
        logits: str | None = None,
        weight: str | None = None,
        confidence: str | None = None,
        correct: str | None = None,
    ) -> Predictions:
        if probs is not None and logits is not None:
            raise CalibrationInputError("probs", "and logits exclude each other", got="both")
        if (confidence is None) != (correct is None) or (confidence is not None and (label or probs or logits)):
            raise CalibrationInputError(
                "confidence", "needs correct, and neither label nor probs nor logits", got=repr(confidence or correct)
            )
        try:
            predictions = self._made(label, probs, logits, weight, options, confidence, correct)
        except CalibrationInputError as error:
            raise self._in_names_of_the_file(error) from None
        kind = self.arrays.kind
        flags = {} if kind is None else {kind: np.ones(len(predictions), int)}
        return dataclasses.replace(predictions, origin=self.origin, flags={**predictions.flags, **flags})

    def _made(
        self,
        label: str | None,
        probs: str | None,
        logits: str | None,
        weight: str | None,
        options: LabelOptions,
        confidence: str | None,
        correct: str | None,
    ) -> Predictions:
        heavy = None if weight is None else self._take(weight)
        if options.get("classes") is None:
            options["classes"] = self.class_names()
        if confidence is not None or (not (label or probs or logits) and {"confidence", "correct"} <= set(self.arrays)):
            return self._answers(confidence or "confidence", correct or "correct", heavy, options)
        if label is None and self._is_multilabel(probs or logits):
            return self._multilabel(probs, logits, heavy, options)
        if probs is None and logits is None and (shortlist := self.shortlist()) is not None:
            return self._likeliest(self._truth(label), *shortlist, heavy, options)
        truth = self._truth(label)
        forecasts, names, raw = self.forecasts(probs, logits)
        if not options.get("normalize"):
            self._refuse_several_models(forecasts, names, truth)
        options["classes"] = self.agreed(options["classes"], names)
        make = Predictions.from_logits if raw else Predictions.from_probs
        if forecasts.ndim == 1 and options["classes"] is None:
            truth = outcomes(truth)
        columns = self.columns(truth)
        return make(self._by_name(truth, names), forecasts, sample_weight=heavy, copy=False, **options, **columns)

    def _answers(self, confidence: str, correct: str, heavy: Array | None, options: LabelOptions) -> Predictions:
        right, sure = outcomes(self._take(correct)), self.numbers(confidence)
        self.origin |= {"labels": correct, "forecasts": confidence}
        known = self._known(options, heavy, "ignore_index")
        return Predictions.from_confidence(right, sure, **known, **self.columns(sure))

    def _in_names_of_the_file(self, error: CalibrationInputError) -> CalibrationInputError:
        """What is wrong, said of the columns as the file calls them."""
        name = self.origin.get(ROLES.get(error.parameter, ""), "")
        unread = error.got == repr("") and not self.drop and name in self.arrays  # text leaves missing values empty
        hint = DROP if unread and absent(self.arrays.sparse(name)).any() else error.hint
        named, where = f"{self.source}: {name!r}" if name else error.parameter, self.arrays.found_at(error.where)
        return CalibrationInputError(named, error.expected, got=error.got, where=where, hint=hint)

    def _refuse_several_models(self, forecasts: Array, names: tuple[str, ...] | None, truth: Array) -> None:
        """Refuse forecasts of one event by several models, which are no probabilities of several classes."""
        values = [] if names is None or truth.ndim != 1 else [str(value) for value in np.unique(truth[~absent(truth)])]
        if names is None or not 0 < len(values) <= 2 or set(values) <= set(names):
            return
        inside = (forecasts >= 0) & (forecasts <= 1)
        if inside.all() and (np.abs(forecasts.sum(axis=1) - 1) > ROW_TOLERANCE).mean() > 0.5:
            every = [name for name in self.arrays if name in self.used and name != self.origin["labels"]]
            raise CalibrationInputError(
                str(self.source),
                "rows of class probabilities must sum to 1",
                got=f"other sums of {', '.join(every[:5])}, and labels {' and '.join(values)}",
                hint=f"if several models forecast one event, choose one with probs={every[0]!r}",
            )

    def _is_multilabel(self, probs: str | None) -> bool:
        """Whether rows have a 0 or 1 for each of several labels, rather than one label."""
        several = MULTILABEL in self.arrays or (probs is None and self._pairs() is not None)
        return several and not any(name in self.arrays for name in LABELS)

    def _pairs(self) -> tuple[str, str] | None:
        """What columns of labels and of forecasts begin with, where there are independent labels."""
        names, marks = set(self._after("p_")), set(self._marks())
        pair = ("", "p_") if names and names <= set(self.arrays) else paired(self.arrays)
        lacking = pair is None and names and marks and not called(self.arrays, OTHER_LABELS)
        return ("y_", "p_") if names & marks or lacking else pair

    def _marks(self) -> list[str]:
        """What follows y_ in the names of columns, of those that name independent labels."""
        return [name for name in self._after("y_") if f"y_{name}" not in OTHER_LABELS]

    def _known(self, options: LabelOptions, heavy: Array | None, *allowed: str) -> dict[str, Any]:
        """The options that forecasts other than of whole rows have; those that they do not have are refused."""
        for name in {*changed(options)} - {"classes", "missing", *allowed}:
            expected = "needs one label and the probability of every class a row"
            raise CalibrationInputError(name, expected, got=str(self.source))
        known = {name: options[name] for name in ("missing", *allowed) if name in options}  # type: ignore[literal-required]
        return {"sample_weight": heavy, "copy": False, **known}

    def agreed(self, classes: Any, names: tuple[str, ...] | None) -> Any:
        """The names of the classes: those that were given, refused where columns have other names."""
        if classes is None or names is None:
            return names if classes is None else classes
        if list(names) != [str(index) for index in range(len(names))] and np.iterable(classes):
            refuse_other_names(
                "classes", tuple(classes), str(self.source), names, "leave classes out: columns name them"
            )
        return classes

    def _multilabel(
        self, probs: str | None, logits: str | None, heavy: Array | None, options: LabelOptions
    ) -> Predictions:
        known, raw = self._known(options, heavy), False
        if MULTILABEL in self.arrays:
            truth, (forecasts, names, raw) = self._take(MULTILABEL), self.forecasts(probs, logits)
        else:
            mark, prefix = self._pairs() or ("y_", "p_")
            names = tuple(self._after(prefix))
            every = dict.fromkeys((*names, *(self._marks() if mark == "y_" else ())))
            both = [f"{start}{name}" for name in every for start in (mark, prefix)]
            hint = "name the labels with label=... if each row has one"
            self.require(both, "must have y_<label> and p_<label> of every label", hint)
            truth = np.column_stack([outcomes(self._take(f"{mark}{name}")) for name in names])
            self.origin |= {"labels": f"{mark}{names[0]} .. {mark}{names[-1]}"}
            self.origin |= {"forecasts": f"{prefix}{names[0]} .. {prefix}{names[-1]}"}
            forecasts = np.column_stack([self.numbers(f"{prefix}{name}") for name in names])
        classes = self.agreed(options["classes"], names)
        columns = self.columns(truth)
        return Predictions.from_multilabel(truth, forecasts, logits=raw, classes=classes, **known, **columns)

    def shortlist(self) -> tuple[Array, Array] | None:
        """The likeliest classes and their probabilities, where a file has no others."""
        if {"ids", "probs"} <= set(self.arrays):
            values = self.numbers("probs")
            alone = values.ndim != 2 or self.arrays.loose("ids", len(values)) is not None
            return None if alone else (self._take("ids"), values)
        ranks = [[int(rank) for rank in self._after(prefix) if _RANK.fullmatch(rank)] for prefix in ("class_", "prob_")]
        if not all(ranks) or self._after("p_") or any(name in self.arrays for name in ("p", "probs", "logits")):
            return None
        classes, probs = (
            [f"{prefix}_{rank + 1}" for rank in range(max(map(max, ranks)))] for prefix in ("class", "prob")
        )
        self.require([*classes, *probs], f"must have class_1 .. {classes[-1]} and prob_1 .. {probs[-1]}")
        return np.column_stack(list(map(self._take, classes))), np.column_stack(list(map(self.numbers, probs)))

    def _likeliest(
        self, truth: Array, ids: Array, probs: Array, heavy: Array | None, options: LabelOptions
    ) -> Predictions:
        known, classes = self._known(options, heavy, "ignore_index"), options["classes"]
        if classes is None:
            hint = "pass classes=K, the number of all classes, or their names"
            expected = "needs the number of all classes"
            raise CalibrationInputError(str(self.source), expected, got="the likeliest", hint=hint)
        known |= {"n_classes": int(classes)} if is_whole(classes) else {"classes": classes}
        if not is_whole(classes) and truth.dtype.kind == ids.dtype.kind:
            every = self._by_name(np.append(ids, truth), tuple(map(str, classes)))
            ids, truth = every[: ids.size].reshape(ids.shape), every[ids.size :]
        columns = self.columns(truth, {*_RESERVED, "ids", "probs", "n_classes"})
        return Predictions.from_top_k(truth, ids, probs, **known, **columns)

    def _after(self, prefix: str) -> list[str]:
        """What follows a prefix in the names that have it."""
        return [name.removeprefix(prefix) for name in self.arrays if name.startswith(prefix)]

    def require(self, names: Sequence[str], expected: str, hint: str | None = None) -> None:
        missing = [name for name in dict.fromkeys(names) if name not in self.arrays]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 6 else ""
            got = f"no {', '.join(missing[: 5 if more else 6])}{more}"
            raise CalibrationInputError(str(self.source), expected, got=got, hint=hint)

    def class_names(self) -> Any:
        """An array that names the classes; in a table, where every column has a value a row, there is none."""
        of_rows = self.source.ending not in (".npz", ".npy")
        names = ("classes",) if of_rows else ("classes", "class_names")
        key = next((name for name in names if name in self.arrays), None)
        classes: Any = None if key is None else self._take(key)
        is_count = classes is not None and classes.size == 1 and classes.dtype.kind in "iu"
        return int(classes.item()) if is_count else classes

    def _truth(self, label: str | None) -> Array:
        keys = [name for name in LABELS if name in self.arrays] or called(self.arrays, OTHER_LABELS)
        if label is None and len(keys) != 1:
            raise CalibrationInputError(
                str(self.source),
                f"must have one of the columns {', '.join(LABELS)}",
                got=" and ".join(keys) or "none of them",
                hint=f"name it with label=...; there are: {', '.join(map(repr, self.arrays))}",
            )
        self.origin["labels"] = key = keys[0] if label is None else label
        return self._take(key)

    def forecasts(self, probs: str | None, logits: str | None) -> tuple[Array, tuple[str, ...] | None, bool]:
        """The forecasts, the class names where columns tell them, and whether they are logits."""
        named = logits if probs is None else probs
        if named is None:
            return self._found()
        if named in self.arrays:
            self.origin["forecasts"] = named
            return self.numbers(named), None, logits is not None
        return *self._wide(f"{named}_"), logits is not None

    def _found(self) -> tuple[Array, tuple[str, ...] | None, bool]:
        """The forecasts where nobody said what they are called: under our names, else under those of other tools."""
        keys = [name for name in ("p", "probs", "logits") if name in self.arrays]
        prefixes = ["p_"] if self._after("p_") else []
        if not keys and not prefixes:
            keys = [name for name in called(self.arrays, OTHER_FORECASTS) if name not in self.used]
            prefixes = list(prefixed(self.arrays, OTHER_PREFIXES))
            if len(keys) == 1 and not prefixes:
                self._refuse_decisions(keys[0])
        if len(keys) + len(prefixes) != 1:
            raise CalibrationInputError(
                str(self.source),
                "must have p, p_<class>, probs, logits, class_1 .. and prob_1 .., or confidence and correct",
                got=" and ".join([*keys, *(f"{prefix}<class>" for prefix in prefixes)])
                or f"only {', '.join(self.arrays)}",
                hint="name the forecasts with probs=... or logits=...",
            )
        if prefixes:
            return *self._wide(prefixes[0]), False
        self.origin["forecasts"] = keys[0]
        return self.numbers(keys[0]), None, keys[0] == "logits"

    def _refuse_decisions(self, name: str) -> None:
        """Refuse what is called like forecasts and holds nothing but 0 and 1."""
        values = self.numbers(name)
        if ((values == 0) | (values == 1)).all():
            hint = f"name the probabilities with probs=...; if these are meant, probs={name!r}"
            raise CalibrationInputError(
                str(self.source), f"{name!r} must hold probabilities", got="0 and 1 alone, as decisions are", hint=hint
            )

    def _wide(self, prefix: str) -> tuple[Array, tuple[str, ...]]:
        names = [name for name in self.arrays if name.startswith(prefix)]
        if len(names) < 2:
            alike = [name for name in self.arrays if name.startswith(prefix[:-1])]
            rename = alike[1:] and f"if {alike[0]!r} .. {alike[-1]!r} are the classes, rename them to p_<class>"
            raise CalibrationInputError(
                str(self.source),
                f"must have the column {prefix[:-1]!r} or several {prefix}<class>",
                got=len(names),
                hint=rename or nearest(prefix[:-1], self.arrays),
            )
        self.origin["forecasts"] = f"{names[0]} .. {names[-1]}"
        columns = [self.numbers(name) for name in names]
        for name, column in zip(names, columns, strict=True):
            if column.ndim != 1 or column.dtype.kind not in "fiub":
                expected = "must have a number a row in each forecast column"
                raise CalibrationInputError(str(self.source), expected, got=name)
        return np.column_stack(columns), tuple(name[len(prefix) :] for name in names)

    def _by_name(self, truth: Array, names: tuple[str, ...] | None) -> Array:
        """Labels as indices where numbers name the columns: p_3, p_5 with labels 3 and 5."""
        gaps = absent(truth)
        if names is None or truth.ndim != 1 or truth.dtype.kind not in "iubf"[: 3 + gaps.any()]:
            return truth
        values, places = np.unique(np.where(gaps, 0, truth).astype(np.int64), return_inverse=True)
        known = {name: index for index, name in enumerate(names)}
        unknown = [str(value) for value in np.unique(truth[~gaps]).astype(np.int64) if str(value) not in known]
        if not unknown:
            indices = np.array([known.get(str(value), 0) for value in values])[places]
            return np.where(gaps, np.nan, indices) if gaps.any() else indices
        if all(name.isdigit() for name in names):
            expected = f"labels must be among the class names {', '.join(names)}"
            raise CalibrationInputError(str(self.source), expected, got=unknown[0])
        return truth

    def _take(self, name: str) -> Array:
        if name not in self.arrays:
            raise CalibrationInputError(
                str(self.source), "lacks a column", got=repr(name), hint=nearest(name, self.arrays)
            )
        self.used.add(name)
        return self.arrays.sparse(name) if self.drop else self.arrays.whole(name)

    def numbers(self, name: str) -> Array:
        """A column that makes sense as numbers only, so that the first cell that is none can be named."""
        if name not in self.arrays:
            return self._take(name)
        self.used.add(name)
        numbers = self.arrays.sparse(name, numeric=True) if self.drop else self.arrays.whole(name, numeric=True)
        if numbers.dtype.kind == "U" and (shares := percentages(numbers)) is not None:
            return shares
        if numbers.dtype.kind == "U":
            got = repr(str(numbers.flat[0])) if numbers.size else "nothing"
            raise CalibrationInputError(str(self.source), f"{name!r} must be numbers", got=got)
        return numbers if self.scale == 1 else numbers / self.scale

    def columns(self, rows: Array, reserved: Collection[str] = _RESERVED) -> dict[str, Any]:
        """What else has one value per row."""
        n = len(rows) if rows.ndim else 0
        names = [name for name in self.arrays if name and name not in self.used and name not in reserved]
        columns = {name: self.arrays.loose(name, n) for name in names}
        return {name: column for name, column in columns.items() if column is not None}
