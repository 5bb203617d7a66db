"""CIFAR-10 and CIFAR-100: colour pictures of 32 x 32 (Krizhevsky 2009), as binary or Python files, archived or not."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import BROKEN, exactly, refuse_size, required
from calibrant.experiments.training.datasets.dataset import Hierarchy
from calibrant.experiments.training.datasets.pickled import array_of, read_pickle
from calibrant.experiments.training.datasets.source import LabelledRows, RowsByPart, Source, checked_labels

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_HIERARCHY = {
    "kind": {
        "animals": ("bird", "cat", "deer", "dog", "frog", "horse"),
        "vehicles": ("airplane", "automobile", "ship", "truck"),
    }
}
SUPERCLASSES = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}
CIFAR100_CLASSES = tuple(sorted(name for group in SUPERCLASSES.values() for name in group))
"""In the order of their published numbers, which is alphabetical."""
_PIXELS = 3 * 32 * 32
_MOST_BYTES = 256 << 20
"""No one file of these sets is larger: the largest has 154 MB."""


def read_cifar10(root: Path | None) -> Source:
    """60,000 animals and vehicles of ten kinds: the published 50,000 pictures to train and 10,000 to test."""
    return _source(root, _CIFAR10, "cifar10", CIFAR10_CLASSES, CIFAR10_HIERARCHY)


def read_cifar100(root: Path | None) -> Source:
    """60,000 things of a hundred kinds in twenty superclasses: the published 50,000 pictures to train and 10,000 to
    test."""
    return _source(root, _CIFAR100, "cifar100", CIFAR100_CLASSES, {"superclass": SUPERCLASSES})


@dataclass(frozen=True)
class Version:
    """One of the published forms of a set: its archive, its folder, its files, and how one of them is read."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    parse: Callable[[bytes, str], tuple[Array, Array]]
    """From a file's content and its name to pixels (n, 3072) and labels (n,)."""


def parse_binary(label_bytes: int) -> Callable[[bytes, str], tuple[Array, Array]]:
    """How the binary version is read: records of some label bytes, of which the last counts, and the pixels."""

    def parse(content: bytes, name: str) -> tuple[Array, Array]:
        record = label_bytes + _PIXELS
        if not content or len(content) % record:
            raise CalibrationInputError(name, f"must be whole records of {record} bytes", got=f"{len(content):,} bytes")
        records = np.frombuffer(content, np.uint8).reshape(-1, record)
        return records[:, label_bytes:], records[:, label_bytes - 1]

    return parse


def parse_python(label_key: bytes) -> Callable[[bytes, str], tuple[Array, Array]]:
    """How the Python version is read: a dictionary with an array `data` and a list of labels, never unpickled."""

    def parse(content: bytes, name: str) -> tuple[Array, Array]:
        batch = read_pickle(content, name)
        if not isinstance(batch, dict) or not {b"data", label_key} <= batch.keys():
            raise CalibrationInputError(name, f"must hold data and {label_key.decode()}", got=type(batch).__name__)
        labels = batch[label_key]
        if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
            raise CalibrationInputError(name, "must have a list of small numbers as labels", got="another")
        return array_of(batch[b"data"], name), np.array(labels, np.uint8)

    return parse


_CIFAR10 = (
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
_CIFAR100 = (
    Version("cifar-100-binary.tar.gz", "cifar-100-binary", ("train.bin",), ("test.bin",), parse_binary(label_bytes=2)),
    Version("cifar-100-python.tar.gz", "cifar-100-python", ("train",), ("test",), parse_python(b"fine_labels")),
)


def _source(
    root: Path | None, versions: Sequence[Version], dataset: str, classes: tuple[str, ...], hierarchy: Hierarchy
) -> Source:
    """The training and the test rows of the first version that the folder holds, unpacked or archived."""
    archives = " or ".join(version.archive for version in versions)
    folder = required(root, dataset=dataset, hint=f"pass root=FOLDER with {archives}, packed or not")
    for version in versions:
        contents = _contents(folder, version)
        if contents is not None:
            train, test = (_rows(version, contents, names, len(classes)) for names in (version.train, version.test))
            return Source(classes, RowsByPart(train, test=test), hierarchy=hierarchy)
    raise CalibrationInputError(
        dataset,
        f"needs {archives}, or its folder unpacked",
        got=f"none in {folder}",
        hint="it is published by the University of Toronto (Krizhevsky)",
    )


def _rows(version: Version, contents: dict[str, bytes], names: tuple[str, ...], classes: int) -> LabelledRows:
    pixels, labels = zip(*(_checked(version, contents.pop(name), name, classes) for name in names), strict=True)
    return LabelledRows(np.concatenate(pixels).reshape(-1, 3, 32, 32), np.concatenate(labels))


def _checked(version: Version, content: bytes, name: str, classes: int) -> tuple[Array, Array]:
    pixels, labels = version.parse(content, name)
    if pixels.ndim != 2 or pixels.shape[1] != _PIXELS or len(pixels) != len(labels) or not len(labels):
        raise CalibrationInputError(
            name,
            f"must hold rows of {_PIXELS} bytes, each with a label",
            got=f"{pixels.shape} and {len(labels)} labels",
        )
    return pixels, checked_labels(labels, classes, name)


def _contents(root: Path, version: Version) -> dict[str, bytes] | None:
    """The content of the files by their names; None where the version is not there."""
    for folder in (root / version.folder, root):
        if all((folder / name).is_file() for name in version.train + version.test):
            return {name: _file(folder / name) for name in version.train + version.test}
    archive = root if root.name == version.archive else root / version.archive
    return _unpacked(archive, version) if archive.is_file() else None


def _file(path: Path) -> bytes:
    _refuse_large(path, path.stat().st_size, path.name)
    with path.open("rb") as file:
        return exactly(file, path.stat().st_size, path)


def _unpacked(archive: Path, version: Version) -> dict[str, bytes]:
    """The wanted members of an archive, found by name and read into memory; nothing is written to the disk."""
    wanted = {f"{version.folder}/{name}": name for name in version.train + version.test}
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                _refuse_large(archive, member.size, member.name)
                name = wanted.get(member.name.removeprefix("./"))
                file = tar.extractfile(member) if name is not None and member.isfile() else None
                if name is not None and file is not None:
                    contents[name] = exactly(file, member.size, archive)
    except (tarfile.TarError, *BROKEN) as reason:
        raise CalibrationInputError(str(archive), "must be a whole archive", got=str(reason)) from None
    missing = [member for member, name in wanted.items() if name not in contents]
    if missing:
        raise CalibrationInputError(str(archive), f"must hold {missing[0]}", got="none")
    return contents


def _refuse_large(path: Path, size: int, name: str) -> None:
    if size > _MOST_BYTES:
        raise CalibrationInputError(str(path), "must hold files of a reasonable size", got=f"{size:,} bytes in {name}")
    refuse_size(path, size)
