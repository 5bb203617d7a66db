"""Metrics: what every number is made by, and the result that carries its specification."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, Self, final

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.specification import catalogue
from calibrant.specification.encoding import decode, encode
from calibrant.specification.facts import Facts
from calibrant.specification.naming import fields_of, spelled
from calibrant.views import S


class Metric(ABC, Generic[S]):
    """Two methods and one path: batches are summarised, summaries are added, the sum is concluded.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6])
    >>> parts = [cal.ECE.summarise(p[:2]), cal.ECE.summarise(p[2:])]
    >>> cal.ECE.conclude(sum(parts)).value == cal.ECE(p).value
    True
    """

    @abstractmethod
    def summarise(self, y_true: object) -> S:
        """What must be kept of these predictions; it adds."""

    @abstractmethod
    def conclude(self, summary: S | Literal[0]) -> Result:
        """The number that follows from a summary, or from their `sum`."""

    @property
    def facts(self) -> Facts:
        """What is known of its values; nothing, unless it says so."""
        return Facts("metric")

    @property
    def part_facts(self) -> Facts:
        """What is known of the value of one of several questions."""
        return self.facts

    @final
    def __call__(
        self,
        y_true: object,
        y_proba: object = None,
        *others: object,
        classes: Iterable[object] | None = None,
        sample_weight: object = None,
        ignore_index: float | None = None,
        normalize: bool = False,
        interval: Callable[[Metric, Predictions, Result], Result] | None = None,
        **unknown: object,
    ) -> Result:
        """Of checked `Predictions`, or of labels and probabilities, the truth first; with an interval, if asked.

        The other options stand beside labels and probabilities, as in `Predictions.from_probs`.
        """
        self._refuse(others, unknown)
        predictions = checked(y_true, y_proba, classes, sample_weight, ignore_index, normalize)
        if interval is not None and not callable(interval):
            raise CalibrationInputError("interval", "must be a Bootstrap", got=repr(interval), hint="Bootstrap(200)")
        result = self.conclude(self.summarise(predictions))
        return result if interval is None else interval(self, predictions, result)

    def _refuse(self, others: tuple[object, ...], unknown: Mapping[str, object]) -> None:
        """Refuse what a call does not take, and name the way."""
        if others:
            raise CalibrationInputError(
                "metric",
                "takes labels and probabilities",
                got=f"{2 + len(others)} arguments",
                hint=f"where scikit-learn wants a scorer, pass scoring=Scorer({self.name})",
            )
        for name, value in unknown.items():
            way = self._way(name, value)
            if way is not None:
                raise CalibrationInputError(
                    name, "is a choice of the metric", got=repr(value), hint=f"call {way}(y, p)"
                )
            options = ("classes", "sample_weight", "ignore_index", "normalize", "interval")
            raise CalibrationInputError(name, "is no option", got=repr(value)[:40], hint=nearest(name, options))

    def _way(self, name: str, value: object) -> str | None:
        """How a choice is changed: by `replace`, of the field itself or of the piece that has it."""
        choices = fields_of(self)
        if name in choices:
            return f"{self.name}.replace({name}=...)"
        for choice, piece in choices.items():
            if name in fields_of(piece):
                return f"{self.name}.replace({choice}={type(piece).__name__}({name}={value!r}))"
        return None

    @final
    def replace(self, **choices: object) -> Self:
        """The metric with some of its choices changed.

        >>> import calibrant as cal
        >>> cal.ECE.replace(binning=cal.EqualMass()) == cal.ADAPTIVE_ECE
        True
        """
        known = fields_of(self)
        for name in choices.keys() - known.keys():
            raise CalibrationInputError(name, f"is no choice of {self.name}", hint=nearest(name, known))
        return dataclasses.replace(self, **choices)  # type: ignore[type-var]

    @final
    def to_json(self) -> str:
        """The specification as JSON; `calibrant.from_json` rebuilds the metric."""
        return json.dumps(encode(self))

    def __repr__(self) -> str:
        return spelled(self)

    @property
    def name(self) -> str:
        """Its name among the recipes; that of a recipe and the one choice that was changed; or its kind.

        >>> import calibrant as cal
        >>> cal.ECE.name, cal.ECE.replace(binning=cal.EqualMass(30)).name, cal.IsotonicError().name
        ('ECE', 'ECE(binning=EqualMass(n_bins=30))', 'IsotonicError')
        """
        alike = {name: recipe for name, recipe in catalogue.recipes().items() if type(recipe) is type(self)}
        exact = [name for name, recipe in alike.items() if recipe is self]
        for name in [*exact, *(name for name, recipe in alike.items() if recipe == self)]:
            return name
        for name, recipe in alike.items():
            theirs = fields_of(recipe)
            changed = [choice for choice, piece in fields_of(self).items() if piece != theirs[choice]]
            if len(changed) == 1 and changed[0] not in ("score", "statistic"):  # these make the name
                piece = getattr(self, changed[0])
                words = spelled(piece, short=True)
                return f"{name}({changed[0]}={words if len(words) < 50 else f'{type(piece).__name__}(...)'})"
        return type(self).__name__


def checked(
    y_true: object,
    y_proba: object = None,
    classes: Iterable[object] | None = None,
    sample_weight: object = None,
    ignore_index: float | None = None,
    normalize: bool = False,
) -> Predictions:
    """Predictions as they are, or made of labels and probabilities, which are looked at and not copied."""
    options = {"classes": classes, "sample_weight": sample_weight, "ignore_index": ignore_index}
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"normalize": True} if normalize else {}
    if isinstance(y_true, Predictions):
        for name in [*(["y_proba"] if y_proba is not None else []), *options]:
            raise CalibrationInputError(name, "must be left out", got=f"Predictions and {name}")
        return y_true
    if isinstance(y_proba, Predictions):
        raise CalibrationInputError("y_true", "must be left out", got="labels beside Predictions")
    if y_proba is None:
        raise CalibrationInputError(
            "y_proba", "is required", got="None", hint="call metric(y_true, y_proba) or metric(predictions)"
        )
    return Predictions.from_probs(y_true, y_proba, copy=False, **options)  # type: ignore[arg-type]


def from_json(text: str, pieces: Mapping[str, object] | None = None) -> Metric:
    """A metric from its JSON; `pieces` maps names of pieces that are not calibrant's own to them.

    >>> import calibrant as cal
    >>> cal.from_json(cal.TACE.to_json()) == cal.TACE
    True
    """
    try:
        metric = decode(json.loads(text), pieces or {})
    except json.JSONDecodeError as reason:
        raise CalibrationInputError("text", "must be JSON", got=str(reason)) from None
    if not isinstance(metric, Metric):
        raise CalibrationInputError("text", "must specify a metric", got=repr(metric)[:80])
    return metric
