"""explain: what other libraries would report for the predictions in a file, and why."""

from __future__ import annotations

import json
from typing import Any

import click

import calibrant
from calibrant.checks import whole
from calibrant.cli.group import usage
from calibrant.cli.input_files import described, read, reading_options
from calibrant.cli.showing import drawn
from calibrant.explanation import explain
from calibrant.text import inert


@click.command(name="explain", short_help="Say why other libraries report other numbers.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--bins", "n_bins", type=int, metavar="N", help="The number of bins [default: that of each library].")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
@reading_options
def explain_libraries(files: tuple[str, ...], n_bins: int | None, style: str, **keys: Any) -> None:
    """What would other libraries report for the predictions in FILE, and which choice makes the difference?

    The libraries are torchmetrics, netcal, scikit-learn, MAPIE, uncertainty-calibration, relplot and TensorFlow
    Probability. They need not be installed. Starting from calibrant's ECE, one choice is changed at a time until the
    result is that of the library.

    \b
    Examples:
      calibrant explain predictions.csv
      calibrant explain predictions.npz --bins 10
      calibrant explain labels.npy probabilities.npy --format json

    \b
    Exit status: 0 fine, 2 wrong usage, 3 wrong input.
    """
    if n_bins is not None:
        usage(lambda _: whole(n_bins, "--bins", 2), "")
    predictions = read(files, **keys)
    explanation = explain(predictions, n_bins=n_bins)
    if style == "json":
        content = {"calibrant": calibrant.__version__, **explanation.to_dict()}
        click.echo(json.dumps(content, allow_nan=False, indent=1))
        return
    title = f"{', '.join(files)}: {described(predictions)}; calibrant: {explanation.ours}"
    click.echo(drawn(*explanation.table(), title))
    for note in explanation.notes():
        click.echo(f"note: {inert(note, 200)}")
