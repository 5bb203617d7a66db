"""The command: what is typed, what is printed, and how it ends."""

import csv
import inspect
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli import commands
from calibrant.files import SHIPPED, read
from calibrant.scale import State
from calibrant.specification import spelling
from typed import Ended, typed

BESIDE = Path(__file__).parents[2] / "shared" / "data"
beside = pytest.mark.skipif(not BESIDE.is_dir(), reason="the folder with other people's predictions is not here")
unix = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")

NAMES = ("ant", "bee", "cat", "dog", "elk", "fox")
N = 120
HOSTILE = (
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "-1+1",
    "+1",
    "@SUM(A1)",
    "red",
    "\x1b[31mred\x1b[0m",
    "\x9b31mred",
    "[/x]",
    "[bold]b[/bold]",
    "{{7*7}}",
    "\u202eevil",
    "\u2066x",
    "tab\tstop",
    "line\nbreak",
    "\rreturn",
    'comma, "quote"',
    "all",
    "a" * 10_000,
)


def _forecasts():
    random = np.random.default_rng(5)
    probs = random.dirichlet(np.full(len(NAMES), 0.4), N)
    labels = np.array([random.choice(len(NAMES), p=row) for row in probs])
    region = np.array(["north", "south", "east"])[random.integers(0, 3, N)]
    weight = random.integers(1, 4, N)
    return labels, probs, region, weight


LABELS, PROBS, REGION, WEIGHT = _forecasts()
LOGITS = np.log(PROBS)
CHANCE = PROBS[:, 0].copy()
HAPPENED = (LABELS == 0).astype(int)
CONFIDENCE = PROBS.max(axis=1)
CORRECT = PROBS.argmax(axis=1) == LABELS

CLASSES = cal.Predictions.from_probs(LABELS, PROBS, classes=NAMES, region=REGION)
SCORES = cal.Predictions.from_logits(LABELS, LOGITS, classes=NAMES)
WEIGHTED = cal.Predictions.from_probs(LABELS, PROBS, classes=NAMES, sample_weight=WEIGHT)
EVENT = cal.Predictions.from_probs(HAPPENED, CHANCE, region=REGION)
ANSWERS = cal.Predictions.from_confidence(CORRECT, CONFIDENCE, region=REGION)


GAPS = PROBS.mean(axis=0) - np.bincount(LABELS, minlength=len(NAMES)) / N
LOSS = cal.BRIER(CLASSES, interval=cal.Confidence()).interval
UNDER = f"one_class({GAPS.argmin()})/equal_width(1)/signed"
"""A metric whose value is negative."""


def _write_rows(path, columns):
    """Named columns as CSV, TSV or JSONL, every digit kept."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix in (".jsonl", ".ndjson"):
            file.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerow(columns)
            writer.writerows(row.values() for row in rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same forecasts in every kind of file."""
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("predictions")
    region, named = REGION.tolist(), [NAMES[label] for label in LABELS]
    wide = {f"p_{name}": PROBS[:, index].tolist() for index, name in enumerate(NAMES)}
    np.savez(
        folder / "probs.npz",
        labels=LABELS,
        probs=PROBS,
        classes=np.array(NAMES),
        region=REGION,
        weight=WEIGHT,
        fraction=WEIGHT / 7,
        gaps=np.where(WEIGHT == 1, np.nan, WEIGHT),
    )
    np.savez(folder / "logits.npz", y=LABELS, logits=LOGITS, classes=np.array(NAMES))
    np.savez(folder / "other.npz", truth=LABELS, forecast=PROBS, scores=LOGITS, classes=np.array(NAMES))
    soft = 0.9 * np.eye(len(NAMES))[LABELS] + 0.1 / len(NAMES)
    np.savez(folder / "soft.npz", label=soft, probs=PROBS)
    for name, array in {"labels": LABELS, "probabilities": PROBS, "logits": LOGITS}.items():
        np.save(folder / f"{name}.npy", array)
    for kind in ("csv", "tsv", "jsonl"):
        _write_rows(folder / f"wide.{kind}", {"label": named, **wide, "region": region})
    truth = {"truth": named, **{f"share_{name}": wide[f"p_{name}"] for name in NAMES}}
    _write_rows(folder / "other.csv", truth)
    _write_rows(folder / "lists.csv", {"label": LABELS.tolist(), "probs": PROBS.tolist(), "region": region})
    _write_rows(folder / "lists.ndjson", {"label": LABELS.tolist(), "probs": PROBS.tolist(), "region": region})
    truth = {f"y_{name}": (index == LABELS).astype(int).tolist() for index, name in enumerate(NAMES)}
    _write_rows(folder / "labels.csv", {**truth, **wide, "region": region})
    ids = np.argsort(-PROBS, axis=1)[:, :3]
    likeliest = {f"class_{rank + 1}": ids[:, rank].tolist() for rank in range(3)}
    likeliest |= {f"prob_{rank + 1}": PROBS[np.arange(N), ids[:, rank]].tolist() for rank in range(3)}
    _write_rows(folder / "likeliest.csv", {"label": LABELS.tolist(), **likeliest})
    event = {"label": HAPPENED.tolist(), "p": CHANCE.tolist(), "region": region}
    answers = {"confidence": CONFIDENCE.tolist(), "correct": CORRECT.tolist(), "region": region}
    for kind in ("csv", "jsonl"):
        _write_rows(folder / f"event.{kind}", event)
    _write_rows(folder / "answers.jsonl", answers)
    _write_rows(folder / "answers.csv", {**answers, "correct": CORRECT.astype(int).tolist()})
    lists = {"label": LABELS, "probs": list(PROBS), "region": region}
    pyarrow.parquet.write_table(pyarrow.table(lists), folder / "lists.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"label": named, **wide, "region": region}), folder / "wide.parquet")
    hostile = {"label": [1, 0] * len(HOSTILE), "p": [0.7, 0.2] * len(HOSTILE), "region": np.repeat(HOSTILE, 2).tolist()}
    _write_rows(folder / "hostile.jsonl", hostile)
    shares = np.full((len(HOSTILE), len(HOSTILE)), 0.5 / (len(HOSTILE) - 1))
    np.fill_diagonal(shares, 0.5)
    np.savez(folder / "hostile.npz", y=np.arange(len(HOSTILE)), probs=shares, classes=np.array(HOSTILE))
    _write_rows(folder / "accents.csv", {"label": [1, 0], "p": [0.7, 0.2], "region": ["café", "猫"]})
    shutil.copy(folder / "probs.npz", folder / "predictions.npz")
    shutil.copy(folder / "wide.csv", folder / "predictions.csv")
    (folder / "logs").mkdir()
    shutil.copy(folder / "wide.parquet", folder / "logs" / "monday.parquet")
    State.of(read(folder / "probs.npz"), {"ece": cal.ECE, "brier": cal.BRIER}).save(folder / "week.state")
    return folder


@dataclass(frozen=True)
class Answer(Ended):
    @property
    def rows(self):
        """The table of a CSV output."""
        return list(csv.reader(io.StringIO(self.out, newline=""), strict=True))

    @property
    def values(self):
        """The numbers of a JSON output that has one row."""
        return {name: result["value"] for name, result in json.loads(self.out)["rows"]["all"].items()}


@pytest.fixture
def command(folder, monkeypatch, capsys):
    """The whole command without a new process, started among the files."""
    monkeypatch.chdir(folder)

    return lambda *words: typed(monkeypatch, capsys, words, Answer)


SETTINGS = ("COERCECLOCALE", "IOENCODING", "OPTIMIZE", "UNBUFFERED", "UTF8", "WARNINGS")
VARIABLES = {"COLUMNS", "LC_ALL", "NO_COLOR", *(f"PYTHON{name}" for name in SETTINGS)}
"""What would change how the command runs or prints."""


def _environment(**variables):
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, **variables}


