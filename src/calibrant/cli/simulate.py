"""simulate: how biased would calibration numbers be for a model like this one?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli.group import usage
from calibrant.cli.input_files import read, reading_options
from calibrant.cli.output_files import check_output, is_standard, printer
from calibrant.files.writing import whole_file
from calibrant.inference.draws import check_seed
from calibrant.text import inert


@click.group(short_help="How biased are calibration numbers for a model like this?")
def simulate() -> None:
    """How biased are calibration numbers, and what can they detect, for a model whose truth is known?

    \b
    Example:
      calibrant simulate like predictions.npz
    """


@simulate.command(short_help="Fit a known truth to predictions, and measure estimators on it.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--replicates", type=int, default=400, show_default=True, help="Data sets that are drawn.")
@click.option("--seed", type=int, default=0, show_default=True, help="Makes the draws repeatable.")
@click.option("--jobs", "n_jobs", type=int, default=1, show_default=True, help="Processes.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "-o", "--output", type=click.Path(), help="Also draw it (.png, .svg or .pdf; - is SVG; needs matplotlib)."
)
@reading_options
def like(
    files: tuple[str, ...], replicates: int, seed: int, n_jobs: int, style: str, output: str | None, **keys: Any
) -> None:
    """Fit a score law and a calibration curve to FILE, then say how biased each estimator is at this n.

    \b
    Examples:
      calibrant simulate like predictions.npz
      calibrant simulate like predictions.csv --replicates 1000 --format json
    """
    from calibrant import simulate as laboratory

    usage(lambda _: check_seed(seed), "")
    form = None if output is None else _picture_format(output, files)
    show = printer(output)
    likeness = laboratory.like(read(files, **keys), replicates=replicates, seed=seed, n_jobs=n_jobs)
    show(likeness.to_json() if style == "json" else "\n".join(inert(line, 400) for line in str(likeness).splitlines()))
    if output is not None:
        figure = laboratory.picture(likeness)
        with whole_file(output) as file:
            figure.savefig(file, format=form)
        click.echo(f"written: {inert(output, 400)}", err=style == "json" or is_standard(output))


def _picture_format(output: str, files: tuple[str, ...]) -> str:
    """The format that the ending names; what is wrong or missing is said before the work begins."""
    from matplotlib.backend_bases import FigureCanvasBase

    check_output(output, files)
    form = "svg" if is_standard(output) else Path(output).suffix.lower().removeprefix(".")
    if form not in FigureCanvasBase.get_supported_filetypes():
        raise click.UsageError(f"-o must end in .png, .svg or .pdf, got {inert(output, 200)}")
    return form
