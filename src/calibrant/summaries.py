"""Summaries: what must be kept of a batch. They add, travel as bytes and, where no rows are kept, subtract."""

from __future__ import annotations

import dataclasses
import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from calibrant.door.checked import sentences
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Totals
from calibrant.specification.packing import misshapen, packed, plain_fields, refusal, unpacked

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # whose variables have a default, so that Metric is Metric[Summary]

    S = TypeVar("S", bound="Summary", covariant=True, default="Summary")
else:
    from typing import TypeVar

    S = TypeVar("S", covariant=True)


@dataclass(frozen=True)
class About:
    """What a summary is about: it travels with the sums and is printed with the number.

    >>> (About(2, "event", remarks=(("left out: label 9", 1),)) + About(3, "event")).notes
    ('1 row was left out: label 9',)
    """

    n: int
    """Rows of predictions that were summarised."""
    question: str
    """What was asked, in words: "top label", "event"."""
    names: tuple[str, ...] = ()
    """The questions' names, one a view; empty where there is only one."""
    soft: int = 0
    """Rows whose label was soft."""
    fractional: int = 0
    """Rows whose weight was no whole number."""
    remarks: tuple[tuple[str, int], ...] = ()
    """What was done to how many rows when predictions were made."""
    reads: tuple[tuple[str, str], ...] = ()
    """What `summarise` reads: by its name, each choice that summaries must share to be added."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks as sentences."""
        return sentences(self.remarks)

    @property
    def digest(self) -> str:
        """A hash of what `summarise` reads."""
        return hashlib.sha256(repr(self.reads).encode()).hexdigest()

    def __add__(self, other: About) -> About:
        return self._joined(other, operator.add, "added")

    def __sub__(self, other: About) -> About:
        return self._joined(other, operator.sub, "subtracted")

    def _joined(self, other: About, join: Callable[[int, int], int], how: str) -> About:
        self.require(other.reads, "summaries", f"must come from one metric to be {how}")
        answers = ((about.question, len(about.names), *about.names) for about in (self, other))
        for here, there in zip(*answers, strict=False):  # of other numbers of names, the numbers differ
            if here != there:
                expected = f"must answer the same questions to be {how}"
                raise CalibrationInputError("summaries", expected, got=f"{here!r} and {there!r}")
        mine, theirs = dict(self.remarks), dict(other.remarks)
        counts = {words: join(mine.get(words, 0), theirs.get(words, 0)) for words in sorted({*mine, *theirs})}
        return dataclasses.replace(
            self,
            n=join(self.n, other.n),
            soft=join(self.soft, other.soft),
            fractional=join(self.fractional, other.fractional),
            remarks=tuple((words, count) for words, count in counts.items() if count),
        )

    def faults(self) -> Iterator[str]:
        """What cannot be: counts below 0, more rows of a kind than rows, remarks out of order.

        >>> list(About(2, "event", soft=3).faults())
        ['3 soft labels of 2 rows']
        """
        counts = {"rows": self.n, "soft labels": self.soft, "fractional weights": self.fractional, **dict(self.remarks)}
        yield from (f"{count} {words}" for words, count in counts.items() if count < 0)
        for words in ("soft labels", "fractional weights"):
            if counts[words] > self.n:
                yield f"{counts[words]} {words} of {self.n} rows"
        if list(self.remarks) != sorted(dict(self.remarks).items()):
            yield "remarks out of order"

    def require(self, reads: tuple[tuple[str, str], ...], parameter: str, expected: str) -> None:
        """Refuse what was read by other choices, and name the first that differs."""
        if self.reads == reads:
            return
        mine, theirs = dict(self.reads), dict(reads)
        for choice in dict.fromkeys([*mine, *theirs]):
            here, there = mine.get(choice, "nothing"), theirs.get(choice, "nothing")
            if here != there:
                raise CalibrationInputError(parameter, expected, got=f"{choice} {apart(here, there)}")


