"""Commands: measure, demo, info."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

import calibrant
from calibrant import io
from calibrant.cli import spelling
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.table import Table, inert, safe_cell, table

FAILED, USAGE, DATA, IO = 1, 2, 3, 4
"""Exit codes: a threshold was passed, the call is wrong, the data are, a file cannot be read."""

_ENDINGS = (".npz", ".npy", ".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json")
USUAL = ("accuracy", "log_loss", "brier", "ece", "ece_sweep", "ece_debiased", "mce", "sce", "ace", "mcs")


def run() -> None:
    """The command with its exit codes; what is wrong is said in one line on standard error."""
    try:
        group(prog_name="calibrant")
    except CalibrationInputError as error:
        _stop(str(error), DATA)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing to say
        sys.exit(0)
    except OSError as error:
        _stop(f"{error.filename or 'file'}: {error.strerror or error}", IO)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(calibrant.__version__, prog_name="calibrant")
def group() -> None:
    """Can I trust its probabilities? Measure the calibration of a classifier from its predictions.

    \b
    Example:
      calibrant demo
    """


class _Measure(click.Command):
    """A command whose --metric takes all the words up to the next option: --metric ece sce."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        grouped: list[str] = []
        reading = False
        for word in args:
            if reading and not word.startswith("-") and not _is_file(word):
                grouped += ["--metric", word] if grouped[-1] != "--metric" else [word]
                continue
            reading = word in ("-m", "--metric")
            grouped.append("--metric" if reading else word)
        return super().parse_args(context, grouped)


