"""The small convolutional network of MNIST and Fashion-MNIST studies."""

from __future__ import annotations

from torch import nn

HIDDEN = 1024
"""The width of the hidden affine layer."""


def cnn(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Convolutions of 32 and 64 filters of 5 x 5, each with ReLU and pooling by 2, a hidden layer of 1024, logits.

    Pictures of 28 x 28 come to the hidden layer as 64 x 7 x 7 = 3136 numbers.

    References: Nixon et al. (2019), appendix A.

    >>> [layer.in_features for layer in cnn((1, 28, 28), 10) if isinstance(layer, nn.Linear)]
    [3136, 1024]
    """
    channels, height, width = shape
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(64 * (height // 4) * (width // 4), HIDDEN), nn.ReLU()),
        nn.Linear(HIDDEN, classes),
    )
