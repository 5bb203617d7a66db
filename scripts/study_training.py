"""What the Fashion-MNIST study says about claims of what happens while networks are trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from study_reading import Studied, compared_models, in_points, markdown, verdict

from calibrant.experiments.findings import epoch_rows

SURE = "0.9-1.0"
"""The uppermost bin of confidence."""


def small_ranges(more: Studied) -> Iterator[str]:
    yield "## Nixon et al. (2019): while networks are trained"
    yield ""
    yield f"Nixon et al. (2019) look at a two-layer network while it is trained. Here the logits of {len(more.models)}"
    yield "networks were kept after every epoch, in 16 bits (in 32 where they are too large for that): of validation"
    yield f"rows, and of {more.study.over_training.train_rows:,} training rows."
    yield ""
    yield "**Claim: the ranges of ACE lie almost all at small probabilities, which motivates a threshold.** How many of"
    yield "the 15 ranges begin below 0.01, validation rows, bounds being means over classes and seeds:"
    yield ""
    rows, small = [], []
    for model in more.models:
        counts = {(name, last): _small(more, model, name, last) for name in epoch_rows.RANGES for last in (0, 1)}
        small.append(counts["ACE", 1])
        rows.append([model, *counts.values()])
    yield from markdown(
        ["network", *(f"{name}, {when} epoch" for name in epoch_rows.RANGES for when in ("first", "last"))], rows
    )
    yield from more.picture("range_bounds", "Lower bounds of the 15 ranges over training: the two-layer network.")
    yield verdict(
        min(small) >= 12,
        f'at the end {min(small)} to {max(small)} of ACE\'s 15 ranges begin below 0.01; "almost all" is taken as 12.',
        partly=max(small) >= 12,
    )
    yield ""


def _small(more: Studied, model: str, metric: str, last: bool) -> int:
    found = more.course("range_bounds", model, rows="validation", metric=metric)
    epoch = (max if last else min)(record["epoch"] for record in found)
    return sum(record["epoch"] == epoch and record["lower bound"].mean < 0.01 for record in found)


def lowest_range(more: Studied) -> Iterator[str]:
    yield "**Claim: with a threshold, on training rows that are all fitted, even the lowest range begins near 1.** The"
    yield "bound of TACE's lowest range on training rows, mean over classes and seeds:"
    yield ""
    rows, rises, ends = [], [], []
    for model in more.models:
        found = more.course("range_bounds", model, rows="train", metric="TACE", range=1)
        bounds = [record["lower bound"].mean for record in found]
        accuracy = more.course("over_training", model, rows="train", metric="accuracy")[-1]["value"]
        rows.append([model, in_points(accuracy), *(f"{each:.3f}" for each in (bounds[0], bounds[-1], max(bounds)))])
        rises += [model] if bounds[-1] > bounds[0] + 0.1 else []
        ends.append(max(bounds))
    yield from markdown(["network", "last training accuracy", "first epoch", "last epoch", "largest"], rows)
    yield verdict(
        min(ends) >= 0.9,
        f"the bound rises by more than 0.1 for {', '.join(rises) or 'no network'}; the largest of any epoch is",
        f"{max(ends):.3f}. Where a single forecast of a class is left between the threshold and 1, the lowest range",
        "begins with it.",
        partly=bool(rises),
    )
    yield ""


def many_ranges(more: Studied) -> Iterator[str]:
    yield "**Claim: errors of many ranges vanish on training rows and grow on others as a network fits the former.** In"
    yield "points, means over seeds:"
    yield ""
    rows, vanish, grow = [], [], []
    for model in more.models:
        for name in epoch_rows.FINER_RANGES:
            train, other = (
                [100 * record["value"].mean for record in more.course("range_errors", model, rows=part, metric=name)]
                for part in ("train", "validation")
            )
            cells = (train[0], train[-1], other[0], min(other), other[-1])
            rows.append([model, name, *(f"{cell:.2f}" for cell in cells)])
            vanish.append(train[-1] < 0.2 * train[0])
            grow.append(other[-1] > 1.2 * min(other))
    header = ["network", "error", "first, training", "last, training", "first, validation", "lowest", "last"]
    yield from markdown(header, rows)
    yield verdict(
        all(vanish) and all(grow),
        f"on training rows the last error is below a fifth of the first in {sum(vanish)} of {len(rows)} rows; on",
        f"validation rows it is more than a fifth above the lowest in {sum(grow)}.",
        partly=any(vanish) or any(grow),
    )
    yield ""


def lower_bins(more: Studied) -> Iterator[str]:
    yield "**Claim: forecasts of 0.9 and more stay calibrated, those below become less so.** Size of confidence less"
    yield "accuracy on validation rows, in points: of the bin from 0.9 on, and of the nine below, weighted by their"
    yield "samples; means over the first and over the last three epochs:"
    yield ""
    rows, worse, kept, split = [], [], [], []
    for model in more.models:
        found = more.course("bins_over_training", model, rows="validation")
        top, below = (_sizes(found, sure) for sure in (True, False))
        rows.append([model, *(f"{100 * each:.2f}" for each in (*top, *below))])
        worse += [model] if below[1] > below[0] else []
        kept += [model] if top[1] < 0.02 else []
        split += [model] if below[1] > below[0] and top[1] < min(0.05, below[1]) else []
    header = ["network", "0.9 and more, first", "last", "below, first", "last"]
    yield from markdown(header, rows)
    yield from more.picture("bins_over_training", "Confidence less accuracy by confidence: two first weights.")
    yield verdict(
        len(split) == len(more.models),
        f"below 0.9 the size grew for {', '.join(worse) or 'no network'}; from 0.9 on it ended below two points for",
        f"{', '.join(kept) or 'no network'}. Growth below, and from 0.9 on less than five points and less than below:",
        f"{', '.join(split) or 'no network'}.",
        partly=bool(split),
    )
    yield ""


def _sizes(found: list[dict[str, Any]], sure: bool) -> tuple[float, float]:
    """The size of gaps, weighted by samples: the first three epochs and the last three."""
    epochs = sorted({record["epoch"] for record in found})
    made = []
    for some in (epochs[:3], epochs[-3:]):
        asked = [each for each in found if each["epoch"] in some and (each["confidence"] == SURE) == sure]
        weights = [each["samples"] for each in asked]
        made.append(float(np.average([abs(each["gap"].mean) for each in asked], weights=weights)))
    return made[0], made[1]


def first_weights(more: Studied) -> Iterator[str]:
    yield "**Claim: weights that begin badly make logits longer by orders of magnitude, probabilities less diverse,**"
    yield "**and cost little accuracy.** The two-layer network on validation rows after the last epoch:"
    yield ""
    rows, lengths, sure = [], [], []
    for model in ("cnn glorot", "cnn normal"):
        norms = more.course("logit_norms", model, rows="validation")
        bins = more.course("bins_over_training", model, rows="validation", epoch=norms[-1]["epoch"])
        total = sum(each["samples"] for each in bins)
        sure.append(sum(each["samples"] for each in bins if each["confidence"] == SURE) / total)
        lengths.append(norms[-1]["length"].mean)
        cells = (f"{norms[0]['length'].mean:,.0f}", f"{lengths[-1]:,.0f}", f"{sure[-1]:.1%}")
        rows.append([model, *cells, more.spread(more.base(model), "accuracy")])
    header = ["network", "length of logits, first epoch", "last epoch", "confidence above 0.9", "test accuracy"]
    yield from markdown(header, rows)
    yield from more.picture("logit_norms", "Mean length of the logits over training.")
    loss = compared_models(more, "cnn normal", "cnn glorot", "accuracy")
    longer, surer, minor = lengths[1] / lengths[0] >= 100, sure[1] > sure[0], abs(loss.difference) <= 1
    yield verdict(
        longer and surer and minor,
        f"logits are {lengths[1] / lengths[0]:,.0f} times as long; {sure[1]:.1%} of the confidences instead of",
        f"{sure[0]:.1%} lie above 0.9; accuracy differs by {loss.difference:+.2f} points, which is",
        f"{'minor' if minor else 'not minor (more than one)'}.",
        partly=longer or surer or minor,
    )
    yield ""


COURSES: tuple[Callable[[Studied], Iterator[str]], ...] = (
    small_ranges, lowest_range, many_ranges, lower_bins, first_weights,
)  # fmt: skip