def process(folder, *words, python=(), stdout=subprocess.PIPE, **variables):
    """The command in a process of its own."""
    ended = subprocess.run(
        [sys.executable, *python, "-m", "calibrant", *map(str, words)],
        cwd=folder,
        env=_environment(**variables),
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    return Answer(ended.returncode, (ended.stdout or b"").decode("utf-8", "replace"), ended.stderr.decode("utf-8"))


def terminal(folder, *words, columns=80):
    """What the command writes to a terminal."""
    outer, inner = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "calibrant", *map(str, words)],
        cwd=folder,
        env=_environment(COLUMNS=str(columns), TERM="xterm"),
        stdout=inner,
        stderr=inner,
    ) as running:
        os.close(inner)
        written = b""
        while part := _part(outer):
            written += part
    os.close(outer)
    assert running.returncode == 0, written
    return written.decode()


def _part(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # Linux says so when the other side is gone
        return b""


def _one_line(ended, code):
    """It ended with one line of its own on standard error."""
    assert (ended.code, ended.err.count("\n")) == (code, 1), ended
    assert ended.err.startswith("calibrant: ")
    return True


# What is measured


@pytest.mark.parametrize(
    ("words", "predictions"),
    [
        (["probs.npz"], CLASSES),
        (["wide.csv"], CLASSES),
        (["wide.tsv"], CLASSES),
        (["wide.jsonl"], CLASSES),
        (["wide.parquet"], CLASSES),
        (["lists.csv"], CLASSES),
        (["lists.ndjson"], CLASSES),
        (["lists.parquet"], CLASSES),
        (["labels.npy", "probabilities.npy"], CLASSES),
        (["other.npz", "--label", "truth", "--probs", "forecast"], CLASSES),
        (["other.csv", "--label", "truth", "--probs", "share"], CLASSES),
        (["logits.npz"], SCORES),
        (["other.npz", "--label", "truth", "--logits", "scores"], SCORES),
        (["labels.npy", "logits.npy", "--logits", "logits"], SCORES),
        (["probs.npz", "--weight", "weight"], WEIGHTED),
        (["event.csv"], EVENT),
        (["event.jsonl"], EVENT),
        (["answers.csv"], ANSWERS),
        (["answers.jsonl"], ANSWERS),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_every_kind_of_file_gives_the_numbers_of_the_library_to_the_last_digit(command, words, predictions):
    ended = command(
        "measure", *words, "-m", "ece", "-m", "brier", "-m", "log_loss", "-m", "ece_sweep", "--format", "json"
    )
    recipes = {"ece": cal.ECE, "brier": cal.BRIER, "log_loss": cal.LOG_LOSS, "ece_sweep": cal.ECE_SWEEP}
    assert ended.values == {name: recipe(predictions).value for name, recipe in recipes.items()}


ALWAYS = ["log_loss", "brier", "ece", "ece_sweep", "mce", "mcs"]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["probs.npz"], ["accuracy", "ece_debiased", "sce", "ace"]),
        (["event.csv"], ["ece_debiased"]),
        (["answers.jsonl"], ["accuracy", "ece_debiased"]),
        (["soft.npz"], ["accuracy", "sce", "ace"]),
        (["labels.csv"], ["ece_debiased", "ace"]),
        (["probs.npz", "--weight", "weight"], ["accuracy", "ece_debiased", "sce", "ace"]),
    ],
)
def test_without_a_metric_all_the_usual_ones_that_apply_are_measured(command, words, more):
    assert sorted(command("measure", *words, "--format", "json").values) == sorted(ALWAYS + more)


def test_without_a_metric_the_likeliest_classes_are_asked_nothing_that_needs_all(command):
    measured = command("measure", "likeliest.csv", "--classes", "6", "--format", "json").values
    assert sorted(measured) == ["accuracy", "ece", "ece_debiased", "ece_sweep", "mce", "mcs"]
    assert measured["ece"] == cal.ECE(CLASSES).value
    assert command(
        "measure", "likeliest.csv", "--classes", ",".join(NAMES), "-m", "ece", "--format", "json"
    ).values == {"ece": measured["ece"]}
    ended = command("measure", "likeliest.csv", "--classes", "6", "-m", "log_loss")
    assert ended.code == 3
    assert "needs the probability of each of the 6 classes, got the 3 likeliest of 6 classes" in ended.err


def test_the_number_of_classes_is_asked_for_by_its_option(command):
    ended = command("measure", "likeliest.csv")
    assert ended.code == 3
    assert "pass --classes K, the number of all classes, or their names" in ended.err
    assert "must be a sequence of names, got 6" in command("measure", "probs.npz", "--classes", "6").err


def test_labels_are_measured_label_by_label(command):
    ended = command("measure", "labels.csv", "--parts")
    assert "120 rows, 6 independent labels, probabilities" in ended.out
    assert "every label, 15 equal-width bins, mean of parts" in ended.out
    assert all(name in ended.out for name in NAMES)


def test_kinds_that_are_no_model_to_simulate_are_refused(command):
    ended = command("simulate", "like", "labels.csv", "--replicates", "5")
    assert ended.code == 3
    assert "simulation: needs one true class per row, got independent labels" in ended.err


def test_every_kind_is_compared_by_what_it_has(command):
    of_labels = json.loads(command("compare", "labels.csv", "labels.csv", "-n", "20", "--format", "json").out)
    assert list(of_labels["comparisons"]) == ["ece", "brier", "log_loss"]
    words = ("compare", "likeliest.csv", "likeliest.csv", "--classes", "6", "-n", "20", "--format", "json")
    assert list(json.loads(command(*words).out)["comparisons"]) == ["ece"]


def test_a_column_of_weights_that_is_not_used_is_said(command, tmp_path):
    path = tmp_path / "weighted.csv"
    path.write_text("label,p,weight\n1,0.9,1\n0,0.2,2\n1,0.6,1\n")
    assert "(--weight weight would weigh them)" in command("measure", str(path), "-m", "ece").out
    assert "--weight" not in command("measure", str(path), "-m", "ece", "--weight", "weight").out


def test_what_is_wrong_with_the_rows_of_a_file_names_the_file(command, tmp_path):
    path = tmp_path / "percent.jsonl"
    path.write_text(
        '{"confidence": "80 out of 100", "correct": true}\n{"confidence": "70 out of 100", "correct": false}\n'
    )
    assert "percent.jsonl: 'confidence' must be numbers, got '80 out of 100'" in command("measure", str(path)).err
    path = tmp_path / "whale.csv"
    path.write_text("label,p_cat,p_dog\ncat,0.9,0.1\nwhale,0.2,0.8\n")
    message = "whale.csv: 'label': must name one of the classes, got 'whale' at line 3"
    assert message in command("measure", str(path)).err


