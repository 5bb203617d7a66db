"""Draws every picture on the shipped predictions and, where the folder is beside the project, on other people's.

    python scripts/draw_gallery.py --out gallery [--dpi 100] [--only reliability]

Each picture is drawn at two widths: 7 inches, and 3.3, a column of a paper.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant import plots
from calibrant.files import reading as io

BESIDE = Path(__file__).parents[2] / "shared" / "data"
WIDTHS = (7.0, 3.3)
SOME = cal.Bootstrap(200, seed=0)
SCALE = [0, 0.2, 0.4, 0.6, 0.8, 1]


def cooled(predictions, by):
    """The same predictions with logits (or logarithms of probabilities) divided by a number."""
    scores = predictions.values if predictions.logits else np.log(np.maximum(predictions.values, 1e-12))
    return cal.Predictions.from_logits(predictions.labels, scores / by, classes=predictions.classes)


def of_classes(p, width):
    """What can be drawn of any forecasts of classes."""
    half, double = cooled(p, 0.5), cooled(p, 2.0)
    models = {"as it is": p, "sharper": half, "softer": double}
    yield "reliability", lambda: plots.ReliabilityDisplay.from_predictions(p, interval=SOME, width=width)
    yield (
        "reliability_band",
        lambda: plots.ReliabilityDisplay.from_predictions(p, consistency=200, curve=plots.smooth, width=width),
    )
    yield (
        "reliability_logit",
        lambda: plots.ReliabilityDisplay.from_predictions(
            p, metric=cal.ADAPTIVE_ECE, interval=SOME, curve=plots.isotonic, logit=True, width=width
        ),
    )
    yield "confidence", lambda: plots.ConfidenceHistogramDisplay.from_predictions(p, width=width)
    yield (
        "signed_gaps",
        lambda: plots.SignedGapsDisplay.from_predictions(p, interval=SOME, consistency=100, width=width),
    )
    yield "top_k", lambda: plots.TopKDisplay.from_predictions(p, consistency=20, width=width)
    yield (
        "in_top_k",
        lambda: plots.TopKDisplay.from_predictions(
            p, lens=cal.InTopK, binning=cal.EqualWidth(), interval=SOME, width=width
        ),
    )
    yield "sensitivity", lambda: plots.SensitivityDisplay.from_predictions(p, bootstrap=100, width=width)
    yield "before_after", lambda: plots.BeforeAfterDisplay.from_predictions(p, double, interval=SOME, width=width)
    yield "risk_coverage", lambda: plots.RiskCoverageDisplay.from_predictions(models, width=width)
    yield "small_multiples", lambda: plots.SmallMultiplesDisplay.from_predictions(p, consistency=100, width=width)
    yield "comparison", lambda: plots.ComparisonDisplay.from_predictions(models, n=200, width=width)
    yield "likert", lambda: plots.LikertDisplay.from_predictions(p, scale=cal.likert(SCALE), interval=SOME, width=width)


def of_an_event(p, width):
    """What can be drawn of forecasts of one event."""
    yield (
        "reliability",
        lambda: plots.ReliabilityDisplay.from_predictions(
            p, interval=SOME, consistency=200, curve=plots.isotonic, width=width
        ),
    )
    yield "confidence", lambda: plots.ConfidenceHistogramDisplay.from_predictions(p, width=width)
    yield "sensitivity", lambda: plots.SensitivityDisplay.from_predictions(p, bootstrap=100, width=width)
    yield "likert", lambda: plots.LikertDisplay.from_predictions(p, scale=cal.likert(SCALE), interval=SOME, width=width)


def by_group(p, width, column):
    """A metric by the values of a column."""
    yield (
        f"groups_{column}",
        lambda: plots.GroupsDisplay.from_predictions(p, by=column, interval=SOME, consistency=99, width=width),
    )


def of_language_models(models, width):
    """Several models of the same questions."""
    yield "comparison", lambda: plots.ComparisonDisplay.from_predictions(models, n=1000, width=width)
    yield (
        "comparison_reference",
        lambda: plots.ComparisonDisplay.from_predictions(
            models, reference="LLaMa3_8B", metric=cal.LOG_LOSS, n=1000, width=width
        ),
    )
    yield "risk_coverage", lambda: plots.RiskCoverageDisplay.from_predictions(models, width=width)


def gamma(p, width):
    """The full error by the size of its cells."""
    yield (
        "sensitivity_gamma",
        lambda: plots.SensitivityDisplay.from_predictions(
            p, metric=cal.FULL_ECE, over="gamma", values=[2.0**-k for k in range(1, 9)], bootstrap=20, width=width
        ),
    )


def pictures(width):
    """The name of each picture and how to draw it."""
    shipped = io.read(io.SHIPPED / "fashion_mnist_test.npz")
    every = [("fashion", of_classes(shipped, width)), ("fashion", by_group(shipped, width, "ink"))]
    every.append(("fashion", gamma(shipped, width)))
    if BESIDE.is_dir():
        every += beside(width)
    for name, some in every:
        for kind, draw in some:
            yield f"{name}_{kind}", draw


def beside(width):
    """Pictures of other people's predictions."""
    images = io.read(BESIDE / "netcal_cifar_probs" / "wideresnet-16-4-cifar-100.npz")
    thousand = io.read(BESIDE / "efficientnet_lite_imagenet" / "efficientnet_lite0_nips17dev.npz")
    games = io.read(BESIDE / "fivethirtyeight" / "nfl_games.csv", label="prob1_outcome", probs="prob1")
    games = games[games.soft != 0.5]
    games = cal.Predictions.from_probs(games.soft, games.values, season=games.column("season"))
    with np.load(BESIDE / "llm_mmlu_cloze" / "mmlu_cloze_logprobs.npz") as file:
        subject = file["subject_names"][file["subject"]]
        models = {
            key[5:]: cal.Predictions.from_logits(file["labels"], file[key], subject=subject)
            for key in file
            if key.startswith("logp_")
        }
    return [
        ("cifar100", of_classes(images, width)),
        ("imagenet", of_classes(thousand, width)),
        ("nfl", of_an_event(games, width)),
        ("nfl", by_group(games, width, "season")),
        ("mmlu", of_classes(models["LLaMa3_8B"], width)),
        ("mmlu", by_group(models["LLaMa3_8B"], width, "subject")),
        ("mmlu_models", of_language_models(models, width)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dpi", type=int, default=100)
    parser.add_argument("--only", default="", help="draw only pictures whose name holds one of these, after commas")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        for name, draw in pictures(width):
            if any(only in name for only in options.only.split(",")):
                start = time.perf_counter()
                draw().figure_.savefig(options.out / f"{name}_{width:g}.png", dpi=options.dpi)
                print(f"{name}_{width:g}.png  {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
