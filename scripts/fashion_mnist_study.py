"""What the Fashion-MNIST study says about claims in the literature: each with its numbers and a verdict.

    calibrant experiment run fashion_mnist --device cuda --store STORE
    calibrant experiment run fashion_mnist_more --device cuda --store MORE
    python scripts/fashion_mnist_study.py STORE --more MORE --out docs/fashion_mnist_study.md

Beside the page, a folder of its name takes the numbers of all tables and figures as CSV, the pictures that the page
shows, and the logits of the residual network without intervention.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from study_claims import CLAIMS, in_short, shared_limits, slow_starts, strengths, tables
from study_reading import HIGHER, LEVEL, Studied, by_seed, compared_models, keep_tables, markdown, verdict
from study_training import COURSES

from calibrant.experiments.findings.figures import FIGURES
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.training.trial_outcomes import write_arrays
from calibrant.files.writing import whole_file, write_text
from calibrant.recalibrate.temperature import HOTTEST


def main() -> None:
    """Read the stores, write the page and the numbers."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("store", type=Path)
    asked.add_argument("--more", type=Path)
    asked.add_argument("--out", type=Path, required=True)
    given = asked.parse_args()
    folder = given.out.with_suffix("")
    studied = Studied(given.store, folder.name)
    more = Studied(given.more, folder.name) if given.more else None
    keep(studied, folder)
    if more is not None:
        keep_tables(more, folder, "more_")
        keep_courses(more, folder)
    keep_pictures(studied, more, folder)
    write_text(given.out, "\n".join(line.rstrip() for line in page(studied, more)) + "\n")


def page(studied: Studied, more: Studied | None) -> Iterator[str]:
    """The page, line by line: what was found in short, and then all of it."""
    yield from opening(studied, more)
    found = [line for claim in CLAIMS for line in claim(studied)]
    if more is not None:
        found += others(studied, more)
        found += [line for about_training in COURSES for line in about_training(more)]
    yield from in_short(found)
    yield from strengths(studied)
    yield from found
    yield from tables(studied)
    yield from limits(studied, more)


def opening(studied: Studied, more: Studied | None) -> Iterator[str]:
    done = [row for row in studied.evidence.rows if row.state == "done"]
    seeds = len(studied.study.seeds)
    outcome = studied.evidence.outcome(done[0].trial.id)
    about = outcome.about
    hours = sum(row.seconds or 0 for row in done) / 3600
    yield "# Fashion-MNIST: what calibration papers say, tried"
    yield ""
    yield "Printed by `scripts/fashion_mnist_study.py`; the study is `calibrant experiment run fashion_mnist`."
    yield f"{len(done)} of {len(studied.evidence.rows)} networks were trained, {seeds} seeds a compared setting,"
    if more is not None:
        every = more.evidence.rows
        finished = sum(row.state == "done" for row in every)
        yield f"and {finished} of {len(every)} of `fashion_mnist_more`, {len(more.study.seeds)} seeds each,"
    yield f"on one {about['device']} (torch {about['torch']}; {hours:.1f} hours of processes that shared it)."
    yield f"Post-processing was fitted on the {len(outcome.validation.labels):,} validation rows; every number below is"
    yield f"of the {len(outcome.test.labels):,} test rows unless it says otherwise. Errors are in points, mean"
    yield "± standard deviation over seeds."
    yield ""
    yield f"A difference is called clear, and marked ↓ or ↑, where a t test over seeds rejects equality at {LEVEL:g}:"
    yield "paired where the networks are the same (post-processing), Welch's where they are not (interventions). Many"
    yield "are tested and none is corrected for that: a single mark says little, and a clear difference may be small."
    yield ""
    yield from markdown(
        ["network", "accuracy", "ECE", "SCE", "full", "seeds"],
        [
            [one, *(source.spread(source.base(one), name) for name in ("accuracy", "ECE", "SCE", "full")),
             len(source.base(one).trials)]
            for source in (studied, more) if source is not None for one in source.models
        ],
    )  # fmt: skip
    yield "The numbers behind every table and figure lie as CSV in `fashion_mnist_study/`, with the logits of the"
    yield "residual network without intervention."
    yield ""


def others(studied: Studied, more: Studied) -> Iterator[str]:
    yield "## Other networks and other first weights"
    yield ""
    yield "**Claim (Nixon et al. 2019): weights that begin badly make for worse calibration.** The two-layer network"
    yield "with Glorot's weights and with standard normal ones, beside larger networks; base and after"
    yield "post-processing:"
    yield ""
    names = ("accuracy", "ECE", "SCE", "wsECE", "mcs")
    sources = [(studied, "cnn"), *((more, model) for model in more.models)]
    rows = []
    for source, model in sources:
        for method in ("", "temperature", "vector", "cwmcs"):
            one = source.method(model, method) if method else source.base(model)
            label = f"{model}, layers' own" if source is studied else model
            rows.append([label, method or "as it is", *(source.spread(one, name) for name in names), len(one.trials)])
    yield from markdown(["network", "method", "accuracy", "ECE", "SCE", "wsECE", "MCS", "seeds"], rows)
    yield from at_bounds(more)
    worse = compared_models(more, "cnn normal", "cnn glorot", "ECE")
    yield verdict(
        worse.word == HIGHER,
        f"ECE {worse.after} against {worse.before}, accuracy {more.spread(more.base('cnn normal'), 'accuracy')}",
        f"against {more.spread(more.base('cnn glorot'), 'accuracy')}.",
    )
    yield ""


