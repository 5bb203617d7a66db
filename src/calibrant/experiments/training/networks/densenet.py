"""Densely connected networks: every layer sees the outputs of all before it (Huang et al. 2017)."""

from __future__ import annotations

from torch import nn

from calibrant.experiments.training.networks.blocks import Appended, classified, convolution


def densenet40(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Three blocks of twelve layers of growth 12, without bottlenecks.

    >>> sum(parameter.numel() for parameter in densenet40((3, 32, 32), 10).parameters())
    1019722
    """
    return _dense(shape[0], classes, blocks=(12, 12, 12), growth=12, stem=16, bottleneck=False)


def densenet100(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """DenseNet-BC: three blocks of sixteen bottleneck layers of growth 12, halved in between."""
    return _dense(shape[0], classes, blocks=(16, 16, 16), growth=12, stem=24)


def densenet121(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Blocks of 6, 12, 24 and 16 bottleneck layers of growth 32, with a stem for small pictures."""
    return _dense(shape[0], classes, blocks=(6, 12, 24, 16), growth=32, stem=64)


def densenet201(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Blocks of 6, 12, 48 and 32 bottleneck layers of growth 32, with a stem for small pictures."""
    return _dense(shape[0], classes, blocks=(6, 12, 48, 32), growth=32, stem=64)


def _dense(
    channels: int, classes: int, *, blocks: tuple[int, ...], growth: int, stem: int, bottleneck: bool = True
) -> nn.Sequential:
    """A stem of 3 x 3 at full size, then blocks; with bottlenecks, transitions also halve the channels."""
    layers: list[nn.Module] = [convolution(channels, stem)]
    width = stem
    for index, count in enumerate(blocks):
        if index:
            outputs = width // 2 if bottleneck else width
            layers += [*_activated(width, convolution(width, outputs, 1)), nn.AvgPool2d(2)]
            width = outputs
        for _ in range(count):
            layers.append(Appended(_layer(width, growth, bottleneck)))
            width += growth
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), *classified(width, classes))


def _layer(width: int, growth: int, bottleneck: bool) -> nn.Sequential:
    """A convolution of 3 x 3 that makes `growth` channels, after one of 1 x 1 to four times as many, if any."""
    if not bottleneck:
        return nn.Sequential(*_activated(width, convolution(width, growth)))
    narrow = _activated(width, convolution(width, 4 * growth, 1))
    return nn.Sequential(*narrow, *_activated(4 * growth, convolution(4 * growth, growth)))


def _activated(width: int, layer: nn.Conv2d) -> list[nn.Module]:
    return [nn.BatchNorm2d(width), nn.ReLU(), layer]