def test_a_missing_label_is_told_the_option_that_leaves_it_out(command, tmp_path):
    path = tmp_path / "cats.csv"
    path.write_text("label,p_cat,p_dog\ncat,0.9,0.1\n,0.2,0.8\n")
    advised = command("measure", str(path), "-m", "ece")
    assert advised.code == 3
    assert "got '' at line 3; pass --missing drop to leave such rows out" in advised.err
    assert "1 row was left out" in command("measure", str(path), "-m", "ece", "--missing", "drop").out


def test_the_group_of_missing_values_has_a_name(command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("label,p,site\n1,0.9,north\n0,0.8,\n")
    ended = command("measure", str(path), "-m", "ece", "--by", "site", "--fail-above", "ece=0.5")
    assert "(missing)   1   0.8000" in ended.out
    assert "ece of (missing) is 0.8000, above 0.5" in ended.err


def test_intervals_are_those_that_cover_unless_a_bootstrap_is_asked_for(command, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    np.savez(tmp_path / "rows.npz", p=p, y=(rng.random(200) < p).astype(int))
    asked = ("measure", str(tmp_path / "rows.npz"), "-m", "ece", "-m", "mce", "--interval")
    known = cal.ECE(read(tmp_path / "rows.npz"), interval=cal.Confidence()).interval
    out = command(*asked).out
    assert f"{known.low:.4f} to {known.high:.4f}" in out
    assert "note: no interval is known to cover for this metric: compare it with its noise floor (mce)" in out
    assert "note: intervals are of each metric's own limit with these bins" in out
    drawn = cal.ECE(read(tmp_path / "rows.npz"), interval=cal.Bootstrap(50, seed=0)).interval
    for spelled in ("bootstrap=50", "50"):
        assert f"{drawn.low:.4f} to {drawn.high:.4f}" in command(*asked, spelled).out
    wrong = command(*asked, "often")
    assert wrong.code == 2
    assert "--interval: takes nothing or bootstrap=N" in wrong.err


def test_whole_groups_are_resampled(command, tmp_path):
    rng = np.random.default_rng(0)
    site, p = np.repeat(np.arange(20), 20), rng.random(400)
    shift = np.repeat(rng.normal(size=20), 20) / 4
    np.savez(tmp_path / "sites.npz", p=p, y=(rng.random(400) < np.clip(p + shift, 0, 1)).astype(int), site=site)
    asked = ("measure", str(tmp_path / "sites.npz"), "-m", "mcs", "--format", "json", "--interval")
    widths = []
    for more in ((), ("--groups", "site"), ("bootstrap=100",), ("bootstrap=100", "--groups", "site")):
        (entry,) = json.loads(command(*asked, *more).out)["rows"]["all"].values()
        widths.append(entry["interval"]["high"] - entry["interval"]["low"])
    assert widths[1] > 1.5 * widths[0]
    assert widths[3] > 1.5 * widths[2]
    ended = command("measure", str(tmp_path / "sites.npz"), "--groups", "site")
    assert "--groups is for --interval, --null and --confident" in ended.err
    for metric, more in (("ece", ()), ("mcs", ("--groups", "site"))):
        asked = ("measure", str(tmp_path / "sites.npz"), "-m", metric, "--null", "19", *more)
        assert "corrected" not in command(*asked).out
        known = cal.consistency(
            getattr(cal, metric.upper()), read(tmp_path / "sites.npz"), 19, groups="site" if more else None
        )
        assert f"{known.mean:.4f}" in command(*asked).out


def test_p_values_that_stand_together_say_that_they_are_corrected(command, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(90)
    np.savez(tmp_path / "sites.npz", p=p, y=(rng.random(90) < p**3).astype(int), site=np.arange(90) % 3)
    ended = command("measure", str(tmp_path / "sites.npz"), "-m", "ece", "-m", "brier", "--by", "site", "--null", "19")
    assert "note: p-values are corrected for their number, 4 (Holm); to see any below 0.05, use --null 80" in ended.out
    assert "p < 0.3" in ended.out


def test_without_a_metric_fractional_weights_are_measured_too(command):
    ended = command("measure", "probs.npz", "--weight", "fraction", "--format", "json")
    weighted = cal.Predictions.from_probs(LABELS, PROBS, sample_weight=WEIGHT / 7)
    assert ended.code == 0, ended.err
    assert ended.values["ece"] == cal.ECE(weighted).value
    assert "ece_sweep" not in ended.values


@pytest.mark.parametrize(
    "words",
    [
        ["probs.npz", "-m", "ece", "-m", "sce"],
        ["-m", "ece", "-m", "sce", "probs.npz"],
        ["-m", "ece", "--by", "region", "-m", "sce", "probs.npz"],
        ["--metric", "ece", "--metric", "sce", "--", "probs.npz"],
        ["probs.npz", "--metric=ece", "--metric=sce"],
        ["probs.npz", "-mece", "-msce"],
    ],
    ids=" ".join,
)
def test_metrics_are_given_one_by_one(command, words):
    ended = command("measure", "--format", "json", *words)
    assert ended.code == 0, ended.err
    assert ended.values == {"ece": cal.ECE(CLASSES).value, "sce": cal.SCE(CLASSES).value}


def test_a_second_word_after_a_metric_is_a_file(command):
    ended = command("measure", "probs.npz", "-m", "ece", "sce")
    assert ended.code == 3
    assert ended.err == "calibrant: sce: No such file or directory\n"


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("top_k(5)/kdtree(0.1)/tvd", cal.BinnedError(lens=cal.TopK(5), binning=cal.KDTree(0.1))),
        ("squared/root_mean", cal.RMSCE),
        ("classwise/maximum", cal.BinnedError(lens=cal.Classwise(), aggregate=cal.maximum)),
        ("label_in('cat')/ece", cal.BinnedError(select=cal.label_in("cat"))),
        ("ece/equal_mass(30)", cal.BinnedError(binning=cal.EqualMass(30))),
        ("sce/weighted_by_size", cal.BinnedError(lens=cal.Classwise(), across=cal.weighted_by_size)),
        ("in_top_k(2)/hit", cal.MeanScore(cal.InTopK(2), cal.hit)),
        ("FULL_ECE", cal.FULL_ECE),
    ],
)
def test_compositions_and_recipes_with_replaced_pieces_are_measured_and_named_as_typed(command, text, metric):
    ended = command("measure", "probs.npz", "--metric", text, "--format", "json")
    assert ended.values == {text: metric(CLASSES).value}


def test_likert_measures_one_number_a_category(command):
    ended = command("measure", "answers.jsonl", "-m", "likert([0, .5, 1])", "-m", "ece", "--format", "json")
    scale = cal.likert([0, 0.5, 1])
    expected = {f"likert([0, .5, 1]) {name}": metric(ANSWERS).value for name, metric in scale.items()}
    assert ended.values == {**expected, "ece": cal.ECE(ANSWERS).value}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("label_in(3, 5)", np.isin(LABELS, [3, 5])),
        ("label_in('dog', 'fox')", np.isin(LABELS, [3, 5])),
        ("where(region='north')", REGION == "north"),
        ("~where(region='north') & predicted_in('cat')", (REGION != "north") & (PROBS.argmax(axis=1) == 2)),
        ("where(weight=1) | confidence_between(0.5, 1)", (WEIGHT == 1) | (CONFIDENCE >= 0.5)),
    ],
)
def test_select_leaves_only_the_selected_rows(command, text, rows):
    ended = command("measure", "probs.npz", "--select", text, "-m", "ece", "-m", "sce", "--format", "csv")
    part = CLASSES[rows]
    assert 0 < rows.sum() < N
    assert [row[:3] for row in ended.rows[1:]] == [
        ["ece", repr(cal.ECE(part).value), str(rows.sum())],
        ["sce", repr(cal.SCE(part).value), str(rows.sum())],
    ]


