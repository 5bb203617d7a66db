"""Data and methods: the data card, and how to make this page again."""

from __future__ import annotations

import importlib.metadata
import platform

import numpy as np

from calibrant.inference.grouped import MOST_ROWS
from calibrant.report.page import PageTable, Section
from calibrant.report.quoting import counted, listed, percent
from calibrant.report.subject import Subject
from calibrant.text import inert

REFERENCES = (
    "Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks: ECE, MCE, temperature scaling.",
    "Nixon, Dusenberry, Zhang, Jerfel & Tran (2019), Measuring calibration in deep learning: SCE, ACE, TACE.",
    "Roelofs, Cain, Shlens & Mozer (2022), Mitigating bias in calibration error estimation: the sweep.",
    "Kumar, Liang & Ma (2019), Verified uncertainty calibration: the debiased error.",
    "Blasiok & Nakkiran (2023), Smooth ECE.",
    "Kirchenbauer, Oaks & Heim (2022), What is your metric telling you?: full and top-k errors, Likert intervals.",
    "Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022), Metrics of calibration for probabilistic predictions: drift.",
    "Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams: the decomposition of scores.",
    "Broecker & Smith (2007), Increasing the reliability of reliability diagrams: redrawn outcomes.",
    "Wilson (1927), Probable inference: intervals of a frequency. Kish (1965), Survey sampling: effective size.",
    "Holm (1979), A simple sequentially rejective multiple test procedure.",
    "Hall (1992), On the removal of skewness by transformation: intervals of gaps.",
    "Fan & Gijbels (1996), Local polynomial modelling: smooth curves. Sun & Loader (1994): their bands.",
    "Austin & Steyerberg (2019), The integrated calibration index. Vickers & Elkin (2006), Decision curve analysis.",
    "Geifman & El-Yaniv (2017), Selective classification: risk and coverage.",
)

_TOGETHER = (
    "{units} are independent, and {parts} may depend on each other. Resamples keep them together. In intervals of "
    "frequencies and gaps, and in p-values of gaps, variances are multiplied by the design effect, at least 1. Noise "
    "floors and their p-values are found twice. First, labels are redrawn from the predictions; then the signs of all "
    "gaps between outcome and prediction are flipped at random, for {flipped} at a time. The result with the larger "
    "p-value is shown. This needs about 30 independent {counted} or more."
)


def card_section(subject: Subject) -> Section:
    """What was measured: rows, classes, prevalence, a hash."""
    predictions = subject.predictions
    what = "a label is true" if subject.together else "it happened"
    forecast, frequency = "mean prediction", f"prevalence (how often {what})"
    if predictions.forecasts.answers:
        forecast, frequency = "mean confidence", "accuracy"
    rows: list[tuple[str, str]] = [
        ("predictions", subject.name),
        ("rows (n)", f"{len(predictions):,}"),
        ("predictions of", predictions.forecasts.words),
        ("given as", f"{'logits' if predictions.logits else 'probabilities'}, {predictions.values.dtype}"),
        (forecast, percent(subject.forecast)),
        (frequency, percent(subject.frequency)),
        *_prevalence(subject),
    ]
    if predictions.soft is not None:
        rows.append(("labels", "soft (shares, not outcomes)"))
    if predictions.weight is not None:
        rows.append(("sum of weights", f"{predictions.weight.sum():,.10g}"))
    if subject.groups:
        count = int(subject.cluster.max()) + 1 if subject.cluster is not None else 0
        rows.append(("rows that may depend on each other", f"those of one {subject.groups} ({count:,} values)"))
    rows.append(("columns", listed(list(predictions.columns), most=20) or "none"))
    rows.append(("SHA-256 of predictions, labels, weights", subject.digest))
    rows += [("note", note) for note in predictions.notes]
    return Section("card", "Data", (), (), (PageTable(("what", "value"), rows, "The data"),))


def _together(subject: Subject) -> list[str]:
    """How dependence between rows, or between labels of a row, is allowed for."""
    if subject.column is None:
        return []
    if subject.groups:
        name = inert(subject.groups, 60)
        words = {"units": f"Values of {name}", "parts": "rows of one value", "counted": "values"}
        return [_TOGETHER.format(flipped="all rows of one value", **words)]
    words = {"units": "Rows", "parts": "the labels of one row", "counted": "rows"}
    return [_TOGETHER.format(flipped="all labels of a row", **words)]


def _prevalence(subject: Subject) -> list[tuple[str, str]]:
    """How frequent classes are."""
    predictions = subject.predictions
    if not predictions.n_classes:
        return []
    what = ("label", "labels") if subject.together else ("class", "classes")
    if subject.together or predictions.labels is None:
        shares = np.average(predictions.truth_rows, axis=0, weights=predictions.weight)
    else:
        shares = np.bincount(predictions.labels, weights=predictions.weight, minlength=predictions.n_classes)
        shares = shares / shares.sum()
    most, least = int(shares.argmax()), int(shares.argmin())
    if shares[most] - shares[least] < 1e-12:
        return [(f"prevalence of the {what[1]}", f"{percent(shares[most])} each")]
    ends = " to ".join(
        f"{percent(float(shares[index]))} ({inert(predictions.classes[index], 60)})" for index in (least, most)
    )
    absent = int((shares == 0).sum())
    more = f"; {counted(absent, f'{what[0]} is', f'{what[1]} are')} never true" if absent else ""
    return [(f"prevalence of the {what[1]}", ends + more)]


def methods_section(subject: Subject, command: str) -> Section:
    """How the page was made."""
    import calibrant

    redrawn = f"{subject.resamples} ({'pooled labels' if subject.together else 'one event'})"
    if subject.predictions.n_classes:
        redrawn += f", {subject.class_resamples} ({subject.every}, {counted(len(subject.class_rows), 'row')})"
    rows: list[tuple[str, str]] = [
        ("command", command),
        ("calibrant", calibrant.__version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", importlib.metadata.version("scipy")),
        ("seed", str(subject.seed)),
        ("resamples and redraws", redrawn),
    ]
    paragraphs = (
        "Intervals of calibration errors are 90% intervals of their own limits with these bins, from the binomial "
        "distribution of each bin's outcomes. Intervals of mean scores and gaps are Student's with a correction for "
        "skewness, those of frequencies Wilson's. ECE uses 15 equal-width bins, closed on the right.",
        "A noise floor is the mean of the metric when labels are redrawn from the predictions. Its p-value is "
        "(1 + redraws that reach the observed value) / (1 + redraws), so it cannot be smaller than 1 / (1 + redraws).",
        "The verdict's p-value is that of the calibration test. It joins Cox, Spiegelhalter, Kolmogorov-Smirnov, "
        "kernel and Hosmer-Lemeshow statistics, each ranked among redraws of the labels. Of more than 200,000 "
        "predictions, so many are tested.",
        "The p-value of a group or class is that of its mean gap under the variance that the predictions imply. It is "
        "normal, or Bernstein's bound where that variance is small. Holm's method corrects for their number; groups "
        "are flagged at 0.05.",
        *_together(subject),
        f"Above {MOST_ROWS:,} {'predictions' if subject.together else 'rows'}, resamples draw from predictions in "
        "groups no wider than 1/4,096 and no larger than 1/4,096 of them. Tied predictions stay together.",
    )
    return Section(
        "methods",
        "Methods and references",
        paragraphs,
        (),
        (PageTable(("what", "value"), rows, "To make this page again"),),
        references=REFERENCES,
    )
