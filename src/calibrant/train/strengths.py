"""Strengths: how much of a method there may be. 0 is none of it."""

from __future__ import annotations

import math
from typing import Any

from calibrant.checks import number


def strength(value: Any, parameter: str) -> None:
    """Refuse what is no finite number of at least 0.

    >>> strength(-1, "gamma")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: gamma: must be a finite number of at least 0, got -1
    """
    number(value, parameter, "must be a finite number of at least 0", lambda value: 0 <= value < math.inf)
