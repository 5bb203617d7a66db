"""Quoting: how numbers are quoted in sentences and tables, with no more certainty than they have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.specification.encoding import number
from calibrant.text import inert, p_value


@dataclass(frozen=True)
class Quoted:
    """A number with the words that a reader sees in its place; copied tables keep the number."""

    value: float
    text: str


@dataclass(frozen=True)
class KeyNumber:
    """A number of the first screen with its 90 % interval, and what to hold it against.

    >>> number = KeyNumber("ECE", 0.0516, 0.0473, 0.056, "points", "calibrated predictions would show about 0.4")
    >>> number.shown, number.between
    ('5.2 points', '90% interval 4.7 to 5.6')
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    """"points", "%" or nothing."""
    meaning: str

    @property
    def shown(self) -> str:
        """The value in its unit."""
        if not math.isfinite(self.value):
            return "infinite" if math.isinf(self.value) else "unknown"
        return f"{self._digits(self.value)}{'' if self.unit == '%' else ' '}{self.unit}".rstrip()

    @property
    def between(self) -> str:
        """The interval; why there is none is said where all numbers are."""
        if math.isinf(self.value):
            return "no interval of an infinite value"
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return "no 90% interval is known to cover"
        return f"90% interval {self._digits(self.low)} to {self._digits(self.high)}"

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        ends = {"low": number(self.low), "high": number(self.high)}
        return {"name": self.name, "value": number(self.value), **ends, "meaning": self.meaning}

    def _digits(self, value: float) -> str:
        digits = f"{100 * value:.1f}" if self.unit else f"{value:.3f}"
        return digits.replace("-", "−") if float(digits) else digits.lstrip("-")


def points(value: float) -> str:
    """A probability in percentage points.

    >>> points(0.0412), points(0.01)
    ('4.1 points', '1.0 points')
    """
    return f"{100 * value:.1f} points"


def sides(predictions: Predictions) -> tuple[str, str]:
    """What forecasts above, and below, what came true are called: only of an answer's probability is it confidence.

    >>> sides(Predictions.from_confidence([1], [.9])), sides(Predictions.from_probs([1], [.9]))
    (('over-confident', 'under-confident'), ('too high', 'too low'))
    """
    return ("over-confident", "under-confident") if predictions.forecasts.answers else ("too high", "too low")


def percent(value: float) -> str:
    """A share in percent; what is neither none nor all is not said to be.

    >>> percent(0.9155), percent(1.0), percent(0.99999)
    ('91.5%', '100%', 'over 99.9%')
    """
    if value in (0.0, 1.0):
        return f"{100 * value:.0f}%"
    if not 0.0005 <= value < 0.9995:
        return "under 0.1%" if value < 0.5 else "over 99.9%"
    return f"{100 * value:.1f}%"


def quoted_p(p: float, redraws: int | None = None, tests: int = 1) -> Quoted:
    """A p-value for a table.

    >>> quoted_p(1 / 201, 200).text, quoted_p(0.3184, 200).text, quoted_p(3 / 201, 200, tests=3).text
    ('< 0.005', '0.32', '< 0.02')
    """
    return Quoted(p, p_value(p, redraws, tests).removeprefix("p ").removeprefix("= ").replace("unknown", "–"))


def listed(names: Sequence[str], most: int = 6, length: int = 40) -> str:
    """Names one after the other, the first few of many, each cut to a length.

    >>> listed(["a", "b", "c"]), listed("abcd", most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    shown = [inert(name, length) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def amount(count: float) -> str:
    """How many samples: whole numbers as such, sums of weights to a tenth.

    >>> amount(12345.0), amount(482.368)
    ('12,345', '482.4')
    """
    return f"{count:,.0f}" if count == int(count) else f"{count:,.1f}"


def counted(count: int, singular: str, several: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(10_000, "row"), counted(2, "class", "classes")
    ('1 row', '10,000 rows', '2 classes')
    """
    return f"{count:,} {singular if count == 1 else several or f'{singular}s'}"


def ends_at_value(results: Mapping[str, Result]) -> list[str]:
    """Why the intervals of some results end at their value, said once; nothing where none does."""
    names = [
        name
        for name, result in results.items()
        if result.interval is not None and result.interval.high == result.value > result.interval.low
    ]
    if not names:
        return []
    return [
        f"The interval of {listed(names, most=20)} ends at the value itself. Chance alone raises a calibration error, "
        "so the error of infinitely many rows is mostly lower than what is measured."
    ]
