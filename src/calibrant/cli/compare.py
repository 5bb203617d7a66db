"""compare: is one model better calibrated than another?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import calibrant
from calibrant.checks import whole
from calibrant.cli.group import FAILED, stop, usage
from calibrant.cli.input_files import described, grouped, read, reading_options, told_groups
from calibrant.cli.measure import metrics_named, usual
from calibrant.cli.questions import check_questions
from calibrant.cli.showing import UNKNOWN, drawn
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.comparison import Comparison, compare, corrected_for_number
from calibrant.inference.draws import check_seed
from calibrant.specification.encoding import number
from calibrant.text import p_value


@click.command(name="compare", short_help="Compare two models on the same rows.")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@click.option("-m", "--metric", "names", multiple=True, help="A metric; repeatable [default: ece, brier, log_loss].")
@click.option(
    "-n", "--resamples", type=int, default=1000, show_default=True, help="The number of paired bootstrap resamples."
)
@click.option("--margin", type=float, help="Call models equivalent if the whole interval lies within this margin.")
@click.option("--groups", metavar="COLUMN", help="Resample rows with the same value of this column together.")
@click.option("--level", type=float, default=0.9, show_default=True, help="The level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the resampling.")
@click.option("--fail-if-worse", is_flag=True, help="Exit 1 if FIRST is significantly worse than SECOND in any metric.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
@reading_options
def compare_models(
    first: str,
    second: str,
    names: tuple[str, ...],
    resamples: int,
    margin: float | None,
    groups: str | None,
    level: float,
    seed: int,
    fail_if_worse: bool,
    style: str,
    **keys: Any,
) -> None:
    """Is FIRST better calibrated than SECOND on the same rows? Print paired differences with intervals.

    A model is called better in a metric if the p-value is at most 0.05, after Holm's correction for several metrics.

    \b
    Examples:
      calibrant compare new.npz old.npz
      calibrant compare new.npz old.npz -m ece -m sce --fail-if-worse
      calibrant compare new.npz old.npz --margin 0.01 --format json

    \b
    Exit status: 0 fine, 1 FIRST is worse (with --fail-if-worse), 2 wrong usage, 3 wrong input.
    """
    metrics = metrics_named(names)
    usage(lambda _: _check_comparison(resamples, seed, level, margin), "")
    a, b = (read((file,), **keys) for file in (first, second))
    for predictions in (a, b):
        check_questions(metrics, predictions)
    metrics = metrics or metrics_named(usual(a, usual(b, ("ece", "brier", "log_loss"))))
    with _by_name(first, second):
        options: dict[str, Any] = {"level": level, "margin": margin, "groups": grouped(a, groups)}
        comparisons = corrected_for_number(
            {name: compare(metric, a, b, resamples, seed, **options) for name, metric in metrics.items()}
        )
    if style == "json":
        plain = {name: _plain(comparison) for name, comparison in comparisons.items()}
        click.echo(json.dumps({"calibrant": calibrant.__version__, "comparisons": plain}, allow_nan=False, indent=1))
    else:
        rows = [_row(name, comparison) for name, comparison in comparisons.items()]
        title = f"{first} less {second}: {described(a)}, {resamples} resamples"
        p = "p, corrected" if len(rows) > 1 else "p"
        click.echo(drawn(["metric", "first", "second", "difference", "interval", p, "in words"], rows, title))
        click.echo(told_groups(a, groups), nl=False)
    worse = [name for name, comparison in comparisons.items() if comparison.worse]
    if fail_if_worse and worse:
        stop(f"{first} is worse than {second} in {', '.join(worse)}", FAILED)


@contextmanager
def _by_name(first: str, second: str) -> Iterator[None]:
    """What is wrong between two sets of predictions, said of the files that hold them."""
    try:
        yield
    except CalibrationInputError as error:
        if error.parameter != "b":
            raise
        expected = error.expected.replace(" of a", f" of {first}", 1)
        raise CalibrationInputError(second, expected, got=error.got, hint=error.hint) from None


def _check_comparison(resamples: int, seed: int, level: float, margin: float | None) -> None:
    whole(resamples, "--resamples", 1)
    check_seed(seed)
    if not 0 < level < 1:
        hint = f"type --level {level / 100:g} for {level:g}%" if 1 < level < 100 else None
        raise CalibrationInputError("--level", "must lie strictly between 0 and 1", got=f"{level:g}", hint=hint)
    if margin is not None and not margin > 0:
        raise CalibrationInputError("--margin", "must be positive", got=repr(margin))


def _row(name: str, comparison: Comparison) -> list[str]:
    values = [f"{number:.4f}" for number in (comparison.a.value, comparison.b.value)]
    between = comparison.interval
    shown = [f"{comparison.difference:+.4f}", f"{between.low:+.4f} to {between.high:+.4f}"]
    p = comparison.p_value if comparison.adjusted_p_value is None else comparison.adjusted_p_value
    quoted = p_value(p).removeprefix("p ").removeprefix("= ")
    if math.isnan(comparison.difference):
        shown = [UNKNOWN, UNKNOWN]
    return [name, *values, *shown, quoted, comparison.verdict()]


def _plain(comparison: Comparison) -> dict[str, Any]:
    adjusted = comparison.adjusted_p_value
    return {
        "first": comparison.a.to_dict(bins=False),
        "second": comparison.b.to_dict(bins=False),
        "difference": number(comparison.difference),
        "interval": [number(comparison.interval.low), number(comparison.interval.high)],
        "level": comparison.interval.level,
        "p_value": number(comparison.p_value),
        "adjusted_p_value": number(comparison.p_value if adjusted is None else adjusted),
        "worse": comparison.worse,
        "verdict": comparison.verdict(),
        "equivalent": comparison.equivalent,
    }
