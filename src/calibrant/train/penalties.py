"""Penalties: the calibration error of a batch with a gradient, alone or added to cross-entropy."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibrant.checks import number, whole
from calibrant.checks import order as check_order
from calibrant.train.batches import checked, strength
from calibrant.train.losses import cross_entropy


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
