"""Prediction files: what is read, and what is said of files that cannot be."""

import csv
import datetime
import gzip
import io
import json
import os
import pickle
import re
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant import CalibrationInputError, Predictions
from calibrant.files import SHIPPED, read, read_scores
from calibrant.files import write as write_file

Y = [0, 2, 1, 2]
M = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]]
E = [1, 0, 1, 0]
P = [0.9, 0.2, 0.7, 0.4]
NAMES = ["cat", "dog", "owl"]
SPELLED = [NAMES[y] for y in Y]
REGION = ["north", "north", "south", "south"]

CLASSES = Predictions.from_probs(Y, np.array(M))
LOGITS = Predictions.from_logits(Y, np.log(M))
EVENT = Predictions.from_probs(E, np.array(P))
CONFIDENCE = Predictions.from_confidence(E, np.array(P))


@pytest.fixture
def write(tmp_path):
    """Write text, bytes, or rows of cells to a file of that name."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_bytes(content.encode())
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(content)
        return path

    return write


@pytest.fixture
def npz(tmp_path):
    """Save arrays as a NPZ file."""

    def npz(**arrays):
        np.savez(tmp_path / "predictions.npz", **arrays)
        return tmp_path / "predictions.npz"

    return npz


@pytest.fixture
def parquet(tmp_path):
    """Save columns as a Parquet file."""
    pyarrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def parquet(columns, **options):
        path = tmp_path / "predictions.parquet"
        files.write_table(pyarrow.table(columns), path, **options)
        return path

    return parquet


def table(columns):
    """Columns as rows of cells under a header."""
    return [list(columns), *zip(*columns.values(), strict=True)]


def text_of(columns):
    """Columns as the bytes of a CSV file."""
    return "".join(",".join(map(str, row)) + "\n" for row in table(columns)).encode()


def jsonl(columns):
    """Columns as one JSON object a line."""
    return "".join(
        json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in zip(*columns.values(), strict=True)
    )


def refused(path, match, **keys):
    """The error that reading raises; it names the file, on one line of readable length."""
    with pytest.raises(CalibrationInputError, match=match) as caught:
        read(path, **keys)
    error = caught.value
    assert error.parameter == str(path)
    assert str(error).isprintable()
    assert len(str(error).removeprefix(str(path))) < 400
    return error


def assert_same(made, plain, **columns):
    """Equal to the bit: the arrays that were read and the numbers made of them."""
    assert made.kind == plain.kind
    assert made.logits == plain.logits
    assert np.array_equal(made.values, plain.values)
    assert np.array_equal(made.labels, plain.labels)
    assert cal.ECE(made).value == cal.ECE(plain).value
    assert {name: column.tolist() for name, column in made.columns.items()} == columns


# ---- files of every kind ---------------------------------------------------------------------------------------------

WIDE = {"label": SPELLED, **{f"p_{name}": [row[k] for row in M] for k, name in enumerate(NAMES)}, "region": REGION}
LISTS = {"label": Y, "probs": M, "region": REGION}
SCORES = {"label": Y, "logits": np.log(M).tolist()}
ONE = {"label": E, "p": P, "region": REGION}
TOP = {"correct": E, "confidence": P, "region": REGION}


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "CSV"])
def test_text_of_columns_is_read(write, ending):
    wide = read(write(f"wide.{ending}", table(WIDE)))
    assert_same(wide, CLASSES, region=REGION)
    assert wide.classes == ("cat", "dog", "owl")
    assert_same(read(write(f"event.{ending}", table(ONE))), EVENT, region=REGION)
    assert_same(read(write(f"top.{ending}", table(TOP))), CONFIDENCE, region=REGION)
    assert_same(read(write(f"lists.{ending}", table(LISTS))), CLASSES, region=REGION)
    assert_same(read(write(f"logits.{ending}", table(SCORES))), LOGITS)


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json"])
def test_lines_of_json_are_read(write, ending):
    assert_same(read(write(f"wide.{ending}", jsonl(WIDE))), CLASSES, region=REGION)
    assert_same(read(write(f"event.{ending}", jsonl(ONE))), EVENT, region=REGION)
    assert_same(read(write(f"top.{ending}", jsonl(TOP))), CONFIDENCE, region=REGION)
    assert_same(read(write(f"lists.{ending}", jsonl(LISTS))), CLASSES, region=REGION)
    assert_same(read(write(f"logits.{ending}", jsonl(SCORES))), LOGITS)


def test_parquet_is_read(parquet):
    assert_same(read(parquet(WIDE)), CLASSES, region=REGION)
    assert_same(read(parquet(ONE)), EVENT, region=REGION)
    assert_same(read(parquet(TOP)), CONFIDENCE, region=REGION)
    assert_same(read(parquet(LISTS)), CLASSES, region=REGION)
    assert_same(read(parquet(SCORES)), LOGITS)
    assert_same(read(parquet(LISTS, row_group_size=1)), CLASSES, region=REGION)


def test_parquet_lists_of_every_kind_keep_their_precision(parquet):
    pyarrow = pytest.importorskip("pyarrow")
    single = Predictions.from_probs(Y, np.array(M, np.float32))
    for kind in (
        pyarrow.list_(pyarrow.float32()),
        pyarrow.list_(pyarrow.float32(), 3),
        pyarrow.large_list(pyarrow.float32()),
    ):
        made = read(parquet({"label": Y, "probs": pyarrow.array(M, kind)}))
        assert_same(made, single)
        assert made.precision == single.precision


def test_parquet_names_may_be_a_dictionary(parquet):
    pyarrow = pytest.importorskip("pyarrow")
    encoded = {**WIDE, "label": pyarrow.array(SPELLED).dictionary_encode()}
    assert_same(read(parquet(encoded)), CLASSES, region=REGION)


def test_npz_is_read(npz):
    assert_same(read(npz(label=Y, probs=M, region=REGION)), CLASSES, region=REGION)
    assert_same(read(npz(labels=Y, logits=np.log(M))), LOGITS)
    assert_same(read(npz(y=E, p=P)), EVENT)
    assert_same(read(npz(correct=np.array(E, bool), confidence=P, region=REGION)), CONFIDENCE, region=REGION)
    soft = read(npz(label=np.array(M), probs=M))
    assert np.array_equal(soft.soft, np.array(M))


def test_npz_may_be_compressed_big_endian_and_in_fortran_order(tmp_path):
    path = tmp_path / "predictions.npz"
    np.savez_compressed(path, label=np.array(Y, ">i4"), probs=np.asfortranarray(np.array(M, ">f8")))
    assert_same(read(path), CLASSES)


def test_npz_names_its_classes(npz):
    made = read(npz(label=SPELLED, probs=M, classes=NAMES))
    assert_same(made, CLASSES)
    assert made.classes == ("cat", "dog", "owl")
    assert read(npz(label=np.array(SPELLED, "S"), probs=M, classes=np.array(NAMES, "S"))).classes == made.classes


def test_npz_leaves_out_arrays_of_another_length(npz):
    assert_same(read(npz(label=E, p=P, weights_of_a_layer=np.zeros((3, 3)), version=np.array(2))), EVENT)


def test_a_pair_of_npy_files_is_labels_and_forecasts(tmp_path):
    for name, array in {"y": Y, "p": M, "z": np.log(M)}.items():
        np.save(tmp_path / f"{name}.npy", array)
    assert_same(read([tmp_path / "y.npy", tmp_path / "p.npy"]), CLASSES)
    assert_same(read((str(tmp_path / "y.npy"), str(tmp_path / "z.npy")), logits="z"), LOGITS)
    assert read([tmp_path / "y.npy", tmp_path / "p.npy"], classes=NAMES).classes == tuple(NAMES)


def test_a_path_may_be_text(write):
    assert_same(read(str(write("event.csv", table(ONE)))), EVENT, region=REGION)


def test_the_shipped_predictions_are_read():
    for path in sorted(SHIPPED.glob("*.npz")):
        assert cal.ACCURACY(read(path)).value > 0.8


# ---- names of columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["label", "labels", "y"])
def test_labels_are_found_by_their_usual_names(write, name):
    assert_same(read(write("predictions.csv", table({name: E, "p": P}))), EVENT)


def test_other_names_are_given_by_keyword(write, npz):
    path = write("event.csv", table({"truth": E, "score": P, "w": [1, 2, 3, 4]}))
    assert_same(read(path, label="truth", probs="score"), EVENT, w=[1, 2, 3, 4])
    weighted = read(path, label="truth", probs="score", weight="w")
    assert weighted.weight.tolist() == [1, 2, 3, 4]
    assert weighted.columns == {}
    wide = {"truth": SPELLED, **{f"out_{name}": [row[k] for row in M] for k, name in enumerate(NAMES)}}
    assert_same(read(write("wide.csv", table(wide)), label="truth", probs="out"), CLASSES)
    assert_same(read(npz(truth=Y, z=np.log(M)), label="truth", logits="z"), LOGITS)
    assert_same(read(npz(truth=Y, label=E, probs=np.eye(4), out=M), label="truth", probs="out"), CLASSES, label=E)


def test_logits_by_class_are_given_by_keyword(write):
    wide = {"label": SPELLED, **{f"z_{name}": np.log(M)[:, k].tolist() for k, name in enumerate(NAMES)}}
    assert_same(read(write("wide.csv", table(wide)), logits="z"), LOGITS)


def test_whole_numbers_in_column_names_are_class_names(write):
    made = read(write("wide.csv", "label,p_3,p_5\n3,0.9,0.1\n5,0.2,0.8\n5,0.6,0.4\n"))
    assert made.classes == ("3", "5")
    assert made.labels.tolist() == [0, 1, 1]


def test_labels_that_count_the_columns_are_indices(write):
    made = read(write("wide.csv", "label,p_cat,p_dog\n0,0.9,0.1\n1,0.2,0.8\n"))
    assert made.labels.tolist() == [0, 1]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_classes_keep_the_order_of_their_columns(write, ending):
    names = ["yak", "ant", "owl", "cat", "elk", "bee", "dog", "fox"]
    columns = {"label": [7, 0], **{f"p_{name}": [0.3, 0.3] if name == "fox" else [0.1, 0.1] for name in names}}
    made = read(write(f"wide.{ending}", jsonl(columns) if ending == "jsonl" else table(columns)))
    assert made.classes == tuple(names)
    assert cal.ACCURACY(made).value == 0.5


def test_a_label_that_names_no_column_is_told_the_closest(write):
    path = write("wide.csv", "label,p_cat,p_dog\ncat,0.9,0.1\ndgo,0.2,0.8\n")
    with pytest.raises(CalibrationInputError, match=r"must name one of the classes, got 'dgo' at line 3.*'dog'"):
        read(path)


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_answers_that_were_right_may_be_written_in_words(write, words):
    correct = [words[0] if right else words[1] for right in E]
    assert_same(read(write("top.csv", table({"correct": correct, "confidence": P}))), CONFIDENCE)
    assert_same(read(write("event.csv", table({"label": correct, "p": P}))), EVENT)


def test_dates_beside_the_forecasts_do_no_harm(parquet):
    when = [datetime.datetime(2020, 1, day) for day in (1, 2, 3, 4)]
    made = read(parquet({"label": E, "p": P, "when": when}))
    assert np.array_equal(made.values, P)


def test_columns_may_have_the_names_of_options(npz):
    arrays = {"normalize": [1, 2, 3, 4], "y_true": [1, 2, 3, 4], "class_axis": [1, 2, 3, 4], "values": [1, 2, 3, 4]}
    made = read(npz(label=E, p=P, **arrays))
    assert np.array_equal(made.values, P)
    assert "values" in made.columns


LACKING = {
    "no label": ("lable,p\n1,0.9\n", "must have one of the columns label, labels, y, got none", "lable", {}),
    "two labels": ("label,y,p\n1,1,0.9\n", "must have one of the columns .*, got label and y", "label", {}),
    "no forecast": ("label,sure\n1,0.9\n", "must have p, p_<class>, .*got only label, sure", "probs", {}),
    "two forecasts": ("label,p,probs\n1,0.9,0.8\n", "must have p, .*got p and probs", "probs", {}),
    "confidence alone": ("label,confidence\n1,0.9\n", "or confidence and correct, got only label, confidence", "", {}),
    "one class": ("label,p_cat\n1,0.9\n", "must have the column 'p' or several p_<class>, got 1", "p_cat", {}),
    "other prefix": ("label,s cat,s dog\na,0.9,0.1\n", "or several s _<class>", "rename them to p_", {"probs": "s "}),
    "label by name": ("truth,p\n1,0.9\n", "lacks a column, got 'turth'", "did you mean 'truth'", {"label": "turth"}),
    "label without a name": ("truth,p\n1,0.9\n", "lacks a column, got ''", "there are: p, truth", {"label": ""}),
    "forecasts without a name": ("label,p\n1,0.9\n", "must have the column ''", "", {"probs": ""}),
    "weight by name": ("label,p,w\n1,0.9,1\n", "lacks a column, got 'ww'", "did you mean 'w'", {"weight": "ww"}),
    "forecast by name": ("label,out\n1,0.9\n", "must have the column 'otu'", "did you mean 'out'", {"probs": "otu"}),
    "logits by name": ("label,out\n1,0.9\n", "must have the column 'otu'", "did you mean 'out'", {"logits": "otu"}),
}  # fmt: skip


@pytest.mark.parametrize("case", LACKING)
def test_a_missing_column_is_told_the_closest_name(write, case):
    text, message, hint, keys = LACKING[case]
    error = refused(write("predictions.csv", text), message, **keys)
    assert hint in error.hint


def test_probabilities_and_logits_are_not_both_named(write):
    with pytest.raises(CalibrationInputError, match="probs: and logits exclude each other"):
        read(write("event.csv", table(ONE)), probs="p", logits="p")


# ---- files that are none ---------------------------------------------------------------------------------------------


def test_a_missing_file_and_a_folder_speak_for_themselves(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


def test_a_file_that_may_not_be_read_speaks_for_itself(write):
    path = write("secret.csv", "label,p\n1,0.9\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(PermissionError):
        read(path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "npz", "npy", "parquet", "jsonl"])
def test_an_empty_file_is_refused(write, ending):
    assert refused(write(f"empty.{ending}", b""), "must not be empty, got 0 bytes").got == "0 bytes"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", "label,p\n"), ("a.csv", "label,p"), ("a.csv", "\n\n"), ("a.tsv", "label\tp\n"), ("a.jsonl", "\n")],
)
def test_a_file_without_rows_is_refused(write, name, text):
    refused(write(name, text), "must have rows")


def test_a_parquet_file_without_rows_is_refused(parquet):
    pyarrow = pytest.importorskip("pyarrow")
    refused(parquet({"label": pyarrow.array([], "int64"), "p": pyarrow.array([], "float64")}), "must have rows")
    refused(parquet({}), "must have rows")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"label,p\n1,0.9\n", "must be a npz file, got other content"),
        ("a.npy", b"label,p\n1,0.9\n", "must be a npy file, got other content"),
        ("a.parquet", b"label,p\n1,0.9\n", "must be a parquet file, got other content"),
        ("a.jsonl", b"label,p\n1,0.9\n", "must be a JSON object on every line"),
        ("a.pkl", b"\x80\x04]\x94K\x01a.", "must be NPZ, NPY, CSV, Parquet or JSONL, got the ending '.pkl'"),
        ("a.xlsx", b"label,p\n1,0.9\n", "must be NPZ, NPY, CSV, Parquet or JSONL, got the ending '.xlsx'"),
        ("a", b"label,p\n1,0.9\n", r"must be NPZ, NPY, CSV, Parquet or JSONL, got the ending '\(none\)'"),
    ],
)
def test_a_wrong_ending_is_refused(write, name, content, message):
    refused(write(name, content), message)


def test_the_content_decides_where_the_ending_is_another(write, npz, parquet):
    assert_same(read(write("npz.csv", npz(label=E, p=P).read_bytes())), EVENT)
    assert_same(read(write("parquet.csv", parquet({"label": E, "p": P}).read_bytes())), EVENT)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv", "a.gz", "a"])
def test_gzip_is_unpacked(write, name):
    assert_same(read(write(name, gzip.compress(text_of(ONE)))), EVENT, region=REGION)


@pytest.mark.parametrize("name", ["a.npz.gz", "a.npz", "a.gz"])
def test_other_files_may_be_packed_by_gzip_too(write, npz, parquet, name):
    assert_same(read(write(name, gzip.compress(npz(label=E, p=P).read_bytes()))), EVENT)
    assert_same(read(write("b.parquet.gz", gzip.compress(parquet({"label": E, "p": P}).read_bytes()))), EVENT)


def test_a_damaged_gzip_file_is_refused(write):
    packed = gzip.compress(text_of(ONE))
    refused(write("a.csv.gz", packed[:-4]), "must be a whole gzip file")
    refused(write("a.csv.gz", packed[:-8] + bytes(8)), "must be a whole gzip file")
    refused(write("a.csv.gz", gzip.compress(b"")), "must not be empty")


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(write, monkeypatch):
    monkeypatch.setattr("calibrant.door.streams.SUSPICIOUS_BYTES", 4 << 20)
    refused(
        write("a.csv.gz", gzip.compress(bytes(64 << 20))), "must unpack to a reasonable size, got .* become 1[0-9],"
    )


def test_one_npy_file_lacks_its_labels(tmp_path):
    np.save(tmp_path / "p.npy", M)
    assert "labels.npy forecasts.npy" in refused(tmp_path / "p.npy", "needs its labels, got one NPY file").hint


def test_a_pair_is_two_npy_files(tmp_path, npz):
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(CalibrationInputError, match="of a pair must be a NPY file"):
        read([tmp_path / "y.npy", npz(label=Y, probs=M)])
    for count in (0, 3):
        with pytest.raises(CalibrationInputError, match=f"path: must be one file, or two NPY files, got {count}"):
            read([tmp_path / "y.npy"] * count)


@pytest.mark.parametrize("keys", [{"label": "truth"}, {"weight": "mass"}, {"probs": "p", "logits": "z"}], ids=repr)
def test_a_pair_has_no_columns_to_be_named(tmp_path, keys):
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "p.npy", M)
    with pytest.raises(CalibrationInputError):
        read([tmp_path / "y.npy", tmp_path / "p.npy"], **keys)


def test_a_swapped_pair_is_recognised(tmp_path):
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "p.npy", M)
    with pytest.raises(CalibrationInputError, match="swapped"):
        read([tmp_path / "p.npy", tmp_path / "y.npy"])


# ---- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_byte_order_mark_is_passed_over(write, name):
    text = jsonl({"label": E, "p": P}) if name.endswith("jsonl") else "label,p\n1,0.9\n0,0.2\n1,0.7\n0,0.4\n"
    assert_same(read(write(name, b"\xef\xbb\xbf" + text.encode())), EVENT)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_read(write, newline):
    text = newline.join(["label,p", "1,0.9", "0,0.2", "", "1,0.7", "0,0.4", ""])
    assert_same(read(write("event.csv", text)), EVENT)


@pytest.mark.parametrize(
    ("text", "got", "line"),
    [
        ("label,p\n1,0.9\n0\n", 1, 3),
        ("label,p\n1,0.9\n0,0.2,0.3\n", 3, 3),
        ("label,p\n\n1,0.9\n\n0\n", 1, 5),
        ('label,p,note\n1,0.9,"two\nlines"\n0,0.2\n', 2, 4),
    ],
)
def test_a_ragged_row_is_named_by_its_line(write, text, got, line):
    error = refused(write("ragged.csv", text), r"must have \d values in every row")
    assert (error.got, error.where) == (got, f"line {line}")


def test_semicolons_are_recognised(write):
    error = refused(write("a.csv", "label;p\n1;0,9\n0;0,2\n"), "must be separated by commas, got semicolons")
    assert error.hint == "save it with commas and decimal points"


@pytest.mark.parametrize("rows", [[["1", "0,9"], ["0", "0,2"]], [["1", "0.9"], ["0", "0,2"]]], ids=["all", "one"])
def test_decimal_commas_are_recognised(write, rows):
    error = refused(write("a.csv", [["label", "p"], *rows]), "column 'p' must .*decimal point")
    assert error.got == repr(next(cell for _, cell in rows if "," in cell))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("latin.csv", "label,p,town\n1,0.9,Z\xfcrich\n".encode("latin-1")),
        ("latin.jsonl", '{"label": 1, "p": 0.9, "town": "Z\xfcrich"}\n'.encode("latin-1")),
        ("wide.csv", "label,p\n1,0.9\n".encode("utf-16")),
        ("bytes.csv", bytes(range(256))),
    ],
)
def test_text_that_is_not_utf8_is_refused(write, name, content):
    refused(write(name, content), "must be UTF-8 text")


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"label,p\n1,0.9\n0,\x000.2\n1,0.7\n", 3), (b"la\x00bel,p\n1,0.9\n", 1), (b"label,p,note\n1,0.9,a\x00b\n", 2)],
    ids=["number", "header", "text"],
)
def test_a_nul_byte_is_named_by_its_line(write, content, line):
    assert refused(write("nul.csv", content), "NUL").where == f"line {line}"


def test_a_file_of_nul_bytes_is_refused(write):
    refused(write("nul.csv", bytes(1000)), "NUL")
    refused(write("nul.jsonl", bytes(1000)), "must be a JSON object on every line")


@pytest.mark.parametrize("text", ["label,p,p\n1,0.9,0.8\n", "label,p, p \n1,0.9,0.8\n"])
def test_a_column_named_twice_is_refused(write, text):
    refused(write("twice.csv", text), "must name each column once, got 'p' twice")


def test_a_key_that_stands_twice_is_refused(write):
    error = refused(write("twice.jsonl", '{"label": 1, "p": 0.9}\n{"label": 1, "p": 0.9, "p": 0.8}\n'), "twice")
    assert error.where == "line 2"


def test_a_parquet_column_named_twice_is_refused(tmp_path):
    pyarrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "twice.parquet"
    columns = [pyarrow.array([1]), pyarrow.array([0.9]), pyarrow.array([0.8])]
    files.write_table(pyarrow.Table.from_arrays(columns, names=["label", "p", "p"]), path)
    refused(path, "must name each column once, got 'p' twice")


NO_NUMBERS = ["NaN", "nan", "NA", "N/A", "inf", "-inf", "Infinity", "1e400", "-1e400", "", "null", "None"]
ODD_NUMBERS = ["1_0", "0x1", "½", "１", "٣", "abc", "#N/A", "-", "50%"]


@pytest.mark.parametrize("text", NO_NUMBERS + ODD_NUMBERS)
@pytest.mark.parametrize("column", ["label", "p"])
def test_what_is_no_number_is_named_by_its_line(write, column, text):
    rows = [{"label": "1", "p": "0.9"}, {"label": "0", "p": "0.2", column: text}, {"label": "1", "p": "0.7"}]
    path = write("event.csv", [["label", "p"], *([row["label"], row["p"]] for row in rows)])
    error = refused(path, f"column '{column}' must have a number in every row")
    assert (error.got, error.where) == (repr(text), "line 3")


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_column_of_forecasts_without_any_number_is_named_by_its_first_line(write, text):
    error = refused(write("event.csv", [["label", "p"], ["1", text], ["0", text]]), "column 'p' must")
    assert (error.got, error.where) == (repr(text), "line 2")


def test_a_column_of_forecasts_in_words_is_named(write):
    error = refused(write("event.csv", "label,p\n1,high\n0,low\n"), "column 'p' must")
    assert (error.got, error.where) == ("'high'", "line 2")


def test_gaps_in_a_column_that_nobody_asked_for_do_no_harm(write, parquet):
    assert_same(
        read(write("event.csv", table({**ONE, "region": [30, "NA", 40, ""]}))), EVENT, region=["30", "NA", "40", ""]
    )
    gaps = "".join(
        f'{{"label": {y}, "p": {p}{more}}}\n' for y, p, more in zip(E, P, ["", ', "a": 1', "", ""], strict=True)
    )
    for path in (write("event.jsonl", gaps), parquet({"label": E, "p": P, "a": [1, None, 2, None]})):
        assert np.array_equal(read(path).values, P)


def test_a_column_that_was_asked_for_has_no_gaps(write):
    path = write("event.csv", "label,p,w\n1,0.9,1\n0,0.2,NA\n1,0.7,1\n")
    assert refused(path, "column 'w' must have a number in every row", weight="w").where == "line 3"


@pytest.mark.parametrize("text", ["0.5", " 0.5 ", "+.5", "5e-1", "0.50000000000000000000"])
def test_numbers_are_read_however_they_are_written(write, text):
    assert read(write("event.csv", f"label,p\n1,0.9\n0,{text}\n")).values.tolist() == [0.9, 0.5]


LINES = {
    "NaN": ('{"label": 0, "p": NaN}', "NaN is no number"),
    "infinity": ('{"label": 0, "p": -Infinity}', "-Infinity is no number"),
    "1e400": ('{"label": 0, "p": 1e400}', "1e400|inf"),
    "null": ('{"label": 0, "p": null}', "'p' must have a value on every line"),
    "text": ('{"label": 0, "p": "NA"}', "'p' must be of one kind, got 'NA'"),
    "list": ('{"label": 0, "p": [0.5]}', r"'p' must be of one kind, got \[0.5\]"),
    "object": ('{"label": 0, "p": {"a": 1}}', "'p' must be "),
    "no key": ('{"label": 0, "q": 0.5}', "'p' must have a value on every line"),
    "an array": ("[0, 0.5]", "must be a JSON object on every line, got list"),
    "half an object": ('{"label": 0, "p"', r"every line, got Expecting ':' delimiter \(character 17\) at line 3$"),
}


@pytest.mark.parametrize("case", LINES)
def test_a_bad_line_of_json_is_named(write, case):
    line, message = LINES[case]
    good = '{"label": 1, "p": 0.9}\n'
    assert refused(write("event.jsonl", f"{good}\n{line}\n{good}"), message).where == "line 3"


@pytest.mark.parametrize(
    ("classes", "hint"),
    [
        (10, "n_classes is 10, and must count all classes"),
        (["a", "b"], "there are 2 classes: a, b"),
        (list("abcdefgh"), "there are 8 classes: a, b, c, d, e and 3 more"),
    ],
)
def test_a_label_beyond_the_classes_that_were_given_is_told_what_was_given(write, classes, hint):
    path = write("top.csv", "label,class_1,prob_1\n388,388,0.9\n1,1,0.8\n")
    with pytest.raises(CalibrationInputError, match=rf"must lie in 0\.\.\d, got 388 at line 2; {hint}$"):
        read(path, classes=classes)


PLACES = {
    "csv": ("event.csv", "label,p\n1,0.9\n\n0,1.5\n", "got 1.5 at line 4$"),
    "jsonl": ("event.jsonl", '{"label": 1, "p": 0.9}\n\n\n{"label": 0, "p": 1.5}\n', "got 1.5 at line 4$"),
    "classes": ("classes.csv", "label,p_a,p_b\na,1,0\na,1,0\nb,0.5,0.6\n", "got 1.1 at line 4;"),
    "k likeliest": (
        "top.csv",
        "label,class_1,class_2,prob_1,prob_2\n0,0,1,0.5,0.3\n0,0,0,0.5,0.3\n",
        "must differ within a row, .* at line 3$",
    ),
    "list": ("event.json", '[{"label": 1, "p": 0.9}, {"label": 0, "p": 1.5}]', "got 1.5 at row 1$"),
    "kinds in a list": ("event.json", '[{"label": 1, "p": 0.9}, {"label": 0, "p": "x"}]', "got 'x' at item 1$"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_row_of_a_text_is_named_by_its_line(write, case):
    name, text, message = PLACES[case]
    with pytest.raises(CalibrationInputError, match=message):
        read(write(name, text), classes=5 if name == "top.csv" else None)


ROWS = {
    "short": ("[0.5]", "must be lists of 2 numbers, got 1"),
    "long": ("[0.5, 0.3, 0.2]", "must be lists of 2 numbers, got 3"),
    "empty": ("[]", "must be lists of 2 numbers, got 0"),
    "NaN": ("[0.5, NaN]", "NaN is no number"),
    "1e400": ("[0.5, 1e400]", "1e400|inf"),
    "null": ("[0.5, null]", "null|None"),
    "text": ('[0.5, "x"]', "'probs' must be "),
    "nested": ("[[0.5], [0.5]]", "'probs' must be "),
    "object": ("{}", "'probs' must be "),
    "no list": ("0.5", "'probs' must "),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_list_of_forecasts_is_named_by_its_line(write, case):
    row, message = ROWS[case]
    lines = "".join(f'{{"label": 0, "probs": {probs}}}\n' for probs in ("[0.5, 0.5]", row, "[0.2, 0.8]"))
    assert refused(write("lists.jsonl", lines), message).where == "line 2"


@pytest.mark.parametrize("case", ["short", "long", "empty", "NaN", "1e400", "null", "text", "nested", "no list"])
def test_a_bad_list_in_a_column_is_named_by_its_line(write, case):
    path = write("lists.csv", [["label", "probs"], [0, "[0.5, 0.5]"], [0, ROWS[case][0]], [1, "[0.2, 0.8]"]])
    assert refused(path, "probs").where == "line 3"


@pytest.mark.parametrize("text", ['label,p\n1,"0.9\n', 'label,p\n1,"0.9"x\n', f"label,p,note\n1,0.9,{'x' * 200_000}\n"])
def test_broken_quotes_and_endless_fields_are_refused(write, text):
    assert refused(write("broken.csv", text), "must be well-formed CSV").where == "line 2"


# ---- NPZ and NPY -----------------------------------------------------------------------------------------------------


def member(array, **options):
    """An array as the bytes of a NPY file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), **options)
    return file.getvalue()


