"""The command `calibrant`."""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

FAULT, INTERRUPTED = 70, 130
"""Exit statuses: calibrant itself has a fault, the user interrupted it."""
_EXTRAS = {
    "click": "cli", "rich": "cli", "jinja2": "cli", "markupsafe": "cli", "pyarrow": "cli", "yaml": "cli",
    "matplotlib": "plot", "pydantic": "experiments", "torch": "experiments",
}  # fmt: skip
"""The extra that has each package."""


def main() -> None:
    """Run the command; its parts need the extra `cli`. What nobody foresaw ends with the status of a fault.

    >>> callable(main)
    True
    """
    try:
        from calibrant.cli.commands import run

        run()
    except ModuleNotFoundError as missing:
        extra = _EXTRAS.get((missing.name or "").split(".")[0])
        if extra is None:
            _end_with_fault(missing)
        print(f"calibrant: this needs {missing.name}: pip install 'calibrant[{extra}]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # while modules were loaded
        sys.exit(INTERRUPTED)
    except Exception as error:
        _end_with_fault(error)


def _end_with_fault(error: Exception) -> NoReturn:
    """Say in one line that this should not happen, and how to report it."""
    from calibrant.text import inert

    debug = bool(os.environ.get("CALIBRANT_DEBUG"))
    if debug:
        traceback.print_exception(error)
    words = f"this is a fault in calibrant ({type(error).__name__}: {inert(str(error), 200)})"
    more = "" if debug else "; set CALIBRANT_DEBUG=1 to see where it happened"
    print(f"calibrant: {words}; please report it with the command that you typed{more}", file=sys.stderr)
    sys.exit(FAULT)
