"""Mutate every format that calibrant reads, and say what came of it, as a table.

    PYTHONPATH=src:tests python -m fuzz.run --mutations 10000 --flips

tests/fuzz/RESULTS.md keeps what it printed, in several runs. Faults are written to standard error with the bytes that
led to them.
"""

import argparse
import shlex
import sys
import traceback
import warnings
from collections import Counter
from itertools import islice

import numpy as np

from fuzz.formats import ALIKE, CHANGED, REFUSED, SAME, SEALED, TRACEBACK, formats
from fuzz.mutations import flips

COLUMNS = (REFUSED, SAME, ALIKE, CHANGED, TRACEBACK)


def mutants(form, count, seed):
    """So many mutations of the sample of a format; the same for the same seed."""
    random = np.random.default_rng([seed, *form.name.encode()])
    return (form.mutate(form.sample, random) for _ in range(count))


def counted(form, contents):
    """How often reading came to what, and the faults with their contents."""
    counts, faults = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for content in contents:
            verdict, what = form.verdict(content)
            counts[verdict] += 1
            if verdict in (CHANGED, TRACEBACK):
                faults.append((verdict, what, content))
    return counts, faults


def main(arguments=None):
    """Print a table for mutations and, where asked for, one for all single-bit flips; 1 where there are faults."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mutations", type=int, default=1000, help="mutations of each format (default: 1000; 0: none)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flips", action="store_true", help="all single-bit flips of formats with a checksum")
    parser.add_argument("--most", type=int, help="at most so many flips of each format, evenly spread")
    parser.add_argument("--only", nargs="*", metavar="FORMAT", help="formats by name (default: all)")
    asked = parser.parse_args(arguments)
    known = formats()
    chosen = {name: known[name] for name in (known if asked.only is None else asked.only)}
    print(f"`python -m fuzz.run {shlex.join(sys.argv[1:] if arguments is None else arguments)}`\n")
    faults = []
    if asked.mutations:
        mutated = {name: (form, mutants(form, asked.mutations, asked.seed)) for name, form in chosen.items()}
        faults += _table(f"{asked.mutations:,} seeded mutations (seed {asked.seed})", mutated)
    if asked.flips:
        sealed = {name: form for name, form in chosen.items() if name in SEALED}
        steps = {
            name: max(1, 8 * len(form.sample) // (asked.most or 8 * len(form.sample))) for name, form in sealed.items()
        }
        which = "Single-bit flips" if asked.most else "All single-bit flips"
        faults += _table(
            which, {name: (form, islice(flips(form.sample), 0, None, steps[name])) for name, form in sealed.items()}
        )
    return int(bool(faults))


def _table(title, cases):
    print(
        f"## {title}\n\n| format | bytes | tried | {' | '.join(COLUMNS)} |\n|---|{'---:|' * (2 + len(COLUMNS))}",
        flush=True,
    )
    every = []
    for name, (form, contents) in cases.items():
        counts, faults = counted(form, contents)
        cells = [f"{len(form.sample):,}", f"{counts.total():,}", *(f"{counts[column]:,}" for column in COLUMNS)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        for verdict, what, content in faults[:5]:
            print(f"{name}: {verdict}: {what!r:.300}\n  {content!r:.2000}", file=sys.stderr, flush=True)
            if isinstance(what, Exception):
                traceback.print_exception(what, limit=-3, file=sys.stderr)
        every += faults
    print(flush=True)
    return every


if __name__ == "__main__":
    sys.exit(main())
