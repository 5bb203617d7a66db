"""Work beside: a second process gives what this one would, and whatever happens to it, there is an answer."""

import subprocess
import sys
import threading

import pytest

from calibrant.report.beside import beside

ALONE = pytest.mark.skipif(sys.platform != "linux", reason="only there a process is copied")


def said(program):
    """What a program prints that runs alone, without the threads of a test runner."""
    words = ["from calibrant.report.beside import beside", "import os", *program]
    ended = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(words)], capture_output=True, text=True)
    assert ended.stderr == ""
    return ended.stdout.split()


@ALONE
def test_another_process_does_the_work_where_two_can_run():
    program = [
        "here, asked = os.getpid(), beside(os.getpid)",
        "print(here != asked(), len(os.sched_getaffinity(0)) > 1)",
    ]
    other, room = said(program)
    assert other == room


@ALONE
def test_a_process_that_comes_to_nothing_leaves_the_work_to_this_one():
    program = [
        "here = os.getpid()",
        "print(beside(lambda: 42 if os.getpid() == here else os._exit(1))())",
        "print(beside(lambda: 43 if os.getpid() == here else 1 / 0)())",
        "print(beside(lambda: 44 if os.getpid() == here else (lambda: None))())",  # what cannot be sent
    ]
    assert said(program) == ["42", "43", "44"]


@ALONE
def test_a_process_that_is_killed_in_the_middle_of_its_answer_leaves_the_work_to_this_one():
    program = [
        "import signal, time",
        "here = os.getpid()",
        "asked = beside(lambda: 42 if os.getpid() == here else bytes(10**7))",  # more than a pipe holds
        "time.sleep(0.5)",
        "import multiprocessing",
        "[os.kill(one.pid, signal.SIGKILL) for one in multiprocessing.active_children()]",
        "time.sleep(0.1)",
        "print(asked() in (42, bytes(10**7)))",
    ]
    assert said(program) == ["True"]


@ALONE
def test_an_interruption_does_not_wait_for_an_answer_that_nobody_reads():
    program = [
        "import multiprocessing, signal, threading, time",
        "here = os.getpid()",
        "asked = beside(lambda: time.sleep(1) or bytes(10**7))",
        "def interrupted(number, frame): raise KeyboardInterrupt",
        "signal.signal(signal.SIGALRM, interrupted)",
        "signal.setitimer(signal.ITIMER_REAL, 0.3)",
        "try:",
        "    asked()",
        "except KeyboardInterrupt:",
        "    print('interrupted', len(multiprocessing.active_children()))",
    ]
    assert said(program) == ["interrupted", "0"]


@ALONE
def test_a_helper_that_may_have_no_helpers_works_alone():
    program = [
        "import multiprocessing",
        "def work(): print(beside(os.getpid)() == os.getpid(), flush=True)",
        "process = multiprocessing.get_context('fork').Process(target=work, daemon=True)",
        "process.start()",
        "process.join()",
    ]
    assert said(program) == ["True"]


@ALONE
def test_what_is_wrong_is_raised_where_it_is_asked_for():
    program = [
        "asked = beside(lambda: 1 / 0)",
        "try:",
        "    asked()",
        "except ZeroDivisionError:",
        "    print('raised')",
    ]
    assert said(program) == ["raised"]


def test_beside_other_threads_no_process_is_copied():
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()

    def work():
        return threading.current_thread()

    try:
        assert beside(work) is work
    finally:
        waiting.set()
        thread.join()


@ALONE
def test_a_page_is_the_same_whoever_measured():
    program = [
        "import numpy as np, threading, calibrant as cal",
        "from calibrant.report import Report",
        "rng = np.random.default_rng(0)",
        "z = rng.normal(size=(300, 4)) * 2",
        "rows = cal.Predictions.from_logits(rng.integers(0, 4, 300), z)",
        "first = Report.of(rows).to_html()",
        "waiting = threading.Event()",
        "threading.Thread(target=waiting.wait).start()",
        "second = Report.of(rows).to_html()",
        "waiting.set()",
        "print(first == second)",
    ]
    assert said(program) == ["True"]
