"""Scans: what commands do with folders, patterns, many files and states."""

from __future__ import annotations

import glob
import gzip
import os
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from calibrant.cli.group import is_quiet, reading, say
from calibrant.cli.input_files import Source, chosen
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.scale import Scan, State, first_rows, scan
from calibrant.scale.part_states import Skipped
from calibrant.scale.state import MAGIC, Results
from calibrant.text import inert

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--threads",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="The number of files that are read at the same time.",
    ),
    click.option(
        "--resume", metavar="FOLDER", help="Keep the state of each file in this folder, so that no file is read twice."
    ),
    click.option(
        "--skip-bad", is_flag=True, help="Leave out files that cannot be read, and list them on standard error."
    ),
)


def scanning_options(command: F) -> F:
    """The options that say how many files are read; `scanned` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def rows_alone(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one file: those of many are refused."""
    for name, option in (("resume", "--resume"), ("skip_bad", "--skip-bad")):
        if keys[name]:
            raise click.UsageError(f"{option} is for folders, patterns and several files")
    return {name: value for name, value in keys.items() if name not in ("threads", "resume", "skip_bad")}


def are_states(files: Sequence[Source]) -> bool:
    """Whether all files are states."""
    return all(_start(file) == MAGIC for file in files)


def are_many(files: Sequence[str]) -> bool:
    """Whether files are a folder, a pattern or several files, to be read one after another; a NPY pair is one."""
    if len(files) > 1:
        return not (len(files) == 2 and all(file.lower().endswith(".npy") for file in files))
    return os.path.isdir(files[0]) or (glob.has_magic(files[0]) and not os.path.exists(files[0]))


def loaded(files: Sequence[Source]) -> State:
    """The sum of states."""
    with reading():
        whole = named(files[0])
        for file in files[1:]:
            added = named(file)
            try:
                whole += added
            except CalibrationInputError as error:
                raise CalibrationInputError(str(file), error.expected, got=error.got, hint=error.hint) from None
        return whole


def named(file: Source) -> State:
    """The state in a file, whose errors name the file."""
    try:
        return State.load(file)
    except CalibrationInputError as error:
        raise CalibrationInputError(
            str(file), error.expected, got=error.got, where=error.where, hint=error.hint
        ) from None


def scanned(
    files: Sequence[str],
    metrics: Callable[[Predictions], Mapping[str, Metric]],
    by: str | None,
    *,
    exact: bool,
    threads: int,
    resume: str | None,
    skip_bad: bool,
    **keys: Any,
) -> tuple[Scan, Predictions]:
    """The scan of files, of the metrics that their first rows suggest, and those rows."""
    options = chosen(**keys)
    with reading():
        rows = first_rows(files, skip_bad=skip_bad, **options)
        result = scan(
            files,
            metrics(rows),
            by=by,
            exact=exact,
            threads=threads,
            resume=resume,
            skip_bad=skip_bad,
            progress=_Progress(),
            **options,
        )
    announced(result.results)
    for bad in result.skipped:
        click.echo(f"skipped: {inert(bad.reason, 400)} ({_rows(bad)})", err=True)
    return result, rows


def listed(skipped: Sequence[Skipped]) -> list[dict[str, object]]:
    """What was left out, ready for JSON."""
    return [{"file": bad.part.path, "reason": bad.reason, "rows": bad.rows} for bad in skipped]


def metrics_told(state: State) -> dict[str, Metric]:
    """The metrics of a state that it tells something about; of the others it is said that it does not."""
    return {name: state.metrics[name] for name in announced(state.results())}


def announced(results: Results) -> Results:
    """The results, when it is said which are missing; refused where there is none."""
    for name, reason in results.refused.items():
        say(f"not told by counts: {inert(name)}: {inert(reason, 300)}")
    if not results:
        raise CalibrationInputError("state", "must tell at least one metric", got="none")
    return results


@dataclass
class _Progress:
    """The rows that were read, on one line of the terminal, once it takes over a second."""

    spoken: float = field(default_factory=time.monotonic)

    def __call__(self, rows: int) -> None:
        now = time.monotonic()
        if sys.stderr is not None and sys.stderr.isatty() and now - self.spoken > 1 and not is_quiet():
            sys.stderr.write(f"\r{rows:,} rows read \x1b[K\r")
            self.spoken = now


def _start(file: Source) -> bytes:
    """The first bytes of a file, unpacked where gzip packed it; none of what is no plain file."""
    if isinstance(file, InputFile):
        return file.content[: len(MAGIC)]
    if not os.path.isfile(file):
        return b""
    for opened in (open, gzip.open):
        with reading(), suppress(gzip.BadGzipFile, EOFError, zlib.error), opened(file, "rb") as content:
            if (start := content.read(len(MAGIC))) == MAGIC:
                return start
    return b""


def _rows(bad: Skipped) -> str:
    return "rows unknown" if bad.rows is None else f"{bad.rows:,} rows"
