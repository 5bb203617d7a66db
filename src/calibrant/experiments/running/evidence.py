"""Evidence: what the outcomes in a store say about a study; measured once, and kept there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.experiments.design.study_parts import Model
from calibrant.experiments.design.study_schema import Study
from calibrant.experiments.running.sealed_database import DamagedStoreError
from calibrant.experiments.running.study_store import DONE, Row, Store
from calibrant.experiments.training.datasets.dataset import Hierarchy, refuse_overlap
from calibrant.experiments.training.trial_outcomes import Outcome, pooled
from calibrant.experiments.training.trials import BASE, ENSEMBLE
from calibrant.experiments.training.tuning import (
    Candidate,
    StrengthChoice,
    TrainingChoice,
    choose,
    lowest_admissible,
)
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recalibrate.methods import spelled as method_spelled
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.result import Result
from calibrant.specification import spelling

MEMBERS = "+"
"""What stands between the names of the trials of an ensemble."""
_FAILURES = (CalibrationInputError, ArithmeticError, np.linalg.LinAlgError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Variant:
    """What a row of a table is about: a model, an intervention at one strength, a method after it; a trial a seed.

    The seeds of a base together are an ensemble, whose strength is their number and whose one trial is all of theirs.
    """

    model: str
    intervention: str
    strength: float
    method: str
    trials: tuple[str, ...]

    @property
    def label(self) -> str:
        """The variant in a few words, without the model.

        >>> Variant("mlp", "mixup", 0.2, "temperature", ()).label
        'mixup 0.2, temperature'
        """
        named = "base" if self.intervention == BASE else f"{self.intervention} {self.strength:g}"
        return ", ".join(filter(None, (named * (named != "base" or not self.method), self.method)))

    @property
    def is_base(self) -> bool:
        """Whether nothing was done."""
        return self.intervention == BASE and not self.method


class Evidence:
    """A study and its store, asked together."""

    def __init__(self, study: Study, store: Store) -> None:
        self.study, self.store = study, store
        self.outcome = lru_cache(maxsize=32)(self._outcome)
        self._mended = lru_cache(maxsize=64)(self._recalibrated)

    @cached_property
    def rows(self) -> list[Row]:
        """The trials as the store knew them when it was asked first."""
        return self.store.rows()

    @cached_property
    def sweeps(self) -> list[TrainingChoice]:
        """What the trainings of a base did, where several were tried and all of their trials are settled."""
        sweeps = (self._sweep(model) for model in self.study.models)
        return [sweep for sweep in sweeps if sweep is not None]

    @cached_property
    def bases(self) -> dict[str, str]:
        """The training of each model's base, in words; those that are still to be chosen are left out."""
        bases = {sweep.model: sweep.chosen for sweep in self.sweeps}
        for model in self.study.models:
            first, *others = self.study.trainings(model)
            if not others:
                bases[model.title] = first
        return {title: words for title, words in bases.items() if words is not None}

    @cached_property
    def choices(self) -> list[StrengthChoice]:
        """The strengths chosen so far; interventions whose trials are not all settled have none yet."""
        choices = (
            self._choice(model.title, intervention.title, intervention.strengths)
            for model in self.study.models
            for intervention in self.study.tried_on(model)
        )
        return [choice for choice in choices if choice is not None]

    @property
    def chosen(self) -> dict[tuple[str, str], float]:
        """(model, intervention) -> strength."""
        return {
            (choice.model, choice.intervention): choice.strength
            for choice in self.choices
            if choice.strength is not None
        }

    def variants(self, model: str | None = None) -> list[Variant]:
        """What there is to compare: the base, every intervention at its chosen strength, and methods after them."""
        variants: list[Variant] = []
        for network in self.study.models:
            if model not in (None, network.title):
                continue
            plain = list(self._plain(network.title))
            after = plain if self.study.post_processing.of == "chosen" else plain[:1]
            variants += plain
            for method in self.study.post_processing.methods:
                variants += [replace(variant, method=method) for variant in after]
        return [variant for variant in variants if variant.trials]

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Groups of classes by level: those of the study's file, or else those that the data set has."""
        every = self.variants()
        if not every:
            return {}
        outcome = self.outcome(every[0].trials[0])
        levels = {
            level: {name: tuple(classes) for name, classes in groups.items()}
            for level, groups in self.study.groups.items()
        }
        for level, groups in levels.items():
            refuse_overlap(level, groups, outcome.classes)
        return levels or outcome.hierarchy

    def predictions(self, trial: str, method: str = "", split: str = "test") -> Predictions:
        """A trial's answers, after a method that was fitted on its validation rows."""
        return self.outcome(trial).predictions(split) if not method else self._mended(trial, method)

    def measure(
        self, trial: str, metrics: Mapping[str, Metric], method: str = "", split: str = "test"
    ) -> dict[str, Any]:
        """Results of metrics by name, as plain values; {"failed": why} where a method or a metric cannot do it."""
        known = self.store.measured(trial, method, split)
        missing = {name: metric for name, metric in metrics.items() if name not in known}
        if missing:
            measured = self._measured(trial, missing, method, split)
            self.store.keep(trial, method, split, measured)
            known.update(measured)
        return {name: known[name] for name in metrics}

    def values(self, variant: Variant, name: str, part: str = "value", split: str = "test") -> Floats:
        """A metric's value, or one of its details, for each seed; nan where it failed."""
        return self.values_of(variant, name, next(iter(spelling.metrics(name).values())), part, split)

    def values_of(
        self, variant: Variant, name: str, metric: Metric, part: str = "value", split: str = "test"
    ) -> Floats:
        """The same of a metric that has no spelling, kept under a name that must be its own."""
        results = [self.measure(trial, {name: metric}, variant.method, split)[name] for trial in variant.trials]
        return np.array([_number(result, part) for result in results])

    def failures(self) -> list[str]:
        """What could not be done, in sentences."""
        sentences = [f"{row.trial.label}: {row.reason}" for row in self.rows if row.state == "failed"]
        sentences += [sweep.words for sweep in self.sweeps if sweep.chosen is None]
        sentences += [choice.words for choice in self.choices if choice.strength is None]
        for variant in self.variants():
            if variant.method:
                sentences += self._notes(variant)
        return sentences

    def _notes(self, variant: Variant) -> Iterator[str]:
        reasons = {
            result["failed"]
            for trial in variant.trials
            for result in self.store.measured(trial, variant.method, "test").values()
            if "failed" in result
        }
        return (f"{variant.model}, {variant.label}: {reason}" for reason in sorted(reasons))

    def _plain(self, model: str) -> Iterator[Variant]:
        """The base and the interventions of a model, at their chosen strengths."""
        base = self._done(model, BASE, 0.0)
        yield Variant(model, BASE, 0.0, "", base)
        if self.study.ensemble and len(base) > 1:
            yield Variant(model, ENSEMBLE, float(len(base)), "", (MEMBERS.join(base),))
        for intervention in self.study.interventions:
            strength = self.chosen.get((model, intervention.title))
            if strength is not None:
                yield Variant(model, intervention.title, strength, "", self._done(model, intervention.title, strength))

    def _done(self, model: str, intervention: str, strength: float) -> tuple[str, ...]:
        """The finished trials of a setting, in the order of seeds."""
        return tuple(row.trial.id for row in self._rows(model, intervention, strength) if row.state == DONE)

    def _rows(self, model: str, intervention: str, strength: float) -> list[Row]:
        """The trials of a setting, as the base of its model is trained."""
        asked = (model, intervention, strength)
        return [row for row in self.rows if _setting(row) == asked and row.trial.training == self._trainings.get(model)]

    @cached_property
    def _trainings(self) -> dict[str, dict[str, Any]]:
        """How the base of each model is trained, where that is settled."""
        models = (model for model in self.study.models if model.title in self.bases)
        return {model.title: self.study.trainings(model)[self.bases[model.title]] for model in models}

    def _sweep(self, model: Model) -> TrainingChoice | None:
        """What every training of a base did on validation rows; None where one is given, or trials are missing."""
        trainings, losses = self.study.trainings(model), {}
        rows = [row for row in self.rows if _setting(row) == (model.title, BASE, 0.0)]
        for words, training in trainings.items() if len(trainings) > 1 else ():
            means = self._validated([row for row in rows if row.trial.training == training], "log_loss")
            if means is None:
                return None
            losses[words] = means[0]
        return TrainingChoice(model.title, losses) if losses else None

    def _choice(self, model: str, intervention: str, strengths: list[float]) -> StrengthChoice | None:
        """The strength that an intervention has on a model, or None while trials are missing; a single one is given."""
        settings = [(BASE, 0.0), *((intervention, strength) for strength in strengths)]
        measured = [self._candidate(model, *setting) for setting in settings]
        if None in measured:
            return None
        base, *candidates = (candidate for candidate in measured if candidate is not None)
        rule = self.study.tuning
        floor = lowest_admissible(base.accuracy, loss=rule.accuracy_loss, relative=rule.relative)
        strength = candidates[0].strength if len(candidates) == 1 else choose(candidates, floor)
        return StrengthChoice(model, intervention, strength, floor, tuple(candidates))

    def _candidate(self, model: str, intervention: str, strength: float) -> Candidate | None:
        """Validation accuracy and error of a setting, the means over tuning seeds; None while a trial is missing."""
        means = self._validated(self._rows(model, intervention, strength), "accuracy", "ece")
        return None if means is None else Candidate(strength, *means)

    def _validated(self, rows: list[Row], *names: str) -> list[float] | None:
        """Metrics on validation rows, means over tuning seeds: nan where a trial failed, None while one is missing."""
        seeds = self.study.tuning_seeds
        tuned = [row for row in rows if row.trial.seed in seeds]
        if len(tuned) < len(seeds) or any(row.state not in (DONE, "failed") for row in tuned):
            return None
        if any(row.state != DONE for row in tuned):
            return [np.nan] * len(names)
        metrics = {name: metric for text in names for name, metric in spelling.metrics(text).items()}
        results = [self.measure(row.trial.id, metrics, split="validation") for row in tuned]
        return [float(np.mean([_number(result[name], "value") for result in results])) for name in metrics]

    def _outcome(self, trial: str) -> Outcome:
        """What came of a trial, or of several whose names are joined: that is their ensemble's."""
        members = trial.split(MEMBERS)
        return self.store.outcome(trial) if len(members) == 1 else pooled([self.outcome(each) for each in members])

    def _measured(self, trial: str, metrics: Mapping[str, Metric], method: str, split: str) -> dict[str, Any]:
        self.outcome(trial)  # what is damaged is no failure of the method
        try:
            predictions = self.predictions(trial, method, split)
        except DamagedStoreError:
            raise
        except _FAILURES as reason:
            return {name: {"failed": str(reason)} for name in metrics}
        results: dict[str, Any] = {}
        for name, metric in metrics.items():
            try:
                results[name] = _plain_result(metric(predictions))
            except _FAILURES as reason:
                results[name] = {"failed": str(reason)}
        return results

    def _recalibrated(self, trial: str, method: str) -> Predictions:
        """Test answers through a method that was fitted on the validation rows."""
        return self.fitted(trial, method).recalibrate(self.outcome(trial).predictions("test"))

    def fitted(self, trial: str, method: str) -> Recalibrator:
        """A method fitted on a trial's validation rows, and on no other; fitted once, and kept."""
        kept = self.store.fitted(trial, method)
        if kept is not None:
            with suppress(CalibrationInputError):  # what cannot be believed is fitted again
                return Recalibrator.from_json(kept)
        validation = self.outcome(trial).predictions("validation")
        recalibrator = method_spelled(method).copy(input="logits")
        with warnings.catch_warnings():  # the certificate says what did not converge
            warnings.simplefilter("ignore", CalibrationWarning)
            recalibrator.fit(validation.values, validation.hard_labels("fitting"))
        self.store.keep_fitted(trial, method, recalibrator.to_json())
        return recalibrator


def _setting(row: Row) -> tuple[str, str, float]:
    return row.trial.model_name, row.trial.intervention_name, row.trial.strength


def _plain_result(result: Result) -> dict[str, Any]:
    plain = result.to_dict(bins=False)
    return {name: plain[name] for name in ("value", "n", "parts", "details", "notes")}


def _number(result: Mapping[str, Any], part: str) -> float:
    """A number out of a kept result: its value, or a detail by name; nan where there is none."""
    if "failed" in result:
        return float("nan")
    return float(result["value"] if part == "value" else result["details"].get(part, "nan"))
