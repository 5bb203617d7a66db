"""simulate: what calibration numbers show of models whose truth is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

import calibrant
from calibrant import simulate as simulation
from calibrant.cli.group import say, usage
from calibrant.cli.input_files import read, reading_options
from calibrant.cli.measure import metrics_named
from calibrant.cli.output_files import check_output, is_standard
from calibrant.cli.questions import check_questions
from calibrant.cli.simulated_models import model_options, simulated_model
from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import whole_file, write_text
from calibrant.inference.draws import check_seed
from calibrant.metric import Metric
from calibrant.simulate.biases import estimates
from calibrant.simulate.model_like_yours import USUAL as ESTIMATORS
from calibrant.simulate.named import to_json
from calibrant.simulate.outcomes import outcomes_of
from calibrant.simulate.sampling import Law
from calibrant.simulate.wording import tied
from calibrant.text import as_csv, inert, safe_cell

F = TypeVar("F", bound=Callable[..., Any])
Records = Sequence[Mapping[str, Any]]

PICTURES = (".png", ".svg", ".pdf")
USUAL = ("ece", "ece_sweep", "ece_debiased")
"""The metrics that are simulated where none are named."""
SIZES = (1000,)
LONG = 10.0
"""Seconds from which on a run says beforehand how long it will take."""
ERRORS = "± is the Monte Carlo error (one standard error); more --replicates make it smaller."

_SHARED = (
    click.option("-m", "--metric", "names", multiple=True, help="A metric; repeatable."),
    click.option(
        "--order",
        type=click.FloatRange(min=1),
        metavar="P",
        help="The order p of the true error, such as 1 or 2. Default: that of each metric.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="The seed of the simulation."),
    click.option(
        "--jobs", "n_jobs", type=click.IntRange(1), default=1, show_default=True, help="The number of processes."
    ),
    click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        type=click.Path(),
        help="Also write this file: .csv, .json, .png, .svg or .pdf. - writes SVG; repeatable.",
    ),
)
_of_sizes = click.option(
    "-n",
    "sizes",
    type=click.IntRange(1),
    multiple=True,
    default=SIZES,
    show_default=True,
    help="The number of samples; repeatable.",
)
_of_level = click.option(
    "--level",
    type=float,
    default=0.05,
    show_default=True,
    help="The false-positive rate: how often a calibrated model is called miscalibrated.",
)


def _shared(command: F) -> F:
    """The options of every simulation."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


@click.group(short_help="Simulate the bias and power of calibration metrics.")
def simulate() -> None:
    """How biased are calibration metrics, and what can they detect? Simulate models whose true error is known.

    \b
    Examples:
      calibrant simulate bias -m ece -m ece_sweep -n 200 -n 1000 --model resnet110_c10
      calibrant simulate power -m ece -n 500 --error 0.05
      calibrant simulate samples -m ece_sweep --error 0.05
      calibrant simulate like predictions.npz
    """


@simulate.command(short_help="Bias of metrics at n samples.")
@_of_sizes
@click.option(
    "--bins", type=click.IntRange(1), multiple=True, help="A number of bins to try for each metric; repeatable."
)
@click.option(
    "--replicates", type=click.IntRange(2), default=1000, show_default=True, help="The number of simulated data sets."
)
@model_options
@_shared
def bias(
    sizes: tuple[int, ...], bins: tuple[int, ...], replicates: int, names: tuple[str, ...], order: float | None,
    seed: int, n_jobs: int, style: str, outputs: tuple[str, ...], **model: Any,
) -> None:  # fmt: skip
    """How far are metrics from the true calibration error at n samples? Print bias and root mean squared error.

    \b
    Examples:
      calibrant simulate bias -m ece -m ece_sweep -n 200 -n 1000 -n 5000 --model resnet110_c10 -o bias.png
      calibrant simulate bias -m ece --bins 5 --bins 15 --scores 'beta(2, 0.5)' --curve 'power(1.5)' -o bias.csv
    """
    metrics = _metrics(names, seed, outputs)
    simulated = simulated_model(metrics, **model, order=order)
    _say_how_long(metrics, simulated.scores, simulated.curve, sizes, replicates * max(1, len(bins)), n_jobs)
    run: dict[str, Any] = {"replicates": replicates, "seed": seed, "n_jobs": n_jobs, "p": order}
    grid = simulation.bias_grid(metrics, simulated.scores, simulated.curve, sizes, bins or None, **run)
    columns = [simulation.Biases({name: grid[name, n] for name in grid.names}) for n in grid.values]
    every = simulation.Biases({f"{name} {n}": grid[name, n] for n in grid.values for name in grid.names})
    verdicts = [f"n = {n:,.0f}: {column.verdict}." for n, column in zip(grid.values, columns, strict=True)]
    meaning = "bias is the mean over data sets less the truth, and has the mean's error; rmse is the typical distance."
    _finish(
        [f"{simulated.words}\n", f"{every}\n", f"{meaning}\n{ERRORS}\n", *(verdicts if len(grid.names) > 1 else [])],
        {"model": simulated.to_dict(), "results": [estimate.to_dict() for estimate in grid.cells.values()]},
        style, outputs, lambda: simulation.bias_picture(grid),
    )  # fmt: skip


