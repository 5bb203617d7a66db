"""Recalibrated classifiers: scikit-learn's own checks, and honest folds."""

import warnings

import numpy as np
import pytest

import calibrant as cal

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

pytestmark = pytest.mark.slow

ARBITRARY = "the check's X is a table of features, which are no scores of the classes in y"
WORDING = "calibrant says what is wrong in one sentence of its own"
NOT_FOR_SCORES = {
    "check_all_zero_sample_weights_error": WORDING,
    "check_classifier_data_not_an_array": ARBITRARY,
    "check_classifiers_classes": ARBITRARY,
    "check_classifiers_regression_target": WORDING,
    "check_classifiers_train": ARBITRARY,
    "check_complex_data": WORDING,
    "check_dict_unchanged": ARBITRARY,
    "check_do_not_raise_errors_in_init_or_set_params": "options that cannot be are refused when they are given",
    "check_dont_overwrite_parameters": ARBITRARY,
    "check_dtype_object": ARBITRARY,
    "check_estimator_sparse_array": ARBITRARY,
    "check_estimators_dtypes": ARBITRARY,
    "check_estimators_empty_data_messages": WORDING,
    "check_estimators_fit_returns_self": ARBITRARY,
    "check_estimators_nan_inf": WORDING,
    "check_estimators_overwrite_params": ARBITRARY,
    "check_estimators_unfitted": WORDING,
    "check_f_contiguous_array_estimator": ARBITRARY,
    "check_fit2d_1feature": ARBITRARY,
    "check_fit2d_1sample": ARBITRARY,
    "check_fit2d_predict1d": ARBITRARY,
    "check_fit_score_takes_y": ARBITRARY,
    "check_methods_sample_order_invariance": ARBITRARY,
    "check_methods_subset_invariance": ARBITRARY,
    "check_n_features_in": ARBITRARY,
    "check_n_features_in_after_fitting": ARBITRARY,
    "check_positive_only_tag_during_fit": ARBITRARY,
    "check_readonly_memmap_input": ARBITRARY,
    "check_requires_y_none": WORDING,
    "check_sample_weights_list": ARBITRARY,
    "check_sample_weights_not_an_array": ARBITRARY,
    "check_sample_weights_not_overwritten": ARBITRARY,
    "check_sample_weights_pandas_series": ARBITRARY,
    "check_sample_weights_shape": ARBITRARY,
    "check_supervised_y_2d": ARBITRARY,
}
"""Checks that a bare recalibrator need not pass, and why."""


def checked(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {check["check_name"]: check for check in check_estimator(estimator, on_fail=None, on_skip=None)}


@pytest.mark.parametrize(
    "method", [None, cal.PlattScaling(), cal.IsotonicCalibration()], ids=["default", "platt", "isotonic"]
)
def test_wrapped_classifiers_pass_all_of_scikit_learns_checks(method):
    failed = {
        name: check["exception"]
        for name, check in checked(cal.Recalibrated(method=method)).items()
        if check["status"] == "failed"
    }
    assert not failed


def test_bare_recalibrators_pass_those_checks_that_make_sense_for_scores():
    checks = checked(cal.TemperatureScaling())
    failed = {name for name, check in checks.items() if check["status"] == "failed"}
    assert failed <= set(NOT_FOR_SCORES)
    passed = {name for name, check in checks.items() if check["status"] == "passed"}
    assert {"check_estimator_cloneable", "check_estimator_repr", "check_get_params_invariance"} <= passed
    assert {"check_set_params", "check_no_attributes_set_in_init"} <= passed


def test_recalibrators_are_cloned():
    copy = clone(cal.TemperatureScaling(objective="ece"))
    assert copy.objective == "ece"
    assert not hasattr(copy, "temperature_")


def drawn(n=600, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    copies = (np.eye(classes)[y] + 0.9 * rng.normal(size=(n, classes)))[:, :, None] @ np.ones((1, 6))
    return copies.reshape(n, -1), y


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(C=1e6)], ids=["naive", "logistic"])
def test_an_over_confident_classifier_is_mended(classes, estimator):
    """A naive classifier counts six copies of each feature; 600 rows, 4,000 others, seeds 0 and 1."""
    x, y = drawn(classes=classes)
    other, truth = drawn(4000, classes, seed=1)
    plain = clone(estimator).fit(x, y)
    wrapped = cal.Recalibrated(estimator, cal.TemperatureScaling(), cv=5).fit(x, y)
    before, after = (
        cal.LOG_LOSS(truth, np.clip(classifier.predict_proba(other), 1e-9, 1)).value for classifier in (plain, wrapped)
    )
    assert after < before + 0.003
    assert wrapped.predict_proba(other).shape == (4000, classes)
    assert wrapped.recalibrator_.certificate_.n == 600
    if isinstance(estimator, GaussianNB):
        assert after < 0.75 * before


def test_a_fitted_classifier_is_taken_as_it_is():
    x, y = drawn()
    names = np.array(["no", "yes"])[y]
    base = GaussianNB().fit(x[:300], names[:300])
    wrapped = cal.Recalibrated(base, cal.PlattScaling(), cv="prefit").fit(x[300:], names[300:])
    assert wrapped.estimator_ is base
    assert wrapped.classes_.tolist() == ["no", "yes"]
    assert set(wrapped.predict(x)) <= {"no", "yes"}
    with pytest.raises(cal.CalibrationInputError, match="must hold classes that the estimator knows"):
        cal.Recalibrated(base, cv="prefit").fit(x[300:], np.array(["no", "maybe"])[y[300:]])


def test_scores_of_every_row_come_from_the_other_folds():
    seen = []

    class Watched(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            self.rows_ = {row.tobytes() for row in X}
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            seen.append(any(row.tobytes() in self.rows_ for row in X))
            return super().predict_proba(X)

    x, y = drawn(100)
    cal.Recalibrated(Watched(), cv=4).fit(x, y)
    assert seen == [False] * 4


def test_too_many_folds_for_a_rare_class_are_refused():
    x, y = drawn(40)
    y[:] = 0
    y[0] = 1
    wrapped = cal.Recalibrated(GaussianNB(), cv=5)
    with pytest.warns(UserWarning, match="least populated"), pytest.raises(cal.CalibrationInputError, match="fewer"):
        wrapped.fit(x, y)
