"""What distances share: a distance is any callable from `Bins` to one number per question and bin, (v, b)."""

from __future__ import annotations

from collections.abc import Callable

from calibrant.bins import Bins
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts

Distance = Callable[[Bins], Floats]


def error_of(high: float, order: float | None) -> Facts:
    """What is known of a distance that is 0 where forecast and truth agree, and above 0 elsewhere."""
    return Facts("distance", low=0.0, high=high, sides=1, calibrated=0.0, order=order, lower_is_better=True)


def require_event(bins: Bins, distance: str) -> None:
    """Refuse bins of several coordinates."""
    if bins.shape[2] != 1:
        raise CalibrationInputError(
            distance,
            "needs a lens with one coordinate per question",
            got=f"{bins.about.question} with {bins.shape[2]}",
            hint="use a scalar lens such as TopLabel(), or a distance of vectors such as tvd",
        )
