"""The language that users read: short sentences, and the words of the field rather than our own."""

import ast
import inspect
import re
import statistics
from pathlib import Path

import click
import pytest

import calibrant
from calibrant.cli.commands import group

ROOT = Path(__file__).parents[1]
SOURCE = Path(calibrant.__file__).parent
DOCUMENTS = ("docs/exit_status.md",)
"""Pages, as patterns, that are held to the words, to the longest sentence and to the usual one."""
LONGEST, USUAL = 35, 18
"""Words in a sentence: at most, and in the middle one of a page."""
COINED = re.compile(
    r"\b(mend(s|ed|ing)?|came true|come true|as it is|laws? of scores?|laborator(y|ies)|manners|the door|seams?"
    r"|ladders?|kinds|rooms|a row a point|what chance adds|promised and kept)\b",
    re.IGNORECASE,
)
"""Words of our own, for which the field has others."""
PARTS = {"expected", "hint", "wanted", "advice", "got", "message", "reason"}
"""What parts of an error are called where they stand on a line of their own."""
REFUSALS = {"CalibrationInputError", "UsageError", "stop", "say", "warn", "StudyError"}
"""What is called with words that users read."""


def commands(command, name="calibrant"):
    """All commands by what is typed, groups included."""
    yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {part}")


def paragraphs(text):
    """Paragraphs of prose: without code, tables, headings and lists of words; an item of a list is one."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n", text):
        items = re.split(r"\n(?=\s*(?:[-*]|\d+\.)\s)", block)
        for item in items:
            lines = [line for line in item.splitlines() if not re.match(r"\s*(#|\||>>>|calibrant )|\s{4,}\S", line)]
            if lines:
                yield " ".join(lines)


def sentences(text):
    """Sentences, without what marks words up."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"`[^`]*`", "code", plain)
        yield from (each for each in re.split(r"(?<=[.?!:])\s+(?=[A-Z`\[\"(-])", plain) if each.strip())


def length(sentence):
    return len(re.findall(r"[A-Za-z][\w'-]*", sentence))


def helps():
    """Every text of the command's help, by where it stands."""
    for name, command in commands(group):
        yield name, re.sub(r"(?m)^  .*$", "", inspect.cleandoc(command.help or ""))  # without lists and examples
        yield f"{name} (in one line)", command.short_help or ""
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"{name} {option.opts[-1]}", option.help or ""


def spoken(node):
    """The text of an expression, a word for each value in it; nothing where it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
    if isinstance(node, ast.BinOp):
        return spoken(node.left) + spoken(node.right)
    return ""


def refusals():
    """The texts of errors and warnings, by where they stand: what must hold with what was found, and what to do."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in PARTS:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", spoken(node.value)
            called = getattr(node, "func", None)
            if getattr(called, "attr", getattr(called, "id", "")) in REFUSALS:
                hint = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
                others = [keyword.value for keyword in node.keywords if keyword.arg in ("got", "where")]
                place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                yield place, " ".join(spoken(part) for part in [*node.args, *others])
                yield place, " ".join(map(spoken, hint))


HELPS, REFUSED = dict(helps()), list(refusals())
PAGES = sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern))


def test_the_texts_are_there():
    assert len(HELPS) > 200
    assert sum(bool(text.strip()) for _, text in REFUSED) > 500
    assert len(PAGES) >= len(DOCUMENTS)


def test_sentences_of_help_are_short():
    long = [(place, each) for place, text in HELPS.items() for each in sentences(text) if length(each) > LONGEST]
    assert long == []


def test_help_has_no_words_of_our_own():
    assert [(place, text) for place, text in HELPS.items() if COINED.search(text)] == []


def test_every_option_says_what_it_does():
    assert [place for place, text in HELPS.items() if not text and "--format" not in place and place != NAMELESS] == []


NAMELESS = "calibrant (in one line)"
"""The whole command stands in no list."""


def test_sentences_of_errors_are_short():
    assert [(place, text) for place, text in REFUSED if length(text) > LONGEST] == []


def test_errors_have_no_words_of_our_own():
    assert [(place, text) for place, text in REFUSED if COINED.search(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_short_sentences_and_no_words_of_our_own(page):
    every = list(sentences(page.read_text("utf-8")))
    assert [each for each in every if length(each) > LONGEST or COINED.search(each)] == []
    assert statistics.median(map(length, every)) <= USUAL
