"""Findings and their figures: a small store whose outcomes are made up, each number held against a plain loop."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

from calibrant.experiments.design.study_schema import Study
from calibrant.experiments.findings import epoch_rows, figure_rows
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.training.trial_outcomes import Answers, Outcome, Snapshots, write_outcome
from calibrant.predictions import Predictions
from calibrant.recipes import TACE
from oracles.local import canonical

pytestmark = pytest.mark.slow

STUDY = """\
name: small
data: {name: digits}
models: [mlp, {name: mlp, label: other}]
training: {epochs: 2}
seeds: [0, 1]
post_processing: {methods: [temperature]}
metrics: [accuracy, ece]
over_training: {metrics: [], keep: KEEP}
gammas: [0.5]
bootstrap: 2
"""
CLASSES = ("cat", "dog", "car", "bus")
HIERARCHY = {
    "fine": {"animals": ("cat", "dog"), "car": ("car",), "bus": ("bus",)},
    "coarse": {"animals": ("cat", "dog"), "machines": ("car", "bus")},
}
ROWS = 250


def made_up(trial, number, *, keep):
    random = np.random.default_rng(number)

    def logits(n, size=2.0):
        sure = np.where(np.arange(n) < n // 4, 0.1, size)  # some samples are in the lowest category
        return (sure[:, None] * random.normal(size=(n, len(CLASSES)))).astype(np.float32)

    parts = [Answers(logits(ROWS), random.integers(0, len(CLASSES), ROWS)) for _ in range(2)]
    kept, labels = None, random.integers(0, len(CLASSES), 30)
    if keep:
        first, second = (Snapshots.of(logits(30, size), logits(ROWS, size), labels=labels) for size in (1.0, 3.0))
        kept = first.followed_by(second)
    curves = np.zeros((2, 2, 0))
    return Outcome(trial.to_json(), *parts, CLASSES, HIERARCHY, (), np.array([1, 2]), curves, {"seconds": 1.0}, kept)


def a_store(folder, *, keep):
    runner.open_study(folder, STUDY.replace("KEEP", str(keep).lower()))
    study, store = runner.reopen(folder)
    for number, row in enumerate(store.rows()):
        write_outcome(store.result_path(row.trial.id), made_up(row.trial, number, keep=keep))
        store.adopt(row.trial.id, 1.0)
    return Evidence(study, store)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    return a_store(tmp_path_factory.mktemp("kept") / "store", keep=True)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    return a_store(tmp_path_factory.mktemp("not_kept") / "store", keep=False)


def picked(sheet, **asked):
    """The rows of a sheet that say what is asked."""
    return [row for row in sheet.records() if all(row[name] == value for name, value in asked.items())]


def softmax(logits):
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True).astype(np.float64))
    return powers / powers.sum(axis=1, keepdims=True)


def outcomes_of(evidence, model):
    base = next(variant for variant in evidence.variants(model) if variant.is_base)
    return [evidence.outcome(trial) for trial in base.trials]


def snapshot(outcome, split, epoch):
    labels = outcome.kept.labels if split == "train" else outcome.validation.labels
    return getattr(outcome.kept, split)[epoch - 1].astype(np.float32), labels


# over training


def oracle_bounds(logits, ranges, threshold):
    """For each range of equally many forecasts its smallest forecast, the mean over classes that have one in it."""
    bounds = [[] for _ in range(ranges)]
    for column in softmax(logits).T:
        kept = sorted(value for value in column if value > threshold)
        for place in range(ranges):
            first, end = (-(-k * len(kept) // ranges) for k in (place, place + 1))
            if end > first:
                bounds[place].append(kept[first])
    return [np.mean(some) if some else np.nan for some in bounds]


@pytest.mark.parametrize(("metric", "threshold"), [("ACE", -1.0), ("TACE", 0.01)])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_ranges_begin_where_a_plain_loop_finds_them(evidence, metric, threshold, split):
    rows = picked(epoch_rows.range_bounds(evidence), model="other", rows=split, metric=metric, epoch=2)
    assert [row["range"] for row in rows] == list(range(1, 16))
    wanted = [
        oracle_bounds(snapshot(outcome, split, 2)[0], 15, threshold) for outcome in outcomes_of(evidence, "other")
    ]
    # logits are of 32 bits, and so are the probabilities that ranges are made of
    np.testing.assert_allclose([row["lower bound"].mean for row in rows], np.mean(wanted, axis=0), rtol=1e-6)
    assert {row["lower bound"].n for row in rows} == {2}


def test_a_class_without_a_forecast_in_a_range_has_no_say_in_its_bound():
    forecasts = [[0.5, 0.495, 0.005], [0.4, 0.595, 0.005], [0.2, 0.795, 0.005]]  # the third is below the threshold
    bounds = epoch_rows._lower_bounds(TACE)(Predictions.from_probs([0, 1, 1], forecasts))
    # by hand: three forecasts a class begin ranges 1, 6 and 11; the means of two classes
    assert bounds[[0, 5, 10]] == pytest.approx([(0.2 + 0.495) / 2, (0.4 + 0.595) / 2, (0.5 + 0.795) / 2], abs=1e-12)
    assert np.isnan(np.delete(bounds, [0, 5, 10])).all()


def oracle_adaptive_error(logits, labels, ranges, threshold):
    total = []
    for index, column in enumerate(softmax(logits).T):
        parts = np.array([row for row in np.argsort(column, kind="stable") if column[row] > threshold], int)
        cuts = [-(-k * len(parts) // ranges) for k in range(ranges + 1)]
        gaps = 0.0
        for first, end in pairwise(cuts):
            some = parts[first:end]
            if len(some):
                gaps += len(some) / len(parts) * abs(column[some].mean() - (labels[some] == index).mean())
        total.append(gaps)
    return np.mean(total)


@pytest.mark.parametrize(
    ("name", "ranges", "threshold"), [("ACE, 100 ranges", 100, -1.0), ("TACE, 50 ranges", 50, 0.01)]
)
def test_errors_of_many_ranges_are_those_of_a_plain_loop(evidence, name, ranges, threshold):
    (row,) = picked(epoch_rows.range_errors(evidence), model="mlp", rows="validation", metric=name, epoch=1)
    wanted = [
        oracle_adaptive_error(*snapshot(outcome, "validation", 1), ranges, threshold)
        for outcome in outcomes_of(evidence, "mlp")
    ]
    assert row["value"].mean == pytest.approx(np.mean(wanted), abs=1e-6)  # probabilities of 32 bits


def test_gaps_by_confidence_are_those_of_a_plain_loop(evidence):
    rows = picked(epoch_rows.bins_over_training(evidence), model="mlp", rows="train", epoch=2)
    counts, gaps = {}, {}
    for outcome in outcomes_of(evidence, "mlp"):
        logits, labels = snapshot(outcome, "train", 2)
        for place in range(10):
            forecasts = softmax(logits)
            confidence, hit = forecasts.max(axis=1), forecasts.argmax(axis=1) == labels
            inside = (confidence > place / 10) & (confidence <= (place + 1) / 10)
            name = f"{place / 10:.1f}-{(place + 1) / 10:.1f}"
            counts.setdefault(name, []).append(inside.sum())
            if inside.any():
                gaps.setdefault(name, []).append(confidence[inside].mean() - hit[inside].mean())
    assert [row["confidence"] for row in rows] == sorted(gaps)
    for row in rows:
        assert row["samples"] == np.mean(counts[row["confidence"]])
        assert row["gap"].mean == pytest.approx(np.mean(gaps[row["confidence"]]), abs=1e-6)
        assert row["gap"].n == len(gaps[row["confidence"]])


def test_the_length_of_logits_is_the_mean_root_of_their_squares(evidence):
    rows = picked(epoch_rows.logit_norms(evidence), model="other", rows="validation")
    assert [row["epoch"] for row in rows] == [1, 2]
    for row in rows:
        lengths = []
        for outcome in outcomes_of(evidence, "other"):
            logits, _ = snapshot(outcome, "validation", row["epoch"])
            lengths.append(np.mean([sum(float(value) ** 2 for value in line) ** 0.5 for line in logits]))
        assert row["length"].mean == pytest.approx(np.mean(lengths), abs=1e-9)
    assert rows[1]["length"].mean > 2 * rows[0]["length"].mean


OF_SNAPSHOTS = ("range_bounds", "range_errors", "bins_over_training", "logit_norms")


def test_a_category_without_samples_does_not_look_like_one_without_error():
    pytest.importorskip("matplotlib")
    from calibrant.experiments.findings.figures import FIGURES

    pairs = {"low": [np.nan, np.nan], "high": [0.0, 0.0]}
    rows = tuple(("mlp", "base", name, Spread.of(values)) for name, values in pairs.items())
    sheet = Sheet("likert_errors", "Errors", ("model", "method", "measure", "value"), rows)
    (panel, *_) = FIGURES["likert_errors"].draw(sheet).axes
    marked = [line.get_xdata().tolist() for line in panel.lines if line.get_marker() == "x"]
    assert [len(places) for places in marked] == [1, 0]
    assert "x: no samples" in [text.get_text() for text in panel.texts]
    (full, *_) = FIGURES["likert_errors"].draw(replace(sheet, rows=rows[1:])).axes
    assert not full.texts


@pytest.mark.parametrize("name", OF_SNAPSHOTS)
def test_where_nothing_was_kept_there_is_nothing_to_say(forgetful, name):
    assert getattr(epoch_rows, name)(forgetful).rows == ()


# single forecasts


def test_the_frequency_near_a_forecast_is_the_canonical_one(evidence):
    rows = picked(figure_rows.datapoint(evidence), model="mlp", **{"class": "dog"})
    assert [row["forecast"] for row in rows] == [step / 100 for step in range(101)]
    assert {row["decay"] for row in rows} == {0.9}
    for row in rows[::9]:
        wanted = [
            canonical(softmax(outcome.test.logits)[:, 1].tolist(), (outcome.test.labels == 1).tolist(), row["forecast"])
            for outcome in outcomes_of(evidence, "mlp")
        ]
        assert row["frequency"].mean == pytest.approx(np.mean(wanted), abs=1e-6)  # probabilities of 32 bits


@pytest.mark.parametrize("decay", figure_rows.DECAYS)
def test_every_decay_rate_has_its_curve(evidence, decay):
    rows = picked(figure_rows.decay_rates(evidence), model="other", decay=decay, **{"class": "bus"})
    assert [row["forecast"] for row in rows] == [step / 20 for step in range(21)]
    wanted = [
        canonical(softmax(outcome.test.logits)[:, 3].tolist(), (outcome.test.labels == 3).tolist(), 0.4, decay)
        for outcome in outcomes_of(evidence, "other")
    ]
    # probabilities of 32 bits, and weights that halve within a hundredth
    assert rows[8]["frequency"].mean == pytest.approx(np.mean(wanted), abs=1e-5)


def test_shares_of_forecasts_are_counted_over_all_classes_and_over_each(evidence):
    sheet = figure_rows.sharpness(evidence)
    for name, columns in [("all classes", slice(None)), ("cat", slice(0, 1)), ("bus", slice(3, 4))]:
        rows = picked(sheet, model="mlp", of=name)
        assert sum(row["share"].mean for row in rows) == pytest.approx(1.0, abs=1e-12)
        for row in rows:
            shares = []
            for outcome in outcomes_of(evidence, "mlp"):
                forecasts = softmax(outcome.test.logits)[:, columns]
                inside = (forecasts > row["low"]) & (forecasts <= row["high"])
                shares.append(inside.mean())
            assert row["share"].mean == pytest.approx(np.mean(shares), abs=1e-12)
            assert row["forecast"] == pytest.approx((row["low"] + row["high"]) / 2, abs=1e-12)


# questions about groups and categories


def test_total_variation_finds_errors_that_leave_no_category(evidence):
    rows = picked(figure_rows.likert_tvd(evidence), model="mlp", method="base")
    assert [row["measure"] for row in rows] == ["ECE, 15 bins", "full", "[0, 0.33)", "[0.33, 0.66)", "[0.66, 1]"]
    edges = {"[0, 0.33)": (0.0, 0.33), "[0.33, 0.66)": (0.33, 0.66), "[0.66, 1]": (0.66, 1.01)}
    kept = {
        row["measure"]: row["value"] for row in picked(figure_rows.likert_errors(evidence), model="mlp", method="base")
    }
    for row in rows[2:]:
        totals = []
        for outcome in outcomes_of(evidence, "mlp"):
            forecasts = softmax(outcome.test.logits)
            confidence, hit = forecasts.max(axis=1), forecasts.argmax(axis=1) == outcome.test.labels
            low, high = edges[row["measure"]]
            inside = (confidence >= low) & (confidence < high)
            total = 0.0
            for place in range(15):
                some = inside & (confidence > place / 15) & (confidence <= (place + 1) / 15)
                if some.any():
                    total += some.sum() / inside.sum() * abs(confidence[some].mean() - hit[some].mean())
            assert inside.any()
            totals.append(total)
        assert row["value"].mean == pytest.approx(np.mean(totals), abs=1e-6)  # probabilities of 32 bits
        assert not row["value"].mean < kept[row["measure"]].mean


def test_the_hierarchy_goes_from_the_coarsest_level_to_the_classes(evidence):
    rows = picked(figure_rows.hierarchy(evidence), model="other", method="temperature")
    assert [row["level"] for row in rows] == ["coarse (2)", "fine (3)", "classes (4)"]
    groups = picked(figure_rows.groups(evidence), model="other", method="temperature", measure=figure_rows.ALL)
    known = {row["level"]: row["value"].mean for row in groups}
    assert [row["value"].mean for row in rows[:2]] == [known["coarse"], known["fine"]]
    full = picked(figure_rows.likert_errors(evidence), model="other", method="temperature", measure="full")
    assert rows[2]["value"].mean == full[0]["value"].mean


def test_classes_without_groups_have_no_hierarchy(evidence):
    plain = Evidence(evidence.study, evidence.store)
    plain.outcome = lambda trial: replace(evidence.outcome(trial), hierarchy={})
    assert figure_rows.hierarchy(plain).rows == ()


# figures

PANELS = {
    "range_bounds": 2 * 2 * 2,  # models, rows, metrics
    "range_errors": 2 * 2,
    "bins_over_training": 2 * 2,
    "logit_norms": 2,
    "datapoint": 4,  # classes
    "decay_rates": 2 * 4,
    "sharpness": 5,
    "likert_tvd": 2,
    "hierarchy": 2,
}


@pytest.mark.parametrize("name", PANELS)
def test_a_figure_has_a_panel_for_everything_that_is_shown_apart(evidence, name):
    pytest.importorskip("matplotlib")
    from calibrant.experiments.findings.figures import FIGURES

    figure = FIGURES[name]
    sheet = figure.find(evidence)
    picture = figure.draw(sheet)
    shown = [panel for panel in picture.axes if panel.axison]
    assert len(shown) == PANELS[name]
    assert all(panel.get_yscale() == ("log" if figure.log else "linear") for panel in shown)
    assert all(panel.get_ylabel() not in ("", "value") for panel in shown)
    legend = [text.get_text() for text in picture.legends[0].get_texts()]
    assert len(legend) == len(set(legend)) > 1
    if figure.ordered:
        values = [float(text.split("-")[0]) for text in legend]
        assert values == sorted(values)
        assert picture.legends[0].get_title().get_text() == figure.series


@pytest.mark.parametrize("name", ["range_bounds", "bins_over_training"])
def test_ordered_series_go_from_dark_to_light(evidence, name):
    pytest.importorskip("matplotlib")
    from matplotlib.colors import to_rgb

    from calibrant.experiments.findings.figures import FIGURES

    picture = FIGURES[name].draw(FIGURES[name].find(evidence))
    light = [sum(to_rgb(handle.get_color())) for handle in picture.legends[0].get_lines()]
    assert light[0] < light[-1]


def test_figures_without_rows_are_left_out(forgetful, tmp_path):
    pytest.importorskip("matplotlib")
    from calibrant.experiments.findings.figures import save_figures

    paths = save_figures(forgetful, tmp_path, [*OF_SNAPSHOTS, "hierarchy"], form="png")
    assert [path.name for path in paths] == ["hierarchy.csv", "hierarchy.png"]


def test_a_study_may_name_every_table_and_figure_that_is_made_and_no_other():
    from calibrant.experiments.design import study_schema
    from calibrant.experiments.findings.figures import FIGURES
    from calibrant.experiments.findings.tables import TABLES

    assert tuple(TABLES) == study_schema.TABLES
    assert tuple(FIGURES) == study_schema.FIGURES


def test_a_study_may_name_the_new_figures():
    asked = Study.model_validate(
        {"name": "a", "data": {"name": "digits"}, "models": ["mlp"], "figures": [*PANELS]}, strict=True
    )
    assert asked.figures == [*PANELS]
