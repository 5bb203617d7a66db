"""Repair: what is damaged in a store is named and set aside; what is whole is kept, and nothing of it is done again."""

from __future__ import annotations

import sys
from pathlib import Path

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.checking import check
from calibrant.experiments.design.study_schema import Study
from calibrant.experiments.running.sealed_database import DamagedStoreError
from calibrant.experiments.running.study_store import LEASE, Store
from calibrant.text import inert


def study_in(text: str, folder: str | Path) -> Study:
    """The study of a text, which must be one of this version."""
    study = check(text)
    if not isinstance(study, Study):
        raise CalibrationInputError(str(folder), "must hold a study of this version", got=str(study[0]))
    return study


def repaired(folder: str | Path, *, lease: float = LEASE, text: str | None = None) -> Store:
    """The store in a folder without what is damaged in it; a text is that of its study, where it is given anew."""
    store = Store(folder, lease=lease)
    if not store.database.is_whole():
        store = _anew(store, text)
    labels = {row.trial.id: row.trial.label for row in store.rows()}
    for trial in store.mend():
        _say(f"damaged: the outcome of {labels[trial]} ({trial}) is missing or was set aside; it is done again")
    return store


def _anew(damaged: Store, text: str | None) -> Store:
    """A new database in the place of a damaged one, with the outcomes that are whole."""
    try:
        text = damaged.study_text if text is None else text
    except DamagedStoreError as error:
        hint = f"calibrant experiment run FILE --store {damaged.folder} keeps the outcomes that are whole"
        raise CalibrationInputError(error.parameter, error.expected, got=error.got, hint=hint) from None
    study = study_in(text, damaged.folder)
    aside = damaged.database.set_aside()
    store = Store(damaged.folder, create=True, lease=damaged.lease)
    store.set_study(study.name, text)
    store.want(study.trials())
    whole = [row.trial.id for row in store.rows() if store.is_whole(row.trial.id)]
    for trial in whole:
        store.adopt(trial, store.outcome(trial).about.get("seconds"))
    _say(f"damaged: the database was set aside as {aside.name}; {len(whole)} outcomes are whole and kept")
    return store


def _say(words: str) -> None:
    print(inert(words, 400), file=sys.stderr, flush=True)
