"""What the Fashion-MNIST study says about claims in the literature: each with its numbers and a verdict.

    calibrant experiment run fashion_mnist --device cuda --store STORE
    calibrant experiment run fashion_mnist_more --device cuda --store MORE
    python scripts/fashion_mnist_study.py STORE --more MORE --out docs/fashion_mnist_study.md

Beside the page, a folder of its name takes the numbers of all tables and figures as CSV, the pictures that the page
shows, and the logits of the residual network without intervention. A verdict follows from its numbers by a rule that
the page states.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fashion_mnist_reading import (
    HIGHER,
    LEVEL,
    LOWER,
    SAME,
    Studied,
    compared,
    compared_models,
    in_points,
    markdown,
    picture,
    verdict,
)
from fashion_mnist_training import COURSES

from calibrant import diagnostics
from calibrant.errors.local import LocalCalibration
from calibrant.experiments import findings
from calibrant.experiments.evidence import Variant
from calibrant.experiments.figures import FIGURES
from calibrant.experiments.outcomes import write_arrays
from calibrant.experiments.sheets import Sheet, Spread
from calibrant.experiments.tables import TABLES, class_values
from calibrant.formats.writing import whole_file, write_text
from calibrant.inference.consistency import consistency
from calibrant.recalibrate.temperature import HOTTEST
from calibrant.recipes import likert

REFERRED = 0.2
CALIBRATED = 499
"""How many calibrated networks a distance is held against."""
NOTHING = 0.0005
"""An error below this is called none."""


def main() -> None:
    """Read the stores, write the page and the numbers."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("store", type=Path)
    asked.add_argument("--more", type=Path)
    asked.add_argument("--out", type=Path, required=True)
    given = asked.parse_args()
    folder = given.out.with_suffix("")
    studied = Studied(given.store)
    more = Studied(given.more) if given.more else None
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


def in_short(found: list[str]) -> Iterator[str]:
    """Every claim with the words of its verdict, and where it is from."""
    rows: list[list[str]] = []
    where, text = "", "\n".join(found).replace("**\n**", " ")
    parts = r"^## (.+)|^\*\*Claim(?: \((.+?)\))?: (.+?)\.?\*\*|^\*Verdict: (.+?)\*"
    for part in re.finditer(parts, text, re.MULTILINE):
        heading, source, claim, said = part.groups()
        if heading:
            where = heading.split(":")[0]
        elif claim:
            rows.append([claim, re.sub(r" (\d{4})$", r" (\1)", source or where), ""])
        else:
            rows[-1][-1] = said
    yield "## In short"
    yield ""
    yield from markdown(("claim", "of", "on these data"), rows)


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


def strengths(studied: Studied) -> Iterator[str]:
    seeds = ", ".join(map(str, studied.study.tuning_seeds))
    yield "## Strengths"
    yield ""
    yield f"Lowest validation ECE among those that lose at most {100 * studied.study.tuning.accuracy_loss:g} points"
    yield f"of accuracy (Kirchenbauer, Oaks & Heim 2022), on seed {seeds}; validation ECE in points, the chosen one"
    yield "in bold."
    yield ""
    yield from markdown(
        ["network", "intervention", "strength: validation ECE"],
        [
            [one.model, one.intervention, ", ".join(_candidate(one, each) for each in one.candidates)]
            for one in studied.evidence.choices
        ],
    )
    inner = [
        one
        for one in studied.evidence.choices
        if len(one.candidates) > 1 and one.strength == min(each.strength for each in one.candidates)
    ]
    several = [one for one in studied.evidence.choices if len(one.candidates) > 1]
    yield f"In {len(inner)} of {len(several)} grids the weakest strength was chosen."
    yield ""


def _candidate(choice: Any, each: Any) -> str:
    text = f"{each.strength:g}: {100 * each.error:.2f}"
    return f"**{text}**" if each.strength == choice.strength else text


