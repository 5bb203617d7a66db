"""torchmetrics: calibration metrics for training loops, whose states are whole numbers that add over processes."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

try:
    importlib.import_module("torchmetrics")
except ModuleNotFoundError as missing:
    if missing.name not in ("torch", "torchmetrics"):
        raise
    raise ImportError(f"Calibration needs {missing.name}: pip install 'calibrant[torchmetrics]'") from None

import torch
import torchmetrics
from torchmetrics.utilities.distributed import gather_all_tensors

from calibrant.door import remarks
from calibrant.door.options import LabelOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.integrations.registers import LIMBS, MOST, Registers, agree, body_of, signature
from calibrant.kernels.totals import HALF, Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.scale.state import ALL, State, first_pass, reading
from calibrant.summaries import Summary

STATES = ("counts", "totals")


class Calibration(torchmetrics.Metric):  # type: ignore[misc]
    r"""A metric of calibrant in a training loop: `update(preds, target)`, `compute()`, `reset()`.

    The value is that of all rows at once, to the bit, however they were put into batches and processes. `predictions`
    says what `preds` are: probabilities, or logits with `Predictions.from_logits`. Options such as `ignore_index`
    and `class_axis` go to it, all others to `torchmetrics.Metric`. `result()` gives the `Result`, with its bins,
    and `state()` the `State` that can be saved and added to others; both are of all processes, like `compute`.

    States are two tensors of int64 that are added over processes. They take their size from the number of classes of
    the first batch and never grow. Errors in fixed bins and mean scores keep their totals. Metrics that follow the
    order of forecasts, such as `AUROC`, count them in 3,491 cells for each question: the result is exact, or has
    bounds. Totals are held as a whole part below 2\ :sup:`43` and two limbs of 26 bits, so that the sum of 2\ :sup:`20`
    processes stays within int64; a larger total is refused. Metrics that keep rows, such as `FULL_ECE`, are refused.

    >>> import torch, calibrant as cal
    >>> from calibrant.integrations.torchmetrics import Calibration
    >>> metric = Calibration(cal.ECE, cal.Predictions.from_logits, ignore_index=-100)
    >>> metric.update(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([[0.5, 0.0], [0.0, 1.0]]), torch.tensor([1, -100]))
    >>> print(metric.result())
    ECE 0.3369 (n=3, top label, 15 equal-width bins)
    >>> metric.compute().item() == metric.result().value
    True
    """

    full_state_update = False
    is_differentiable = False
    counts: Any
    totals: Any

    def __init__(
        self, metric: Metric, predictions: Callable[..., Predictions] = Predictions.from_probs, **options: Any
    ) -> None:
        if not isinstance(metric, Metric):
            raise CalibrationInputError("metric", "must be a metric", got=repr(metric), hint="such as ECE")
        known = LabelOptions.__annotations__.keys() & options.keys()
        own = {name: options.pop(name) for name in known}
        super().__init__(**{"dist_sync_fn": gathered, **options})
        self.metric, self.predictions, self.options = metric, predictions, own
        self._registers: dict[int, Registers] = {}
        for name, shape in zip(STATES, ((0,), (LIMBS, 0)), strict=True):
            self.add_state(name, torch.zeros(shape, dtype=torch.int64), dist_reduce_fx="sum")

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a larger value is better; None where neither is."""
        lower = self.metric.facts.lower_is_better
        return None if lower is None else not lower

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch: forecasts, and what came true of them."""
        batch = self.predictions(target, preds, copy=False, **self.options)
        registers = self._registers_of(batch.n_classes)
        entries = registers.encode(first_pass(self.metric).summarise(batch))
        counts, totals = self._opened(registers)
        places, numbers, columns, limbs = (torch.as_tensor(each, device=counts.device) for each in entries)
        sums = carried(totals[:, columns] + limbs)
        _require_room(sums)
        self.counts, self.totals = counts.index_add(0, places, numbers), totals.index_copy(1, columns, sums)

    def compute(self) -> Any:
        """The value of all batches, as a tensor of float64."""
        value = self._held().result(self.metric).value
        return torch.tensor(value, dtype=torch.float64, device=self.counts.device)

    def result(self) -> Result:
        """The result of the batches of all processes: value, bins, bounds and notes."""
        return self.state().result(self.metric)

    def state(self) -> State:
        """What is kept of the batches of all processes, under the metric's name.

        >>> import torch, calibrant as cal
        >>> metric = Calibration(cal.ECE)
        >>> metric.update(torch.tensor([.9, .2], dtype=torch.float64), torch.tensor([1, 0]))
        >>> of_rows = cal.scale.State.of(cal.Predictions.from_probs([1, 0], [.9, .2]), {"ECE": cal.ECE})
        >>> metric.state().to_bytes() == of_rows.to_bytes()
        True
        """
        apart = not self._is_synced
        with self.sync_context(self.dist_sync_fn, should_sync=apart and self.sync_on_compute, should_unsync=apart):
            return self._held()

    def set_dtype(self, dst_type: Any) -> Calibration:
        """Itself: its states are whole numbers, whatever the forecasts are."""
        return self

    def extra_repr(self) -> str:
        """The metric, for printing."""
        return self.metric.name

    def _registers_of(self, classes: int) -> Registers:
        """Where the numbers of batches of so many classes stand; 0 is one event."""
        if classes not in self._registers:
            first, row = first_pass(self.metric), np.eye(1, classes) if classes else np.ones(1)
            names = {name: self.options[name] for name in ("classes",) if name in self.options}
            template = first.summarise(self.predictions(row, row, **names))
            body, words = body_of(template), remarks.possible(self.options.get("ignore_index"))
            if body is None:
                hint = "use fixed bins, a mean score or a metric of sorted forecasts, or measure the rows themselves"
                expected = "must keep a fixed number of totals, and no rows"
                raise CalibrationInputError("metric", expected, got=self.metric.name, hint=hint)
            self._registers[classes] = Registers(template.about, body, self._signature(classes), words)
        return self._registers[classes]

    @property
    def _intake(self) -> str:
        """How batches become predictions."""
        call = re.sub(" at 0x[0-9a-f]+", "", repr(self.predictions))  # where a function lies differs between processes
        return f"{call}, {sorted(self.options.items())}"

    def _signature(self, classes: int) -> Ints:
        """What the states of all processes must share."""
        return signature(f"{reading(first_pass(self.metric))}, {self._intake}", classes)

    def _opened(self, registers: Registers) -> tuple[Any, Any]:
        """The states in full size; refused where earlier batches had another number of classes."""
        if not self.counts.numel():
            counts, totals = map(self.counts.new_zeros, registers.shapes)
            return counts, totals
        known = self.counts[: len(registers.signature)].cpu().numpy()
        if not agree(known, registers.signature):
            got = f"{registers.signature[1]} after {known[1] // known[0]} (0: one event)"
            raise CalibrationInputError("preds", "must have the same number of classes in all batches", got=got)
        return self.counts, self.totals

    def _held(self) -> State:
        """What the states hold, of this process or, where they are synchronised, of all."""
        counts, totals = (state.cpu().numpy() for state in (self.counts, self.totals))
        if not counts.any():
            hint = "call update(preds, target)"
            raise CalibrationInputError("Calibration", "must have seen predictions", got="none", hint=hint)
        classes = int(counts[1] // counts[0])
        if not agree(counts, self._signature(classes)):
            raise _unlike()
        summary = self._registers_of(classes).decode(counts, totals)
        return State({self.metric.name: self.metric}, None, {ALL: (summary,)})

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        """As torchmetrics adds states in `forward` and `merge_state`; one without batches counts as zeros."""
        incoming = dict(incoming_state)
        for name in STATES:
            state, incoming[name] = filled([getattr(self, name), incoming[name]])
            setattr(self, name, state)
        super()._reduce_states(incoming)
        self.totals = carried(self.totals)
        _require_room(self.totals)


def state_of(metrics: Mapping[str, Calibration]) -> State:
    """One state of several metrics, such as those of a `MetricCollection`, of the batches of all processes.

    What several of them read is kept once. All processes must call it, with the same metrics. Metrics that take other
    rows, or read them with other options, are refused.

    >>> import torch, calibrant as cal
    >>> metrics = {"ece": Calibration(cal.ECE), "auroc": Calibration(cal.AUROC)}
    >>> for metric in metrics.values():
    ...     metric.update(torch.tensor([.9, .2], dtype=torch.float64), torch.tensor([1, 0]))
    >>> of_rows = cal.Predictions.from_probs([1, 0], [.9, .2])
    >>> state_of(metrics).to_bytes() == cal.scale.State.of(of_rows, {"ece": cal.ECE, "auroc": cal.AUROC}).to_bytes()
    True
    """
    own = {name: calibration.metric for name, calibration in metrics.items()}
    summaries: dict[str, Summary] = {}
    for calibration in metrics.values():
        line = reading(first_pass(calibration.metric))
        if line not in summaries:
            summaries[line] = calibration.state().summary(calibration.metric)
    takes = {(calibration._intake, calibration.update_count) for calibration in metrics.values()}
    if len(takes) != 1:
        expected = "of one state must see the same batches, with the same options"
        raise CalibrationInputError("metrics", expected, got=f"{len(takes)} ways to read them")
    return State(own, None, {ALL: tuple(summaries.values())})


def gathered(state: Any, group: Any = None) -> list[Any]:
    """The states of all processes, as torchmetrics gathers them; one without batches counts as zeros."""
    return filled(gather_all_tensors(state, group))


def filled(states: list[Any]) -> list[Any]:
    """States of one size: zeros for those without batches.

    >>> filled([torch.zeros(0, dtype=torch.int64), torch.tensor([1, 2])])
    [tensor([0, 0]), tensor([1, 2])]
    """
    largest = max(states, key=torch.Tensor.numel)
    sized = [state if state.numel() else torch.zeros_like(largest) for state in states]
    if any(state.shape != largest.shape for state in sized):
        raise _unlike()
    return sized


def carried(limbs: Any) -> Any:
    """Whole parts and limbs of totals (3, m) in their one form.

    >>> carried(torch.tensor([[0], [0], [(1 << 52) + 5]])).ravel().tolist()
    [1, 0, 5]
    """
    whole, high, low = limbs
    high = high + (low >> HALF)
    return torch.stack([whole + (high >> HALF), high % (1 << HALF), low % (1 << HALF)])


def _unlike() -> CalibrationInputError:
    expected = "of all batches and processes must be of one metric, its options and one number of classes"
    return CalibrationInputError("states", expected, got="different ones")


def _require_room(limbs: Any) -> None:
    """Refuse totals of which 2^20 could leave int64."""
    if limbs.numel() and int(limbs[0].abs().max()) >= MOST:
        raise CalibrationInputError("totals", "of one process must stay below 2^43", got="a larger one")
