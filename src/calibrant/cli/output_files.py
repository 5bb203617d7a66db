"""Output files: where a command writes, checked before the work begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click

from calibrant.cli.group import say
from calibrant.files import writing
from calibrant.text import inert


def check_outputs(outputs: Sequence[str | None], inputs: Sequence[str] = ()) -> None:
    """Refuse outputs of which one cannot be written, or is an input, or of which two would go to one place."""
    named = [output for output in outputs if output is not None]
    for output in named:
        check_output(output, inputs)
    places = ["-" if is_standard(output) else os.path.realpath(output) for output in named]
    for output, place in zip(named, places, strict=True):
        if places.count(place) > 1:
            raise click.UsageError(f"two outputs would go to {inert(output, 200)}; name one of them otherwise")


def check_output(output: str, inputs: Sequence[str] = ()) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs."""
    if not is_standard(output) and any(os.path.realpath(output) == os.path.realpath(file) for file in inputs):
        raise click.UsageError(f"this would overwrite {inert(output, 200)}; give another name with -o")
    writing.check_output(output)


def is_standard(output: str) -> bool:
    """Whether an output is standard output."""
    return output in writing.STANDARD_OUTPUT


def printer(*outputs: str | None) -> Callable[[str], None]:
    """What prints beside outputs: on standard error where one of them goes to standard output."""
    return say if any(output is not None and is_standard(output) for output in outputs) else click.echo
