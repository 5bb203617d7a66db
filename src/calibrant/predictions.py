"""Predictions: the only door. What has passed it is checked, and everything behind it trusts it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant.checks import flag
from calibrant.door import leaks
from calibrant.door.arrays import Array
from calibrant.door.checked import Checked
from calibrant.door.class_kinds import Classes, Shortlist
from calibrant.door.event_kinds import Answer, Labels, OneEvent
from calibrant.door.kinds import Kind
from calibrant.door.labels import answered, told_of_logits
from calibrant.door.rows import all_classes, as_label_rows, as_shortlist
from calibrant.door.samples import Door, Truth
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import DOUBLE, Precision
from calibrant.kernels.sharing import unshared
from calibrant.kernels.totals import Ints


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Checked):
    """Forecasts and what came true, checked once.

    Made by `from_probs`, `from_logits`, `from_confidence`, `from_top_k` and `from_multilabel`. A 1-D forecast is about
    one event; an (n, K) forecast is about K classes. Logits are held as logits. The arrays it holds are read-only.

    >>> import calibrant as cal
    >>> cal.Predictions.from_probs([0, 2], [[.7, .2, .1], [.1, .3, .6]], classes=["cat", "dog", "owl"])
    Predictions(n=2, 3 classes, probabilities)
    """

    @classmethod
    def from_probs(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        classes: Iterable[Any] | None = None,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        class_axis: int | None = None,
        normalize: bool = False,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Probabilities: 1-D for one event, (n, K) for classes; other keywords are sample columns.

        `class_axis` says where the classes are when there are more than two axes (segmentation
        maps); maps of one event need none. `ignore_index` is a label whose rows are left out;
        `normalize` divides each row by its sum; `missing="drop"` leaves out rows where a label, a
        forecast or a weight is missing. Named columns of a frame are classes of these names.

        Arrays are copied, so that later changes of them change nothing here, and a buffer can be
        used again for the next batch. With `copy=False` no more is copied than a conversion needs:
        forecasts and columns then change with the arrays that were given. Memory maps (`np.memmap`)
        and Arrow buffers are never copied, nor are tensors on a device (of torch): these are checked and
        reduced where they are, and only totals come back. So they must not be changed while the predictions are used.

        >>> import calibrant as cal
        >>> cal.Predictions.from_probs([1, 0], [.9, .2], region=["north", "south"])
        Predictions(n=2, one event, probabilities)
        """
        door = Door(y_true, y_proba, ("y_true", "y_proba"), class_axis, missing, sample_weight)
        forecasts, truth = door.probabilities(normalize), door.labels(classes, ignore_index)
        kind = partial(Classes.surveyed, survey=door.survey) if door.width else OneEvent
        return cls._through(door, kind, forecasts, truth, columns, copy, y_proba)

    @classmethod
    def from_logits(
        cls,
        y_true: Any,
        logits: Any,
        *,
        classes: Iterable[Any] | None = None,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        class_axis: int | None = None,
        normalize: bool = False,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Logits (or log-probabilities): 1-D through the sigmoid, (n, K) through the softmax.

        -inf, the log-probability of what cannot be, is read as 1,000 below the largest logit of its row, and noted;
        tensors on a device must be finite.
        The other options are as in `from_probs`; `normalize` is refused, because there is nothing to normalise.

        >>> import calibrant as cal
        >>> p = cal.Predictions.from_logits([0, 1], [[2., 0.], [0., 1.]])
        >>> p.probabilities.round(3).tolist()
        [[0.881, 0.119], [0.269, 0.731]]
        """
        door = Door(y_true, logits, ("y_true", "logits"), class_axis, missing, sample_weight)
        forecasts, truth = door.logits(normalize, softmax=True), door.labels(classes, ignore_index)
        classes_of = partial(Classes.surveyed, survey=door.survey)
        kind = partial(classes_of if door.width else OneEvent, logits=True)
        flags = {**told_of_logits(forecasts), **door.lifted}
        return cls._through(door, kind, (forecasts, flags), truth, columns, copy, logits)

    @classmethod
    def from_confidence(
        cls,
        correct: Any,
        confidence: Any,
        *,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Only the top answer was kept: was it right, and how sure was the model of it?

        Arrays are copied, or not, as in `from_probs`; so are the options. With `missing="wrong"`, an answer of which
        nobody knows whether it was right counts as wrong, and rows without a confidence are left out; both are noted.

        >>> import calibrant as cal
        >>> cal.Predictions.from_confidence([True, False], [.9, .6])
        Predictions(n=2, the top answer, probabilities)
        """
        unanswered: dict[str, Ints] = {}
        if isinstance(missing, str) and missing == "wrong":
            (correct, unanswered), missing = answered(correct), "drop"
        door = Door(correct, confidence, ("correct", "confidence"), None, missing, sample_weight, event=True)
        (forecasts, flags), truth = door.probabilities(), door.labels(None, ignore_index)
        return cls._through(door, Answer, (forecasts, flags | unanswered), truth, columns, copy, None)

    @classmethod
    def from_top_k(
        cls,
        y_true: Any,
        ids: Any,
        probs: Any,
        *,
        n_classes: int | None = None,
        classes: Iterable[Any] | None = None,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Only the k likeliest classes were kept, as served models log them: which they are, and their probabilities.

        `ids` and `probs` are (n, k), in any order within a row; `n_classes` says how many classes there are in all, or
        `classes` names them. Labels are any of these classes. What asks for no more than the k likeliest is answered to
        the bit as if all probabilities were there; all else says what is missing. The other options are as in
        `from_probs`.

        >>> import calibrant as cal
        >>> p = cal.Predictions.from_top_k([7, 3], [[7, 2], [0, 3]], [[.8, .1], [.5, .3]], n_classes=1000)
        >>> cal.ECE(p).value, cal.MeanScore(cal.InTopK(2), cal.hit)(p).value
        (0.35, 1.0)
        """
        names, count = all_classes(n_classes, classes)
        door = Door(y_true, probs, ("y_true", "probs"), None, missing, sample_weight, whole=False, ids=ids)
        values, flags = door.probabilities()
        truth = door.labels(names, ignore_index, count)
        indices, values = as_shortlist(values, door.ids, truth.kept, count, names)
        kind = partial(Shortlist, ids=indices, count=count)
        return cls._through(door, kind, (values, flags), truth, columns, copy, None)

    @classmethod
    def from_multilabel(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        logits: bool = False,
        classes: Iterable[Any] | None = None,
        sample_weight: Any = None,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Independent labels, any of which may be true of a sample: 0 / 1 of each and its probability, (n, L) both.

        With `logits=True` forecasts are logits, whose sigmoid is the probability. Errors and scores are computed label
        by label; the value is the mean over labels, the parts are the labels. The options are as in `from_probs`.

        >>> import calibrant as cal
        >>> p = cal.Predictions.from_multilabel([[1, 1], [0, 1]], [[.9, .8], [.2, .6]], classes=["dog", "outdoors"])
        >>> print(cal.BRIER(p))
        BRIER 0.0625 (n=2, every label, mean of parts)
        """
        flag(logits, "logits", "forecasts come second, whatever they are")
        door = Door(y_true, y_proba, ("y_true", "y_proba"), None, missing, sample_weight, whole=False)
        forecasts = (door.logits(), {}) if logits else door.probabilities()
        kind, truth = partial(Labels, logits=bool(logits)), as_label_rows(door, classes)
        return cls._through(door, kind, forecasts, truth, columns, copy, y_proba)

    @classmethod
    def _through(
        cls,
        door: Door,
        kind: Callable[[Array], Kind],
        forecasts: tuple[Array, Mapping[str, Ints]],
        truth: Truth,
        arrays: Mapping[str, Any],
        copy: Any,
        source: Any,
    ) -> Predictions:
        flag(copy, "copy", "a sample column needs another name")
        values, flags = forecasts
        labels = truth.labels
        columns = {name: door.column(name, data) for name, data in arrays.items()}
        if copy and truth.kept is None:  # leaving rows out is a copy
            values, columns = unshared(values), {name: unshared(column) for name, column in columns.items()}
            labels = None if labels is None else unshared(labels)
        held = kind(values)
        predictions = cls(
            forecasts=held,
            labels=labels,
            soft=truth.soft,
            classes=truth.classes,
            columns=columns,
            weight=door.weight(truth.kept),
            precision=DOUBLE if held.logits else Precision(door.bits),
            flags={**flags, **leaks.flags(source, door.n)},
        )
        leaks.follow(source, predictions.values)
        rows = predictions if truth.kept is None else predictions[truth.kept]
        return dataclasses.replace(rows, flags={**rows.flags, **truth.told}) if truth.told else rows


def require_predictions(predictions: object, parameter: str = "predictions", where: str | None = None) -> None:
    """Refuse bare arrays where checked predictions are needed."""
    if not isinstance(predictions, Predictions):
        hint = "make them with Predictions.from_probs(y, p) or from_logits"
        got = type(predictions).__name__
        raise CalibrationInputError(parameter, "must be Predictions", got=got, where=where, hint=hint)
