"""Data under which claims about networks are false, from a seed: equal methods, calibrated forecasts, steady curves."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from study_records import BASE, Records

from calibrant.predictions import Predictions
from calibrant.recipes import ACCURACY, MCS, WSMCS

SEEDS = 5
ROWS = 200
METHODS = (
    BASE, "label_smoothing 0.1", "focal 2", "flsd 3", "temperature", "vector", "matrix", "isotonic", "cwmcs",
)  # fmt: skip
METRICS = ("accuracy", "ece", "top5_ece", "full_ece", "sce", "ace", "wsece", "wsmcs")
GROUPS = {
    "coarse": {"one": ("0", "1", "2"), "other": ("3", "4", "5")},
    "fine": {"a": ("0", "1"), "b": ("2", "3"), "c": ("4",), "d": ("5",)},
}


def equal(seed: int, more: tuple[str, ...] = ()) -> Records:
    """Every method is the base, drawn anew: the same mean, independent noise in each seed."""
    return _records(seed, methods=(*METHODS, *more))


def shrunk(seed: int, more: tuple[str, ...] = ()) -> Records:
    """Every method leaves nine tenths of the base's errors."""
    return _records(seed, 0.9, (*METHODS, *more))


def no_order(seed: int) -> Records:
    """All methods are equal by ECE, and clearly ordered by every other error: ECE has no order to turn round."""
    random = np.random.default_rng(seed)
    values = {
        ("net", method, metric): 0.05 + 0.02 * place * (metric != "ece") + random.normal(0, 0.005, SEEDS)
        for place, method in enumerate(METHODS)
        for metric in METRICS
    }
    return Records(values)


def less_accurate(seed: int) -> Records:
    """Class-wise temperatures cost a tenth of a point of accuracy."""
    records = _records(seed)
    values = {**records.values}
    values["net", "cwmcs", "accuracy"] = values["net", BASE, "accuracy"] - 0.001
    random = np.random.default_rng(seed)
    values["net", "cwmcs", "accuracy"] = values["net", "cwmcs", "accuracy"] + random.normal(0, 0.0005, SEEDS)
    return Records(values, records.sheets)


def _records(seed: int, level: float = 1.0, methods: tuple[str, ...] = METHODS) -> Records:
    random = np.random.default_rng(seed)
    values = {
        ("net", method, metric): 0.05 * (1.0 if method == BASE else level) + random.normal(0, 0.005, SEEDS)
        for method in methods
        for metric in METRICS
    }
    return Records(values, _sheets(random, methods))


def _sheets(random: np.random.Generator, methods: tuple[str, ...]) -> dict[str, list[dict[str, str]]]:
    """Sheets in which every method has the same mean."""
    sheets: dict[str, list[dict[str, str]]] = {}
    for method in methods:
        named = {"model": "net", "method": method}
        for sheet, column, rows in _SHEETS:
            sheets.setdefault(sheet, []).extend({**named, **row, **_spread(random, column)} for row in rows)
    for row in sheets["figure_ranked_confidence"]:  # differences from the base: their mean is 0
        row["difference"] = str(float(row["difference"]) - 0.05)
    return sheets


_SHEETS: tuple[tuple[str, str, tuple[dict[str, str], ...]], ...] = (
    ("figure_top_k", "value", tuple({"measure": name} for name in ("top 2", "top 3", "top 4", "top 5", "full"))),
    ("figure_ranked_confidence", "difference", ({"k": "1"}, {"k": "2"})),
    ("figure_groups", "value",
     tuple({"level": "kind", "measure": name} for name in ("all samples", "samples of a", "samples of b"))),
    ("figure_entropy", "value", ({"measure": "entropy"},)),
    ("figure_likert_counts", "value", ({"measure": "[0.33, 0.66)"},)),
    ("figure_risk_coverage", "accuracy of the rest",
     tuple({"referred": share} for share in ("0.15", "0.2", "0.25", "0.3", "0.35", "0.4"))),
)  # fmt: skip


def _spread(random: np.random.Generator, column: str, mean: float = 0.05, seeds: int = SEEDS) -> dict[str, str]:
    """Mean and deviation of a normal value for each seed, as a sheet has them."""
    return _told(column, random.normal(mean, 0.005, seeds))


def _told(column: str, values: Any) -> dict[str, str]:
    return {column: str(values.mean()), f"{column} sd": str(values.std(ddof=1)), f"{column} seeds": str(len(values))}


def steady_growth(seed: int) -> Records:
    """A full error that grows by one point at each halving of gamma, seen with the noise of resamples."""
    random = np.random.default_rng(seed)
    rows = [
        {"model": "net", "over": "gamma", "setting": str(0.5**place), "value": str(0.01 * place + noise), "sd": "0.002"}
        for place, noise in enumerate(random.normal(0, 0.002, 7))
    ]
    return Records({("net", BASE, "ece"): np.zeros(SEEDS)}, {"figure_gamma_sweep": rows})


