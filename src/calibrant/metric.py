"""Metrics: what every number is made by, and the result that carries its specification."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Literal, Self, Unpack, final

from calibrant.door.options import OPTIONS, Call, DoorOptions, changed, refuse_unknown
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.specification import catalogue, strict_json
from calibrant.specification.encoding import decode, encode
from calibrant.specification.facts import Facts
from calibrant.specification.naming import fields_of, spelled
from calibrant.summaries import S


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

    def at_once(self, predictions: Predictions) -> Result:
        """The result of all predictions, where no summary is wanted: to the bit what a summary would give."""
        return self.conclude(self.summarise(predictions))

    def refine(self, summary: S | Literal[0] | None = None) -> Metric:
        """The metric of the next pass over the data, for a value in little memory; itself where no other is needed.

        Most metrics need one pass. Those that follow the order of forecasts first count them in some thousand cells,
        then keep apart the few that matter; the last one concludes with the number of the original metric, to the bit.

        >>> import calibrant as cal
        >>> batches = [cal.Predictions.from_probs([0, 1, y], [.1, p, .9]) for y, p in ((1, .31), (0, .32))]
        >>> current = cal.ADAPTIVE_ECE.refine()
        >>> while (following := current.refine(summary := sum(map(current.summarise, batches)))) != current:
        ...     current = following
        >>> current.conclude(summary)
        <ADAPTIVE_ECE 0.3950 (n=6, event, 15 equal-mass bins)>
        >>> cal.ECE.refine() == cal.ECE
        True
        """
        return self

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
        interval: Callable[[Metric, Predictions, Result], Result] | None = None,
        **options: Unpack[DoorOptions],
    ) -> Result:
        """Of checked `Predictions`, or of labels and probabilities, the truth first; with an interval, if asked.

        The other options stand beside labels and probabilities, as in `Predictions.from_probs`.
        """
        self._refuse(others, options)
        predictions = checked(y_true, y_proba, options, self.__call__)
        if interval is not None and not callable(interval):
            raise CalibrationInputError(
                "interval", "must be a method", got=repr(interval), hint="pass interval=Confidence()"
            )
        result = self.at_once(predictions)
        return result if interval is None else interval(self, predictions, result)

    def _refuse(self, others: tuple[object, ...], options: Mapping[str, object]) -> None:
        """Refuse what a call does not take, and name the way."""
        if others:
            raise CalibrationInputError(
                "metric",
                "takes labels and probabilities",
                got=f"{2 + len(others)} arguments",
                hint=f"where scikit-learn wants a scorer, pass scoring=Scorer({self.name})",
            )
        for name in options.keys() - OPTIONS.keys():
            way = self._way(name, options[name])
            if way is not None:
                got = repr(options[name])
                raise CalibrationInputError(name, "is a choice of the metric", got=got, hint=f"call {way}(y, p)")

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
    y_proba: object,
    options: DoorOptions,
    call: Call,
    *,
    copy: bool = False,
) -> Predictions:
    """Predictions as they are, or made of what a call was given: labels, probabilities and the options beside them.

    Arrays are looked at, and copied where the call asks for it.

    >>> checked([1, 0], [.9, float("nan")], {"missing": "drop"}, checked).notes
    ('1 row was left out: missing values',)
    """
    refuse_unknown(options, call)
    if isinstance(y_true, Predictions):
        for name in [*(["y_proba"] if y_proba is not None else []), *changed(options)]:
            raise CalibrationInputError(name, "must be left out", got=f"Predictions and {name}")
        return y_true
    if isinstance(y_proba, Predictions):
        raise CalibrationInputError("y_true", "must be left out", got="labels beside Predictions")
    if y_proba is None:
        raise CalibrationInputError(
            "y_proba", "is required", got="None", hint="call metric(y_true, y_proba) or metric(predictions)"
        )
    return Predictions.from_probs(y_true, y_proba, copy=copy, **options)


def from_json(text: str, pieces: Mapping[str, object] | None = None) -> Metric:
    """A metric from its JSON; `pieces` maps names of pieces that are not calibrant's own to them.

    >>> import calibrant as cal
    >>> cal.from_json(cal.TACE.to_json()) == cal.TACE
    True
    """
    try:
        document = strict_json.read(text)
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("text", "must be JSON", got=str(reason)) from None
    try:
        metric = decode(document, pieces or {})
    except CalibrationInputError:
        raise
    except strict_json.MALFORMED as reason:
        raise CalibrationInputError("text", "must be the JSON of a metric", got=str(reason)) from None
    if not isinstance(metric, Metric):
        raise CalibrationInputError("text", "must specify a metric", got=repr(metric)[:80])
    return metric
