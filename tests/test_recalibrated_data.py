"""Recalibrated classifiers on the data that people have: frames, texts, groups, weights, routed or not."""

import numpy as np
import pytest

import calibrant as cal

pytest.importorskip("sklearn")

import joblib
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from calibrant.recalibrate.methods import SHORT


def clusters(n=240, per=8):
    """Rows in groups of a few, whose labels are alike; 240 rows, seed 0."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(n // per), per)
    y = (rng.random(n) < 0.2 + 0.6 * (group % 2)).astype(int)
    return rng.normal(size=(n, 2)) + y[:, None], y, group


def frame():
    """A column of numbers, one of words, and labels in words."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = pandas.DataFrame({"age": rng.normal(size=200), "city": rng.choice(list("xyz"), 200)})
    return x, np.where(x["age"] + rng.normal(size=200) > 0, "yes", "no")


def by_name():
    columns = ColumnTransformer([("numbers", StandardScaler(), ["age"]), ("words", OneHotEncoder(), ["city"])])
    return make_pipeline(columns, LogisticRegression())


def test_columns_are_chosen_by_name_as_in_scikit_learns_own_wrapper():
    x, y = frame()
    ours = cal.Recalibrated(by_name(), "sigmoid").fit(x, y)
    theirs = CalibratedClassifierCV(by_name(), method="sigmoid", cv=5, ensemble=False).fit(x, y)
    # 1e-6: scikit-learn's search for slope and intercept ends earlier
    assert ours.predict_proba(x) == pytest.approx(theirs.predict_proba(x), abs=1e-6)
    assert ours.classes_.tolist() == ["no", "yes"]
    assert ours.feature_names_in_.tolist() == ["age", "city"]
    assert np.exp(ours.predict_log_proba(x)) == pytest.approx(ours.predict_proba(x))


def test_texts_are_the_classifiers_matter():
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(["good", "fine", "bad", "awful"], 5)) for _ in range(150)]
    y = [int(text.count("good") + text.count("fine") > 2) for text in texts]
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression())
    ours = cal.Recalibrated(reader, "sigmoid", cv=3).fit(texts, y)
    theirs = CalibratedClassifierCV(reader, method="sigmoid", cv=3, ensemble=False).fit(texts, y)
    assert ours.predict_proba(texts) == pytest.approx(theirs.predict_proba(texts), abs=1e-6)  # as above


