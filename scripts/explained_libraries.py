"""Asks the installed libraries for what `calibrant.explain` says that they report, and keeps their answers for tests.

    python scripts/explained_libraries.py                                # print how far the two are apart
    python scripts/explained_libraries.py --keep tests/explained.json    # and keep the answers of the libraries
    python scripts/explained_libraries.py --data FOLDER                  # also of the files in FILES, from a folder

What is kept are numbers of seeded arrays and of the predictions that calibrant ships. Libraries that are not installed
are left out. For all of them:

    pip install torch torchmetrics netcal uncertainty-calibration relplot mapie scikit-learn
    pip install tensorflow-cpu tf-keras tensorflow-probability
"""

import argparse
import ast
import json
import os
import re
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np

import calibrant as cal
from calibrant.files import SHIPPED, read

warnings.filterwarnings("ignore")  # what the libraries say about themselves is not what is compared

CLOSE = 1e-6
"""How near a library is reproduced unless an explanation says otherwise."""
NUMBERS = (None, 10)
"""Numbers of bins that libraries are asked for; None: each has its default."""
DISTRIBUTIONS = {"MAPIE": "mapie", "TensorFlow Probability": "tensorflow-probability"}


def installed(library):
    """The version of a library, or None."""
    try:
        return version(DISTRIBUTIONS.get(library, library))
    except PackageNotFoundError:
        return None


class Rows:
    """Labels and probabilities, and the confidence and correctness of the predicted class."""

    def __init__(self, predictions):
        self.y = np.asarray(predictions.labels)
        self.p = np.array(predictions.probabilities).reshape(len(self.y), -1)
        self.event = self.p.shape[1] == 1
        if self.event:
            self.p = self.confidence = self.p[:, 0]
            self.correct = self.y
        else:
            self.confidence = self.p.max(axis=1)
            self.correct = (self.p.argmax(axis=1) == self.y).astype(int)

    @property
    def one(self):
        """What binary functions are given: the event, the second of two columns, or the predicted class."""
        if not self.event and self.p.shape[1] == 2:
            return self.y, self.p[:, 1]
        return self.correct, self.confidence


def torchmetrics_binary(rows, **options):
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return binary_calibration_error(torch.from_numpy(rows.p), torch.from_numpy(rows.y), **options)


def torchmetrics_multiclass(rows, **options):
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    p, y = torch.from_numpy(rows.p), torch.from_numpy(rows.y)
    return multiclass_calibration_error(p, y, num_classes=p.shape[1], **options)


def netcal(name):
    def ask(rows, **options):
        import netcal.metrics

        return getattr(netcal.metrics, name)(**options).measure(rows.p, rows.y)

    return ask


def sklearn_curve(rows, **options):
    from sklearn.calibration import calibration_curve

    happened, forecast = calibration_curve(*rows.one, **options)
    return np.abs(happened - forecast).mean()


def sklearn_brier(rows):
    from sklearn.metrics import brier_score_loss

    labels = {} if rows.event else {"labels": np.arange(rows.p.shape[1])}
    return brier_score_loss(rows.y, rows.p, **labels)


def mapie_ece(rows, **options):
    from mapie.metrics.calibration import expected_calibration_error

    return expected_calibration_error(rows.correct, rows.p, **options)


def mapie_top_label(rows, **options):
    from mapie.metrics.calibration import top_label_ece

    return top_label_ece(rows.y, rows.p, **options)


def uncertainty_calibration(name):
    def ask(rows, **options):
        import calibration

        return getattr(calibration, name)(rows.p, rows.y, **options)

    return ask


def relplot(name):
    def ask(rows, **options):
        import relplot.metrics

        pair = (rows.p, rows.y)
        if not rows.event:
            pair = relplot.metrics.multiclass_logits_to_confidences(rows.p, rows.y, probs=True)
        return getattr(relplot.metrics, name)(*pair, **options)

    return ask


