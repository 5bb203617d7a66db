"""Mix-up: training on blends of two samples and of their labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.train.batches import strength
from calibrant.train.losses import cross_entropy


@dataclass(frozen=True, eq=False)
class Mixed:
    """A batch whose row i is `share` of row i and 1 - `share` of its partner; see :func:`mixup`.

    >>> import torch
    >>> from calibrant.train import Mixed
    >>> Mixed(torch.tensor([[1.0]]), torch.tensor([0]), torch.tensor([2]), share=0.25).soft_labels(3)
    tensor([[0.2500, 0.0000, 0.7500]])
    """

    inputs: Tensor
    labels: Tensor
    partner_labels: Tensor
    share: float

    def soft_labels(self, classes: int) -> Tensor:
        """The blended labels (n, classes), in torch's default precision where labels are class indices."""
        whole(classes, "classes", 2)
        own, partners = (_masses(labels, classes) for labels in (self.labels, self.partner_labels))
        return self.share * own + (1 - self.share) * partners


def mixup(inputs: Tensor, labels: Tensor, alpha: float = 0.2, *, generator: torch.Generator) -> Mixed:
    r"""What does the batch look like when every sample is blended with another?

    .. math:: \tilde x_i = \lambda x_i + (1 - \lambda) x_{\pi(i)}, \quad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    with one lambda and one random order pi for the whole batch, both drawn from the generator, which may lie on another
    device than the inputs. alpha = 0 leaves the batch as it is. Inputs (n, ...) are floats; labels are class indices
    (n,) or soft labels (n, K). Lambda is exact for all alpha: with U, V uniform and :math:`w = U^{1/\alpha}`,
    :math:`c = \cos 2 \pi V`, it is :math:`\frac12 + \frac{c}{2} \sqrt{\frac{1 - w}{w + c^2 (1 - w)}}` (Devroye 1996).

    Train with :func:`mixup_loss`; validate on inputs that are not mixed.

    References: Zhang et al. (2018); Thulasidasan et al. (2019).

    >>> import torch
    >>> from calibrant.train import mixup
    >>> pictures, labels = torch.eye(4), torch.arange(4)
    >>> mixed = mixup(pictures, labels, alpha=1.0, generator=torch.Generator().manual_seed(0))
    >>> mixed.inputs.shape == pictures.shape, 0 < mixed.share < 1
    (True, True)
    """
    strength(alpha, "alpha")
    _check_batch(inputs, labels)
    if not isinstance(generator, torch.Generator):
        raise CalibrationInputError("generator", "must be a torch.Generator", got=type(generator).__name__)
    share = _share(alpha, generator)
    partner = torch.randperm(len(inputs), generator=generator, device=generator.device)
    partners = inputs[partner.to(inputs.device)]
    return Mixed(torch.lerp(partners, inputs, share), labels, labels[partner.to(labels.device)], share)


def mixup_loss(logits: Tensor, mixed: Mixed, loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy) -> Tensor:
    r"""How surprised is the model by both labels of a blend, each as far as it is in it?

    .. math:: \lambda\, \ell(z, y) + (1 - \lambda)\, \ell(z, y_\pi)

    where `loss(logits, labels)` is cross-entropy or any other; for cross-entropy this is the loss of the blended label.

    References: Zhang et al. (2018).

    >>> import torch
    >>> from calibrant.train import Mixed, mixup_loss
    >>> mixed = Mixed(torch.zeros(1, 1), torch.tensor([0]), torch.tensor([2]), share=0.3)
    >>> print(f"{mixup_loss(torch.tensor([[2.0, 0.5, -1.0]]), mixed):.4f}")
    2.3413
    """
    if not isinstance(mixed, Mixed):
        raise CalibrationInputError("mixed", "must be what mixup returned", got=type(mixed).__name__)
    return mixed.share * loss(logits, mixed.labels) + (1 - mixed.share) * loss(logits, mixed.partner_labels)


def _check_batch(inputs: Tensor, labels: Tensor) -> None:
    if not isinstance(inputs, Tensor) or inputs.ndim == 0 or not inputs.is_floating_point():
        got = f"{inputs.dtype} of shape {tuple(inputs.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
        raise CalibrationInputError("inputs", "must be a torch tensor (n, ...) of floats", got=got)
    if not isinstance(labels, Tensor) or labels.ndim not in (1, 2) or len(labels) != len(inputs):
        got = str(tuple(labels.shape)) if isinstance(labels, Tensor) else type(labels).__name__
        raise CalibrationInputError("labels", f"must be a torch tensor ({len(inputs)},) or ({len(inputs)}, K)", got=got)


def _share(alpha: float, generator: torch.Generator) -> float:
    """One draw from Beta(alpha, alpha); the two uniforms are drawn at any alpha, so that streams stay in step."""
    uniform, angle = torch.rand(2, generator=generator, device=generator.device, dtype=torch.float64).tolist()
    if alpha == 0:
        return 1.0
    power, cosine = uniform ** (1 / alpha), math.cos(2 * math.pi * angle)
    return 0.5 + 0.5 * cosine * math.sqrt((1 - power) / (power + cosine**2 * (1 - power)))


def _masses(labels: Tensor, classes: int) -> Tensor:
    return F.one_hot(labels.long(), classes).to(torch.get_default_dtype()) if labels.ndim == 1 else labels
