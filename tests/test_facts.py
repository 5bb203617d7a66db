"""Facts: what is known of pieces is declared by the pieces, so that one's own are full citizens."""

import ast
import inspect
import json
import math
import types
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant.aggregates import mean
from calibrant.errors.similarity import exponential
from calibrant.files import SHIPPED, read
from calibrant.inference.gates import Scorer
from calibrant.recalibrate import Recalibrator
from calibrant.specification.catalogue import find, names
from calibrant.specification.facts import Facts, declare, facts_of

SOURCE = Path(cal.__file__).parent
SHIPPED_TEST = read(SHIPPED / "fashion_mnist_test.npz")[:800]
EXEMPT = {"encoding.py"}
"""Where pieces are written and read as JSON, they must be told apart."""


def is_piece(name):
    piece = find(name)
    if isinstance(piece, cal.Metric) or (isinstance(piece, type) and issubclass(piece, (cal.Metric, Recalibrator))):
        return piece is not cal.Metric
    if isinstance(piece, type):
        return "facts" in dir(piece)
    return facts_of(piece).slot is not None


PIECES = {name for name in names() if is_piece(name)}


def operands(tree):
    """Every expression that is compared, asked for its type, or matched by class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            yield node.args[1]
        elif isinstance(node, ast.MatchClass):
            yield node.cls


def switches(path):
    """The public pieces of other modules that a module tells apart by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calibrant")
        for alias in node.names
    }
    for operand in operands(tree):
        for node in ast.walk(operand):
            if isinstance(node, ast.Call):
                break  # what a call gives is no piece
            name = imported.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("cal", "calibrant"):
                name = node.attr
            if name in PIECES:
                yield f"{path.relative_to(SOURCE)}:{node.lineno} {name}"


def test_public_pieces_are_found():
    assert {
        "ECE",
        "tvd",
        "mean",
        "KDTree",
        "TopLabel",
        "label_in",
        "hit",
        "TemperatureScaling",
        "BinnedError",
    } <= PIECES
    assert not PIECES & {"Metric", "Predictions", "Bins", "table", "compare", "Bootstrap"}


def test_nothing_outside_its_module_asks_which_piece_it_is():
    found = [switch for path in SOURCE.rglob("*.py") if path.name not in EXEMPT for switch in switches(path)]
    assert found == []


def test_the_walk_finds_a_switch(tmp_path):
    lines = [
        "from calibrant.distances import signed, tvd",
        "import calibrant",
        "from calibrant.errors.binned import BinnedError",
        "def f(m):",
        "    if m.distance is signed or m == calibrant.ECE or isinstance(m, (int, BinnedError)): return m in (tvd,)",
        "    match m:",
        "        case BinnedError(): return 1",
    ]
    path = SOURCE / "not_there.py"
    tree = ast.parse("\n".join(lines))
    names = {getattr(node, "id", getattr(node, "attr", "")) for operand in operands(tree) for node in ast.walk(operand)}
    assert {"signed", "ECE", "BinnedError", "tvd"} <= names
    assert not path.exists()


def renamed(piece, **facts):
    """A copy of a function under another name, with these facts."""
    copy = types.FunctionType(piece.__code__, piece.__globals__, f"my_{piece.__name__}", piece.__defaults__)
    copy.__module__, copy.__qualname__ = __name__, copy.__name__
    return declare(facts["facts"])(copy) if facts else copy


def copied_class(piece, *, declared=True):
    """A class with the contents of another, which it does not descend from; without facts, if asked."""
    left_out = {"__dict__", "__weakref__", *(() if declared else ("facts",))}
    contents = {name: value for name, value in vars(piece).items() if name not in left_out}
    bases = tuple(base for base in piece.__bases__ if declared or "facts" not in dir(base)) or (object,)
    name = f"My{piece.__name__}"
    inherited = {} if declared else _inherited(piece, bases)
    return type(name, bases, {**inherited, **contents, "__module__": __name__, "__qualname__": name})


