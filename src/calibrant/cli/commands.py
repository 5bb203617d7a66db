"""Commands: measure, demo, info."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import numpy as np

import calibrant
from calibrant import io
from calibrant.checks import whole
from calibrant.cli import spelling
from calibrant.cli.showing import show
from calibrant.errors.binned import BinnedError
from calibrant.errors.mean_score import MeanScore
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.selections import Everything, Selection, everything
from calibrant.table import Table, inert, table

FAILED, USAGE, DATA, IO, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes: a threshold was passed, the call is wrong, the data are, a file cannot be read."""

_ENDINGS = (".npz", ".npy", ".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json")
USUAL = ("accuracy", "log_loss", "brier", "ece", "ece_sweep", "ece_debiased", "mce", "sce", "ace", "mcs")


def run() -> None:
    """The command with its exit codes; what is wrong is said in one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # what a terminal's encoding lacks is spelled out
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        # not group.main, which ends with 1, the code of a failed limit, when the reader left or on an interruption
        with group.make_context("calibrant", sys.argv[1:]) as context:
            group.invoke(context)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CalibrationInputError as error:
        _stop(_in_options(str(error)), DATA)
    except BrokenPipeError:  # the reader left: nothing to say
        _discard_output()
        sys.exit(0)
    except OSError as error:
        if error.filename is None:
            _discard_output()
        _stop(f"{error.filename or 'standard output'}: {error.strerror or error}", IO)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)


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
        for word in _apart(args):
            if reading and not word.startswith("-") and not _is_file(word):
                grouped += ["--metric", word] if grouped[-1] != "--metric" else [word]
                continue
            reading = word in ("-m", "--metric")
            grouped.append("--metric" if reading else word)
        return super().parse_args(context, grouped)


@group.command(cls=_Measure, short_help="Measure the predictions in a file.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-m", "--metric", "names", multiple=True, help="Recipes or compositions, as many as wanted.")
@click.option("--by", metavar="COLUMN", help="Also for the rows of each value of this column.")
@click.option("--select", metavar="EXPRESSION", help="Only these rows, such as 'label_in(3, 5)'.")
@click.option("--format", "style", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--interval", type=int, metavar="N", help="Add bootstrap intervals from N resamples.")
@click.option("--null", type=int, metavar="N", help="Add noise floors and p-values from N redraws of the labels.")
@click.option("--seed", type=int, default=0, show_default=True, help="Makes --interval and --null repeatable.")
@click.option("--parts", is_flag=True, help="Also show each class or group of the metrics that have them.")
@click.option(
    "--fail-above", "limits", multiple=True, metavar="METRIC=LIMIT", help="Exit 1 if |value| exceeds it, in any row."
)
@click.option("--label", metavar="KEY", help="Where the labels are, if not in label, labels or y.")
@click.option("--probs", metavar="KEY", help="Where the probabilities are, if not in p, p_<class> or probs.")
@click.option("--logits", metavar="KEY", help="Where the logits are, if not in logits.")
@click.option("--weight", metavar="KEY", help="Where sample weights are.")
@click.option("--classes", metavar="NAMES", help="Class names, separated by commas: --classes loss,win.")
@click.option("--normalize", is_flag=True, help="Divide each row of probabilities by its sum.")
@click.option("--ignore-index", type=int, metavar="LABEL", help="Leave out rows with this label.")
def measure(
    files: tuple[str, ...],
    names: tuple[str, ...],
    by: str | None,
    select: str | None,
    style: str,
    interval: int | None,
    null: int | None,
    seed: int,
    parts: bool,
    limits: tuple[str, ...],
    classes: str | None,
    **keys: Any,
) -> None:
    """Measure the calibration of the predictions in FILE (NPZ, CSV, Parquet, JSONL, or two NPY files).

    \b
    Examples:
      calibrant measure predictions.csv
      calibrant measure predictions.npz --metric ece sce --by region
      calibrant measure predictions.npz --metric 'top_k(5)/kdtree(0.1)/tvd' --format json
      calibrant measure predictions.npz --metric ece --fail-above ece=0.05
      calibrant measure predictions.npz --metric ece full_ece --interval 200 --null 200
      calibrant measure labels.npy probabilities.npy

    \b
    Metrics are recipes (`calibrant info` lists them) or pieces joined by /, in any order:
      lens       top_label  top_k(5)  in_top_k(5)  one_class("cat")  classwise  by_label(top_label)  full ...
      binning    equal_width(15)  equal_mass(15)  quantiles(15)  kdtree(0.1)  sweep(equal_mass)  edges([0, .5, 1])
      distance   tvd  squared  signed  lp(2)  debiased_squared ...    aggregate  mean  root_mean  maximum ...
    A recipe with a piece replaced: ece/equal_mass(30). Selections: label_in("cat", 3), predicted_in(0),
    confidence_between(.5, 1), where(region="north"), combined by & | ~.

    \b
    Labels are in label, labels or y; forecasts in p (one event), p_<class> columns, probs, logits, or
    confidence with correct (true / false); all other columns can be used in --by and where(...).

    \b
    Exit status: 0 all is well, 1 a limit was passed, 2 wrong usage, 3 wrong data, 4 a file cannot be read.
    """
    metrics = _metrics(names)
    selected = everything if select is None else _usage(spelling.selection, select)
    if len(files) > 2:
        raise click.UsageError(f"give one file, or two NPY files, labels first; got {len(files)}")
    if keys["probs"] and keys["logits"]:
        raise click.UsageError("--probs and --logits exclude each other")
    predictions = io.read(files, classes=None if classes is None else classes.split(","), **keys)
    metrics = {name: narrowed(metric, selected) for name, metric in (metrics or _metrics(_usual(predictions))).items()}
    thresholds = _limits(limits, metrics)
    resampling = None if interval is None else _usage(lambda _: calibrant.Bootstrap(interval, seed=seed), "")
    if null is not None:
        _usage(lambda _: _check_null(null, seed), "")
    made = table(predictions, metrics, by=by, interval=resampling, null=null, seed=seed)
    show(made, style, title=f"{', '.join(files)}: {_described(predictions)}", parts=parts)
    _enforce(made, thresholds)


@group.command(short_help="Measure the predictions that come with calibrant.")
def demo() -> None:
    """Measure the predictions that come with calibrant: a small network on Fashion-MNIST.

    \b
    Example:
      calibrant demo
    """
    predictions = io.read(io.SHIPPED / "fashion_mnist_test.npz")
    click.echo("A small convolutional network on the 10,000 test pictures of Fashion-MNIST, trained by this project.\n")
    show(table(predictions, _metrics(USUAL)), "table", title=_described(predictions))
    click.echo("\nThe same by how much ink a picture has:\n")
    show(table(predictions, _metrics(("accuracy", "ece", "mcs")), by="ink"), "table", title="")
    mcs = calibrant.MCS(predictions).value
    worst = max(calibrant.CWMCS(predictions).parts.items(), key=lambda part: part[1].value)
    click.echo(
        f"\nIts confidence is {abs(mcs) * 100:.1f} points {'above' if mcs > 0 else 'below'} its accuracy: "
        f"{'over-confident' if mcs > 0 else 'under-confident'}, most of all on pictures of "
        f"{inert(worst[0])!r} ({worst[1].value * 100:+.1f} points)."
    )
    click.echo(f"\nTry it on your own: calibrant measure FILE   (this one: {io.SHIPPED / 'fashion_mnist_test.npz'})")


@group.command(short_help="Versions, installed extras and recipes.")
def info() -> None:
    """Versions, installed extras and the recipes that `--metric` knows.

    \b
    Example:
      calibrant info
    """
    click.echo(f"calibrant {calibrant.__version__}, Python {platform.python_version()}, NumPy {np.__version__}")
    distributions = importlib.metadata.packages_distributions()
    for package in ("scipy", "click", "rich", "pyarrow", "pandas", "polars", "sklearn", "torch"):
        there = importlib.util.find_spec(package) is not None
        version = importlib.metadata.version(distributions.get(package, [package])[0]) if there else "not installed"
        click.echo(f"  {package:10s} {version}")
    click.echo("\nRecipes:")
    for name, recipe in calibrant.RECIPES.items():
        click.echo(f"  {name.lower():14s} {_spelled(recipe)}")


def narrowed(metric: Metric, selected: Selection) -> Metric:
    """The metric on the selected rows only: the selection becomes part of its specification."""
    if isinstance(selected, Everything):
        return metric
    before = metric.select  # type: ignore[attr-defined]
    select = selected if isinstance(before, Everything) else before & selected
    return dataclasses.replace(metric, select=select)  # type: ignore[type-var]


def _described(predictions: Predictions) -> str:
    what = {"event": "one event", "confidence": "the top answers"}.get(
        predictions.kind, f"{predictions.n_classes} classes"
    )
    soft = "" if predictions.soft is None else f"; outcomes are soft ({_fractions(predictions)} rows are no 0 or 1)"
    return f"{len(predictions):,} rows, {what}, {'logits' if predictions.logits else 'probabilities'}{soft}"


def _fractions(predictions: Predictions) -> int:
    soft = np.asarray(predictions.soft).reshape(len(predictions), -1)
    return int(((soft > 0) & (soft < 1)).any(axis=1).sum())


def _check_null(n: int, seed: int) -> None:
    whole(n, "--null", 1)
    check_seed(seed)


def _usual(predictions: Predictions) -> Sequence[str]:
    """What answers most questions; no class question for an event, no debiased error under soft labels."""
    left_out = set() if predictions.kind == "classes" else {"sce", "ace"}
    if predictions.kind == "event":
        left_out.add("accuracy")
    if predictions.soft is not None:
        left_out.add("ece_debiased")
    if predictions.weight is not None and (predictions.weight % 1).any():
        left_out |= {"ece_sweep", "ece_debiased", "ace"}
    return [name for name in USUAL if name not in left_out]


def _metrics(names: Sequence[str]) -> dict[str, Metric]:
    made: dict[str, Metric] = {}
    for name in names:
        made.update(_usage(spelling.metrics, name))
    return made


_OPTIONS = {
    "Predictions.from_logits": "--logits KEY",
    "y_proba": "the forecasts (--probs)",
    "y_true": "the labels (--label)",
    "sample_weight": "the weights (--weight)",
    "label, probs and weight": "--label, --probs and --weight",
    "normalize=True": "--normalize",
    "ignore_index=": "--ignore-index ",
    "label=...": "--label KEY",
    "probs=...": "--probs KEY",
    "logits=...": "--logits KEY",
    "classes=[...]": "--classes NAMES",
    "classes=(name when it did not happen, name when it did)": "--classes NAME_IF_NOT,NAME_IF_SO",
}


def _in_options(message: str) -> str:
    """What an error advises, in the words of the command."""
    for python, option in _OPTIONS.items():
        message = message.replace(python, option)
    return message


def _usage(read: Callable[[str], Any], text: str) -> Any:
    """What the text spells; a misspelling is wrong usage, not wrong data."""
    try:
        return read(text)
    except CalibrationInputError as error:
        message = str(error)
        if read is spelling.selection:
            message = "--select: " + message.removeprefix("--select: ").removeprefix("metric: ")
        raise click.UsageError(inert(message, 400)) from None


def _apart(args: list[str]) -> Iterator[str]:
    """--metric=ece as --metric ece."""
    for word in args:
        if word.startswith("--metric="):
            yield from word.split("=", 1)
        elif word.startswith("-m") and len(word) > 2:
            yield from ("-m", word[2:])
        else:
            yield word


def _is_file(word: str) -> bool:
    return os.path.splitext(word)[1].lower() in _ENDINGS or os.path.isfile(word)


def _discard_output() -> None:
    """What is left in the buffers goes nowhere, so that the interpreter does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _limits(texts: Sequence[str], metrics: dict[str, Metric]) -> dict[str, float]:
    limits: dict[str, float] = {}
    plain = {spelling.plain(name): name for name in metrics}
    for text in texts:
        name, equals, number = text.rpartition("=")
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not equals or math.isnan(limit):
            raise click.UsageError(f"--fail-above takes METRIC=LIMIT, got {text!r}; such as --fail-above ece=0.05")
        if spelling.plain(name) not in plain:
            raise click.UsageError(
                f"--fail-above names {name!r}, which is not measured; measured: {', '.join(metrics)}"
            )
        known = plain[spelling.plain(name)]
        limits[known] = min(limit, limits.get(known, math.inf))
    return limits


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


def _spelled(recipe: Metric) -> str:
    """A recipe as --metric would take it."""
    pieces = [
        piece for piece in vars(recipe).values() if piece is not None and not isinstance(piece, (Selection, float))
    ]
    kind = [] if isinstance(recipe, (BinnedError, MeanScore)) else [spelling.snake(type(recipe).__name__)]
    return "/".join([*kind, *(spelling.spelled(piece) for piece in pieces)])
