"""Pages of independent labels and of the k likeliest classes: what is pooled, left out, and kept together."""

import dataclasses
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant import Predictions
from calibrant.inference.grouped import Dependent, Resampling, concluded, edges, grouped
from calibrant.inference.skewness import skewed
from calibrant.report import Report
from calibrant.report.group_gaps import corrected, gaps
from calibrant.report.rebinning import RebinningCounts
from calibrant.report.sections.choices import choices_section
from calibrant.report.sections.classes_and_ranks import classes_section, ranks_section
from calibrant.report.sections.data_and_methods import card_section
from calibrant.report.sections.family import family_section
from calibrant.report.sections.groups_and_intervals import groups_section
from calibrant.report.sections.models import pairs_of, pairs_section
from calibrant.report.sections.proper_scores import scores_section
from calibrant.report.sections.reliability_diagram import bars_of, noise_section, reliability_figure
from calibrant.report.subject import Subject

NAMES = ("dog", "outdoors", "<night>")


def labelled(n=240, labels=3, seed=0, alike=False, **options):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.6, (n, labels))
    y = rng.random(p.shape) < p**1.5
    if alike:
        p, y = np.repeat(p[:, :1], labels, axis=1), np.repeat(y[:, :1], labels, axis=1)
    return Predictions.from_multilabel(y, p, classes=NAMES if labels == 3 else None, **options)


def likeliest(n=240, k=3, classes=40, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.1), n)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, classes - 1)
    ids = np.argsort(-p, axis=1)[:, :k]
    return Predictions.from_top_k(y, ids, np.take_along_axis(p, ids, axis=1), n_classes=classes, site=np.arange(n) % 3)


@pytest.fixture(scope="module")
def page_of_labels():
    return Report.of(labelled(site=np.arange(240) % 2), name="labels")


@pytest.fixture(scope="module")
def page_of_likeliest():
    return Report.of(likeliest(), name="top")


def rows_of(section, grid=0):
    return {row[0]: row for row in section.grids[grid].rows}


def text_of(report):
    return re.sub(r"<[^>]+>", " ", re.sub(r"<(script|svg|style).*?</\1>", "", report.to_html(), flags=re.S))


WORDS = re.compile(r"\b(mend|came true|as it is|laborator|manners|the door|promise|what chance adds|kept|law)", re.I)
"""Words that are not for readers of a page."""


def sentences_of(report):
    """Every sentence on the page, but for names, references and the command."""
    page = report.page
    parts = [*page.sections, page.answer]
    figures = [figure for part in parts for figure in part.figures]
    verdict = page.verdict
    texts = [verdict.sentence, verdict.action, *verdict.supporting, *(number.meaning for number in page.key_numbers)]
    texts += [text for part in parts for text in (part.title, *part.paragraphs)]
    texts += [text for figure in figures for text in (figure.caption, figure.reading)]
    grids = [grid for part in parts for grid in part.grids] + [figure.grid for figure in figures]
    texts += [text for grid in grids for text in (grid.caption, *grid.header)]
    texts += [cell for grid in grids for row in grid.rows for cell in row[-1:] if isinstance(cell, str)]
    return [sentence for text in texts for sentence in re.split(r"(?<=[.?!]) ", text) if sentence]


def test_pages_have_short_sentences_in_words_of_the_field(page_of_labels, page_of_likeliest):
    event = Predictions.from_probs([0, 1, 1, 0] * 60, np.linspace(0.1, 0.9, 240), id=np.arange(240))
    square = Predictions.from_probs(event.labels, event.values**2)
    weighted = Predictions.from_probs(event.labels, event.values, sample_weight=np.arange(240) % 4 + 0.5)
    pages = [Report.of(event), Report.of({"raw": event, "square": square}), Report.of(weighted)]
    sentences = [sentence for page in (page_of_labels, page_of_likeliest, *pages) for sentence in sentences_of(page)]
    assert len(sentences) > 250
    assert {sentence for sentence in sentences if len(sentence.split()) > 35} == set()
    assert {sentence for sentence in sentences if WORDS.search(sentence)} == set()


# ---- independent labels ----------------------------------------------------------------------------------------------