@simulate.command(short_help="Power of metrics to detect miscalibration.")
@_of_sizes
@_of_level
@click.option(
    "--replicates",
    type=click.IntRange(2),
    default=1000,
    show_default=True,
    help="The number of simulated data sets, of the model and of a calibrated one.",
)
@model_options
@_shared
def power(
    sizes: tuple[int, ...], level: float, replicates: int, names: tuple[str, ...], order: float | None, seed: int,
    n_jobs: int, style: str, outputs: tuple[str, ...], **model: Any,
) -> None:  # fmt: skip
    """How often do metrics detect that a model is miscalibrated, at this false-positive rate?

    \b
    Examples:
      calibrant simulate power -m ece -m ece_sweep -n 200 -n 500 -n 2000 --error 0.05 -o power.png
      calibrant simulate power -m ece --model resnet110_c10 --level 0.01
    """
    metrics = _metrics(names, seed, outputs)
    simulated = simulated_model(metrics, **model, order=order)
    _say_how_long(metrics, simulated.scores, simulated.curve, sizes, 2 * replicates, n_jobs)
    run: dict[str, Any] = {"level": level, "replicates": replicates, "seed": seed, "n_jobs": n_jobs}
    runs = [simulation.power(metrics, simulated.scores, simulated.curve, n, **run) for n in sizes]
    detections = [detection for each in runs for detection in each.values()]
    every = simulation.Detections({f"{detection.name} {detection.n}": detection for detection in detections})
    verdicts = [f"n = {n:,}: {each.verdict} of data sets." for n, each in zip(sizes, runs, strict=True)]
    meaning = (
        f"critical is exceeded by {level:.1%} of data sets of a calibrated model, power is the share of this model's."
    )
    _finish(
        [f"{simulated.words}\n", f"{every}\n", f"{meaning}\n{ERRORS}\n", *(verdicts if len(metrics) > 1 else [])],
        {"model": simulated.to_dict(), "results": [vars(detection) for detection in detections]},
        style, outputs, lambda: simulation.power_picture(detections),
    )  # fmt: skip


@simulate.command(short_help="Samples needed to detect an error.")
@click.option("--error", type=float, default=0.05, show_default=True, help="The true error that must be detected.")
@click.option("--model", metavar="NAME", help="Scores fitted to a published network, such as resnet110_c10.")
@click.option("--scores", metavar="WORDS", help="The distribution of scores: uniform (default) or beta(A, B).")
@click.option(
    "--power", "wanted", type=float, default=0.8, show_default=True, help="The power: how often it must be detected."
)
@_of_level
@click.option(
    "--within",
    type=float,
    default=0.1,
    show_default=True,
    help="The largest width of the interval of n, as a share of n.",
)
@click.option(
    "--replicates",
    type=click.IntRange(2),
    default=400,
    show_default=True,
    help="The number of simulated data sets at each n, at first.",
)
@_shared
def samples(
    error: float, model: str | None, scores: str | None, names: tuple[str, ...], order: float | None, style: str,
    outputs: tuple[str, ...], **run: Any,
) -> None:  # fmt: skip
    """How many samples are needed to detect a true calibration error? The answer has a 90% interval.

    With several metrics, --error is the L1 error, unless --order is given.

    \b
    Examples:
      calibrant simulate samples -m ece -m ece_sweep --error 0.05
      calibrant simulate samples -m ece --error 0.02 --power 0.9 --scores 'beta(2, 0.5)' -o samples.png
    """
    metrics = _metrics(names, run["seed"], outputs)
    law = simulated_model(metrics, model, scores, None, None, None).scores
    assert not isinstance(law, simulation.SoftmaxScores)  # they are refused without a curve of their own
    p = 1.0 if order is None and len(metrics) > 1 else order

    def search(_: str) -> dict[str, simulation.SamplesNeeded]:
        return {name: simulation.samples_needed(metric, law, error, p=p, **run) for name, metric in metrics.items()}

    needed = usage(search, "")
    fewest = min(needed, key=lambda name: needed[name].n)
    ties = [name for name in needed if name != fewest and needed[name].low <= needed[fewest].high]
    verdict = f"Fewest: {fewest}{tied(ties)}."
    _finish(
        [*(f"{name}: {answer}" for name, answer in needed.items()), *(["", verdict] if len(needed) > 1 else [])],
        {"results": [{"name": name, **answer.to_dict()} for name, answer in needed.items()]},
        style, outputs, lambda: simulation.samples_picture(needed),
    )  # fmt: skip