class Watched(ClassifierMixin, BaseEstimator):
    """Says of each row whether its group was among those it was trained on; the group is the last column."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.groups_, self.weight_ = np.unique(y), set(X[:, -1]), sample_weight
        return self

    def predict_proba(self, X):
        seen = np.isin(X[:, -1], list(self.groups_))
        return np.column_stack([np.where(seen, 0.9, 0.4), np.where(seen, 0.1, 0.6)])


class Keeping(cal.Identity):
    """An identity that keeps the scores it was fitted on."""

    def fit(self, scores, y=None, **options):
        Keeping.scores = np.asarray(scores).copy()
        Keeping.weight = options.get("sample_weight")
        return super().fit(scores, y, **options)


@pytest.mark.parametrize("cv", [4, GroupKFold(4)], ids=["number", "splitter"])
@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routed"])
def test_rows_of_a_group_are_held_out_together(cv, routing):
    x, y, group = clusters()
    x = np.column_stack([x, group])
    with sklearn.config_context(enable_metadata_routing=routing):
        cal.Recalibrated(Watched(), Keeping(), cv=cv).fit(x, y, groups=group)
    assert (Keeping.scores > 0).all()


def test_without_groups_they_are_not():
    x, y, group = clusters()
    cal.Recalibrated(Watched(), Keeping(), cv=4).fit(np.column_stack([x, group]), y)
    assert (Keeping.scores < 0).any()


def test_weights_reach_what_asks_for_them():
    x, y, _ = clusters()
    weight = np.arange(1.0, len(y) + 1)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = cal.Recalibrated(Watched().set_fit_request(sample_weight=True), Keeping()).fit(
            x, y, sample_weight=weight
        )
        assert asking.estimator_.weight_.tolist() == Keeping.weight.tolist() == weight.tolist()
        silent = cal.Recalibrated(Watched().set_fit_request(sample_weight=False), Keeping())
        assert silent.fit(x, y, sample_weight=weight).estimator_.weight_ is None
        assert Keeping.weight.tolist() == weight.tolist()
        with pytest.raises(TypeError, match="wight"):
            silent.fit(x, y, wight=weight)
    plain = cal.Recalibrated(Watched(), Keeping()).fit(x, y, sample_weight=weight)
    assert plain.estimator_.weight_.tolist() == Keeping.weight.tolist() == weight.tolist()


def test_copies_have_the_weights_of_their_rows():
    x, y, _ = clusters()
    x[:, -1] = weight = np.arange(1.0, len(y) + 1)
    weights = []

    class Weighed(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            weights.append((X[:, -1].tolist(), list(sample_weight)))
            return super().fit(X, y, sample_weight)

    cal.Recalibrated(Weighed(), Keeping(), cv=3).fit(x, y, sample_weight=weight)
    assert [len(rows) for rows, _ in weights] == [160, 160, 160, 240]
    assert all(rows == weight for rows, weight in weights)


def test_a_grid_search_routes_groups_and_weights():
    x, y, group = clusters()
    x, weight = np.column_stack([x, group]), np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        wrapped = cal.Recalibrated(Watched().set_fit_request(sample_weight=True), Keeping(), cv=GroupKFold(3))
        wrapped.set_fit_request(sample_weight=True)
        search = GridSearchCV(
            wrapped,
            {"cv": [GroupKFold(2), GroupKFold(3)]},
            cv=GroupKFold(2),
            scoring=make_scorer(accuracy_score).set_score_request(sample_weight=False),
        )
        search.fit(x, y, groups=group, sample_weight=weight)
    assert (Keeping.scores > 0).all()
    assert search.best_estimator_.estimator_.weight_.tolist() == weight.tolist()


def test_a_pipeline_that_takes_no_weights_is_said_to():
    x, y, _ = clusters()
    with pytest.warns(cal.CalibrationWarning, match="Pipeline.fit takes no sample_weight"):
        cal.Recalibrated(make_pipeline(GaussianNB())).fit(x, y, sample_weight=np.ones(len(y)))
    weight = np.arange(1.0, len(y) + 1)
    named = cal.Recalibrated(make_pipeline(GaussianNB())).fit(x, y, gaussiannb__sample_weight=weight)
    prior = np.bincount(y, weight) / weight.sum()
    assert named.estimator_[-1].class_prior_ == pytest.approx(prior)


def test_jobs_change_nothing():
    x, y, _ = clusters()
    with joblib.parallel_config(backend="threading"):
        ours, shared = (cal.Recalibrated(GaussianNB(), n_jobs=n_jobs).fit(x, y) for n_jobs in (None, 2))
    assert ours.recalibrator_.temperature_ == shared.recalibrator_.temperature_


def test_rows_are_put_back_where_they_were():
    x, y, _ = clusters()
    cal.Recalibrated(GaussianNB(), Keeping(), cv=KFold(4, shuffle=True, random_state=0)).fit(x, y)
    direct = np.empty(len(y))
    for train, test in KFold(4, shuffle=True, random_state=0).split(x):
        p = GaussianNB().fit(x[train], y[train]).predict_proba(x[test])
        direct[test] = np.log(p[:, 1]) - np.log(p[:, 0])
    assert Keeping.scores == pytest.approx(direct)


def test_folds_that_hold_out_rows_twice_are_refused():
    x, y, _ = clusters()
    twice = [(np.arange(100, 240), np.arange(100)), (np.arange(100), np.arange(90, 240))]
    with pytest.raises(cal.CalibrationInputError, match="must hold out every row once, got 10 rows otherwise"):
        cal.Recalibrated(GaussianNB(), cv=twice).fit(x, y)


def test_a_frozen_classifier_is_not_trained_again():
    frozen = pytest.importorskip("sklearn.frozen")
    x, y, _ = clusters()
    base = GaussianNB().fit(x[:120], y[:120])
    wrapped = cal.Recalibrated(frozen.FrozenEstimator(base)).fit(x[120:], y[120:])
    prefit = cal.Recalibrated(base, cv="prefit").fit(x[120:], y[120:])
    assert wrapped.recalibrator_.temperature_ == pytest.approx(prefit.recalibrator_.temperature_, rel=1e-9)


def test_an_unknown_method_is_answered_with_all_that_there_are():
    x, y, _ = clusters()
    with pytest.raises(cal.CalibrationInputError) as caught:
        cal.Recalibrated(GaussianNB(), "nonsense").fit(x, y)
    words = str(caught.value)
    assert all(name in words for name in [*SHORT, "sigmoid"])
    assert "…" not in words


@pytest.mark.parametrize("metric", [cal.ECE, cal.SCE, cal.LOG_LOSS, cal.ACCURACY], ids=lambda metric: metric.name)
def test_scorers_choose_in_a_grid_search_and_stand_beside_others(metric):
    x, y, _ = clusters()
    scorer, grid = cal.Scorer(metric), {"var_smoothing": [1e-9, 0.5]}
    search = GridSearchCV(GaussianNB(), grid, scoring={"ours": scorer, "roc": "roc_auc"}, refit="ours", cv=3).fit(x, y)
    validated = [
        cross_validate(GaussianNB(var_smoothing=width), x, y, scoring={"ours": scorer}, cv=3)["test_ours"].mean()
        for width in grid["var_smoothing"]
    ]
    assert search.cv_results_["mean_test_ours"] == pytest.approx(validated)
    assert search.best_params_["var_smoothing"] == grid["var_smoothing"][int(np.argmax(validated))]


def test_a_scorer_of_brier_is_minus_twice_scikit_learns():
    x, y, _ = clusters()
    scoring = {
        "ours": cal.Scorer(cal.BRIER),
        "theirs": "neg_brier_score",
        "log": "neg_log_loss",
        "own": cal.Scorer(cal.LOG_LOSS),
    }
    scores = cross_validate(GaussianNB(), x, y, scoring=scoring, cv=3)
    assert scores["test_ours"] == pytest.approx(2 * scores["test_theirs"])
    assert scores["test_own"] == pytest.approx(scores["test_log"])
