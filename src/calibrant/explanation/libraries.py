"""Libraries: what the calibration functions of other libraries compute, as steps away from calibrant's ECE.

Every step is one choice in which a function differs. Versions that were read and compared are in the documentation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from calibrant import recipes
from calibrant.aggregates import mean_of, root_mean, root_mean_of
from calibrant.binning import EqualWidth
from calibrant.distances import debiased_squared
from calibrant.explanation import edge_rules as rules
from calibrant.explanation.library_bins import mean_of_filled, mean_or_zero
from calibrant.explanation.mesh_smooth import MeshSmoothError
from calibrant.lenses.around import ByPrediction
from calibrant.lenses.events import Answered, Classwise, OneClass, TopLabel
from calibrant.metric import Metric
from calibrant.predictions import Predictions

Step = tuple[str, Mapping[str, object]]
"""A choice in words, and the fields of the metric or of its bins that make it; or the whole metric."""
AGREED = 1e-6
"""How near a function is reproduced: its own float32 arithmetic makes as much."""
NEAR = 2e-6
"""How far float32 arithmetic moves a probability that is computed from logits, at most."""


@dataclass(frozen=True)
class LibraryFunction:
    """A function of a library: the recipe it is compared with, and the steps from there to what it computes.

    >>> LibraryFunction("mine", "error()").within
    1e-06
    """

    library: str
    function: str
    steps: tuple[Step, ...] | None = ()
    """None where it reports nothing."""
    recipe: Metric | None = None
    """What it is compared with; None: the ECE."""
    within: float = AGREED
    """How near the steps come to its value."""
    note: str = ""
    """What it returns if not a number; why it is not reproduced."""


@dataclass(frozen=True)
class Asked:
    """What a library's function would be given, and the number of bins if one is asked for."""

    predictions: Predictions
    n_bins: int | None

    @property
    def is_event(self) -> bool:
        """Whether each row is a probability of one event."""
        return self.predictions.forecasts.of_events

    @property
    def is_single(self) -> bool:
        """Whether probabilities are float32."""
        return self.predictions.precision.bits == np.finfo(np.float32).nmant + 1

    @property
    def two_columns(self) -> bool:
        """Whether there are two classes with a column each."""
        return self.predictions.n_classes == 2 and not self.is_event

    def bins(self, default: int) -> int:
        """The number of bins that the function is called with."""
        return self.n_bins or default

    def call(self, name: str, bins: str, **options: str) -> str:
        """The call of a function, whose option `bins` is left out where it has its default."""
        keywords = {**options, **({} if self.n_bins is None else {bins: self.n_bins})}
        return f"{name}({', '.join(f'{option}={value!r}' for option, value in keywords.items())})"


def functions_of(predictions: Predictions, n_bins: int | None = None) -> Iterator[LibraryFunction]:
    """The functions of other libraries that take such predictions; with the number of bins, or each with its default.

    >>> import calibrant as cal
    >>> functions = functions_of(cal.Predictions.from_probs([1, 0], [.9, .2]))
    >>> sorted({function.library for function in functions})[:3]
    ['MAPIE', 'TensorFlow Probability', 'netcal']
    """
    asked = Asked(predictions, n_bins)
    libraries = (_torchmetrics, _netcal, _scikit_learn, _mapie, _uncertainty_calibration, _relplot, _tensorflow)
    return itertools.chain.from_iterable(library(asked) for library in libraries)


LEFT: Step = ("bins [low, high) instead of (low, high]", {"closed": "left"})
LINSPACE: Step = ("edges from linspace instead of k/n", {"edges": rules.numpy_linspace})
OWN_ONE: Step = ("1 has a bin of its own", {"own_bin": True})
OWN_ZERO: Step = ("0 has a bin of its own", {"own_bin": True})
WIDER: Step = ("float32 values compared with float64 edges", {"compared": "float64"})
SINGLE_TOTALS: Step = ("totals in float32", {"summed": "float32"})
SINGLE: Step = ("probabilities and totals in float32", {"compared": "float32", "summed": "float32"})
POSITIVE: Step = ("asks about class 1, not the predicted class", {"lens": OneClass(1)})
EACH_BIN: Step = ("every bin that holds samples counts the same", {"aggregate": mean_of_filled})