@group.command(cls=_Measure)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-m", "--metric", "names", multiple=True, help="Recipes or compositions, as many as wanted.")
@click.option("--by", metavar="COLUMN", help="Also for the rows of each value of this column.")
@click.option("--select", metavar="EXPRESSION", help="Only these rows, such as 'label_in(3, 5)'.")
@click.option("--format", "style", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--fail-above", "limits", multiple=True, metavar="METRIC=LIMIT", help="Exit 1 if |value| exceeds it.")
@click.option("--label", metavar="KEY", help="Where the labels are, if not in label, labels or y.")
@click.option("--probs", metavar="KEY", help="Where the probabilities are, if not in p, p_<class> or probs.")
@click.option("--logits", metavar="KEY", help="Where the logits are, if not in logits.")
@click.option("--weight", metavar="KEY", help="Where sample weights are.")
def measure(
    files: tuple[str, ...],
    names: tuple[str, ...],
    by: str | None,
    select: str | None,
    style: str,
    limits: tuple[str, ...],
    **keys: str | None,
) -> None:
    """Measure the calibration of the predictions in FILE (NPZ, CSV, Parquet, JSONL, or two NPY files).

    \b
    Examples:
      calibrant measure predictions.csv
      calibrant measure predictions.npz --metric ece sce --by region
      calibrant measure predictions.npz --metric 'top_k(5)/kdtree(0.1)/tvd' --format json
      calibrant measure predictions.npz --metric ece --fail-above ece=0.05
      calibrant measure labels.npy probabilities.npy
    """
    predictions = io.read(files, **keys)
    if select is not None:
        predictions = predictions[_usage(spelling.selection, select)(predictions)]
    metrics = _metrics(names or _usual(predictions))
    thresholds = _limits(limits, metrics)
    made = table(predictions, metrics, by=by)
    _show(made, style, title=f"{', '.join(files)}: {predictions!r}")
    _enforce(made, thresholds)


@group.command()
def demo() -> None:
    """Measure the predictions that come with calibrant: a small network on Fashion-MNIST.

    \b
    Example:
      calibrant demo
    """
    predictions = io.read(io.SHIPPED / "fashion_mnist_test.npz")
    click.echo("A small convolutional network on the 10,000 test pictures of Fashion-MNIST, trained by this project.\n")
    _show(table(predictions, _metrics(USUAL)), "table", title=repr(predictions))
    click.echo("\nThe same by how much ink a picture has:\n")
    _show(table(predictions, _metrics(("accuracy", "ece", "mcs")), by="ink"), "table", title="")
    mcs = calibrant.MCS(predictions).value
    worst = max(calibrant.CWMCS(predictions).parts.items(), key=lambda part: part[1].value)
    click.echo(
        f"\nIts confidence is {abs(mcs) * 100:.1f} points {'above' if mcs > 0 else 'below'} its accuracy: "
        f"{'over-confident' if mcs > 0 else 'under-confident'}, most of all on pictures of "
        f"{inert(worst[0])!r} ({worst[1].value * 100:+.1f} points)."
    )
    click.echo(f"\nTry it on your own: calibrant measure FILE   (this one: {io.SHIPPED / 'fashion_mnist_test.npz'})")


@group.command()
def info() -> None:
    """Versions, installed extras and the recipes that `--metric` knows.

    \b
    Example:
      calibrant info
    """
    import numpy as np

    click.echo(f"calibrant {calibrant.__version__}, Python {platform.python_version()}, NumPy {np.__version__}")
    for package in ("scipy", "click", "rich", "pyarrow", "pandas", "polars", "sklearn", "torch"):
        installed = importlib.util.find_spec(package) is not None
        click.echo(f"  {package:10s} {_version(package) if installed else 'not installed'}")
    click.echo("\nRecipes:")
    for name, recipe in calibrant.RECIPES.items():
        click.echo(f"  {name.lower():14s} {_spelled(recipe)}")


def _usual(predictions: Predictions) -> Sequence[str]:
    """What answers most questions; no class question for an event, no debiased error under soft labels."""
    left_out = set() if predictions.kind == "classes" else {"sce", "ace"}
    if predictions.kind == "event":
        left_out.add("accuracy")
    if predictions.soft is not None:
        left_out.add("ece_debiased")
    return [name for name in USUAL if name not in left_out]


def _metrics(names: Sequence[str]) -> dict[str, Metric]:
    made: dict[str, Metric] = {}
    for name in names:
        made.update(_usage(spelling.metrics, name))
    return made


def _usage(read: Callable[[str], Any], text: str) -> Any:
    """What the text spells; a misspelling is wrong usage, not wrong data."""
    try:
        return read(text)
    except CalibrationInputError as error:
        raise click.UsageError(inert(str(error), 400)) from None


def _is_file(word: str) -> bool:
    return os.path.splitext(word)[1].lower() in _ENDINGS or os.path.exists(word)


def _limits(texts: Sequence[str], metrics: dict[str, Metric]) -> dict[str, float]:
    limits = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        try:
            limits[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or limits.get(name) != limits.get(name):
            raise click.UsageError(f"--fail-above takes METRIC=LIMIT, got {text!r}; such as --fail-above ece=0.05")
        if name not in metrics:
            raise click.UsageError(
                f"--fail-above names {name!r}, which is not measured; measured: {', '.join(metrics)}"
            )
    return limits


def _show(made: Table, style: str, title: str) -> None:
    if style == "json":
        click.echo(json.dumps({"calibrant": calibrant.__version__, **made.to_dict()}, allow_nan=False, indent=1))
    elif made.by is not None:
        click.echo(made.to_csv() if style == "csv" else _drawn(made.header, made.rows(), title), nl=style != "csv")
    else:
        results = made["all"]
        rows = [[name, f"{result.value:.4f}", _words(result)] for name, result in results.items()]
        if style == "csv":
            click.echo("metric,value,n,question,choices")
            for name, result in results.items():
                cells = [safe_cell(name), repr(result.value), str(result.n), result.question, result.choices]
                click.echo(",".join(_quoted(cell) for cell in cells))
        else:
            click.echo(_drawn(["metric", "value", "what it asks"], rows, title))
    if style == "table":
        for note in dict.fromkeys(
            note for results in made.results.values() for one in results.values() for note in one.notes
        ):
            click.echo(f"note: {inert(note, 200)}")


def _words(result: Any) -> str:
    return ", ".join(word for word in (result.question, result.choices) if word)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n') else cell


def _drawn(header: list[str], rows: list[list[str]], title: str) -> str:
    """A table for the terminal, every cell inert."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Drawing
    from rich.text import Text

    drawing = Drawing(box=SIMPLE_HEAD)
    for index, name in enumerate(header):
        number = index > 0 and all(_is_number(row[index]) for row in rows)
        drawing.add_column(Text(inert(name, 40)), justify="right" if number else "left", overflow="fold")
    for row in rows:
        drawing.add_row(*(Text(inert(cell, 120)) for cell in row))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with console.capture() as captured:
        console.print(drawing)
    lines = [line.rstrip() for line in captured.get().rstrip().splitlines() if line.strip()]
    return "\n".join([inert(title, 200), "", *lines] if title else lines)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _enforce(made: Table, limits: dict[str, float]) -> None:
    """Exit 1 where a value is above its limit, or is none."""
    failed = []
    for row, results in made.results.items():
        for name, limit in limits.items():
            value = results[name].value
            if not abs(value) <= limit:
                failed.append(f"{name} of {inert(row)} is {value:.4f}, above {limit:g}")
    if failed:
        _stop("; ".join(failed), FAILED)


def _stop(message: str, code: int) -> None:
    click.echo(f"calibrant: {inert(message, 2000)}", err=True)
    sys.exit(code)


def _version(package: str) -> str:
    names: Callable[[], Any] = importlib.metadata.packages_distributions
    return importlib.metadata.version(names().get(package, [package])[0])


def _spelled(recipe: Metric) -> str:
    fields = vars(recipe)
    return " / ".join(
        getattr(piece, "__name__", repr(piece)) for piece in fields.values() if repr(piece) != "everything"
    )
