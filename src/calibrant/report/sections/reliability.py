"""Reliability and noise: how often forecasts came true, and how far that could be chance."""

from __future__ import annotations

from calibrant.bins import Bins
from calibrant.metric import Result
from calibrant.report.charts import Bar, histogram, reliability
from calibrant.report.page import Figure, Grid, Section
from calibrant.report.study import Study

HEADER = ("from", "to", "samples", "mean forecast", "came true", "90% from", "90% to", "gap")


def axis(study: Study) -> tuple[str, str]:
    """What forecasts and outcomes are called."""
    if study.predictions.kind == "event":
        return "forecast", "how often it happened"
    return "confidence", "how often it was right"


def reliability_section(study: Study) -> Section:
    """The reliability diagram that the reader can re-bin."""
    bars = bars_of(study.ece)
    said = axis(study)
    picture = reliability(
        "reliability-picture",
        bars,
        said,
        f"Reliability diagram, n = {study.ece.n:,}",
        f"{said[1].capitalize()} against {said[0]} in {len(bars)} bins; the table below has every number.",
    )
    caption = (
        f"n = {study.ece.n:,}. Bars: {said[1]}, with its 90% interval (Wilson). The coloured part is the gap to the "
        f"mean {said[0]}: over-confident (the {said[0]} is higher) or under-confident (it is lower). The dashed box is "
        "where a calibrated model's bar would end in 90 of 100 samples. Below: how many samples each bin holds."
    )
    grid = Grid(HEADER, [row(bar) for bar in bars], "Reliability by bin", "reliability-table")
    figure = Figure("reliability", picture, caption, grid, controls=True)
    return Section("reliability-section", "Reliability", (), (figure,))


def bars_of(result: Result) -> list[Bar]:
    """The bins of a result that hold samples."""
    bins = result.bins
    assert isinstance(bins, Bins)
    assert bins.low is not None
    assert bins.high is not None
    columns = (bins.low[0], bins.high[0], bins.counts[0], bins.forecast[0, :, 0], bins.frequency[0, :, 0])
    return [Bar(*map(float, each)) for each in zip(*columns, strict=True) if each[2] > 0]


def row(bar: Bar) -> tuple[float, ...]:
    """A bin as a row of the table."""
    return (bar.low, bar.high, bar.count, bar.forecast, bar.frequency, *bar.interval, bar.forecast - bar.frequency)


def noise_section(study: Study) -> Section:
    """What ECE would be if the forecasts were calibrated."""
    title = "Noise floor"
    null = study.null
    if null is None:
        return Section("noise", title, ("Labels are soft: there is no distribution to redraw them from.",))
    value, p = study.ece.value, study.ece.details["null_p_value"]
    said = (
        f"A calibrated model does not show an ECE of 0: with {study.ece.n:,} rows it would show {null.mean:.4f} on "
        f"average, and in 95 of 100 samples at most {null.quantile(0.95):.4f}. Observed: {value:.4f}, that is "
        f"{null.excess:+.4f} beside the floor (p = {p:.3g}, {len(null.values)} redraws of the labels)."
    )
    picture = histogram(
        "noise-picture",
        null.values,
        value,
        ("ECE if the forecasts were calibrated", "redraws"),
        f"Noise floor of ECE, n = {study.ece.n:,}",
        f"Redraws between {null.values.min():.4f} and {null.values.max():.4f}; observed {value:.4f}.",
    )
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows = [("mean", null.mean), *((f"{100 * q:g}%", null.quantile(q)) for q in shares), ("observed", value)]
    grid = Grid(("quantile of the null", "ECE"), rows, "ECE under calibration")
    figure = Figure("noise-figure", picture, f"n = {study.ece.n:,}, {len(null.values)} redraws.", grid)
    return Section("noise", title, (said,), (figure,))
