"""Checking: a YAML file becomes a study, or the list of all that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from calibrant.door.streams import STANDARD_INPUT, InputFile
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.design import strict_yaml
from calibrant.experiments.design.strict_yaml import Problem
from calibrant.experiments.design.study_schema import Study

STUDIES = Path(__file__).with_name("studies")
"""The studies that come with calibrant."""


class StudyError(CalibrationInputError):
    """A file that is no study, with all its problems."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        count = f"{len(self.problems)} problem" + "s" * (len(self.problems) != 1)
        super().__init__(path, "must be a study", got=count, hint=str(self.problems[0]))


def check(text: str) -> Study | list[Problem]:
    """The study that a text describes, or everything that is wrong with it, each with its line.

    >>> for problem in check("name: a\\ndata: {nmae: digits}\\nmodels: [mlp]\\nseeds: 3"):
    ...     print(problem)
    line 2: data.name: is missing
    line 2: data.nmae: is no key here; did you mean 'name'?
    line 4: seeds: must be a list, got 3
    """
    document = strict_yaml.read(text)
    if document.value is None and document.problems:
        return sorted(document.problems)
    problems = list(document.problems)
    try:
        study = Study.model_validate(document.value, context=document.value)
    except ValidationError as error:
        problems += [_problem(document, detail) for detail in error.errors(include_url=False)]
    return sorted(set(problems)) if problems else study


def read(path: str | Path) -> Study:
    """The study in a file; :class:`StudyError` says all that is wrong. A name alone is a study of calibrant's own."""
    return study_in(text_of(path), str(path))


def study_in(text: str, name: str) -> Study:
    """The study that a text describes; :class:`StudyError` says all that is wrong with what has that name.

    >>> study_in(text_of("miniature"), "miniature").name
    'miniature'
    """
    checked = check(text)
    if isinstance(checked, Study):
        return checked
    raise StudyError(name, checked)


def text_of(path: str | Path) -> str:
    """The text of a study file, or of a study that comes with calibrant, by its name.

    >>> text_of("miniature").splitlines()[0][:1]
    '#'
    """
    file, shipped = Path(path), STUDIES / f"{path}.yaml"
    if not file.exists() and str(path) == file.name and shipped.is_file():
        file = shipped
    return InputFile.of(path if path in STANDARD_INPUT else file).text()


def _problem(document: strict_yaml.Document, error: Any) -> Problem:
    path = tuple(error["loc"])
    where = _without_tags(document, path)
    if error["type"] == "missing":
        return Problem(document.line(path[:-1]), strict_yaml.spelled((*where, path[-1])), "is missing")
    if error["type"] == "extra_forbidden":
        message = f"is no key here; {nearest(str(path[-1]), _keys(path))}"
        return Problem(document.line(path), strict_yaml.spelled(where), message)
    message = _message(error, str(path[-1]) if path else "")
    return Problem(document.line(path), strict_yaml.spelled(where), message)


_SHOULD = re.compile(r"^\w+ should")
_TYPES = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a word",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "finite_number": "must be finite",
    "union_tag_not_found": "must have a kind",
}


def _message(error: Any, name: str) -> str:
    kind, value = error["type"], error.get("input")
    if kind == "value_error":
        return str(error["ctx"]["error"]).removeprefix(f"{name}: ")
    if kind == "union_tag_invalid":
        options = [word.strip(" '") for word in error["ctx"]["expected_tags"].split(",")]
        return f"has an unknown kind {error['ctx']['tag']!r}; {nearest(str(error['ctx']['tag']), options)}"
    if kind == "literal_error" and isinstance(value, str):
        options = [word.strip(" '") for word in error["ctx"]["expected"].replace(" or ", ",").split(",")]
        return f"must be one of {', '.join(options)}, got {value!r}"
    message = _TYPES.get(kind) or _SHOULD.sub("must", error["msg"]).replace(" after validation", "")
    return message if isinstance(value, (dict, list)) and len(str(value)) > 60 else f"{message}, got {value!r}"


def _without_tags(document: strict_yaml.Document, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """The path without the names that validation puts in for the members of a union."""
    known: tuple[Any, ...] = ()
    for part in path:
        if (*known, part) in document.lines:
            known = (*known, part)
    return known


def _keys(path: tuple[Any, ...]) -> list[str]:
    """The keys that are known where a path ends."""
    candidates: list[type[BaseModel]] = [Study]
    for part in path[:-1]:
        fields = [model.model_fields[part].annotation for model in candidates if part in model.model_fields]
        if fields:
            candidates = [model for annotation in fields for model in _models(annotation)]
        elif isinstance(part, str):
            candidates = [model for model in candidates if part in get_args(_kind(model))] or candidates
    return sorted({name for model in candidates for name in model.model_fields})


def _kind(model: type[BaseModel]) -> Any:
    return model.model_fields["kind"].annotation if "kind" in model.model_fields else None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
