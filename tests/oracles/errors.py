"""Errors and scores: the numbers of the literature, from lenses, binnings, distances and aggregates."""

import math
from collections.abc import Callable, Sequence

from . import bins as binning
from . import distances, lenses
from .bins import Bin, Bins
from .distances import Aggregate, Distance
from .lenses import Label, Rows

Weights = Sequence[float] | None
Cell = tuple[float, list[float], list[float]]


# --- one view -------------------------------------------------------------------------------------


def cell(outputs: Rows, targets: Rows, members: Bin, weights: Weights = None) -> Cell:
    """Size, mean output and mean target of one bin, Kirchenbauer, Oaks & Heim (2022), section 3.2."""
    parts = [float(share) * (1.0 if weights is None else weights[row]) for row, share in members]
    size = math.fsum(parts)
    rows = [row for row, _ in members]
    if size == 0:
        return 0.0, [], []
    return size, _weighted_mean(outputs, rows, parts), _weighted_mean(targets, rows, parts)


def cells(outputs: Rows, targets: Rows, bins: Bins, weights: Weights = None) -> list[Cell]:
    """Size, mean output and mean target of every bin, empty ones with size 0."""
    return [cell(outputs, targets, members, weights) for members in bins]


def generalised_error(
    outputs: Rows,
    targets: Rows,
    bins: Bins,
    distance: Distance = distances.tvd,
    aggregate: Aggregate = distances.mean,
    weights: Weights = None,
) -> float:
    """Distances between mean outputs and targets, over bins, Kirchenbauer et al. (2022), eq. 3."""
    table = cells(outputs, targets, bins, weights)
    return aggregate([(size, distance(o, t) if size else math.nan) for size, o, t in table])


def event_error(
    scores: Sequence[float],
    labels: Sequence[float],
    bins: Bins,
    distance: Distance = distances.tvd,
    aggregate: Aggregate = distances.mean,
    weights: Weights = None,
) -> float:
    """The generalised error of one event, its scores and labels given as plain numbers."""
    return generalised_error(_column(scores), _column(labels), bins, distance, aggregate, weights)


def binned_error(
    scores: Sequence[float], labels: Sequence[float], bins: Bins, p: float = 1, weights: Weights = None
) -> float:
    """The p-norm of the bin gaps, rooted once, Roelofs et al. (2022), eq. 4."""
    return event_error(scores, labels, bins, distances.power(p), distances.root(p), weights)


def maximum_error(scores: Sequence[float], labels: Sequence[float], bins: Bins, weights: Weights = None) -> float:
    """The largest gap of a bin, Guo et al. (2017), eq. 5."""
    return event_error(scores, labels, bins, distances.tvd, distances.maximum, weights)


def signed_error(scores: Sequence[float], labels: Sequence[float], bins: Bins, weights: Weights = None) -> float:
    """Mean of confidence less accuracy over bins, Ao, Rueger & Siddharthan (2023), eq. 5."""
    return event_error(scores, labels, bins, distances.signed, distances.mean, weights)


def label_binned_error(
    scores: Sequence[float], labels: Sequence[float], bins: Bins, p: float = 1, weights: Weights = None
) -> float:
    """Every score against the mean label of its own bin, Roelofs et al. (2022), eq. 3."""
    terms, sizes = [], []
    for members in bins:
        size, _, mean_label = cell(_column(scores), _column(labels), members, weights)
        for row, share in members if size else []:
            part = float(share) * (1.0 if weights is None else weights[row])
            terms.append(part * abs(scores[row] - mean_label[0]) ** p)
            sizes.append(part)
    return (math.fsum(terms) / math.fsum(sizes)) ** (1 / p) if sizes else math.nan


def neighbour_error(
    scores: Sequence[float], labels: Sequence[float], neighbours: Sequence[Sequence[int]], p: float = 1
) -> float:
    """Every score against the mean label of its neighbours, Roelofs et al. (2022), eq. 2."""
    terms = []
    for score, near in zip(scores, neighbours, strict=True):
        terms.append(abs(score - math.fsum(labels[j] for j in near) / len(near)) ** p)
    return (math.fsum(terms) / len(terms)) ** (1 / p) if terms else math.nan


