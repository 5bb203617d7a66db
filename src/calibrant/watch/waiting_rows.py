"""Waiting rows: predictions that wait for their labels in the store of a watch, until their window is closed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running.sealed_database import Connection
from calibrant.predictions import Predictions
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.watch.joining import ForecastRows, Joining, OpenWindow, joined
from calibrant.watch.watch_store import WatchStore

_CONFLICT = """
select a.id from arriving a join predictions p on a.id = p.id
where a.window_name != p.window_name or a.forecast != p.forecast or a.part != p.part limit 1
"""
_LATE_ROWS = """
insert or ignore into late select distinct a.window_name from arriving a join windows w on a.window_name = w.name
where a.id not in (select id from predictions)
"""
_LATE_LABELS = """
insert or ignore into late select distinct p.window_name from arriving a join predictions p on a.id = p.id
join windows w on p.window_name = w.name left join labels l on a.id = l.id where l.label is null or l.label != a.label
"""
_OPEN = """
select p.window_name, max(p.ends), count(*), count(l.id), min(p.rowid)
from predictions p left join labels l on p.id = l.id
where p.window_name not in (select name from windows) group by p.window_name
"""


@final
@dataclass(frozen=True)
class WaitingRows:
    """Rows in a transaction of a store, by the rules by which they are joined."""

    store: WatchStore
    connection: Connection
    joining: Joining

    def add_forecasts(self, rows: ForecastRows, source: str) -> None:
        """Add predictions: an equal one that is there already is ignored, another one of its id is refused."""
        scores = self._like_others(rows, source)
        name = rows.names[0] if rows.names else 0
        joined([name] * len(scores), scores, rows.logits, rows.names, None, (), source)  # refuses what is no forecast
        blobs = [score.tobytes() for score in scores]
        ends = [None if math.isnan(end) else end for end in rows.ends]
        parts = zip(rows.ids, rows.windows, ends, blobs, rows.groups, strict=True)
        self._arrive("id text primary key, window_name text, ends double, forecast blob, part text", parts)
        kept = self._kept()
        self.connection.execute(
            "delete from arriving where window_name in (select name from windows where place < ?)", (kept,)
        )  # too late: their window is closed, and its rows are gone
        for (conflict,) in self.connection.execute(_CONFLICT):
            expected, hint = "must not predict a row again, differently", "ids must differ in all files"
            raise CalibrationInputError(source, expected, got=f"id {conflict!r}", hint=hint)
        self.connection.execute(_LATE_ROWS)
        self.connection.execute("insert or ignore into predictions select * from arriving")
        self.connection.execute("drop table arriving")
        known = self._latest()
        if math.isfinite(rows.latest) and not known >= rows.latest:
            self.connection.execute("insert or replace into latest values ('moment', ?)", (rows.latest,))

    def add_labels(self, ids: Sequence[str], labels: Sequence[Any]) -> None:
        """Add labels, or put them in the place of those that their rows have."""
        each = dict(zip(ids, labels, strict=True))  # of several labels, the last one
        self._arrive("id text primary key, label text", ((name, json.dumps(label)) for name, label in each.items()))
        self.connection.execute(_LATE_LABELS)
        (closed,) = self.connection.execute("select count(*) from windows").fetchone()
        self.connection.execute("insert or replace into labels select id, label, ? from arriving", (closed,))
        self.connection.execute("drop table arriving")

    def due(self) -> str | None:
        """The first window that is to be closed."""
        records = sorted(self.connection.execute(_OPEN), key=lambda each: each[0] if each[1] is not None else each[4])
        latest = self._latest()
        for place, (name, end, rows, labelled, _) in enumerate(records):
            window = OpenWindow(name, math.nan if end is None else end, rows, labelled)
            if self.joining.is_due(window, latest, newest=place == len(records) - 1):
                return str(name)
        return None

    def late(self) -> str | None:
        """The first closed window for which something has arrived."""
        late = self.connection.execute("select min(window_name) from late").fetchone()[0]
        if late is not None:
            self.connection.execute("delete from late where window_name = ?", (late,))
        return None if late is None else str(late)

    def predictions(self, window: str) -> Predictions:
        """The rows of a window that have a label, joined."""
        query = (
            "select p.forecast, p.part, l.label from predictions p left join labels l on p.id = l.id "
            "where p.window_name = ? order by p.id"
        )
        records = [
            (forecast, part, self.joining.unlabelled if label is None else json.loads(label))
            for forecast, part, label in self.connection.execute(query, (window,)).fetchall()
            if label is not None or self.joining.unlabelled is not None
        ]
        known = self.store.setting(self.connection, "forecasts")
        assert known is not None  # rows have arrived
        scores = np.frombuffer(b"".join(forecast for forecast, _, _ in records), known["dtype"])
        if known["width"]:
            scores = scores.reshape(-1, known["width"])
        labels, groups = [label for _, _, label in records], [part for _, part, _ in records]
        where = f"window {window}"
        predictions = joined(labels, scores, known["logits"], known["names"], self.joining.by, groups, where)
        return (
            predictions
            if self.joining.map is None
            else Recalibrator.from_json(self.joining.map).recalibrate(predictions)
        )

    def drop_old(self) -> None:
        """Delete the rows of windows that were closed long ago, and labels that came so long ago and have no row."""
        for statement in self.store.database.engine.overwriting:
            self.connection.execute(statement)
        kept = self._kept()
        gone = "select id from predictions where window_name in (select name from windows where place < ?)"
        self.connection.execute(f"delete from labels where id in ({gone})", (kept,))
        self.connection.execute(
            "delete from predictions where window_name in (select name from windows where place < ?)", (kept,)
        )
        self.connection.execute(
            "delete from labels where closed < ? and id not in (select id from predictions)", (kept,)
        )

    def _latest(self) -> float:
        """The time of the latest prediction; nan before there is one."""
        latest = self.connection.execute("select moment from latest").fetchone()
        return latest[0] if latest else math.nan

    def _kept(self) -> int:
        """The place of the first closed window whose rows are kept."""
        (closed,) = self.connection.execute("select count(*) from windows").fetchone()
        return int(closed) - self.joining.keep

    def _arrive(self, columns: str, rows: Any) -> None:
        """Put rows in a table of their own."""
        self.connection.execute("drop table if exists temp.arriving")
        self.connection.execute(f"create temp table arriving ({columns})")
        places = ", ".join("?" * (columns.count(",") + 1))
        self.connection.executemany(f"insert into arriving values ({places})", rows)

    def _like_others(self, rows: ForecastRows, source: str) -> Any:
        """Forecasts in the type of those that came before; refused where they are of other classes or another kind."""
        scores = np.ascontiguousarray(rows.scores, np.float64 if rows.scores.dtype.kind != "f" else None)
        width = scores.shape[1] if scores.ndim == 2 else 0
        names = None if rows.names is None else list(rows.names)
        document = {"dtype": scores.dtype.str, "width": width, "logits": rows.logits, "names": names}
        known = self.store.setting(self.connection, "forecasts")
        if known is None:
            self.store.set(self.connection, "forecasts", document)
            known = document
        for key, words in (("width", "number of classes"), ("logits", "logits or probabilities"), ("names", "classes")):
            if known[key] != document[key]:
                expected = f"must have forecasts as those before: {words} {known[key]}"
                raise CalibrationInputError(source, expected, got=str(document[key]))
        converted = scores.astype(known["dtype"])
        if not np.array_equal(converted, scores, equal_nan=True):
            raise CalibrationInputError(source, f"must have forecasts as {known['dtype']}", got=scores.dtype.str)
        return converted
