"""Scaling: inputs brought to mean 0 and standard deviation 1, as the training rows have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.door.arrays import Array

_ROWS_AT_ONCE = 4096
"""Rows that are held in float64 at a time."""


@dataclass(frozen=True, eq=False)
class Standard:
    """Inputs (n, channels, ...), less the channel's mean, over its standard deviation, in float32.

    >>> Standard(np.array([1.0, 10.0]), np.array([2.0, 5.0]))(np.array([[3.0, 0.0]])).tolist()
    [[1.0, -2.0]]
    """

    mean: Array
    deviation: Array

    def __call__(self, inputs: Array) -> Array:
        if inputs.dtype == np.uint8 and inputs.ndim > 2:
            return self._looked_up(inputs)
        scaled = np.empty(inputs.shape, np.float32)
        one = (-1,) + (1,) * (inputs.ndim - 2)
        mean, deviation = self.mean.reshape(one), self.deviation.reshape(one)
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            scaled[rows] = (inputs[rows] - mean) / deviation
        return scaled

    def _looked_up(self, pixels: Array) -> Array:
        """Pixels have 256 values: each is scaled once."""
        scaled = np.empty(pixels.shape, np.float32)
        values = (np.arange(256) - self.mean[:, None]) / self.deviation[:, None]
        for channel, table in enumerate(values.astype(np.float32)):
            scaled[:, channel] = table[pixels[:, channel]]
        return scaled


def standardise(train: Array) -> Standard:
    r"""What mean and standard deviation have the training inputs (n, channels, ...) in each channel?

    .. math:: \mu_c = \frac1m \sum x_c, \quad \sigma_c = \sqrt{\frac1m \sum (x_c - \mu_c)^2}

    over all rows and pixels; columns of a table are channels. A channel that never changes has a deviation of 1, which
    makes it 0. Pixels in uint8 are counted by value, so that nothing is rounded before the last division.

    >>> standard = standardise(np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> standard.mean.tolist(), standard.deviation.tolist()
    ([2.0, 7.0], [1.0, 1.0])
    """
    if train.dtype == np.uint8 and train.ndim > 2:
        moments = [_counted(train[:, channel]) for channel in range(train.shape[1])]
        mean, deviation = np.array(moments).reshape(-1, 2).T
    else:
        axes = tuple(axis for axis in range(train.ndim) if axis != 1)
        mean, deviation = train.mean(axes, np.float64), train.std(axes, np.float64)
    return Standard(mean, np.where(deviation > 0, deviation, 1.0))


def _counted(pixels: Array) -> tuple[float, float]:
    counts = np.bincount(pixels.ravel(), minlength=256)
    mean = counts @ np.arange(256) / counts.sum()
    return float(mean), float(np.sqrt(counts @ (np.arange(256) - mean) ** 2 / counts.sum()))
