"""Stores: the database of a finished study, what is read of it, and how it is mutated."""

import sqlite3
from contextlib import closing

import pytest

from fuzz import mutations
from stored import TEXT, compact, finished_store, found

QUESTIONS = (
    ("study", ()),
    ("trials", ()),
    ("trials", ("id",)),
    ("trials", ("state",)),
    ("measurements", ()),
    ("measurements", ("trial", "method", "split")),
    ("maps", ()),
    ("maps", ("trial", "method")),
    ("tallies", ("name",)),
)
"""What a study asks its database: tables, and by which columns rows are looked for."""


TWO_TRIALS = TEXT.replace("seeds: [0, 1, 2]", "seeds: [0, 1]")
"""A study whose store has rows in every table that could be exchanged."""
ONE_TRIAL = TEXT.replace("seeds: [0, 1, 2]", "seeds: [0]").replace("[accuracy, ece]", "[accuracy]")
"""The smallest study whose store has rows in every table: all its bits can be flipped in some minutes."""


def finished(folder, text=TWO_TRIALS):
    """The store of a study, in few pages."""
    with pytest.MonkeyPatch.context() as patch:
        finished_store(folder, patch, text)
    compact(folder / "study.sqlite")
    return folder


def reader(folder):
    """What a study finds in a database: what it found before, where every question has the answer that it had before.

    Most flips change no answer, and to ask costs a tenth of making all tables of the study.
    """
    path = folder / "study.sqlite"
    whole, expected = answers(path), found(folder)
    assert whole is not None

    def read(content):
        for beside in folder.glob("study.sqlite*"):
            beside.unlink()
        path.write_bytes(content)
        return expected if answers(path) == whole else found(folder)

    return read


def answers(path):
    """What a database answers to every question that a study may ask; None where it cannot."""
    told = []
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("pragma synchronous = full")
            database.execute("begin")
            for table, names in QUESTIONS:
                cursor = database.execute(f"select * from {table}")
                columns, rows = [column[0] for column in cursor.description], cursor.fetchall()
                told.append((table, columns, rows))
                where = " and ".join(f"{name} = ?" for name in names)
                for row in rows if names else ():
                    asked = tuple(row[columns.index(name)] for name in names)
                    told.append(database.execute(f"select * from {table} where {where}", asked).fetchall())
    except (sqlite3.Error, ValueError, OverflowError):
        return None
    return told


def mutated(content, random):
    """A cell of the database changed, a row removed, or its bytes changed."""
    if random.random() < 0.6:
        return mutations.of_bytes(content, random)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.deserialize(content)
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        table = str(random.choice(tables))
        names = [column[1] for column in database.execute(f"pragma table_info({table})")]
        rows = [row for (row,) in database.execute(f"select rowid from {table}")]
        row, name, word = int(random.choice(rows)), str(random.choice(names)), str(random.choice(mutations.WORDS))
        removal = f"delete from {table} where rowid = ?", (row,)
        change = f"update {table} set {name} = ? where rowid = ?", (word, row)
        try:
            database.execute(*(removal if random.random() < 0.2 else change))
        except sqlite3.Error:
            database.execute(*removal)
        return database.serialize()