def debiased_squared_error(scores: Sequence[float], labels: Sequence[float], bins: Bins) -> float:
    """Squared gaps less their sampling bias, may be negative, Kumar, Liang & Ma (2019), section 5.

    A bin of one sample contributes 0.
    """
    terms, total = [], 0.0
    for members in bins:
        size, score, label = cell(_column(scores), _column(labels), members)
        count = sum(share for _, share in members)
        total += size
        if count >= 2:
            bias = label[0] * (1 - label[0]) / (size - 1)
            terms.append(size * ((score[0] - label[0]) ** 2 - bias))
    return math.fsum(terms) / total if total else math.nan


def debiased_error(scores: Sequence[float], labels: Sequence[float], bins: Bins) -> float:
    """The root of the debiased square, of 0 where that is negative, Kumar, Liang & Ma (2019), section 5."""
    value = debiased_squared_error(scores, labels, bins)
    return value if math.isnan(value) else math.sqrt(max(0.0, value))


def inter_interval_error(
    scores: Sequence[float], labels: Sequence[float], low: float, high: float, n_bins: int = 15
) -> float:
    """Error of the answers in one Likert interval, Kirchenbauer et al. (2022), section 5.3."""
    kept_scores, kept_labels = lenses.between(scores, labels, low, high)
    bins = binning.from_indices(binning.equal_width(kept_scores, n_bins), n_bins)
    return event_error(kept_scores, kept_labels, bins, distances.inter_interval(low, high))


# --- the top label --------------------------------------------------------------------------------


def ece(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    closed: str = "right",
    p: float = 1,
    weights: Weights = None,
) -> float:
    """Expected calibration error, Guo et al. (2017), eq. 3; for other p Roelofs et al. (2022), eq. 4."""
    scores, hits = lenses.top_label(probabilities, labels)
    return binned_error(scores, hits, _equal_width(scores, n_bins, closed), p, weights)


def mce(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    closed: str = "right",
    weights: Weights = None,
) -> float:
    """Maximum calibration error, Guo et al. (2017), eq. 5."""
    scores, hits = lenses.top_label(probabilities, labels)
    return maximum_error(scores, hits, _equal_width(scores, n_bins, closed), weights)


def rmsce(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    closed: str = "right",
    weights: Weights = None,
) -> float:
    """Root mean squared calibration error, Roelofs et al. (2022), eq. 4 with p = 2."""
    return ece(probabilities, labels, n_bins, closed, 2, weights)


def adaptive_ece(probabilities: Rows, labels: Sequence[Label], n_bins: int = 15, p: float = 1) -> float:
    """Expected calibration error over equal-mass bins, Roelofs et al. (2022), eq. 4."""
    scores, hits = lenses.top_label(probabilities, labels)
    return binned_error(scores, hits, binning.equal_mass(scores, n_bins), p)


def ece_sweep(probabilities: Rows, labels: Sequence[Label], p: float = 1) -> float:
    """Monotonic sweep calibration error over equal-mass bins, Roelofs et al. (2022), algorithm 1."""
    scores, hits = lenses.top_label(probabilities, labels)
    return binned_error(scores, hits, binning.sweep_equal_mass(scores, hits)[1], p)


def ece_sweep_equal_width(probabilities: Rows, labels: Sequence[Label], closed: str = "right", p: float = 1) -> float:
    """Monotonic sweep calibration error over equal-width bins, Roelofs et al. (2022), algorithm 1."""
    scores, hits = lenses.top_label(probabilities, labels)
    return binned_error(scores, hits, binning.sweep_equal_width(scores, hits, closed)[1], p)


def ece_debiased(probabilities: Rows, labels: Sequence[Label], n_bins: int = 15) -> float:
    """Debiased calibration error over equal-mass bins, Kumar, Liang & Ma (2019), section 5."""
    scores, hits = lenses.top_label(probabilities, labels)
    return debiased_error(scores, hits, binning.equal_mass(scores, n_bins))


def ece_label_binned(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    closed: str = "right",
    p: float = 1,
    weights: Weights = None,
) -> float:
    """Label-binned calibration error over equal-width bins, Roelofs et al. (2022), eq. 3."""
    scores, hits = lenses.top_label(probabilities, labels)
    return label_binned_error(scores, hits, _equal_width(scores, n_bins, closed), p, weights)


