"""The data set: rows ready for a network, in three parts that share no row; how rows are held out and inputs scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError, nearest

Hierarchy = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Level -> group -> names of classes; a group map of one level is what the lens `Groups` takes."""
_ROWS_AT_ONCE = 4096
"""Rows that are held in float64 at a time."""


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs (n, ...) in float32 and C order, labels (n,) in int64.

    >>> from calibrant.experiments.training.datasets import Split
    >>> Split(np.zeros((2, 3), np.float32), np.array([0, 1]))
    Split(2 rows of shape (3,))
    """

    inputs: Array
    labels: Array

    def __post_init__(self) -> None:
        if self.inputs.dtype != np.float32 or not self.inputs.flags.c_contiguous:
            raise CalibrationInputError("inputs", "must be float32 in C order", got=str(self.inputs.dtype))
        if self.labels.dtype != np.int64 or self.labels.shape != self.inputs.shape[:1]:
            raise CalibrationInputError(
                "labels",
                f"must be {len(self.inputs)} numbers in int64",
                got=f"{self.labels.dtype} of shape {self.labels.shape}",
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Split({len(self)} rows of shape {self.inputs.shape[1:]})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set: three splits, the names of the classes, and how the classes fall into groups.

    >>> from calibrant.experiments.training.datasets import Dataset, Split
    >>> rows = Split(np.zeros((2, 3), np.float32), np.array([0, 1]))
    >>> Dataset("pets", rows, rows, rows, ("cat", "dog")).shape
    (3,)
    """

    name: str
    train: Split
    validation: Split
    test: Split
    classes: tuple[str, ...]
    hierarchy: Hierarchy = field(default_factory=dict)

    def __post_init__(self) -> None:
        for level, groups in self.hierarchy.items():
            refuse_overlap(level, groups, self.classes)
        for split in (self.train, self.validation, self.test):
            _refuse_stray_labels(split.labels, len(self.classes), self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.train.inputs.shape[1:])


def stratified_order(labels: Array, *, seed: int, stage: int) -> Array:
    r"""In which order must rows be taken so that any first part of them has the classes in proportion?

    The rows of a class are shuffled; the one of rank r among n_c goes to the place

    .. math:: (r + \tfrac12) / n_c

    of all, and rows of one place are shuffled again. Of K classes, the first m rows hold m n_c / n rows of class c,
    give or take (1 + K) / 2, and less than one where classes are equally many. A longer part contains every shorter
    one. Drawn from SeedSequence(seed, spawn_key=(stage,)).

    >>> order = stratified_order(np.array([0, 0, 0, 0, 1, 1]), seed=0, stage=0)
    >>> np.bincount(np.array([0, 0, 0, 0, 1, 1])[order[:3]]).tolist()
    [2, 1]
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stage,)))
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels, minlength=1)
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = (rank + 0.5) / np.repeat(sizes, sizes)
    return by_class[np.lexsort((rng.random(len(labels)), place))]


def held_out(labels: Array, share: float, *, seed: int, stage: int) -> tuple[Array, Array]:
    """The rows held out and the rows that stay, each in the order they had: a share of each class, by the seed.

    A share of 0 holds out none; any other holds out at least one row.

    >>> out, stay = held_out(np.array([0, 1] * 5), 0.4, seed=0, stage=0)
    >>> len(out), len(stay), sorted([*out.tolist(), *stay.tolist()])
    (4, 6, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    order = stratified_order(labels, seed=seed, stage=stage)
    count = max(1, round(share * len(labels))) if share else 0
    return np.sort(order[:count]), np.sort(order[count:])


@dataclass(frozen=True, eq=False)
class Standard:
    """Inputs (n, channels, ...), less the channel's mean, over its standard deviation, in float32.

    >>> Standard(np.array([1.0, 10.0]), np.array([2.0, 5.0]))(np.array([[3.0, 0.0]])).tolist()
    [[1.0, -2.0]]
    """

    mean: Array
    deviation: Array

    def __call__(self, inputs: Array) -> Array:
        if inputs.dtype == np.uint8 and inputs.ndim > 2:
            return self._looked_up(inputs)
        scaled = np.empty(inputs.shape, np.float32)
        shape = (-1,) + (1,) * (inputs.ndim - 2)
        mean, deviation = self.mean.reshape(shape), self.deviation.reshape(shape)
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            scaled[rows] = (inputs[rows] - mean) / deviation
        return scaled

    def _looked_up(self, pixels: Array) -> Array:
        """Pixels have 256 values: each is scaled once."""
        scaled = np.empty(pixels.shape, np.float32)
        values = (np.arange(256) - self.mean[:, None]) / self.deviation[:, None]
        for channel, table in enumerate(values.astype(np.float32)):
            scaled[:, channel] = table[pixels[:, channel]]
        return scaled


def standardise(train: Array) -> Standard:
    r"""What mean and standard deviation have the training inputs (n, channels, ...) in each channel?

    .. math:: \mu_c = \frac1m \sum x_c, \quad \sigma_c = \sqrt{\frac1m \sum (x_c - \mu_c)^2}

    over all rows and pixels; columns of a table are channels. A channel that never changes has a deviation of 1, which
    makes it 0. Pixels in uint8 are counted by value, so that nothing is rounded before the last division.

    >>> standard = standardise(np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> standard.mean.tolist(), standard.deviation.tolist()
    ([2.0, 7.0], [1.0, 1.0])
    """
    if train.dtype == np.uint8 and train.ndim > 2:
        moments = [_counted(train[:, channel]) for channel in range(train.shape[1])]
        mean, deviation = np.array(moments).reshape(-1, 2).T
    else:
        axes = tuple(axis for axis in range(train.ndim) if axis != 1)
        mean, deviation = train.mean(axes, np.float64), train.std(axes, np.float64)
    return Standard(mean, np.where(deviation > 0, deviation, 1.0))


def _counted(pixels: Array) -> tuple[float, float]:
    counts = np.bincount(pixels.ravel(), minlength=256)
    mean = counts @ np.arange(256) / counts.sum()
    return float(mean), float(np.sqrt(counts @ (np.arange(256) - mean) ** 2 / counts.sum()))


def refuse_overlap(level: str, groups: Mapping[str, tuple[str, ...]], classes: tuple[str, ...]) -> None:
    """Refuse groups that do not hold every class once.

    >>> refuse_overlap("kind", {"pets": ("cat",)}, ("cat", "dog"))
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: hierarchy level 'kind': must hold every class once, got no 'dog'
    """
    members = [name for group in groups.values() for name in group]
    if sorted(members) != sorted(classes):
        missing, new = sorted(set(classes) - set(members)), sorted(set(members) - set(classes))
        twice = [name for name in members if members.count(name) > 1]
        got = f"{new[0]!r}, which is no class" if new else f"no {missing[0]!r}" if missing else f"{twice[0]!r} twice"
        hint = nearest(new[0], classes) if new else None
        raise CalibrationInputError(f"hierarchy level {level!r}", "must hold every class once", got=got, hint=hint)


def _refuse_stray_labels(labels: Array, classes: int, name: str) -> None:
    stray = np.flatnonzero((labels < 0) | (labels >= classes))
    if stray.size:
        raise CalibrationInputError(
            name, f"must have labels in 0..{classes - 1}", got=int(labels[stray[0]]), where=f"row {stray[0]}"
        )
