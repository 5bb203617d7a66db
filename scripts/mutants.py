"""Change one thing at a time in what computes, and see which changes no test notices.

    python scripts/mutants.py --sample 400 --seed 0 --jobs 2 --out tests/mutants

A mutant is the package with one comparison, operator, number, word or statement changed. The tests that run its line
are run until one fails. `list.csv` gets every mutant with its outcome; the survivors are explained in `reasons.csv`
(mutant, reason), and `README.md` is printed from both. Needs coverage, torch and Triton beside what the tests need.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import concurrent.futures
import csv
import dataclasses
import functools
import importlib.util
import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MUTATED = ("bins.py", "aggregates.py", "distances/*.py", "binning/*.py", "kernels/*.py", "inference/*.py")
LEFT_OUT = re.compile(
    r"test_(cli|report|page|plots|experiments|train|network|dataset|docs|export|files|import|names|recalibrate|real"
    r"|guides|watch|scan|fuzz|study|writing|exit|language|damage|options|door|claims)"
)
COMPARED = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
COMBINED = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "//": "*",
    "%": "*",
    "**": "*",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
}
SWAPPED = {"min": "max", "minimum": "maximum", "floor": "ceil", "any": "all", "argmin": "argmax", "zeros": "ones"}
SWAPPED |= {other: name for name, other in SWAPPED.items()}
SIDES = {"left": "right", "right": "left"}
ON_A_GPU = {"along_rows.py", "down_columns.py", "fused.py"}
"""Kernels in Triton, whose lines no tracer sees; where Triton is installed, its interpreter runs their tests."""
NO_TEST = {2: "does not import", 3: "does not import", 124: "no end"}
"""What an exit status says of a mutant that no single test noticed; another status is a fault of this script."""
STEP = 15.0
"""Seconds of tests after which a mutant that is still unnoticed gets the next ones."""
COLUMNS = ("mutant", "outcome", "by")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A place in a file, the text that stands there, and what replaces it."""

    path: str
    line: int
    column: int
    start: int
    end: int
    text: str
    changed: str
    code: str

    def applied(self, source: str) -> str:
        encoded = source.encode()
        return (encoded[: self.start] + self.changed.encode() + encoded[self.end :]).decode()

    @property
    def name(self) -> str:
        return (
            f"{self.path}:{self.line}:{self.column}: {self.text.strip()} -> {self.changed or 'nothing'} in {self.code}"
        )


class Places(ast.NodeVisitor):
    """Every place of a module where one thing can be changed."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source.encode()
        self.lines = list(
            itertools.accumulate((len(line) for line in self.source.splitlines(keepends=True)), initial=0)
        )
        self.mutants: list[Mutant] = []

    def at(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def note(self, node: ast.expr | ast.stmt, changed: str, start: int | None = None, end: int | None = None) -> None:
        start = self.at(node.lineno, node.col_offset) if start is None else start
        end = self.at(node.end_lineno or 0, node.end_col_offset or 0) if end is None else end
        line = self.source[:start].count(b"\n") + 1
        code = self.source.splitlines()[line - 1].decode().strip()
        column = start - self.lines[line - 1] + 1
        self.mutants.append(Mutant(self.path, line, column, start, end, self.source[start:end].decode(), changed, code))

    def between(self, left: ast.expr, right: ast.expr, words: dict[str, str]) -> None:
        start, end = self.at(left.end_lineno or 0, left.end_col_offset or 0), self.at(right.lineno, right.col_offset)
        gap = self.source[start:end].decode()
        operator = re.search("|".join(sorted(map(re.escape, words), key=len, reverse=True)), gap)
        if operator and "#" not in gap:
            self.note(left, words[operator[0]], start + operator.start(), start + operator.end())

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in itertools.pairwise([node.left, *node.comparators]):
            self.between(left, right, COMPARED)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.between(node.left, node.right, COMBINED)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.between(node.values[0], node.values[1], {"and": "or", "or": "and"})
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self.note(node, "", end=self.at(node.operand.lineno, node.operand.col_offset))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.note(node, str(not node.value))
        elif isinstance(node.value, int):
            self.note(node, str(node.value + 1))
        elif isinstance(node.value, float):
            self.note(node, repr(node.value * 1.5 if node.value else 1.0))
        elif node.value in SIDES:
            self.note(node, repr(SIDES[node.value]))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in SWAPPED:
            end = self.at(node.end_lineno or 0, node.end_col_offset or 0)
            self.note(node, SWAPPED[node.attr], end - len(node.attr), end)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in SWAPPED and hasattr(builtins, node.id):
            self.note(node, SWAPPED[node.id])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.note(node, "pass")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.note(node, "pass")
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Annotations are no code."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *node.body):
            self.visit(part)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Messages are not mutated."""


