"""Elsewhere: arrays of torch, pandas, polars and pyarrow by their own way to NumPy, without importing them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.sharing import read_only


def from_elsewhere(data: Any) -> tuple[Any, int | None]:
    """What NumPy can read of an object, and its significand bits where NumPy has no such type.

    An array that may share memory with the object is read-only.
    """
    home = home_of(data)
    if home == "dask" and hasattr(data, "compute"):  # its own way to NumPy would drop masks
        return from_elsewhere(data.compute())
    if home == "torch" and hasattr(data, "detach"):
        return from_torch(data)
    if home == "pyarrow":
        return from_arrow(data), None
    if home in ("pandas", "polars") and hasattr(data, "to_numpy"):
        return _from_frame(data), None
    return (read_only(np.asanyarray(data)) if hasattr(data, "__array__") else data), None


def on_device(data: Any) -> Any:
    """A tensor that is on a device, as an array that stays there; None for all else."""
    if home_of(data) != "torch" or not hasattr(data, "detach") or is_sparse(data) or not stays(data):
        return None
    from calibrant.kernels.tensors import DeviceArray  # imports torch, which is there

    return DeviceArray(data.detach().resolve_conj().resolve_neg().contiguous())


def beside_forecasts(values: Any, labels: Any) -> Any:
    """Labels where the forecasts are: whole numbers on their device, all others on the host."""
    if isinstance(values, np.ndarray):
        return np.asarray(labels)
    from calibrant.kernels.tensors import DeviceArray, placed

    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub" and labels.ndim == 1:
        labels = DeviceArray(placed(values, labels.astype(np.int64)))
    if isinstance(labels, DeviceArray) and labels.tensor.device != values.tensor.device:
        labels = DeviceArray(labels.tensor.to(values.tensor.device))
    if isinstance(labels, DeviceArray) and labels.dtype.kind in "iu" and labels.shape == (len(values),):
        values.labels = labels
    return labels


def were_within(labels: Any, width: int) -> bool:
    """Whether a walk over forecasts on a device saw that the labels beside them are columns of such a matrix.

    >>> were_within(np.array([0]), 2)
    False
    """
    return not isinstance(labels, np.ndarray) and labels.within == width


def stays(tensor: Any) -> bool:
    """Whether a tensor's numbers are reduced where they are."""
    elsewhere = tensor.device.type not in ("cpu", "meta", "mps")  # the last has no float64
    return elsewhere and not tensor.is_complex()


def home_of(data: Any) -> str:
    """The package that an object's type comes from.

    >>> home_of(np.zeros(1))
    'numpy'
    """
    return type(data).__module__.partition(".")[0]


def is_sparse(data: Any) -> bool:
    """Whether an array of SciPy or a tensor of torch leaves out its zeros."""
    tensor = home_of(data) == "torch" and hasattr(data, "layout")
    return str(data.layout) != "torch.strided" if tensor else hasattr(data, "toarray") and hasattr(data, "nnz")


def from_torch(tensor: Any) -> tuple[Any, int | None]:
    """A tensor of any device, with or without gradients; bfloat16, which NumPy lacks, as float32 of 8 bits."""
    host = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(host.dtype) == "torch.bfloat16":
        return host.float().numpy(), 8
    return read_only(host.numpy()) if host.data_ptr() == tensor.data_ptr() else host.numpy(), None


def from_arrow(data: Any) -> Any:
    """A table as a matrix, lists of one length as its rows; what has nulls as Python objects, with None for them."""
    if hasattr(data, "columns"):
        return np.column_stack([from_arrow(column) for column in data.columns])
    if hasattr(data, "combine_chunks"):
        data = data.combine_chunks()
    if data.null_count:
        return data.to_pylist()
    if not hasattr(data, "value_lengths"):
        return data.to_numpy(zero_copy_only=False)
    values, lengths = data.flatten(), data.value_lengths().unique().to_pylist()
    if len(lengths) != 1 or values.null_count or hasattr(values, "value_lengths"):
        return data.to_pylist()
    return values.to_numpy(zero_copy_only=False).reshape(len(data), lengths[0])


def _from_frame(data: Any) -> Any:
    array = data.to_numpy()
    if (
        array.dtype.kind == "O" and array.ndim == 2 and hasattr(data, "iloc")
    ):  # nullable columns: each knows its own type
        return np.column_stack([data.iloc[:, column].to_numpy() for column in range(array.shape[1])])
    return read_only(array)
