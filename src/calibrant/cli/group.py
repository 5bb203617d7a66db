"""The group: what all commands share, from exit codes to how errors are said."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import click

import calibrant
from calibrant.cli import INTERRUPTED
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.progress import SILENT
from calibrant.text import inert

FAILED, USAGE, DATA, IO = 1, 2, 3, 4
"""Exit statuses: a limit was passed, the call is wrong, the input is, the output cannot be written."""

QUIET = "quiet"
_QUIET = "Print nothing on standard error but warnings and errors."


def run() -> None:
    """The command with its exit codes; what is wrong is said in one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # what a terminal's encoding lacks is spelled out
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if "_CALIBRANT_COMPLETE" in os.environ:  # a shell asks how to complete a line
        group.main(prog_name="calibrant")
    try:
        # not group.main, which ends with 1, the code of a failed limit, when the reader left or on an interruption
        with group.make_context("calibrant", sys.argv[1:]) as context:
            group.invoke(context)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CalibrationInputError as error:
        stop(_in_options(str(error)), DATA)
    except OSError as error:
        if error.filename is None:
            _discard_output()
            if isinstance(error, BrokenPipeError):  # the reader left: nothing to say
                sys.exit(0)
        stop(f"{error.filename or 'standard output'}: {error.strerror or error}", IO)
    except MemoryError:
        stop("this needs more memory than there is", DATA)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(calibrant.__version__, prog_name="calibrant")
def group() -> None:
    """Can you trust these probabilities? Measure, explain and improve the calibration of a classifier.

    All commands read predictions from files. `calibrant demo` needs no file; `calibrant report FILE` is a good start.

    \b
    Examples:
      calibrant demo
      calibrant report predictions.csv
    """


def usage(read: Callable[[str], Any], text: str) -> Any:
    """What the text spells; a misspelling is wrong usage, not wrong data. A file that it names may be unreadable."""
    try:
        with reading():
            return read(text)
    except CalibrationInputError as error:
        raise click.UsageError(inert(str(error), 400)) from None


@contextmanager
def reading() -> Iterator[None]:
    """What cannot be read is wrong input."""
    try:
        yield
    except OSError as error:
        stop(f"{error.filename}: {error.strerror or error}", DATA)


def quiet_option(command: click.Command) -> None:
    """Give `--quiet` to a command, and to those in a group; `say` and `is_quiet` know of it."""
    if isinstance(command, click.Group):
        for part in command.commands.values():
            quiet_option(part)
    elif all(option.name != QUIET for option in command.params):
        click.option("-q", "--quiet", QUIET, is_flag=True, expose_value=False, callback=remember_quiet, help=_QUIET)(
            command
        )


def is_quiet() -> bool:
    """Whether the command that is running was told to be quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get(QUIET) or context.meta.get(QUIET))


def say(message: str) -> None:
    """What stands beside results, on standard error; with `--quiet`, nothing."""
    if not is_quiet():
        click.echo(message, err=True)


def remember_quiet(context: click.Context, option: click.Parameter, value: bool) -> bool:
    """Keep for the command that is running whether it is quiet; then no progress is shown either."""
    context.meta[QUIET] = value
    if value:
        context.call_on_close(partial(SILENT.reset, SILENT.set(True)))
    return value


def stop(message: str, code: int) -> NoReturn:
    """Say what is wrong in one line, and end."""
    click.echo(f"calibrant: {inert(message, 2000)}", err=True)
    sys.exit(code)


_OPTIONS = {
    "Predictions.from_logits": "--logits KEY",
    "Predictions.from_multilabel": "columns y_<label> and p_<label>",
    "y_proba": "the forecasts (--probs)",
    "y_true": "the labels (--label)",
    "sample_weight": "the weights (--weight)",
    "label, probs and weight": "--label, --probs and --weight",
    "normalize=True": "--normalize",
    "ignore_index=": "--ignore-index ",
    "ignore_index": "--ignore-index",
    "class_axis=...": "--class-axis AXIS",
    "class_axis=": "--class-axis ",
    "class_axis": "--class-axis",
    'missing="drop"': "--missing drop",
    "divide by 100": "add --scale 100",
    "pass np.column_stack([1 - p, p])": "give columns p_0 and p_1",
    "label=...": "--label KEY",
    "probs=...": "--probs KEY",
    "logits=...": "--logits KEY",
    "classes=[...]": "--classes NAMES",
    "classes=K": "--classes K",
    "use fewer folds": "use fewer folds (--cv)",
    "n_classes": "the number of classes (--classes)",
    "classes=(name when it did not happen, name when it did)": "--classes NAME_IF_NOT,NAME_IF_SO",
}


def _in_options(message: str) -> str:
    """What an error advises, in the words of the command; what is quoted is the user's own."""
    for python, option in _OPTIONS.items():
        message = re.sub(rf"(?<!['\w]){re.escape(python)}(?!(?<=\w)['\w])", option, message)
    return re.sub(r"\b(label|probs|logits|weight)='([^']*)'", r"--\1 \2", message)


def _discard_output() -> None:
    """What is left in the buffers goes nowhere, so that the interpreter does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
