"""state, merge, unmerge: what is kept of predictions, put together and taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from calibrant.cli.group import reading
from calibrant.cli.input_files import is_stream, read, reading_options
from calibrant.cli.measure import metrics_named, usual
from calibrant.cli.output_files import check_output, printer
from calibrant.cli.questions import check_questions
from calibrant.cli.scans import loaded, named, rows_alone, scanned, scanning_options
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.scale import State
from calibrant.text import inert

ENDINGS = (".state",)
_output = click.option("-o", "--output", required=True, type=click.Path(), help="The file for the state.")


@click.command(short_help="Save counts of predictions in a small file.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@_output
@click.option("-m", "--metric", "names", multiple=True, help="A metric; repeatable.")
@click.option("--by", metavar="COLUMN", help="Also count the rows of each value of this column.")
@scanning_options
@reading_options
def state(files: tuple[str, ...], output: str, names: tuple[str, ...], by: str | None, **keys: Any) -> None:
    """Save what metrics need of the predictions in FILES in a small file without rows, a state.

    FILES are files, folders or patterns. States can be added (merge), subtracted (unmerge) and measured.

    \b
    Examples:
      calibrant state monday.parquet -o monday.state
      calibrant state 'logs/day=1/*.parquet' -m ece -m brier --by region -o day1.state
      calibrant merge monday.state tuesday.state -o week.state
      calibrant measure week.state

    The files are read once. Without -m, the usual metrics are kept. Their counts also answer many other metrics later.

    \b
    Exit status: 0 the state is written, 2 wrong usage, 3 wrong input, 4 the output cannot be written.
    """
    check_output(output, files, ENDINGS)
    metrics = metrics_named(names)

    def asked_of(rows: Predictions) -> Mapping[str, Metric]:
        check_questions(metrics, rows)
        return metrics or metrics_named(usual(rows))

    if len(files) == 1 and is_stream(files[0]):
        rows = read(files, **rows_alone(keys))
        _write(State.of(rows, asked_of(rows), by), output)
        return
    result, _ = scanned(files, asked_of, by, exact=False, **keys)
    _write(result.state, output)


@click.command(short_help="Add states: the counts of all their rows.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@_output
def merge(files: tuple[str, ...], output: str) -> None:
    """Add the states in FILES. The sum is the state of all their rows together.

    \b
    Example:
      calibrant merge monday.state tuesday.state -o week.state
    """
    check_output(output, endings=ENDINGS)
    _write(loaded(files), output)


@click.command(short_help="Subtract states from a state.")
@click.argument("whole", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path())
@_output
def unmerge(whole: str, files: tuple[str, ...], output: str) -> None:
    """Subtract the states in FILES from the state WHOLE, as if their rows had never been added.

    \b
    Example:
      calibrant unmerge week.state monday.state -o rest.state
    """
    check_output(output, endings=ENDINGS)
    with reading():
        rest = named(whole)
        for file in files:
            taken = named(file)
            try:
                rest -= taken
            except CalibrationInputError as error:
                hint = error.hint or f"{file} cannot be taken away"
                raise CalibrationInputError(whole, error.expected, got=error.got, hint=hint) from None
    _write(rest, output)


def _write(result: State, output: str) -> None:
    result.save(output)
    told = f"{result.n:,} rows, {', '.join(result.metrics)}"
    printer(output)(f"written: {inert(output, 400)} ({inert(told, 300)})")
