"""Tables of claims for the pages of studies: what data say about each, and how each rule fares on false data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scipy.stats import binom

from calibrant.experiments.findings.claims import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    UNTESTABLE,
    Claim,
    Judgement,
    OutOfReach,
    counted,
)

VERDICT_WORDS = {
    HOLDS: "holds here", CONTRADICTED: "is contradicted here", UNDECIDED: "stays undecided here",
    UNTESTABLE: "cannot be tested here",
}  # fmt: skip
"""Verdicts as the end of a sentence."""
AFTERWARDS = (
    "The rules were written after results of earlier runs had been",
    "seen, so a verdict is a description of these data and no test that was planned before them.",
)
BEFOREHAND = ("The rules were written before these networks", "were trained.")
"""When the rules of a page were written."""
TOO_OFTEN = 0.001
"""A rule that says "holds" of false data so often that chance would do it this rarely is above its level."""
MORE = 10
"""How many times as many fresh data sets are tried with a rule that said "holds" of more than its level."""
THEN = ", then "
"""Between the counts of both."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A table, line by line."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def claims_table(
    judgements: Mapping[Claim[Any] | OutOfReach, Judgement], written: tuple[str, str] = AFTERWARDS
) -> Iterator[str]:
    """Every claim with its place, its verdict and the differences behind it."""
    yield "## The claims"
    yield ""
    yield f"Of {len(judgements)} claims: {counted(judgements.values())}."
    yield f'A claim says that some differences are above 0. It "{HOLDS}" where tests show that so many are as its rule'
    yield f'needs, at level {LEVEL:g}. It is "contradicted" where they show that so many are below 0 that it cannot'
    yield 'hold; of a claim about all, one is enough. Otherwise it is "undecided". "Clearly" is said of one difference'
    yield f"by itself (p <= {LEVEL:g}); verdicts allow for their number, so enough clear ones may not decide."
    yield "Numbers are means ± standard errors over seeds, or of what the rule names."
    yield written[0]
    yield written[1]
    yield ""
    rows = []
    for claim, judgement in judgements.items():
        unit = claim.unit if isinstance(claim, Claim) and judgement.differences else ""
        words = f"{judgement} ({unit})" if unit else str(judgement)
        rows.append([claim.words, claim.source, judgement.word, words])
    yield from markdown(["claim", "where", "verdict", "difference"], rows)


def false_table(claims: Iterable[Claim[Any] | OutOfReach], repetitions: int) -> Iterator[str]:
    """How often each rule says that its claim holds where it is false; a rule above its level ends the program.

    A rule that is above its level, by chance or not, is applied to `MORE` times as many fresh data sets.
    """
    rows = [
        [claim.words, claim.rule, claim.false_words, _passes(claim, repetitions)]
        for claim in claims
        if isinstance(claim, Claim)
    ]
    yield "## What the rules are worth"
    yield ""
    yield f"Each rule was also applied to {repetitions} data sets under which its claim is false, smaller than those"
    yield f'above. It should say "{HOLDS}" of at most {LEVEL:.0%} of them.'
    if any(THEN in row[-1] for row in rows):
        yield f"An exact test says so of {LEVEL:.0%}, give or take chance; where it was more, {MORE} times as many"
        yield "fresh data sets were tried."
    yield ""
    yield from markdown(["claim", "rule: above 0", "false data", f'says "{HOLDS}"'], rows)


def _passes(claim: Claim[Any], repetitions: int) -> str:
    count = _counted(claim, repetitions)
    said = f"{count} of {repetitions}"
    if count > LEVEL * repetitions:
        said += f"{THEN}{_counted(claim, MORE * repetitions, seed=repetitions)} of {MORE * repetitions}"
    print(f"false data: {said}: {claim.words}", flush=True)
    return said


def _counted(claim: Claim[Any], repetitions: int, seed: int = 0) -> int:
    count = round(claim.passes(repetitions, seed) * repetitions)
    if binom.sf(count - 1, repetitions, LEVEL) < TOO_OFTEN:
        raise SystemExit(f"{claim.words}: holds in {count} of {repetitions} data sets under which it is false")
    return count
