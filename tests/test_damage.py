"""Damage: what is not as it was written is refused; files of others, and older ones of ours, are read."""

import io
import zipfile

import numpy as np
import pytest

import calibrant as cal
from calibrant.files import SHIPPED, read
from calibrant.files.npz import SEAL
from calibrant.files.reading import write

pytest.importorskip("pyarrow")
import pyarrow as pa
import pyarrow.parquet as pq

RNG = np.random.default_rng(0)
P, Y = RNG.dirichlet(np.ones(3), 12), RNG.integers(0, 3, 12)
CLASSES = ["cat", "dog", "bird"]
COLUMNS = {"label": np.array(CLASSES)[Y], "region": np.array(["north", "süd"] * 6), "age": np.arange(12)}


def content(path):
    """All that a file says."""
    rows = read(path)
    columns = {name: np.asarray(column).tolist() for name, column in rows.columns.items()}
    return rows.labels.tolist(), rows.values.tolist(), rows.classes, columns


@pytest.fixture(params=["npz", "parquet"])
def ours(request, tmp_path):
    path = tmp_path / f"forecasts.{request.param}"
    write(path, P, CLASSES, COLUMNS)
    return path


def refused(path, match):
    with pytest.raises(cal.CalibrationInputError, match=match):
        read(path)


def test_our_own_files_say_what_was_written(ours):
    labels, values, classes, columns = content(ours)
    assert (labels, values, classes) == (Y.tolist(), P.tolist(), tuple(CLASSES))
    assert columns == {"region": COLUMNS["region"].tolist(), "age": list(range(12))}


def test_no_flipped_bit_of_our_own_files_changes_what_they_say(ours):
    """Some of the bits; tests/fuzz/RESULTS.md is about all of them."""
    whole, expected = ours.read_bytes(), content(ours)
    refusals = 0
    for place in range(0, 8 * len(whole), 61):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        ours.write_bytes(damaged)
        try:
            assert content(ours) == expected, f"bit {place % 8} of byte {place // 8}"
        except cal.CalibrationInputError:
            refusals += 1
    assert refusals > 100


def test_an_array_that_was_exchanged_is_refused(tmp_path):
    """The archive is whole and so is each of its arrays; only the checksum of them all knows."""
    write(tmp_path / "a.npz", P, CLASSES, COLUMNS)
    other = io.BytesIO()
    np.lib.format.write_array(other, P[::-1])
    with zipfile.ZipFile(tmp_path / "a.npz") as source, zipfile.ZipFile(tmp_path / "b.npz", "w") as target:
        for member in source.infolist():
            target.writestr(
                member.filename, other.getvalue() if member.filename == "probs.npy" else source.read(member)
            )
        target.comment = source.comment
    refused(tmp_path / "b.npz", "must be as it was written")


def test_a_damaged_column_beside_the_forecasts_is_refused_and_not_left_out(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name, array in {"label": Y, "probs": P, "age": np.arange(12)}.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array)
            archive.writestr(f"{name}.npy", member.getvalue())
    whole = bytearray((tmp_path / "a.npz").read_bytes())
    whole[whole.index(np.arange(12).tobytes()) + 8] ^= 2
    (tmp_path / "a.npz").write_bytes(whole)
    refused(tmp_path / "a.npz", "has a broken array 'age'")


def test_the_values_of_a_parquet_file_that_were_exchanged_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, P, CLASSES, COLUMNS)
    table = pq.read_table(path)
    pq.write_table(table.take(list(range(11, -1, -1))), path)
    refused(path, "must be as it was written")


def test_a_parquet_file_whose_groups_have_fewer_rows_than_it_tells_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"label": [0, 1, 1], "p": [0.1, 0.9, 0.8]}), path)
    whole = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda file, group: whole(file, group).slice(1))
    refused(path, "must have 3 rows, got 2")


def test_files_of_others_and_older_ones_of_ours_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", label=Y, probs=P)
    pq.write_table(
        pa.table({"label": Y, **{f"p_{name}": P[:, index] for index, name in enumerate("abc")}}), tmp_path / "a.parquet"
    )
    for name in ("a.npz", "a.parquet"):
        assert read(tmp_path / name).values.tolist() == P.tolist()
    path = SHIPPED / "fashion_mnist_test.npz"
    with zipfile.ZipFile(path) as archive:
        assert not archive.comment.startswith(SEAL)
    assert len(read(path)) == 10_000


def test_other_tools_read_our_files(tmp_path):
    write(tmp_path / "a.npz", P, CLASSES, COLUMNS)
    write(tmp_path / "a.parquet", P, CLASSES, COLUMNS)
    with np.load(tmp_path / "a.npz") as arrays:
        np.testing.assert_array_equal(arrays["probs"], P)
    np.testing.assert_array_equal(pq.read_table(tmp_path / "a.parquet")["p_dog"].to_numpy(), P[:, 1])
