"""What a study says about claims in the literature: each with its numbers and a verdict, as lines of a page.

A verdict follows from its numbers by a rule that stands here, beside what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from study_reading import HIGHER, LEVEL, LOWER, SAME, Studied, compared, in_points, markdown, verdict

from calibrant import diagnostics
from calibrant.errors.local import LocalCalibration
from calibrant.errors.mean_score import entropy
from calibrant.experiments.findings import figure_rows
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.findings.tables import class_values
from calibrant.experiments.running.evidence import Variant
from calibrant.inference.consistency import consistency
from calibrant.recipes import TACE, likert

NIXON = ("temperature", "vector", "matrix", "isotonic")
"""What they compare."""
REFERRED = 0.2
CHANCES = 199
"""How many calibrated networks classes are held against."""
CALIBRATED = 499
"""How many calibrated networks a distance is held against."""
NOTHING = 0.0005
"""An error below this is called none."""


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
    weakest = [
        one
        for one in studied.evidence.choices
        if len(one.candidates) > 1 and one.strength == min(each.strength for each in one.candidates)
    ]
    several = [one for one in studied.evidence.choices if len(one.candidates) > 1]
    yield f"In {len(weakest)} of {len(several)} grids the weakest strength was chosen."
    yield ""


def _candidate(choice: Any, each: Any) -> str:
    text = f"{each.strength:g}: {100 * each.error:.2f}"
    return f"**{text}**" if each.strength == choice.strength else text


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
    yield f"({' and '.join(studied.models)}){': of it nothing can be said' if max(few) < 20 else ''}."
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
    reversed_, clear = _reversals(studied, measures)
    yield verdict(
        reversed_ > LEVEL * clear,
        f"tau lies between {min(taus):.2f} and {max(taus):.2f}, and {len(rows)} errors choose different best methods",
        f"({chosen}). Of {clear:,} comparisons of two methods that ECE and another error tell apart clearly,",
        f"{reversed_:,} come out the other way round; more than {LEVEL:.0%} of them are taken to be more than chance.",
    )
    yield ""


def _reversals(studied: Studied, measures: list[str]) -> tuple[int, int]:
    """How many pairs of methods another error clearly orders against ECE, of how many that both tell apart clearly."""
    reversed_ = clear = 0
    for model in studied.models:
        for one, other in combinations(studied.evidence.variants(model), 2):
            first = compared(studied, one, other, "ECE").word
            if first == SAME:
                continue
            words = [compared(studied, one, other, name).word for name in measures]
            clear += sum(word != SAME for word in words)
            reversed_ += sum(word not in (SAME, first) for word in words)
    return reversed_, clear


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
    sheet = figure_rows.hierarchy(studied.evidence)
    levels = list(dict.fromkeys(record["level"] for record in sheet.records()))
    found: dict[tuple[str, str], list[Spread]] = {}
    for record in sheet.records():
        found.setdefault((record["model"], record["method"]), []).append(in_points(record["value"]))
    yield from markdown(["network", "method", *levels], [[*names, *cells] for names, cells in found.items()])
    grows = sum(all(np.diff([cell.mean for cell in cells]) > 0) for cells in found.values())
    yield from studied.picture("hierarchy", "Errors between ever finer groups of classes.")
    yield verdict(
        grows == len(found),
        f"the error grows at every step for {grows} of {len(found)} methods.",
        partly=grows > len(found) / 2,
    )
    yield ""


def within_categories(studied: Studied) -> Iterator[str]:
    category = list(likert(studied.study.likert))[1]
    metric = figure_rows.within(studied.study.likert)[category]
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
    few = ": few samples lie in the category, and most of it is their noise"
    header = ["network", "method", "distance of categories", "total variation", "expected by chance", "p"]
    yield from markdown(header, rows)
    yield verdict(
        silent == loud == len(rows),
        f"the distance of categories is below {100 * NOTHING:g} points for {silent} of {len(rows)} methods; the total",
        f"variation distance is at least {min(row[3].mean for row in rows):.2f} points, and larger than chance",
        f"explains, at {LEVEL:g}, for {loud} of them{few if loud < len(rows) / 2 else ''}.",
        partly=loud > 0 and silent > len(rows) / 2,
    )
    yield ""


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
            theirs = [one for one in plain if one.method in ("", *NIXON)]
            best[model, name] = min(theirs, key=lambda one: float(np.nanmean(studied.values(one, name)))).method
    yield from markdown(["network", "method", *measures], rows)
    yield f"Vector scaling less temperature scaling, paired by seed, and the best of {', '.join(NIXON)}:"
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
        f"and clearly worse by {', '.join(lost) or 'none of them'}; temperature scaling is the best of them by ECE for",
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
    yield "points, and how far apart classes are once the noise floor of each is taken off (first seed); p: the share"
    yield f"of {CHANCES} calibrated networks with the same forecasts whose classes are as far apart:"
    yield ""
    rows, chances = [], []
    for model in studied.models:
        found = {
            label: 100 * np.mean(some)
            for label, some in class_values(studied.evidence, studied.base(model), "tace").items()
        }
        low, high = min(found, key=lambda label: found[label]), max(found, key=lambda label: found[label])
        null = consistency(TACE, studied.evidence.predictions(studied.base(model).trials[0]), n=CHANCES, seed=0)
        floors = null.parts.mean(axis=0)
        seen, drawn = np.ptp(np.array(null.result.values) - floors), np.ptp(null.parts - floors, axis=1)
        chances.append(float((1 + (drawn >= seen).sum()) / (1 + len(drawn))))
        cells = (f"{100 * seen:.2f}", f"{100 * np.median(drawn):.2f}", f"{chances[-1]:.3f}")
        rows.append([model, f"{low}: {found[low]:.2f}", f"{high}: {found[high]:.2f}", *cells])
    yield from markdown(["network", "best class", "worst class", "apart", "apart by chance", "p"], rows)
    yield verdict(
        max(chances) < LEVEL,
        f"classes are farther apart than chance explains, at {LEVEL:g}, for",
        f"{sum(chance < LEVEL for chance in chances)} of {len(chances)} networks.",
        partly=min(chances) < LEVEL,
    )
    yield ""


def nearby(studied: Studied) -> Iterator[str]:
    yield "**Claim: the frequency near a single forecast is biased upwards near 0 and downwards near 1, and does not**"
    yield "**depend on the number of grid points.** Base; means over classes and over forecasts of 0.05, 0.10, ..,"
    yield "0.95, in points. Noise: the standard deviation over seeds; moved: the mean distance to the curve of decay"
    yield f"rate {figure_rows.NEARBY.decay:g}."
    yield ""
    sheet = figure_rows.decay_rates(studied.evidence)
    rows, biased = [], []
    for model in studied.models:
        usual = _curve(sheet, model, figure_rows.NEARBY.decay)[0]
        for decay in figure_rows.DECAYS:
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
    yield from studied.picture("decay_rates", "Frequency near a forecast by decay rate: three classes.")
    yield verdict(
        all(biased) and max(apart.values()) < 0.01,
        f"the bias has these signs in {sum(biased)} of {len(biased)} rows; another number of grid cells than",
        f"{figure_rows.NEARBY.cells} moves the curves by {told} cells, "
        "on average over forecasts and classes; less than",
        "one is taken as not at all. Where the decay is slow, the estimate is drawn to where most forecasts lie.",
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
    usual, other = (LocalCalibration(cells=each).fit(predictions) for each in (figure_rows.NEARBY.cells, cells))
    return float(np.mean([np.abs(usual(points, k) - other(points, k)) for k in range(len(usual.values))]))


def sharp(studied: Studied) -> Iterator[str]:
    yield "**Claim: forecasts are sharp.** Shares of all forecasts of the base over all classes, test rows:"
    yield ""
    sheet, rows, ends = figure_rows.sharpness(studied.evidence), [], []
    for model in studied.models:
        found = [each for each in sheet.records() if each["model"] == model and each["of"] == "all classes"]
        shares = [found[0]["share"].mean, sum(each["share"].mean for each in found[1:-1]), found[-1]["share"].mean]
        ends.append(shares[0] + shares[2])
        rows.append([model, *(f"{share:.2%}" for share in shares)])
    yield from markdown(["network", "up to 0.05", "between", "above 0.95"], rows)
    yield from studied.picture("sharpness", "Shares of forecasts by their size, all classes and three of them.")
    yield verdict(min(ends) > 0.9, f"at least {min(ends):.1%} of the forecasts lie within 0.05 of 0 or 1.")
    yield ""


def overshoot(studied: Studied) -> Iterator[str]:
    yield "## Ao, Rueger & Siddharthan (2023)"
    yield ""
    yield "**Claim: networks trained by cross-entropy are over-confident, and interventions overshoot into**"
    yield "**under-confidence.** MCS is confidence less accuracy, wsMCS the same by true classes."
    yield ""
    rows, over, beyond, total = [], [], [], 0
    for model in studied.models:
        is_over = _against_zero(100 * studied.values(studied.base(model), "mcs")) == HIGHER
        over += [model] if is_over else []
        for one in studied.evidence.variants(model):
            if one.method not in ("", "temperature", "cwmcs"):
                continue
            mcs = 100 * studied.values(one, "mcs")
            parts = ("value", "mean_under", "share_under", "mean_over", "share_over")
            cells = (studied.spread(one, "wsmcs", part) for part in parts)
            rows.append([model, one.label, Spread.of(mcs, digits=2), *cells])
            word, retrained = _against_zero(mcs), is_over and not one.is_base and not one.method
            total += retrained
            beyond += [f"{one.label} ({model})"] if word == LOWER and retrained else []
    header = ["network", "method", "MCS", "wsMCS", "mean under", "classes under %", "mean over", "classes over %"]
    yield from markdown(header, rows)
    yield verdict(
        len(over) == len(studied.models) and len(beyond) == total,
        f"{len(over)} of {len(studied.models)} base networks are clearly over-confident ({', '.join(over) or 'none'});",
        f"of {total} interventions on these, {len(beyond)} are clearly under-confident: {', '.join(beyond) or 'none'}.",
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
    from scipy import stats

    yield "**Claim: class-wise temperatures (cwMCS) help to find failures.** Accuracy of the rest when the"
    yield f"{REFERRED:.0%} of the samples with the largest entropy are referred, in points:"
    yield ""
    rows, gains, clear, worse = [], {}, {}, False
    for model in studied.models:
        found = {one.label: _rest(studied, one) for one in studied.evidence.variants(model)}
        base = found.pop(studied.base(model).label)
        rows.append([model, "base", Spread.of(base, digits=2), ""])
        for label, values in found.items():
            gains[model, label] = float(np.mean(values) - np.mean(base))
            if label == "cwmcs":
                apart = bool(stats.ttest_rel(values, base).pvalue < LEVEL)
                clear[model] = apart and gains[model, label] > 0
                worse |= apart and gains[model, label] < 0
            rows.append([model, label, Spread.of(values, digits=2), f"{gains[model, label]:+.2f}"])
    yield from markdown(["network", "method", "accuracy of the rest", "less the base's"], rows)
    chosen = {key: value for key, value in gains.items() if key[1] in ("temperature", "cwmcs")}
    told = ", ".join(f"{label} of {model} {value:+.2f}" for (model, label), value in chosen.items())
    others = [f"{label} of {model} {value:+.2f}" for (model, label), value in gains.items() if value > 0.5]
    yield verdict(
        all(clear.values()),
        f"{told}; with cwMCS clearly more than the base for {', '.join(filter(clear.get, clear)) or 'none'}.",
        f"Of all methods, more than half a point: {', '.join(others) or 'none'}.",
        partly=any(clear.values()) and not worse,
    )
    yield ""


def _rest(studied: Studied, one: Variant) -> Any:
    kept = studied.values(one, "accuracy")
    trials = [trial for trial, value in zip(one.trials, kept, strict=True) if not np.isnan(value)]
    every = (studied.evidence.predictions(trial, one.method) for trial in trials)
    curves = (diagnostics.risk_coverage(predictions, entropy) for predictions in every)
    return np.array([100 * curve.accuracy_after_referring(REFERRED) for curve in curves])


CLAIMS: tuple[Callable[[Studied], Iterator[str]], ...] = (
    lower_ece_elsewhere, rankings, top_outputs, shrinking_cells, finer_groups, within_categories,
    vector_against_temperature, fitting, classes_differ, nearby, sharp,
    overshoot, class_wise, failures,
)  # fmt: skip


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


def shared_limits(studied: Studied) -> Iterator[str]:
    """What no study of this kind can say."""
    seeds = ", ".join(map(str, studied.study.tuning_seeds))
    yield f"- Strengths were tuned on seed {seeds} alone, which is also one of the seeds that are reported."
    yield "- All networks share the split of the training rows and the test rows: spreads over seeds hold no sampling"
    yield "  error of those rows."


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
