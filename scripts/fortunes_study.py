"""A study of short texts on a CPU: which kind is a fortune of? Claims in the literature, with numbers and verdicts.

    apt-get install fortunes
    python scripts/fortunes_study.py --store STORE --out docs/fortunes_study.md --jobs 2

Makes the file of texts from Debian's package, runs the study (or goes on with it), and prints its page. Beside the
page, a folder of its name takes the numbers as CSV. Of texts that stand twice only the first is kept.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator
from pathlib import Path

from study_claims import CLAIMS, finer_groups, in_short, shared_limits, slow_starts, strengths, tables
from study_reading import LEVEL, Studied, by_seed, keep_tables, markdown

from calibrant.experiments.design.checking import text_of
from calibrant.experiments.running import progress_display, runner
from calibrant.files.writing import write_text

KINDS = (
    "art", "computers", "definitions", "knghtbrd", "men-women", "people", "platitudes", "politics", "science",
    "songs-poems", "work", "zippy",
)  # fmt: skip
"""The files of at least 400 texts that are of one kind."""


def main() -> None:
    """Make the texts, run the study, write the page and the numbers."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--fortunes", type=Path, default=Path("/usr/share/games/fortunes"))
    asked.add_argument("--store", type=Path, required=True)
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--jobs", type=int, default=1)
    given = asked.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    write_text(given.store / "fortunes.csv", texts(given.fortunes))
    runner.open_study(given.store, text_of("fortunes"))
    runner.run(given.store, runner.Options(data=str(given.store)), jobs=given.jobs, shown=progress_display.display)
    studied, folder = Studied(given.store), given.out.with_suffix("")
    keep_tables(studied, folder, "")
    write_text(folder / "values.csv", by_seed(studied).to_csv())
    write_text(given.out, "\n".join(line.rstrip() for line in page(studied)) + "\n")


def texts(folder: Path) -> str:
    """Every text with its kind, as CSV; line breaks become blanks."""
    seen: dict[str, str] = {}
    for kind in KINDS:
        for text in (folder / kind).read_text(encoding="utf-8", errors="replace").split("\n%\n"):
            words = " ".join(text.split())
            if words not in ("", "%"):
                seen.setdefault(words, kind)
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows([("text", "label"), *seen.items()])
    return made.getvalue()


def page(studied: Studied) -> Iterator[str]:
    """The page, line by line."""
    found = [line for claim in CLAIMS if claim is not finer_groups for line in claim(studied)]
    yield from opening(studied)
    yield from in_short(found)
    yield from strengths(studied)
    yield from found
    yield from tables(studied)
    yield from limits(studied)


def opening(studied: Studied) -> Iterator[str]:
    done = [row for row in studied.evidence.rows if row.state == "done"]
    outcome = studied.evidence.outcome(done[0].trial.id)
    minutes = sum(row.seconds or 0 for row in done) / 60
    yield "# Fortunes: the same claims, tried on texts"
    yield ""
    yield "Printed by `scripts/fortunes_study.py`, which also makes the data: short texts of twelve kinds from Debian's"
    yield "package `fortunes`, as bags of words weighted by tf-idf; a linear network and one with two hidden layers."
    yield f"{len(done)} of {len(studied.evidence.rows)} networks were trained, {len(studied.study.seeds)} seeds a"
    yield f"compared setting, in {minutes:.0f} minutes of one processor (torch {outcome.about['torch']}); on a CPU the"
    yield "results are the same to the bit each time. Post-processing was fitted on the"
    yield f"{len(outcome.validation.labels):,} validation rows; every number below is of the"
    yield f"{len(outcome.test.labels):,} test rows unless it says otherwise. Errors are in points, mean ± standard"
    yield "deviation over seeds."
    yield ""
    yield f"A difference is called clear, and marked ↓ or ↑, where a t test over seeds rejects equality at {LEVEL:g}:"
    yield "paired where the networks are the same (post-processing), Welch's where they are not (interventions). Many"
    yield "are tested and none is corrected for that."
    yield ""
    names = ("accuracy", "ECE", "SCE", "full", "mcs")
    rows = [[model, *(studied.spread(studied.base(model), name) for name in names)] for model in studied.models]
    yield from markdown(["network", "accuracy", "ECE", "SCE", "full", "MCS"], rows)


def limits(studied: Studied) -> Iterator[str]:
    yield "## What these numbers cannot say"
    yield ""
    yield "- The kinds overlap: a text about science may stand among those about people. No network can be right"
    yield "  always, which is what makes the set useful here."
    yield from shared_limits(studied)
    yield "- The rules of the verdicts stand in `scripts/study_claims.py`. They were written for another study; some"
    yield "  were made stricter after a look at these numbers."
    yield from slow_starts(studied)


if __name__ == "__main__":
    main()