# ----- Kirchenbauer, Oaks & Heim (2022)


def lower_ece_elsewhere(studied: Studied) -> Iterator[str]:
    measures = ["ECE", "top 2", "top 3", "top 5", "full", *studied.own]
    yield "## Kirchenbauer, Oaks & Heim (2022)"
    yield ""
    yield "**Claim: what lowers top-label ECE need not lower the errors of other questions.** Differences to the base:"
    yield ""
    rows, counts = [], {name: dict.fromkeys((LOWER, HIGHER, SAME), 0) for name in measures[1:]}
    rises: list[tuple[float, str]] = []
    for model in studied.models:
        for one in studied.after(model):
            found = [compared(studied, one, studied.base(model), name) for name in measures]
            rows.append([model, one.label, *found])
            if found[0].word == LOWER:
                for name, each in zip(measures[1:], found[1:], strict=True):
                    counts[name][each.word] += 1
                    rises += [(each.difference, f"{name}, {one.label} on {model}")] if each.word == HIGHER else []
    yield from markdown(["network", "method", *measures], rows)
    total = sum(next(iter(counts.values())).values())
    yield f"Of the {len(rows)} rows, {total} have a clearly lower ECE. Among these:"
    yield ""
    yield from markdown(["error", LOWER, HIGHER, SAME], [[name, *each.values()] for name, each in counts.items()])
    worse = [name for name, each in counts.items() if each[HIGHER]]
    few = [
        np.mean(
            [
                diagnostics.interval_counts(studied.evidence.predictions(trial), studied.study.likert)[0]
                for trial in some
            ]
        )
        for some in (studied.base(model).trials for model in studied.models)
    ]
    yield f"The lowest category of confidence holds {' and '.join(f'{each:.1f}' for each in few)} samples of the base"
    yield f"({' and '.join(studied.models)}): of it nothing can be said."
    yield ""
    fewer = sum(each[LOWER] for each in counts.values()) / max(1, total * len(counts))
    yield verdict(
        bool(worse),
        f"a clearly lower ECE came with a clearly higher error of another question for: {', '.join(worse) or 'none'}.",
        f"The largest such rises: {_largest(rises)}.",
        f"Yet the errors fell clearly together in {fewer:.0%} of the pairs of a row and an error.",
    )
    yield ""


def _largest(rises: list[tuple[float, str]], most: int = 4) -> str:
    return "; ".join(f"{name} {rise:+.2f}" for rise, name in sorted(rises, reverse=True)[:most]) or "none"


def rankings(studied: Studied) -> Iterator[str]:
    from scipy import stats

    measures = ["top 2", "top 5", "full", "SCE", "ACE", "TACE", "wsECE", *studied.own]
    yield "**Claim: the order of methods by ECE is not their order by other errors.** Kendall's tau between the"
    yield "order by ECE and the order by another error (1: the same, 0: unrelated), means over seeds; and the method"
    yield "that each error would choose."
    yield ""
    rows, taus, firsts = [], [], {}
    for name in ["ECE", *measures]:
        row: list[Any] = [name]
        for model in studied.models:
            every = studied.evidence.variants(model)
            means = [float(np.nanmean(studied.values(one, name))) for one in every]
            first = [float(np.nanmean(studied.values(one, "ECE"))) for one in every]
            tau = float(stats.kendalltau(first, means).statistic)
            best = every[int(np.argmin(means))].label
            firsts.setdefault(model, set()).add(best)
            taus += [tau] if name != "ECE" else []
            row += [f"{tau:.2f}", best]
        rows.append(row)
    header = ["error", *(text for model in studied.models for text in (f"{model}: tau", f"{model}: best"))]
    yield from markdown(header, rows)
    chosen = "; ".join(f"{model}: {len(found)}" for model, found in firsts.items())
    yield verdict(
        any(len(found) > 1 for found in firsts.values()),
        f"tau lies between {min(taus):.2f} and {max(taus):.2f}, and {len(rows)} errors choose different best methods",
        f"({chosen}).",
    )
    yield ""


