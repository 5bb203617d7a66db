"""watch: the calibration of a model in use, looked at whenever predictions and labels have arrived."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import calibrant
from calibrant.cli.group import DATA, FAILED, reading, stop, usage
from calibrant.cli.output_files import PAGES, check_apart, check_output, printer
from calibrant.cli.scans import named
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import write_text
from calibrant.report.quoting import counted
from calibrant.scale.part_files import parts
from calibrant.text import inert
from calibrant.watch.closed_windows import BETTING, WatchSettings
from calibrant.watch.joining import EVERY, Joining
from calibrant.watch.refitting import ending_of
from calibrant.watch.watch_page import watch_page
from calibrant.watch.watch_status import document, headline, quoted, remarks
from calibrant.watch.watch_store import LogLine
from calibrant.watch.watching import Watch

_SETTINGS = {field.name for field in dataclasses.fields(WatchSettings)}


@click.command(short_help="Watch a model in use; alarms stay valid however often you look.")
@click.argument("store", type=click.Path())
@click.option(
    "--predictions", multiple=True, metavar="FILES", help="Files, a folder or a quoted pattern; new ones are read."
)
@click.option("--labels", multiple=True, metavar="FILES", help="The same, of labels; they are joined by id.")
@click.option("--states", multiple=True, metavar="FILES", help="States of windows, named like their files.")
@click.option("--id", metavar="COLUMN", help="The column that names rows in both.  [default: id]")
@click.option("--time", metavar="COLUMN", help="The column that says when a prediction was made.  [default: time]")
@click.option("--every", type=click.Choice(EVERY), help="How long a window is.  [default: day]")
@click.option(
    "--window", metavar="COLUMN", help="The column that names windows, such as a release; instead of --every."
)
@click.option(
    "--close-after", metavar="TIME", help="Close a window when rows are later than its end by so much: 36h, 3d, 2w."
)
@click.option(
    "--close-at", type=float, metavar="SHARE", help="Close it earlier, once such a share of its rows has labels."
)
@click.option(
    "--unlabelled", type=int, metavar="LABEL", help="What it means that no label has come when a window is closed."
)
@click.option("--label", metavar="KEY", help="Where the labels are, if not in label, labels or y.")
@click.option("--probs", metavar="KEY", help="Where the probabilities are, if not in p, p_<class> or probs.")
@click.option("--logits", metavar="KEY", help="Where the logits are, if not in logits.")
@click.option("--by", metavar="COLUMN", help="Also tell for which values of this column they do not agree.")
@click.option("--classes", is_flag=True, default=None, help="Also watch each class, not only the top label.")
@click.option("--map", metavar="FILE", help="A map of calibrant recalibrate; forecasts go through it first.")
@click.option(
    "--keep", type=int, metavar="WINDOWS", help="Closed windows whose rows stay for corrections.  [default: 7]"
)
@click.option("--level", type=float, help="The largest chance of a false alarm, ever.  [default: 0.05]")
@click.option(
    "--independent", type=click.Choice(list(BETTING)), help="What may be taken as independent.  [default: rows]"
)
@click.option(
    "--tolerance", type=float, metavar="SHIFT", help="A shift of log-odds that counts as calibrated.  [default: 0]"
)
@click.option(
    "--horizon", type=int, metavar="WINDOWS", help="In how many windows a change is looked for first.  [default: 365]"
)
@click.option("--restart", is_flag=True, help="Begin anew after a change of the model: earlier windows count no more.")
@click.option("--forget", metavar="WINDOW", help="Delete the counts of a window.")
@click.option("--repair", metavar="FILE", help="After an alarm: write a map that repairs forecasts, .json or .onnx.")
@click.option("-o", "--output", type=click.Path(), help="A page that is written again at each run.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def watch(
    store: str, predictions: Sequence[str], labels: Sequence[str], states: Sequence[str], restart: bool,
    forget: str | None, repair: str | None, output: str | None, style: str, **options: Any,
) -> None:  # fmt: skip
    """Read what has arrived, close the windows that are due, and say whether forecasts and outcomes agree.

    \b
    Examples:
      calibrant watch model.watch --predictions predictions/ --labels labels/ --close-after 3d -o watch.html
      calibrant watch model.watch --predictions predictions/ --labels labels/
      calibrant watch model.watch --states 'days/*.state'
      calibrant watch model.watch --format json

    \b
    The first run makes STORE and fixes the settings; later runs need none of them. Files that were read before are not
    read again. Rows wait in STORE until their window is closed; then counts stay, and rows go.
    A day that is delivered twice, or a run that is killed and started again, changes nothing.

    \b
    Exit status: 0 no alarm, 1 an alarm, 2 wrong usage, 3 wrong input, 4 the store or page cannot be written.
    """
    if output is not None:
        check_output(output, (store,), PAGES)
    if repair is not None:
        usage(ending_of, repair)
        check_output(repair, (store,))
    check_apart(output, repair)
    settings = {key: value for key, value in options.items() if value is not None}
    if not (settings or predictions or labels or states or os.path.exists(store)):
        stop(f"{inert(store, 200)}: there is no such store; a first run gets --predictions, --labels or --states", DATA)
    watched = _opened(store, settings, bool(predictions or labels))
    for read, files in ((watched.read_predictions, predictions), (watched.read_labels, labels)):
        for file in _files(files):
            read(file)
    for file in _files(states):
        watched.append(Path(file).name.removesuffix(".state"), named(file))
    arrived = bool(predictions or labels or states)
    lines = _told(watched.close()) if arrived or _is_writable(store) else []
    if forget is not None:
        watched.forget(forget)
    if restart:
        watched.restart()
    look = watched.look()
    if repair is not None:
        lines.append(_repaired(watched, repair))
    if output is not None:
        write_text(output, watch_page(look, os.path.basename(store)).to_html())
    show = printer(output, repair)
    if style == "json":
        content = {"calibrant": calibrant.__version__, **document(look, lines)}
        show(json.dumps(content, allow_nan=False, indent=1))
    else:
        for sentence in (*lines, headline(look), *remarks(look)):
            show(sentence)
    if look.alarm is not None:
        sys.exit(FAILED)


def _is_writable(store: str) -> bool:
    """Whether windows can be closed; a store that cannot be written to can be looked at."""
    return all(os.access(place, os.W_OK) for place in (store, os.path.dirname(os.path.abspath(store))))


def _files(sources: Sequence[str]) -> Iterator[str]:
    """The files of folders and patterns, each once; one that cannot be read is wrong input."""
    with reading():
        names = dict.fromkeys(part.path for part in parts(sources)) if sources else {}
    for name in names:
        with reading():
            open(name, "rb").close()
        yield name


def _opened(store: str, options: dict[str, Any], joins: bool) -> Watch:
    """The watch at a place; options that are given are those that it has, or that it gets."""
    if "map" in options:
        with reading():
            options["map"] = InputFile.of(options["map"]).text()
    own = {name: value for name, value in options.items() if name in _SETTINGS}
    rules = {name: value for name, value in options.items() if name not in _SETTINGS}
    try:
        known = Watch(store) if os.path.exists(store) else None
        if known is not None and not options and not joins:
            return known
        if known is None or (options and known.is_empty):
            return Watch(store, WatchSettings(**own), Joining(**rules) if joins or rules else None)
        settings, joining = dataclasses.replace(known.settings, **own), known.joining
        if rules:
            joining = Joining(**rules) if joining is None else dataclasses.replace(joining, **rules)
        return Watch(store, settings, joining)
    except CalibrationInputError as error:
        if error.parameter in ("settings", "close_after", "close_at", *_SETTINGS, *options):
            raise click.UsageError(inert(str(error).replace("close_", "--close-"), 400)) from None
        raise


def _repaired(watched: Watch, path: str) -> str:
    """Write the map that later windows favour, and say so; or say why there is none."""
    candidate = watched.repair()
    if candidate is None:
        return "No map yet: a repair is fitted at an alarm and judged on the windows that are closed after it."
    words = f"{candidate.name}, e-value {quoted(candidate.log_e)} (used from {quoted(candidate.limit)} on)"
    if not candidate.is_favoured:
        return f"No map yet: later windows do not favour {words}."
    candidate.save(path)
    return f"Wrote {inert(path, 200)}: {words}."


def _told(lines: Sequence[LogLine]) -> list[str]:
    """What happened in a run, a sentence for the windows that were closed and one for those that were corrected."""
    sentences = []
    for what, words in (("close", "Closed"), ("correction", "Corrected")):
        windows = [line for line in lines if line.what == what]
        if windows:
            names = [inert(line.window, 60) for line in windows]
            span = names[0] if len(names) == 1 else f"{len(names)} windows, {names[0]} to {names[-1]}"
            sentences.append(f"{words} {span}: {counted(sum(line.document['n'] for line in windows), 'row')}.")
    return sentences
