"""Scans: files give the numbers of all their rows to the bit; what is wrong is named with its file and place."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant import files
from calibrant.files import read
from calibrant.scale import State, part_files, part_states, row_batches, scan
from calibrant.scale.part_files import parts
from calibrant.scale.scanning import first_rows

METRICS = {
    "ece": cal.ECE,
    "brier": cal.BRIER,
    "adaptive": cal.ADAPTIVE_ECE,
    "sweep": cal.ECE_SWEEP,
    "auroc": cal.AUROC,
}

FEW = {"ece": cal.ECE, "adaptive": cal.ADAPTIVE_ECE}


def event(seed=0, n=4000, dtype=np.float64):
    rng = np.random.default_rng(seed)
    p = rng.random(n).astype(dtype)
    return {
        "label": (rng.random(n) < p**1.2).astype(np.int64),
        "p": p,
        "region": rng.choice(["north", "south"], n),
        "noise": rng.random(n),
    }


def classes(seed=0, n=1000, k=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n)


def write(path, columns, **options):
    options = {"row_group_size": 700, "write_page_checksum": True, **options}
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.fixture
def folder(tmp_path):
    """Five files of one event, float32 and float64 mixed."""
    for index in range(5):
        write(tmp_path / f"{index}.parquet", event(index, dtype=np.float32 if index % 2 else np.float64))
    return tmp_path


def together(folder):
    """All rows of a folder's Parquet files in memory, a state of them, and results."""
    every = [read(path) for path in sorted(folder.rglob("*.parquet"))]
    return lambda metric: metric.conclude(sum(map(metric.summarise, every))), every


def assert_same(result, expected):
    assert result.metric == expected.metric
    assert (result.value, result.values, result.n) == (expected.value, expected.values, expected.n)


def test_many_files_give_the_numbers_and_the_state_of_all_rows(folder):
    measured, every = together(folder)
    scanned = scan(folder, METRICS)
    assert list(scanned) == list(METRICS)
    for name, metric in METRICS.items():
        assert_same(scanned[name], measured(metric))
    assert scanned.state.to_bytes() == sum(State.of(rows, METRICS) for rows in every).to_bytes()
    assert 2 <= scanned.passes <= 4


@pytest.mark.parametrize("numbers", [250, 1 << 21])
def test_batches_threads_and_order_change_nothing(folder, numbers, monkeypatch):
    monkeypatch.setattr(row_batches, "NUMBERS", numbers * 2)
    files = sorted(folder.glob("*"), reverse=True)
    expected, scanned = scan(str(folder / "*.parquet"), FEW), scan(files, FEW, threads=2)
    assert scanned.state.to_bytes() == expected.state.to_bytes()
    for name in FEW:
        assert_same(scanned[name], expected[name])


def test_groups_are_exact_in_every_group(folder):
    _, every = together(folder)
    whole = cal.Predictions.from_probs(
        np.concatenate([rows.labels for rows in every]),
        np.concatenate([rows.values.astype(np.float64) for rows in every]),
        region=np.concatenate([rows.column("region") for rows in every]),
    )
    metrics = {"adaptive": cal.ADAPTIVE_ECE, "sweep": cal.ECE_SWEEP}
    table, scanned = cal.table(whole, metrics, by="region"), scan(folder, metrics, by="region")
    assert list(scanned.table.results) == ["all", "north", "south"]
    for row, results in table.results.items():
        for name in metrics:
            assert scanned.table[row][name].value == results[name].value


def test_folders_named_after_values_are_columns(tmp_path):
    for region in ("north", "south"):
        os.makedirs(tmp_path / f"region={region}" / "day=1")
        rows = event(len(region) + (region == "south"), 500)
        del rows["region"]
        write(tmp_path / f"region={region}" / "day=1" / "a.parquet", rows)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.parquet").write_text("")
    scanned = scan(tmp_path, {"ece": cal.ECE, "north": cal.ECE.replace(select=cal.where(region="north"))}, by="region")
    assert list(scanned.table.results) == ["all", "north", "south"]
    assert scanned["north"].value == scanned.table["north"]["ece"].value
    assert scanned["north"].value == cal.ECE(read(tmp_path / "region=north/day=1/a.parquet")).value
    write(tmp_path / "region=north" / "day=1" / "b.parquet", event(3, 500))
    with pytest.raises(cal.CalibrationInputError, match=r"b\.parquet: must have 'region' once"):
        scan(tmp_path, {"ece": cal.ECE}, by="region")


