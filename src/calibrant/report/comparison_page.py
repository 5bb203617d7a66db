"""The comparison page: which of several models is better calibrated, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.inference.comparison import Comparison
from calibrant.report.charts import planes
from calibrant.report.page import Page, PageTable, Section, Verdict
from calibrant.report.quoting import KeyNumber, listed, points
from calibrant.report.sections.data_and_methods import methods_section
from calibrant.report.sections.models import (
    Pairs,
    best_of,
    models_figure,
    models_table,
    pairs_of,
    pairs_section,
    value_of,
)
from calibrant.report.subject import Subject
from calibrant.text import inert, p_value

SHORT = 40
"""Letters of a model's name in a sentence."""
ONE_BY_ONE = "For the page of one model, with its recalibration, write a report of its file alone."


def comparison_page(subjects: Sequence[Subject], command: str) -> Page:
    """The page of several models."""
    pairs = pairs_of(subjects)
    leader, second = _leaders(subjects)
    names = [inert(subject.name, SHORT) for subject in subjects]
    return Page(
        title=f"Comparison of {listed(names, length=SHORT) if len(names) == 2 else f'{len(names)} models'}",
        verdict=_verdict(subjects, pairs, leader, second),
        answer=Section(
            "models", "Models side by side", (), (models_figure(subjects),), (models_table(subjects, pairs),)
        ),
        key_numbers=_differences(pairs, leader, second),
        sections=[pairs_section(pairs), _card(subjects), methods_section(subjects[0], command)],
        data={"planes": planes()},
    )


def _leaders(subjects: Sequence[Subject]) -> tuple[str, str]:
    """The models with the lowest and the second lowest ECE."""
    ordered = sorted(subjects, key=lambda subject: subject.ece.value)
    return ordered[0].name, ordered[1].name


def _verdict(subjects: Sequence[Subject], pairs: Pairs, leader: str, second: str) -> Verdict:
    """Who is better calibrated, by the rule of `compare`; which model to use, by its log loss."""
    comparison = pairs.between("ECE", leader, second)
    if comparison is None:
        lowest = f"{inert(leader, SHORT)} has the lowest ECE, but that is no comparison"
        return Verdict(f"{pairs.remark} {lowest}.", (ONE_BY_ONE,), "unsure", "Compare models on the same rows.")
    names = [subject.name for subject in subjects]
    rivals = pairs.rivals("ECE", leader, names)
    clear, apart = not rivals, _apart(comparison)
    first, next_one = (inert(name, SHORT) for name in (leader, second))
    if len(names) == 2:
        sentence = f"{first} is better calibrated than {next_one}: its ECE is lower by {apart}."
        sentence = sentence if clear else f"No clear difference in ECE between {first} and {next_one}: {apart}."
        return Verdict(sentence, (ONE_BY_ONE,), "good" if clear else "unsure", _action(subjects, pairs))
    if clear:
        sentence = f"{first} has the lowest ECE of {len(names)} models; the next, {next_one}, is higher by {apart}."
    else:
        others = len(names) - 1 - len(rivals)
        are = "is" if others == 1 else "are"
        rest = f"; {others} of {len(names)} models {are} clearly higher" if others else ""
        sentence = f"No clear difference in ECE between {listed([leader, *rivals], most=3, length=SHORT)}{rest}."
    return Verdict(sentence, (ONE_BY_ONE,), "good" if clear else "unsure", _action(subjects, pairs))


def _apart(comparison: Comparison) -> str:
    """How far two models are apart, with interval and p-value."""
    ends = sorted((comparison.interval.low, comparison.interval.high))
    if comparison.difference < 0:
        ends = [-ends[1], -ends[0]]
    p = comparison.p_value if comparison.adjusted_p_value is None else comparison.adjusted_p_value
    between = " to ".join(f"{100 * end:.1f}" for end in ends)
    return f"{points(abs(comparison.difference))} (90% interval {between}, {p_value(p)})"


def _action(subjects: Sequence[Subject], pairs: Pairs) -> str:
    """Which model to use: the one whose log loss, which counts every kind of error, is clearly the lowest."""
    metric = "log loss" if "log loss" in pairs.comparisons else "ECE"
    names = [subject.name for subject in subjects]
    best = best_of(names, [value_of(subject, metric) for subject in subjects], rising=False)
    if best is None:
        return "Nothing to recommend: no loss of these models is known."
    rivals = pairs.rivals(metric, best, names)
    if not rivals:
        return f"Use {inert(best, SHORT)}: its {metric} is clearly {'lower' if len(names) == 2 else 'the lowest'}."
    together = listed([best, *rivals], most=4, length=SHORT)
    return f"Choose between {together} on other grounds, or on more rows: their {metric} shows no clear difference."


def _differences(pairs: Pairs, leader: str, second: str) -> list[KeyNumber]:
    """The differences of the two models with the lowest ECE in three metrics, the first less the second."""
    numbers: list[KeyNumber] = []
    for metric, unit in (
        ("ECE", "points"),
        ("log loss", ""),
        ("accuracy", "points"),
        ("AUROC", ""),
        ("Brier score", ""),
    ):
        comparison = pairs.between(metric, leader, second)
        if comparison is None or len(numbers) == 3:
            continue
        pair = next(pair for pair, each in pairs.comparisons[metric].items() if each is comparison)
        p = comparison.p_value if comparison.adjusted_p_value is None else comparison.adjusted_p_value
        words = comparison.verdict(*(inert(name, SHORT) for name in pair))
        less = " less ".join(inert(name, 24) for name in pair)
        ends = (comparison.interval.low, comparison.interval.high)
        name = f"{metric[0].upper()}{metric[1:]}: {less}"
        numbers.append(KeyNumber(name, comparison.difference, *ends, unit, f"{words} ({p_value(p)})."))
    return numbers


def _card(subjects: Sequence[Subject]) -> Section:
    """What each model's file holds, with a hash."""
    rows = [
        (
            subject.name,
            f"{len(subject.predictions):,}",
            subject.predictions.forecasts.words,
            f"{'logits' if subject.predictions.logits else 'probabilities'}, {subject.predictions.values.dtype}",
            subject.digest,
        )
        for subject in subjects
    ]
    header = ("model", "rows", "predictions of", "given as", "SHA-256 of predictions, labels, weights")
    return Section("card", "Data", (), (), (PageTable(header, rows, "The data"),))
