"""Bundled sets: the four small ones that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.source import LabelledRows, RowsByPart, Source


def read_digits(_: Path | None = None) -> Source:
    """1,797 handwritten digits as grey pictures of 8 x 8."""
    bundle = _bundle("digits")
    return _source(bundle, bundle.images[:, None])


def read_iris(_: Path | None = None) -> Source:
    """150 irises of three species by four lengths."""
    bundle = _bundle("iris")
    return _source(bundle, bundle.data)


def read_wine(_: Path | None = None) -> Source:
    """178 wines of three growers by thirteen measurements."""
    bundle = _bundle("wine")
    return _source(bundle, bundle.data)


def read_breast_cancer(_: Path | None = None) -> Source:
    """569 tumours, malignant or benign, by thirty measurements."""
    bundle = _bundle("breast_cancer")
    return _source(bundle, bundle.data)


def _bundle(name: str) -> Any:
    try:
        import sklearn.datasets
    except ImportError:
        raise CalibrationInputError(
            name, "comes with scikit-learn, which is not installed", hint="pip install 'calibrant[sklearn]'"
        ) from None
    return getattr(sklearn.datasets, f"load_{name}")()


def _source(bundle: Any, inputs: Any) -> Source:
    classes = tuple(str(name) for name in bundle.target_names)
    return Source(classes, RowsByPart(LabelledRows(np.asarray(inputs), bundle.target.astype(np.int64))))
