"""Focal loss: rows that the model is already sure of count less."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from calibrant.train.batches import checked, reduced
from calibrant.train.odds import log_odds_against
from calibrant.train.strengths import strength


def focal_loss(logits: Tensor, labels: Tensor, gamma: float = 3.0, *, reduction: str = "mean") -> Tensor:
    r"""How surprised is the model by the labels it does not yet know?

    .. math:: \ell_i = -\sum_k y_{ik} (1 - p_{ik})^\gamma \log p_{ik}

    with gamma >= 0; gamma = 0 is cross-entropy. Soft labels are weighed class by class, which the formula says and the
    papers leave open. Gradients stay finite where p rounds to 1, at any gamma. :class:`GammaSchedule` varies gamma
    with the epoch. Reference implementations sum over the batch; this is its mean.

    References: Lin et al. (2017); Mukhoti et al. (2020).

    >>> import torch
    >>> from calibrant.train import focal_loss
    >>> loss = focal_loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]), gamma=2)
    >>> print(f"{loss:.4f}")
    0.0111
    """
    strength(gamma, "gamma")
    logits, labels = checked(logits, labels)
    return reduced(focused(log_odds_against(logits, labels), gamma, labels), reduction)


def focused(odds: Tensor, gamma: float | Tensor, labels: Tensor) -> Tensor:
    """The focal loss of each row, from the log-odds against its true class, or against every class.

    >>> focused(torch.zeros(1), 1.0, torch.tensor([0]))
    tensor([0.3466])
    """
    losses = torch.exp(gamma * F.logsigmoid(odds)) * -F.logsigmoid(-odds)
    return losses if labels.ndim == 1 else (labels * losses).sum(1)
