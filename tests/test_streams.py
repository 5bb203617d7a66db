"""Streams: pipes and standard input are read once, and what is neither file nor pipe is refused at once."""

import gzip
import io
import json
import os
import socket
import stat
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import calibrant as cal
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.checking import read as read_study
from calibrant.experiments.design.checking import text_of
from calibrant.experiments.running.study_store import Store
from calibrant.files import read
from calibrant.specification import spelling

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")

CSV = b"label,p\n1,0.9\n0,0.2\n1,0.7\n"
PLAIN = cal.Predictions.from_probs([1, 0, 1], np.array([0.9, 0.2, 0.7]))


def packed(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def parquet():
    pyarrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    files.write_table(pyarrow.table({"label": [1, 0, 1], "p": [0.9, 0.2, 0.7]}), file)
    return file.getvalue()


CONTENTS = {
    "csv": lambda: CSV,
    "csv after a mark": lambda: b"\xef\xbb\xbf" + CSV,
    "tsv": lambda: CSV.replace(b",", b"\t"),
    "jsonl": lambda: b'{"label": 1, "p": 0.9}\n{"label": 0, "p": 0.2}\n{"label": 1, "p": 0.7}\n',
    "npz": lambda: packed(label=[1, 0, 1], p=[0.9, 0.2, 0.7]),
    "parquet": parquet,
    "gzip": lambda: gzip.compress(CSV),
}


@contextmanager
def pipe(path, content):
    """A pipe into which something is written once."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield path
    writer.join(10)
    assert not writer.is_alive()


def assert_plain(predictions):
    assert predictions.values.tolist() == PLAIN.values.tolist()
    assert predictions.labels.tolist() == PLAIN.labels.tolist()


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("name", ["pipe", "63", "scores.of.today"])
def test_a_pipe_is_read_once_and_its_content_tells_the_format(tmp_path, name, content):
    with pipe(tmp_path / name, content()) as path:
        assert_plain(read(path))


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_standard_input_is_read_once_and_its_content_tells_the_format(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content())))
    assert_plain(read("-"))


def test_errors_name_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"label,p\n1,high\n")))
    with pytest.raises(CalibrationInputError, match="standard input: column 'p' must have a number"):
        read("-")


def test_labels_and_forecasts_may_come_by_pipes(tmp_path):
    contents = []
    for array in (np.array([1, 0, 1]), np.array([0.9, 0.2, 0.7])):
        file = io.BytesIO()
        np.save(file, array)
        contents.append(file.getvalue())
    with pipe(tmp_path / "labels", contents[0]) as labels, pipe(tmp_path / "p", contents[1]) as forecasts:
        assert_plain(read((labels, forecasts)))


def test_a_pipe_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.door.streams.MOST_BYTES", 10)
    with pipe(tmp_path / "p.csv", CSV) as path, pytest.raises(CalibrationInputError, match="at most 10 bytes"):
        read(path)


def maps(path):
    return cal.recalibrate.Recalibrator.from_json(InputFile.of(path).text())


READERS = {
    "predictions": read,
    "scores": cal.files.read_scores,
    "a study": read_study,
    "a matrix": lambda path: spelling.metrics(f"mahalanobis(@{path})"),
    "a map": maps,
}
OTHERS = {
    "a scan": lambda path: cal.scale.scan(path, {"ece": cal.ECE}),
    "a pattern": lambda path: cal.scale.scan(f"{path}/*.csv", {"ece": cal.ECE}),
    "several files": lambda path: cal.scale.scan([path, path], {"ece": cal.ECE}),
    "the folder of states": lambda path: cal.scale.scan(__file__, {"ece": cal.ECE}, resume=path),
    "a state": cal.scale.State.load,
    "a watch": cal.watch.Watch,
    "a store": Store,
    "a new store": lambda path: Store(path, create=True),
}
"""What else takes a name."""


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_directories_sockets_and_devices_are_refused_at_once(tmp_path, monkeypatch, reader):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        reader(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(CalibrationInputError, match="socket: must be a file or a pipe, got a socket"):
            reader(tmp_path / "socket")
    try:
        os.mknod(tmp_path / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices can be made here")
    with pytest.raises(CalibrationInputError, match="zero: must be a file or a pipe, got a device"):
        reader(tmp_path / "zero")


@pytest.mark.parametrize("reader", [*READERS.values(), *OTHERS.values()], ids=[*READERS, *OTHERS])
@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name, reader):
    with pytest.raises(CalibrationInputError, match="a name that a file can have"):
        reader(f"{tmp_path}/{name}")


def test_a_matrix_a_map_and_a_study_may_come_by_pipes(tmp_path):
    matrix = [[2.0, 0.0], [0.0, 1.0]]
    with pipe(tmp_path / "matrix.json", json.dumps(matrix).encode()) as path:
        (metric,) = spelling.metrics(f"mahalanobis(@{path})").values()
    assert "mahalanobis" in metric.to_json().lower()
    fitted = cal.TemperatureScaling().fit(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.5, 0.0]]), [0, 1, 0, 1])
    with pipe(tmp_path / "map", fitted.to_json().encode()) as path:
        assert maps(path).temperature_ == fitted.temperature_
    with pipe(tmp_path / "study", text_of("miniature").encode()) as path:
        assert read_study(path).name == "miniature"
