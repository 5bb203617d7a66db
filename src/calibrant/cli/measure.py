"""measure: the calibration of the predictions in a file, in numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import calibrant
from calibrant.checks import whole
from calibrant.cli.group import usage
from calibrant.cli.input_files import (
    Source,
    described,
    grouped,
    read,
    reading_options,
    streams_read,
    told_groups,
)
from calibrant.cli.limits import enforce, limit_options, limits_named, limits_of
from calibrant.cli.questions import check_questions, refuse_score_alone
from calibrant.cli.scans import (
    are_many,
    are_states,
    listed,
    loaded,
    metrics_told,
    rows_alone,
    scanned,
    scanning_options,
)
from calibrant.cli.showing import show
from calibrant.door.kinds import COLUMNS
from calibrant.door.streams import STANDARD_INPUT
from calibrant.errors.asking import Asking
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.selections import Selection, everything
from calibrant.specification import spelling
from calibrant.specification.facts import facts_of
from calibrant.table import Table, table

USUAL = ("accuracy", "log_loss", "brier", "ece", "ece_sweep", "ece_debiased", "mce", "sce", "ace", "mcs")


class WithInterval(click.Command):
    """A command whose `--interval` may stand alone, before anything."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say what a lone `--interval` stands for, so that it does not take the next word."""
        for place, argument in enumerate(args):
            following = args[place + 1] if place + 1 < len(args) else ""
            file = following in STANDARD_INPUT or Path(following).is_file() or Path(following).is_fifo()
            if argument == "--interval" and file:
                args[place] = "--interval=confidence"
        return super().parse_args(ctx, args)


@click.command(cls=WithInterval, short_help="Measure the predictions in a file.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-m", "--metric", "names", multiple=True, help="A metric; repeatable: -m ece -m sce.")
@click.option("--by", metavar="COLUMN", help="Also measure the rows of each value of this column.")
@click.option(
    "--sort",
    type=click.Choice(["value", "p"]),
    help="Order the rows of --by: the worst value of the first metric first, or the smallest p-value.",
)
@click.option("--select", metavar="EXPRESSION", help="Use only these rows, such as 'label_in(3, 5)'.")
@click.option("--format", "style", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option(
    "--interval",
    is_flag=False,
    flag_value="confidence",
    metavar="[bootstrap=N]",
    help="Add 90% confidence intervals, or say why there is none. bootstrap=N: from N resamples of the rows.",
)
@click.option(
    "--null",
    type=int,
    metavar="N",
    help="Add what a calibrated model would show, and p-values (Holm-corrected), from N redraws of the labels.",
)
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Rows with the same value of this column depend on each other. Default: the id of the question, in a log of a "
    "language model with several answers to a question.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of --interval and --null.")
@click.option("--parts", is_flag=True, help="Also show each class of the metrics that have a value per class.")
@limit_options
@click.option(
    "--one-pass", is_flag=True, help="Read many files only once. Some metrics then have bounds instead of exact values."
)
@scanning_options
@reading_options
def measure(
    files: tuple[str, ...],
    names: tuple[str, ...],
    by: str | None,
    sort: str | None,
    select: str | None,
    style: str,
    interval: str | None,
    null: int | None,
    groups: str | None,
    seed: int,
    parts: bool,
    limits: tuple[str, ...],
    confident: bool,
    one_pass: bool,
    **keys: Any,
) -> None:
    """Measure the calibration of the predictions in FILE (NPZ, CSV, Parquet, JSONL, or two NPY files).

    FILE may also be a folder, a pattern, several files, or a state (see calibrant state).

    \b
    Examples:
      calibrant measure predictions.csv
      calibrant measure predictions.npz -m ece -m sce --by region
      calibrant measure predictions.npz -m 'top_k(5)/kdtree(0.1)/tvd' --format json
      calibrant measure predictions.npz -m ece --fail-above ece=0.05
      calibrant measure predictions.npz -m ece --fail-above ece=0.05 --confident
      calibrant measure predictions.npz -m ece -m log_loss --interval --null 200
      calibrant measure predictions.npz -m full_ece --interval bootstrap=1000
      calibrant measure labels.npy probabilities.npy
      calibrant measure 'logs/*.parquet' -m ece -m brier --by region
      calibrant measure week.state

    \b
    A metric is a name that `calibrant info` lists, or choices joined by /, in any order:
      lens       top_label  top_k(5)  in_top_k(5)  one_class("cat")  classwise  by_label(top_label)  full ...
      binning    equal_width(15)  equal_mass(15)  quantiles(15)  kdtree(0.1)  sweep(equal_mass)  edges([0, .5, 1])
      distance   tvd  squared  signed  lp(2)  debiased_squared ...    aggregate  mean  root_mean  maximum ...
    A metric with one choice replaced: ece/equal_mass(30). Selections: label_in("cat", 3), predicted_in(0),
    confidence_between(.5, 1), where(region="north"), combined by & | ~.

    \b
    Columns:
      labels               label, labels or y
      one event            p
      classes              p_<class>, probs or logits
      language models      confidence and correct (true / false)
      top k classes        class_1 .. class_k and prob_1 .. prob_k, or lists ids and probs, with --classes K
      independent labels   y_<label> (0 or 1) and p_<label>, or lists multilabel and probs
      a line per class     row, class, p and label; the lines of a row stand together
    All other columns can be used in --by, --groups and where(...).

    \b
    Exit status: 0 fine, 1 a limit was passed, 2 wrong usage, 3 wrong input.
    """
    metrics, thresholds = metrics_named(names), limits_named(limits, confident)
    selected = everything if select is None else usage(_selection, select)
    if confident and interval is None:
        interval = "confidence"
    if groups is not None and interval is None and null is None:
        raise click.UsageError("--groups is for --interval, --null and --confident")
    if sort is not None and (by is None or (sort == "p" and null is None)):
        raise click.UsageError("--sort orders the rows of --by; --sort p needs --null")
    if null is not None:
        usage(lambda _: _check_null(null, seed), "")
    method = None if interval is None else usage(lambda text: _interval(text, seed, groups), interval)
    beside: dict[str, object] = {}
    words = ""
    sources = files if are_many(files) else streams_read(files)
    if are_states(sources) or are_many(files):
        if method is not None or null is not None:
            raise click.UsageError("--interval, --null and --confident need one file of predictions, read whole")
        measured, title, beside = _without_rows(files, sources, metrics, selected, by, exact=not one_pass, **keys)
        thresholds = limits_of(thresholds, {name: result.metric for name, result in measured["all"].items()})
    else:
        predictions = read(sources, **rows_alone(keys))
        column = grouped(predictions, groups)
        method = None if method is None else dataclasses.replace(method, groups=column)
        check_questions(metrics, predictions)
        asked = _narrowed(metrics or metrics_named(usual(predictions)), selected)
        thresholds = limits_of(thresholds, asked)
        measured = table(predictions, asked, by=by, interval=method, null=null, seed=seed, groups=column)
        inferred = method is not None or null is not None
        beside, words = ({"groups": column}, told_groups(predictions, groups)) if inferred else ({}, "")
        chosen = "" if select is None else f"; {int(selected(predictions).sum()):,} of them selected"
        title = f"{', '.join(files)}: {described(predictions)}{chosen}"
    show(measured if sort is None else measured.sorted_by(sort), style, title=title, parts=parts, beside=beside)
    click.echo(words if style == "table" else "", nl=False)
    enforce(measured.results, thresholds, confident=confident)