def places() -> list[Mutant]:
    package = ROOT / "src/calibrant"
    mutants: list[Mutant] = []
    for path in sorted(path for pattern in MUTATED for path in package.glob(pattern)):
        source = path.read_text()
        module = Places(str(path.relative_to(ROOT)), source)
        module.visit(ast.parse(source))
        mutants += module.mutants
    return mutants


def suite(tree: Path) -> list[str]:
    tests = [path for path in sorted((tree / "tests").rglob("test_*.py")) if not LEFT_OUT.match(path.name)]
    modules = [path for pattern in MUTATED for path in sorted((tree / "src/calibrant").glob(pattern))]
    return [str(path.relative_to(tree)) for path in (*tests, *modules)]


def pytest(tree: Path, tests: list[str], *before: str, timeout: float = 1200) -> tuple[int, str]:
    """Run tests in a tree until one fails: the exit status, and what was printed."""
    command = [sys.executable, *before, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly", "--hypothesis-seed=0", "--override-ini", "filterwarnings=", "--tb=no", "-ra"]
    command += tests
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "COVERAGE_CORE": "ctrace"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return 124, "no end"
    return done.returncode, done.stdout


def copy(folder: Path) -> Path:
    """The project with sources of its own; the rest is linked, since tests read it."""
    tree = folder / "tree"
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for part in ROOT.iterdir():
        if not (tree / part.name).exists() and part.name not in (".git", "build"):
            (tree / part.name).symlink_to(part)
    return tree


def covered(file: str) -> tuple[str, float, dict[str, dict[str, list[str]]]]:
    """How long a test file takes, and of each line that it runs, which of its tests do."""
    with tempfile.TemporaryDirectory() as folder:
        tree = copy(Path(folder))
        (tree / "contexts").write_text("[run]\ndynamic_context = test_function\n")
        begin = time.perf_counter()
        before = ("-m", "coverage", "run", "--rcfile=contexts", "--source=src/calibrant", "--data-file=.lines")
        status, output = pytest(tree, [file], *before)
        seconds = time.perf_counter() - begin
        if status not in (0, 5):
            print(f"{file} fails unchanged and is left out:\n{output[-800:]}", flush=True)
            return file, seconds, {}
        command = [sys.executable, "-m", "coverage", "json", "--rcfile=contexts", "--data-file=.lines", "-q"]
        subprocess.run([*command, "--show-contexts", "-o", "lines.json"], cwd=tree, capture_output=True)
        if not (tree / "lines.json").exists():
            return file, seconds, {}
        files = json.loads((tree / "lines.json").read_text())["files"]
        return file, seconds, {path: tests_by_line(file, lines["contexts"]) for path, lines in files.items()}


def tests_by_line(file: str, contexts: dict[str, list[str]]) -> dict[str, list[str]]:
    """The tests that run each line: the whole file where it is run outside of a test function."""
    drawn = [f"{file}::{name}" for name in drawing(file)]
    tests: dict[str, list[str]] = {}
    for line, names in contexts.items():
        functions = {name.rpartition(".")[2] for name in names}
        outside = "" in functions or file.startswith("src")
        known = {f"{file}::{name}" for name in functions - {"test_function"}}  # what Hypothesis calls its tests
        tests[line] = [file] if outside else sorted(known | set(drawn if "test_function" in functions else ()))
    return tests


def drawing(file: str) -> list[str]:
    """The tests of a file whose data Hypothesis draws."""
    functions = [node for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)]
    return [each.name for each in functions if any("given(" in ast.unparse(mark) for mark in each.decorator_list)]