def mcs(probabilities: Rows, labels: Sequence[Label]) -> float:
    """Miscalibration score, mean confidence less accuracy, Ao, Rueger & Siddharthan (2023), eq. 5."""
    scores, hits = lenses.top_label(probabilities, labels)
    return _mean(scores) - _mean(hits)


def in_top_k_ece(
    probabilities: Rows, labels: Sequence[Label], k: int, n_bins: int = 15, closed: str = "right"
) -> float:
    """Calibration error of the event that the truth is among the k likeliest classes."""
    scores, hits = lenses.in_top_k(probabilities, labels, k)
    return binned_error(scores, hits, _equal_width(scores, n_bins, closed))


def ranked_ece(probabilities: Rows, labels: Sequence[Label], k: int, n_bins: int = 15, closed: str = "right") -> float:
    """Calibration error of the event that the truth is the k-th likeliest class."""
    scores, hits = lenses.ranked(probabilities, labels, k)
    return binned_error(scores, hits, _equal_width(scores, n_bins, closed))


# --- every class ----------------------------------------------------------------------------------


def class_errors(
    probabilities: Rows,
    labels: Sequence[Label],
    bins: Callable[[list[float]], Bins],
    aggregate: Aggregate = distances.mean,
    threshold: float | None = None,
) -> list[tuple[float, float]]:
    """Size and error of every class's own event, Nixon et al. (2019), figure 1; nan where nothing is kept."""
    result = []
    for scores, hits in lenses.class_wise(probabilities, labels):
        if threshold is not None:
            scores, hits = lenses.above(scores, hits, threshold)
        error = event_error(scores, hits, bins(scores), aggregate=aggregate)
        result.append((float(len(scores)), error))
    return result


def sce(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    closed: str = "right",
    weights: Weights = None,
) -> float:
    """Static calibration error: equal widths, mean over classes, Nixon et al. (2019), section 5.1."""
    values = []
    for scores, hits in lenses.class_wise(probabilities, labels):
        values.append(event_error(scores, hits, _equal_width(scores, n_bins, closed), weights=weights))
    return _mean(values)


def ace(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    aggregate: Aggregate = distances.mean,
    binned: str = "rank",
) -> float:
    """Adaptive calibration error: equal masses, mean over classes, Nixon et al. (2019), section 5.2."""
    values = class_errors(probabilities, labels, _adaptive(n_bins, binned), aggregate)
    return distances.mean_of_all(values)


def tace(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    threshold: float = 0.01,
    aggregate: Aggregate = distances.mean,
    binned: str = "rank",
) -> float:
    """Thresholded adaptive calibration error, class by class, Nixon et al. (2019), section 5.3.

    ``aggregate`` is ``distances.mean`` for count weights and ``distances.uniform`` for 1/r.
    """
    values = class_errors(probabilities, labels, _adaptive(n_bins, binned), aggregate, threshold)
    return distances.mean_of_all(values)


def tace_flat(
    probabilities: Rows,
    labels: Sequence[Label],
    n_bins: int = 15,
    threshold: float = 0.01,
    aggregate: Aggregate = distances.mean,
    binned: str = "rank",
) -> float:
    """Thresholded adaptive calibration error of all outputs pooled, Nixon et al. (2019), section 5.3."""
    scores, hits = lenses.above(*lenses.flat(probabilities, labels), threshold)
    return event_error(scores, hits, _adaptive(n_bins, binned)(scores), aggregate=aggregate)


def marginal_debiased(probabilities: Rows, labels: Sequence[Label], n_bins: int = 15) -> float:
    """The debiased marginal calibration error: one root over all classes, Kumar, Liang & Ma (2019), section 5."""
    squares = []
    for scores, hits in lenses.class_wise(probabilities, labels):
        squares.append((1.0, debiased_squared_error(scores, hits, binning.equal_mass(scores, n_bins))))
    return distances.root_mean_of(squares)


# --- subsets of rows by class ---------------------------------------------------------------------


