"""Forks: a child of a process whose threads measure, such as a loader of batches, can measure, too."""

import ast
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.kernels.caching import cached_property

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # Python 3.12 and later warn of what is tried here
]
PATIENCE = 20.0
RNG = np.random.default_rng(5)
ROWS, LABELS = RNG.dirichlet(np.ones(4), 200), RNG.integers(0, 4, 200)


class Slow:
    """A value that takes as long as somebody keeps it waiting."""

    def __init__(self, begun=None, release=None):
        self.begun, self.release = begun, release

    @cached_property
    def value(self):
        if self.begun is not None:
            self.begun.set()
            self.release.wait(PATIENCE)
        return object()


def measured():
    """Numbers that ask for most of what is computed once."""
    rows = cal.Predictions.from_logits(LABELS, np.log(ROWS))
    return [
        metric(rows).value for metric in (cal.ECE, cal.SCE, cal.ADAPTIVE_ECE, cal.FULL_ECE, cal.BRIER, cal.LOG_LOSS)
    ]


def child_ends(work):
    """Whether a forked process that does some work ends well in time."""
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return False


def test_a_child_computes_what_a_thread_of_its_parent_was_computing():
    begun, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow(begun, release).value)
    thread.start()
    assert begun.wait(PATIENCE)
    ended = child_ends(lambda: Slow().value)
    release.set()
    thread.join()
    assert ended


def test_children_of_a_process_whose_threads_measure_measure_the_same():
    expected, over = measured(), threading.Event()

    def measure_until_over():
        while not over.is_set():
            measured()

    def same():
        assert measured() == expected

    threads = [threading.Thread(target=measure_until_over) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert all(child_ends(same) for _ in range(20))
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_threads_that_ask_together_get_one_value():
    begun, release = threading.Event(), threading.Event()
    slow, values = Slow(begun, release), []
    threads = [threading.Thread(target=lambda: values.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(PATIENCE)
    release.set()
    for thread in threads:
        thread.join()
    assert len({id(value) for value in values}) == 1
    assert values[0] is slow.value


def test_no_module_takes_the_attribute_that_has_a_lock():
    source = Path(cal.__file__).parent
    taken = [
        path.name
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        for alias in node.names
        if alias.name == "cached_property"
    ]
    assert taken == []
