"""Recalibrators: maps from scores to better probabilities, learnt once, carried as JSON."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack, final

import numpy as np

from calibrant.checks import word
from calibrant.door import leaks
from calibrant.door.arrays import Array, Layout
from calibrant.door.options import LabelOptions, ScoreOptions, refuse_unknown
from calibrant.exceptions import CalibrationInputError, CalibrationWarning, nearest
from calibrant.kernels.totals import Floats
from calibrant.predictions import Predictions, require_predictions
from calibrant.recalibrate import export, label_wise, saved
from calibrant.recalibrate.fitting.certificate import Certificate, Ending, certified, likeliest
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores, as_lesson, as_scores
from calibrant.recalibrate.fitting.placement import on_host


class Recalibrator(ABC):
    """A map from scores to probabilities, with scikit-learn's manners and no need of it.

    `input` says what scores are, "logits" or "probabilities"; it is never guessed. Scores are 1-D for one event
    (`predict_proba` then gives its probability, 1-D), (n, K) for classes or (n, L) for independent labels. `classes`
    names the columns, if `y` does not hold their indices.

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
    on_device: ClassVar[bool] = False  # whether it learns where the scores are
    of_events: ClassVar[bool] = True
    """Whether it is of use for one event: not where it needs several classes, or a simpler method does as much."""
    costly: ClassVar[bool] = False
    """Whether its cost runs away with rows and classes."""
    later: ClassVar[tuple[str, ...]] = ()
    """What maps of earlier versions lack: options, written where they are not the default, and what is learnt."""
    certificate_: Certificate
    classes_: Any
    maps_: dict[Any, Recalibrator]
    """The map of each independent label, one of an event; empty where it was fitted on something else."""

    @abstractmethod
    def _learn(self, lesson: Lesson) -> Ending:
        """Set what is learnt, and say how the search ended."""

    def _map(self, scores: ModelScores) -> Floats:
        """Probabilities in the shape of the scores; those of `_logits`, where it is not said otherwise."""
        logits = self._logits(scores)
        if logits is None:
            raise NotImplementedError(f"{type(self).__name__} must say what its map is, by _map or _logits")
        return ModelScores(logits, "logits").probabilities

    def _logits(self, scores: ModelScores) -> Array | None:
        """What the map is the softmax of, (n, K), or for one event the sigmoid, (n,); None where there is no such."""
        return None

    @property
    def affine(self) -> tuple[Floats, Floats] | None:
        """W (K, K) and b (K,) where the fitted map is softmax(W z + b), else None; an event has the logits (0, z)."""
        return None

    def _check(self) -> None:
        """Refuse options that cannot be."""
        word(self.input, "input", "logits", "probabilities")

    def require_possible(self) -> None:  # noqa: B027 - methods that learn nothing need none
        """Raise a ValueError where a fit cannot have learnt what is there: a saved map is asked before it is used."""

    def __post_init__(self) -> None:
        self._check()

    @final
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Unpack[LabelOptions]) -> Self:  # noqa: N803
        """Learn the map from scores and true classes that the model was not trained on, or from `Predictions` of both.

        Options are as in `Predictions.from_probs`; weights come with predictions. Independent labels
        (`Predictions.from_multilabel`) are fitted label by label by every method of events; `maps_` has the map of
        each.

        >>> import calibrant as cal
        >>> truth, p = [[1, 1], [0, 1], [1, 0], [0, 0]], [[.9, .8], [.6, .7], [.8, .6], [.7, .4]]
        >>> rows = cal.Predictions.from_multilabel(truth, p, classes=["dog", "outdoors"])
        >>> fitted = cal.PlattScaling("probabilities", smooth_targets=True).fit(rows)
        >>> fitted.predict_proba([[.9, .4]]).round(3).tolist(), round(fitted.maps_["dog"].slope_, 3)
        ([[0.817, 0.191]], 1.488)
        """
        self._check()
        refuse_unknown(options, self.fit)
        options.setdefault("classes", self.classes)
        ending = self.fit_lesson(as_lesson(X, y, input=self.input, sample_weight=sample_weight, **options))
        if not ending.converged or ending.at_bound:
            warnings.warn(f"{type(self).__name__}: {ending.message}", CalibrationWarning, stacklevel=2)
        return self

    @final
    def fit_lesson(self, lesson: Lesson) -> Certificate:
        """Learn the map from what has been checked."""
        lesson = lesson if self.on_device else on_host(lesson)
        if lesson.scores.independent:
            self._learn_labels(lesson)
        else:
            self.maps_ = {}
            self.certificate_ = certified(lesson, self._learn(lesson), self.map_scores, self._map)
        self.remember(lesson.classes, lesson.scores.event, lesson.scores.digest)
        return self.certificate_

    def _learn_labels(self, lesson: Lesson) -> None:
        """Fit a copy on the event of each label, and forget what was learnt before."""
        if not self.of_events:
            hint = "temperature, Platt, beta, isotonic and other methods of events fit label by label"
            expected = "needs classes of which one is true"
            raise CalibrationInputError(type(self).__name__, expected, got="independent labels", hint=hint)
        self.maps_ = label_wise.learnt(lesson, self._of_label)
        self.certificate_ = label_wise.joint([each.certificate_ for each in self.maps_.values()], lesson.classes)
        for name in self.learns:
            vars(self).pop(name, None)

    def _of_label(self, lesson: Lesson) -> Recalibrator:
        fresh = self.copy(classes=None)
        fresh.fit_lesson(lesson)
        return fresh

    @final
    def remember(self, classes: Sequence[Any], event: bool, digest: str) -> None:
        """What the map was fitted on."""
        self.classes_ = np.array(classes)
        self._width = 0 if event else len(classes)
        self.n_features_in_ = self._width or 1
        self._fitted_on = digest

    @final
    def predict_proba(self, X: Any, **options: Unpack[ScoreOptions]) -> Floats:  # noqa: N803
        """Recalibrated probabilities in the shape of the scores: (n, K), (n,) for one event, (n, L) for labels.

        The options are `class_axis`, for maps, and `normalize`, as in `Predictions.from_probs`.
        """
        scores, layout = self._checked(X, options)
        return self._marked(layout.restored(self._probabilities(scores)), scores)

    def _probabilities(self, scores: ModelScores) -> Floats:
        if not self.maps_:
            return self._map(scores)
        return np.column_stack([each._map(part) for each, part in self._by_label(scores)])

    def _by_label(self, scores: ModelScores) -> Iterable[tuple[Recalibrator, ModelScores]]:
        return zip(self.maps_.values(), label_wise.events(scores), strict=True)

    @final
    def predict_log_proba(self, X: Any, **options: Unpack[ScoreOptions]) -> Floats:  # noqa: N803
        """Logarithms of recalibrated probabilities, without rounding those where the map has logits.

        Shapes and options are those of `predict_proba`. These are ln p, no logits; `recalibrate` keeps those. Minus
        infinity where p is 0.

        >>> import calibrant as cal
        >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
        >>> fitted.predict_log_proba([[8000., 0.]]).round(1).tolist()
        [[0.0, -1826.1]]
        """
        scores, layout = self._checked(X, options)
        logs = self.map_scores(scores).log_probabilities
        return self._marked(layout.restored(logs[:, 1] if self.is_event else logs), scores)

    @final
    def log_rows(self, X: Any) -> Floats:  # noqa: N803
        """The same with two columns (not, so) for an event."""
        scores, _ = self._checked(X, {})
        return self._marked(self.map_scores(scores).log_probabilities, scores)

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
        self.require_fitted()
        if ModelScores.of(predictions, self.input).independent != bool(self.maps_):
            expected = f"must be {'independent labels' if self.maps_ else 'of one event or of classes'}, as fitted"
            raise CalibrationInputError("predictions", expected, got=predictions.forecasts.words)
        scores, _ = self._checked(predictions.values, {})
        mapped = self.map_scores(scores)
        return dataclasses.replace(mapped, values=self._marked(mapped.values.view(), scores)).instead(predictions)

    @final
    def map_scores(self, scores: ModelScores) -> ModelScores:
        """What scores that have been checked become: logits where the map has them, else probabilities."""
        if self.maps_:
            return label_wise.stacked([each.map_scores(part) for each, part in self._by_label(scores)])
        logits = self._logits(scores)
        return ModelScores(self._map(scores), "probabilities") if logits is None else ModelScores(logits, "logits")

    def _checked(self, X: Any, options: ScoreOptions) -> tuple[ModelScores, Layout]:  # noqa: N803
        self.require_fitted()
        refuse_unknown(options, self.predict_proba, ScoreOptions.__optional_keys__)
        known = {"input": self.input, "width": self._width, "independent": bool(self.maps_)}
        return as_scores(X, classes=self.classes_.tolist(), **known, **options)  # type: ignore[arg-type]

    def _marked(self, mapped: Array, scores: ModelScores) -> Any:
        """What was made of the scores, marked where the map was fitted on these and learnt from them."""
        if self.learns and scores.digest == self._fitted_on:
            leaks.mark(mapped)
        return mapped

    @final
    def predict(self, X: Any, **options: Unpack[ScoreOptions]) -> Any:  # noqa: N803
        """The likeliest class; ties go to the first. Of labels, 1 where a probability exceeds one half, else 0.

        The options are those of `predict_proba`.
        """
        scores, layout = self._checked(X, options)
        probabilities = self._probabilities(scores)
        if self.maps_:
            return (probabilities > 0.5).astype(np.int64)
        return self.classes_[likeliest(probabilities)].reshape(layout.samples)

    @property
    def is_event(self) -> bool:
        """Whether it was fitted on the scores of one event."""
        return self._width == 0

    def require_fitted(self) -> None:
        """Refuse to go on before `fit`."""
        if not hasattr(self, "certificate_"):
            raise CalibrationInputError(type(self).__name__, "must be fitted first", hint="call fit(X, y)")

    @final
    def require_affine(self) -> tuple[Floats, Floats]:
        """W and b of the fitted map, as `affine` has them; other maps than softmax(W z + b) are refused.

        >>> import calibrant as cal
        >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
        >>> [part.round(4).tolist() for part in fitted.require_affine()]
        [[[0.2283, 0.0], [0.0, 0.2283]], [0.0, 0.0]]
        """
        self.require_fitted()
        parts = None if self.maps_ else self.affine
        if parts is None:
            raise CalibrationInputError(
                "export",
                "needs a map of the form softmax(W z + b)",
                got=f"{type(self).__name__}{' of independent labels' if self.maps_ else ''}",
                hint="every map travels as JSON, by to_json()",
            )
        return parts

    @final
    def to_json(self) -> str:
        """The fitted map as JSON, exact; `from_json` rebuilds it. A class of one's own goes by "module.name"."""
        self.require_fitted()
        return saved.write(
            {
                "method": saved.name_of(type(self)),
                "options": saved.options(self),
                "kind": "labels" if self.maps_ else "classes" if self._width else "event",
                "classes": self.classes_.tolist(),
                **self._contents(),
            }
        )

    def _contents(self) -> dict[str, Any]:
        """What was learnt; of labels, that of each."""
        return {
            "learnt": [each._contents() for each in self.maps_.values()]
            or {name: saved.plain(learnt) for name in self.learns if (learnt := getattr(self, name)) is not None},
            "certificate": self.certificate_.to_dict(),
            "fitted_on": self._fitted_on,
        }

    @final
    def as_torch(self) -> Any:
        """The fitted map as a torch module, for maps of the form softmax(W z + b); type and device are the scores'."""
        return export.as_torch(*self.require_affine(), event=self.is_event, takes_logits=self.input == "logits")

    @final
    def to_onnx(self, path: str | Path) -> None:
        """Write the fitted map as a float32 ONNX model, for maps of the form softmax(W z + b); needs onnx."""
        weight, bias = self.require_affine()
        name, takes_logits = type(self).__name__, self.input == "logits"
        export.to_onnx(path, name, weight, bias, event=self.is_event, takes_logits=takes_logits)

    @classmethod
    def from_json(cls, text: str, pieces: Mapping[str, Any] | None = None) -> Self:
        """A fitted map from its JSON; asked of a method, it must be that method's.

        `pieces` holds classes that are not calibrant's own, under their names, with or without the module's.
        """
        document = saved.read(text)
        method = saved.method(document["method"], pieces or {})
        if not (isinstance(method, type) and issubclass(method, cls)):
            raise CalibrationInputError("text", f"must be the JSON of {cls.__name__}", got=document["method"])
        return saved.rebuilt(method, document)

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
