"""The store of a watch: one file with rows that wait for labels, states of closed windows, and a log.

It is one of SQLite, or of DuckDB where its name ends in .duckdb. Every change is one transaction: a process that is
killed leaves all of it, or nothing. Two processes at once wait for each other. Nothing that is written depends on a
clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running.sealed_database import Connection, DamagedStoreError, SealedDatabase, SQLite
from calibrant.watch.duckdb_engine import DuckDB

_TABLES = {
    "settings": "name text primary key, document text not null, seal text not null",
    "windows": "place integer primary key, name text not null, state blob not null, seal text not null",
    "log": "line integer primary key, what text not null, window_name text not null, document text not null, "
    "seal text not null",
    "nodes": "level integer, place integer, state blob not null, seal text not null, primary key (level, place)",
    "files": "digest text primary key, seal text not null",
    "predictions": "id text primary key, window_name text not null, ends double, forecast blob not null, "
    "part text not null",
    "labels": "id text primary key, label text not null, closed integer not null",
    "late": "window_name text primary key",
    "latest": "name text primary key, moment double not null",
}
"""Rows on their way (the last four tables) are many and are not kept; they carry no checksum."""
_SCHEMA = {name: f"create table if not exists {name} ({columns})" for name, columns in _TABLES.items()}
_KEYS = {
    "settings": ("name",), "windows": ("place",), "log": ("line",), "nodes": ("level", "place"), "files": ("digest",),
}  # fmt: skip
_INDEX = "create index if not exists by_window on predictions (window_name)"


@final
@dataclass(frozen=True)
class LogLine:
    """A line of the log: what happened (close, correction, forget, restart), to which window, and what came of it."""

    what: str
    window: str
    document: Mapping[str, Any]


@final
class WatchStore:
    """The tables of a watch, and what may happen to them, each within a transaction of the caller."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        engine = DuckDB(self.path) if self.path.suffix.lower() == ".duckdb" else SQLite()
        self.database = SealedDatabase(self.path, {**_SCHEMA, "by_window": _INDEX}, _KEYS, engine)

    def is_complete(self) -> bool:
        """Whether there is such a store, with its settings; a database of something else is refused."""
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with self.reading() as connection:
            names = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
            tables = {name for (name,) in names}
            if tables - {*_TABLES, "tallies"}:
                raise CalibrationInputError(str(self.path), "must be the store of a watch", got="another database")
            return "settings" in tables and self.setting(connection, "watch") is not None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, made alone."""
        with self._undamaged(), self.database.writing() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A moment of the store, to be read."""
        with self._undamaged(), self.database.reading() as connection:
            yield connection

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Damage is told with what to do about it."""
        try:
            yield
        except DamagedStoreError as error:
            hint = "put back a copy that is whole, or begin another store"
            raise CalibrationInputError(str(self.path), error.expected, got=error.got, hint=hint) from None

    def create(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Make the tables and write settings; once the store has taken something, others than its own are refused."""
        self.database.create()
        with self.writing() as connection:
            is_fixed = not self.is_empty(connection)
            for name, document in settings.items():
                known = self.setting(connection, name)
                if known is None or not is_fixed:
                    self.set(connection, name, document)
                elif known != json.loads(json.dumps(document)):
                    different = next(key for key in document if known.get(key) != document[key])
                    expected = f"{different} = {known.get(different)!r} of {self.path} cannot be changed"
                    hint = "begin another store"
                    raise CalibrationInputError("settings", expected, got=repr(document[different]), hint=hint)

    def is_empty(self, connection: Connection) -> bool:
        """Whether nothing was taken yet: no file, and no window."""
        counts = (connection.execute(f"select count(*) from {table}").fetchone() for table in ("files", "log"))
        return not any(count for (count,) in counts)

    def setting(self, connection: Connection, name: str) -> dict[str, Any] | None:
        """What was set under a name; None where nothing was."""
        records = self.database.rows(connection, "settings", name=name)
        return json.loads(records[0]["document"]) if records else None

    def set(self, connection: Connection, name: str, document: Mapping[str, Any]) -> None:
        """Set what a name stands for."""
        self.database.put(connection, "settings", {"name": name, "document": json.dumps(document)})

    def is_known(self, connection: Connection, digest: str) -> bool:
        """Whether a file of this content was read."""
        return bool(self.database.rows(connection, "files", digest=digest))

    def know(self, connection: Connection, digest: str) -> None:
        """Remember that a file of this content was read."""
        self.database.put(connection, "files", {"digest": digest})

    def names(self, connection: Connection) -> list[str]:
        """The closed windows, in their order."""
        return [name for (name,) in connection.execute("select name from windows order by place").fetchall()]

    def state(self, connection: Connection, place: int) -> bytes:
        """The state of a closed window."""
        return bytes(self.database.rows(connection, "windows", place=place)[0]["state"])

    def node(self, connection: Connection, level: int, place: int) -> bytes:
        """The state of 2^level windows, the place-th of them."""
        if level == 0:
            return self.state(connection, place)
        return bytes(self.database.rows(connection, "nodes", level=level, place=place)[0]["state"])

    def put_node(self, connection: Connection, level: int, place: int, state: bytes) -> None:
        """Keep the state of 2^level windows."""
        self.database.put(connection, "nodes", {"level": level, "place": place, "state": state})

    def put_window(self, connection: Connection, place: int, name: str, state: bytes) -> None:
        """Keep the state of a window."""
        self.database.put(connection, "windows", {"place": place, "name": name, "state": state})

    def log(self, connection: Connection) -> list[LogLine]:
        """All lines, in their order."""
        records = sorted(self.database.rows(connection, "log"), key=lambda record: record["line"])
        return [LogLine(each["what"], each["window_name"], json.loads(each["document"])) for each in records]

    def write(self, connection: Connection, line: LogLine) -> None:
        """Append a line."""
        (last,) = connection.execute("select coalesce(max(line), -1) from log").fetchone()
        document = json.dumps(line.document, allow_nan=False, sort_keys=True)
        record = {"line": last + 1, "what": line.what, "window_name": line.window, "document": document}
        self.database.put(connection, "log", record)
