"""Scans on a real Spark cluster of this machine: the bytes of memory and files, whoever is killed on the way."""

import doctest
import importlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import pyspark
from pyspark.sql import SparkSession, functions

import calibrant as cal
from calibrant.scale import State, scan, spark
from calibrant.scale.spark import summarise

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that py4j leaves to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SOURCES = Path(__file__).parents[1] / "src"
METRICS = {"ece": cal.ECE, "brier": cal.BRIER, "adaptive": cal.ADAPTIVE_ECE}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A driver, and two executors in processes of their own; small files and batches, so that there are many tasks."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(SOURCES),
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.files.maxPartitionBytes": "500000",
        "spark.sql.files.openCostInBytes": "500000",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        running = SparkSession.builder.master("local-cluster[2,1,1100]").config(map=settings).getOrCreate()
    running.sparkContext.setLogLevel("OFF")
    application = running.sparkContext.applicationId
    yield running
    running.stop()
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


def event(seed=0, n=3000, dtype=np.float64):
    rng = np.random.default_rng(seed)
    p = (rng.integers(0, 1 + n, n) / n).astype(dtype)  # some on edges of bins, which precisions round apart
    label = (rng.random(n) < p**1.2).astype(np.int8)
    return pa.table({"label": label, "p": p, "region": rng.choice(["north", "south"], n)})


def classes(n=1200, k=4):
    rng = np.random.default_rng(1)
    return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n)


def layouts():
    """A table of each layout, and the options that it needs."""
    y, p = classes()
    rows, order = np.arange(len(y)), np.argsort(-p, axis=1)[:, :2]
    best = order[:, 0]
    hits = np.random.default_rng(2).random(p.shape) < p
    return {
        "event": ({"label": y == 0, "p": p[:, 0].astype(np.float32)}, {}),
        "wide": ({"label": y, **{f"p_{k}": p[:, k] for k in range(4)}}, {}),
        "named": ({"truth": np.array(list("abcd"))[y], **{f"q_{k}": p[:, i] for i, k in enumerate("abcd")}},
                  {"label": "truth", "probs": "q"}),
        "array": ({"y": y, "probs": p.astype(np.float32).tolist()}, {"normalize": True}),
        "logits": ({"y": y, "logits": np.log(p).tolist()}, {}),
        "weighted": ({"label": y == 0, "p": p[:, 0], "times": 1 + y}, {"weight": "times"}),
        "gaps": ({"label": y == 0, "p": pa.array(p[:, 0], mask=rows % 7 == 0)}, {"missing": "drop"}),
        "likeliest": ({"label": y, "ids": order.tolist(), "probs": np.take_along_axis(p, order, 1).tolist()},
                      {"classes": 4}),
        "labels": ({f"{name}_{k}": values[:, k] for k in range(4) for name, values in (("y", hits), ("p", p))}, {}),
        "answer": ({"confidence": p[rows, best], "correct": best == y}, {}),
        "points": ({"sure": 100 * p[rows, best], "right": best == y},
                   {"confidence": "sure", "correct": "right", "scale": 100}),
    }  # fmt: skip


def assert_same(result, expected):
    assert result.metric == expected.metric
    assert (result.value, result.values, result.n) == (expected.value, expected.values, expected.n)


@pytest.mark.parametrize("name", layouts())
def test_every_layout_gives_the_state_and_values_of_files(name, session, tmp_path):
    columns, options = layouts()[name]
    metrics = {"ece": cal.ECE, "brier": cal.BRIER} if name != "likeliest" else {"ece": cal.ECE}
    table = pa.table(columns)
    pq.write_table(table[:500], tmp_path / "a.parquet")
    pq.write_table(table[500:], tmp_path / "b.parquet")
    files = scan(tmp_path, metrics, **options)
    spread = summarise(session.read.parquet(str(tmp_path)), metrics, **options)
    assert spread.state.to_bytes() == files.state.to_bytes()
    assert list(spread) == list(metrics)
    for metric in metrics:
        assert_same(spread[metric], files[metric])


