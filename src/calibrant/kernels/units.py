"""Units: probabilities as whole numbers of 2^-52."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ONE = np.float64(1.0).view(np.int64)
"""The bits of 1."""
LOW = (1 << 26) - 1
"""The bits of the lower of two limbs."""


def units(values: NDArray[Any]) -> NDArray[np.int64]:
    """round(p * 2^52) for p in [0, 1]: the significand bits of 1 + p.

    >>> units(np.array([0.5, 2.0**-52])).tolist()
    [2251799813685248, 1]
    """
    floats = np.array(values, np.float64, order="C")  # cast first: adding in float32 would round
    floats += 1.0
    bits = floats.view(np.int64)
    bits -= ONE
    return bits
