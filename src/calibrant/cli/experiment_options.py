"""Experiment options: where the trials of a study run, in how many processes, and when a worker counts as dead."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

_SILENCE = "Seconds without a sign of life after which a worker counts as dead."


class _Seconds(click.FloatRange):
    """A finite number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        return seconds if math.isfinite(seconds) else self.fail(f"{value} is no number of seconds", param, ctx)


_SECONDS: dict[str, Any] = {"type": _Seconds(0), "default": 60.0, "show_default": True}
_LEASE: dict[str, Any] = {**_SECONDS, "type": _Seconds(0, min_open=True)}
_CLUSTER = "Train on the workers of a Dask scheduler, such as tcp://HOST:8786."


def running_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the options to a command that runs a study."""
    for option in (
        click.option("--checkpoint", "between", help="Seconds between checkpoints.", **_SECONDS),
        click.option("--lease", help=_SILENCE, **_LEASE),
        click.option("--scheduler", metavar="ADDRESS", help=_CLUSTER),
        click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="How many processes."),
        click.option("--data", metavar="FOLDER", help="The folder of the data sets, if not the usual one."),
        click.option("--device", default="cpu", show_default=True, help="The device: cpu, cuda, cuda:1, ..."),
    ):
        command = option(command)
    return command
