"""The study: what one YAML file says, value by value, and the trials that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, field_validator, model_validator

from calibrant.checks import intervals
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.design.study_parts import (
    ClassName,
    Data,
    GivenPredictions,
    Intervention,
    Metrics,
    Model,
    Name,
    OverTraining,
    PostProcessing,
    Seeds,
    Share,
    Strict,
    Training,
    Tuning,
    different,
    known,
)
from calibrant.experiments.training.trials import BASE, ENSEMBLE, Trial

TABLES = (
    "accuracy", "metrics", "post_processing", "miscalibration", "ece_by_method", "strengths", "per_class",
    "side_by_side", "base_trainings", "architecture",
)  # fmt: skip
"""The tables that a study may ask for; :mod:`calibrant.experiments.findings.tables` makes them."""
FIGURES = (
    "top_k", "ranked_confidence", "top_k_accuracy", "entropy", "groups", "hierarchy", "group_confidence",
    "likert_errors", "likert_tvd", "likert_counts", "gamma_sweep", "over_training", "range_bounds", "range_errors",
    "bins_over_training", "logit_norms", "class_errors", "datapoint", "decay_rates", "sharpness", "reliability",
    "sizes", "risk_coverage",
)  # fmt: skip
"""The figures that a study may ask for; :mod:`calibrant.experiments.findings.figures` draws them."""


def _one_of(kind: str, names: tuple[str, ...]) -> AfterValidator:
    """A word that is among the names of a kind."""

    def check(name: str) -> None:
        if name not in names:
            raise CalibrationInputError(kind, "is unknown", got=repr(name), hint=nearest(name, names))

    return known(check)


class Study(Strict, BaseModel):
    """All that a file says."""

    name: Name
    models: Annotated[list[Model], Field(min_length=1)]
    data: Annotated[Data | None, Field(validate_default=True)] = None
    groups: dict[str, dict[str, list[ClassName]]] = {}
    training: Training = Training()
    interventions: list[Intervention] = []
    seeds: Seeds = [0]
    ensemble: bool = False
    tuning: Tuning = Tuning()
    post_processing: PostProcessing = PostProcessing()
    metrics: Annotated[Metrics, Field(min_length=1)] = ["accuracy", "log_loss", "brier", "ece", "sce", "ace", "tace"]
    over_training: OverTraining = OverTraining()
    likert: Annotated[list[Share], Field(min_length=2)] = [0.0, 0.33, 0.66, 1.0]
    likert_pairs: list[Annotated[list[Share], Field(min_length=2, max_length=2)]] = []
    top_k: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), AfterValidator(different)] = [
        1,
        2,
        3,
        4,
        5,
    ]
    gammas: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1), AfterValidator(different)] = [
        0.5,
        0.25,
        0.1,
        0.05,
        0.025,
    ]
    bootstrap: Annotated[int, Field(ge=1)] = 100
    tables: Annotated[list[Annotated[str, _one_of("table", TABLES)]], AfterValidator(different)] | None = None
    figures: Annotated[list[Annotated[str, _one_of("figure", FIGURES)]], AfterValidator(different)] | None = None
    logits: Literal["float16", "float32"] = "float32"

    @field_validator("data")
    @classmethod
    def _needed(cls, data: Data | None, info: ValidationInfo) -> Data | None:
        if data is None and _trains(info.data.get("models"), info.context):
            raise ValueError("data must name the rows that networks are trained on")
        return data

    @field_validator("likert", "likert_pairs")
    @classmethod
    def _categories(cls, edges: list[Any], info: ValidationInfo) -> list[Any]:
        if edges:
            intervals([tuple(edge) if isinstance(edge, list) else edge for edge in edges], str(info.field_name))
        return edges

    @model_validator(mode="after")
    def _no_name_twice(self) -> Study:
        for what, titles in (
            ("models", [model.title for model in self.models]),
            ("interventions", [BASE, ENSEMBLE, *(intervention.title for intervention in self.interventions)]),
        ):
            twice = {title for title in titles if titles.count(title) > 1}
            if twice:
                raise ValueError(f"{what}: must have different names, got {sorted(twice)[0]!r} twice")
        stray = set(self.tuning.seeds or []) - set(self.seeds)
        if stray:
            raise ValueError(f"tuning: must choose on seeds of the study, got {min(stray)}")
        if self.interventions and self.data is None:
            raise ValueError("interventions: must have a network to train, got given predictions alone")
        known = {intervention.title: intervention.strengths for intervention in self.interventions}
        for model in self.models:
            for name, strengths in (model.interventions or {}).items():
                if name not in known:
                    raise ValueError(f"models: {model.title} names {name!r}, which is no intervention of the study")
                if strange := set(strengths or []) - set(known[name]):
                    raise ValueError(
                        f"models: {model.title} tries {name} at {min(strange):g}, which is no strength of it"
                    )
        return self

    def tried_on(self, model: Model) -> list[Intervention]:
        """The interventions that a network is trained with, each with the strengths that are tried there."""
        if model.interventions is None:
            return self.interventions
        return [
            each.model_copy(update={"strengths": model.interventions[each.title] or each.strengths})
            for each in self.interventions
            if each.title in model.interventions
        ]

    @property
    def categories(self) -> list[float] | list[tuple[float, float]]:
        """Categories of confidence: pairs, which need not adjoin, where some are named, or else edges."""
        return [(low, high) for low, high in self.likert_pairs] or self.likert

    @property
    def tuning_seeds(self) -> list[int]:
        """The seeds that strengths are chosen on."""
        return self.tuning.seeds or self.seeds

    def trainings(self, model: Model) -> dict[str, dict[str, Any]]:
        """The ways in which a network's base is trained, by what tells them apart: one, or all that are swept."""
        if model.predictions is not None:
            return {"": {}}
        own = model.training
        changes = {} if own is None else {name: getattr(own, name) for name in own.model_fields_set}
        swept = model.sweep.trainings(self.training.model_copy(update=changes))
        return {words: training.model_dump() for words, training in swept.items()}

    def trials(
        self, chosen: Mapping[tuple[str, str], float] | None = None, bases: Mapping[str, str] | None = None
    ) -> list[Trial]:
        """The trials that can be named now: of what is still to be chosen, those on tuning seeds alone.

        `chosen` maps (model, intervention) to the strength that was chosen, `bases` a model to the training that was;
        their other seeds are then trained, too, and interventions once the training of the base is known.
        """
        trials: list[Trial] = []
        for model in self.models:
            if model.predictions is not None:
                trials += [self._given(model, *pair) for pair in enumerate(model.predictions)]
                continue
            trainings = self.trainings(model)
            base = next(iter(trainings)) if len(trainings) == 1 else (bases or {}).get(model.title)
            for words, training in trainings.items():
                seeds = self.seeds if words == base else self.tuning_seeds
                trials += [self._trial(model, training, {"kind": BASE, "strength": 0.0}, seed) for seed in seeds]
            for intervention in self.tried_on(model) if base is not None else ():
                strengths = intervention.strengths
                settled = strengths[0] if len(strengths) == 1 else (chosen or {}).get((model.title, intervention.title))
                for strength in strengths:
                    seeds = self.seeds if strength == settled else self.tuning_seeds
                    how = _described(intervention, strength)
                    trials += [self._trial(model, trainings[str(base)], how, seed) for seed in seeds]
        return list({trial.id: trial for trial in trials}.values())

    def all_trials(self) -> list[Trial]:
        """As many trials as there will be once everything is chosen: those of the first strengths and trainings."""
        trained = [model for model in self.models if model.predictions is None]
        first = {(model.title, each.title): each.strengths[0] for model in trained for each in self.tried_on(model)}
        return self.trials(first, {model.title: next(iter(self.trainings(model))) for model in trained})

    def _trial(self, model: Model, training: dict[str, Any], intervention: dict[str, Any], seed: int) -> Trial:
        network = model.model_dump(exclude={"training", "predictions", "sweep", "interventions"}, exclude_none=True)
        over = self.over_training.described()
        assert self.data is not None
        return Trial(self.data.described(), network, training, intervention, seed, over, self.logits)

    def _given(self, model: Model, seed: int, predictions: GivenPredictions) -> Trial:
        network = {"name": model.title, "predictions": predictions.model_dump(exclude_none=True)}
        return Trial({}, network, {}, {"kind": BASE, "strength": 0.0}, seed, None, self.logits)


def _trains(models: list[Model] | None, document: Any) -> bool:
    """Whether a network has no given predictions; where models are wrong, as the document has them."""
    if models is not None:
        return any(model.predictions is None for model in models)
    written = document.get("models") if isinstance(document, dict) else None
    return not (isinstance(written, list) and all(isinstance(each, dict) and "predictions" in each for each in written))


def _described(intervention: Any, strength: float) -> dict[str, Any]:
    return {**intervention.model_dump(exclude={"strengths"}, exclude_none=True), "strength": strength}
