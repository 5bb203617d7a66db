"""The same questions, asked of calibrant and of other libraries, for `peers.py`.

A task has its data and, by library, a call that answers with one number. Where a library computes something else, or
something less, the reason stands beside its name.
"""

from dataclasses import dataclass, field

import numpy as np
from matrix import forecasts

import calibrant as cal

BINS = 15


@dataclass(frozen=True)
class Task:
    """A question: what is read at least, and who answers it how."""

    name: str
    data: str
    calls: dict
    reasons: dict = field(default_factory=dict)
    """Why an answer differs, by library."""


def tensors(*arrays):
    import torch

    return tuple(torch.from_numpy(array) for array in arrays)


def top_label(y, p):
    """Correctness and confidence of the predicted class, for libraries that ask for them."""
    return (p.argmax(axis=1) == y).astype(np.int64), p.max(axis=1)


def softmax(logits):
    from scipy.special import softmax as of_scipy

    return of_scipy(logits, axis=1)


def of_probabilities(y, p):
    def torchmetrics():
        from torchmetrics.functional.classification import multiclass_calibration_error

        forecast, label = tensors(p, y)
        return multiclass_calibration_error(forecast, label, p.shape[1], BINS, "l1").item()

    def netcal():
        from netcal.metrics import ECE

        return ECE(BINS).measure(p, y)

    def mapie():
        from mapie.metrics.calibration import top_label_ece

        return top_label_ece(y, p.max(axis=1), y_score_arg=p.argmax(axis=1), num_bins=BINS)

    def uncertainty_calibration():
        from calibration import get_ece

        return get_ece(p, y, num_bins=BINS)

    def calzone():
        from calzone.metrics import calculate_ece_mce
        from calzone.utils import reliability_diagram

        correct, confidence = top_label(y, p)
        observed, said, _, counts = reliability_diagram(
            correct, np.column_stack([1 - confidence, confidence]), num_bins=BINS, class_to_plot=1
        )
        return calculate_ece_mce(observed, said, counts)[0]

    calls = {"calibrant": lambda: cal.ECE(y, p), "torchmetrics": torchmetrics, "netcal": netcal}
    calls |= {"MAPIE": mapie, "uncertainty-calibration": uncertainty_calibration, "calzone-tool": calzone}
    return Task("ECE of the top label", "matrix", calls, {"MAPIE": "averages the errors of the predicted classes"})


def of_logits(y, logits):
    def torchmetrics():
        from torchmetrics.functional.classification import multiclass_calibration_error

        forecast, label = tensors(logits, y)
        return multiclass_calibration_error(forecast, label, logits.shape[1], BINS, "l1").item()

    calls = {"calibrant": lambda: cal.ECE(given(y, logits)), "torchmetrics": torchmetrics}
    return Task("ECE of the top label, from logits", "matrix", calls)


def given(y, logits):
    return cal.Predictions.from_logits(y, logits, copy=False)


def by_class(y, p, metric, strategy):
    """Class-wise errors: other libraries are asked class by class."""

    def mapie():
        from mapie.metrics.calibration import expected_calibration_error

        errors = [
            expected_calibration_error((y == k).astype(int), p[:, k], num_bins=BINS, split_strategy=strategy)
            for k in range(p.shape[1])
        ]
        return float(np.mean(errors))

    def scikit_learn():
        from sklearn.calibration import calibration_curve

        errors = []
        for k in range(p.shape[1]):
            observed, said = calibration_curve(y == k, p[:, k], n_bins=BINS, strategy=strategy)
            errors.append(np.abs(observed - said).mean())
        return float(np.mean(errors))

    calls = {"calibrant": lambda: cal.RECIPES[metric](y, p), "MAPIE": mapie, "scikit-learn": scikit_learn}
    reasons = {"scikit-learn": "gives no counts: its bins weigh alike", "MAPIE": "n bins are n - 1 of its own edges"}
    return Task(f"{metric} (class-wise)", "matrix", calls, reasons)


def scores(y, p, logits):
    """Brier score and log loss, of probabilities and of logits."""

    def brier():
        from sklearn.metrics import brier_score_loss

        return brier_score_loss(y, p, labels=np.arange(p.shape[1]), scale_by_half=False)

    def loss():
        from sklearn.metrics import log_loss

        return log_loss(y, p, labels=np.arange(p.shape[1]))

    def brier_of_logits():
        from sklearn.metrics import brier_score_loss

        return brier_score_loss(y, softmax(logits), labels=np.arange(p.shape[1]), scale_by_half=False)

    def loss_of_logits():
        from sklearn.metrics import log_loss

        return log_loss(y, softmax(logits), labels=np.arange(p.shape[1]))

    def torch():
        from torch.nn.functional import cross_entropy

        return cross_entropy(*tensors(logits, y)).item()

    return [
        Task("Brier score", "matrix", {"calibrant": lambda: cal.BRIER(y, p), "scikit-learn": brier}),
        Task("log loss", "matrix", {"calibrant": lambda: cal.LOG_LOSS(y, p), "scikit-learn": loss}),
        Task(
            "Brier score, from logits",
            "matrix",
            {"calibrant": lambda: cal.BRIER(given(y, logits)), "SciPy, scikit-learn": brier_of_logits},
        ),
        Task(
            "log loss, from logits",
            "matrix",
            {
                "calibrant": lambda: cal.LOG_LOSS(given(y, logits)),
                "SciPy, scikit-learn": loss_of_logits,
                "torch": torch,
            },
            {"torch": "float32 totals; no checks"},
        ),
    ]


