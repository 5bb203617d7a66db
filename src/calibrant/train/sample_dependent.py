"""Sample-dependent focal loss: a stronger focus on the rows that the model knows least."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibrant.checks import number
from calibrant.train.batches import checked, reduced
from calibrant.train.focal import focused
from calibrant.train.odds import log_odds_against
from calibrant.train.strengths import strength


def flsd_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    threshold: float = 0.2,
    below: float = 5.0,
    above: float = 3.0,
    reduction: str = "mean",
) -> Tensor:
    r"""How surprised is the model, with the focus chosen row by row?

    .. math:: \ell_i = -\sum_k y_{ik} (1 - p_{ik})^{\gamma(p_{ik})} \log p_{ik}, \quad
        \gamma(p) = \begin{cases} \gamma_{\mathrm{below}} & p < t \\ \gamma_{\mathrm{above}} & p \ge t \end{cases}

    The defaults are FLSD-53. The choice of gamma is a constant in the gradient; the loss jumps at the threshold. Equal
    exponents are :func:`focal_loss`.

    References: Mukhoti et al. (2020).

    >>> import torch
    >>> from calibrant.train import flsd_loss
    >>> loss = flsd_loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([2]))
    >>> print(f"{loss:.4f}")
    2.6551
    """
    number(threshold, "threshold", "must lie strictly between 0 and 1", lambda p: 0 < p < 1)
    strength(below, "below")
    strength(above, "above")
    logits, labels = checked(logits, labels)
    odds = log_odds_against(logits, labels)
    unknown = odds > math.log((1 - threshold) / threshold)
    gammas = torch.where(unknown, float(below), float(above)).to(odds.dtype)
    return reduced(focused(odds, gammas, labels), reduction)
