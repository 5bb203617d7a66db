"""Maximum mean calibration error: residuals of like confidence, compared pair by pair under a kernel."""

from __future__ import annotations

import math

from torch import Tensor

from calibrant.checks import number
from calibrant.train.answers import answers, root
from calibrant.train.batches import checked
from calibrant.train.entropy import cross_entropy
from calibrant.train.strengths import strength


def mmce(logits: Tensor, labels: Tensor, *, width: float = 0.4) -> Tensor:
    r"""How much do residuals of like confidence agree, in a batch and differentiably?

    .. math:: \mathrm{MMCE} = \Big(\frac{1}{n^2} \sum_{i,j} (c_i - r_i)(c_j - r_j)\, e^{-|r_i - r_j| / h}\Big)^{1/2}

    with confidence r, hit c (under soft labels the label mass on the top label) and kernel width h. Gradients flow
    through r alone; a batch without any residual has the error 0 and no gradient. n^2 time and memory.

    References: Kumar, Sarawagi & Jain (2018).

    >>> import torch
    >>> from calibrant.train import mmce
    >>> print(f"{mmce(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0])):.4f}")
    0.2144
    """
    number(width, "width", "must be a finite number above 0", lambda width: 0 < width < math.inf)
    logits, labels = checked(logits, labels)
    confidence, hit = answers(logits, labels)
    residual = hit - confidence
    kernel = (-(confidence[:, None] - confidence).abs() / width).exp()
    return root((residual[:, None] * residual * kernel).mean(), 2)


def mmce_loss(logits: Tensor, labels: Tensor, weight: float = 1.0, *, width: float = 0.4) -> Tensor:
    r"""How surprised is the model by the labels, and how badly calibrated is it on this batch?

    .. math:: \frac1n \sum_i \ell_i + \lambda\, \mathrm{MMCE}

    with cross-entropy :math:`\ell` and weight lambda >= 0; weight 0 is cross-entropy. See :func:`mmce`.

    References: Kumar, Sarawagi & Jain (2018).

    >>> import torch
    >>> from calibrant.train import mmce_loss
    >>> print(f"{mmce_loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]), weight=2):.4f}")
    0.6701
    """
    strength(weight, "weight")
    return cross_entropy(logits, labels) + weight * mmce(logits, labels, width=width)
