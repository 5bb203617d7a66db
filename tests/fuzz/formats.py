"""Formats: everything that calibrant reads, as a sample of it, how it is mutated, and what reading it must come to.

There is one oracle: what was mutated is refused with a `CalibrationInputError`, or read to what the sample says, or, if
the format has no checksum of ours, to what an independent reader says.
"""

import atexit
import csv
import io
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import calibrant as cal
from calibrant.experiments.design.checking import check, text_of
from calibrant.experiments.running import runner
from calibrant.files import read
from calibrant.files.finding import Finder
from calibrant.files.reading import write
from calibrant.scale.part_files import parts
from calibrant.scale.row_batches import batches
from calibrant.specification.documents import seal
from fuzz import mutations, stores
from stored import TEXT

REFUSED, SAME, ALIKE = "refused", "read to the same", "read as another reader does"
CHANGED, TRACEBACK = "CHANGED WITHOUT A WORD", "TRACEBACK"
RNG = np.random.default_rng(7)
N = 9
P = np.round(RNG.random(N), 3)
HAPPENED = (RNG.random(N) < P).astype(int)
ROWS, LABELS = RNG.dirichlet(np.ones(3), N), RNG.integers(0, 3, N)
CLASSES = ["cat", "dog", "bird"]
INSPECT = Path(__file__).parents[1] / "written_by_others" / "inspect.eval"
FOLDER = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@dataclass(frozen=True)
class Format:
    """A format: a sample, what reading it comes to, how it is mutated, and another reader, if it has no checksum."""

    name: str
    sample: bytes
    read: Callable
    mutate: Callable
    independent: Callable | None = None

    def verdict(self, content):
        """What reading comes to, in a word; and the error or the content, where it is a fault."""
        try:
            state = self.read(content)
        except cal.CalibrationInputError:
            return REFUSED, None
        except Exception as error:
            return TRACEBACK, error
        if state == self.expected:
            return SAME, None
        if self.independent is not None:
            with warnings.catch_warnings(), suppress(Exception):  # what it cannot read, it does not read alike
                warnings.simplefilter("ignore")
                if state == self.independent(content):
                    return ALIKE, None
        return CHANGED, state

    @property
    def expected(self):
        """What the sample says."""
        if self.name not in _EXPECTED:
            _EXPECTED[self.name] = self.read(self.sample)
        return _EXPECTED[self.name]


_EXPECTED = {}


def at_path(ending, read_path):
    """A reader of bytes out of one of files."""
    path = FOLDER / f"sample.{ending}"

    def read_bytes(content):
        path.write_bytes(content)
        return read_path(path)

    return read_bytes


def written(ending, write_path):
    """The bytes of a file that something writes."""
    path = FOLDER / f"written.{ending}"
    write_path(path)
    return path.read_bytes()


def rows_of(path):
    """Outcomes, or their shares, and forecasts of a file."""
    rows = read(path)
    shares = rows.labels if rows.labels is not None else rows.soft
    return np.asarray(shares, np.float64).tolist(), np.asarray(rows.values, np.float64).tolist()


def all_of(path):
    """Everything that a file of ours says."""
    rows = read(path)
    columns = {name: np.asarray(column).tolist() for name, column in rows.columns.items()}
    return rows.labels.tolist(), rows.values.tolist(), rows.classes, columns


# other readers, as plain as they can be


def _event(columns):
    """Labels and forecasts of one event out of columns of words."""
    truth = next(columns[name] for name in ("label", "labels", "y") if name in columns)
    forecasts = next(columns[name] for name in ("p", "probs", "logits") if name in columns)
    words = {"true": 1, "false": 0}
    labels = [words[str(word).lower()] if str(word).lower() in words else float(word) for word in truth]
    return labels, [clipped(float(word)) for word in forecasts]


def clipped(p):
    """A forecast that is no further below 0 or above 1 than rounding goes counts as 0 or 1."""
    return min(max(p, 0.0), 1.0) if -1e-6 < p < 1 + 1e-6 else p


