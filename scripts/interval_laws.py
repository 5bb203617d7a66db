"""Laws of data sets of which the limit of every metric is known: forecasts, and the chances with which they come true.

    from interval_laws import LAWS, Law, limit
    sample = LAWS["event, ties", "jagged"](np.random.default_rng(0), 200)
    limit("ECE", "event, ties", "jagged")

A limit is the metric's value on very many rows with their chances as soft labels.
"""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from calibration_laws import real_logits, sigmoid

import calibrant as cal

MANY = 400_000
"""Rows whose chances give the limits of metrics of events; of K classes, 4 / K of them."""
SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "mostly likely": lambda rng, n: rng.beta(2.8, 0.5, n),
    "mostly rare": lambda rng, n: sigmoid(rng.normal(-2.5, 1.0, n)),
    "very likely": lambda rng, n: rng.beta(12, 0.4, n),
    "ties": lambda rng, n: rng.beta(1, 1, n).round(1).clip(0.05, 0.95),
    "few values": lambda rng, n: rng.choice([0.04, 0.15, 0.35, 0.8], n, p=[0.45, 0.3, 0.15, 0.1]),
}
CURVES = {
    "calibrated": lambda p: p,
    "slightly off": lambda p: p**1.15,
    "clearly off": lambda p: sigmoid(0.6 * np.log(p / (1 - p))),
    "shifted": lambda p: sigmoid(np.log(p / (1 - p)) - 0.3),
    "jagged": lambda p: np.clip(p + 0.1 * np.sign(np.sin(25 * p)) * np.minimum(1, 8 * np.minimum(p, 1 - p)), 0, 1),
}
SLOPES = {"calibrated": 1.0, "slightly off": 0.9, "clearly off": 0.6}
GROUPED = ("calibrated", "slightly off", "clearly off")


@dataclass(frozen=True)
class Sample:
    """Forecasts, the chances with which they come true on average, and in these groups; weights and groups."""

    forecasts: np.ndarray
    chances: np.ndarray
    here: np.ndarray | None = None
    weight: np.ndarray | None = None
    group: np.ndarray | None = None
    labels: int = 0
    """Labels a row that happen together: each is an event of the same law."""

    def predictions(self, rng):
        """With outcomes drawn by chance."""
        if self.labels:
            chances = self.chances.reshape(-1, self.labels)
            happened = (rng.random((len(chances), 1)) < chances) * 1
            return cal.Predictions.from_multilabel(happened, self.forecasts.reshape(-1, self.labels))
        columns = {} if self.group is None else {"group": self.group}
        labels = outcomes(self.chances if self.here is None else self.here, rng)
        return cal.Predictions.from_probs(labels, self.forecasts, sample_weight=self.weight, **columns)


def outcomes(chances, rng):
    """What came true, by chance."""
    if chances.ndim == 1:
        return (rng.random(len(chances)) < chances) * 1
    return (chances.cumsum(axis=1) < rng.random((len(chances), 1))).sum(axis=1).clip(0, chances.shape[1] - 1)


def event(rng, n, scores, curve, weights=None):
    """Forecasts of an event."""
    p = np.clip(SCORES[scores](rng, n), 1e-6, 1 - 1e-6)
    return Sample(p, CURVES[curve](p), weight=None if weights is None else weights(rng, n))


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def classes(rng, n, width, slope, groups=0):
    """Forecasts of classes; in groups the first class takes from the second, or gives to it."""
    z = rng.normal(0, 1.7, (n, width)) + np.random.default_rng(3).normal(0, 0.5, width)
    chances = softmax(slope * z)
    if not groups:
        return Sample(softmax(z), chances)
    group = rng.integers(0, groups, n)
    moved = 0.3 * np.minimum(chances[:, :1], chances[:, 1:2]) * rng.choice([-1, 1], groups)[group][:, None]
    here = chances.copy()
    here[:, :1] += moved
    here[:, 1:2] -= moved
    return Sample(softmax(z), chances, here, group=group)


def sure_classes(rng, n, width, slope):
    """Forecasts of a network that is nearly sure of most rows: a few values, shared by the other classes alike."""
    top, likeliest = rng.choice([0.999, 0.99, 0.95, 0.8], n, p=[0.6, 0.2, 0.1, 0.1]), rng.integers(0, width, n)
    p = np.repeat((1 - top)[:, None] / (width - 1), width, axis=1)
    p[np.arange(n), likeliest] = top
    return Sample(p, softmax(slope * np.log(p)))