def _inherited(piece, bases):
    """What a class has from bases that are not taken along, but for its facts."""
    lost = [base for base in reversed(piece.__mro__[1:-1]) if not any(issubclass(kept, base) for kept in bases)]
    merged = {name: value for base in lost for name, value in vars(base).items()}
    unwanted = {
        "facts",
        "__dict__",
        "__weakref__",
        "__abstractmethods__",
        "_abc_impl",
        "__module__",
        "__doc__",
        "__slots__",
    }
    return {name: value for name, value in merged.items() if name not in unwanted}


def answers(metric, predictions):
    """Everything that is said of a metric: value, interval, p-value, gate, picture numbers."""
    result = metric(predictions, interval=cal.Bootstrap(60, seed=0))
    said = {"value": result.value, "values": result.values, "low": result.interval.low, "high": result.interval.high}
    said["details"] = dict(result.details)
    said["parts"] = [(interval.low, interval.high) for interval in result.intervals]
    if metric.facts.calibrated is not None:
        null = cal.consistency(metric, predictions, n=30, seed=0)
        said |= {"p": null.p_value, "floor": null.mean, "part p": list(null.part_p_values.values())}
        try:
            cal.assert_calibrated(predictions, metric=metric, n=30)
            said["gate"] = "passed"
        except AssertionError as reason:
            said["gate"] = str(reason).split(" ")[-1]
    else:
        with pytest.raises(cal.CalibrationInputError, match="value under calibration"):
            cal.consistency(metric, predictions, n=30)
    return said


def same(one, other):
    return json.dumps(one, default=float) == json.dumps(other, default=float)