def test_only_needed_columns_are_read(folder, monkeypatch):
    asked = []
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda self, *args, columns, **kw: asked.append(columns) or real(self, *args, columns=columns, **kw),
    )
    scan(folder, {"ece": cal.ECE})
    assert asked[0] == ["label", "p", "region", "noise"]
    assert {tuple(columns) for columns in asked[1:]} == {("label", "p")}
    asked.clear()
    scan(folder, {"ece": cal.ECE.replace(select=~cal.where(region="north"))})
    assert {tuple(columns) for columns in asked[1:]} == {("label", "p", "region")}


def layouts():
    labels, p = classes()
    wide = {f"p_{index}": p[:, index] for index in range(3)}
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(p.ravel()), 3)
    order = np.argsort(-p, axis=1)[:, :2]
    shown = np.take_along_axis(p, order, axis=1)
    top = {f"class_{k + 1}": order[:, k] for k in range(2)} | {f"prob_{k + 1}": shown[:, k] for k in range(2)}
    several = {f"y_{name}": (labels == index).astype(int) for index, name in enumerate("ab")}
    return {
        "wide": {"label": labels, **wide},
        "lists": {"label": labels, "probs": p.tolist()},
        "fixed lists": {"label": labels, "probs": fixed},
        "float32": {"label": labels, "probs": p.astype(np.float32).tolist()},
        "logits": {"label": labels, "logits": np.log(p).tolist()},
        "top k": {"label": labels, **top},
        "ids": {"label": labels, "ids": order.tolist(), "probs": shown.tolist()},
        "labels": several | {f"p_{name}": p[:, index] for index, name in enumerate("ab")},
        "confidence": {"correct": labels == p.argmax(axis=1), "confidence": p.max(axis=1)},
        "event": {"y": labels == 0, "p": p[:, 0]},
    }


def long_lines(labels, p, rng, names="bca", first=0):
    """A line for each class of each row, in any order within the row."""
    order = np.argsort(rng.random(p.shape), axis=1)
    return {
        "label": np.repeat(np.array(list(names))[labels], p.shape[1]),
        "row": np.repeat(np.arange(first, first + len(p)), p.shape[1]),
        "class": np.array(list(names))[order].ravel(),
        "p": np.take_along_axis(p, order, axis=1).ravel(),
        "region": np.repeat(np.where(labels == 1, "north", "south"), p.shape[1]),
        "note": rng.random(p.size),
    }


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_the_long_layout_is_read_as_a_column_a_class(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "NUMBERS", 500)
    monkeypatch.setattr(row_batches, "CSV_ROWS", 100)  # rows of three lines are cut
    rng = np.random.default_rng(0)
    labels, p = classes()
    writers = {**WRITERS, "csv": lambda columns, path: pa.csv.write_csv(pa.table(columns), path)}
    for half, rows in (("a", slice(0, 400)), ("b", slice(400, None))):
        writers[ending](long_lines(labels[rows], p[rows], rng), tmp_path / f"{half}.{ending}")
    metrics = {"ece": cal.ECE, "sce": cal.SCE, "adaptive": cal.ADAPTIVE_ECE}
    scanned = scan(tmp_path, metrics, by="region")
    order = [2, 0, 1]
    expected = cal.Predictions.from_probs(np.argsort(order)[labels], p[:, order], classes=["a", "b", "c"])
    for name, metric in metrics.items():
        assert_same(scanned[name], metric(expected))
    assert scanned.table["north"]["ece"].n == (labels == 1).sum()
    if ending != "arrow":
        whole = read(tmp_path / f"a.{ending}")
        assert cal.SCE(whole).to_json() == cal.SCE(expected[:400]).to_json()