def temperature(y, logits):
    def scikit_learn():
        from sklearn.calibration import _TemperatureScaling

        return float(1 / _TemperatureScaling().fit(logits, y).beta_)

    def netcal():
        from netcal.scaling import TemperatureScaling

        return float(1 / TemperatureScaling().fit(softmax(logits.astype(float)), y).temperature[0])

    def probmetrics():
        from probmetrics.calibrators import TemperatureScalingCalibrator
        from probmetrics.distributions import CategoricalLogits

        forecast, label = tensors(logits, y)
        fitted = TemperatureScalingCalibrator().fit_torch(CategoricalLogits(forecast), label)
        return float(1 / fitted.invtemp_)

    calls = {"calibrant": lambda: cal.TemperatureScaling().fit(logits, y).temperature_}
    calls |= {"scikit-learn": scikit_learn, "netcal": netcal, "probmetrics": probmetrics}
    return Task("temperature", "matrix", calls, {"scikit-learn": "ends beside the minimum"})


def of_an_event(y, p):
    def relplot():
        from relplot.metrics import binnedECE

        return float(binnedECE(p, y, nbins=BINS))

    def torchmetrics():
        from torchmetrics.functional.classification import binary_calibration_error

        return binary_calibration_error(*tensors(p, y), BINS, "l1").item()

    def scikit_learn(strategy):
        from sklearn.calibration import calibration_curve

        observed, said = calibration_curve(y, p, n_bins=BINS, strategy=strategy)
        return float(np.abs(observed - said).mean())

    def netcal():
        from netcal.metrics import ECE

        return ECE(BINS).measure(p, y)

    def kolmogorov_smirnov():
        from mapie.metrics.calibration import cumulative_differences

        return float(np.abs(cumulative_differences(y, p)).max())

    def isotonic():
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit_transform(p, y)
        return float(np.mean((p - y) ** 2) - np.mean((fitted - y) ** 2))

    def brier():
        from sklearn.metrics import brier_score_loss

        return brier_score_loss(y, p)

    def loss():
        from sklearn.metrics import log_loss

        return log_loss(y, p)

    alike = {"scikit-learn": "gives no counts: its bins weigh alike"}
    return [
        Task(
            "ECE",
            "event",
            {
                "calibrant": lambda: cal.ECE(y, p),
                "relplot": relplot,
                "torchmetrics": torchmetrics,
                "scikit-learn": lambda: scikit_learn("uniform"),
                "netcal": netcal,
            },
            alike | {"torchmetrics": "float32 totals"},
        ),
        Task(
            "ECE, bins of equal mass",
            "event",
            {"calibrant": lambda: cal.ADAPTIVE_ECE(y, p), "scikit-learn": lambda: scikit_learn("quantile")},
        ),
        Task(
            "Kolmogorov-Smirnov",
            "event",
            {"calibrant": lambda: cal.CumulativeError()(y, p), "MAPIE": kolmogorov_smirnov},
            {"MAPIE": "adds noise to break ties"},
        ),
        Task("isotonic", "event", {"calibrant": lambda: cal.IsotonicError()(y, p), "scikit-learn": isotonic}),
        Task("Brier score", "event", {"calibrant": lambda: cal.BRIER(y, p), "scikit-learn": brier}),
        Task("log loss", "event", {"calibrant": lambda: cal.LOG_LOSS(y, p), "scikit-learn": loss}),
    ]


def tasks(rows, classes, events):
    """All tasks, and one read of each kind of data."""
    y, p = forecasts(rows, classes)
    logits = np.log(p + np.float32(1e-7))
    rng = np.random.default_rng(0)
    q = rng.random(events, dtype=np.float32)
    happened = (rng.random(events) < q).astype(np.int64)
    asked = [of_probabilities(y, p), of_logits(y, logits), by_class(y, p, "SCE", "uniform")]
    asked += [by_class(y, p, "ACE", "quantile"), *scores(y, p, logits), temperature(y, logits)]
    asked += of_an_event(happened, q)
    return asked, {"matrix": p.max, "event": lambda: (q.max(), happened.max())}
