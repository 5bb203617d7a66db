"""Progress: how far a study is, live in a terminal and in plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from calibrant.experiments.running.study_store import DONE, FAILED, RUNNING, Row, Store
from calibrant.text import inert


def display(store: Store) -> Lines | Bars:
    """What shows the progress of a store: bars where standard error is a terminal, else lines."""
    return Bars(store) if sys.stderr is not None and sys.stderr.isatty() else Lines(store)


class Lines:
    """A line for every trial that has ended since the last look."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.told = {row.trial.id for row in store.rows() if row.state in (DONE, FAILED)}

    def update(self) -> None:
        """Say what is new."""
        rows = self.store.rows()
        ended = [row for row in rows if row.state in (DONE, FAILED)]
        for row in ended:
            if row.trial.id not in self.told:
                self.told.add(row.trial.id)
                done = sum(each.state == DONE and each.trial.id in self.told for each in ended)
                print(f"{done}/{len(rows)} {_ended(row)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Say what is new at the end."""
        self.update()


class Bars:
    """A bar for the study and one for every trial that is being trained."""

    def __init__(self, store: Store) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()]
        self.store = store
        self.bars = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
        self.total = self.bars.add_task("trials", total=None)
        self.tasks: dict[str, Any] = {}
        self.bars.start()

    def update(self) -> None:
        """Draw the bars as the store has them now."""
        rows = self.store.rows()
        self.bars.update(self.total, completed=sum(row.state in (DONE, FAILED) for row in rows), total=len(rows))
        running = {row.trial.id: row for row in rows if row.state == RUNNING}
        for trial in [trial for trial in self.tasks if trial not in running]:
            self.bars.remove_task(self.tasks.pop(trial))
        for trial, row in running.items():
            if trial not in self.tasks:
                self.tasks[trial] = self.bars.add_task(inert(row.trial.label), total=None)
            self.bars.update(self.tasks[trial], completed=row.epoch, total=row.epochs or None)

    def close(self) -> None:
        """Leave the bars as they are."""
        self.update()
        self.bars.stop()


def _ended(row: Row) -> str:
    if row.state == FAILED:
        return f"failed: {inert(row.trial.label)}: {inert(row.reason, 300)}"
    took = "" if row.seconds is None else f" ({row.seconds:.1f} s)"
    return f"done: {inert(row.trial.label)}{took}"
