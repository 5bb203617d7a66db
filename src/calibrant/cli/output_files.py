"""Output files: where a command writes, checked before the work begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from calibrant.cli.group import say
from calibrant.files import writing
from calibrant.text import inert

PAGES = (".html", ".htm")
"""Endings of a page."""


def check_apart(*outputs: str | None) -> None:
    """Refuse outputs of which two would go to one place."""
    named = [output for output in outputs if output is not None]
    places = ["-" if is_standard(output) else os.path.realpath(output) for output in named]
    for output, place in zip(named, places, strict=True):
        if places.count(place) > 1:
            raise click.UsageError(f"two outputs would go to {inert(output, 200)}; name one of them otherwise")


def check_output(output: str, inputs: Sequence[str] = (), endings: Sequence[str] = (), option: str = "-o") -> None:
    """Refuse an output that cannot be written, that is one of the inputs, or whose ending names another format.

    `endings` are those of what will be written; a name without an ending fits, and so do pipes and devices.
    """
    if not is_standard(output) and any(os.path.realpath(output) == os.path.realpath(file) for file in inputs):
        raise click.UsageError(f"this would overwrite {inert(output, 200)}; give another name with -o")
    status = writing.check_output(output)
    ending = "" if is_standard(output) else Path(output).suffix
    is_file = status is None or stat.S_ISREG(status.st_mode)
    if endings and ending and is_file and ending.lower() not in endings:
        *first, last = endings
        wanted = f"{', '.join(first)} or {last}" if first else last
        raise click.UsageError(f"{option} {inert(output, 200)}: must end in {wanted}, got {inert(repr(ending), 80)}")


def check_folder(output: str | None) -> None:
    """Refuse a name for a new folder that is the name of a table or a picture."""
    is_new = output is not None and not is_standard(output) and not os.path.isdir(output)
    if is_new and Path(str(output)).suffix.lower() in _FILES:
        raise click.UsageError(f"-o {inert(str(output), 200)}: must be a folder, in which several files are written")


_FILES = (*PAGES, ".csv", ".json", ".md", ".pdf", ".png", ".svg", ".txt", ".docx", ".xlsx")


def is_standard(output: str) -> bool:
    """Whether an output is standard output."""
    return output in writing.STANDARD_OUTPUT


def printer(*outputs: str | None) -> Callable[[str], None]:
    """What prints beside outputs: on standard error where one of them goes to standard output."""
    return say if any(output is not None and is_standard(output) for output in outputs) else click.echo
