"""A model like yours: how far its calibration errors are to be trusted, found on simulated models that are like it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant import recipes
from calibrant.checks import whole
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.simulate.biases import Biases, Estimate, bias
from calibrant.simulate.curve_fit import CALIBRATED
from calibrant.simulate.model_fit import ModelFit, fit_model
from calibrant.simulate.named import to_json
from calibrant.simulate.outcomes import outcomes_of
from calibrant.simulate.wording import plus_minus
from calibrant.text import aligned

USUAL: dict[str, Metric] = {
    name: recipes.RECIPES[name] for name in ("ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "SMECE", "ECE_KDE")
}
"""The estimators that are compared where none are named."""
HOPELESS = 0.75
"""An error of more than this share of the truth tells nothing about it."""
WIDTH = 118
"""Letters in a line of text."""
HEADER = ("estimator", "estimates", "observed", "truth", "mean", "bias", "sd", "rmse/truth", "observed - bias")
COLUMNS = """\
estimates        the true error that the estimator aims at, or its own limit
observed         the estimator on your predictions
truth            that true error of the simulated model
mean, bias, sd   of the estimator over simulated data sets of this n; bias is mean less truth
rmse/truth       its typical distance from the truth, as a share of it
observed - bias  your number if its bias is that of the simulated model
± is the Monte Carlo error (one standard error); the mean has that of the bias."""


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
        return self.biases[name].relative

    @property
    def trusted(self) -> str:
        """The estimator with the smallest error relative to its truth."""
        return self.biases.closest

    @property
    def ties(self) -> tuple[str, ...]:
        """The others whose relative error is as small within Monte Carlo error."""
        return self.biases.ties

    @property
    def advice(self) -> str:
        """Which estimator to trust, in a sentence or two."""
        if self.fit.curves.best.name == CALIBRATED:
            return (
                "No curve describes your predictions better than perfect calibration, so the true error of the "
                "simulated model is 0. The means are what the estimators show by chance at this n: an observed value "
                "near its mean is no sign of miscalibration. An error too small to show at this n is not excluded. "
                f"Closest to 0: {self.biases.verdict}."
            )
        if not self.relative(self.trusted) <= HOPELESS:
            return f"Trust none of them at this n. On models like this even {self.biases.verdict}."
        best = f"{self.trusted} most" if not self.ties else f"{self.trusted} or one that ties with it"
        return f"Trust {best}. On models like this, {self.biases.verdict}."

    def __str__(self) -> str:
        table = aligned(HEADER, [self._cells(name, estimate) for name, estimate in self.biases.items()], right=True)
        doubt = " The simulated models do not behave like yours: read all this with doubt."
        lines = str(self.fit).splitlines()
        observed = f"{self.fit.scores.n:,} predictions ({self.question})"
        return "\n".join(
            [
                f"{observed}, and simulated models like theirs at n = {self.n:,}",
                *(textwrap.fill(line, WIDTH, subsequent_indent="        ") for line in lines),
                f"\n{table}\n\n{COLUMNS}\n",
                textwrap.fill(self.advice + ("" if self.fit.reproduces else doubt), WIDTH),
            ]
        )

    def _cells(self, name: str, estimate: Estimate) -> list[str]:
        seen = self.observed[name]
        share = plus_minus(estimate.relative, estimate.relative_error, ".1%") if estimate.truth > 0 else "-"
        return [
            name,
            estimate.target,
            *(f"{number:.4f}" for number in (seen, estimate.truth, estimate.mean)),
            plus_minus(estimate.bias, estimate.mc_error, "+.4f"),
            plus_minus(estimate.sd, estimate.sd_error),
            share,
            f"{seen - estimate.bias:.4f}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        best = self.fit.curves.best
        law = self.fit.scores
        return {
            "n": self.n,
            "question": self.question,
            "scores": {**self.fit.law.described(), "nll": law.nll, "floored": law.floored, "eps": law.eps},
            "curve": {"name": best.name, "b0": best.curve.b0, "b1": best.curve.b1, "aic": best.aic, "bic": best.bic},
            "curves": [
                {"name": fit.name, "nll": fit.nll, "aic": fit.aic, "bic": fit.bic} for fit in self.fit.curves.fits
            ],
            "binned_errors": {
                name: {"observed": self.fit.observed[name], "simulated": estimate.mean, "sd": estimate.sd}
                for name, estimate in self.fit.simulated.items()
            },
            "reproduces": self.fit.reproduces,
            "law_replaced": self.fit.rejected is not None,
            "estimators": {
                name: {**estimate.to_dict(), "observed": self.observed[name], "relative_rmse": self.relative(name)}
                for name, estimate in self.biases.items()
            },
            "trusted": self.trusted,
            "ties": list(self.ties),
            "advice": self.advice,
        }

    def to_json(self) -> str:
        """The comparison as JSON."""
        return to_json(self.to_dict())


def like(
    predictions: Predictions,
    metrics: Mapping[str, Metric] | None = None,
    *,
    n: int | None = None,
    p: float | None = None,
    empirical: bool | None = None,
    replicates: int = 200,
    seed: int = 0,
    n_jobs: int = 1,
) -> Like:
    """How biased are calibration errors for a model like mine, at my n, and which one should I trust?

    A law of scores and a curve are fitted to the predictions (of classes, to the top label's confidence and hits); the
    metrics are then simulated at the same n, or another `n`, on that model, whose true error is known. The one to
    trust has the smallest root mean squared error relative to its truth (an L1 or an L2 error, as it estimates, or the
    L^p error of a given `p`). At least 20 predictions of both outcomes are needed. With `empirical`, forecasts are
    drawn from those observed instead of the fitted law; where it is None, only if models of that law do not reproduce
    the observed binned errors, and the text says so. Where perfect calibration is the best curve, the truth is 0, and
    the smallest error is looked for.

    >>> import calibrant as cal
    >>> from calibrant.simulate import PUBLISHED, draw, like
    >>> fit = PUBLISHED["resnet152_imgnet"]
    >>> mine = like(draw(fit.scores, fit.curve, n=300), {"ECE": cal.ECE, "ECE_SWEEP": cal.ECE_SWEEP}, replicates=100)
    >>> mine.trusted, bool(mine.biases["ECE"].bias > mine.biases["ECE_SWEEP"].bias)
    ('ECE_SWEEP', True)
    """
    whole(replicates, "replicates", 2)
    asked = dict(USUAL if metrics is None else metrics)
    run: dict[str, Any] = {"replicates": replicates, "seed": seed, "n_jobs": n_jobs}
    fit = fit_model(predictions, empirical=bool(empirical), **run)
    if empirical is None and not fit.reproduces:
        fit = replace(fit_model(predictions, empirical=True, **run), rejected=fit.simulated)
    size = len(predictions) if n is None else n
    biases = bias(asked, fit.law, fit.curves.curve, size, p=p, **run)
    scores, hits = outcomes_of(predictions)
    event = Predictions.from_confidence(hits, scores, copy=False)
    return Like(
        size, predictions.forecasts.question, fit, biases, {name: metric(event).value for name, metric in asked.items()}
    )
