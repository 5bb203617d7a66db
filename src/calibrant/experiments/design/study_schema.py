"""The study: what one YAML file says, value by value, and the trials that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.training import datasets, networks
from calibrant.experiments.training.trials import BASE, Trial
from calibrant.recalibrate.methods import spelled
from calibrant.specification import spelling

TABLES = ("accuracy", "metrics", "post_processing", "miscalibration", "ece_by_method", "strengths", "per_class")
"""The tables that a study may ask for; :mod:`calibrant.experiments.findings.tables` makes them."""
FIGURES = (
    "top_k", "ranked_confidence", "top_k_accuracy", "entropy", "groups", "hierarchy", "group_confidence",
    "likert_errors", "likert_tvd", "likert_counts", "gamma_sweep", "over_training", "range_bounds", "range_errors",
    "bins_over_training", "logit_norms", "class_errors", "datapoint", "decay_rates", "sharpness", "reliability",
    "risk_coverage",
)  # fmt: skip
"""The figures that a study may ask for; :mod:`calibrant.experiments.findings.figures` draws them."""


class Strict(BaseModel):
    """Values of the right type under known keys, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def _known(check: Callable[[str], object]) -> AfterValidator:
    """A word that names something: a data set, a network, a metric, a method, a table or a figure."""

    def checked(name: str) -> str:
        check(name)
        return name

    return AfterValidator(checked)


def _one_of(kind: str, names: tuple[str, ...]) -> AfterValidator:
    """A word that is among the names of a kind."""

    def check(name: str) -> None:
        if name not in names:
            raise CalibrationInputError(kind, "is unknown", got=repr(name), hint=nearest(name, names))

    return _known(check)


def _different(values: list[Any]) -> list[Any]:
    """Refuse values of which two are one: numbers as they are, words by how they are spelled."""
    plain = [spelling.plain(value) if isinstance(value, str) else value for value in values]
    twice = [value for value, key in zip(values, plain, strict=True) if plain.count(key) > 1]
    if twice:
        raise ValueError(f"must be different, got {twice[-1]} twice")
    return values


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_. -]*$", max_length=60)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Strength = Annotated[float, Field(ge=0)]
Seeds = Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(min_length=1), AfterValidator(_different)]
Metrics = Annotated[list[Annotated[str, _known(spelling.metrics)]], AfterValidator(_different)]


class Data(Strict):
    """Which rows: a data set, the share of training rows kept for validation, the seed of that split, a limit."""

    name: Annotated[str, _known(datasets.check_name)]
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.1
    seed: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1)] | None = None


class Optimiser(Strict):
    """What takes the steps."""

    kind: Literal["sgd", "adam", "adamw"] = "sgd"
    learning_rate: Positive = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    nesterov: bool = False
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class Schedule(Strict):
    """How the learning rate changes: not at all, along half a cosine, or by a factor at milestones (epochs)."""

    kind: Literal["constant", "cosine", "steps"] = "constant"
    milestones: list[Annotated[float, Field(ge=0)]] = []
    factor: Positive = 0.1
    warmup: Annotated[float, Field(ge=0)] = 0.0


class Augmentation(Strict):
    """How pictures are changed at random: mirrored, shifted by up to so many pixels."""

    flip: bool = False
    crop: Annotated[int, Field(ge=0, le=64)] = 0


class Training(Strict):
    """How networks are trained."""

    epochs: Annotated[int, Field(ge=1, le=100_000)] = 10
    batch_size: Annotated[int, Field(ge=2)] = 128
    optimiser: Optimiser = Optimiser()
    schedule: Schedule = Schedule()
    augmentation: Augmentation = Augmentation()
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    deterministic: bool = True


class Model(Strict):
    """A network: its name, how its weights begin, what of the training is different for it."""

    name: Annotated[str, _known(networks.check_name)]
    label: Name | None = None
    initialisation: Literal["default", "glorot", "normal"] = "default"
    training: Training | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.label or self.name


class _Intervention(Strict):
    """Something done to the training, at several strengths."""

    name: Name | None = None
    strengths: Annotated[list[Strength], Field(min_length=1), AfterValidator(_different)]

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.name or str(self.kind)  # type: ignore[attr-defined]


class LabelSmoothing(_Intervention):
    """Strength: the share of each label that is spread over all classes."""

    kind: Literal["label_smoothing"]
    strengths: Annotated[list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=1), AfterValidator(_different)]


class Mixup(_Intervention):
    """Strength: the parameter of the beta distribution that shares are drawn from."""

    kind: Literal["mixup"]


class Focal(_Intervention):
    """Strength: gamma; with a schedule of [epoch, share] pairs, gamma is that share of it from that epoch on."""

    kind: Literal["focal"]
    schedule: list[Annotated[list[Strength], Field(min_length=2, max_length=2)]] | None = None

    @model_validator(mode="after")
    def _from_the_start(self) -> Focal:
        starts = [pair[0] for pair in self.schedule or [[0.0, 1.0]]]
        if starts[0] != 0 or sorted(set(starts)) != starts or any(start % 1 for start in starts):
            raise ValueError("schedule must be [epoch, share] pairs of rising whole epochs, the first of them 0")
        return self


