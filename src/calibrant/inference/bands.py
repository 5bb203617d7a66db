"""Bands: how far a reliability curve may be off by chance, at each forecast or at all of them at once."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Protocol, Unpack, runtime_checkable

import numpy as np

from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import flag, whole
from calibrant.door.options import DoorOptions
from calibrant.errors.isotonic import IsotonicError
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_level, check_seed, replicate
from calibrant.inference.reliability_curves import Curve, CurveOf, HasConfidence, isotonic, spread
from calibrant.kernels.totals import Floats, Totals
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.metric import checked
from calibrant.selections import Selection, everything


@runtime_checkable
class BandMethod(Protocol):
    """A way to the band of a curve."""

    @property
    def level(self) -> float:
        """How often the band holds what it is said to hold."""

    @property
    def words(self) -> str:
        """What a legend calls it."""

    def __call__(self, curve: CurveOf, ladder: Ladder) -> Curve:
        """The curve of a table at some points, with the ends of its band."""


@dataclass(frozen=True)
class ConfidenceBand:
    """A band around the curve that covers the true one: how often the event happens at each forecast.

    At `level` at each forecast on average, or with `simultaneous` the whole of it. What the true curve is depends on
    the curve (`covers` says it): of `binned` the mean of each bin, of `isotonic` one that does not fall, of `smooth`
    one that was smoothed in the same way. Rows must be independent and of weight 1; labels must be hard.

    >>> import calibrant as cal
    >>> y, p = [0, 0, 1, 0, 1, 1, 0, 1, 1, 1], np.arange(10) / 10 + .05
    >>> band = cal.reliability_band(y, p, curve=cal.plots.isotonic, band=cal.ConfidenceBand(simultaneous=True))
    >>> band.low.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.02, 0.06, 0.06, 0.09, 0.14, 0.19]
    """

    level: float = 0.9
    simultaneous: bool = False

    def __post_init__(self) -> None:
        check_level(self.level)
        flag(self.simultaneous, "simultaneous")

    @property
    def words(self) -> str:
        """What a legend calls it."""
        return f"{self.level:.0%} confidence{', whole curve' * self.simultaneous}"

    def __call__(self, curve: CurveOf, ladder: Ladder) -> Curve:
        """The curve of a table at some points, with the ends of its band."""
        if not isinstance(curve, HasConfidence):
            hint = "binned(binning), isotonic and smooth have one; ConsistencyBand() is there for every curve"
            raise CalibrationInputError("curve", "must have a confidence band", got=repr(curve), hint=hint)
        return curve.confidence(ladder, self.level, self.simultaneous)


@dataclass(frozen=True)
class ConsistencyBand:
    """A band around the diagonal: where the curve of these forecasts would lie if they were calibrated.

    Labels are redrawn n times from the forecasts, and the curve is made anew each time. The ends at a forecast are the
    k-th lowest and the k-th highest of these curves. k is the rank that leaves out the rest of `level` at a forecast;
    with `simultaneous`, it is smaller, so that the whole curve of calibrated forecasts stays inside in that share of
    samples. Valid for every curve and any number of samples. Rows must be independent and of weight 1; labels must be
    hard.

    References: Broecker & Smith (2007); Myllymaeki, Mrkvicka, Grabarnik, Seijo & Hahn (2017) for all forecasts at once.

    >>> import calibrant as cal
    >>> y, p = [0, 1, 0, 1], [.5, .5, .5, .5]
    >>> band = cal.reliability_band(y, p, curve=cal.plots.isotonic, band=cal.ConsistencyBand(n=200))
    >>> band.low.tolist(), band.high.tolist()
    ([0.0], [1.0])
    """

    level: float = 0.9
    simultaneous: bool = False
    n: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_level(self.level)
        flag(self.simultaneous, "simultaneous")
        whole(self.n, "n", 1)
        check_seed(self.seed)

    @property
    def words(self) -> str:
        """What a legend calls it."""
        return f"{self.level:.0%} if calibrated{', whole curve' * self.simultaneous}"

    def __call__(self, curve: CurveOf, ladder: Ladder) -> Curve:
        """The curve of a table at some points, with the ends of its band."""
        drawn = curve(ladder)
        at = spread(len(drawn.forecast))
        counts, chances = np.diff(ladder.ranks), np.clip(ladder.values.astype(np.float64), 0.0, 1.0)

        def work(rng: np.random.Generator, some: int) -> Floats:
            redrawn = rng.binomial(counts, chances, (some, len(counts)))
            running = np.cumsum(np.pad(redrawn, ((0, 0), (1, 0))), axis=1)
            tables = (dataclasses.replace(ladder, targets=Totals.whole(targets)) for targets in running)
            return np.stack([curve(table).frequency[at] for table in tables])

        curves = replicate(work, self.n, self.seed, stage=1, what="consistency of the curve")
        depth = depth_of_all if self.simultaneous else depth_of_each
        low, high = between(curves, depth(curves, self.level)).T
        covers = "the curve of these forecasts, if they are calibrated"
        return Curve(drawn.name, drawn.forecast[at], drawn.frequency[at], low, high, covers)


def reliability_band(
    y_true: object,
    y_proba: object = None,
    *,
    curve: CurveOf = isotonic,
    band: BandMethod = ConfidenceBand(),  # noqa: B008 - a value that cannot change
    lens: Lens = TopLabel(),
    select: Selection = everything,
    **options: Unpack[DoorOptions],
) -> Curve:
    """A reliability curve as numbers, with its band: `Predictions`, or labels and probabilities, the truth first.

    `curve` is `isotonic`, `smooth` or `binned(binning)` of `calibrant.plots`, or a function of your own; `band` is a
    `ConfidenceBand` or `ConsistencyBand`. The answer has arrays `forecast`, `frequency`, `low` and `high`, at no more
    than 257 forecasts, and says in `covers` what lies between the ends.

    >>> import calibrant as cal
    >>> band = cal.reliability_band([0, 1, 1, 1], [.4, .4, .8, .9], curve=cal.plots.binned(cal.EqualWidth(2)))
    >>> [ends.round(3).tolist() for ends in (band.forecast, band.frequency, band.low, band.high)]
    [[0.4, 0.85], [0.5, 1.0], [0.121, 0.425], [0.879, 1.0]]
    """
    predictions = checked(y_true, y_proba, options, reliability_band)
    return banded(band, curve, IsotonicError(select=select, lens=lens).summarise(predictions))


def banded(band: BandMethod, curve: CurveOf, table: Forecasts) -> Curve:
    """The curve of a table of forecasts with its band, where one can be given.

    >>> import calibrant as cal
    >>> table = cal.IsotonicError().summarise([0, 1, 1, 1], [.4, .4, .8, .9])
    >>> banded(ConfidenceBand(), isotonic, table).high.round(3).tolist()
    [0.992, 1.0, 1.0]
    """
    if not isinstance(band, BandMethod):
        hint = "such as ConfidenceBand(0.9, simultaneous=True) or ConsistencyBand()"
        raise CalibrationInputError("band", "must be a way to a band", got=repr(band), hint=hint)
    first, *others = table.ladders()
    if table.squares is not None or not first.targets.is_whole:
        got = "weights" if table.squares is not None else "soft labels"
        raise CalibrationInputError("band", "needs rows of weight 1 and hard labels", got=got)
    if others or first.n > table.about.n:
        got = f"{len(others) + 1} questions" if others else f"{first.n} answers of {table.about.n} rows"
        hint = "use a lens such as TopLabel() or OneClass(c)"
        raise CalibrationInputError("band", "needs one answer a row", got=got, hint=hint)
    return band(curve, first)


def depth_of_each(drawn: Floats, level: float) -> int:
    """The k at which a further value lies between the k-th lowest and the k-th highest with chance `level`.

    >>> depth_of_each(np.zeros((199, 3)), 0.9)
    10
    """
    return int((1 - level) / 2 * (len(drawn) + 1) + 1e-9)


def depth_of_all(drawn: Floats, level: float) -> int:
    """The k at which a further row lies between the k-th lowest and highest value of every column with chance `level`.

    A row's depth is its least rank from below or above; among rows drawn alike, a further one has a depth above k as
    often as these have.

    >>> depth_of_all(np.random.default_rng(0).random((400, 1)), 0.9), depth_of_all(np.zeros((400, 1)), 0.9)
    (20, 399)
    """
    depth = np.full(len(drawn), len(drawn))
    for column in drawn.T:
        there = ~np.isnan(column)
        ascending = np.sort(column[there])
        below = np.searchsorted(ascending, column[there], side="right")
        above = len(ascending) - np.searchsorted(ascending, column[there])
        depth[there] = np.minimum(depth[there], np.minimum(below, above))
    return int(np.sort(depth)[::-1][math.ceil(level * len(drawn)) - 1]) - 1


def between(drawn: Floats, k: int) -> Floats:
    """The k-th lowest and the k-th highest value of each column, of those that exist: (columns, 2).

    >>> between(np.array([[1., np.nan], [2., 5.], [4., 6.]]), 1).tolist()
    [[1.0, 4.0], [5.0, 6.0]]
    """
    if k < 1:
        expected, got = "must be larger for a band of this level", f"{len(drawn)} redraws"
        raise CalibrationInputError("n", expected, got=got, hint=f"try n={4 * len(drawn)}")
    there, ascending = (~np.isnan(drawn)).sum(axis=0), np.sort(drawn, axis=0)  # nan comes last
    columns = np.arange(drawn.shape[1])
    first, last = np.minimum(k, there) - 1, np.maximum(there - k, 0)
    return np.column_stack([ascending[first, columns], ascending[last, columns]])
