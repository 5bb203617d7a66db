"""Stepping: which optimiser takes the steps of a training, and how large they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def optimiser(how: Mapping[str, Any], network: Any) -> Any:
    """The optimiser that a trial describes, for the weights of a network."""
    import torch

    rate, decay = float(how["learning_rate"]), float(how.get("weight_decay", 0.0))
    if how["kind"] == "sgd":
        momentum, nesterov = float(how.get("momentum", 0.9)), bool(how.get("nesterov", False))
        return torch.optim.SGD(network.parameters(), rate, momentum, weight_decay=decay, nesterov=nesterov)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[how["kind"]]
    return kind(network.parameters(), rate, weight_decay=decay)


def learning_rate(training: Mapping[str, Any], epoch: float) -> float:
    r"""The learning rate at a time, in epochs from the start.

    A constant rate r; `cosine`: :math:`\frac r2 (1 + \cos(\pi t / T))`; `steps`: r times `factor` for every epoch in
    `milestones` that has passed. During the first `warmup` epochs it is multiplied by t / warmup, from one half of a
    hundredth on, so that no step is empty.

    >>> training = {"epochs": 10, "optimiser": {"learning_rate": 0.1}, "schedule": {"kind": "cosine"}}
    >>> learning_rate(training, 0), round(learning_rate(training, 5), 10)
    (0.1, 0.05)
    """
    rate, schedule = float(training["optimiser"]["learning_rate"]), training.get("schedule") or {"kind": "constant"}
    if schedule["kind"] == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * epoch / float(training["epochs"])))
    elif schedule["kind"] == "steps":
        rate *= float(schedule["factor"]) ** sum(epoch >= start for start in schedule["milestones"])
    warmup = float(schedule.get("warmup", 0))
    return rate * max(0.005, epoch / warmup) if epoch < warmup else rate


def set_rate(optimiser: Any, rate: float) -> None:
    """Give all weights the same learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate
