"""report: one page for people to read."""

from __future__ import annotations

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
from calibrant.cli.measure import metrics_named, usual
from calibrant.cli.output_files import check_output, is_standard
from calibrant.cli.scans import are_many, are_states, loaded, scanned
from calibrant.files.writing import write_text
from calibrant.inference.confidence import Confidence
from calibrant.inference.draws import check_seed
from calibrant.scale import State
from calibrant.table import table
from calibrant.text import inert

DEFAULT = "report.html"
_ENDINGS = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json", ".txt": "text",
}  # fmt: skip


@click.command(short_help="Write a page that says whether probabilities can be trusted.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="The page [default: report.html]; .md or .json: that instead.")
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
@click.option("--seed", type=int, default=0, show_default=True, help="Makes intervals and noise floors repeatable.")
@click.option("--groups", metavar="COLUMN", help="Rows of one value of this column may depend on each other.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but what is wrong.")
@click.option(
    "--format", "style", type=click.Choice(["text", "json", "markdown"]), help="What is printed [default: text]."
)
@click.option("--markdown", "style", flag_value="markdown", help="The same as --format markdown, for pull requests.")
@limit_options
@reading_options
def report(
    files: tuple[str, ...],
    output: str | None,
    opened: bool,
    seed: int,
    groups: str | None,
    quiet: bool,
    style: str | None,
    limits: tuple[str, ...],
    confident: bool,
    **keys: Any,
) -> None:
    """Write one self-contained page about the predictions in FILE; several files are models of the same rows.

    Of a state (calibrant state), a folder or a pattern, the page has what counts can show.

    \b
    Examples:
      calibrant report predictions.npz
      calibrant report predictions.csv -o page.html --open
      calibrant report model_a.npz model_b.npz --format markdown
      calibrant report predictions.npz --format markdown -o summary.md
      calibrant report predictions.npz --groups patient
      calibrant report predictions.npz --fail-above ece=0.1 --confident
      calibrant report labels.npy probabilities.npy
      calibrant report week.state

    --fail-above is held against the first FILE, after the page is written.

    \b
    The ending of -o decides what is written: .html a page, .md Markdown, .json JSON, .txt text. Where it is none of
    these, or - (standard output), --format decides, and without it a page is written.

    \b
    Exit status: 0 the page is written, 1 it is, and a limit was passed, 2 wrong usage, 3 wrong input, 4 the output
    cannot be written.
    """
    from calibrant.report import Report
    from calibrant.scale.state_report import state_report

    usage(lambda _: check_seed(seed), "")
    thresholds = limits_named(limits, confident)
    metrics = metrics_named(list(thresholds))
    thresholds = limits_of(thresholds, metrics)
    target = DEFAULT if output is None else output
    check_output(target, files)
    if opened and is_standard(target):
        raise click.UsageError("--open needs a file; name it with -o")
    command = shlex.join(["calibrant", *sys.argv[1:]])
    if are_states(files) or (len(files) == 1 and are_many(files)):
        if groups is not None or confident:
            raise click.UsageError("--groups and --confident need files of predictions, read whole")
        state = _kept(files, keys)
        page_report, what = state_report(state, ", ".join(files), command), f"{state.n:,} rows, a state"
    else:
        models = {name: read(file, **keys) for name, file in _named(files).items()}
        page_report = Report.of(models, seed=seed, groups=groups, command=command)
        first = next(iter(models.values()))
        what, state = described(first), None
    form = _form(output, style)
    if form == "html":
        page_report.save(target)
    else:
        write_text(target, _in_words(page_report, target, form, what) + "\n")
    if not quiet and not is_standard(target):
        printed = "text" if style is None or (output is not None and form == style) else style
        click.echo(_in_words(page_report, target, printed, what))
    if opened:
        webbrowser.open(Path(target).resolve().as_uri())
    if metrics:
        interval = Confidence(seed=seed, groups=groups) if confident else None
        measured = table(first, metrics, interval=interval) if state is None else state.table(metrics)
        enforce(measured.results, thresholds, confident=confident)


def _kept(files: tuple[str, ...], keys: dict[str, Any]) -> State:
    """The state in files, or of the usual metrics of files that are read one after another."""
    if are_states(files):
        return loaded(files)
    options = {"threads": 1, "resume": None, "skip_bad": False, **keys}
    return scanned(files, lambda rows: metrics_named(usual(rows)), None, exact=False, **options)[0].state


def _form(output: str | None, style: str | None) -> str:
    """What is written: as the ending says, else as --format says, else a page."""
    if output is None:
        return "html"
    return _ENDINGS.get(Path(output).suffix.lower(), style or "html")


def _in_words(page_report: Any, path: str, style: str, what: str) -> str:
    if style == "json":
        content = {
            "verdict": page_report.verdict.sentence,
            "tone": page_report.verdict.tone,
            "supporting": list(page_report.verdict.supporting),
            "numbers": page_report.numbers,
            "report": path,
        }
        return json.dumps({"calibrant": calibrant.__version__, **content}, allow_nan=False, indent=1)
    if style == "markdown":
        return page_report.to_markdown()
    lines = [what, "", page_report.verdict.sentence, *page_report.verdict.supporting]
    return "\n".join([*(inert(line, 400) for line in lines), "", f"written: {inert(path, 400)}"])


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
