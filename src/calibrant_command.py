"""Starts the command `calibrant`, quietly even if it is interrupted while modules are loaded."""

import sys


def main() -> None:
    """Load the command and run it.

    >>> callable(main)
    True
    """
    try:
        from calibrant.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
