"""Totals: exact sums, so that no order of rows, batches or merges can change a bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.row_blocks import blocks

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HALF = 26
"""Bits of the low limb: a value is hi * 2^-26 + lo * 2^-52 with 0 <= lo < 2^26."""
HIGH = 62
"""Bits of the high limb: what exceeds them, from 2^36 on, is carried into a third."""
_MASK, _REST = (1 << HALF) - 1, (1 << HIGH) - 1
_GRAIN = float(1 << HALF)


@dataclass(frozen=True, eq=False)
class Totals:
    """An array of exact sums in units of 2^-52, held in two int64 limbs, or in three from 2^36 on; one form per value.

    A float64 in [0, 1] is rounded once, by at most 2^-53; a float32 of at least 2^-29 is exact. Their sums are
    exact. What two limbs cannot hold is summed in Python's whole numbers; 2^99 and more is refused.

    >>> values = np.random.default_rng(0).random(1000)
    >>> forwards, backwards = Totals.of(values).sum(0), Totals.of(values[::-1]).sum(0)
    >>> forwards.same(backwards), float(forwards.value) == float(np.longdouble(values).sum())
    (True, True)
    """

    hi: Ints
    lo: Ints
    top: Ints | None = None
    """Units of 2^36, beside 0 <= hi < 2^62; None where no sum needs them, and -2^62 <= hi < 2^62."""

    @classmethod
    def of(cls, values: NDArray[Any], weight: NDArray[Any] | None = None) -> Totals:
        """Each value in units; with a weight, each value times its weight (whole weights repeat exactly)."""
        values = np.asarray(values, np.float64)
        scaled = values * _GRAIN
        weights = None if weight is None else np.broadcast_to(np.asarray(weight, np.float64), scaled.shape)
        large = np.abs(scaled) >= 1 << HIGH
        if weights is not None:
            large |= np.maximum(np.abs(scaled), _GRAIN) * weights >= 1 << 53  # a product that floats would round
        if large.any():
            return cls._with_large(values, weights, large)
        hi = np.floor(scaled)
        lo = np.rint((scaled - hi) * _GRAIN)
        if weights is None:
            return cls.normal(hi.astype(np.int64), lo.astype(np.int64))
        weighted = hi * weights
        whole = np.floor(weighted)
        rest = np.rint((weighted - whole) * _GRAIN + lo * weights)
        return cls.normal(whole.astype(np.int64), rest.astype(np.int64))

    @classmethod
    def summed(cls, values: Floats) -> Totals:
        """Sums of values in units over the first axis; some rows at a time, which stay in cache.

        >>> float(Totals.summed(np.full((20_000, 1), 0.25)).value[0])
        5000.0
        """
        starts = range(0, len(values), 8192)
        return sum((cls.of(values[i : i + 8192]).sum(0) for i in starts), cls.zeros(values.shape[1:]))

    @classmethod
    def _with_large(cls, values: Floats, weights: Floats | None, large: NDArray[np.bool_]) -> Totals:
        """As `of`; the large ones, which floats would round, in whole numbers and fractions of Python."""
        small = None if weights is None else np.where(large, 0.0, weights)
        exact = np.array(cls.of(np.where(large, 0.0, values), small).units, object)
        each = [round(Fraction(value) * (1 << 2 * HALF)) for value in values[large].tolist()]
        if weights is not None:
            pairs = zip(each, weights[large].tolist(), strict=True)
            each = [round(units * Fraction(weight)) for units, weight in pairs]
        exact[large] = each
        return cls.exactly(exact)

    @classmethod
    def whole(cls, counts: NDArray[Any]) -> Totals:
        """Whole numbers."""
        counts = np.asarray(counts, np.int64)
        if _largest(counts) >= 1 << HIGH - HALF:
            return cls.exactly(counts.astype(object) << 2 * HALF)
        hi = counts << HALF
        return cls(hi, np.zeros_like(hi))

    @classmethod
    def exactly(cls, units: Any) -> Totals:
        """Sums in units of 2^-52 that were made in Python's whole numbers."""
        shape, units = np.shape(units), np.asarray(units, object).reshape(-1)
        try:
            top = (units >> HALF + HIGH).astype(np.int64)
        except OverflowError:
            largest = max(abs(int(each)) for each in units.flat) >> 2 * HALF
            raise CalibrationInputError("sum", "must stay below 2^99", got=f"about 2^{largest.bit_length()}") from None
        hi, lo = (units >> HALF & _REST).astype(np.int64), (units & _MASK).astype(np.int64)
        return cls._narrowed(hi.reshape(shape), lo.reshape(shape), top.reshape(shape))

    @classmethod
    def normal(cls, hi: Ints, lo: Ints) -> Totals:
        """Limbs that have not been carried yet."""
        hi = hi + (lo >> HALF)
        if not ((hi + (1 << HIGH)) >> HIGH + 1).any():  # -2^62 <= hi < 2^62, in one walk
            return cls(hi, lo & _MASK)
        return cls._narrowed(hi & _REST, lo & _MASK, hi >> HIGH)

    @classmethod
    def _narrowed(cls, hi: Ints, lo: Ints, top: Ints) -> Totals:
        """In two limbs where they do, so that a value has one form."""
        return cls(hi + (top << HIGH), lo) if np.all((top == 0) | (top == -1)) else cls(hi, lo, top)

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
        if self.top is None:
            return self.hi / _GRAIN + self.lo / (_GRAIN * _GRAIN)
        below = self.top == -1  # a small negative sum, of which the carry would round away the digits
        high = np.where(below, self.hi - (1 << HIGH), self.hi) / _GRAIN + self.lo / (_GRAIN * _GRAIN)
        return np.where(below, 0, self.top) * 2.0 ** (HIGH - HALF) + high

    @property
    def units(self) -> NDArray[Any]:
        """The sums in units, as whole numbers of Python."""
        units = (self.hi.astype(object) << HALF) + self.lo.astype(object)
        return units if self.top is None else units + (self.top.astype(object) << HALF + HIGH)

    @property
    def fractions(self) -> NDArray[np.bool_]:
        """Which sums are no whole numbers."""
        return (self.lo != 0) | (self.hi & _MASK != 0)

    @property
    def is_whole(self) -> bool:
        """Whether every sum is a whole number."""
        return not self.fractions.any()

    @property
    def floor(self) -> Ints:
        """The whole parts of the sums."""
        return (self.hi >> HALF) + (0 if self.top is None else self.top << HIGH - HALF)

    @property
    def negative(self) -> NDArray[np.bool_]:
        """Which sums lie below 0."""
        return (self.hi if self.top is None else self.top) < 0

    @property
    def is_normal(self) -> bool:
        """Whether the limbs are the one form of their sums: carried, and as few as do."""
        if self.top is None:
            return self.hi.shape == self.lo.shape and Totals.normal(self.hi, self.lo).same(self)
        return self.hi.shape == self.lo.shape == self.top.shape and Totals._narrowed(
            self.hi & _REST, self.lo & _MASK, self.top
        ).same(self)

    def __add__(self, other: Totals) -> Totals:
        return self._joined(other, 1)

    def __sub__(self, other: Totals) -> Totals:
        return self._joined(other, -1)

    def _joined(self, other: Totals, sign: int) -> Totals:
        if self.top is None and other.top is None:
            return Totals.normal(self.hi + sign * other.hi, self.lo + sign * other.lo)
        return Totals.exactly(self.units + sign * other.units)

    def __getitem__(self, index: Any) -> Totals:
        if self.top is None:
            return Totals(self.hi[index], self.lo[index])
        return Totals._narrowed(self.hi[index], self.lo[index], self.top[index])

    def same(self, other: Totals) -> bool:
        """Equal to the bit."""
        limbs = zip((self.hi, self.lo, self.top), (other.hi, other.lo, other.top), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in limbs)  # type: ignore[arg-type]

    def sum(self, axis: int) -> Totals:
        """Exact sums along an axis."""
        if self._fits(self.hi.shape[axis]):
            return Totals.normal(self.hi.sum(axis), self.lo.sum(axis))
        return Totals.exactly(self.units.sum(axis))

    def by_code(self, codes: Ints, count: int) -> Totals:
        """Exact sums of a 1-D array by code, of so many codes."""
        if not self._fits(len(self.hi)):
            units = np.zeros(count, object)
            np.add.at(units, codes, self.units)
            return Totals.exactly(units)
        return Totals.normal(*(kernels.sums_by_code(codes, limb, count) for limb in (self.hi, self.lo)))

    def reduced(self, first: Ints) -> Totals:
        """Exact sums of the stretches of a 1-D array that begin at these places."""
        if self._fits(len(self.hi)) and len(first):
            return Totals.normal(np.add.reduceat(self.hi, first), np.add.reduceat(self.lo, first))
        stretch = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(self.hi))))
        return self.by_code(stretch, len(first))

    def cumulative(self) -> Totals:
        """Running totals along the last axis, starting with 0: one entry more."""
        if not self._fits(self.hi.shape[-1]):
            units = self.units
            return Totals.exactly(np.concatenate([np.zeros((*units.shape[:-1], 1), object), units.cumsum(-1)], axis=-1))
        hi, lo = np.zeros((2, *self.hi.shape[:-1], self.hi.shape[-1] + 1), np.int64)
        np.cumsum(self.hi, axis=-1, out=hi[..., 1:])
        np.cumsum(self.lo, axis=-1, out=lo[..., 1:])
        return Totals.normal(hi, lo)

    def differences(self) -> Totals:
        """Differences of neighbours along the last axis."""
        return self[..., 1:] - self[..., :-1]

    def times(self, counts: NDArray[Any]) -> Totals:
        """The sums repeated a whole number of times."""
        counts = np.asarray(counts, np.int64)
        if self.top is None and max(_largest(self.hi), 1 << HALF) * _largest(counts) < 1 << HIGH:
            return Totals.normal(self.hi * counts, self.lo * counts)
        return Totals.exactly(self.units * counts.astype(object))

    def share(self, part: Ints, of: Ints) -> Totals:
        """The sums times part / of, rounded once to a unit, halves to even; 0 <= part <= of.

        Long division, limb by limb, so that no product leaves int64.
        """
        if self.top is not None or _largest(of) >= 1 << 31:
            whole, rest = (self.units * part) // of, 2 * ((self.units * part) % of)
            return Totals.exactly(whole + ((rest > of) | ((rest == of) & (whole % 2 == 1))))
        hi, rest = np.divmod(self.hi, of)
        lo, rest = np.divmod((rest << HALF) + self.lo, of)
        last, remainder = np.divmod(rest * part, of)
        up = (2 * remainder > of) | ((2 * remainder == of) & ((lo * part + last) % 2 == 1))
        return Totals.normal(hi * part, lo * part + last + up)

    def reshape(self, *shape: int) -> Totals:
        """The same sums in another shape."""
        top = None if self.top is None else self.top.reshape(shape)
        return Totals(self.hi.reshape(shape), self.lo.reshape(shape), top)

    def spread(self, places: Ints, width: int) -> Totals:
        """The columns at their places among so many, zero elsewhere."""
        table = Totals.zeros((self.shape[0], width, *self.shape[2:]))
        top = None if self.top is None else np.zeros_like(table.hi)
        for wide, limb in zip((table.hi, table.lo, top), (self.hi, self.lo, self.top), strict=True):
            if wide is not None and limb is not None:
                wide[:, places] = limb
        return Totals(table.hi, table.lo, top)

    def exact(self, index: int) -> int:
        """One entry of a 1-D array in units, as a Python integer."""
        return int(self[index : index + 1].units[0])

    def _fits(self, count: int) -> bool:
        """Whether so many of these can be added in two limbs."""
        if self.top is not None or count >= 1 << HIGH - HALF:
            return False
        bound = _largest(self.hi) * max(1, count)
        return bound < 1 << HIGH or float(np.abs(self.hi).sum(dtype=np.float64)) < 0.99 * (1 << HIGH)

    @staticmethod
    def joined(parts: Sequence[Totals], axis: int = 0) -> Totals:
        """Totals one behind the other along an axis that they have."""
        if len(parts) == 1:
            return parts[0]
        if any(part.top is not None for part in parts):
            return Totals.exactly(np.concatenate([part.units for part in parts], axis))
        hi, lo = (np.concatenate([getattr(part, limb) for part in parts], axis) for limb in ("hi", "lo"))
        return Totals(hi, lo)

    @staticmethod
    def stack(rows: Sequence[Totals], width: int) -> Totals:
        """1-D totals as the rows of a table, padded with zeros to one width."""
        missing = [() if len(row.hi) == width else (Totals.zeros(width - len(row.hi)),) for row in rows]
        padded = [Totals.joined([row, *zeros]) for row, zeros in zip(rows, missing, strict=True)]
        return Totals.joined([row.reshape(1, width) for row in padded])


def column_totals(
    values: NDArray[Any], rows: Ints, weight: NDArray[Any] | None = None, *, square: bool = False
) -> Totals:
    """Exact sums of the columns of a matrix of values in [0, 1] over some of its rows, or of their squares."""
    if weight is None:
        return Totals(*(kernels.square_sums if square else kernels.column_sums)(values, rows))
    total = Totals.zeros(values.shape[1])
    for part in blocks(len(rows), values.shape[1]):
        block = values[rows[part]]
        total += Totals.of(np.square(block, dtype=np.float64) if square else block, weight[rows[part], None]).sum(0)
    return total


def _largest(limbs: Ints) -> int:
    return max(int(limbs.max(initial=0)), -int(limbs.min(initial=0)))
