"""Results: a number with its specification, its n, and the table it was concluded from."""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.bins import Bins
from calibrant.checks import is_number
from calibrant.exceptions import CalibrationInputError
from calibrant.specification import catalogue, strict_json
from calibrant.specification.documents import require_keys, require_seal, seal
from calibrant.specification.encoding import decode, encode, number
from calibrant.specification.facts import facts_of
from calibrant.summaries import About
from calibrant.text import aligned

if TYPE_CHECKING:
    import pandas

    from calibrant.metric import Metric


@dataclass(frozen=True)
class Interval:
    """Where a number may lie: from low to high, at a level; and how that was found.

    >>> import calibrant as cal
    >>> print(cal.Interval(0.03, 0.05, 0.9, "basic", "exact", 1000))
    [0.0300, 0.0500] at 90%
    """

    low: float
    high: float
    level: float
    kind: str
    engine: str
    n: int
    target: str = ""
    """What it is an interval of, in words."""

    def __str__(self) -> str:
        return f"[{self.low:.4f}, {self.high:.4f}] at {100 * self.level:g}%"


@dataclass(frozen=True, eq=False)
class Result:
    """A number with its specification, its n, and the table it was concluded from.

    >>> import calibrant as cal
    >>> result = cal.ECE([1, 0, 1, 1], [.9, .2, .6, .6])
    >>> print(result)
    ECE 0.2750 (n=4, event, 15 equal-width bins)
    >>> float(result) == result.value == cal.Result.from_json(result.to_json()).value
    True
    """

    metric: Metric
    value: float
    about: About
    choices: str
    """The metric's choices in words, without the question."""
    bins: Bins | None = None
    details: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    """The values of the questions, where there are several; `parts` names them."""
    sizes: tuple[float, ...] = ()
    interval: Interval | None = None
    intervals: tuple[Interval, ...] = ()
    """The intervals of the questions, where there are several."""
    bounds: tuple[float, float] | None = None
    """Between which the value of the rows surely lies, where only counts in cells were kept, without the order of
    forecasts inside them. They are about these data, not about a sample of them."""
    part_bounds: tuple[tuple[float, float], ...] = ()
    """The bounds of the questions, where there are several."""

    @property
    def n(self) -> int:
        """Rows that were summarised."""
        return self.about.n

    @property
    def question(self) -> str:
        """What was asked, in words."""
        return self.about.question

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    def parts(self) -> Parts:
        """Each question's own result, by class name or the like; empty where there is only one.

        >>> import calibrant as cal
        >>> parts = cal.SCE([0, 1], [[.9, .1], [.6, .4]]).parts
        >>> list(parts), round(parts["1"].value, 10)
        (['0', '1'], 0.35)
        """
        return Parts((name, self._part(index)) for index, name in enumerate(self.about.names))

    def _part(self, index: int) -> Result:
        bins = None if self.bins is None else self.bins.question(index)
        name = self.about.names[index]
        about = dataclasses.replace(
            self.about, n=round(self.sizes[index]), names=(), question=f"{self.about.question}: {name}"
        )
        details: dict[str, float] = {}
        if self.bins is not None and len(set(self.bins.requested.tolist())) > 1:  # the data chose how many bins
            details = {"n_bins": int(self.bins.requested[index])}
        return Result(
            self.metric,
            self.values[index],
            about,
            self.choices,
            bins,
            details,
            interval=self.intervals[index] if self.intervals else None,
            bounds=self.part_bounds[index] if self.part_bounds else None,
        )

    def __float__(self) -> float:
        return self.value

    def __lt__(self, other: Result | float) -> bool:
        return self.value < _value(other)

    def __le__(self, other: Result | float) -> bool:
        return self.value <= _value(other)

    def __gt__(self, other: Result | float) -> bool:
        return self.value > _value(other)

    def __ge__(self, other: Result | float) -> bool:
        return self.value >= _value(other)

    def __format__(self, how: str) -> str:
        return format(self.value, how) if how else str(self)

    def __str__(self) -> str:
        words = ", ".join(word for word in (f"n={self.n}", self.question, self.choices) if word)
        return f"{self.name} {self._number} ({words})"

    @property
    def _number(self) -> str:
        """The value, and between which numbers it lies."""
        return f"{self.value:.4f}{_surely(self)}{f' {self.interval}' if self.interval else ''}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        """The result as a notebook shows it."""
        rows = [("value", self._number), ("n", f"{self.n:,}"), ("question", self.question)]
        rows += [("choices", self.choices)] if self.choices else []
        rows += [(name.replace("_", " "), f"{number:.4g}") for name, number in self.details.items()]
        rows += [("note", note) for note in self.notes]
        worst = sorted(zip(self.about.names, self.values, strict=True), key=lambda part: -abs(np.nan_to_num(part[1])))
        rows += [(f"part {name}", f"{value:.4f}") for name, value in worst[:5]]
        if len(worst) > 5:
            rows.append(("parts", f"{len(worst) - 5} more, each nearer 0"))
        body = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
        return f"<table><caption>{html.escape(self.name)}</caption>{body}</table>"

    def to_dict(self, *, bins: bool = True) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON (nan and infinities as strings)."""
        document: dict[str, Any] = {
            "name": self.name,
            "value": number(self.value),
            "n": self.n,
            "question": self.question,
            "choices": self.choices,
            "details": {name: number(value) for name, value in self.details.items()},
            "notes": list(self.notes),
            "parts": {
                name: {"value": number(value), "size": number(size)}
                for name, value, size in zip(self.about.names, self.values, self.sizes, strict=True)
            },
            "metric": encode(self.metric),
        }
        if self.interval is not None:
            document["interval"] = _interval_to_dict(self.interval)
            document["part_intervals"] = [_interval_to_dict(interval) for interval in self.intervals]
        if self.bounds is not None:
            document["bounds"] = [number(end) for end in self.bounds]
            document["part_bounds"] = [[number(end) for end in ends] for ends in self.part_bounds]
        if bins and self.bins is not None:
            document["bins"] = self.bins.to_dict()
        return document

    def to_json(self, *, bins: bool = True) -> str:
        """The result as JSON, exact, under a seal that tells when it was changed; `Result.from_json` rebuilds it."""
        document = self.to_dict(bins=bins)
        return json.dumps({**document, "seal": seal(document)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, pieces: Mapping[str, Any] | None = None) -> Result:
        """A result from its JSON; `pieces` names pieces that are not calibrant's own.

        What was changed after it was written is refused; what version 0.1 wrote, without a seal, is read.
        """
        try:
            document = strict_json.read(text)
            require_keys(document, _KEYS, ("interval", "part_intervals", "bounds", "part_bounds", "bins", "seal"))
            if "seal" in document:
                require_seal(document, document.pop("seal"), "measure it again")
            return _from_dict(document, pieces or {})
        except CalibrationInputError:
            raise
        except strict_json.MALFORMED as reason:
            raise CalibrationInputError("text", "must be the JSON of a result", got=str(reason)) from None


class Parts(dict[str, Result]):
    """The results of several questions by name; they print as a table.

    >>> import calibrant as cal
    >>> print(cal.SCE([0, 1], [[.9, .1], [.6, .4]]).parts)
    part  n  value
    0     2  0.3500
    1     2  0.3500
    """

    def __str__(self) -> str:
        rows = [[name, str(part.n), f"{part.value:.4f}{_surely(part)}", *_ends(part)] for name, part in self.items()]
        between = ["interval"] if any(part.interval for part in self.values()) else []
        return aligned(["part", "n", "value", *between], rows)

    def to_pandas(self) -> pandas.DataFrame:
        """One row a question: its n, its value, the ends of its interval where it has one."""
        import pandas

        rows = {
            name: {"n": part.n, "value": part.value}
            | ({"low": part.interval.low, "high": part.interval.high} if part.interval else {})
            for name, part in self.items()
        }
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("part")


def _value(other: Result | float) -> float:
    if not (isinstance(other, Result) or is_number(other)):
        raise TypeError(f"a Result compares with Results and numbers, not with {type(other).__name__}")
    return float(other)


def _ends(result: Result) -> list[str]:
    return [str(result.interval)] if result.interval else []


def _surely(result: Result) -> str:
    """The bounds in words, where they are other numbers than the value."""
    low, high = (f"{end:.4f}" for end in result.bounds or (result.value, result.value))
    return "" if low == high == f"{result.value:.4f}" else f", surely between {low} and {high}"


def _pair(ends: list[Any]) -> tuple[float, float]:
    low, high = (float(_decoded(end)) for end in ends)
    if low > high:
        raise ValueError("bounds out of order")
    return low, high


_KEYS: dict[str, Any] = {
    "name": str, "value": (int, float, str), "n": int, "question": str, "choices": str,
    "details": dict, "notes": list, "parts": dict, "metric": dict,
}  # fmt: skip
"""What the document of a result holds."""


def _from_dict(document: dict[str, Any], pieces: Mapping[str, Any]) -> Result:
    parts, notes = document["parts"], document["notes"]
    for part in parts.values():
        require_keys(part, {"value": (int, float, str), "size": (int, float, str)})
    about = About(n=document["n"], question=document["question"], names=tuple(parts))
    intervals = tuple(map(_interval_from_dict, document.get("part_intervals", ())))
    metric = decode(document["metric"], pieces)
    bins = Bins.from_dict(document["bins"], about) if "bins" in document else None
    faults = [*about.faults(), *([] if bins is None else bins.faults())]
    faults += ["notes that are no text"] * (not all(isinstance(note, str) for note in notes))
    faults += ["intervals of other parts"] * (bool(intervals) and len(intervals) != len(parts))
    part_bounds = tuple(map(_pair, document.get("part_bounds", ())))
    faults += ["bounds of other parts"] * (bool(part_bounds) and len(part_bounds) != len(parts))
    faults += ["bins of other parts"] * (bins is not None and bool(parts) and bins.shape[0] != len(parts))
    sizes = [float(_decoded(part["size"])) for part in parts.values()]
    faults += ["parts of no size"] * (not all(0 <= size < np.inf for size in sizes))
    faults += ["no metric"] * (not hasattr(metric, "conclude") or facts_of(metric).slot not in ("metric", None))
    for fault in faults:
        raise ValueError(fault)
    return Result(
        metric=_named(metric, document["name"]),
        value=float(_decoded(document["value"])),
        about=about,
        choices=document["choices"],
        bins=bins,
        details={name: _decoded(value) for name, value in document["details"].items()},
        notes=tuple(notes),
        values=tuple(float(_decoded(part["value"])) for part in parts.values()),
        sizes=tuple(sizes),
        interval=_interval_from_dict(document["interval"]) if "interval" in document else None,
        intervals=intervals,
        bounds=_pair(document["bounds"]) if "bounds" in document else None,
        part_bounds=part_bounds,
    )


def _decoded(value: Any) -> float:
    """A number as JSON holds it; whole numbers stay so."""
    if is_number(value):
        return value
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _named(metric: Metric, name: str) -> Metric:
    """The recipe of that name, where it is this one: two recipes may make the same choices."""
    recipe = catalogue.recipes().get(name)
    return recipe if recipe is not None and recipe == metric else metric


def _interval_to_dict(interval: Interval) -> dict[str, Any]:
    plain = {name: number(value) if isinstance(value, float) else value for name, value in vars(interval).items()}
    return {name: value for name, value in plain.items() if name != "target" or value}


def _interval_from_dict(document: dict[str, Any]) -> Interval:
    ends = (int, float, str)
    require_keys(
        document, {"low": ends, "high": ends, "level": float, "kind": str, "engine": str, "n": int}, ("target",)
    )
    if not isinstance(document.get("target", ""), str):
        raise ValueError(f"an interval of {document['target']!r}")
    interval = Interval(
        **{**document, "low": float(_decoded(document["low"])), "high": float(_decoded(document["high"]))}
    )
    if interval.low > interval.high or not 0 < interval.level < 1 or interval.n < 0:
        raise ValueError(f"an interval {interval}")
    return interval
