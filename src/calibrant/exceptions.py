"""Exceptions: the one error that bad input raises, and the one warning."""

from __future__ import annotations

from collections.abc import Iterable


class CalibrationInputError(ValueError):
    """Bad input, said in one sentence: what must hold, what was found, where, and what to do.

    >>> error = CalibrationInputError("y_proba", "rows must sum to 1", got=0.93, where="row 17")
    >>> print(error)
    y_proba: rows must sum to 1, got 0.93 at row 17
    """

    def __init__(
        self, parameter: str, expected: str, *, got: object = None, where: str | None = None, hint: str | None = None
    ) -> None:
        self.parameter = parameter
        self.expected = expected
        self.got = got
        self.where = where
        self.hint = hint
        message = f"{_inert(parameter, 240)}: {_inert(expected)}"
        if got is not None:
            message += f", got {_inert(str(got))}"
        if where is not None:
            message += f" at {_inert(where)}"
        if hint is not None:
            message += f"; {_inert(hint, 400)}"
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.parameter, self.expected, self.got, self.where, self.hint)


class CalibrationWarning(UserWarning):
    """A number was made, but something about it must be known.

    >>> issubclass(CalibrationWarning, UserWarning)
    True
    """


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint that names the likeliest intended spelling, or else all that there are.

    >>> nearest("regoin", ["region", "age"])
    "did you mean 'region'?"
    >>> nearest("x", ["region", "age"])
    'there are: age, region'
    """
    names = sorted(names)
    import difflib

    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


def reason_of(error: BaseException) -> str:
    """Why something failed, in words: an error of ours says it all, another one needs its kind.

    >>> reason_of(CalibrationInputError("p", "must be finite")), reason_of(KeyError("a"))
    ('p: must be finite', "KeyError: 'a'")
    """
    return str(error) if isinstance(error, CalibrationInputError) else f"{type(error).__name__}: {error}"


def printable(text: str) -> str:
    """Text that cannot steer a terminal: control and direction marks are spelled out.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def _inert(text: str, most: int = 120) -> str:
    """Text from anywhere on one line: control and direction marks spelled out, the middle of long text left out."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[-most // 2 + 1 :]}"


def _rebuild(parameter: str, expected: str, got: object, where: str | None, hint: str | None) -> CalibrationInputError:
    return CalibrationInputError(parameter, expected, got=got, where=where, hint=hint)
