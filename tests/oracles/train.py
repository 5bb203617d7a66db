"""Losses of training for calibration, row by row and class by class."""

import math
from collections.abc import Sequence

Row = Sequence[float]


def softmax(row: Row) -> list[float]:
    """Probabilities of one row of logits."""
    powers = [math.exp(z - max(row)) for z in row]
    return [power / math.fsum(powers) for power in powers]


def one_hot(label: int | Row, classes: int) -> list[float]:
    """A label as masses; soft labels are masses already."""
    return [float(k == label) for k in range(classes)] if isinstance(label, int) else list(label)


def cross_entropy(row: Row, label: int | Row) -> float:
    """Surprise at one label."""
    masses = one_hot(label, len(row))
    return math.fsum(-mass * math.log(p) for mass, p in zip(masses, softmax(row), strict=True))


def label_smoothing(row: Row, label: int | Row, alpha: float) -> float:
    """Surprise at one label of which a share is spread over all classes, Szegedy et al. (2016)."""
    masses = one_hot(label, len(row))
    return cross_entropy(row, [(1 - alpha) * mass + alpha / len(row) for mass in masses])


def label_smoothing_of_others(row: Row, label: int, alpha: float) -> float:
    """The same with the share spread over the wrong classes alone."""
    return cross_entropy(row, [1 - alpha if k == label else alpha / (len(row) - 1) for k in range(len(row))])


def focal(row: Row, label: int | Row, gamma: float) -> float:
    """Focal loss of one row, Lin et al. (2017)."""
    return sample_dependent_focal(row, label, 0.5, gamma, gamma)


def sample_dependent_focal(row: Row, label: int | Row, threshold: float, below: float, above: float) -> float:
    """Focal loss of one row with gamma by the probability itself, Mukhoti et al. (2020)."""
    total = 0.0
    for mass, p in zip(one_hot(label, len(row)), softmax(row), strict=True):
        gamma = below if p < threshold else above
        total += -mass * (1 - p) ** gamma * math.log(p)
    return total


def margin(row: Row, label: int | Row, alpha: float, width: float) -> float:
    """Cross-entropy and the mean distance beyond the margin, Liu et al. (2022)."""
    beyond = [max(0.0, max(row) - z - width) for z in row]
    return cross_entropy(row, label) + alpha * math.fsum(beyond) / len(row)


def answers(rows: Sequence[Row], labels: Sequence[int | Row]) -> list[tuple[float, float]]:
    """Confidence and hit of each row; the lowest class wins ties."""
    found = []
    for row, label in zip(rows, labels, strict=True):
        top = list(row).index(max(row))
        found.append((softmax(row)[top], one_hot(label, len(row))[top]))
    return found


def mmce(rows: Sequence[Row], labels: Sequence[int | Row], width: float) -> float:
    """Maximum mean calibration error, pair by pair, Kumar et al. (2018)."""
    pairs = answers(rows, labels)
    terms = [
        (hit - sure) * (other_hit - other) * math.exp(-abs(sure - other) / width)
        for sure, hit in pairs
        for other, other_hit in pairs
    ]
    return math.sqrt(max(0.0, math.fsum(terms))) / len(pairs)


def soft_binned_error(
    rows: Sequence[Row], labels: Sequence[int | Row], n_bins: int, temperature: float, order: float
) -> float:
    """Error over bins that samples share, bin by bin with mean confidence and mean hit, Karandikar et al. (2021)."""
    pairs = answers(rows, labels)
    centres = [(2 * b + 1) / (2 * n_bins) for b in range(n_bins)]
    shares = [softmax([-((sure - centre) ** 2) / temperature for centre in centres]) for sure, _ in pairs]
    total = 0.0
    for b in range(n_bins):
        size = math.fsum(share[b] for share in shares)
        if size > 0:
            sure = math.fsum(share[b] * pair[0] for share, pair in zip(shares, pairs, strict=True)) / size
            hit = math.fsum(share[b] * pair[1] for share, pair in zip(shares, pairs, strict=True)) / size
            total += size / len(pairs) * abs(hit - sure) ** order
    return total ** (1 / order)
