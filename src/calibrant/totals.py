"""Totals: exact sums, so that no order of rows, batches or merges can change a bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HALF = 26
"""Bits of the low limb: a value is hi * 2^-26 + lo * 2^-52 with 0 <= lo < 2^26."""
_MASK = (1 << HALF) - 1
_GRAIN = float(1 << HALF)


@dataclass(frozen=True, eq=False)
class Totals:
    """An array of exact sums in units of 2^-52, held in two int64 limbs; one form per value.

    A float64 in [0, 1] is rounded once, by at most 2^-53; a float32 of at least 2^-29 is
    exact. Sums of such values are exact up to 2^36.

    >>> values = np.random.default_rng(0).random(1000)
    >>> forwards, backwards = Totals.of(values).sum(0), Totals.of(values[::-1]).sum(0)
    >>> forwards.same(backwards), float(forwards.value) == float(np.longdouble(values).sum())
    (True, True)
    """

    hi: Ints
    lo: Ints

    @classmethod
    def of(cls, values: NDArray[Any], weight: NDArray[Any] | None = None) -> Totals:
        """Each value in units; with a weight, each value times its weight (whole weights repeat exactly)."""
        scaled = np.asarray(values, np.float64) * _GRAIN
        hi = np.floor(scaled)
        lo = np.rint((scaled - hi) * _GRAIN)
        if weight is None:
            return cls.normal(hi.astype(np.int64), lo.astype(np.int64))
        weight = np.asarray(weight, np.float64)
        weighted = hi * weight
        whole = np.floor(weighted)
        rest = np.rint((weighted - whole) * _GRAIN + lo * weight)
        return cls.normal(whole.astype(np.int64), rest.astype(np.int64))

    @classmethod
    def whole(cls, counts: NDArray[Any]) -> Totals:
        """Whole numbers."""
        hi = np.asarray(counts, np.int64) << HALF
        return cls(hi, np.zeros_like(hi))

    @classmethod
    def units(cls, units: Ints) -> Totals:
        """Sums that were made in units of 2^-52 (and fit one int64)."""
        return cls(units >> HALF, units & _MASK)

    @classmethod
    def normal(cls, hi: Ints, lo: Ints) -> Totals:
        """Limbs that have not been carried yet."""
        return cls(hi + (lo >> HALF), lo & _MASK)

    @classmethod
    def zeros(cls, shape: int | tuple[int, ...]) -> Totals:
        """Nothing yet."""
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of sums."""
        return self.hi.shape

    @property
    def value(self) -> Floats:
        """The sums as float64, rounded once (below 2^27)."""
        return self.hi / _GRAIN + self.lo / (_GRAIN * _GRAIN)

    def __add__(self, other: Totals) -> Totals:
        return Totals.normal(self.hi + other.hi, self.lo + other.lo)

    def __sub__(self, other: Totals) -> Totals:
        return Totals.normal(self.hi - other.hi, self.lo - other.lo)

    def __getitem__(self, index: Any) -> Totals:
        return Totals(self.hi[index], self.lo[index])

    def same(self, other: Totals) -> bool:
        """Equal to the bit."""
        return np.array_equal(self.hi, other.hi) and np.array_equal(self.lo, other.lo)

    def sum(self, axis: int) -> Totals:
        """Exact sums along an axis."""
        return Totals.normal(self.hi.sum(axis), self.lo.sum(axis))

    def cumulative(self) -> Totals:
        """Running totals of a 1-D array, starting with 0: one entry more."""
        hi, lo = np.zeros((2, len(self.hi) + 1), np.int64)
        np.cumsum(self.hi, out=hi[1:])
        np.cumsum(self.lo, out=lo[1:])
        return Totals.normal(hi, lo)

    def differences(self) -> Totals:
        """Differences of neighbours along the last axis."""
        return self[..., 1:] - self[..., :-1]

    def times(self, counts: NDArray[Any]) -> Totals:
        """The sums repeated a whole number of times."""
        counts = np.asarray(counts, np.int64)
        return Totals.normal(self.hi * counts, self.lo * counts)

    def share(self, part: Ints, of: Ints) -> Totals:
        """The sums times part / of, rounded once to a unit; 0 <= part <= of < 2^31.

        Long division, limb by limb, so that no product leaves int64.
        """
        hi, rest = np.divmod(self.hi, of)
        lo, rest = np.divmod((rest << HALF) + self.lo, of)
        last, remainder = np.divmod(rest * part, of)
        up = (2 * remainder > of) | ((2 * remainder == of) & ((lo * part + last) % 2 == 1))  # halves to even
        return Totals.normal(hi * part, lo * part + last + up)

    def reshape(self, *shape: int) -> Totals:
        """The same sums in another shape."""
        return Totals(self.hi.reshape(shape), self.lo.reshape(shape))

    def exact(self, index: int) -> int:
        """One entry of a 1-D array in units, as a Python integer."""
        return (int(self.hi[index]) << HALF) + int(self.lo[index])

    @staticmethod
    def stack(rows: list[Totals], width: int) -> Totals:
        """1-D totals as the rows of a table, padded with zeros to one width."""
        table = Totals.zeros((len(rows), width))
        for row, totals in enumerate(rows):
            table.hi[row, : len(totals.hi)] = totals.hi
            table.lo[row, : len(totals.lo)] = totals.lo
        return table