EVENT = cal.Predictions.from_probs(
    (np.random.default_rng(0).random(300) < np.linspace(0, 1, 300) ** 1.5), np.linspace(0, 1, 300)
)
FUNCTIONS = {
    "tvd": lambda f: cal.BinnedError(distance=f),
    "squared": lambda f: cal.BinnedError(distance=f, aggregate=cal.root_mean),
    "signed": lambda f: cal.BinnedError(binning=cal.EqualWidth(1), distance=f),
    "debiased_squared": lambda f: cal.BinnedError(binning=cal.EqualMass(), distance=f, aggregate=cal.root_mean),
    "relative": lambda f: cal.BinnedError(distance=f),
    "mean": lambda f: cal.BinnedError(aggregate=f),
    "root_mean": lambda f: cal.BinnedError(binning=cal.EqualMass(), distance=cal.debiased_squared, aggregate=f),
    "maximum": lambda f: cal.BinnedError(aggregate=f),
    "uniform": lambda f: cal.BinnedError(aggregate=f),
    "mean_of": lambda f: cal.BinnedError(lens=cal.Classwise(), across=f),
    "mean_of_all": lambda f: cal.BinnedError(lens=cal.Classwise(), across=f),
    "weighted_by_size": lambda f: cal.BinnedError(lens=cal.ByLabel(cal.TopLabel()), across=f),
    "root_mean_of": lambda f: cal.BinnedError(lens=cal.Classwise(), distance=cal.debiased_squared, across=f),
    "contraharmonic": lambda f: cal.BinnedError(lens=cal.ByPrediction(cal.TopLabel()), across=f),
    "signed_balance": lambda f: cal.BinnedError(
        lens=cal.ByPrediction(cal.TopLabel()), binning=cal.EqualWidth(1), distance=cal.signed, across=f
    ),
    "brier_score": lambda f: cal.MeanScore(cal.Full(), f),
    "log_score": lambda f: cal.MeanScore(cal.Full(), f),
    "hit": lambda f: cal.MeanScore(cal.Ranked(1), f),
    "entropy": lambda f: cal.MeanScore(cal.Full(), f),
    "ks": lambda f: cal.CumulativeError(statistic=f),
    "kuiper": lambda f: cal.CumulativeError(statistic=f),
    "quadratic": lambda f: cal.IsotonicError(score=f),
    "unbiased": lambda f: cal.KernelError(lens=cal.TopLabel(), kernel=exponential(0.3), estimator=f),
    "biased": lambda f: cal.KernelError(lens=cal.TopLabel(), kernel=exponential(0.3), estimator=f),
}
CLASSES = {
    "power": lambda c: cal.BinnedError(distance=c(3), aggregate=cal.root(3)),
    "lp": lambda c: cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree(0.2), distance=c(2)),
    "inter_interval": lambda c: cal.BinnedError(lens=cal.Between(cal.TopLabel(), 0, 0.9), distance=c(0, 0.9)),
    "log_odds": lambda c: cal.BinnedError(distance=c(2)),
    "root": lambda c: cal.BinnedError(distance=cal.power(3), aggregate=c(3)),
    "EqualWidth": lambda c: cal.BinnedError(binning=c(10)),
    "EqualMass": lambda c: cal.BinnedError(binning=c(10)),
    "Quantiles": lambda c: cal.BinnedError(binning=c(10)),
    "Sweep": lambda c: cal.BinnedError(binning=c()),
    "KDTree": lambda c: cal.BinnedError(lens=cal.TopK(2), binning=c(0.2)),
    "Grid": lambda c: cal.BinnedError(lens=cal.TopK(2), binning=c(4)),
    "TopLabel": lambda c: cal.BinnedError(lens=c()),
    "Ranked": lambda c: cal.BinnedError(lens=c(2)),
    "InTopK": lambda c: cal.BinnedError(lens=c(2)),
    "OneClass": lambda c: cal.BinnedError(lens=c(3)),
    "Classwise": lambda c: cal.BinnedError(lens=c(), across=cal.mean_of_all),
    "TopK": lambda c: cal.BinnedError(lens=c(2), binning=cal.KDTree(0.2)),
    "Full": lambda c: cal.BinnedError(lens=c(), binning=cal.KDTree(0.2)),
    "ByPrediction": lambda c: cal.BinnedError(lens=c(cal.TopLabel())),
    "ByLabel": lambda c: cal.BinnedError(lens=c(cal.TopLabel())),
    "Between": lambda c: cal.BinnedError(lens=c(cal.TopLabel(), 0.5, 1)),
    "Above": lambda c: cal.BinnedError(lens=c(cal.Classwise(), 0.01), binning=cal.EqualMass(), across=cal.mean_of_all),
    "confidence_between": lambda c: cal.BinnedError(select=c(0.3, 1)),
    "output_between": lambda c: cal.BinnedError(select=c(0, 0.9, of=1)),
    "nearest_forecasts": lambda c: cal.NeighbourError(neighbours=c(30)),
    "exponential": lambda c: cal.KernelError(lens=cal.TopLabel(), kernel=c(0.3)),
    "unbiased_blocks": lambda c: cal.KernelError(lens=cal.TopLabel(), kernel=exponential(0.3), estimator=c(2)),
    "BinnedError": lambda c: c(binning=cal.EqualMass(), distance=cal.debiased_squared, aggregate=cal.root_mean),
    "LabelBinnedError": lambda c: c(),
    "KDEError": lambda c: c(),
    "SmoothError": lambda c: c(),
    "IsotonicError": lambda c: c(),
    "CumulativeError": lambda c: c(),
    "NeighbourError": lambda c: c(),
    "KernelError": lambda c: c(lens=cal.TopLabel(), kernel=exponential(0.3)),
    "MeanScore": lambda c: c(cal.Full(), cal.brier_score),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_renamed_function_that_declares_the_same_facts_is_the_same_in_all_that_is_said(name):
    piece = find(name)
    copy = renamed(piece, facts=facts_of(piece))
    original, mine = FUNCTIONS[name](piece), FUNCTIONS[name](copy)
    assert same(answers(original, SHIPPED_TEST), answers(mine, SHIPPED_TEST))
    back = cal.from_json(mine.to_json(), pieces={copy.__name__: copy})
    assert back == mine
    assert back(SHIPPED_TEST).value == original(SHIPPED_TEST).value


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_a_renamed_class_that_declares_the_same_facts_is_the_same_in_all_that_is_said(name):
    piece = find(name)
    copy = copied_class(piece)
    original, mine = CLASSES[name](piece), CLASSES[name](copy)
    assert same(answers(original, SHIPPED_TEST), answers(mine, SHIPPED_TEST))
    assert cal.from_json(mine.to_json(), pieces={copy.__name__: copy}) == mine


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_without_facts_has_valid_intervals_and_p_values(name):
    """The interval holds the same resamples, without bounds or shift; both tails count."""
    piece = find(name)
    original, mine = FUNCTIONS[name](piece), FUNCTIONS[name](renamed(piece))
    plain, known = (metric(SHIPPED_TEST, interval=cal.Bootstrap(60, seed=0)) for metric in (mine, original))
    assert plain.value == pytest.approx(known.value, rel=0, abs=1e-15)  # a score that is known is summed exactly
    assert plain.interval.low <= plain.interval.high
    if original.facts.tends_to is None:  # unshifted: other draws, the same law, no bounds
        width = known.interval.high - known.interval.low
        assert plain.interval.low <= known.interval.low + 0.6 * width
        assert plain.interval.high >= known.interval.high - 0.6 * width
    assert 0 < cal.consistency(mine, SHIPPED_TEST, n=30, seed=0).p_value <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CLASSES if not name.endswith("Error") and name != "MeanScore"])
