"""Tables: what a study found, arranged as the literature does; means and standard deviations over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from calibrant.experiments.design.study_parts import Model
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.running.evidence import Evidence, Variant
from calibrant.experiments.training.tuning import Candidate, StrengthChoice

Table = Callable[[Evidence], Sheet]


def accuracy(evidence: Evidence) -> Sheet:
    """Top-label accuracy on test rows, a column a model (Kirchenbauer, Oaks & Heim 2022, tables 1-7)."""
    models = [model.title for model in evidence.study.models]
    every = [evidence.variants(model) for model in models]
    labels = list(dict.fromkeys(_kind(variant) for variants in every for variant in variants))
    cells = {
        (model, _kind(variant)): Spread.of(evidence.values(variant, "accuracy"))
        for model, variants in zip(models, every, strict=True)
        for variant in variants
    }
    rows = [(label, *(cells.get((model, label), "-") for model in models)) for label in labels]
    data = "given predictions" if evidence.study.data is None else evidence.study.data.name
    return Sheet("accuracy", f"Accuracy, {data}", ("method", *models), tuple(rows))


def metrics(evidence: Evidence) -> Sheet:
    """Every metric of the study for every variant, on test rows."""
    names = evidence.study.metrics
    rows = [
        (variant.model, variant.label, *(Spread.of(evidence.values(variant, name)) for name in names))
        for variant in evidence.variants()
    ]
    return Sheet("metrics", "All metrics", ("model", "method", *names), tuple(rows))


def post_processing(evidence: Evidence) -> Sheet:
    """Errors before and after post-processing, in percent (Nixon et al. 2019, tables 1-2)."""
    shown = [variant for variant in evidence.variants() if variant.intervention == "none"]
    names, header = ("ece", "tace", "sce", "ace"), ("model", "method", *("ECE %", "TACE %", "SCE %", "ACE %"))
    rows = [
        (variant.model, variant.method or "uncalibrated", *(_percent(evidence, variant, name) for name in names))
        for variant in shown
    ]
    return Sheet("post_processing", "Errors before and after post-processing", header, tuple(rows))


def miscalibration(evidence: Evidence) -> Sheet:
    """Over- and under-confidence by class, in percent but for wsMCS (Ao, Rueger & Siddharthan 2023, tables 3 and 5)."""
    details = ("mean_under", "share_under", "mean_over", "share_over")
    header = ("model", "method", "ECE %", "wsMCS", "UC %", "classes under %", "OC %", "classes over %", "accuracy %")
    rows = [
        (
            variant.model,
            variant.label,
            _percent(evidence, variant, "ece"),
            Spread.of(evidence.values(variant, "wsmcs"), digits=5),
            *(_percent(evidence, variant, "wsmcs", part) for part in details),
            _percent(evidence, variant, "accuracy"),
        )
        for variant in evidence.variants()
    ]
    return Sheet("miscalibration", "Over- and under-confidence by true class", header, tuple(rows))


def side_by_side(evidence: Evidence) -> Sheet:
    """Accuracy, and ECE, wsECE (both in percent) and wsMCS before and after every method, a row a model (Ao, Rueger &
    Siddharthan 2023, table 1)."""
    rows: list[tuple[object, ...]] = []
    methods = ["", *evidence.study.post_processing.methods]
    for model in evidence.study.models:
        plain = [variant for variant in evidence.variants(model.title) if variant.intervention == "none"]
        variants = {variant.method: variant for variant in plain}
        if variants:
            cells = [_three(evidence, variants[method]) for method in methods]
            accuracy = _percent(evidence, variants[""], "accuracy")
            rows.append((model.title, accuracy, *(cell for three in cells for cell in three)))
    names = [f"{name}, {method or 'base'}" for method in methods for name in ("ECE %", "wsECE %", "wsMCS")]
    return Sheet("side_by_side", "Before and after every method", ("model", "accuracy %", *names), tuple(rows))


def _three(evidence: Evidence, variant: Variant) -> tuple[Spread, Spread, Spread]:
    ece, wsece = (_percent(evidence, variant, name) for name in ("ece", "wsece"))
    return ece, wsece, Spread.of(evidence.values(variant, "wsmcs"), digits=3)


def ece_by_method(evidence: Evidence) -> Sheet:
    """ECE in percent, a row a model and a column a method (Ao, Rueger & Siddharthan 2023, table 4)."""
    methods = ["", *evidence.study.post_processing.methods]
    rows = []
    for model in evidence.study.models:
        variants = {
            variant.method: variant for variant in evidence.variants(model.title) if variant.intervention == "none"
        }
        cells = (_percent(evidence, variants[method], "ece") if method in variants else "-" for method in methods)
        rows.append((model.title, *cells))
    header = ("model", *(method or "uncalibrated" for method in methods))
    return Sheet("ece_by_method", "ECE (%) after post-processing the base", header, tuple(rows))


def strengths(evidence: Evidence) -> Sheet:
    """Which strength of every intervention was chosen, among which, by validation rows."""
    header = ("model", "intervention", "strength", "validation accuracy", "validation ECE", "lowest accuracy", "")
    rows = [
        (
            choice.model,
            choice.intervention,
            f"{candidate.strength:g}",
            candidate.accuracy,
            candidate.error,
            choice.floor,
            _verdict(choice, candidate),
        )
        for choice in evidence.choices
        for candidate in choice.candidates
    ]
    notes = [choice.words for choice in evidence.choices if choice.strength is None]
    return Sheet("strengths", "Strengths, chosen on validation rows", header, tuple(rows), tuple(notes))


def per_class(evidence: Evidence) -> Sheet:
    """Errors of each class: SCE and TACE of its column, and the gap of the samples that are of it (Nixon et al. 2019,
    figures 1 and 11; Ao, Rueger & Siddharthan 2023)."""
    names = ("sce", "ace", "tace", "cwmcs")
    rows = []
    for variant in evidence.variants():
        columns = [class_values(evidence, variant, name) for name in names]
        rows += [
            (variant.model, variant.label, label, *(Spread.of(column[label]) for column in columns))
            for label in columns[0]
        ]
    header = ("model", "method", "class", "SCE", "ACE", "TACE", "gap of its samples")
    return Sheet("per_class", "Errors by class", header, tuple(rows))


def base_trainings(evidence: Evidence) -> Sheet:
    """What every training of a base did on validation rows, where its hyperparameters are swept; the lowest log loss
    is the base's (Kirchenbauer, Oaks & Heim 2022, section 5)."""
    rows = [
        (sweep.model, words, loss, "chosen" if words == sweep.chosen else "")
        for sweep in evidence.sweeps
        for words, loss in sweep.losses.items()
    ]
    header = ("model", "training", "validation log loss", "")
    return Sheet("base_trainings", "Trainings of the base, chosen on validation rows", header, tuple(rows))