def top_outputs(studied: Studied) -> Iterator[str]:
    yield "**Claim: every method lowers the largest output, and they differ in where the mass goes.** The mean of the"
    yield "k-th largest output less the base's, in points:"
    yield ""
    ks, rows, rises, total = (1, 2, 3, 5, 10), [], [], 0
    for model in studied.models:
        for one in studied.after(model):
            found = [compared(studied, one, studied.base(model), f"ranked({k})/output") for k in ks]
            rows.append([model, one.label, *found])
            total += 1
            rises += [f"{one.label} ({model})"] if found[0].word == HIGHER else []
    yield from markdown(["network", "method", *(f"k = {k}" for k in ks)], rows)
    lowered = sum(row[2].word == LOWER for row in rows)
    yield verdict(
        lowered == total,
        f"{lowered} of {total} lower it clearly, {len(rises)} raise it clearly: {', '.join(rises) or 'none'}.",
        partly=lowered > total / 2,
    )
    yield ""


def shrinking_cells(studied: Studied) -> Iterator[str]:
    yield "**Claim: the full error grows as the cells of its kd-tree shrink.**"
    yield f"Base, first seed, {studied.study.bootstrap} resamples of the rows:"
    yield ""
    found = [record for record in studied.sweep.records() if record["over"] == "gamma"]
    yield from markdown(
        ["network", "γ", "full ECE", "sd", "median cell"],
        [
            [each["model"], f"{each['setting']:g}", f"{100 * each['value']:.2f}", f"{100 * each['sd']:.2f}",
             f"{each['median cell']:.0f}"]
            for each in found
        ],
    )  # fmt: skip
    runs = [[each["value"] for each in found if each["model"] == model] for model in studied.models]
    grows = [all(np.diff(run) > 0) for run in runs]
    yield verdict(
        all(grows), f"the error grows at every step for {sum(grows)} of {len(grows)} networks.", partly=any(grows)
    )
    yield ""


def finer_groups(studied: Studied) -> Iterator[str]:
    yield "**Claim: the finer the groups of classes, the larger the error between them.** From the coarsest level to"
    yield "the classes themselves, in points:"
    yield ""
    sheet = findings.hierarchy(studied.evidence)
    levels = list(dict.fromkeys(record["level"] for record in sheet.records()))
    found: dict[tuple[str, str], list[Spread]] = {}
    for record in sheet.records():
        found.setdefault((record["model"], record["method"]), []).append(in_points(record["value"]))
    yield from markdown(["network", "method", *levels], [[*names, *cells] for names, cells in found.items()])
    grows = sum(all(np.diff([cell.mean for cell in cells]) > 0) for cells in found.values())
    yield picture("hierarchy", "Errors between ever finer groups of classes.")
    yield ""
    yield verdict(
        grows == len(found),
        f"the error grows at every step for {grows} of {len(found)} methods.",
        partly=grows > len(found) / 2,
    )
    yield ""