def at_bounds(studied: Studied) -> Iterator[str]:
    """Where temperature scaling could not do what it should."""
    for model in studied.models:
        trials = studied.base(model).trials
        ended = [float(studied.evidence.fitted(trial, "temperature").temperature_) for trial in trials]
        if max(ended) >= HOTTEST:
            largest = max(float(np.abs(studied.evidence.outcome(trial).validation.logits).max()) for trial in trials)
            yield f"Temperature scaling of {model} ended at its bound of {HOTTEST:g} (logits reach {largest:,.0f}):"
            yield "its numbers, and those of cwmcs, which starts from it, say nothing about the methods."
            yield ""


def limits(studied: Studied, more: Studied | None) -> Iterator[str]:
    yield "## What these numbers cannot say"
    yield ""
    yield "- One data set of ten classes, most networks accurate on it: claims about a thousand classes (errors of"
    yield "  the top 100, say) are not tested, and groups of classes are few."
    yield "- The rules of the verdicts stand in `scripts/study_claims.py`. They were not fixed before any number was"
    yield "  known; some were written, and some made stricter, after a look."
    yield "- Learning rates are those of a second or third try. All networks but the two-layer ones were trained at"
    yield "  0.1 first (resnet18, mobilenet_v2, resnet34, resnet50; densenet121 was not finished), where some"
    yield "  trainings fell back between epochs; mobilenet_v2 also at 0.05. They were lowered for that reason, after a"
    yield "  look at the training and test accuracies of those runs, of which nothing is shown here."
    yield from shared_limits(studied)
    for source in (studied, more):
        if source is None:
            continue
        unfinished = [row.trial.label for row in source.evidence.rows if row.state != "done"]
        if unfinished:
            yield f"- Not trained to the end, and left out: {'; '.join(unfinished)}."
        yield from slow_starts(source)


def keep(studied: Studied, folder: Path) -> None:
    """Tables, figures, single values and some logits, as small files."""
    keep_tables(studied, folder, "")
    for name, figure in FIGURES.items():
        sheet = studied.sweep if name == "gamma_sweep" else figure.find(studied.evidence)
        if sheet.rows:
            write_text(folder / f"figure_{name}.csv", sheet.to_csv())
    write_text(folder / "values.csv", by_seed(studied).to_csv())
    outcomes = [studied.evidence.outcome(trial) for trial in studied.base("resnet18").trials]
    arrays = {f"test_logits_{index}": one.test.logits.astype(np.float16) for index, one in enumerate(outcomes)}
    write_arrays(folder / "resnet18_base.npz", {**arrays, "test_labels": outcomes[0].test.labels.astype(np.uint8)})


def keep_courses(more: Studied, folder: Path) -> None:
    """Findings over training, to five digits: there are many of them."""
    for name in ("over_training", "range_bounds", "range_errors", "bins_over_training", "logit_norms"):
        write_text(folder / f"more_figure_{name}.csv", shortened(more.over_training(name)).to_csv())


def shortened(sheet: Sheet) -> Sheet:
    rows = (tuple(_five_digits(cell) for cell in row) for row in sheet.rows)
    return replace(sheet, rows=tuple(rows))


def _five_digits(cell: Any) -> Any:
    if isinstance(cell, Spread):
        return replace(cell, mean=_five_digits(cell.mean), sd=_five_digits(cell.sd))
    return float(f"{cell:.5g}") if isinstance(cell, float) else cell


def keep_pictures(studied: Studied, more: Studied | None, folder: Path) -> None:
    """The pictures that the page shows, each of a part of its finding."""
    for name, (of_more, asked) in PICTURES.items():
        source = more if of_more else studied
        if source is None:
            continue
        sheet = FIGURES[name].find(source.evidence)
        kept = [each for each in sheet.records() if all(each[column] in some for column, some in asked.items())]
        rows = tuple(tuple(each.values()) for each in kept)
        draw(FIGURES[name].draw(replace(sheet, rows=rows)), folder / f"{name}.svg")


def draw(shown: Any, path: Path) -> None:
    """The same numbers make the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}), whole_file(path) as file:
        shown.savefig(file, format="svg", metadata={"Date": None})


PICTURES: dict[str, tuple[bool, dict[str, tuple[str, ...]]]] = {
    "hierarchy": (False, {}),
    "decay_rates": (False, {"model": ("cnn",), "class": ("Pullover", "Coat", "Shirt")}),
    "sharpness": (False, {"of": ("all classes", "Trouser", "Coat", "Shirt")}),
    "range_bounds": (True, {"model": ("cnn glorot",)}),
    "bins_over_training": (True, {"model": ("cnn glorot", "cnn normal")}),
    "logit_norms": (True, {"rows": ("validation",)}),
}


if __name__ == "__main__":
    main()
