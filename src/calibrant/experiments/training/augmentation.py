"""Pictures: mirrored and shifted at random, so that a network does not learn them by heart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Changes:
    """What becomes of a batch's n pictures: which are mirrored (n,), how far each goes down and right (2, n, 1)."""

    mirrored: Tensor | None
    shifts: Tensor | None


def changes(
    how: Mapping[str, Any], sizes: Sequence[int], generator: torch.Generator, device: str = "cpu"
) -> list[Changes]:
    """Those of batches of these sizes: `flip` mirrors half of the pictures, `crop` shifts by up to so many pixels.

    They are drawn on the CPU, batch after batch, and copied together, as each copy waits for the device.
    """
    import torch

    flip, most = bool(how.get("flip")), int(how.get("crop", 0))
    mirrored, shifts = [], []
    for n in sizes:
        if flip:
            mirrored.append(torch.rand(n, generator=generator) < 0.5)
        if most:
            shifts.append(torch.randint(0, 2 * most + 1, (2, n, 1), generator=generator))
    none = [None] * len(sizes)
    of_batches = (
        torch.cat(several, dim=dim).to(device).split(list(sizes), dim) if several else none
        for several, dim in ((mirrored, 0), (shifts, 1))
    )
    return [Changes(*each) for each in zip(*of_batches, strict=True)]


def augmented(inputs: Tensor, how: Mapping[str, Any], change: Changes) -> Tensor:
    """Pictures (n, channels, height, width) after a change; what is shifted in is 0."""
    import torch
    from torch.nn.functional import pad

    if change.mirrored is not None:
        inputs = torch.where(change.mirrored[:, None, None, None], inputs.flip(3), inputs)
    if change.shifts is None:
        return inputs
    n, _, height, width = inputs.shape
    down, right = change.shifts
    rows = down + torch.arange(height, device=inputs.device)
    columns = right + torch.arange(width, device=inputs.device)
    padded = pad(inputs, (int(how["crop"]),) * 4)
    each = torch.arange(n, device=inputs.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()
