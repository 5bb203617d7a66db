"""demo and info: what comes with calibrant, and what is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform

import click
import numpy as np

import calibrant
from calibrant.cli.measure import USUAL, metrics_named
from calibrant.cli.reading import described
from calibrant.cli.showing import show
from calibrant.files import reading as io
from calibrant.metric import Metric
from calibrant.specification import spelling
from calibrant.specification.facts import facts_of
from calibrant.specification.naming import fields_of
from calibrant.table import table
from calibrant.text import inert


@click.command(short_help="Report on the predictions that come with calibrant.")
@click.option("-o", "--output", default="calibrant-demo.html", show_default=True, type=click.Path(), help="The page.")
def demo(output: str) -> None:
    """Measure the predictions that come with calibrant, and write their report: a small network on Fashion-MNIST.

    \b
    Example:
      calibrant demo
    """
    from calibrant.report import Report

    file = io.SHIPPED / "fashion_mnist_test.npz"
    predictions = io.read(file)
    click.echo("A small convolutional network on the 10,000 test pictures of Fashion-MNIST, trained by this project.\n")
    show(table(predictions, metrics_named(USUAL)), "table", title=described(predictions))
    made = Report.of(predictions, name=file.name, command="calibrant demo")
    path = made.save(output)
    click.echo(f"\n{made.verdict.sentence}")
    click.echo(f"\nThe report: {inert(str(path.resolve()), 400)}")
    click.echo(f"Try it on your own: calibrant report FILE   (this one: {file})")


@click.command(short_help="Versions, installed extras and recipes.")
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


def _spelled(recipe: Metric) -> str:
    """A recipe as --metric would take it."""
    pieces = [piece for piece in fields_of(recipe).values() if facts_of(piece).slot not in (None, "select")]
    alone = type(spelling.composed(pieces)) is type(recipe)  # the pieces tell which estimator it is
    kind = [] if alone else [spelling.snake(type(recipe).__name__)]
    return "/".join([*kind, *(spelling.spelled(piece) for piece in pieces)])
