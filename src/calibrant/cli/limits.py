"""Limits: values that a command must not pass, and how it ends where one does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from calibrant.cli.group import FAILED, stop
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.gates import is_above, most_from_calibration
from calibrant.metric import Metric
from calibrant.result import Result
from calibrant.specification import spelling
from calibrant.text import group_name, inert

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--fail-above",
        "limits",
        multiple=True,
        metavar="METRIC=LIMIT",
        help="Exit 1 if METRIC differs by more than LIMIT from its value for a calibrated model (for losses: from 0). "
        "If a metric has bounds, the worse one counts.",
    ),
    click.option(
        "--confident",
        is_flag=True,
        help="With --fail-above: exit 1 only if the whole 90% interval is beyond LIMIT. Without an interval: exit 3.",
    ),
)


def limit_options(command: F) -> F:
    """The options that say what a command must not find; `limits_named` and `enforce` take them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def limits_named(texts: Sequence[str], confident: bool) -> dict[str, float]:
    """Limits by the metric that each names, the lowest where several name one."""
    if confident and not texts:
        raise click.UsageError("--confident is for --fail-above")
    limits: dict[str, float] = {}
    for text in texts:
        name, equals, digits = text.rpartition("=")
        try:
            limit = float(digits)
        except ValueError:
            limit = math.nan
        if not equals or math.isnan(limit):
            raise click.UsageError(f"--fail-above takes METRIC=LIMIT, got {text!r}; such as --fail-above ece=0.05")
        limits[name] = min(limit, limits.get(name, math.inf))
    return limits


def limits_of(limits: Mapping[str, float], metrics: Mapping[str, Metric]) -> dict[str, float]:
    """The limits under the names of the metrics that they are of; refused where there is no such metric."""
    known = {spelling.plain(name): name for name in metrics}
    matched: dict[str, float] = {}
    for text, limit in limits.items():
        name = known.get(spelling.plain(text))
        if name is None:
            raise click.UsageError(
                f"--fail-above names {text!r}, which is not measured; measured: {', '.join(metrics)}"
            )
        if metrics[name].facts.lower_is_better is False:
            raise click.UsageError(f"--fail-above names {text!r}, of which higher is better")
        matched[name] = min(limit, matched.get(name, math.inf))
    return matched


def enforce(rows: Mapping[str, Mapping[str, Result]], limits: Mapping[str, float], *, confident: bool) -> None:
    """Exit 1 where a result is above its limit, or is none; 3 where its interval would decide and there is none."""
    failures: list[str] = []
    undecided: CalibrationInputError | None = None
    for row, results in rows.items():
        for name, limit in limits.items():
            try:
                above = is_above(results[name], limit, confident=confident)
            except CalibrationInputError as error:
                named = f"{name} of {group_name(row)}"
                undecided = CalibrationInputError(named, error.expected, got=error.got, hint="leave out --confident")
                continue
            if above:
                failures.append(
                    _failure(f"{name} of {inert(group_name(row))}", results[name], limit, confident=confident)
                )
    if failures:
        stop("; ".join(failures), FAILED)
    if undecided is not None:
        raise undecided


def _failure(named: str, result: Result, limit: float, *, confident: bool) -> str:
    """What passed a limit, with both numbers."""
    value, distance = result.value, most_from_calibration(result)
    if result.bounds is not None:
        low, high = result.bounds
        return f"{named} is surely between {low:.4f} and {high:.4f}, so it may be {distance:.4f} away, above {limit:g}"
    away = "" if math.isnan(value) or distance == value else f", {distance:.4f} from calibration"
    between = f" (90% interval {result.interval.low:.4f} to {result.interval.high:.4f})" if result.interval else ""
    return f"{named} is {value:.4f}{between if confident else ''}{away}, above {limit:g}"
