"""Soft bins: a calibration error over bins that samples share, so that it has a gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibrant.checks import number, whole
from calibrant.checks import order as check_order
from calibrant.train.answers import answers, root
from calibrant.train.batches import checked
from calibrant.train.entropy import cross_entropy
from calibrant.train.strengths import strength


def soft_binned_ece(
    logits: Tensor, labels: Tensor, *, n_bins: int = 15, temperature: float = 0.01, order: float = 2.0
) -> Tensor:
    r"""How large is the top-label calibration error of a batch, differentiably?

    .. math:: \Big(\sum_b \frac{s_b}{n} \Big|\frac{1}{s_b} \sum_i u_{ib} (c_i - r_i)\Big|^p\Big)^{1/p}, \quad
        u_i = \mathrm{softmax}_b\Big(-\frac{(r_i - \xi_b)^2}{T}\Big), \quad s_b = \sum_i u_{ib}

    with confidence r, hit c (under soft labels the label mass on the top label), bin centres
    :math:`\xi_b = (b + \frac12)/B` and order p. As T falls to 0 it becomes the error over B bins of equal width.
    Gradients flow through r alone, by way of the shares u too; a batch without any residual has the error 0 and no
    gradient. n B time and memory.

    References: Karandikar et al. (2021), SB-ECE.

    >>> import torch
    >>> from calibrant.train import soft_binned_ece
    >>> print(f"{soft_binned_ece(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0])):.4f}")
    0.2144
    """
    whole(n_bins, "n_bins", 1)
    number(temperature, "temperature", "must be a finite number above 0", lambda heat: 0 < heat < math.inf)
    check_order(order, "order")
    logits, labels = checked(logits, labels)
    confidence, hit = answers(logits, labels)
    centres = (torch.arange(n_bins, dtype=confidence.dtype, device=confidence.device) + 0.5) / n_bins
    shares = (-((confidence[:, None] - centres) ** 2) / temperature).softmax(1)
    sizes = shares.sum(0)
    gaps = (shares * (hit - confidence)[:, None]).sum(0).abs() / sizes.clamp(min=torch.finfo(sizes.dtype).tiny)
    return root((sizes * gaps**order).sum() / len(confidence), order)


def soft_ece_loss(
    logits: Tensor,
    labels: Tensor,
    weight: float = 1.0,
    *,
    n_bins: int = 15,
    temperature: float = 0.01,
    order: float = 2.0,
) -> Tensor:
    r"""How surprised is the model by the labels, and how large is its soft-binned error on this batch?

    .. math:: \frac1n \sum_i \ell_i + \lambda\, \mathrm{SB\text{-}ECE}

    with cross-entropy :math:`\ell` and weight lambda >= 0; weight 0 is cross-entropy. See :func:`soft_binned_ece`.

    References: Karandikar et al. (2021).

    >>> import torch
    >>> from calibrant.train import soft_ece_loss
    >>> print(f"{soft_ece_loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]), weight=0.5):.4f}")
    0.3485
    """
    strength(weight, "weight")
    penalty = soft_binned_ece(logits, labels, n_bins=n_bins, temperature=temperature, order=order)
    return cross_entropy(logits, labels) + weight * penalty