LONG_FAULTS = {
    "a line lost": (
        lambda lines: {name: np.delete(each, 7) for name, each in lines.items()},
        "must have 3 lines a row, got 2 at .*the lines of row 2",
    ),
    "a class twice": (
        lambda lines: lines | {"class": np.where(np.arange(3000) < 3, "a", lines["class"])},
        "each of the classes",
    ),
    "two labels": (
        lambda lines: lines | {"label": np.where(np.arange(3000) == 4, "zz", lines["label"])},
        "must have one value of 'label' for all lines of a row, got several at .*the lines of row 1",
    ),
    "apart": (
        lambda lines: {
            name: np.concatenate([each[6:12], each[:6], each[:3], each[12:]]) for name, each in lines.items()
        },
        "must have the lines of a row together, got them apart at .*the lines of row 0",
    ),
}


@pytest.mark.parametrize("fault", LONG_FAULTS)
def test_lines_that_are_no_rows_are_named(fault, tmp_path):
    damage, message = LONG_FAULTS[fault]
    write(tmp_path / "a.parquet", damage(long_lines(*classes(), np.random.default_rng(0))))
    with pytest.raises(cal.CalibrationInputError, match=message):
        scan(tmp_path, {"ece": cal.ECE})
    with pytest.raises(cal.CalibrationInputError, match=message):
        read(tmp_path / "a.parquet")


def test_large_files_of_the_long_layout_are_one_part(tmp_path, monkeypatch):
    monkeypatch.setattr(part_files, "LARGE", 1000)
    write(tmp_path / "a.parquet", long_lines(*classes(), np.random.default_rng(0)))
    assert [part.groups for part in parts(tmp_path)] == [None]
    assert scan(tmp_path, {"ece": cal.ECE})["ece"].n == 1000


WRITERS = {
    "parquet": lambda columns, path: pq.write_table(pa.table(columns), path, row_group_size=300),
    "arrow": lambda columns, path: pa.feather.write_feather(pa.table(columns), path, chunksize=300),
}


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize("ending", WRITERS)
def test_every_layout_is_read_as_one_file_is(layout, ending, tmp_path):
    columns = layouts()[layout]
    options = {"classes": 3} if layout in ("top k", "ids") else {}
    WRITERS["parquet"](columns, tmp_path / "all.parquet")
    for half, rows in (("a", slice(0, 400)), ("b", slice(400, None))):
        WRITERS[ending]({name: each[rows] for name, each in columns.items()}, tmp_path / f"{half}.{ending}")
    scanned = scan([tmp_path / f"{half}.{ending}" for half in "ab"], FEW, **options)
    expected = read(tmp_path / "all.parquet", **options)
    for name, metric in FEW.items():
        assert_same(scanned[name], metric(expected))


def test_csv_stream_and_whole_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "CSV_ROWS", 300)
    rows = event(0, 1000)
    pa.csv.write_csv(pa.table(rows), tmp_path / "a.csv")
    np.savez(tmp_path / "b.npz", **rows)
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, pa.table(rows).to_pylist())))
    with pa.OSFile(str(tmp_path / "d.arrow"), "wb") as file, pa.ipc.new_stream(file, pa.table(rows).schema) as stream:
        stream.write_table(pa.table(rows), 400)
    expected = cal.ADAPTIVE_ECE(rows["label"], rows["p"])
    for path in sorted(tmp_path.iterdir()):
        assert scan(path, {"adaptive": cal.ADAPTIVE_ECE}, by="region")["adaptive"].value == expected.value
    four = scan(tmp_path, {"adaptive": cal.ADAPTIVE_ECE})
    assert four["adaptive"].n == 4000


def test_a_pair_of_memory_maps_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "MAPPED_NUMBERS", 1000)
    monkeypatch.setattr(row_batches, "FIRST_NUMBERS", 30)
    labels, p = classes(n=1000)
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "probs.npy", p)
    np.save(tmp_path / "logits.npy", np.log(p))
    scanned = scan([tmp_path / "labels.npy", tmp_path / "probs.npy"], {"sce": cal.SCE, "ace": cal.ACE})
    assert_same(scanned["sce"], cal.SCE(labels, p))
    assert_same(scanned["ace"], cal.ACE(labels, p))
    scanned = scan([tmp_path / "labels.npy", tmp_path / "logits.npy"], {"ece": cal.ECE}, logits="logits")
    assert_same(scanned["ece"], cal.ECE(cal.Predictions.from_logits(labels, np.log(p))))
    np.save(tmp_path / "labels.npy", labels[:-1])
    with pytest.raises(cal.CalibrationInputError, match=r"labels\.npy: must have 1000 rows, got 999"):
        scan([tmp_path / "labels.npy", tmp_path / "probs.npy"], {"ece": cal.ECE})


