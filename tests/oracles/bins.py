"""Binnings: which samples are pooled, on plain lists.

Everything an error needs is a list of bins, each a list of ``(row, share)``: the share of a row is 1 unless
an equal-mass cut runs through a group of tied scores, when every row of the group has the same share.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Bin = list[tuple[int, Fraction]]
Bins = list[Bin]
Rows = Sequence[Sequence[float]]

SLACK = 1e-12


def whole(groups: Sequence[Sequence[int]]) -> Bins:
    """Bins in which every row counts once, from lists of row numbers."""
    return [[(row, Fraction(1)) for row in group] for group in groups]


def from_indices(indices: Sequence[int], n_bins: int) -> Bins:
    """Bins from the bin number of every row; empty bins are kept."""
    return whole([[row for row, index in enumerate(indices) if index == k] for k in range(n_bins)])


def repeat(values: Sequence, counts: Sequence[int]) -> list:
    """Every value as often as its whole weight says."""
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def by_edges(scores: Sequence[float], edges: Sequence[float], closed: str = "right") -> list[int]:
    """Bin numbers for given edges; the outermost bins are closed at both ends of the range."""
    return [_index(score, edges, closed) for score in scores]


def equal_width(scores: Sequence[float], n_bins: int, closed: str = "right") -> list[int]:
    """Bin numbers for intervals of width 1/b with edges k/b, Guo et al. (2017), eq. 3."""
    return by_edges(scores, [k / n_bins for k in range(n_bins + 1)], closed)


def equal_mass_stable(scores: Sequence[float], n_bins: int) -> list[int]:
    """Bin numbers floor(rank b / n), equal scores ranked as they come, Roelofs et al. (2022), section 2.1."""
    indices = [0] * len(scores)
    for rank, row in enumerate(_order(scores)):
        indices[row] = rank * n_bins // len(scores)
    return indices


def equal_mass(scores: Sequence[float], n_bins: int) -> Bins:
    """Equal-mass bins by rank, tied scores sharing their mean label, Roelofs et al. (2022), section 2.1."""
    indices = equal_mass_stable(scores, n_bins)
    bins: Bins = [[] for _ in range(n_bins)]
    for tied in _tie_groups(scores):
        for k in range(n_bins):
            inside = sum(1 for row in tied if indices[row] == k)
            if inside:
                bins[k] += [(row, Fraction(inside, len(tied))) for row in tied]
    return bins


def quantile(scores: Sequence[float], n_bins: int) -> list[int]:
    """Bin numbers for cuts at sorted values, ties together, as in the code of Nixon et al. (2019)."""
    ordered = sorted(scores)
    places = [round(Fraction(i * len(ordered), n_bins)) for i in range(1, n_bins)]  # halves to even
    edges = [ordered[min(place, len(ordered) - 1)] for place in places] if ordered else []
    return [sum(1 for edge in edges if edge <= score) for score in scores]


def grid(rows: Rows, n_bins: int, closed: str = "right") -> list[list[int]]:
    """Occupied cells of b intervals on all axes but the last, Kirchenbauer et al. (2022), appendix B.1.

    A row of one coordinate is binned on that coordinate.
    """
    cells: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows):
        axes = row if len(row) == 1 else row[:-1]
        cells.setdefault(tuple(equal_width(axes, n_bins, closed)), []).append(number)
    return [cells[cell] for cell in sorted(cells)]


def kd_tree(rows: Rows, gamma: float, threshold: str = "mean", unit: Fraction | None = None) -> list[list[int]]:
    """Leaves, left to right, of splits on the widest axis, Kirchenbauer et al. (2022), appendix B.1.

    A node of fewer than round(gamma n) rows is a leaf, as in the code of Vaicenavicius et al. (2019); the
    widest axis is that of the largest variance. With a unit, values are rounded to whole multiples of it
    before they are averaged.
    """
    return _split(rows, list(range(len(rows))), round(gamma * len(rows)), threshold, unit) if rows else []


def sweep_equal_mass(scores: Sequence[float], labels: Sequence[float], ties: str = "average") -> tuple[int, Bins]:
    """The last equal-mass bins before the labels stop rising, Roelofs et al. (2022), algorithm 1."""
    if ties == "stable":
        return _sweep(labels, lambda b: from_indices(equal_mass_stable(scores, b), b))
    return _sweep(labels, lambda b: equal_mass(scores, b))


def sweep_equal_width(scores: Sequence[float], labels: Sequence[float], closed: str = "right") -> tuple[int, Bins]:
    """The last equal-width bins before the labels stop rising, Roelofs et al. (2022), algorithm 1."""
    return _sweep(labels, lambda b: from_indices(equal_width(scores, b, closed), b))


def is_monotonic(labels: Sequence[float], bins: Bins) -> bool:
    """Do the mean labels of the non-empty bins never fall, Roelofs et al. (2022), section 4."""
    means = [_mean_label(labels, members) for members in bins if members]
    return all(means[k] <= means[k + 1] + SLACK for k in range(len(means) - 1))


def _index(score: float, edges: Sequence[float], closed: str) -> int:
    last = len(edges) - 2
    for k in range(last):
        if score < edges[k + 1] or (closed == "right" and score == edges[k + 1]):
            return k
    return last


def _order(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda row: scores[row])


def _tie_groups(scores: Sequence[float]) -> list[list[int]]:
    groups: dict[float, list[int]] = {}
    for row in _order(scores):
        groups.setdefault(scores[row], []).append(row)
    return list(groups.values())


def _mean_label(labels: Sequence[float], members: Bin) -> float:
    total = math.fsum(float(share) * labels[row] for row, share in members)
    return total / float(sum(share for _, share in members))


def _sweep(labels: Sequence[float], binned: Callable[[int], Bins]) -> tuple[int, Bins]:
    n_bins, bins = 1, binned(1)
    for candidate in range(2, len(labels) + 1):
        finer = binned(candidate)
        if not is_monotonic(labels, finer):
            break
        n_bins, bins = candidate, finer
    return n_bins, bins


def _split(rows: Rows, members: list[int], limit: int, threshold: str, unit: Fraction | None) -> list[list[int]]:
    if len(members) < limit:
        return [members]
    axis = _widest_axis(rows, members)
    values = [rows[row][axis] for row in members]
    cut = _median(values) if threshold == "median" else _mean(values, unit)
    left = [row for row in members if rows[row][axis] < cut]
    right = [row for row in members if not rows[row][axis] < cut]
    if not left or not right:
        return [members]
    return _split(rows, left, limit, threshold, unit) + _split(rows, right, limit, threshold, unit)


def _widest_axis(rows: Rows, members: Sequence[int]) -> int:
    variances = [_variance([rows[row][axis] for row in members]) for axis in range(len(rows[0]))]
    return next(axis for axis, variance in enumerate(variances) if variance >= max(variances) - SLACK)


def _variance(values: Sequence[float]) -> float:
    mean = sum(Fraction(value) for value in values) / len(values)
    return float(sum((Fraction(value) - mean) ** 2 for value in values) / len(values))


def _mean(values: Sequence[float], unit: Fraction | None) -> float:
    if unit is None:
        return float(sum(Fraction(value) for value in values) / len(values))
    return float(sum(round(Fraction(value) / unit) for value in values) * unit / len(values))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
