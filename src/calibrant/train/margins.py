"""Margin-based label smoothing: logits may lie apart, but only so far."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from calibrant.train.batches import checked, reduced
from calibrant.train.strengths import strength


def margin_loss(
    logits: Tensor, labels: Tensor, alpha: float = 0.1, margin: float = 10.0, *, reduction: str = "mean"
) -> Tensor:
    r"""How surprised is the model by the labels, and how far do its logits lie apart beyond a margin?

    .. math:: \ell_i = -\sum_k y_{ik} \log p_{ik} + \frac{\alpha}{K} \sum_k \max(0,\ \max_j z_{ij} - z_{ik} - m)

    with alpha >= 0 and m >= 0. alpha = 0, or a margin that no logit exceeds, is cross-entropy; m = 0 penalises every
    distance, as label smoothing does. Classes that tie for the largest logit share its gradient.

    References: Liu, Ben Ayed, Galdran & Dolz (2022).

    >>> import torch
    >>> from calibrant.train import margin_loss
    >>> loss = margin_loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]), alpha=0.1, margin=2)
    >>> print(f"{loss:.4f}")
    0.2746
    """
    strength(alpha, "alpha")
    strength(margin, "margin")
    logits, labels = checked(logits, labels)
    excess = (logits.amax(1, keepdim=True) - logits - margin).relu().mean(1)
    return reduced(F.cross_entropy(logits, labels, reduction="none") + alpha * excess, reduction)