def real(rng, n, slope):
    """Rows of a real network's forecasts with labels drawn from them, or from softer ones."""
    z = real_logits()
    z = z[rng.integers(0, len(z), n)] if n < MANY // 10 else z
    return Sample(softmax(z), softmax(slope * z))


def labels(rng, n, curve, count=4):
    """Labels of rows, whose forecasts resemble each other."""
    z = rng.normal(0, 1, (n, 1)) + rng.normal(0, 1, (n, count))
    p = sigmoid(z).ravel()
    return Sample(p, CURVES[curve](p), labels=count)


def grouped(rng, n, curve, count, effect):
    """Groups whose chances are higher or lower, or sharper or duller, than the curve says; as it says on average."""
    p = rng.random(n).clip(1e-6, 1 - 1e-6)
    chances, group = CURVES[curve](p), rng.integers(0, count, n)
    room = np.minimum(chances, 1 - chances)
    by = {"shifts": 0.5 * room, "slopes": np.clip(3 * (p - 0.5) * p * (1 - p), -room, room)}[effect]
    return Sample(p, chances, chances + rng.choice([-1, 1], count)[group] * by, group=group)


LAWS = {
    **{
        (f"event, {scores}", curve): partial(event, scores=scores, curve=curve) for scores in SCORES for curve in CURVES
    },
    **{
        (f"{width} classes", curve): partial(classes, width=width, slope=slope)
        for width in (10, 100)
        for curve, slope in SLOPES.items()
    },
    **{("2 classes", curve): partial(classes, width=2, slope=slope) for curve, slope in SLOPES.items()},
    **{
        (f"{width} classes, nearly sure", curve): partial(sure_classes, width=width, slope=slope)
        for width in (3, 10)
        for curve, slope in SLOPES.items()
    },
    **{("real forecasts", curve): partial(real, slope=SLOPES[curve]) for curve in ("calibrated", "clearly off")},
    **{
        (name, curve): partial(event, scores=scores, curve=curve, weights=weights)
        for name, scores, weights in (
            ("weights 1 to 5", "uniform", lambda rng, n: rng.integers(1, 6, n)),
            ("skewed weights", "mostly likely", lambda rng, n: rng.lognormal(0, 1, n)),
        )
        for curve in ("calibrated", "clearly off")
    },
    **{("4 labels", curve): partial(labels, curve=curve) for curve in GROUPED},
    **{
        (f"{count} groups, {effect}", curve): partial(grouped, curve=curve, count=count, effect=effect)
        for count in (30, 100, 200)
        for effect in ("shifts", "slopes")
        for curve in GROUPED
    },
    **{
        ("10 classes, 50 groups", curve): partial(classes, width=10, slope=slope, groups=50)
        for curve, slope in SLOPES.items()
    },
}


@cache
def population(data, regime):
    """Very many forecasts, and the chances with which they come true."""
    width = int(data.split()[0]) if "classes" in data else 1
    sample = LAWS[data, regime](np.random.default_rng(7), MANY if width < 4 else 4 * MANY // width)
    return sample.forecasts, sample.chances


@cache
def equal_mass(data, regime):
    """The table from which the error of any number of bins of equal mass follows."""
    p, chances = population(data, regime)
    return cal.ADAPTIVE_ECE.summarise(chances, p)


@cache
def limit(name, data, regime, n_bins=0):
    """The value of a recipe as rows grow in number; of the sweep, with as many bins as a data set has chosen."""
    p, chances = population(data, regime)
    expected = {"BRIER": brier, "LOG_LOSS": log_loss, "BRIER_SKILL": brier_skill}
    if name in expected:
        return float(expected[name](p, chances))
    if name == "ECE_SWEEP":
        return cal.ADAPTIVE_ECE.replace(binning=cal.EqualMass(n_bins)).conclude(equal_mass(data, regime)).value
    metric = cal.RECIPES[name]
    if name == "ECE_DEBIASED":  # its variance term vanishes, and soft labels need none
        metric = metric.replace(distance=cal.squared)
    return metric(chances, p).value


def brier(p, chances):
    """The expected Brier score."""
    if p.ndim == 1:
        return (p**2 - 2 * p * chances + chances).mean()
    return ((p**2).sum(axis=1) - 2 * (p * chances).sum(axis=1) + 1).mean()


def log_loss(p, chances):
    """The expected log loss."""
    if p.ndim == 1:
        return -(chances * np.log(p) + (1 - chances) * np.log1p(-p)).mean()
    return -(chances * np.log(p)).sum(axis=1).mean()


def brier_skill(p, chances):
    """The expected Brier score against that of the base rate."""
    rate = chances.mean()
    return 1 - brier(p, chances) / (rate * (1 - rate))
