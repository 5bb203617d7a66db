"""How many bytes of a state of cells each of its fields takes, and what squares and marks are good for.

python benchmarks/state_size.py

The least is what the same numbers would take if each were written in as many bits as it has, with nothing to say how
many that are: no way of writing them one by one goes below. Widths of bounds are medians over 20 seeds of 3,000 rows.
"""

import dataclasses

import numpy as np

import calibrant as cal
from calibrant.errors.asking import Pass
from calibrant.errors.platt_excess import platt_excess
from calibrant.kernels.totals import Totals
from calibrant.scale import State
from calibrant.specification.bit_packing import as_bits

LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "logit-normal": lambda rng, n: 1 / (1 + np.exp(-rng.normal(0, 2, n))),
}
FIELDS = {
    "values": "number of the cell",
    "counts": "n",
    "targets": "sum of y",
    "outputs": "sum of p",
    "true_outputs": "sum of p y",
    "squared_outputs": "sum of p^2",
    "marks": "two marks",
}
METRICS = {
    "slope": cal.SLOPE,
    "Platt's excess loss": cal.TableStatistic(statistic=platt_excess),
    "smooth error": cal.SMECE,
    "ECE of 37 bins": cal.ECE.replace(binning=cal.EqualWidth(37)),
    "equal-mass ECE": cal.ADAPTIVE_ECE,
    "AUROC": cal.AUROC,
}
TIED = "half of them tied"


def arrays(value):
    """The arrays of whole numbers that a field is written as, signs counted in."""
    parts = (value.hi, value.lo) if isinstance(value, Totals) else (value,)
    for part in parts:
        whole = np.asarray(part).astype(np.int64).ravel()
        yield ((whole << 1) ^ (whole >> 63) if whole.min(initial=0) < 0 else whole).view(np.uint64)


def main():
    print(
        f"calibrant {cal.__version__}: bytes of the state of one event, by field, and the least of the same numbers\n"
    )
    heads = [f"{law}, {n:,.0f}" for law in LAWS for n in (1e4, 1e6)]
    print(f"{'field':20s} {' '.join(f'{head:>24s}' for head in heads)}")
    lines = {name: [] for name in FIELDS}
    totals = []
    for law in LAWS.values():
        for n in (10_000, 1_000_000):
            rng = np.random.default_rng(0)
            p = law(rng, n)
            state = State.of(cal.Predictions.from_probs(rng.random(n) < p, p), {"adaptive": cal.ADAPTIVE_ECE})
            ((table,),) = state.groups.values()
            stored = table.canonical().stored()
            spared = 0.0
            for name, cells in lines.items():
                parts = list(arrays(stored[name]))
                written = sum(len(as_bits(part)) for part in parts)
                least = sum(int(np.ceil(np.log2(part.astype(np.float64) + 1)).sum()) for part in parts) / 8
                cells.append(f"{written:,} ({least:,.0f})")
                spared += written - least
            size = len(state.to_bytes())
            totals.append(f"{size:,} ({size - spared:,.0f})")
    for name, cells in lines.items():
        print(f"{FIELDS[name]:20s} {' '.join(f'{cell:>24s}' for cell in cells)}")
    print(f"{'the whole state':20s} {' '.join(f'{total:>24s}' for total in totals)}")
    widths()


def widths():
    """Print how far bounds are apart with every field, without squares in cells, and without marks."""
    print(f"\n{'median width of bounds':40s} {'all':>14s} {'without p^2':>14s} {'without marks':>14s}")
    for law in ("uniform", TIED):
        tables = [seeded(law, seed) for seed in range(20)]
        for name, metric in METRICS.items():
            medians = []
            for without in ({}, {"squared_outputs": None}, {"marks": None}):
                results = [within(metric, dataclasses.replace(table, **without)).bounds for table in tables]
                medians.append(np.median([0.0 if ends is None else ends[1] - ends[0] for ends in results]))
            print(f"{name + ', ' + law:40s} {' '.join(f'{median:14.1e}' for median in medians)}")


def seeded(law, seed):
    """The cells of 3,000 forecasts of a law."""
    rng = np.random.default_rng(seed)
    p = rng.random(3000)
    p = np.where(rng.random(3000) < 0.5, rng.choice(rng.random(40), 3000), p) if law == TIED else p
    return Pass(cal.ADAPTIVE_ECE).summarise(rng.random(3000) < p, p)


def within(metric, table):
    return Pass(metric).told(table) if metric.reading == cal.ADAPTIVE_ECE.reading else metric.within(table)


if __name__ == "__main__":
    main()
