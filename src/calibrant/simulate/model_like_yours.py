"""A model like yours: how far its calibration errors are to be trusted, found on simulated models that are like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import recipes
from calibrant.checks import whole
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.simulate.biases import Biases, Estimate, bias
from calibrant.simulate.model_fit import ModelFit, fit_model
from calibrant.simulate.named import to_json
from calibrant.simulate.outcomes import outcomes_of
from calibrant.text import aligned

USUAL: dict[str, Metric] = {
    name: recipes.RECIPES[name] for name in ("ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "SMECE", "ECE_KDE")
}
"""The estimators that are compared where none are named."""
NEARLY = 1.1
"""An estimator whose relative error is within this factor of the best one's is nearly as good."""


HOPELESS = 0.75
"""An error of more than this share of the truth tells nothing about it."""


@dataclass(frozen=True, eq=False)
class Like:
    """Estimators on models like the given one: their bias and spread at its n, beside what they say of it."""

    n: int
    question: str
    fit: ModelFit
    biases: Biases
    observed: Mapping[str, float]

    def relative(self, name: str) -> float:
        """An estimator's root mean squared error as a share of the truth it estimates."""
        estimate = self.biases[name]
        return estimate.rmse / estimate.truth if estimate.truth > 0 else float("inf")

    @property
    def trusted(self) -> str:
        """The estimator with the smallest error relative to its truth."""
        there = [name for name in self.biases if not np.isnan(self.biases[name].rmse)]
        return min(there or list(self.biases), key=lambda name: (self.relative(name), self.biases[name].rmse))

    @property
    def nearly_as_good(self) -> tuple[str, ...]:
        """The others whose relative error is almost as small."""
        limit = NEARLY * self.relative(self.trusted)
        return tuple(name for name in self.biases if name != self.trusted and self.relative(name) <= limit)

    def __str__(self) -> str:
        header = ("estimator", "of", "observed", "truth", "mean", "bias", "sd", "rmse/truth", "less bias")
        table = aligned(header, [self._cells(name, estimate) for name, estimate in self.biases.items()], right=True)
        best = self.trusted
        off = f"{100 * self.relative(best):.0f}% of the truth"
        if not self.relative(best) <= HOPELESS:
            advice = f"Trust none of them at this n: on models like this even {best} is off by {off}"
        else:
            advice = f"Trust {best} most: on models like this it is off by {off}"
        others = f"; nearly as good: {', '.join(self.nearly_as_good)}" if self.nearly_as_good else ""
        doubt = "" if self.fit.reproduces else (
            "\nThe simulated models do not behave like yours: read all this with doubt."
        )  # fmt: skip
        return f"{self.n:,} forecasts ({self.question})\n{self.fit}\n\n{table}\n\n{advice}{others}.{doubt}"

    def _cells(self, name: str, estimate: Estimate) -> list[str]:
        seen = self.observed[name]
        numbers = (seen, estimate.truth, estimate.mean)
        signed = f"{estimate.bias:+.4f}"
        rest = (f"{estimate.sd:.4f}", f"{100 * self.relative(name):.0f}%", f"{seen - estimate.bias:.4f}")
        return [name, estimate.target, *(f"{number:.4f}" for number in numbers), signed, *rest]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        best = self.fit.curves.best
        law = self.fit.scores
        return {
            "n": self.n,
            "question": self.question,
            "scores": {**self.fit.law.described(), "nll": law.nll, "floored": law.floored, "eps": law.eps},
            "curve": {"name": best.name, "b0": best.curve.b0, "b1": best.curve.b1, "aic": best.aic},
            "curves": [{"name": fit.name, "nll": fit.nll, "aic": fit.aic} for fit in self.fit.curves.fits],
            "binned_errors": {
                name: {"observed": self.fit.observed[name], "simulated": estimate.mean, "sd": estimate.sd}
                for name, estimate in self.fit.simulated.items()
            },
            "reproduces": self.fit.reproduces,
            "estimators": {
                name: {**estimate.to_dict(), "observed": self.observed[name], "relative_rmse": self.relative(name)}
                for name, estimate in self.biases.items()
            },
            "trusted": self.trusted,
            "nearly_as_good": list(self.nearly_as_good),
        }

    def to_json(self) -> str:
        """The comparison as JSON."""
        return to_json(self.to_dict())


def like(
    predictions: Predictions,
    metrics: Mapping[str, Metric] | None = None,
    *,
    n: int | None = None,
    empirical: bool | None = None,
    replicates: int = 200,
    seed: int = 0,
    n_jobs: int = 1,
) -> Like:
    """How biased are calibration errors for a model like mine, at my n, and which one should I trust?

    A law of scores and a curve are fitted to the predictions (of classes, to the top label's confidence and hits); the
    metrics are then simulated at the same n, or another `n`, on that model, whose true error is known. The one to
    trust has the smallest root mean squared error relative to its truth (an L1 or an L2 error, as it estimates). At
    least 20 predictions of both outcomes are needed. With `empirical`, forecasts are drawn from those observed instead
    of the fitted law; where it is None, only if models of that law do not reproduce the observed binned errors.

    >>> import calibrant as cal
    >>> from calibrant.simulate import PUBLISHED, draw, like
    >>> fit = PUBLISHED["resnet152_imgnet"]
    >>> mine = like(draw(fit.scores, fit.curve, n=500), {"ECE": cal.ECE, "ECE_SWEEP": cal.ECE_SWEEP}, replicates=100)
    >>> mine.trusted, bool(mine.biases["ECE"].bias > mine.biases["ECE_SWEEP"].bias)
    ('ECE_SWEEP', True)
    """
    whole(replicates, "replicates", 2)
    asked = dict(USUAL if metrics is None else metrics)
    run: dict[str, Any] = {"replicates": replicates, "seed": seed, "n_jobs": n_jobs}
    fit = fit_model(predictions, empirical=bool(empirical), **run)
    if empirical is None and not fit.reproduces:
        fit = fit_model(predictions, empirical=True, **run)
    size = len(predictions) if n is None else n
    biases = bias(asked, fit.law, fit.curves.curve, size, **run)
    scores, hits = outcomes_of(predictions)
    event = Predictions.from_confidence(hits, scores, copy=False)
    return Like(
        size, predictions.forecasts.question, fit, biases, {name: metric(event).value for name, metric in asked.items()}
    )