@pytest.mark.parametrize("style", ["table", "json", "csv"])
def test_a_number_of_selected_rows_says_which(command, style):
    ended = command("measure", "probs.npz", "--select", "label_in(3, 5)", "-m", "ece", "--format", style)
    assert "label_in(3, 5)" in ended.out


def test_an_empty_selection_is_nan_with_a_note(command):
    ended = command("measure", "probs.npz", "--select", "label_in(0) & ~label_in(0)", "-m", "ece")
    assert ended.code == 0
    assert "nan" in ended.out
    assert "note: no samples" in ended.out


@pytest.mark.parametrize("column", ["region", "weight"])
def test_by_measures_all_rows_and_those_of_each_value(command, column):
    ended = command("measure", "probs.npz", "--by", column, "-m", "ece", "-m", "ace", "--format", "csv")
    values = {"region": REGION, "weight": WEIGHT}[column]
    expected = [[column, "n", "ece", "ace"]]
    for name, part in [("all", CLASSES)] + [(str(value), CLASSES[values == value]) for value in np.unique(values)]:
        expected.append([name, str(len(part)), repr(cal.ECE(part).value), repr(cal.ACE(part).value)])
    assert ended.rows == expected


def test_rows_without_a_value_in_the_column_are_a_group_and_not_lost(command):
    ended = command("measure", "probs.npz", "--by", "gaps", "-m", "ece", "--format", "csv")
    sizes = {row[0]: int(row[1]) for row in ended.rows[1:]}
    assert sizes.pop("all") == sum(sizes.values()) == N
    assert sizes["nan"] == (WEIGHT == 1).sum()


def test_columns_that_nobody_asked_for_need_not_be_clean(command, tmp_path):
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "gap.csv").write_text("label,p,age\n1,0.9,41\n0,0.2,\n1,0.6,30\n", encoding="utf-8")
    (tmp_path / "log.jsonl").write_text(
        '{"correct": true, "confidence": 0.9, "usage": {"tokens": 7}, "note": null, "tags": ["a"]}\n'
        '{"correct": false, "confidence": 0.2, "usage": {"tokens": 9}, "note": "x", "tags": []}\n',
        encoding="utf-8",
    )
    when = pyarrow.array([0, 1, None]).cast(pyarrow.timestamp("s"))
    pyarrow.parquet.write_table(
        pyarrow.table({"label": [1, 0, 1], "p": [0.9, 0.2, 0.6], "when": when}), tmp_path / "timed.parquet"
    )
    ended = {path.name: command("measure", path, "-m", "ece") for path in sorted(tmp_path.iterdir())}
    assert {name: end.err for name, end in ended.items()} == {"gap.csv": "", "log.jsonl": "", "timed.parquet": ""}


def test_whole_labels_are_the_names_of_columns_named_by_numbers(command, tmp_path):
    path = tmp_path / "digits.csv"
    path.write_text("label,p_1,p_2\n1,0.9,0.1\n2,0.4,0.6\n", encoding="utf-8")
    assert command("measure", path, "-m", "accuracy", "--format", "json").values == {"accuracy": 1.0}


def test_whole_labels_that_could_be_names_or_indices_are_refused(command, tmp_path):
    path = tmp_path / "digits.csv"
    path.write_text("label,p_1,p_2\n0,0.9,0.1\n1,0.4,0.6\n", encoding="utf-8")  # is 1 the first or the second column?
    assert _one_line(command("measure", path, "-m", "accuracy"), 3)


def test_options_that_cannot_apply_to_a_pair_of_arrays_are_refused(command):
    for option in ("--label", "--weight", "--probs"):
        assert command("measure", "labels.npy", "probabilities.npy", option, "weight").code in (2, 3), option


# How it is printed


def test_a_table_has_four_digits_and_says_what_each_number_asks(command):
    ended = command("measure", "probs.npz", "-m", "ece", "-m", "sce")
    lines = [line.split(maxsplit=2) for line in ended.out.splitlines()]
    assert ["ece", f"{cal.ECE(CLASSES).value:.4f}", "top label, 15 equal-width bins"] in lines
    assert ["sce", f"{cal.SCE(CLASSES).value:.4f}", "every class, 15 equal-width bins, mean of all"] in lines
    assert "probs.npz" in ended.out
    assert f"{N} rows" in ended.out
    assert ended.err == ""


def test_a_table_by_a_column_says_what_each_number_asks_too(command):
    assert "top label, 15 equal-width bins" in command("measure", "probs.npz", "-m", "ece", "--by", "region").out


def test_notes_stand_below_the_table(command):
    ended = command("measure", "accents.csv", "-m", "ece")
    assert ended.out.splitlines()[-1] == "note: more bins than samples (ece)"


def test_csv_has_one_line_a_metric_with_every_digit(command):
    ended = command("measure", "probs.npz", "-m", "ece", "-m", "brier", "--format", "csv")
    assert ended.rows == [
        ["metric", "value", "n", "question", "choices"],
        ["ece", repr(cal.ECE(CLASSES).value), str(N), "top label", "15 equal-width bins"],
        ["brier", repr(cal.BRIER(CLASSES).value), str(N), "full distribution", ""],
    ]


def test_json_rebuilds_every_result_and_its_metric(command):
    ended = command(
        "measure", "probs.npz", "-m", "tace", "-m", "wsmcs", "-m", "log_loss", "--by", "region", "--format", "json"
    )
    document = json.loads(ended.out)
    assert document["calibrant"] == cal.__version__
    assert document["by"] == "region"
    assert list(document["rows"]) == ["all", "east", "north", "south"]
    for region, results in document["rows"].items():
        part = CLASSES if region == "all" else CLASSES[region == REGION]
        for name, entry in results.items():
            expected = cal.RECIPES[name.upper()](part)
            rebuilt = cal.Result.from_json(json.dumps(entry))
            assert rebuilt.metric == expected.metric
            assert rebuilt.value == expected.value
            assert rebuilt.n == expected.n
            assert {key: kept.value for key, kept in rebuilt.parts.items()} == pytest.approx(
                {key: kept.value for key, kept in expected.parts.items()}, rel=0, abs=0, nan_ok=True
            )


