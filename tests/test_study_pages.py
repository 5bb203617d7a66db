"""Pages of studies: the rules about kinds of networks by hand, and a page that finds what its study has."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("pydantic")
pytest.importorskip("yaml")

import calibrant as cal
from calibrant.experiments.design.checking import read
from calibrant.experiments.findings.claims import UNDECIDED, Judgement, UntestableError

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
try:
    import cifar10_study
    import claim_tables
    import network_claims
    import preferred_method
    import recalibration_claims
    import recalibration_study
    import study_records
    import study_rules
    from study_records import BASE, Records, is_retrained
finally:
    sys.path.pop(0)


def records(values, **others):
    return Records({key: np.array(each) for key, each in values.items()}, **others)


def test_rankings_with_infinite_losses_are_compared():
    losses = np.array([0.5, np.inf, 0.7, np.inf])
    assert recalibration_study.kendall(losses, losses) == pytest.approx(5 / 6)  # two infinite losses tie
    assert recalibration_study.kendall(losses, np.array([0.5, 1.0, 0.7, 2.0])) == pytest.approx(5 / 6)


@pytest.mark.parametrize("page", ["recalibration", "choosing", "bands", "inference", "simulation", "watch", "bracket"])
def test_a_study_of_numbers_prints_nothing_that_is_none(page):
    text = (Path(__file__).parents[1] / "docs" / f"{page}_study.md").read_text()
    assert re.findall(r"(?i)\bnan\b", text) == []


def test_a_transformer_below_zero_is_under_confident():
    values = {("vit", BASE, "mcs"): [-0.02, -0.04], ("vit", BASE, "accuracy"): [0.5, 0.5]}
    (difference,) = network_claims.transformers_under(records(values, rows=10_000))
    assert difference.mean == pytest.approx(3.0)
    assert difference.error == pytest.approx(np.hypot(1.0, 0.5))  # of two seeds, and of 10,000 tosses of a coin
    assert list(network_claims.others_over(records(values, rows=10_000))) == []
    twice = {
        (model, *rest): each for (_, *rest), each in values.items() for model in ("cnn", "cnn normal", "cnn glorot")
    }
    assert [gap.name for gap in network_claims.others_over(records(twice, rows=10_000))] == ["cnn, base, MCS"]
    with pytest.raises(UntestableError, match="no transformer"):
        list(network_claims.transformers_under(records({("cnn", BASE, "mcs"): [0.1]})))


def test_slopes_are_those_of_straight_lines():
    """Errors of 1, 2 and 3 points at widths of 8, 16 and 32 grow by a point a doubling; a second seed by two."""
    values = {(f"cnn width {8 << place}", BASE, "ece"): [0.01 * (1 + place), 0.02 * (1 + place)] for place in range(3)}
    rows = [{"networks": "cnn by width", "model": f"cnn width {size}", "size": str(size)} for size in (8, 16, 32)]
    (difference,) = network_claims.larger_is_worse(records(values, sheets={"figure_sizes": rows}))
    assert (difference.mean, difference.df) == (pytest.approx(1.5), 1)
    assert difference.error == pytest.approx(0.5)
    with pytest.raises(UntestableError, match="several sizes"):
        list(network_claims.larger_is_worse(records(values)))


def test_label_smoothing_must_lower_the_gap_and_leave_some_of_it():
    named = {BASE: 0.05, "label_smoothing 0.05": -0.01}
    values = {("net", method, "mcs"): [gap, gap] for method, gap in named.items()}
    values |= {("net", method, "accuracy"): [0.9, 0.9] for method in named}
    fall, left = network_claims.smoothing_stops_short(records(values, rows=10_000))
    assert (fall.mean, left.mean) == (pytest.approx(6.0), pytest.approx(-1.0))


def test_few_seeds_that_differ_make_a_gap_uncertain():
    """An error of 1 over two seeds beside one of 0.3 over rows: hardly more than one degree of freedom."""
    values = {("net", BASE, "mcs"): [0.02, 0.04], ("net", BASE, "accuracy"): [0.9, 0.9]}
    (gap,) = study_rules.over_confident(records(values, rows=10_000))
    assert (gap.mean, gap.error, gap.df) == pytest.approx((3.0, 1.09**0.5, 1.09**2 / (1 + 0.09**2 / 9999)))
    sheet = [
        {
            "model": "net",
            "method": "temperature",
            "classes under % seeds": "2",
            "classes under %": "70",
            "classes under % sd": str(200**0.5),
        }
    ]
    (half,) = study_rules.temperature_overshoots(records(values, sheets={"miscalibration": sheet}, classes=100))
    assert (half.mean, half.error, half.df) == pytest.approx((20.0, 125**0.5, 125**2 / 100**2))


def test_claims_of_a_paper_about_all_interventions_are_about_its_own():
    """Focal loss is left out where the paper leaves it out; methods that it did not try count nowhere."""
    methods = (BASE, "mixup 0.2", "focal 3", "flsd 3", "temperature", "platt", "histogram(n_bins=15)")
    found = records({("net", method, "ece"): [0.02, 0.03] for method in methods})
    assert [each.name for each in study_rules.ece_falls_without_focal(found)] == [
        f"net, ece, base less {method}" for method in ("mixup 0.2", "temperature")
    ]
    assert "net, ece, base less focal 3" in [each.name for each in study_rules.ece_falls(found)]
    assert len(list(study_rules.ece_falls(found))) == 3


def test_transformers_are_not_among_the_networks_that_should_be_over_confident():
    values = {(model, BASE, name): [0.5, 0.5] for model in ("vit width 64", "cnn") for name in ("mcs", "accuracy")}
    assert [gap.name for gap in study_rules.over_confident(records(values, rows=100))] == ["cnn, base, MCS"]


@pytest.mark.parametrize(("accuracy", "testable"), [(0.95, True), (0.949, False)])
def test_claims_about_overfitting_need_a_network_that_fits_its_training_rows(accuracy, testable):
    rows = [
        {"model": "net", "method": BASE, "rows": part, "metric": metric, "epoch": epoch,
         "value": str(value), "value sd": "0.001", "value seeds": "3"}
        for part in ("train", "validation")
        for metric, value in (("accuracy", accuracy), ("ece", 0.02))
        for epoch in ("1", "2", "3")
    ]  # fmt: skip
    found = records({("net", BASE, "ece"): [0.02]}, sheets={"figure_over_training": rows})
    for rule in (study_rules.training_error_vanishes, study_rules.validation_error_grows):
        if testable:
            assert len(list(rule(found))) == 1
        else:
            with pytest.raises(UntestableError, match="less than 95%"):
                list(rule(found))


def test_histogram_binning_that_leaves_half_of_the_error_improves_it():
    values = {("net", BASE, "full_ece"): [0.1, 0.1], ("net", "histogram", "full_ece"): [0.05, 0.05]}
    (difference,) = network_claims.histogram_not_full(records(values))
    assert difference.mean == pytest.approx(5.0 - 9.0)
    with pytest.raises(UntestableError, match="equal mass"):
        list(network_claims.histogram_not_full(records(values, left_out=("histogram",))))


def test_a_matrix_that_is_sure_of_itself_is_worse_than_one_temperature():
    """Rows of which half are right: one method says so, the other says that all are."""
    labels = np.arange(400) % 2
    certain, sober = (np.full((400, recalibration_claims.MANY), -30.0) for _ in range(2))
    certain[:, 0] = 30.0
    sober[:, :2] = 30.0, 30.0 - 1e-6
    methods = {
        name: cal.Predictions.from_logits(labels, logits)
        for name, logits in ((recalibration_claims.FREE, certain), ("temperature", sober))
    }
    (difference,) = recalibration_claims.matrix_overfits({"net": methods})
    assert difference.mean == pytest.approx(50.0, abs=1e-3)
    assert difference.p_above < 1e-6
    few = {name: cal.Predictions.from_logits(labels, each.values[:, :4]) for name, each in methods.items()}
    with pytest.raises(UntestableError, match="no model has 50 classes"):
        list(recalibration_claims.matrix_overfits({"net": few}))


@pytest.mark.parametrize(
    ("method", "retrained"),
    [("mixup 0.2", True), ("mixup 0.2, temperature", True), ("matrix(off_diagonal=0, intercept=0)", False)],
)
def test_options_of_a_method_are_no_strength(method, retrained):
    assert is_retrained(method) == retrained


def test_networks_of_two_studies_are_judged_together_without_what_either_leaves_out():
    first = records({("a", each, "ece"): [0.1] for each in (BASE, "histogram")}, left_out=("histogram",), rows=7)
    second = records({("b", each, "ece"): [0.2] for each in (BASE, "histogram")}, sheets={"metrics": [{"model": "b"}]})
    both = study_records.joined([first, second])
    assert (both.models, both.methods("a"), both.methods("b"), both.rows) == (["a", "b"], [], ["histogram"], 7)
    assert both.sheets == {"metrics": [{"model": "b"}]}


@pytest.mark.parametrize("name", cifar10_study.TITLES)
def test_the_studies_of_cifar_10_have_what_their_pages_need(name):
    study = read(name)
    methods = set(study.post_processing.methods)
    assert methods >= {*cifar10_study.LEFT_OUT, "temperature", "histogram", "vector", "matrix", "isotonic", "cwmcs"}
    assert [model.name for model in study.models if model.name in network_claims.TRANSFORMERS] == ["vit"]
    assert len(study.models) == 3
    small = name == "cifar10_small"
    assert [len(study.tried_on(model)) for model in study.models] == ([4, 4, 0] if small else [4, 4, 4])
    kinds = {intervention.title for intervention in study.interventions}
    assert kinds == {"label_smoothing", "mixup", "focal", "flsd"}
    assert {"accuracy", "ece", "mcs", "wsmcs", "wsece", "top5_ece", "full_ece", "sce", "ace"} <= set(study.metrics)
    assert len(study.trials()) == len(study.all_trials()) == (33 if small else 45)
    words = [claim.words for claim in cifar10_study.ASKED]
    assert len(set(words)) == len(words)


def test_the_opening_tells_a_verdict_of_every_claim_that_it_names():
    """Five sentences, each with two verdicts but the first; a claim that is not asked would raise."""
    values = {(model, BASE, metric): [0.5] for model in ("vit", "cnn") for metric in ("accuracy", "ece")}
    undecided = {claim: Judgement(UNDECIDED) for claim in cifar10_study.ASKED}
    lines = list(cifar10_study.answer("cifar10", records(values), undecided))
    text = " ".join(lines)
    assert text.count("it stays undecided here whether") == 8
    assert "vit has 50.0 % accuracy and an ECE of 50.0 points" in text
    assert max(map(len, lines)) <= claim_tables.WIDTH


def test_the_opening_about_small_networks_must_be_written_anew_where_a_verdict_changed():
    folder = cifar10_study.DOCS / "cifar10_small_study"
    found = study_records.read(folder, classes=cifar10_study.CIFAR10_CLASSES, left_out=cifar10_study.LEFT_OUT)
    told = cifar10_study.TOLD
    judgements = {
        claim: Judgement(next((word for name, word in told.items() if claim.words.startswith(name)), UNDECIDED))
        for claim in cifar10_study.ASKED
    }
    text = " ".join(cifar10_study.answer("cifar10_small", found, judgements))
    assert "1.5, 1.3 and 1.8 points" in text
    other = {claim: Judgement(UNDECIDED) for claim in judgements}
    with pytest.raises(SystemExit, match="tells otherwise"):
        list(cifar10_study.answer("cifar10_small", found, other))


def test_a_study_in_sizes_names_its_trainings():
    study = read("fashion_mnist_series")
    assert len(study.trials()) == 27
    assert {trial.model_name for trial in study.trials()} >= {"cnn width 4", "resnet depth 20", "vit width 64"}


def test_methods_are_fitted_to_the_top_label_and_chosen_by_an_error():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (1500, 4))
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)  # twice too sure
    halves = [cal.Predictions.from_logits(labels[part], logits[part]) for part in (slice(700), slice(700, None))]
    made = preferred_method.recalibrated(*halves)
    assert list(made) == ["uncalibrated", *preferred_method.METHODS]
    scaled = cal.TemperatureScaling().fit(halves[0].values, halves[0].labels).recalibrate(halves[1])
    assert cal.ECE(made["temperature scaling"]).value == cal.ECE(scaled).value
    assert all(cal.ECE(made[name]).value < cal.ECE(made["uncalibrated"]).value / 2 for name in preferred_method.METHODS)
    errors = {name: cal.ECE_SWEEP(made[name]).value for name in preferred_method.METHODS}
    assert errors[preferred_method.choice(made, cal.ECE_SWEEP)] == min(errors.values())
    (tenth,) = preferred_method.tenths(tuple(halves), 1)
    assert [len(part) for part in tenth] == [70, 80]
    gaps = [cal.MCS(each).value for each in preferred_method.alike(made, 0).values()]
    assert np.abs(gaps).max() < 4 * 0.5 / np.sqrt(800)
