"""Words typed: the whole command without a new process, and how it ended."""

import sys
from dataclasses import dataclass

from calibrant.cli import commands


@dataclass(frozen=True)
class Ended:
    """The exit status, and what was written to either side."""

    code: int
    out: str
    err: str


def typed(monkeypatch, capsys, words, ended=Ended):
    """Run the command with these words."""
    monkeypatch.setattr(sys, "argv", ["calibrant", *map(str, words)])
    capsys.readouterr()
    code = 0
    try:
        commands.run()
    except SystemExit as stop:
        code = stop.code or 0
    return ended(code, *capsys.readouterr())
