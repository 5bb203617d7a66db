"""Watching: the verbs of a watch, from files that arrive to the evidence of closed windows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import final

from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.running.sealed_database import Connection
from calibrant.scale import State
from calibrant.watch.closed_windows import ClosedWindow, Memories, WatchSettings, watch_state
from calibrant.watch.joining import Joining, forecast_rows, label_rows
from calibrant.watch.looks import Look, look
from calibrant.watch.refitting import Repair, repair, repair_windows
from calibrant.watch.time_tree import above, completed, covering
from calibrant.watch.waiting_rows import WaitingRows
from calibrant.watch.watch_store import LogLine, WatchStore


@final
class Watch:
    """A model in use: its windows, the evidence against its calibration, and an alarm that stays valid at every look.

    A store that is not there is made, by these settings; one that has taken something keeps its own. Files of
    predictions and labels are read with `joining`; without it, windows come as states (`append`).

    >>> import pathlib, tempfile, numpy as np, calibrant as cal
    >>> folder, rng = tempfile.TemporaryDirectory(), np.random.default_rng(0)
    >>> watch = Watch(pathlib.Path(folder.name, "model.watch"))
    >>> for day in range(30):
    ...     p = rng.random(300)
    ...     happened = rng.random(300) < (p if day < 20 else p**2)
    ...     watch.append(f"day {day}", cal.watch.watch_state(cal.Predictions.from_probs(happened, p)))
    >>> evidence = watch.look()
    >>> evidence.windows[evidence.alarm].name, evidence.windows[evidence.since].name
    ('day 22', 'day 20')
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, settings: WatchSettings | None = None, joining: Joining | None = None) -> None:
        self.store = WatchStore(path)
        documents = {"watch": settings, "joining": joining}
        wanted = {name: asdict(each) for name, each in documents.items() if each is not None}
        if not self.store.is_complete():
            wanted = {"watch": asdict(WatchSettings()), **wanted}
        if wanted:
            self.store.create(wanted)
        with self.store.reading() as connection:
            known, rules = (self.store.setting(connection, name) for name in documents)
        assert known is not None
        self.settings = WatchSettings(**known)
        self.joining = None if rules is None else Joining(**rules)
        self._lines: list[LogLine] = []
        self._memories = Memories()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was taken yet, so that the settings may still be others."""
        with self.store.reading() as connection:
            return self.store.is_empty(connection)

    def read_predictions(self, path: str | Path) -> bool:
        """Take the predictions of a file; whether its content is new. What is refused leaves nothing behind."""

        def read(rows: WaitingRows) -> None:
            rows.add_forecasts(forecast_rows(path, rows.joining), str(path))

        return self._read(path, "predictions", read)

    def read_labels(self, path: str | Path) -> bool:
        """Take the labels of a file, by id; whether its content is new. Of several labels of a row, the last counts."""

        def read(rows: WaitingRows) -> None:
            rows.add_labels(*label_rows(path, rows.joining))

        return self._read(path, "labels", read)

    def close(self) -> list[LogLine]:
        """Close the windows that are due, and correct those for which something came late; the lines of the log.

        Rows without a label are left out of their window.
        """
        lines: list[LogLine] = []
        while self._advance(lines):
            pass
        return lines

    def append(self, name: str, state: State) -> None:
        """Close a window that was counted elsewhere. The same again is ignored; another state of it is a correction."""
        with self.store.writing() as connection:
            line = self._put(connection, name, state)
        if line is not None:
            self._know(line)

    def look(self) -> Look:
        """The evidence now, of the windows since the last restart."""
        with self.store.reading() as connection:
            self._refresh(connection)
        recent = self._recent()
        windows = [ClosedWindow.from_dict(line.document) for line in recent if line.what == "close"]
        places = {window.name: place for place, window in enumerate(windows)}
        corrections = {
            places[line.window]: ClosedWindow.from_dict(line.document)
            for line in recent
            if line.what == "correction" and line.window in places
        }
        return look(windows, self.settings, corrections)

    def log(self) -> list[LogLine]:
        """All that happened, in its order."""
        with self.store.reading() as connection:
            return self.store.log(connection)

    def state(self, first: str | None = None, last: str | None = None) -> State:
        """The state of the windows from the first to the last, both included; a few additions give it."""
        with self.store.reading() as connection:
            names = self.store.names(connection)
            start = 0 if first is None else self._place(names, first)
            stop = len(names) if last is None else self._place(names, last) + 1
            blobs = [self.store.node(connection, *node) for node in covering(start, stop)]
        states = [State.from_bytes(blob) for blob in blobs if blob]
        if not states:
            raise CalibrationInputError("windows", "must hold at least one that was not forgotten", got="none")
        return sum(states[1:], states[0])

    def repair(self) -> Repair | None:
        """A map fitted to the windows from the change to the alarm, judged on those after it; None before there are."""
        windows = repair_windows(self.look())
        if windows is None:
            return None
        fitted_to, later = (self.state(*each) for each in windows)
        return repair(fitted_to, later, self.settings.level)

    def forget(self, name: str) -> None:
        """Delete the counts of a window, also from all sums that hold them.

        The log keeps its name, the number of its rows and outcomes, the sum of its forecasts, and what bets learnt from
        it and were paid on it, of each class and group.
        """
        with self.store.writing() as connection:
            names = self.store.names(connection)
            place = self._place(names, name)
            blob = self.store.state(connection, place)
            if not blob:
                return
            self._move(connection, place, len(names), lambda state: state - State.from_bytes(blob))
            self.store.put_window(connection, place, name, b"")
            self.store.write(connection, LogLine("forget", name, {}))

    def restart(self) -> None:
        """Begin anew, as after a change of the model: earlier windows count no more. Each restart has its own level."""
        with self.store.writing() as connection:
            self.store.write(connection, LogLine("restart", "", {}))

    def _read(self, path: str | Path, kind: str, read: Callable[[WaitingRows], None]) -> bool:
        if self.joining is None:
            hint = "make the store with joining=Joining(...), or append states"
            raise CalibrationInputError("joining", "must say how rows are joined", got="none", hint=hint)
        status = os.stat(path)
        mark = f"{kind} {os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"
        with self.store.reading() as connection:
            if self.store.is_known(connection, mark):  # so that it need not be read to be known
                return False
        with InputFile.of(path).open() as file:
            digest = f"{kind} {hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]
        with self.store.writing() as connection:
            is_new = not self.store.is_known(connection, digest)
            if is_new:
                read(WaitingRows(self.store, connection, self.joining))
            for name in (mark, digest):
                self.store.know(connection, name)
        return is_new

    def _advance(self, lines: list[LogLine]) -> bool:
        """Correct or close one window, in a transaction of its own, and add its line; False where none is due."""
        if self.joining is None:
            return False
        with self.store.writing() as connection:
            rows = WaitingRows(self.store, connection, self.joining)
            name = rows.late() or rows.due()
            if name is None:
                rows.drop_old()
                return False
            state = watch_state(rows.predictions(name), self.joining.by, classes=self.joining.classes)
            line = self._put(connection, name, state)
        if line is not None:
            self._know(line)
            lines.append(line)
        return True

    def _put(self, connection: Connection, name: str, state: State) -> LogLine | None:
        """A window, or a correction of it, in the store and in the log; None where it is as it was."""
        if not state.n:
            raise CalibrationInputError("state", "must have a row at least", got="none", where=f"window {name}")
        self._refresh(connection)
        names, data = self.store.names(connection), state.to_bytes()
        is_new = name not in names
        place = len(names) if is_new else names.index(name)
        before = b"" if is_new else self.store.state(connection, place)
        if before == data or (not is_new and not before):  # the same again, or forgotten
            return None
        if is_new and names and (first := self.store.state(connection, 0)):
            _ = State.from_bytes(first) + state  # refuses a state of other metrics
        earlier = self._memories if is_new else self._memories_before(name)
        window = ClosedWindow.of(name, state, earlier, self.settings)
        self.store.put_window(connection, place, name, data)
        if is_new:
            for level, node in completed(place):
                halves = [self.store.node(connection, level - 1, 2 * node + half) for half in (0, 1)]
                states = [State.from_bytes(blob) for blob in halves if blob]
                self.store.put_node(connection, level, node, sum(states[1:], states[0]).to_bytes() if states else b"")
        else:
            old = State.from_bytes(before)
            self._move(connection, place, len(names), lambda total: total - old + state)
        line = LogLine("close" if is_new else "correction", name, window.to_dict())
        self.store.write(connection, line)
        return line

    def _move(self, connection: Connection, place: int, windows: int, change: Callable[[State], State]) -> None:
        """Change all sums that hold a window."""
        for node in above(place, windows):
            total = change(State.from_bytes(self.store.node(connection, *node)))
            self.store.put_node(connection, *node, total.to_bytes() if total.n else b"")

    def _refresh(self, connection: Connection) -> None:
        """Know the log as it is now, and what the next bets are learnt from."""
        (count,) = connection.execute("select count(*) from log").fetchone()
        if count != len(self._lines):
            for line in self.store.log(connection)[len(self._lines) :]:
                self._know(line)

    def _know(self, line: LogLine) -> None:
        """Know another line, once it is written."""
        self._lines.append(line)
        if line.what == "restart":
            self._memories = Memories()
        elif line.what == "close":
            self._memories = self._memories.after(ClosedWindow.from_dict(line.document))

    def _recent(self) -> list[LogLine]:
        """The lines since the last restart."""
        restarts = [place for place, line in enumerate(self._lines) if line.what == "restart"]
        return self._lines[restarts[-1] + 1 if restarts else 0 :]

    def _memories_before(self, name: str) -> Memories:
        """What the bets on a window were learnt from; the first lines of the log are those that were bet on."""
        memories = Memories()
        for line in self._lines:
            if line.what == "restart":
                memories = Memories()
            elif line.what == "close":
                if line.window == name:
                    break
                memories = memories.after(ClosedWindow.from_dict(line.document))
        return memories

    @staticmethod
    def _place(names: list[str], name: str) -> int:
        if name not in names:
            raise CalibrationInputError("window", "must be a closed window", got=repr(name), hint=nearest(name, names))
        return names.index(name)
