"""Tables: several metrics of the same predictions, side by side and by the values of a column."""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from calibrant.checks import word
from calibrant.door.arrays import TIES
from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric, checked
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Result
from calibrant.text import aligned, as_csv, p_value, safe_cell

if TYPE_CHECKING:
    import pandas

MOST_GROUPS = 1000


@dataclass(frozen=True, eq=False)
class Table:
    """Results by row (a column's value, or "all") and metric; prints, and turns into CSV and JSON.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6], region=["north", "south", "north"])
    >>> print(cal.table(p, {"ece": cal.ECE, "brier": cal.BRIER}, by="region"))
    region  n  ece     brier
    all     3  0.2333  0.0700
    north   2  0.2500  0.0850
    south   1  0.2000  0.0400
    """

    by: str | None
    results: Mapping[str, Mapping[str, Result]]

    def __getitem__(self, row: str) -> Mapping[str, Result]:
        return self.results[row]

    @property
    def header(self) -> list[str]:
        """The column names."""
        return [self.by or "rows", "n", *next(iter(self.results.values()))]

    def rows(self, digits: int | None = 4) -> list[list[str]]:
        """The cells as text; all digits where `digits` is None."""
        rows = []
        for name, results in self.results.items():
            numbers = [text for result in results.values() for text in self._cells(result, digits)]
            rows.append([name, str(max(result.n for result in results.values())), *numbers])
        return rows

    def _cells(self, result: Result, digits: int | None) -> list[str]:
        """One cell a number; a table for people has the interval beside the value."""
        if digits is None:
            return [repr(result.value), *(repr(found_beside(result).get(name, float("nan"))) for name in self._beside)]
        between = result.interval
        bounds = "" if result.bounds is None else " ({:.{d}f} to {:.{d}f})".format(*result.bounds, d=digits)
        ends = f" [{between.low:.{digits}f}, {between.high:.{digits}f}]" if between else ""
        floor = result.details.get("noise_floor")
        noise = f" (noise {floor:.{digits}f}, p {null_p(result)})" if floor is not None else ""
        return [f"{result.value:.{digits}f}{bounds}{ends}{noise}"]

    @property
    def _beside(self) -> list[str]:
        """What some of the numbers have beside them: interval ends, noise floors."""
        every = (found_beside(result) for results in self.results.values() for result in results.values())
        return list(dict.fromkeys(name for beside in every for name in beside))

    def __str__(self) -> str:
        return aligned(self.header, self.rows())

    def _repr_html_(self) -> str:
        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        return f"<table>{row(self.header, 'th')}{''.join(row(cells, 'td') for cells in self.rows())}</table>"

    def sorted_by(self, what: str) -> Table:
        """The rows in another order, "all" first: by "value", that of the first metric, the worst first; or by "p", the
        smallest p-value of a row first.

        >>> import calibrant as cal
        >>> p = cal.Predictions.from_probs([1, 0, 1], [.9, .3, .8], region=["north", "south", "west"])
        >>> list(cal.table(p, {"ece": cal.ECE}, by="region").sorted_by("value").results)
        ['all', 'south', 'west', 'north']
        """
        from calibrant.inference.gates import Scorer

        def place(row: str) -> tuple[bool, bool, float]:
            results = list(self.results[row].values())
            if what == "value":
                key = Scorer(results[0].metric).score(results[0])
            else:
                p_values = [result.details.get("corrected_p_value", np.inf) for result in results]
                key = float(np.nanmin([*p_values, np.inf]))
            return row != "all", bool(np.isnan(key)), key

        word(what, "what", "value", "p")
        return Table(self.by, {row: self.results[row] for row in sorted(self.results, key=place)})

    def to_pandas(self) -> pandas.DataFrame:
        """One row a group: its n, and each metric's value with what stands beside it."""
        import pandas

        rows: dict[str, dict[str, float]] = {}
        for name, results in self.results.items():
            rows[name] = {"n": max(result.n for result in results.values())}
            for metric, result in results.items():
                beside = {f"{metric} {what}": number for what, number in found_beside(result).items()}
                rows[name] |= {metric: result.value, **beside}
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis(self.by or "rows")

    def to_csv(self) -> str:
        """Comma-separated, every digit; text that a spreadsheet would run as a formula is quoted."""
        first, n, *metrics = self.header
        wide = [column for metric in metrics for column in (metric, *(f"{metric} {name}" for name in self._beside))]
        rows = ([safe_cell(name), *numbers] for name, *numbers in self.rows(digits=None))
        return as_csv([map(safe_cell, (first, n, *wide)), *rows])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        rows = {
            name: {metric: result.to_dict(bins=False) for metric, result in results.items()}
            for name, results in self.results.items()
        }
        return {"by": self.by, "rows": rows}

    def to_json(self) -> str:
        """The table as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)


def table(
    predictions: object,
    y_proba: object = None,
    metrics: Mapping[str, Metric] | None = None,
    *,
    by: str | None = None,
    interval: Callable[[Metric, Predictions, Result], Result] | None = None,
    null: int | None = None,
    seed: int = 0,
    groups: str | None = None,
    **options: Unpack[DoorOptions],
) -> Table:
    """Several metrics of all rows and, with `by`, of the rows of each value of a column.

    Called as `table(predictions, metrics)`, or as `table(y_true, y_proba, metrics)` with options as in
    `Predictions.from_probs`.

    With `interval` (`Confidence()`, `Bootstrap(1000)`, or any function of metric, predictions and result), each number
    has one, or a note why there is none; with `null`, each calibration error has its noise floor and p-value, from so
    many redraws of the labels, among its details. `corrected_p_value`, which the table prints, is the p-value after
    Holm's correction for all that stand in the table. `groups` is that of `consistency`.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6])
    >>> cal.table(p, {"ece": cal.ECE})["all"]["ece"].n
    3
    >>> cal.table([1, 0, 1], [.9, .2, .6], {"ece": cal.ECE}, ignore_index=0)["all"]["ece"].n
    2
    """
    if metrics is None:
        require_predictions(predictions)
        y_proba, metrics = None, y_proba
    if not isinstance(metrics, Mapping) or not metrics:
        expected = "must be a dictionary from names to metrics"
        raise CalibrationInputError("metrics", expected, got=repr(metrics), hint='such as {"ece": ECE}')
    samples = checked(predictions, y_proba, options, table)
    if null is not None and samples.soft is not None:
        raise CalibrationInputError("null", "redraws hard labels", got="soft labels", hint=TIES)

    def measured(rows: Predictions) -> dict[str, Result]:
        results_of = {name: metric(rows, interval=interval) for name, metric in metrics.items()}
        if null is None:
            return results_of
        return {
            name: _with_null(metrics[name], rows, result, null, seed, groups) for name, result in results_of.items()
        }

    results = {"all": measured(samples)}
    if by is not None:
        for value, part in split(samples, by):
            results[_free(value, results)] = measured(part)
    p_values = iter(corrected([result for row in results.values() for result in row.values()]))
    return Table(by, {row: {name: next(p_values) for name in measures} for row, measures in results.items()})


def split(predictions: Predictions, by: str) -> Iterator[tuple[str, Predictions]]:
    """The rows of each value of a column, in the order of values.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6], region=["north", "south", "north"])
    >>> [(value, len(rows)) for value, rows in split(p, "region")]
    [('north', 2), ('south', 1)]
    """
    column = predictions.column(by)
    values = np.unique(column)
    if len(values) > MOST_GROUPS:
        got = f"{len(values)} in {by!r}"
        raise CalibrationInputError("by", f"must have at most {MOST_GROUPS} values", got=got, hint="cut it into ranges")
    for value in values:
        yield str(value), predictions[(column == value) | ((column != column) & (value != value))]


def corrected(results: Sequence[Result]) -> list[Result]:
    """Results that stand together, with their p-values under calibration after Holm's correction, and their number.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1] * 50 + [0] * 50, [.5] * 50 + [.9] * 50)
    >>> nulls = [cal.consistency(metric, p, n=99, seed=0).annotated() for metric in (cal.ECE, cal.MCE)]
    >>> [result.details["corrected_p_value"] for result in corrected(nulls)]
    [0.02, 0.02]
    """
    from calibrant.inference.comparison import holm

    p_values = holm(np.array([result.details.get("null_p_value", np.nan) for result in results]))
    tests = int(np.count_nonzero(~np.isnan(p_values)))
    return [
        result
        if "null_p_value" not in result.details
        else dataclasses.replace(result, details={**result.details, "corrected_p_value": float(p), "tests": tests})
        for result, p in zip(results, p_values, strict=True)
    ]


def found_beside(result: Result) -> dict[str, float]:
    """A result's bounds, the ends of its interval, and its noise floor and p-value, where it has them.

    >>> import calibrant as cal
    >>> found_beside(cal.ECE([1, 0], [.9, .2]))
    {}
    """
    ends = {} if result.bounds is None else {"surely from": result.bounds[0], "surely to": result.bounds[1]}
    ends |= {} if result.interval is None else {"low": result.interval.low, "high": result.interval.high}
    beside = ("noise_floor", "null_p_value", "corrected_p_value")
    return {**ends, **{name: result.details[name] for name in beside if name in result.details}}


def null_p(result: Result) -> str:
    """The p-value beside a noise floor, corrected where it was, and no smaller than its redraws can tell.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1] * 50 + [0] * 50, [.5] * 50 + [.9] * 50)
    >>> null_p(cal.consistency(cal.ECE, p, n=100, seed=0).annotated())
    '< 0.01'
    """
    details = result.details
    p, redraws = details.get("corrected_p_value", details["null_p_value"]), details.get("redraws")
    quoted = p_value(p, None if redraws is None else int(redraws), int(details.get("tests", 1)))
    return quoted.removeprefix("p ").removeprefix("= ")


def _with_null(metric: Metric, rows: Predictions, result: Result, n: int, seed: int, groups: str | None) -> Result:
    """The result with its noise floor; a mean score has none."""
    from calibrant.inference.consistency import consistency

    if metric.facts.calibrated is None or not len(rows):
        return result
    return consistency(metric, rows, n=n, seed=seed, groups=groups, result=result).annotated()


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{name} (value)"
