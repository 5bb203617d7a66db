"""Schedules: how the strength of a focal loss falls as training goes on."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from calibrant.checks import is_whole, whole
from calibrant.exceptions import CalibrationInputError
from calibrant.train.batches import strength


@dataclass(frozen=True)
class GammaSchedule:
    """Which gamma does a focal loss have in an epoch?

    `gammas[i]` holds from epoch `starts[i]` until the next start, the last one to the end; epochs count from 0. The
    defaults are for about 350 epochs: shorten `starts` with the training.

    References: Mukhoti et al. (2020).

    >>> from calibrant.train import GammaSchedule
    >>> gamma = GammaSchedule()
    >>> gamma(0), gamma(99), gamma(100), gamma(349)
    (5.0, 5.0, 3.0, 2.0)
    >>> GammaSchedule(starts=(0, 4), gammas=(3.0, 1.0))(5)
    1.0
    """

    starts: tuple[int, ...] = (0, 100, 250)
    gammas: tuple[float, ...] = (5.0, 3.0, 2.0)

    def __post_init__(self) -> None:
        for name in ("starts", "gammas"):
            if not isinstance(getattr(self, name), (tuple, list)):
                raise CalibrationInputError(name, "must be a tuple", got=repr(getattr(self, name)))
            object.__setattr__(self, name, tuple(getattr(self, name)))  # lists are welcome, but do not hash
        rising = all(map(is_whole, self.starts)) and all(first < second for first, second in pairwise(self.starts))
        if not rising or self.starts[:1] != (0,):
            raise CalibrationInputError("starts", "must be rising epochs, the first of them 0", got=self.starts)
        if len(self.gammas) != len(self.starts):
            raise CalibrationInputError("gammas", f"must be {len(self.starts)} numbers, one a start", got=self.gammas)
        for gamma in self.gammas:
            strength(gamma, "gammas")

    def __call__(self, epoch: int) -> float:
        whole(epoch, "epoch", 0)
        return float(self.gammas[bisect_right(self.starts, epoch) - 1])
