"""Building: a network by its name, from a seed of its own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.checks import is_whole, whole, word
from calibrant.exceptions import CalibrationInputError, nearest

if TYPE_CHECKING:
    from torch import nn

_FAMILIES = {
    "cnn": "cnn",
    "densenet40": "densenet",
    "densenet100": "densenet",
    "densenet121": "densenet",
    "densenet201": "densenet",
    "linear": "perceptron",
    "mlp": "perceptron",
    "mobilenet_v2": "mobilenet",
    "resnet": "resnet",
    "resnet9": "resnet",
    "resnet18": "resnet",
    "resnet34": "resnet",
    "resnet50": "resnet",
    "resnet110": "resnet",
    "vgg16": "vgg",
    "vit": "vit",
}
NAMES = tuple(_FAMILIES)
"""The networks; each is a function of this name in the module of its family."""
SIZES = {"cnn": ("width",), "resnet": ("depth", "width"), "resnet9": ("width",), "vit": ("width",)}
"""The networks that come in several sizes, and what can be chosen of them."""
INITIALISATIONS = ("default", "glorot", "normal")
_TABULAR = ("linear", "mlp")
_SMALLEST = 8


def build(
    name: str, *, shape: tuple[int, ...], classes: int, seed: int = 0, initialisation: str = "default", **sizes: int
) -> nn.Module:
    """A network that maps inputs (n, *shape) to logits (n, classes), its weights drawn by the seed.

    `shape` is that of one input: (channels, height, width) for pictures of at least 8 x 8, of which `vit` needs sides
    that are multiples of 4; `linear` and `mlp` take any shape, so also (columns,). `initialisation` is the layers' own
    ("default"), Glorot's uniform with biases of 0 ("glorot", Glorot & Bengio 2010), or standard normal in weights and
    biases ("normal", a poor one on purpose, as Nixon et al. 2019 compare). Both act on convolutions and affine
    layers and leave normalisations and the tokens of `vit` as they are. `sizes` are those of `SIZES`, such as width=64.

    The state of torch's generators is the same before and after, on all devices; the network is on the CPU.

    >>> from calibrant.experiments.training.networks import build
    >>> network = build("mlp", shape=(4,), classes=3, seed=0)
    >>> network
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=256, bias=True)
      (2): ReLU()
      (3): Linear(in_features=256, out_features=256, bias=True)
      (4): ReLU()
      (5): Linear(in_features=256, out_features=3, bias=True)
    )
    """
    check_name(name)
    check_sizes(name, **sizes)
    _check_shape(name, shape)
    whole(classes, "classes", 2)
    whole(seed, "seed", 0, 2**63 - 1)
    word(initialisation, "initialisation", *INITIALISATIONS)
    torch = _torch()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also reseed every GPU
        network = _maker(name)(tuple(map(int, shape)), int(classes), **sizes)
        _initialiser(initialisation)(network)
    return network


def check_name(name: Any) -> None:
    """Refuse what names no network.

    >>> check_name("resnet-18")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: name: must name a network, got 'resnet-18'; did you mean 'resnet18'?
    """
    if not isinstance(name, str) or name not in NAMES:
        raise CalibrationInputError("name", "must name a network", got=repr(name), hint=nearest(str(name), NAMES))


def check_sizes(name: str, **sizes: int) -> None:
    """Refuse sizes that a network does not come in.

    >>> check_sizes("resnet", depth=21)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: depth: must be 8, 14, 20, .. (6 n + 2) for resnet, got 21
    """
    for size, value in sizes.items():
        whole(value, size, 1)
        if size not in SIZES.get(name, ()):
            hint = "; ".join(f"{network} has {', '.join(known)}" for network, known in SIZES.items())
            raise CalibrationInputError(
                size, f"must be a size of {name}, which has none such", got=str(value), hint=hint
            )
    if name == "vit" and sizes.get("width", 64) % 64:
        raise CalibrationInputError("width", "must be a multiple of 64 for vit", got=str(sizes["width"]))
    depth = sizes.get("depth", 8)
    if depth < 8 or depth % 6 != 2:
        raise CalibrationInputError("depth", "must be 8, 14, 20, .. (6 n + 2) for resnet", got=str(depth))


def _check_shape(name: str, shape: Any) -> None:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if not sizes or not all(is_whole(size) and size > 0 for size in sizes):
        raise CalibrationInputError("shape", "must be the sizes of one input, such as (3, 32, 32)", got=repr(shape))
    if name in _TABULAR:
        return
    if len(sizes) != 3 or min(sizes[1:]) < _SMALLEST:
        raise CalibrationInputError(
            "shape",
            f"must be (channels, height, width) of at least {_SMALLEST} x {_SMALLEST} for {name}",
            got=repr(shape),
            hint="mlp and linear take any shape",
        )


def _torch() -> Any:
    try:
        return import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "calibrant.experiments.training.networks needs torch: pip install 'calibrant[torch]'"
        ) from error


def _maker(name: str) -> Callable[..., nn.Module]:
    return getattr(import_module(f"calibrant.experiments.training.networks.{_FAMILIES[name]}"), name)


def _initialiser(initialisation: str) -> Callable[[nn.Module], None]:
    return getattr(import_module("calibrant.experiments.training.networks.initialising"), initialisation)
