"""Label smoothing: a share of every label is spread over all classes."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from calibrant.checks import number
from calibrant.train.batches import checked, reduced


def label_smoothing_loss(logits: Tensor, labels: Tensor, alpha: float = 0.1, *, reduction: str = "mean") -> Tensor:
    r"""How surprised is the model by labels that are never quite sure?

    .. math:: \ell_i = -\sum_k \Big((1 - \alpha) y_{ik} + \frac{\alpha}{K}\Big) \log p_{ik}

    with alpha in [0, 1); alpha = 0 is cross-entropy. Others put a/(K - 1) on each wrong class and nothing more on the
    true one: that is alpha = a K/(K - 1) here.

    References: Szegedy et al. (2016); Müller, Kornblith & Hinton (2019).

    >>> import torch
    >>> from calibrant.train import label_smoothing_loss
    >>> loss = label_smoothing_loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]), alpha=0.1)
    >>> print(f"{loss:.4f}")
    0.3913
    """
    number(alpha, "alpha", "must lie in [0, 1)", lambda alpha: 0 <= alpha < 1)
    logits, labels = checked(logits, labels)
    return reduced(F.cross_entropy(logits, labels, reduction="none", label_smoothing=float(alpha)), reduction)
