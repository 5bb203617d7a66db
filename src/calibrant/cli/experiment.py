"""experiment: train networks in many ways from one file, and make tables and figures of what came of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from calibrant.cli import INTERRUPTED
from calibrant.cli.experiment_options import running_options
from calibrant.cli.group import DATA, FAILED, IO, is_quiet, reading, say, stop
from calibrant.cli.output_files import check_folder, check_output, is_standard, printer
from calibrant.cli.showing import drawn
from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import write_text
from calibrant.text import inert


@click.group(short_help="Run a study: train, recalibrate, measure, make tables and figures.")
def experiment() -> None:
    """Run a study from one YAML file: networks, interventions, strengths, seeds, post-processing, metrics.

    Everything is kept in a folder. A process may be killed at any time and started again. Several processes may share
    the folder, and nothing is done twice.

    \b
    Example:
      calibrant experiment run miniature
      calibrant experiment table miniature-study
    """


@experiment.command(short_help="Check a study file.")
@click.argument("file", type=click.Path())
def check(file: str) -> None:
    """Check FILE and print how many trials it has. All mistakes are listed at once, with line numbers.

    \b
    Example:
      calibrant experiment check study.yaml
    """
    study, _ = _read(file)
    trials = study.trials()
    later = len(study.all_trials()) - len(trials)
    more = f", and {later} more once strengths and trainings are chosen" if later else ""
    click.echo(f"{inert(study.name)}: {_trials(len(trials))}{more}")


@experiment.command(short_help="Run a study, or continue it.")
@click.argument("file", type=click.Path())
@click.option("--store", metavar="FOLDER", help="The folder in which everything is kept [default: NAME-study].")
@running_options
def run(file: str, store: str | None, **options: Any) -> None:
    """Run the study in FILE, or continue it where it was stopped.

    FILE may also be the name of a study that comes with calibrant.

    \b
    Examples:
      calibrant experiment run study.yaml --jobs 2
      calibrant experiment run fashion_mnist --device cuda --store results
      calibrant experiment run miniature --scheduler tcp://127.0.0.1:8786
    """
    from calibrant.experiments.running import runner

    study, text = _read(file)
    folder = store or f"{study.name}-study"
    runner.open_study(folder, text, lease=options["lease"])
    _run(folder, **options)


@experiment.command(short_help="Continue the study in a folder.")
@click.argument("folder", type=click.Path())
@click.option("--retry", is_flag=True, help="Also run failed trials again.")
@running_options
def resume(folder: str, retry: bool, **options: Any) -> None:
    """Continue the study in FOLDER where it was stopped, whatever stopped it.

    \b
    Examples:
      calibrant experiment resume miniature-study --retry
      calibrant experiment resume miniature-study --scheduler tcp://127.0.0.1:8786
    """
    from calibrant.experiments.running.store_repair import repaired

    store = repaired(folder, lease=options["lease"])
    if retry:
        say(f"tried again: {_trials(store.retry())} that failed")
    _run(folder, **options)


def _run(folder: str, *, device: str, data: str | None, lease: float, between: float, **how: Any) -> None:
    from calibrant.experiments.running import runner

    options = runner.Options(device, data, lease, between)
    try:
        code = _code(folder, options, **how)
    except runner.DiskFullError as error:
        stop(str(error.strerror), IO)
    _, store = runner.reopen(folder)
    counts = store.counts()
    click.echo(f"{inert(folder)}: {_counted(counts)}")
    if code:
        words = "stopped; calibrant experiment resume goes on" if code == INTERRUPTED else "a worker did not end well"
        stop(words, code)
    if counts["failed"]:
        stop(f"{_trials(counts['failed'])} failed; calibrant experiment status {folder} says why", FAILED)


def _code(folder: str, options: Any, *, jobs: int, scheduler: str | None) -> int:
    """How a run ended, here or on a cluster."""
    from calibrant.experiments.running import cluster, progress_display, runner

    shown = None if is_quiet() else progress_display.display
    if scheduler is None:
        return runner.run(folder, options, jobs=jobs, shown=shown)
    if jobs != 1:
        raise click.UsageError("--jobs counts processes here; with --scheduler, start as many workers there")
    return cluster.run(folder, options, scheduler, shown=shown)


@experiment.command(short_help="Show the progress of a study.")
@click.argument("folder", type=click.Path())
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--watch", is_flag=True, help="Repeat every two seconds until all trials are done.")
def status(folder: str, style: str, watch: bool) -> None:
    """Show how many trials of the study in FOLDER are done, which are running, and which failed and why.

    \b
    Example:
      calibrant experiment status miniature-study
    """
    from calibrant.experiments.running import runner

    _, store = runner.reopen(folder)
    while True:
        _show_status(store, folder, style)
        counts = store.counts()
        if not watch or not counts["waiting"] + counts["running"]:
            return
        time.sleep(2)


def _show_status(store: Any, folder: str, style: str) -> None:
    rows = store.rows()
    if style == "json":
        told = [
            {"id": row.trial.id, "trial": row.trial.label, "state": row.state, "epoch": row.epoch, "reason": row.reason}
            for row in rows
        ]
        click.echo(json.dumps({"counts": store.counts(), "trials": told}, indent=1))
        return
    click.echo(f"{inert(folder)}: {_counted(store.counts())}")
    for row in rows:
        if row.state == "running":
            click.echo(f"  running: {inert(row.trial.label)}, epoch {row.epoch} of {row.epochs}, {row.age:.0f} s ago")
        elif row.state == "failed":
            click.echo(f"  failed: {inert(row.trial.label)}: {inert(row.reason, 400)}")


@experiment.command(short_help="Print the tables of a study.")
@click.argument("folder", type=click.Path())
@click.argument("names", nargs=-1)
@click.option("--format", "style", type=click.Choice(["table", "markdown", "csv"]), default="table", show_default=True)
@click.option("-o", "--output", metavar="FOLDER", type=click.Path(), help="Write NAME.md and NAME.csv here.")
def table(folder: str, names: tuple[str, ...], style: str, output: str | None) -> None:
    """Print the tables of the study in FOLDER: all, or those in NAMES. Unfinished trials are left out.

    \b
    Examples:
      calibrant experiment table miniature-study
      calibrant experiment table miniature-study accuracy miscalibration --format markdown
      calibrant experiment table miniature-study -o tables
    """
    from calibrant.experiments.findings.tables import TABLES, tables_of

    check_folder(output)
    for sheet in tables_of(_evidence(folder), _among(names, TABLES, "table")):
        if output is not None and not is_standard(output):
            Path(output).mkdir(parents=True, exist_ok=True)
            write_text(Path(output, f"{sheet.name}.md"), sheet.to_markdown())
            write_text(Path(output, f"{sheet.name}.csv"), sheet.to_csv())
            click.echo(f"written: {inert(str(Path(output, sheet.name)), 400)}.md and .csv")
        elif style == "table":
            rows = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in sheet.rows]
            click.echo((drawn(list(sheet.header), rows, sheet.title) if rows else f"{sheet.title}: no rows") + "\n")
            for note in sheet.notes:
                click.echo(f"note: {inert(note, 400)}")
        else:
            click.echo(sheet.to_markdown() if style == "markdown" else sheet.to_csv())


@experiment.command(short_help="Draw the figures of a study.")
@click.argument("folder", type=click.Path())
@click.argument("names", nargs=-1)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default="figures",
    show_default=True,
    type=click.Path(),
    help="The folder for figures.",
)
@click.option("--format", "form", type=click.Choice(["svg", "png", "pdf"]), default="svg", show_default=True)
def figure(folder: str, names: tuple[str, ...], output: str, form: str) -> None:
    """Draw the figures of the study in FOLDER: all, or those in NAMES. The numbers of each are written as CSV.

    \b
    Example:
      calibrant experiment figure miniature-study top_k over_training -o figures
    """
    from calibrant.experiments.findings.figures import FIGURES, save_figures, write_figure

    check_folder(output)
    chosen, evidence = _among(names, FIGURES, "figure"), _evidence(folder)
    if is_standard(output):
        if len(names) != 1:
            raise click.UsageError("standard output takes one figure; name it, or a folder with -o")
        there = set(names) if write_figure(evidence, names[0], output, form=form).rows else set()
    else:
        paths = save_figures(evidence, output, chosen, form=form)
        for path in paths:
            click.echo(f"written: {inert(str(path), 400)}")
        there = {path.stem for path in paths}
    for name in sorted({*names} - there):
        click.echo(f"left out: {name}, for which the study has no data", err=True)


@experiment.command(short_help="Write the open trials for workers elsewhere.")
@click.argument("file", type=click.Path())
@click.option("--store", metavar="FOLDER", help="The folder in which everything is kept [default: NAME-study].")
@click.option(
    "-o", "--output", default="trials.jsonl", show_default=True, type=click.Path(), help="The file for trials."
)
def plan(file: str, store: str | None, output: str) -> None:
    """Write the trials of the study in FILE that are not done yet, seed by seed.

    `python -m calibrant.experiments.running.trial` runs them on another machine. If its time runs out, all networks
    have about equally many seeds.

    \b
    Example:
      calibrant experiment plan fashion_mnist -o trials.jsonl
    """
    from calibrant.experiments.running import runner
    from calibrant.experiments.training.trials import write_trials

    check_output(output, [file], (".jsonl", ".ndjson"))
    study, text = _read(file)
    _, kept = runner.open_study(store or f"{study.name}-study", text)
    waiting = (row.trial for row in kept.rows() if row.state in ("waiting", "running"))
    left = sorted(waiting, key=lambda trial: trial.seed)
    write_text(output, write_trials(left))
    say = printer(output)
    say(f"{_trials(len(left))}, written: {inert(output, 400)}")
    courses = Counter(f"{trial.model_name}, {trial.training.get('epochs', 0)} epochs" for trial in left)
    for words, count in courses.items():
        say(f"  {count} x {inert(words)}")


@experiment.command(short_help="Import outcomes from other machines.")
@click.argument("folder", type=click.Path())
@click.argument("sources", nargs=-1, required=True, type=click.Path())
def collect(folder: str, sources: tuple[str, ...]) -> None:
    """Import the outcomes in SOURCES into the study in FOLDER. SOURCES are NPZ files, ZIP archives, or folders of them.

    \b
    Example:
      calibrant experiment collect fashion_mnist-study results-1.zip results-2.zip
    """
    from calibrant.experiments.running import runner
    from calibrant.experiments.running.outcome_intake import collect as take

    study, store = runner.reopen(folder)
    with reading():
        intake = take(store, [Path(source) for source in sources])
    runner.extend(study, store)
    for reason in intake.refused:
        click.echo(f"left out: {inert(reason, 400)}", err=True)
    click.echo(f"{intake.taken} outcomes taken, {intake.known} were there; {inert(folder)}: {_counted(store.counts())}")


def _evidence(folder: str) -> Any:
    from calibrant.experiments.running import runner
    from calibrant.experiments.running.evidence import Evidence

    evidence = Evidence(*runner.reopen(folder))
    if not evidence.variants():
        raise CalibrationInputError(folder, "must hold at least one base trial that is done", got="none")
    return evidence


def _read(file: str) -> tuple[Any, str]:
    """The study in a file, and its text; all that is wrong goes to standard error, a line each."""
    from calibrant.experiments.design.checking import StudyError, study_in, text_of

    try:
        with reading():
            text = text_of(file)
        return study_in(text, file), text
    except StudyError as error:
        for problem in error.problems:
            click.echo(f"{inert(file)}: {inert(str(problem), 400)}", err=True)
        stop(f"{file}: {error.got}", DATA)


def _among(names: tuple[str, ...], known: Any, kind: str) -> list[str] | None:
    from calibrant.exceptions import nearest

    for name in names:
        if name not in known:
            raise click.UsageError(f"no {kind} {inert(name)!r}; {nearest(name, known)}")
    return list(names) or None


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no trials"
