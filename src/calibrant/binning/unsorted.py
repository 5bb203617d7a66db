"""Unsorted forecasts: columns on a device that are cut at ranks where they are, and sorted only if somebody asks."""

from __future__ import annotations

from typing import Self

import numpy as np

from calibrant import kernels
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.bins import Bins, check_memory
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Ints, Totals
from calibrant.views import View

FEWEST = 16
"""Questions of which columns are cut without being sorted."""


class Unsorted(Forecasts):
    """The table of forecasts of many questions on a device, made when somebody asks for it.

    Until then the view is kept, and with it the tensor. A sum is a table.
    """

    view: View

    def __new__(cls, view: View | None = None, **fields: object) -> Forecasts:  # type: ignore[misc]
        """Without a view, a table of these fields: so `dataclasses.replace` makes one."""
        return super().__new__(cls) if view is not None else Forecasts(**fields)  # type: ignore[arg-type]

    def __init__(self, view: View) -> None:
        known = {"about": view.about, "precisions": ((view.precision, view.about.n),), "view": view}
        for name, held in known.items():
            object.__setattr__(self, name, held)

    def __getattr__(self, name: str) -> object:
        if name not in ("values", "counts", "targets", "starts"):
            raise AttributeError(name)
        return getattr(self.table, name)

    @cached_property
    def table(self) -> Forecasts:
        """The table itself."""
        return Forecasts.of(self.view, "EqualMass")

    @property
    def counted(self) -> Ladder:
        """What is known of each question without sorting: how many samples there are."""
        ends = Totals.zeros(2)
        return Ladder(np.zeros(1), np.array([0, len(self.view.outputs)]), ends, ends, self.precision)

    def __add__(self, other: Self | int) -> Self:
        if isinstance(other, int) and other == 0:
            return self
        return self.table + getattr(other, "table", other)  # type: ignore[return-value]

    def __radd__(self, other: Forecasts | int) -> Self:
        if isinstance(other, int):
            return self if other == 0 else NotImplemented
        return other + self.table  # type: ignore[return-value]

    def to_bytes(self) -> bytes:
        """Those of the table."""
        return self.table.to_bytes()


def suits(view: View) -> bool:
    """Whether a view is one of many questions on a device, all samples answering all of them."""
    plain = view.keep is None and view.group is None and view.weight is None and view.targets.ndim == 1
    far = not isinstance(view.outputs, np.ndarray) and view.outputs.dtype == np.float32
    return far and plain and view.v >= FEWEST and view.d == 1 and len(view.outputs) > 0


def cut_at_ranks(view: View, ranks: Ints) -> Bins:
    """The bins between ranks (b + 1,) of each question of a view that suits, as its sorted table would be cut."""
    check_memory(view.v, len(ranks) - 1, 1)
    forecasts, whole = kernels.beside(view.outputs).at_ranks(view.outputs[:, :, 0], view.targets, ranks)
    (at, largest), (below, through, hits, all_hits, hi, lo) = forecasts, whole
    inside = ranks - below
    outputs = Totals.normal(hi, lo) + Totals.of(np.where(inside > 0, at, 0.0)).times(inside)
    share = Totals.whole(all_hits - hits).share(inside, np.maximum(through - below, 1))
    targets = Totals.whole(hits) + share
    held = np.diff(ranks) > 0
    last = np.where(inside > 0, at, largest)[:, 1:]
    size = Totals.whole(np.broadcast_to(np.diff(ranks), last.shape))
    shape = (*size.shape, 1)
    return Bins(
        view.about,
        size,
        outputs.differences().reshape(*shape),
        targets.differences().reshape(*shape),
        np.full(view.v, last.shape[1]),
        np.where(held, at[:, :-1], np.nan),
        np.where(held, last, np.nan),
    )