@simulate.command(short_help="Bias of metrics for a model like yours.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-n", "size", type=click.IntRange(1), help="The number of samples [default: that of the predictions].")
@click.option(
    "--replicates", type=click.IntRange(2), default=400, show_default=True, help="The number of simulated data sets."
)
@_shared
@reading_options
def like(
    files: tuple[str, ...], size: int | None, replicates: int, names: tuple[str, ...], order: float | None, seed: int,
    n_jobs: int, style: str, outputs: tuple[str, ...], **keys: Any,
) -> None:  # fmt: skip
    """How biased is each metric for a model like the one in FILE, at this number of samples?

    A score distribution and a calibration curve are fitted to the predictions, and data sets are simulated from them.

    \b
    Examples:
      calibrant simulate like predictions.npz
      calibrant simulate like predictions.csv -m ece -m smece --replicates 1000 -o like.png
    """
    for output in outputs:
        check_output(output, files)
    metrics = _metrics(names, seed, outputs, ESTIMATORS)
    predictions = read(files, **keys)
    check_questions(metrics, predictions)
    observed = simulation.EmpiricalScores(outcomes_of(predictions)[0])
    _say_how_long(metrics, observed, simulation.IDENTITY, (size or len(predictions),), replicates, n_jobs)
    run: dict[str, Any] = {"n": size, "p": order, "replicates": replicates, "seed": seed, "n_jobs": n_jobs}
    likeness = simulation.like(predictions, metrics, **run)
    _finish([str(likeness)], likeness.to_dict(), style, outputs, lambda: simulation.picture(likeness))


def _metrics(
    names: Sequence[str], seed: int, outputs: Sequence[str], usual: Mapping[str, Metric] | None = None
) -> dict[str, Metric]:
    """The metrics that are asked for; what else cannot be done is refused here, before the work begins."""
    usage(lambda _: check_seed(seed), "")
    for output in outputs:
        usage(_ending, output)
        check_output(output)
    if any(_ending(output) in PICTURES for output in outputs):
        import matplotlib.figure  # noqa: F401 - what is missing is said before the work begins
    return metrics_named(names) if names else dict(usual or metrics_named(USUAL))


def _ending(output: str) -> str:
    """The ending that says what is written; standard output takes a picture."""
    ending = ".svg" if is_standard(output) else Path(output).suffix.lower()
    if ending not in (".csv", ".json", *PICTURES):
        wanted = f"must end in .csv, .json or {', '.join(PICTURES)}"
        raise CalibrationInputError("--output", wanted, got=repr(ending or output))
    return ending


def _say_how_long(
    metrics: Mapping[str, Metric], scores: Law, curve: Any, sizes: Sequence[int], replicates: int, n_jobs: int
) -> None:
    """Say beforehand how long a simulation will take, where that is long; a few replicates are drawn to know it."""
    expected = 0.0
    for n in sizes:
        for few in (1, 2, 20):
            started = time.monotonic()
            estimates(metrics, scores, curve, n, few)
            seconds = time.monotonic() - started
            if few > 1 and seconds > 0.1:
                break
        expected += seconds / few * replicates / n_jobs
    if expected > LONG:
        duration = f"{expected:.0f} s" if expected < 120 else f"{expected / 60:.0f} minutes"
        hint = "--jobs shares the work among processes, fewer --replicates make it shorter"
        say(f"simulating {replicates:,} data sets takes about {duration}; {hint}")


def _finish(
    lines: Sequence[str],
    document: Mapping[str, Any],
    style: str,
    outputs: Sequence[str],
    figure: Callable[[], Any],
) -> None:
    """Print the results, and write them to the files that are asked for."""
    text = to_json({"calibrant": calibrant.__version__, **document})
    spoken = "\n".join(lines).splitlines()
    aside = any(map(is_standard, outputs))
    (say if aside else click.echo)(text if style == "json" else "\n".join(inert(line, 400) for line in spoken))
    for output in outputs:
        ending = _ending(output)
        if ending == ".json":
            write_text(output, text)
        elif ending == ".csv":
            write_text(output, _csv(document.get("results") or list(document["estimators"].values())))
        else:
            with whole_file(output) as file:
                figure().savefig(file, format=ending[1:], dpi=150)
        (say if style == "json" or aside else click.echo)(f"written: {inert(output, 400)}")


def _csv(records: Records) -> str:
    """A row for each record, a column for each of its numbers and words."""
    columns = [name for name, value in records[0].items() if not isinstance(value, list | dict)]
    rows = [[_cell(record[column]) for column in columns] for record in records]
    return as_csv([columns, *rows])


def _cell(value: Any) -> str:
    return safe_cell(value) if isinstance(value, str) else "" if value is None else repr(value)
