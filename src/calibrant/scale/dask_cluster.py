"""Dask: the parts of a scan are summarised by the workers of a cluster, and their states are added up there."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.exceptions import CalibrationInputError
from calibrant.scale.part_files import Part
from calibrant.scale.part_states import Parcel, Reading, Share, opened, parcel_of, share_of, together

TOGETHER = 16
"""How many states a task adds up."""
RETRIES = 3
"""How often a task is tried again where a worker fails; what is wrong with a file is not tried again."""
PATIENCE = 30.0
"""Seconds after which a scheduler that does not answer is taken for gone."""


def on_cluster(every: Sequence[Part], reading: Reading, *, client: Any, until: float) -> list[Share]:
    """The share of all parts, of which each is a task of a Dask client's cluster, until a time of `time.monotonic`.

    Workers must see the files under the same names. A task whose worker dies is done by another one. What is wrong with
    a file, a file that kills its workers, a scheduler that is gone and a time that is over are raised.
    """
    total = None
    try:
        total = _sent(every, reading, client)
        _wait(total, client, until)
        parcel = total.result(timeout=max(1.0, min(PATIENCE, until - time.monotonic())))
    except (TimeoutError, CancelledError, OSError, RuntimeError) as reason:
        if isinstance(reason, TimeoutError) or client.status == "running":
            raise
        raise _gone() from reason
    finally:
        if total is not None:
            with suppress(Exception):  # the scheduler may be gone, which cancels, too
                total.cancel()
    return [opened(parcel, reading.pieces)]


def summarised(part: Part, reading: Reading) -> Parcel:
    """The parcel of a part: what a worker does."""
    return parcel_of(partial(share_of, part, reading))


def _sent(every: Sequence[Part], reading: Reading, client: Any) -> Any:
    """The future of the sum of all parts: tasks that summarise, then tasks that add up what others gave."""
    run = secrets.token_hex(4)
    shared = client.submit(_as_it_is, reading, key=f"calibrant-reading-{run}", retries=RETRIES)
    futures = [
        client.submit(summarised, part, shared, key=f"{part.path}{_place(part)} ({run})", retries=RETRIES)
        for part in every
    ]
    level = 0
    while len(futures) > 1 or not level:
        level += 1
        futures = [
            client.submit(
                together,
                futures[first : first + TOGETHER],
                reading.pieces,
                key=f"calibrant-sum-{level}-{first} ({run})",
                retries=RETRIES,
            )
            for first in range(0, len(futures), TOGETHER)
        ]
    return futures[0]


def _as_it_is(reading: Reading) -> Reading:
    """A task that hands the reading to all others: sent once, and known again where its worker dies."""
    return reading


def _place(part: Part) -> str:
    return "" if part.groups is None else f", row groups {part.groups[0]} to {part.groups[1] - 1}"


def _wait(total: Any, client: Any, until: float) -> None:
    """Return when the sum is there or has failed; raise where the scheduler is gone, or the time is over."""
    from distributed import KilledWorker

    ended = threading.Event()
    total.add_done_callback(lambda _: ended.set())
    heard = time.monotonic()
    while not ended.wait(0.2):
        now = time.monotonic()
        heard = now if client.status == "running" else heard
        if client.status in ("closing", "closed") or now - heard > PATIENCE:
            raise _gone()
        if now > until:
            raise TimeoutError("the scan was not done by its deadline")
    if total.status == "error" and isinstance(error := total.exception(), KilledWorker):
        task = str(error.task).rpartition(" (")[0]
        got = f"{error.allowed_failures + 1} workers that died while they read it; see their logs"
        raise CalibrationInputError(task, "must be readable by workers", got=got)


def _gone() -> ConnectionError:
    return ConnectionError("the Dask scheduler is gone; start it and scan again")


def absolute(part: Part) -> Part:
    """The part by its whole name: workers have another working folder.

    >>> absolute(Part("/data/a.csv", 0, 0)).path
    '/data/a.csv'
    """
    labels = None if part.labels is None else str(Path(part.labels).absolute())
    return replace(part, path=str(Path(part.path).absolute()), labels=labels)
