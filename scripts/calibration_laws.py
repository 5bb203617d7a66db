"""Laws of data sets whose calibration is known, and how often a test rejects them.

    from calibration_laws import CALIBRATED, OFF, TESTS, rejections
    rejections(TESTS["calibration_test"], CALIBRATED["weights 1 to 5"], n=300, datasets=500)

A law is a function of a generator and a number of rows; laws of grouped rows have a column "group".
"""

from functools import cache, partial

import numpy as np

import calibrant as cal
from calibrant.files.reading import SHIPPED, read_scores

LEVELS = (0.01, 0.05, 0.1)
ALARMS = 500
"""Data sets of each sort over which alarms are counted."""


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@cache
def real_logits():
    """The logits of a real network, as shipped."""
    return np.asarray(read_scores(SHIPPED / "fashion_mnist_test.npz").values, np.float64)


def event(rng, n, curve=sigmoid, decimals=16, weights=None):
    """Logits of standard deviation 1.5; the event happens as often as the curve of the logit says."""
    z = rng.normal(0, 1.5, n)
    p = sigmoid(z).round(decimals)
    truth = p if curve is sigmoid else np.clip(curve(z), 0, 1)
    weight = None if weights is None else weights(rng, n)
    return cal.Predictions.from_probs((rng.random(n) < truth).astype(int), p, sample_weight=weight)


def beta(rng, n, a, b):
    """Calibrated forecasts of a beta distribution: likely or rare events."""
    p = rng.beta(a, b, n)
    return cal.Predictions.from_probs((rng.random(n) < p).astype(int), p)


def classes(rng, n, slope=1.0, width=10, shift=0.0):
    """Logits of standard deviation 2 of some classes; the truth follows the softmax of slope times them, the first
    one's shifted."""
    z = rng.normal(0, 2, (n, width))
    return cal.Predictions.from_logits(drawn(rng, slope * z + shift * (np.arange(width) == 0)), z)


def drawn(rng, logits):
    """Classes that follow the softmax of logits."""
    return (logits - np.log(-np.log(rng.random(logits.shape)))).argmax(axis=1)


def real(rng, n):
    """Rows of a real network's forecasts, with labels drawn from them."""
    z = real_logits()[rng.integers(0, len(real_logits()), n)]
    return cal.Predictions.from_logits(drawn(rng, z), z)


def labels(rng, n, count=4):
    """Independent labels."""
    p = sigmoid(rng.normal(-1, 1.5, (n, count)))
    return cal.Predictions.from_multilabel((rng.random(p.shape) < p).astype(int), p)


def grouped(rng, n, count=50, effect="shift"):
    """Groups that are too high or too low by half a logit, or too sharp or too dull; calibrated on average."""
    group, z = rng.integers(0, count, n), rng.normal(0, 1.5, n)
    p = sigmoid(z)
    shift = np.minimum((sigmoid(z + 0.5) - sigmoid(z - 0.5)) / 2, np.minimum(p, 1 - p))
    by = {"none": 0 * p, "shift": shift, "slope": 3.2 * (p - 0.5) * p * (1 - p)}[effect]
    truth = np.clip(p + rng.choice([-1, 1], count)[group] * by, 0, 1)
    return cal.Predictions.from_probs((rng.random(n) < truth).astype(int), p, group=group)


CALIBRATED = {
    "event": event,
    "likely": partial(beta, a=8, b=0.2),
    "rare": partial(beta, a=0.3, b=6),
    "ties": partial(event, decimals=1),
    "weights 1 to 5": partial(event, weights=lambda rng, n: rng.integers(1, 6, n)),
    "skewed weights": partial(event, weights=lambda rng, n: rng.lognormal(0, 1, n)),
    "10 classes": classes,
    "100 classes": partial(classes, width=100),
    "real forecasts": real,
    "labels": labels,
    "groups, no effect": partial(grouped, effect="none"),
    "groups, shifts": grouped,
    "groups, slopes": partial(grouped, effect="slope"),
}
OFF = {
    "slope .85": partial(event, curve=lambda z: sigmoid(0.85 * z)),
    "shift .2": partial(event, curve=lambda z: sigmoid(z + 0.2)),
    "shift .4": partial(event, curve=lambda z: sigmoid(z + 0.4)),
    "wave": partial(event, curve=lambda z: sigmoid(z) + 0.09 * np.sin(4 * np.pi * sigmoid(z))),
    "local": partial(event, curve=lambda z: sigmoid(z) - 0.15 * (np.abs(sigmoid(z) - 0.7) < 0.1)),
    "10 classes, slope .85": partial(classes, slope=0.85),
    "10 classes, one shifted by .8": partial(classes, shift=0.8),
}
TESTS = {
    "calibration_test": partial(cal.calibration_test, n=199),
    "cox_test": cal.cox_test,
    "spiegelhalter_test": cal.spiegelhalter_test,
    "hosmer_lemeshow_test": cal.hosmer_lemeshow_test,
    "consistency of ECE": partial(cal.consistency, cal.ECE, n=199),
}


def rejections(test, law, n, datasets=ALARMS, seed=0, groups=None):
    """How many data sets of a law a test rejects at each level.

    Every data set has redraws of its own: the same ones for all would make them right or wrong together.
    """
    data = (law(np.random.default_rng([seed, index, n]), n) for index in range(datasets))
    p = np.array([test(some, groups=groups, seed=index).p_value for index, some in enumerate(data)])
    return [int(np.sum(p <= level)) for level in LEVELS]
