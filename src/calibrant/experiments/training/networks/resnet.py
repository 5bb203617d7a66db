"""Residual networks: blocks that add what they compute to what they were given (He et al. 2016)."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from calibrant.experiments.training.networks.blocks import Added, Padded, classified, convolution, normalised

Block = Callable[[int, int, int], nn.Module]
"""From the channels that come in, the block's width and its stride."""


def resnet18(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two basic blocks in each of four stages, from 64 to 512 channels.

    >>> sum(parameter.numel() for parameter in resnet18((3, 32, 32), 10).parameters())
    11173962
    """
    return _residual(shape[0], classes, _basic, blocks=(2, 2, 2, 2), width=64)


def resnet34(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Three, four, six and three basic blocks, from 64 to 512 channels."""
    return _residual(shape[0], classes, _basic, blocks=(3, 4, 6, 3), width=64)


def resnet50(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Three, four, six and three bottleneck blocks, from 256 to 2048 channels."""
    return _residual(shape[0], classes, _bottleneck, blocks=(3, 4, 6, 3), width=64, expansion=4)


def resnet(shape: tuple[int, ...], classes: int, depth: int = 20, width: int = 16) -> nn.Sequential:
    """Three stages of (depth - 2) / 6 blocks each, of 16, 32 and 64 channels, with shortcuts that have no weights.

    The networks for small pictures of He et al. (2016), section 4.2: depths are 8, 14, 20, .., 110, ..; `width` is that
    of the first stage.

    >>> sum(parameter.numel() for parameter in resnet((3, 32, 32), 10).parameters())
    269722
    """
    blocks = (depth - 2) // 6
    return _residual(shape[0], classes, _light, blocks=(blocks,) * 3, width=width)


def resnet9(shape: tuple[int, ...], classes: int, width: int = 64) -> nn.Sequential:
    """Three stages that double the channels and then pool, a block of two convolutions in the first and the last.

    As Page (2018) trains it in few epochs; `width` is that of the stem.

    >>> sum(parameter.numel() for parameter in resnet9((3, 32, 32), 10).parameters())
    6573130
    """
    layers = normalised(convolution(shape[0], width), nn.ReLU())
    for stage in range(3):
        inputs = width << stage
        layers += [*normalised(convolution(inputs, 2 * inputs), nn.ReLU()), nn.MaxPool2d(2, ceil_mode=True)]
        if stage != 1:
            block = normalised(convolution(2 * inputs, 2 * inputs), nn.ReLU())
            layers.append(Added(nn.Sequential(*block, *normalised(convolution(2 * inputs, 2 * inputs), nn.ReLU()))))
    return nn.Sequential(*layers, *classified(8 * width, classes))


def resnet110(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The deepest of them that is usual: 1 + 108 convolutions and one affine layer."""
    return resnet(shape, classes, depth=110)


def _residual(
    channels: int, classes: int, block: Block, *, blocks: tuple[int, ...], width: int, expansion: int = 1
) -> nn.Sequential:
    """A stem of 3 x 3 at full size, as small pictures need, then stages of which all but the first halve the size."""
    layers = normalised(convolution(channels, width), nn.ReLU())
    inputs = width
    for stage, count in enumerate(blocks):
        for index in range(count):
            layers += [block(inputs, width << stage, 2 if stage and not index else 1), nn.ReLU()]
            inputs = expansion * width << stage
    return nn.Sequential(*layers, *classified(inputs, classes))


def _basic(inputs: int, width: int, stride: int) -> Added:
    """Two convolutions of 3 x 3."""
    return Added(_two(inputs, width, stride), _projected(inputs, width, stride))


def _light(inputs: int, width: int, stride: int) -> Added:
    """A basic block whose shortcut pads channels with zeros."""
    return Added(_two(inputs, width, stride), None if inputs == width else Padded(width - inputs))


def _bottleneck(inputs: int, width: int, stride: int) -> Added:
    """A convolution of 3 x 3 between two of 1 x 1, of which the last has four times the width."""
    body = nn.Sequential(
        *normalised(convolution(inputs, width, 1), nn.ReLU()),
        *normalised(convolution(width, width, stride=stride), nn.ReLU()),
        *normalised(convolution(width, 4 * width, 1)),
    )
    return Added(body, _projected(inputs, 4 * width, stride))


def _two(inputs: int, width: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        *normalised(convolution(inputs, width, stride=stride), nn.ReLU()), *normalised(convolution(width, width))
    )


def _projected(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """The shortcut: nothing where sizes agree, else a convolution of 1 x 1."""
    return (
        None
        if inputs == outputs and stride == 1
        else nn.Sequential(*normalised(convolution(inputs, outputs, 1, stride=stride)))
    )
