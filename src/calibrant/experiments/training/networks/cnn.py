"""The small convolutional network of MNIST and Fashion-MNIST studies."""

from __future__ import annotations

from torch import nn

WIDTH = 32
"""The filters of the first convolution, as published."""


def cnn(shape: tuple[int, ...], classes: int, width: int = WIDTH) -> nn.Sequential:
    """Convolutions of 32 and 64 filters of 5 x 5, each with ReLU and pooling by 2, a hidden layer of 1024, logits.

    Another `width` than 32 changes all three in proportion: width, 2 width and 32 width. Pictures of 28 x 28 come to
    the hidden layer as 64 x 7 x 7 = 3136 numbers.

    References: Nixon et al. (2019), appendix A.

    >>> [layer.in_features for layer in cnn((1, 28, 28), 10) if isinstance(layer, nn.Linear)]
    [3136, 1024]
    >>> [layer.in_features for layer in cnn((1, 28, 28), 10, width=8) if isinstance(layer, nn.Linear)]
    [784, 256]
    """
    channels, rows, columns = shape
    return nn.Sequential(
        *(nn.Conv2d(channels, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(width, 2 * width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(2 * width * (rows // 4) * (columns // 4), 32 * width), nn.ReLU()),
        nn.Linear(32 * width, classes),
    )
