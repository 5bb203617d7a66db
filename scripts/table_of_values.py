"""Every recipe on data that do not change: the table that holds from version 0.2 on.

    python scripts/table_of_values.py            # print it
    python scripts/table_of_values.py --write    # put it into tests/values.json

Numbers from exact totals are written as hexadecimal floats, to the last bit. Numbers that go through logarithms,
exponentials or kernel sums hold to 1e-12 on any machine, and are written as decimals.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.files import SHIPPED, read

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "values.json"
BESIDE = ROOT.parent / "shared" / "data"
FLOATS = (
    *("LOG_LOSS", "SMECE", "ECE_KDE", "SKCE", "SLOPE", "INTERCEPT", "ICI", "E50", "E90", "EMAX"),
    *("AUROC", "BRIER_SKILL", "AURC", "AUGRC", "E_AURC", "ECE_LB"),
)
"""Recipes whose numbers are sums of floats."""


def shipped() -> cal.Predictions:
    """A network on Fashion-MNIST, whose logits come with the package."""
    return read(SHIPPED / "fashion_mnist_test.npz")


def decimals() -> cal.Predictions:
    """Three classes in two decimals: on the edges of bins, and tied."""
    rng = np.random.default_rng(1)
    cents = np.sort(rng.integers(0, 101, (2000, 2)), axis=1)
    p = np.diff(np.column_stack([np.zeros(2000, int), cents, np.full(2000, 100)]), axis=1) / 100
    labels = (p.cumsum(axis=1) <= rng.random(2000)[:, None]).sum(axis=1)
    return cal.Predictions.from_probs(np.minimum(labels, 2), p)


def event() -> cal.Predictions:
    """Forecasts of one event in float32, with whole weights."""
    rng = np.random.default_rng(2)
    p = rng.random(3000).astype(np.float32)
    return cal.Predictions.from_probs(rng.random(3000) < p**2, p, sample_weight=rng.integers(0, 4, 3000))


def soft() -> cal.Predictions:
    """Six classes with labels that are shares of votes."""
    rng = np.random.default_rng(3)
    p = rng.integers(1, 1000, (500, 6)).astype(np.float64)
    votes = rng.multinomial(8, np.full(6, 1 / 6), 500)
    return cal.Predictions.from_probs(votes / 8, p, normalize=True)


DATA = {"shipped": shipped, "decimals": decimals, "event": event, "soft": soft}


def beside() -> dict[str, cal.Predictions]:
    """Other people's predictions, where a folder with them lies beside the project."""
    probs = BESIDE / "netcal_cifar_probs"
    if not probs.is_dir():
        return {}
    games = read(BESIDE / "fivethirtyeight" / "nfl_games.csv", label="prob1_outcome", probs="prob1")
    return {
        "LeNet-5 on CIFAR-10": read(probs / "lenet-5-cifar-10.npz"),
        "wide ResNet on CIFAR-100": read(probs / "wideresnet-16-4-cifar-100.npz"),
        "NFL games": games[games.soft != 0.5],
    }


def row(metric: cal.Metric, predictions: cal.Predictions, *, exact: bool) -> dict[str, object] | str:
    """A recipe's value, and those of its questions; or why it has none."""
    try:
        result = metric(predictions)
    except cal.CalibrationInputError as reason:
        return str(reason)
    write = float.hex if exact else float
    return {"value": write(result.value), "values": [write(value) for value in result.values], "n": result.n}


def rows(predictions: cal.Predictions) -> dict[str, dict[str, object] | str]:
    """Every recipe; the error of pairs on 1,000 rows."""
    return {
        name: row(metric, predictions[:1000] if name == "SKCE" else predictions, exact=is_exact(name, predictions))
        for name, metric in cal.RECIPES.items()
    }


def is_exact(name: str, predictions: cal.Predictions) -> bool:
    """Whether a recipe's number is the same to the bit on every machine."""
    return name not in FLOATS and (not predictions.logits or name == "ACCURACY")


def table() -> dict[str, dict[str, dict[str, object] | str]]:
    """All of them."""
    every = {name: make() for name, make in DATA.items()} | beside()
    return {name: rows(predictions) for name, predictions in every.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write tests/values.json")
    text = json.dumps(table(), indent=1) + "\n"
    if parser.parse_args().write:
        TABLE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
