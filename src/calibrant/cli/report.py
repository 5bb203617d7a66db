"""report: one page for people to read."""

from __future__ import annotations

import errno
import json
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

import calibrant
from calibrant.cli.group import usage
from calibrant.cli.input_files import described, read, reading_options
from calibrant.cli.limits import enforce, limit_options, limits_named, limits_of
from calibrant.cli.measure import metrics_named
from calibrant.inference.confidence import Confidence
from calibrant.inference.draws import check_seed
from calibrant.predictions import Predictions
from calibrant.table import table
from calibrant.text import inert


@click.command(short_help="Write a page that says whether probabilities can be trusted.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", default="report.html", show_default=True, type=click.Path(), help="The page.")
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
@click.option("--seed", type=int, default=0, show_default=True, help="Makes intervals and noise floors repeatable.")
@click.option("--groups", metavar="COLUMN", help="Rows of one value of this column may depend on each other.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but what is wrong.")
@click.option("--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--markdown", "style", flag_value="markdown", help="The same as --format markdown, for pull requests.")
@limit_options
@reading_options
def report(
    files: tuple[str, ...],
    output: str,
    opened: bool,
    seed: int,
    groups: str | None,
    quiet: bool,
    style: str,
    limits: tuple[str, ...],
    confident: bool,
    **keys: Any,
) -> None:
    """Write one self-contained page about the predictions in FILE; several files are models of the same rows.

    \b
    Examples:
      calibrant report predictions.npz
      calibrant report predictions.csv -o page.html --open
      calibrant report model_a.npz model_b.npz --format markdown
      calibrant report predictions.npz --groups patient
      calibrant report predictions.npz --fail-above ece=0.1 --confident
      calibrant report labels.npy probabilities.npy

    --fail-above is held against the first FILE, after the page is written.

    \b
    Exit status: 0 the page is written, 1 it is, and a limit was passed, 2 wrong usage, 3 wrong data, 4 a file cannot
    be read or written.
    """
    from calibrant.report import Report

    usage(lambda _: check_seed(seed), "")
    thresholds = limits_named(limits, confident)
    metrics = metrics_named(list(thresholds))
    thresholds = limits_of(thresholds, metrics)
    _check_output(output, files)
    models = {name: read(file, **keys) for name, file in _named(files).items()}
    page_report = Report.of(models, seed=seed, groups=groups, command=shlex.join(["calibrant", *sys.argv[1:]]))
    path = page_report.save(output)
    if not quiet:
        click.echo(_said(page_report, path, style, next(iter(models.values()))))
    if opened:
        webbrowser.open(path.resolve().as_uri())
    if metrics:
        interval = Confidence(seed=seed, groups=groups) if confident else None
        enforce(table(next(iter(models.values())), metrics, interval=interval).results, thresholds, confident=confident)


def _said(page_report: Any, path: Path, style: str, predictions: Predictions) -> str:
    if style == "json":
        content = {
            "verdict": page_report.verdict.sentence,
            "tone": page_report.verdict.tone,
            "supporting": list(page_report.verdict.supporting),
            "numbers": page_report.numbers,
            "report": str(path),
        }
        return json.dumps({"calibrant": calibrant.__version__, **content}, allow_nan=False, indent=1)
    if style == "markdown":
        return page_report.to_markdown()
    lines = [described(predictions), "", page_report.verdict.sentence, *page_report.verdict.supporting]
    return "\n".join([*(inert(line, 400) for line in lines), "", f"written: {inert(str(path), 400)}"])


def _check_output(output: str, files: tuple[str, ...]) -> None:
    """Refuse a page that cannot be written, before anything is computed."""
    target = Path(output)
    if any(target.resolve() == Path(file).resolve() for file in files):
        raise click.UsageError(f"the page would overwrite {inert(output, 200)}; give another name with -o")
    if target.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, f"is a directory; name a file in it, such as -o {output}/report.html", output
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "is no folder; make it first", str(target.parent))


def _named(files: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Each file under its name, or under its whole path where two have the same name; two NPY files are one model."""
    names = [Path(file).name for file in files]
    if any(name.lower().endswith(".npy") for name in names):
        if len(files) != 2:
            raise click.UsageError("NPY files come in pairs: calibrant report labels.npy probabilities.npy")
        return {names[1]: files}
    models: dict[str, tuple[str, ...]] = {
        name if names.count(name) == 1 else file: (file,) for name, file in zip(names, files, strict=True)
    }
    if len(models) < len(files):
        raise click.UsageError("one file is named twice; name each model's file once")
    return models
