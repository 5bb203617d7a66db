"""Curves of an event on the page: they are those of the library, and what is said of them is true."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.predictions import Predictions
from calibrant.report.sections.event_curves import NUMBERS, THRESHOLDS, curves_section, decisions_section
from calibrant.report.subject import Subject


def event(n=3000, power=1.5, seed=0, **options):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return Predictions.from_probs((rng.random(n) < p**power).astype(int), p, **options)


@pytest.fixture(scope="module")
def section():
    return curves_section(Subject(event(), "m"))


def test_points_are_those_of_the_librarys_curves_and_bands(section):
    predictions = event()
    rows = np.array(section.figures[0].grid.rows, float)
    smooth = cal.reliability_band(predictions, curve=cal.plots.smooth)
    at = np.searchsorted(smooth.forecast, rows[:, 0])
    for column, part in zip((1, 2, 3), (smooth.frequency, smooth.low, smooth.high), strict=True):
        np.testing.assert_allclose(rows[:, column], part[at], atol=1e-12)
    rising = cal.reliability_band(predictions, curve=cal.plots.isotonic)
    np.testing.assert_allclose(rows[:, 4], np.interp(rows[:, 0], rising.forecast, rising.frequency), atol=1e-12)
    assert (np.diff(rows[:, 4]) >= -1e-12).all()
    assert (rows[:, 5] <= rows[:, 4]).all()
    assert (rows[:, 4] <= rows[:, 6]).all()


def test_between_forecasts_the_band_of_the_isotonic_curve_is_as_wide_as_its_neighbours_allow():
    p = np.repeat([0.1, 0.9], 200)
    y = np.concatenate([np.arange(200) < 20, np.arange(200) < 180])
    rows = np.array(curves_section(Subject(Predictions.from_probs(y, p), "m")).figures[0].grid.rows, float)
    band = cal.reliability_band(y, p, curve=cal.plots.isotonic)
    inside = (rows[:, 0] > 0.11) & (rows[:, 0] < 0.89)
    assert (rows[inside, 5] == band.low[0]).all()
    assert (rows[inside, 6] == band.high[1]).all()


def test_no_point_is_a_forecast_of_a_row(section):
    points = np.array([row[0] for row in section.figures[0].grid.rows])
    assert (points * 256 == np.round(points * 256)).all()
    assert len(points) <= 33


def test_the_smooth_curve_follows_a_steep_beginning():
    rng = np.random.default_rng(0)
    p = rng.random(8000)
    chance = np.where(p < 0.15, 0.02 + 4 * p, 0.62 + 0.3 * (p - 0.15))
    y = (rng.random(8000) < chance).astype(int)
    first = curves_section(Subject(Predictions.from_probs(y, p), "m")).figures[0].grid.rows[0]
    assert first[1] == pytest.approx(0.02 + 4 * first[0], abs=0.05)


def test_numbers_are_those_of_the_recipes(section):
    (grid,) = section.grids
    assert [row[0] for row in grid.rows] == list(NUMBERS)
    for name, value, low, high, _ in grid.rows:
        result = NUMBERS[name][0](event(), interval=cal.Confidence())
        assert value == result.value
        if result.interval is None:
            assert math.isnan(low)
            assert name in section.paragraphs[1]
        else:
            assert (low, high) == (result.interval.low, result.interval.high)
            assert low <= value <= high


def test_curves_without_bands_say_why():
    for predictions, groups in (
        (Predictions.from_probs(np.clip(event(400).values + 0.1, 0, 1), event(400).values), None),
        (event(400, sample_weight=np.arange(400) % 3 + 1), None),
        (event(400, patient=np.arange(400) // 2), "patient"),
    ):
        figure = curves_section(Subject(predictions, "m", groups=groups)).figures[0]
        assert "No bands: they need independent rows of weight 1 and hard labels." in figure.caption
        assert all(math.isnan(row[2]) and math.isnan(row[6]) for row in figure.grid.rows)
        assert "area" not in str(figure.picture)


@pytest.mark.parametrize(
    "predictions",
    [
        Predictions.from_probs([0, 1, 1], [[0.6, 0.4], [0.3, 0.7], [0.2, 0.8]]),
        Predictions.from_confidence([1, 0, 1], [0.7, 0.8, 0.9]),
        Predictions.from_multilabel([[1, 0], [0, 1], [1, 1]], [[0.6, 0.4], [0.3, 0.7], [0.2, 0.8]]),
        event(30, sample_weight=np.linspace(0.5, 1.5, 30)),
    ],
    ids=["classes", "confidence", "labels", "fractional weights"],
)
def test_only_events_in_whole_rows_have_curves(predictions):
    assert curves_section(Subject(predictions, "m")) is None
    assert decisions_section(Subject(predictions, "m")) is None


def test_the_decision_curve_is_the_net_benefit():
    predictions = event(800)
    section = decisions_section(Subject(predictions, "m"))
    rate = predictions.labels.mean()
    rows = section.figures[0].grid.rows
    assert [row[0] for row in rows] == pytest.approx(np.arange(5, 100, 5) / 100)
    for threshold, model, everybody in rows:
        assert model == pytest.approx(cal.NetBenefit(threshold)(predictions).value, abs=1e-12)
        assert everybody == pytest.approx(rate - (1 - rate) * threshold / (1 - threshold), abs=1e-12)
    useful = [at for at in THRESHOLDS
              if cal.NetBenefit(at)(predictions).value > max(0, rate - (1 - rate) * at / (1 - at))]  # fmt: skip
    first, last = (int(number) for number in section.paragraphs[0].replace("%", "").replace(",", "").split()[3:6:2])
    assert all(percent / 100 in np.round(useful, 2) for percent in range(first, last + 1))
    worthless = Predictions.from_probs([0, 1] * 50, [0.9, 0.1] * 50)
    assert decisions_section(Subject(worthless, "m")).paragraphs[0].startswith("At no threshold")
