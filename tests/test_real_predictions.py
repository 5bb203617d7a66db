"""Real predictions of real networks, where a folder with them lies beside the project; and those we ship."""

from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.files import reading as io

BESIDE = Path(__file__).parents[2] / "shared" / "data"
beside = pytest.mark.skipif(not BESIDE.is_dir(), reason="the folder with other people's predictions is not here")

KNOWN = [
    # file, keys, accuracy in %, ECE in %
    (
        "own_fashion_mnist_mlp/fashion_mnist_mlp.npz",
        {"label": "labels_test", "logits": "logits_test"},
        "89.21",
        "6.572",
    ),
    ("aigen_resnet50_c10/cifar10_resnet50.npz", {"label": "labels_test", "logits": "logits_test"}, "95.02", "1.552"),
    ("netcal_cifar_probs/wideresnet-16-4-cifar-100.npz", {}, "75.43", "5.806"),
    ("netcal_cifar_probs/lenet-5-cifar-10.npz", {}, "53.08", "10.789"),
    ("efficientnet_lite_imagenet/efficientnet_lite0_nips17dev.npz", {}, "91.50", "21.628"),
    ("llm_mmlu_cloze/mmlu_cloze_logprobs.npz", {"logits": "logp_LLaMa3_8B"}, "57.60", "5.102"),
]


@beside
@pytest.mark.parametrize(("name", "keys", "accuracy", "ece"), KNOWN, ids=[known[0] for known in KNOWN])
def test_known_errors_to_the_printed_digit(name, keys, accuracy, ece):
    predictions = io.read(BESIDE / name, **keys)
    assert f"{100 * cal.ACCURACY(predictions).value:.2f}" == accuracy
    assert f"{100 * cal.ECE(predictions).value:.3f}" == ece


@beside
def test_football_forecasts():
    games = io.read(BESIDE / "fivethirtyeight" / "nfl_games.csv", label="prob1_outcome", probs="prob1")
    decided = games[games.soft != 0.5]
    assert len(decided) == 1882
    assert f"{100 * cal.ECE(decided).value:.3f}" == "3.259"


@beside
def test_groups_of_fine_classes_are_better_calibrated_than_the_classes():
    import json

    coarse = json.loads((BESIDE / "hierarchies" / "cifar100_fine_to_coarse.json").read_text())
    coarse = coarse["fine_to_coarse"] if isinstance(coarse, dict) else coarse
    groups = {str(c): [fine for fine in range(100) if coarse[fine] == c] for c in range(20)}
    predictions = io.read(BESIDE / "netcal_cifar_probs" / "wideresnet-16-4-cifar-100.npz")
    grouped = cal.BinnedError(lens=cal.Groups(groups), binning=cal.KDTree())(predictions)
    assert 0 < grouped.value < cal.FULL_ECE(predictions).value


@pytest.mark.parametrize(
    ("part", "n", "accuracy", "nll", "ece"),
    [("validation", 5000, "92.08", "0.3438", "4.76"), ("test", 10000, "91.55", "0.3749", "5.20")],
)
def test_the_shipped_predictions_are_what_their_readme_says(part, n, accuracy, nll, ece):
    predictions = io.read(io.SHIPPED / f"fashion_mnist_{part}.npz")
    assert len(predictions) == n
    assert f"{100 * cal.ACCURACY(predictions).value:.2f}" == accuracy
    assert f"{cal.LOG_LOSS(predictions).value:.4f}" == nll
    assert f"{100 * cal.ECE(predictions).value:.2f}" == ece
    readme = (io.SHIPPED / "README.md").read_text(encoding="utf-8")
    assert accuracy in readme
    assert nll in readme


def test_the_shipped_predictions_are_small():
    assert sum(path.stat().st_size for path in io.SHIPPED.glob("*.npz")) < 1_000_000


@pytest.mark.slow
def test_every_recipe_works_on_the_shipped_predictions():
    predictions = io.read(io.SHIPPED / "fashion_mnist_test.npz")
    for recipe in cal.RECIPES.values():
        assert np.isfinite(recipe(predictions).value)


@beside
def test_a_temperature_fitted_on_validation_lowers_the_test_log_loss():
    path = BESIDE / "aigen_resnet50_c10" / "cifar10_resnet50.npz"
    validation, test = (io.read(path, label=f"labels_{part}", logits=f"logits_{part}") for part in ("val", "test"))
    fitted = cal.TemperatureScaling().fit(validation.values, validation.labels)
    after = cal.Predictions.from_probs(test.labels, fitted.predict_proba(test.values))
    assert f"{cal.LOG_LOSS(test).value:.4f} {cal.LOG_LOSS(after).value:.4f}" == "0.1755 0.1738"
    warmer = cal.Predictions.from_logits(test.labels, test.values.astype(np.float64) / 1.1)
    assert f"{100 * cal.ECE(warmer).value:.3f}" == "0.953"