def within_categories(studied: Studied) -> Iterator[str]:
    category = list(likert(studied.study.likert))[1]
    metric = findings.within(studied.study.likert)[category]
    yield f"**Claim: in the middle category {category} the distance of categories finds no error, the total variation**"
    yield f"**distance one for every method.** In points; p: the share of {CALIBRATED} calibrated networks with the"
    yield "same forecasts that would show so large a total variation distance by chance, the median over seeds:"
    yield ""
    rows, silent, loud = [], 0, 0
    for model in studied.models:
        for one in studied.evidence.variants(model):
            apart = studied.values(one, f"category {category}")
            inside = studied.evidence.values_of(one, f"likert_tvd: {category}", metric)
            answers = (studied.evidence.predictions(trial, one.method) for trial in one.trials)
            nulls = [consistency(metric, each, n=CALIBRATED, seed=0) for each in answers]
            chance, pvalue = np.mean([each.mean for each in nulls]), np.median([each.p_value for each in nulls])
            found = [Spread.of(each, digits=2, factor=100.0) for each in (apart, inside)]
            rows.append([model, one.label, *found, f"{100 * chance:.2f}", f"{pvalue:.3f}"])
            silent += bool(found[0].mean < 100 * NOTHING)
            loud += bool(pvalue < LEVEL)
    header = ["network", "method", "distance of categories", "total variation", "expected by chance", "p"]
    yield from markdown(header, rows)
    yield verdict(
        silent == loud == len(rows),
        f"the distance of categories is below {100 * NOTHING:g} points for {silent} of {len(rows)} methods; the total",
        f"variation distance is at least {min(row[3].mean for row in rows):.2f} points, but larger than chance",
        f"explains, at {LEVEL:g}, for {loud} of them: few samples lie in the category, and most of it is their noise.",
        partly=loud > 0 and silent > len(rows) / 2,
    )
    yield ""


# ----- Nixon et al. (2019)


def vector_against_temperature(studied: Studied) -> Iterator[str]:
    yield "## Nixon et al. (2019)"
    yield ""
    yield "**Claim: temperature scaling is best by ECE, vector scaling by SCE and ACE.** The base before and after:"
    yield ""
    measures = ("ECE", "TACE", "SCE", "ACE")
    rows, words, best = [], {}, {}
    for model in studied.models:
        plain = [one for one in studied.evidence.variants(model) if one.intervention == "none"]
        for one in plain:
            rows.append([model, one.method or "as it is", *(studied.spread(one, name) for name in measures)])
        for name in measures:
            vector, temperature = studied.method(model, "vector"), studied.method(model, "temperature")
            words[model, name] = compared(studied, vector, temperature, name)
            best[model, name] = min(plain, key=lambda one: float(np.nanmean(studied.values(one, name)))).method
    yield from markdown(["network", "method", *measures], rows)
    yield "Vector scaling less temperature scaling, paired by seed, and the best of all methods:"
    yield ""
    yield from markdown(
        ["network", *(text for name in measures for text in (name, f"best by {name}"))],
        [
            [model, *(cell for name in measures for cell in (words[model, name], best[model, name] or "as it is"))]
            for model in studied.models
        ],
    )
    won = [
        f"{name} of {model}" for (model, name), each in words.items() if name in ("SCE", "ACE") and each.word == LOWER
    ]
    lost = [
        f"{name} of {model}" for (model, name), each in words.items() if name in ("SCE", "ACE") and each.word == HIGHER
    ]
    kept = [model for model in studied.models if best[model, "ECE"] == "temperature"]
    holds = len(won) == 2 * len(studied.models) and len(kept) == len(studied.models)
    yield verdict(
        holds,
        f"vector scaling is clearly better than temperature scaling by {', '.join(won) or 'neither SCE nor ACE'}",
        f"and clearly worse by {', '.join(lost) or 'none of them'}; temperature scaling is the best of all by ECE for",
        f"{', '.join(kept) or 'no network'}.",
        partly=bool(won) and not lost,
    )
    yield ""


