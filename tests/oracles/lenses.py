"""Lenses: which question is asked of each forecast, on plain lists.

An event lens returns ``(scores, labels)``, one number a row each; a vector lens returns
``(outputs, targets)``, one list a row each. A label is a class index or, when soft, a list with the mass of
every class.
"""

import math
from collections.abc import Sequence

Label = int | Sequence[float]
Rows = Sequence[Sequence[float]]
Events = tuple[list[float], list[float]]
Vectors = tuple[list[list[float]], list[list[float]]]


def mass(label: Label, class_index: int) -> float:
    """Label mass on one class: 1 or 0 for a hard label, the given share for a soft one."""
    if isinstance(label, Sequence):
        return float(label[class_index])
    return 1.0 if label == class_index else 0.0


def ranking(row: Sequence[float]) -> list[int]:
    """Classes from likeliest to least likely; equal outputs in the order of the classes."""
    return sorted(range(len(row)), key=lambda class_index: (-row[class_index], class_index))


def softmax(logits: Rows, temperature: float = 1.0) -> list[list[float]]:
    """Softmax of every row divided by one temperature, Guo et al. (2017), eq. 9."""
    return vector_softmax(logits, [temperature] * len(logits[0])) if logits else []


def vector_softmax(logits: Rows, temperatures: Sequence[float]) -> list[list[float]]:
    """Softmax with one temperature a logit column, Ao, Rueger & Siddharthan (2023), eq. 10."""
    result = []
    for row in logits:
        scaled = [value / temperature for value, temperature in zip(row, temperatures, strict=True)]
        powers = [math.exp(value - max(scaled)) for value in scaled]
        result.append([power / math.fsum(powers) for power in powers])
    return result


def full(probabilities: Rows, labels: Sequence[Label]) -> Vectors:
    """The whole output against the whole label, Kirchenbauer, Oaks & Heim (2022), eq. 1."""
    outputs = [list(row) for row in probabilities]
    targets = [[mass(label, c) for c in range(len(row))] for row, label in zip(outputs, labels, strict=True)]
    return outputs, targets


def top_label(probabilities: Rows, labels: Sequence[Label]) -> Events:
    """Is the likeliest class the true one, Guo et al. (2017), section 2."""
    return ranked(probabilities, labels, 1)


def ranked(probabilities: Rows, labels: Sequence[Label], k: int) -> Events:
    """Is the k-th likeliest class (k from 1) the true one, Kirchenbauer, Oaks & Heim (2022), figure 2."""
    chosen = [ranking(row)[k - 1] for row in probabilities]
    scores = [row[c] for row, c in zip(probabilities, chosen, strict=True)]
    return scores, [mass(label, c) for label, c in zip(labels, chosen, strict=True)]


def in_top_k(probabilities: Rows, labels: Sequence[Label], k: int) -> Events:
    """Is the truth among the k likeliest classes, Kirchenbauer, Oaks & Heim (2022), figure 10."""
    chosen = [ranking(row)[:k] for row in probabilities]
    scores = [math.fsum(row[c] for c in classes) for row, classes in zip(probabilities, chosen, strict=True)]
    hits = [math.fsum(mass(label, c) for c in classes) for label, classes in zip(labels, chosen, strict=True)]
    return scores, hits


def top_k(probabilities: Rows, labels: Sequence[Label], k: int) -> Vectors:
    """The k largest outputs in decreasing order and the rest, Kirchenbauer, Oaks & Heim (2022), eq. 4."""
    outputs, targets = [], []
    for row, label in zip(probabilities, labels, strict=True):
        classes = ranking(row)[:k]
        outputs.append(complete([row[c] for c in classes]))
        targets.append(complete([mass(label, c) for c in classes]))
    return outputs, targets


def groups(probabilities: Rows, labels: Sequence[Label], partition: Sequence[Sequence[int]]) -> Vectors:
    """Sums over groups of classes, Kirchenbauer, Oaks & Heim (2022), eqs. 5 and 6."""
    outputs, targets = full(probabilities, labels)
    for row in outputs:
        assert sorted(c for group in partition for c in group) == list(range(len(row)))
    return _sums(outputs, partition), _sums(targets, partition)


