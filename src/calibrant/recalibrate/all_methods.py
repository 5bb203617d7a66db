"""All methods: every recalibrator that calibrant brings, a line each, in the order in which they are listed."""
# ruff: noqa: I001 - the plainest come first

from calibrant.recalibrate.identity import Identity as Identity
from calibrant.recalibrate.prior_shift import PriorShift as PriorShift
from calibrant.recalibrate.temperature import TemperatureScaling as TemperatureScaling
from calibrant.recalibrate.bias_corrected import BiasCorrectedTemperatureScaling as BiasCorrectedTemperatureScaling
from calibrant.recalibrate.vector import VectorScaling as VectorScaling
from calibrant.recalibrate.matrix import MatrixScaling as MatrixScaling
from calibrant.recalibrate.platt import PlattScaling as PlattScaling
from calibrant.recalibrate.beta import BetaCalibration as BetaCalibration
from calibrant.recalibrate.isotonic_calibration import IsotonicCalibration as IsotonicCalibration
from calibrant.recalibrate.histogram import HistogramBinning as HistogramBinning
from calibrant.recalibrate.bbq import BBQ as BBQ
from calibrant.recalibrate.classwise_mcs import ClasswiseMCSTemperatureScaling as ClasswiseMCSTemperatureScaling
from calibrant.recalibrate.gaussian_process import GPCalibration as GPCalibration
from calibrant.recalibrate.dirichlet import DirichletCalibration as DirichletCalibration
from calibrant.recalibrate.ensemble import EnsembleTemperatureScaling as EnsembleTemperatureScaling
from calibrant.recalibrate.top_label import TopLabelCalibration as TopLabelCalibration
