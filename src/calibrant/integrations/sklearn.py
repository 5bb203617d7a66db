"""Recalibrated: any scikit-learn classifier whose probabilities are recalibrated, cross-fitted."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

try:
    importlib.import_module("sklearn")
except ModuleNotFoundError as missing:
    raise ImportError(f"Recalibrated needs {missing.name}: pip install 'calibrant[sklearn]'") from None

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from calibrant.door import leaks
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.lessons import FLOOR
from calibrant.recalibrate.methods import spelled
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import TemperatureScaling


class Recalibrated(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are recalibrated on rows it was not trained on.

    With a number of folds (or a splitter) as `cv`, the classifier's scores of every row come from a copy trained on the
    other folds; `method` is fitted on them, and the classifier on all rows. With `cv="prefit"` the classifier is taken
    as it is, and `fit` gets rows that it has not seen.

    Scores are the classifier's `decision_function` where it gives one per class (or one for two classes), else the
    logarithms of `predict_proba`. `method` is a recalibrator or its short name, such as "temperature", "isotonic" or
    "sigmoid"; it is told that scores are logits. `recalibrator_` is the fitted method, with its certificate.

    X is passed on as it is: data frames with named columns and lists of texts are the classifier's matter. `n_jobs`
    processes train the copies. With `groups` in `fit`, rows of one group are held out together. Under scikit-learn's
    metadata routing, `sample_weight` and all else reach what asked for them; `groups` reach the splitter.

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = y[:, None] + rng.normal(size=(500, 1)) @ np.ones((1, 5))  # five times the same column
    >>> fitted = Recalibrated(GaussianNB(), cv=5).fit(X, y)
    >>> bool(fitted.recalibrator_.temperature_ > 4)
    True
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    def __init__(
        self, estimator: Any = None, method: Recalibrator | str | None = None, cv: Any = 5, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **params: Any) -> Recalibrated:  # noqa: N803
        """Fit the recalibrator on out-of-fold scores, and the classifier on all rows.

        Other `params` are for the classifier's `fit`.
        """
        check_classification_targets(y)
        X, y = indexable(X, column_or_1d(y, warn=True))  # noqa: N806
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, y)
        base = self._base()
        if isinstance(self.cv, str) and self.cv == "prefit":
            check_is_fitted(base)
            self.estimator_, scores = base, scores_of(base, X)
        else:
            routed = self._routed(base, {"sample_weight": weight, "groups": groups, **params})
            scores = self._out_of_fold(base, X, y, *routed)
            self.estimator_ = clone(base).fit(X, y, **routed[0])
        self.classes_ = np.asarray(self.estimator_.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        method = spelled(self.method) if isinstance(self.method, str) else self.method or TemperatureScaling()
        labels = np.searchsorted(self.classes_, y)
        if (labels >= len(self.classes_)).any() or (self.classes_[labels] != y).any():
            raise CalibrationInputError("y", "must hold classes that the estimator knows", got=repr(np.unique(y)[:5]))
        self.recalibrator_ = method.copy(input="logits", classes=None).fit(scores, labels, sample_weight=weight)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Recalibrated probabilities, a column a class."""
        check_is_fitted(self)
        probabilities = self.recalibrator_.predict_proba(scores_of(self.estimator_, X))
        if probabilities.ndim == 2:
            return probabilities
        both = np.column_stack([1.0 - probabilities, probabilities])
        if leaks.is_marked(probabilities):
            leaks.mark(both)
        return both

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Their logarithms, without rounding the probabilities where the method's map has logits."""
        check_is_fitted(self)
        return self.recalibrator_.log_rows(scores_of(self.estimator_, X))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def get_metadata_routing(self) -> Any:
        """Where scikit-learn sends what is passed to `fit`: to the classifier's `fit` and to the splitter."""
        to_fit, to_split = (MethodMapping().add(caller="fit", callee=callee) for callee in ("fit", "split"))
        splitter = StratifiedGroupKFold(self.cv) if isinstance(self.cv, int) else self.cv
        router = MetadataRouter(owner=self).add_self_request(self).add(estimator=self._base(), method_mapping=to_fit)
        return router.add(splitter=splitter, method_mapping=to_split) if hasattr(splitter, "split") else router

    def _base(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression() if self.estimator is None else self.estimator

    def _routed(self, base: Any, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the classifier's `fit`, and what to the splitter."""
        present = {name: value for name, value in params.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **present)
            return routed["estimator"]["fit"], routed["splitter"]["split"] if "splitter" in routed else {}
        groups = {"groups": present.pop("groups")} if "groups" in present else {}
        if "sample_weight" in present and not has_fit_parameter(base, "sample_weight"):
            del present["sample_weight"]
            warnings.warn(
                f"{type(base).__name__}.fit takes no sample_weight: only the recalibration is weighted",
                CalibrationWarning,
                stacklevel=3,
            )
        return present, groups

    def _out_of_fold(self, base: Any, X: Any, y: Any, params: dict[str, Any], split: dict[str, Any]) -> Floats:  # noqa: N803
        if (count := len(np.unique(y))) < 2:
            raise CalibrationInputError("y", "must hold at least two classes", got="1 class")
        folds = list(_splitter(self.cv, y, split).split(X, y, **split))
        if any(len(np.unique(y[train])) < count for train, _ in folds):
            raise CalibrationInputError(
                "cv", "must leave rows of every class to train on", got=f"{self.cv} folds", hint="use fewer folds"
            )
        tests = np.concatenate([test for _, test in folds])
        wrong = int((np.bincount(tests, minlength=len(y)) != 1).sum())
        if wrong:
            raise CalibrationInputError(
                "cv", "must hold out every row once", got=f"{wrong} rows otherwise", hint="use KFold"
            )
        parts = Parallel(n_jobs=self.n_jobs)(delayed(_held_out)(clone(base), X, y, *fold, params) for fold in folds)
        scores = np.concatenate(parts)
        return scores[np.argsort(tests)]

    def __sklearn_tags__(self) -> Any:
        tags, base = super().__sklearn_tags__(), self._base()
        if hasattr(base, "__sklearn_tags__"):
            tags.input_tags = base.__sklearn_tags__().input_tags
        return tags


def scores_of(estimator: Any, X: Any) -> Floats:  # noqa: N803
    """A fitted classifier's scores as logits: (n,) for two classes, (n, K) for more."""
    classes = len(estimator.classes_)
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), np.float64)
        if scores.ndim == 1 or scores.shape[1] == classes:
            return scores
    p = np.maximum(np.asarray(estimator.predict_proba(X), np.float64), FLOOR)
    return np.log(p[:, 1]) - np.log(p[:, 0]) if classes == 2 else np.log(p)


def _splitter(cv: Any, y: Any, split: Mapping[str, Any]) -> Any:
    """What makes the folds; where only their number is known, they are stratified, and groups stay together."""
    if not isinstance(cv, int):
        return check_cv(cv, y, classifier=True)
    return StratifiedGroupKFold(cv) if "groups" in split else StratifiedKFold(cv)


def _held_out(fresh: Any, X: Any, y: Any, train: Any, test: Any, params: dict[str, Any]) -> Floats:  # noqa: N803
    """The scores of the rows of one fold by a copy that is trained on the others."""
    rows, labels = _safe_split(fresh, X, y, train)
    trained = fresh.fit(rows, labels, **_check_method_params(X, params, train))
    return scores_of(trained, _safe_split(fresh, X, y, test, train)[0])
