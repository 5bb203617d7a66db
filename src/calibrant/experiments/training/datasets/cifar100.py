"""CIFAR-100: 60,000 colour pictures of 32 x 32, of a hundred things in twenty superclasses (Krizhevsky 2009)."""

from __future__ import annotations

from pathlib import Path

from calibrant.experiments.training.datasets.bounded import required
from calibrant.experiments.training.datasets.cifar import Version, parse_binary, parse_python, read_version
from calibrant.experiments.training.datasets.source import Parts, Source

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
CLASSES = tuple(sorted(name for group in SUPERCLASSES.values() for name in group))
"""In the order of their published numbers, which is alphabetical."""
_VERSIONS = (
    Version("cifar-100-binary.tar.gz", "cifar-100-binary", ("train.bin",), ("test.bin",), parse_binary(label_bytes=2)),
    Version("cifar-100-python.tar.gz", "cifar-100-python", ("train",), ("test",), parse_python(b"fine_labels")),
)


def read_cifar100(root: Path | None) -> Source:
    """The published 50,000 training and 10,000 test pictures."""
    hint = "pass root=FOLDER with cifar-100-binary.tar.gz or cifar-100-python.tar.gz, packed or not"
    folder = required(root, dataset="cifar100", hint=hint)
    train, test = read_version(folder, _VERSIONS, dataset="cifar100", classes=len(CLASSES))
    return Source(CLASSES, Parts(train, test=test), hierarchy={"superclass": SUPERCLASSES})
