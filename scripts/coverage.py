"""What of the five documents is here: every item with the name that does it and the test that checks it.

    python scripts/coverage.py

Reads docs/coverage.csv, checks that every name and test exists, and writes docs/coverage.md.
"""

from __future__ import annotations

import ast
import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from claim_tables import markdown

import calibrant

ROOT = Path(__file__).parents[1]
LIST, PAGE = ROOT / "docs" / "coverage.csv", ROOT / "docs" / "coverage.md"
STATES = ("works", "partial", "absent", "out of scope")
DOCUMENTS = {
    "K": "Kirchenbauer, Oaks & Heim (2022), *What is your metric telling you?*",
    "R": "Roelofs et al. (2022), *Mitigating bias in calibration error estimation*",
    "N": "Nixon et al. (2019), *Measuring calibration in deep learning*",
    "S": "Slides on reliability diagrams, ECE, MCE and their criticism (after Guo et al. 2017)",
    "A": "Ao, Rueger & Siddharthan (2023), *Two sides of miscalibration*",
}


def main() -> None:
    """Check the list and write the page."""
    items = read()
    faults = [fault for item in items for fault in wrong(item)]
    if faults:
        raise SystemExit("\n".join(faults))
    PAGE.write_text("\n".join(page(items)).rstrip() + "\n", encoding="utf-8")


def read() -> list[dict[str, str]]:
    """The items of the list."""
    with LIST.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def wrong(item: dict[str, str]) -> Iterator[str]:
    """What is wrong with an item, in sentences."""
    words = f"{item['document']}, {item['place']}, {item['item']}"
    if None in item:
        yield f"{words}: too many cells; a note with commas needs quotes"
    if item["state"] not in STATES or item["document"] not in DOCUMENTS:
        yield f"{words}: unknown state or document"
    if item["state"] == "works" and not (item["name"] and item["test"]):
        yield f"{words}: works, but has no name or no test"
    if item["state"] != "works" and not item["note"] and item["name"]:
        yield f"{words}: what is missing is not said"
    if item["name"] and not is_there(item["name"]):
        yield f"{words}: there is no {item['name']}"
    if item["test"] and not is_test(item["test"]):
        yield f"{words}: there is no test {item['test']}"


def is_there(name: str) -> bool:
    """Whether a public name, a name in a module of calibrant, or a script exists."""
    if "/" in name:
        return (ROOT / name).is_file()
    if "." not in name:
        return name in dir(calibrant)
    module, _, last = name.rpartition(".")
    path = Path(calibrant.__file__).parent.joinpath(*module.split("."))
    file = path.with_suffix(".py")
    if not file.is_file():
        return (path / f"{last}.py").is_file()
    return last in set(defined(file))


def is_test(name: str) -> bool:
    """Whether a test of this file and name exists."""
    file, _, function = name.partition("::")
    path = ROOT / file
    return path.is_file() and function in set(defined(path))


def defined(path: Path) -> Iterator[str]:
    """The names that a module defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def page(items: list[dict[str, str]]) -> Iterator[str]:
    """The page, line by line."""
    counts = Counter(item["state"] for item in items)
    yield "# What of the five documents is here"
    yield ""
    yield "Written by `scripts/coverage.py` from `coverage.csv`; do not edit. Every definition, algorithm, table,"
    yield "figure and experiment of the documents, the name that does it (in `calibrant`, or a script), and the test"
    yield "that checks it. Figures and tables that repeat one another on other networks or data share a line."
    yield "The script stops where a name or a test does not exist."
    yield ""
    yield f"Of {len(items)} items: {', '.join(f'{state} {counts[state]}' for state in STATES)}."
    yield ""
    for document, title in DOCUMENTS.items():
        yield f"## {title}"
        yield ""
        rows = [
            [item["place"], item["item"], item["state"], _code(item["name"]), _code(item["test"]), item["note"]]
            for item in items
            if item["document"] == document
        ]
        yield from markdown(["place", "item", "state", "name", "test", "what is missing, or where it was tried"], rows)


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


if __name__ == "__main__":
    main()
