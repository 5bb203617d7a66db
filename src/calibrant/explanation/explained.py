"""Explained: what other libraries would report for the same predictions, and which choices make the difference."""

from __future__ import annotations

import dataclasses
import html
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, cast

import numpy as np

from calibrant import recipes
from calibrant.binning import EqualWidth
from calibrant.checks import whole
from calibrant.door.kinds import COLUMNS
from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.explanation.libraries import LibraryFunction, functions_of
from calibrant.explanation.library_bins import LibraryBins
from calibrant.metric import Metric, checked
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.specification.encoding import encode, number
from calibrant.specification.naming import fields_of, spelled
from calibrant.text import aligned

VISIBLE = 5e-5
"""Differences below this print as 0.0000, and are not shown."""


@dataclass(frozen=True)
class ChangedChoice:
    """A choice in which a library differs, and by how much it moves the number after the choices before it.

    >>> ChangedChoice("1 has a bin of its own", 0.0123)
    ChangedChoice(words='1 has a bin of its own', difference=0.0123)
    """

    words: str
    difference: float


@dataclass(frozen=True, eq=False)
class Reported:
    """What one function of a library would report, beside calibrant's number.

    `metric` is the specification of calibrant that gives the same value, `within` 1e-6 or as far as is known; it is
    None where the library reports nothing. The differences of the `choices` add up to `difference`.

    >>> import calibrant as cal
    >>> row = cal.explain([1, 0], [.95, 1.0]).rows[0]
    >>> row.library, row.value, row.ours.value
    ('torchmetrics', 0.525, 0.475)
    >>> [choice.words for choice in row.choices if abs(choice.difference) > 1e-9]
    ['1 has a bin of its own']
    >>> row.metric([1, 0], [.95, 1.0]).value
    0.525
    """

    library: str
    function: str
    value: float
    ours: Result
    metric: Metric | None
    choices: tuple[ChangedChoice, ...]
    within: float
    note: str = ""

    @property
    def difference(self) -> float:
        """Its value less calibrant's."""
        return self.value - self.ours.value

    @property
    def specification(self) -> str:
        """The metric as Python would make it; empty where there is none."""
        return "" if self.metric is None else spelled(self.metric, short=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "library": self.library,
            "function": self.function,
            "value": number(self.value),
            "within": self.within,
            "ours": self.ours.name,
            "difference": number(self.difference),
            "choices": [{"words": choice.words, "difference": number(choice.difference)} for choice in self.choices],
            "note": self.note,
            "metric": None if self.metric is None else encode(self.metric),
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """What other libraries would report, a row a function; it prints as a table.

    >>> import calibrant as cal
    >>> explanation = cal.explain([1, 0], [.95, 1.0], n_bins=10)
    >>> explanation.ours.value, len(explanation)
    (0.475, 13)
    >>> header, lines = explanation.table()
    >>> lines[0]
    ['torchmetrics', 'binary_calibration_error(n_bins=10)', '0.5250', '0.4750', '+0.0500 1 has a bin of its own']
    """

    ours: Result
    rows: tuple[Reported, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Reported]:
        return iter(self.rows)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells: a line a function, and one more for each further choice that matters."""
        lines = [line for row in self.rows for line in _lines(row)]
        return ["library", "function", "value", "calibrant", "difference by choice"], lines

    def notes(self) -> list[str]:
        """What is said of single functions."""
        names: dict[str, list[str]] = {}
        for row in self.rows:
            names.setdefault(row.note, []).append(f"{row.library} {row.function}")
        return [f"{', '.join(functions)}: {note}" for note, functions in names.items() if note]

    def __str__(self) -> str:
        return "\n".join([f"calibrant: {self.ours}", "", aligned(*self.table()), "", *self.notes()])

    def _repr_html_(self) -> str:
        header, lines = self.table()
        body = "".join(f"<tr>{_cells(line, 'td')}</tr>" for line in lines)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes())
        caption = f"<caption>calibrant: {html.escape(str(self.ours))}</caption>"
        return f"<table>{caption}<tr>{_cells(header, 'th')}</tr>{body}</table>{notes}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"ours": self.ours.to_dict(bins=False), "rows": [row.to_dict() for row in self.rows]}

    def to_json(self) -> str:
        """The explanation as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)


