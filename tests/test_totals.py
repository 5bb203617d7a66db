"""Totals: exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.kernels.numpy import row_sums, units
from calibrant.kernels.totals import Totals, column_totals

UNIT = Fraction(1, 2**52)
probabilities = st.floats(0, 1)


def exact(total: Totals) -> Fraction:
    return int(total.hi) * Fraction(1, 2**26) + int(total.lo) * UNIT


@given(st.lists(probabilities, min_size=1, max_size=50))
def test_a_sum_is_the_sum_of_the_values_rounded_once_each(values):
    total = Totals.of(np.array(values)).sum(0)
    rounded = sum((Fraction(round(Fraction(value) / UNIT)) * UNIT for value in values), Fraction(0))
    assert exact(total) == rounded
    assert abs(rounded - sum(map(Fraction, values))) <= len(values) * UNIT / 2


@given(st.lists(st.floats(2**-29, 1, width=32), min_size=1, max_size=50))
def test_float32_sums_are_exact(values):
    total = Totals.of(np.array(values, np.float32)).by_code(np.zeros(len(values), int), 1)
    assert float(total.value[0]) == math.fsum(values)


@given(st.lists(probabilities, min_size=1, max_size=20))
def test_bits_of_one_plus_p_are_its_units(values):
    assert units(np.array(values)).tolist() == [round(Fraction(value) / UNIT) for value in values]


@given(st.lists(st.floats(-1000, 1000), min_size=2, max_size=20))
def test_every_value_has_one_form(values):
    one, other = Totals.of(np.array(values)).sum(0), Totals.of(np.array(values[::-1])).sum(0)
    assert one.same(other)
    assert 0 <= int(one.lo) < 2**26
    assert exact(one - other) == 0


@given(probabilities, st.integers(0, 2**20))
def test_whole_weights_repeat_to_the_bit(value, times):
    weighted = Totals.of(np.array([value]), np.array([float(times)]))
    assert weighted.same(Totals.of(np.array([value])).times(np.array([times])))


@given(st.integers(0, 2**40), st.integers(0, 2**26 - 1), st.integers(1, 2**31 - 1), st.data())
def test_a_share_is_rounded_once_to_a_unit_halves_to_even(hi, lo, of, data):
    part = data.draw(st.integers(0, of))
    share = Totals(np.array(hi), np.array(lo)).share(np.array(part), np.array(of))
    whole = hi * 2**26 + lo
    assert exact(share) / UNIT == round(Fraction(whole * part, of))


def test_half_a_unit_goes_to_the_even_neighbour():
    half = [Totals(np.array(0), np.array(lo)).share(np.array(1), np.array(2)) for lo in (1, 3, 5)]
    assert [int(share.lo) for share in half] == [0, 2, 2]


def test_more_rows_than_one_int64_could_add_do_not_overflow():
    ones = np.ones((5000, 2), np.float32)
    every = np.arange(5000)
    assert column_totals(ones, every).value.tolist() == [5000.0, 5000.0]
    assert column_totals(ones[:, :1], every).value.tolist() == [5000.0]
    assert column_totals(ones, np.arange(0, 5000, 2)).value.tolist() == [2500.0, 2500.0]
    assert Totals.of(np.ones(10_000)).by_code(np.zeros(10_000, int), 1).value.tolist() == [10_000.0]


def test_sums_of_float32_are_made_in_float64():
    values = np.full(1_000_000, 0.1, np.float32)
    assert Totals.of(values).by_code(np.zeros(len(values), int), 1).value[0] == math.fsum(values.tolist())


def test_row_sums_of_two_decimals_do_not_depend_on_the_order_of_classes():
    row = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]])
    assert row_sums(row)[0] == row_sums(row[:, ::-1])[0] == 1.0


def test_row_sums_never_exceed_one():
    assert row_sums(np.array([[0.5004, 0.5004]]))[0] == 1.0


@pytest.mark.parametrize("square", [False, True])
def test_weighted_columns_equal_repeated_rows(square):
    rng = np.random.default_rng(0)
    values, times = rng.random((50, 3)), rng.integers(0, 4, 50)
    repeated = column_totals(np.repeat(values, times, axis=0), np.arange(times.sum()), square=square)
    assert column_totals(values, np.arange(50), times.astype(float), square=square).same(repeated)
