"""Answers: how sure a batch is of its top labels, and whether they are right; what calibration penalties look at."""

from __future__ import annotations

import torch
from torch import Tensor


def answers(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Confidence in the top label and the hit (n,) each; a hit under soft labels is the label mass on the top label.

    Gradients flow through the confidence alone. Ties go to the lowest class.

    >>> answers(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    (tensor([0.5000]), tensor([0.]))
    """
    top = logits.argmax(1, keepdim=True)
    confidence = logits.softmax(1).gather(1, top).squeeze(1)
    hit = labels == top.squeeze(1) if labels.ndim == 1 else labels.gather(1, top).squeeze(1)
    return confidence, hit.to(confidence.dtype)


def root(total: Tensor, order: float) -> Tensor:
    """The root of a total; 0 has the root 0 with the gradient 0, where calculus has none.

    >>> root(torch.tensor(0.25), 2)
    tensor(0.5000)
    """
    positive = total > 0
    return torch.where(positive, torch.where(positive, total, 1.0) ** (1 / order), 0.0)
