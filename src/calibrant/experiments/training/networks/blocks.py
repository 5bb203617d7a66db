"""Blocks: the few ways in which layers are put together that are not one after the other."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn


class Added(nn.Module):  # type: ignore[misc] # torch is not there where types are checked
    """A body and a shortcut around it, added: f(x) + s(x).

    >>> Added(nn.ReLU())(torch.tensor([-1.0, 2.0]))
    tensor([-1.,  4.])
    """

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut

    def forward(self, inputs: Tensor) -> Tensor:
        return self.body(inputs) + self.shortcut(inputs)


class Appended(nn.Module):  # type: ignore[misc]
    """The input, and behind its channels those that the body makes of it.

    >>> Appended(nn.ReLU())(torch.tensor([[-1.0, 2.0]]))
    tensor([[-1.,  2.,  0.,  2.]])
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.cat([inputs, self.body(inputs)], dim=1)


class Padded(nn.Module):  # type: ignore[misc]
    """Every other row and column, with channels of zeros added evenly before and behind: a shortcut without weights.

    >>> Padded(2)(torch.ones(1, 1, 4, 4)).mean(dim=(0, 2, 3))
    tensor([0., 1., 0.])
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.before, self.behind = channels // 2, channels - channels // 2

    def forward(self, inputs: Tensor) -> Tensor:
        return F.pad(inputs[:, :, ::2, ::2], (0, 0, 0, 0, self.before, self.behind))


def convolution(inputs: int, outputs: int, size: int = 3, *, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution that keeps the picture's size, but for its stride, and leaves the bias to what follows.

    >>> convolution(3, 8, stride=2)(torch.zeros(1, 3, 7, 7)).shape
    torch.Size([1, 8, 4, 4])
    """
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=False)


def normalised(layer: nn.Conv2d, *after: nn.Module) -> list[nn.Module]:
    """A convolution, its batch normalisation, and what comes after.

    >>> [type(layer).__name__ for layer in normalised(convolution(3, 8), nn.ReLU())]
    ['Conv2d', 'BatchNorm2d', 'ReLU']
    """
    return [layer, nn.BatchNorm2d(layer.out_channels), *after]


def classified(channels: int, classes: int) -> list[nn.Module]:
    """The mean of each channel over the picture, and one affine layer: the end of most networks.

    >>> nn.Sequential(*classified(8, 3))(torch.zeros(2, 8, 4, 4)).shape
    torch.Size([2, 3])
    """
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
