"""Murphy's decomposition: parts against loops and by hand; they add up to the Brier score whatever the bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from oracles import clinical
from strategies import events

close = pytest.approx
BINNINGS = [cal.EqualWidth(), cal.EqualWidth(3, "left"), cal.Edges([0, 0.3, 1]), cal.EqualMass(4), cal.Quantiles(5)]
SIGNS = {"resolution": -1, "within_bin_covariance": -1}


@pytest.mark.parametrize("binning", [*BINNINGS, cal.Sweep(cal.EqualMass())], ids=repr)
@given(data=events())
def test_the_parts_add_up_to_the_brier_score(binning, data):
    p, y = data
    result = cal.BrierDecomposition(binning=binning)(y, p)
    *parts, score = result.details.items()
    assert score == ("score", close(cal.BRIER(y, p).value, abs=1e-12))
    assert sum(SIGNS.get(name, 1) * part for name, part in parts) == close(score[1], abs=1e-15)
    assert result.value == result.details["reliability"]


@given(data=events(), n_bins=st.integers(1, 20))
def test_the_parts_are_those_of_the_loop(data, n_bins):
    p, y = data
    p = (np.round(p * 64) + 0.5) / 65  # off the edges: the loop knows nothing of rounding
    details = cal.BrierDecomposition(binning=cal.EqualWidth(n_bins))(y, p).details
    for name, part in clinical.murphy(p.tolist(), y.tolist(), n_bins).items():
        assert details[name] == close(part, abs=1e-12)


@given(data=events())
def test_reliability_is_the_squared_error_of_the_bins(data):
    p, y = data
    for binning in BINNINGS:
        squared = cal.BinnedError(binning=binning, distance=cal.squared)(y, p)
        assert cal.BrierDecomposition(binning=binning)(y, p).value == close(squared.value, abs=1e-15)


def test_equal_forecasts_leave_nothing_within_bins():
    p = np.repeat([0.1, 0.5, 0.9], 10)
    y = np.tile([0, 0, 1, 0, 1], 6)
    details = cal.BrierDecomposition()(y, p).details
    assert details["within_bin_variance"] == close(0, abs=1e-16)
    assert details["within_bin_covariance"] == close(0, abs=1e-16)
    assert details["score"] == close(details["reliability"] - details["resolution"] + details["uncertainty"])


def test_bins_of_several_coordinates_are_refused():
    for binning in (cal.KDTree(), cal.EqualWidth):
        with pytest.raises(cal.CalibrationInputError, match="BrierDecomposition: needs bins of one coordinate"):
            cal.BrierDecomposition(binning=binning)
