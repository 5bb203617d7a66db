"""Names and directions: imports point one way, one word stands for one thing, locals say what they hold."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import calibrant

SOURCE = Path(calibrant.__file__).parent
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
ORDER = (  # noqa: SIM905 - a list of strings would be three times as long
    "exceptions checks text kernels door predictions specification summaries selections views lenses bins "
    "binning distances aggregates result metric stream errors recipes inference table diagnostics __init__ files "
    "recalibrate simulate train explanation plots report scale integrations experiments watch cli __main__"
).split()
GRAMMAR = {"made", "one", "found", "given", "said"}
"""Words that say nothing of what a variable holds."""
REPEATED = {"__init__"}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree):
    """The modules of calibrant that a module imports, also inside functions; not what only types need."""
    typing = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and getattr(branch.test, "id", "") == "TYPE_CHECKING"
        for part in branch.body
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            names = [alias.name for alias in node.names] if node.module == "calibrant" else [""]
            yield from ((f"{node.module}.{name}".rstrip("."), node.lineno) for name in names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] == "calibrant")


def test_every_room_has_its_place():
    assert {room(path) for path in MODULES} == set(ORDER)


def test_imports_point_one_way():
    """Imports inside functions, too: a cycle that is hidden in a function is a cycle."""
    place = {name: index for index, name in enumerate(ORDER)}
    wrong = []
    for path, tree in MODULES.items():
        for name, line in imported(tree):
            target = [*name.split("."), "__init__"][1]
            if place.get(target, place["__init__"]) > place[room(path)]:
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {name}")
    assert wrong == []


def test_the_rooms_of_experiments_point_one_way():
    order = ["training", "design", "running", "findings"]
    place = {name: index for index, name in enumerate(order)}
    for path, tree in MODULES.items():
        own = path.relative_to(SOURCE).parts[1:2]
        if room(path) == "experiments" and own[0] in place:
            for name, line in imported(tree):
                target = name.removeprefix("calibrant.experiments.").split(".")[0]
                assert place.get(target, 0) <= place[own[0]], f"{path.relative_to(SOURCE)}:{line} imports {name}"


def test_the_library_does_not_know_the_command():
    for path, tree in MODULES.items():
        if room(path) not in ("cli", "__main__"):
            assert not [name for name, _ in imported(tree) if name.startswith("calibrant.cli")]


def test_private_names_stay_in_their_module():
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {alias.name}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calibrant")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert wrong == []


def stored(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def test_variables_say_what_they_hold():
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path, tree in MODULES.items()
        for name, line in stored(tree)
        if name in GRAMMAR
    ]
    assert wrong == []


def test_a_module_name_stands_for_one_thing():
    places = defaultdict(list)
    for path in MODULES:
        places[path.stem].append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name not in REPEATED} == {}


def test_a_class_name_stands_for_one_thing():
    places = defaultdict(list)
    for path, tree in MODULES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_the_top_level_is_the_rule():
    modules = {path.stem for path in MODULES if path.parent == SOURCE} - {"__init__", "__main__"}
    assert len(modules) <= 16


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_and_functions_fit_a_screen_or_two(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350
    for node in ast.walk(MODULES[path]):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            assert not body or body[-1].end_lineno - body[0].lineno + 1 <= 40, node.name
