"""Plots: what every display promises, at every size and on awkward data."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.files import reading as io
from toy import P, y

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

from calibrant import plots  # noqa: E402

pytestmark = pytest.mark.slow

SOME = cal.Bootstrap(20, seed=0)
TOY = cal.Predictions.from_probs(y, P, site=["a", "b", "c"] * 4)
BESIDE = Path(__file__).parents[2] / "shared" / "data"
beside = pytest.mark.skipif(not BESIDE.is_dir(), reason="the folder with other people's predictions is not here")


def softer(predictions):
    """The same labels with forecasts half-way to uniform."""
    shares = predictions.probabilities
    values = (shares + shares.mean(axis=1, keepdims=True)) / 2
    return dataclasses.replace(predictions, forecasts=type(predictions.forecasts)(values))


CURVED = {"curve": plots.isotonic, "logit": True, "metric": cal.ADAPTIVE_ECE}
HALVES = {"scale": cal.likert([0, 0.5, 1])}
OF_SOFT_LABELS = {
    "reliability": lambda p, **to: plots.ReliabilityDisplay.from_predictions(p, interval=SOME, **CURVED, **to),
    "confidence": lambda p, **to: plots.ConfidenceHistogramDisplay.from_predictions(p, **to),
    "top k": lambda p, **to: plots.TopKDisplay.from_predictions(p, **to),
    "sensitivity": lambda p, **to: plots.SensitivityDisplay.from_predictions(p, bootstrap=5, values=[1, 5, 50], **to),
    "before and after": lambda p, **to: plots.BeforeAfterDisplay.from_predictions(p, softer(p), **to),
    "small multiples": lambda p, **to: plots.SmallMultiplesDisplay.from_predictions(p, most=2, **to),
    "class bins": lambda p, **to: plots.ClassBinsDisplay.from_predictions(p, logit=True, **to),
    "comparison": lambda p, **to: plots.ComparisonDisplay.from_predictions({"a": p, "b": softer(p)}, n=20, **to),
    "likert": lambda p, **to: plots.LikertDisplay.from_predictions(p, interval=SOME, **HALVES, **to),
    "groups": lambda p, **to: plots.GroupsDisplay.from_predictions(p, by="site", interval=SOME, **to),
    "decision curve": lambda p, **to: plots.DecisionCurveDisplay.from_predictions(p, **to),
    "risk and coverage": lambda p, **to: plots.RiskCoverageDisplay.from_predictions(p, **to),
}
OF_HARD_LABELS = {
    "reliability band": lambda p, **to: plots.ReliabilityDisplay.from_predictions(p, consistency=20, **to),
    "signed gaps": lambda p, **to: plots.SignedGapsDisplay.from_predictions(p, interval=SOME, consistency=9, **to),
}
EVERY = OF_SOFT_LABELS | OF_HARD_LABELS
every = pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY.keys())


def drawn(display):
    """Render it all: what matplotlib leaves for later happens now."""
    display.figure_.draw_without_rendering()
    return display


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


@every
@pytest.mark.parametrize("width", [3.3, 7.0])
def test_a_display_states_n_and_changes_nothing_global(draw, width):
    from matplotlib import pyplot

    before = dict(matplotlib.rcParams)
    display = drawn(draw(TOY, width=width))
    assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []
    assert isinstance(display, plots.Display)
    assert display.ax_.get_figure() is display.figure_
    assert "n = 12" in display.ax_.get_title(loc="left").replace("\n", " ")
    assert display.figure_.get_size_inches()[0] == width
    drawn_on, whole = display.figure_.get_tightbbox(), display.figure_.bbox_inches
    assert drawn_on.x0 >= 0
    assert drawn_on.y0 >= 0
    assert drawn_on.x1 <= whole.x1
    assert drawn_on.y1 <= whole.y1


@every
def test_given_axes_are_drawn_on_with_and_without_a_layout(draw):
    for layout in ("constrained", None):
        figure = Figure(figsize=(8, 4), layout=layout)
        left, right = figure.subplots(1, 2)
        display = drawn(draw(TOY, ax=right))
        assert display.ax_ is right
        assert display.figure_ is figure
        assert not left.has_data()


def test_a_notebook_shows_the_picture_drawn_or_not():
    display = plots.ReliabilityDisplay(cal.ECE(TOY))
    assert not hasattr(display, "figure_")
    assert display._repr_png_().startswith(b"\x89PNG")
    assert display.figure_ is display.ax_.get_figure()


@every
def test_one_sample(draw):
    sample = cal.Predictions.from_probs([1], [[0.2, 0.7, 0.1]], site=["a"])
    assert "n = 1" in texts(drawn(draw(sample)).figure_)


@every
def test_all_labels_of_one_class(draw):
    drawn(draw(dataclasses.replace(TOY, labels=np.zeros(12, np.int64))))


@every
def test_saturated_forecasts(draw):
    sure = cal.Predictions.from_probs(y, np.eye(3)[P.argmax(axis=1)], site=["a", "b", "c"] * 4)
    drawn(draw(sure))


@every
def test_a_thousand_classes(draw):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(1000, 0.01), 60)
    shares = np.maximum(shares, 1e-9) / np.maximum(shares, 1e-9).sum(axis=1, keepdims=True)
    many = cal.Predictions.from_probs(rng.integers(0, 1000, 60), shares, site=rng.choice(["a", "b"], 60))
    drawn(draw(many))


@pytest.mark.parametrize("name", OF_SOFT_LABELS)
def test_soft_labels_where_the_metric_permits(name):
    soft = cal.Predictions.from_probs((P + np.eye(3)[y]) / 2, P, site=["a", "b", "c"] * 4)
    drawn(OF_SOFT_LABELS[name](soft))


@pytest.mark.parametrize("name", OF_HARD_LABELS)
def test_soft_labels_are_refused_where_labels_are_redrawn_or_grouped(name):
    soft = cal.Predictions.from_probs((P + np.eye(3)[y]) / 2, P)
    with pytest.raises(cal.CalibrationInputError, match="soft labels"):
        OF_HARD_LABELS[name](soft)


@pytest.mark.parametrize("name", ["reliability", "reliability band", "confidence"])
def test_no_samples_at_all(name):
    assert "n = 0" in texts(drawn(EVERY[name](TOY[:0])).figure_)


@every
def test_names_from_anywhere_are_inert(draw):
    names = ["$x", "$\\frac{$", "_\x1b[31m" + "long " * 40]
    drawn(draw(dataclasses.replace(TOY, classes=tuple(names), columns={"site": np.array(names * 4)})))


@every
def test_what_is_no_axes_and_what_is_no_width_are_refused(draw):
    with pytest.raises(cal.CalibrationInputError, match="ax: must be matplotlib axes, got 'axes'"):
        draw(TOY, ax="axes")
    with pytest.raises(cal.CalibrationInputError, match="width: must be a positive number of inches"):
        draw(TOY, width=0)


@pytest.mark.parametrize("name", ["before and after", "small multiples", "comparison"])
def test_several_panels_need_axes_in_a_grid(name):
    free = Figure().add_axes((0, 0, 1, 1))
    with pytest.raises(cal.CalibrationInputError, match="ax: must be part of a grid"):
        EVERY[name](TOY, ax=free)


def test_one_panel_needs_no_grid():
    free = Figure().add_axes((0.2, 0.4, 0.7, 0.4))
    display = drawn(plots.ReliabilityDisplay.from_predictions(TOY, ax=free))
    assert display.ax_.get_position().bounds == pytest.approx((0.2, 0.4, 0.7, 0.4))


def test_plots_need_matplotlib_only_to_draw():
    code = (
        "import sys; import calibrant as cal; from calibrant import plots\n"
        "assert 'matplotlib' not in sys.modules; sys.modules['matplotlib'] = None\n"
        "display = plots.ReliabilityDisplay(cal.ECE([1, 0], [.9, .2]))\n"
        "try: display.plot()\n"
        "except ImportError as reason: print(reason)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "pictures need matplotlib: pip install calibrant[plot]"


def test_every_public_name_is_documented_with_an_example():
    import doctest
    import inspect

    for name in plots.__all__:
        thing = getattr(plots, name)
        assert inspect.getdoc(thing), name
        if name not in ("Display", "Curve"):  # what displays and curves have in common
            assert doctest.DocTestFinder(recurse=False).find(thing)[0].examples, name


class Fitted:
    """The least that an estimator is."""

    classes_ = np.array(["cat", "dog", "owl"])

    def predict_proba(self, rows):
        return P[rows]


FROM_ESTIMATOR = {
    plots.ReliabilityDisplay: {},
    plots.ConfidenceHistogramDisplay: {},
    plots.SignedGapsDisplay: {},
    plots.TopKDisplay: {"most": 2},
    plots.SensitivityDisplay: {"bootstrap": 5},
    plots.RiskCoverageDisplay: {},
    plots.DecisionCurveDisplay: {},
    plots.SmallMultiplesDisplay: {"most": 1},
    plots.ClassBinsDisplay: {},
    plots.LikertDisplay: {"scale": cal.likert([0, 0.5, 1])},
}


@pytest.mark.parametrize(("kind", "options"), FROM_ESTIMATOR.items())
def test_an_estimator_is_drawn_as_its_predictions_are(kind, options):
    animals = Fitted.classes_[y]
    ax = Figure().subplots()
    display = kind.from_estimator(Fitted(), np.arange(12), animals, ax=ax, **options)
    known = kind.from_predictions(cal.Predictions.from_probs(y, P, classes=Fitted.classes_), **options)
    assert display.ax_ is ax
    assert [bar.get_bbox().bounds for bar in display.ax_.patches] == [
        bar.get_bbox().bounds for bar in known.ax_.patches
    ]


def test_an_estimator_of_scikit_learn_with_labels_that_are_no_indices():
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    labels = np.where(X[:, 0] + rng.normal(size=200) > 0, 7, 3)
    model = linear.LogisticRegression().fit(X, labels)
    display = plots.ReliabilityDisplay.from_estimator(model, X, labels)
    assert display.result.value == cal.ECE((labels == 7).astype(int), model.predict_proba(X)[:, 1]).value
    assert display.result.question == "class 7"
    top = plots.ReliabilityDisplay.from_estimator(model, X, labels, metric=cal.ECE)
    assert top.result.value == cal.ECE((labels == 7).astype(int), model.predict_proba(X)).value


@pytest.mark.parametrize("positive", [None, "no", "yes"])
def test_a_binary_classifier_is_drawn_as_scikit_learn_draws_it(positive):
    calibration, linear = pytest.importorskip("sklearn.calibration"), pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    labels = np.where(X[:, 0] + rng.normal(size=300) > 0.5, "yes", "no")
    model = linear.LogisticRegression().fit(X, labels)
    bins = cal.ECE.replace(binning=cal.EqualWidth(5, closed="left"))
    asked = {"pos_label": positive, "metric": bins if positive else bins.replace(lens=cal.OneClass("yes"))}
    ours = plots.ReliabilityDisplay.from_estimator(model, X, labels, **asked).result.bins
    theirs = calibration.CalibrationDisplay.from_estimator(
        model, X, labels, n_bins=5, pos_label=positive, ax=Figure().subplots()
    )
    filled = ours.counts[0] > 0
    assert ours.forecast[0, filled, 0] == pytest.approx(theirs.prob_pred)
    assert ours.frequency[0, filled, 0] == pytest.approx(theirs.prob_true)


def test_the_positive_label_of_an_event_is_named():
    rng = np.random.default_rng(0)
    p = rng.random(100)
    happened = rng.random(100) < p
    words = np.where(happened, "yes", "no")
    draw = plots.ReliabilityDisplay.from_predictions
    assert draw(words, p, pos_label="yes").result.value == draw(happened, p).result.value
    assert draw(words, 1 - p, pos_label="no").result.value == draw(~happened, 1 - p).result.value
    assert draw(words, p, pos_label="no").result.value == draw(~happened, p).result.value > 0.2
    with pytest.raises(
        cal.CalibrationInputError, match="pos_label: must be one of two labels, 'maybe' and another, got"
    ):
        draw(words, p, pos_label="maybe")
    with pytest.raises(cal.CalibrationInputError, match="pos_label: needs probabilities of classes, got one event"):
        draw(cal.Predictions.from_probs(happened, p), pos_label="yes")
    with pytest.raises(cal.CalibrationInputError, match="pos_label: must be a class, got 'yes'; there are: 0, 1"):
        draw(happened.astype(int), np.column_stack([1 - p, p]), pos_label="yes")


def test_what_is_no_estimator_is_refused():
    with pytest.raises(cal.CalibrationInputError, match="estimator: must have predict_proba"):
        plots.ReliabilityDisplay.from_estimator(object(), P, y)
    with pytest.raises(cal.CalibrationInputError, match="y_true: must name one of the classes, got 'cow'"):
        plots.ReliabilityDisplay.from_estimator(Fitted(), [0], ["cow"])
    with pytest.raises(cal.CalibrationInputError, match="y_true: must have no masked entries, got 1 of them"):
        plots.ReliabilityDisplay.from_estimator(Fitted(), [0], np.ma.array([Fitted.classes_[0]], mask=[1]))


@beside
def test_the_thousand_classes_of_real_logits():
    thousand = io.read(BESIDE / "efficientnet_lite_imagenet" / "efficientnet_lite0_nips17dev.npz")
    for kind in (plots.ReliabilityDisplay, plots.SignedGapsDisplay):
        assert "n = 1,000" in texts(drawn(kind.from_predictions(thousand)).figure_)


def test_the_shipped_predictions():
    shipped = io.read(io.SHIPPED / "fashion_mnist_test.npz")
    assert plots.ReliabilityDisplay.from_predictions(shipped).ax_.get_title(loc="left") == "ECE 0.0520, n = 10,000"
