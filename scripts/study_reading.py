"""Reading the store of a study: values by seed, comparisons, what a page is made of, and numbers beside it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.experiments.findings import epoch_rows, figure_rows
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.findings.tables import TABLES
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence, Variant
from calibrant.files.writing import write_text
from calibrant.metric import Metric
from calibrant.recipes import likert

LEVEL = 0.05
"""A difference is clear where a t test over seeds rejects that there is none at this level."""
LOWER, HIGHER, SAME = "lower", "higher", "no clear difference"


class Studied:
    """A store, asked for values by seed."""

    def __init__(self, folder: Path, pictures: str = "") -> None:
        self.pictures = pictures
        """The folder beside the page that pictures lie in; none are shown where there is none."""
        self.evidence = Evidence(*runner.reopen(folder))
        self.study = self.evidence.study
        self.seed = {row.trial.id: row.trial.seed for row in self.evidence.rows}
        self.own = self._own()
        self._courses: dict[str, Sheet] = {}

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
        return figure_rows.gamma_sweep(self.evidence)

    def course(self, name: str, model: str, **asked: Any) -> list[dict[str, Any]]:
        """The rows of a finding over training about a network's base that say what is asked."""
        wanted = {"model": model, "method": self.base(model).label, **asked}
        found = self.over_training(name).records()
        return [each for each in found if all(each[key] == value for key, value in wanted.items())]

    def over_training(self, name: str) -> Sheet:
        """A finding over training, found once."""
        if name not in self._courses:
            self._courses[name] = getattr(epoch_rows, name)(self.evidence)
        return self._courses[name]

    def picture(self, name: str, caption: str) -> Iterator[str]:
        """A picture that lies beside the page."""
        if self.pictures:
            yield f"![{caption}]({self.pictures}/{name}.svg)"
            yield ""

    def _own(self) -> dict[str, tuple[str, Metric]]:
        """Measures without a spelling, under the names that figures keep them by."""
        levels = self.evidence.outcome(self.base(self.models[0]).trials[0]).hierarchy
        made: dict[str, tuple[str, Metric]] = {
            level: (f"groups {level}: {figure_rows.ALL}", figure_rows.between(members))
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


def compared_models(studied: Studied, after: str, before: str, measure: str) -> Compared:
    return compared(studied, studied.base(after), studied.base(before), measure)


def verdict(holds: bool, *words: str, partly: bool = False) -> str:
    """A verdict in a paragraph."""
    said = "holds here" if holds else "holds in part" if partly else "not seen here"
    return f"*Verdict: {said}* - " + " ".join(words)


def in_points(spread: Spread) -> Spread:
    return replace(spread, mean=100 * spread.mean, sd=100 * spread.sd, digits=2)


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


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
