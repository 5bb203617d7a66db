"""The report: what it says of every kind of predictions, and that what it says is true of them."""

import dataclasses
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import CalibrationInputError
from calibrant.files import reading as io
from calibrant.inference.skewness import skewed
from calibrant.predictions import Predictions
from calibrant.recalibrate.choice import UNCHANGED, Choice
from calibrant.recalibrate.methods import in_words, usual
from calibrant.report import Report
from calibrant.report.key_numbers import key_numbers
from calibrant.report.page import PageTable
from calibrant.report.quoting import sides
from calibrant.report.sections.choices import choices_section
from calibrant.report.sections.classes_and_ranks import classes_section, ranks_section
from calibrant.report.sections.data_and_methods import card_section, methods_section
from calibrant.report.sections.failures import failures_section
from calibrant.report.sections.family import family_section
from calibrant.report.sections.groups_and_intervals import groups_section
from calibrant.report.sections.models import models_table, pairs_of, pairs_section
from calibrant.report.sections.proper_scores import scores_section
from calibrant.report.sections.reliability_diagram import bars_of, noise_section, reliability_figure
from calibrant.report.sections.repair import gain, recommendation, repair_section
from calibrant.report.subject import Subject
from calibrant.report.verdict import verdict
from calibrant.text import p_value

pytestmark = pytest.mark.slow

BESIDE = Path(__file__).parents[2] / "shared" / "data"


def drawn(n, *, power=1.0, seed=0, **options):
    """An event that happens with the forecast to some power: 1 is calibrated, above is over-confident."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return Predictions.from_probs((rng.random(n) < p**power).astype(int), p, **options)


def classes(n, k=4, *, sharp=1.0, seed=0, **options):
    """Logits `sharp` times those that the labels are drawn from: above 1 is over-confident."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return Predictions.from_logits((p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), sharp * z, **options)


@pytest.fixture
def quick(monkeypatch):
    """Few resamples: for what does not depend on them."""
    monkeypatch.setattr("calibrant.report.subject.LEAST", 2)
    monkeypatch.setattr("calibrant.report.subject.MOST", 4)
    monkeypatch.setattr("calibrant.report.subject.MANY", 3)


@pytest.fixture
def fewer(monkeypatch):
    """Some resamples: for what needs their spread."""
    monkeypatch.setattr("calibrant.report.subject.MOST", 40)


# every kind of predictions


def kinds(n):
    rng = np.random.default_rng(n)
    p, labels = rng.random(n), rng.integers(0, 3, n)
    y, whole = (rng.random(n) < p).astype(int), rng.integers(1, 4, n)
    probs = rng.dirichlet(np.full(3, 0.5), n)
    columns = {
        "word": np.where(rng.random(n) < 0.5, "a", "b"),
        "truth": p > 0.5,
        "number": np.append(rng.normal(size=n - 1), np.nan),
    }
    yield "event", Predictions.from_probs(y, p, **columns)
    yield "event logits", Predictions.from_logits(y, rng.normal(size=n) * 5)
    yield "confidence", Predictions.from_confidence(y, p)
    yield "classes", Predictions.from_probs(labels, probs, **columns)
    yield "class logits", Predictions.from_logits(labels, np.log(probs + 1e-9))
    yield "two classes", Predictions.from_probs(y, np.column_stack([1 - p, p]))
    yield "float32", Predictions.from_probs(labels, probs.astype(np.float32))
    yield "soft event", Predictions.from_probs(rng.random(n), p)
    yield "soft classes", Predictions.from_probs(rng.dirichlet(np.ones(3), n), probs)
    yield "whole weights", Predictions.from_probs(y, p, sample_weight=whole)
    yield "fractional weights", Predictions.from_probs(labels, probs, sample_weight=whole / 3)
    yield "zero weights", Predictions.from_probs(y, p, sample_weight=np.arange(n) % 2 + (np.arange(n) == 0))
    yield "one class present", Predictions.from_probs(np.zeros(n, int), probs)
    yield "all happened", Predictions.from_probs(np.ones(n, int), p)
    yield "saturated", Predictions.from_probs(y, (p > 0.5).astype(float))
    yield "hard classes", Predictions.from_probs(labels, np.eye(3)[rng.integers(0, 3, n)])
    yield "constant", Predictions.from_probs(y, np.full(n, 0.5))


CASES = [(n, name, predictions) for n in (1, 2, 19, 21) for name, predictions in kinds(n)]


@pytest.mark.parametrize(("n", "name", "predictions"), CASES, ids=[f"{name}, {n} rows" for n, name, _ in CASES])
def test_every_kind_of_predictions_has_a_report(n, name, predictions, quick):
    report = Report.of(predictions)
    text = report.to_html()
    assert len(text) < 2_000_000
    for heading in ("Verdict", "Noise floor", "Recalibration", "Reliability", "Methods and references"):
        assert f">{heading}</h2>" in text
    assert all(side in text for side in sides(predictions))
    for words in ("over-confident", "under-confident"):
        assert (words in text) == predictions.forecasts.answers  # forecasts of events are too high or too low
    assert not re.search(r">\s*(nan|inf|None)\s*<", text)
    assert report.to_markdown().count("\n| ") >= 5
    assert json.dumps(report.numbers, allow_nan=False)
    assert report.verdict.tone in ("good", "poor", "unsure")
    for section in report.page.sections:
        for figure in section.figures:
            assert f"n = {n:,}" in figure.caption
            assert f"n = {n:,}" in str(figure.picture)
            assert figure.grid.rows


@st.composite
def accepted(draw):
    """Whatever the door accepts, small."""
    n = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weight = draw(st.sampled_from([None, rng.integers(0, 3, n) + (np.arange(n) == 0), rng.random(n) + 1e-3]))
    column = draw(
        st.sampled_from(
            [None, rng.integers(0, 2, n), rng.random(n), np.array(["<b>", "\u202e", "=1"])[rng.integers(0, 3, n)]]
        )
    )
    options = {"sample_weight": weight, **({} if column is None else {"column": column})}
    k = draw(st.sampled_from([0, 1, 2, 3, 12]))
    digits = draw(st.sampled_from([1, 2, 12]))
    if k <= 1:
        p = np.round(rng.beta(0.3, 0.3, n), digits)
        y = np.round(rng.random(n), digits) if draw(st.booleans()) else rng.integers(0, 2, n)
        return (Predictions.from_confidence if k else Predictions.from_probs)(y, p, **options)
    probs = rng.dirichlet(np.full(k, draw(st.sampled_from([0.02, 1.0]))), n)
    if draw(st.booleans()):
        return Predictions.from_logits(rng.integers(0, k, n), np.round(np.log(probs + 1e-300), digits), **options)
    y = rng.dirichlet(np.ones(k), n) if draw(st.booleans()) else rng.integers(0, k, n)
    return Predictions.from_probs(y, probs, **options)


