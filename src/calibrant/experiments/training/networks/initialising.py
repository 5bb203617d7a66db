"""Initialising: weights and biases of convolutions and affine layers, drawn anew."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn


def default(network: nn.Module) -> None:
    """Leave every layer as it was made."""


def glorot(network: nn.Module) -> None:
    r"""Weights uniform in :math:`\pm\sqrt{6 / (\mathrm{in} + \mathrm{out})}`, biases 0 (Glorot & Bengio 2010, eq. 16).

    In and out are a layer's numbers of inputs and outputs, times the size of the filter for convolutions.

    >>> layer = nn.Linear(4, 2)
    >>> glorot(layer)
    >>> bool(layer.weight.abs().max() <= 1), layer.bias.tolist()
    (True, [0.0, 0.0])
    """
    for layer in _layers(network):
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def normal(network: nn.Module) -> None:
    """Weights and biases from the standard normal distribution (Nixon et al. 2019, appendix A).

    >>> layer = nn.Linear(300, 300)
    >>> normal(layer)
    >>> print(f"{layer.weight.std():.1f}")
    1.0
    """
    for layer in _layers(network):
        nn.init.normal_(layer.weight)
        if layer.bias is not None:
            nn.init.normal_(layer.bias)


def _layers(network: nn.Module) -> Iterator[nn.Conv2d | nn.Linear]:
    return (layer for layer in network.modules() if isinstance(layer, (nn.Conv2d, nn.Linear)))
