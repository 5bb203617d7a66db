"""MobileNetV2: narrow blocks that widen inside, where each channel is filtered alone (Sandler et al. 2018)."""

from __future__ import annotations

from torch import nn

from calibrant.experiments.training.networks.blocks import Added, classified, convolution, normalised

STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks, first stride. Small pictures keep their size in the stem and in the second stage."""
STEM, HEAD = 32, 1280


def mobilenet_v2(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Seventeen inverted bottlenecks in seven stages; the size is halved three times instead of five.

    >>> sum(parameter.numel() for parameter in mobilenet_v2((3, 32, 32), 10).parameters())
    2236682
    """
    layers = normalised(convolution(shape[0], STEM), nn.ReLU6())
    inputs = STEM
    for expansion, width, count, first in STAGES:
        for index in range(count):
            layers.append(_inverted(inputs, width, first if not index else 1, expansion))
            inputs = width
    return nn.Sequential(*layers, *normalised(convolution(inputs, HEAD, 1), nn.ReLU6()), *classified(HEAD, classes))


def _inverted(inputs: int, width: int, stride: int, expansion: int) -> nn.Module:
    """Widened, filtered channel by channel, narrowed without an activation; added to its input where sizes agree."""
    wide = expansion * inputs
    widened = normalised(convolution(inputs, wide, 1), nn.ReLU6()) if expansion > 1 else []
    body = nn.Sequential(
        *widened,
        *normalised(convolution(wide, wide, stride=stride, groups=wide), nn.ReLU6()),
        *normalised(convolution(wide, width, 1)),
    )
    return Added(body) if stride == 1 and inputs == width else body
