"""The folder of pictures: a sub-folder for each class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.pictures import ENDINGS, read_pictures
from calibrant.experiments.training.datasets.source import Parts, Rows, Source

PARTS = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}
"""The names that the folder of a part may have."""


def read_folder(path: Path, label: str | None = None) -> Source:
    """The pictures of `path/class/`, or of `path/train/class/`, `path/test/class/` and `path/validation/class/`.

    Files that are no pictures by their ending, and hidden ones, are passed over; a class without a picture is refused.
    Pictures come in the order of their classes and names.
    """
    if label is not None:
        raise CalibrationInputError(str(path), "takes its labels from sub-folders", got=f"the column {label!r}")
    if not path.is_dir():
        raise CalibrationInputError(str(path), "must be a folder with a sub-folder of pictures for each class")
    folders = {part: found for part, names in PARTS.items() if (found := _first(path, names))}
    if not {"train", "test"} <= folders.keys():
        folders = {"train": path}
    classes = tuple(folder.name for folder in _folders(folders["train"]))
    if len(classes) < 2:
        raise CalibrationInputError(
            str(path), "must have a sub-folder of pictures for each of two or more classes", got=len(classes)
        )
    return Source(classes, Parts(**_rows(folders, classes)))


def _rows(folders: dict[str, Path], classes: tuple[str, ...]) -> dict[str, Rows]:
    """The rows of each part; pictures of all parts are read together, since all must have one size."""
    files = {part: _files(folder, classes) for part, folder in folders.items()}
    pictures = read_pictures([file for found in files.values() for file in found])
    ends = np.cumsum([len(found) for found in files.values()])
    made = {}
    for part, chunk in zip(files, np.split(pictures, ends[:-1]), strict=True):
        labels = np.array([classes.index(file.parent.name) for file in files[part]], np.int64)
        made[part] = Rows(chunk, labels)
    return made


def _files(folder: Path, classes: tuple[str, ...]) -> list[Path]:
    """The pictures of every class, in order; a class that the training rows do not have is refused."""
    files: list[Path] = []
    for each in _folders(folder):
        own = sorted(file for file in each.iterdir() if _is_picture(file))
        if each.name not in classes:
            raise CalibrationInputError(str(each), "must be a class that is trained on", got=f"{each.name!r}")
        if not own:
            raise CalibrationInputError(str(each), f"must hold pictures ({', '.join(ENDINGS)})", got="none")
        files += own
    return files


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _first(path: Path, names: tuple[str, ...]) -> Path | None:
    return next((path / name for name in names if (path / name).is_dir()), None)


def _is_picture(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in ENDINGS and not file.name.startswith(".")