def by_csv(content):
    text = content.decode("utf-8-sig")
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    assert all(len(row) == len(header) for row in rows)
    return _event({name.strip(): [row[index].strip() for row in rows] for index, name in enumerate(header)})


def by_json(content):
    records = [json.loads(line) for line in content.decode("utf-8-sig").splitlines() if line.strip()]
    shared = set.intersection(*map(set, records))
    return _event({name: [record[name] for record in records] for name in shared})


def by_numpy(content):
    with np.load(io.BytesIO(content)) as arrays:
        truth = next(arrays[name] for name in ("label", "labels", "y") if name in arrays.files)
        forecasts = next(arrays[name] for name in ("p", "probs", "logits") if name in arrays.files)
    return truth.astype(np.float64).tolist(), [clipped(float(p)) for p in forecasts]


def by_array(content):
    return [clipped(float(p)) for p in np.load(io.BytesIO(content))]


def by_arrow(content):
    table = pq.read_table(io.BytesIO(content)).to_pydict()
    return _event(table)


def by_stream(content):
    return _event(pa.ipc.open_file(io.BytesIO(content)).read_all().to_pydict())


def by_yaml(content):
    document = yaml.safe_load(content.decode("utf-8-sig"))
    usual = ["accuracy", "log_loss", "brier", "ece", "sce", "ace", "tace"]  # as the page of studies says
    return document["name"], [float(seed) for seed in document.get("seeds", [0])], document.get("metrics", usual)


# what JSON holds, sealed anew: damage that a seal cannot tell


def resealed(mutate):
    """Mutate a document and write the seal that it would have."""

    def mutated(content, random):
        changed = mutate(content, random)
        try:
            document = json.loads(changed)
            document["seal"] = seal({name: value for name, value in document.items() if name != "seal"})
            return json.dumps(document).encode()
        except (ValueError, TypeError, RecursionError):
            return changed

    return mutated


def number_of(result):
    """A result that says a number, its n and its metric, whatever they are: it must come back from its own JSON."""
    text = result.to_json()
    assert cal.Result.from_json(text).to_json() == text
    str(result), repr(result), result.parts, result._repr_html_()
    return json.loads(text)


def as_result(content):
    return number_of(cal.Result.from_json(content.decode("utf-8", "replace")))


def sane_result(content):
    as_result(content)
    return "a result"


SCORES = RNG.normal(size=(40, 3)) * 20


def as_map(content):
    fitted = cal.recalibrate.from_json(content.decode("utf-8", "replace"))
    return json.loads(fitted.to_json()), fitted.predict_proba(SCORES).tolist()


def sane_map(content):
    """A map that is believed gives probabilities."""
    fitted = cal.recalibrate.from_json(content.decode("utf-8", "replace"))
    scores = SCORES if fitted.input == "logits" else np.full_like(SCORES, 1 / 3)
    cal.Predictions.from_probs(np.zeros(len(scores), int), fitted.predict_proba(scores))
    return "a map"


def sane_metric(content):
    metric = cal.from_json(content.decode("utf-8", "replace"))
    assert cal.from_json(metric.to_json()) == metric
    return "a metric"


def as_summary(content):
    return cal.ECE.replace(binning=cal.EqualWidth(4)).conclude(cal.Summary.from_bytes(content)).to_json()


def as_state(content):
    state = cal.scale.State.from_bytes(content)
    return state.n, state.by, [[each.to_json() for each in row.values()] for row in state.table().results.values()]


def scanned(path):
    """What a scan finds, batch by batch: the state of all rows, and an exact value that takes two passes."""
    found_there = cal.scale.scan(path, {"ece": cal.ECE, "adaptive": cal.ADAPTIVE_ECE})
    return found_there.state.to_bytes(), found_there["adaptive"].to_json()


def as_stream(content):
    """Labels and forecasts of an Arrow file that a scan accepts, as it gets them."""
    path = FOLDER / "sample.arrow"
    path.write_bytes(content)
    cal.scale.scan(path, {"ece": cal.ECE})
    return _rows_of_batches([columns for _, columns in batches(*parts(path))])


