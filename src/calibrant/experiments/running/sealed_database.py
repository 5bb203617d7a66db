"""The sealed database: tables whose rows carry a checksum each, so that damage is not taken for a number.

A tally of each table, its number of rows and what their checksums come to together, tells when a row is lost. Tables
that version 0.1 wrote have neither; they are read as they are, and sealed when they are written to.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, final

from calibrant.door.streams import require_name
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property

PATIENCE = 30.0
"""Seconds that a process waits for another one's transaction."""
Record = dict[str, Any]
"""A row: its values by the names of their columns."""
_TALLIES = "create table if not exists tallies (name text primary key, rows integer not null, total text not null)"
_TROUBLE = {
    "SQLITE_BUSY": errno.EBUSY, "SQLITE_LOCKED": errno.EBUSY, "SQLITE_FULL": errno.ENOSPC, "SQLITE_IOERR": errno.EIO,
    "SQLITE_READONLY": errno.EROFS, "SQLITE_CANTOPEN": errno.EACCES, "SQLITE_NOMEM": errno.ENOMEM,
}  # fmt: skip
"""What may befall a database that is whole, as the system calls it."""


class DamagedStoreError(CalibrationInputError):
    """A database, or a row of it, that is not as it was written."""

    def __init__(self, path: Path, got: str) -> None:
        hint = "calibrant experiment resume sets it aside and keeps what is whole"
        super().__init__(str(path), "must be as it was written", got=got, hint=hint)


class Connection(Protocol):
    """What is asked of a connection to a database, as `sqlite3` has it."""

    def execute(self, statement: str, values: Any = ..., /) -> Any:
        """The rows that a statement gives: a cursor, of which a traceback would keep the lock while it is open."""

    def executemany(self, statement: str, values: Any, /) -> Any:
        """A statement, once for each row of values."""

    def close(self) -> None:
        """End it."""

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to take back."""


class Engine(Protocol):
    """What keeps tables in a file: how it is reached, and what it may say."""

    @property
    def beginning(self) -> str:
        """The statement that begins a transaction which writes."""

    @property
    def beside(self) -> str:
        """The ending of the file beside the database that holds what was written last."""

    @property
    def prepared(self) -> Sequence[str]:
        """The statements by which a new file is prepared."""

    @property
    def overwriting(self) -> Sequence[str]:
        """The statements after which a connection overwrites what it deletes, where the engine can."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What it raises."""

    def connect(self, path: Path) -> Connection:
        """A connection to a file, which is made where it is not there."""

    def trouble(self, error: Exception) -> int | None:
        """The system's number of what befell a database that is whole; None where it is damaged."""


@final
class SQLite:
    """The engine that Python brings with it."""

    beginning, beside, errors = "begin immediate", "-wal", (sqlite3.Error,)
    prepared = ("pragma journal_mode = wal",)
    overwriting = ("pragma secure_delete = on",)

    def connect(self, path: Path) -> sqlite3.Connection:
        """A connection whose commits are on the disk."""
        database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            database.execute("pragma synchronous = full")
        except BaseException:
            database.close()
            raise
        return database

    def trouble(self, error: Exception) -> int | None:
        """What the system calls it; None where the file is damaged."""
        return _TROUBLE.get("_".join((getattr(error, "sqlite_errorname", None) or "").split("_")[:2]))


