"""Pictures: mirrored and shifted at random, so that a network does not learn them by heart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def augmented(inputs: Tensor, how: Mapping[str, Any], generator: torch.Generator) -> Tensor:
    """Pictures (n, channels, height, width) mirrored at random (`flip`) and shifted by up to `crop` pixels."""
    import torch
    from torch.nn.functional import pad

    n = len(inputs)
    if how.get("flip"):
        mirrored = (torch.rand(n, generator=generator) < 0.5).to(inputs.device)
        inputs = torch.where(mirrored[:, None, None, None], inputs.flip(3), inputs)
    most = int(how.get("crop", 0))
    if most == 0:
        return inputs
    height, width = inputs.shape[2:]
    down, right = torch.randint(0, 2 * most + 1, (2, n, 1), generator=generator)
    rows, columns = (down + torch.arange(height)).to(inputs.device), (right + torch.arange(width)).to(inputs.device)
    padded = pad(inputs, (most,) * 4)
    each = torch.arange(n, device=inputs.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()
