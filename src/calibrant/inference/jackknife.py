"""The jackknife: how far an error is biased, from leaving rows out; and the value with that bias taken off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import left_out
from calibrant.inference.engines import exact
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Result


@dataclass(frozen=True, eq=False)
class Jackknife:
    """A metric's value, its estimated bias, and the value without it.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> found = cal.jackknife(cal.RMSCE, cal.Predictions.from_probs(rng.random(500) < p, p))
    >>> bool(found.bias > 0), bool(found.corrected < found.result.value)
    (True, True)
    """

    result: Result
    bias: float
    standard_error: float

    @property
    def corrected(self) -> float:
        """The value less its estimated bias; may be negative, which says that the error is within its noise."""
        return self.result.value - self.bias

    def __str__(self) -> str:
        return (
            f"{self.result.name} {self.result.value:.4f}, without its bias {self.corrected:.4f} "
            f"(standard error {self.standard_error:.4f})"
        )


def jackknife(metric: Metric, predictions: Predictions, blocks: int = 100) -> Jackknife:
    r"""The bias of a metric from its values with each of g blocks of rows left out.

    .. math:: (g - 1)(\bar t_{(\cdot)} - t), \qquad
        \mathrm{se}^2 = \frac{g - 1}{g} \sum_i (t_{(i)} - \bar t_{(\cdot)})^2

    Row i is in block i mod g; with fewer rows than blocks, rows are left out one by one. It takes off the part of
    the bias that falls like 1 / n: most of it for squared errors, less for absolute ones near 0. For the squared binned
    error the correction is known in closed form (Ferro & Fricker 2012): `debiased_squared`.

    References: Quenouille (1956); Efron & Tibshirani (1993), chapter 10.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .8])
    >>> abs(cal.jackknife(cal.BRIER, p).bias) < 1e-12  # a mean has none
    True
    """
    whole(blocks, "blocks", 2)
    n = len(predictions)
    if n < 2:
        raise CalibrationInputError("jackknife", "needs at least two rows", got=n)
    values = left_out(exact(metric, predictions), n, None, blocks)[:, 0]
    g = len(values)
    result = metric(predictions)
    spread = np.sum((values - values.mean()) ** 2)
    bias = (g - 1) * (values.mean() - result.value)
    return Jackknife(result, float(bias), float(np.sqrt((g - 1) / g * spread)))