def subset_eces(
    probabilities: Rows, labels: Sequence[int], n_bins: int = 15, closed: str = "right", by: str = "label"
) -> list[tuple[float, float]]:
    """Size and top-label error of the rows of every class, Ao, Rueger & Siddharthan (2023), eq. 3."""
    return _subsets(probabilities, labels, by, lambda p, y: ece(p, y, n_bins, closed))


def subset_mcs(probabilities: Rows, labels: Sequence[int], by: str = "label") -> list[tuple[float, float]]:
    """Size and miscalibration score of every class's rows, Ao, Rueger & Siddharthan (2023), section 3.2."""
    return _subsets(probabilities, labels, by, mcs)


def wsece(probabilities: Rows, labels: Sequence[int], n_bins: int = 15, closed: str = "right") -> float:
    """Weighted subset calibration error, Ao, Rueger & Siddharthan (2023), eq. 4."""
    return distances.weighted_by_size(subset_eces(probabilities, labels, n_bins, closed))


def msece(probabilities: Rows, labels: Sequence[int], n_bins: int = 15, closed: str = "right") -> float:
    """Macro subset calibration error, the plain mean over classes, Obadinma et al. (2021)."""
    return distances.mean_of(subset_eces(probabilities, labels, n_bins, closed))


def cece(probabilities: Rows, labels: Sequence[int], n_bins: int = 15, closed: str = "right") -> float:
    """Contraharmonic calibration error over classes, Obadinma et al. (2021)."""
    return distances.contraharmonic(subset_eces(probabilities, labels, n_bins, closed))


def wsmcs(probabilities: Rows, labels: Sequence[int], by: str = "label") -> dict[str, float]:
    """Weighted subset miscalibration score with its parts, Ao, Rueger & Siddharthan (2023), eqs. 6 to 8."""
    return distances.signed_balance(subset_mcs(probabilities, labels, by))


# --- scores ---------------------------------------------------------------------------------------


def brier(probabilities: Rows, labels: Sequence[Label]) -> float:
    """Mean over samples of the squared gaps summed over classes, Brier (1950)."""
    outputs, targets = lenses.full(probabilities, labels)
    gaps = [distances.gap(o, t) for o, t in zip(outputs, targets, strict=True)]
    return _mean([math.fsum(value**2 for value in row) for row in gaps])


def brier_event(scores: Sequence[float], labels: Sequence[float]) -> float:
    """Mean squared gap of one event, Brier (1950)."""
    return _mean([(score - label) ** 2 for score, label in zip(scores, labels, strict=True)])


def log_loss(probabilities: Rows, labels: Sequence[Label]) -> float:
    """Mean of minus the natural logarithm of the true class's output, infinite at 0, Good (1952)."""
    outputs, targets = lenses.full(probabilities, labels)
    return _mean([_cross_entropy(o, t) for o, t in zip(outputs, targets, strict=True)])


def log_loss_event(scores: Sequence[float], labels: Sequence[float]) -> float:
    """Mean of minus the natural logarithm of the output of what happened to one event, Good (1952)."""
    pairs = zip(scores, labels, strict=True)
    return _mean([_cross_entropy([p, 1 - p], [label, 1 - label]) for p, label in pairs])


def accuracy(probabilities: Rows, labels: Sequence[Label]) -> float:
    """Share of samples whose likeliest class is the true one."""
    return _mean(lenses.top_label(probabilities, labels)[1])


def top_k_accuracy(probabilities: Rows, labels: Sequence[Label], k: int) -> float:
    """Share of samples whose true class is among the k likeliest, Kirchenbauer et al. (2022), figure 10."""
    return _mean(lenses.in_top_k(probabilities, labels, k)[1])


def mean_ranked_output(probabilities: Rows, k: int) -> float:
    """Mean of the k-th largest output, Kirchenbauer, Oaks & Heim (2022), figure 2."""
    return _mean([sorted(row, reverse=True)[k - 1] for row in probabilities])


def entropy(row: Sequence[float]) -> float:
    """Entropy of one output in nats, Ao, Rueger & Siddharthan (2023), section 5.4."""
    return -math.fsum(value * math.log(value) for value in row if value > 0)


def mean_entropy(probabilities: Rows) -> float:
    """Mean entropy of the outputs in nats, Kirchenbauer, Oaks & Heim (2022), figure 11."""
    return _mean([entropy(row) for row in probabilities])