def architecture(evidence: Evidence) -> Sheet:
    """The base of every network with its number of weights: test error, ECE (both in percent) and log loss (Guo et al.
    2017, figure 2)."""
    rows = []
    for variant in evidence.variants():
        if variant.is_base:
            about = evidence.outcome(variant.trials[0]).about
            misses = Spread.of(1 - evidence.values(variant, "accuracy"), digits=2, factor=100.0)
            loss = Spread.of(evidence.values(variant, "log_loss"))
            cells = (misses, _percent(evidence, variant, "ece"), loss)
            rows.append((variant.model, str(about.get("weights", "-")), *cells))
    header = ("model", "weights", "test error %", "ECE %", "log loss")
    return Sheet("architecture", "Error by architecture", header, tuple(rows))


TABLES: dict[str, Table] = {
    table.__name__: table
    for table in (
        accuracy,
        metrics,
        post_processing,
        miscalibration,
        ece_by_method,
        strengths,
        per_class,
        side_by_side,
        base_trainings,
        architecture,
    )
}
"""Every table by its name."""


def tables_of(evidence: Evidence, names: Sequence[str] | None = None) -> list[Sheet]:
    """The tables that are asked for, or that the study names, or all; notes in the first say which given predictions
    were split, and what could not be done."""
    sheets = [TABLES[name](evidence) for name in names or evidence.study.tables or list(TABLES)]
    notes = [*_splits(evidence.study.models), *evidence.failures()]
    if notes and sheets:
        sheets[0] = dataclasses.replace(sheets[0], notes=(*sheets[0].notes, *notes))
    return sheets


def _splits(models: Sequence[Model]) -> list[str]:
    """Of which models the rows of the test file are shared out, since no validation file was given."""
    titles: dict[float, dict[str, None]] = {}
    for model in models:
        for files in model.predictions or ():
            if files.validation is None:
                titles.setdefault(files.share, {})[model.title] = None
    return [
        f"{', '.join(those)}: methods are fitted on {share:g} of the test rows, all is measured on the others"
        for share, those in titles.items()
    ]


def class_values(evidence: Evidence, variant: Variant, name: str) -> dict[str, list[float]]:
    """A metric's parts by class, a value a seed; nan where it failed."""
    from calibrant.specification import spelling

    values: dict[str, list[float]] = {}
    classes = evidence.outcome(variant.trials[0]).classes
    for trial in variant.trials:
        result = next(iter(evidence.measure(trial, spelling.metrics(name), variant.method).values()))
        parts = result.get("parts", {})
        for label in classes:
            values.setdefault(label, []).append(float(parts.get(label, {}).get("value", "nan")))
    return values


def _percent(evidence: Evidence, variant: Variant, name: str, part: str = "value") -> Spread:
    return Spread.of(evidence.values(variant, name, part), digits=2, factor=100.0)


def _kind(variant: Variant) -> str:
    """A variant's name without the strength, which may differ from model to model."""
    named = "base" if variant.intervention == "none" else variant.intervention
    return ", ".join(filter(None, (named if named != "base" or not variant.method else "", variant.method)))


def _verdict(choice: StrengthChoice, candidate: Candidate) -> str:
    if candidate.strength == choice.strength:
        return "chosen" if len(choice.candidates) > 1 else "given"
    return "loses too much accuracy" if not candidate.accuracy >= choice.floor else ""
