"""Methods: the data card, and how to make this page again."""

from __future__ import annotations

import importlib.metadata
import platform

import numpy as np

from calibrant.inference.grouped import MOST_ROWS
from calibrant.report.page import Grid, Section
from calibrant.report.study import Study
from calibrant.report.words import counted, listed, percent
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
    "Davison & Hinkley (1997), Bootstrap methods and their application, section 5.2: basic intervals.",
    "Geifman & El-Yaniv (2017), Selective classification: risk and coverage.",
)


def card_section(study: Study) -> Section:
    """What was measured: rows, classes, prevalence, a hash."""
    given = study.predictions
    kinds = {"event": "one event", "confidence": "the top answer being right"}
    rows: list[tuple[str, str]] = [
        ("predictions", study.name),
        ("rows (n)", f"{len(given):,}"),
        ("forecasts of", kinds.get(given.kind, f"{given.n_classes:,} classes")),
        ("given as", f"{'logits' if given.logits else 'probabilities'}, {given.values.dtype}"),
        ("mean forecast" if given.kind == "event" else "mean confidence", percent(study.forecast)),
        ("prevalence (how often it happened)" if given.kind == "event" else "accuracy", percent(study.frequency)),
        *_prevalence(study),
    ]
    if given.soft is not None:
        rows.append(("labels", "soft (shares, not outcomes)"))
    if given.weight is not None:
        rows.append(("sum of weights", f"{given.weight.sum():,.10g}"))
    rows.append(("columns", listed(list(given.columns), most=20) or "none"))
    rows.append(("SHA-256 of forecasts, labels, weights", study.digest))
    rows += [("note", note) for note in given.notes]
    return Section("card", "Data", (), (), (Grid(("what", "value"), rows, "The data"),))


def _prevalence(study: Study) -> list[tuple[str, str]]:
    """How frequent classes are."""
    given = study.predictions
    if given.kind != "classes":
        return []
    if given.labels is None:
        shares = np.average(np.asarray(given.soft), axis=0, weights=given.weight)
    else:
        shares = np.bincount(given.labels, weights=given.weight, minlength=given.n_classes)
    shares = shares / shares.sum()
    most, least = int(shares.argmax()), int(shares.argmin())
    if shares[most] - shares[least] < 1e-12:
        return [("prevalence of the classes", f"{percent(shares[most])} each")]
    ends = " to ".join(f"{percent(float(shares[one]))} ({inert(given.classes[one], 60)})" for one in (least, most))
    absent = int((shares == 0).sum())
    more = f"; {counted(absent, 'class is', 'classes are')} never true" if absent else ""
    return [("prevalence of the classes", ends + more)]


def methods_section(study: Study, command: str) -> Section:
    """How the page was made."""
    import calibrant

    redrawn = f"{study.resamples} (one event)"
    if study.predictions.kind == "classes":
        redrawn += f", {study.class_resamples} (all classes, {counted(len(study.class_rows), 'row')})"
    rows: list[tuple[str, str]] = [
        ("command", command),
        ("calibrant", calibrant.__version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", importlib.metadata.version("scipy")),
        ("seed", str(study.seed)),
        ("resamples and redraws", redrawn),
    ]
    said = (
        "Intervals of calibration errors are 90% basic bootstrap intervals over rows; those of mean scores and gaps "
        "are normal (the mean, 1.645 standard errors either way), those of frequencies Wilson's. A noise floor is the "
        "mean of the metric when labels are redrawn from the forecasts, p the share of redraws that reach the observed "
        "value, (1 + their number) / (1 + redraws), so that it cannot be smaller than 1 / (1 + redraws). ECE uses 15 "
        "equal-width bins, closed on the right, unless said otherwise.",
        "The p-value of a group or class is that of its mean gap under the forecasts' own variance, normal or, where "
        "that variance is small, Bernstein's bound; Holm's method corrects for their number, and 0.05 is the line.",
        f"Above {MOST_ROWS:,} rows, resamples draw from forecasts in groups no wider than 1/4,096 and no larger than "
        "1/4,096 of the rows (tied forecasts stay together).",
    )
    return Section(
        "methods",
        "Methods and references",
        said,
        (),
        (Grid(("what", "value"), rows, "To make this page again"),),
        references=REFERENCES,
    )
