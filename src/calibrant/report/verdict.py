"""The verdict: what the numbers say, in words, for a reader who reads nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.metric import Result
from calibrant.recalibrate.temperature import TemperatureScaling
from calibrant.report.study import Study, tried

LEVEL = 0.05
"""The p-value below which a finding is called more than noise."""
TELLING = 0.01
"""Errors below a hundredth are called small, whatever their p-value."""


@dataclass(frozen=True)
class Verdict:
    """A sentence, what supports it, and its tone."""

    sentence: str
    supporting: tuple[str, ...]
    tone: str


def verdict(study: Study) -> Verdict:
    """What a release manager needs to know.

    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(verdict(Study(cal.Predictions.from_probs(rng.random(2000) < p, p), "model")).sentence)
    No miscalibration beyond noise: ECE is 3.0 points, and calibrated forecasts would show 2.7 (p = 0.32).
    """
    supporting = tuple(said for said in (_sizes(study), _repair(study)) if said)
    p = study.ece.details.get("null_p_value")
    ece, floor = study.ece.value, study.ece.details.get("noise_floor")
    if p is None or floor is None:
        return Verdict(f"ECE is {points(ece)}; {_direction(study.mcs)}.", supporting, "unsure")
    if p > LEVEL:
        said = f"ECE is {points(ece)}, and calibrated forecasts would show {100 * floor:.1f} ({said_p(p, study)})."
        return Verdict(f"No miscalibration beyond noise: {said}", supporting, "good")
    lead = f"{_direction(study.mcs).capitalize()}; more than noise, {said_p(p, study)}"
    small = ece < TELLING
    if small:
        lead = f"Nearly calibrated: ECE is {points(ece)}, small but more than noise, {said_p(p, study)}"
    help_ = _help(study)
    return Verdict(f"{lead}{f'; {help_}' if help_ else ''}.", supporting, "unsure" if small else "poor")


def points(value: float) -> str:
    """A probability in points.

    >>> points(0.0412)
    '4.1 points'
    """
    return f"{100 * value:.1f} points"


def said_p(p: float, study: Study) -> str:
    """A p-value as it is quoted: no smaller than the number of redraws can tell."""
    least = 1 / (study.resamples + 1)
    return f"p < {max(least, 0.001) * 1.001:.1g}".replace("0.", ".") if p <= least * 1.001 else f"p = {p:.2g}"


def _direction(mcs: Result) -> str:
    """Over- or under-confident, by how much; or both, which the mean hides."""
    p = mcs.details.get("null_p_value", 0.0)
    if p > LEVEL or abs(mcs.value) < 0.0005:
        return "miscalibrated, over-confident in some ranges and under-confident in others"
    return f"{'over' if mcs.value > 0 else 'under'}-confident by {points(abs(mcs.value))}"


def _help(study: Study) -> str:
    """What a temperature would do, on rows it was not fitted on."""
    found = study.choice
    if found is None or "temperature" not in found.forecasts:
        return ""
    before, after = (found.table[name]["ECE"].value for name in ("as it is", "temperature"))
    fitted = tried(lambda: fitted_temperature(study))
    if fitted is None or after > 0.9 * before:
        return "a temperature would not mend it"
    amount = "most" if after < 0.5 * before else "part"
    said = f"ECE {100 * before:.1f} to {100 * after:.1f} points"
    return f"a temperature of {fitted:.2g} would remove {amount} of it ({said})"


def fitted_temperature(study: Study) -> float:
    """The temperature that all the rows of the recalibration want."""
    rows = study.repaired_rows
    method = TemperatureScaling(input="logits" if rows.logits else "probabilities")
    return method.fit(rows.values, rows.labels, sample_weight=rows.weight).temperature_


def _sizes(study: Study) -> str:
    between = study.ece.interval
    said = f"ECE {points(study.ece.value)}"
    if between is not None:
        said += f", {100 * between.level:g}% interval {100 * between.low:.1f} to {100 * between.high:.1f}"
    floor = study.ece.details.get("noise_floor")
    if floor is not None:
        said += (
            f"; noise floor {100 * floor:.1f} (what calibrated forecasts would show with these {study.ece.n:,} rows)"
        )
    return said + "."


def _repair(study: Study) -> str:
    return "" if study.choice is None else study.choice.verdict
