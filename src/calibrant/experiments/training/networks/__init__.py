"""Networks: those of calibration studies by their names, seeded, for pictures of any size and for tables.

`NAMES` needs no torch; building does.

>>> from calibrant.experiments.training import networks
>>> network = networks.build("resnet18", shape=(1, 28, 28), classes=10, seed=0)
>>> f"{sum(parameter.numel() for parameter in network.parameters()):,}"
'11,172,810'
"""

from __future__ import annotations

from calibrant.experiments.training.networks.building import INITIALISATIONS, NAMES, build, check_name, check_sizes

__all__ = ["INITIALISATIONS", "NAMES", "build", "check_name", "check_sizes"]