def test_the_page_of_labels_has_no_question_about_answers(page_of_labels):
    sections = [section.identity for section in page_of_labels.page.sections]
    assert " ".join(sections) == "family noise classes groups likert scores repair choices card methods"
    text = text_of(page_of_labels)
    for word in ("accuracy", "confidence", "likeliest", "predicted class"):
        assert word not in text.split("Guo, Pleiss")[0].replace("under-confident", "").replace("over-confident", "")


def test_the_main_numbers_are_of_all_forecasts_pooled():
    predictions = labelled()
    subject = Subject(predictions, "model")
    y, p = predictions.labels.ravel(), predictions.probabilities.ravel()
    assert subject.ece.value == cal.ECE(y, p).value
    assert subject.ece.n == len(predictions)
    assert subject.mcs.value == cal.MCS(y, p).value
    assert (subject.forecast, subject.frequency) == (p.mean(), y.mean())
    table = rows_of(family_section(subject))
    assert table["ECE, sweep"][1] == cal.ECE_SWEEP(y, p).value
    assert table["ECE by label"][1] == cal.SCE(predictions).value
    assert "All 720 predictions are pooled, whatever the label is." in reliability_figure(subject).caption
    assert "240 rows of 3 labels would show" in noise_section(subject).paragraphs[0]


def test_the_verdict_speaks_of_labels(page_of_labels):
    assert page_of_labels.verdict.supporting[0].startswith("Over all 3 labels, on average ")
    assert "a label is true in" in page_of_labels.verdict.supporting[0]


def test_each_label_has_its_gap():
    predictions = labelled()
    section = classes_section(Subject(predictions, "model"))
    assert section.title == "Too high or too low, by label"
    (figure,) = section.figures
    table = {row[0]: row for row in figure.grid.rows}
    alone = [
        gaps(Predictions.from_probs(y, p), np.zeros(240, int), [name])[0]
        for name, y, p in zip(NAMES, predictions.labels.T, predictions.probabilities.T, strict=True)
    ]
    for gap in corrected(alone):
        cells = (gap.low, gap.high, gap.rows, gap.forecast, gap.frequency)
        assert table[gap.name][4:9] == pytest.approx(cells)
        assert table[gap.name][1:2] == pytest.approx((gap.value,))
        assert table[gap.name][2].value == pytest.approx(gap.p)
        assert table[gap.name][3] == gap.flag
    assert "Of 3 labels" in section.paragraphs[0]


def test_prevalences_of_labels_need_not_sum_to_one():
    truth = np.zeros((40, 3))
    truth[:30, 0] = truth[:20, 1] = 1
    predictions = Predictions.from_multilabel(truth, np.full((40, 3), 0.5), classes=NAMES)
    card = dict(card_section(Subject(predictions, "model")).grids[0].rows)
    assert card["prevalence of the labels"] == "0% (<night>) to 75.0% (dog); 1 label is never true"
    assert card["predictions of"] == "3 independent labels"


def test_scores_of_labels_are_means_over_rows():
    predictions = labelled()
    (row, _) = scores_section(Subject(predictions, "model")).grids[0].rows
    losses = -np.log(np.where(predictions.labels == 1, predictions.probabilities, 1 - predictions.probabilities))
    rows = losses.mean(axis=1)
    ends = skewed(rows.mean(), (rows - rows.mean()) / 240, 0.9)
    assert row[:4] == pytest.approx(("log loss", rows.mean(), *ends))


# ---- rows stay together ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, np.arange(240) % 3 + 0.5], ids=["plain", "weighted"])
def test_labels_that_say_the_same_are_one(weight):
    four = labelled(labels=4, alike=True, sample_weight=weight)
    one = Predictions.from_multilabel(four.labels[:, :1], four.probabilities[:, :1], sample_weight=weight)
    plain, pooled = Subject(one, "one"), Subject(four, "four")
    group = np.arange(240) % 2
    alone = gaps(plain.event, group, ["a", "b"])
    together = gaps(pooled.event, np.repeat(group, 4), ["a", "b"], np.repeat(np.arange(240), 4))
    for gap, same in zip(alone, together, strict=True):
        assert (same.low, same.high) == pytest.approx((gap.low, gap.high))
        assert same.effect == pytest.approx(4)
        assert same.p == pytest.approx(gap.p)
    bars = [bars_of(subject.ece, subject.event, subject.squares) for subject in (plain, pooled)]
    np.testing.assert_allclose(*([bar.interval for bar in each] for each in bars), atol=1e-12)
    ends = [(subject.ece.interval.low, subject.ece.interval.high) for subject in (plain, pooled)]
    assert ends[1] == pytest.approx(ends[0], rel=0.08)  # how labels depend on each other is estimated from rows
    assert pooled.mcs.interval.low == pytest.approx(plain.mcs.interval.low, abs=0.005)


