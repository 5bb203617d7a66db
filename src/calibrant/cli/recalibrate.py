"""recalibrate: fit a map that corrects probabilities, apply it, choose the method that helps most."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from typing import Any

import click
import numpy as np

import calibrant
from calibrant.cli.group import reading, say, usage
from calibrant.cli.input_files import chosen, described, grouped, read, reading_options, told_groups
from calibrant.cli.limits import enforce, limit_options, limits_named, limits_of
from calibrant.cli.output_files import check_output, is_standard, printer
from calibrant.cli.showing import drawn
from calibrant.door.checked import sentences
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.files import reading as io
from calibrant.files.score_columns import ScoreColumns
from calibrant.files.writing import write_text
from calibrant.recalibrate import methods
from calibrant.recalibrate.choice import UNCHANGED, Choice, choose, compared_by
from calibrant.recalibrate.fitting.lessons import ModelScores
from calibrant.recalibrate.identity import Identity
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.result import Result
from calibrant.text import inert

_METHODS = ", ".join(methods.SHORT)
MAPS = (".json",)
"""The ending of a saved map."""
MOST_LABELS = 12
"""Labels of which the terminal is told what was learnt."""


@click.group(short_help="Recalibrate probabilities: choose a method, fit it, apply it.")
def recalibrate() -> None:
    """Recalibrate probabilities: fit a map on validation predictions, and apply it to other predictions.

    `choose` compares methods and says whether any of them helps. `fit` saves the map of one method. `apply` writes the
    recalibrated probabilities of other rows.

    \b
    Example:
      calibrant recalibrate choose validation.npz
    """


@recalibrate.command(short_help="Fit a method on a file of predictions and save the map.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-m", "--method", "name", default="temperature", show_default=True, help=f"The method: {_METHODS}.")
@click.option("-o", "--output", required=True, type=click.Path(), help="The file for the map (JSON).")
@reading_options
def fit(files: tuple[str, ...], name: str, output: str, **keys: Any) -> None:
    """Fit a method on the validation predictions in FILE, and save the map as JSON.

    The model must not have been trained on these rows.

    \b
    Examples:
      calibrant recalibrate fit validation.npz --method temperature -o map.json
      calibrant recalibrate fit validation.csv --method 'histogram(n_bins=10)' -o map.json
    """
    method = usage(methods.spelled, name)
    check_output(output, files, MAPS)
    predictions = read(files, **keys)
    fitted = _fitted(method, predictions)
    write_text(output, fitted.to_json())
    show = printer(output)
    certificate = fitted.certificate_
    if (
        predictions.forecasts.answers and not predictions.n_classes
    ):  # which side of one half it lies on is no answer's accuracy
        certificate = dataclasses.replace(certificate, accuracy_before=math.nan, accuracy_after=math.nan)
    show(f"{type(fitted).__name__} on {described(predictions)}: {certificate}")
    for name, each in list(fitted.maps_.items())[:MOST_LABELS] or [("", fitted)]:
        for learnt in each.learns:
            show(f"  {inert(f'{name} {learnt}'.strip(' _'))} {_shown(getattr(each, learnt))}")
    if len(fitted.maps_) > MOST_LABELS:
        show(f"  ... and {len(fitted.maps_) - MOST_LABELS} more labels")
    if certificate.log_loss_after > certificate.log_loss_before + 1e-9:
        advice = (
            "the log loss has grown; `calibrant recalibrate choose` compares methods on rows that they have not seen"
        )
        click.echo(f"warning: {advice}", err=True)
    show(f"written: {inert(output, 400)}")


@recalibrate.command(name="apply", short_help="Apply a saved map to a file of predictions.")
@click.argument("map_file", metavar="MAP", type=click.Path())
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="The file for the recalibrated probabilities: .npz, .csv or .parquet.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(io.FORMATS),
    help="The format, whatever the ending of -o. For -, it is csv unless this is given.",
)
@reading_options
def apply_map(map_file: str, file: str, output: str, form: str | None, **keys: Any) -> None:
    """Apply MAP to the predictions in FILE, and write the recalibrated probabilities.

    FILE needs no labels. Its other columns are kept. --missing drop leaves out rows without a prediction, and
    --ignore-index leaves out rows with this label.

    \b
    Example:
      calibrant recalibrate apply map.json test.npz -o recalibrated.npz
    """
    check_output(output, [map_file, file])
    form = form or ("csv" if is_standard(output) else usage(io.format_named, output))
    fitted = _saved(map_file)
    options = chosen(**keys)
    of_scores = {name: options.pop(name) for name in ("class_axis", "normalize")}
    with reading():
        scores = io.read_scores(file, **options)
    if scores.are_logits != (fitted.input == "logits"):
        got = "logits" if scores.are_logits else "probabilities"
        raise CalibrationInputError(file, f"must hold {fitted.input}, as the map was fitted on", got=got)
    classes = [str(name) for name in fitted.classes_]
    axis = 1 if keys["class_axis"] is None else keys["class_axis"]
    try:
        probabilities = fitted.predict_proba(_in_order(scores, classes, file, axis), **of_scores)
    except CalibrationInputError as error:
        if error.parameter != "X":
            raise
        raise CalibrationInputError(file, error.expected, got=error.got, where=error.where, hint=error.hint) from None
    _check_written(probabilities, axis, independent=bool(fitted.maps_))
    io.write(output, probabilities, classes, scores.columns, format=form)
    for sentence in sentences(scores.remarks):
        click.echo(f"note: {sentence}", err=True)
    if calibrant.door.leaks.is_marked(probabilities):
        click.echo(f"note: these rows were {calibrant.door.leaks.FLAG}", err=True)
    printer(output)(f"{len(probabilities):,} rows through {type(fitted).__name__}, written: {inert(output, 400)}")


@recalibrate.command(name="choose", short_help="Compare methods by cross-fitting.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "-m",
    "--method",
    "names",
    multiple=True,
    help=f"A method to compare; repeatable. Default: all that suit the data. Methods: {_METHODS}.",
)
@click.option(
    "--cv", "folds", type=int, default=5, show_default=True, help="The number of folds of the cross-validation."
)
@click.option("--groups", metavar="COLUMN", help="Keep rows with the same value of this column in one fold.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the folds.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "-o", "--output", type=click.Path(), help="Also fit the chosen method on all rows, and save its map here."
)
@limit_options
@reading_options
def choose_method(
    files: tuple[str, ...],
    names: tuple[str, ...],
    folds: int,
    groups: str | None,
    seed: int,
    style: str,
    output: str | None,
    limits: tuple[str, ...],
    confident: bool,
    **keys: Any,
) -> None:
    """Compare recalibration methods on the predictions in FILE by cross-validation.

    Methods are compared by log loss, Brier score and ECE on held-out rows; for classes, also by SCE. A method is chosen
    only if a calibration test rejects at the 5 % level. Otherwise the choice is to change nothing.

    --fail-above is applied to the chosen method, on held-out rows.

    \b
    Examples:
      calibrant recalibrate choose validation.npz --cv 5
      calibrant recalibrate choose validation.npz -m temperature -m vector -m isotonic -o map.json
      calibrant recalibrate choose validation.npz --fail-above ece=0.02 --confident

    \b
    Exit status: 0 fine, 1 a limit was passed, 2 wrong usage, 3 wrong input, 4 the output cannot be written.
    """
    asked, thresholds = {name: usage(methods.spelled, name) for name in names}, limits_named(limits, confident)
    if output is not None:
        check_output(output, files, MAPS)
    show = printer(output)
    predictions = read(files, **keys)
    thresholds = limits_of(thresholds, compared_by(predictions))
    with warnings.catch_warnings():  # what did not converge is told once, below
        warnings.simplefilter("ignore", CalibrationWarning)
        choice = choose(predictions, asked or None, folds=folds, seed=seed, groups=grouped(predictions, groups))
    if style == "json":
        show(json.dumps({"calibrant": calibrant.__version__, **choice.to_dict()}, allow_nan=False, indent=1))
    else:
        title = f"{', '.join(files)}: {described(predictions)}, {folds} folds"
        show(f"{_in_words(choice, title)}\n{told_groups(predictions, groups)}".rstrip("\n"))
    if output is not None:
        candidates = {UNCHANGED: Identity(), **(asked or methods.usual(predictions))}
        write_text(output, _fitted(candidates[choice.best], predictions).to_json())
        identity = " (the identity, which changes nothing)" if choice.best == UNCHANGED else ""
        written = say if style == "json" or is_standard(output) else click.echo
        written(f"written: {inert(output, 400)}{identity}")
    enforce({choice.best: choice.table[choice.best]}, thresholds, confident=confident)


def _saved(path: str) -> Recalibrator:
    """The map in a file; what is wrong with it is said of that file."""
    try:
        with reading():
            return Recalibrator.from_json(InputFile.of(path).text())
    except CalibrationInputError as error:
        hint = error.hint or "the map comes first, then the file of predictions"
        raise CalibrationInputError(path, error.expected, got=error.got, where=error.where, hint=hint) from None


def _check_written(probabilities: Any, axis: int, *, independent: bool) -> None:
    """Refuse to write what are no probabilities."""
    unmarked = probabilities.copy()  # on which rows it was fitted is told apart
    rows = np.moveaxis(unmarked, axis, -1).reshape(-1, unmarked.shape[axis]) if unmarked.ndim > 2 else unmarked
    labels = np.zeros(rows.shape if independent else len(rows), np.int64)
    ModelScores(rows, "probabilities", independent).predictions(labels)


def _in_order(scores: ScoreColumns, classes: list[str], file: str, axis: int) -> Any:
    """The columns in the order of the map's classes, by name where the file names them."""
    names = scores.classes
    if names is None or list(names) == classes:
        return scores.values
    if sorted(names) != sorted(classes):
        expected = f"must name the classes of the map ({', '.join(classes[:5])}{', ...' if len(classes) > 5 else ''})"
        raise CalibrationInputError(file, expected, got=", ".join(names[:5]))
    return np.take(scores.values, [names.index(name) for name in classes], axis=axis)


def _fitted(method: Recalibrator, predictions: calibrant.Predictions) -> Recalibrator:
    """The method fitted on predictions, with their classes' names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        fitted = method.copy(input=ModelScores.of(predictions).input).fit(predictions)
    for warning in caught:
        click.echo(f"warning: {inert(str(warning.message), 400)}", err=True)
    return fitted


def _in_words(choice: Choice, title: str) -> str:
    header = ["method", *next(iter(choice.table.results.values()))]
    rows = [[name, *map(_with_interval, choice.table[name].values())] for name in choice.ranking]
    notes = [
        f"note: {inert(name)} could not be fitted: {inert(reason, 200)}" for name, reason in choice.failures.items()
    ]
    return "\n".join([drawn(header, rows, title), *notes, "", choice.verdict])


def _with_interval(result: Result) -> str:
    between = result.interval
    return f"{result.value:.4f}" + ("" if between is None else f" [{between.low:.4f}, {between.high:.4f}]")


def _shown(value: Any) -> str:
    flat = np.concatenate([np.ravel(part) for part in value]) if isinstance(value, tuple) else np.ravel(value)
    text = " ".join(f"{number:.6g}" for number in flat[:8])
    return f"{text} ... ({flat.size} numbers)" if flat.size > 8 else text