def explain(
    predictions: object, y_proba: object = None, *, n_bins: int | None = None, **options: Unpack[DoorOptions]
) -> Explanation:
    """What other libraries would report for the same predictions, and which of their choices makes the difference.

    They are torchmetrics, netcal, scikit-learn, MAPIE, uncertainty-calibration, relplot and TensorFlow Probability.
    None of them is imported: each function is reproduced by a metric of calibrant, to 1e-6, or a note says why not.
    The choices in which it differs are made one after another, starting from `ECE` (`BRIER` for a Brier score), and
    each row says how much every choice moves the number. Each library uses its default number of bins, or `n_bins`.
    Logits are turned into probabilities first. Costs a few dozen evaluations of ECE.

    Called as `explain(predictions)`, or as `explain(y_true, y_proba)` with options as in `Predictions.from_probs`.

    >>> import calibrant as cal
    >>> explanation = cal.explain([1, 0, 1, 1], [.3, .35, .8, 1.0])
    >>> for row in explanation.rows[:2]:
    ...     print(f"{row.library}: {row.value:.4f}, calibrant {row.ours.value:.4f}")
    torchmetrics: 0.3125, calibrant 0.3125
    netcal: 0.3125, calibrant 0.3125
    """
    samples = checked(predictions, y_proba, options, explain)
    if n_bins is not None:
        whole(n_bins, "n_bins", 2)
    _require_plain(samples)
    binning = EqualWidth() if n_bins is None else EqualWidth(n_bins)
    known: dict[Metric, Result] = {}

    def measured(metric: Metric) -> Result:
        if metric not in known:
            known[metric] = metric(samples)
        return known[metric]

    ours = measured(recipes.ECE.replace(binning=binning))
    start = recipes.ECE.replace(binning=LibraryBins(binning.n_bins))
    return Explanation(ours, tuple(_reported(each, ours, start, measured) for each in functions_of(samples, n_bins)))


def _require_plain(predictions: Predictions) -> None:
    """Refuse what other libraries do not take."""
    forecasts = predictions.forecasts
    if not forecasts.of_events:
        forecasts.require(COLUMNS, "explain")
    refused = {
        "independent labels": forecasts.of_events and forecasts.n_classes > 0,
        "soft labels": predictions.soft is not None,
        "sample weights": predictions.weight is not None,
        "half precision": predictions.precision.bits < np.finfo(np.float32).nmant + 1,
        "no rows": len(predictions) == 0,
    }
    for got in [words for words, holds in refused.items() if holds]:
        expected = "needs plain rows of one event or of classes, as other libraries take them"
        raise CalibrationInputError("explain", expected, got=got, hint="give probabilities and hard labels alone")


def _reported(function: LibraryFunction, ours: Result, start: Metric, measured: Callable[[Metric], Result]) -> Reported:
    """A function's value, step by step."""
    names, told = (function.library, function.function), (function.within, function.note)
    beside = ours if function.recipe is None else measured(function.recipe)
    if function.steps is None:
        return Reported(*names, math.nan, beside, None, (), *told)
    metric, value, choices = start if function.recipe is None else function.recipe, beside.value, []
    for words, changes in function.steps:
        metric = _changed(metric, changes)
        following = measured(metric).value
        choices.append(ChangedChoice(words, following - value))
        value = following
    return Reported(*names, value, beside, metric if function.steps else beside.metric, tuple(choices), *told)


def _changed(metric: Metric, changes: Mapping[str, object]) -> Metric:
    """The metric with some of its choices changed, or of those of its bins; or another metric."""
    if "metric" in changes:
        return cast(Metric, changes["metric"])
    fields = fields_of(metric)
    own = {name: choice for name, choice in changes.items() if name in fields}
    others = {name: choice for name, choice in changes.items() if name not in fields}
    bins = {"binning": dataclasses.replace(fields["binning"], **others)} if others else {}
    return metric.replace(**own, **bins)


def _lines(row: Reported) -> list[list[str]]:
    """The function with its first choice that matters, then a line for each further one."""
    matter = [choice for choice in row.choices if abs(choice.difference) >= VISIBLE]
    shown = [f"{choice.difference:+.4f} {choice.words}" for choice in matter] or [_nothing(row)]
    value = "" if math.isnan(row.value) else f"{'about ' if row.within > VISIBLE else ''}{row.value:.4f}"
    first = [row.library, row.function, value, f"{row.ours.value:.4f}"]
    return [[*(first if place == 0 else [""] * len(first)), words] for place, words in enumerate(shown)]


def _nothing(row: Reported) -> str:
    if row.metric is None:
        return "see the note"
    return "none that matters here" if row.choices else "the same choices"


def _cells(cells: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