def flat_curves(seed: int) -> Records:
    """Errors over training that stay at one point, of a network that has fitted its training rows."""
    random = np.random.default_rng(seed)
    rows = [
        {"model": "net", "method": BASE, "rows": part, "metric": metric, "epoch": str(epoch),
         **_spread(random, "value", mean)}
        for metric, mean in (("ece", 0.01), ("accuracy", 0.99))
        for part in ("train", "validation")
        for epoch in range(1, 8)
    ]  # fmt: skip
    return Records({("net", BASE, "ece"): np.zeros(SEEDS)}, {"figure_over_training": rows})


@lru_cache(maxsize=512)
def calibrated(seed: int) -> Records:
    """Six classes, forecasts whose labels are drawn from them: nothing to find. All methods have the same rows."""
    random = np.random.default_rng(seed)
    logits = 1.5 * random.normal(size=(ROWS, 6))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (chances.cumsum(axis=1)[:, :-1] < random.random(ROWS)[:, None]).sum(axis=1)
    values: dict[tuple[str, str, str], Any] = {}
    sheet = []
    for method in METHODS:
        several = _several(random, labels, logits)
        values["net", method, "mcs"] = np.array([MCS(each).value for each in several])
        values["net", method, "accuracy"] = np.array([ACCURACY(each).value for each in several])
        shares = np.array([100 * WSMCS(each).details["share_under"] for each in several])
        sheet.append({"model": "net", "method": method, **_told("classes under %", shares)})
    predictions = {"net": _several(random, labels, logits)[:2]}
    return Records(values, {"miscalibration": sheet}, predictions, GROUPS, ROWS, 6)


def _several(random: np.random.Generator, labels: Any, logits: Any) -> list[Predictions]:
    """The answers of a network from several seeds, nearly alike."""
    names = [str(place) for place in range(6)]
    return [
        Predictions.from_logits(labels, logits + random.normal(0, 0.05, logits.shape), classes=names)
        for _ in range(SEEDS)
    ]


def calibrated_transformer(seed: int) -> Records:
    """The same network under the name of a transformer."""
    records = calibrated(seed)
    return replace(
        records, values={("vit", method, metric): each for (_, method, metric), each in records.values.items()}
    )


def equal_sizes(seed: int) -> Records:
    """Networks in four widths whose errors do not follow them."""
    random = np.random.default_rng(seed)
    titles = {f"net width {width}": width for width in (8, 16, 32, 64)}
    values = {
        (title, BASE, metric): 0.05 + random.normal(0, 0.005, SEEDS)
        for title in titles
        for metric in ("accuracy", "ece")
    }
    rows = [{"networks": "net by width", "model": title, "size": str(width)} for title, width in titles.items()]
    return Records(values, {"figure_sizes": rows})


def flat_courses(seed: int) -> Records:
    """Two seeds of networks of which nothing changes over training, and whose first weights do not matter."""
    return _courses(seed, 0.9)


def less_accurate_course(seed: int) -> Records:
    """The same, but one first weight costs a point of accuracy."""
    return _courses(seed, 0.89)


def _courses(seed: int, accuracy: float) -> Records:
    random = np.random.default_rng(seed)
    models, epochs = ("cnn glorot", "cnn normal"), [str(epoch) for epoch in range(1, 8)]
    sheets: dict[str, list[dict[str, str]]] = {"metrics": []}
    for model in models:
        level = accuracy if model == "cnn normal" else 0.9
        cells = _spread(random, "accuracy", level, 2) | _spread(random, "ece", 0.05, 2)
        sheets["metrics"].append({"model": model, "method": BASE, **cells})
        for sheet, column, rows in _COURSES:
            sheets.setdefault(sheet, []).extend(
                {"model": model, "method": BASE, "epoch": epoch, **row, **_spread(random, column, mean[model], 2)}
                for epoch in epochs
                for row, mean in rows
            )
    return Records({("cnn glorot", BASE, "ece"): np.zeros(2)}, sheets)


def _both(*rows: dict[str, str], mean: float = 0.05, normal: float | None = None) -> Any:
    """Rows with the means of the two first weights."""
    means = {"cnn glorot": mean, "cnn normal": mean if normal is None else normal}
    return tuple((row, means) for row in rows)


_VALIDATION = {"rows": "validation"}
_COURSES: tuple[tuple[str, str, Any], ...] = (
    ("figure_range_bounds", "lower bound", _both({**_VALIDATION, "metric": "ACE", "range": "12"}, mean=0.01)),
    ("figure_range_errors", "value",
     _both(*({**_VALIDATION, "metric": metric} for metric in ("ACE, 100 ranges", "TACE, 50 ranges")))),
    ("figure_bins_over_training", "gap",
     (*_both({**_VALIDATION, "confidence": "0.8-0.9"}), *_both({**_VALIDATION, "confidence": "0.9-1.0"}, mean=0.02))),
    ("figure_logit_norms", "length", _both(_VALIDATION, normal=5.0)),
)  # fmt: skip
