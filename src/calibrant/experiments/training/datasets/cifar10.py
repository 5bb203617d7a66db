"""CIFAR-10: 60,000 colour pictures of 32 x 32, of ten kinds of animals and vehicles (Krizhevsky 2009)."""

from __future__ import annotations

from pathlib import Path

from calibrant.experiments.training.datasets.bounded import required
from calibrant.experiments.training.datasets.cifar import Version, parse_binary, parse_python, read_version
from calibrant.experiments.training.datasets.source import Parts, Source

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
HIERARCHY = {
    "kind": {
        "animals": ("bird", "cat", "deer", "dog", "frog", "horse"),
        "vehicles": ("airplane", "automobile", "ship", "truck"),
    }
}
_VERSIONS = (
    Version(
        "cifar-10-binary.tar.gz",
        "cifar-10-batches-bin",
        tuple(f"data_batch_{batch}.bin" for batch in range(1, 6)),
        ("test_batch.bin",),
        parse_binary(label_bytes=1),
    ),
    Version(
        "cifar-10-python.tar.gz",
        "cifar-10-batches-py",
        tuple(f"data_batch_{batch}" for batch in range(1, 6)),
        ("test_batch",),
        parse_python(b"labels"),
    ),
)


def read_cifar10(root: Path | None) -> Source:
    """The published 50,000 training and 10,000 test pictures."""
    hint = "pass root=FOLDER with cifar-10-binary.tar.gz or cifar-10-python.tar.gz, packed or not"
    folder = required(root, dataset="cifar10", hint=hint)
    train, test = read_version(folder, _VERSIONS, dataset="cifar10", classes=len(CLASSES))
    return Source(CLASSES, Parts(train, test=test), hierarchy=HIERARCHY)
