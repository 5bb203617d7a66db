"""Tables of claims for the pages of studies: what data say about each, and how each rule fares on false data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from calibrant.experiments.findings.claims import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    UNTESTABLE,
    Claim,
    Difference,
    Judgement,
    OutOfReach,
    counted,
    judged,
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
        [claim.words, claim.rule, claim.false_words, *_passes(claim, repetitions)]
        for claim in claims
        if isinstance(claim, Claim)
    ]
    yield "## What the rules are worth"
    yield ""
    yield f"Each rule was also applied to {repetitions} data sets under which its claim is false, smaller than those"
    yield f'above. It should say "{HOLDS}" of at most {LEVEL:.0%} of them. A rule that needs several differences seldom'
    yield "errs about all of them at once; the last column counts the data sets of which it says so when all that it"
    yield f"needs but one are made clear. Then one test decides: {LEVEL:.0%}, give or take chance, if nothing is there."
    if any(THEN in row[-1] for row in rows):
        yield f"Where either count was more, {MORE} times as many fresh data sets were tried."
    yield ""
    yield from markdown(["claim", "rule: above 0", "false data", f'says "{HOLDS}"', "all but one made clear"], rows)


def _passes(claim: Claim[Any], repetitions: int) -> tuple[str, str]:
    counts = _counted(claim, repetitions)
    said = [f"{count} of {repetitions}" for count in counts]
    if max(counts) > LEVEL * repetitions:
        fresh = MORE * repetitions
        more = _counted(claim, fresh, seed=repetitions)
        said = [f"{words}{THEN}{count} of {fresh}" for words, count in zip(said, more, strict=True)]
    print(f"false data: {'; '.join(said)}: {claim.words}", flush=True)
    return said[0], said[1]


def _counted(claim: Claim[Any], repetitions: int, seed: int = 0) -> tuple[int, int]:
    """Of how many false data sets a rule says that its claim holds: as they are, and with all but one made clear."""
    several = [claim.verdict(claim.false(seed + number)).differences for number in range(repetitions)]
    likely = np.mean([[each.p_above for each in differences] for differences in several], axis=0).argsort()
    needed = judged(several[0], claim.share).needed
    made_clear = set(likely[: needed - 1].tolist())
    bound = [
        [_CLEAR if place in made_clear else each for place, each in enumerate(differences)] for differences in several
    ]
    counts = [sum(judged(each, claim.share).word == HOLDS for each in data) for data in (several, bound)]
    if binom.sf(max(counts) - 1, repetitions, LEVEL) < TOO_OFTEN:
        raise SystemExit(f"{claim.words}: holds in {counts} of {repetitions} data sets under which it is false")
    return counts[0], counts[1]


_CLEAR = Difference("made clear", 1.0, 0.0, 1)


def require_told(told: Mapping[str, str | tuple[str, ...]], judgements: Mapping[Any, Judgement]) -> None:
    """End the program where the opening of a page tells another verdict of a claim, or of a claim that is not there."""
    for beginning, verdicts in told.items():
        found = {claim.words: judgement.word for claim, judgement in judgements.items()}
        words = [claim for claim in found if claim.startswith(beginning)]
        expected = (verdicts,) if isinstance(verdicts, str) else verdicts
        if not words or any(found[claim] not in expected for claim in words):
            raise SystemExit(f"the opening tells otherwise: {beginning}: {[found[claim] for claim in words]}")
