"""Wording: numbers as they are printed, with the error that simulation leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence


def plus_minus(value: float, error: float, form: str = ".4f") -> str:
    """A number and its Monte Carlo error, both in the same form; the number alone where no error is known.

    >>> plus_minus(0.0123, 0.0004, "+.4f"), plus_minus(0.31, 0.024, ".0%"), plus_minus(0.5, float("nan"))
    ('+0.0123 ± 0.0004', '31% ± 2%', '0.5000')
    """
    return format(value, form) if math.isnan(error) else f"{value:{form}} ± {error:{form.removeprefix('+')}}"


def tied(names: Sequence[str]) -> str:
    """Which others tie with the best, as the end of a sentence; nothing where none do.

    >>> tied(["ece"]), tied(["ece", "sweep", "kde"]), tied([])
    ('; ece ties with it within Monte Carlo error', '; ece, sweep and kde tie with it within Monte Carlo error', '')
    """
    if not names:
        return ""
    if len(names) == 1:
        return f"; {names[0]} ties with it within Monte Carlo error"
    return f"; {', '.join(names[:-1])} and {names[-1]} tie with it within Monte Carlo error"
