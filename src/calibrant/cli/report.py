"""report and compare: one page for people to read; is one model better calibrated than another?"""

from __future__ import annotations

import errno
import json
import shlex
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import calibrant
from calibrant.checks import whole
from calibrant.cli.group import FAILED, stop, usage
from calibrant.cli.measure import metrics_named
from calibrant.cli.reading import described, read, reading_options
from calibrant.cli.showing import drawn
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.comparison import Comparison, compare
from calibrant.inference.draws import check_seed
from calibrant.inference.gates import distance_from_calibration
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.text import inert


@click.command(short_help="Write a page that says whether probabilities can be trusted.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", default="report.html", show_default=True, type=click.Path(), help="The page.")
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
@click.option("--seed", type=int, default=0, show_default=True, help="Makes intervals and noise floors repeatable.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but what is wrong.")
@click.option("--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--markdown", "style", flag_value="markdown", help="The same as --format markdown, for pull requests.")
@reading_options
def report(files: tuple[str, ...], output: str, opened: bool, seed: int, quiet: bool, style: str, **keys: Any) -> None:
    """Write one self-contained page about the predictions in FILE; several files are models of the same rows.

    \b
    Examples:
      calibrant report predictions.npz
      calibrant report predictions.csv -o page.html --open
      calibrant report model_a.npz model_b.npz --format markdown
      calibrant report labels.npy probabilities.npy

    \b
    Exit status: 0 the page is written, 2 wrong usage, 3 wrong data, 4 a file cannot be read or written.
    """
    from calibrant.report import Report

    usage(lambda _: check_seed(seed), "")
    _check_output(output, files)
    models = {name: read(file, **keys) for name, file in _named(files).items()}
    made = Report.of(models, seed=seed, command=_command())
    path = made.save(output)
    if not quiet:
        click.echo(_said(made, path, style, next(iter(models.values()))))
    if opened:
        webbrowser.open(path.resolve().as_uri())


def _said(made: Any, path: Path, style: str, predictions: Predictions) -> str:
    if style == "json":
        said = {
            "verdict": made.verdict.sentence,
            "tone": made.verdict.tone,
            "supporting": list(made.verdict.supporting),
            "numbers": made.numbers,
            "report": str(path),
        }
        return json.dumps({"calibrant": calibrant.__version__, **said}, allow_nan=False, indent=1)
    if style == "markdown":
        return made.to_markdown()
    lines = [described(predictions), "", made.verdict.sentence, *made.verdict.supporting]
    return "\n".join([*(inert(line, 400) for line in lines), "", f"written: {inert(str(path), 400)}"])


