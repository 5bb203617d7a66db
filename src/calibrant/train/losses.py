"""Losses: cross-entropy, and what is minimised in its place for better probabilities."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from calibrant.checks import number
from calibrant.train.batches import checked, reduced, strength


def cross_entropy(logits: Tensor, labels: Tensor, *, reduction: str = "mean") -> Tensor:
    r"""How surprised is the model by the labels?

    .. math:: \ell_i = -\sum_k y_{ik} \log p_{ik}, \quad p_i = \mathrm{softmax}(z_i)

    where y is one-hot or a soft label. `reduction="none"` gives the n losses instead of their mean.

    >>> import torch
    >>> from calibrant.train import cross_entropy
    >>> loss = cross_entropy(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]))
    >>> print(f"{loss:.4f}")
    0.2413
    """
    logits, labels = checked(logits, labels)
    return reduced(F.cross_entropy(logits, labels, reduction="none"), reduction)


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


def focused(odds: Tensor, gamma: float | Tensor, labels: Tensor) -> Tensor:
    """The focal loss of each row, from the log-odds against its true class, or against every class.

    >>> focused(torch.zeros(1), 1.0, torch.tensor([0]))
    tensor([0.3466])
    """
    losses = torch.exp(gamma * F.logsigmoid(odds)) * -F.logsigmoid(-odds)
    return losses if labels.ndim == 1 else (labels * losses).sum(1)


def log_odds_against(logits: Tensor, labels: Tensor) -> Tensor:
    r"""The log-odds log((1 - p) / p) against the true class (n,), or against every class (n, K) where labels are soft.

    .. math:: d_k = \log \sum_{j \ne k} e^{z_j} - z_k, \quad p_k = \frac{1}{1 + e^{d_k}}

    Unlike 1 - p, they do not round to nothing where a model is certain.

    >>> log_odds_against(torch.tensor([[100.0, 0.0]]), torch.tensor([0]))
    tensor([-100.])
    """
    if labels.ndim == 1:
        return _against(logits, labels[:, None]).squeeze(1)
    top = logits.argmax(1, keepdim=True)
    others = logits.softmax(1).scatter(1, top, 0.0)  # at most 1/2 each, so that 1 - p is accurate
    odds = logits.logsumexp(1, keepdim=True) + torch.log1p(-others) - logits
    return odds.scatter(1, top, _against(logits, top))


def _against(logits: Tensor, index: Tensor) -> Tensor:
    """Log-odds against the class at an index (n, 1) of each row."""
    return logits.scatter(1, index, -math.inf).logsumexp(1, keepdim=True) - logits.gather(1, index)
