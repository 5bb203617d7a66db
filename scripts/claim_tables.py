"""Tables of claims for the pages of studies: what data say about each, and how each rule fares on false data."""

from __future__ import annotations

import textwrap
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

STATED = {
    HOLDS: "it holds here that", CONTRADICTED: "it is contradicted here that",
    UNDECIDED: "it stays undecided here whether", UNTESTABLE: "it cannot be tested here whether",
}  # fmt: skip
"""Verdicts as the beginning of a sentence about a claim."""
AFTERWARDS = (
    "The rules were written after results of earlier runs had been seen. So a verdict describes these data; it is "
    "not the outcome of a test that was planned before them."
)
"""When the rules of most pages were written."""
WIDTH = 115
"""Characters in a line of text."""
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


def wrapped(*sentences: str) -> Iterator[str]:
    """Sentences, each from a new line on, in lines that are not too long."""
    for sentence in sentences:
        yield from textwrap.wrap(sentence, WIDTH, break_long_words=False, break_on_hyphens=False)


def claims_table(judgements: Mapping[Claim[Any] | OutOfReach, Judgement], written: str = AFTERWARDS) -> Iterator[str]:
    """Every claim with its place, its verdict and the differences behind it."""
    yield "## The claims"
    yield ""
    yield f"Of {len(judgements)} claims: {counted(judgements.values())}."
    yield ""
    yield from wrapped(
        "Each claim says that some differences are above 0, and its rule says how many of them must be.",
        f'It "{HOLDS}" where tests at level {LEVEL:g} show that enough of them are above 0.',
        f'It is "{CONTRADICTED}" where the tests show that too many are below 0 for that. One is too many for a claim '
        "about all.",
        f'Otherwise it is "{UNDECIDED}", or "{UNTESTABLE}" where the study lacks what the claim is about.',
        f'"Clearly" means p <= {LEVEL:g} for one difference by itself. Verdicts allow for the number of differences, '
        "so a claim can stay undecided although enough of them are clear.",
        "The last column counts the differences and shows the one that speaks least for the claim. Numbers are means ± "
        "standard errors over seeds, unless the rule names another error.",
        "Levels are those of single claims: among so many, one or two may hold, or be contradicted, by chance.",
        written,
    )
    yield ""
    rows = []
    for claim, judgement in judgements.items():
        unit = claim.unit if isinstance(claim, Claim) and judgement.differences else ""
        words = f"{judgement} ({unit})" if unit else str(judgement)
        rows.append([claim.words, claim.source, judgement.word, words])
    yield from markdown(["claim", "where", "verdict", "differences"], rows)


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
    yield from wrapped(
        f"Each rule was also applied to {repetitions} simulated data sets under which its claim is false. They are "
        f'smaller than the data above. A rule should say "{HOLDS}" of at most {LEVEL:.0%} of them.',
        "A rule that needs several differences seldom errs about all of them at once. So the last column repeats the "
        "count after all differences that the rule needs, but one, were made clearly positive: then a single test "
        f"decides, and at most about {LEVEL:.0%} should pass.",
    )
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


def stated(judgements: Mapping[Any, Judgement], beginning: str, words: str) -> str:
    """A claim in these words, after its verdict: the claim that begins so."""
    word = next(judgement.word for claim, judgement in judgements.items() if claim.words.startswith(beginning))
    return f"{STATED[word]} {words}"


def require_told(told: Mapping[str, str | tuple[str, ...]], judgements: Mapping[Any, Judgement]) -> None:
    """End the program where the opening of a page tells another verdict of a claim, or of a claim that is not there."""
    for beginning, verdicts in told.items():
        found = {claim.words: judgement.word for claim, judgement in judgements.items()}
        words = [claim for claim in found if claim.startswith(beginning)]
        expected = (verdicts,) if isinstance(verdicts, str) else verdicts
        if not words or any(found[claim] not in expected for claim in words):
            raise SystemExit(f"the opening tells otherwise: {beginning}: {[found[claim] for claim in words]}")
