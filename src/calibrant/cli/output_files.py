"""Output files: where a command writes, checked before the work begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click

from calibrant.cli.group import say
from calibrant.files import writing
from calibrant.text import inert


def check_output(output: str, inputs: Sequence[str] = ()) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs."""
    if not is_standard(output) and any(os.path.realpath(output) == os.path.realpath(file) for file in inputs):
        raise click.UsageError(f"this would overwrite {inert(output, 200)}; give another name with -o")
    writing.check_output(output)


def is_standard(output: str) -> bool:
    """Whether an output is standard output."""
    return output in writing.STANDARD_OUTPUT


def printer(output: str | None) -> Callable[[str], None]:
    """What prints beside an output: on standard error where the output itself goes to standard output."""
    return say if output is not None and is_standard(output) else click.echo