def _without_rows(
    files: tuple[str, ...],
    sources: Sequence[Source],
    metrics: Mapping[str, Metric],
    selected: Selection,
    by: str | None,
    **keys: Any,
) -> tuple[Table, str, dict[str, object]]:
    """The table of a state, or of many files that are read one after another; its title, and what was skipped."""
    if are_states(sources):
        state = loaded(sources)
        if by not in (None, state.by):
            hint = f"it tells apart the values of {state.by}" if state.by else "it tells no rows apart"
            raise CalibrationInputError("--by", "must be the column of the state", got=by, hint=hint)
        asked = _narrowed(metrics, selected) if metrics else metrics_told(state)
        return state.table(asked), f"{', '.join(files)}: {state.n:,} rows, a state", {}

    def asked_of(rows: Predictions) -> dict[str, Metric]:
        check_questions(metrics, rows)
        return _narrowed(metrics or metrics_named(usual(rows)), selected)

    result, rows = scanned(files, asked_of, by, **keys)
    title = f"{', '.join(files)}: {result.state.n:,} rows, {rows.forecasts.words}"
    return result.table, title, {"skipped": listed(result.skipped)}


def _narrowed(metrics: Mapping[str, Metric], selected: Selection) -> dict[str, Metric]:
    return {name: narrowed(metric, selected) for name, metric in metrics.items()}


def narrowed(metric: Metric, selected: Selection) -> Metric:
    """The metric on the selected rows only: the selection becomes part of its specification."""
    if facts_of(selected).takes_all:
        return metric
    if not isinstance(metric, Asking):
        raise CalibrationInputError("--select", "needs a metric that selects rows", got=metric.name)
    return metric.replace(select=selected if facts_of(metric.select).takes_all else metric.select & selected)


def _selection(text: str) -> Selection:
    """A selection as --select spells it; what is wrong is said of --select."""
    try:
        return spelling.selection(text)
    except CalibrationInputError as error:
        message = str(error).removeprefix("--select: ").removeprefix("metric: ")
        raise CalibrationInputError("--select", message) from None


def _interval(text: str, seed: int, groups: str | None) -> calibrant.Confidence | calibrant.Bootstrap:
    """The method that --interval names; a number alone is one of resamples."""
    number = text.removeprefix("bootstrap=")
    if text == "confidence":
        return calibrant.Confidence(seed=seed, groups=groups)
    if not number.isdecimal():
        hint = "write --interval, or --interval bootstrap=1000"
        raise CalibrationInputError("--interval", "takes nothing or bootstrap=N", got=text, hint=hint)
    return calibrant.Bootstrap(int(number), seed, groups=groups)


def _check_null(n: int, seed: int) -> None:
    whole(n, "--null", 1)
    check_seed(seed)


def usual(predictions: Predictions, names: Sequence[str] = USUAL) -> Sequence[str]:
    """What answers most questions; nothing that needs more than is forecast, no debiased error under soft labels."""
    forecasts = predictions.forecasts
    left_out = set() if forecasts.answers else {"accuracy", "sce"}  # of labels, ECE is what SCE is
    if COLUMNS in forecasts.lacks:
        left_out |= {"sce", "ace"} if forecasts.of_events else {"sce", "ace", "log_loss", "brier"}
    if predictions.soft is not None:
        left_out.add("ece_debiased")
    if predictions.weight is not None and (predictions.weight % 1).any():
        left_out |= {"ece_sweep", "ece_debiased", "ace"}
    return [name for name in names if name not in left_out]


def metrics_named(names: Sequence[str]) -> dict[str, Metric]:
    """The metrics that words spell."""
    metrics: dict[str, Metric] = {}
    for name in names:
        refuse_score_alone(name)
        metrics.update(usage(spelling.metrics, name))
    return metrics
