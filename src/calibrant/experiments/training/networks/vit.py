"""A small vision transformer: patches as tokens that attend to each other (Dosovitskiy et al. 2021)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.networks.blocks import Added

PATCH, WIDTH, DEPTH, HEAD = 4, 192, 6, 64


def vit(shape: tuple[int, ...], classes: int, width: int = WIDTH) -> nn.Sequential:
    """Six layers of three heads over patches of 4 x 4, of width 192 as the smallest published ones, without dropout.

    Both sides of a picture must be multiples of 4. Another `width`, a multiple of 64, has a head for each 64 of it.

    >>> vit((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    channels, rows, columns = shape
    if rows % PATCH or columns % PATCH:
        raise CalibrationInputError("shape", f"must have sides that are multiples of {PATCH} for vit", got=repr(shape))
    layers = [layer for _ in range(DEPTH) for layer in (_attending(width), _computing(width))]
    tokens = Tokens(channels, (rows // PATCH) * (columns // PATCH), width)
    return nn.Sequential(tokens, *layers, First(), nn.LayerNorm(width), nn.Linear(width, classes))


class Tokens(nn.Module):  # type: ignore[misc] # torch is not there where types are checked
    """A token for the class, then one for each patch, all with their places added.

    >>> Tokens(3, 64)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 65, 192])
    """

    def __init__(self, channels: int, patches: int, width: int = WIDTH) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, PATCH, stride=PATCH)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + patches, width))

    def forward(self, pictures: Tensor) -> Tensor:
        patches = self.patches(pictures).flatten(2).transpose(1, 2)
        return torch.cat([self.first.expand(len(patches), -1, -1), patches], dim=1) + self.places


class Attention(nn.Module):  # type: ignore[misc]
    r"""What every token takes from the others, in heads side by side: softmax(q k' / sqrt(d)) v.

    >>> Attention()(torch.zeros(2, 5, 192)).shape
    torch.Size([2, 5, 192])
    """

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.asked = nn.Linear(width, 3 * width)
        self.joined = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        queries, keys, values = self.asked(tokens).unflatten(2, (3, -1, HEAD)).permute(2, 0, 3, 1, 4)
        if tokens.is_cuda:
            taken = F.scaled_dot_product_attention(queries, keys, values)
        else:  # faster than the fused one where tokens are few
            taken = (queries @ keys.transpose(2, 3) / math.sqrt(HEAD)).softmax(3).to(values.dtype) @ values
        return self.joined(taken.transpose(1, 2).flatten(2))


class First(nn.Module):  # type: ignore[misc]
    """The class's token alone."""

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens[:, 0]


def _attending(width: int) -> Added:
    return Added(nn.Sequential(nn.LayerNorm(width), Attention(width)))


def _computing(width: int) -> Added:
    layers = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
    return Added(nn.Sequential(nn.LayerNorm(width), *layers))
