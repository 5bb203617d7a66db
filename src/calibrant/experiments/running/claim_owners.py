"""Claim owners: the name of a worker, and whether that worker still lives.

A worker keeps a file of its own locked. The system takes the lock back when the process ends, however it ends, and does
not give it to another process that gets the same number.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

HAS_LOCKS = find_spec("fcntl") is not None
"""Whether the system has locks that end with their process."""


@contextmanager
def new_owner(folder: Path) -> Iterator[str]:
    """A name for one worker while it works on the store in a folder: machine, process, and a word of its own.

    Where the system has no locks, the name has no word, and only the lease tells whether the worker still lives.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_owner(Path(folder)) as owner:
    ...         is_dead(owner, Path(folder))
    ...     is_dead(owner, Path(folder))
    False
    True
    """
    word = secrets.token_hex(8)
    with locked(_file(folder, word)) as is_mine:
        try:
            yield "|".join([_machine(), str(os.getpid()), word if is_mine and HAS_LOCKS else ""])
        finally:
            _file(folder, word).unlink(missing_ok=True)


def is_dead(owner: str, folder: Path) -> bool:
    """Whether a worker is known to have ended; of another machine's workers nothing is known.

    >>> is_dead("elsewhere|1|0123456789abcdef", Path())
    False
    """
    machine, _, word = owner.split("|") if owner.count("|") == 2 else ("", "", "")
    if machine != _machine() or not word.isalnum():
        return False
    path = _file(folder, word)
    if not path.exists():  # it went by itself, or was found dead before
        return True
    with suppress(OSError), locked(path) as is_free:  # another user's file may not be ours to open
        if is_free:
            path.unlink(missing_ok=True)
        return is_free
    return False


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether this process now has the lock of a file, which the system takes back when the process ends, however it
    does; always, where the system has no such locks."""
    if not HAS_LOCKS:
        yield True
        return
    import fcntl

    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        is_mine = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            is_mine = False
        yield is_mine
    finally:
        os.close(handle)


def _file(folder: Path, word: str) -> Path:
    return folder / f".{word}.worker"


def _machine() -> str:
    return socket.gethostname().replace("|", "/")
