"""report: one page for people to read."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from calibrant.cli.group import remember_quiet, say, usage
from calibrant.cli.input_files import Source, described, grouped, read, reading_options, streams_read, told_groups
from calibrant.cli.limits import enforce, limit_options, limits_named, limits_of
from calibrant.cli.measure import metrics_named, usual
from calibrant.cli.output_files import check_apart, check_output, is_standard
from calibrant.cli.questions import check_questions
from calibrant.cli.scans import are_many, are_states, loaded, scanned
from calibrant.files.writing import write_text
from calibrant.inference.draws import check_seed
from calibrant.metric import Metric
from calibrant.result import Result
from calibrant.scale import State
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
@click.option("--by", multiple=True, metavar="COLUMN", help="Look at the values of this column as groups; repeatable.")
@click.option("--groups", metavar="COLUMN", help="Rows of one value of this column may depend on each other.")
@click.option("--title", default="", help="The heading of the page.")
@click.option("--author", default="", help="Who wrote it.")
@click.option("--note", default="", help="A line under the title, such as what the data are.")
@click.option("--date", metavar="DATE", help="The date on the page [default: today].")
@click.option("--json", "tables", type=click.Path(), metavar="FILE", help="Also write all that is on the page as JSON.")
@click.option("-q", "--quiet", is_flag=True, callback=remember_quiet, help="Say nothing but what is wrong.")
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
    by: tuple[str, ...],
    groups: str | None,
    title: str,
    author: str,
    note: str,
    date: str | None,
    tables: str | None,
    quiet: bool,
    style: str | None,
    limits: tuple[str, ...],
    confident: bool,
    **keys: Any,
) -> None:
    """Write one self-contained page about the predictions in FILE; several files are models of the same rows, compared.

    Of a state (calibrant state), a folder or a pattern, the page has what counts can show.

    \b
    Examples:
      calibrant report predictions.npz
      calibrant report predictions.csv -o page.html --open
      calibrant report model_a.npz model_b.npz --format markdown
      calibrant report predictions.npz --format markdown -o summary.md
      calibrant report predictions.npz --by region
      calibrant report predictions.npz --title Screening --author Ada --json report.json
      calibrant report predictions.npz --groups patient
      calibrant report predictions.npz --fail-above ece=0.1 --confident
      calibrant report labels.npy probabilities.npy
      calibrant report week.state

    --fail-above is held against the first FILE; the page says whether it passes.

    \b
    The ending of -o decides what is written: .html a page, .md Markdown, .json JSON, .txt text. Any other ending needs
    --format. For a name without an ending and for - (standard output), --format decides; without it, it is a page.

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
    _check_outputs(target, tables, files, style)
    about = (" · ".join(filter(None, (author, datetime.date.today().isoformat() if date is None else date))), note)
    if opened and is_standard(target):
        raise click.UsageError("--open needs a file; name it with -o")
    command = shlex.join(["calibrant", *sys.argv[1:]])
    held = {metrics[name]: limit for name, limit in thresholds.items()}
    sources = dict(zip(files, streams_read(files), strict=True))
    if are_states([*sources.values()]) or (len(files) == 1 and are_many(files)):
        if groups is not None or confident or by:
            raise click.UsageError("--groups, --by and --confident need files of predictions, read whole")
        state = _kept([*sources.values()], keys)
        page_report = state_report(state, ", ".join(files), command, limits=held, title=title, about=about)
        what = f"{state.n:,} rows, a state"
    else:
        models = {name: read([sources[part] for part in parts], **keys) for name, parts in _named(files).items()}
        for rows in models.values():
            check_questions(metrics, rows)
        first = next(iter(models.values()))
        what, state, column = described(first), None, grouped(first, groups)
        if dependent := told_groups(first, groups):
            say(dependent.rstrip("\n"))
        options = {"seed": seed, "groups": column, "by": by or None, "confident": confident, "title": title}
        page_report = Report.of(models, limits=held, about=about, command=command, **options)  # type: ignore[arg-type]
    _write(page_report, output, target, style, what, quiet=quiet or (tables is not None and is_standard(tables)))
    if tables is not None:
        write_text(tables, _in_words(page_report, target, "json", what) + "\n")
    if opened:
        webbrowser.open(Path(target).resolve().as_uri())
    if metrics:
        enforce(_measured(page_report, state, metrics), thresholds, confident=confident)


def _check_outputs(target: str, tables: str | None, files: Sequence[str], style: str | None) -> None:
    """Refuse what cannot be written, before anything is read."""
    check_output(target, files, () if style else list(_ENDINGS))
    if tables is not None:
        check_output(tables, files, [".json"], "--json")
    check_apart(target, tables)


def _write(page_report: Any, output: str | None, target: str, style: str | None, what: str, *, quiet: bool) -> None:
    """Write the page, or what the ending asks for, and print what is asked for."""
    form = _form(output, style)
    if form == "html":
        page_report.save(target)
    else:
        write_text(target, _in_words(page_report, target, form, what) + "\n")
    if not quiet and not is_standard(target):
        printed = "text" if style is None or (output is not None and form == style) else style
        click.echo(_in_words(page_report, target, printed, what))


def _measured(
    page_report: Any, state: State | None, metrics: Mapping[str, Metric]
) -> Mapping[str, Mapping[str, Result]]:
    """The results that limits are held against: of the page's first model, or of the state."""
    if state is not None:
        return state.table(metrics).results
    results = {check.result.metric: check.result for check in page_report.page.checks}
    return {"all": {name: results[metric] for name, metric in metrics.items()}}


def _kept(sources: Sequence[Source], keys: dict[str, Any]) -> State:
    """The state in files, or of the usual metrics of files that are read one after another."""
    if are_states(sources):
        return loaded(sources)
    options = {"threads": 1, "resume": None, "skip_bad": False, **keys}
    return scanned([*map(str, sources)], lambda rows: metrics_named(usual(rows)), None, exact=False, **options)[0].state


def _form(output: str | None, style: str | None) -> str:
    """What is written: as the ending says, else as --format says, else a page."""
    if output is None:
        return "html"
    return _ENDINGS.get(Path(output).suffix.lower(), style or "html")


def _in_words(page_report: Any, path: str, style: str, what: str) -> str:
    if style == "json":
        return json.dumps({**page_report.to_dict(), "report": path}, allow_nan=False, indent=1)
    if style == "markdown":
        return page_report.to_markdown()
    lines = [what, "", *page_report.sentences]
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
