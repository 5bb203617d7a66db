"""Looks: what closed windows say together; one function of what was recorded of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrant.kernels.totals import Floats
from calibrant.watch.closed_windows import OVERALL, ClosedWindow, Question, WatchSettings

LOWER_MEAN = 0.6230
"""The mean of the square of a standard normal number, where it is among the smaller nine tenths."""
FEWEST = 10
"""Windows before it is told whether they scatter more than independent rows do."""


@final
@dataclass(frozen=True, eq=False)
class Look:
    """The evidence against calibration after some windows.

    `log_e` (windows,) is the logarithm of the e-value after each window. An alarm is raised by the first at which it
    reaches that of 1 / level, and stays. `corrected` is the last e-value with late outcomes put in their windows; it is
    told, and raises no alarm. `questions` are the e-values of classes and groups.
    """

    settings: WatchSettings
    windows: Sequence[ClosedWindow]
    log_e: Floats
    corrected: float
    questions: Mapping[Question, float]

    @property
    def e_value(self) -> float:
        """The e-value now; 1 before the first window."""
        return math.exp(min(self.log_e[-1], 700.0)) if len(self.log_e) else 1.0

    @property
    def alarm(self) -> int | None:
        """The place of the window that raised the alarm; None where none did."""
        above = np.flatnonzero(self.log_e >= -math.log(self.settings.level))
        return int(above[0]) if len(above) else None

    @property
    def since(self) -> int | None:
        """The place of the window in which the change that raised the alarm likely began; an estimate."""
        return None if self.alarm is None else change_start(self._sums[: self.alarm + 1])

    @property
    def scatter(self) -> float:
        """How far windows scatter: 1 where rows are independent, more where those of a window move together."""
        return scatter(self._sums[:, 0], self._sums[:, 1])

    @property
    def _sums(self) -> Floats:
        """The sums over all forecasts of each window (windows, 5), as bets on rows learn them."""
        lessons = [window.payments[OVERALL].lesson["rows"].sum(axis=-2) for window in self.windows]
        return np.array(lessons).reshape(-1, 5)

    @property
    def moves_together(self) -> bool:
        """Whether windows scatter by more than independent rows can be taken to: then bets on rows are not valid."""
        return is_scattered(self.scatter, len(self.windows))

    def changed(self, kind: str) -> list[str]:
        """The classes ("class") or groups ("group") whose forecasts and outcomes do not agree.

        The false discovery rate is at most the level at any one look, also if groups keep arriving (`e_bh`).
        """
        names = [[name for each, name in window.payments if each == kind] for window in self.windows]
        log_e = {name: value for (each, name), value in self.questions.items() if each == kind}
        return e_bh(log_e, arrival_shares(names), self.settings.level)


def look(
    windows: Sequence[ClosedWindow],
    settings: WatchSettings,
    corrections: Mapping[int, ClosedWindow] | None = None,
) -> Look:
    """The evidence after these windows, in the order in which they were closed.

    `corrections` are windows with late outcomes, by the place of the one that they correct: bets are those that
    were placed on the first, so that the e-value at a fixed time stays valid.

    >>> import numpy as np, calibrant as cal
    >>> from calibrant.watch.closed_windows import Memories, watch_state
    >>> rng, windows, memories, settings = np.random.default_rng(0), [], Memories(), WatchSettings()
    >>> for day in range(30):
    ...     p = rng.random(200)
    ...     happened = rng.random(200) < (p if day < 15 else p**2)
    ...     state = watch_state(cal.Predictions.from_probs(happened, p))
    ...     windows.append(ClosedWindow.of(f"day {day}", state, memories, settings))
    ...     memories = memories.after(windows[-1])
    >>> evidence = look(windows, settings)
    >>> windows[evidence.alarm].name, windows[evidence.since].name
    ('day 17', 'day 15')
    """
    log_e, last = _evidence(windows, settings)
    replaced = [(corrections or {}).get(place, window) for place, window in enumerate(windows)]
    corrected = _evidence(replaced, settings)[0] if corrections else log_e
    return Look(settings, windows, log_e, float(corrected[-1]) if len(windows) else 0.0, last)


def _evidence(windows: Sequence[ClosedWindow], settings: WatchSettings) -> tuple[Floats, dict[Question, float]]:
    """The logarithm of the e-value after each window, and that of each question after the last."""
    questions = list(dict.fromkeys([OVERALL, *(question for window in windows for question in window.payments)]))
    process, path = settings.process(settings.independent), []
    log_e = np.zeros(len(questions))
    for window in windows:
        nothing = np.zeros_like(window.payments[OVERALL].paid[settings.independent])
        payments = (window.payments.get(question) for question in questions)
        paid = [nothing if payment is None else payment.paid[settings.independent] for payment in payments]
        process = process.after_payment(np.stack(paid))
        log_e = process.log_e
        path.append(_mixed(log_e, [kind for kind, _ in questions]))
    return np.array(path), dict(zip(questions, log_e.tolist(), strict=True))


def change_start(sums: Floats) -> int:
    """The place from which on outcomes depart most from their forecasts: the largest score statistic of a line.

    `sums` (windows, 5) are those of r, v, x r, x v and x^2 v (`RowBets`). The statistic of the windows from s on is
    g' H^-1 g, with g the sums of r (1, x) and H those of v (1, x)' (1, x).

    >>> change_start(np.array([[0, 9., 0, 0, 9.], [0, 9., 0, 0, 9.], [5, 9., 0, 0, 9.]]))
    2
    """
    r, v, xr, xv, xxv = np.cumsum(sums[::-1], axis=0)[::-1].T
    determinant = v * xxv - xv * xv
    flat = determinant <= 1e-9 * v * xxv
    line = (xxv * r * r - 2 * xv * r * xr + v * xr * xr) / np.where(flat, 1.0, determinant)
    return int(np.argmax(np.where(flat, r * r / np.maximum(v, 1e-300), line)))


def scatter(residual: Floats, variance: Floats) -> float:
    """Half the mean squared difference of neighbouring windows' z, their residual over its standard deviation.

    The largest tenth of the differences is left out, so that a change of the model does not count as scatter; the mean
    of the others is divided by what it is for normal z. So it is about 1 where rows are independent, also where
    forecasts are off by as much in both windows; nan of fewer than three windows.

    >>> round(scatter(np.array([2., -2., 2., -2.]), np.array([4., 4., 4., 4.])), 2)
    3.21
    """
    z = np.divide(residual, np.sqrt(variance), out=np.zeros(len(residual)), where=variance > 0)
    squares = np.sort(np.square(np.diff(z)) / 2)[: max(len(z) - 1, 0) * 9 // 10]
    return float(squares.mean() / LOWER_MEAN) if len(squares) else math.nan


def is_scattered(scatter: float, windows: int) -> bool:
    """Whether so many windows scatter by more than independent rows can be taken to: by four standard deviations.

    >>> is_scattered(2.0, 100), is_scattered(2.0, 20)
    (True, False)
    """
    return windows >= FEWEST and scatter > 1 + 4 * math.sqrt(3 / (windows - 1))


def arrival_shares(windows: Sequence[Sequence[str]]) -> dict[str, float]:
    """The share of the level that each name gets when it arrives, whatever comes later; together they are at most 1.

    Names of the j-th window that has new ones share 1 / (j (j + 1)) evenly: those of the first window one half.

    >>> arrival_shares([["north", "south"], ["north"], ["south", "west"]])
    {'north': 0.25, 'south': 0.25, 'west': 0.16666666666666666}
    """
    shares: dict[str, float] = {}
    arrivals = 0
    for names in windows:
        if new := [name for name in names if name not in shares]:
            arrivals += 1
            shares |= dict.fromkeys(new, 1 / (len(new) * arrivals * (arrivals + 1)))
    return shares


def e_bh(log_e: Mapping[str, float], shares: Mapping[str, float], level: float) -> list[str]:
    r"""The names whose e-values are large, at a false discovery rate of at most the level, however they depend.

    The k names of the largest share times e-value are told, for the largest k at which the k-th is at least
    1 / (k level). So a name that is told has 1 / k <= level * share * e-value, and the expected share of names that are
    told falsely is at most

    .. math:: level \sum_{false} share \cdot E[e] \le level

    Shares are fixed when names arrive, so the rate holds for names that keep arriving. It is that of one look, which
    may be chosen by what was seen before; it is not that of all names ever told.

    References: Wang & Ramdas (2022); with weights, Ignatiadis, Wang & Ramdas (2024).

    >>> shares = {"north": 0.25, "south": 0.25, "west": 0.1}
    >>> e_bh({"north": math.log(70), "south": math.log(41), "west": 0.0}, shares, 0.05)
    ['north', 'south']
    """
    scaled = {name: value + math.log(shares[name] * level) for name, value in log_e.items()}
    ranked = sorted(scaled, key=lambda name: -scaled[name])
    last = max((rank for rank, name in enumerate(ranked, 1) if scaled[name] >= -math.log(rank)), default=0)
    return sorted(ranked[:last])


def _mixed(log_e: Floats, kinds: Sequence[str]) -> float:
    """The logarithm of one e-value: that of all forecasts or, where there are classes, the mean of it and theirs."""
    of_classes = [value for value, kind in zip(log_e.tolist(), kinds, strict=True) if kind == "class"]
    if not of_classes:
        return float(log_e[0])
    mean = np.logaddexp.reduce(of_classes) - math.log(len(of_classes))
    return float(np.logaddexp(log_e[0], mean) - math.log(2))
