"""The command `calibrant`."""

from __future__ import annotations

import sys

_EXTRAS = {
    "click": "cli", "rich": "cli", "jinja2": "cli", "markupsafe": "cli", "pyarrow": "cli", "yaml": "cli",
    "matplotlib": "plot", "pydantic": "experiments", "torch": "experiments",
}  # fmt: skip
"""The extra that has each package."""


def main() -> None:
    """Run the command; its parts need the extra `cli`.

    >>> callable(main)
    True
    """
    try:
        from calibrant.cli.commands import run

        run()
    except ModuleNotFoundError as missing:
        extra = _EXTRAS.get((missing.name or "").split(".")[0])
        if extra is None:
            raise
        print(f"calibrant: this needs {missing.name}: pip install 'calibrant[{extra}]'", file=sys.stderr)
        sys.exit(2)