@settings(max_examples=25)
@given(accepted())
def test_no_data_that_the_door_accepts_make_the_report_raise(predictions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.report.subject.LEAST", 2)
        patch.setattr("calibrant.report.subject.MOST", 3)
        text = Report.of(predictions).to_html()
    assert "<b>" not in text
    assert "\u202e" not in text
    text.encode("utf-8")


def test_reports_say_what_they_need():
    with pytest.raises(CalibrationInputError, match="must be Predictions, or a dictionary of them"):
        Report.of([0.5])
    with pytest.raises(CalibrationInputError, match="must be Predictions, or a dictionary of them"):
        Report.of({})
    with pytest.raises(CalibrationInputError, match="must not be empty"):
        Report.of(drawn(3)[:0])
    with pytest.raises(CalibrationInputError, match="seed"):
        Report.of(drawn(3), seed=-1)


def test_the_same_data_and_seed_make_the_same_page(quick):
    pages = [Report.of(classes(200), seed=seed).to_html() for seed in (1, 1, 2)]
    assert pages[0] == pages[1] != pages[2]


def test_sections_come_in_the_order_that_readers_need(quick):
    report = Report.of(classes(200, columns_are_named=np.arange(200) % 2))
    assert [section.identity for section in report.page.sections] == [
        "family", "noise", "classes", "ranks", "groups", "likert", "scores", "repair", "failures", "choices", "card",
        "methods",
    ]  # fmt: skip


def test_a_page_is_written_whole(tmp_path, quick):
    path = Report.of(drawn(50)).save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_notebook_shows_the_page_in_a_frame(quick):
    shown = Report.of(drawn(50))._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert 'sandbox="allow-scripts"' in shown


def test_markdown_takes_names_as_text(quick):
    text = Report.of(drawn(50), name="a|b*c_d<e>").to_markdown()
    assert text.startswith("### Calibration of a|b\\*c\\_d\\<e\\>")
    assert "| metric | value |" in text


# the verdict


def said(predictions):
    return verdict(Subject(predictions, "m"))


def test_calibrated_forecasts_are_called_so():
    conclusion = said(drawn(4000))
    assert conclusion.tone == "good"
    assert conclusion.sentence.startswith("No miscalibration beyond noise (p = ")


@pytest.mark.parametrize(("power", "word"), [(1.5, "Forecasts are too high"), (0.6, "Forecasts are too low")])
def test_the_direction_is_named_with_its_size(power, word):
    predictions = drawn(4000, power=power)
    conclusion = said(predictions)
    assert conclusion.tone == "poor"
    size = 100 * abs(cal.MCS(predictions).value)
    assert conclusion.sentence.startswith(f"{word} by {size:.1f} points, more than noise (p < 0.002)")


def test_probabilities_of_the_other_class_are_suspected():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, 800)
    happened = (rng.random(800) < p).astype(int)
    suspicion = "Check that they are probabilities of the event, not of the other class."
    assert any(line.endswith(suspicion) for line in said(Predictions.from_probs(happened, 1 - p)).supporting)
    assert not any(line.endswith(suspicion) for line in said(Predictions.from_probs(happened, p)).supporting)


def test_rows_that_were_left_out_are_told_on_the_first_screen():
    y, p = np.arange(600) % 2, np.linspace(0.01, 0.99, 600)
    gaps = np.where(np.arange(600) % 60, p, np.nan)
    line = "10 rows were left out: missing values."
    dropped = Report.of(Predictions.from_probs(y, gaps, missing="drop"), name="gaps")
    assert line in dropped.sentences
    assert f"- {line}" in dropped.to_markdown().splitlines()
    assert not any("were left out" in sentence for sentence in Report.of(Predictions.from_probs(y, p)).sentences)


def test_ties_among_outcomes_are_said_to_be_left_out_and_the_mean_keeps_its_interval():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 600)
    happened = np.where(np.arange(600) < 5, 0.5, rng.random(600) < p - 0.08)
    subject = Subject(Predictions.from_probs(happened, p), "model")
    assert verdict(subject).action.endswith("--ignore-index 0.5 leaves ties out.")
    number = key_numbers(subject)[1]
    assert f"90% interval {100 * subject.whole.low:.1f} to {100 * subject.whole.high:.1f}" == number.between
    assert number.low < number.value < number.high
    assert number.between.removeprefix("90% interval ") in verdict(subject).sentence


def test_a_wrong_prediction_of_certainty_is_said_to_be_why_numbers_are_missing():
    p = np.array([0.0, 0.4, 1.0, 0.3, 0.6, 0.7] * 20)
    happened = np.array([1, 1, 1, 0, 1, 0] * 20)
    report = Report.of(Predictions.from_probs(happened, p))
    text = report.to_html()
    assert "Not defined: calibration slope and calibration intercept (a forecast of exactly 0 or 1 was wrong" in text
    number = report.page.key_numbers[-1]
    assert (number.shown, number.between) == ("infinite", "no interval of an infinite value")
    assert number.meaning.startswith("A prediction of exactly 0 or 1 was wrong.")


