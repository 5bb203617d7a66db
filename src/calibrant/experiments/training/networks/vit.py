"""A small vision transformer: patches as tokens that attend to each other (Dosovitskiy et al. 2021)."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.networks.blocks import Added

PATCH, WIDTH, DEPTH, HEADS, HIDDEN = 4, 192, 6, 3, 768


def vit(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Six layers of three heads over patches of 4 x 4, of width 192 as the smallest published ones, without dropout.

    Both sides of a picture must be multiples of 4.

    >>> vit((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    channels, height, width = shape
    if height % PATCH or width % PATCH:
        raise CalibrationInputError("shape", f"must have sides that are multiples of {PATCH} for vit", got=repr(shape))
    layers = [layer for _ in range(DEPTH) for layer in (_attending(), _computing())]
    tokens = Tokens(channels, (height // PATCH) * (width // PATCH))
    return nn.Sequential(tokens, *layers, First(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, classes))


class Tokens(nn.Module):  # type: ignore[misc] # torch is not there where types are checked
    """A token for the class, then one for each patch, all with their places added.

    >>> Tokens(3, 64)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 65, 192])
    """

    def __init__(self, channels: int, patches: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, WIDTH, PATCH, stride=PATCH)
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + patches, WIDTH))

    def forward(self, pictures: Tensor) -> Tensor:
        patches = self.patches(pictures).flatten(2).transpose(1, 2)
        return torch.cat([self.first.expand(len(patches), -1, -1), patches], dim=1) + self.places


class Attention(nn.Module):  # type: ignore[misc]
    r"""What every token takes from the others, in heads side by side: softmax(q k' / sqrt(d)) v.

    >>> Attention()(torch.zeros(2, 5, 192)).shape
    torch.Size([2, 5, 192])
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = nn.Linear(WIDTH, 3 * WIDTH)
        self.joined = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        heads = self.asked(tokens).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.joined(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))


class First(nn.Module):  # type: ignore[misc]
    """The class's token alone."""

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens[:, 0]


def _attending() -> Added:
    return Added(nn.Sequential(nn.LayerNorm(WIDTH), Attention()))


def _computing() -> Added:
    return Added(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH)))
