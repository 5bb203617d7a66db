"""Claims of Nixon et al. (2019) about what happens while networks are trained, each with data under which it is false.

Two seeds of each network were kept over training, so that little can be decided.
"""

from __future__ import annotations

from collections.abc import Iterator

import study_false_data as false_data
from study_records import BASE, Records

from calibrant.experiments.findings.claims import Claim, Difference, OutOfReach

SMALL = 0.01
"""A probability below this is small: the threshold of TACE."""
LATE = "12"
"""If this one of the 15 ranges begins at a small probability, almost all do."""
NIXON = "Nixon et al. (2019)"


def small_ranges(records: Records) -> Iterator[Difference]:
    for model, epochs in _courses(records, "figure_range_bounds"):
        asked = {"rows": "validation", "metric": "ACE", "range": LATE, "epoch": epochs[-1]}
        bound = records.cell("figure_range_bounds", "lower bound", model=model, **asked)
        yield Difference(f"{model}, 1 less the bound of range {LATE}", 100 * SMALL - bound.mean, bound.error, bound.df)


def many_ranges(records: Records) -> Iterator[Difference]:
    for model, epochs in _courses(records, "figure_range_errors"):
        for metric in ("ACE, 100 ranges", "TACE, 50 ranges"):
            middle, late = (_error(records, model, metric, epochs[place]) for place in (len(epochs) // 2, -1))
            yield late.less(middle, f"{model}, {metric}, the last less the middle one")


def _error(records: Records, model: str, metric: str, epoch: str) -> Difference:
    return records.cell("figure_range_errors", "value", model=model, rows="validation", metric=metric, epoch=epoch)


def lower_bins(records: Records) -> Iterator[Difference]:
    for model, epochs in _courses(records, "figure_bins_over_training"):
        if model != "cnn glorot":  # the network that the paper looks at
            continue
        top = _gap(records, model, "0.9-1.0", epochs[-1])
        yield Difference(f"{model}, 2 less the gap above 0.9", 2 - top.mean, top.error, top.df)
        first, last = (_gap(records, model, "0.8-0.9", epochs[place]) for place in (0, -1))
        yield last.less(first, f"{model}, gap from 0.8 to 0.9, the last less the first")


def _gap(records: Records, model: str, confidence: str, epoch: str) -> Difference:
    asked = {"rows": "validation", "confidence": confidence, "epoch": epoch}
    gap = records.cell("figure_bins_over_training", "gap", model=model, **asked)
    return Difference("", abs(gap.mean), gap.error, gap.df)


def first_weights(records: Records) -> Iterator[Difference]:
    bad, good = (records.cell("metrics", "ece", model=f"cnn {name}", method=BASE) for name in ("normal", "glorot"))
    yield bad.less(good, "ECE, normal less Glorot")


def long_logits(records: Records) -> Iterator[Difference]:
    epoch = _courses(records, "figure_logit_norms")[0][1][-1]
    bad, good = (
        records.cell("figure_logit_norms", "length", 1.0, model=f"cnn {name}", rows="validation", epoch=epoch)
        for name in ("normal", "glorot")
    )
    hundredfold = Difference("", 100 * good.mean, 100 * good.error, good.df)
    yield bad.less(hundredfold, "length of logits, normal less a hundred times Glorot")


def little_accuracy(records: Records) -> Iterator[Difference]:
    bad, good = (records.cell("metrics", "accuracy", model=f"cnn {name}", method=BASE) for name in ("normal", "glorot"))
    loss = good.less(bad, "")
    yield Difference("1 less the loss of accuracy", 1 - abs(loss.mean), loss.error, loss.df)


def _courses(records: Records, sheet: str) -> list[tuple[str, list[str]]]:
    """Networks and the epochs after which they were measured."""
    rows = records.sheets[sheet]
    models = dict.fromkeys(row["model"] for row in rows)
    return [(model, list(dict.fromkeys(row["epoch"] for row in rows if row["model"] == model))) for model in models]


FLAT = "bounds, gaps and lengths at the limits of the rules, which stay as they are; equal errors of both first weights"

CLAIMS: tuple[Claim[Records] | OutOfReach, ...] = (
    Claim(
        "The ranges of ACE lie almost all at small probabilities", f"{NIXON}, figure 3 (top left)",
        f"on validation rows, range {LATE} of 15 begins below {SMALL:g} after the last epoch, for every network",
        small_ranges, false_data.flat_courses, FLAT,
    ),
    OutOfReach(
        "With a threshold, on training rows, even the lowest range begins near 1", f"{NIXON}, figure 3 (top right)",
        "said of MNIST, once every row is fitted; here not every row is",
    ),
    Claim(
        "Errors of many ranges grow on validation rows", f"{NIXON}, section 8.1, figure 3 (bottom)",
        "the error after the last epoch is above that after the middle one", many_ranges, false_data.flat_courses, FLAT,
    ),
    Claim(
        "Confidences above 0.9 stay calibrated, those below become less so", f"{NIXON}, figure 9 (top left)",
        "two layers: last gap above 0.9 below two points; that from 0.8 to 0.9 larger than after the first epoch",
        lower_bins, false_data.flat_courses, FLAT,
    ),
    Claim(
        "Weights that begin badly make for worse calibration", f"{NIXON}, section 8.4, figure 9",
        "ECE of the two-layer network, standard normal less Glorot", first_weights, false_data.flat_courses, FLAT,
    ),
    Claim(
        "Weights that begin badly make logits longer by orders of magnitude", f"{NIXON}, figure 9 (bottom left)",
        "mean length, standard normal less a hundred times Glorot", long_logits, false_data.flat_courses, FLAT,
        unit="length",
    ),
    Claim(
        "Weights that begin badly cost little accuracy", f"{NIXON}, figure 9 (bottom right)",
        "less than one point", little_accuracy, false_data.less_accurate_course,
        "a loss of one point",
    ),
)  # fmt: skip
"""Every claim about training."""
