"""What the Fashion-MNIST study says about claims in the literature: each with its numbers and a verdict.

    calibrant experiment run fashion_mnist --device cuda --store STORE
    calibrant experiment run fashion_mnist_more --device cuda --store MORE
    python scripts/fashion_mnist_study.py STORE --more MORE --out docs/fashion_mnist_study.md

Beside the page, a folder of its name takes the numbers of all tables and figures as CSV, and the logits of the residual
network without intervention. A verdict follows from its numbers by a rule that the page states.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import diagnostics
from calibrant.errors.binned import BinnedError
from calibrant.experiments import runner
from calibrant.experiments.evidence import Evidence, Variant
from calibrant.experiments.figures import FIGURES
from calibrant.experiments.findings import gamma_sweep
from calibrant.experiments.outcomes import write_arrays
from calibrant.experiments.sheets import Sheet, Spread
from calibrant.experiments.tables import TABLES, class_values
from calibrant.formats.writing import write_text
from calibrant.lenses import Groups
from calibrant.metric import Metric
from calibrant.recalibrate.temperature import HOTTEST
from calibrant.recipes import FULL_ECE, likert

LEVEL = 0.05
"""A difference is clear where a t test over seeds rejects that there is none at this level."""
REFERRED = 0.2
LOWER, HIGHER, SAME = "lower", "higher", "no clear difference"


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
    write_text(given.out, "\n".join(line.rstrip() for line in page(studied, more)) + "\n")


class Studied:
    """A store, asked for values by seed."""

    def __init__(self, folder: Path) -> None:
        self.evidence = Evidence(*runner.reopen(folder))
        self.study = self.evidence.study
        self.seed = {row.trial.id: row.trial.seed for row in self.evidence.rows}
        self.own = self._own()

    @property
    def models(self) -> list[str]:
        """The networks of which there is something."""
        return [model.title for model in self.study.models if self.evidence.variants(model.title)]

    def base(self, model: str) -> Variant:
        """A network without intervention."""
        return self.evidence.variants(model)[0]

    def after(self, model: str) -> list[Variant]:
        """What is held against the base: interventions at their chosen strengths, and post-processing."""
        return self.evidence.variants(model)[1:]

    def interventions(self, model: str) -> list[Variant]:
        """The base retrained."""
        return [one for one in self.after(model) if not one.method]

    def method(self, model: str, name: str) -> Variant:
        """The base after a method."""
        return next(one for one in self.after(model) if one.method == name and one.intervention == "none")

    def values(self, variant: Variant, measure: str, part: str = "value") -> Any:
        """A measure for each seed."""
        if measure in self.own:
            name, metric = self.own[measure]
            return self.evidence.values_of(variant, name, metric, part)
        return self.evidence.values(variant, SPELLED.get(measure, measure), part)

    def spread(self, variant: Variant, measure: str, part: str = "value", factor: float = 100.0) -> Spread:
        """Mean and standard deviation over seeds, in points."""
        return Spread.of(self.values(variant, measure, part), digits=2, factor=factor)

    @cached_property
    def sweep(self) -> Sheet:
        """The full error against the size of cells: minutes of resampling, done once."""
        return gamma_sweep(self.evidence)

    def _own(self) -> dict[str, tuple[str, Metric]]:
        """Measures without a spelling, under the names that figures keep them by."""
        levels = self.evidence.outcome(self.base(self.models[0]).trials[0]).hierarchy
        made: dict[str, tuple[str, Metric]] = {
            level: (f"groups: {level}", BinnedError(lens=Groups(members), binning=FULL_ECE.binning))
            for level, members in levels.items()
        }
        for name, metric in likert(self.study.likert).items():
            made[f"category {name}"] = (f"likert_errors: {name}", metric)
        return made


SPELLED = {
    "ECE": "ece", "SCE": "sce", "ACE": "ace", "TACE": "tace", "full": "full_ece", "wsECE": "wsece",
    **{f"top {k}": f"top_k({k})/kdtree(0.1)" for k in range(1, 11)},
}  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A measure of one variant less that of another, in points."""

    after: Spread
    before: Spread
    pvalue: float

    @property
    def difference(self) -> float:
        return self.after.mean - self.before.mean

    @property
    def word(self) -> str:
        if not self.pvalue < LEVEL:
            return SAME
        return LOWER if self.difference < 0 else HIGHER

    def __str__(self) -> str:
        mark = {LOWER: " ↓", HIGHER: " ↑", SAME: ""}[self.word]
        return f"{self.difference:+.2f}{mark}"


def compared(
    studied: Studied, after: Variant, before: Variant, measure: str, *, part: str = "value", size: bool = False
) -> Compared:
    """Two variants: of the same trials by a paired t test, of others by Welch's; `size` compares absolute values."""
    from scipy import stats

    found = [100 * studied.values(each, measure, part) for each in (after, before)]
    found = [np.abs(each) if size else each for each in found]
    spreads = [Spread.of(each, digits=2) for each in found]
    paired = after.trials == before.trials
    found = list(_both(*found)) if paired else [each[~np.isnan(each)] for each in found]
    with warnings.catch_warnings():  # no test of values that are all the same: nan, which is no clear difference
        warnings.simplefilter("ignore")
        result = stats.ttest_rel(*found) if paired else stats.ttest_ind(*found, equal_var=False)
    return Compared(spreads[0], spreads[1], float(result.pvalue))


def _both(one: Any, other: Any) -> tuple[Any, Any]:
    whole = ~(np.isnan(one) | np.isnan(other))
    return one[whole], other[whole]


def page(studied: Studied, more: Studied | None) -> Iterator[str]:
    """The page, line by line."""
    yield from opening(studied, more)
    yield from strengths(studied)
    for claim in CLAIMS:
        yield from claim(studied)
    if more is not None:
        yield from others(studied, more)
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
    yield "The numbers behind every table and figure of the study lie as CSV in `fashion_mnist_study/`, with the"
    yield "logits of the residual network without intervention."
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


def over_training(studied: Studied) -> Iterator[str]:
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
    lower_ece_elsewhere, rankings, top_outputs, shrinking_cells,
    vector_against_temperature, over_training, classes_differ,
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


def compared_models(studied: Studied, after: str, before: str, measure: str) -> Compared:
    return compared(studied, studied.base(after), studied.base(before), measure)


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


def verdict(holds: bool, *words: str, partly: bool = False) -> str:
    """A verdict in a paragraph."""
    said = "holds here" if holds else "holds in part" if partly else "not seen here"
    return f"*Verdict: {said}* - " + " ".join(words)


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


# ----- numbers


def keep(studied: Studied, folder: Path) -> None:
    """Tables, figures, single values and some logits, as small files."""
    keep_tables(studied, folder, "")
    for name, figure in FIGURES.items():
        sheet = studied.sweep if name == "gamma_sweep" else figure.find(studied.evidence)
        write_text(folder / f"figure_{name}.csv", sheet.to_csv())
    write_text(folder / "values.csv", by_seed(studied).to_csv())
    outcomes = [studied.evidence.outcome(trial) for trial in studied.base("resnet18").trials]
    arrays = {f"test_logits_{index}": one.test.logits.astype(np.float16) for index, one in enumerate(outcomes)}
    write_arrays(folder / "resnet18_base.npz", {**arrays, "test_labels": outcomes[0].test.labels.astype(np.uint8)})


def keep_tables(studied: Studied, folder: Path, prefix: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        write_text(folder / f"{prefix}{name}.csv", table(studied.evidence).to_csv())


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