def test_a_column_of_dependent_rows_alone_makes_no_groups_and_is_all_that_is_said():
    predictions = dataclasses.replace(drawn(200), columns={"image": np.arange(200) // 10})
    section = groups_section(Subject(predictions, "m", groups="image"))
    assert section.paragraphs == ("Not looked at: image, whose rows may depend on each other.",)


@pytest.mark.parametrize(("power", "stable"), [(3.0, True), (1.0, False)])
def test_neighbouring_numbers_of_bins_are_compared_with_their_spread(power, stable):
    section = choices_section(Subject(drawn(1000, power=power), "m"))
    assert all(row[-1] == "yes" for row in section.figures[0].grid.rows[1:-1]) == stable
    assert ("settings differ by less than one standard deviation" in section.paragraphs[0]) == stable
    assert section.paragraphs[0].endswith("state the number of bins beside ECE.") == (not stable)


def test_mean_scores_on_the_page_have_the_intervals_of_the_command():
    rng = np.random.default_rng(4)
    weighted, patients = rng.uniform(0.5, 2, 300), rng.integers(0, 60, 300)
    p = rng.dirichlet(np.ones(3), 300)
    y = (p.cumsum(axis=1) < rng.random(300)[:, None]).sum(axis=1)
    predictions = Predictions.from_probs(y, p, sample_weight=weighted, patient=patients)
    for groups in (None, "patient"):
        for metric in (cal.LOG_LOSS, cal.BRIER, cal.ACCURACY):
            page = Subject(predictions, "m", groups=groups).score(metric).interval
            command = metric(predictions, interval=cal.Confidence(groups=groups)).interval
            assert (page.low, page.high) == pytest.approx((command.low, command.high), abs=1e-12)
    assert Subject(Predictions.from_probs([1] * 30, [0.9] * 30), "m").score(cal.BRIER).interval is None


def test_the_page_has_one_test_behind_its_verdict_and_its_recommendation():
    """With redraws of its own the choice could keep what the verdict calls miscalibrated, for a reason that is none."""
    subject = Subject(drawn(300, power=1.5), "m")
    assert subject.choice.test is subject.test


def test_a_gain_below_nothing_is_a_loss():
    choice = Subject(classes(600, sharp=3.0), "m").choice
    between = dataclasses.replace(choice.gain.interval, low=-0.03, high=-0.01)
    worse = dataclasses.replace(choice, gain=dataclasses.replace(choice.gain, value=-0.02, interval=between))
    assert "the log loss rises by 0.0200 (90% interval of the gain -0.0300 to -0.0100)" in gain(worse)[0]
    assert gain(worse)[0].endswith("on new data the log loss is likely to rise, so change nothing.")
    assert "Choosing so raises it by 0.0200 on rows left out of the choice" in worse.verdict


def test_a_gain_of_nothing_has_no_sign():
    choice = Subject(classes(600, sharp=3.0), "m").choice
    none = dataclasses.replace(choice.gain, value=-0.00001)
    assert "the log loss falls by 0.0000 (" in gain(dataclasses.replace(choice, gain=none))[0]


def test_the_error_of_several_labels_that_recalibration_lowers_is_said_to_be_their_mean():
    rng = np.random.default_rng(0)
    p = rng.random((400, 2))
    y = (rng.random((400, 2)) < p**2).astype(int)
    subject = Subject(Predictions.from_multilabel(y, p), "m")
    before = 100 * subject.choice.table[UNCHANGED]["ECE"].value
    assert f"ECE, the mean over labels, goes from {before:.1f} to" in recommendation(subject)
    assert "the mean over labels" not in recommendation(Subject(drawn(800, power=2.0), "m"))


def test_both_directions_are_named_where_the_mean_hides_them():
    rng = np.random.default_rng(0)
    truth = rng.random(4000)
    sharp = truth**3 / (truth**3 + (1 - truth) ** 3)
    predictions = Predictions.from_probs((rng.random(4000) < truth).astype(int), sharp)
    conclusion = said(predictions)
    bins = cal.ECE(predictions).bins
    gap, share = np.nan_to_num(bins.gap[0, :, 0]), bins.share[0]
    high, low = (100 * np.average(gap[side], weights=share[side]) for side in (gap > 0, gap < 0))
    assert conclusion.sentence.startswith(f"Miscalibrated both ways: too high by {high:.1f} points on average")
    assert (
        f"for {100 * share[gap > 0].sum():.1f}% of the predictions, and too low by {-low:.1f} points"
        in conclusion.sentence
    )


def shifted(n, slope=1.0, shift=0.0, centre=0.0, seed=0):
    """An event whose log-odds are `slope` times those of the forecast, and `shift` more."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n) + centre
    chance = 1 / (1 + np.exp(-slope * z - shift))
    return Predictions.from_probs((rng.random(n) < chance).astype(int), 1 / (1 + np.exp(-z)))


def test_words_and_p_value_of_the_verdict_are_those_of_the_calibration_test(quick):
    for seed in range(8):
        predictions = shifted(500, slope=0.75, seed=seed)
        test, conclusion = cal.calibration_test(predictions, 999), said(predictions)
        assert f"({p_value(test.p_value, 999)})" in conclusion.sentence
        assert ("more than noise" in conclusion.sentence) == (test.p_value <= 0.05)


def test_a_slope_that_ece_does_not_see_is_found(quick):
    # 40 data sets; with a power of 0.3 fewer than 4 have a chance of 1 in 1000
    sentences = [said(shifted(500, slope=0.85, seed=seed)).sentence for seed in range(40)]
    assert sum("more than noise" in sentence for sentence in sentences) >= 4
    assert any("Forecasts are too extreme: their calibration slope is 0." in sentence for sentence in sentences)


def test_a_shift_is_called_one_and_its_repair_removes_it():
    predictions = shifted(3000, shift=-0.8, centre=-1.5)
    subject = Subject(predictions, "m")
    conclusion = verdict(subject)
    size, shift = 100 * cal.MCS(predictions).value, -cal.INTERCEPT(predictions).value
    expected = f"Forecasts are too high by {size:.1f} points on average, by a shift of the log-odds of {shift:.2f}"
    assert conclusion.sentence.startswith(f"{expected}, more than noise (p ")
    repair = in_words(subject.choice.best)
    before, after = re.search(
        rf"Recalibrate by {repair}: .* ECE goes from (\S+) to (\S+) points", conclusion.action
    ).groups()
    assert float(after) < float(before) / 2
    assert subject.choice.best != "temperature"
    assert "temperature" not in " ".join([conclusion.sentence, *conclusion.supporting]).lower()
    assert "shift" not in said(shifted(3000, slope=0.5, shift=-0.8)).sentence


def test_an_event_that_several_statistics_doubt_a_little_has_no_classes_that_hide_it(quick):
    predictions = shifted(2000, shift=-0.25, centre=0.5, seed=1)
    test = cal.calibration_test(predictions, 999)
    assert test.p_value <= 0.05 < 5 * min(test.p_values.values())
    sentence = said(predictions).sentence
    assert sentence.startswith("Forecasts are too high by 2.")
    assert "class" not in sentence


def test_a_shift_of_an_event_is_tried_before_a_temperature_as_in_choose():
    predictions = shifted(2000, shift=-0.25, centre=0.5, seed=1)
    tried = Subject(predictions, "m").choice
    known = usual(predictions)
    alone = {name: known[name] for name in known if name in tried.table.results}
    assert tried.best == cal.recalibrate.choose(predictions, alone, seed=0).best == "prior_shift"


def test_no_repair_is_named_where_nothing_is_found_or_the_model_is_kept(quick, monkeypatch):
    fine = said(drawn(4000))
    assert fine.action.startswith("Keep the probabilities: the calibration test does not reject them (p = ")
    monkeypatch.setattr(Choice, "best", UNCHANGED)
    kept = said(drawn(2000, power=2.0))
    assert "more than noise" in kept.sentence
    assert kept.action.startswith("Keep the probabilities: no method clearly lowers the log loss")
    assert "ecalibrat" not in " ".join([fine.sentence, *fine.supporting, *kept.supporting])


def test_a_handful_of_rows_is_never_said_to_be_off_both_ways():
    rng = np.random.default_rng(1)
    conclusion = said(Predictions.from_probs([1, 0, 1, 1, 0, 0], rng.random(6)))
    assert "both ways" not in conclusion.sentence


def test_small_errors_are_called_small_even_when_they_are_sure():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    conclusion = said(Predictions.from_probs((rng.random(len(p)) < np.clip(p - 0.008, 0, 1)).astype(int), p))
    assert conclusion.sentence.startswith("Nearly calibrated: ECE is 0.9 points, small but more than noise (p < 0.005)")
    assert conclusion.tone == "unsure"


def test_an_error_is_small_beside_how_rare_the_event_is(quick):
    rare = said(shifted(8000, shift=-0.6, centre=-5.0))
    assert rare.sentence.startswith("Forecasts are too high by 0.9 points on average, by a shift of the log-odds")
    assert (rare.tone, "more than noise" in rare.sentence) == ("poor", True)


def test_answers_of_no_known_class_are_not_called_classes():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 300)
    answers = Predictions.from_confidence(rng.random(300) < confidence, confidence)
    text = Report.of(answers).to_html()
    assert "How often the answer is right." in text
    assert "Here the answer is wrong in " in text
    assert "likeliest class" not in re.sub("<[^>]*>", " ", text)


def test_few_rows_are_no_acquittal():
    conclusion = said(drawn(30))
    assert conclusion.sentence.startswith("Too few rows to tell")
    assert conclusion.action.startswith("Collect more labelled rows")
    assert conclusion.tone == "unsure"
    perfect = said(Predictions.from_probs([1, 0], [1.0, 0.0]))
    assert perfect.sentence.startswith("Too few rows to tell (p = 1): ECE is 0.0 points")


def test_soft_labels_have_a_direction_only_where_its_interval_leaves_out_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    over = said(Predictions.from_probs(p**2, p))
    assert re.match(
        r"Forecasts are too high by 1\d\.\d points in the mean \(90% interval .* cannot be told from soft labels\.",
        over.sentence,
    )
    even = said(
        Predictions.from_probs(
            np.clip(p + rng.normal(size=1000) / 10, 0, 1), np.clip(p + rng.normal(size=1000) / 10, 0, 1)
        )
    )
    assert "neither clearly too high nor too low" in even.sentence
    assert (over.tone, even.tone) == ("unsure", "unsure")


def test_the_chosen_repair_is_named_with_what_it_does():
    predictions = classes(3000, sharp=2.0)
    subject = Subject(predictions, "m")
    best = subject.choice.best
    before, after = (100 * subject.choice.table[name]["ECE"].value for name in (UNCHANGED, best))
    assert after < before / 2
    expected = f"Recalibrate by {in_words(best)}: on rows left out of the fit, ECE goes from {before:.1f} to "
    assert verdict(subject).action.startswith(f"{expected}{after:.1f} points")


def test_the_action_says_where_methods_were_tried_on_a_sample(monkeypatch):
    monkeypatch.setattr(Subject, "repaired_rows", property(lambda self: self._some(2500, stage=1)))
    assert ": on 2,500 sampled rows left out of the fit, ECE" in recommendation(Subject(classes(3000, sharp=2.0), "m"))


def test_one_action_is_recommended_and_the_section_on_recalibration_says_the_same():
    for predictions in (classes(3000, sharp=2.0), classes(3000), drawn(19), drawn(2000, power=1.5)):
        subject = Subject(predictions, "m")
        report = Report.of(predictions)
        assert recommendation(subject) == repair_section(subject).paragraphs[0]
        assert report.verdict.action in (recommendation(subject), "Collect more labelled rows; until then, keep the "
                                      "probabilities.")  # fmt: skip
        words = " ".join(text for section in report.page.sections for text in section.paragraphs)
        assert words.count("Recalibrate by") == report.verdict.action.count("Recalibrate by") == subject.is_changed


def test_the_first_screen_has_three_numbers_with_intervals_and_says_whether_limits_hold():
    predictions = classes(2000, sharp=2.0)
    ece = cal.ECE(predictions).value
    limits = {cal.ECE: ece * 1.01, cal.MCE: 0.001}
    page = Report.of(predictions, limits=limits, title="A title", about=["A. Name", ""]).page
    assert [check.status for check in page.checks] == ["pass", "fail"]
    assert (page.title, list(page.about)) == ("A title", ["A. Name"])
    assert [number.name for number in page.key_numbers] == ["ECE", "Confidence − accuracy", "Accuracy"]
    assert [number.value for number in page.key_numbers] == [
        ece, cal.MCS(predictions).value, cal.ACCURACY(predictions).value,
    ]  # fmt: skip
    assert all(number.low <= number.value <= number.high for number in page.key_numbers)
    event = Report.of(drawn(500, power=2.0)).page.key_numbers
    assert event[2].name == "Calibration slope"
    assert event[2].value == cal.SLOPE(drawn(500, power=2.0)).value
    confident = Report.of(predictions, limits={cal.ECE: 1e-6, cal.MCE: 0.1}, confident=True).page.checks
    assert [check.status for check in confident] == ["fail", "cannot tell"]  # MCE has no interval


def test_the_plainest_statement_is_true():
    predictions = classes(2000, sharp=2.0)
    conclusion = said(predictions)
    confidence, accuracy = predictions.confidence.mean(), cal.ACCURACY(predictions).value
    assert (
        conclusion.supporting[0]
        == f"On average it is {100 * confidence:.1f}% sure, and right {100 * accuracy:.1f}% of the time."
    )
    event = said(drawn(2000))
    assert event.supporting[0].startswith("On average 49.9% is forecast, and it happens in 50.4% of the cases.")


# honesty


def test_no_p_value_on_the_page_is_smaller_than_its_redraws_can_tell(fewer):
    predictions = classes(500, sharp=3.0, side=np.arange(500) % 2)
    report = Report.of(predictions)
    subject = Subject(predictions, "m")
    rows = {row[0]: row for row in report._family.rows}
    column = report._family.header.index("p, corrected")
    cells = [row[column] for row in rows.values() if not math.isnan(row[column].value)]
    floor = 1 / (min(subject.resamples, subject.class_resamples, subject.smooth_resamples) + 1)
    assert all(cell.text.startswith("<") == (cell.value <= floor + 1e-12) for cell in cells)
    assert len({cell.text for cell in cells if cell.text.startswith("<")}) == 1
    every = re.findall(r"p &lt; (\d\.\d+)", report.to_html())
    assert every
    assert min(map(float, every)) >= 1 / 1000  # the verdict's test has 999 redraws, the others 40


def test_the_p_value_of_the_mean_gap_is_computed_and_no_seed_changes_it():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.2, 0.8, 1500)
    predictions = Predictions.from_probs((rng.random(1500) < p - 0.03).astype(int), p)
    gap, sd = np.sum(p - predictions.labels), np.sqrt(np.sum(p * (1 - p)))
    expected = math.erfc(abs(gap) / sd / math.sqrt(2))
    for seed in range(3):
        assert Subject(predictions, "m", seed).mcs.details["null_p_value"] == pytest.approx(expected, rel=1e-9)
    assert len({verdict(Subject(predictions, "m", seed)).sentence[:20] for seed in range(3)}) == 1


def test_one_row_has_no_interval(quick):
    subject = Subject(Predictions.from_probs([1], [0.593]), "m")
    assert subject.ece.interval is None
    assert "no interval of fewer than 2 rows" in subject.ece.notes
    assert "90% interval" not in " ".join(verdict(subject).supporting)


def test_files_of_other_rows_are_said_to_be_and_equal_ones_show_no_difference(quick):
    first, other = Subject(drawn(300), "a"), Subject(drawn(300, seed=1), "b")
    assert "do not hold the same rows" in pairs_of([first, other]).remark
    answers = [Subject(Predictions.from_confidence(hits, [0.9, 0.8, 0.7]), name)
               for name, hits in (("a", [1, 0, 1]), ("b", [0, 1, 1]))]  # fmt: skip
    assert "it is not known whether" in pairs_of(answers).remark  # of the same questions, others may be right
    equal = Report.of({"a": drawn(300), "c": drawn(300)})
    assert equal.verdict.sentence.startswith("No clear difference in ECE between a and c: 0.0 points")
    assert equal.verdict.action.startswith("Choose between a and c on other grounds")


def test_no_interval_leaves_out_its_value(fewer):
    for predictions in (classes(300, 5), drawn(200), drawn(200, power=1.5)):
        rows = family_section(Subject(predictions, "m")).grids[0].rows
        held = [row for row in rows if math.isfinite(row[4])]
        assert all(row[4] <= row[1] <= row[5] for row in held)
        assert len(held) > len(rows) / 2


@pytest.mark.parametrize("sharp", [1.0, 3.0])
def test_p_values_of_the_family_are_no_smaller_than_those_of_the_calibration_test(fewer, sharp):
    subject = Subject(classes(300, sharp=sharp), "m")
    section, members = family_section(subject).grids[0], subject.test.p_values
    p = {row[0]: row[section.header.index("p, corrected")].value for row in section.rows}
    main = min(1.0, 5 * min(members[name] for name in members if name != "class totals"))
    for name, metric, gate in (("ECE", cal.ECE, main), ("SCE", cal.SCE, 0.0)):
        own = subject.measured(metric, about_event=name == "ECE").details["null_p_value"]
        assert p[name] == max(own, subject.test.p_value, gate)
    assert (p["ECE"] <= 0.05) == (sharp > 1)


def test_numbers_without_interval_are_named_once_with_the_reason(fewer):
    section = family_section(Subject(drawn(200), "m"))
    assert [row[0] for row in section.grids[0].rows if math.isnan(row[4])] == ["smooth ECE", "MCE", "largest drift"]
    (reason,) = (text for text in section.paragraphs if "no interval" in text)
    assert reason.startswith("Without an interval: smooth ECE, MCE and largest drift (no interval is known to cover")
    rng = np.random.default_rng(0)
    p = rng.random(50)
    soft = family_section(Subject(Predictions.from_probs(p**2, p), "m")).paragraphs
    assert sum("no interval is known to cover under soft labels" in text for text in soft) == 1


def test_no_interval_of_the_recalibration_table_leaves_out_its_value():
    for predictions in (classes(300, 4), drawn(200, power=1.5)):
        (grid,) = repair_section(Subject(predictions, "m")).grids
        ends = [row[at : at + 3] for row in grid.rows for at in range(1, len(row), 3)]
        assert len(ends) == len(grid.rows) * (4 if predictions.n_classes else 3)
        assert all(low <= value <= high for value, low, high in ends)


def test_an_interval_that_ends_at_its_value_is_explained_beside_it():
    section = repair_section(Subject(classes(600, sharp=3.0), "m"))
    names = section.grids[0].header[1::3]
    ending = {f"{name} ({row[0]})" for row in section.grids[0].rows
              for name, value, low, high in zip(names, row[1::3], row[2::3], row[3::3], strict=True)
              if high == value > low}  # fmt: skip
    assert ending
    (sentence,) = (text for text in section.paragraphs if "ends at the value itself" in text)
    assert all(name in sentence for name in ending)
    far = family_section(Subject(classes(600, sharp=3.0), "m"))
    assert not any("ends at the value itself" in text for text in far.paragraphs)


def test_no_interval_of_an_error_goes_beyond_one(fewer):
    rng = np.random.default_rng(0)
    predictions = Predictions.from_probs(rng.integers(0, 7, 19), np.eye(7)[rng.integers(0, 7, 19)])
    rows = family_section(Subject(predictions, "m")).grids[0].rows
    assert all(row[5] <= 1 for row in rows if math.isfinite(row[5]))


def test_the_family_is_what_the_recipes_give(quick):
    predictions = classes(400, 6)
    rows = {row[0]: row for row in family_section(Subject(predictions, "m")).grids[0].rows}
    for name, metric in {"ECE": cal.ECE, "ECE, sweep": cal.ECE_SWEEP, "MCE": cal.MCE, "SCE": cal.SCE, "TACE": cal.TACE,
                         "wsECE": cal.WSECE, "full ECE": cal.FULL_ECE, "top-5 ECE": cal.TOP5_ECE, "MCS": cal.MCS,
                         "ECE, debiased": cal.ECE_DEBIASED, "smooth ECE": cal.SMECE, "ACE": cal.ACE,
                         "ECE, equal mass": cal.ADAPTIVE_ECE, "largest drift": cal.ECCE_MAD}.items():  # fmt: skip
        assert rows[name][1] == pytest.approx(metric(predictions).value, abs=1e-12), name
        assert rows[name][6] == 400


def test_every_number_has_its_definition(quick):
    section = family_section(Subject(classes(100, 6), "m"))
    table, definitions = section.grids
    assert [row[0] for row in table.rows] == [row[0] for row in definitions.rows]
    assert definitions.folded
    assert definitions.rows[0][2] == repr(cal.ECE)


def test_metrics_that_are_not_defined_are_named(quick):
    section = family_section(Subject(classes(60, 3, sample_weight=np.full(60, 0.5)), "m"))
    missing = next(text for text in section.paragraphs if text.startswith("Not defined"))
    for name in ("ECE, equal mass", "ECE, sweep", "ECE, debiased", "ACE", "top-5 ECE"):
        assert name in missing


def test_weights_widen_the_bars_and_are_said():
    predictions = drawn(300, sample_weight=np.where(np.arange(300) % 10, 1, 30))
    subject = Subject(predictions, "m")
    bars = bars_of(subject.ece, subject.event)
    assert all(bar.effective <= bar.count for bar in bars)
    assert sum(bar.effective for bar in bars) < 0.3 * sum(bar.count for bar in bars)
    assert "Samples are weighted" in reliability_figure(subject).reading
    assert "Samples are weighted" not in reliability_figure(Subject(drawn(300), "m")).reading


def test_soft_labels_are_said():
    subject = Subject(Predictions.from_probs(np.random.default_rng(0).random(60), np.linspace(0, 1, 60)), "m")
    assert "Labels are soft" in reliability_figure(subject).reading
    assert "there is no noise floor" in noise_section(subject).paragraphs[0]
    assert failures_section(subject) is None
    family = family_section(subject)
    assert "redraws" not in family.paragraphs[0]
    assert any("there are no noise floors" in text for text in family.paragraphs)
    names = {row[0]: row[1] for grid in scores_section(subject).grids for row in grid.rows}
    p, truth = np.linspace(0, 1, 60), subject.event.truth_rows
    assert names["Brier score"] == pytest.approx(np.mean((p - truth) ** 2), rel=0, abs=1e-12)
    drawn_brier = np.mean(truth * (1 - p) ** 2 + (1 - truth) * p**2)
    assert names["expected Brier score"] == pytest.approx(drawn_brier, rel=0, abs=1e-12)


def test_only_an_answer_is_called_confident():
    event, answer = Subject(drawn(400), "m"), Subject(classes(400), "m")
    assert "too high" in str(reliability_figure(event).picture)
    assert "confident" not in str(reliability_figure(event).picture)
    assert "over-confident" in str(reliability_figure(answer).picture)


def test_noise_is_described_as_it_was_drawn():
    subject = Subject(drawn(1500), "m")
    (text,) = noise_section(subject).paragraphs
    null = cal.consistency(cal.ECE, subject.event, n=subject.resamples, seed=0)
    assert f"{null.mean:.4f} on average" in text
    assert f"at most {null.quantile(0.95):.4f}" in text
    assert ("above" if null.excess > 0 else "below") in text
    assert f"from {subject.resamples} redraws" in text


# sections


def test_the_card_counts_and_hashes():
    predictions = classes(500, 3, region=np.arange(500) % 2)
    rows = dict(card_section(Subject(predictions, "m")).grids[0].rows)
    assert rows["rows (n)"] == "500"
    assert rows["predictions of"] == "3 classes"
    assert rows["given as"] == "logits, float64"
    assert rows["columns"] == "region"
    assert len(rows["SHA-256 of predictions, labels, weights"]) == 64


def test_the_hash_changes_with_any_number():
    predictions = drawn(50)
    changed = dataclasses.replace(predictions, labels=1 - predictions.labels)
    weighted = dataclasses.replace(predictions, weight=np.ones(50))
    assert len({Subject(variant, "m").digest for variant in (predictions, predictions[:49], changed, weighted)}) == 4
    assert Subject(predictions, "a").digest == Subject(drawn(50), "b").digest


def test_prevalences_are_said_once_where_they_are_equal():
    even = Predictions.from_probs([0, 1, 2], np.full((3, 3), 1 / 3))
    assert ("prevalence of the classes", "33.3% each") in card_section(Subject(even, "m")).grids[0].rows
    rare = Predictions.from_probs([0, 0, 1], np.full((3, 3), 1 / 3), classes=["a", "b", "c"])
    rows = dict(card_section(Subject(rare, "m")).grids[0].rows)
    assert rows["prevalence of the classes"] == "0% (c) to 66.7% (a); 1 class is never true"


def test_classes_are_judged_by_what_was_predicted():
    predictions = classes(2000, 3, sharp=3.0)
    section = classes_section(Subject(predictions, "m"))
    rows = {row[0]: row for row in section.figures[0].grid.rows}
    for index, name in enumerate(predictions.classes):
        mine = predictions.predicted == index
        confidence, right = predictions.confidence[mine], (predictions.labels == index)[mine]
        assert rows[name][6] == mine.sum()
        assert rows[name][1] == pytest.approx(confidence.mean() - right.mean(), abs=1e-12)
        truly = predictions.labels == index
        gap = predictions.confidence[truly].mean() - (predictions.predicted == index)[truly].mean()
        assert rows[name][9:] == (truly.sum(), pytest.approx(truly.mean()), pytest.approx(gap))
    assert "Of 3 classes 3 are over-confident and 0 under-confident" in section.paragraphs[0]


def test_rare_classes_are_not_judged():
    section = classes_section(Subject(classes(30, 5), "m"))
    assert "No class is predicted 20 times" in section.paragraphs[0]
    assert not section.figures
    (grid,) = section.grids
    assert all(math.isnan(row[2].value) for row in grid.rows)
    assert not grid.listed  # what was not tested tells nothing
    assert section.paragraphs[1].startswith(f"None of {len(grid.rows)} is listed. For all, write the tables as JSON")


def test_classes_that_are_not_listed_are_in_the_json_and_not_on_the_page():
    report = Report.of(classes(30, 5), seed=0)
    (section,) = [part for part in report.to_dict()["sections"] if part["id"] == "classes"]
    assert len(section["tables"][0]["rows"]) == 5
    assert "Classes as predicted" not in report.to_html()


def test_of_a_thousand_classes_the_ends_are_drawn_and_the_clearest_listed():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(25_000, 1000)).astype(np.float32)
    section = classes_section(Subject(Predictions.from_logits(rng.integers(0, 1000, 25_000), z), "m"))
    grid = section.figures[0].grid
    assert "The 8 farthest at each end" in section.figures[0].caption
    assert len(grid.listed) == 60
    p_values = [row[2].value for row in grid.rows]
    tested = [p for p in p_values if not math.isnan(p)]
    assert tested == sorted(tested)
    assert p_values[: len(tested)] == tested  # what is too rare to be tested comes last
    assert 60 < len(tested) < len(grid.rows)
    assert grid.caption == f"Classes as predicted (the 60 clearest of {len(grid.rows):,})"
    assert f"The table lists 60 of {len(grid.rows):,}." in section.paragraphs[1]


def test_top_k_keeps_what_it_promises_or_not():
    predictions = classes(800, 6)
    rows = ranks_section(Subject(predictions, "m")).figures[0].grid.rows
    ordered = np.sort(predictions.probabilities, axis=1)[:, ::-1]
    kept = cal.diagnostics.top_k_accuracies(predictions, 5)
    for k, promised, right, low, high, gap, error in rows:
        assert promised == pytest.approx(ordered[:, :k].sum(axis=1).mean(), abs=1e-12)
        assert right == pytest.approx(kept[k - 1], abs=1e-12)
        assert low <= right <= high
        assert gap == pytest.approx(promised - right)
        assert error == cal.BinnedError(lens=cal.InTopK(k))(predictions).value
    assert ranks_section(Subject(classes(50, 2), "m")) is None
    assert ranks_section(Subject(drawn(50), "m")) is None


def test_scores_have_intervals_corrected_for_skewness():
    predictions = classes(700)
    rows = {row[0]: row for row in scores_section(Subject(predictions, "m")).grids[0].rows}
    losses = -np.log(predictions.probabilities[np.arange(700), predictions.labels])
    ends = skewed(losses.mean(), (losses - losses.mean()) / 700, 0.9)
    assert rows["log loss"][1:4] == pytest.approx((losses.mean(), *ends), abs=1e-9)
    assert rows["accuracy"][1] == cal.ACCURACY(predictions).value


def test_weighted_scores_scatter_by_their_squared_weights():
    weight = np.where(np.arange(500) % 5, 1.0, 8.5)
    predictions = drawn(500, sample_weight=weight)
    rows = {row[0]: row for row in scores_section(Subject(predictions, "m")).grids[0].rows}
    scores = (predictions.values - predictions.labels) ** 2
    mean = np.average(scores, weights=weight)
    freedom = (weight**2).sum() ** 2 / (weight**4).sum() - 1
    ends = skewed(mean, weight * (scores - mean) / weight.sum(), 0.9, most=freedom)
    assert rows["Brier score"][1:4] == pytest.approx((mean, *ends), abs=1e-9)


def test_scores_are_made_of_their_parts():
    section = scores_section(Subject(drawn(500), "m"))
    for _, score, miscalibration, discrimination, uncertainty in section.grids[1].rows:
        assert score == pytest.approx(miscalibration - discrimination + uncertainty)
    assert section.grids[1].rows[0][1] == pytest.approx(cal.BRIER(drawn(500)).value)


def test_an_infinite_loss_is_explained():
    predictions = Predictions.from_probs([1, 0, 1], [0.0, 0.0, 1.0])
    section = scores_section(Subject(predictions, "m"))
    assert any("infinite" in text for text in section.paragraphs)
    assert PageTable.exact(section.grids[0].rows[0][1]) == "inf"


def test_recalibration_is_judged_on_rows_it_did_not_see():
    subject = Subject(classes(600, sharp=3.0), "m")
    section = repair_section(subject)
    best = subject.choice.best
    before, after = (subject.choice.table[name]["log loss"].value for name in ("unchanged", best))
    assert f"from {before:.4f} to {after:.4f}" in section.paragraphs[0]
    assert re.match(
        r"On rows left out of the choice, the log loss falls by \d\.\d{4} \(90% interval ", section.paragraphs[1]
    )
    words = ["unchanged" if name == UNCHANGED else name.replace("_", " ") for name in subject.choice.ranking]
    assert [row[0] for row in section.grids[0].rows] == words
    assert {row[0] for row in section.figures[0].grid.rows} == {"unchanged", in_words(best)}


def test_forecasts_that_need_no_help_are_left_alone(monkeypatch):
    subject = Subject(drawn(2000), "m")
    assert recommendation(subject).startswith("Keep the probabilities: the calibration test does not reject them (p = ")
    rejected = dataclasses.replace(subject.test, p_value=0.01)
    monkeypatch.setattr(Subject, "test", rejected)
    alone = dataclasses.replace(subject.choice, test=rejected, preferred="unchanged")
    monkeypatch.setattr(Subject, "choice", alone)
    assert recommendation(Subject(drawn(2000), "m")).startswith(
        "Keep the probabilities: no method clearly lowers the log loss"
    )


def test_too_few_rows_get_no_recalibration():
    assert "20 rows with more than one outcome" in repair_section(Subject(drawn(19), "m")).paragraphs[0]
    assert Subject(drawn(20), "m").choice is not None


def test_saturated_forecasts_have_an_infinite_loss_that_recalibration_mends():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    subject = Subject(Predictions.from_probs(y, np.where(rng.random(200) < 0.1, 1 - y, y).astype(float)), "m")
    paragraphs = repair_section(subject).paragraphs
    assert (
        "the log loss goes from infinite to 0." in paragraphs[0] or "the log loss from infinite to 0." in paragraphs[0]
    )
    assert any(
        re.match(r"Unchanged: the log loss is infinite, because the outcome of \d+ rows", text) for text in paragraphs
    )


def test_sensitivity_is_that_of_the_rows():
    subject = Subject(drawn(500), "m")
    rows = choices_section(subject).figures[0].grid.rows
    for bins, value, *_ in rows:
        assert value == cal.BinnedError(binning=cal.EqualWidth(bins))(subject.event).value


def test_methods_print_the_command_the_versions_and_the_resamples():
    subject = Subject(classes(100), "m")
    section = methods_section(subject, "calibrant report 'a b.npz'")
    rows = dict(section.grids[0].rows)
    assert rows["command"] == "calibrant report 'a b.npz'"
    assert rows["calibrant"] == cal.__version__
    assert (
        rows["resamples and redraws"]
        == f"{subject.resamples} (one event), {subject.class_resamples} (all classes, 100 rows)"
    )
    assert len(section.references) >= 10


# several models


def test_models_of_the_same_rows_are_compared_pair_by_pair():
    models = [Subject(classes(400, sharp=sharp), f"sharp {sharp}") for sharp in (1.0, 3.0)]
    pairs = pairs_of(models)
    table, (grid,) = models_table(models, pairs), pairs_section(pairs).grids
    assert table.header[:5] == ("model", "ECE", "log loss", "accuracy", "Brier score")
    assert [row[0] for row in table.rows] == ["sharp 1.0", "sharp 3.0"]
    assert table.rows[1][1].value == cal.ECE(models[1].predictions).value
    ece, loss, accuracy, brier = grid.rows
    assert ece[:2] == ("sharp 1.0 less sharp 3.0", "ECE")
    assert ece[2] == pytest.approx(table.rows[0][1].value - table.rows[1][1].value)
    assert loss[2] == pytest.approx(table.rows[0][2].value - table.rows[1][2].value, abs=1e-12)
    assert ece[-1] == loss[-1] == brier[-1] == "sharp 1.0 is better"
    assert (accuracy[2], accuracy[-1]) == (0.0, "no clear difference")
    marks = [[cell.text.split(" ")[1:] for cell in row[1:5]] for row in table.rows]
    assert marks == [[["best"]] * 4, [["worse"], ["worse"], ["best"], ["worse"]]]


def test_the_page_of_several_models_is_about_their_difference():
    models = {f"sharp {sharp}": classes(400, sharp=sharp) for sharp in (3.0, 1.0)}
    report = Report.of(models)
    difference = cal.compare_all(cal.ECE, models, 200)["sharp 3.0", "sharp 1.0"]
    words = f"its ECE is lower by {100 * difference.difference:.1f} points (90% interval "
    assert report.page.title == "Comparison of sharp 3.0 and sharp 1.0"
    assert report.verdict.sentence.startswith(f"sharp 1.0 is better calibrated than sharp 3.0: {words}")
    assert f"{100 * difference.interval.low:.1f} to {100 * difference.interval.high:.1f}" in report.verdict.sentence
    assert report.verdict.action == "Use sharp 1.0: its log loss is clearly lower."
    assert Report.of(dict(reversed(models.items()))).verdict.sentence == report.verdict.sentence
    assert [number.name[:3] for number in report.page.key_numbers] == ["ECE", "Log", "Acc"]
    assert [row["model"] for row in report.numbers] == list(models)


def test_a_headline_about_several_models_names_those_that_cannot_be_told_apart():
    models = {"a": classes(400), "b": classes(400), "c": classes(400, sharp=3.0)}
    report = Report.of(models)
    assert report.page.title == "Comparison of 3 models"
    assert report.verdict.sentence == "No clear difference in ECE between a and b; 1 of 3 models is clearly higher."
    assert report.verdict.action.startswith("Choose between a and b on other grounds")
    clear = Report.of({"a": classes(400, sharp=2.0), "b": classes(400), "c": classes(400, sharp=4.0)})
    assert clear.verdict.sentence.startswith("b has the lowest ECE of 3 models; the next, a, is higher by ")


def test_models_of_other_rows_are_not_compared(quick):
    for other in (classes(100, seed=1), classes(90)):
        report = Report.of({"a": classes(100), "b": other})
        assert report.verdict.sentence.startswith("These files do not hold the same rows and labels")
        assert report.verdict.action == "Compare models on the same rows."
        assert report.page.key_numbers == []
        assert "best" not in str(report.page.answer.grids[0].rows)


def test_an_event_and_classes_stand_side_by_side(quick):
    report = Report.of(
        {"event": drawn(50), "classes": classes(50), "confidence": Predictions.from_confidence([1, 0], [0.6, 0.7])}
    )
    assert "Models side by side" in report.to_html()


# how much is computed


def test_resamples_shrink_as_the_data_grow_and_are_printed(monkeypatch):
    counts = []
    for n in (100, 10_000, 15_000, 100_000):
        counts.append(Subject(drawn(n), "m").resamples)
    assert counts == [200, 200, 133, 100]
    monkeypatch.setattr("calibrant.report.subject.MOST", 4)
    monkeypatch.setattr("calibrant.report.subject.LEAST", 2)
    assert "from 4 redraws of the labels" in family_section(Subject(drawn(30), "m")).paragraphs[0]
    weighted = Subject(drawn(100_000, sample_weight=np.full(100_000, 0.5)), "m")
    assert weighted.resamples == 4


def test_questions_about_many_classes_are_asked_of_some_rows_and_that_is_said(quick, monkeypatch):
    monkeypatch.setattr("calibrant.report.subject._CLASSES", 1000)
    subject = Subject(classes(2000, 5), "m")
    assert len(subject.class_rows) == 1000
    section = family_section(subject)
    assert any("measured on 1,000 rows drawn at random" in text for text in section.paragraphs)
    rows = {row[0]: row[6] for row in section.grids[0].rows}
    assert (rows["ECE"], rows["SCE"]) == (2000, 1000)


def test_a_large_event_is_measured_on_all_its_rows(monkeypatch):
    monkeypatch.setattr("calibrant.report.subject.MANY", 20)
    predictions = drawn(25_000, power=1.1)
    subject = Subject(predictions, "m")
    assert subject.is_large
    for metric in (cal.ECE, cal.MCE, cal.MCS, cal.ADAPTIVE_ECE, cal.ECE_DEBIASED):
        result = subject.measured(metric, about_event=True)
        assert result.value == pytest.approx(metric(predictions).value, abs=1e-12)
        assert result.n == 25_000
        assert result.interval is None or result.interval.low <= result.value <= result.interval.high
        assert (result.interval is None) == (metric == cal.MCE)
        assert result.details.get("redraws") == (None if metric == cal.MCS else 20)
    assert len(subject.null.values) == 20
    report = Report.of(predictions)
    assert any("in groups" in text for text in report.page.sections[0].paragraphs)
    rows = choices_section(subject).figures[0].grid.rows
    assert rows[2][1] == pytest.approx(cal.ECE(predictions).value, abs=1e-12)


def test_a_large_report_of_weighted_rows_takes_the_other_way(quick):
    predictions = drawn(25_000, sample_weight=np.full(25_000, 2))
    subject = Subject(predictions, "m")
    assert not subject.is_large
    assert subject.ece.value == cal.ECE(predictions).value


def test_no_warning_leaves_the_report(quick):
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Report.of(Predictions.from_logits(rng.integers(0, 4, 300), rng.normal(size=(300, 4)) * 100))


@pytest.mark.skipif(not BESIDE.is_dir(), reason="the folder with other people's predictions is not here")
@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("netcal_cifar_probs/lenet-5-cifar-10.npz", "Over-confident"),
        ("efficientnet_lite_imagenet/efficientnet_lite0_nips17dev.npz", "Under-confident"),
    ],
)
def test_real_predictions_get_the_verdict_they_deserve(file, word, fewer):
    predictions = io.read(BESIDE / file)[:1000]
    size = 100 * abs(cal.MCS(predictions).value)
    assert said(predictions).sentence.startswith(f"{word} by {size:.1f} points, more than noise (p < 0.002)")


def test_the_shipped_predictions_make_a_small_page():
    report = Report.of(io.read(io.SHIPPED / "fashion_mnist_test.npz"), name="fashion_mnist_test.npz")
    assert report.verdict.sentence.startswith("Over-confident by 5.2 points, more than noise (p < 0.002)")
    text = report.to_html()
    assert len(text) < 300_000
    labels = io.read(io.SHIPPED / "fashion_mnist_test.npz")
    assert f"{labels.values[17, 3]:.9g}" not in text