def header(shape, descr="<f8"):
    """The header of a NPY file alone, telling any shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def archive(path, members):
    """A zip file of named members, in order; names may repeat."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as made:
        warnings.simplefilter("ignore", UserWarning)
        for name, content in members:
            made.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["label", "p", "extra"])
def test_npz_with_objects_is_refused_without_pickle(npz, name):
    arrays = {"label": E, "p": P, name: np.array([1, None, "a", object], dtype=object)}
    error = refused(npz(**arrays), f"must hold plain arrays, got Python objects in '{name}'")
    assert error.hint == "they would need pickle"


def test_nothing_in_an_archive_is_run(tmp_path):
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self):
            return Path.touch, (trap,)

    np.savez(tmp_path / "a.npz", label=E, p=P, extra=np.array([Trap()] * 4))
    np.save(tmp_path / "a.npy", np.array([Trap()] * 4))
    refused(tmp_path / "a.npz", "Python objects")
    refused(tmp_path / "a.npy", "must be a whole NPY file of numbers")
    assert not trap.exists()


def test_a_npz_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    block = bytes(4 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("label.npy", member(E))
        with made.open("p.npy", "w") as file:
            file.write(header((72 * len(block) // 8,)))
            for _ in range(72):
                file.write(block)
    assert path.stat().st_size < 2 << 20
    tracemalloc.start()
    try:
        refused(path, r"must unpack to a reasonable size, got [\d,]+ bytes that would become 301,9\d\d,\d\d\d")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [(3,), (5,), (10**9,), (10**18, 10**18), (2, 3), (-4,), (-2, -2), (0,)], ids=str)
def test_a_npz_header_that_lies_is_refused(tmp_path, shape):
    lie = header(shape) + np.array(P).tobytes()
    path = archive(tmp_path / "lie.npz", [("label.npy", member(E)), ("p.npy", lie)])
    refused(path, "has a header of 'p' that does not fit its data|has a broken array 'p'")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        member(P)[:40],
        member(P)[:-8],
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"{" * 100,
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 40) + b"__import__('os').abort()".ljust(40),
        header((4,), "<q9") + bytes(32),
        b"\x93NUMPY\x09\x00" + member(P)[8:],
    ],
    ids=["empty", "text", "half a header", "half the data", "endless header", "code", "no dtype", "version"],
)
def test_a_broken_array_in_npz_is_refused_by_name(tmp_path, content):
    path = archive(tmp_path / "broken.npz", [("label.npy", member(E)), ("p.npy", content)])
    refused(path, "array 'p'|header of 'p'")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_array_format_is_read(tmp_path, version):
    members = [("label.npy", member(E, version=version)), ("p.npy", member(P, version=version))]
    assert_same(read(archive(tmp_path / "a.npz", members)), EVENT)


