"""Gaps, groups and referrals: the page's own small statistics, against the plainest loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

import calibrant as cal
from calibrant import diagnostics
from calibrant.inference.skewness import skewed
from calibrant.predictions import Predictions
from calibrant.report import group_gaps as module
from calibrant.report.group_gaps import Gap, corrected, gaps, tail
from calibrant.report.sections.failures import SHARES, failures_section
from calibrant.report.sections.groups_and_intervals import LIKERT, column_groups, groups_section, likert_section
from calibrant.report.subject import Subject
from strategies import events, rows


def plain_gap(p, y, w):
    """The gap of one group and its interval, row by row."""
    size, n = sum(w), len(p)
    forecast = sum(w[i] * p[i] for i in range(n)) / size
    frequency = sum(w[i] * y[i] for i in range(n)) / size
    gap = forecast - frequency
    if n == 1:
        return gap, math.nan, math.nan
    low, high = skewed(gap, np.array([w[i] * (p[i] - y[i] - gap) / size for i in range(n)]), 0.9)
    rows = size**2 / sum(weight**2 for weight in w)
    events, others = frequency * rows, (1 - frequency) * rows
    if min(events, others) < 5:
        low = min(low, forecast - (beta(events + 1, others).ppf(0.95) if others > 1e-9 else 1.0))
        high = max(high, forecast - (beta(events, others + 1).ppf(0.05) if events > 1e-9 else 0.0))
    return gap, low, high


@settings(max_examples=40)
@given(events(), st.integers(0, 2**32 - 1), st.booleans())
def test_gaps_are_those_of_the_rows_of_each_group(sample, seed, weighted):
    p, y = sample
    rng = np.random.default_rng(seed)
    weight = rng.random(len(p)) + 0.1 if weighted else np.ones(len(p))
    event = Predictions.from_probs(y, p, sample_weight=weight if weighted else None)
    group = rng.integers(0, 3, len(p))
    before, module.BLOCK = module.BLOCK, 7
    try:
        by_name = {entry.name: entry for entry in gaps(event, group, ["a", "b", "c"])}
    finally:
        module.BLOCK = before
    for index, name in enumerate("abc"):
        inside = group == index
        if not inside.any():
            assert name not in by_name
            continue
        gap, *ends = plain_gap(p[inside], y[inside], weight[inside])
        entry = by_name[name]
        assert entry.rows == inside.sum()
        assert entry.value == pytest.approx(gap, abs=1e-12)
        assert entry.forecast == pytest.approx(np.average(p[inside], weights=weight[inside]), abs=1e-12)
        # the interval is of a difference of sums: what cancels leaves the root of a rounding error
        assert [entry.low, entry.high] == pytest.approx(ends, abs=1e-6, nan_ok=True)


def test_a_single_row_has_no_interval_whatever_its_weight():
    event = Predictions.from_probs([0], [0.4], sample_weight=[0.7369616873214543])
    (entry,) = gaps(event, np.zeros(1, int), ["a"])
    assert math.isnan(entry.low)
    assert math.isnan(entry.high)


def test_rows_without_weight_do_not_count():
    event = Predictions.from_probs([1, 0, 1], [0.5, 0.5, 0.9], sample_weight=[1, 0, 1])
    (entry,) = gaps(event, np.zeros(3, int), ["a"])
    assert entry.rows == 2
    assert entry.value == pytest.approx(0.7 - 1)


def test_a_summed_gap_two_standard_deviations_out_has_the_normal_tail():
    assert tail(np.array([20.0]), np.array([100.0]), np.array([1.0]))[0] == pytest.approx(0.0455002638963584)
    assert tail(np.array([0.0, -1e-12]), np.array([1.0, 0.0]), np.array([1.0, 1.0])).tolist() == [1.0, 1.0]


def test_weights_change_units_not_tails():
    chance = tail(np.array([20.0]), np.array([100.0]), np.array([1.0]))
    assert tail(np.array([200.0]), np.array([10_000.0]), np.array([10.0])) == pytest.approx(chance)


def test_the_tail_of_nearly_sure_forecasts_is_no_smaller_than_chance():
    # 20 rows at 0.999 with one miss: the chance of a miss or more is 1 - 0.999**20 = 0.0198
    p = tail(np.array([19.98 - 19]), np.array([20 * 0.001 * 0.999]), np.array([1.0]))[0]
    assert 0.0198 < p < 0.51


def test_tails_hold_their_level_on_calibrated_forecasts():
    # seed 0, 2,000 groups of calibrated forecasts, sure and unsure: at a level of 0.05 more than 130 flags have a
    # chance of 1 in 1000
    rng = np.random.default_rng(0)
    for a in (0.02, 1.0):
        p = rng.beta(1.0, a, (2000, 30))
        event = Predictions.from_probs((rng.random(p.shape) < p).ravel().astype(int), p.ravel())
        entries = gaps(event, np.repeat(np.arange(2000), 30), [str(group) for group in range(2000)])
        assert sum(entry.p <= 0.05 for entry in entries) <= 130


@pytest.mark.parametrize(("a", "b"), [(8, 0.2), (8, 1), (1, 1), (1, 8)])
@pytest.mark.parametrize("n", [10, 25, 100])
def test_strokes_hold_the_gap_of_calibrated_and_of_shifted_groups(n, a, b):
    # seed 0, 1,000 groups: with a coverage of 0.9, below 0.87 has a chance of 1 in 1000
    rng = np.random.default_rng(0)
    p = rng.beta(a, b, (1000, n)).clip(1e-9, 1 - 1e-9)
    for shift in (0.0, -0.7, 0.7):
        chance = 1 / (1 + np.exp(-np.log(p / (1 - p)) - shift))
        event = Predictions.from_probs((rng.random(p.shape) < chance).ravel().astype(int), p.ravel())
        entries = gaps(event, np.repeat(np.arange(1000), n), [str(group) for group in range(1000)])
        truth = (p - chance).mean()
        assert np.mean([entry.low <= truth <= entry.high for entry in entries]) >= 0.87


def test_holm_corrects_and_flags():
    entries = corrected([Gap("a", 9, 0.6, 0.4, 0.1, 0.3, 0.01), Gap("b", 9, 0.2, 0.4, -0.3, -0.1, 0.03)])
    assert [entry.p for entry in entries] == [0.02, 0.03]
    assert [entry.flag for entry in entries] == ["over-confident", "under-confident"]
    assert Gap("a", 9, 0.6, 0.4, 0.1, 0.3, 0.06).flag == ""
    assert Gap("a", 9, 0.6, 0.4, 0.1, 0.3, math.nan).flag == ""


# columns


@pytest.mark.parametrize(
    ("values", "names"),
    [([True, False, True], ["False", "True"]), ([3, 1, 3], ["1", "3"]), (["b", "a", "b"], ["a", "b"])],
)
def test_columns_of_words_truths_and_few_numbers_are_groups(values, names):
    codes, labels = column_groups(np.array(values))
    assert (codes.tolist(), labels) == ([1, 0, 1], names)


def test_many_numbers_are_four_ranges_and_what_is_none_is_missing():
    values = np.append(np.arange(100.0), [np.nan, np.inf])
    codes, names = column_groups(values)
    assert names == ["0 to 24", "25 to 49", "50 to 74", "75 to 99", "missing"]
    assert np.bincount(codes).tolist() == [25, 25, 25, 25, 2]


def test_empty_text_is_missing_where_no_group_is_called_so():
    assert column_groups(np.array(["a", "", "b"]))[1] == ["missing", "a", "b"]
    assert column_groups(np.array(["a", "", "missing"]))[1] == ["", "a", "missing"]


def test_whole_numbers_are_groups_while_each_has_enough_rows():
    assert len(column_groups(np.arange(5000) % 50)[1]) == 50
    assert len(column_groups(np.arange(500) % 50)[1]) == 4


@pytest.mark.parametrize("values", [np.full(9, "x"), np.array([f"id {i}" for i in range(300)]), np.full(9, 1.5)])
def test_columns_with_one_value_or_a_value_a_row_are_no_groups(values):
    assert column_groups(values) is None


def test_columns_of_nothing_but_missing_numbers_do_not_raise():
    assert column_groups(np.full(40, np.nan)) is None
    assert column_groups(np.append(np.arange(20.0), np.full(20, np.nan)))[1][-1] == "missing"


def grouped_predictions(n=3000):
    rng = np.random.default_rng(0)
    p, region = rng.random(n), rng.integers(0, 3, n)
    y = rng.random(n) < np.where(region == 0, p**2, p)
    names = np.array(["north", "south", "east"])[region]
    return Predictions.from_probs(y, p, region=names, age=rng.integers(20, 90, n), id=[f"p{i}" for i in range(n)])


def test_the_group_that_is_off_is_flagged_and_the_others_are_not():
    section = groups_section(Subject(grouped_predictions(), "m"))
    rows = {row[0]: row for row in section.figures[0].grid.rows}
    assert rows["region = north"][3] == "too high"
    assert rows["region = south"][3] == rows["region = east"][3] == ""
    assert "The clearest is region = north, too high by" in section.paragraphs[0]
    assert section.paragraphs[1].startswith("Not looked at, because the name says row number: id. To see one,")


def test_groups_come_in_the_order_of_their_evidence():
    rng = np.random.default_rng(0)
    p, place = rng.random(4000), np.repeat([0, 1, 2], [3000, 900, 100])
    y = rng.random(4000) < np.clip(p - np.array([0.08, 0.0, 0.1])[place], 0, 1)
    section = groups_section(
        Subject(Predictions.from_probs(y, p, place=np.array(["large", "right", "small"])[place]), "m")
    )
    rows = section.figures[0].grid.rows
    assert [row[0] for row in rows] == ["place = large", "place = small", "place = right"]
    assert [row[2].value for row in rows] == sorted(row[2].value for row in rows)
    assert abs(rows[1][1]) > abs(rows[0][1])  # the small group is farther off, and less surely so


def test_numbers_of_rows_are_no_groups_unless_they_are_asked_for():
    p, n = np.full(200, 0.5), np.arange(200)
    columns = {"id": n % 4, "user_id": n % 5, "serial": n + 3, "income": n * 1.5, "side": n % 2}
    predictions = Predictions.from_probs(n % 3 == 0, p, **columns)
    sections = [groups_section(Subject(predictions, "m", by=by)) for by in (None, ("id", "side"))]
    rows, every = ({row[0].split(" = ")[0] for row in section.figures[0].grid.rows} for section in sections)
    assert rows == {"income", "side"}
    assert every == {"id", "side"}
    remarks = groups_section(Subject(predictions, "m")).paragraphs
    words = "Not looked at, because the name says row number: id and user_id. To see one, name it with --by."
    assert words in remarks
    assert any(text.startswith("Not looked at: serial (") for text in remarks)


def test_a_groups_error_is_that_of_its_rows():
    predictions = grouped_predictions()
    rows = {row[0]: row for row in groups_section(Subject(predictions, "m")).figures[0].grid.rows}
    for name in ("north", "south"):
        part = predictions[predictions.columns["region"] == name]
        assert rows[f"region = {name}"][6] == len(part)
        assert rows[f"region = {name}"][9] == pytest.approx(cal.ECE(part).value, abs=1e-12)
        assert rows[f"region = {name}"][1] == pytest.approx(cal.MCS(part).value, abs=1e-12)


def test_a_column_that_is_the_outcome_is_no_group():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    predictions = Predictions.from_probs(y, rng.random(100), answer=np.where(y, "yes", "no"), side=np.arange(100) % 2)
    section = groups_section(Subject(predictions, "m"))
    assert {row[0] for row in section.figures[0].grid.rows} == {"side = 0", "side = 1"}
    assert "Left out because the outcome can be read from it: answer." in section.paragraphs


def test_so_is_one_that_tells_ties_too():
    rng = np.random.default_rng(0)
    y = rng.choice([0.0, 0.5, 1.0], 100)
    predictions = Predictions.from_probs(y, rng.random(100), answer=1 - y, side=np.arange(100) % 2)
    section = groups_section(Subject(predictions, "m"))
    assert "Left out because the outcome can be read from it: answer." in section.paragraphs


def test_small_groups_are_left_out_and_said():
    predictions = Predictions.from_probs([1, 0] * 30, [0.5] * 60, who=["a"] * 50 + ["b"] * 10)
    section = groups_section(Subject(predictions, "m"))
    assert [row[0] for row in section.figures[0].grid.rows] == ["who = a"]
    assert "1 group of fewer than 20 rows left out." in section.paragraphs
    tiny = groups_section(Subject(predictions[:10], "m"))
    assert "No group" in tiny.paragraphs[0]


def test_no_columns_no_section():
    assert groups_section(Subject(Predictions.from_probs([1, 0], [0.5, 0.4]), "m")) is None


# words


def test_words_are_judged_by_what_came_true():
    p = np.repeat([0.05, 0.2, 0.5, 0.8, 0.95], 400)
    truth = np.concatenate([np.arange(400) < share * 400 for share in (0.05, 0.6, 0.5, 0.66, 0.95)])
    rows = {row[0]: row for row in likert_section(Subject(Predictions.from_probs(truth, p), "m")).grids[0].rows}
    assert [rows[word][2] for word, *_ in LIKERT] == ["yes", "no", "yes", "cannot tell", "yes"]
    assert rows["unlikely"][3:6] == (400, pytest.approx(0.2), pytest.approx(0.6))


def test_words_that_are_never_used_are_said_to_be():
    rows = likert_section(Subject(Predictions.from_probs([1], [0.95]), "m")).grids[0].rows
    assert [row[2] for row in rows] == ["no predictions"] * 4 + ["cannot tell"]


# referral


@settings(max_examples=20)
@given(rows())
def test_the_page_has_the_area_and_the_accuracies_of_the_library(sample):
    p, y = sample
    for predictions in (Predictions.from_probs(y, p), Predictions.from_confidence(y == 0, p[:, 0])):
        section = failures_section(Subject(predictions, "m"))
        known = diagnostics.risk_coverage(predictions)
        (figure,) = section.figures
        assert f"is {cal.AURC(predictions).value:.4f}" in figure.caption
        assert known.aurc == cal.AURC(predictions).value
        shown = [row[1] for row in figure.grid.rows]
        assert shown == [known.accuracy_after_referring(share) for share in SHARES]


def test_an_event_has_no_answer_that_could_fail():
    assert failures_section(Subject(Predictions.from_probs([1, 0, 1], [0.8, 0.4, 0.6]), "m")) is None


def test_weighted_rows_are_referred_by_weight():
    event = Predictions.from_confidence([1, 0], [0.9, 0.6], sample_weight=[1.5, 0.5])
    curve = diagnostics.risk_coverage(event)
    assert curve.kept.tolist() == [1.5, 2.0]
    assert curve.accuracy_after_referring(0.25) == 1.0
