"""Limit checks: what a page holds its numbers against, and whether they pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.checks import number
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.confidence import Confidence
from calibrant.inference.gates import is_above
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.specification import encoding


@dataclass(frozen=True, eq=False)
class LimitCheck:
    """A result, the limit that it must not pass, and whether it does.

    >>> import calibrant as cal
    >>> check = LimitCheck.of(cal.ECE([1, 0, 1, 1], [.9, .3, .6, .8]), 0.1, confident=False)
    >>> check.status, check.sentence
    ('fail', 'ECE is 0.2500, limit 0.1.')
    """

    result: Result
    limit: float
    status: str
    """"pass", "fail" or "cannot tell"."""
    model: str = ""
    """Whose result it is, where there are several."""

    @classmethod
    def of(cls, result: Result, limit: float, *, confident: bool) -> LimitCheck:
        """A result held against a limit; with `confident` its whole interval must lie beyond it to fail."""
        try:
            return cls(result, limit, "fail" if is_above(result, limit, confident=confident) else "pass")
        except CalibrationInputError:
            return cls(result, limit, "cannot tell")

    @property
    def sentence(self) -> str:
        """The value with its interval, and the limit."""
        interval, bounds = self.result.interval, self.result.bounds
        between = "" if interval is None else f" (90% interval {interval.low:.4f} to {interval.high:.4f})"
        if bounds is not None and bounds[0] < bounds[1]:
            between = f" (surely {bounds[0]:.4f} to {bounds[1]:.4f})"
        model = f" of {self.model}" if self.model else ""
        return f"{self.result.name}{model} is {self.result.value:.4f}{between}, limit {self.limit:g}."

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        value = encoding.number(self.result.value)
        return {"metric": self.result.name, "value": value, "limit": encoding.number(self.limit), "status": self.status}


def checked_limits(
    predictions: Predictions, limits: Mapping[Metric, float], interval: Confidence, *, confident: bool
) -> list[LimitCheck]:
    """Each metric of the predictions with its interval, held against its limit.

    >>> import calibrant as cal
    >>> predictions = cal.Predictions.from_probs([1, 0, 1, 1] * 9, [.9, .3, .6, .8] * 9)
    >>> [check.status for check in checked_limits(predictions, {cal.ECE: 0.1}, Confidence(), confident=True)]
    ['pass']
    """
    for limit in limits.values():
        number(limit, "limits", "must be numbers", lambda size: size == size)
    return [
        LimitCheck.of(metric(predictions, interval=interval), limit, confident=confident)
        for metric, limit in limits.items()
    ]
