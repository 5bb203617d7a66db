"""Options: what may stand beside labels and forecasts, in every place that takes those."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypedDict

from calibrant.exceptions import CalibrationInputError, nearest

Call = Callable[..., object]


class ScoreOptions(TypedDict, total=False):
    """Options of forecasts alone."""

    class_axis: int | None
    normalize: bool


class LabelOptions(ScoreOptions, total=False):
    """Options of labels and forecasts."""

    classes: Any
    ignore_index: float | None
    missing: str


class DoorOptions(LabelOptions, total=False):
    """Options of labels, forecasts and weights: all there are."""

    sample_weight: object


@dataclass(frozen=True)
class Option:
    """What an option is where it is left out, and what it does."""

    default: object
    meaning: str


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "classes": Option(None, "Class names, in the order of the columns of the forecasts."),
        "sample_weight": Option(None, "How much each sample counts."),
        "ignore_index": Option(None, "Leave out samples with this label, such as -1 or 255."),
        "class_axis": Option(None, "The axis of the classes, where forecasts have more than two axes."),
        "normalize": Option(False, "Divide each row of probabilities by its sum."),
        "missing": Option(
            "error",
            'Refuse missing values ("error"), leave out samples that have any ("drop"), or count answers '
            'without an outcome as wrong ("wrong"; confidences alone).',
        ),
    }
)
"""Every option, in the order in which documentation tells them."""


def refuse_unknown(options: Mapping[str, object], call: Call, known: Collection[str] = OPTIONS.keys()) -> None:
    """Refuse what is no option, and name the nearest one, or the nearest keyword of the call itself.

    >>> def measured(y, p, *, metric=None, **options):
    ...     refuse_unknown(options, measured)
    >>> measured([1], [.9], ignore_indx=1)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: ignore_indx: is no option, got 1; did you mean 'ignore_index'?
    """
    for name in options.keys() - known:
        own = [each.name for each in inspect.signature(call).parameters.values() if each.kind is each.KEYWORD_ONLY]
        raise CalibrationInputError(
            name, "is no option", got=repr(options[name])[:40], hint=nearest(name, [*known, *own])
        )


def changed(options: Mapping[str, object]) -> list[str]:
    """The names of options that are not what they are where they are left out.

    >>> changed({"missing": "drop", "normalize": False})
    ['missing']
    """
    return [name for name, value in options.items() if not _is_default(value, OPTIONS[name].default)]


def _is_default(value: object, default: object) -> bool:
    return value is default or (isinstance(value, str) and value == default)
