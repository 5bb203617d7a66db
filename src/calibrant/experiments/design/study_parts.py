"""The parts of a study file: data, networks, trainings, interventions, tuning, post-processing; value by value."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from calibrant.experiments.training import datasets, networks
from calibrant.experiments.training.trials import SIZES, title_of
from calibrant.recalibrate.methods import spelled
from calibrant.specification import spelling


class Strict(BaseModel):
    """Values of the right type under known keys, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def known(check: Callable[[str], object]) -> AfterValidator:
    """A word that names something: a data set, a network, a metric, a method, a table or a figure.

    >>> from calibrant.experiments.training import datasets
    >>> known(datasets.check_name).func("digits")
    'digits'
    """

    def checked(name: str) -> str:
        check(name)
        return name

    return AfterValidator(checked)


def different(values: list[Any]) -> list[Any]:
    """Refuse values of which two are one: numbers as they are, words by how they are spelled.

    >>> different([1, 2])
    [1, 2]
    >>> different(["top_k(5)", "top_k( 5 )"])
    Traceback (most recent call last):
    ValueError: must be different, got top_k( 5 ) twice
    """
    plain = [spelling.plain(value) if isinstance(value, str) else value for value in values]
    twice = [value for value, key in zip(values, plain, strict=True) if plain.count(key) > 1]
    if twice:
        raise ValueError(f"must be different, got {twice[-1]} twice")
    return values


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_. -]*$", max_length=60)]
Size = Annotated[int, Field(ge=1, le=10_000)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Strength = Annotated[float, Field(ge=0)]
Strengths = Annotated[list[Strength], Field(min_length=1), AfterValidator(different)]
Seeds = Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(min_length=1), AfterValidator(different)]
ClassName = Annotated[str, BeforeValidator(lambda name: str(name) if type(name) is int else name)]
Metrics = Annotated[list[Annotated[str, known(spelling.metrics)]], AfterValidator(different)]


class Data(Strict):
    """Which rows: a data set, the share of training rows kept for validation (or of test rows), the seed of that split,
    a limit, the share of all rows that is tested on in the place of the published ones."""

    name: Annotated[str, known(datasets.check_name)]
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.1
    seed: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1)] | None = None
    validation_of: Literal["train", "test"] = "train"
    test: Annotated[float, Field(gt=0, lt=1)] | None = None

    def described(self) -> dict[str, Any]:
        """What a trial says of it: nothing of the usual splits, so that trials keep the names that they had."""
        usual = {
            name for name in ("validation_of", "test") if getattr(self, name) == type(self).model_fields[name].default
        }
        return self.model_dump(exclude=usual)


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


class PredictionFile(Strict):
    """A file of predictions, and the names of its arrays or columns where they are not the usual ones."""

    file: str
    label: str | None = None
    probs: str | None = None
    logits: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"file": value} if isinstance(value, str) else value


class GivenPredictions(Strict):
    """What a network that was trained elsewhere answered: test rows, and validation rows that methods are fitted on;
    without these, a share of the test rows, by a seed."""

    test: PredictionFile
    validation: PredictionFile | None = None
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _one_way(self) -> GivenPredictions:
        if self.validation is not None and self.model_fields_set & {"share", "seed"}:
            raise ValueError("validation rows are in their own file: leave out share and seed, which split test rows")
        return self


class GivenWeights(Strict):
    """Weights to begin with: a NPZ file, its SHA-256, and the beginnings of names that are not taken from it."""

    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    without: list[Annotated[str, Field(min_length=1)]] = []


class HyperparameterSweep(Strict):
    """Values of a base's own hyperparameters: every combination is trained."""

    learning_rate: Annotated[list[Positive], AfterValidator(different)] = []
    weight_decay: Annotated[list[Strength], AfterValidator(different)] = []
    batch_size: Annotated[list[Annotated[int, Field(ge=2)]], AfterValidator(different)] = []
    epochs: Annotated[list[Annotated[int, Field(ge=1, le=100_000)]], AfterValidator(different)] = []

    def trainings(self, usual: Training) -> dict[str, Training]:
        """Every combination in words, and the training that it is; the usual one where nothing is swept.

        >>> list(HyperparameterSweep(learning_rate=[0.1, 0.2], epochs=[5]).trainings(Training()))
        ['learning_rate 0.1, epochs 5', 'learning_rate 0.2, epochs 5']
        """
        names = [name for name in type(self).model_fields if getattr(self, name)]
        trainings: dict[str, Training] = {}
        for values in product(*(getattr(self, name) for name in names)):
            changes: dict[str, Any] = dict(zip(names, values, strict=True))
            words = ", ".join(f"{name} {value:g}" for name, value in changes.items())
            steps: dict[str, Any] = {
                name: changes.pop(name) for name in ("learning_rate", "weight_decay") if name in changes
            }
            changes["optimiser"] = usual.optimiser.model_copy(update=steps)
            trainings[words] = usual.model_copy(update=changes)
        return trainings


class Model(Strict):
    """A network: its name and size, how its weights begin, what of the training is different for it, what of it is
    swept, which of the interventions are tried on it (all, unless they are named) and at which of their strengths;
    or any name, and the predictions of one or several trained networks."""

    predictions: Annotated[list[GivenPredictions], Field(min_length=1)] | None = None
    name: Name
    label: Name | None = None
    width: Size | None = None
    depth: Size | None = None
    initialisation: Literal["default", "glorot", "normal"] = "default"
    weights: GivenWeights | None = None
    training: Training | None = None
    sweep: HyperparameterSweep = HyperparameterSweep()
    interventions: dict[Name, Strengths | None] | None = None

    @field_validator("interventions", mode="before")
    @classmethod
    def _names_alone(cls, value: Any) -> Any:
        named = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return dict.fromkeys(different(value)) if named else value

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("predictions", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @field_validator("name", mode="before")
    @classmethod
    def _known_network(cls, name: Any, info: ValidationInfo) -> Any:
        if isinstance(name, str) and "predictions" in info.data and info.data["predictions"] is None:
            networks.check_name(name)
        return name

    @field_validator(*SIZES)
    @classmethod
    def _comes_in_sizes(cls, size: int | None, info: ValidationInfo) -> int | None:
        if size is not None and "name" in info.data:
            networks.check_sizes(info.data["name"], **{str(info.field_name): size})
        return size

    @property
    def title(self) -> str:
        """What tables call it."""
        return title_of(self.model_dump())


class _Intervention(Strict):
    """Something done to the training, at several strengths."""

    name: Name | None = None
    strengths: Strengths

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.name or str(self.kind)  # type: ignore[attr-defined]


class LabelSmoothing(_Intervention):
    """Strength: the share of each label that is spread over all classes."""

    kind: Literal["label_smoothing"]
    strengths: Annotated[list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=1), AfterValidator(different)]


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

    methods: Annotated[list[Annotated[str, known(spelled)]], AfterValidator(different)] = []
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