class Flsd(_Intervention):
    """Strength: gamma where the true class has at least the threshold's probability; `below`: gamma elsewhere."""

    kind: Literal["flsd"]
    below: Strength = 5.0
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.2


class Margin(_Intervention):
    """Strength: the weight of the penalty on logits that lie further apart than the margin."""

    kind: Literal["margin"]
    margin: Strength = 10.0


Intervention = Annotated[LabelSmoothing | Mixup | Focal | Flsd | Margin, Field(discriminator="kind")]


class Tuning(Strict):
    """How strengths are chosen: which loss of accuracy is admissible, and on which seeds (all, if none are named)."""

    accuracy_loss: Share = 0.05
    relative: bool = False
    seeds: Seeds | None = None


class PostProcessing(Strict):
    """Methods fitted on validation rows: for the base alone, or for every chosen network."""

    methods: Annotated[list[Annotated[str, _known(spelled)]], AfterValidator(_different)] = []
    of: Literal["base", "chosen"] = "base"


class OverTraining(Strict):
    """What is measured after every so many epochs, on validation rows and so many training rows; with `keep`, their
    logits are kept, too."""

    metrics: Metrics = ["accuracy", "log_loss", "ece", "sce"]
    every: Annotated[int, Field(ge=1)] = 1
    train_rows: Annotated[int, Field(ge=1)] = 10_000
    keep: bool = False

    def described(self) -> dict[str, Any]:
        """What a trial says of it: nothing of `keep` where it is false, so that trials keep the names that they had."""
        return self.model_dump(exclude=set() if self.keep else {"keep"})


class Study(Strict):
    """All that a file says."""

    name: Name
    data: Data
    models: Annotated[list[Model], Field(min_length=1)]
    training: Training = Training()
    interventions: list[Intervention] = []
    seeds: Seeds = [0]
    tuning: Tuning = Tuning()
    post_processing: PostProcessing = PostProcessing()
    metrics: Annotated[Metrics, Field(min_length=1)] = ["accuracy", "log_loss", "brier", "ece", "sce", "ace", "tace"]
    over_training: OverTraining = OverTraining()
    likert: Annotated[list[Share], Field(min_length=2)] = [0.0, 0.33, 0.66, 1.0]
    top_k: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), AfterValidator(_different)] = [
        1,
        2,
        3,
        4,
        5,
    ]
    gammas: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1), AfterValidator(_different)] = [
        0.5,
        0.25,
        0.1,
        0.05,
        0.025,
    ]
    bootstrap: Annotated[int, Field(ge=1)] = 100
    tables: Annotated[list[Annotated[str, _one_of("table", TABLES)]], AfterValidator(_different)] | None = None
    figures: Annotated[list[Annotated[str, _one_of("figure", FIGURES)]], AfterValidator(_different)] | None = None
    logits: Literal["float16", "float32"] = "float32"

    @model_validator(mode="after")
    def _no_name_twice(self) -> Study:
        for what, titles in (
            ("models", [model.title for model in self.models]),
            ("interventions", [BASE, *(intervention.title for intervention in self.interventions)]),
        ):
            twice = {title for title in titles if titles.count(title) > 1}
            if twice:
                raise ValueError(f"{what}: must have different names, got {sorted(twice)[0]!r} twice")
        stray = set(self.tuning.seeds or []) - set(self.seeds)
        if stray:
            raise ValueError(f"tuning: must choose on seeds of the study, got {min(stray)}")
        return self

    @property
    def tuning_seeds(self) -> list[int]:
        """The seeds that strengths are chosen on."""
        return self.tuning.seeds or self.seeds

    def trials(self, chosen: Mapping[tuple[str, str], float] | None = None) -> list[Trial]:
        """The trials that can be named now: of strengths that are still to be chosen, those on tuning seeds alone.

        `chosen` maps (model, intervention) to the strength that was chosen, whose other seeds are then trained, too.
        """
        trials: list[Trial] = []
        for model in self.models:
            trials += [self._trial(model, {"kind": BASE, "strength": 0.0}, seed) for seed in self.seeds]
            for intervention in self.interventions:
                strengths = intervention.strengths
                settled = strengths[0] if len(strengths) == 1 else (chosen or {}).get((model.title, intervention.title))
                for strength in strengths:
                    seeds = self.seeds if strength == settled else self.tuning_seeds
                    trials += [self._trial(model, _described(intervention, strength), seed) for seed in seeds]
        return list({trial.id: trial for trial in trials}.values())

    def _trial(self, model: Model, intervention: dict[str, Any], seed: int) -> Trial:
        own = model.training
        changes = {} if own is None else {name: getattr(own, name) for name in own.model_fields_set}
        network = model.model_dump(exclude={"training"}, exclude_none=True)
        training = self.training.model_copy(update=changes).model_dump()
        over = self.over_training.described()
        return Trial(self.data.model_dump(), network, training, intervention, seed, over, self.logits)


def _described(intervention: Any, strength: float) -> dict[str, Any]:
    return {**intervention.model_dump(exclude={"strengths"}, exclude_none=True), "strength": strength}