def fitting(studied: Studied) -> Iterator[str]:
    yield "**Claim: as a network fits its training rows, the error there goes to 0 and on others it grows.** ECE in"
    yield "points, base, means over seeds:"
    yield ""
    rows, vanishes, grows = [], [], []
    for model in studied.models:
        outcomes = [studied.evidence.outcome(trial) for trial in studied.base(model).trials]
        column = outcomes[0].names.index("ece")
        curves = 100 * np.mean([outcome.curves[:, :, column] for outcome in outcomes], axis=0)
        accuracy = 100 * np.mean([outcome.curves[-1, 0, outcome.names.index("accuracy")] for outcome in outcomes])
        lowest = int(np.argmin(curves[:, 1]))
        cells = (accuracy, curves[:, 0].max(), curves[-1, 0], curves[lowest, 1], curves[-1, 1])
        rows.append([model, *(f"{cell:.2f}" for cell in cells), outcomes[0].epochs[lowest]])
        vanishes.append(bool(curves[-1, 0] < 0.5))
        grows.append(bool(curves[-1, 1] > 2 * curves[lowest, 1]))
    header = ["network", "last training accuracy", "worst ECE, training", "last, training", "lowest ECE, validation"]
    yield from markdown([*header, "last, validation", "epoch of the lowest"], rows)
    yield verdict(
        all(vanishes + grows),
        f"on training rows the last ECE is below half a point for {sum(vanishes)} of {len(vanishes)} networks; on",
        f"validation rows it is more than twice its lowest for {sum(grows)} of {len(grows)}.",
        partly=any(vanishes + grows),
    )
    yield ""


def classes_differ(studied: Studied) -> Iterator[str]:
    yield "**Claim: calibration differs between classes, which ECE does not show.** TACE of each class, base, in"
    yield "points:"
    yield ""
    rows, ratios = [], []
    for model in studied.models:
        found = {
            label: 100 * np.mean(some)
            for label, some in class_values(studied.evidence, studied.base(model), "tace").items()
        }
        low, high = min(found, key=lambda label: found[label]), max(found, key=lambda label: found[label])
        ratios.append(found[high] / found[low])
        rows.append([model, f"{low}: {found[low]:.2f}", f"{high}: {found[high]:.2f}", f"{ratios[-1]:.1f}"])
    yield from markdown(["network", "best class", "worst class", "ratio"], rows)
    yield verdict(min(ratios) > 2, f"the worst class has at least {min(ratios):.1f} times the error of the best.")
    yield ""


def nearby(studied: Studied) -> Iterator[str]:
    yield "**Claim: the frequency near a single forecast is biased upwards near 0 and downwards near 1, and does not**"
    yield "**depend on the number of grid points.** Base; means over classes and over forecasts of 0.05, 0.10, ..,"
    yield "0.95, in points. Noise: the standard deviation over seeds; moved: the mean distance to the curve of decay"
    yield f"rate {findings.NEARBY.decay:g}."
    yield ""
    sheet = findings.decay_rates(studied.evidence)
    rows, biased = [], []
    for model in studied.models:
        usual = _curve(sheet, model, findings.NEARBY.decay)[0]
        for decay in findings.DECAYS:
            means, noise, points = _curve(sheet, model, decay)
            less = (means - points).mean(axis=0)
            biased += [bool(less[0] > 0 > less[-1])]
            sizes = (np.abs(means - points).mean(), noise.mean(), np.abs(means - usual).mean())
            cells = [f"{100 * size:.2f}" for size in sizes] + [f"{100 * bias:+.2f}" for bias in (less[0], less[-1])]
            rows.append([model, f"{decay:g}", *cells])
    header = ["network", "decay rate", "distance to the forecast", "noise", "moved", "bias at 0.05", "bias at 0.95"]
    yield from markdown(header, rows)
    apart = {cells: max(_moved(studied, model, cells) for model in studied.models) for cells in (50, 200)}
    told = " and ".join(f"{100 * value:.2f} points for {cells}" for cells, value in apart.items())
    yield picture("decay_rates", "Frequency near a forecast by decay rate: three classes of the two-layer network.")
    yield ""
    yield verdict(
        all(biased) and max(apart.values()) < 0.01,
        f"the bias has these signs in {sum(biased)} of {len(biased)} rows; another number of grid cells than",
        f"{findings.NEARBY.cells} moves the curves by {told} cells, on average over forecasts and classes. Where the",
        "decay is slow, the estimate is drawn to what happens near 0 and near 1, where almost all forecasts lie.",
        partly=all(biased) or max(apart.values()) < 0.01,
    )
    yield ""