def _number(asked: Asked, count: int, words: str = "{} bins instead of {}") -> list[Step]:
    """The step to another number of bins, where it is another."""
    usual = asked.bins(EqualWidth().n_bins)
    return [] if count == usual else [(words.format(count, usual), {"n_bins": count})]


def _wider(asked: Asked) -> list[Step]:
    return [WIDER] if asked.is_single else []


def _torchmetrics(asked: Asked) -> Iterator[LibraryFunction]:
    n_bins = asked.bins(15)
    steps = [*_number(asked, n_bins), LEFT, ("edges from torch.linspace", {"edges": rules.torch_linspace}), OWN_ONE]
    if asked.is_single:
        steps.append(SINGLE_TOTALS)
    elif not asked.is_event:
        steps.append(SINGLE)
    task = "binary" if asked.is_event else "multiclass"
    yield LibraryFunction("torchmetrics", asked.call(f"{task}_calibration_error", "n_bins"), tuple(steps))


def _netcal(asked: Asked) -> Iterator[LibraryFunction]:
    n_bins = asked.bins(10)
    name = asked.call("ECE", "bins") + ".measure"
    few = asked.predictions.labels is not None and len(np.unique(asked.predictions.labels)) <= 2
    if few and not asked.is_event and not asked.two_columns:
        note = "raises RuntimeError: it takes labels of at most two values for a binary task"
        yield LibraryFunction("netcal", name, None, note=note)
        return
    steps = [*_number(asked, n_bins), *([POSITIVE] if asked.two_columns else []), LEFT, LINSPACE]
    if asked.is_single:
        steps.append(("counted by float64 edges, averaged by float32 ones", {"counted": "float64"}))
    yield LibraryFunction("netcal", name, tuple(steps))
    yield LibraryFunction("netcal", asked.call("ACE", "bins") + ".measure", (*steps, EACH_BIN))


def _scikit_learn(asked: Asked) -> Iterator[LibraryFunction]:
    n_bins = asked.bins(5)
    question = [POSITIVE] if asked.two_columns else []
    note = "returns a curve; the value is the mean of |prob_true - prob_pred|"
    percentiles: Step = ("edges at percentiles", {"edges": rules.percentiles})
    for strategy, edges in (("uniform", LINSPACE), ("quantile", percentiles)):
        steps = (*_number(asked, n_bins), *question, edges, *_wider(asked), EACH_BIN)
        name = asked.call("calibration_curve", "n_bins", strategy=strategy)
        yield LibraryFunction("scikit-learn", name, steps, note=note)
    half: Step = ("half of the sum over the two classes", {"lens": OneClass(1)})
    steps = (half,) if asked.two_columns else ()
    yield LibraryFunction("scikit-learn", "brier_score_loss()", steps, recipes.BRIER, note="compared with BRIER")


def _mapie(asked: Asked) -> Iterator[LibraryFunction]:
    n_bins = asked.bins(50)
    intervals = _number(asked, n_bins - 1, "{} intervals instead of {} bins: n edges make n - 1")
    uniform = (*intervals, LINSPACE, OWN_ZERO, *_wider(asked))
    name = "expected_calibration_error"
    yield LibraryFunction("MAPIE", asked.call(name, "num_bins"), uniform)
    groups: Step = ("edges follow the order of rows", {"edges": rules.row_groups})
    split = (*_number(asked, n_bins), groups, *_wider(asked))
    if len(asked.predictions) >= n_bins:
        yield LibraryFunction("MAPIE", asked.call(name, "num_bins", split_strategy="array split"), split)
    if not asked.is_event:
        lens: Step = ("the mean over predicted classes", {"lens": ByPrediction(TopLabel()), "across": mean_of})
        yield LibraryFunction("MAPIE", asked.call("top_label_ece", "num_bins"), (lens, *uniform))


