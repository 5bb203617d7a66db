"""Claims: verdicts that follow from differences and their errors, and rules that fail where their claims are false."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

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
    UntestableError,
    counted,
    judged,
)

stats = pytest.importorskip("scipy.stats")
SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))
try:
    from claim_tables import false_table
finally:
    sys.path.pop(0)
SLOW = (
    "The finer the groups", "It takes over 10,000", "As label noise", "Of a perfectly", "With 5,000", "The preferred",
    "Below 500", "ACE and TACE come", "EMsweep misses",
)  # fmt: skip
"""How claims begin whose false data take seconds each."""
FEW = 5
"""False data sets that a rule is tried on here; the pages of the studies print many more."""


def claims_of(module):
    sys.path.insert(0, str(SCRIPTS))
    try:
        claims = importlib.import_module(module).CLAIMS
    finally:
        sys.path.remove(str(SCRIPTS))
    return [claim for claim in claims if isinstance(claim, Claim)]


def differences(*means, error=0.1, df=9):
    return [Difference(str(place), mean, error, df) for place, mean in enumerate(means)]


def test_p_values_are_those_of_t_tests():
    values, others = np.random.default_rng(0).normal(0.3, 1, size=(2, 8))
    own = Difference.of("a", values)
    assert own.p_above == pytest.approx(stats.ttest_1samp(values, 0, alternative="greater").pvalue, rel=1e-9)
    assert own.p_below == pytest.approx(stats.ttest_1samp(values, 0, alternative="less").pvalue, rel=1e-9)
    welch = stats.ttest_ind(values, others[:5], equal_var=False, alternative="greater").pvalue
    assert own.less(Difference.of("b", others[:5]), "a less b").p_above == pytest.approx(welch, rel=1e-9)


def test_missing_seeds_are_left_out():
    assert Difference.of("a", [1.0, np.nan, 2.0]) == Difference.of("a", [1.0, 2.0])


def test_a_rank_among_redraws_is_as_likely_as_any_other():
    """Of 19 redraws and the number itself, each is the largest with probability 1/20. 2000 draws of a skewed law."""
    draws = np.random.default_rng(0).exponential(size=(2000, 20))
    above = [Difference.among("", seen, redrawn).p_above for seen, *redrawn in draws]
    assert np.mean(np.array(above) <= LEVEL) == pytest.approx(LEVEL, abs=4 * np.sqrt(LEVEL * (1 - LEVEL) / 2000))


@pytest.mark.parametrize("values", [[], [np.nan], [3.0], [0.0, 0.0]])
def test_too_few_seeds_and_no_difference_decide_nothing(values):
    assert judged([Difference.of("a", values)]).word == UNDECIDED


def test_seeds_that_all_agree_decide():
    assert judged([Difference.of("a", [1.0, 1.0])]).word == HOLDS
    assert judged([Difference.of("a", [-1.0, -1.0])]).word == CONTRADICTED


@pytest.mark.parametrize(
    ("means", "share", "word"),
    [
        ((1, 1, 1), 1.0, HOLDS),
        ((1, 1, 0), 1.0, UNDECIDED),
        ((1, 1, -1), 1.0, CONTRADICTED),
        ((1, 1, -1), 2 / 3, HOLDS),
        ((1, -1, -1), 2 / 3, CONTRADICTED),
        ((1, -1, -1), 1 / 3, HOLDS),
        ((-1, -1, -1), 1 / 3, CONTRADICTED),
        ((0, 0, 0), 1 / 3, UNDECIDED),
    ],
)
def test_a_share_of_the_differences_must_be_above_0(means, share, word):
    assert judged(differences(*means), share).word == word


def test_one_of_many_counts_less_than_one_alone():
    """A single difference at p = 0.03 is enough for a claim about it, and not for "one of ten"."""
    weak = Difference("weak", 2.15, 1.0, 9)
    assert 0.02 < weak.p_above < LEVEL
    assert judged([weak]).word == HOLDS
    assert judged([weak, *differences(*[0.0] * 9)], share=0.1).word == UNDECIDED


@pytest.mark.parametrize(("count", "needed"), [(1, 1), (5, 5), (5, 3), (5, 1)])
def test_the_level_is_kept_where_a_claim_is_just_false(count, needed):
    """All but one of the needed differences are large, the others 0. 2000 draws, seed 0: 5 % + 4 standard errors."""
    random = np.random.default_rng(0)
    means = np.where(np.arange(count) < needed - 1, 5.0, 0.0)
    draws = means[:, None] + random.normal(size=(2000, count, 6))
    verdicts = [judged([Difference.of("", values) for values in draw], needed / count).word for draw in draws]
    assert verdicts.count(HOLDS) / 2000 <= LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / 2000)


def test_what_cannot_be_tested_says_why():
    def refuse(data):
        raise UntestableError("two samples")

    claim = Claim("a", "b", "c", refuse, lambda seed: None, "nothing")
    assert claim.verdict(None) == Judgement(UNTESTABLE, reason="two samples")
    assert str(OutOfReach("a", "b", "no data").verdict(None)) == "no data"
    assert judged([]).word == UNTESTABLE
    assert counted([claim.verdict(None), judged(differences(1))]).startswith("holds 1, contradicted 0")


ALL = [
    pytest.param(claim, id=claim.words[:60], marks=pytest.mark.slow if claim.words.startswith(SLOW) else ())
    for module in ("simulation_claims", "study_claims", "study_training", "network_claims", "recalibration_claims")
    for claim in claims_of(module)
]


@pytest.mark.parametrize("claim", ALL)
def test_no_rule_passes_data_under_which_its_claim_is_false(claim):
    """At the level of 5 %, 3 or more of 5 pass with probability 1e-3; the seeds are fixed."""
    assert claim.passes(FEW) < 0.5


def test_a_rule_above_its_level_ends_the_program():
    claim = Claim("w", "s", "r", lambda seen: [Difference.among("a", seen, [0.5] * 19)], lambda seed: 1.0, "f")
    with pytest.raises(SystemExit, match=r"holds in \[10, 10\] of 10"):
        list(false_table([claim], 10))


def test_a_rule_that_chance_put_above_its_level_is_tried_on_fresh_data():
    data = [1.0] * 2 + [0.0] * 8 + [1.0] * 3 + [0.0] * 97
    claim = Claim("w", "s", "r", lambda seen: [Difference.among("a", seen, [0.5] * 19)], data.__getitem__, "f")
    *_, row, _ = false_table([claim], 10)
    assert row.endswith("2 of 10, then 3 of 100 |")


@pytest.mark.parametrize("module", ["study_claims", "study_training", "network_claims", "recalibration_claims"])
def test_every_rule_can_be_passed(module):
    """A rule that says "holds" of no data would keep its level, too: of large differences every claim holds."""
    for claim in claims_of(module):
        several = list(claim.differences(claim.false(0)))
        assert several
        clear = [Difference(each.name, 100.0, 1.0, 9, each.sides) for each in several]
        assert judged(clear, claim.share).word == HOLDS
