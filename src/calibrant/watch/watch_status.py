"""The status of a watch: one line for terminals, sentences for the page, and a document for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.report.quoting import counted
from calibrant.result import Interval
from calibrant.specification.encoding import number
from calibrant.text import inert
from calibrant.watch.confidence_sequences import mean_gap_sequence, window_gap_sequence
from calibrant.watch.looks import Look

LEVEL = 0.95
"""The level of intervals."""


def headline(look: Look) -> str:
    """What a look says, in one line.

    >>> from calibrant.watch.looks import look
    >>> from calibrant.watch.closed_windows import WatchSettings
    >>> headline(look([], WatchSettings()))
    'No window is closed yet: there is no evidence.'
    """
    if not look.windows:
        return "No window is closed yet: there is no evidence."
    rows = sum(window.n for window in look.windows)
    after = f"after {counted(len(look.windows), 'window')} with {counted(rows, 'row')}"
    limit = f"alarm at {quoted(-math.log(look.settings.level))}"
    now = quoted(float(look.log_e[-1]))
    if look.alarm is None or look.since is None:
        return f"No alarm: e-value {now} ({limit}) {after}."
    raised, began = (inert(look.windows[place].name, 60) for place in (look.alarm, look.since))
    start = f"from the first window on, {began}" if look.since == 0 else f"since {began}"
    verdict = f"Alarm: forecasts and outcomes do not agree, likely {start}; raised by {raised}"
    return f"{verdict}, e-value {now} ({limit}) {after}."


def remarks(look: Look) -> list[str]:
    """What a reader must know beside the headline, each with what to do."""
    sentences = []
    if look.moves_together and look.settings.independent == "rows":
        sentences.append(
            f"Windows scatter {look.scatter:.1f} times as much as independent rows would: the rows of a window move "
            "together, and the alarm level does not hold. Begin another store with --independent windows."
        )
    for kind, words in (("class", "Classes"), ("group", "Groups")):
        if names := look.changed(kind):
            shown = ", ".join(inert(name, 40) for name in names[:10])
            rate = f"false discovery rate {look.settings.level:g}"
            sentences.append(f"{words} whose forecasts and outcomes do not agree ({rate}): {shown}.")
    if look.windows and look.corrected != look.log_e[-1]:
        sentences.append(
            f"With the labels that came after their window was closed, the e-value is {quoted(look.corrected)}. "
            "Alarms do not follow it."
        )
    return sentences


def gap_sentence(look: Look) -> str | None:
    """The mean gap of all windows with its interval; None where there is none."""
    gap = _mean_gap(look)
    if gap is None:
        return None
    value, interval = gap
    ends = " to ".join(_side(end) for end in (interval.low, interval.high))
    over = {"rows": "on average", "windows": "on average over windows, each of which counts alike"}
    return f"Forecasts are {_side(value)} outcomes {over[look.settings.independent]} (95% confidence sequence: {ends})."


def _mean_gap(look: Look) -> tuple[float, Interval] | None:
    """The mean gap, over rows or windows, and its interval; None where rows are taken as independent and are not."""
    if not look.windows or (look.settings.independent == "rows" and look.moves_together):
        return None
    if look.settings.independent == "rows":
        n, hits, total = totals(look)
        return (total - hits) / n, mean_gap_sequence(n, hits, total, LEVEL)
    forecasts, frequencies = (
        np.array([getattr(window, part) / window.n for window in look.windows]) for part in ("total", "hits")
    )
    return float((forecasts - frequencies).mean()), window_gap_sequence(forecasts, frequencies, LEVEL)


def _side(gap: float) -> str:
    return f"{100 * abs(gap):.2f} points {'above' if gap > 0 else 'below'}"


def totals(look: Look) -> tuple[int, float, float]:
    """Rows, outcomes and the sum of forecasts of all windows."""
    windows = look.windows
    return sum(each.n for each in windows), sum(each.hits for each in windows), sum(each.total for each in windows)


def document(look: Look, lines: Sequence[str] = ()) -> dict[str, Any]:
    """All of it, ready for JSON; `lines` say what happened in this run."""
    gap = _mean_gap(look)
    names = [window.name for window in look.windows]
    return {
        "status": headline(look),
        "alarm": None if look.alarm is None else names[look.alarm],
        "since": None if look.since is None else names[look.since],
        "e_value": number(look.e_value),
        "log_e_value": float(look.log_e[-1]) if names else 0.0,
        "log_e_value_corrected": look.corrected,
        "level": look.settings.level,
        "independent": look.settings.independent,
        "tolerance": look.settings.tolerance,
        "windows": len(names),
        "rows": totals(look)[0],
        "mean_gap": None if gap is None else {"value": gap[0], "low": gap[1].low, "high": gap[1].high, "level": LEVEL},
        "moves_together": look.moves_together,
        "classes": look.changed("class"),
        "groups": look.changed("group"),
        "remarks": remarks(look),
        "lines": list(lines),
    }


def quoted(log_e: float) -> str:
    """An e-value as it is read.

    >>> quoted(math.log(20)), quoted(math.log(1234567)), quoted(-9.0)
    ('20', '1.2e+06', '0.00012')
    """
    value = math.exp(min(log_e, 700.0))
    return f"{value:.2g}" if not 10 <= value < 10_000 else f"{value:,.0f}"