def tensorflow_ece(rows, num_bins):
    import tensorflow_probability as tfp

    p = np.column_stack([1 - rows.p, rows.p]) if rows.event else rows.p
    with np.errstate(divide="ignore"):
        logits = np.log(p).astype(np.float32)
    return tfp.stats.expected_calibration_error(num_bins, logits=logits, labels_true=rows.y)


CALLS = {
    "torchmetrics binary_calibration_error": torchmetrics_binary,
    "torchmetrics multiclass_calibration_error": torchmetrics_multiclass,
    "netcal ECE": netcal("ECE"),
    "netcal ACE": netcal("ACE"),
    "scikit-learn calibration_curve": sklearn_curve,
    "scikit-learn brier_score_loss": sklearn_brier,
    "MAPIE expected_calibration_error": mapie_ece,
    "MAPIE top_label_ece": mapie_top_label,
    "uncertainty-calibration get_ece": uncertainty_calibration("get_ece"),
    "uncertainty-calibration get_ece_em": uncertainty_calibration("get_ece_em"),
    "uncertainty-calibration get_calibration_error": uncertainty_calibration("get_calibration_error"),
    "relplot binnedECE": relplot("binnedECE"),
    "relplot smECE": relplot("smECE"),
    "TensorFlow Probability stats.expected_calibration_error": tensorflow_ece,
}


def answer(row, rows):
    """What the library itself reports for the call that a row of an explanation names; the error that it raises."""
    name, options = re.fullmatch(r"([\w.]+)\((.*?)\)(?:\.measure)?", row.function).groups()
    call = ast.parse(f"f({options})", mode="eval").body
    try:
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        return float(CALLS[f"{row.library} {name}"](rows, **keywords))
    except Exception as error:
        return f"raises {type(error).__name__}"


def cases():
    """Predictions with ties on edges, with 0 and 1, few and many rows, of events and of classes, in both precisions."""
    rng = np.random.default_rng(0)
    levels = np.repeat(np.arange(11) / 10, 40)
    votes = rng.multinomial(15, [0.5, 0.3, 0.2], 300) / 15
    sure = np.clip(rng.normal(0.7, 0.5, 400), 0, 1)
    smooth = rng.beta(2, 1, 5000)
    soft = rng.dirichlet([0.4] * 5, 3000)
    arrays = {
        "levels of 0.1": (_drawn(rng, levels), levels),
        "many zeros and ones": (_drawn(rng, 0.8 * sure + 0.1), sure),
        "beta": (_drawn(rng, smooth**1.3), smooth),
        "three rows": (np.array([1, 0, 1]), np.array([0.3, 0.35, 1.0])),
        "votes of 15": (_labels(rng, votes), votes),
        "five classes": (_labels(rng, soft), soft),
        "two of three classes": (np.arange(60) % 2, votes[:60]),
        "two columns": (_drawn(rng, smooth), np.column_stack([1 - smooth, smooth])),
    }
    for name, (y, p) in arrays.items():
        for kind in (np.float64, np.float32):
            yield f"{name}, {kind.__name__}", cal.Predictions.from_probs(y, p.astype(kind))
    yield "shipped network", read(SHIPPED / "fashion_mnist_test.npz")


FILES = {
    "Fashion-MNIST, a small network": ("own_fashion_mnist_mlp/fashion_mnist_mlp.npz", "logits_test", "labels_test"),
    "CIFAR-10, ResNet-50": ("aigen_resnet50_c10/cifar10_resnet50.npz", "logits_test", "labels_test"),
    "CIFAR-100, wide ResNet": ("netcal_cifar_probs/wideresnet-16-4-cifar-100.npz", "probs", "labels"),
    "CIFAR-10, LeNet-5": ("netcal_cifar_probs/lenet-5-cifar-10.npz", "probs", "labels"),
    "ImageNet-like, EfficientNet": ("efficientnet_lite_imagenet/efficientnet_lite0_nips17dev.npz", "logits", "labels"),
    "MMLU, LLaMa3-8B": ("llm_mmlu_cloze/mmlu_cloze_logprobs.npz", "logp_LLaMa3_8B", "labels"),
    "NFL games": ("fivethirtyeight/nfl_games.csv", "prob1", "prob1_outcome"),
}
"""Real predictions that are not calibrant's: their file, where the forecasts are in it and where the labels are."""


