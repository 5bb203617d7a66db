"""The scheduler: a connection to that of a Dask cluster, or one line that says why there is none."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from calibrant.exceptions import CalibrationInputError

PATIENCE = 10.0
"""Seconds in which a scheduler must answer."""


class ClusterError(OSError):
    """A cluster that cannot be worked with; the store has what came back before."""

    def __init__(self, message: str, scheduler: str) -> None:
        super().__init__(errno.EIO, message, scheduler)


@contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """A client of the scheduler at an address."""
    try:
        from distributed import Client
    except ModuleNotFoundError as missing:
        hint = "pip install 'calibrant[experiments,dask]'"
        raise CalibrationInputError("scheduler", f"needs {missing.name}, which is not installed", hint=hint) from None
    try:
        with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs
            thread.submit(asyncio.run, _greet(scheduler)).result()
        client = Client(scheduler, timeout=PATIENCE, set_as_default=False, name="calibrant")
    except ValueError as reason:
        raise CalibrationInputError(
            "scheduler", "must be an address such as tcp://HOST:8786", got=f"{scheduler!r} ({reason})"
        ) from None
    except OSError as reason:
        message = f"no Dask scheduler answers there ({str(reason) or f'in {PATIENCE:g} s'}); start one: dask scheduler"
        raise ClusterError(message, scheduler) from None
    try:
        with _silent("distributed.client"):  # a scheduler that is gone is said in one line
            yield client
    finally:
        with suppress(OSError, RuntimeError):
            client.close(timeout=2)


async def _greet(scheduler: str) -> None:
    """Connect once: a client waits for ever for what listens but is no scheduler, such as a dashboard."""
    from distributed import Security
    from distributed.comm import connect

    async with asyncio.timeout(PATIENCE):
        comm = await connect(scheduler, timeout=PATIENCE, **Security().get_connection_args("client"))
        await comm.close()


@contextmanager
def _silent(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
