"""Rankings: many named numbers in order, of which the outermost have rows of their own and the rest share a ribbon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.kernels.totals import Floats, Ints
from calibrant.plots import colours
from calibrant.plots.panels import Axes

RIBBON = 3.0
"""Rows of height that all the numbers without a row share."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Where each of n numbers is drawn, the largest on top: `named` have a row at `rows`, `rest` a place in the ribbon.

    >>> ranking = Ranking.of(np.array([.1, -.3, .2, 0, .05]), most=4)
    >>> ranking.named.tolist(), ranking.rows.tolist(), ranking.rest.tolist()
    ([2, 0, 3, 1], [0.0, 1.0, 5.0, 6.0], [4])
    """

    named: Ints
    rows: Floats
    rest: Ints
    ribbon: tuple[float, float]

    @classmethod
    def of(cls, values: Floats, *, most: int) -> Ranking:
        """The largest half of `most` and the smallest half are named where there are more; nan has no place."""
        order = np.argsort(-values, kind="stable")[: int((~np.isnan(values)).sum())]
        if len(order) <= most:
            return cls(order, np.arange(len(order), dtype=float), order[:0], (0.0, 0.0))
        top, bottom = -(-most // 2), most // 2
        rows = np.concatenate([np.arange(top), top + RIBBON + np.arange(bottom)])
        named = np.concatenate([order[:top], order[len(order) - bottom :]])
        return cls(named, rows, order[top : len(order) - bottom], (top - 0.5, top - 0.5 + RIBBON))

    @property
    def height(self) -> float:
        """How many rows high the ranking is."""
        return len(self.named) + (RIBBON if len(self.rest) else 0.0)

    @property
    def ribbon_rows(self) -> Floats:
        """The edges, from the top, between which each of the rest is drawn."""
        return np.linspace(*self.ribbon, len(self.rest) + 1)

    def apply(self, ax: Axes, names: Sequence[str], size: float, rest: str) -> None:
        """The vertical axis: names at the rows, and what the ribbon holds."""
        places, labels = self.rows.tolist(), [names[index] for index in self.named]
        if len(self.rest):
            places.append(sum(self.ribbon) / 2)
            labels.append(f"{len(self.rest):,} {rest}\nin between")
            ax.axhspan(*self.ribbon, color=colours.FAINT, alpha=0.5, linewidth=0, zorder=0)
        ax.set_yticks(places, labels=labels, fontsize=size)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(self.height, 1.0) - 0.4, -0.6)
