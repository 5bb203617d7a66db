"""Damage: what is not as it was written is refused; files of others, and older ones of ours, are read."""

import io
import json
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


# results and metrics


RESULTS = [
    metric(Y, P, interval=cal.Bootstrap(50, seed=0))
    for metric in (cal.ECE.replace(binning=cal.EqualWidth(3)), cal.SCE.replace(binning=cal.EqualWidth(2)))
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.name)
def test_no_flipped_bit_of_a_result_changes_it(result):
    whole = result.to_json().encode()
    for place in range(0, 8 * len(whole), 7):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        try:
            again = cal.Result.from_json(damaged.decode("utf-8", "replace"))
        except cal.CalibrationInputError:
            continue
        assert again.to_json() == result.to_json()  # a blank that became a line, or the like


def unsealed(result, **changed):
    """The JSON of a result as version 0.1 wrote it, with some of it changed."""
    document = {**result.to_dict(), **changed}
    return json.dumps({key: value for key, value in document.items() if value is not ...})


def test_a_result_without_a_seal_is_read():
    for result in RESULTS:
        assert cal.Result.from_json(unsealed(result)).to_json() == result.to_json()


@pytest.mark.parametrize(
    "changed",
    [
        {"value": None},
        {"value": "1.0"},
        {"value": True},
        {"value": ...},
        {"n": 12.0},
        {"n": -1},
        {"n": "12"},
        {"question": 3},
        {"notes": "none"},
        {"notes": [3]},
        {"details": []},
        {"details": {"n_bins": None}},
        {"parts": []},
        {"parts": {"a": 0.5}},
        {"parts": {"a": {"value": 0.5}}},
        {"parts": {"a": {"value": 0.5, "size": "nan"}}, "bins": ..., "part_intervals": []},
        {"metric": None},
        {"metric": {"piece": "EqualWidth", "n_bins": 3, "closed": "right"}},
        {"metric": {"piece": "BinnedError", "lens": {"piece": "EqualWidth", "n_bins": 3, "closed": "right"}}},
        {"metric": {"piece": "BinnedError", "lens": 3}},
        {"interval": None},
        {"interval": {"low": 0.0}},
        {"interval": {"low": 1.0, "high": 0.0, "level": 0.9, "kind": "basic", "engine": "exact", "n": 50}},
        {"interval": {"low": 0.0, "high": 1.0, "level": 9.0, "kind": "basic", "engine": "exact", "n": 50}},
        {"part_intervals": [None]},
        {"bins": {}},
        {"bins": []},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_no_result_is_refused(changed):
    with pytest.raises(cal.CalibrationInputError):
        cal.Result.from_json(unsealed(RESULTS[0], **changed))


@pytest.mark.parametrize("field", ["requested", "size", "outputs", "targets", "low", "high"])
@pytest.mark.parametrize("value", [None, [], [0.5], {"hi": [[1]], "lo": [[0]]}, {"hi": [[0.5]]}, "text"], ids=str)
def test_bins_that_cannot_be_are_refused(field, value):
    bins = {**RESULTS[0].to_dict()["bins"], field: value}
    with pytest.raises(cal.CalibrationInputError):
        cal.Result.from_json(unsealed(RESULTS[0], bins=bins))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "[" * 100_000, '{"a": 1, "a": 2}', "NaN", b"\xff\xfe", None, 3]
)
def test_text_that_is_no_document_is_refused(text):
    for read_text in (cal.Result.from_json, cal.from_json, cal.recalibrate.from_json):
        with pytest.raises(cal.CalibrationInputError):
            read_text(text)


def test_a_piece_stands_only_where_it_belongs():
    document = json.loads(cal.ECE.to_json())
    for slot, piece in (("lens", "binning"), ("binning", "lens"), ("distance", "aggregate"), ("select", "lens")):
        with pytest.raises(cal.CalibrationInputError, match=f"needs a {slot} there"):
            cal.from_json(json.dumps({**document, slot: document[piece]}))


def test_text_that_is_none_in_a_parquet_column_is_damage(tmp_path):
    """Found by mutation: bytes that are no UTF-8, in a column beside the forecasts."""
    path = tmp_path / "a.parquet"
    table = pa.table({"label": [0, 1], "p": [0.1, 0.9], "region": ["north", "south"]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"south", b"s\xffuth"))
    refused(path, "is damaged")
