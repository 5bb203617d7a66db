"""Logs of lm-evaluation-harness: language models' log-likelihoods of given choices (samples_*.jsonl)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns

KEYS = frozenset({"filtered_resps", "target", "doc_id"})
"""Keys by which such a log is known."""
KIND = "given the softmax of the choices' log-likelihoods as probabilities"

Record = dict[str, Any]


def is_harness_log(arrays: Columns) -> bool:
    """Whether a file has the keys of such a log.

    >>> from calibrant.door.streams import InputFile
    >>> source = InputFile("samples_mmlu.jsonl", ".jsonl", None, b"")
    >>> is_harness_log(Columns(source, dict.fromkeys(KEYS, []), lambda name: np.zeros(0)))
    True
    """
    return set(arrays) >= KEYS and arrays.source.ending == ".jsonl"


def answers(arrays: Columns) -> Columns:
    """The log-likelihoods of the choices of each question and which is right, as columns that `read` understands.

    A question that was asked again counts once, with its last answer; of several filters the first counts. Where all
    questions have as many choices, `logits` has their log-likelihoods and `label` the right one; else `confidence` has
    the softmax of the chosen one and `correct` whether it is right.
    """
    records = _records(arrays)
    likelihoods = [_likelihoods(record, arrays) for record in records]
    right = [_right(record, len(values), arrays) for record, values in zip(records, likelihoods, strict=True)]
    columns: dict[str, Any] = _beside(records)
    if len({len(values) for values in likelihoods}) == 1 and all(len(choices) == 1 for choices in right):
        columns |= {"logits": np.array(likelihoods), "label": np.array([choices[0] for choices in right])}
    else:
        chosen = [int(np.argmax(values)) for values in likelihoods]
        columns["confidence"] = np.array([_softmax(values).max() for values in likelihoods])
        columns["correct"] = np.array([choice in choices for choice, choices in zip(chosen, right, strict=True)])
    return Columns(arrays.source, columns, lambda name: columns[name], kind=KIND)


def _records(arrays: Columns) -> list[Record]:
    """The records of the first filter, each question once, as it was answered last."""
    names = list(arrays)
    every: list[Record] = [dict(zip(names, values, strict=True)) for values in zip(*arrays.raw.values(), strict=True)]
    kind = every[0].get("filter")
    asked = {
        str(record.get("doc_hash") or record["doc_id"]): record for record in every if record.get("filter") == kind
    }
    return list(asked.values())


def _likelihoods(record: Record, arrays: Columns) -> list[float]:
    """The log-likelihood of each choice: the first of a pair, before whether it was the likeliest text of all."""
    responses = record["filtered_resps"]
    pairs = isinstance(responses, list) and len(responses) > 1 and all(isinstance(pair, list) for pair in responses)
    try:
        return [float(pair[0]) for pair in (responses if pairs else [[]])]
    except (TypeError, ValueError, IndexError):
        raise CalibrationInputError(
            str(arrays.source),
            "must have the log-likelihood of every choice in filtered_resps",
            got=repr(responses)[:60],
            where=f"doc_id {record['doc_id']}",
            hint="questions that are answered in free text need confidence=... and correct=...",
        ) from None


def _right(record: Record, count: int, arrays: Columns) -> list[int]:
    """Which choices are right: a number, a list of numbers, or the text of a choice."""
    target = record["target"]
    if isinstance(target, str):
        choices = _choices(record)
        if target.strip() in choices:
            return [choices.index(target.strip())]
        try:
            target = ast.literal_eval(target)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            target = None
    numbers = target if isinstance(target, list) else [target]
    if numbers and all(type(number) is int and 0 <= number < count for number in numbers):
        return numbers
    raise CalibrationInputError(
        str(arrays.source),
        f"must name one of {count} choices in target",
        got=repr(record["target"])[:60],
        where=f"doc_id {record['doc_id']}",
    )


def _choices(record: Record) -> list[str]:
    """The texts of the choices, where the log has them."""
    arguments = record.get("arguments")
    parts = list(arguments.values()) if isinstance(arguments, Mapping) else arguments
    if not isinstance(parts, list):
        return []
    texts = [part.get("arg_1") if isinstance(part, Mapping) else _last(part) for part in parts]
    return [text.strip() for text in texts if isinstance(text, str)]


def _last(part: Any) -> Any:
    return part[-1] if isinstance(part, list) and part else None


def _beside(records: list[Record]) -> dict[str, Any]:
    """What else tells questions apart: what they are about, where every document says it."""
    documents = [record.get("doc") for record in records]
    columns: dict[str, Any] = {"doc_id": np.array([str(record["doc_id"]) for record in records])}
    for name in ("subject", "category", "subset", "topic"):
        values = [document.get(name) if isinstance(document, Mapping) else None for document in documents]
        if all(isinstance(value, str) for value in values):
            columns[name] = np.array(values)
    return columns


def _softmax(values: list[float]) -> Any:
    shifted = np.exp(np.array(values) - max(values))
    return shifted / shifted.sum()
