"""Laws of data sets whose calibration is known, and how often a test rejects them.

    from calibration_laws import CALIBRATED, OFF, rejections
    rejections(lambda p: cal.calibration_test(p, n=199).p_value, CALIBRATED["weights"], n=300, datasets=500)

A law is a function of a generator and a number of rows; laws of grouped rows have a column "group".
"""

from functools import cache, partial

import numpy as np

import calibrant as cal
from calibrant.files.reading import SHIPPED, read_scores

LEVELS = (0.01, 0.05, 0.1)
CLASSES = 10


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@cache
def real_logits():
    """The logits of a real network, as shipped."""
    return np.asarray(read_scores(SHIPPED / "fashion_mnist_test.npz")[0], np.float64)


def event(rng, n, curve=sigmoid, decimals=16, weights=None):
    """Logits of standard deviation 1.5; the event happens as often as the curve of the logit says."""
    z = rng.normal(0, 1.5, n)
    p = sigmoid(z).round(decimals)
    truth = p if curve is sigmoid else np.clip(curve(z), 0, 1)
    weight = None if weights is None else rng.integers(1, weights + 1, n)
    return cal.Predictions.from_probs((rng.random(n) < truth).astype(int), p, sample_weight=weight)


def beta(rng, n, a, b):
    """Calibrated forecasts of a beta distribution: likely or rare events."""
    p = rng.beta(a, b, n)
    return cal.Predictions.from_probs((rng.random(n) < p).astype(int), p)


def classes(rng, n, slope=1.0):
    """Logits of standard deviation 2 of ten classes; the truth follows the softmax of slope times them."""
    z = rng.normal(0, 2, (n, CLASSES))
    gumbel = -np.log(-np.log(rng.random(z.shape)))
    return cal.Predictions.from_logits((slope * z + gumbel).argmax(axis=1), z)


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
    "weights": partial(event, weights=5),
    "top label": classes,
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
    "top label, slope .85": partial(classes, slope=0.85),
}
TESTS = {
    "calibration_test": lambda p, groups=None: cal.calibration_test(p, n=199, groups=groups).p_value,
    "cox_test": lambda p, groups=None: cal.cox_test(p, groups=groups).p_value,
    "spiegelhalter_test": lambda p, groups=None: cal.spiegelhalter_test(p, groups=groups).p_value,
    "hosmer_lemeshow_test": lambda p, groups=None: cal.hosmer_lemeshow_test(p, groups=groups).p_value,
    "consistency of ECE": lambda p, groups=None: cal.consistency(cal.ECE, p, n=199, groups=groups).p_value,
}


def rejections(test, law, n, datasets=500, seed=0):
    """The share of data sets of a law that a test rejects at each level."""
    p_values = np.array([test(law(np.random.default_rng([seed, index, n]), n)) for index in range(datasets)])
    return {level: float(np.mean(p_values <= level)) for level in LEVELS}
