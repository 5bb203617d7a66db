"""Streams: a metric of batches that come one after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, Self, Unpack, final

from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric, checked
from calibrant.result import Result
from calibrant.summaries import S


@final
@dataclass
class Stream(Generic[S]):
    """What is the metric of all batches so far? Each batch is summarised and added to `summary`.

    The result is that of all rows at once, to the bit. Memory is bounded where the metric's summary is: fixed bins and
    mean scores keep totals, other binnings of an event its distinct forecasts, kd-trees and kernels all rows. A batch
    that is refused leaves the stream as it was. Streams of one metric, of several processes say, are joined by `merge`.

    >>> import calibrant as cal
    >>> stream = cal.Stream(cal.ECE)
    >>> for y, p in (([1, 0], [.9, .2]), ([1, 255], [.6, .6])):
    ...     _ = stream.update(y, p, ignore_index=255)
    >>> print(stream.result())
    ECE 0.2333 (n=3, event, 15 equal-width bins)
    """

    metric: Metric[S]
    summary: S | Literal[0] = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise CalibrationInputError("metric", "must be a metric", got=repr(self.metric), hint="such as ECE")

    def update(self, y_true: object, y_proba: object = None, **options: Unpack[DoorOptions]) -> Self:
        """Add a batch: `Predictions`, or labels and probabilities with options as in `Predictions.from_probs`."""
        batch = self.metric.summarise(checked(y_true, y_proba, options, self.update, copy=True))
        self.summary = batch if isinstance(self.summary, int) else self.summary + batch
        return self

    def merge(self, other: Stream[S]) -> Self:
        """Add the batches of another stream of the same metric, which stays as it is.

        >>> import calibrant as cal
        >>> here, there = cal.Stream(cal.ECE).update([1], [.9]), cal.Stream(cal.ECE).update([0], [.2])
        >>> print(here.merge(there).result())
        ECE 0.1500 (n=2, event, 15 equal-width bins)
        """
        if not isinstance(other, Stream) or other.metric != self.metric:
            got = repr(getattr(other, "metric", other))
            raise CalibrationInputError("other", f"must be a stream of {self.metric.name}", got=got)
        if not isinstance(other.summary, int):
            self.summary = other.summary if isinstance(self.summary, int) else self.summary + other.summary
        return self

    def result(self) -> Result:
        """The metric of all batches so far; refused before the first."""
        if isinstance(self.summary, int):
            raise CalibrationInputError("Stream", "must have seen predictions", got="none", hint="call update(y, p)")
        return self.metric.conclude(self.summary)

    def reset(self) -> Self:
        """Forget all batches."""
        self.summary = 0
        return self
