"""The pages: every name is documented, every link leads somewhere, every table is what the script computes."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import calibrant as cal

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted([*DOCS.glob("*.md"), *DOCS.glob("guides/*.md"), *DOCS.glob("reference/*.md")])]
WHY = DOCS / "why_libraries_disagree.md"


def test_every_public_name_is_in_the_reference():
    documented = _documented("calibrant") | set(cal.RECIPES) | {"RECIPES"}
    modules = {name for name in cal.__all__ if isinstance(getattr(cal, name), ModuleType)}
    assert set(cal.__all__) - modules - documented == set()


@pytest.mark.parametrize("module", ["simulate", "train", "plots", "recalibrate"])
def test_every_public_name_of_a_module_is_in_the_reference(module):
    names = set(_exported(ROOT / "src" / "calibrant" / module / "__init__.py"))
    shared = _documented("calibrant") | {"METHODS"}  # METHODS is the table of the guide
    assert names - shared - _documented(f"calibrant.{module}") == set()


def test_the_reference_documents_nothing_that_is_not_public():
    lazy = {"ConfidenceBand", "ConsistencyBand", "Recalibrated", "reliability_band"}  # loaded when asked for
    lazy |= {"Explanation", "explain"}
    shadowing = {"maximum", "mean", "power", "where"}  # left out of a star import
    assert _documented("calibrant") - set(cal.__all__) == lazy | shadowing


@pytest.mark.parametrize("name", sorted(cal.RECIPES))
def test_every_recipe_is_in_the_index_of_metrics(name):
    assert re.search(rf"^\| \[.*`{name}`.*\]\(#", _read(DOCS / "metrics.md"), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(name for name in cal.__all__ if name.endswith("Error") or name == "MeanScore"))
def test_every_estimator_is_on_the_page_of_metrics(name):
    if name != "CalibrationInputError":
        assert f"(#calibrant.{name})" in _read(DOCS / "metrics.md")


def test_every_page_is_in_the_table_of_contents():
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= set(_contents(DOCS / "index.md"))


def test_every_page_of_the_reference_is_in_its_table_of_contents():
    listed = _contents(DOCS / "reference" / "index.md")
    pages = {page.stem for page in (DOCS / "reference").iterdir() if page.suffix in (".md", ".rst")}
    assert pages - {"index"} == set(listed)


def test_every_guide_is_in_the_table_of_contents():
    assert {page.stem for page in (DOCS / "guides").glob("*.md")} - {"index"} == set(
        _contents(DOCS / "guides" / "index.md")
    )


def test_guides_recalibration_and_the_report_are_in_the_main_menu():
    shown = int(re.search(r'"header_links_before_dropdown": (\d+)', _read(DOCS / "conf.py"))[1])
    assert {"guides/index", "recalibrate", "report"} <= set(_contents(DOCS / "index.md")[:shown])


def test_the_report_that_the_first_page_opens_is_made_with_the_pages():
    (page,) = re.findall(r'href="(\w+\.html)"', _read(DOCS / "index.md"))
    assert f'Path(app.outdir, "{page}")' in _read(DOCS / "conf.py")


def test_the_readme_shows_a_picture_and_answers_in_forty_lines_of_code():
    readme = _read(ROOT / "README.md")
    assert (ROOT / re.search(r"!\[[^\]]+\]\(([^)]+)\)", readme)[1]).is_file()
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert 0 < sum(len(block.split("\n")) for block in blocks) <= 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", _without_code(_read(page))):
        path, _, anchor = target.partition("#")
        if target.startswith(("http", "#calibrant.")) or "examples/" in path:
            continue  # names of the reference and the gallery are checked where the pages are built
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), target
        assert not anchor or anchor in _anchors(aim), target


@pytest.mark.parametrize("script", sorted((DOCS / "gallery").glob("plot_*.py")), ids=lambda path: path.stem)
def test_examples_of_the_gallery_have_a_title_and_a_question(script):
    text = ast.get_docstring(ast.parse(_read(script)))
    title, line, _, *rest = text.splitlines()
    assert line == "=" * len(title)
    assert rest[0].startswith("*")


@pytest.mark.parametrize("table", ["on_a_grid", "pools", "one_at_a_time", "guessed_logits", "bad_rows", "row_order"])
def test_the_rows_of_calibrant_are_what_the_script_computes(table, monkeypatch):
    script = _script()
    monkeypatch.setattr(script, "installed", lambda name: "0" if name == "calibrant" else None)
    computed = [row for row in getattr(script, table)().splitlines() if row.startswith("| calibrant")]
    assert computed
    assert all(row in _read(WHY) for row in computed)


@pytest.mark.parametrize("table", ["explained", "agreement"])
def test_tables_that_need_no_library_are_what_the_script_computes(table):
    assert _script().TABLES[table]() in _read(WHY)


def test_every_table_of_the_script_has_its_place_in_the_page():
    script = _script()
    page = _read(WHY)
    for name in script.TABLES:
        assert "| --- |" in re.search(rf"<!-- table: {name} -->(.*?)<!-- end -->", page, re.DOTALL)[1]
    with pytest.raises(SystemExit, match="one place for the table 'unknown', and has 0"):
        script.into(page, "unknown", "")


def test_a_table_replaces_what_was_between_its_marks():
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nafter"
    assert _script().into(page, "a", "| new |") == "before\n<!-- table: a -->\n\n| new |\n\n<!-- end -->\nafter"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _contents(page: Path) -> list[str]:
    """The pages in a page's table of contents, in its order."""
    entries = re.search(r"\{toctree\}\n:hidden:\n(.*?)```", _read(page), re.DOTALL)[1].splitlines()
    return [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries if entry]


def _without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def _documented(module: str) -> set[str]:
    """Names that the reference documents, by the module they are reached in."""
    found: set[str] = set()
    for page in (DOCS / "reference").glob("*.rst"):
        current = ""
        for kind, name in re.findall(r"^\.\. (currentmodule|auto\w+)::\s*(\S*)", _read(page), re.MULTILINE):
            if kind == "currentmodule":
                current = name
            elif kind != "autosummary" and current == module:
                found.add(name)
    return found


def _exported(path: Path) -> list[str]:
    """`__all__` of a module, else what is imported under its own name; read and not imported: it may need torch."""
    names: list[str] = []
    for node in ast.parse(_read(path)).body:
        if isinstance(node, ast.Assign):
            name = getattr(node.targets[0], "id", "")
            if name == "__all__":
                return ast.literal_eval(node.value)
            names.append(name)
        elif isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.asname == alias.name]
            if node.names[0].name == "*":
                names += _exported(ROOT / "src" / f"{node.module.replace('.', '/')}.py")
    assert len(names) > 1, f"{path} exports nothing"
    return names


def _anchors(page: Path) -> set[str]:
    """The headings of a page as links spell them."""
    headings = re.findall(r"^#+ (.*)$", _without_code(_read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _script() -> ModuleType:
    path = ROOT / "scripts" / "why_libraries_disagree.py"
    spec = importlib.util.spec_from_file_location("why_libraries_disagree", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
