"""Beside: work that a second process does while this one goes on."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")


def beside(work: Callable[[], T]) -> Callable[[], T]:
    """Ask for what `work` makes: a copy of this process makes it meanwhile, where there is room for one.

    Elsewhere, and where the copy comes to nothing, this process makes it when asked. Only Linux copies a process well,
    and only one without other threads.

    >>> asked = beside(lambda: 6 * 7)
    >>> asked()
    42
    """
    if not (sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1):
        return work
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, theirs), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a library may keep: they wait for work
        process.start()
    theirs.close()

    def asked() -> T:
        try:
            made: T = ours.recv()
        except EOFError:
            return work()
        finally:
            process.join()
        return made

    return asked


def _send(work: Callable[[], Any], pipe: Connection) -> None:
    with suppress(BaseException):  # what is wrong is said by the process that asks
        pipe.send(work())
