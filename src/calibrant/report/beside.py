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
from pickle import UnpicklingError
from typing import Any, TypeVar

T = TypeVar("T")


def beside(work: Callable[[], T]) -> Callable[[], T]:
    """Ask for what `work` makes: a copy of this process makes it meanwhile, where there is room for one.

    Elsewhere, and where the copy comes to nothing, this process makes it when asked. Only Linux copies a process well,
    only one without other threads, and none that is itself a helper which may have none.

    >>> asked = beside(lambda: 6 * 7)
    >>> asked()
    42
    """
    if not _can_copy():
        return work
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, theirs), daemon=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a library may keep: they wait
            process.start()
    except OSError:  # no room for a copy
        ours.close()
        return work
    finally:
        theirs.close()

    def asked() -> T:
        try:
            made: T = ours.recv()
        except (EOFError, OSError, UnpicklingError):
            return work()
        finally:
            ours.close()
            process.terminate()  # it is done, or nobody waits for it any more
            process.join()
        return made

    return asked


def _can_copy() -> bool:
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return False
    return len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1


def _send(work: Callable[[], Any], pipe: Connection) -> None:
    with suppress(BaseException):  # what is wrong is said by the process that asks
        pipe.send(work())
