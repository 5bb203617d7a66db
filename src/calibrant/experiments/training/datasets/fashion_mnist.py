"""Fashion-MNIST: 70,000 grey pictures of 28 x 28, of ten kinds of clothes, shoes and bags (Xiao et al. 2017)."""

from __future__ import annotations

from pathlib import Path

from calibrant.experiments.training.datasets.idx import read_part
from calibrant.experiments.training.datasets.source import Parts, Source

CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
HIERARCHY = {
    "kind": {
        "tops": ("T-shirt/top", "Pullover", "Coat", "Shirt"),
        "bottoms": ("Trouser",),
        "dresses": ("Dress",),
        "footwear": ("Sandal", "Sneaker", "Ankle boot"),
        "bags": ("Bag",),
    },
    "department": {
        "clothing": ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Shirt"),
        "footwear": ("Sandal", "Sneaker", "Ankle boot"),
        "accessories": ("Bag",),
    },
}
PACKAGED = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts the files."""


def read_fashion_mnist(root: Path | None) -> Source:
    """The published 60,000 training and 10,000 test pictures."""
    hint = "apt-get install dataset-fashion-mnist, or pass root=FOLDER with the four IDX files"
    train, test = (
        read_part(root or PACKAGED, part, dataset="fashion_mnist", classes=len(CLASSES), hint=hint)
        for part in ("train", "t10k")
    )
    return Source(CLASSES, Parts(train, test=test), hierarchy=HIERARCHY)