@pytest.mark.parametrize("second", ["p.npy", "p"])
def test_an_array_that_stands_twice_in_npz_is_refused(tmp_path, second):
    members = [("label.npy", member(E)), ("p.npy", member(P)), (second, member(P[::-1]))]
    refused(archive(tmp_path / "twice.npz", members), "must name each .* once, got 'p' twice")


def test_a_zip_file_of_something_else_is_refused(tmp_path):
    refused(archive(tmp_path / "a.npz", [("a.csv", "label,p\n1,0.9\n")]), "has a broken array 'a.csv'")
    refused(archive(tmp_path / "a.pt", [("a/data.pkl", "")]), r"got a file of torch.save; save arrays .*numpy.savez")
    refused(archive(tmp_path / "b.npz", []), "must have one of the columns")


def test_single_numbers_in_npz_are_refused(npz):
    with pytest.raises(CalibrationInputError, match="must be an array"):
        read(npz(label=1, p=0.5))


@pytest.mark.parametrize("kept", [4, 30, 100, 300, -1, -22, -100])
def test_a_truncated_npz_is_refused(npz, write, kept):
    whole = npz(label=Y, probs=M).read_bytes()
    refused(write("half.npz", whole[:kept]), "must be a (whole )?(NPZ|npz) file|has a broken array")


