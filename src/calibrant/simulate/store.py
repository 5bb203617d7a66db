"""Store: a folder of finished cells, so that a long run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.exceptions import CalibrationInputError
from calibrant.simulate.text import to_json


@dataclass(frozen=True)
class Store:
    """One JSON file a cell, named after what the cell is; written beside and renamed, so none is ever half there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.write({"n": 200}, {"mean": 0.1})
    ...     store.read({"n": 200}), store.read({"n": 400})
    ({'mean': 0.1}, None)
    """

    folder: str | Path

    def read(self, cell: dict[str, Any]) -> Any:
        """What was found for a cell, or None where it is not done."""
        path = self._path(cell)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            made = json.loads(text)
            known, found = made["cell"], made["found"]
        except (ValueError, KeyError, TypeError):
            raise CalibrationInputError(
                str(path), "must be a finished cell", got="other content", hint="delete it, and it is made again"
            ) from None
        return found if known == json.loads(to_json(cell)) else None

    def write(self, cell: dict[str, Any], found: dict[str, Any]) -> None:
        """Keep what was found for a cell."""
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with beside.open("w", encoding="utf-8") as file:
            file.write(to_json({"cell": cell, "found": found}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)

    def _path(self, cell: dict[str, Any]) -> Path:
        canonical = json.dumps(json.loads(to_json(cell)), sort_keys=True)
        return Path(self.folder) / f"{hashlib.sha256(canonical.encode()).hexdigest()[:24]}.json"
