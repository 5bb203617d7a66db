"""Strategies: predictions as users have them, with ties, edges, rounded and saturated values."""

import numpy as np
from hypothesis import strategies as st

import calibrant as cal

FIVE_OR_SIX = st.integers(5, 6)


@st.composite
def rows(draw, *, most=30, classes=FIVE_OR_SIX):
    """Probabilities (n, K) and labels: rounded to a few decimals half of the time, so that values tie."""
    n = draw(st.integers(1, most))
    k = draw(classes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = rng.dirichlet(np.full(k, draw(st.sampled_from([0.05, 0.5, 5.0]))), size=n)
    if draw(st.booleans()):
        p = np.round(p, draw(st.integers(1, 3)))
        p[:, 0] = np.maximum(0.0, 1.0 - p[:, 1:].sum(axis=1))
        p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(0, draw(st.integers(1, k)), size=n)
    return p, y


@st.composite
def events(draw, *, most=40):
    """Probabilities of one event and outcomes."""
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = rng.beta(*draw(st.sampled_from([(1.0, 1.0), (3.0, 0.1), (0.3, 0.3)])), size=n)
    if draw(st.booleans()):
        p = np.round(p, draw(st.integers(1, 2)))
    return p, (rng.random(n) < p).astype(int)


def same(a: cal.Result, b: cal.Result) -> bool:
    """Equal to the bit: value, details, parts (nan equals nan)."""
    numbers = [np.array([r.value, *r.details.values(), *r.values, *r.sizes], dtype=float) for r in (a, b)]
    return a.n == b.n and list(a.details) == list(b.details) and np.array_equal(*numbers, equal_nan=True)
