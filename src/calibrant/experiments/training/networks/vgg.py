"""VGG: convolutions of 3 x 3 one after the other, with batch normalisation (Simonyan & Zisserman 2015)."""

from __future__ import annotations

from torch import nn

from calibrant.experiments.training.networks.blocks import classified

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""The widths of the convolutions, by stage; every stage ends by pooling."""


def vgg16(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Thirteen convolutions in five stages and, as small pictures need no more, one affine layer.

    A side that is no multiple of 32 is pooled upwards, so that 28 ends at 1 as 32 does.

    >>> sum(parameter.numel() for parameter in vgg16((3, 32, 32), 10).parameters())
    14728266
    """
    layers: list[nn.Module] = []
    inputs = shape[0]
    for stage in STAGES:
        for width in stage:
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            inputs = width
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return nn.Sequential(*layers, *classified(inputs, classes))
