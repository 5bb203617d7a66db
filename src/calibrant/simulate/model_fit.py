"""Model fits: a law of scores and a curve of a real model, and whether together they behave like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.binning.fixed import EqualWidth
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recipes import ECE, RMSCE
from calibrant.simulate.biases import Biases, bias
from calibrant.simulate.calibration_curves import CalibrationCurve
from calibrant.simulate.curve_fit import CurveFits, fit_curve
from calibrant.simulate.outcomes import outcomes_of
from calibrant.simulate.score_fit import ScoreFit, fit_scores
from calibrant.simulate.scores import EmpiricalScores, Scores

FEWEST = 20
"""Samples below which a law and a curve say nothing."""
FAR = 3.0
"""Standard deviations of a simulated error beyond which the observed one is not reproduced."""
_LEFT = EqualWidth(closed="left")
BINNED: dict[str, Metric] = {"L1": replace(ECE, binning=_LEFT), "L2": replace(RMSCE, binning=_LEFT)}
"""The binned errors by which a fit is judged: 15 equal-width bins, left-closed."""


@dataclass(frozen=True)
class ModelFit:
    """A real model's fitted law and curves, with its binned errors as observed and as the fit makes them."""

    law: Scores
    """The law that simulations draw from: the fitted one, or the observed scores themselves."""
    scores: ScoreFit
    curves: CurveFits
    observed: Mapping[str, float]
    simulated: Biases
    rejected: Biases | None = None
    """The errors that the fitted law made, where it was replaced since they are not the observed ones."""

    @property
    def distances(self) -> dict[str, float]:
        """How far each observed error lies from the simulated ones, in their standard deviations."""
        estimates = self.simulated.items()
        return {name: (self.observed[name] - estimate.mean) / max(estimate.sd, 1e-12) for name, estimate in estimates}

    @property
    def reproduces(self) -> bool:
        """Whether the observed errors might be simulated ones."""
        return all(abs(distance) <= FAR for distance in self.distances.values())

    @property
    def drawn(self) -> tuple[Scores, CalibrationCurve, float, float]:
        """What a picture shows: the law, the curve, a binned error as observed and as simulated."""
        name = "L2" if "L2" in self.observed else next(iter(self.observed))
        return self.law, self.curves.curve, self.observed[name], self.simulated[name].mean

    def __str__(self) -> str:
        best, check = self.curves.best, f"{'' if self.reproduces else 'NOT '}reproduced"
        return (
            f"scores: {self.scores if self.law is self.scores.scores else self._drawn()}\n"
            f"curve:  the observed frequency at predicted probability s is {best.curve.formula} ({best.name}, the best "
            f"of {len(self.curves.fits)} curves by BIC)\n"
            f"check:  binned errors {self._against(self.simulated)}: {check}"
        )

    def _drawn(self) -> str:
        """That scores are those observed, and why."""
        observed = f"drawn from the {self.scores.n:,} observed"
        if self.rejected is None:
            return observed
        return (
            f"{observed}. They replace {self.scores}, since data simulated with that distribution do not reproduce "
            f"the binned errors: {self._against(self.rejected)}"
        )

    def _against(self, simulated: Biases) -> str:
        """The observed errors and what a law made of them: mean and standard deviation over replicates."""
        return ", ".join(
            f"{name} {self.observed[name]:.4f} (simulated {estimate.mean:.4f}, sd {estimate.sd:.4f})"
            for name, estimate in simulated.items()
        )


def fit_model(
    predictions: Predictions,
    *,
    empirical: bool = False,
    metrics: Mapping[str, Metric] = BINNED,
    replicates: int = 200,
    seed: int = 0,
    n_jobs: int = 1,
) -> ModelFit:
    """Which simple model behaves like this one? A beta law, the best curve, and a check that they make its errors.

    Of classes, the top label is the event. `empirical` draws from the observed scores instead of the fitted law. The
    check simulates the metrics at the same n and compares them with the observed values.

    References: Roelofs et al. (2022), section 5.1, figure 5 and table 3.

    >>> from calibrant.simulate import UNIFORM, draw, fit_model, power_curve
    >>> fit = fit_model(draw(UNIFORM, power_curve(2), n=2000, seed=1), replicates=50)
    >>> fit.curves.best.name, fit.reproduces
    ('log_log_b1', True)
    """
    if len(predictions) < FEWEST:
        raise CalibrationInputError(
            "predictions", f"must be at least {FEWEST} for a law and a curve to be fitted", got=len(predictions)
        )
    scores, hits = outcomes_of(predictions)
    law_fit, curves = fit_scores(scores), fit_curve(scores, hits)
    law: Any = EmpiricalScores(scores) if empirical else law_fit.scores
    simulated = bias(metrics, law, curves.curve, len(scores), replicates, seed, n_jobs=n_jobs)
    event = Predictions.from_confidence(hits, scores, copy=False)
    return ModelFit(law, law_fit, curves, {name: metric(event).value for name, metric in metrics.items()}, simulated)
