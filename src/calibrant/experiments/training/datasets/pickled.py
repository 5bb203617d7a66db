"""Pickled: the plain values of an old pickle, read as data. No name in it is looked up and nothing in it is called."""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError

_RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")


@dataclass(eq=False)
class Recorded:
    """A call that the file asks for and that is not made: the name, the arguments and the state."""

    name: str
    arguments: tuple[Any, ...]
    state: Any = None


def read_pickle(content: bytes, parameter: str) -> Any:
    """The value of a pickle of protocol 0 to 2: numbers, bytes, containers, and calls as records of them.

    Text of Python 2 is bytes. An opcode that has no business in a file of arrays and lists is refused.

    >>> read_pickle(b"\\x80\\x02}U\\x06labels]q\\x01(K\\x03K\\x05es.", "batch")
    {b'labels': [3, 5]}
    >>> read_pickle(b"cos\\nsystem\\n(S'echo'\\ntR.", "batch")
    Recorded(name='os system', arguments=(b'echo',), state=None)
    """
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(content):
            machine.step(opcode.name, argument)
        return machine.stack.pop()
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as reason:
        raise CalibrationInputError(parameter, "must be a pickle of plain lists and arrays", got=str(reason)) from None


def array_of(value: Any, parameter: str) -> Array:
    """The array that a recorded reconstruction stands for: unsigned bytes in C order whose shape fits them.

    >>> array_of([1, 2], "data")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: data: must be an array of unsigned bytes, got list
    """
    if not isinstance(value, Recorded) or value.name not in _RECONSTRUCT:
        got = value.name if isinstance(value, Recorded) else type(value).__name__
        raise CalibrationInputError(parameter, "must be an array of unsigned bytes", got=got)
    match value.state:
        case (int(), tuple(shape), Recorded("numpy dtype", (b"u1", *_)), False | 0, bytes(content)):
            pass
        case _:
            raise CalibrationInputError(parameter, "must be an array of unsigned bytes in C order", got="another")
    if not all(isinstance(size, int) and size >= 0 for size in shape) or math.prod(shape) != len(content):
        raise CalibrationInputError(parameter, f"must have the bytes of its shape {shape}", got=f"{len(content):,}")
    return np.frombuffer(content, np.uint8).reshape(shape)


class _Name(str):
    """The module and name of something, as text."""

    __slots__ = ()


class _Machine:
    """A stack of values, the places marked in it, and the memory of values that are used again."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """What one opcode does."""
        match name:
            case "PROTO" | "STOP":
                pass
            case "MARK":
                self.marks.append(len(self.stack))
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self.memory[argument] = self.stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                self.stack.append(self.memory[argument])
            case "APPEND" | "APPENDS":
                values = self.taken(1 if name == "APPEND" else None)
                self.top(list).extend(values)
            case "SETITEM" | "SETITEMS":
                values = self.taken(2 if name == "SETITEM" else None)
                self.top(dict).update(zip(values[::2], values[1::2], strict=True))
            case "REDUCE":
                called, arguments = self.taken(2)
                self.stack.append(_recorded(called, arguments))
            case "BUILD":
                self.top(Recorded).state = self.stack.pop()
            case "LIST" | "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
                values = self.taken(int(name[5]) if name[5:] else None)
                self.stack.append(values if name == "LIST" else tuple(values))
            case "DICT":
                values = self.taken(None)
                self.stack.append(dict(zip(values[::2], values[1::2], strict=True)))
            case _:
                self.stack.append(_VALUES[name](argument))

    def top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise TypeError(f"items for what is no {kind.__name__}")
        return self.stack[-1]

    def taken(self, count: int | None) -> list[Any]:
        """The topmost values, or those above the last mark, taken off the stack."""
        start = self.marks.pop() if count is None else len(self.stack) - count
        if not 0 <= start <= len(self.stack):
            raise IndexError("more values taken than there are")
        values = self.stack[start:]
        del self.stack[start:]
        return values


def _recorded(called: Any, arguments: Any) -> Recorded:
    if not isinstance(called, _Name) or not isinstance(arguments, tuple):
        raise TypeError("a call of what is no name")
    return Recorded(str(called), arguments)


def _as_given(argument: Any) -> Any:
    return argument


def _as_bytes(argument: str) -> bytes:
    return argument.encode("latin-1")


_VALUES: dict[str, Callable[[Any], Any]] = {
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
    "GLOBAL": _Name,
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING"), _as_bytes),
    **dict.fromkeys(("INT", "LONG", "LONG1", "BININT", "BININT1", "BININT2", "UNICODE", "BINUNICODE"), _as_given),
}
"""The opcodes that put one new value on the stack. With the steps above, all that files of arrays and lists have."""