def test_json_is_strict_where_values_are_not_finite(command, tmp_path):
    path = tmp_path / "sure.csv"
    path.write_text("label,p\n1,0\n0,0.5\n", encoding="utf-8")
    ended = command("measure", path, "--select", "everything", "-m", "log_loss", "--format", "json")
    document = json.loads(ended.out, parse_constant=pytest.fail)
    assert document["rows"]["all"]["log_loss"]["value"] == "inf"


# Limits


@pytest.mark.parametrize(
    ("words", "limit", "code"),
    [
        (["-m", "ece"], "ece=1", 0),
        (["-m", "ece"], "ece=0.0001", 1),
        ([], "sce=0.0001", 1),
        (["-m", "ece"], f"ece={cal.ECE(CLASSES).value!r}", 0),
        (["-m", "ece/equal_mass(5)"], "ece/equal_mass(5)=1e-6", 1),
        (["-m", "equal_width(n_bins=5)"], "equal_width(n_bins=5)=1e-6", 1),
        (["-m", "ece", "--select", "label_in(0) & ~label_in(0)"], "ece=1", 1),
        (["-m", "ece", "--by", "region"], f"ece={cal.ECE(CLASSES).value * 1.001!r}", 1),
        (["-m", "ECE"], "ece=1", 0),
        (["-m", "ece"], "ECE=0.0001", 1),
        (["-m", "ece", "--confident"], "ece=1", 0),
        (["-m", "brier", "--confident"], f"brier={LOSS.low * 0.999!r}", 1),
        (["-m", "brier", "--confident"], f"brier={LOSS.low * 1.001!r}", 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
@pytest.mark.parametrize("style", ["table", "csv"])
def test_a_value_above_its_limit_or_none_ends_with_one(command, words, limit, code, style):
    ended = command("measure", "probs.npz", *words, "--fail-above", limit, "--format", style)
    assert ended.code == code, ended.err
    assert ended.out
    assert (ended.err == "") == (code == 0)


def test_limits_hold_for_the_size_of_a_signed_value(command):
    ended = command("measure", "probs.npz", "-m", UNDER, "--fail-above", f"{UNDER}=0.0001", "--format", "json")
    assert ended.values[UNDER] < -0.0001
    assert ended.code == 1


def test_a_failed_limit_names_the_metric_the_rows_and_both_numbers(command):
    ended = command("measure", "probs.npz", "-m", "ece", "--fail-above", "ece=0.0001")
    assert _one_line(ended, 1)
    for part in ("ece", "all", f"{cal.ECE(CLASSES).value:.4f}", "0.0001"):
        assert part in ended.err


def test_a_limit_on_an_interval_that_does_not_exist_is_wrong_data_unless_another_limit_was_passed(command):
    words = ("measure", "probs.npz", "-m", "mce", "-m", "brier", "--confident", "--fail-above", "mce=1")
    ended = command(*words)
    assert _one_line(ended, 3)
    for part in ("mce of all", "no interval is known to cover", "leave out --confident"):
        assert part in ended.err
    assert _one_line(command(*words, "--fail-above", "brier=0.0001"), 1)


@pytest.mark.parametrize("limits", [("1", "0.0001"), ("0.0001", "1")])
def test_of_several_limits_of_a_metric_each_holds(command, limits):
    words = [word for limit in limits for word in ("--fail-above", f"ece={limit}")]
    assert command("measure", "probs.npz", "-m", "ece", *words).code in (1, 2)


# How it ends


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "Usage"),
        (["mesure", "probs.npz"], "measure"),
        (["measure"], "FILES"),
        (["measure", "probs.npz", "--frmat", "json"], "--format"),
        (["measure", "probs.npz", "--format", "xml"], "csv"),
        (["measure", "probs.npz", "--metric"], "--metric"),
        (["measure", "probs.npz", "--metric", "ecee"], "did you mean 'ece'?"),
        (["measure", "probs.npz", "--metric", "NLL"], "did you mean 'log_loss'?"),
        (["measure", "probs.npz", "--metric", "brier_score_loss"], "did you mean 'brier'?"),
        (["measure", "probs.npz", "--metric", "expected_calibration_error"], "did you mean 'ece'?"),
        (["measure", "probs.npz", "--metric", "classwise_ece"], "did you mean 'sce'?"),
        (["measure", "probs.npz", "--metric", "brier_score"], "brier is the usual metric; top_label/brier_score asks"),
        (
            ["simulate", "bias", "--metric", "sce"],
            "is a question about classes; this model predicts one event, --scores",
        ),
        (["measure", "probs.npz", "--metric", "xyz"], "`calibrant info` lists the metrics"),
        (["measure", "probs.npz", "--metric", "adaptive_ec"], "did you mean 'adaptive_ece'?"),
        (["measure", "probs.npz", "--metric", "equal_mas(3)"], "did you mean 'equal_mass'?"),
        (["measure", "probs.npz", "--metric", "ece("], "ece("),
        (["measure", "probs.npz", "--metric", "ece,sce"], "ece,sce"),
        (["measure", "probs.npz", "--metric", "ece/sce"], "ece/sce"),
        (["measure", "probs.npz", "--metric", "equal_width(0)"], "n_bins"),
        (["measure", "probs.npz", "--metric", "top_k"], "arguments"),
        (["measure", "probs.npz", "--metric", "tvd(3)"], "tvd"),
        (["measure", "probs.npz", "--metric", "__import__('os')"], "__import__"),
        (["measure", "probs.npz", "--metric", "hit/tvd"], "hit/tvd"),
        (["measure", "probs.npz", "--metric", "by_label(3)"], "by_label"),
        (["measure", "probs.npz", "--select", "ece"], "--select"),
        (["measure", "probs.npz", "--select", "region == 'north'"], "--select"),
        (["measure", "probs.npz", "--select", "where(region=north)"], "--select"),
        (["measure", "probs.npz", "--select", "label_in(1.5)"], "label_in"),
        (["measure", "probs.npz", "--fail-above", "ece"], "METRIC=LIMIT"),
        (["measure", "probs.npz", "--fail-above", "ece=5%"], "METRIC=LIMIT"),
        (["measure", "probs.npz", "--fail-above", "ece=nan"], "METRIC=LIMIT"),
        (["measure", "probs.npz", "-m", "ece", "--fail-above", "sce=0.1"], "not measured"),
        (["measure", "probs.npz", "-m", "accuracy", "--fail-above", "accuracy=0.9"], "higher is better"),
        (["measure", "probs.npz", "-m", "ece", "--confident"], "--fail-above"),
        (["measure", "probs.npz", "event.csv", "--interval"], "one file"),
        (["measure", "probs.npz", "--skip-bad"], "--skip-bad"),
        (["measure", "other.npz", "--label", "truth", "--probs", "forecast", "--logits", "scores"], "--logits"),
        (["measure", "missing.npz", "--metric", "ecee"], "did you mean 'ece'?"),
        (["measure", "missing.npz", "--select", "labelin("], "--select"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_ends_with_two_before_anything_is_printed(command, words, part):
    ended = command(*words)
    assert (ended.code, ended.out) == (2, ""), ended
    assert part in ended.err


@pytest.mark.parametrize("words", [("measure",), ("report", "-o", "x.html"), ("state", "-o", "x.state")], ids=" ".join)
@pytest.mark.parametrize(
    ("lines", "metric", "message"),
    [
        ("label,p\n1,.9\n0,.2\n", "sce", "got forecasts of one event; give columns p_0 and p_1 to make it two classes"),
        ("correct,confidence\n1,.9\n0,.2\n", "sce", "got confidences of top answers; without -m, the metrics"),
        ("y_a,p_a,y_b,p_b\n1,.9,0,.3\n", "cwece", "got independent labels; without -m, the metrics that suit these"),
    ],
    ids=["event", "answers", "labels"],
)
def test_a_metric_that_predictions_cannot_answer_is_refused_by_the_name_that_was_typed(
    command, tmp_path, words, lines, metric, message
):
    (tmp_path / "it.csv").write_text(lines)
    option = ("--fail-above", f"{metric}=0.1") if words[0] == "report" else ("-m", metric)
    output = [tmp_path / word if "." in word else word for word in words[1:]]
    ended = command(words[0], tmp_path / "it.csv", *output, *option)
    assert ended.code == 3
    assert ended.err.startswith(f"calibrant: {metric}: ")
    assert message in ended.err


def test_a_score_with_a_lens_is_that_of_the_lens(command):
    ended = command("measure", "probs.npz", "-m", "full/brier_score", "-m", "brier", "--format", "json")
    results = json.loads(ended.out)["rows"]["all"]
    assert results["full/brier_score"]["value"] == results["brier"]["value"]


BAD = {
    "empty": ("", "empty"),
    "header only": ("label,p\n", "header only"),
    "ragged": ("label,p\n1,0.9\n0,0.1,7\n", "line 3"),
    "semicolons": ("label;p\n1;0,9\n", "semicolons"),
    "decimal commas": ('label,p\n1,"0,9"\n0,"0,1"\n', "decimal point"),
    "NUL": ("label,p\n1,0.9\n0,0.1\x00\n1,0.5\n", "line 3"),
    "not UTF-8": (b"label,p\n1,0.9\n0,\xff\n", "UTF-8"),
    "twice": ("label,p,p\n1,0.9,0.9\n", "'p' twice"),
    "no label": ("lable,p\n1,0.9\n", "'lable'"),
    "no forecast": ("label,certainty\n1,0.9\n", "--probs"),
    "two forecasts": ("label,p,probs\n1,0.9,0.9\n", "p and probs"),
    "NaN": ("label,p\n1,0.9\n0,NaN\n", "line 3"),
    "NA": ("label,p\n1,0.9\n0,NA\n", "line 3"),
    "inf": ("label,p\n1,0.9\n0,inf\n", "line 3"),
    "1e400": ("label,p\n1,0.9\n0,1e400\n1,0.5\n", "line 3"),
    "gap": ("label,p\n1,0.9\n0,\n", "line 3"),
    "text": ("label,p\n1,0.9\n0,low\n1,0.5\n", "line 3"),
    "negative": ("label,p\n1,0.9\n0,-0.1\n", "-0.1"),
    "above one": ("label,p\n1,0.9\n0,1.02\n", "1.02"),
    "percentages": (
        "label,p\n1,90\n0,20\n",
        "if these are percentages, add --scale 100; if they are logits, use --logits KEY",
    ),
    "a label to leave out": ("label,p_a,p_b\n1,0.1,0.9\n255,0.5,0.5\n", "pass --ignore-index 255"),
    "labels of one row": ("label,p_a,p_b\n1,0.7,0.9\n0,0.5,0.5\n", "use columns y_<label> and p_<label>"),
    "label gap": ("label,p\n1,0.9\n,0.5\n", "line 3"),
    "label two": ("label,p\n1,0.9\n2,0.5\n", "got 2"),
    "label negative": ("label,p_a,p_b\n0,0.9,0.1\n-1,0.5,0.5\n", "got -1"),
    "unknown class": ("label,p_a,p_b\na,0.9,0.1\nc,0.5,0.5\n", "'c'"),
    "sums": ("label,p_a,p_b\na,0.9,0.1\nb,0.5,0.4\n", "sum to 1"),
}


@pytest.mark.parametrize(("content", "part"), BAD.values(), ids=list(BAD))
def test_bad_data_end_with_three_and_one_line_that_says_where(command, tmp_path, content, part):
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ended = command("measure", path)
    assert _one_line(ended, 3)
    assert part in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["probs.npz", "--by", "regoin"], "did you mean 'region'?"),
        (["probs.npz", "--select", "where(regoin='north')"], "did you mean 'region'?"),
        (["probs.npz", "--select", "label_in('cta')"], "did you mean 'cat'?"),
        (["probs.npz", "--select", "label_in(77)"], "0..5"),
        (["probs.npz", "--label", "label"], "did you mean 'labels'?"),
        (["probs.npz", "--metric", "top_k(7)"], "7"),
        (["probs.npz", "--metric", "weighted([1, 2])"], "coordinate"),
        (["event.csv", "--metric", "sce"], "question about classes"),
        (["probabilities.npy"], "labels"),
        (["probabilities.npy", "labels.npy"], "truth comes first"),
        (["labels.npy", "event.csv"], "NPY"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_does_not_fit_the_data_ends_with_three(command, words, part):
    ended = command("measure", *words)
    assert _one_line(ended, 3)
    assert part in ended.err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.npz", b"label,p\n1,0.9\n"),
        ("text.parquet", b"label,p\n1,0.9\n"),
        ("half.npz", b"PK\x03\x04 and no more"),
        ("half.npy", b"\x93NUMPY\x01\x00"),
        ("half.parquet", b"PAR1 and no more"),
        ("packed.csv", b"\x1f\x8b\x08\x00"),
        ("lines.jsonl", b"not json\n"),
        ("list.json", b"[1, 2]\n"),
        ("strange.xyz", b"label,p\n1,0.9\n"),
    ],
)
def test_a_file_that_is_not_what_it_seems_ends_with_three(command, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    ended = command("measure", tmp_path / name)
    assert _one_line(ended, 3)
    assert name in ended.err


def test_python_objects_in_an_archive_are_refused(command, tmp_path):
    np.savez(tmp_path / "objects.npz", label=np.array([0, 1]), p=np.array([0.5, None], dtype=object))
    assert _one_line(command("measure", tmp_path / "objects.npz"), 3)


@pytest.mark.parametrize(
    "words",
    [["missing.csv"], ["."], ["labels.npy", "missing.npy"], ["probs.npz", "--metric", "mahalanobis(@missing.json)"]],
    ids=" ".join,
)
def test_a_file_that_cannot_be_read_ends_with_three(command, words):
    ended = command("measure", *words)
    assert _one_line(ended, 3)
    assert words[-1].removeprefix("mahalanobis(@").removesuffix(")") in ended.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_ends_with_three(command, tmp_path):
    path = tmp_path / "locked.csv"
    path.write_text("label,p\n1,0.9\n", encoding="utf-8")
    path.chmod(0)
    assert _one_line(command("measure", path), 3)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["other.npz", "--label", "truth", "--probs", "scores"], "--logits"),
        (["event.csv", "--label", "p", "--probs", "label"], "event.csv: 'p': must be the labels"),
        (["event.csv", "--weight", "region"], "--weight"),
    ],
)
def test_a_hint_names_options_and_not_python(command, words, option):
    ended = command("measure", *words)
    assert ended.code == 3
    assert option in ended.err
    for name in ("Predictions.", "y_true", "y_proba", "sample_weight"):
        assert name not in ended.err


