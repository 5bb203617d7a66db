"""Mutations of everything that is read, a quick share of them: refused, or read to what it says, never a traceback."""

import sqlite3

import numpy as np
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")
pytest.importorskip("pyarrow")

from fuzz import arrays, stores
from fuzz.formats import CHANGED, REFUSED, SEALED, TRACEBACK, formats
from fuzz.mutations import flips
from fuzz.run import counted, mutants
from stored import found

NAMES = [*SEALED, "NPZ", "NPY", "Parquet", "Arrow", "CSV", "JSONL", "study"]
NAMES += [
    "map, sealed anew",
    "result, sealed anew",
    "log of lm-evaluation-harness",
    "log of Inspect",
    "archive of Inspect",
    "metric",
]


@pytest.fixture(scope="module")
def known():
    return formats()


def test_every_format_is_mutated(known):
    assert list(known) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_mutated_content_is_refused_or_read_to_what_it_says(name, known):
    counts, faults = counted(known[name], mutants(known[name], 150, seed=1))
    assert faults == []
    assert counts[REFUSED] > 20


@pytest.mark.parametrize("name", SEALED)
def test_no_flipped_bit_of_what_has_a_checksum_changes_a_number(name, known):
    every = list(flips(known[name].sample))
    _, faults = counted(known[name], every[:: max(1, len(every) // 150)])
    assert faults == []


def test_a_database_that_answers_as_before_gives_the_tables_that_it_gave_before(tmp_path):
    folder = stores.finished(tmp_path / "store")
    path = folder / "study.sqlite"
    whole, content, expected = stores.answers(path), path.read_bytes(), found(folder)
    every, same = list(flips(content)), 0
    for damaged in every[:: len(every) // 60]:
        path.write_bytes(damaged)
        if stores.answers(path) == whole:
            same += 1
            assert found(folder) == expected
    assert 20 < same < 60
    with sqlite3.connect(path) as database:
        database.execute("update maps set text = 'another'")
    database.close()
    assert stores.answers(path) != whole


@pytest.mark.parametrize("name", arrays.CONSTRUCTORS)
def test_mutated_arrays_are_refused_or_measured(name):
    random = np.random.default_rng([2, *name.encode()])
    call, arguments = arrays.CONSTRUCTORS[name]
    for _ in range(150):
        changed = arrays.mutated(arguments, random)
        verdict, fault = arrays.verdict(call, changed)
        assert verdict not in (CHANGED, TRACEBACK), (fault, changed)


def test_an_event_that_is_accepted_has_the_number_of_a_plain_loop():
    random = np.random.default_rng(3)
    call, arguments = arrays.CONSTRUCTORS["from_probs, event"]
    verdicts = set()
    for _ in range(300):
        changed = [
            each if np.iterable(each) and not hasattr(each, "__next__") else [each]
            for each in arrays.mutated(arguments, random)
        ]
        verdict, fault = arrays.verdict(call, changed, arrays.gap)
        assert verdict not in (CHANGED, TRACEBACK), (fault, changed)
        verdicts.add(verdict)
    assert len(verdicts) == 2


@pytest.mark.parametrize("name", list(arrays.functions()))
def test_every_public_function_refuses_or_takes_mutated_arrays(name):
    random = np.random.default_rng([4, *name.encode()])
    call, arguments = arrays.functions()[name]
    for _ in range(15):
        changed = arrays.mutated(arguments, random)
        verdict, fault = arrays.verdict(call, changed)
        assert verdict != TRACEBACK, (fault, changed)


def test_the_harness_tells_a_fault(known):
    """A reader that believes everything, and one that stumbles."""
    form = known["result"]
    believing = type(form)("believing", form.sample, lambda content: content, form.mutate)
    assert len(counted(believing, mutants(form, 20, seed=0))[1]) == 20
    stumbling = type(form)("stumbling", form.sample, lambda content: 1 / (content == form.sample), form.mutate)
    assert {verdict for verdict, *_ in counted(stumbling, mutants(form, 20, seed=0))[1]} == {TRACEBACK}
