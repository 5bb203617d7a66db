"""Twelve forecasts of three classes with two decimals each: they sit on bin edges and tie on purpose."""

import numpy as np

P = np.array(
    [
        [0.80, 0.15, 0.05],
        [0.10, 0.70, 0.20],
        [0.25, 0.25, 0.50],
        [0.60, 0.30, 0.10],
        [0.33, 0.34, 0.33],
        [0.05, 0.90, 0.05],
        [0.45, 0.10, 0.45],
        [0.02, 0.03, 0.95],
        [0.55, 0.40, 0.05],
        [0.20, 0.65, 0.15],
        [0.12, 0.18, 0.70],
        [0.98, 0.01, 0.01],
    ]
)
y = np.array([0, 1, 2, 1, 0, 1, 2, 2, 0, 0, 2, 0])
Z = np.round(1.7 * np.log(P), 4)
