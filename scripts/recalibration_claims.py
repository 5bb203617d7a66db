"""Claims that predictions after many recalibration methods can test, each with data under which it is false.

The data are test predictions of several models, after each method. What is best by a metric is chosen on one half of
the test rows (seed 0) and judged on the other half, so that no choice is judged by the rows that led to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.experiments.findings.claims import Claim, Difference, OutOfReach, UntestableError

Recalibrated = Mapping[str, Mapping[str, cal.Predictions]]
"""Model -> method -> test predictions."""
OTHERS = {"log loss": cal.LOG_LOSS, "SCE": cal.SCE, "wsECE": cal.WSECE}
RESAMPLES = 200
HALF = 0.5
SOME = 0.001
METHODS = 6
MANY = 50
"""Classes from which on a matrix has many weights for each row that it is fitted on."""
FREE = "matrix, no penalty"
ROWS = 600


def choices_differ(data: Recalibrated) -> Iterator[Difference]:
    """By another metric: the method that is best by ECE less the one that is best by that metric."""
    for model, methods in data.items():
        for name, metric in OTHERS.items():
            yield _regret(f"{model}, {name}", methods, cal.ECE, metric)


def sweep_differs(data: Recalibrated) -> Iterator[Difference]:
    """By the sweep: the method that is best by ECE less the one that is best by the sweep."""
    for model, methods in data.items():
        yield _regret(model, methods, cal.ECE, cal.ECE_SWEEP)


def _regret(name: str, methods: Mapping[str, cal.Predictions], chosen_by: Any, judged_by: Any) -> Difference:
    rows = np.random.default_rng(0).permutation(len(next(iter(methods.values()))))
    first, second = np.sort(rows[: len(rows) // 2]), np.sort(rows[len(rows) // 2 :])
    best = [min(methods, key=lambda each, by=by: by(methods[each][first]).value) for by in (chosen_by, judged_by)]
    words = f"{name}: {best[0]} less {best[1]}"
    if best[0] == best[1]:
        return Difference(words, 0.0, 0.0, RESAMPLES - 1)
    compared = cal.compare(judged_by, *(methods[each][second] for each in best), n=RESAMPLES, seed=0)
    return Difference(words, *_points(compared), RESAMPLES - 1)


def temperature_overshoots(data: Recalibrated) -> Iterator[Difference]:
    """MCS after temperature scaling, below 0; its error is that of the test rows."""
    for model, methods in data.items():
        after = methods["temperature"]
        hits = cal.ACCURACY(after).value
        yield Difference(model, -100 * cal.MCS(after).value, 100 * np.sqrt(hits * (1 - hits) / len(after)), 1000)


def matrix_overfits(data: Recalibrated) -> Iterator[Difference]:
    """ECE after matrix scaling without a penalty less that after one temperature, where classes are many."""
    many = {model: methods for model, methods in data.items() if methods["temperature"].n_classes >= MANY}
    if not many:
        raise UntestableError(f"no model has {MANY} classes")
    for model, methods in many.items():
        if FREE not in methods:
            raise UntestableError(f"{FREE} was not fitted")
        compared = cal.compare(cal.ECE, methods[FREE], methods["temperature"], n=RESAMPLES, seed=0)
        yield Difference(f"{model}, {FREE} less temperature", *_points(compared), RESAMPLES - 1)


def _points(compared: Any) -> tuple[float, float]:
    """A difference of two models and its error, in points, from its 90 % interval."""
    error = (compared.interval.high - compared.interval.low) / (2 * 1.6525)  # of Student's t, 199
    return 100 * compared.difference, 100 * error


def equal_methods(seed: int, classes: int = 4) -> Recalibrated:
    """Methods that are equally good: each moves calibrated logits a little, at random."""
    random = np.random.default_rng(seed)
    logits = 1.5 * random.normal(size=(ROWS, classes))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (chances.cumsum(axis=1)[:, :-1] < random.random(ROWS)[:, None]).sum(axis=1)
    names = ["temperature", FREE, *(f"method {place}" for place in range(2, METHODS))]
    moved = (logits + random.normal(0, 0.3, logits.shape) * (name != "temperature") for name in names)
    return {"net": {name: cal.Predictions.from_logits(labels, each) for name, each in zip(names, moved, strict=True)}}


def equal_many(seed: int) -> Recalibrated:
    """Many classes, and a matrix without a penalty that is as good as one temperature: both move calibrated logits."""
    ((name, methods),) = equal_methods(seed, MANY).items()
    return {name: {**methods, "temperature": methods["method 2"]}}


NO_DIFFERENCE = "methods that move calibrated forecasts at random, all alike"
CLAIMS: tuple[Claim[Recalibrated] | OutOfReach, ...] = (
    Claim(
        "What is best by ECE is not best by other metrics",
        "Kirchenbauer, Oaks & Heim (2022), sections 1 and 5.1 (of top-k and full errors)",
        "log loss, SCE and wsECE on other rows: best by ECE less best by that metric, for at least half of them "
        "(error of resampled rows)",
        choices_differ, equal_methods, NO_DIFFERENCE, share=HALF, unit="hundredths",
    ),
    Claim(
        "The preferred method changes between ECE and the sweep", "Roelofs et al. (2022), figure 2",
        "the sweep on other rows: best by ECE less best by the sweep, for at least one model "
        "(error of resampled rows)",
        sweep_differs, equal_methods, NO_DIFFERENCE, share=SOME,
    ),
    Claim(
        "Temperature scaling over-corrects into under-confidence",
        "Ao, Rueger & Siddharthan (2023), section 5.2 (of transformers)",
        "MCS after it is below 0, for at least half of the models, of which the language model alone is a transformer "
        "(error of test rows)",
        temperature_overshoots, equal_methods,
        "calibrated forecasts, labels drawn from them", share=HALF,
    ),
    Claim(
        "Matrix scaling overfits: of many classes its ECE is far above that of one temperature",
        "Nixon et al. (2019), section 8.5, table 1",
        f"ECE without a penalty less ECE after temperature scaling, models of {MANY} classes and more "
        "(error of resampled rows)",
        matrix_overfits, equal_many, "a matrix that is as good as one temperature",
    ),
)  # fmt: skip
"""Every claim about recalibration."""