def test_groups_and_several_passes_give_the_values_of_files(session, tmp_path):
    metrics = {**METRICS, "sweep": cal.ECE_SWEEP, "auroc": cal.AUROC}
    pq.write_table(event(), tmp_path / "a.parquet")
    files = scan(tmp_path, metrics, by="region")
    frame = session.read.parquet(str(tmp_path / "a.parquet")).repartition(5)
    spread = summarise(frame, metrics, by="region")
    assert str(spread.table) == str(files.table)
    assert spread.passes == files.passes > 1
    for name in metrics:
        assert_same(spread[name], files[name])
        assert_same(spread.result(name, "north"), files.result(name, "north"))
    once = summarise(frame, metrics, by="region", exact=False)
    assert once.passes == 1
    assert once["auroc"].bounds == scan(tmp_path, metrics, exact=False)["auroc"].bounds
    assert once.state.to_bytes() == files.state.to_bytes()


def executors(session):
    """The processes of the executors of this application alone."""
    own = session.sparkContext.applicationId.encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if own in words and b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
                yield int(folder.name)


def killing(flag):
    """Batches as they come, but that the sixth task kills the executor it runs on when it is first tried."""

    def passed(batches):
        if pyspark.TaskContext.get().partitionId() == 5 and not flag.exists():
            workers = Path(f"/proc/{os.getppid()}/stat").read_text()  # of the process that makes Python's workers
            executor = int(workers.rpartition(")")[2].split()[1])
            flag.write_text(str(executor))
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)  # the executor ends this process
        yield from batches

    return passed


def test_memory_files_and_a_cluster_whose_executor_is_killed_give_one_digest(session, tmp_path):
    """2 million rows in 40 files, float32 and float64 mixed: Spark reads each kind of number as a DataFrame."""
    every = []
    for index in range(40):
        kind = ("double", "float")[index % 2]
        table = event(index, 50_000, np.float32 if index % 2 else np.float64)
        (tmp_path / kind).mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / kind / f"{index:02}.parquet")
        every.append(cal.Predictions.from_probs(table["label"].to_numpy(), table["p"].to_numpy()))
    memory = sum(State.of(rows, METRICS) for rows in every)
    assert scan(tmp_path, METRICS).state.to_bytes() == memory.to_bytes()
    flag, before = tmp_path / "killed", set(executors(session))
    frames = [session.read.parquet(str(tmp_path / kind)) for kind in ("double", "float")]
    spread = summarise([frame.mapInArrow(killing(flag), frame.schema) for frame in frames], METRICS)
    assert spread.state.to_bytes() == memory.to_bytes()
    for name, metric in METRICS.items():
        assert spread[name].value == metric.conclude(sum(map(metric.summarise, every))).value
    assert spread["ece"].n == 2_000_000
    assert len(before) == 2
    assert before - set(executors(session)) == {int(flag.read_text())}


@pytest.fixture(scope="module")
def answers(session):
    """What a classifier of Spark's own says of rows."""
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.functions import array_to_vector

    rng = np.random.default_rng(3)
    label = rng.integers(0, 3, 400)
    points = rng.normal(size=(400, 2)) + np.eye(3)[label][:, :2]
    rows = session.createDataFrame(
        [(float(y), x) for y, x in zip(label, points.tolist(), strict=True)], "label double, x array<double>"
    )
    rows = rows.select("label", array_to_vector("x").alias("features")).repartition(3).cache()
    return LogisticRegression(family="multinomial", maxIter=3).fit(rows).transform(rows)


def test_the_probabilities_of_a_classifier_of_spark_are_found(session, answers):
    rows = answers.select("label", "probability", "rawPrediction").collect()
    labels = np.array([row.label for row in rows])
    metrics = {"ece": cal.ECE, "sce": cal.SCE, "brier": cal.BRIER}
    given = cal.Predictions.from_probs(labels, np.array([row.probability.toArray() for row in rows]))
    spread = summarise(answers, metrics)
    assert spread.state.to_bytes() == State.of(given, metrics).to_bytes()
    assert len(np.unique(labels)) == 3
    assert cal.ACCURACY(given).value > 0.4
    raw = cal.Predictions.from_logits(labels, np.array([row.rawPrediction.toArray() for row in rows]))
    spread = summarise(answers, metrics, logits="rawPrediction")
    assert spread.state.to_bytes() == State.of(raw, metrics).to_bytes()