def test_labels_of_different_groups_are_not_held_together():
    predictions = labelled(alike=True)
    label = np.tile(np.arange(3), 240)
    subject = Subject(predictions, "m")
    assert [gap.effect for gap in gaps(subject.event, label, NAMES, subject.cluster)] == [1.0, 1.0, 1.0]


def test_the_design_effect_of_outcomes_that_are_all_alike_counts_rows():
    event = Predictions.from_probs(np.zeros(12), np.zeros(12))
    (gap,) = gaps(event, np.zeros(12, int), ["all"], np.arange(12) // 4)
    assert (gap.effect, gap.units) == (4, 3)


def test_intervals_of_gaps_cover_and_p_values_hold_where_labels_come_true_together():
    # 300 data sets: at 90 % the share that covers lies within 0.84..0.96 but for 1 in 1000 times
    rng = np.random.default_rng(0)
    covered, rejected = [], []
    for _ in range(300):
        p = rng.beta(1, 2, (400, 6))
        common = np.where(rng.random((400, 1)) < 0.8, rng.random((400, 1)), rng.random((400, 6)))
        gap = Subject(Predictions.from_multilabel(common < p, p), "model").whole
        covered.append(gap.low <= 0 <= gap.high)
        rejected.append(gap.p <= 0.05)
    assert 0.84 <= np.mean(covered) <= 0.96
    assert 0.01 <= np.mean(rejected) <= 0.10


def test_labels_that_come_true_together_are_warned_of():
    alike, apart = (noise_section(Subject(labelled(alike=alike), "model")).paragraphs for alike in (True, False))
    assert alike[1].startswith("Outcomes of labels of one row depend on each other: their sum varies 3.0 times as much")
    assert len(apart) == 1


def test_the_page_rebins_labels_with_the_uncertainty_of_its_bins():
    subject = Subject(labelled(alike=True), "model")
    cells = RebinningCounts.of(subject.event, subject.table, subject.squares)
    assert cells.width[:, 3].sum() == pytest.approx(subject.squares.sum())
    assert cells.mass[:, 3].sum() == pytest.approx(subject.squares.sum())
    bars = bars_of(subject.ece, subject.event, subject.squares)
    bins = np.floor(15 * (edges()[:-1] + 1e-9)).astype(int)
    summed = np.bincount(bins, cells.width[:, 3], 15)
    assert [bar.squares for bar in bars] == pytest.approx(summed[summed > 0].tolist())


def test_intervals_take_rows_to_be_independent_and_not_their_labels():
    predictions = labelled()
    subject = Subject(predictions, "model")
    asked = cal.MCS.replace(lens=cal.Flat())(predictions, interval=cal.Confidence())
    assert subject.mcs.interval == asked.interval
    p, y = predictions.probabilities, predictions.labels
    alike = cal.Predictions.from_multilabel(np.repeat(y[:, :1], 9, axis=1), np.repeat(p[:, :1], 9, axis=1))
    single = cal.MCS(cal.Predictions.from_probs(y[:, 0], p[:, 0]), interval=cal.Confidence()).interval
    repeated = cal.MCS.replace(lens=cal.Flat())(alike, interval=cal.Confidence()).interval
    assert repeated.high - repeated.low > 0.95 * (single.high - single.low)  # nine times the same label is one label
    rows = dataclasses.replace(predictions, columns={"row": np.arange(len(predictions))})
    noise = cal.consistency(cal.ECE.replace(lens=cal.Flat()), rows, subject.resamples, groups="row")
    assert subject.ece.details["noise_floor"] == noise.mean


def test_grouped_forecasts_know_their_rows():
    predictions = labelled(n=9000)
    event = Subject(predictions, "model").event
    table, several = grouped(event), Dependent.of(event, np.repeat(np.arange(9000), 3))
    assert np.array_equal(np.bincount(several.entry), table.counts)
    assert np.array_equal(np.bincount(several.entry, several.happened), table.targets)
    assert np.abs(table.values[several.entry] - event.probabilities).max() < 1 / 4096


def test_many_labels_are_resampled_by_row():
    predictions = labelled(n=6000, labels=4, alike=True)
    event = Subject(predictions, "model").event
    draws = [
        Resampling.of(grouped(event), [cal.MCS], 200, 0, dependent)
        for dependent in (None, Dependent.of(event, np.repeat(np.arange(6000), 4)))
    ]
    apart, together = (draw.rows[cal.MCS].std() for draw in draws)
    assert together / apart == pytest.approx(2, rel=0.2)  # four labels that say the same are one
    assert draws[1].flips[cal.MCS].std() / draws[0].labels[cal.MCS].std() == pytest.approx(2, rel=0.2)
    assert draws[0].flips == {}
    null = draws[1].null(concluded(cal.MCS, grouped(event)))
    assert null.values is draws[1].flips[cal.MCS]  # under independent redraws p would be smaller


@pytest.mark.parametrize("rows", [300, 2300], ids=["few", "many"])
def test_signs_of_whole_rows_make_the_noise_floor_of_labels_that_are_all_alike(rows):
    """Nine times the same label: the floor is that of one label, and three times that of independent ones."""
    single, alike = (labelled(n=rows, labels=labels, alike=True) for labels in (1, 9))
    floor, same = (Subject(each, "m").ece.details["noise_floor"] for each in (single, alike))
    apart = Subject(labelled(n=rows, labels=9), "m").ece.details["noise_floor"]
    assert same / floor == pytest.approx(1, abs=0.25)
    assert same / apart == pytest.approx(3, abs=0.8)


@pytest.mark.slow
def test_labels_that_come_true_together_raise_no_more_alarms_than_the_level(monkeypatch):
    """120 calibrated sets of 60 rows, seeds 0 to 119: at 5 % at most 14 alarms but for 1 in 400, of ECE and verdict.

    With labels redrawn independently there are twice as many or more.
    """
    monkeypatch.setattr("calibrant.report.subject.MOST", 99)
    monkeypatch.setattr("calibrant.report.subject.TESTED", 99)
    monkeypatch.setattr("calibrant.report.subject._FEWEST", 99)
    alarms = np.zeros(3, int)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = rng.beta(1, 2, (60, 6))
        chance = np.where(rng.random((60, 1)) < 0.8, rng.random((60, 1)), rng.random((60, 6)))
        subject = Subject(Predictions.from_multilabel(chance < p, p), "m", seed)  # shared redraws would err together
        apart = cal.consistency(cal.ECE, subject.event, 99, seed).p_value
        alarms += np.array([subject.ece.details["null_p_value"], subject.test.p_value, apart]) <= 0.05
    assert alarms[:2].max() <= 14
    assert alarms[2] >= 24


# ---- rows that depend on each other ----------------------------------------------------------------------------------


def repeated(n=80, times=5, power=1.0, seed=0, **options):
    """Every row so many times, in no order: n independent ones."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    order = rng.permutation(n * times)
    y = (rng.random(n) < p**power).astype(int)
    patient = np.repeat(np.arange(n), times)[order]
    return Predictions.from_probs(y[patient], p[patient], patient=patient, region=patient % 2, **options)


def test_a_repeated_row_is_one_row_in_every_number_of_the_page():
    many = repeated()
    once = many[np.sort(np.unique(many.column("patient"), return_index=True)[1])]
    page, plain = Subject(many, "m", groups="patient"), Subject(once, "m")
    assert (page.mcs.interval.low, page.mcs.interval.high) == pytest.approx(
        (plain.mcs.interval.low, plain.mcs.interval.high), rel=0.02
    )
    assert (page.whole.low, page.whole.high) == pytest.approx((plain.whole.low, plain.whole.high), rel=0.02)
    assert (page.whole.p, page.whole.units) == (pytest.approx(plain.whole.p), 80)
    bars = [bars_of(subject.ece, subject.event, subject.squares) for subject in (page, plain)]
    np.testing.assert_allclose(*([bar.interval for bar in each] for each in bars), atol=1e-9)
    scores = [subject.score(cal.BRIER).interval for subject in (page, plain)]
    assert scores[0].low == pytest.approx(scores[1].low, abs=1e-9)
    assert page.ece.details["noise_floor"] == pytest.approx(plain.ece.details["noise_floor"], rel=0.25)
    assert page.line[1].interval.low == pytest.approx(plain.line[1].interval.low, rel=0.1)
    assert page.test.clusters == 80
    assert page.choice.test.clusters == 80
    spreads = [choices_section(subject).figures[0].grid.rows for subject in (page, plain)]
    assert np.mean([row[2] for row in spreads[0]]) == pytest.approx(np.mean([row[2] for row in spreads[1]]), rel=0.2)
    tested = [groups_section(subject).figures[0].grid.rows for subject in (page, plain)]
    kept = [{row[0]: row for row in rows if row[0].startswith("region")} for rows in tested]
    assert [row[0] for row in tested[0]] == list(kept[0])  # patient itself is not looked at
    for name, row in kept[0].items():
        assert row[4:6] == pytest.approx(kept[1][name][4:6], rel=0.05)


def test_a_page_says_which_rows_depend_on_each_other():
    predictions = repeated(n=60, power=2.0)
    first, other = (Report.of({"m": predictions}, groups=groups) for groups in ("patient", None))
    page = first.to_html()
    assert "those of one patient (60 values)" in page
    assert "Values of patient are independent, and rows of one value may depend on each other." in page
    assert "Outcomes of rows of one patient depend on each other" in page
    assert "Not looked at: patient, whose rows may depend on each other." in page
    assert "patient are independent" not in other.to_html()
    with pytest.raises(cal.CalibrationInputError, match="nobody"):
        Report.of(predictions, groups="nobody")


def test_models_of_rows_that_depend_on_each_other_are_compared_by_group():
    first, second = (repeated(n=60, power=power) for power in (1.0, 1.0))
    second = dataclasses.replace(second, forecasts=dataclasses.replace(second.forecasts, values=second.values**2))
    widths = {}
    for groups in (None, "patient"):
        subjects = [Subject(each, name, groups=groups) for each, name in ((first, "a"), (second, "b"))]
        rows = pairs_section(pairs_of(subjects)).grids[0].rows
        widths[groups] = [row[5] - row[4] for row in rows]
    assert len(widths[None]) == 4
    assert np.divide(widths["patient"][:2], widths[None][:2]) == pytest.approx([5**0.5] * 2, rel=0.25)


@pytest.mark.parametrize("forecasts", ["classes", "labels"])
def test_pages_of_classes_and_labels_take_groups(forecasts):
    predictions = labelled(n=60) if forecasts == "labels" else classes_of_patients()
    predictions = dataclasses.replace(predictions, columns={"patient": np.arange(len(predictions)) // 2})
    page = Report.of(predictions, groups="patient").to_html()
    assert "Values of patient are independent" in page
    if forecasts == "classes":
        assert "full ECE: no noise floor is known where rows of one patient may depend on each other" in page


def classes_of_patients():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 90)
    return Predictions.from_probs([rng.choice(3, p=row) for row in p], p)


def test_a_large_page_of_labels_agrees_with_its_rows():
    predictions = labelled(n=7000)
    subject = Subject(predictions, "model")
    assert subject.is_large
    y, p = predictions.labels.ravel(), predictions.probabilities.ravel()
    assert subject.ece.value == cal.ECE(y, p).value
    assert subject.ece.n == 7000
    exact = cal.MCS.replace(lens=cal.Flat())(predictions, interval=cal.Bootstrap(200, seed=1)).interval
    width = exact.high - exact.low
    assert subject.mcs.interval.low == pytest.approx(exact.low, abs=0.3 * width)
    assert subject.mcs.interval.high == pytest.approx(exact.high, abs=0.3 * width)
    report = Report.of(predictions[:6800])
    assert "are computed from predictions in groups" in text_of(report)
    assert "All other numbers of pooled labels are of the predictions themselves" in text_of(report)


def test_models_of_labels_are_set_side_by_side():
    first = labelled()
    second = Predictions.from_multilabel(first.labels, first.probabilities**1.5, classes=NAMES)
    page = Report.of({"raw": first, "mended": second}).page
    assert page.answer.grids[0].header[-2] == "prediction - frequency"
    pooled = cal.ECE(first.labels.ravel(), first.probabilities.ravel()).value
    assert page.answer.grids[0].rows[0][1].value == pooled
    paired = page.sections[0].grids[0].rows[0]
    assert paired[2] == pytest.approx(pooled - cal.ECE(second.labels.ravel(), second.probabilities.ravel()).value)


@pytest.mark.parametrize("n", [1, 7])
def test_few_rows_of_labels_make_a_page(n):
    report = Report.of(labelled(n=n))
    assert "Too few rows to tell" in report.verdict.sentence
    assert "Fewer than 20 rows: too few to look at labels one by one." in text_of(report)


# ---- the k likeliest classes -----------------------------------------------------------------------------------------


def test_what_needs_every_class_is_left_out_and_named_once(page_of_likeliest):
    text = text_of(page_of_likeliest)
    reason = "(each needs the probability of each of the 40 classes)"
    assert f"Left out: SCE, ACE, TACE, full ECE and the noise floor of wsECE {reason}." in text
    assert f"Left out: log loss and Brier score of all classes {reason}." in text
    assert "Not defined for these data: top-5 ECE." in text
    assert "No recalibration is recommended: it needs the probability of each of the 40 classes." in text
    assert text.count("SCE") == 1 + text.split("Guo, Pleiss")[1].count("SCE")
    names = [row["metric"] for row in page_of_likeliest.numbers]
    assert names[-1] == "wsECE"
    assert "full ECE" not in names


def test_the_rest_is_the_page_of_the_whole_distribution(page_of_likeliest):
    top = likeliest()
    numbers = {row["metric"]: row["value"] for row in page_of_likeliest.numbers}
    assert numbers["ECE"] == cal.ECE(top).value
    assert numbers["wsECE"] == cal.WSECE(top).value
    assert [row[0] for row in scores_section(Subject(top, "m")).grids[0].rows] == ["accuracy"]
    ranks = ranks_section(Subject(top, "m")).figures[0].grid.rows
    assert [row[0] for row in ranks] == [1, 2, 3]
    assert ranks[2][2] == cal.MeanScore(cal.InTopK(3), cal.hit)(top).value


def test_the_digest_sees_which_classes_are_on_the_list():
    digests = {
        Subject(Predictions.from_top_k([0], [ids], [[0.5, 0.2]], n_classes=4), "m").digest for ids in ([0, 1], [0, 2])
    }
    assert len(digests) == 2


def test_models_without_a_log_loss_are_compared_by_ece():
    first = likeliest()
    second = Predictions.from_top_k(first.labels, first.forecasts.ids, first.values * 0.8, n_classes=40)
    report = Report.of({"raw": first, "less sure": second})
    assert {row[1] for row in report.page.sections[0].grids[0].rows} == {"ECE", "accuracy"}
    assert re.match(r"(Use|Choose between) .* ECE ", report.verdict.action)


def test_a_pure_shift_is_called_a_shift_and_repaired_by_one():
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1.5, 2000)
    p, truth = (1 / (1 + np.exp(-(z + by))) for by in (0.0, 0.5))
    subject = Subject(Predictions.from_probs((rng.random(2000) < truth) * 1, p), "model")
    assert subject.choice.best in ("prior_shift", "platt")
    assert "prior_shift" in subject.choice.table.results
    conclusion = Report.of(subject.predictions).verdict
    assert "by a shift of the log-odds of 0.5" in conclusion.sentence
    assert "ECE goes from 9.0 to 2." in conclusion.action
    assert "_" not in conclusion.action


def test_labels_that_are_off_in_opposite_directions_are_not_called_calibrated():
    rng = np.random.default_rng(3)
    p = rng.beta(1.2, 2.5, (1500, 4))
    y = (rng.random(p.shape) < p ** [1, 1.3, 0.8, 1]).astype(int)
    report = Report.of(Predictions.from_multilabel(y, p))
    assert report.verdict.sentence.startswith("Single labels are miscalibrated, which pooled labels hide (p ")
    assert report.verdict.tone == "poor"
    ece = report.page.key_numbers[0]
    assert "all labels pooled" in ece.meaning
