"""Pictures: a fitted model and its estimators, drawn with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.simulate.likeness import Like


def picture(found: Like) -> Any:
    """The calibration curve that was fitted, and beside it each estimator's mean and spread around its truth.

    Returns a matplotlib figure; matplotlib is needed (`pip install calibrant[plot]`).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    scores = np.linspace(0, 1, 400)[1:-1]
    left.plot([0, 1], [0, 1], color="grey", linewidth=1, label="calibrated")
    left.plot(scores, found.fit.curves.curve(scores), color="C0", label=found.fit.curves.best.name)
    left.set(xlabel="forecast", ylabel="comes true", xlim=(0, 1), ylim=(0, 1), title="fitted curve")
    left.legend()
    places = np.arange(len(found.biases))
    means, spreads, truths = np.array([[one.mean, one.sd, one.truth] for one in found.biases.values()]).T
    right.errorbar(means, places, xerr=spreads, fmt="o", color="C0", label="simulated")
    right.plot(truths, places, "|", color="black", markersize=16, label="truth")
    right.plot(list(found.observed.values()), places, "x", color="C1", label="observed")
    right.legend()
    right.set_yticks(places, list(found.biases))
    right.invert_yaxis()
    right.set(xlabel="error", title=f"{found.n:,} samples")
    return figure
