"""Training for calibration: losses and mix-up in torch, pure functions that fit into any training loop.

All losses take logits (n, K) and labels, which are class indices (n,) or soft labels (n, K), and are differentiable in
the logits. Logits of less than 32 bits are computed in float32, so that they are safe under autocast; float64 is kept.

>>> import torch
>>> from calibrant import train
>>> logits = torch.tensor([[2.0, 0.5, -1.0]], requires_grad=True)
>>> train.label_smoothing_loss(logits, torch.tensor([0]), 0.1).backward()
>>> [round(slope, 4) for slope in logits.grad[0].tolist()]
[-0.1477, 0.142, 0.0058]
"""

from __future__ import annotations

import importlib

try:
    importlib.import_module("torch")
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("calibrant.train needs torch: pip install 'calibrant[torch]'") from error

from calibrant.train.losses import cross_entropy, flsd_loss, focal_loss, label_smoothing_loss, margin_loss
from calibrant.train.mixing import Mixed, mixup, mixup_loss
from calibrant.train.penalties import mmce, mmce_loss, soft_binned_ece, soft_ece_loss
from calibrant.train.schedules import GammaSchedule

__all__ = [
    "GammaSchedule",
    "Mixed",
    "cross_entropy",
    "flsd_loss",
    "focal_loss",
    "label_smoothing_loss",
    "margin_loss",
    "mixup",
    "mixup_loss",
    "mmce",
    "mmce_loss",
    "soft_binned_ece",
    "soft_ece_loss",
]
