"""Splitting: which rows are held out, in the proportions of the classes, by a seed."""

from __future__ import annotations

import numpy as np

from calibrant.door.arrays import Array


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
