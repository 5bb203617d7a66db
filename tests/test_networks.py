"""Networks without torch: their names, what building needs, and what makes no network."""

import subprocess
import sys

import pytest

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.networks import NAMES, build

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
from calibrant.experiments.training import networks
print(len(networks.NAMES))
try:
    networks.build("mlp", shape=(4,), classes=3)
except ImportError as error:
    print(error)
"""
"""Names and the error, as they are where torch is not."""


def test_without_torch_names_are_there_and_building_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        str(len(NAMES)),
        "calibrant.experiments.training.networks needs torch: pip install 'calibrant[torch]'",
    ]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"name": "resnet-18"}, "name: must name a network, got 'resnet-18'; did you mean 'resnet18'"),
        ({"name": None}, "name: must name a network"),
        ({"shape": 28}, "shape: must be the sizes of one input"),
        ({"shape": ()}, "shape: must be the sizes of one input"),
        ({"shape": (1, 28, 0)}, "shape: must be the sizes of one input"),
        ({"shape": (1, 28.0, 28)}, "shape: must be the sizes of one input"),
        ({"shape": (784,)}, r"must be \(channels, height, width\) of at least 8 x 8 for cnn.*mlp and linear"),
        ({"shape": (1, 7, 28)}, r"of at least 8 x 8 for cnn"),
        ({"classes": 1}, "classes: must be a whole number of at least 2"),
        ({"seed": -1}, "seed: must be a whole number"),
        ({"seed": 1.5}, "seed: must be a whole number"),
        ({"initialisation": "he"}, 'initialisation: must be "default", "glorot" or "normal", got \'he\''),
    ],
)
def test_what_makes_no_network_is_refused(options, match):
    name = options.pop("name", "cnn")
    with pytest.raises(CalibrationInputError, match=match):
        build(name, **({"shape": (1, 28, 28), "classes": 10} | options))