@pytest.mark.slow
def test_a_flipped_bit_in_npz_is_noticed_or_does_no_harm(npz, write):
    whole = npz(label=Y, probs=M).read_bytes()
    for place in range(0, len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 0x10
        try:
            made = read(write("flipped.npz", bytes(broken)))
        except CalibrationInputError:
            continue
        assert np.array_equal(made.values, CLASSES.values), place
        assert np.array_equal(made.labels, CLASSES.labels), place


@pytest.mark.parametrize(
    "content", [member(M)[:-8], member(M)[:40], header((10**12, 3)) + bytes(96), header((3,), "|O")], ids=str
)
def test_a_broken_npy_file_is_refused(tmp_path, write, content):
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(CalibrationInputError, match="must be a whole NPY file of numbers") as caught:
        read([tmp_path / "y.npy", write("p.npy", content)])
    assert caught.value.parameter == str(tmp_path / "p.npy")


def test_bad_arrays_in_a_file_are_refused_at_the_door(npz):
    with pytest.raises(CalibrationInputError, match="must be finite, got nan at row 1"):
        read(npz(label=[1, 0], p=[0.5, np.nan]))
    with pytest.raises(CalibrationInputError, match="must match"):
        read(npz(label=[1, 0, 1], p=[0.5, 0.4]))
    with pytest.raises(CalibrationInputError, match="classes: must be 3 names, got 2 of them"):
        read(npz(label=Y, probs=M, classes=["cat", "dog"]))


# ---- Parquet ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [4, 11, 400, -1, -8, -30])
def test_a_truncated_parquet_file_is_refused(parquet, write, kept):
    whole = parquet(LISTS).read_bytes()
    refused(write("half.parquet", whole[:kept]), "must be a whole Parquet file")


def test_a_damaged_row_group_of_parquet_is_named(parquet, write):
    files = pytest.importorskip("pyarrow.parquet")
    columns = {"label": np.arange(4000) % 2, "p": np.random.default_rng(1).random(4000)}
    path = parquet(columns, row_group_size=1000, write_page_checksum=True, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    assert len(read(path)) == 4000
    layout = files.ParquetFile(path).metadata
    for group in range(4):
        chunk = layout.row_group(group).column(1)
        for distance in (200, 4000, 7777):
            broken = bytearray(whole)
            broken[chunk.data_page_offset + distance] ^= 0x04
            error = refused(write("flipped.parquet", bytes(broken)), "is damaged")
            assert error.where == f"row group {group}"


def test_a_flipped_bit_in_checked_parquet_is_noticed_or_does_no_harm(parquet, write):
    plain = parquet({"label": Y * 25, "probs": M * 25}, row_group_size=50, write_page_checksum=True)
    whole, good = plain.read_bytes(), read(plain)
    for place in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 0x04
        try:
            made = read(write("flipped.parquet", bytes(broken)))
        except CalibrationInputError:
            continue
        assert np.array_equal(made.values, good.values), place
        assert np.array_equal(made.labels, good.labels), place


NULLS = {
    "label": ({"label": [1, None], "p": [0.9, 0.2]}, "column 'label' must have no nulls"),
    "forecast": ({"label": [1, 0], "p": [0.9, None]}, "column 'p' must have no nulls"),
    "list": ({"label": [1, 0], "probs": [[0.5, 0.5], None]}, "column 'probs' must have no nulls"),
    "in a list": ({"label": [1, 0], "probs": [[0.5, 0.5], [0.5, None]]}, "column 'probs' must have no nulls"),
    "short list": ({"label": [1, 0], "probs": [[0.5, 0.5], [1.0]]}, "must have lists of one length, got 1 after 2"),
    "long list": ({"label": [1, 0], "probs": [[1.0], [0.5, 0.5]]}, "must have lists of one length, got 2 after 1"),
    "even on average": (
        {"label": [1, 0, 1], "probs": [[0.5, 0.5], [1.0], [0.5, 0.3, 0.2]]}, "must have lists of one length",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NULLS)
def test_nulls_and_uneven_lists_in_parquet_are_named_by_their_row(parquet, case):
    columns, message = NULLS[case]
    assert refused(parquet(columns), message).where == "row 1"


def test_the_row_of_a_null_counts_over_all_row_groups(parquet):
    columns = {"label": [1] * 10, "p": [0.5] * 7 + [None] + [0.5] * 2}
    assert refused(parquet(columns, row_group_size=3), "must have no nulls").where == "row 7"


@pytest.mark.parametrize(
    "probs", [[["a", "b"], ["c", "d"]], [[[0.5], [0.5]], [[0.5], [0.5]]], [{"a": 1}, {"a": 2}], ["0.5", "0.4"]], ids=str
)
def test_parquet_forecasts_that_are_no_numbers_are_refused(parquet, probs):
    with pytest.raises(CalibrationInputError, match=r"must hold|must be "):
        read(parquet({"label": [0, 1], "probs": probs}))


def test_empty_lists_in_parquet_are_refused(parquet):
    pyarrow = pytest.importorskip("pyarrow")
    probs = pyarrow.array([[], []], pyarrow.list_(pyarrow.float64()))
    with pytest.raises(CalibrationInputError, match=r"empty|two columns"):
        read(parquet({"label": [0, 1], "probs": probs}))


# ---- hostile names ---------------------------------------------------------------------------------------------------

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "formula": "=cmd|' /C calc'!A0",
    "escape": "\x1b[31mred\x1b[0m",
    "markup": "[/x]",
    "right to left": "\u202egod",
    "long": "x" * 10_000,
    "comma": 'a, "b"',
    "line": "a\nb",
    "template": "{{7*7}}",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_class_name_is_kept_as_it_is(write, npz, parquet, case):
    name = HOSTILE[case]
    columns = {"label": [name, "dog"], f"p_{name}": [0.9, 0.2], "p_dog": [0.1, 0.8], "region": [name, "here"]}
    for path in (
        write("wide.csv", table(columns)),
        write("wide.jsonl", jsonl(columns)),
        parquet(columns),
        npz(label=[name, "dog"], probs=[[0.9, 0.1], [0.2, 0.8]], classes=[name, "dog"], region=[name, "here"]),
    ):
        made = read(path)
        assert made.classes == (name, "dog")
        assert made.labels.tolist() == [0, 1]
        assert made.columns["region"].tolist() == [name, "here"]
        assert list(cal.SCE(made).parts) == [name, "dog"]


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_name_is_inert_and_short_in_every_message(write, case):
    name = HOSTILE[case]
    two = [[0.9, 0.1], [0.2, 0.8]]
    made = Predictions.from_probs([0, 1], two, classes=[name, "dog"], **{name: [1, 2]})
    calls = [
        lambda: Predictions.from_probs([name, "dog"], two, classes=["cat", "dog"]),
        lambda: Predictions.from_probs(["fish", "dog"], two, classes=[name, "dog"]),
        lambda: Predictions.from_probs([0, 1], two, classes=[name, name]),
        lambda: Predictions.from_probs([0, 1], two, **{name: [1, 2, 3]}),
        lambda: cal.label_in("fish")(made),
        lambda: cal.label_in(name + "!")(made),
        lambda: cal.where(fish=1)(made),
        lambda: cal.where(**{name + "!": 1})(made),
        lambda: cal.Groups({name: ["dog"], "b": ["dog"]})(made),
        lambda: cal.Groups({"a": ["dog"], "b": []})(made),
        lambda: read(write("a.csv", [["label", "p", name], ["1", "0.9", "3"], ["0", "0.2", "NA"]]), weight=name),
        lambda: read(write("b.csv", [["label", "p", name, name], ["1", "0.9", "3", "4"]])),
        lambda: read(write("c.csv", [["fish", "p", name], ["1", "0.9", "3"]])),
        lambda: read(write("d.csv", [["label", name], ["1", "0.9"]])),
        lambda: read(write("e.jsonl", jsonl({"label": [0], name: [{}]})), probs=name),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(CalibrationInputError) as caught:
            call()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("key", ["classes", "class_names"])
def test_an_array_beside_the_forecasts_names_the_classes(tmp_path, key):
    np.savez(tmp_path / "named.npz", probs=[[0.9, 0.1], [0.2, 0.8]], y=[0, 1], **{key: ["cat", "dog"]})
    assert read(tmp_path / "named.npz").classes == ("cat", "dog")


def test_a_column_of_the_name_of_an_option_is_no_option(write):
    path = write("options.csv", table({"label": E, "p": P, **dict.fromkeys(("copy", "normalize", "class_axis"), E)}))
    assert_same(read(path), EVENT)


# ---- the k likeliest classes, and independent labels -----------------------------------------------------------------

IDS = [[0, 1], [2, 1], [1, 2], [2, 0]]
TWO = [[0.7, 0.2], [0.6, 0.3], [0.5, 0.3], [0.5, 0.25]]
SEVERAL = [[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 1]]
SURE = [[0.9, 0.3, 0.6], [0.2, 0.1, 0.8], [0.7, 0.6, 0.4], [0.4, 0.5, 0.9]]

LIKELIEST = Predictions.from_top_k(Y, IDS, TWO, n_classes=9)
LABELS = Predictions.from_multilabel(SEVERAL, SURE)


def columns_of(prefix, rows, names):
    return {f"{prefix}{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


BY_RANK = {"label": Y, **columns_of("class_", IDS, (1, 2)), **columns_of("prob_", TWO, (1, 2)), "region": REGION}
RANKED = {"label": Y, "ids": IDS, "probs": TWO, "region": REGION}
BY_LABEL = {**columns_of("p_", SURE, NAMES), **columns_of("y_", SEVERAL, reversed(NAMES)), "region": REGION}
BY_LABEL |= columns_of("y_", SEVERAL, NAMES)
STACKED = {"multilabel": SEVERAL, "probs": SURE, "region": REGION}
SPELLED_IDS = [[NAMES[index] for index in row] for row in IDS]


def saved(columns, ending, write, npz, parquet):
    """Columns in a file of one of the formats."""
    if ending == "npz":
        return npz(**columns)
    if ending == "parquet":
        return parquet(columns)
    cells = {name: [json.dumps(cell) if isinstance(cell, list) else cell for cell in columns[name]] for name in columns}
    return write(f"predictions.{ending}", jsonl(columns) if ending == "jsonl" else table(cells))


@pytest.fixture(params=["csv", "tsv", "jsonl", "npz", "parquet"])
def save(request, write, npz, parquet):
    """Save columns in each of the formats."""
    return lambda columns: saved(columns, request.param, write, npz, parquet)


@pytest.mark.parametrize("columns", [BY_RANK, RANKED], ids=["columns", "lists"])
def test_the_likeliest_classes_are_read(save, columns):
    made = read(save(columns), classes=9)
    assert_same(made, LIKELIEST, region=REGION)
    assert np.array_equal(made.forecasts.ids, LIKELIEST.forecasts.ids)
    assert made.n_classes == 9


def test_the_likeliest_classes_go_by_name(save, write, npz, parquet):
    names = columns_of("class_", SPELLED_IDS, (1, 2))
    for columns in ({**BY_RANK, **names, "label": SPELLED}, {**RANKED, "ids": SPELLED_IDS, "label": SPELLED}):
        made = read(save(columns), classes=NAMES)
        assert np.array_equal(made.forecasts.ids, LIKELIEST.forecasts.ids)
        assert made.labels.tolist() == Y
        assert made.classes == tuple(NAMES)


def test_the_numbers_that_name_classes_are_names_of_the_likeliest_too(save):
    shifted = {**BY_RANK, "label": [y + 1 for y in Y]}
    shifted |= columns_of("class_", [[index + 1 for index in row] for row in IDS], (1, 2))
    made = read(save(shifted), classes=["1", "2", "3"])
    assert np.array_equal(made.forecasts.ids, LIKELIEST.forecasts.ids)
    assert made.labels.tolist() == Y
    refused(save(BY_RANK), "labels must be among the class names 1, 2, 3, got 0", classes=["1", "2", "3"])


@pytest.mark.parametrize("columns", [BY_RANK, RANKED], ids=["columns", "lists"])
def test_the_likeliest_need_the_number_of_classes(save, columns):
    error = refused(save(columns), "needs the number of all classes")
    assert "classes=K" in error.hint


def test_an_array_of_names_counts_the_classes(npz):
    assert read(npz(**RANKED, classes=NAMES)).n_classes == 3


@pytest.mark.parametrize("columns", [BY_LABEL, STACKED], ids=["columns", "lists"])
def test_independent_labels_are_read(save, columns):
    made = read(save(columns), classes=None if columns is BY_LABEL else NAMES)
    assert_same(made, LABELS, region=REGION)
    assert made.classes == tuple(NAMES)
    assert made.weight is None


def test_labels_may_be_true_and_false(write):
    words = {"y_cat": ["True", "false", "TRUE", "False"], "p_cat": P}
    made = read(write("labels.csv", table(words)))
    assert made.labels.tolist() == [[1], [0], [1], [0]]
    assert made.classes == ("cat",)


def test_weights_are_weights_of_every_kind(save):
    heavy = [1.0, 2.0, 3.0, 1.0]
    for columns, options in ((BY_RANK, {"classes": 9}), (RANKED, {"classes": 9}), (BY_LABEL, {}), (STACKED, {})):
        made = read(save({**columns, "w": heavy}), weight="w", **options)
        assert made.weight.tolist() == heavy
        assert list(made.columns) == ["region"]


def test_other_files_stay_what_they_are(write, npz):
    beside = {**WIDE, "y_cat": E, "class_1": E, "prob_1": P, "ids": ["a", "b", "c", "d"]}
    assert_same(
        read(write("beside.csv", table(beside))), CLASSES, region=REGION, y_cat=E, class_1=E, prob_1=P, ids=list("abcd")
    )
    assert_same(read(npz(label=Y, probs=M, ids=[3, 1, 4, 1])), CLASSES, ids=[3, 1, 4, 1])
    assert_same(read(npz(y=np.eye(3)[Y], p=M)), CLASSES)
    truth = {"y_true": SPELLED, **{name: column for name, column in WIDE.items() if name != "label"}}
    assert_same(read(write("truth.csv", table(truth)), label="y_true"), CLASSES, region=REGION)
    assert_same(
        read(write("mixed.csv", "label,p,ids\n1,0.9,7\n0,0.2,NA\n1,0.7,8\n0,0.4,9\n")), EVENT, ids=["7", "NA", "8", "9"]
    )


@pytest.mark.parametrize("mark", ["y_", "label_", "labels_", "y_true_", "true_", "target_", ""])
@pytest.mark.parametrize("prefix", ["p_", "prob_", "y_prob_", "score_"])
def test_independent_labels_are_known_by_pairs_of_names(write, mark, prefix):
    text = f"{mark}cat,{prefix}cat,{mark}dog,{prefix}dog,region\n1,0.9,0,0.3,n\n0,0.2,1,0.8,s\n"
    if prefix != "p_" and mark in ("", "y_"):
        refused(write("labels.csv", text), "must have one of the columns label, labels, y")
        return
    predictions = read(write("labels.csv", text))
    assert predictions.kind == "labels"
    assert predictions.classes == ("cat", "dog")
    assert predictions.labels.tolist() == [[1, 0], [0, 1]]
    assert predictions.values.tolist() == [[0.9, 0.3], [0.2, 0.8]]
    assert predictions.origin == {
        "labels": f"{mark}cat .. {mark}dog",
        "forecasts": f"{prefix}cat .. {prefix}dog",
    }


def test_a_decision_beside_labels_makes_no_independent_labels(write):
    predictions = read(write("decided.csv", "y_true,y_pred,p_0,p_1\n1,1,0.1,0.9\n0,0,0.8,0.2\n"))
    assert (predictions.kind, predictions.origin["labels"]) == ("classes", "y_true")


@pytest.mark.parametrize("words", ["01", "no yes", "False True", "healthy ill"])
def test_models_side_by_side_are_asked_about_whatever_the_labels(write, words):
    low, high = words.split() if " " in words else words
    text = f"label,p_a,p_b\n{high},0.9,0.8\n{low},0.2,0.4\n{high},0.7,0.6\n"
    message = f"labels {low} and {high}; if several models forecast one event, choose one with probs='p_a'"
    refused(write("models.csv", text), message)
    if words in ("01", "False True"):
        chosen = read(write("models.csv", text), probs="p_b")
        assert (chosen.kind, chosen.values.tolist()) == ("event", [0.8, 0.4, 0.6])


def test_what_shall_be_normalised_is_no_several_models(write):
    scaled = read(write("scaled.csv", "label,p_a,p_b\n1,0.2,0.6\n0,0.3,0.1\n"), normalize=True)
    assert scaled.probabilities[0].tolist() == pytest.approx([0.25, 0.75])


LACKING_SOME = {
    "no probability": ("y_a,y_b,p_a\n1,0,0.9\n", "must have y_<label> and p_<label> of every label, got no p_b", {}),
    "no truth": ("y_a,p_a,p_b\n1,0.1,0.9\n", "of every label, got no y_b", {}),
    "both": ("y_a,p_b\n1,0.1\n", "of every label, got no y_b, p_a", {}),
    "many": (",".join(["p_a", *(f"y_{i}" for i in range(9))]) + "\n" + ",".join(["0"] * 10) + "\n", "and 5 more", {}),
    "a rank": ("label,class_1,class_3,prob_1,prob_2\n0,0,1,.5,.4\n", "prob_1 .. prob_3, got no class_2, prob_3", {}),
    "far ranks": ("label,class_9999,prob_1\n0,0,.5\n", "got no class_1, class_2, .* and 19991 more", {}),
    "no list": ("label,class_1,class_2\n0,0,1\n", "must have p, p_<class>, .*class_1 .. and prob_1", {}),
}  # fmt: skip


@pytest.mark.parametrize("case", LACKING_SOME)
def test_what_is_missing_of_labels_and_ranks_is_named(write, case):
    text, message, keys = LACKING_SOME[case]
    refused(write("predictions.csv", text), message, **keys)


def test_options_that_do_not_apply_are_refused(write):
    refused_of = [(BY_RANK, {"classes": 9, "normalize": True})]
    refused_of += [(BY_LABEL, {"normalize": True}), (BY_LABEL, {"ignore_index": -1})]
    for columns, options in refused_of:
        path = write("predictions.csv", table(columns))
        with pytest.raises(CalibrationInputError, match=r"needs one label and the probability of every class"):
            read(path, **options)


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_labels_travel_and_are_inert(write, case):
    name = HOSTILE[case]
    path = write("labels.csv", [[f"y_{name}", f"p_{name}", "y_b", "p_b"], ["1", "0.9", "0", "0.1"]])
    assert len(read(path).classes) == 2
    error = refused(write("lacking.csv", [[f"y_{name}", "p_b", "y_b"], ["1", "0.9", "0"]]), "of every label, got no p_")
    assert len(str(error)) < 1000


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
@pytest.mark.parametrize("columns", [BY_LABEL, STACKED], ids=["columns", "lists"])
def test_labels_come_back_as_they_were_written(tmp_path, save, columns, ending):
    path = save(columns)
    scores = read_scores(path)
    assert not scores.are_logits
    rewritten = tmp_path / f"rewritten.{ending}"
    write_file(rewritten, scores.values, list(scores.classes or NAMES), scores.columns)
    made = read(rewritten)
    assert_same(made, LABELS, region=REGION)
    assert made.classes == tuple(NAMES)
    if ending == "csv":
        header = rewritten.read_text().splitlines()[0].split(",")
        assert {f"{prefix}_{name}" for prefix in "yp" for name in NAMES} <= set(header)


@pytest.mark.parametrize("columns", [BY_RANK, RANKED], ids=["columns", "lists"])
def test_the_likeliest_alone_are_no_scores_of_all_classes(save, columns):
    with pytest.raises(CalibrationInputError, match="must have the probability of every class, got the likeliest"):
        read_scores(save(columns))


def test_classes_that_contradict_the_columns_are_refused(write):
    path = write("named.csv", [["label", "p_cat", "p_dog"], ["cat", ".9", ".1"], ["dog", ".2", ".8"]])
    assert read(path, classes=["cat", "dog"]).classes == ("cat", "dog")
    with pytest.raises(CalibrationInputError, match="in their order: cat, dog, got dog, cat"):
        read(path, classes=["dog", "cat"])
    labels = write("labels.csv", [["y_a", "p_a", "y_b", "p_b"], ["1", ".9", "0", ".1"]])
    with pytest.raises(CalibrationInputError, match="in their order: a, b, got b, a"):
        read(labels, classes=["b", "a"])


def test_a_file_may_say_how_many_classes_there_are_and_hold_logits_of_labels(tmp_path):
    np.savez(tmp_path / "top.npz", labels=[0, 1], ids=[[0, 1], [1, 0]], probs=[[0.5, 0.2], [0.4, 0.3]], classes=8)
    assert read(tmp_path / "top.npz").n_classes == 8
    np.savez(tmp_path / "labels.npz", multilabel=[[0, 1], [1, 1]], logits=[[-2.0, 1.0], [0.5, 3.0]])
    predictions = read(tmp_path / "labels.npz")
    assert (predictions.kind, predictions.logits) == ("labels", True)


# Names that other tools use


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("y_true,y_prob\n1,0.9\n0,0.2\n", {"labels": "y_true", "forecasts": "y_prob"}),
        ("Target,Score,region\n1,90%,n\n0,20 %,s\n", {"labels": "Target", "forecasts": "Score"}),
        ("region,outcome,pred_proba\nn,1,0.9\ns,0,0.2\n", {"labels": "outcome", "forecasts": "pred_proba"}),
        ("y,prediction\n1,0.9\n0,0.2\n", {"labels": "y", "forecasts": "prediction"}),
    ],
)
def test_names_of_other_tools_are_understood(tmp_path, text, origin):
    (tmp_path / "a.csv").write_text(text)
    predictions = read(tmp_path / "a.csv")
    assert (predictions.values.tolist(), predictions.labels.tolist()) == ([0.9, 0.2], [1, 0])
    assert predictions.origin == origin == pickle.loads(pickle.dumps(predictions)).origin
    assert {"Target", "Score", "outcome", "pred_proba"}.isdisjoint(predictions.columns)


def test_several_columns_of_other_names_are_classes(tmp_path):
    (tmp_path / "a.csv").write_text("target,prob_cat,prob_dog\ndog,0.4,0.6\ncat,0.9,0.1\n")
    predictions = read(tmp_path / "a.csv")
    assert (predictions.classes, predictions.labels.tolist()) == (("cat", "dog"), [1, 0])
    assert predictions.origin["forecasts"] == "prob_cat .. prob_dog"


def test_the_usual_names_come_first(tmp_path):
    (tmp_path / "a.csv").write_text("label,target,p,score\n1,0,0.9,0.3\n0,1,0.2,0.6\n")
    predictions = read(tmp_path / "a.csv")
    assert (predictions.labels.tolist(), predictions.values.tolist()) == ([1, 0], [0.9, 0.2])
    assert set(predictions.columns) == {"target", "score"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y_true,target,p\n1,1,0.9\n", "label, labels, y, got y_true and target; name it with label="),
        ("y,prob,score\n1,0.9,0.8\n", "got prob and score; name the forecasts with probs="),
        ("y,prediction\n1,1\n0,1\n", "'prediction' must hold probabilities, got 0 and 1 alone"),
        ("y_true,p_a,p_b\n1,0.9,0.8\n0,0.2,0.4\n", "if several models forecast one event, choose one with probs='p_a'"),
        ("y_true,y_prob\n3,0.9\n0,0.2\n", "a.csv: 'y_true': outcomes of an event must be 0 or 1, got 3"),
        ("target,y_prob\n1,1.9\n0,0.2\n", "a.csv: 'y_prob': must lie in"),
    ],
)
def test_what_could_mean_several_things_is_asked_about(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(CalibrationInputError, match=re.escape(message)):
        read(tmp_path / "a.csv")


def test_columns_of_zeros_and_ones_beside_probabilities_of_the_same_names_are_labels(tmp_path):
    (tmp_path / "a.csv").write_text("cat,dog,p_cat,p_dog\n1,0,0.9,0.8\n0,1,0.2,0.4\n")
    predictions = read(tmp_path / "a.csv")
    assert (predictions.kind, predictions.classes) == ("labels", ("cat", "dog"))
    assert predictions.labels.tolist() == [[1, 0], [0, 1]]


def test_confidences_have_any_name_scale_and_gaps(tmp_path):
    lines = ['{"sure": 90, "right": true}', '{"sure": 50, "right": null}', '{"sure": null, "right": false}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    asked = {"confidence": "sure", "correct": "right", "scale": 100}
    predictions = read(tmp_path / "a.jsonl", **asked, missing="wrong")
    assert (predictions.values.tolist(), predictions.labels.tolist()) == ([0.9, 0.5], [1, 0])
    assert predictions.notes == ("1 row was counted as wrong: no answer", "1 row was left out: missing values")
    assert read(tmp_path / "a.jsonl", **asked, missing="drop").values.tolist() == [0.9]
    for wrong in ({"confidence": "sure"}, {**asked, "probs": "sure"}, {**asked, "scale": 0}):
        with pytest.raises(CalibrationInputError):
            read(tmp_path / "a.jsonl", **wrong)


def test_log_probabilities_of_what_cannot_be_are_minus_infinity():
    logits = np.log([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], where=[[1, 1, 0], [1, 1, 1]], out=np.full((2, 3), -np.inf))
    predictions = cal.Predictions.from_logits([0, 2], logits)
    np.testing.assert_allclose(predictions.probabilities, [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], rtol=1e-15)
    assert predictions.probabilities[0, 2] == 0
    assert predictions.notes == ("1 row was read with -inf as 1,000 below their largest logit",)
    assert cal.Predictions.from_logits([0, 1], [-np.inf, 2.0]).probabilities[0] == 0
    for broken in ([[np.inf, 0.0]], [[-np.inf, -np.inf]], [[-np.inf, np.nan]]):
        with pytest.raises(CalibrationInputError, match="must be finite"):
            cal.Predictions.from_logits([0], broken)
