"""The laboratory: models whose true calibration error is known, and what estimators make of them.

**Truth**: a law of scores (`BetaScores`, `EmpiricalScores`, `SoftmaxScores` for classes), a curve that says how often
each comes true (`CalibrationCurve`, `Tempered`), and their `true_calibration_error`. **Fits** of both to a real model
(`fit_scores`, `fit_curve`, `fit_model`). **Experiments**: the `bias` of any metric, over a `bias_grid`, under
`label_noise`; its `power` to detect miscalibration, and the `samples_needed`. And all of it `like` your own model.

>>> import calibrant as cal
>>> from calibrant.simulate import PUBLISHED, bias
>>> fit = PUBLISHED["resnet152_imgnet"]
>>> biases = bias({"ece": cal.ECE, "sweep": cal.ECE_SWEEP}, fit.scores, fit.curve, n=200, replicates=200, seed=0)
>>> round(biases["ece"].bias, 3), round(biases["sweep"].bias, 3)
(0.025, 0.0)
"""

from calibrant.simulate.biases import Biases, Estimate, bias, estimates
from calibrant.simulate.calibration_curves import IDENTITY, CalibrationCurve, logistic_curve, power_curve
from calibrant.simulate.classes import SoftmaxScores, Tempered
from calibrant.simulate.curve_fit import CurveFit, CurveFits, fit_curve
from calibrant.simulate.detection import Detection, Detections, power
from calibrant.simulate.grid_pictures import bins_picture, fits_picture, grid_picture
from calibrant.simulate.grids import BiasGrid, bias_grid, error_grid, label_noise
from calibrant.simulate.induced import Induced
from calibrant.simulate.model_fit import ModelFit, fit_model
from calibrant.simulate.model_like_yours import Like, like
from calibrant.simulate.pictures import bias_picture, miss_picture, picture, power_picture, samples_picture
from calibrant.simulate.published import PUBLISHED, PublishedCurve, PublishedFit
from calibrant.simulate.sample_size import SamplesNeeded, samples_needed
from calibrant.simulate.sampling import draw
from calibrant.simulate.score_fit import ScoreFit, fit_scores
from calibrant.simulate.scores import UNIFORM, BetaScores, EmpiricalScores
from calibrant.simulate.targets import Target, order_of, true_value
from calibrant.simulate.truth import curve_with_error, true_calibration_error

__all__ = [
    "IDENTITY",
    "PUBLISHED",
    "UNIFORM",
    "BetaScores",
    "BiasGrid",
    "Biases",
    "CalibrationCurve",
    "CurveFit",
    "CurveFits",
    "Detection",
    "Detections",
    "EmpiricalScores",
    "Estimate",
    "Induced",
    "Like",
    "ModelFit",
    "PublishedCurve",
    "PublishedFit",
    "SamplesNeeded",
    "ScoreFit",
    "SoftmaxScores",
    "Target",
    "Tempered",
    "bias",
    "bias_grid",
    "bias_picture",
    "bins_picture",
    "curve_with_error",
    "draw",
    "error_grid",
    "estimates",
    "fit_curve",
    "fit_model",
    "fit_scores",
    "fits_picture",
    "grid_picture",
    "label_noise",
    "like",
    "logistic_curve",
    "miss_picture",
    "order_of",
    "picture",
    "power",
    "power_curve",
    "power_picture",
    "samples_needed",
    "samples_picture",
    "true_calibration_error",
    "true_value",
]
