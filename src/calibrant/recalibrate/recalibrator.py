"""Recalibrators: maps from scores to better probabilities, learnt once, carried as JSON."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np

from calibrant.checks import word
from calibrant.door import leaks
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError, CalibrationWarning, nearest
from calibrant.kernels.numpy import BLOCK
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions, require_predictions
from calibrant.recalibrate import saved
from calibrant.recalibrate.fitting.certificate import Certificate, Ending
from calibrant.recalibrate.fitting.scores import Lesson, Scores, lesson, scores


class Recalibrator(ABC):
    """A map from scores to probabilities, with scikit-learn's manners and no need of it.

    `input` says what scores are, "logits" or "probabilities"; it is never guessed. Scores are 1-D for one event
    (`predict_proba` then gives its probability, 1-D) or (n, K) for classes. `classes` names the columns, if `y` does
    not hold their indices.

    Subclasses are dataclasses of their options; they say what they learn (`learns`), how (`_learn`), and what the
    map is: its logits (`_logits`) or, where it is no softmax, its probabilities (`_map`). What else is to be known of
    them they declare: `short`, `of_events`, `costly`, `affine`.

    >>> import calibrant as cal
    >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
    >>> fitted.predict([[1., 0.]]), cal.recalibrate.from_json(fitted.to_json()).temperature_ == fitted.temperature_
    (array([0]), True)
    """

    input: str
    classes: Sequence[Any] | None
    learns: ClassVar[tuple[str, ...]]
    """Names of what `fit` sets: numbers and arrays of numbers."""
    short: ClassVar[str] = ""
    """The name that people type."""
    of_events: ClassVar[bool] = True
    """Whether it is of use for one event: not where it needs several classes, or a simpler method does as much."""
    costly: ClassVar[bool] = False
    """Whether its cost runs away with rows and classes."""
    certificate_: Certificate
    classes_: Any

    @abstractmethod
    def _learn(self, given: Lesson) -> Ending:
        """Set what is learnt, and say how the search ended."""

    def _map(self, given: Scores) -> Floats:
        """Probabilities in the shape of the scores; those of `_logits`, where it is not said otherwise."""
        logits = self._logits(given)
        if logits is None:
            raise NotImplementedError(f"{type(self).__name__} must say what its map is, by _map or _logits")
        return Scores(logits, "logits").probabilities

    def _logits(self, given: Scores) -> Array | None:
        """What the map is the softmax of, (n, K), or for one event the sigmoid, (n,); None where there is no such."""
        return None

    @property
    def affine(self) -> tuple[Floats, Floats] | None:
        """W (K, K) and b (K,) where the fitted map is softmax(W z + b), else None; an event has the logits (0, z)."""
        return None

    def _check(self) -> None:
        """Refuse options that cannot be."""
        word(self.input, "input", "logits", "probabilities")

    def __post_init__(self) -> None:
        self._check()

    @final
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn the map from scores and true classes that the model was not trained on."""
        self._check()
        given = lesson(X, y, input=self.input, classes=self.classes, sample_weight=sample_weight)
        ending = self.fit_lesson(given)
        if not ending.converged or ending.at_bound:
            warnings.warn(f"{type(self).__name__}: {ending.message}", CalibrationWarning, stacklevel=2)
        return self

    @final
    def fit_lesson(self, given: Lesson) -> Certificate:
        """Learn the map from what has been checked."""
        ending = self._learn(given)
        self.certificate_ = ending if isinstance(ending, Certificate) else certified(given, self, ending)
        self.classes_ = np.array(given.classes)
        self._width = 0 if given.scores.event else given.width
        self.n_features_in_ = self._width or 1
        self._fitted_on = given.scores.digest
        return self.certificate_

    @final
    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Recalibrated probabilities: (n, K), or (n,) for one event."""
        given = self._checked(X)
        return self._marked(self._map(given), given)

    @final
    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Logarithms of recalibrated probabilities, without rounding those where the map has logits.

        (n, K), or (n,) for one event: ln p, which is no logit; `recalibrate` keeps those. Minus infinity where p is 0.

        >>> import calibrant as cal
        >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
        >>> fitted.predict_log_proba([[8000., 0.]]).round(1).tolist()
        [[0.0, -1826.1]]
        """
        logs = self.log_rows(X)
        return logs[:, 1] if self.is_event else logs

    @final
    def log_rows(self, X: Any) -> Floats:  # noqa: N803
        """The same with two columns (not, so) for an event."""
        given = self._checked(X)
        return self._marked(self.map_scores(given).log_probabilities, given)

    @final
    def recalibrate(self, predictions: Predictions) -> Predictions:
        """The same samples with recalibrated forecasts, ready to be measured.

        They are logits where the map has them, so that log losses are exact, and probabilities otherwise.

        >>> import calibrant as cal
        >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
        >>> fitted.recalibrate(cal.Predictions.from_logits([0, 1], [[4., 0.], [0., 3.]], classes=["cat", "dog"]))
        Predictions(n=2, 2 classes, logits)
        """
        require_predictions(predictions)
        kind = Scores.of(predictions).input
        if kind != self.input:
            raise CalibrationInputError("predictions", f"must hold {self.input}, as the map was fitted on", got=kind)
        given = self._checked(predictions.values)
        mapped = self.map_scores(given)
        values = self._marked(mapped.values.view(), given)
        checked = Scores(values, mapped.input).predictions(np.zeros(len(values), np.int64))
        return dataclasses.replace(
            predictions,
            values=checked.values,
            logits=checked.logits,
            precision=checked.precision,
            flags={**predictions.flags, **checked.flags},
        )

    @final
    def map_scores(self, given: Scores) -> Scores:
        """What scores that have been checked become: logits where the map has them, else probabilities."""
        logits = self._logits(given)
        return Scores(self._map(given), "probabilities") if logits is None else Scores(logits, "logits")

    def _checked(self, X: Any) -> Scores:  # noqa: N803
        self.require_fitted()
        return scores(X, input=self.input, width=self._width)

    def _marked(self, made: Array, given: Scores) -> Any:
        """What was made of the scores, marked where the map was fitted on these."""
        if given.digest == self._fitted_on:
            leaks.mark(made)
        return made

    @final
    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class; ties go to the first."""
        return self.classes_[likeliest(self.predict_proba(X))]

    @property
    def is_event(self) -> bool:
        """Whether it was fitted on the scores of one event."""
        return self._width == 0

    def require_fitted(self) -> None:
        """Refuse to go on before `fit`."""
        if not hasattr(self, "certificate_"):
            raise CalibrationInputError(type(self).__name__, "must be fitted first", hint="call fit(X, y)")

    @final
    def to_json(self) -> str:
        """The fitted map as JSON, exact; `from_json` rebuilds it. A class of one's own goes by "module.name"."""
        self.require_fitted()
        return saved.write(
            {
                "method": saved.name_of(type(self)),
                "options": {name: saved.option(value) for name, value in self.get_params().items()},
                "kind": "classes" if self._width else "event",
                "classes": self.classes_.tolist(),
                "learnt": {name: saved.plain(getattr(self, name)) for name in self.learns},
                "certificate": self.certificate_.to_dict(),
                "fitted_on": self._fitted_on,
            }
        )

    @final
    def as_torch(self) -> Any:
        """The fitted map as a torch module, for maps of the form softmax(W z + b)."""
        from calibrant.recalibrate.export import as_torch

        return as_torch(self)

    @final
    def to_onnx(self, path: str | Path) -> None:
        """Write the fitted map as an ONNX model, for maps of the form softmax(W z + b); needs the package onnx."""
        from calibrant.recalibrate.export import to_onnx

        to_onnx(self, path)

    @classmethod
    def from_json(cls, text: str, pieces: Mapping[str, Any] | None = None) -> Self:
        """A fitted map from its JSON; asked of a method, it must be that method's.

        `pieces` holds classes that are not calibrant's own, under their names, with or without the module's.
        """
        made = saved.read(text)
        method = saved.method(made["method"], pieces or {})
        if not (isinstance(method, type) and issubclass(method, cls)):
            raise CalibrationInputError("text", f"must be the JSON of {cls.__name__}", got=made["method"])
        return saved.rebuilt(method, made)

    @final
    def copy(self, **options: Any) -> Self:
        """The same method, not fitted, with some options changed."""
        return type(self)(**{**self.get_params(), **options})

    @final
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @final
    def set_params(self, **options: Any) -> Self:
        """Change options by name; `fit` checks them."""
        known = self.get_params()
        for name, value in options.items():
            if name not in known:
                raise CalibrationInputError(name, f"is no option of {type(self).__name__}", hint=nearest(name, known))
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(one_d_array=True),
        )


def certified(given: Lesson, fitted: Recalibrator, ending: Ending) -> Certificate:
    """What a map did on the rows it was fitted on, block by block."""
    step = max(1, BLOCK // given.width)
    losses, right = np.empty((2, 2, len(given.labels)))
    for start in range(0, len(given.labels), step):
        rows = slice(start, start + step)
        part = given[rows]
        for index, each in enumerate((part.scores, fitted.map_scores(part.scores))):
            losses[index, rows] = each.log_losses(part.labels)
        for index, made in enumerate((part.scores.probabilities, fitted._map(part.scores))):
            right[index, rows] = likeliest(made) == part.labels
    return Certificate(
        **vars(ending),
        n=len(given.labels),
        log_loss_before=given.mean_loss(losses[0]),
        log_loss_after=given.mean_loss(losses[1]),
        accuracy_before=given.mean(right[0]),
        accuracy_after=given.mean(right[1]),
    )


def likeliest(probabilities: Floats) -> Ints:
    """The likeliest class of each row; ties go to the first.

    >>> likeliest(np.array([0.9, 0.5])).tolist()
    [1, 0]
    """
    return (probabilities > 0.5).astype(np.int64) if probabilities.ndim == 1 else probabilities.argmax(axis=1)
