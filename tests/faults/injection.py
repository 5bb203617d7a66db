"""Injection: calls that write fail, do half of their work, or end the process, at the place that a test names.

`points(action)` runs an action undisturbed and lists every place at which it could go wrong. `injected(point)` lets it
go wrong there, in this process; `killed(point, action)` in a child that ends at once, as by a power cut of the process.

>>> import os, tempfile
>>> from pathlib import Path
>>> folder = tempfile.TemporaryDirectory()
>>> def write():
...     with os.fdopen(os.open(Path(folder.name, "a.txt"), os.O_WRONLY | os.O_CREAT), "wb") as file:
...         _ = file.write(b"all")
>>> [str(point) for point in points(write) if point.kind in ("ENOSPC", "kill")]
['open 0: ENOSPC', 'open 0: kill', 'open 0: kill after', 'write 0: ENOSPC', 'write 0: kill', 'write 0: kill after']
>>> with injected(Point("write", 0, "ENOSPC")):
...     write()
Traceback (most recent call last):
OSError: [Errno 28] No space left on device
>>> folder.cleanup()
"""

import errno
import io
import os
import sqlite3
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

KILLED = 86
"""The exit status of a child that was ended by a fault."""
ERRORS = {
    "open": ("ENOSPC", "EIO", "EMFILE", "EINTR"),
    "write": ("ENOSPC", "EIO", "EINTR"),
    "fsync": ("ENOSPC", "EIO", "EINTR"),
    "replace": ("EIO", "ENOSPC", "EINTR"),
    "unlink": ("EIO", "EINTR"),
    "commit": (),
}
"""Errors that each call may end with; of a commit, the database tells its own."""


@dataclass(frozen=True)
class Point:
    """A fault: the call (open, write, fsync, replace, unlink, commit), which of these calls it is, counted from 0, and
    what happens: an error by its name, "short" (half is written), or "kill". With `after`, the call is done first."""

    call: str
    number: int
    kind: str
    after: bool = False

    def __str__(self):
        return f"{self.call} {self.number}: {self.kind}{' after' * self.after}"


def points(action):
    """Every fault that may happen to an action, in the order of its calls."""
    with injected(None) as layer:
        action()
    listed = []
    for call, number in layer.trace:
        listed += [Point(call, number, name) for name in ERRORS[call]]
        listed += [Point(call, number, "short")] * (call == "write")
        listed += [Point(call, number, "kill"), Point(call, number, "kill", after=True)]
    return listed


@contextmanager
def injected(point):
    """Calls that write go through a layer that lets one of them fail, once; None: it only counts them.

    Seen are the functions of `os` (whoever calls them), files of `os.fdopen`, and connections of `sqlite3.connect`.
    """
    layer = Layer(point)
    names = {"open": "open", "fsync": "fsync", "replace": "replace", "rename": "replace", "unlink": "unlink"}
    with mock.patch.multiple(
        os,
        **{name: layer.around(call, getattr(os, name)) for name, call in names.items()},
        remove=layer.around("unlink", os.remove),
        fdopen=layer.fdopen,
    ), mock.patch.object(sqlite3, "connect", layer.connect(sqlite3.connect)):  # fmt: skip
        yield layer


def killed(point, action):
    """How a child ends that does an action and is ended at a point: KILLED there, 0 after all of it, else 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of other libraries, which the child does not use
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with injected(point):
                action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Layer:
    """What stands between an action and the system: it counts calls, and one of them goes wrong."""

    def __init__(self, point):
        self.point = point
        self.counts = Counter()
        self.trace = []
        self.spent = False

    def strikes(self, call):
        """Count a call; the point where this call is the one."""
        number, self.counts[call] = self.counts[call], self.counts[call] + 1
        self.trace.append((call, number))
        point = self.point
        if self.spent or point is None or (point.call, point.number) != (call, number):
            return None
        self.spent = True
        return point

    def around(self, call, function):
        """The function, with what may go wrong before or after it."""

        def faulty(*arguments, **options):
            point = self.strikes(call)
            if point is not None and not point.after:
                go_wrong(point)
            outcome = function(*arguments, **options)
            if point is not None:
                go_wrong(point)
            return outcome

        return faulty

    def fdopen(self, handle, mode="r", *arguments, **options):
        """A file of a handle; what is written to it goes through the layer."""
        if "w" not in mode:
            return open(handle, mode, *arguments, **options)
        assert mode == "wb"
        return io.BufferedWriter(_Raw(handle, self))

    def connect(self, function):
        """Connections whose commits may be the end."""
        layer = self

        class Connection(sqlite3.Connection):
            def execute(self, statement, *arguments):
                run = super().execute
                is_commit = statement.strip().lower().startswith(("commit", "end"))
                return layer.around("commit", run)(statement, *arguments) if is_commit else run(statement, *arguments)

            def commit(self):
                layer.around("commit", super().commit)()

            def __exit__(self, *reason):
                leave = super().__exit__
                return layer.around("commit", leave)(*reason) if reason[0] is None else leave(*reason)

        return lambda *arguments, **options: function(*arguments, **{"factory": Connection, **options})


class _Raw(io.FileIO):
    """A file whose writes may go wrong."""

    def __init__(self, handle, layer):
        super().__init__(handle, "wb")
        self.layer = layer

    def write(self, content):
        point = self.layer.strikes("write")
        if point is None:
            return super().write(content)
        if point.kind == "short":
            return super().write(memoryview(content)[: max(1, len(content) // 2)])
        if point.after:
            super().write(content)
        elif point.kind == "kill":  # a process may also be ended in the middle of a write
            super().write(memoryview(content)[: len(content) // 2])
        go_wrong(point)
        raise AssertionError(point)


def go_wrong(point):
    """End the process at once, or raise the error of the point."""
    if point.kind == "kill":
        os._exit(KILLED)
    code = getattr(errno, point.kind)
    raise OSError(code, os.strerror(code))
