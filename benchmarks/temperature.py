"""Temperature fits of 50,000 x 1,000 float32 logits: calibrant, scikit-learn, and one read of the matrix.

python benchmarks/temperature.py > benchmarks/results/temperature.txt
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal

N, K, TRUE = 50_000, 1_000, 1.7


def main() -> None:
    logits, labels = drawn()
    floor, _ = timed(lambda: logits.sum(dtype=np.float64), 5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours, fitted = timed(lambda: cal.TemperatureScaling().fit(logits, labels), 3)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / logits.nbytes
    theirs, peer = timed(lambda: scikit_learn(logits, labels), 1)
    print(f"temperature fit, {N:,} x {K:,} float32, true temperature {TRUE}")
    print(f"one read of the matrix       {1000 * floor:8.0f} ms")
    found = fitted.temperature_
    print(f"calibrant                    {1000 * ours:8.0f} ms  {ours / floor:6.1f} reads  T = {found:.6f}")
    print(f"scikit-learn                 {1000 * theirs:8.0f} ms  {theirs / floor:6.1f} reads  T = {peer:.6f}")
    print(f"scikit-learn / calibrant     {theirs / ours:8.1f}")
    print(f"memory that our fits added at their peak: {grown:.2f} of the matrix")
    print(f"our log loss less theirs     {loss(logits, labels, fitted.temperature_) - loss(logits, labels, peer):+.1e}")


def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((N, K), dtype=np.float32) * np.float32(2 * TRUE)
    labels = np.empty(N, np.int64)
    for start in range(0, N, 1000):
        block = logits[start : start + 1000] / TRUE
        labels[start : start + 1000] = (block + rng.gumbel(size=block.shape)).argmax(axis=1)
    return logits, labels


def scikit_learn(logits: np.ndarray, labels: np.ndarray) -> float:
    """The fit that scikit-learn's CalibratedClassifierCV(method="temperature") makes, without the classifier."""
    from sklearn.calibration import _TemperatureScaling

    return float(1 / _TemperatureScaling().fit(logits, labels).beta_)


def loss(logits: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    return float(cal.kernels.tempered(logits, labels, 1 / temperature)[0].mean())


def timed(make: Callable[[], Any], times: int) -> tuple[float, Any]:
    best, made = np.inf, None
    for _ in range(times):
        started = time.perf_counter()
        made = make()
        best = min(best, time.perf_counter() - started)
    return best, made


if __name__ == "__main__":
    main()
