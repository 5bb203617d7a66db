"""Remarks: what may be told of rows when predictions are made, in words."""

from __future__ import annotations

from calibrant.door.arrays import shown
from calibrant.door.labels import IN_FLOAT32
from calibrant.door.leaks import FLAG

DIVIDED = "divided by their sums"
CLIPPED = "clipped: probabilities within 1e-6 of [0, 1]"
LEFT_OUT = "left out: "
"""How the reason for which rows do not stay is told."""
GAPS = "missing values"


def ignored(label: float) -> str:
    """The reason for which rows of an ignored label do not stay.

    >>> ignored(255)
    'label 255'
    """
    return f"label {shown(label)}"


def possible(ignore_index: float | None = None) -> list[str]:
    """All remarks that there may be, in order.

    >>> possible(-100)[-2:]
    ['left out: label -100', 'left out: missing values']
    """
    reasons = [GAPS] if ignore_index is None else [GAPS, ignored(ignore_index)]
    return sorted([DIVIDED, CLIPPED, IN_FLOAT32, FLAG, *(LEFT_OUT + reason for reason in reasons)])
