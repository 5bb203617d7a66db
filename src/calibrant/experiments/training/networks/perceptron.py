"""Perceptrons: affine layers alone, for inputs of any shape."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import nn

HIDDEN = (256, 256)
"""The widths of the hidden layers."""


def linear(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Logistic regression: one affine layer.

    >>> linear((1, 28, 28), 10)[1]
    Linear(in_features=784, out_features=10, bias=True)
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))


def mlp(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two hidden layers of 256 with ReLU.

    >>> sum(parameter.numel() for parameter in mlp((1, 28, 28), 10).parameters())
    269322
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise((math.prod(shape), *HIDDEN)):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(HIDDEN[-1], classes))
