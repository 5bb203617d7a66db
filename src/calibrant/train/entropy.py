"""Cross-entropy: the loss that every method here starts from, and falls back to at strength 0."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from calibrant.train.batches import checked, reduced


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