class SealedDatabase:
    """Tables by name, each with the columns that are its key."""

    def __init__(
        self,
        path: Path,
        schema: Mapping[str, str],
        keys: Mapping[str, tuple[str, ...]],
        engine: Engine | None = None,
    ) -> None:
        require_name(path)
        self.path, self.schema, self.keys = path, schema, keys
        self.engine: Engine = SQLite() if engine is None else engine
        self._is_sealed = False

    @cached_property
    def _columns(self) -> dict[str, set[str]]:
        """The names of the columns of each table."""
        with closing(sqlite3.connect(":memory:")) as database:
            for statement in self.schema.values():
                database.execute(statement)
            return {
                table: {column[1] for column in database.execute(f"pragma table_info({table})")} for table in self.keys
            }

    @property
    def is_writable(self) -> bool:
        """Whether this place can be written to."""
        return os.access(self.path.parent, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))

    def create(self) -> None:
        """Make the tables that are missing; where another process is just doing so, wait for it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._connected(self.path) as database:
                    for statement in self.engine.prepared:
                        database.execute(statement)
                with self.writing():
                    return
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that reads; of a place that cannot be written to, it reads a copy."""
        if self.is_writable:
            with self._connected(self.path) as database:
                database.execute("begin")  # rows and tallies of one moment
                yield database
            return
        with tempfile.TemporaryDirectory() as folder:  # to read, an engine would write a file beside the database
            for name in (self.path.name, f"{self.path.name}{self.engine.beside}"):
                if (self.path.parent / name).exists():
                    shutil.copyfile(self.path.parent / name, Path(folder, name))
            with self._connected(Path(folder, self.path.name)) as database:
                yield database

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: all of it, or nothing."""
        with self._connected(self.path) as database:
            try:
                database.execute(self.engine.beginning)
                if not self._is_sealed:
                    self._seal(database)
                yield database
                database.execute("commit")
                self._is_sealed = True
            except BaseException:
                if database.in_transaction:
                    database.execute("rollback")
                raise

    def rows(self, database: Connection, table: str, **asked: Any) -> list[Record]:
        """The rows of a table that have these values; a damaged one is refused, and so is a table that lost some."""
        where = f"where {' and '.join(f'{name} = ?' for name in asked)}" if asked else ""
        with closing(database.execute(f"select * from {table} {where}", tuple(asked.values()))) as cursor:
            names = [column[0] for column in cursor.description]
            records = [dict(zip(names, row, strict=True)) for row in cursor]
        if "seal" not in names:
            return records
        if set(names) != self._columns[table]:
            raise DamagedStoreError(self.path, f"damaged columns of {table}")
        if not asked:
            self._require_tally(database, table, [record["seal"] for record in records])
        for record in records:
            others = [name for name in asked if record[name] != asked[name]]  # a damaged index leads to other rows
            if record.pop("seal") != _checksum(table, record) or others:
                raise DamagedStoreError(self.path, f"a damaged row of {table}")
        return records

    def put(self, database: Connection, table: str, record: Record) -> None:
        """Write a row, in the place of the one that has its key."""
        keys = self.keys[table]
        where = " and ".join(f"{name} = ?" for name in keys)
        values = [record[name] for name in keys]
        before = database.execute(f"select seal from {table} where {where}", values).fetchall()
        sealed = {**record, "seal": _checksum(table, record)}
        names = ", ".join(sealed)
        database.execute(
            f"insert or replace into {table} ({names}) values ({', '.join('?' * len(sealed))})", list(sealed.values())
        )
        self._count(database, table, [seal for (seal,) in before], [sealed["seal"]])

    def remove(self, database: Connection, table: str, where: str, values: Sequence[Any]) -> None:
        """Take the rows of a table that fulfil a condition out of it."""
        seals = database.execute(f"select seal from {table} where {where}", tuple(values)).fetchall()
        database.execute(f"delete from {table} where {where}", tuple(values))
        self._count(database, table, [seal for (seal,) in seals], [])

    def is_whole(self) -> bool:
        """Whether every page, row and tally is as it was written."""
        try:
            with self.reading() as database:
                fault = database.execute("pragma integrity_check(1)").fetchone()
                for table in self.keys:
                    self.rows(database, table)
            return fault == ("ok",)
        except DamagedStoreError:
            return False

    def set_aside(self) -> Path:
        """Give a damaged database another name, under which it is kept; that name."""
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self.path.rename(aside)
        return aside

    def _seal(self, database: Connection) -> None:
        """Make what is missing; rows of version 0.1 get the columns of this one, and a seal."""
        for statement in (*self.schema.values(), _TALLIES):
            database.execute(statement)
        for table in self.keys:
            names = {column[1] for column in database.execute(f"pragma table_info({table})").fetchall()}
            if "seal" not in names:
                records = self.rows(database, table)
                database.execute(f"drop table {table}")
                database.execute(self.schema[table])
                for record in records:
                    self.put(database, table, record)

    def _count(self, database: Connection, table: str, gone: list[str], come: list[str]) -> None:
        rows, total = self._tally(database, table)
        total ^= _together([*gone, *come])
        tally = (table, rows + len(come) - len(gone), f"{total:x}")
        database.execute("insert or replace into tallies values (?, ?, ?)", tally)

    def _require_tally(self, database: Connection, table: str, seals: list[Any]) -> None:
        if self._tally(database, table) != (len(seals), _together(seals)):
            raise DamagedStoreError(self.path, f"{len(seals)} rows of {table} that are not those written")

    def _tally(self, database: Connection, table: str) -> tuple[int, int]:
        tally = database.execute("select rows, total from tallies where name = ?", (table,)).fetchone()
        try:
            return (0, 0) if tally is None else (int(tally[0]), int(tally[1], 16))
        except (TypeError, ValueError, OverflowError):
            raise DamagedStoreError(self.path, f"a damaged tally of {table}") from None

    @contextmanager
    def _connected(self, path: Path) -> Iterator[Connection]:
        """A connection; what the engine refuses is the trouble of the system, or damage."""
        database: Connection | None = None
        try:
            database = self.engine.connect(path)
            yield database
        except self.engine.errors as reason:
            number = self.engine.trouble(reason)
            if number is not None and not (number == errno.EROFS and self.is_writable):
                raise OSError(number, str(reason), str(self.path)) from reason
            raise DamagedStoreError(self.path, str(reason)) from reason
        except UnicodeDecodeError as reason:  # what SQLite wanted to say of damaged text
            raise DamagedStoreError(self.path, str(reason)) from reason
        finally:
            if database is not None:
                database.close()


def _checksum(table: str, record: Mapping[str, Any]) -> str:
    """The SHA-256 of a row, whatever the order of its columns; 1 and 1.0 are alike, for a column makes them so."""
    numbers = {name: float(value) for name, value in record.items() if isinstance(value, (int, float))}
    values = sorted((name, value) for name, value in {**record, **numbers}.items() if value is not None)
    return hashlib.sha256(repr((table, values)).encode("utf-8", "surrogatepass")).hexdigest()


def _together(seals: Sequence[Any]) -> int:
    """Checksums as one number, whatever their order; the same one twice is as if it were not there."""
    total = 0
    for seal in seals:
        total ^= int.from_bytes(hashlib.sha256(repr(seal).encode("utf-8", "surrogatepass")).digest(), "big")
    return total