def _uncertainty_calibration(asked: Asked) -> Iterator[LibraryFunction]:
    library, n_bins, wider = "uncertainty-calibration", asked.bins(15), _wider(asked)
    count = _number(asked, n_bins)
    yield LibraryFunction(library, asked.call("get_ece", "num_bins"), (*count, *wider))
    middles: Step = ("equally many samples a bin, cut between values", {"edges": rules.middles})
    yield LibraryFunction(library, asked.call("get_ece_em", "num_bins"), (*count, middles, *wider))
    distinct: Step = ("a bin for each distinct value", {"edges": rules.between_values})
    classwise: Step = ("every class by itself, not the predicted class", {"lens": Classwise()})
    combined = {"aggregate": root_mean} if asked.is_event else {"aggregate": mean_or_zero, "across": root_mean_of}
    squared: Step = ("root of the debiased mean squared gap", {"distance": debiased_squared, **combined})
    edges = [distinct] if _repeats(asked) else [*_number(asked, 15), middles]
    steps = (*([] if asked.is_event else [classwise]), *edges, *wider, squared)
    yield LibraryFunction(library, "get_calibration_error()", steps)


def _repeats(asked: Asked) -> bool:
    """Whether every column has fewer distinct values than a quarter of its rows."""
    columns = np.asarray(asked.predictions.probabilities).reshape(len(asked.predictions), -1).T
    return all(len(np.unique(column)) < len(column) / 4.0 for column in columns)


def _relplot(asked: Asked) -> Iterator[LibraryFunction]:
    n_bins = asked.bins(10)
    division: Step = ("bin numbers by the division p / (1 / n)", {"edges": rules.reached_by_division})
    name, steps = asked.call("binnedECE", "nbins"), (*_number(asked, n_bins), LEFT, division, OWN_ONE)
    highest = np.asarray(TopLabel()(asked.predictions).outputs).max()
    if int(highest / (1.0 / n_bins)) > int(1.0 / (1.0 / n_bins)):  # in float32 the quotient is rounded up
        note = "raises IndexError: rounding gives the highest probability a bin that does not exist"
        yield LibraryFunction("relplot", name, None, note=note)
    else:
        yield LibraryFunction("relplot", name, steps)
    mesh: Step = ("a mesh: ends count half, bandwidth to 1/1024", {"metric": MeshSmoothError()})
    yield LibraryFunction("relplot", "smECE()", (mesh,), recipes.SMECE, note="compared with SMECE")


def _tensorflow(asked: Asked) -> Iterator[LibraryFunction]:
    predictions, n_bins = asked.predictions, asked.bins(15)
    if not predictions.forecasts.knows_truth:
        return
    answer: Step = ("asks about the likelier answer, not the event", {"lens": Answered()})
    product: Step = ("bin numbers by the product n p", {"edges": rules.reached_by_product})
    steps = (*_number(asked, n_bins), *([answer] if asked.is_event else []), LEFT, product, SINGLE)
    scaled = np.asarray(Answered()(predictions).outputs).astype(np.float64) * n_bins
    nearest = np.rint(scaled)
    rows = int(((np.abs(scaled - nearest) <= NEAR * n_bins) & (nearest < n_bins)).sum())
    note = f"takes float32 logits: rounding may move probabilities that lie on an edge, {rows:,} of {len(scaled):,}"
    yield LibraryFunction(
        "TensorFlow Probability",
        f"stats.expected_calibration_error(num_bins={n_bins})",
        steps,
        within=min(1.0, AGREED + 2 * rows / len(predictions)),
        note=note if rows else "",
    )