def test_memory_maps_are_not_copied_and_a_look_takes_few_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "FIRST_NUMBERS", 50)
    monkeypatch.setattr(row_batches, "MAPPED_NUMBERS", 2000)
    files, p = [tmp_path / "labels.npy", tmp_path / "probs.npy"], np.full((1000, 5), 0.2)
    np.save(files[0], np.zeros(1000, np.int64))
    np.save(files[1], p)
    (part,) = parts(files)
    batches = [columns["probs"] for _, columns in row_batches.batches(part)]
    assert [len(batch) for batch in batches] == [10, 400, 400, 190]
    for batch in batches:
        assert np.shares_memory(cal.Predictions.from_probs([0] * len(batch), batch).forecasts.values, batch)
    assert len(first_rows(files)) == 10
    for file in files:
        np.save(file, np.load(file)[:0])
    with pytest.raises(cal.CalibrationInputError, match="must have rows, got none"):
        scan(files, {"ece": cal.ECE})


def test_large_files_are_read_in_stretches_of_row_groups(folder, monkeypatch):
    expected = scan(folder, FEW)
    monkeypatch.setattr(part_files, "LARGE", 20_000)
    stretches = parts(folder)
    assert len(stretches) > 10
    assert sum(stop - start for start, stop in (part.groups for part in stretches)) == 5 * 6
    assert scan(folder, FEW).state.to_bytes() == expected.state.to_bytes()


def test_one_pass_tells_what_cells_tell(folder):
    scanned = scan(folder, {"ece": cal.ECE, "brier": cal.BRIER}, exact=False)
    assert scanned.passes == 1
    assert scanned["ece"].value == scan(folder, {"ece": cal.ECE})["ece"].value


