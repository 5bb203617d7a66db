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

    Labels are redrawn n times from the forecasts, and the curve is made anew each time. At each forecast, the ends are
    order statistics of these curves (`ends_of_each`). With `simultaneous`, half of the curves say how far curves reach
    at each forecast and the other half by how much that must be stretched to hold whole curves (`ends_of_all`). Both
    are valid for every curve and any number of samples. Rows must be independent and of weight 1; labels must be hard.

    References: Broecker & Smith (2007).

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
        low, high = (ends_of_all if self.simultaneous else ends_of_each)(curves, self.level).T
        covers = "the curve of these forecasts, if they are calibrated"
        return Curve(drawn.name, drawn.forecast[at], drawn.frequency[at], low, high, covers)


def reliability_band(
    y_true: object,
    y_proba: object = None,
    *,
    curve: CurveOf = isotonic,
    band: BandMethod = ConfidenceBand(),
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


def ends_of_each(drawn: Floats, level: float) -> Floats:
    """Ends of each column between which a further value lies with chance `level` at least: (columns, 2).

    The k-th lowest and the k-th highest of the n values, k the whole part of (1 - level) / 2 (n + 1).

    >>> ends_of_each(np.column_stack([np.arange(19.), np.full(19, np.nan)]), 0.8).tolist()
    [[1.0, 17.0], [nan, nan]]
    """
    there, ascending = (~np.isnan(drawn)).sum(axis=0), np.sort(drawn, axis=0)  # nan comes last
    k, columns = int((1 - level) / 2 * (len(drawn) + 1) + 1e-9), np.arange(drawn.shape[1])
    if k < 1:
        raise _too_few(drawn)
    return np.column_stack([ascending[np.minimum(k, there) - 1, columns], ascending[np.maximum(there - k, 0), columns]])


def ends_of_all(drawn: Floats, level: float) -> Floats:
    """Ends of columns between which the whole of a further row lies with chance `level` at least: (columns, 2).

    The first half of the rows says how far each column reaches below and above its median; the second half, by how
    much these reaches must be stretched for the share `level` of rows to stay inside. Frequencies end at 0 and 1.

    >>> ends_of_all(np.random.default_rng(0).random((400, 2)), 0.9).round(2).tolist()
    [[0.03, 0.98], [0.02, 0.98]]
    """
    there = ~np.isnan(drawn).all(axis=0)
    first, second = np.split(drawn[:, there], [len(drawn) // 2])
    middle, low, high = (summary(first, axis=0) for summary in (np.nanmedian, np.nanmin, np.nanmax))
    gaps = second - middle
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing over nothing is no deviation
        stretches = np.nan_to_num(np.where(gaps < 0, gaps / (low - middle), gaps / (high - middle)), posinf=np.inf)
    rank = math.ceil(level * (len(second) + 1) - 1e-9)
    stretch = np.inf if rank > len(second) else np.sort(stretches.max(axis=1, initial=0.0))[rank - 1]
    if not np.isfinite(stretch):
        raise _too_few(drawn)
    ends = np.full((drawn.shape[1], 2), np.nan)
    ends[there] = np.clip(middle + stretch * np.array([low - middle, high - middle]), 0.0, 1.0).T
    return ends


def _too_few(drawn: Floats) -> CalibrationInputError:
    expected, got = "must be larger for a band of this level", f"{len(drawn)} redraws"
    return CalibrationInputError("n", expected, got=got, hint=f"try n={4 * len(drawn)}")