def _rows_of_batches(every):
    rows = [Finder(columns).predictions({}) for columns in every]
    labels = np.concatenate([each.labels if each.labels is not None else each.soft for each in rows])
    return labels.astype(np.float64).tolist(), np.concatenate([each.values for each in rows]).tolist()


def as_study(content):
    path = FOLDER / "study.yaml"
    path.write_bytes(content)
    study = check(text_of(path))
    if isinstance(study, list):
        raise cal.CalibrationInputError("study", str(study[0]))
    study.trials()
    return study.name, [float(seed) for seed in study.seeds], list(study.metrics)


def of_parquet(content, random):
    """A column removed, doubled, with nulls or of another type; or the bytes changed."""
    if random.random() < 0.7:
        return mutations.of_bytes(content, random)
    table = pq.read_table(io.BytesIO(content))
    index = int(random.integers(table.num_columns))
    values = table.column(index).to_pylist()
    values[int(random.integers(len(values)))] = None
    changed = [
        table.remove_column(index),
        table.append_column(table.column_names[index], table.column(index)),
        table.set_column(index, table.column_names[index], pa.array(values)),
        table.set_column(index, table.column_names[index], pa.array([str(value) for value in values])),
        table.slice(1),
        table.take(list(range(table.num_rows))[::-1]),
    ][int(random.integers(6))]
    target = io.BytesIO()
    pq.write_table(changed, target)
    return target.getvalue()


def _foreign_parquet():
    target = io.BytesIO()
    pq.write_table(pa.table({"label": HAPPENED, "p": P, "region": ["n", "s", "e"] * 3}), target)
    return target.getvalue()


def _arrow():
    target = io.BytesIO()
    table = pa.table({"label": HAPPENED, "p": P, "region": ["n", "s", "e"] * 3})
    with pa.ipc.new_file(target, table.schema) as file:
        file.write_table(table, max_chunksize=4)
    return target.getvalue()


def _foreign_npz():
    target = io.BytesIO()
    np.savez(target, label=HAPPENED, p=P, region=np.arange(N))
    return target.getvalue()


def _npy():
    target = io.BytesIO()
    np.save(target, P)
    return target.getvalue()


def as_npy(content):
    (FOLDER / "p.npy").write_bytes(content)
    np.save(FOLDER / "y.npy", HAPPENED)
    rows = read([FOLDER / "y.npy", FOLDER / "p.npy"])
    return np.asarray(rows.values, np.float64).tolist()


def ours(ending):
    columns = {"label": np.array(CLASSES)[LABELS], "region": np.array(["north", "süd", "east"] * 3)}
    return written(ending, lambda path: write(path, ROWS, CLASSES, columns))


def _text():
    lines = ["label,p,region", *(f"{y},{p},{'nse'[i % 3]}" for i, (y, p) in enumerate(zip(HAPPENED, P, strict=True)))]
    return "\n".join(lines).encode()


def _lines():
    return "\n".join(json.dumps({"label": int(y), "p": float(p)}) for y, p in zip(HAPPENED, P, strict=True)).encode()


def _map():
    logits = RNG.normal(size=(60, 3))
    return cal.VectorScaling(l2=0.1).fit(logits, np.append([0, 1, 2], logits[3:].argmax(1))).to_json().encode()


def _state():
    rows = cal.Predictions.from_probs(HAPPENED, P, region=np.array(["n", "s", "e"] * 3))
    return cal.scale.State.of(rows, {"ece": cal.ECE, "auroc": cal.AUROC, "brier": cal.BRIER}, by="region").to_bytes()


def _harness_log():
    shares = (-0.5, -1.25, -2.0)
    records = [
        {"doc_id": i, "doc": {"subject": "ab"[i % 2]}, "target": str(i % 3), "filter": "none", "doc_hash": f"h{i}"}
        | {"filtered_resps": [[str(share - i), "False"] for share in shares], "arguments": [["Q", " A"], ["Q", " B"]]}
        for i in range(4)
    ]
    return "\n".join(map(json.dumps, records)).encode()


