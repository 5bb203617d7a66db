"""info: versions, what is installed, and the recipes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform

import click
import numpy as np

import calibrant
from calibrant.metric import Metric
from calibrant.specification import spelling
from calibrant.specification.facts import facts_of
from calibrant.specification.naming import fields_of


@click.command(short_help="List versions, installed packages and metrics.")
def info() -> None:
    """List versions, installed packages and the metrics that `--metric` knows by name.

    \b
    Example:
      calibrant info
    """
    click.echo(f"calibrant {calibrant.__version__}, Python {platform.python_version()}, NumPy {np.__version__}")
    kernels, reason = calibrant.kernels.serving()
    click.echo(f"Kernels: {kernels} ({reason})")
    distributions = importlib.metadata.packages_distributions()
    for package in ("scipy", "click", "rich", "pyarrow", "pandas", "polars", "sklearn", "torch"):
        there = importlib.util.find_spec(package) is not None
        version = importlib.metadata.version(distributions.get(package, [package])[0]) if there else "not installed"
        click.echo(f"  {package:10s} {version}")
    click.echo("\nRecipes:")
    for name, recipe in calibrant.RECIPES.items():
        click.echo(f"  {name.lower():14s} {_spelled(recipe)}")


def _spelled(recipe: Metric) -> str:
    """A recipe as --metric would take it."""
    pieces = [piece for piece in fields_of(recipe).values() if facts_of(piece).slot not in (None, "select")]
    alone = type(spelling.composed(pieces)) is type(recipe)  # the pieces tell which estimator it is
    kind = [] if alone else [spelling.snake(type(recipe).__name__)]
    return "/".join([*kind, *(spelling.spelled(piece) for piece in pieces)])
