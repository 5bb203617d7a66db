"""Arrays: labels, forecasts and options that are mutated, given to every constructor and every public function.

The oracle: a `CalibrationInputError`, or the number that a plain loop finds in the arrays as NumPy understands them.
"""

import math
import warnings

import numpy as np

import calibrant as cal
from fuzz.formats import ALIKE, CHANGED, REFUSED, TRACEBACK
from fuzz.mutations import of_values

RNG = np.random.default_rng(5)
N = 12
P = np.round(RNG.random(N), 3)
HAPPENED = (RNG.random(N) < P).astype(int)
ROWS = RNG.dirichlet(np.ones(3), N)
LABELS = np.append(ROWS[2:].argmax(axis=1), [0, 1])
TOP = np.argsort(-ROWS, axis=1)[:, :2]
MANY = (RNG.random((N, 3)) < 0.5).astype(int)
WEIGHT = RNG.integers(1, 4, N).astype(float)
ONE_BIN = cal.ECE.replace(binning=cal.EqualWidth(1))

CONSTRUCTORS = {
    "from_probs, event": (cal.Predictions.from_probs, (HAPPENED, P)),
    "from_probs, classes": (cal.Predictions.from_probs, (LABELS, ROWS)),
    "from_logits, event": (cal.Predictions.from_logits, (HAPPENED, np.log(P / (1 - P)))),
    "from_logits, classes": (cal.Predictions.from_logits, (LABELS, np.log(ROWS))),
    "from_confidence": (cal.Predictions.from_confidence, (HAPPENED, P)),
    "from_multilabel": (cal.Predictions.from_multilabel, (MANY, ROWS)),
    "from_top_k": (
        lambda y, ids, p: cal.Predictions.from_top_k(y, ids, p, n_classes=3),
        (LABELS, TOP, np.take_along_axis(ROWS, TOP, 1)),
    ),
    "weights": (lambda y, p, w: cal.Predictions.from_probs(y, p, sample_weight=w), (HAPPENED, P, WEIGHT)),
}
METRICS = [cal.ECE, cal.ADAPTIVE_ECE, cal.BRIER, cal.LOG_LOSS, cal.SCE, cal.FULL_ECE, cal.SMECE]


def functions():
    """Public functions that take arrays."""
    calls = {f"metric {name}": (metric, (LABELS, ROWS)) for name, metric in cal.RECIPES.items()}
    calls["summarise"] = (lambda y, p: cal.ECE.conclude(cal.ECE.summarise(y, p)), (HAPPENED, P))
    calls["Stream"] = (lambda y, p: cal.Stream(cal.ECE).update(y, p).result(), (HAPPENED, P))
    calls["table"] = (lambda y, p: cal.table(cal.Predictions.from_probs(y, p), {"ece": cal.ECE}), (HAPPENED, P))
    for name in ("TemperatureScaling", "PlattScaling", "IsotonicCalibration", "HistogramBinning", "VectorScaling"):
        calls[f"fit {name}"] = (_fitted(getattr(cal, name)), (np.log(ROWS), LABELS))
    fitted = cal.TemperatureScaling().fit(np.log(ROWS), LABELS)
    calls["predict_proba"] = (fitted.predict_proba, (np.log(ROWS),))
    for test in (cal.spiegelhalter_test, cal.cox_test, cal.hosmer_lemeshow_test):
        calls[test.__name__] = (_tested(test), (HAPPENED, P))
    return calls


def _fitted(method):
    return lambda z, y: method().fit(z, y).predict_proba(np.log(ROWS))


def _tested(test):
    return lambda y, p: test(cal.Predictions.from_probs(y, p)).p_value


def mutated(arguments, random):
    """The arguments, one of them changed."""
    index = int(random.integers(len(arguments)))
    return [of_values(array, random) if place == index else array for place, array in enumerate(arguments)]


def gap(labels, p):
    """|mean forecast - mean outcome| of one event, by a plain loop: the error of one bin."""
    pairs = [(float(y), float(each)) for y, each in zip(np.ravel(labels), np.ravel(p), strict=True)]
    return abs(math.fsum(each for _, each in pairs) - math.fsum(y for y, _ in pairs)) / len(pairs)


def verdict(call, arguments, plain=None):
    """What a call comes to, in a word, and the fault, if it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        try:
            outcome = call(*arguments)
            if isinstance(outcome, cal.Predictions):
                measured(outcome)
        except cal.CalibrationInputError:
            return REFUSED, None
        except Exception as error:
            return TRACEBACK, error
    if plain is not None and not math.isclose(ONE_BIN(outcome).value, plain(*arguments), abs_tol=1e-6):  # float16
        return CHANGED, ONE_BIN(outcome).value
    return ALIKE, None


def measured(predictions):
    """What was accepted can be measured; a metric may refuse the kind."""
    for metric in METRICS:
        try:
            value = metric(predictions).value
        except cal.CalibrationInputError:
            continue
        assert not math.isnan(value) or len(predictions) < 3, metric.name
