"""Commands on states, folders, patterns and many files."""

import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.files import read
from calibrant.scale import State
from typed import typed


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The whole command in a folder of three days, each of 500 rows of one event in two regions."""
    for day in range(3):
        rng = np.random.default_rng(day)
        p = rng.random(500)
        rows = {"label": (rng.random(500) < p**1.3).astype(int), "p": p, "region": rng.choice(["north", "south"], 500)}
        (tmp_path / "logs" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table(rows), tmp_path / "logs" / f"day={day}" / "rows.parquet", write_page_checksum=True)
    monkeypatch.chdir(tmp_path)
    return lambda *words: typed(monkeypatch, capsys, words)


def day(number):
    return f"logs/day={number}/rows.parquet"


def every():
    return [read(day(number)) for number in range(3)]


def of_all(metric):
    return metric.conclude(sum(map(metric.summarise, every()))).value


def values(ended):
    assert ended.code == 0, ended
    return {name: each["value"] for name, each in json.loads(ended.out)["rows"]["all"].items()}


@pytest.mark.parametrize(
    "files", [["logs"], ["logs/*/rows.parquet"], [day(0), day(1), day(2)], [day(0), "logs/day=[12]/*"]]
)
def test_measure_reads_folders_patterns_and_many_files(command, files):
    ended = command("measure", *files, "-m", "ece", "-m", "adaptive_ece", "--format", "json")
    assert values(ended) == {"ece": of_all(cal.ECE), "adaptive_ece": of_all(cal.ADAPTIVE_ECE)}
    assert json.loads(ended.out)["skipped"] == []


def test_measure_tells_groups_that_folders_name(command):
    ended = command("measure", "logs", "-m", "ece", "--by", "day", "--format", "csv")
    assert [line.split(",")[:2] for line in ended.out.splitlines()[1:]] == [
        ["all", "1500"], ["0", "500"], ["1", "500"], ["2", "500"],
    ]  # fmt: skip


def test_one_pass_shows_bounds(command):
    exact = values(command("measure", "logs", "-m", "auroc", "--format", "json"))["auroc"]
    ended = command("measure", "logs", "-m", "auroc", "--one-pass", "--format", "json")
    result = json.loads(ended.out)["rows"]["all"]["auroc"]
    assert result["bounds"][0] <= exact == of_all(cal.AUROC) <= result["bounds"][1]
    assert result["bounds"][0] < result["bounds"][1]
    assert "surely between" in command("measure", "logs", "-m", "auroc", "--one-pass").out
    assert "surely between" not in command("measure", "logs", "-m", "auroc").out


def test_a_limit_is_held_against_the_farther_bound(command):
    (result,) = json.loads(
        command("measure", "logs", "-m", "ece/equal_mass(100)", "--one-pass", "--format", "json").out
    )["rows"]["all"].values()
    low, high = result["bounds"]
    assert result["value"] < high
    between = (result["value"] + high) / 2
    for limit, code in ((between, 1), (high, 0), (high - 1e-9, 1)):
        ended = command(
            "measure",
            "logs",
            "-m",
            "ece/equal_mass(100)",
            "--one-pass",
            "--fail-above",
            f"ece/equal_mass(100)={limit!r}",
        )
        assert ended.code == code, ended
        assert (f"surely between {low:.4f} and {high:.4f}, so it may be {high:.4f} away, above" in ended.err) == (
            code == 1
        )


def test_what_counts_do_not_tell_is_said_and_the_rest_is_shown(command):
    command("state", "logs", "-m", "ece", "-m", "neighbour_error", "-o", "a.state")
    ended = command("measure", "a.state", "--format", "json")
    assert values(ended) == {"ece": of_all(cal.ECE)}
    assert "not told by counts: neighbour_error: " in ended.err
    ended = command("measure", "logs", "-m", "ece", "-m", "neighbour_error", "--one-pass", "--format", "json")
    assert values(ended) == {"ece": of_all(cal.ECE)}
    assert "not told by counts: neighbour_error: " in ended.err


def test_days_are_kept_merged_and_taken_away(command):
    for number in range(3):
        ended = command("state", day(number), "-o", f"{number}.state")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith(f"written: {number}.state (500 rows, log_loss, brier, ece")
    assert command("merge", "0.state", "1.state", "2.state", "-o", "week.state").code == 0
    metrics = State.load("week.state").metrics
    assert Path("week.state").read_bytes() == sum(State.of(rows, metrics) for rows in every()).to_bytes()
    assert command("unmerge", "week.state", "2.state", "1.state", "-o", "rest.state").code == 0
    assert Path("rest.state").read_bytes() == Path("0.state").read_bytes()
    told = values(command("measure", "week.state", "--format", "json"))
    assert told["ece"] == of_all(cal.ECE)
    assert values(command("measure", "0.state", "1.state", "2.state", "--format", "json")) == told
    assert "auroc" in values(command("measure", "week.state", "-m", "auroc", "--format", "json"))
    assert command("measure", "week.state", "-m", "ece", "--fail-above", "ece=0.001").code == 1


def test_what_does_not_fit_together_is_named(command):
    command("state", day(0), "-m", "ece", "-o", "a.state")
    command("state", day(1), "-m", "ece", "--by", "region", "-o", "b.state")
    for words, code, message in (
        (("merge", "a.state", "b.state", "-o", "c.state"), 3, "b.state: must be of the same metrics and column"),
        (("merge", "a.state", "b.state", "-o", "c.state"), 3, "joined, got by no column and by region"),
        (
            ("unmerge", "a.state", "a.state", "a.state", "-o", "c.state"),
            3,
            "a.state: must hold all that is taken away from it, got 0 rows, of which 500 should go; a.state cannot be",
        ),
        (("merge", "a.state", day(0), "-o", "c.state"), 3, "rows.parquet"),
        (("merge", "a.state", "missing.state", "-o", "c.state"), 3, "missing.state"),
        (("state", day(0), "-o", "no/folder.state"), 4, "is no folder"),
        (("state", day(0), "-m", "full_ece", "-o", "c.state"), 3, "must keep no rows"),
        (("measure", "a.state", "-m", "sce"), 3, "must follow from what the state keeps"),
        (("measure", "a.state", "--by", "region"), 3, "--by"),
        (("measure", "a.state", "--interval"), 2, "read whole"),
        (("measure", "none/*.csv"), 3, "must match files"),
        (("report", "a.state", "--groups", "region"), 2, "--groups"),
    ):
        ended = command(*words)
        assert (ended.code, ended.out) == (code, ""), ended
        assert message in ended.err
    assert not Path("c.state").exists()
    Path("a.state").write_bytes(Path("a.state").read_bytes()[:-1])
    ended = command("merge", "a.state", "-o", "c.state")
    assert (ended.code, "a.state" in ended.err) == (3, True)


def test_bad_files_are_named_or_listed(command):
    Path(day(1)).write_bytes(Path(day(1)).read_bytes()[:-9])
    ended = command("measure", "logs", "-m", "ece")
    assert (ended.code, ended.out) == (3, "")
    assert f"{day(1)}: must be a whole Parquet file" in ended.err
    ended = command("measure", "logs", "-m", "ece", "--skip-bad", "--format", "json")
    assert [bad["file"] for bad in json.loads(ended.out)["skipped"]] == [day(1)]
    assert f"skipped: {day(1)}: must be a whole Parquet file" in ended.err
    assert json.loads(ended.out)["rows"]["all"]["ece"]["n"] == 1000
    rows = pq.read_table(day(0)).to_pydict()
    pq.write_table(pa.table(rows | {"p": [*rows["p"][:499], None]}), day(0), row_group_size=200)
    ended = command("measure", "logs", "-m", "ece", "--skip-bad", "--format", "json")
    null, cut = json.loads(ended.out)["skipped"]
    assert (null["file"], null["rows"], cut["rows"]) == (day(0), 500, None)
    assert "'p' must have no nulls, got one at row group 2, rows 0 to 99, row 99 of these" in null["reason"]
    assert f"skipped: {null['reason']} (500 rows)" in ended.err
    assert json.loads(ended.out)["rows"]["all"]["ece"]["n"] == 500


def test_states_of_files_are_kept_for_the_next_time(command):
    first = command("state", "logs", "-m", "ece", "--resume", "kept", "-o", "a.state")
    assert len(list(Path("kept").iterdir())) == 3
    again = command("state", "logs", "-m", "ece", "--resume", "kept", "--threads", "2", "-o", "b.state")
    assert (first.code, again.code) == (0, 0)
    assert Path("a.state").read_bytes() == Path("b.state").read_bytes()


def test_the_page_of_a_state_says_what_is_exact_and_what_is_missing(command):
    command("state", "logs", "--by", "region", "-o", "week.state")
    ended = command("report", "week.state", "-o", "page.html")
    assert ended.code == 0, ended
    assert "ECE" in ended.out
    page = Path("page.html").read_text(encoding="utf-8")
    for words in ("What a state cannot show", "reliability-picture", "a range", "exact", "Metrics by region", "north"):
        assert words in page
    numbers = json.loads(command("report", "week.state", "--format", "json", "-q", "-o", "-").out)["numbers"]
    assert {each["metric"]: each["how it is known"] for each in numbers}["ece"] == "exact"
    assert {each["metric"]: each["value"] for each in numbers}["ece"] == of_all(cal.ECE)
    bars = page.split("reliability-table")[1].split("</table>")[0].count("<tr>") - 1
    assert bars == 15
    assert command("report", "logs", "-o", "folder.html").code == 0
    assert command("report", "week.state", "-q", "-o", "a.html", "--fail-above", "ece=0.001").code == 1


def test_a_weighted_state_draws_no_intervals(command):
    rows = pq.read_table(day(0)).append_column("w", pa.array(np.arange(500) % 4))
    pq.write_table(rows, "weighted.parquet")
    command("state", "weighted.parquet", "--weight", "w", "-o", "a.state")
    assert command("report", "a.state", "-o", "page.html").code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Rows are weighted" in page
    assert "reliability-picture" not in page.split("<main>")[1].split("<script")[0]


@pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")
@pytest.mark.parametrize("way", ["standard input", "a pipe", "gzip"])
def test_states_come_by_pipes_and_packed(command, monkeypatch, tmp_path, way):
    assert command("state", day(0), "-o", "day.state").code == 0
    content, name = Path("day.state").read_bytes(), {"standard input": "-", "gzip": "day.state.gz"}.get(way, "pipe")
    by_name = values(command("measure", "day.state", "--format", "json"))
    Path("day.state.gz").write_bytes(gzip.compress(content))
    os.mkfifo("pipe")

    def ended(*words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        writer = threading.Thread(target=Path("pipe").write_bytes, args=(content,))
        if way == "a pipe":
            writer.start()
        told = command(*words)
        if way == "a pipe":
            writer.join(10)
        return told

    assert values(ended("measure", name, "--format", "json")) == by_name
    assert ended("report", name, "-o", "page.html").out.startswith("500 rows, a state")
    assert ended("merge", name, "-o", "sum.state").code == 0
    assert Path("sum.state").read_bytes() == content


@pytest.mark.parametrize("options", [[], ["-m", "auroc", "--by", "region"]])
def test_the_state_of_standard_input_is_that_of_the_file(command, monkeypatch, options):
    content = Path(day(0)).read_bytes()
    assert command("state", day(0), *options, "-o", "day.state").code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert command("state", "-", *options, "-o", "piped.state").code == 0
    assert Path("piped.state").read_bytes() == Path("day.state").read_bytes()
    assert command("state", "-", "--resume", "kept", "-o", "piped.state").code == 2
