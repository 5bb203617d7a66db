"""Strict YAML: read so that nothing in it surprises, every value with its line.

Only true and false are booleans, `1e-3` is a number and `no` a word. Tags, anchors, aliases, several documents, deep
nesting and keys that stand twice are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from calibrant.exceptions import printable

MOST_LETTERS = 1_000_000
MOST_DEPTH = 16
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}

Path = tuple[str | int, ...]
"""The way to a value: keys of mappings and places in lists."""


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong in a file, and in which line.

    >>> print(Problem(3, "seeds", "must be a list"))
    line 3: seeds: must be a list
    """

    line: int
    where: str
    message: str

    def __str__(self) -> str:
        return printable(f"line {self.line}: {self.where + ': ' if self.where else ''}{self.message}")


@dataclass(eq=False)
class Document:
    """What a file says: plain values, the line of each, and what was refused."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of a value, or of the nearest thing around it that has one; parts that name no key are passed over.

        >>> read("a:\\n  b: 1").line(("a", "tag", "b"))
        2
        """
        at: Path = ()
        for part in path:
            at = (*at, part) if (*at, part) in self.lines else at
        return self.lines.get(at, 1)


def read(text: str) -> Document:
    """The document that a text spells; what cannot be read is among its problems.

    >>> read("rate: 1e-3\\nanswer: no").value
    {'rate': 0.001, 'answer': 'no'}
    >>> [str(problem) for problem in read("a: 1\\na: 2").problems]
    ['line 2: a: stands twice, first in line 1']
    """
    document = Document()
    if len(text) > MOST_LETTERS:
        document.problems.append(Problem(1, "", f"must have at most {MOST_LETTERS:,} letters, has {len(text):,}"))
        return document
    try:
        _Reader(document, yaml.parse(text, Loader=yaml.SafeLoader)).read()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        document.problems.append(Problem(line, "", f"is no YAML: {error.problem}"))
    except yaml.YAMLError as error:
        document.problems.append(Problem(1, "", f"is no YAML: {' '.join(str(error).split())}"))
    except _HopelessError as problem:
        document.problems.append(problem.args[0])
    return document


def spelled(path: Path) -> str:
    """A path as people read it.

    >>> spelled(("interventions", 1, "strengths"))
    'interventions[1].strengths'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


class _HopelessError(Exception):
    """Reading on makes no sense."""


class _Reader:
    """Values from the events of a parser, which expands nothing by itself."""

    def __init__(self, document: Document, events: Iterator[Any]) -> None:
        self.document = document
        self.events = events

    def read(self) -> None:
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _HopelessError(Problem(_line(event), "", "must be one document, not several"))
                self.document.value = self._value(next(self.events), ())

    def _value(self, event: Any, path: Path) -> Any:
        self.document.lines[path] = _line(event)
        if len(path) > MOST_DEPTH:
            raise _HopelessError(Problem(_line(event), spelled(path[:3]), f"is nested deeper than {MOST_DEPTH} levels"))
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, path, f"uses the alias *{event.anchor}: write the value out")
            return None
        if event.anchor is not None:
            self._refuse(event, path, f"has the anchor &{event.anchor}: write values out where they are used")
        if event.tag is not None:
            self._refuse(event, path, f"has the tag {event.tag}: write plain values")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return _scalar(event.value) if event.implicit[0] and not event.style else event.value

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            name = self._key(event, path)
            if name in values:
                self._refuse(event, (*path, name), f"stands twice, first in line {lines[name]}")
            lines.setdefault(name, _line(event))
            values[name] = self._value(next(self.events), (*path, name))
            self.document.lines[(*path, name)] = _line(event)
        return values

    def _key(self, event: Any, path: Path) -> str:
        if isinstance(event, yaml.ScalarEvent) and event.anchor is None and event.tag is None:
            return str(event.value)
        self._refuse(event, path, "has a key that is no plain word")
        self._value(event, (*path, "?"))
        return "?"

    def _sequence(self, path: Path) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            values.append(self._value(event, (*path, len(values))))
        return values

    def _refuse(self, event: Any, path: Path, message: str) -> None:
        self.document.problems.append(Problem(_line(event), spelled(path), message))


def _scalar(text: str) -> Any:
    """A plain word as what it means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) and len(text) < 64 else text


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
