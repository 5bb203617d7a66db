"""Store: a folder of finished cells, so that a long run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import write_text
from calibrant.simulate.named import to_json


@dataclass(frozen=True)
class FinishedCells:
    """One JSON file a cell, named after what the cell is; written beside and renamed, so none is ever half there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FinishedCells(folder)
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
            document = json.loads(text)
            known, finding = document["cell"], document["found"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise CalibrationInputError(
                str(path), "must be a finished cell", got="other content", hint="delete it, and it is made again"
            ) from None
        return finding if known == json.loads(to_json(cell)) else None

    def write(self, cell: dict[str, Any], finding: dict[str, Any]) -> None:
        """Keep what was found for a cell."""
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, to_json({"cell": cell, "found": finding}))

    def _path(self, cell: dict[str, Any]) -> Path:
        canonical = json.dumps(json.loads(to_json(cell)), sort_keys=True)
        return Path(self.folder) / f"{hashlib.sha256(canonical.encode()).hexdigest()[:24]}.json"