def test_a_vector_that_is_missing_is_named_or_left_out(session, answers):
    known = functions.col("label") > 0
    some = answers.withColumn("probability", functions.when(known, functions.col("probability")))
    with pytest.raises(cal.CalibrationInputError, match=r"^df: column 'probability' must have no nulls, got one at"):
        summarise(some, {"ece": cal.ECE})
    assert_same(
        summarise(some, {"ece": cal.ECE}, missing="drop")["ece"],
        summarise(answers.where(known), {"ece": cal.ECE})["ece"],
    )


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            "IF(id % 100 = 57, 1.5D, 0.25D)",
            r"^df: .*in \[0, 1\], got 1\.5 at partition 1, rows 0 to 99, row 57 of these$",
        ),
        ("IF(id % 100 = 57 AND id > 300, NULL, 0.25D)", "^df: column 'p' must have no nulls, got one at partition 3"),
    ],
)
def test_bad_rows_are_told_in_one_sentence(session, bad, words):
    """Of several, those of the first partition that has any, in whatever order partitions are done."""
    frame = session.range(100, 500, 1, 4).selectExpr("int(id % 2) AS label", f"{bad} AS p")
    good = session.range(0, 100, 1, 1).selectExpr("int(id % 2) AS label", "0.25D AS p")
    with pytest.raises(cal.CalibrationInputError, match=words) as caught:
        summarise(good.union(frame), {"ece": cal.ECE})
    assert "Py4J" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_use_is_refused_in_words(session):
    frame = session.range(10).selectExpr("int(id % 2) AS label", "0.25D AS p")
    ece = {"ece": cal.ECE}
    refused = {
        "must be a Spark DataFrame, got Table": lambda: summarise(event(), ece),
        "must be a Spark DataFrame, got list": lambda: summarise([], ece),
        "must have rows, got none": lambda: summarise(frame.where("p > 1"), ece),
        "labels: is no option": lambda: summarise(frame, ece, labels="label"),
        "metrics: .*must keep no rows": lambda: summarise(frame, {"kernel": cal.SKCE}),
        "lacks a column, got 'region'": lambda: summarise(frame, ece, label="region"),
        "is unknown, got 'region'": lambda: summarise(frame, ece, by="region"),
        "must name each column once, got 'p' twice": lambda: summarise(frame.select("*", "p"), ece),
        "lacks a column, got 'p'": lambda: summarise([frame, frame.drop("p")], ece),
    }
    for words, call in refused.items():
        with pytest.raises(cal.CalibrationInputError, match=words):
            call()


def test_columns_that_nobody_needs_may_be_of_any_type(session, answers):
    strange = ["map('a', 1) AS m", "struct(1) AS s", "interval 1 month AS i", "current_date() AS `a.b`", "null AS n"]
    frame = session.range(1000).selectExpr("int(id % 2) AS label", "id / 1000 AS p", *strange)
    assert summarise(frame, {"ece": cal.ECE}, by="a.b")["ece"].n == 1000


OWN = """
def halved(bins):
    return abs(bins.gap).sum(axis=2) / 2
"""


def test_modules_that_executors_lack_are_named_and_can_be_sent(session, tmp_path, monkeypatch):
    (tmp_path / "own_distances.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    halved = importlib.import_module("own_distances").halved
    frame = session.range(0, 100, 1, 2).selectExpr("int(id % 2) AS label", "id / 100 AS p")
    metrics = {"halved": cal.BinnedError(distance=halved)}
    with pytest.raises(cal.CalibrationInputError, match=r"needs own_distances on Spark's executors.*--py-files"):
        summarise(frame, metrics, pieces={"halved": halved})
    session.sparkContext.addPyFile(str(tmp_path / "own_distances.py"))
    spread = summarise(frame, metrics, pieces={"halved": halved})
    assert spread["halved"].value == metrics["halved"](np.arange(100) % 2, np.arange(100) / 100).value


def test_the_examples_run(session):
    parts = doctest.DocTestFinder().find(spark, "calibrant.scale.spark")
    outcomes = [doctest.DocTestRunner().run(part) for part in parts]
    assert sum(outcome.attempted for outcome in outcomes) > 0
    assert sum(outcome.failed for outcome in outcomes) == 0