def _curve(sheet: Sheet, model: str, decay: float) -> tuple[Any, Any, Any]:
    """Means and standard deviations (classes, forecasts), and the forecasts, without 0 and 1."""
    asked = [record for record in sheet.records() if record["model"] == model and record["decay"] == decay]
    points = sorted({record["forecast"] for record in asked})[1:-1]
    inner = [record["frequency"] for record in asked if record["forecast"] in points]
    shape = (-1, len(points))
    means, noise = ([getattr(each, name) for each in inner] for name in ("mean", "sd"))
    return np.reshape(means, shape), np.reshape(noise, shape), np.array(points)


def _moved(studied: Studied, model: str, cells: int) -> float:
    """How far the curves of the base's first seed move when the grid has another number of cells."""
    predictions = studied.evidence.predictions(studied.base(model).trials[0])
    points = np.arange(1, 20) / 20 + 0.0035  # on no grid: there the cells cannot matter
    usual, other = (LocalCalibration(cells=each).fit(predictions) for each in (findings.NEARBY.cells, cells))
    return float(np.mean([np.abs(usual(points, k) - other(points, k)) for k in range(len(usual.values))]))


def sharp(studied: Studied) -> Iterator[str]:
    yield "**Claim: forecasts are sharp.** Shares of all forecasts of the base over all classes, test rows:"
    yield ""
    sheet, rows, ends = findings.sharpness(studied.evidence), [], []
    for model in studied.models:
        found = [each for each in sheet.records() if each["model"] == model and each["of"] == "all classes"]
        shares = [found[0]["share"].mean, sum(each["share"].mean for each in found[1:-1]), found[-1]["share"].mean]
        ends.append(shares[0] + shares[2])
        rows.append([model, *(f"{share:.2%}" for share in shares)])
    yield from markdown(["network", "up to 0.05", "between", "above 0.95"], rows)
    yield picture("sharpness", "Shares of forecasts by their size, all classes and three of them.")
    yield ""
    yield verdict(min(ends) > 0.9, f"at least {min(ends):.1%} of the forecasts lie within 0.05 of 0 or 1.")
    yield ""


# ----- Ao, Rueger & Siddharthan (2023)


def overshoot(studied: Studied) -> Iterator[str]:
    yield "## Ao, Rueger & Siddharthan (2023)"
    yield ""
    yield "**Claim: networks trained by cross-entropy are over-confident, and interventions overshoot into**"
    yield "**under-confidence.** MCS is confidence less accuracy; a network that is calibrated has about half of its"
    yield "classes on either side by chance alone."
    yield ""
    rows, over, beyond, total = [], 0, [], 0
    for model in studied.models:
        for one in studied.evidence.variants(model):
            if one.method not in ("", "temperature", "cwmcs"):
                continue
            mcs = 100 * studied.values(one, "mcs")
            parts = ("value", "mean_under", "share_under", "mean_over", "share_over")
            cells = (studied.spread(one, "wsmcs", part) for part in parts)
            rows.append([model, one.label, Spread.of(mcs, digits=2), *cells])
            word = _against_zero(mcs)
            over += one.is_base and word == HIGHER
            total += not one.is_base and not one.method
            beyond += [f"{one.label} ({model})"] if word == LOWER and not one.method else []
    header = ["network", "method", "MCS", "wsMCS", "mean under", "classes under %", "mean over", "classes over %"]
    yield from markdown(header, rows)
    yield verdict(
        over == len(studied.models) and len(beyond) == total,
        f"{over} of {len(studied.models)} base networks are clearly over-confident; of {total} interventions",
        f"{len(beyond)} are clearly under-confident: {', '.join(beyond) or 'none'}.",
        "Strengths were chosen by validation ECE, which guards against overshooting; those that were given were not.",
        partly=bool(beyond),
    )
    yield ""


