"""Inputs: what may be drawn. Predictions, or labels and probabilities, or a fitted estimator and its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, final

from calibrant.exceptions import CalibrationInputError
from calibrant.plots.panels import Display
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Result


class OfForecasts(Display):
    """A picture of one model's forecasts: `from_predictions` measures and draws."""

    from_predictions: ClassVar[Callable[..., Any]]

    @final
    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:  # noqa: N803 - the world of fit(X, y)
        """Draw what an estimator's `predict_proba` says of X, against y; options as for `from_predictions`.

        Its `classes_`, where it has them, say what the labels mean.
        """
        if not callable(getattr(estimator, "predict_proba", None)):
            got = type(estimator).__name__
            raise CalibrationInputError("estimator", "must have predict_proba", got=got, hint="use from_predictions")
        known = {"classes": getattr(estimator, "classes_", None)}
        return cls.from_predictions(y, estimator.predict_proba(X), **{**known, **options})


def models_of(models: Any) -> dict[str, Predictions]:
    """Several models by name; a single `Predictions` is a model without a name.

    >>> list(models_of({"a": Predictions.from_probs([1, 0], [.9, .2])}))
    ['a']
    """
    if isinstance(models, Predictions):
        return {"": models}
    if not isinstance(models, Mapping) or not models:
        raise CalibrationInputError("models", "must be a dictionary from names to Predictions", got=repr(models))
    for name, predictions in models.items():
        require_predictions(predictions, "models", repr(name))
    return {str(name): predictions for name, predictions in models.items()}


def one_event(result: Any) -> Result:
    """A result whose bins can be drawn on one pair of axes, or the refusal that says why not."""
    bins = getattr(result, "bins", None)
    if bins is None or bins.low is None or bins.shape[0] != 1 or bins.shape[2] != 1:
        raise CalibrationInputError(
            "metric",
            "must pool the forecasts of one event into bins",
            got=str(result),
            hint="use one like ECE or ADAPTIVE_ECE, with a lens such as TopLabel() or OneClass(c); "
            "of every class, SmallMultiplesDisplay and ClassBinsDisplay draw SCE, ACE and TACE",
        )
    return result