def flip_a_bit(path):
    """Damage a forecast of the second row group by its last bits: nothing but a checksum can tell."""
    write(path, event(9), compression="none", use_dictionary=False)
    place = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    data[place.data_page_offset + place.total_compressed_size // 8 * 8 - 64] ^= 1
    path.write_bytes(bytes(data))


def with_null(path):
    rows = event(9, 2000)
    write(path, rows | {"p": pa.array([*rows["p"].tolist()[:900], None, *rows["p"].tolist()[901:]])})


def lacking(path):
    rows = event(9)
    del rows["p"]
    write(path, rows)


def test_a_line_of_a_text_is_one_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.scale.row_batches.CSV_ROWS", 2)
    path = tmp_path / "a.csv"
    path.write_text("label,p\n1,0.9\n0,0.2\n1,0.8\n0,1.5\n")
    with pytest.raises(cal.CalibrationInputError, match=r"a\.csv: 'p' must lie in \[0, 1\], got 1.5 at line 5$"):
        scan(path, FEW)


FAULTS = {
    "a flipped bit": (flip_a_bit, r"2\.parquet: is damaged.* at row group 1"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-500]), r"2\.parquet: must be a whole Parquet file"),
    "a column lacks": (lacking, r"2\.parquet: lacks a column, got 'p'"),
    "another schema": (
        lambda path: write(path, event(9) | {"p": [[0.2, 0.8]] * 4000}),
        r"2\.parquet: must have forecasts of one event, as those before it, got 2 classes at row group 0",
    ),
    "other types": (lambda path: write(path, event(9) | {"p": ["a"] * 4000}), r"2\.parquet: 'p' must be numbers"),
    "a null": (with_null, r"2\.parquet: column 'p' must have no nulls.* at row group 1, rows 0 to 699, row 200 of"),
    "no probability": (
        lambda path: write(path, event(9) | {"p": np.full(4000, 1.5)}),
        r"2\.parquet: 'p' must lie in \[0, 1\], got 1.5 at row group 0, rows 0 to 699, row 0 of these",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named_with_its_file_and_place(fault, folder):
    break_file, message = FAULTS[fault]
    break_file(folder / "2.parquet")
    with pytest.raises(cal.CalibrationInputError, match=message):
        scan(folder, FEW)
    skipping = scan(folder, FEW, skip_bad=True)
    ((bad),) = skipping.skipped
    assert os.path.basename(bad.part.path) == "2.parquet"
    assert re.search(message, bad.reason)
    assert bad.rows == (None if fault == "cut off" else 2000 if fault == "a null" else 4000)
    (folder / "2.parquet").unlink()
    rest = scan(folder, FEW)
    assert skipping.state.to_bytes() == rest.state.to_bytes()
    assert_same(skipping["adaptive"], rest["adaptive"])


def test_a_first_file_that_is_bad_is_passed_over_too(folder):
    (folder / "0.parquet").write_bytes(b"PAR1 nothing")
    assert len(scan(folder, {"ece": cal.ECE}, skip_bad=True).skipped) == 1
    for path in folder.iterdir():
        path.write_bytes(b"PAR1 nothing")
    with pytest.raises(cal.CalibrationInputError, match="must be a whole Parquet file"):
        scan(folder, {"ece": cal.ECE}, skip_bad=True)


def test_one_class_more_in_a_later_file_is_refused(tmp_path):
    for index, k in enumerate((3, 4)):
        labels, p = classes(k=k)
        write(tmp_path / f"{index}.parquet", {"label": labels, **{f"p_{c}": p[:, c] for c in range(k)}})
    with pytest.raises(cal.CalibrationInputError, match=r"1\.parquet: must have the columns of the first.*'p_3' more"):
        scan(tmp_path, {"ece": cal.ECE})


def test_columns_in_another_order_are_the_same_classes(tmp_path):
    labels, p = classes()
    columns = {"label": labels, **{f"p_{c}": p[:, c] for c in range(3)}}
    write(tmp_path / "0.parquet", columns)
    write(tmp_path / "1.parquet", dict(reversed(columns.items())))
    scanned = scan(tmp_path, {"sce": cal.SCE, "ace": cal.ACE})
    assert_same(scanned["sce"], cal.SCE(np.tile(labels, 2), np.tile(p, (2, 1)), classes=["0", "1", "2"]))


def test_files_without_rows_are_no_fault_but_a_scan_without_rows_is(folder):
    empty = {name: column[:0] for name, column in event().items()}
    write(folder / "9.parquet", empty)
    assert scan(folder, {"ece": cal.ECE})["ece"].n == 20_000
    with pytest.raises(cal.CalibrationInputError, match="must have rows"):
        scan(folder / "9.parquet", {"ece": cal.ECE})


def test_a_file_that_changes_between_passes_is_refused(folder):
    def change(_):
        os.utime(folder / "3.parquet", ns=(0, time.time_ns()))

    with pytest.raises(cal.CalibrationInputError, match=r"3\.parquet: must not change while it is read"):
        scan(folder, {"adaptive": cal.ADAPTIVE_ECE}, progress=change)


def test_an_interrupted_scan_does_not_read_finished_files_again(folder, tmp_path_factory, monkeypatch):
    kept, seen = tmp_path_factory.mktemp("kept"), []
    expected = scan(folder, FEW)

    def interrupt(rows):
        if rows >= 12_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(folder, FEW, resume=kept, progress=interrupt)
    finished = len(list(kept.iterdir()))
    assert 3 <= finished <= 5
    real = part_states.batches
    monkeypatch.setattr(
        part_states, "batches", lambda part, names, *more: seen.append((part, names)) or real(part, names, *more)
    )
    again = scan(folder, FEW, resume=kept)
    first_pass = [part for part, names in seen[1:] if names is not None][: 5 - finished]
    assert len(seen) == 1 + (5 - finished) + 5 * (again.passes - 1)
    assert len(first_pass) == 5 - finished
    assert again.state.to_bytes() == expected.state.to_bytes()
    for name in FEW:
        assert_same(again[name], expected[name])
    seen.clear()
    assert scan(folder, FEW, resume=kept).state.to_bytes() == expected.state.to_bytes()
    assert len(seen) == 1  # the first rows tell the columns
    for path in kept.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert scan(folder, FEW, resume=kept)["adaptive"].value == expected["adaptive"].value


STOPPED_IN_THE_THIRD_FILE = """
import sys, time
import calibrant as cal
from calibrant.scale import part_states, scan

real = part_states.batches

def batches(part, names, *more):
    for number, batch in enumerate(real(part, names, *more)):
        if names is not None and part.path.endswith("2.parquet") and number == 2:
            print("stopped", flush=True)
            time.sleep(600)
        yield batch

part_states.batches = batches
scan(sys.argv[1], {"ece": cal.ECE, "adaptive": cal.ADAPTIVE_ECE}, resume=sys.argv[2])
"""


def test_a_killed_scan_goes_on_with_the_file_it_was_in(folder, tmp_path_factory, monkeypatch):
    kept, seen = tmp_path_factory.mktemp("kept"), []
    command = [sys.executable, "-c", STOPPED_IN_THE_THIRD_FILE, str(folder), str(kept)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as scanning:
        assert scanning.stdout.readline() == "stopped\n"
        scanning.send_signal(signal.SIGKILL)
        assert scanning.wait(30) == -signal.SIGKILL
    assert len(list(kept.glob("*.state"))) == 2
    real = part_states.batches
    monkeypatch.setattr(
        part_states,
        "batches",
        lambda part, names, *more: seen.append(os.path.basename(part.path)) or real(part, names, *more),
    )
    again = scan(folder, FEW, resume=kept)
    assert seen[:4] == ["0.parquet", "2.parquet", "3.parquet", "4.parquet"]  # of the first, only which columns it has
    assert len(seen) == 4 + 5 * (again.passes - 1)
    monkeypatch.undo()
    expected = scan(folder, FEW)
    assert again.state.to_bytes() == expected.state.to_bytes()
    for name in FEW:
        assert_same(again[name], expected[name])


def test_what_is_kept_is_of_the_file_as_it_was_and_of_the_same_reading(folder, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept")
    scan(folder, {"ece": cal.ECE}, resume=kept)
    shutil.copy(folder / "1.parquet", folder / "0.parquet")
    assert scan(folder, {"ece": cal.ECE}, resume=kept)["ece"].value == scan(folder, {"ece": cal.ECE})["ece"].value
    north = {"ece": cal.ECE.replace(select=cal.where(region="north"))}
    assert scan(folder, north, resume=kept)["ece"].value == scan(folder, north)["ece"].value
    assert scan(folder, north, resume=kept, by="region").table["north"]["ece"].n < 12_000


def test_what_is_no_source_is_said(tmp_path):
    with pytest.raises(cal.CalibrationInputError, match="must have files of predictions"):
        scan(tmp_path, {"ece": cal.ECE})
    with pytest.raises(cal.CalibrationInputError, match="must match files"):
        scan(str(tmp_path / "*.parquet"), {"ece": cal.ECE})
    with pytest.raises(FileNotFoundError):
        scan(tmp_path / "a.parquet", {"ece": cal.ECE})
    with pytest.raises(cal.CalibrationInputError, match="standard input: can be read once"):
        scan("-", {"ece": cal.ECE})
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        with pytest.raises(cal.CalibrationInputError, match=r"pipe\.csv: must be a file, got a pipe"):
            scan(tmp_path / "pipe.csv", {"ece": cal.ECE})
    path = write(tmp_path / "a.parquet", event())
    with pytest.raises(cal.CalibrationInputError, match="must be named once"):
        scan([path, path], {"ece": cal.ECE})
    with pytest.raises(cal.CalibrationInputError, match="is no option"):
        scan(path, {"ece": cal.ECE}, normalise=True)
    with pytest.raises(cal.CalibrationInputError, match="of a state must keep no rows"):
        scan(path, {"full": cal.FULL_ECE})


def test_text_and_numbers_in_one_csv_column_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "CSV_ROWS", 2)
    (tmp_path / "a.csv").write_text("label,p,region\n1,.9,1\n0,.2,2\n1,.6,north\n")
    with pytest.raises(cal.CalibrationInputError, match="'region' must be of one kind throughout, got text after numb"):
        scan(tmp_path, {"ece": cal.ECE}, by="region")


def test_missing_values_and_weights_are_read_as_in_one_file(tmp_path):
    rows = event(0, 1000)
    rows |= {"p": pa.array([None, *rows["p"].tolist()[1:]]), "w": np.arange(1000) % 3}
    path = write(tmp_path / "a.parquet", rows)
    scanned = scan(path, FEW, weight="w", missing="drop")
    expected = read(path, weight="w", missing="drop")
    for name, metric in (("ece", cal.ECE), ("adaptive", cal.ADAPTIVE_ECE)):
        assert_same(scanned[name], metric(expected))
    assert scanned["ece"].notes == ("1 row was left out: missing values",)


def test_rows_that_do_not_come_are_missed(folder, monkeypatch):
    real = pq.ParquetFile.iter_batches

    def all_but_the_last(self, *args, **options):
        return list(real(self, 100, *args[1:], **options))[:-1]

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", all_but_the_last)
    with pytest.raises(cal.CalibrationInputError, match=r"0\.parquet: must have 700 rows, got 600 at row group 0"):
        scan(folder, {"ece": cal.ECE})


def disagreeing(path):
    """A Parquet file with each flip of a bit of its footer after which its row groups have fewer rows than it says."""
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(8 * footer, 8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # a footer that cannot be read at all
            about = pq.read_metadata(pa.BufferReader(damaged))
            if 0 < sum(about.row_group(index).num_rows for index in range(about.num_row_groups)) < about.num_rows:
                path.write_bytes(damaged)
                yield path


def test_row_groups_that_lost_rows_are_missed(tmp_path):
    """Found by flips: a row group whose count was damaged gave as many rows, and no page told of the others."""
    path = write(tmp_path / "a.parquet", event(n=9))
    damaged = 0
    for damaged, each in enumerate(disagreeing(path), start=1):  # noqa: B007 - counted
        with pytest.raises(cal.CalibrationInputError, match=r"must have \d+ rows, got \d+ in its row groups"):
            scan(each, {"ece": cal.ECE})
    assert damaged > 1


FLIPS = """
import sys
from pathlib import Path
import calibrant as cal
path = Path(sys.argv[1])
whole = path.read_bytes()
expected = cal.scale.scan(path, {"ece": cal.ECE}).state.to_bytes()
footer = 8 * (len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"))
for place in range(footer, 8 * len(whole), 11):
    damaged = bytearray(whole)
    damaged[place // 8] ^= 1 << place % 8
    path.write_bytes(damaged)
    try:
        print(cal.scale.scan(path, {"ece": cal.ECE}).state.to_bytes() == expected)
    except cal.CalibrationInputError:
        print("refused")
"""


def test_no_flipped_bit_of_a_footer_ends_the_process_or_changes_a_number(tmp_path):
    """Found by flips: asked for its columns, pyarrow ended the process where the histogram of one was damaged."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), 9)
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, 9)]
    files.write(tmp_path / "ours.parquet", probabilities, ["a", "b", "c"], {"label": labels})
    ended = subprocess.run(
        [sys.executable, "-c", FLIPS, tmp_path / "ours.parquet"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-1000:]
    assert set(ended.stdout.split()) == {"True", "refused"}


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float64(), 3), pa.large_list(pa.float32())])
def test_batches_of_lists_are_as_small_as_their_rows_are_wide(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "NUMBERS", 40)
    labels, probabilities = classes(n=50)
    write(tmp_path / "a.parquet", {"label": labels, "probs": pa.array(probabilities.tolist(), kind)})
    (part,) = parts(tmp_path)
    assert [len(columns["label"]) for _, columns in row_batches.batches(part)] == [10] * 5
    assert [len(columns["label"]) for _, columns in row_batches.batches(part, ["label"])] == [40, 10]
