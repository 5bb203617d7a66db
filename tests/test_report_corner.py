"""Axes of reliability pictures: they end where predictions do, and both alike."""

import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.predictions import Predictions
from calibrant.report.charts import Bar
from calibrant.report.corner import WHOLE, Corner, corner_of, leaves_room
from calibrant.report.question import Question
from calibrant.report.rebinning import RebinningCounts
from calibrant.report.sections.event_curves import curves_section, decisions_section
from calibrant.report.sections.models import models_figure
from calibrant.report.sections.reliability_diagram import drawn_bins, reliability_figure
from calibrant.report.sections.repair import repair_section
from calibrant.report.subject import Subject


def rare(n=6000, most=0.1, seed=0, **options):
    """An event that is predicted with probabilities below `most` and happens half as often."""
    rng = np.random.default_rng(seed)
    p = most * rng.beta(2, 5, n)
    return Predictions.from_probs(rng.random(n) < 0.5 * p, p, **options)


def ticks(picture):
    """The numbers along the axes of a picture, those of the first axis first."""
    marks = re.findall(r'class="tick (?:middle|end)">([^<]*)<', str(picture))
    return [float(mark) for mark in marks]


def test_the_axes_of_a_rare_event_end_near_its_predictions():
    figure = reliability_figure(Subject(rare(), "m"))
    assert figure.span == (0.0, 0.08)
    assert max(ticks(figure.picture)) == 0.08
    count = int(np.count_nonzero(rare().probabilities > 0.08))
    assert 0 < count < 9
    assert f"Both axes end at 0.08: {count} predictions are higher." in figure.caption
    assert "Each bin holds equally many samples." in figure.caption
    assert "ECE itself uses 15 bins of equal width" in figure.reading
    assert figure.controls == "mass"
    assert len(figure.grid.rows) == 15


def test_an_event_that_is_as_rare_as_common_keeps_the_whole_square():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    figure = reliability_figure(Subject(Predictions.from_probs(rng.random(500) < p, p), "m"))
    assert figure.span == WHOLE
    assert ticks(figure.picture)[:6] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert "axes" not in figure.caption
    assert figure.controls == "width"


def test_what_is_nearly_certain_is_shown_in_the_upper_corner():
    rng = np.random.default_rng(0)
    confidence = 1 - 0.1 * rng.beta(2, 5, 4000)
    subject = Subject(Predictions.from_confidence(rng.random(4000) < confidence, confidence), "m")
    figure = reliability_figure(subject)
    assert figure.span == (0.9, 1.0)
    assert "Both axes begin at 0.9: no prediction is lower." in figure.caption


def test_curves_and_recalibration_are_drawn_on_the_same_axes():
    subject = Subject(rare(), "m")
    for section in (curves_section(subject), repair_section(subject)):
        (figure,) = section.figures
        assert max(ticks(figure.picture)) == 0.08
        assert "Both axes end at 0.08" in figure.caption
        picture = str(figure.picture)
        (start, end) = re.search(r'<path d="M([\d. ]+)L([\d. ]+)" fill="none" class="diagonal"', picture).groups()
        assert start.split()[0] == "56"  # from corner to corner
        assert end.split()[0] == "548"


def test_decisions_about_a_rare_event_are_shown_at_thresholds_where_predictions_are():
    event = rare()
    section = decisions_section(Subject(event, "m"))
    (figure,) = section.figures
    assert "Thresholds go from 0 to 0.08, where the predictions are." in figure.caption
    rows = np.array(figure.grid.rows, float)
    assert rows[0, 0] == pytest.approx(0.004)
    assert rows[-1, 0] == pytest.approx(0.076)
    for threshold, benefit, _ in rows:
        assert benefit == pytest.approx(cal.NetBenefit(threshold)(event).value, abs=1e-12)


def test_models_share_the_corner_that_holds_all_of_them():
    low, high = rare(most=0.05), rare(most=0.3)
    figure = models_figure([Subject(low, "low"), Subject(high, "high")])
    assert max(ticks(figure.picture)) == 0.25
    assert "15 equal-mass bins" in figure.caption
    rng = np.random.default_rng(0)
    anywhere = Predictions.from_probs(low.labels, rng.random(len(low)))
    figure = models_figure([Subject(low, "low"), Subject(anywhere, "anywhere")])
    assert max(ticks(figure.picture)) == 1.0
    assert "15 equal-width bins" in figure.caption


def test_fractional_weights_keep_bins_of_equal_width_in_the_corner():
    weight = np.random.default_rng(1).random(6000) + 0.5
    figure = reliability_figure(Subject(rare(sample_weight=weight), "m"))
    assert figure.span[0] == 0.0
    assert figure.span[1] <= 0.1
    assert figure.controls == "width"
    assert "equally many" not in figure.caption


def test_one_sample_in_a_thousand_may_lie_elsewhere_not_more():
    nearly = [Bar(0, 1 / 15, 999, 0.05, 0.05), Bar(0.6, 2 / 3, 1, 0.63, 1.0)]
    assert leaves_room(nearly)
    assert not leaves_room([nearly[0], Bar(0.6, 2 / 3, 2, 0.63, 1.0)])
    assert not leaves_room([Bar(0.4, 7 / 15, 5, 0.45, 0.4), Bar(0.6, 2 / 3, 5, 0.63, 1.0)])


def test_frequencies_far_from_rare_predictions_need_the_whole_square():
    event = Predictions.from_probs([1, 1, 1, 0], [0.1, 0.1, 0.1, 0.1])
    assert corner_of([Bar(0.1, 0.1, 4, 0.1, 0.75)], [event]).span == WHOLE
    assert corner_of([Bar(0.1, 0.1, 4, 0.1, 0.15)], [event]) == Corner((0.0, 0.2), 0)
    assert corner_of([Bar(0.1, 0.1, 4, 0.02, 0.03)], [event]) == Corner((0.0, 0.04), 4)


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_of_equal_mass_are_those_of_the_library(weighted):
    weight = np.random.default_rng(2).integers(1, 5, 6000) if weighted else None
    event = rare(sample_weight=weight)
    rows = RebinningCounts.of(event).equal_mass(15)
    bins = cal.BinnedError(binning=cal.EqualMass(15))(event).bins
    np.testing.assert_array_equal(rows[:, 2], bins.counts[0])
    np.testing.assert_allclose(rows[:, 3] / rows[:, 2], bins.forecast[0, :, 0], atol=1e-12)
    np.testing.assert_allclose(rows[:, 4] / rows[:, 2], bins.frequency[0, :, 0], atol=1e-12)
    (bars,) = drawn_bins([Question(event, "m")]).bars
    squares = rows[:, 5] if weighted else [None] * 15
    assert [bar.squares for bar in bars] == list(squares)
