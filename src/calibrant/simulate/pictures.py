"""Pictures: a fitted model and its estimators, drawn with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.simulate.model_like_yours import Like


def picture(comparison: Like) -> Any:
    """The calibration curve that was fitted, and beside it each estimator's mean and spread around its truth.

    Returns a matplotlib figure; matplotlib is needed (`pip install calibrant[plot]`).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    scores = np.linspace(0, 1, 400)[1:-1]
    left.plot([0, 1], [0, 1], color="grey", linewidth=1, label="calibrated")
    left.plot(scores, comparison.fit.curves.curve(scores), color="C0", label=comparison.fit.curves.best.name)
    left.set(xlabel="forecast", ylabel="comes true", xlim=(0, 1), ylim=(0, 1), title="fitted curve")
    left.legend()
    places = np.arange(len(comparison.biases))
    estimates = comparison.biases.values()
    means, spreads, truths = np.array([[estimate.mean, estimate.sd, estimate.truth] for estimate in estimates]).T
    right.errorbar(means, places, xerr=spreads, fmt="o", color="C0", label="simulated")
    right.plot(truths, places, "|", color="black", markersize=16, label="truth")
    right.plot(list(comparison.observed.values()), places, "x", color="C1", label="observed")
    right.legend()
    right.set_yticks(places, list(comparison.biases))
    right.invert_yaxis()
    right.set(xlabel="error", title=f"{comparison.n:,} samples")
    return figure
