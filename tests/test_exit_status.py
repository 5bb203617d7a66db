"""Exit statuses: one meaning each, for every command; nothing that anyone gives it ends in a traceback."""

import io
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
import calibrant.cli
from calibrant.cli import group
from calibrant.exceptions import CalibrationInputError
from calibrant.report import subject
from typed import typed

PAGE = Path(__file__).parents[1] / "docs" / "exit_status.md"
DEEP = "[" * 100_000 + "]" * 100_000
unix = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The whole command in an empty folder with a file of predictions, and its output as bytes would be."""
    rows = [f"{i % 2},{(i % 9 + 1) / 10}" for i in range(60)]
    (tmp_path / "event.csv").write_text("\n".join(["label,p", *rows]) + "\n")
    rng = np.random.default_rng(0)
    for name in ("classes", "others"):
        np.savez(tmp_path / f"{name}.npz", labels=np.arange(90) % 3, logits=rng.normal(size=(90, 3)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subject, "MOST", 20)  # few resamples
    return lambda *words: typed(monkeypatch, capsys, words)


def is_one_line(ended, code):
    lines = [line for line in ended.err.splitlines() if line]
    assert (ended.code, len(lines), ended.out) == (code, 1, ""), ended
    assert lines[0].startswith("calibrant: ")
    return True


def by_main(monkeypatch, capsys, *words):
    """How the command ends that a shell would start, with its last line of defence."""
    monkeypatch.setattr(sys, "argv", ["calibrant", *words])
    with pytest.raises(SystemExit) as ended:
        calibrant.cli.main()
    return ended.value.code, capsys.readouterr().err


# The page


def test_the_page_lists_the_statuses_that_the_code_has():
    listed = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)]
    assert listed == [
        0,
        group.FAILED,
        group.USAGE,
        group.DATA,
        group.IO,
        calibrant.cli.FAULT,
        calibrant.cli.INTERRUPTED,
    ]


def test_the_page_names_every_command_that_writes():
    import click

    from calibrant.cli.commands import group as commands

    def writing(command, name):
        if isinstance(command, click.Group):
            for part, inner in command.commands.items():
                yield from writing(inner, f"{name} {part}".strip())
        elif any("--output" in option.opts for option in command.params):
            yield name

    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in writing(commands, "") if f"`{name} -o`" not in text] == []


# A fault of ours


def broken(*_, **__):
    raise RuntimeError("nobody\x1b foresaw this")


def test_what_nobody_foresaw_ends_with_seventy_and_asks_for_a_report(command, monkeypatch, capsys):
    monkeypatch.setattr("calibrant.cli.measure.table", broken)
    code, err = by_main(monkeypatch, capsys, "measure", "event.csv")
    assert code == 70
    assert err.startswith(
        "calibrant: this is a fault in calibrant (RuntimeError: nobody\\x1b foresaw this); please report"
    )
    assert "CALIBRANT_DEBUG=1" in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_the_traceback_of_a_fault_is_shown_on_request(command, monkeypatch, capsys):
    monkeypatch.setattr("calibrant.cli.measure.table", broken)
    monkeypatch.setenv("CALIBRANT_DEBUG", "1")
    code, err = by_main(monkeypatch, capsys, "measure", "event.csv")
    assert code == 70
    assert "Traceback" in err
    assert "in broken" in err


def test_a_missing_module_of_ours_is_a_fault(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "calibrant.report", None)
    code, err = by_main(monkeypatch, capsys, "report", "event.csv")
    assert (code, "fault in calibrant" in err) == (70, True)


def test_a_lack_of_memory_is_no_fault(command, monkeypatch):
    def large(*_, **__):
        raise MemoryError

    monkeypatch.setattr("calibrant.cli.measure.table", large)
    assert is_one_line(command("measure", "event.csv"), 3)


@unix
@pytest.mark.parametrize("module", ["numpy", "calibrant.bins", "click", "calibrant.cli.commands", "rich"])
def test_an_interruption_while_modules_are_loaded_is_quiet(module, tmp_path):
    program = f"""
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
sys.argv = ["calibrant", "measure", {str(tmp_path / "a.csv")!r}]
from calibrant_command import main
main()
"""
    (tmp_path / "a.csv").write_text("label,p\n1,0.9\n0,0.2\n")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


# Input that is hard to read


def array_file(descr, shape, data):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def archive(**arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name, content in arrays.items():
            members.writestr(f"{name}.npy", content)
    return file.getvalue()


LABELS, FORECASTS = array_file("<i8", "(2,)", struct.pack("<qq", 1, 0)), array_file("<f8", "(2,)", bytes(16))


def misnamed_parquet():
    pyarrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    files.write_table(pyarrow.table({"label": [1, 0], "p": [0.5, 0.5], "zzzz": [1, 2]}), file)
    return file.getvalue().replace(b"zzzz", b"z\xff\xfez")


def a_million_columns():
    names = ",".join(f"c{index}" for index in range(1_000_000))
    return f"label,p,{names}\n1,0.5{',1' * 1_000_000}\n".encode()


BAD = {
    "shape.npz": (lambda: archive(label=LABELS, p=array_file("<f8", "(True,)", bytes(8))), "does not fit its data"),
    "empty text.npz": (lambda: archive(label=LABELS, p=FORECASTS, who=array_file("|S0", f"({10**13},)", b"")), "who"),
    "large letter.npz": (
        lambda: archive(label=array_file("<U1", "(2,)", struct.pack("<II", 0x110000, 65)), p=FORECASTS),
        "code point 0x110000",
    ),
    "half letter.npz": (
        lambda: archive(label=LABELS, p=array_file(">U1", "(2,)", struct.pack(">II", 65, 0xD800))),
        "code point 0xd800",
    ),
    "deep.jsonl": (lambda: f'{{"label": 1, "p": {DEEP}}}\n'.encode(), "more than 200 lists or objects"),
    "rather deep.jsonl": (lambda: f'{{"label": 1, "p": {DEEP[99_700:100_300]}}}\n'.encode(), "more than 200 lists"),
    "deep.csv": (lambda: f'label,p\n1,"{DEEP[70_000:130_000]}"\n'.encode(), "must have a number in every row"),
    "half.jsonl": (lambda: b'{"label": 1, "p": 0.5, "who": "\\ud800"}\n', "half a character"),
    "infinite.jsonl": (lambda: b'{"label": 1, "p": 1e999}\n', "1e999 is no number"),
    "names.parquet": (misnamed_parquet, "must be a whole Parquet file"),
    "wide.csv": (a_million_columns, "must have at most 100,000 columns, got 1,000,002"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_hard_to_read_is_refused_in_one_line(command, tmp_path, name):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content())
    ended = command("measure", name)
    assert is_one_line(ended, 3)
    assert message in ended.err
    assert name in ended.err


MAPS = {
    "nan": lambda text: text.replace('"version": 1', '"version": NaN'),
    "infinity": lambda text: re.sub(r'"temperature_": [0-9.]+', '"temperature_": Infinity', text),
    "huge": lambda text: re.sub(r'"temperature_": [0-9.]+', '"temperature_": 1e999', text),
    "deep": lambda text: DEEP,
    "empty": lambda text: "",
    "twice": lambda text: text.replace('"version": 1', '"version": 1, "version": 1'),
    "bytes": lambda text: b"\xff\xfe",
}


@pytest.mark.parametrize("change", MAPS.values(), ids=MAPS)
def test_a_map_that_is_hard_to_read_is_refused_in_one_line(command, tmp_path, change):
    assert command("recalibrate", "fit", "classes.npz", "-o", "map.json").code == 0
    changed = change((tmp_path / "map.json").read_text())
    (tmp_path / "map.json").write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    ended = command("recalibrate", "apply", "map.json", "classes.npz", "-o", "out.npz")
    assert is_one_line(ended, 3)
    assert "map.json" in ended.err


@pytest.mark.parametrize("text", [DEEP, "[NaN]", "[1e999]", "{", '["\\ud800"]'])
def test_a_matrix_that_is_hard_to_read_is_refused(command, tmp_path, text):
    (tmp_path / "matrix.json").write_text(text)
    ended = command("measure", "event.csv", "-m", "mahalanobis(@matrix.json)")
    assert (ended.code, ended.out) == (2, "")
    assert "matrix.json: must be JSON" in ended.err


@pytest.mark.parametrize("read", [cal.from_json, cal.Result.from_json, cal.recalibrate.Recalibrator.from_json])
@pytest.mark.parametrize("text", [DEEP, DEEP[99_500:100_500], '{"a": NaN}', "null", "[]", '{"piece": []}', "9" * 5000])
def test_json_that_is_something_else_is_refused(read, text):
    with pytest.raises(CalibrationInputError):
        read(text)


@pytest.mark.parametrize("metric", [cal.ECE, cal.SCE, cal.BRIER])
def test_every_flipped_bit_of_a_result_is_refused_or_does_no_harm(metric):
    predictions = cal.Predictions.from_probs([0, 1, 2], [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
    text = metric(predictions, interval=cal.Bootstrap(5, seed=0)).to_json(bins=metric is cal.ECE)
    refused = 0
    for place in range(len(text)):
        for bit in range(7):  # the eighth makes bytes that are no UTF-8
            changed = text[:place] + chr(ord(text[place]) ^ (1 << bit)) + text[place + 1 :]
            try:
                result = cal.Result.from_json(changed)
            except CalibrationInputError:
                refused += 1
            else:
                assert isinstance(str(result) + result.to_json(), str)
    assert refused > len(text)


def test_logits_of_nearly_nothing_can_be_fitted_by_a_gaussian_process():
    y = np.arange(60) % 2
    for logits in (np.linspace(-1, 1, 60) * 1e-300, np.full(60, 1e-300), np.linspace(-1e-320, 1e-320, 60)):
        p = cal.GPCalibration().fit(logits, y).predict_proba(logits)
        assert np.allclose(p, 0.5, atol=1e-3)  # what the noise of the prior may move


# Outputs


def test_a_wrong_ending_is_refused_before_the_work(command, monkeypatch):
    monkeypatch.setattr("calibrant.simulate.like", broken)
    monkeypatch.setattr("calibrant.files.reading.read_scores", broken)
    assert command("simulate", "like", "event.csv", "-o", "x.zzz").code == 2
    assert command("recalibrate", "apply", "map.json", "event.csv", "-o", "x.zzz").code == 2


@pytest.mark.parametrize(
    ("words", "endings"),
    [
        (("report", "nowhere.csv"), ".html, .htm, .md, .markdown, .json or .txt"),
        (("report", "nowhere.csv", "-o", "x.html", "--json"), ".json"),
        (("recalibrate", "fit", "nowhere.csv"), ".json"),
        (("recalibrate", "choose", "nowhere.csv"), ".json"),
        (("recalibrate", "apply", "nowhere.json", "nowhere.csv"), ".npz, .csv or .parquet"),
        (("simulate", "bias"), ".csv, .json or .png, .svg, .pdf"),
        (("state", "nowhere.csv"), ".state"),
        (("merge", "nowhere.state"), ".state"),
        (("unmerge", "nowhere.state", "nowhere.state"), ".state"),
        (("watch", "store"), ".html or .htm"),
        (("watch", "store", "--repair"), ".json or .onnx"),
        (("experiment", "plan", "miniature"), ".jsonl or .ndjson"),
        (("demo",), ".html or .htm"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_an_ending_that_names_another_format_is_refused_before_anything_is_read(command, tmp_path, words, endings):
    before = set(os.listdir(tmp_path))
    option = () if words[-1].startswith("--") else ("-o",)
    ended = command(*words, *option, "out.docx")
    assert ended.code == 2
    assert f"must end in {endings}, got '.docx'" in " ".join(ended.err.split())
    assert set(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("words", [("table", "study"), ("figure", "study")], ids=" ".join)
def test_a_folder_of_tables_or_figures_has_no_name_of_a_file(command, words):
    ended = command("experiment", *words, "-o", "out.png")
    assert ended.code == 2
    assert "must be a folder" in ended.err


@unix
def test_a_pipe_has_no_ending_that_could_be_wrong(command, tmp_path):
    os.mkfifo(tmp_path / "pipe.docx")
    content = []
    reader = threading.Thread(target=lambda: content.append((tmp_path / "pipe.docx").read_text()))
    reader.start()
    assert command("recalibrate", "fit", "classes.npz", "-o", "pipe.docx").code == 0
    reader.join(10)
    assert content[0].startswith("{")


WRITERS = {
    "report": ("report", "event.csv"),
    "fit": ("recalibrate", "fit", "classes.npz"),
    "choose": ("recalibrate", "choose", "classes.npz", "-m", "temperature"),
    "apply": ("recalibrate", "apply", "map.json", "others.npz", "--format", "csv"),
    "simulate": ("simulate", "like", "event.csv", "--replicates", "2", "-m", "ece"),
    "plan": ("experiment", "plan", "miniature"),
    "demo": ("demo",),
}
STATES = {
    "state": ("state", "event.csv"),
    "merge": ("merge", "event.state", "event.state"),
    "unmerge": ("unmerge", "event.state", "event.state"),
}
ALL_WRITERS = {**WRITERS, **STATES}


@pytest.fixture
def prepared(command):
    assert command("recalibrate", "fit", "classes.npz", "-o", "map.json").code == 0
    assert command("state", "event.csv", "-o", "event.state").code == 0
    return command


def ending(name):
    return {"report": ".html", "simulate": ".svg", "demo": ".html", "plan": ".jsonl"}.get(name, ".json")


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_a_dash_is_standard_output_and_all_else_goes_to_standard_error(prepared, tmp_path, name):
    by_name = prepared(*WRITERS[name], "-o", "output" + ending(name))
    assert by_name.code == 0
    before = set(os.listdir(tmp_path))
    ended = prepared(*WRITERS[name], "-o", "-")
    assert ended.code == 0
    assert set(os.listdir(tmp_path)) == before
    written = (tmp_path / ("output" + ending(name))).read_text()
    if name in ("report", "simulate", "demo"):  # the page holds the command that was typed, the picture an identity
        assert ended.out[:200] == written[:200]
        assert len(ended.out) == pytest.approx(len(written), rel=0.01)
    else:
        assert ended.out == written
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("name", STATES)
def test_a_state_goes_to_standard_output_byte_by_byte(tmp_path, monkeypatch, capsysbinary, name):
    (tmp_path / "event.csv").write_text("label,p\n1,0.9\n0,0.2\n")
    monkeypatch.chdir(tmp_path)
    assert typed(monkeypatch, capsysbinary, ["state", "event.csv", "-o", "event.state"]).code == 0
    assert typed(monkeypatch, capsysbinary, [*STATES[name], "-o", "output.state"]).code == 0
    ended = typed(monkeypatch, capsysbinary, [*STATES[name], "-o", "-"])
    assert (ended.code, ended.out) == (0, (tmp_path / "output.state").read_bytes())
    assert ended.err.startswith(b"written: - (")


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_WRITERS)
def test_what_cannot_be_written_ends_with_four_and_is_named(prepared, tmp_path, name):
    for output, message in {
        f"nowhere/x{ending(name)}": "nowhere: is no folder; make it first",
        f"folder{ending(name)}": "is a directory; name a file in it",
    }.items():
        (tmp_path / f"folder{ending(name)}").mkdir(exist_ok=True)
        ended = prepared(*ALL_WRITERS[name], "-o", output)
        assert is_one_line(ended, 4)
        assert message in ended.err


@unix
@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_WRITERS)
def test_a_full_disk_is_blamed_on_the_file_that_was_to_be_written(prepared, tmp_path, name):
    try:
        os.mknod(tmp_path / f"full{ending(name)}", 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        (tmp_path / f"full{ending(name)}").open("wb").close()
    except PermissionError:
        pytest.skip("no devices can be made here")
    ended = prepared(*ALL_WRITERS[name], "-o", f"full{ending(name)}")
    assert ended.code == 4
    assert ended.err.splitlines()[-1] == f"calibrant: full{ending(name)}: No space left on device"


@unix
def test_a_reader_that_leaves_a_pipe_is_a_failure_to_write(command, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    reader = threading.Thread(target=lambda: os.close(os.open(tmp_path / "pipe.json", os.O_RDONLY)))
    reader.start()
    ended = command("recalibrate", "fit", "classes.npz", "-m", "histogram", "-o", "pipe.json")
    reader.join(10)
    assert ended.code in (0, 4)  # a short text fits into the pipe before its reader is gone
    assert ended.code == 0 or "pipe.json: Broken pipe" in ended.err


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (["-o", "x.md"], "### Calibration"),
        (["-o", "x.md", "--format", "markdown"], "### Calibration"),
        (["-o", "x", "--format", "markdown"], "### Calibration"),
        (["-o", "x.json"], "{"),
        (["-o", "x.json", "--format", "markdown"], "{"),
        (["-o", "x.html", "--format", "markdown"], "<!DOCTYPE html>"),
        (["-o", "x"], "<!DOCTYPE html>"),
        (["-o", "x.txt"], "60 rows"),
    ],
    ids=" ".join,
)
def test_the_ending_of_a_report_decides_and_then_the_format(command, tmp_path, words, starts):
    assert command("report", "event.csv", *words).code == 0
    assert (tmp_path / words[1]).read_text().startswith(starts)
    assert not (tmp_path / "report.html").exists()


def test_all_that_is_on_a_page_goes_alone_to_standard_output(command, tmp_path):
    ended = command("report", "event.csv", "-o", "x.html", "--json", "-")
    assert json.loads(ended.out)["report"] == "x.html"
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
    for outputs in (("-", "-"), ("x.json", "x.json"), ("x.json", "./x.json")):
        ended = command("report", "event.csv", "-o", outputs[0], "--json", outputs[1])
        assert (ended.code, ended.out) == (2, "")
        assert "two outputs would go to" in ended.err


@pytest.mark.parametrize("form", ["csv", "npz", "parquet"])
def test_the_format_of_recalibrated_forecasts_wins_over_the_ending(prepared, tmp_path, form):
    for output in ("x.csv", "x.npz"):
        assert prepared("recalibrate", "apply", "map.json", "others.npz", "-o", output, "--format", form).code == 0
        shutil.move(tmp_path / output, tmp_path / f"y.{form}")
        assert prepared("measure", f"y.{form}").code == 0


def test_names_with_control_characters_come_back_from_csv(command, tmp_path):
    names = ["a\x1b[31m", "b\nc", "=d", "''=e", "f\x1f"]
    p = np.full((5, 5), 0.1) + 0.5 * np.eye(5)
    cal.files.write(tmp_path / "hostile.csv", p, names, {"label": np.array(names), "who": np.array(names)})
    predictions = cal.files.read(tmp_path / "hostile.csv")
    assert [str(name) for name in predictions.classes] == names
    assert predictions.columns["who"].tolist() == names
    with pytest.raises(CalibrationInputError, match="cannot hold a NUL as CSV"):
        cal.files.write(tmp_path / "hostile.csv", p, ["a\0b", *names[1:]], {})
    with pytest.raises(CalibrationInputError, match="whole characters only"):
        cal.files.write(tmp_path / "hostile.csv", p, ["a\ud800b", *names[1:]], {})
    assert cal.files.read(tmp_path / "hostile.csv").columns["who"].tolist() == names


@unix
def test_a_file_whose_name_is_no_text_is_read_and_written(command, tmp_path):
    source, target = (os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/\xff.csv", b"/\xfe.html"))
    try:
        shutil.copy(tmp_path / "event.csv", source)
    except OSError:
        pytest.skip("this file system has names of text only")
    assert command("report", source, "-o", target).code == 0
    assert "\\udcff.csv" in Path(target).read_text(encoding="utf-8")
    assert json.loads(command("report", source, "-o", target, "--format", "json").out)["report"] == target


@unix
def test_a_pipe_is_measured_and_standard_input_is(command, tmp_path, monkeypatch):
    content = (tmp_path / "event.csv").read_bytes()
    by_name = command("measure", "event.csv", "-m", "ece").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert command("measure", "-", "-m", "ece").out == by_name.replace("event.csv", "-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert command("measure", "-m", "ece", "--interval", "-").code == 0
    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=(tmp_path / "pipe.csv").write_bytes, args=(content,))
    writer.start()
    assert command("measure", "pipe.csv", "-m", "ece").out == by_name.replace("event.csv", "pipe.csv")
    writer.join(10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics: [ece, sce, ece]", "metrics: must be different, got ece twice"),
        ("metrics: [ece, ECE]", "metrics: must be different, got ECE twice"),
        (
            "interventions: [{kind: mixup, strengths: [0.1, 0.2, 0.10]}]",
            "interventions[0].strengths: must be different, got 0.1 twice",
        ),
        ("post_processing: {methods: [temperature, temperature]}", "must be different, got temperature twice"),
        ("over_training: {metrics: [ece, ece]}", "must be different, got ece twice"),
        ("tables: [accuracy, accuracy]", "must be different, got accuracy twice"),
    ],
)
def test_doubles_in_a_study_are_refused(command, tmp_path, text, message):
    (tmp_path / "study.yaml").write_text(f"name: a\ndata: {{name: digits}}\nmodels: [mlp]\n{text}\n")
    ended = command("experiment", "check", "study.yaml")
    assert ended.code == 3
    assert message in ended.err
