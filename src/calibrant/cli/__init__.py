"""The command `calibrant`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; its parts need the extra `cli`.

    >>> callable(main)
    True
    """
    try:
        from calibrant.cli.commands import run

        run()
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(f"calibrant: the command needs {missing.name}: pip install 'calibrant[cli]'", file=sys.stderr)
        sys.exit(2)
