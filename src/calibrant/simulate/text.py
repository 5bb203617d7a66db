"""Text: JSON without bare nan."""

from __future__ import annotations

import json
from typing import Any

from calibrant.specification.encoding import number


def to_json(made: Any) -> str:
    """Plain values as JSON; nan and infinities as strings.

    >>> to_json({"mean": float("nan"), "n": 3})
    '{"mean": "nan", "n": 3}'
    """
    return json.dumps(_plain(made), allow_nan=False)


def _plain(made: Any) -> Any:
    if isinstance(made, dict):
        return {str(name): _plain(value) for name, value in made.items()}
    if isinstance(made, (list, tuple)):
        return [_plain(value) for value in made]
    return number(float(made)) if isinstance(made, float) else made
