"""demo: a report on the predictions that come with calibrant."""

from __future__ import annotations

import os

import click

from calibrant.cli.input_files import described
from calibrant.cli.measure import USUAL, metrics_named
from calibrant.cli.output_files import PAGES, check_output, is_standard
from calibrant.cli.showing import show
from calibrant.files import reading as io
from calibrant.table import table
from calibrant.text import inert


@click.command(short_help="Write a report on example predictions.")
@click.option("-o", "--output", default="calibrant-demo.html", show_default=True, type=click.Path(), help="The page.")
def demo(output: str) -> None:
    """Measure example predictions that come with calibrant, and write a report on them.

    They are those of a small network on the test images of Fashion-MNIST.

    \b
    Example:
      calibrant demo
    """
    from calibrant.report import Report

    check_output(output, endings=PAGES)
    file = io.SHIPPED / "fashion_mnist_test.npz"
    predictions = io.read(file)
    report = Report.of(predictions, name=file.name, command="calibrant demo")
    report.save(output)
    if is_standard(output):
        return
    click.echo("A small convolutional network on the 10,000 test pictures of Fashion-MNIST, trained by this project.\n")
    show(table(predictions, metrics_named(USUAL)), "table", title=described(predictions))
    click.echo(f"\n{report.verdict.sentence}")
    click.echo(f"\nThe report: {inert(os.path.realpath(output), 400)}")
    click.echo(f"Try it on your own: calibrant report FILE   (this one: {file})")