def one_class(probabilities: Rows, labels: Sequence[Label], class_index: int) -> Events:
    """Is the truth this one class, Kirchenbauer, Oaks & Heim (2022), eq. 8."""
    return [row[class_index] for row in probabilities], [mass(label, class_index) for label in labels]


def class_wise(probabilities: Rows, labels: Sequence[Label]) -> list[Events]:
    """The one-class question for every class in turn, Nixon et al. (2019), section 5.1."""
    n_classes = len(probabilities[0]) if probabilities else 0
    return [one_class(probabilities, labels, class_index) for class_index in range(n_classes)]


def flat(probabilities: Rows, labels: Sequence[Label]) -> Events:
    """All outputs of all rows pooled into one event, Nixon et al. (2019), section 5.3."""
    outputs, targets = full(probabilities, labels)
    return [value for row in outputs for value in row], [value for row in targets for value in row]


def event_pairs(scores: Sequence[float], labels: Sequence[float]) -> Vectors:
    """An event completed to the simplex, [p, 1 - p], Kirchenbauer, Oaks & Heim (2022), section 3.2."""
    return [complete([score]) for score in scores], [complete([label]) for label in labels]


def above(scores: Sequence[float], labels: Sequence[float], threshold: float) -> Events:
    """Answers strictly above a threshold, Nixon et al. (2019), section 5.3."""
    kept = [i for i in range(len(scores)) if scores[i] > threshold]
    return [scores[i] for i in kept], [labels[i] for i in kept]


def between(scores: Sequence[float], labels: Sequence[float], low: float, high: float, closed: str = "left") -> Events:
    """Answers in one half-open interval, 0 and 1 included, Kirchenbauer et al. (2022), section 4.1."""
    kept = [i for i in range(len(scores)) if is_between(scores[i], low, high, closed)]
    return [scores[i] for i in kept], [labels[i] for i in kept]


def is_between(score: float, low: float, high: float, closed: str = "left") -> bool:
    """[low, high), with 1 in the last interval; (low, high], with 0 in the first one; [low, high] or (low, high)."""
    if closed == "left":
        return low <= score < high or (score == high == 1)
    if closed == "right":
        return low < score <= high or (score == low == 0)
    return low <= score <= high if closed == "both" else low < score < high


def kept_between(
    outputs: Rows, targets: Rows, low: float, high: float, closed: str = "left", coordinate: int | None = None
) -> Vectors:
    """Rows of an induced problem of which one output, or every one, lies between, Kirchenbauer et al. (2022), 4.1."""
    kept = []
    for i, row in enumerate(outputs):
        asked = row if coordinate is None else [row[coordinate]]
        if all(is_between(value, low, high, closed) for value in asked):
            kept.append(i)
    return [list(outputs[i]) for i in kept], [list(targets[i]) for i in kept]


def rows_by_label(labels: Sequence[int], n_classes: int) -> list[list[int]]:
    """Rows whose true class is 0, 1, ..., Ao, Rueger & Siddharthan (2023), eq. 3."""
    return [[i for i, label in enumerate(labels) if label == c] for c in range(n_classes)]


def rows_by_prediction(probabilities: Rows) -> list[list[int]]:
    """Rows whose likeliest class is 0, 1, ...: another reading of Ao, Rueger & Siddharthan (2023), eq. 3."""
    n_classes = len(probabilities[0]) if probabilities else 0
    return rows_by_label([ranking(row)[0] for row in probabilities], n_classes)


def complete(values: Sequence[float]) -> list[float]:
    """The values and what they leave of 1."""
    return [*values, 1.0 - math.fsum(values)]


def _sums(rows: Rows, partition: Sequence[Sequence[int]]) -> list[list[float]]:
    return [[math.fsum(row[c] for c in group) for group in partition] for row in rows]
