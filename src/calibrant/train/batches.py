"""Batches: what logits, labels and strengths may be, and how the losses of rows become one number."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from calibrant.checks import number, word
from calibrant.exceptions import CalibrationInputError


def checked(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (n, K) of at least 32 bits, with labels that fit: int64 indices (n,) or label masses (n, K).

    >>> checked(torch.tensor([[1.0, 2.0]]), torch.tensor([2]))
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: labels: must be class indices in 0..1, got 2 at row 0
    """
    logits = _checked_logits(logits)
    if not isinstance(labels, Tensor):
        raise CalibrationInputError("labels", "must be a torch tensor", got=type(labels).__name__)
    if labels.device != logits.device:
        raise CalibrationInputError("labels", f"must lie on {logits.device}, as logits do", got=labels.device)
    if labels.shape == logits.shape:
        return logits, _checked_masses(labels, logits)
    if labels.shape == logits.shape[:1]:
        return logits, _checked_indices(labels, logits.shape[1])
    n, classes = logits.shape
    raise CalibrationInputError(
        "labels", f"must have shape ({n},), or ({n}, {classes}) where soft", got=tuple(labels.shape)
    )


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The mean of the rows' losses, or the losses themselves.

    >>> reduced(torch.tensor([1.0, 2.0]), "mean")
    tensor(1.5000)
    """
    word(reduction, "reduction", "mean", "none")
    return losses.mean() if reduction == "mean" else losses


def strength(value: Any, parameter: str) -> None:
    """Refuse what is no finite number of at least 0.

    >>> strength(-1, "gamma")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: gamma: must be a finite number of at least 0, got -1
    """
    number(value, parameter, "must be a finite number of at least 0", lambda value: 0 <= value < math.inf)


def _checked_logits(logits: Tensor) -> Tensor:
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        got = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise CalibrationInputError("logits", "must be a torch tensor of floats", got=got)
    if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
        raise CalibrationInputError(
            "logits",
            "must have shape (n, K) with at least one row and two classes",
            got=tuple(logits.shape),
            hint="make one logit z into two by torch.stack([torch.zeros_like(z), z], 1)" if logits.ndim == 1 else None,
        )
    finite = torch.isfinite(logits)
    if not finite.all():
        row = _first_row(~finite)
        raise CalibrationInputError("logits", "must be finite", got=logits[row].tolist(), where=f"row {row}")
    return logits if logits.dtype == torch.float64 else logits.float()


def _checked_indices(labels: Tensor, classes: int) -> Tensor:
    if labels.is_floating_point() or labels.is_complex():
        raise CalibrationInputError("labels", "must be whole numbers where they are class indices", got=labels.dtype)
    labels = labels.long()
    outside = (labels < 0) | (labels >= classes)
    if outside.any():
        row = _first_row(outside)
        raise CalibrationInputError(
            "labels",
            f"must be class indices in 0..{classes - 1}",
            got=int(labels[row]),
            where=f"row {row}",
            hint="leave out the rows to be ignored" if labels[row] < 0 else None,
        )
    return labels


def _checked_masses(labels: Tensor, logits: Tensor) -> Tensor:
    if labels.is_complex():
        raise CalibrationInputError("labels", "must be real where they are soft", got=labels.dtype)
    grain = torch.finfo(labels.dtype).eps if labels.is_floating_point() else 0.0
    labels = labels.to(logits.dtype)
    off = ~((labels >= 0).all(1) & ((labels.sum(1) - 1).abs() <= max(1e-3, grain)))  # nan is off, too
    if off.any():
        row = _first_row(off)
        raise CalibrationInputError(
            "labels", "rows of soft labels must be masses that sum to 1", got=labels[row].tolist(), where=f"row {row}"
        )
    return labels


def _first_row(bad: Tensor) -> int:
    return int(bad.nonzero()[0, 0])