def from_files(folder):
    """The predictions of each file that is there; logits are told by their key."""
    for name, (file, forecasts, labels) in FILES.items():
        path = folder / file
        if path.suffix == ".csv" and path.is_file():
            table = np.genfromtxt(path, delimiter=",", names=True, usecols=(forecasts, labels))
            table = table[np.isin(table[labels], (0, 1))]  # a draw is no outcome
            yield name, cal.Predictions.from_probs(table[labels].astype(int), table[forecasts])
        elif path.is_file():
            with np.load(path) as arrays:
                y, values = arrays[labels].astype(np.int64), arrays[forecasts]
            make = cal.Predictions.from_probs if forecasts == "probs" else cal.Predictions.from_logits
            yield name, make(y, values)


def _drawn(rng, p):
    return (rng.random(len(p)) < p).astype(int)


def _labels(rng, p):
    return (p.cumsum(axis=1) < rng.random(len(p))[:, None]).sum(axis=1).clip(max=p.shape[1] - 1)


def compared(predictions, n_bins=None):
    """Each row of an explanation with what its library says, if it is installed."""
    rows = Rows(predictions)
    for row in cal.explain(predictions, n_bins=n_bins):
        if installed(row.library):
            yield row, answer(row, rows)


def apart(row, theirs):
    """How far the two are apart; None where there is nothing to compare."""
    if row.metric is None or isinstance(theirs, str):
        return None
    return 0.0 if np.isnan(row.value) and np.isnan(theirs) else abs(row.value - theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="write the answers of the libraries to this JSON file")
    parser.add_argument("--data", type=Path, help="the folder of the files in FILES")
    options = parser.parse_args()
    kept = {"versions": versions(), "agreement": {}, "cases": {}, "files": {}}
    agreement = kept["agreement"]
    for name, predictions in cases():
        kept["cases"][name] = {str(n_bins): asked(name, predictions, n_bins, agreement) for n_bins in NUMBERS}
    for name, predictions in from_files(options.data) if options.data else ():
        kept["files"][name] = asked(name, predictions, None, agreement)
    if options.keep:
        options.keep.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def versions():
    """The libraries that are installed."""
    libraries = dict.fromkeys(call.rpartition(" ")[0] for call in CALLS)
    return {library: installed(library) for library in libraries if installed(library)}


def asked(name, predictions, n_bins, agreement):
    """What every library says, by its call; shown beside what calibrant says, and added to how far they are apart."""
    answers = list(compared(predictions, n_bins))
    show(f"{name}, {n_bins or 'default'} bins", answers)
    for row, theirs in answers:
        counts = agreement.setdefault(row.library, {"exact": 0, "farthest": 0.0, "on edges": 0, "raises": 0})
        distance = apart(row, theirs)
        if distance is None:
            counts["raises"] += 1
        elif row.within > CLOSE:
            counts["on edges"] += 1
        else:
            counts["exact"] += 1
            counts["farthest"] = max(counts["farthest"], distance)
    return {f"{row.library} {row.function}": theirs for row, theirs in answers}


def show(name, answers):
    """A line a function: what it says, what we say, how far they are apart."""
    print(f"\n{name}")
    for row, theirs in answers:
        call, distance = f"{row.library} {row.function}", apart(row, theirs)
        mark = "" if distance is None or distance <= row.within else "  DIFFERS"
        print(f"  {call:80s} {theirs!s:24.24} {row.value:.10f} {'' if distance is None else f'{distance:.1e}'}{mark}")


if __name__ == "__main__":
    main()
