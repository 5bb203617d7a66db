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
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context

import numpy as np

from fuzz.formats import ALIKE, CHANGED, REFUSED, SAME, SEALED, TRACEBACK, formats
from fuzz.mutations import flips

COLUMNS = (REFUSED, SAME, ALIKE, CHANGED, TRACEBACK)


def mutants(form, count, seed):
    """So many mutations of the sample of a format; the same for the same seed."""
    random = np.random.default_rng([seed, *form.name.encode()])
    return (form.mutate(form.sample, random) for _ in range(count))


def flipped(form, most):
    """Single-bit flips of the sample of a format: all, or at most about so many, evenly spread."""
    bits = 8 * len(form.sample)
    return islice(flips(form.sample), 0, None, max(1, bits // (most or bits)))


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


def share(name, case, part, parts):
    """What came of every so manieth content of a format, in a process that has its own files."""
    form = formats()[name]
    return counted(form, islice(case(form), part, None, parts))


def main(arguments=None):
    """Print a table for mutations and, where asked for, one for all single-bit flips; 1 where there are faults."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mutations", type=int, default=1000, help="mutations of each format (default: 1000; 0: none)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flips", action="store_true", help="all single-bit flips of formats with a checksum")
    parser.add_argument("--most", type=int, help="at most so many flips of each format, evenly spread")
    parser.add_argument("--only", nargs="*", metavar="FORMAT", help="formats by name (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    asked = parser.parse_args(arguments)
    known = formats()
    chosen = {name: known[name] for name in (known if asked.only is None else asked.only)}
    print(f"`python -m fuzz.run {shlex.join(sys.argv[1:] if arguments is None else arguments)}`\n")
    faults = []
    if asked.mutations:
        title = f"{asked.mutations:,} seeded mutations (seed {asked.seed})"
        faults += _table(title, chosen, partial(mutants, count=asked.mutations, seed=asked.seed), asked.jobs)
    if asked.flips:
        title = "Single-bit flips" if asked.most else "All single-bit flips"
        sealed = {name: form for name, form in chosen.items() if name in SEALED}
        faults += _table(title, sealed, partial(flipped, most=asked.most), asked.jobs)
    return int(bool(faults))


def _table(title, chosen, case, jobs):
    print(
        f"## {title}\n\n| format | bytes | tried | {' | '.join(COLUMNS)} |\n|---|{'---:|' * (2 + len(COLUMNS))}",
        flush=True,
    )
    every = []
    for name, form in chosen.items():
        counts, faults = counted(form, case(form)) if jobs == 1 else _shared(name, case, jobs)
        cells = [f"{len(form.sample):,}", f"{counts.total():,}", *(f"{counts[column]:,}" for column in COLUMNS)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        for verdict, what, content in faults[:5]:
            print(f"{name}: {verdict}: {what!r:.300}\n  {content!r:.2000}", file=sys.stderr, flush=True)
            if isinstance(what, Exception):
                traceback.print_exception(what, limit=-3, file=sys.stderr)
        every += faults
    print(flush=True)
    return every


def _shared(name, case, jobs):
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        shares = list(pool.map(share, *zip(*((name, case, part, jobs) for part in range(jobs)), strict=True)))
    return sum((counts for counts, _ in shares), Counter()), [fault for _, faults in shares for fault in faults]


if __name__ == "__main__":
    sys.exit(main())
