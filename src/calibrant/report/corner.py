"""Corner: the part of the unit square that reliability pictures show, where predictions leave the rest of it empty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.predictions import Predictions
from calibrant.report.charts import Bar
from calibrant.report.quoting import counted

WHOLE = (0.0, 1.0)
HALF = 0.5
"""Both axes end here at the latest, or begin here at the earliest, where they do not show the whole square."""
OUTSIDE = 0.001
"""The share of samples that may lie in the other half."""
ROOM = 1.25
"""How much farther than bars and lines the axes go."""
ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""First digits at which an axis may end."""


@dataclass(frozen=True)
class Corner:
    """From where to where both axes go, so that the diagonal stays one; how many predictions lie outside."""

    span: tuple[float, float] = WHOLE
    outside: int = 0

    @property
    def is_part(self) -> bool:
        """Whether the axes leave out a part of the unit square."""
        return self.span != WHOLE

    @property
    def sentence(self) -> str:
        """What a caption says of the axes; nothing where they show the whole square.

        >>> Corner((0.0, 0.15)).sentence, Corner((0.8, 1.0), 2).sentence, Corner().sentence
        (' Both axes end at 0.15: no prediction is higher.', ' Both axes begin at 0.8: 2 predictions are lower.', '')
        """
        if not self.is_part:
            return ""
        low, high = self.span
        where, side = (f"begin at {low:g}", "lower") if low > 0 else (f"end at {high:g}", "higher")
        are = f"{counted(self.outside, 'prediction')} {'is' if self.outside == 1 else 'are'}"
        return f" Both axes {where}: {are if self.outside else 'no prediction is'} {side}."


def leaves_room(bars: Sequence[Bar]) -> bool:
    """Whether nearly all samples of equal-width bins lie in one half of the unit interval.

    >>> leaves_room([Bar(0, 0.1, 50, 0.05, 0.1)]), leaves_room([Bar(0, 0.1, 9, 0.05, 0.1), Bar(0.6, 0.7, 1, 0.6, 1)])
    (True, False)
    """
    samples = sum(bar.count for bar in bars)
    lower = sum(bar.count for bar in bars if bar.high <= HALF)
    upper = sum(bar.count for bar in bars if bar.low >= HALF)
    return max(lower, upper) >= (1 - OUTSIDE) * samples


def corner_of(bars: Sequence[Bar], events: Sequence[Predictions]) -> Corner:
    """The corner that holds all bars of some events."""
    ends = [end for bar in bars for end in (bar.forecast, bar.frequency)]
    low, high = _rounded(max(ends)), 1 - _rounded(1 - min(ends))
    span = (0.0, low) if low <= HALF else (round(high, 12), 1.0) if high >= HALF else WHOLE
    parts = [np.asarray(event.probabilities) for event in events]
    return Corner(span, sum(int(np.count_nonzero((part < span[0]) | (part > span[1]))) for part in parts))


def _rounded(end: float) -> float:
    """The next round number that leaves some room.

    >>> _rounded(0.1), _rounded(0.033)
    (0.15, 0.05)
    """
    far = max(ROOM * end, 1e-6)
    power = 10.0 ** math.floor(math.log10(far))
    return round(next(power * digit for digit in ROUND if power * digit >= far * (1 - 1e-9)), 12)