# --- failure detection ----------------------------------------------------------------------------


def most_uncertain_first(probabilities: Rows) -> list[int]:
    """Rows by decreasing entropy, equal ones as they come, Ao, Rueger & Siddharthan (2023), section 5.4."""
    return sorted(range(len(probabilities)), key=lambda row: -entropy(probabilities[row]))


def accuracy_after_referral(probabilities: Rows, labels: Sequence[Label], fractions: Sequence[float]) -> list[float]:
    """Accuracy of what is left when the most uncertain are referred, Ao et al. (2023), section 5.4."""
    hits = _hits_most_uncertain_first(probabilities, labels)
    return [_mean(hits[math.floor(fraction * len(hits)) :]) for fraction in fractions]


def risk_coverage(probabilities: Rows, labels: Sequence[Label]) -> list[tuple[float, float]]:
    """Coverage m/n and error rate of the m most certain samples, m = 1 to n, Geifman & El-Yaniv (2017)."""
    hits = _hits_most_uncertain_first(probabilities, labels)
    n = len(hits)
    return [(m / n, 1 - _mean(hits[n - m :])) for m in range(1, n + 1)]


def aurc(probabilities: Rows, labels: Sequence[Label]) -> float:
    """Mean risk over the coverages 1/n to 1, Geifman, Uziel & El-Yaniv (2019)."""
    return _mean([risk for _, risk in risk_coverage(probabilities, labels)])


def augrc(probabilities: Rows, labels: Sequence[Label]) -> float:
    """Area under the share of all samples that are kept and wrong, in straight lines, Traub et al. (2024)."""
    hits = _hits_most_uncertain_first(probabilities, labels)
    n = len(hits)
    wrong = [math.fsum(1 - hit for hit in hits[n - m :]) / n for m in range(n + 1)]
    return math.fsum((wrong[m] + wrong[m + 1]) / 2 / n for m in range(n))


def ranks(values: Sequence[float]) -> list[int]:
    """1 for the smallest, equals alike, Roelofs et al. (2022), tables 4 to 7 (which count from 0)."""
    return [1 + sum(other < value for other in values) for value in values]


# --- the plain steps ------------------------------------------------------------------------------


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _column(values: Sequence[float]) -> list[list[float]]:
    return [[value] for value in values]


def _weighted_mean(rows: Rows, members: Sequence[int], parts: Sequence[float]) -> list[float]:
    total = math.fsum(parts)
    axes = range(len(rows[members[0]]))
    return [math.fsum(w * rows[r][a] for r, w in zip(members, parts, strict=True)) / total for a in axes]


def _equal_width(scores: Sequence[float], n_bins: int, closed: str) -> Bins:
    return binning.from_indices(binning.equal_width(scores, n_bins, closed), n_bins)


def _adaptive(n_bins: int, binned: str) -> Callable[[list[float]], Bins]:
    if binned == "value":
        return lambda scores: binning.from_indices(binning.quantile(scores, n_bins), n_bins)
    return lambda scores: binning.equal_mass(scores, n_bins)


def _subsets(
    probabilities: Rows, labels: Sequence[int], by: str, error: Callable[[Rows, Sequence[int]], float]
) -> list[tuple[float, float]]:
    n_classes = len(probabilities[0]) if probabilities else 0
    groups = lenses.rows_by_label(labels, n_classes)
    if by == "prediction":
        groups = lenses.rows_by_prediction(probabilities)
    result = []
    for rows in groups:
        value = error([probabilities[i] for i in rows], [labels[i] for i in rows])
        result.append((float(len(rows)), value))
    return result


def _cross_entropy(output: Sequence[float], target: Sequence[float]) -> float:
    terms = []
    for value, share in zip(output, target, strict=True):
        if share > 0:
            terms.append(share * (math.inf if value <= 0 else -math.log(value)))
    return math.fsum(terms)


def _hits_most_uncertain_first(probabilities: Rows, labels: Sequence[Label]) -> list[float]:
    hits = lenses.top_label(probabilities, labels)[1]
    return [hits[row] for row in most_uncertain_first(probabilities)]