# Names that mean harm


def _harmless(text):
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_a_table_of_hostile_names_is_inert_and_short(command):
    ended = command("measure", "hostile.jsonl", "--by", "region", "-m", "ece")
    assert ended.code == 0
    assert _harmless(ended.out)
    assert max(map(len, ended.out.splitlines())) <= 120
    for name in (
        "<script>alert(1)</script>",
        "[/x]",
        "[bold]b[/bold]",
        "{{7*7}}",
        r"\x1b[31mred\x1b[0m",
        r"\u202eevil",
    ):
        assert name in ended.out


def test_a_csv_of_hostile_names_is_inert_and_keeps_them_apart(command):
    ended = command("measure", "hostile.jsonl", "--by", "region", "-m", "ece", "--format", "csv")
    names = [row[0] for row in ended.rows[1:]]
    assert len(set(names)) == len(HOSTILE) + 1
    assert not [name for name in names if name.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert _harmless(ended.out)


def test_json_keeps_hostile_names_to_the_letter_in_plain_ascii(command):
    ended = command("measure", "hostile.jsonl", "--by", "region", "-m", "ece", "--format", "json")
    assert set(json.loads(ended.out)["rows"]) == {*HOSTILE, "all (value)"}
    assert ended.out.isascii()
    assert _harmless(ended.out)


@pytest.mark.parametrize("index", range(len(HOSTILE)))
def test_a_hostile_class_name_is_inert_in_every_format(command, index):
    words = ("measure", "hostile.npz", "-m", f"one_class({index})", "-m", "cwece", "--format")
    assert _harmless(command(*words, "table").out)
    printed = command(*words, "csv")
    assert [len(row) for row in printed.rows] == [5, 5, 5]
    assert _harmless(printed.out)
    printed = json.loads(command(*words, "json").out)["rows"]["all"]
    assert list(printed["cwece"]["parts"]) == list(HOSTILE)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["hostile.npz", "--by", "\x1b[31mcolumn"], 3),
        (["hostile.npz", "--select", "label_in('\\x1b[31mrde')"], 3),
        (["\x1b[31m\u202e.csv"], 3),
        (["probs.npz", "-m", "'\x1b[31m'"], 2),
        (["probs.npz", "--fail-above", "\x1b[31m=1"], 2),
        (["probs.npz", "--fail-above", "\x1b[31m"], 2),
        (["hostile.jsonl", "--by", "region", "-m", "ece", "--fail-above", "ece=0.1"], 1),
    ],
)
def test_hostile_names_are_inert_in_what_is_said_to_be_wrong(command, words, code):
    ended = command("measure", *words)
    assert ended.code == code
    assert _harmless(ended.err)
    assert len(ended.err) < 3000