def _against_zero(values: Any) -> str:
    from scipy import stats

    pvalue = float(stats.ttest_1samp(values, 0.0).pvalue)
    return SAME if not pvalue < LEVEL else HIGHER if values.mean() > 0 else LOWER


def class_wise(studied: Studied) -> Iterator[str]:
    yield "**Claim: class-wise temperatures (cwMCS) are better than one temperature, and keep the accuracy.** cwMCS"
    yield "less temperature scaling, paired by seed, in points; of MCS and wsMCS the size:"
    yield ""
    rows, words = [], []
    for model in studied.models:
        pair = studied.method(model, "cwmcs"), studied.method(model, "temperature")
        errors = [compared(studied, *pair, name) for name in ("ECE", "wsECE", "SCE")]
        errors += [compared(studied, *pair, name, size=True) for name in ("mcs", "wsmcs")]
        accuracy = compared(studied, *pair, "accuracy")
        rows.append([model, *errors, accuracy, f"{accuracy.before} → {accuracy.after}"])
        words.append((errors, accuracy))
    header = ["network", "ECE", "wsECE", "SCE", "size of MCS", "size of wsMCS", "accuracy", "accuracy before → after"]
    yield from markdown(header, rows)
    better = sum(each.word == LOWER for errors, _ in words for each in errors)
    worse = sum(each.word == HIGHER for errors, _ in words for each in errors)
    total = sum(len(errors) for errors, _ in words)
    lost = [model for model, (_, each) in zip(studied.models, words, strict=True) if each.difference < 0]
    yield verdict(
        better > total / 2 and not lost,
        f"of {total} errors {better} are clearly lower and {worse} clearly higher than with one temperature;",
        f"accuracy is lower on average for {', '.join(lost) or 'no network'}. Logits divided by a temperature of their",
        "class can change their order, so nothing keeps the accuracy by construction.",
        partly=better > worse and better > 0,
    )
    yield ""


def failures(studied: Studied) -> Iterator[str]:
    yield f"**Claim: recalibration helps to find failures.** Accuracy of the rest when the {REFERRED:.0%} of the"
    yield "samples with the largest entropy are referred, in points:"
    yield ""
    rows, gains = [], {}
    for model in studied.models:
        found = {one.label: _rest(studied, one) for one in studied.evidence.variants(model)}
        base = found.pop(studied.base(model).label)
        rows.append([model, "base", Spread.of(base, digits=2), ""])
        for label, values in found.items():
            gains[model, label] = float(np.mean(values) - np.mean(base))
            rows.append([model, label, Spread.of(values, digits=2), f"{gains[model, label]:+.2f}"])
    yield from markdown(["network", "method", "accuracy of the rest", "less the base's"], rows)
    chosen = {key: value for key, value in gains.items() if key[1] in ("temperature", "cwmcs")}
    told = ", ".join(f"{label} of {model} {value:+.2f}" for (model, label), value in chosen.items())
    class_wins = all(gains[model, "cwmcs"] > max(0.0, gains[model, "temperature"]) for model in studied.models)
    yield verdict(class_wins, f"{told}.", partly=all(value > 0 for value in chosen.values()))
    yield ""


def _rest(studied: Studied, one: Variant) -> Any:
    kept = studied.values(one, "accuracy")
    trials = [trial for trial, value in zip(one.trials, kept, strict=True) if not np.isnan(value)]
    curves = (diagnostics.risk_coverage(studied.evidence.predictions(trial, one.method)) for trial in trials)
    return np.array([100 * curve.accuracy_after_referring(REFERRED) for curve in curves])


CLAIMS: tuple[Callable[[Studied], Iterator[str]], ...] = (
    lower_ece_elsewhere, rankings, top_outputs, shrinking_cells, finer_groups, within_categories,
    vector_against_temperature, fitting, classes_differ, nearby, sharp,
    overshoot, class_wise, failures,
)  # fmt: skip


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


