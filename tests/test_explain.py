"""What other libraries would report: their own answers, kept, are met by metrics of calibrant."""

import functools
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.explanation import LibraryBins, edge_rules
from calibrant.explanation.library_bins import mean_of_filled

ROOT = Path(__file__).parents[1]
BESIDE = ROOT.parent / "shared" / "data"
KEPT = json.loads((ROOT / "tests" / "explained.json").read_text(encoding="utf-8"))


def script():
    path = ROOT / "scripts" / "explained_libraries.py"
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


SCRIPT = script()
CASES = dict(SCRIPT.cases())


@functools.cache
def explained(name, n_bins):
    return cal.explain(CASES[name], n_bins=n_bins)


def check(explanation, answers):
    assert [f"{row.library} {row.function}" for row in explanation] == list(answers)
    for row, (call, theirs) in zip(explanation, answers.items(), strict=True):
        if row.metric is None:
            assert theirs.split()[0] == "raises", call
            assert theirs in row.note
        else:
            assert row.value == pytest.approx(theirs, abs=row.within), call


def test_every_library_was_asked():
    assert len(KEPT["versions"]) == 7
    assert {call.rpartition(" ")[0] for call in SCRIPT.CALLS} == set(KEPT["versions"])
    assert set(KEPT["cases"]) == set(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_bins", SCRIPT.NUMBERS)
def test_the_answers_of_the_libraries_are_met(name, n_bins):
    check(explained(name, n_bins), KEPT["cases"][name][str(n_bins)])


def test_all_but_ties_in_tensorflow_are_met_to_a_millionth():
    loose = {(row.library, name) for name in CASES for row in explained(name, None) if row.within > 1e-6}
    assert {library for library, _ in loose} == {"TensorFlow Probability"}
    assert ("TensorFlow Probability", "five classes, float32") not in loose


@pytest.mark.skipif(not BESIDE.is_dir(), reason="other people's predictions are not here")
@pytest.mark.parametrize("name", KEPT["files"])
def test_the_answers_about_real_predictions_are_met(name):
    for file, predictions in SCRIPT.from_files(BESIDE):
        if file == name:
            check(cal.explain(predictions), KEPT["files"][name])
            return
    pytest.skip("this file is not here")


@pytest.mark.parametrize("name", ["levels of 0.1, float32", "votes of 15, float32", "two columns, float64"])
def test_each_row_carries_a_metric_that_travels_and_gives_its_value(name):
    for row in explained(name, None):
        again = cal.from_json(row.metric.to_json())
        assert again == row.metric
        assert again(CASES[name]).value == row.value
        assert row.specification


@pytest.mark.parametrize("name", ["levels of 0.1, float32", "votes of 15, float64", "many zeros and ones, float32"])
def test_differences_of_choices_add_up(name):
    explanation = explained(name, None)
    for row in explanation:
        assert sum(choice.difference for choice in row.choices) == pytest.approx(row.difference, abs=1e-12)
    assert any(choice.difference for row in explanation for choice in row.choices)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_plain_library_bins_are_those_of_equal_width(kind, closed):
    rng = np.random.default_rng(0)
    for n_bins in (1, 7, 10, 15):
        p = np.concatenate([rng.integers(0, n_bins + 1, 50) / n_bins, rng.random(50)]).astype(kind)
        y = rng.integers(0, 2, 100)
        theirs, ours = (
            cal.BinnedError(binning=binning(n_bins, closed=closed))(y, p).value
            for binning in (LibraryBins, cal.EqualWidth)
        )
        assert theirs == pytest.approx(ours, abs=1e-12)


def ece(y, p, **choices):
    return cal.ECE.replace(binning=LibraryBins(10, **choices))(y, p).value


def test_the_end_that_is_left_out_may_have_a_bin_of_its_own():
    assert ece([1, 0], [0.95, 1.0], closed="left") == pytest.approx(0.475)
    assert ece([1, 0], [0.95, 1.0], closed="left", own_bin=True) == pytest.approx(0.525)
    assert ece([1, 0], [0.0, 0.05]) == pytest.approx(0.475)
    assert ece([1, 0], [0.0, 0.05], own_bin=True) == pytest.approx(0.525)
    assert ece([1, 0], [0.95, 1.0], own_bin=True) == pytest.approx(0.475)


def test_edges_are_compared_in_the_precision_that_is_asked_for():
    p = np.array([0.1, 0.15], np.float32)  # float32(0.1) is above 0.1
    assert ece([1, 0], p) == pytest.approx(0.525, abs=1e-7)
    assert ece([1, 0], p, compared="float64") == pytest.approx(0.375, abs=1e-7)
    assert ece([1, 0], p.astype(np.float64), compared="float32") == pytest.approx(0.525, abs=1e-7)


def test_totals_in_float32_stop_growing():
    p, y = np.full(1 << 18, 0.7, np.float32), np.arange(1 << 18) % 10 < 7
    total = np.float32(0)
    for value in p[: 1 << 12]:
        total += value
    rounded = cal.ECE.replace(binning=LibraryBins(summed="float32"))
    outputs = rounded(y[: 1 << 12], p[: 1 << 12]).bins.outputs.value
    assert outputs.max() == float(total) != p[: 1 << 12].sum(dtype=np.float64)
    assert rounded(y, p).value > 1e-3 > cal.ECE(y, p).value


def test_samples_may_be_counted_by_other_edges_than_they_are_averaged_by():
    """float32(0.7) is below 0.7: averaged with 0.75 in the bin from 0.7 on, counted with 0.65 below it."""
    p, y = np.array([0.65, 0.7, 0.75], np.float32), [1, 0, 0]
    assert ece(y, p, closed="left", counted="float64") == pytest.approx((2 * 0.35 + 0.725) / 3, abs=1e-6)


def test_only_edges_from_groups_of_rows_follow_their_order():
    rng = np.random.default_rng(1)
    p = rng.random(60)
    y, order = rng.random(60) < p, np.argsort(p)
    for row, turned in zip(cal.explain(y, p, n_bins=5), cal.explain(y[order], p[order], n_bins=5), strict=True):
        same = row.value == pytest.approx(turned.value, abs=1e-7)  # float32 totals follow it, too, but less
        assert same != ("array split" in row.function), row.function


def test_edges_of_torch_are_rounded_once_from_the_nearer_end():
    """Of fifteen in float32, the twelfth is 1 - 3 steps in one rounding: neither 12 steps, nor the product first."""
    edges = edge_rules.torch_linspace(np.zeros(1, np.float32), 15)
    step = np.float32(1) / np.float32(15)
    assert edges.dtype == np.float32
    assert edges[12] == np.float32(1 - 3 * float(step))
    assert edges[12] != np.float32(12 * float(step))
    assert edges[12] != np.float32(1) - np.float32(3) * step
    assert edges[3] == np.float32(3) * step


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bin_numbers_by_arithmetic_are_those_of_their_edges(kind):
    rng = np.random.default_rng(2)
    for n in range(2, 101):
        on = (np.arange(n + 1) / n).astype(kind)
        p = np.concatenate([on, *(np.nextafter(on, kind(end)) for end in (0, 1)), rng.random(20).astype(kind)])
        divided = edge_rules.reached_by_division(p, n)
        assert (np.searchsorted(divided, p, "right") - 1 == (p / (1.0 / n)).astype(int)).all()
        product = edge_rules.reached_by_product(p, n)
        assert (np.searchsorted(product, p, "right") - 1 == np.floor(p * kind(n))).all()


def test_the_mean_of_filled_bins_leaves_empty_ones_out():
    metric = cal.ECE.replace(aggregate=mean_of_filled)
    assert metric([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.2]).value == pytest.approx(0.15)


def test_an_explanation_prints_and_becomes_json():
    explanation = cal.explain([1, 0], [0.95, 1.0])
    text = str(explanation)
    assert "+0.0500 1 has a bin of its own" in text
    assert text.startswith("calibrant: ECE 0.4750 (n=2, event, 15 equal-width bins)")
    content = json.loads(explanation.to_json())
    assert content["rows"][0]["library"] == "torchmetrics"
    assert content["rows"][0]["difference"] == pytest.approx(0.05)
    assert content["rows"][-1]["within"] == 1e-6  # a probability of 1 is on no edge that rounding could cross
    assert content["ours"]["value"] == 0.475
    assert "<td>torchmetrics</td>" in explanation._repr_html_()


@pytest.mark.parametrize("name", CASES)
def test_words_are_short_enough_for_a_line(name):
    for row in explained(name, 10):
        assert len(row.function) <= 70
        for choice in row.choices:
            assert len(choice.words) <= 51, choice.words


def test_confidences_are_explained_without_what_needs_classes():
    libraries = {row.library for row in cal.explain(cal.Predictions.from_confidence([1, 0, 1], [0.9, 0.6, 0.7]))}
    assert libraries == set(KEPT["versions"]) - {"TensorFlow Probability"}


def test_logits_are_explained_by_their_probabilities():
    logits = np.random.default_rng(0).normal(size=(50, 3))
    of_logits = cal.Predictions.from_logits(np.arange(50) % 3, logits)
    of_probabilities = cal.Predictions.from_probs(np.arange(50) % 3, np.asarray(of_logits.probabilities))
    for row, other in zip(cal.explain(of_logits), cal.explain(of_probabilities), strict=True):
        assert row.value == pytest.approx(other.value, abs=1e-12)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (cal.Predictions.from_probs([1, 0], [0.9, 0.2], sample_weight=[1, 2]), "got sample weights"),
        (cal.Predictions.from_probs([0.5, 0], [0.9, 0.2]), "got soft labels"),
        (cal.Predictions.from_probs([1, 0], np.array([0.9, 0.2], np.float16)), "got half precision"),
        (cal.Predictions.from_multilabel([[1, 0], [0, 1]], [[0.9, 0.2], [0.3, 0.4]]), "got independent labels"),
        (cal.Predictions.from_probs([1, 0], [0.9, 0.2])[:0], "got no rows"),
    ],
)
def test_what_other_libraries_do_not_take_is_refused(predictions, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        cal.explain(predictions)


def test_the_likeliest_classes_alone_are_refused():
    few = cal.Predictions.from_top_k([0, 1], [[0, 2], [1, 0]], [[0.7, 0.2], [0.6, 0.3]], n_classes=4)
    with pytest.raises(cal.CalibrationInputError, match="explain"):
        cal.explain(few)


@pytest.mark.parametrize(("kind", "n_bins", "raises"), [("f", 93, True), ("f", 94, False), ("d", 93, False)])
def test_an_index_that_relplot_does_not_have_is_told(kind, n_bins, raises):
    """As relplot 1.0.3 does: 1 / (1 / 93) is 93 in float32, and 92 in whole bins of float64."""
    p = np.array([0.5, 1.0], kind)
    row = next(row for row in cal.explain([1, 1], p, n_bins=n_bins) if "binnedECE" in row.function)
    assert (row.metric is None) == ("raises IndexError" in row.note) == raises


def test_library_bins_refuse_weights_and_vectors():
    with pytest.raises(cal.CalibrationInputError, match="LibraryBins: takes rows that count alike"):
        cal.ECE.replace(binning=LibraryBins())([1, 0], [0.9, 0.2], sample_weight=[1, 2])
    with pytest.raises(cal.CalibrationInputError, match="one coordinate per question"):
        cal.BinnedError(lens=cal.Full(), binning=LibraryBins())([0, 1], [[0.9, 0.1], [0.2, 0.8]])


def test_one_bin_is_refused():
    with pytest.raises(cal.CalibrationInputError, match="n_bins: must be a whole number of at least 2"):
        cal.explain([1, 0], [0.9, 0.2], n_bins=1)
