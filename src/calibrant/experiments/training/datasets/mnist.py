"""MNIST: 70,000 grey pictures of 28 x 28, of handwritten digits (LeCun et al. 1998)."""

from __future__ import annotations

from pathlib import Path

from calibrant.experiments.training.datasets.bounded import required
from calibrant.experiments.training.datasets.idx import read_part
from calibrant.experiments.training.datasets.source import Parts, Source

CLASSES = tuple("0123456789")
_HINT = "pass root=FOLDER with train-images-idx3-ubyte.gz and its three siblings"


def read_mnist(root: Path | None) -> Source:
    """The published 60,000 training and 10,000 test pictures."""
    folder = required(root, dataset="mnist", hint=_HINT)
    train, test = (
        read_part(folder, part, dataset="mnist", classes=len(CLASSES), hint=_HINT) for part in ("train", "t10k")
    )
    return Source(CLASSES, Parts(train, test=test))
