"""Try the package on every Python that it promises, on its oldest NumPy and SciPy, and without extras.

    python scripts/other_versions.py --python 3.11=python3.11 --python 3.13=python3.13 --out docs/versions.md

Each setting gets an environment of its own, made by that Python; the quick tests run in it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = ["numpy==1.26.0", "scipy==1.11.1"]
TOOLS = ["pytest>=8", "pytest-xdist>=3", "hypothesis>=6.100"]
QUICK = ["-m", "not slow", "-q", "--tb=short", "-p", "no:cacheprovider", "-n", "2"]
BARE = [
    "tests/oracles",
    "tests/test_against_oracles.py",
    "tests/test_totals.py",
    "tests/test_kernels.py",
    "tests/test_laws.py",
]


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


def tried(python: str, packages: list[str], tests: list[str]) -> tuple[str, str]:
    """The versions that were installed, and how the tests ended."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        command = [f"{folder}/bin/python", "-m"]
        install = subprocess.run(
            [*command, "pip", "install", "-q", "-e", *packages], cwd=ROOT, capture_output=True, text=True
        )
        if install.returncode:
            return "", "cannot be installed: " + install.stderr.strip().splitlines()[-1]
        versions = subprocess.run([*command, "pip", "freeze"], capture_output=True, text=True).stdout
        done = subprocess.run([*command, "pytest", *QUICK, *tests], cwd=ROOT, capture_output=True, text=True)
    print(done.stdout[-6000:], flush=True)
    wanted = re.findall(r"^(?:numpy|scipy|pandas|pyarrow|scikit-learn|matplotlib)==\S+", versions, re.MULTILINE)
    return " ".join(wanted), re.sub(r" in [\d.]+s.*|=", "", done.stdout.strip().splitlines()[-1]).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", required=True, help="VERSION=COMMAND, the oldest first")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/versions.md")
    options = parser.parse_args()
    lines = ["# Versions that were tried", "", "Written by `scripts/other_versions.py`; do not edit.", ""]
    lines += ["| setting | installed | quick tests |", "|---|---|---|"]
    for name, python, packages, tests in settings(dict(each.split("=", 1) for each in options.python)):
        versions, ending = tried(python, packages, tests)
        print(f"{name}: {ending}", flush=True)
        lines.append(f"| {name} | {versions} | {ending} |")
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
