"""DuckDB: the engine of a store whose name ends in .duckdb, so that its windows and log can be queried there."""

from __future__ import annotations

import errno
import importlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running.sealed_database import PATIENCE

_TROUBLE = {"lock": errno.EBUSY, "space": errno.ENOSPC, "read-only": errno.EROFS, "Cannot open": errno.EACCES}
"""Words in what DuckDB says of the system, and the system's own numbers."""


@final
class FetchedRows:
    """The rows that a statement gave, all of them: DuckDB has one answer open at a time."""

    def __init__(self, description: Any, rows: Sequence[tuple[Any, ...]]) -> None:
        self.description, self.rows = description, rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """All rows."""
        return self.rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row; None where there is none."""
        return self.rows[0] if self.rows else None

    def close(self) -> None:
        """Nothing is open."""


@final
class DuckDBConnection:
    """A connection to DuckDB that answers as one to SQLite does; what is not committed is gone when it is closed."""

    in_transaction = False  # closing takes back what was begun

    def __init__(self, path: Path, engine: Any) -> None:
        self.inner = engine.connect(str(path), config={"threads": 1})

    def execute(self, statement: str, values: Sequence[Any] = ()) -> FetchedRows:
        """The answer to a statement."""
        answer = self.inner.execute(statement, list(values))
        return FetchedRows(answer.description, answer.fetchall())

    def executemany(self, statement: str, values: Any) -> None:
        """Insert rows, by a statement that ends in `values (?, ...)`: as columns, a row alone takes milliseconds."""
        columns = list(zip(*values, strict=True))
        if columns:
            head = statement[: statement.rindex("values")]
            self.inner.execute(head + "select " + ", ".join(["unnest(?)"] * len(columns)), [*map(list, columns)])

    def close(self) -> None:
        """End it."""
        self.inner.close()


@final
class DuckDB:
    """The engine of files of DuckDB; one process at a time has such a file, and others wait."""

    beginning, beside = "begin transaction", ".wal"
    prepared: Sequence[str] = ()
    overwriting: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        try:
            self._engine = importlib.import_module("duckdb")
        except ImportError:
            hint = "pip install 'calibrant[duckdb]', or give the store another ending"
            raise CalibrationInputError(str(path), "needs duckdb", got="none installed", hint=hint) from None
        self.errors: tuple[type[Exception], ...] = (self._engine.Error,)

    def connect(self, path: Path) -> DuckDBConnection:
        """A connection; while another process has one, wait."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return DuckDBConnection(path, self._engine)
            except self._engine.IOException as error:
                if self.trouble(error) != errno.EBUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def trouble(self, error: Exception) -> int | None:
        """What the system calls it; None where the file is damaged."""
        if not isinstance(error, self._engine.IOException):
            return None
        return next((number for words, number in _TROUBLE.items() if words in str(error)), None)