@pytest.mark.slow
@unix
def test_a_terminal_gets_no_escape_sequence_from_the_data(folder):
    written = terminal(folder, "measure", "hostile.jsonl", "--by", "region", "-m", "ece", "--format", "csv")
    assert "\x1b" not in written


# Where it runs


@pytest.mark.slow
@unix
@pytest.mark.parametrize(
    "words",
    [
        ["demo"],
        ["info"],
        ["measure", "--help"],
        ["measure", "probs.npz"],
        ["measure", "probs.npz", "--by", "region", "--format", "csv"],
    ],
    ids=" ".join,
)
def test_a_reader_that_left_is_no_failure_and_nothing_is_said(folder, words):
    left, pipe = os.pipe()
    os.close(left)
    ended = process(folder, *words, stdout=pipe)
    os.close(pipe)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.slow
@unix
def test_a_closed_standard_output_is_no_failure(folder):
    line = f"{shlex.quote(sys.executable)} -m calibrant measure probs.npz >&-"
    ended = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_ends_with_four(folder):
    with open("/dev/full", "wb") as full:
        assert _one_line(process(folder, "measure", "probs.npz", stdout=full), 4)


@pytest.mark.slow
@unix
def test_an_interruption_does_not_look_like_a_failed_limit(tmp_path):
    os.mkfifo(tmp_path / "slow.csv")
    with subprocess.Popen(
        [sys.executable, "-m", "calibrant", "measure", "slow.csv"],
        cwd=tmp_path,
        env=_environment(),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    ) as running:
        writer = os.open(tmp_path / "slow.csv", os.O_WRONLY)  # returns when the command has opened the other end
        running.send_signal(signal.SIGINT)
        errors = running.communicate(timeout=60)[1]
        os.close(writer)
    assert running.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"LANG": "C", "LC_ALL": "C"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "cp1252"},
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("style", ["table", "csv"])
def test_any_encoding_of_the_terminal_will_do(folder, variables, style):
    ended = process(folder, "measure", "accents.csv", "--by", "region", "-m", "ece", "--format", style, **variables)
    assert (ended.code, ended.err) == (0, "")
    assert "0.25" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("python", [["-O"], ["-OO"], ["-W", "error", "-bb", "-X", "dev"]], ids=" ".join)
@pytest.mark.parametrize("words", [["measure", "wide.csv", "--by", "region"], ["measure", "event.jsonl", "-m", "sce"]])
def test_optimised_and_strict_interpreters_say_the_same(folder, command, python, words):
    assert process(folder, *words, python=python) == command(*words)


@pytest.mark.slow
def test_nothing_is_left_behind(folder, tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    assert process(work, "measure", folder / "wide.parquet", HOME=str(home)).code == 0
    assert not [*home.iterdir(), *work.iterdir()]


@pytest.mark.slow
def test_a_home_that_does_not_exist_is_not_needed(folder):
    assert process(folder, "demo", HOME="/does/not/exist").code == 0


@pytest.mark.slow
@unix
def test_a_narrow_terminal_breaks_no_number(folder):
    written = terminal(folder, "measure", "probs.npz", "--by", "region", columns=60)
    recipes = [cal.ACCURACY, cal.LOG_LOSS, cal.BRIER, cal.ECE, cal.ECE_SWEEP, cal.ECE_DEBIASED, cal.MCE, cal.SCE]
    assert [recipe.name for recipe in recipes if f"{recipe(CLASSES).value:.4f}" not in written] == []


@pytest.mark.slow
@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_extra_is_named_and_does_not_look_like_a_failed_limit(package):
    program = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError("No module named {package!r}", name={package!r})

sys.meta_path.insert(0, Absent())
sys.argv = ["calibrant", "demo"]
from calibrant.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ended.stderr
    assert ended.returncode != 1
    assert ended.returncode == 0 or "pip install 'calibrant[cli]'" in ended.stderr


# Help, demo, info, and the two ways to call


@pytest.mark.parametrize("name", [None, *commands.group.commands])
def test_every_help_has_an_example(name):
    ended = CliRunner().invoke(commands.group, ["--help"] if name is None else [name, "--help"])
    assert ended.exit_code == 0
    assert "Example" in ended.output
    assert f"  calibrant {name or ''}" in ended.output


def _examples():
    text = inspect.cleandoc(commands.group.commands["measure"].help or "")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("calibrant ")]


