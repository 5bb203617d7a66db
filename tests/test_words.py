"""The words of README and pages: short sentences, and plain words of the field."""

import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOR_DEVELOPERS = {"design.md", "extend.md"}
PAGES = [
    ROOT / "README.md",
    *(page for folder in ("", "guides/", "reference/") for page in sorted(DOCS.glob(f"{folder}*.md"))),
]
PAGES = [page for page in PAGES if page.name not in FOR_DEVELOPERS]

WORDS = {
    r"mend(s|ed|ing)?": "recalibrate",
    r"(came|comes?|coming) true": "happened, or the observed frequency",
    r"as it is": "unchanged, or uncalibrated",
    r"laws? of (the )?scores?": "distribution of scores",
    r"laborator(y|ies)": "simulation",
    r"manners": "the interface of",
    r"the door": "when predictions are loaded",
    r"ladders?|seams?|rooms": "the thing itself",
    r"a row a point": "one point for each row",
    r"what chance adds": "noise",
    r"promise[sd]? (and|more than it) ke(pt|eps)": "over-confident",
    r"how certain a row is": "certainty",
    r"(as )?many bins as (stay|keep)": "the largest number of bins that is monotone",
    r"the event that the event": "the event",
}
"""What not to write, as patterns, and what to write instead."""
LISTS = ("_study.md", "scale.md")
"""Pages with long lists in one sentence."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sentences_are_short(page):
    lengths = [len(sentence.split()) for sentence in sentences(prose(page.read_text(encoding="utf-8")))]
    assert median(lengths or [0]) <= 18


@pytest.mark.parametrize("page", [page for page in PAGES if not page.name.endswith(LISTS)], ids=lambda page: page.stem)
def test_no_sentence_is_over_35_words(page):
    text = prose(page.read_text(encoding="utf-8"))
    assert [sentence for sentence in sentences(text) if len(sentence.split()) > 35] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_words_are_those_of_the_field(page):
    assert avoided(page.read_text(encoding="utf-8")) == {}


def test_prose_is_what_is_neither_code_nor_a_table_nor_a_comment():
    page = (
        "# Title\n\nSome `code` here.\n\n```python\n>>> 1\n```\n\n| a | b |\n\n    indented\n\n<!-- mark -->\n- Item.\n"
    )
    assert prose(page).split() == ["Title.", "Some", "x", "here.", "Item."]


def test_sentences_end_with_stops_paragraphs_and_items():
    text = "One of them, e.g. this. Is it two? Yes: 0.5 is one.\n\nA paragraph\nover lines\n\n- an item\n- another"
    assert [len(sentence.split()) for sentence in sentences(prose(text))] == [5, 3, 4, 4, 2, 1]


def test_a_word_to_avoid_is_found_over_the_end_of_a_line():
    page = "The labels came\ntrue, and the word `manners` is code."
    assert avoided(page) == {r"(came|comes?|coming) true": "happened, or the observed frequency"}


def avoided(page: str) -> dict[str, str]:
    """The words of a page that should not be there, and what to write instead."""
    text = " ".join(prose(page).split())
    return {word: WORDS[word] for word in WORDS if re.search(rf"\b(?:{word})\b", text, re.IGNORECASE)}


def prose(page: str) -> str:
    """The text of a page: links by their words, code by one word, items and headings as paragraphs of their own."""
    text = re.sub(r"^```.*?^```\s*$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|</?\w[^>]*>", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    text = "\n".join(re.sub(r"^#+ (.*\w)$", r"\n\1.\n", line) for line in lines)
    text = re.sub(r"^\s*([-*>]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", re.sub(r"`[^`]+`", "x", text))


def sentences(text: str) -> list[str]:
    """Sentences of prose: they end with a stop, or with their paragraph."""
    plain = re.sub(r"\b(al|cf|e\.g|eqs?|i\.e|vs)\.", r"\1", text)
    parts = re.split(r"\n\s*\n|(?<=[.?!])[\"')]*\s+", plain)
    return [part for part in (" ".join(part.split()) for part in parts) if part]