_KINDS: dict[str, type[Summary]] = {}
"""The kinds of summary that have bytes, by name: calibrant's own come first."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Anything that adds: `sum(summaries)` is the summary of all the rows together.

    >>> import calibrant as cal
    >>> halves = [cal.ECE.summarise(cal.Predictions.from_probs([1], [p])) for p in (.9, .6)]
    >>> cal.ECE.conclude(sum(halves)).value
    0.25
    """

    about: About
    axes: ClassVar[Mapping[str, str]] = {}
    """The axes of each array, as letters that stand for their lengths; a kind of summary without them has no bytes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "axes" in vars(cls):
            _KINDS.setdefault(cls.__name__, cls)

    @property
    def keeps_rows(self) -> bool:
        """Whether single rows, or their distinct forecasts, can be read from it; True where nothing else is known.

        >>> import calibrant as cal
        >>> [metric.summarise([1, 0], [.9, .2]).keeps_rows for metric in (cal.ECE, cal.BRIER, cal.ADAPTIVE_ECE)]
        [False, False, True]
        """
        return True

    def __add__(self, other: Self | int) -> Self:
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Summary):
            return NotImplemented
        about = self.about + other.about
        return self._joined(other, about) if type(self) is type(other) else NotImplemented

    def __radd__(self, zero: int) -> Self:
        """`0 + summary`, so that `sum` works."""
        return self if zero == 0 else NotImplemented

    def __sub__(self, other: Self) -> Self:
        """What is left without the rows of another summary, exactly; refused where rows are kept.

        >>> import calibrant as cal
        >>> monday, tuesday = (cal.ECE.summarise([1, 0], p) for p in ([.9, .2], [.8, .3]))
        >>> ((monday + tuesday) - tuesday).to_bytes() == monday.to_bytes()
        True
        """
        if not isinstance(other, Summary):
            return NotImplemented
        about = self.about - other.about
        if type(self) is not type(other):
            return NotImplemented
        rest = self._without(other, about)
        for fault in rest.faults():
            raise CalibrationInputError("summary", "must hold all that is taken away from it", got=fault)
        return rest

    def _joined(self, other: Self, about: About) -> Self:
        """The sums of both, about the rows of both."""
        raise NotImplementedError

    def _without(self, other: Self, about: About) -> Self:
        """The sums of this one less those of the other."""
        raise CalibrationInputError(
            "summaries",
            "must keep no rows to be subtracted: a row is not found again among others",
            got=type(self).__name__,
            hint="add the summaries of the rows that stay",
        )

    def canonical(self) -> Self:
        """The same content in its one form, which no order of rows or batches can change."""
        return self

    def faults(self) -> Iterator[str]:
        """What cannot be, in words."""
        yield from self.about.faults()
        yield from (f"{name} of a wrong shape" for name in misshapen(self, self.axes))
        for field in dataclasses.fields(self):
            totals = getattr(self, field.name)
            if isinstance(totals, Totals) and not totals.is_normal:
                yield f"limbs of {field.name} that were not carried"

    def stored(self) -> dict[str, object]:
        """The fields as they are written."""
        return plain_fields(self)

    @classmethod
    def restored(cls, fields: dict[str, object]) -> Self:
        """The summary whose fields were written."""
        return cls(**fields)  # type: ignore[arg-type]

    def to_bytes(self) -> bytes:
        """The summary as bytes: equal for equal content, however it was batched; `Summary.from_bytes` reads them.

        They hold arrays and JSON, a format version and a checksum. A kind of one's own must declare its `axes`.

        >>> import calibrant as cal
        >>> halves = [cal.ECE.summarise([1], [p]) for p in (.9, .6)]
        >>> sum(halves).to_bytes() == cal.ECE.summarise([1, 1], [.6, .9]).to_bytes()
        True
        """
        if _KINDS.get(type(self).__name__) is not type(self):
            expected = "must be of the first kind of its name that declares its axes, to be written as bytes"
            raise CalibrationInputError("summary", expected, got=type(self).__name__)
        summary = self.canonical()
        for fault in summary.faults():
            raise CalibrationInputError("summary", "must be possible to be written as bytes", got=fault)
        return packed(summary)

    @staticmethod
    def from_bytes(data: bytes) -> Summary:
        """The summary that `to_bytes` wrote; damaged, altered and foreign bytes are refused.

        >>> import calibrant as cal
        >>> data = cal.ECE.summarise([1, 0], [.9, .2]).to_bytes()
        >>> cal.ECE.conclude(cal.Summary.from_bytes(data)).value == cal.ECE([1, 0], [.9, .2]).value
        True
        """
        summary = unpacked(data, kinds())
        if not isinstance(summary, Summary):
            raise refusal(type(summary).__name__)
        return summary


def kinds() -> dict[str, type]:
    """What the bytes of summaries may hold, by name.

    >>> kinds()["About"] is About
    True
    """
    return {**_KINDS, "About": About, "Precision": Precision, "Totals": Totals}


class Sums(Summary):
    """A summary of totals alone: it keeps no rows, so that rows can be taken away again."""

    size: Totals
    squares: Totals | None
    parts: ClassVar[tuple[str, ...]]
    """The totals that lie between 0 and the size."""
    keeps_rows: ClassVar[bool] = False

    def _joined(self, other: Self, about: About) -> Self:
        return self._each(other, about, operator.add)

    def _without(self, other: Self, about: About) -> Self:
        return self._each(other, about, operator.sub)

    @property
    def totals(self) -> dict[str, Totals]:
        """The totals that there are, by name."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: totals for name, totals in fields.items() if isinstance(totals, Totals)}

    def _each(self, other: Self, about: About, join: Callable[[Totals, Totals], Totals]) -> Self:
        """Total by total; squares of weights only where there are any."""
        names = self.totals.keys() | other.totals.keys()
        sums = {name: join(getattr(self, name) or self.size, getattr(other, name) or other.size) for name in names}
        return dataclasses.replace(self, about=about, **sums)

    def canonical(self) -> Self:
        """The same sums; squares of weights only where they are not the size."""
        unlike = self.squares is not None and not self.squares.same(self.size)
        return self if unlike else dataclasses.replace(self, **{"squares": None})  # type: ignore[arg-type]

    def faults(self) -> Iterator[str]:
        """What cannot be: less than nothing, more than there is, or something of no samples or rows."""
        yield from super().faults()
        for name, totals in self.totals.items():
            size = self.size.reshape(*self.size.shape, *(1,) * (len(totals.shape) - len(self.size.shape)))
            if name in ("size", "squares", *self.parts) and totals.negative.any():
                yield f"{name} below 0"
            if name in self.parts and (size - totals).negative.any():
                yield f"{name} above the size"
            if ((size.value == 0) & (totals.value != 0)).any():
                yield f"{name} of no samples"
        if not self.about.n and self.size.value.any():
            yield "a size without rows"


def apart(here: str, there: str) -> str:
    """Two texts from where they begin to differ.

    >>> apart("ECE", "SCE")
    'ECE and SCE'
    """
    same = next((place for place, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
    start = max(0, same - 20) if max(len(here), len(there)) > 56 else 0
    return " and ".join(f"{'…' * (start > 0)}{text[start : start + 56]}" for text in (here, there))
