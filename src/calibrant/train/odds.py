"""Odds: how much stands against a class. Unlike 1 - p, they do not round to nothing where a model is certain."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_odds_against(logits: Tensor, labels: Tensor) -> Tensor:
    r"""The log-odds log((1 - p) / p) against the true class (n,), or against every class (n, K) where labels are soft.

    .. math:: d_k = \log \sum_{j \ne k} e^{z_j} - z_k, \quad p_k = \frac{1}{1 + e^{d_k}}

    >>> log_odds_against(torch.tensor([[100.0, 0.0]]), torch.tensor([0]))
    tensor([-100.])
    """
    if labels.ndim == 1:
        return _against(logits, labels[:, None]).squeeze(1)
    top = logits.argmax(1, keepdim=True)
    others = logits.softmax(1).scatter(1, top, 0.0)  # at most 1/2 each, so that 1 - p is accurate
    odds = logits.logsumexp(1, keepdim=True) + torch.log1p(-others) - logits
    return odds.scatter(1, top, _against(logits, top))


def _against(logits: Tensor, one: Tensor) -> Tensor:
    """Log-odds against one class (n, 1) of each row."""
    return logits.scatter(1, one, -math.inf).logsumexp(1, keepdim=True) - logits.gather(1, one)
