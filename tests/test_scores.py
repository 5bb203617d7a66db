"""Scores against plain loops: logarithms of logits in 60 digits, squares in whole units; and what changes no bit."""

import dataclasses
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import diagnostics, kernels
from calibrant.kernels import numpy as plain
from calibrant.recalibrate.choice import gain_of_choosing

K = 5
SCALAR = {
    cal.TopLabel(): lambda order: [order[:1]],
    cal.Ranked(2): lambda order: [order[1:2]],
    cal.OneClass(3): lambda order: [[3]],
    cal.InTopK(1): lambda order: [order[:1]],
    cal.InTopK(3): lambda order: [order[:3]],
    cal.Classwise(): lambda order: [[c] for c in range(K)],
    cal.Flat(): lambda order: [[c] for c in range(K)],
}
VECTOR = {
    cal.Full(): lambda order: [[c] for c in range(K)],
    cal.TopK(1): lambda order: [order[:1], order[1:]],
    cal.TopK(3): lambda order: [*([c] for c in order[:3]), order[3:]],
    cal.Groups({"a": [0, 4], "b": [1], "c": [2, 3]}): lambda order: [[0, 4], [1], [2, 3]],
}
LENSES = [*SCALAR, *VECTOR]


def surprise(row, members):
    """-log P(S) of a set S of classes, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        odds = [(Decimal(z) - Decimal(max(row))).exp() for z in row]
        return Fraction((sum(odds) / sum(odds[c] for c in members)).ln())


def parts(lens, row):
    """The sets of classes that a lens asks about."""
    order = sorted(range(K), key=lambda c: (-row[c], c))
    return (SCALAR.get(lens) or VECTOR[lens])(order)


def expected_scores(lens, row, truth):
    """The log scores of one row, one a question; `truth` is the mass of each class."""
    sums = []
    for members in parts(lens, row):
        opposite = [c for c in range(K) if c not in members] if lens in SCALAR else []
        masses = [(some, sum(Fraction(truth[c]) for c in some)) for some in (members, opposite)]
        sums.append(sum(mass * surprise(row, some) for some, mass in masses if mass))
    return sums if lens in SCALAR else [sum(sums)]


def close(found, wanted):
    """To a few roundings of the value; where that is tiny, to far less than a unit of exact totals."""
    return abs(found - float(wanted)) <= 2e-15 * float(wanted) + 1e-18


@st.composite
def logits(draw, most=4):
    """Rows of five logits: ordinary ones, large ones, far apart or tied."""
    scale = draw(st.sampled_from([3.0, 40.0, 700.0, 1e4]))
    shift = draw(st.sampled_from([0.0, -scale, 1e4]))
    entry = st.floats(-scale, scale) | st.sampled_from([0.0, scale, -scale])
    n = draw(st.integers(1, most))
    rows = np.array([[draw(entry) for _ in range(K)] for _ in range(n)]) + shift
    return rows.astype(draw(st.sampled_from([np.float64, np.float32])))


def scored(lens, predictions, score=cal.log_score):
    """Scores, one row a sample."""
    return score(lens(predictions)).reshape(len(predictions), -1)


@pytest.mark.slow
@pytest.mark.parametrize("lens", LENSES, ids=str)
@given(z=logits(), first=st.integers(0, K - 1))
def test_log_scores_of_logits_are_right_where_probabilities_round(lens, z, first):
    labels = (first + np.arange(len(z))) % K
    scores = scored(lens, cal.Predictions.from_logits(labels, z))
    for row, truth, found in zip(z.tolist(), np.eye(K)[labels].tolist(), scores, strict=True):
        assert all(map(close, found, expected_scores(lens, row, truth)))


@pytest.mark.slow
@pytest.mark.parametrize("lens", LENSES, ids=str)
@given(z=logits(most=1), cuts=st.lists(st.integers(0, 8), min_size=K - 1, max_size=K - 1).map(sorted))
def test_soft_labels_share_out_the_log_scores_of_logits(lens, z, cuts):
    truth = np.diff([0, *cuts, 8]) / 8  # eighths add exactly
    hard = cal.Predictions.from_logits([0], z)
    (found,) = scored(lens, dataclasses.replace(hard, labels=None, soft=truth[None]))
    assert all(map(close, found, expected_scores(lens, z[0].tolist(), truth.tolist())))


@pytest.mark.slow
@pytest.mark.parametrize("lens", LENSES, ids=str)
@given(z=logits(most=1))
def test_entropies_of_logits_are_right_where_probabilities_round(lens, z):
    row = z[0].tolist()
    (found,) = scored(lens, cal.Predictions.from_logits([0], z), cal.entropy)
    wanted = []
    for members in parts(lens, row):
        sides = [members, [c for c in range(K) if c not in members]] if lens in SCALAR else [members]
        surprises = [Decimal(one.numerator) / one.denominator for one in (surprise(row, side) for side in sides)]
        wanted.append(sum(one * (-one).exp() for one in surprises))
    assert all(map(close, found, wanted if lens in SCALAR else [sum(wanted)]))


@given(z=st.floats(-1e4, 1e4), happened=st.booleans())
def test_an_event_is_scored_by_its_logit(z, happened):
    event = cal.Predictions.from_logits([int(happened)], [z])
    wanted = surprise([0.0, z], [int(happened)])
    for lens in (cal.TopLabel(), cal.Full()):
        assert close(scored(lens, event)[0, 0], wanted)
    assert close(scored(cal.Full(), cal.Predictions.from_logits([int(happened)], [[0.0, z]]))[0, 0], wanted)


def test_one_saturated_row_makes_no_data_set_infinite():
    assert cal.LOG_LOSS(cal.Predictions.from_logits([0], [36.0])).value == pytest.approx(36, rel=1e-15)
    assert cal.LOG_LOSS(cal.Predictions.from_logits([0], [800.0])).value == 800
    assert cal.LOG_LOSS(cal.Predictions.from_logits([0, 1], [[0.0, 800.0], [0.0, 800.0]])).value == 400
    assert cal.LOG_LOSS([1], [0.0]).value == np.inf
    assert cal.LOG_LOSS([0], [[0.0, 1.0]]).value == np.inf


def test_scores_that_cannot_be_added_exactly_are_refused():
    assert cal.LOG_LOSS(cal.Predictions.from_logits([0, 0], [[0.0, 1e12], [0.0, 1.0]])).value == pytest.approx(5e11)
    with pytest.raises(cal.CalibrationInputError, match=r"sum: must stay below 2\^99, got about 2\^133"):
        cal.LOG_LOSS(cal.Predictions.from_logits([0], [[0.0, 1e40]]))
    assert cal.LOG_LOSS(cal.Predictions.from_logits([0], [[-1e308, 1e308]])).value == np.inf  # 2e308 is no float


@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([2, 3, 10, 1000]), spread=st.sampled_from([0.01, 0.1, 1.0]))
def test_log_probabilities_score_what_they_are(seed, k, spread):
    rng = np.random.default_rng(seed)
    p = np.maximum(rng.dirichlet(np.full(k, spread)), 1e-300)
    z = np.log(p / p.sum())
    labels = np.arange(k)
    scores = cal.log_score(cal.Full()(cal.Predictions.from_logits(labels, np.tile(z, (k, 1)))))[:, 0]
    assert (np.abs(scores + z) <= 8 * np.spacing(np.maximum(1.0, -z))).all()


@pytest.mark.parametrize("lens", LENSES, ids=str)
def test_lenses_around_lenses_keep_the_logits(lens):
    z = np.random.default_rng(0).normal(0, 300, (40, K))
    predictions = cal.Predictions.from_logits(np.arange(40) % K, z)
    expected = cal.log_score(lens(predictions))
    assert np.isfinite(expected).all()
    around = [cal.ByLabel(lens), cal.ByPrediction(lens), cal.ByLabel(cal.ByPrediction(lens))]
    if lens in SCALAR:
        around += [cal.Between(lens, 0.5, 1), cal.Above(lens, 0.01), cal.ByLabel(cal.Above(lens, 0.01))]
    for outer in around:
        view = pickle.loads(pickle.dumps(outer(predictions)))
        assert np.array_equal(cal.log_score(view), expected)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 7, 8, 9, 130, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_scores_of_a_row_depend_on_nothing_but_the_row(monkeypatch, k, dtype):
    rng = np.random.default_rng(k)
    z, labels = rng.normal(0, 20, (23, k)).astype(dtype), rng.integers(0, k, 23)
    lenses = [cal.Full(), cal.TopLabel(), cal.InTopK(2), cal.Classwise(), cal.TopK(2)]
    lenses.append(cal.Groups({"even": list(range(0, k, 2)), "odd": list(range(1, k, 2))}))
    whole = cal.Predictions.from_logits(labels, z)
    turned = cal.Predictions.from_logits(labels, np.asfortranarray(z))
    for score in (cal.log_score, cal.entropy):
        expected = [scored(lens, whole, score) for lens in lenses]
        for block in (1, 3 * k, 1 << 18):
            monkeypatch.setattr(plain, "BLOCK", block)
            for lens, all_rows in zip(lenses, expected, strict=True):
                assert np.array_equal(scored(lens, turned, score), all_rows)
                for rows in (slice(5, 6), slice(None, None, -1), slice(1, None, 3), rng.permutation(23)):
                    assert np.array_equal(scored(lens, whole[rows], score), all_rows[rows])


@given(z=logits(most=12), seed=st.integers(0, 2**32 - 1))
def test_no_order_batch_or_weight_changes_a_bit_of_the_log_loss_of_logits(z, seed):
    rng = np.random.default_rng(seed)
    labels, times = rng.integers(0, K, len(z)), rng.integers(1, 4, len(z))
    order = rng.permutation(np.repeat(np.arange(len(z)), times))
    weighted = cal.LOG_LOSS(cal.Predictions.from_logits(labels, z, sample_weight=times)).value
    repeated = cal.Predictions.from_logits(labels[order], z[order])
    batches = [repeated[:3], repeated[3:4], repeated[4:]]
    assert cal.LOG_LOSS(repeated).value == weighted
    assert cal.LOG_LOSS.conclude(sum(map(cal.LOG_LOSS.summarise, batches))).value == weighted


def test_intervals_and_choices_of_logits_are_finite():
    z = np.array([[0.0, 900.0], [3.0, 0.0], [0.0, 2.0], [900.0, 0.0]] * 5)
    predictions = cal.Predictions.from_logits([0, 0, 1, 0] * 5, z)
    interval = cal.LOG_LOSS(predictions, interval=cal.Bootstrap(50, seed=0)).interval
    assert np.isfinite([interval.low, interval.high]).all()
    halved = dataclasses.replace(predictions, forecasts=dataclasses.replace(predictions.forecasts, values=z / 2))
    assert np.isfinite(gain_of_choosing({"unchanged": predictions, "halved": halved}, np.arange(20) % 5).value)


def test_certain_events_are_ranked_by_their_logits():
    event = cal.Predictions.from_logits([1, 0, 1, 1], [90.0, 40.0, 60.0, -50.0])
    assert diagnostics.risk_coverage(event, cal.entropy).risk.tolist() == pytest.approx([0, 0, 1 / 3, 1 / 2])


def brier(outputs, truth):
    """Squares rounded to whole units of 2^-52 and added as integers."""
    units = 0
    for output, mass in zip(outputs, truth, strict=True):
        gap = float(output) - float(mass)
        units += round(Fraction(gap * gap) * 2**52)
    return float(Fraction(units, 2**52))


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 40), dtype=st.sampled_from([np.float16, np.float32, float]))
def test_brier_scores_are_whole_units(seed, k, dtype):
    rng = np.random.default_rng(seed)
    p, soft = rng.dirichlet(np.full(k, 0.3), (2, 5))
    p = p.astype(dtype)
    labels = rng.integers(0, k, 5)
    for y, truth in ((labels, np.eye(k)[labels]), (soft, soft)):
        predictions = cal.Predictions.from_probs(y, p)
        found = cal.brier_score(cal.Full()(predictions))[:, 0]
        assert found.tolist() == [brier(*pair) for pair in zip(p, truth, strict=True)]
        each = cal.brier_score(cal.Classwise()(predictions))
        assert each.tolist() == [
            [brier([a], [b]) for a, b in zip(*pair, strict=True)] for pair in zip(p, truth, strict=True)
        ]


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 40))
def test_the_order_of_classes_changes_no_bit_of_the_brier_score(seed, k):
    rng = np.random.default_rng(seed)
    p, soft = rng.dirichlet(np.full(k, 0.3), (2, 9))
    order = rng.permutation(k)
    labels = rng.integers(0, k, 9)
    assert cal.BRIER(np.argsort(order)[labels], p[:, order]).value == cal.BRIER(labels, p).value
    assert cal.BRIER(soft[:, order], p[:, order]).value == cal.BRIER(soft, p).value


def test_brier_scores_of_blocks_are_those_of_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(9), 50)[:, None, :], rng.integers(-1, 9, 50)
    expected = kernels.brier(p, labels)
    monkeypatch.setattr(plain, "BLOCK", 20)
    assert np.array_equal(kernels.brier(p, labels), expected)


@pytest.mark.parametrize("k", [2, 3, 70, 200])
def test_scores_of_logits_need_no_matrix_of_probabilities(k, monkeypatch):
    rng = np.random.default_rng(k)
    z, labels = rng.normal(0, 3, (50, k)).astype(np.float32), rng.integers(0, k, 50)
    p = np.exp(z.astype(float)) / np.exp(z.astype(float)).sum(axis=1, keepdims=True)
    truth = np.eye(k)[labels]
    predictions = cal.Predictions.from_logits(labels, z)
    full = cal.brier_score(cal.Full()(predictions))[:, 0]
    assert np.abs(full - np.square(p - truth).sum(axis=1)).max() < 1e-12
    monkeypatch.setattr("calibrant.kernels.softmax", None, raising=False)  # who asks for the matrix fails
    assert cal.BRIER(predictions).value == pytest.approx(full.mean(), rel=1e-14)
    assert cal.LOG_LOSS(predictions).value == pytest.approx(-np.log(p[truth > 0]).mean(), rel=1e-12)
    weighted = cal.Predictions.from_logits(labels, z, sample_weight=np.full(50, 2.0))
    assert cal.BRIER(weighted).value == cal.BRIER(predictions).value


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("classes", [1, 5])
def test_whole_weights_are_repetition_in_the_log_loss_of_any_kernel(backend, classes):
    if backend == "native" and kernels.compiled.library() is None:
        pytest.skip("no compiled kernels")
    rng = np.random.default_rng(classes)
    for n in (1, 7, 8, 9, 40):
        p, labels, times = (
            rng.dirichlet(np.ones(classes + 1), n),
            rng.integers(0, classes + 1, n),
            rng.integers(1, 4, n),
        )
        p = p[:, 0] if classes == 1 else p
        with kernels.using(backend):
            weighted = cal.LOG_LOSS(labels, p, sample_weight=times).value
            assert weighted == cal.LOG_LOSS(np.repeat(labels, times), np.repeat(p, times, axis=0)).value


def test_brier_of_two_classes_says_that_it_is_twice_scikit_learns():
    scores = pytest.importorskip("sklearn.metrics")
    y, p = [0, 1, 1], np.array([0.2, 0.6, 0.9])
    both = np.column_stack([1 - p, p])
    result = cal.BRIER(y, both)
    assert result.value == pytest.approx(2 * scores.brier_score_loss(y, p))
    assert result.value == pytest.approx(2 * cal.BRIER(y, p).value)
    (note,) = result.notes
    assert note == "of two classes, this is twice the Brier score of the positive class, which scikit-learn reports"
    assert cal.Result.from_json(result.to_json()).notes == (note,)
    assert cal.BRIER(cal.Predictions.from_logits(y, np.log(both))).notes == (note,)
    for other in (
        cal.BRIER(y, p),
        cal.BRIER(["n", "y", "y"], p, classes=["n", "y"]),
        cal.BRIER(y, np.column_stack([both / 2, np.full(3, 0.5)])),
        cal.LOG_LOSS(y, both),
        cal.BRIER(cal.Predictions.from_multilabel([[1, 0], [0, 0], [1, 1]], both)),
        cal.MeanScore(cal.OneClass(1), cal.brier_score)(y, both),
    ):
        assert other.notes == ()
