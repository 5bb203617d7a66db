"""Methods: the data card, and how to make this page again."""

from __future__ import annotations

import importlib.metadata
import platform

import numpy as np

from calibrant.report.page import Grid, Section
from calibrant.report.study import Study

REFERENCES = (
    "Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks: ECE, MCE, temperature scaling.",
    "Nixon, Dusenberry, Zhang, Jerfel & Tran (2019), Measuring calibration in deep learning: SCE, ACE, TACE.",
    "Roelofs, Cain, Shlens & Mozer (2022), Mitigating bias in calibration error estimation: the sweep.",
    "Kumar, Liang & Ma (2019), Verified uncertainty calibration: the debiased error.",
    "Blasiok & Nakkiran (2023), Smooth ECE.",
    "Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams: the decomposition of scores.",
    "Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022), Metrics of calibration for probabilistic predictions.",
    "Brocker & Smith (2007), Increasing the reliability of reliability diagrams: redrawn outcomes.",
)


def card_section(study: Study) -> Section:
    """What was measured: rows, classes, prevalence, a hash."""
    given = study.predictions
    kinds = {"event": "one event", "confidence": "whether the top answer is right"}
    rows: list[tuple[str, str]] = [
        ("file", study.name),
        ("rows", f"{len(given):,}"),
        ("forecasts of", kinds.get(given.kind, f"{given.n_classes} classes")),
        ("given as", "logits" if given.logits else "probabilities"),
        ("mean forecast", f"{np.average(study.event.probabilities, weights=given.weight):.4f}"),
        ("came true", f"{np.average(study.event.truth_rows, weights=given.weight):.4f}"),
    ]
    if given.kind == "classes" and given.labels is not None:
        shares = np.bincount(given.labels, weights=given.weight, minlength=given.n_classes)
        shares = shares / shares.sum()
        most, least = int(shares.argmax()), int(shares.argmin())
        rows.append(("most frequent class", f"{given.classes[most]} ({100 * shares[most]:.1f}%)"))
        rows.append(("least frequent class", f"{given.classes[least]} ({100 * shares[least]:.1f}%)"))
    if given.weight is not None:
        rows.append(("sum of weights", f"{given.weight.sum():,.10g}"))
    rows += [("columns", ", ".join(given.columns) or "none"), ("hash (SHA-256)", study.digest)]
    rows += [("note", note) for note in given.notes]
    return Section("card", "Data", (), (), (Grid(("what", "value"), rows, "The data"),))


def methods_section(study: Study, command: str) -> Section:
    """How the page was made."""
    import calibrant

    rows: list[tuple[str, str]] = [
        ("command", command),
        ("calibrant", calibrant.__version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", importlib.metadata.version("scipy")),
        ("seed", str(study.seed)),
        ("resamples", f"{study.resamples} (one event), {study.wide_resamples} (all classes)"),
    ]
    said = (
        "Intervals are 90% basic bootstrap intervals over rows; a noise floor is the mean of the metric when labels "
        "are redrawn from the forecasts, and p the share of redraws at least as large as the observed value. ECE "
        "uses 15 equal-width bins, closed on the right, unless said otherwise.",
        *REFERENCES,
    )
    return Section("methods", "Methods and references", said, (), (Grid(("what", "value"), rows, "To make it again"),))