def tables(studied: Studied) -> Iterator[str]:
    yield "## All metrics"
    yield ""
    yield "In points but for the log loss and the Brier score."
    yield ""
    plain = ("log_loss", "brier")
    names = studied.study.metrics
    for model in studied.models:
        yield f"### {model}"
        yield ""
        yield from markdown(
            ["method", *names],
            [
                [one.label, *(studied.spread(one, name, factor=1.0 if name in plain else 100.0) for name in names)]
                for one in studied.evidence.variants(model)
            ],
        )


def limits(studied: Studied, more: Studied | None) -> Iterator[str]:
    yield "## What these numbers cannot say"
    yield ""
    seeds = ", ".join(map(str, studied.study.tuning_seeds))
    yield "- One data set of ten classes, most networks accurate on it: claims about a thousand classes (errors of"
    yield "  the top 100, say) are not tested, and groups of classes are few."
    yield f"- Strengths were tuned on seed {seeds} alone, which is also one of the seeds that are reported."
    yield "- The rules of the verdicts were not fixed before any number was known; some were written after a look."
    yield "- Learning rates are those of a second or third try. All networks but the two-layer ones were trained at"
    yield "  0.1 first (resnet18, mobilenet_v2, resnet34, resnet50; densenet121 was not finished), where some"
    yield "  trainings fell back between epochs; mobilenet_v2 also at 0.05. They were lowered for that reason, after a"
    yield "  look at the training and test accuracies of those runs, of which nothing is shown here."
    yield "- All networks share the split of the training rows and the test rows: spreads over seeds hold no sampling"
    yield "  error of those rows."
    for source in (studied, more):
        if source is None:
            continue
        unfinished = [row.trial.label for row in source.evidence.rows if row.state != "done"]
        if unfinished:
            yield f"- Not trained to the end, and left out: {'; '.join(unfinished)}."
        yield from slow_starts(source)


def slow_starts(studied: Studied) -> Iterator[str]:
    """Trainings whose accuracy fell by more than ten points between epochs, and settings whose seeds differ."""
    for model in studied.models:
        for one in (studied.base(model), *studied.interventions(model)):
            told = []
            for trial, value in zip(one.trials, studied.values(one, "accuracy"), strict=True):
                outcome = studied.evidence.outcome(trial)
                curve = outcome.curves[:, 0, outcome.names.index("accuracy")]
                if np.diff(curve).min() < -0.1:
                    epoch = int(outcome.epochs[np.diff(curve).argmin() + 1])
                    told.append(f"seed {studied.seed[trial]} in epoch {epoch} (test accuracy {100 * value:.2f})")
            if told:
                yield f"- The training of {model}, {one.label} fell by more than ten points of training accuracy:"
                yield f"  {', '.join(told)}. It is left out of no mean."
    for model in studied.models:
        for one in (studied.base(model), *studied.interventions(model)):
            found = 100 * studied.values(one, "accuracy")
            if np.ptp(found) > 1:
                seeds = ", ".join(f"{value:.2f}" for value in found)
                yield f"- Test accuracies of {model}, {one.label} differ by more than a point between seeds: {seeds}."


# ----- numbers


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


def keep_tables(studied: Studied, folder: Path, prefix: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        write_text(folder / f"{prefix}{name}.csv", table(studied.evidence).to_csv())


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
"""Which study a picture is of, and which rows of its finding it shows."""


def by_seed(studied: Studied) -> Sheet:
    """Every metric of every variant and seed, a row each."""
    rows = [
        (one.model, one.label, studied.seed[trial], name, float(value))
        for one in studied.evidence.variants()
        for name in studied.study.metrics
        for trial, value in zip(one.trials, studied.values(one, name), strict=True)
    ]
    return Sheet("values", "Every value", ("model", "method", "seed", "metric", "value"), tuple(rows))


if __name__ == "__main__":
    main()