@click.command(name="compare", short_help="Compare two models on the same rows.")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@click.option("-m", "--metric", "names", multiple=True, help="Recipes or compositions [default: ece, brier, log_loss].")
@click.option("-n", "--resamples", type=int, default=1000, show_default=True, help="Paired bootstrap resamples.")
@click.option("--margin", type=float, help="Call models equivalent when the whole interval lies within it.")
@click.option("--groups", metavar="COLUMN", help="Resample rows with the same value of this column together.")
@click.option("--level", type=float, default=0.9, show_default=True, help="The level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Makes the resampling repeatable.")
@click.option("--fail-if-worse", is_flag=True, help="Exit 1 if FIRST is worse than SECOND by more than noise.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
@reading_options
def compare_models(
    first: str,
    second: str,
    names: tuple[str, ...],
    resamples: int,
    margin: float | None,
    groups: str | None,
    level: float,
    seed: int,
    fail_if_worse: bool,
    style: str,
    **keys: Any,
) -> None:
    """Is FIRST better calibrated than SECOND on the same rows? Paired differences with intervals.

    \b
    Examples:
      calibrant compare new.npz old.npz
      calibrant compare new.npz old.npz -m ece -m sce --fail-if-worse
      calibrant compare new.npz old.npz --margin 0.01 --format json

    \b
    Exit status: 0 all is well, 1 FIRST is worse (with --fail-if-worse), 2 wrong usage, 3 wrong data, 4 a file
    cannot be read.
    """
    metrics = metrics_named(names or ("ece", "brier", "log_loss"))
    usage(lambda _: _check_comparison(resamples, seed, level, margin), "")
    a, b = (read((file,), **keys) for file in (first, second))
    with _by_name(first, second):
        found = {
            name: compare(metric, a, b, resamples, seed, level=level, margin=margin, groups=groups)
            for name, metric in metrics.items()
        }
    if style == "json":
        said = {name: _plain(one) for name, one in found.items()}
        click.echo(json.dumps({"calibrant": calibrant.__version__, "comparisons": said}, allow_nan=False, indent=1))
    else:
        rows = [_row(name, one, resamples) for name, one in found.items()]
        title = f"{first} less {second}: {described(a)}, {resamples} resamples"
        click.echo(drawn(["metric", "first", "second", "difference", "interval", "p", "in words"], rows, title))
    worse = [name for name, one in found.items() if _worse(metrics[name], one)]
    if fail_if_worse and worse:
        stop(f"{first} is worse than {second} in {', '.join(worse)}", FAILED)


@contextmanager
def _by_name(first: str, second: str) -> Iterator[None]:
    """What is wrong between two sets of predictions, said of the files that hold them."""
    try:
        yield
    except CalibrationInputError as error:
        if error.parameter != "b":
            raise
        expected = error.expected.replace(" of a", f" of {first}", 1)
        raise CalibrationInputError(second, expected, got=error.got, hint=error.hint) from None


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


def _check_comparison(resamples: int, seed: int, level: float, margin: float | None) -> None:
    whole(resamples, "--resamples", 1)
    check_seed(seed)
    if not 0 < level < 1:
        hint = f"type --level {level / 100:g} for {level:g}%" if 1 < level < 100 else None
        raise CalibrationInputError("--level", "must lie strictly between 0 and 1", got=f"{level:g}", hint=hint)
    if margin is not None and not margin > 0:
        raise CalibrationInputError("--margin", "must be positive", got=repr(margin))


def _row(name: str, one: Comparison, resamples: int) -> list[str]:
    from calibrant.report.words import quoted_p

    sure = one.interval.low > 0 or one.interval.high < 0
    words = ("second" if one.difference > 0 else "first") + " is lower" if sure else "no clear difference"
    if one.margin is not None:
        same = f"{'' if one.equivalent else 'not '}equivalent within {one.margin:g}"
        words = f"{words}, {same}" if sure else same
    values = [f"{number:.4f}" for number in (one.a.value, one.b.value)]
    between = f"{one.interval.low:+.4f} to {one.interval.high:+.4f}"
    return [name, *values, f"{one.difference:+.4f}", between, quoted_p(one.p_value, resamples).text, words]


def _plain(one: Comparison) -> dict[str, Any]:
    return {
        "first": one.a.to_dict(bins=False),
        "second": one.b.to_dict(bins=False),
        "difference": one.difference,
        "interval": [one.interval.low, one.interval.high],
        "level": one.interval.level,
        "p_value": one.p_value,
        "equivalent": one.equivalent,
    }


def _worse(metric: Metric, one: Comparison) -> bool:
    """Whether the first is worse by more than noise: farther from calibration, or less accurate.

    Of a metric with two sides distances are compared, with half the width of the difference's interval as noise.
    """
    if metric.facts.lower_is_better is None:
        farther = distance_from_calibration(one.a) - distance_from_calibration(one.b)
        return farther > (one.interval.high - one.interval.low) / 2
    return one.interval.low > 0 if metric.facts.lower_is_better else one.interval.high < 0


def _named(files: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Each file under its name, or under its whole path where two have the same name; two NPY files are one model."""
    names = [Path(file).name for file in files]
    if any(name.lower().endswith(".npy") for name in names):
        if len(files) != 2:
            raise click.UsageError("NPY files come in pairs: calibrant report labels.npy probabilities.npy")
        return {names[1]: files}
    made: dict[str, tuple[str, ...]] = {}
    made |= {name if names.count(name) == 1 else file: (file,) for name, file in zip(names, files, strict=True)}
    if len(made) < len(files):
        raise click.UsageError("one file is named twice; name each model's file once")
    return made


def _command() -> str:
    return shlex.join(["calibrant", *sys.argv[1:]])
