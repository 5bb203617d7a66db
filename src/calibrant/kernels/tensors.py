"""Arrays on a device: torch's tensors where they are, of which NumPy gets a copy when it asks for one.

NumPy's own protocols decide what stays: comparisons, sums and the few functions that lenses use are computed on the
device; every other function of NumPy, and every other method of an array, gets a host copy, which is made once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

HALVES = (torch.float16, torch.bfloat16)
"""Types that are widened where they are computed with: NumPy gets float32."""
OPERATORS: dict[Any, Callable[..., Any]] = {
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.add: operator.add,
    np.subtract: lambda left, right: _counted(left) - _counted(right),
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.matmul: lambda left, right: left.double() @ right.double(),
}


class DeviceArray(NDArrayOperatorsMixin):
    """A tensor that stays on its device, as an array of NumPy's shape and type.

    `known` is what has been computed of its rows (tensors of n entries); it goes along where rows are taken. `labels`
    are those of its rows, if they lie on the same device: one walk looks at both. Of labels, `within` is how many
    columns a matrix has that all of them were seen to be columns of; 0 where nobody has looked.

    >>> array = DeviceArray(torch.tensor([[0.5, 0.25]], dtype=torch.bfloat16))
    >>> array.shape, array.dtype.name, type(array[:, None, :] > 0.3).__name__
    ((1, 2), 'float32', 'DeviceArray')
    >>> np.asarray(array).tolist(), array.astype(np.float64).sum()
    ([[0.5, 0.25]], np.float64(0.75))
    """

    at_once: ClassVar[int] = 1 << 27
    """Forecasts that are viewed at once: more than on a host, because a step of many costs no more time."""

    def __init__(self, tensor: Any, known: dict[str, Any] | None = None) -> None:
        self.tensor = tensor
        self.known = {} if known is None else known
        self.labels: DeviceArray | None = None
        self.within = 0
        self._host: NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the host copy."""
        return host_type(self.tensor.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the host copy."""
        return self.size * self.dtype.itemsize

    @property
    def bits(self) -> int:
        """Significand bits of the numbers."""
        return round(1 - math.log2(torch.finfo(self.tensor.dtype).eps))

    @property
    def host(self) -> NDArray[Any]:
        """A copy for NumPy, made once, read-only."""
        if self._host is None:
            self._host = fetched(widened(self.tensor))
            self._host.setflags(write=False)
        return self._host

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same entries in another shape, in C order."""
        wanted = shape[0] if isinstance(shape[0], tuple) else shape
        if (wanted == self.shape or (wanted == (-1,) and self.ndim == 1)) and self.tensor.is_contiguous():
            return self
        return DeviceArray(self.tensor.reshape(wanted).contiguous())

    def ravel(self) -> DeviceArray:
        """The same entries one behind the other."""
        return self.reshape(-1)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Whole numbers in another type; floats on the host, since who converts those will compute with them."""
        if options or self.tensor.dtype.is_floating_point:
            return self.host.astype(dtype, **options)
        return DeviceArray(self.tensor.to(getattr(torch, np.dtype(dtype).name)))

    def min(self, axis: int | None = None) -> Any:
        """The smallest of all, or along an axis."""
        return DeviceArray(self.tensor.amin(dim=axis)) if axis is not None else fetched(widened(self.tensor.amin()))[()]

    def max(self, axis: int | None = None) -> Any:
        """The largest of all, or along an axis."""
        return DeviceArray(self.tensor.amax(dim=axis)) if axis is not None else fetched(widened(self.tensor.amax()))[()]

    def any(self, axis: int) -> DeviceArray:
        """Whether any along an axis is true."""
        return DeviceArray(self.tensor.any(dim=axis))

    def argmax(self, axis: int) -> DeviceArray:
        """The place of the first of the largest along an axis."""
        numbers = self.tensor if self.tensor.dtype is not torch.bool else self.tensor.to(torch.uint8)
        return DeviceArray(numbers.argmax(dim=axis))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, {self.tensor.dtype}, {self.tensor.device})"

    def __reduce__(self) -> tuple[Any, ...]:  # other processes get the host copy
        return np.array, (self.host,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.host, dtype=dtype) if copy else np.asarray(self.host, dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.host, name)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts):
            return self.host[index]
        taken = self.tensor[tuple(self._place(part) for part in parts)]
        if taken.ndim == 0:
            return fetched(widened(taken))[()]
        if len(parts) > 1 or not self.known:
            return DeviceArray(taken)
        rows = self._place(parts[0])
        return DeviceArray(taken, {name: each[rows] for name, each in self.known.items()})

    def _place(self, part: Any) -> Any:
        """An index as torch takes it: arrays as tensors of the same device."""
        return part if part is None or isinstance(part, (slice, int)) or part is ... else placed(self, part)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and ufunc in OPERATORS and not options:
            return DeviceArray(OPERATORS[ufunc](*(operand(self, each) for each in inputs)))
        return getattr(ufunc, method)(*map(on_host, inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return FUNCTIONS[function](self, *arguments, **options)
        return function(*map(on_host, arguments), **{name: on_host(each) for name, each in options.items()})


@cache
def host_type(dtype: Any) -> np.dtype[Any]:
    """The type in which NumPy holds numbers of a type of torch.

    >>> host_type(torch.bfloat16).name, host_type(torch.int64).name
    ('float32', 'int64')
    """
    return np.dtype(str(torch.float32 if dtype in HALVES else dtype).removeprefix("torch."))


def _counted(operand: Any) -> Any:
    """Truth values as 0 and 1, which torch does not subtract otherwise."""
    return operand.to(torch.int8) if getattr(operand, "dtype", None) is torch.bool else operand


def widened(tensor: Any) -> Any:
    """Numbers of a type that NumPy has and computes in: halves as float32."""
    return tensor.float() if tensor.dtype in HALVES else tensor


def fetched(tensor: Any) -> NDArray[Any]:
    """A copy on the host; the only place where numbers leave a device."""
    return tensor.detach().to("cpu", copy=True).numpy()


def placed(array: DeviceArray, other: Any) -> Any:
    """Numbers as a tensor on the device of an array."""
    if isinstance(other, DeviceArray):
        return other.tensor
    other = np.asarray(other)
    return torch.tensor(other if other.dtype.kind != "u" else other.astype(np.int64), device=array.tensor.device)


def operand(array: DeviceArray, other: Any) -> Any:
    """As `placed`, for arithmetic: plain numbers stay plain, halves are widened."""
    if not isinstance(other, DeviceArray) and np.ndim(other) == 0:
        return np.asarray(other).item()
    return widened(placed(array, other))


def on_host(argument: Any) -> Any:
    """What NumPy can compute with, lists and tuples of arrays included."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(map(on_host, argument))
    return argument.host if isinstance(argument, DeviceArray) else argument


@lru_cache(maxsize=64)
def _constant(number: int, device: Any) -> Any:
    """A whole number that stays on its device: to send one takes longer than to choose by it."""
    return torch.tensor(number, device=device)


def _where(home: DeviceArray, condition: Any, *choices: Any) -> DeviceArray:
    kept = (_constant(each, home.tensor.device) if type(each) is int else operand(home, each) for each in choices)
    return DeviceArray(torch.where(placed(home, condition), *kept))


def _taken(home: DeviceArray, array: Any, indices: Any, axis: int) -> DeviceArray:
    return DeviceArray(torch.take_along_dim(placed(home, array), placed(home, indices), dim=axis))


def _column_stack(home: DeviceArray, columns: Any) -> DeviceArray:
    tensors = [operand(home, column) for column in columns]
    widest = max((tensor.dtype for tensor in tensors), key=lambda dtype: dtype.itemsize)
    return DeviceArray(torch.column_stack([tensor.to(widest) for tensor in tensors]))


def _repeat(home: DeviceArray, array: Any, repeats: int) -> DeviceArray:
    return DeviceArray(placed(home, array).repeat_interleave(repeats))


def _move_axis(home: DeviceArray, array: DeviceArray, source: int, destination: int) -> DeviceArray:
    return DeviceArray(array.tensor.movedim(source, destination))


FUNCTIONS: dict[Any, Callable[..., DeviceArray]] = {
    np.where: _where,
    np.take_along_axis: _taken,
    np.column_stack: _column_stack,
    np.repeat: _repeat,
    np.moveaxis: _move_axis,
}
