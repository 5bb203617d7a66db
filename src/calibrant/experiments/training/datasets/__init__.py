"""Data sets: named collections of rows, read from local files and split for training, validation and testing.

NumPy alone reads them; Pillow and scikit-learn are asked only by the sets that need them. Nothing is fetched from
anywhere, and a set that is not there says how to get it.

>>> from calibrant.experiments.training import datasets
>>> datasets.NAMES
('breast_cancer', 'cifar10', 'cifar100', 'digits', 'fashion_mnist', 'iris', 'mnist', 'wine')
>>> datasets.KINDS
('counts', 'csv', 'folder', 'npz', 'text')
"""

from __future__ import annotations

from calibrant.experiments.training.datasets.dataset import Dataset, Split
from calibrant.experiments.training.datasets.loading import KINDS, NAMES, check_name, load

__all__ = ["KINDS", "NAMES", "Dataset", "Split", "check_name", "load"]
