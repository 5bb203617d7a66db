"""Parts that the pages of studies share: claims with their evidence, networks, strengths, all metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claim_tables import AFTERWARDS, claims_table, false_table, markdown
from study_records import BASE, Records

from calibrant.experiments.findings.claims import LEVEL, Claim, Difference, Judgement, OutOfReach

SHOWN = 24
"""Differences of a claim that are shown one by one; of more, the least and the largest."""
PLAIN = ("log_loss", "brier")
"""Metrics that are not in points."""


def judged_page(
    judgements: Mapping[Claim[Any] | OutOfReach, Judgement], repetitions: int, written: str = AFTERWARDS
) -> Iterator[str]:
    """The table of claims, what their rules are worth, and the differences behind them."""
    yield from claims_table(judgements, written)
    yield from false_table(judgements, repetitions)
    yield "## The evidence"
    yield ""
    yield f"Means over seeds ± their standard errors; ↑ above 0 and ↓ below 0, each at {LEVEL:g} by itself."
    yield "Methods on the same networks are compared within seeds where the value of every seed was kept, else as if"
    yield "the networks were different ones (Welch's test), which mostly finds less."
    yield ""
    for claim, judgement in judgements.items():
        if judgement.differences:
            yield f"**{claim.words}** ({judgement.word}):"
            yield ""
            yield from markdown(["difference", "mean ± error", ""], _rows(judgement.differences))


def _rows(differences: Sequence[Difference]) -> Iterator[Sequence[str]]:
    shown = sorted(differences, key=lambda each: each.mean)
    for place, each in enumerate(shown):
        if len(shown) <= SHOWN or place < SHOWN // 2 or place >= len(shown) - SHOWN // 2:
            mark = "↑" if each.p_above <= LEVEL else "↓" if each.p_below <= LEVEL else ""
            yield [each.name, f"{each.mean:+.2f} ± {each.error:.2f}", mark]
        elif place == SHOWN // 2:
            yield [f"({len(shown) - SHOWN} between)", "", ""]


def networks(several: Sequence[Records]) -> Iterator[str]:
    """Accuracy and errors of the networks without intervention."""
    names = ("accuracy", "ece", "sce", "full_ece")
    rows = [
        [row["model"], *(_spread(row, name, 100) for name in names), row["ece seeds"]]
        for records in several
        for row in records.sheets["metrics"]
        if row["method"] == BASE
    ]
    yield from markdown(["network", "accuracy", "ECE", "SCE", "full", "seeds"], rows)


def _spread(row: Mapping[str, str], name: str, factor: float) -> str:
    mean, sd = (factor * float(row[each]) for each in (name, f"{name} sd"))
    if math.isinf(mean):
        return "infinite"
    digits = 2 if factor == 100 else 4
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def ensembles(records: Records) -> Iterator[str]:
    """Ensembles of all seeds beside the means of their members; nothing where there are none."""
    names = ("accuracy", "log_loss", "ece", "sce", "full_ece")
    rows = [
        [row["model"], row["method"], *(f"{(1 if name in PLAIN else 100) * float(row[name]):.4g}" for name in names)]
        for row in records.sheets.get("metrics", ())
        if row["method"] == BASE or row["method"].startswith("ensemble")
    ]
    if len({row[1] for row in rows}) > 1:
        yield "## Ensembles"
        yield ""
        yield "The mean of the probabilities of all seeds of a network, without further training, below the mean of its"
        yield "members (Lakshminarayanan, Pritzel & Blundell 2017). One ensemble each: there is no error over seeds."
        yield ""
        yield from markdown(["network", "", "accuracy", "log loss", "ECE", "SCE", "full"], rows)


def strengths(records: Records) -> Iterator[str]:
    """What every strength did on validation rows."""
    yield "## Strengths"
    yield ""
    yield "Lowest validation ECE among those that lose at most 5 points of accuracy (Kirchenbauer, Oaks & Heim 2022),"
    yield "on the first seed; validation ECE in points, the chosen one in bold."
    yield ""
    told: dict[tuple[str, str], list[str]] = {}
    for row in records.sheets["strengths"]:
        text = f"{float(row['strength']):g}: {100 * float(row['validation ECE']):.2f}"
        chosen = row[""] in ("chosen", "given")
        told.setdefault((row["model"], row["intervention"]), []).append(f"**{text}**" if chosen else text)
    rows = [[*names, ", ".join(texts)] for names, texts in told.items()]
    yield from markdown(["network", "intervention", "strength: validation ECE"], rows)


def all_metrics(records: Records) -> Iterator[str]:
    """Every metric of every method."""
    yield "## All metrics"
    yield ""
    yield "In points but for the log loss and the Brier score. A mean log loss is infinite where a seed gave the true"
    yield "class of some test row the probability 0."
    yield ""
    rows = records.sheets["metrics"]
    names = [name for name in rows[0] if f"{name} sd" in rows[0]]
    for model in dict.fromkeys(row["model"] for row in rows):
        yield f"### {model}"
        yield ""
        cells = [
            [row["method"], *(_spread(row, name, 1 if name in PLAIN else 100) for name in names)]
            for row in rows
            if row["model"] == model
        ]
        yield from markdown(["method", *names], cells)