@dataclasses.dataclass
class Suite:
    """How long each test file takes, and which of its tests run which lines."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, dict[str, list[str]]]]

    def of(self, mutant: Mutant) -> list[tuple[list[str], float]]:
        """The tests that run the line of a mutant, quick ones first, in steps, with the seconds of each step."""
        if Path(mutant.path).name in ON_A_GPU and importlib.util.find_spec("triton"):
            return [(["tests/test_device_fused.py"], 30.0)]
        chosen = {file: self.tests(file, mutant) for file in self.lines}
        shares = {file: self.share(file, tests) for file, tests in chosen.items() if tests}
        steps: list[tuple[list[str], float]] = []
        for file in sorted(shares, key=shares.__getitem__):
            if not steps or steps[-1][1] > STEP:
                steps.append(([], 0.0))
            steps[-1] = (steps[-1][0] + chosen[file], steps[-1][1] + shares[file])
        return steps

    def tests(self, file: str, mutant: Mutant) -> list[str]:
        """The tests of a file that run a line; of one that runs when its module is imported, those that run others."""
        lines = self.lines[file].get(mutant.path, {})
        tests = lines.get(str(mutant.line), [])
        if tests != [file] or file.startswith("src"):
            return tests
        return sorted({test for others in lines.values() for test in others if test != file})

    def share(self, file: str, tests: list[str]) -> float:
        """About how long some tests of a file take."""
        return self.seconds[file] * min(1.0, len(tests) / max(1, self.counts[file]))

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """How many test functions each file has."""
        return {
            file: len({test for lines in paths.values() for tests in lines.values() for test in tests} - {file})
            for file, paths in self.lines.items()
        }


def outcome(mutant: Mutant, steps: list[tuple[list[str], float]]) -> tuple[Mutant, str, str]:
    """Whether a test notices a mutant, and which."""
    if not steps:
        return mutant, "survived", "no test runs it"
    with tempfile.TemporaryDirectory() as folder:
        tree = copy(Path(folder))
        path = tree / mutant.path
        path.write_text(mutant.applied(path.read_text()))
        for tests, seconds in steps:
            status, output = pytest(tree, tests, timeout=60 + 4 * seconds)
            if status not in (0, 5):
                killer = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
                if status < 0:
                    return mutant, "killed", "the process ends"
                if not killer and status not in NO_TEST:
                    return mutant, "not tried", f"pytest ended with status {status}: {output[-2000:]}"
                return mutant, "killed", killer[1] if killer else NO_TEST[status]
    return mutant, "survived", ""


def measured(options: argparse.Namespace, pool: concurrent.futures.Executor) -> Suite:
    """What each test file runs; kept beside the list until that is whole."""
    kept = options.out / "lines.json"
    if kept.exists():
        return Suite(**json.loads(kept.read_text()))
    begin = time.perf_counter()
    runs = list(pool.map(covered, suite(ROOT)))
    print(f"lines of {len(runs)} test files: {time.perf_counter() - begin:.0f} s", flush=True)
    tests = Suite({file: seconds for file, seconds, _ in runs}, {file: lines for file, _, lines in runs})
    kept.write_text(json.dumps(dataclasses.asdict(tests)))
    return tests


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """The mutants that are asked for: a sample, or the survivors of a list."""
    every = places()
    if options.only:
        names = {row["mutant"] for row in read(Path(options.only)) if row["outcome"] == "survived"}
        return [mutant for mutant in every if mutant.name in names]
    return random.Random(options.seed).sample(every, min(options.sample, len(every)))


def run(options: argparse.Namespace, mutants: list[Mutant]) -> None:
    """Try what the list does not have yet; each outcome goes there at once, so that a run that was stopped goes on."""
    path = options.out / "list.csv"
    known = {row["mutant"] for row in read(path)} if path.exists() else set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(COLUMNS)
        tests = measured(options, pool)
        waiting = [pool.submit(outcome, mutant, tests.of(mutant)) for mutant in mutants if mutant.name not in known]
        for number, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            mutant, ending, note = future.result()
            if ending != "killed":
                print(f"{number}/{len(waiting)} {ending}: {mutant.name} {note}", flush=True)
            if ending == "not tried":
                continue
            writer.writerow([mutant.name, ending, note])
            file.flush()


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def put_in_order(path: Path, mutants: list[Mutant]) -> None:
    """The list as the files go, of what was tried."""
    rows = {row["mutant"]: row for row in read(path)}
    ordered = sorted(mutants, key=lambda mutant: (mutant.path, mutant.start))
    content = io.StringIO()
    writer = csv.DictWriter(content, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[mutant.name] for mutant in ordered if mutant.name in rows)
    path.write_text(content.getvalue())


def show(folder: Path) -> str:
    """The page: how many were noticed, and why the others were not."""
    rows = read(folder / "list.csv")
    reasons = (
        {row["mutant"]: row["reason"] for row in read(folder / "reasons.csv")}
        if (folder / "reasons.csv").exists()
        else {}
    )
    survivors = [row["mutant"] for row in rows if row["outcome"] == "survived"]
    lines = ["# Mutants", "", "Printed by `scripts/mutants.py`; do not edit. Every mutant is in `list.csv`.", ""]
    lines += [f"{len(rows)} mutants, {len(rows) - len(survivors)} noticed by a test, {len(survivors)} not.", ""]
    lines += ["| mutant that no test notices | why |", "|---|---|"]
    lines += [
        f"| `{name.replace('|', chr(92) + '|')}` | {reasons.get(name, '**unexplained**')} |" for name in survivors
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=ROOT / "tests/mutants")
    parser.add_argument("--only", help="a list.csv: try its survivors again")
    parser.add_argument("--show", action="store_true", help="print the page from what is there")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not arguments.show:
        run(arguments, mutants := chosen(arguments))
        put_in_order(arguments.out / "list.csv", mutants)
        (arguments.out / "lines.json").unlink()
    (arguments.out / "README.md").write_text(show(arguments.out))
