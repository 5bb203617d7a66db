"""Interventions: what is done to a training so that its probabilities become better, and how much of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.training.trials import BASE

if TYPE_CHECKING:
    from torch import Generator, Tensor

KINDS = (BASE, "label_smoothing", "mixup", "focal", "flsd", "margin")
"""No intervention, label smoothing, mix-up, focal loss, sample-dependent focal loss, margin-based label smoothing."""

Forward = Callable[["Tensor"], "Tensor"]
Batch = Callable[[Forward, "Tensor", "Tensor"], "Tensor"]
"""The loss of a batch: of a network's forward pass, inputs and labels."""


def batch_loss(intervention: Mapping[str, Any], epoch: int, generator: Generator) -> Batch:
    """The loss that an intervention makes of a batch in an epoch, counted from 0; the generator draws blends."""
    from calibrant import train

    kind, strength = intervention["kind"], float(intervention["strength"])
    if kind == "mixup":

        def blended(forward: Forward, inputs: Tensor, labels: Tensor) -> Tensor:
            mixed = train.mixup(inputs, labels, strength, generator=generator)
            return train.mixup_loss(forward(mixed.inputs), mixed)

        return blended
    loss = _losses(intervention, epoch).get(kind)
    if loss is None:
        raise CalibrationInputError("intervention", "is unknown", got=repr(kind), hint=nearest(str(kind), KINDS))
    return lambda forward, inputs, labels: loss(forward(inputs), labels)


def _losses(intervention: Mapping[str, Any], epoch: int) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    from calibrant import train

    strength = float(intervention["strength"])
    margin = float(intervention.get("margin", 10.0))
    threshold, below = float(intervention.get("threshold", 0.2)), float(intervention.get("below", 5.0))
    gamma = strength * _share(intervention.get("schedule"), epoch)
    return {
        BASE: train.cross_entropy,
        "label_smoothing": lambda logits, labels: train.label_smoothing_loss(logits, labels, strength),
        "focal": lambda logits, labels: train.focal_loss(logits, labels, gamma),
        "flsd": lambda logits, labels: train.flsd_loss(
            logits, labels, threshold=threshold, below=below, above=strength
        ),
        "margin": lambda logits, labels: train.margin_loss(logits, labels, strength, margin),
    }


def _share(schedule: Any, epoch: int) -> float:
    """The share of a strength that an epoch has: that of the last [start, share] that has begun."""
    from calibrant.train import GammaSchedule

    if not schedule:
        return 1.0
    starts, shares = zip(*schedule, strict=True)
    return GammaSchedule(tuple(int(start) for start in starts), tuple(float(share) for share in shares))(epoch)
