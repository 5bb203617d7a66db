"""Everything that writes, under faults: afterwards the old or the new content is there, never a third."""

import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.experiments.training.trial_outcomes import pack, write_arrays
from calibrant.files.reading import write
from calibrant.files.writing import whole_file, write_text
from calibrant.simulate.store import FinishedCells
from faults.injection import KILLED, Point, injected, killed, points

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Unix")

P = np.array([[0.75, 0.25], [0.5, 0.5]])


def in_parts(folder, mark):
    with whole_file(folder / "parts.bin") as file:
        for _ in range(3):
            file.write(mark.encode() * 10_000)


def table(ending, folder, mark):
    columns = {"label": np.array(["cat", "dog"]), "who": np.array([mark, mark])}
    write(folder / f"table.{ending}", P, ["cat", "dog"], columns)


def parquet(folder, mark):
    pytest.importorskip("pyarrow")
    table("parquet", folder, mark)


def state(folder, mark):
    rows = cal.Predictions.from_probs([1, 0], [0.9, 0.2 if mark == "old" else 0.3])
    cal.scale.State.of(rows, {"ece": cal.ECE, "auroc": cal.AUROC}).save(folder / "day.state")


def archive(folder, mark):
    member = folder.parent / f"{mark}.npz"
    member.write_text(mark)
    pack([member], folder / "packed")


def model(folder, mark):
    pytest.importorskip("onnx")
    logits = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.5, 0.0]])
    cal.TemperatureScaling().fit(logits, [0, int(mark == "new"), 0, 1]).to_onnx(folder / "model.onnx")


WRITERS = {
    "text": lambda folder, mark: write_text(folder / "text.txt", mark),
    "text through a link": lambda folder, mark: write_text(folder / "link.txt", mark),
    "parts": in_parts,
    "csv": lambda folder, mark: table("csv", folder, mark),
    "npz": lambda folder, mark: table("npz", folder, mark),
    "parquet": parquet,
    "state": state,
    "arrays": lambda folder, mark: write_arrays(folder / "arrays.npz", {"mark": np.array([mark])}),
    "cell of a simulation": lambda folder, mark: FinishedCells(folder).write({"n": 1}, {"mark": mark}),
    "archive": archive,
    "onnx": model,
}
"""What writes one file, with an old or a new mark in it."""


def shown(folder):
    """What a folder shows: the content under each name, of archives (which hold the time) that of their members."""
    contents = {}
    for path in folder.iterdir():
        if path.name.startswith(".") or not path.exists():
            continue
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as members:
                contents[path.name] = {name: members.read(name) for name in members.namelist()}
        else:
            contents[path.name] = path.read_bytes()
    return contents


class Scene:
    """A folder in which a writer works: what it shows before and after, and the writer with the new mark."""

    def __init__(self, name: str, root: Path, over: bool):
        self.root, self.writer, self.over, self.count = root, WRITERS[name], over, 0
        self.links = {"link.txt": "text.txt"} if "link" in name else {}
        self.before, self.after = shown(self.folder()), shown(self.written())
        assert self.before != self.after

    def folder(self):
        """A new folder as it is before."""
        self.count += 1
        folder = self.root / str(self.count) / "work"
        folder.mkdir(parents=True)
        for name, target in self.links.items():
            (folder / name).symlink_to(target)
        if self.over:
            self.writer(folder, "old")
        return folder

    def written(self):
        folder = self.folder()
        self.writer(folder, "new")
        return folder

    def points(self):
        folder = self.folder()
        return points(lambda: self.writer(folder, "new"))


@pytest.fixture(params=[(name, over) for name in WRITERS for over in (True, False)], ids=str)
def scene(request, tmp_path):
    name, over = request.param
    return Scene(name, tmp_path, over)


def test_an_error_leaves_the_old_content_and_nothing_else(scene):
    for point in scene.points():
        if point.kind == "kill":
            continue
        folder, reason = scene.folder(), None
        try:
            with injected(point):
                scene.writer(folder, "new")
        except OSError as error:
            reason = error
        assert shown(folder) == (scene.after if reason is None else scene.before), point
        assert not [path for path in folder.iterdir() if path.name.startswith(".")], point
        assert reason is None or Path(reason.filename).parent == folder, point


def test_a_kill_leaves_the_old_or_the_new_content_and_the_next_run_does_its_work(scene):
    for point in scene.points():
        if point.kind != "kill":
            continue
        folder = scene.folder()
        assert killed(point, lambda folder=folder: scene.writer(folder, "new")) == KILLED, point
        assert shown(folder) in (scene.before, scene.after), point
        scene.writer(folder, "new")
        assert shown(folder) == scene.after, point
        assert all((folder / name).is_symlink() for name in scene.links)


def test_what_is_said_to_be_written_is_on_the_disk_before_it_has_its_name(scene):
    folder = scene.folder()
    with injected(None) as layer:
        scene.writer(folder, "new")
    calls = [call for call, _ in layer.trace]
    assert calls == ["open", *["write"] * calls.count("write"), "fsync", "replace", "open", "fsync"]
    assert calls.count("write") >= 1


def test_there_are_many_places_where_writing_can_fail(tmp_path):
    every = [
        point
        for name in WRITERS
        for over in (True, False)
        for point in Scene(name, tmp_path / f"{name} {over}", over).points()
    ]
    assert len(every) >= 200


def test_an_error_while_cleaning_up_is_not_what_is_told(tmp_path):
    write_text(tmp_path / "a.txt", "old")

    def fail():
        with whole_file(tmp_path / "a.txt"):
            raise ZeroDivisionError

    with injected(Point("unlink", 0, "EIO")), pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "a.txt").read_text() == "old"


def test_the_end_of_a_process_at_a_commit_leaves_the_rows_before_or_after_it(tmp_path):
    path = tmp_path / "rows.sqlite"

    def add():
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("insert into rows values (1)")

    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table rows (number)")
    counts = []
    for point in points(add):
        assert (point.call, point.kind) == ("commit", "kill")
        before = counts[-1] if counts else 1  # the run that listed the points
        assert killed(point, add) == KILLED
        with closing(sqlite3.connect(path)) as database, database:
            counts.append(database.execute("select count(*) from rows").fetchone()[0])
        assert counts[-1] == before + point.after
    assert counts == [1, 2]
