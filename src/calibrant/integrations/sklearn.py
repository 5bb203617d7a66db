"""Recalibrated: any scikit-learn classifier whose probabilities are recalibrated, cross-fitted."""

from __future__ import annotations

import importlib
from typing import Any

try:
    importlib.import_module("sklearn")
except ModuleNotFoundError as missing:
    raise ImportError(f"Recalibrated needs {missing.name}: pip install 'calibrant[sklearn]'") from None

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data

from calibrant.door import leaks
from calibrant.exceptions import CalibrationInputError
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
    logarithms of `predict_proba`. `method` is a recalibrator or its short name; it is told that scores are logits.
    `recalibrator_` is the fitted method, with its certificate.

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = y[:, None] + rng.normal(size=(500, 1)) @ np.ones((1, 5))  # five times the same column
    >>> fitted = Recalibrated(GaussianNB(), cv=5).fit(X, y)
    >>> bool(fitted.recalibrator_.temperature_ > 4)
    True
    """

    def __init__(self, estimator: Any = None, method: Recalibrator | str | None = None, cv: Any = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Recalibrated:  # noqa: N803
        """Fit the recalibrator on out-of-fold scores, and the classifier on all rows."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None, ensure_all_finite=False)  # noqa: N806
        check_classification_targets(y)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        base = _default() if self.estimator is None else self.estimator
        if isinstance(self.cv, str) and self.cv == "prefit":
            check_is_fitted(base)
            self.estimator_, self.classes_, scores = base, base.classes_, scores_of(base, X)
        else:
            self.classes_ = np.unique(y)
            scores = self._out_of_fold(base, X, y, weight)
            self.estimator_ = _trained(base, X, y, weight)
        method = spelled(self.method) if isinstance(self.method, str) else self.method or TemperatureScaling()
        labels = np.searchsorted(self.classes_, y)
        if (labels >= len(self.classes_)).any() or (self.classes_[labels] != y).any():
            raise CalibrationInputError("y", "must hold classes that the estimator knows", got=repr(np.unique(y)[:5]))
        self.recalibrator_ = method.copy(input="logits", classes=None).fit(scores, labels, sample_weight=weight)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Recalibrated probabilities, a column a class."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, ensure_all_finite=False, reset=False)  # noqa: N806
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
        X = validate_data(self, X, accept_sparse="csr", dtype=None, ensure_all_finite=False, reset=False)  # noqa: N806
        return self.recalibrator_.log_rows(scores_of(self.estimator_, X))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def _out_of_fold(self, base: Any, X: Any, y: Any, weight: Any) -> Floats:  # noqa: N803
        if len(self.classes_) < 2:
            raise CalibrationInputError("y", "must hold at least two classes", got="1 class")
        scores, times = None, np.zeros(len(y), np.int64)
        for train, test in _folds(self.cv, y).split(X, y):
            if len(np.unique(y[train])) < len(self.classes_):
                raise CalibrationInputError(
                    "cv", "must leave rows of every class to train on", got=f"{self.cv} folds", hint="use fewer folds"
                )
            part = scores_of(_trained(base, X[train], y[train], None if weight is None else weight[train]), X[test])
            scores = np.empty((len(y), *part.shape[1:])) if scores is None else scores
            scores[test] = part
            times[test] += 1
        if (times != 1).any():
            raise CalibrationInputError(
                "cv", "must hold out every row once", got=f"{int((times != 1).sum())} rows otherwise", hint="use KFold"
            )
        return scores  # type: ignore[return-value]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = _default() if self.estimator is None else self.estimator
        if hasattr(base, "__sklearn_tags__"):
            tags.input_tags.sparse = base.__sklearn_tags__().input_tags.sparse
            tags.input_tags.allow_nan = base.__sklearn_tags__().input_tags.allow_nan
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


def _folds(cv: Any, y: Any) -> Any:
    return check_cv(cv, y, classifier=True) if not isinstance(cv, int) else StratifiedKFold(cv)


def _trained(base: Any, X: Any, y: Any, weight: Any) -> Any:  # noqa: N803
    fresh = clone(base)
    if weight is not None and has_fit_parameter(fresh, "sample_weight"):
        return fresh.fit(X, y, sample_weight=weight)
    return fresh.fit(X, y)


def _default() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()
