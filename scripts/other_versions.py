"""Try the package on every Python that it promises, on its oldest NumPy and SciPy, and without extras.

    python scripts/other_versions.py --python 3.11=python3.11 --python 3.12=python3.12 --python 3.13=python3.13

Each setting gets an environment of its own, made by that Python; the quick tests run in it. What is oldest is read from
`pyproject.toml`. Writes `docs/versions.md`; ends with status 1 if a test failed anywhere.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
OLDEST = [promise.replace(">=", "==") for promise in PROMISED]
TOOLS = ["pytest>=8", "pytest-xdist>=3", "hypothesis>=6.100"]
QUICK = ["-m", "not slow", "-q", "--tb=short", "-p", "no:cacheprovider", "-n", "2"]
BARE = [
    "tests/oracles",
    *(
        f"tests/test_{name}.py"
        for name in ("against_oracles", "bytes", "kernels", "laws", "metric", "real_predictions", "recipes", "totals")
    ),
]
"""Tests of the core, which needs nothing but NumPy and SciPy."""


def settings(pythons: dict[str, str]) -> list[tuple[str, str, list[str], list[str]]]:
    """Each setting: its name, its Python, what is installed, and the tests that run."""
    newest = [(f"Python {name}, newest of everything", python, [".[test]"], []) for name, python in pythons.items()]
    oldest, first = next(iter(pythons.items()))
    return [
        *newest,
        (f"Python {oldest}, oldest NumPy and SciPy", first, [".[test]", *OLDEST], []),
        (f"Python {oldest}, no extras", first, [".", *TOOLS], BARE),
        (f"Python {oldest}, no extras, oldest NumPy and SciPy", first, [".", *TOOLS, *OLDEST], BARE),
    ]


def tried(python: str, packages: list[str], tests: list[str]) -> tuple[str, str, bool]:
    """The versions that were installed, how the tests ended, and whether all passed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        command = [f"{folder}/bin/python", "-m"]
        install = _answer([*command, "pip", "install", "-q", "-e", *packages])
        if install.returncode:
            return "", "cannot be installed: " + install.stderr.strip().splitlines()[-1], False
        interpreter = _answer([f"{folder}/bin/python", "--version"]).stdout.strip().replace(" ", "==").lower()
        versions = _answer([*command, "pip", "freeze"]).stdout
        done = _answer([*command, "pytest", *QUICK, *tests])
    print(done.stdout[-6000:], done.stderr[-2000:], flush=True)
    named = re.findall(r"^(?:numpy|scipy|pandas|pyarrow|scikit-learn|matplotlib)==\S+", versions, re.MULTILINE)
    ending = re.sub(r" in [\d.]+s.*|=", "", done.stdout.strip().splitlines()[-1]).strip()
    if done.returncode not in (0, 1):
        ending = f"stopped before their end (status {done.returncode})"
    return " ".join([interpreter, *named]), ending, done.returncode == 0


def _answer(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", required=True, help="VERSION=COMMAND, the oldest first")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/versions.md")
    parser.add_argument("--only", default="", help="try the settings with these words alone, and keep the other rows")
    options = parser.parse_args()
    kept = options.out.read_text(encoding="utf-8").splitlines() if options.only else []
    lines = ["# Tested versions", "", "Written by `scripts/other_versions.py`; do not edit.", ""]
    lines += ["| setting | installed | quick tests |", "|---|---|---|"]
    passed = True
    for name, python, packages, tests in settings(dict(each.split("=", 1) for each in options.python)):
        if options.only not in name:
            lines += [line for line in kept if line.startswith(f"| {name} |")]
            continue
        versions, ending, good = tried(python, packages, tests)
        print(f"{name}: {ending}", flush=True)
        lines.append(f"| {name} | {versions} | {ending} |")
        passed = passed and good
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not passed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
