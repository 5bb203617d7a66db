"""Precision: how finely forecasts are known, so that edges are compared as finely and no finer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Precision:
    """Significand bits of the given forecasts; `summed` where a lens added several of them.

    A float32 0.7 lies on the edge 7/10 although float32(0.7) is not 7/10, and the group
    sum .1 + .2 lies on the edge 3/10 although it is not 3/10 in floats. Edges are therefore
    rounded as the forecasts were; sums and edges both to a grain a few bits coarser.

    >>> bool(Precision(24).edges(np.array([0.7]))[0] == np.float32(0.7))
    True
    >>> values, edges = Precision(53, summed=True).comparable(np.array([0.1 + 0.2]), np.array([0.3]))
    >>> bool(values[0] == edges[0])
    True
    """

    bits: int
    summed: bool = False

    def edges(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The edges as forecasts of this precision would hold them."""
        if self.bits == 53:
            return edges
        significand, exponent = np.frexp(edges)
        return np.ldexp(np.rint(np.ldexp(significand, self.bits)), exponent - self.bits)

    @property
    def grain(self) -> float:
        """Sums are compared in multiples of 1 / grain; 0 where values are compared as they are."""
        return 2.0 ** (self.bits * 5 // 6) if self.summed else 0.0

    def borders(self, edges: NDArray[np.float64], dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
        """Edges as they are compared with values of a type."""
        if self.summed:
            return np.rint(edges * self.grain)
        return self.edges(edges).astype(dtype)  # exact: the values hold at least `bits` bits

    def comparable(
        self, values: NDArray[np.floating], edges: NDArray[np.float64]
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Values and edges that may be compared with <, <= and ==."""
        return np.rint(values * self.grain) if self.summed else values, self.borders(edges, values.dtype)


DOUBLE = Precision(53)


def counted(precisions: tuple[tuple[Precision, int], ...]) -> tuple[tuple[Precision, int], ...]:
    """Each precision once, with all its rows, the coarsest first.

    >>> counted(((Precision(53), 2), (Precision(24), 1), (Precision(53), 3)))
    ((Precision(bits=24, summed=False), 1), (Precision(bits=53, summed=False), 5))
    """
    rows = Counter[Precision]()
    for precision, each in precisions:
        rows[precision] += each
    known = sorted(rows.items(), key=lambda pair: (pair[0].bits, pair[0].summed))
    return tuple((precision, each) for precision, each in known if each)