def test_a_class_without_facts_gets_the_plain_engine_and_the_same_value(name):
    piece = find(name)
    original, mine = CLASSES[name](piece), CLASSES[name](copied_class(piece, declared=False))
    plain = mine(SHIPPED_TEST, interval=cal.Bootstrap(40, seed=0))
    assert plain.value == pytest.approx(original(SHIPPED_TEST).value, rel=1e-12)  # kernels of one's own sum in NumPy
    assert plain.interval.low <= plain.interval.high
    assert 0 < cal.consistency(mine, SHIPPED_TEST, n=20, seed=0).p_value <= 1


def under_confident():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.5, 0.8, 3000)
    return cal.Predictions.from_confidence(rng.random(3000) < p + 0.14, p)


@pytest.mark.slow
def test_a_copy_of_signed_has_the_interval_and_p_value_of_a_signed_gap():
    predictions = under_confident()

    def my_gap(bins):
        return bins.gap[:, :, 0]

    def only_below(bins):
        return np.minimum(bins.gap[:, :, 0], 0.0)

    def minus_hit(view):
        return -view.truth_rows[:, :, 0]

    metrics = [cal.MCS.replace(distance=my_gap), cal.MCS.replace(distance=only_below), cal.MeanScore(score=minus_hit)]
    for metric in metrics:
        result = metric(predictions, interval=cal.Bootstrap(200, seed=0))
        assert result.value < -0.1
        assert result.interval.low < result.value < result.interval.high < 0
    for metric in metrics[:2]:
        assert cal.consistency(metric, predictions, n=199, seed=0).p_value == pytest.approx(0.01)
    assert cal.consistency(cal.MCS, predictions, n=199, seed=0).p_value == pytest.approx(0.005)


def test_a_null_of_a_number_that_calibration_does_not_settle_is_refused_in_one_sentence():
    for metric in (cal.ACCURACY, cal.BRIER, cal.LOG_LOSS):
        with pytest.raises(cal.CalibrationInputError, match="must have a value under calibration") as refusal:
            cal.consistency(metric, SHIPPED_TEST, n=20)
        assert metric.name in str(refusal.value)
        with pytest.raises(cal.CalibrationInputError, match="must have a value under calibration"):
            simulate.power({"it": metric}, simulate.UNIFORM, simulate.power_curve(2), n=50, replicates=20)


def test_labels_that_select_leave_calibration_no_value():
    assert cal.MCS.facts.calibrated == 0
    assert math.isnan(cal.CWMCS.facts.calibrated)
    assert math.isnan(cal.ECE.replace(select=cal.label_in(0)).facts.calibrated)
    assert cal.ECE.replace(select=~cal.predicted_in(0) & cal.where(a=1)).facts.calibrated == 0


