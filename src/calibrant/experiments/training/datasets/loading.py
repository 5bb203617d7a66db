"""Loading: a data set by its name, split by a seed and scaled by its training rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.checks import number, whole
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.training.datasets.bags_of_words import read_counts, read_text
from calibrant.experiments.training.datasets.bundled import read_breast_cancer, read_digits, read_iris, read_wine
from calibrant.experiments.training.datasets.cifar import read_cifar10, read_cifar100
from calibrant.experiments.training.datasets.dataset import Dataset, Split, held_out, stratified_order
from calibrant.experiments.training.datasets.idx import read_fashion_mnist, read_mnist
from calibrant.experiments.training.datasets.picture_folders import read_folder
from calibrant.experiments.training.datasets.source import LabelledRows, Source
from calibrant.experiments.training.datasets.tabular import read_columns, read_named_arrays

_NAMED: dict[str, Callable[[Path | None], Source]] = {
    "breast_cancer": read_breast_cancer,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
    "digits": read_digits,
    "fashion_mnist": read_fashion_mnist,
    "iris": read_iris,
    "mnist": read_mnist,
    "wine": read_wine,
}
_OF_FILES: dict[str, Callable[[Path, str | None], Source]] = {
    "counts": read_counts,
    "csv": read_columns,
    "folder": read_folder,
    "npz": read_named_arrays,
    "text": read_text,
}
NAMES = tuple(_NAMED)
"""The sets that have a name."""
KINDS = tuple(_OF_FILES)
"""The kinds of files that are a set of their own, named `kind:path`."""
TEST_SHARE = 0.2
"""The share of rows that is held out for testing where the files do not tell test rows apart."""
_TEST, _VALIDATION, _LIMIT = range(3)


def load(
    name: str,
    *,
    root: str | Path | None = None,
    validation: float = 0.1,
    seed: int = 0,
    limit: int | None = None,
    validation_of: str = "train",
    test: float | None = None,
) -> Dataset:
    """What rows does a data set train, validate and test on?

    `name` is one of `NAMES`, or a kind of `KINDS`, a colon and a path: `folder:pictures` (a sub-folder for each class),
    `npz:rows.npz`, `csv:rows.csv`, `text:reviews.csv` (tf-idf) and `counts:reviews.csv` (counts of words). A label
    column of another name than label, labels or y follows a `#`: `csv:flowers.csv#species`. `root` is the folder
    that holds the files of a named set, or the folder that relative paths start from.

    Test rows are the published ones; where there are none, a fifth of each class, the same whatever the seed, so that
    trials are judged on the same rows. Validation rows are the files' own or else that share of the training rows of
    each class, by the seed; with `validation_of="test"` they are that share of the test rows. With `test`, that share
    of all rows is tested on in the place of the published ones. Of the rest at most `limit` rows are kept, in the
    proportions of the classes; a larger limit keeps all that a smaller one does. Inputs are scaled by what is left to
    train on alone.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "pets.csv").write_text("weight,label\\n" + "4,cat\\n30,dog\\n" * 10)
    >>> pets = load("csv:pets.csv", root=folder.name, validation=0.25)
    >>> pets.classes, pets.train, len(pets.validation), len(pets.test)
    (('cat', 'dog'), Split(12 rows of shape (1,)), 4, 4)
    >>> folder.cleanup()
    """
    number(validation, "validation", "must be a share of at least 0 and below 1", lambda share: 0 <= share < 1)
    whole(seed, "seed", 0)
    source = _source(name, None if root is None else Path(root))
    number(
        0.0 if test is None else test, "test", "must be a share of at least 0 and below 1", lambda share: 0 <= share < 1
    )
    parts = _parts(source, validation, seed, validation_of == "test", test)
    if limit is not None:
        parts["train"] = _limited(parts["train"], limit, len(source.classes), seed)
    scale = source.fit(parts["train"].inputs)
    splits = {part: Split(np.ascontiguousarray(scale(rows.inputs)), rows.labels) for part, rows in parts.items()}
    return Dataset(name, **splits, classes=source.classes, hierarchy=source.hierarchy)


def check_name(name: Any) -> None:
    """Refuse what names no data set; whether its files are there is not looked at.

    >>> check_name("csv:rows.csv")
    >>> check_name("irises")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: name: must name a data set, got 'irises'; did you mean 'iris'?
    """
    if isinstance(name, str):
        kind, _, path = name.partition(":")
        if name in NAMES or (kind in KINDS and path):
            return
    hint = nearest(str(name), (*NAMES, *(f"{kind}:PATH" for kind in KINDS)))
    raise CalibrationInputError("name", "must name a data set", got=repr(name), hint=hint)


def _source(name: str, root: Path | None) -> Source:
    check_name(name)
    if name in _NAMED:
        return _NAMED[name](root)
    kind, _, place = name.partition(":")
    path, label = _path_and_label(place, root or Path())
    return _OF_FILES[kind](path, label)


def _path_and_label(place: str, root: Path) -> tuple[Path, str | None]:
    """The file, and the column that follows a `#`, unless the `#` belongs to the file's own name."""
    before, mark, after = place.rpartition("#")
    return (root / place, None) if not mark or (root / place).exists() else (root / before, after)


def _parts(
    source: Source, validation: float, seed: int, of_test: bool, test_share: float | None
) -> dict[str, LabelledRows]:
    train, held, test = source.parts.train, source.parts.validation, source.parts.test
    if test_share is not None:
        train, held, test = _joined(train, held, test), None, None
    if test is None:
        test, train = _divided(train, TEST_SHARE if test_share is None else test_share, seed=0, stage=_TEST)
    if of_test:
        held, test = _divided(test, validation, seed=seed, stage=_VALIDATION)
    elif held is None:
        held, train = _divided(train, validation, seed=seed, stage=_VALIDATION)
    for part, rows in (("train", train), ("test", test)):
        if not len(rows):
            raise CalibrationInputError(part, "must have rows", got=0, hint="hold out fewer rows, or bring more")
    return {"train": train, "validation": held, "test": test}


def _joined(*parts: LabelledRows | None) -> LabelledRows:
    there = [part for part in parts if part is not None]
    inputs, labels = ([getattr(part, name) for part in there] for name in ("inputs", "labels"))
    return LabelledRows(np.concatenate(inputs), np.concatenate(labels))


def _divided(rows: LabelledRows, share: float, *, seed: int, stage: int) -> tuple[LabelledRows, LabelledRows]:
    out, stay = held_out(rows.labels, share, seed=seed, stage=stage)
    return rows[out], rows[stay] if len(out) else rows


def _limited(rows: LabelledRows, limit: int, classes: int, seed: int) -> LabelledRows:
    whole(limit, "limit", classes)
    order: Array = stratified_order(rows.labels, seed=seed, stage=_LIMIT)
    return rows[np.sort(order[:limit])]
