"""Errors of a smooth curve: loess, quantiles of distances, ICI and its kin; against loops, a library and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.aggregates import maximum, sample_quantile
from calibrant.errors.curve import VERTICES, loess
from calibrant.errors.isotonic import isotonic_curve
from oracles import clinical
from strategies import events

close = pytest.approx


def ladder_of(y, p):
    (ladder,) = cal.ICI.summarise(y, p).ladders()
    return ladder


def some(n, decimals=2, seed=7):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n).round(decimals).clip(0.01, 0.99)
    return p, (rng.random(n) < p**1.3).astype(int)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("span", [0.4, 0.75, 1.0])
def test_loess_is_that_of_the_loop(span, degree):
    p, y = some(80)
    ladder = ladder_of(y, p)
    expected = [clinical.loess(p.tolist(), y.tolist(), x, span, degree) for x in ladder.values.tolist()]
    assert loess(span, degree)(ladder).tolist() == close(expected, abs=1e-10)


def test_loess_is_that_of_cleveland():
    """scikit-misc 0.5.3, which wraps Cleveland's own code: loess(p, y, span=, degree=, surface="direct")."""
    p, y = some(500)
    for (span, degree), expected in CLEVELAND.items():
        assert cal.ICI.replace(smoother=loess(span, degree))(y, p).value == close(expected, abs=1e-12)


CLEVELAND = {(0.75, 2): 0.08336693426914474, (0.75, 1): 0.0816158288098628, (0.5, 2): 0.08186370820663688}


@given(data=events())
def test_numbers_of_the_curve_are_those_of_the_sample(data):
    p, y = data
    for smoother in (loess(), isotonic_curve):
        ladder = ladder_of(y, p)
        curve = dict(zip(ladder.values.tolist(), np.clip(smoother(ladder), 0, 1).tolist(), strict=True))
        gaps = [abs(curve[x] - x) for x in (p + 0.0).tolist()]
        metric = cal.ICI.replace(smoother=smoother)
        assert metric(y, p).value == close(np.mean(gaps), abs=1e-12)
        assert metric.replace(aggregate=maximum)(y, p).value == close(max(gaps), abs=1e-12)
        for q in (0.0, 0.5, 0.9):
            found = metric.replace(aggregate=sample_quantile(q))(y, p).value
            assert found == close(clinical.quantile(gaps, q), abs=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=12), st.floats(0, 1))
def test_a_quantile_counts_bins_by_their_samples(data, q):
    distances, counts = (np.array(column, float) for column in zip(*data, strict=True))
    repeated = np.repeat(distances, counts.astype(int))
    table = type("Table", (), {"counts": counts[None]})
    expected = np.quantile(repeated, q) if len(repeated) else np.nan
    assert sample_quantile(q)(distances[None], table)[0] == close(expected, abs=1e-12, nan_ok=True)


def test_many_forecasts_are_fitted_at_some_and_drawn_between(monkeypatch):
    p, y = some(3000, decimals=9)
    between = cal.ICI(y, p).value
    monkeypatch.setattr("calibrant.errors.curve.VERTICES", 3000)
    assert len(ladder_of(y, p).values) > VERTICES
    assert 0 < abs(cal.ICI(y, p).value - between) < 1e-5


def test_the_window_holds_samples_not_distinct_forecasts():
    p = np.array([0.1] * 8 + [0.5, 0.9])
    y = np.array([0, 1] * 4 + [1, 0])
    assert loess(0.75)(ladder_of(y, p))[0] == close(0.5)  # 7 of the 8 tied samples are the window
    assert loess(1.0, 0)(ladder_of(y, p))[2] < 0.5


def test_the_curve_is_cut_off_at_0_and_1():
    p, y = np.array([0.2, 0.4, 0.6, 0.8, 0.9]), np.array([0, 0, 1, 1, 1])
    assert loess(1.0)(ladder_of(y, p)).max() > 1
    assert cal.EMAX.replace(smoother=lambda ladder: ladder.values + 5.0)(y, p).value == close(0.8)


def test_calibrated_forecasts_have_a_small_index():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    assert cal.ICI(y, p).value < 0.01
    assert cal.ICI(rng.random(20_000) < p**2, p).value == close(1 / 6, abs=0.01)  # the mean of p - p^2


def test_settings_are_checked():
    for span in (0.0, 1.1, np.nan, "wide"):
        with pytest.raises(cal.CalibrationInputError, match="span"):
            loess(span)
    with pytest.raises(cal.CalibrationInputError, match="degree"):
        loess(degree=3)
    with pytest.raises(cal.CalibrationInputError, match="q: must lie"):
        sample_quantile(1.5)