def test_a_calibrated_model_has_the_value_that_facts_say():
    """With endless data; class-conditional numbers of a calibrated model are not 0, and do not say so."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.5, 1.0, 2.0], 200_000)
    y = (p.cumsum(axis=1) < rng.random(len(p))[:, None]).sum(axis=1)
    predictions = cal.Predictions.from_probs(y, p)
    for name in ("ECE", "MCS", "SCE", "ECCE_MAD", "SMECE", "ACE", "ECE_SWEEP"):
        assert cal.RECIPES[name].facts.calibrated == 0
        assert abs(cal.RECIPES[name](predictions).value) < 0.005, name
    assert max(map(abs, cal.CWMCS(predictions).values)) > 0.05


def test_facts_compose():
    assert (cal.RMSCE.facts.low, cal.RMSCE.facts.root, cal.RMSCE.facts.order) == (0.0, 2.0, 2.0)
    assert cal.ECE.replace(aggregate=cal.root_mean).facts.order is None  # the root of a mean of gaps
    assert cal.ECE.replace(lens=cal.OneClass(0)).facts.order is None
    assert cal.MCS.replace(across=cal.contraharmonic).facts.low == -math.inf
    assert cal.ECE.replace(across=cal.contraharmonic).facts.high == 1
    assert cal.SCE.replace(distance=cal.signed).facts.low == -1
    marginal = cal.SCE.replace(distance=cal.debiased_squared, across=cal.root_mean_of)
    assert (marginal.facts.low, marginal.facts.root, marginal.facts.calibrated) == (0.0, 2.0, 0.0)
    assert marginal.facts.unrooted == marginal.replace(across=cal.mean_of)
    assert marginal.facts.tends_to == marginal.replace(distance=cal.squared)
    twice = marginal.replace(aggregate=cal.root_mean)
    assert (twice.facts.root, twice.facts.unrooted) == (4.0, None)
    assert cal.RMSCE.facts.unrooted == cal.RMSCE.replace(aggregate=cal.mean)

    def unknown(distances, bins):
        return distances.max(axis=1)

    facts = cal.ECE.replace(aggregate=unknown).facts
    assert (facts.low, facts.high, facts.sides) == (-math.inf, math.inf, 2)
    assert math.isnan(facts.calibrated)


@pytest.mark.slow
@pytest.mark.parametrize("metric", cal.RECIPES.values(), ids=cal.RECIPES)
def test_no_value_leaves_its_bounds(metric):
    rng = np.random.default_rng(3)
    for _ in range(20):
        p = rng.dirichlet(np.full(6, 0.2), 12)
        y = rng.integers(0, 6, 12)
        result = metric(y, p)
        values = np.array([result.value, *result.values])
        values = values[~np.isnan(values)]
        assert (values >= metric.facts.low - 1e-12).all()
        assert (values <= metric.facts.high + 1e-12).all()


def is_whole(name):
    """Whether a name stands for a metric or a recalibrator, not for a part of one."""
    piece = find(name)
    return isinstance(piece, cal.Metric) or (isinstance(piece, type) and issubclass(piece, (cal.Metric, Recalibrator)))


@pytest.mark.parametrize("name", sorted(name for name in PIECES if not is_whole(name)))
def test_every_public_piece_declares_where_it_belongs(name):
    facts = inspect.getattr_static(find(name), "facts")
    assert isinstance(facts, (property, cached_property)) or facts.slot is not None


def test_scores_know_which_way_is_better():
    result = {name: cal.RECIPES[name](SHIPPED_TEST) for name in ("ECE", "ACCURACY", "LOG_LOSS", "MCS", "WSMCS")}
    assert Scorer(cal.ECE).score(result["ECE"]) == -result["ECE"].value
    assert Scorer(cal.ACCURACY).score(result["ACCURACY"]) == result["ACCURACY"].value
    assert Scorer(cal.LOG_LOSS).score(result["LOG_LOSS"]) == -result["LOG_LOSS"].value
    assert Scorer(cal.MCS).score(result["MCS"]) == -abs(result["MCS"].value)
    assert Scorer(cal.WSMCS).score(result["WSMCS"]) == -abs(result["WSMCS"].value)

    def gain(view):
        return view.truth_rows[:, :, 0] - 2.0

    metric = cal.MeanScore(score=gain)
    with pytest.raises(cal.CalibrationInputError, match="greater_is_better"):
        Scorer(metric).score(metric(SHIPPED_TEST))
    assert Scorer(metric, greater_is_better=False).score(metric(SHIPPED_TEST)) == -metric(SHIPPED_TEST).value


def test_an_unbiased_error_of_ones_own_is_shifted_like_calibrants():
    @declare(Facts("distance", sides=1, calibrated=0.0, order=2.0, tends_to=cal.squared))
    def my_debiased(bins):
        return cal.debiased_squared(bins)

    mine = cal.ECE_DEBIASED.replace(distance=my_debiased)
    interval = cal.Bootstrap(100, seed=0)
    assert mine(EVENT, interval=interval).interval.low == cal.ECE_DEBIASED(EVENT, interval=interval).interval.low
    assert mine.facts.unrooted.aggregate is mean


@pytest.mark.slow
def test_pieces_whose_module_is_foreign_are_treated_alike(monkeypatch, capsys):
    """No path through the library looks at where a piece was defined."""
    from click.testing import CliRunner

    from calibrant.cli.commands import group

    predictions = SHIPPED_TEST[:200]
    metrics = ["ECE", "SCE", "TACE", "ECE_SWEEP", "WSMCS", "BRIER", "ECCE_R", "SKCE", "ECE_LB", "FULL_ECE"]
    command = ["measure", str(SHIPPED / "fashion_mnist_test.npz"), "-m", "top_k(2)/kdtree(0.5)/tvd", "--format", "json"]

    def everything():
        said = [answers(cal.RECIPES[name], predictions) for name in metrics]
        texts = [cal.RECIPES[name].to_json() for name in cal.RECIPES]
        back = [cal.from_json(text).to_json() for text in texts]
        return json.dumps([said, texts, back, CliRunner().invoke(group, command).output], default=float)

    before = everything()
    for name in PIECES:
        piece = find(name)
        owner = piece if isinstance(piece, type) or inspect.isfunction(piece) else type(piece)
        monkeypatch.setattr(owner, "__module__", "elsewhere")
    assert everything() == before


def test_pictures_of_renamed_pieces_show_the_same_numbers():
    pytest.importorskip("matplotlib")
    from calibrant.plots import LikertDisplay, SignedGapsDisplay, SmallMultiplesDisplay

    signed, classwise, interval = (
        renamed(cal.signed, facts=facts_of(cal.signed)),
        *map(copied_class, (cal.Classwise, cal.inter_interval)),
    )
    gaps = [
        SignedGapsDisplay.from_predictions(SHIPPED_TEST, metric=cal.CWMCS.replace(distance=d))
        for d in (cal.signed, signed)
    ]
    widths = [[bar.get_width() for bar in display.ax_.patches] for display in gaps]
    assert widths[0] == widths[1]
    many = [
        SmallMultiplesDisplay.from_predictions(SHIPPED_TEST, metric=cal.SCE.replace(lens=lens()), consistency=20)
        for lens in (cal.Classwise, classwise)
    ]
    assert many[0].bands.keys() == many[1].bands.keys()
    assert all(np.array_equal(many[0].bands[key], many[1].bands[key], equal_nan=True) for key in many[0].bands)
    scales = [
        {"low": cal.likert([0, 1])["[0, 1]"].replace(distance=piece(0, 0.9))}
        for piece in (cal.inter_interval, interval)
    ]
    drawn = [LikertDisplay.from_predictions(SHIPPED_TEST, scale=scale) for scale in scales]
    assert drawn[0].results["low"].value == drawn[1].results["low"].value