def _inspect_log():
    token = {"token": " A", "logprob": -0.25}
    samples = [
        {"id": i, "epoch": 1, "scores": {"choice": {"value": "CI"[i % 2], "answer": "A"}}, "metadata": {"subject": "a"}}
        | {"output": {"choices": [{"logprobs": {"content": [token]}}]}}
        for i in range(3)
    ]
    return json.dumps({"eval": {}, "samples": samples}).encode()


def sane_log(path):
    """Whether what was read of a log without a checksum could be true."""
    rows = read(path, missing="drop")
    return bool(len(rows) and np.isfinite(rows.values).all())


def formats():
    """Every format by name; those that carry a checksum of ours have no other reader."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    _EXPECTED.clear()
    result = (
        cal.SCE.replace(binning=cal.EqualWidth(2))(LABELS, ROWS, interval=cal.Bootstrap(50, seed=0)).to_json().encode()
    )
    summary = cal.ECE.replace(binning=cal.EqualWidth(4)).summarise(LABELS, ROWS).to_bytes()
    store, fitted = stores.finished(FOLDER / "store"), _map()
    small = stores.finished(FOLDER / "small store", stores.ONE_TRIAL)
    outcome = next((store / "results").glob("*.npz"))
    database = (store / "study.sqlite").read_bytes()
    listed = [
        Format("our NPZ", ours("npz"), at_path("npz", all_of), mutations.of_archive),
        Format("our Parquet", ours("parquet"), at_path("parquet", all_of), of_parquet),
        Format("saved map", fitted, as_map, mutations.of_document),
        Format("result", result, as_result, mutations.of_document),
        Format("summary", summary, as_summary, mutations.of_bytes),
        Format("state", _state(), as_state, mutations.of_bytes),
        Format("our Parquet, scanned", ours("parquet"), at_path("scanned.parquet", scanned), mutations.of_bytes),
        Format("store", database, stores.reader(store), stores.mutated),
        Format("store of one trial", (small / "study.sqlite").read_bytes(), stores.reader(small), stores.mutated),
        Format("outcome of a trial", outcome.read_bytes(), _as_outcome(store, outcome), mutations.of_archive),
        Format("NPZ", _foreign_npz(), at_path("npz", rows_of), mutations.of_archive, by_numpy),
        Format(
            "NPY",
            _npy(),
            as_npy,
            mutations.of_array_file,
            by_array,
        ),
        Format("Parquet", _foreign_parquet(), at_path("parquet", rows_of), of_parquet, by_arrow),
        Format("Arrow", _arrow(), as_stream, mutations.of_bytes, by_stream),
        Format("CSV", _text(), at_path("csv", rows_of), mutations.of_text, by_csv),
        Format("JSONL", _lines(), at_path("jsonl", rows_of), mutations.of_lines, by_json),
        Format(
            "study",
            TEXT.encode(),
            as_study,
            lambda content, random: mutations.of_text(content, random, ("\n", ": ", ", ", " ")),
            by_yaml,
        ),
        Format("map, sealed anew", fitted, sane_map, resealed(mutations.of_document)),
        Format("result, sealed anew", result, sane_result, resealed(mutations.of_document)),
        Format("log of lm-evaluation-harness", _harness_log(), at_path("jsonl", sane_log), mutations.of_lines),
        Format("log of Inspect", _inspect_log(), at_path("json", sane_log), mutations.of_document),
        Format("archive of Inspect", INSPECT.read_bytes(), at_path("eval", sane_log), mutations.of_bytes),
        Format("metric", cal.TACE.to_json().encode(), sane_metric, mutations.of_document),
    ]
    return {each.name: each for each in listed}


SEALED = (
    "our NPZ",
    "our Parquet",
    "saved map",
    "result",
    "summary",
    "state",
    "our Parquet, scanned",
    "store",
    "store of one trial",
    "outcome of a trial",
)
"""Formats that carry a checksum of ours."""


def _as_outcome(store, path):
    trial = path.stem
    whole = path.read_bytes()

    def read_outcome(content):
        path.write_bytes(content)
        try:
            _, kept = runner.reopen(store)
            outcome = kept.outcome(trial)
            return [getattr(outcome, split).logits.tolist() for split in ("validation", "test")]
        finally:
            path.write_bytes(whole)

    return read_outcome
