"""Owners: which process works on a trial, and whether it still lives."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path


def new_owner() -> str:
    """A name for one worker of this process: place, process, start of the process, and a word of its own.

    >>> new_owner() == new_owner(), is_dead(new_owner())
    (False, False)
    """
    return "|".join([_place(), str(os.getpid()), _started(os.getpid()), secrets.token_hex(4)])


def is_dead(owner: str) -> bool:
    """Whether a worker is known to have ended; of another machine's workers nothing is known.

    >>> place, _, started, word = new_owner().split("|")
    >>> is_dead("|".join([place, "999999999", started, word])), is_dead("elsewhere|1|0|ab")
    (True, False)
    """
    try:
        place, process, started, _ = owner.split("|")
        number = int(process)
    except ValueError:
        return False
    if place != _place():
        return False
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return _state(number) == "Z" or (started != "" and started != _started(number))  # a number may be used again


@cache
def _place() -> str:
    """This machine since it was started, and what its process numbers count."""
    boot = names = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        names = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{boot}/{names}".replace("|", "/")


def _started(process: int) -> str:
    """When a process began, in ticks since the machine did; empty where nobody tells."""
    fields = _fields(process)
    return fields[19] if len(fields) > 19 else ""


def _state(process: int) -> str:
    fields = _fields(process)
    return fields[0] if fields else ""


def _fields(process: int) -> list[str]:
    """What Linux tells of a process, from its state on; the name before it may hold anything."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return []
