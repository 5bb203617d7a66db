"""Induced truth: what a lens of vectors shows decides what comes true, so that its calibration error is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.lenses.lens import Lens
from calibrant.predictions import Predictions
from calibrant.simulate.calibration_curves import described
from calibrant.simulate.classes import true_rows
from calibrant.specification.naming import identity


@dataclass(frozen=True)
class Induced:
    r"""Truth that follows what a lens of vectors shows: a curve of the lens's outputs, shared out as forecast.

    .. math:: t_k = \mathrm{curve}(o)_{c(k)} \; p_k / o_{c(k)}

    where o are the outputs of the lens and c(k) the coordinate that class k belongs to; where o is 0, its classes share
    evenly. So the distribution of the induced labels given the induced outputs is `curve(o)` itself, and the
    calibration error of that lens is known.

    References: Kirchenbauer, Oaks & Heim (2022), section 3.2 and eq. 12.

    >>> import calibrant as cal
    >>> from calibrant.simulate import Induced, Tempered
    >>> pairs = cal.Groups({"a": [0, 1], "b": [2, 3]})
    >>> Induced(pairs, Tempered(0.5))([[0.6, 0.2, 0.1, 0.1]]).round(4).tolist()
    [[0.7059, 0.2353, 0.0294, 0.0294]]
    """

    lens: Lens
    curve: Callable[[Any], Any]

    def described(self) -> dict[str, Any]:
        """Plain values that tell this truth from all others."""
        return {"curve": "Induced", "lens": identity(self.lens), "of": described(self.curve)}

    def __call__(self, forecasts: Any) -> Floats:
        rows = np.asarray(forecasts, np.float64)
        flat = rows.reshape(-1, rows.shape[-1])
        n, k = flat.shape
        views = [self.lens(Predictions.from_probs(np.full(n, label), flat, copy=False)) for label in range(k)]
        if views[0].d == 1 or views[0].questions != 1:
            hint = "use Full(), TopK(k) or Groups({...})"
            raise CalibrationInputError("lens", "must show one vector a row", got=str(self.lens), hint=hint)
        home = np.stack([view.targets for view in views], axis=1)  # where the label of each class would be seen
        outputs = views[0].outputs[:, 0].astype(np.float64)
        truth = true_rows(self.curve, outputs)
        own, share = (np.take_along_axis(part, home, axis=1) for part in (outputs, truth))
        even = 1.0 / (home[:, :, None] == home[:, None]).sum(axis=2)
        return (share * np.divide(flat, own, out=even, where=own > 0)).reshape(rows.shape)
