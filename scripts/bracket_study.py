"""How wide are bounds from counts in cells, and do they hold? Writes docs/bracket_study.md and its raw results.

    python scripts/bracket_study.py [--laws 0 1000] [--data ../shared/data] [--questions 0 9999] [--lines slope KS]

Each event question is counted in cells and asked for every metric; the value of the rows must lie between the bounds.
Questions are seeded laws of forecasts and, where the folder is there, the top label and each class of real predictions.
The raw results of laws and questions that are not in these ranges, and of other lines, are kept, so that a long run can
be made in parts.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.errors.asking import Pass
from calibrant.errors.isotonic import logarithmic
from calibrant.errors.logistic import fitted_intercept
from calibrant.errors.platt_excess import platt_excess
from calibrant.files.reading import read

DOCS = Path(__file__).parents[1] / "docs"
ASKED = cal.TopLabel()
METRICS = {
    "equal width 15, 20, 100": [cal.ECE.replace(binning=cal.EqualWidth(n)) for n in (15, 20, 100)],
    "equal width 15: MCE, RMSCE": [cal.MCE, cal.RMSCE],
    "left-closed equal width 10": [cal.ECE.replace(binning=cal.EqualWidth(10, "left"))],
    "MCS": [cal.MCS],
    "O/E ratio": [cal.OE_RATIO],
    "net benefit at 0.2": [cal.NetBenefit(0.2)],
    "Brier score and skill": [cal.BRIER.replace(lens=ASKED), cal.BRIER_SKILL],
    "Murphy's reliability, 15 bins": [cal.BrierDecomposition()],
    "equal width 37: ECE": [cal.ECE.replace(binning=cal.EqualWidth(37, closed)) for closed in ("left", "right")],
    "equal width 37: MCE": [cal.MCE.replace(binning=cal.EqualWidth(37))],
    "equal width 37: RMSCE": [cal.RMSCE.replace(binning=cal.EqualWidth(37))],
    "equal width 37: Murphy's reliability": [cal.BrierDecomposition(binning=cal.EqualWidth(37))],
    "equal width 64: ECE": [cal.ECE.replace(binning=cal.EqualWidth(64))],
    "net benefit at 0.137": [cal.NetBenefit(0.137)],
    "equal mass 15: ECE": [cal.ADAPTIVE_ECE],
    "equal mass 15: MCE": [cal.MCE.replace(binning=cal.EqualMass(15))],
    "equal mass 15: RMSCE": [cal.RMSCE.replace(binning=cal.EqualMass(15))],
    "equal mass 15: debiased": [cal.ECE_DEBIASED],
    "equal mass 100: ECE": [cal.ADAPTIVE_ECE.replace(binning=cal.EqualMass(100))],
    "quantiles 15: ECE": [cal.ECE.replace(binning=cal.Quantiles(15))],
    "labels in 15 bins": [cal.ECE_LB],
    "labels in 37 bins, and equal mass 7": [
        cal.LabelBinnedError(binning=cal.EqualWidth(37), p=2.0),
        cal.LabelBinnedError(binning=cal.EqualMass(7)),
        cal.LabelBinnedError(binning=cal.Quantiles(7)),
    ],
    "sweep": [cal.ECE_SWEEP],
    "KS": [cal.ECCE_MAD],
    "Kuiper": [cal.ECCE_R],
    "isotonic, quadratic": [cal.IsotonicError()],
    "isotonic, logarithmic": [cal.IsotonicError(score=logarithmic)],
    "AUROC": [cal.AUROC],
    "AURC and E-AURC": [cal.AURC.replace(lens=ASKED), cal.E_AURC.replace(lens=ASKED)],
    "AUGRC": [cal.AUGRC.replace(lens=ASKED)],
    "log loss": [cal.LOG_LOSS.replace(lens=ASKED)],
    "slope": [cal.SLOPE],
    "intercept beside the slope": [cal.INTERCEPT.replace(statistic=fitted_intercept)],
    "intercept at slope 1": [cal.INTERCEPT],
    "smooth error": [cal.SMECE],
    "Platt's excess loss": [cal.TableStatistic(statistic=platt_excess)],
}
"""What is asked, by the line of the table that shows it."""


def near_one_point(rng, n):
    return 0.99 * rng.random() + 1e-5 * rng.random(n)


LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(0.3, 5, n),
    "two decimals": lambda rng, n: np.round(rng.random(n), 2),
    "few values": lambda rng, n: rng.choice(rng.random(6), n),
    "float32": lambda rng, n: rng.random(n).astype(np.float32),
    "near one point": near_one_point,
    "near 1e-8": lambda rng, n: 1e-8 * rng.lognormal(0, 1, n),
    "near 1": lambda rng, n: 1 - 10.0 ** -rng.uniform(0, 14, n),
    "logit-normal": lambda rng, n: 1 / (1 + np.exp(-rng.normal(3 * rng.normal(), 2, n))),
    "half tied": lambda rng, n: np.append(rng.beta(2, 2, n - n // 2), rng.choice(rng.random(3), n // 2)),
}
SIZES = (50, 120, 300, 1000, 3000, 20000)


def law(seed):
    """Outcomes and forecasts of one seed, and the name of their law: laws and sizes take turns."""
    rng = np.random.default_rng(seed)
    name, n = list(LAWS)[seed % len(LAWS)], SIZES[seed // len(LAWS) % len(SIZES)]
    p = np.clip(LAWS[name](rng, n), 0, 1)
    chance = np.full(n, 0.05) if name == "near 1e-8" else p.astype(np.float64) ** rng.choice([0.5, 1.0, 1.0, 2.0])
    return (rng.random(n) < chance).astype(int), p, name


def told(metric, table):
    """What cells tell of a metric."""
    return Pass(metric).told(table) if metric.reading == cal.ADAPTIVE_ECE.reading else metric.within(table)


def misses(cells, rows):
    """The numbers of the rows that lie outside of what cells tell: value, parts of it, number of bins."""
    wrong = []
    low, high = cells.bounds or (cells.value, cells.value)
    undetermined = any(note.startswith("undetermined") for note in cells.notes)
    same = np.isnan(low) and np.isnan(high) and np.isnan(rows.value)
    if not (undetermined or same or (low <= rows.value <= high and low <= cells.value <= high)):
        wrong.append(f"{rows.value!r} outside of {low!r} to {high!r}")
    for name, number in rows.details.items():
        least, most = cells.details.get(f"{name}_low", -np.inf), cells.details.get(f"{name}_high", np.inf)
        if not (least <= number <= most or np.isnan(number)):
            wrong.append(f"{name} {number!r} outside of {least!r} to {most!r}")
    return wrong


def width(cells):
    """How far bounds are apart; infinite where nothing is determined, nan where rows have no value either."""
    if any(note.startswith("undetermined") for note in cells.notes):
        return np.inf
    low, high = cells.bounds or (0.0, 0.0)
    return 0.0 if low == high else high - low


def asked(kind, number, y, p, lines=tuple(METRICS)):
    """A row of the raw results: kind of question and its number, misses, and the widest bounds of each line."""
    predictions = cal.Predictions.from_probs(y, p)
    table = Pass(cal.ADAPTIVE_ECE).summarise(predictions)
    widths, count = {}, 0
    for line in lines:
        pairs = [(told(metric, table), metric(predictions)) for metric in METRICS[line]]
        widths[line] = f"{max(width(cells) for cells, _ in pairs):.2g}"
        wrong = [words for pair in pairs for words in misses(*pair)]
        count += len(wrong)
        for words in wrong:
            print(f"MISS {kind} {number}, {line}: {words}", flush=True)
    return {"question": kind, "number": str(number), "misses": count, **widths}


def events(folder):
    """Outcomes and forecasts of the top label and of each class of each file of predictions."""
    models = folder / "llm_mmlu_cloze" / "mmlu_cloze_logprobs.npz"
    names = [name for name in np.load(models).files if name.startswith("logp_")] if models.exists() else []
    files = [
        ("own_fashion_mnist_mlp/fashion_mnist_mlp.npz", {"label": "labels_test", "logits": "logits_test"}),
        ("aigen_resnet50_c10/cifar10_resnet50.npz", {"label": "labels_test", "logits": "logits_test"}),
        ("netcal_cifar_probs/wideresnet-16-4-cifar-100.npz", {}),
        ("netcal_cifar_probs/lenet-5-cifar-10.npz", {}),
        ("efficientnet_lite_imagenet/efficientnet_lite0_nips17dev.npz", {}),
        *(("llm_mmlu_cloze/mmlu_cloze_logprobs.npz", {"logits": name}) for name in names),
    ]
    for name, keys in files:
        if (folder / name).exists():
            predictions = read(folder / name, **keys)
            for lens in (cal.TopLabel(), cal.Classwise()):
                view = lens(predictions)
                for column in range(view.v):
                    yield name.split("/")[0], (view.targets == column).astype(int), view.outputs[:, column, 0]
    games = folder / "fivethirtyeight" / "nfl_games.csv"
    if games.exists():
        predictions = read(games, label="prob1_outcome", probs="prob1")
        view = cal.TopLabel()(predictions[predictions.soft != 0.5])
        yield "fivethirtyeight", view.truth_rows[:, 0, 0].astype(int), view.outputs[:, 0, 0]


def page(rows):
    """The page of all raw results."""
    kinds = {"laws": [], "data": []}
    for row in rows:
        kinds["laws" if row["question"] in LAWS else "data"].append(row)
    wrong = sum(int(row["misses"]) for row in rows)
    lines = [
        "# How wide are bounds from counts in cells?",
        "",
        "Written by `scripts/bracket_study.py`; do not edit. Raw results: `bracket_study.csv`.",
        "",
        f"{len(kinds['laws']):,} seeded laws and {len(kinds['data']):,} questions of real predictions were counted in",
        f"cells. Every metric was told from the cells and measured on the rows: {wrong} values lay outside of bounds.",
        "",
        "A width is the distance of the bounds; 0 means that cells tell the value exactly, to the bit, or that the",
        "rows have no finite one either (a slope of outcomes that a threshold separates). Up to 1e-11 is room for",
        "rounding. Undetermined means that cells tell nothing; such questions have no width. Widths are about the",
        "order of forecasts that was not kept, not about sampling. The laws are hard on purpose: in one of ten all",
        "forecasts lie in one or two cells, so that no order is left.",
        "",
        "| metric | real data: median | 90 % | worst | laws: median | 90 % | worst | undetermined |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in METRICS:
        shown, undetermined = [], 0
        for kind in ("data", "laws"):
            widths = np.array([float(row[line]) for row in kinds[kind]])
            undetermined += int(np.isinf(widths).sum())
            known = np.sort(widths[np.isfinite(widths)])
            places = [known[int(share * (len(known) - 1))] for share in (0.5, 0.9, 1.0)] if len(known) else []
            shown += [f"{each:.1g}" for each in places] or ["", "", ""]
        lines.append(f"| {line} | {' | '.join(shown)} | {undetermined} |")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", type=int, nargs=2, default=(0, 1000))
    parser.add_argument("--questions", type=int, nargs=2, default=(0, 9999))
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--lines", nargs="+", choices=METRICS, default=list(METRICS))
    options = parser.parse_args()
    raw, laws, questions = DOCS / "bracket_study.csv", range(*options.laws), range(*options.questions)
    rows = {}
    if raw.exists():
        with raw.open(newline="") as file:
            rows = {(row["question"], row["number"]): row for row in csv.DictReader(file)}
    for seed in laws:
        y, p, name = law(seed)
        add(rows, asked(name, seed, y, p, options.lines))
    for number, (name, y, p) in enumerate(events(options.data) if questions else []):
        if number in questions:
            add(rows, asked(name, number, y, p, options.lines))
    ordered = sorted(rows.values(), key=lambda row: (row["question"] in LAWS, int(row["number"])))
    with raw.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["question", "number", "misses", *METRICS], lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)
    (DOCS / "bracket_study.md").write_text(page(ordered))


def add(rows, row):
    """Put a row in its place; lines that it lacks stay as they were, and so do their misses."""
    key = row["question"], row["number"]
    if len(row) < 3 + len(METRICS) and key in rows:
        row = {**rows[key], **row, "misses": int(rows[key]["misses"]) + row["misses"]}
    rows[key] = row


if __name__ == "__main__":
    main()
