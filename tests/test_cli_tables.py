"""Tables for the terminal: what does not fit side by side stands below, with the names of the rows again."""

import pytest

from calibrant.cli.showing import drawn

NAMES = ["a network of some width", "a method with options"]


def table(columns, cell="0.1234 ± 0.0123"):
    """Two columns of names and some of numbers, in two rows."""
    header = ["network", "method", *(f"metric {place}" for place in range(columns))]
    return header, [[*NAMES, *[cell] * columns], [*NAMES, *["-"] * columns]]


def test_a_table_that_fits_is_in_one_piece():
    text = drawn(*table(3), "Title")
    assert text.count("network") == 1 + 2  # the header, and the name in both rows
    assert text.splitlines()[0] == "Title"


@pytest.mark.parametrize("cell", ["0.1234 ± 0.0123", "-1.2e-05", "0.123 (2 of 3)", "1.0 ± 0.5 (2 of 3)", "–"])
def test_columns_of_numbers_are_split_and_never_wrapped(cell):
    header, rows = table(20, cell)
    text = drawn(header, rows, "Title")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 120
    assert sum("──" in line for line in lines) > 1
    told = [line for line in lines if NAMES[0] in line]
    assert all(NAMES[1] in line for line in told)  # whole names, in each piece
    assert text.count(cell) >= 20
    assert all(f"metric {place}" in text for place in range(20))


def test_a_table_whose_last_column_is_words_stays_in_one_piece():
    header, rows = table(12)
    text = drawn([*header, "what it asks"], [[*row, "top label"] for row in rows], "")
    assert sum("──" in line for line in text.splitlines()) == 1