def test_the_help_of_measure_shows_several_examples():
    assert len(_examples()) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("example", _examples())
def test_every_example_in_the_help_of_measure_runs(command, example):
    ended = command(*shlex.split(example)[1:])
    assert ended.code == 0 or ("--fail-above" in example and ended.code == 1), ended.err
    assert ended.out


@pytest.mark.parametrize("name", commands.group.commands)
def test_the_list_of_commands_says_each_in_one_whole_line(name):
    listed = CliRunner().invoke(commands.group, ["--help"]).output.split("Commands:")[1]
    (line,) = [line for line in listed.splitlines() if line.startswith(f"  {name} ")]
    assert not line.endswith("...")


@pytest.mark.slow
def test_the_demo_measures_the_predictions_that_come_with_the_package(command):
    ended = command("demo")
    predictions = read(SHIPPED / "fashion_mnist_test.npz")
    assert (ended.code, ended.err) == (0, "")
    for recipe in (cal.ACCURACY, cal.ECE, cal.MCE, cal.SCE):
        assert f"{recipe(predictions).value:.4f}" in ended.out
    assert "Over-confident by 5.2 points" in ended.out
    assert str(SHIPPED / "fashion_mnist_test.npz") in ended.out
    assert f"The report: {Path('calibrant-demo.html').resolve()}" in ended.out
    assert "Over-confident by 5.2 points" in Path("calibrant-demo.html").read_text(encoding="utf-8")


def test_info_tells_versions_and_every_recipe(command):
    ended = command("info")
    assert ended.code == 0
    assert f"calibrant {cal.__version__}" in ended.out
    assert np.__version__ in ended.out
    name, reason = cal.kernels.serving()
    assert f"Kernels: {name} ({reason})" in ended.out
    for name in cal.RECIPES:
        assert f"  {name.lower()} " in ended.out


def test_what_info_says_of_a_recipe_can_be_typed_back(command):
    lines = command("info").out.split("Recipes:")[1].splitlines()
    spellings = dict(line.split(maxsplit=1) for line in lines if line.strip())
    wrong = {}
    for name, recipe in cal.RECIPES.items():
        try:
            (metric,) = spelling.metrics(spellings[name.lower()]).values()
        except cal.CalibrationInputError as reason:
            metric = str(reason)
        if metric != recipe:
            wrong[name] = metric
    assert wrong == {}


def test_the_version_is_told(command):
    assert cal.__version__ in command("--version").out


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["measure", "wide.csv", "--format", "json"], ["measure", "missing.csv"]])
def test_the_module_the_script_and_the_function_are_one_command(folder, command, words):
    script = shutil.which("calibrant", path=sysconfig.get_path("scripts"))
    if script is None:
        pytest.skip("the script is not installed beside this interpreter")
    ended = subprocess.run(
        [script, *words], cwd=folder, env=_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    by_script = Answer(ended.returncode, ended.stdout, ended.stderr)
    assert by_script == process(folder, *words) == command(*words)


# Other people's predictions


@beside
def test_football_forecasts_without_the_draws(command):
    ended = command(
        "measure", BESIDE / "fivethirtyeight" / "nfl_games.csv", "--label", "prob1_outcome", "--probs", "prob1",
        "--select", "~where(prob2_outcome=0.5)", "-m", "ece", "-m", "brier", "--by", "season", "--format", "csv",
    )  # fmt: skip
    rows = {row[0]: row[1:] for row in ended.rows[1:]}
    assert list(rows) == ["all", *map(str, range(2015, 2022))]
    assert rows["all"][0] == "1882"
    assert f"{100 * float(rows['all'][1]):.3f}" == "3.259"


@beside
def test_a_language_model_by_subject(command):
    ended = command(
        "measure", BESIDE / "llm_mmlu_cloze" / "mmlu_cloze_logprobs.npz", "--logits", "logp_LLaMa3_8B",
        "--by", "subject", "-m", "ece", "-m", "accuracy", "--format", "csv",
    )  # fmt: skip
    total, *subjects = ended.rows[1:]
    assert len(subjects) == 56
    assert sum(int(row[1]) for row in subjects) == int(total[1]) == 12508
    assert (f"{100 * float(total[2]):.3f}", f"{100 * float(total[3]):.2f}") == ("5.102", "57.60")


@beside
def test_logits_of_a_residual_network(command):
    path = BESIDE / "aigen_resnet50_c10" / "cifar10_resnet50.npz"
    ended = command("measure", path, "--label", "labels_test", "--logits", "logits_test", "--format", "json")
    assert f"{100 * ended.values['ece']:.3f}" == "1.552"
    assert f"{100 * ended.values['accuracy']:.2f}" == "95.02"


def test_a_lone_interval_may_stand_before_the_files(command, tmp_path):
    path = tmp_path / "predictions.csv"
    rng = np.random.default_rng(0)
    p = rng.random(200)
    path.write_text("label,p\n" + "".join(f"{int(rng.random() < x)},{x:.4f}\n" for x in p), encoding="utf-8")
    places = (("--interval", str(path)), (str(path), "--interval"))
    outputs = [command("measure", *words, "-m", "ece").out for words in places]
    assert outputs[0] == outputs[1]
    assert " to 0." in outputs[0]


def test_of_the_k_likeliest_the_title_names_the_labels_alone(command, tmp_path):
    path = tmp_path / "top.csv"
    path.write_text("label,class_1,prob_1\n0,0,0.9\n1,1,0.8\n")
    assert "the 1 likeliest of 5 classes, probabilities\n" in command("measure", str(path), "--classes", "5").out
    path.write_text("truth,class_1,prob_1\n0,0,0.9\n1,1,0.8\n")
    told = command("measure", str(path), "--classes", "5", "--label", "truth").out
    assert "probabilities (labels: 'truth')\n" in told


def test_one_soft_outcome_is_one_row(command, tmp_path):
    path = tmp_path / "soft.csv"
    path.write_text("label,p\n1,0.9\n0.5,0.2\n")
    assert "outcomes are soft (1 row is no 0 or 1)" in command("measure", str(path)).out


def test_a_note_about_every_group_does_not_name_them(command, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("label,p,site\n" + "".join(f"{row % 2},0.5,{site}\n" for site in "abcde" for row in range(4)))
    told = command("measure", str(path), "-m", "ece", "--by", "site").out
    assert "note: more bins than samples (ece of 5 rows of this table)\n" in told
    told = command("measure", str(path), "-m", "ece", "-m", "mce", "--by", "site", "--select", "where(site='a')").out
    assert "note: more bins than samples (ece of all and a, mce of all and a)\n" in told
    told = command("measure", str(path), "-m", "ece/equal_width(99)", "--by", "site").out
    assert "note: more bins than samples (ece/equal_width(99))\n" in told


@pytest.mark.parametrize("column", ["label", "p"])
def test_groups_by_the_labels_or_the_forecasts_are_told_what_to_use(command, tmp_path, column):
    path = tmp_path / "event.csv"
    path.write_text("label,p\n1,0.9\n0,0.2\n")
    ended = command("measure", str(path), "--by", column)
    assert ended.code == 3
    assert f"must be another one than those of labels and forecasts, got {column!r}; label_in(...)" in ended.err
