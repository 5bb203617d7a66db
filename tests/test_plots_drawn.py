"""Plots: what is drawn is what was measured, bar by bar."""

import dataclasses

import numpy as np
import pytest

import calibrant as cal
from calibrant import diagnostics
from calibrant.files import reading as io
from toy import P, y

matplotlib = pytest.importorskip("matplotlib")

from calibrant import plots  # noqa: E402
from calibrant.inference import bin_intervals  # noqa: E402
from calibrant.plots import colours  # noqa: E402
from calibrant.plots.ranking import Ranking  # noqa: E402

pytestmark = pytest.mark.slow

TOY = cal.Predictions.from_probs(y, P, site=["a", "b", "c"] * 4)
SHIPPED = io.read(io.SHIPPED / "fashion_mnist_test.npz")


def boxes(container):
    """Left end, bottom, width, height of each bar."""
    return np.array([[bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()] for bar in container])


def named(ax, label):
    """What was drawn under a label."""
    (artist,) = [each for each in [*ax.containers, *ax.collections, *ax.lines] if each.get_label() == label]
    return artist


@pytest.mark.parametrize("metric", [cal.ECE, cal.ADAPTIVE_ECE, cal.ECE_SWEEP, cal.IsotonicError()])
def test_bars_are_the_bins(metric):
    display = plots.ReliabilityDisplay.from_predictions(SHIPPED, metric=metric)
    bins = metric(SHIPPED).bins
    filled = bins.counts[0] > 0
    left, bottom, width, height = boxes(named(display.ax_, "observed")).T
    assert left == pytest.approx(bins.low[0, filled], abs=1e-12)
    assert left + width == pytest.approx(bins.high[0, filled], abs=1e-12)
    assert (bottom == 0).all()
    assert height == pytest.approx(bins.frequency[0, filled, 0], abs=1e-12)


def test_gaps_reach_from_frequency_to_mean_forecast():
    bins = cal.ECE(TOY).bins
    display = plots.ReliabilityDisplay.from_predictions(TOY)
    for sign, words in ((1, "over-confident"), (-1, "under-confident")):
        some = sign * bins.gap[0, :, 0] > 0
        _, bottom, _, height = boxes(named(display.ax_, words)).T
        lower = np.minimum(bins.forecast, bins.frequency)[0, some, 0]
        assert bottom == pytest.approx(lower, abs=1e-12)
        assert height == pytest.approx(np.abs(bins.gap[0, some, 0]), abs=1e-12)
    (dots,) = [line for line in display.ax_.lines if line.get_marker() == "o"]
    filled = bins.counts[0] > 0
    assert dots.get_xdata() == pytest.approx(bins.forecast[0, filled, 0])
    assert dots.get_ydata() == pytest.approx(bins.frequency[0, filled, 0])


def test_over_and_under_confidence_differ_in_colour_and_hatch():
    display = plots.ReliabilityDisplay.from_predictions(TOY)
    over, under = (named(display.ax_, words)[0] for words in ("over-confident", "under-confident"))
    assert over.get_facecolor() != under.get_facecolor()
    assert over.get_hatch() != under.get_hatch()


def test_an_event_is_not_called_confident():
    display = plots.ReliabilityDisplay.from_predictions([1, 0, 0, 1], [0.2, 0.2, 0.9, 0.9])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "forecast too high",
        "forecast too low",
    ]


def test_the_strip_below_holds_the_counts():
    display = plots.ReliabilityDisplay.from_predictions(SHIPPED)
    counts = cal.ECE(SHIPPED).bins.counts[0]
    (strip,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    assert boxes(strip.containers[0])[:, 3].tolist() == counts[counts > 0].tolist()
    assert [text.get_text() for text in strip.texts] == [f"{count:.0f}" for count in counts[counts > 0]]
    assert strip.get_yscale() == "log"
    assert strip.get_ylabel() == "samples\n(log)"


def test_counts_that_differ_little_are_drawn_on_a_plain_scale():
    display = plots.ReliabilityDisplay.from_predictions(TOY)
    (strip,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    assert strip.get_yscale() == "linear"
    assert strip.get_ylim()[0] == 0


def test_empty_bins_are_left_out():
    display = plots.ReliabilityDisplay.from_predictions([1, 0], [0.95, 0.05])
    assert len(named(display.ax_, "observed")) == 2
    assert display.result.bins.shape[1] == 15


def test_the_title_has_the_interval_where_there_is_one():
    display = plots.ReliabilityDisplay.from_predictions(SHIPPED, interval=cal.Bootstrap(20, seed=0), name="net")
    result = cal.ECE(SHIPPED, interval=cal.Bootstrap(20, seed=0))
    assert display.ax_.get_title(loc="left") == f"net: ECE {result.value:.4f} {result.interval}, n = 10,000"


def test_bin_intervals_are_quantiles_of_resampled_rows():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    events = cal.Predictions.from_probs((rng.random(200) < p).astype(int), p)
    metric = cal.BinnedError(binning=cal.EqualWidth(2))
    intervals = bin_intervals.resampled_frequencies(metric, events, cal.Bootstrap(400, seed=0, level=0.8))
    drawn = []
    for _ in range(4000):
        rows = rng.integers(0, 200, 200)
        upper = p[rows] > 0.5
        labels = events.labels[rows]
        drawn.append([labels[~upper].mean(), labels[upper].mean()])
    wanted = np.quantile(drawn, [0.1, 0.9], axis=0).T
    assert intervals == pytest.approx(wanted, abs=0.02)  # 400 draws of a share with sd .05: quantiles to about .005


def test_bin_intervals_are_drawn_at_the_mean_forecast():
    display = plots.ReliabilityDisplay.from_predictions(SHIPPED, interval=cal.Bootstrap(50, seed=0))
    lines = named(display.ax_, "90% interval").get_segments()
    there = ~np.isnan(display.intervals[:, 0])
    assert [line[0, 0] for line in lines] == pytest.approx(display.result.bins.forecast[0, there, 0])
    assert [tuple(line[:, 1]) for line in lines] == [tuple(ends) for ends in display.intervals[there]]


def test_a_bin_whose_outcomes_are_alike_has_no_bootstrap_interval():
    ends = bin_intervals.resampled_frequencies(
        cal.ECE, cal.Predictions.from_probs([1] * 9, [0.7] * 9), cal.Bootstrap(50)
    )
    assert np.isnan(ends).all()


def test_weights_count_as_repetition_in_bin_intervals():
    weighted = cal.Predictions.from_probs([1, 0], [0.7, 0.7], sample_weight=[3, 1])
    frequency = bin_intervals._Answers.of(cal.ECE, weighted).frequencies(np.array([1.0, 0.0]), np.ones(2, int))
    assert frequency[10] == 0.75
    assert np.isnan(np.delete(frequency, 10)).all()


def test_clusters_are_resampled_as_a_whole():
    rows = cal.Predictions.from_probs([1, 1, 0, 0], [0.7] * 4, prompt=["a", "a", "b", "b"])
    ends = bin_intervals.resampled_frequencies(cal.ECE, rows, cal.Bootstrap(100, groups="prompt"))
    assert ends[10].tolist() == [0, 1]


def test_the_flat_lens_has_several_answers_a_row():
    metric = cal.BinnedError(lens=cal.Flat())
    ends = bin_intervals.resampled_frequencies(metric, TOY, cal.Bootstrap(50, seed=0))
    assert np.isfinite(ends).any()
    with pytest.raises(cal.CalibrationInputError, match="needs one answer a row"):
        plots.ReliabilityDisplay.from_predictions(TOY, metric=metric, consistency=9)


def test_selected_rows_only_are_resampled():
    metric = dataclasses.replace(cal.ECE, select=cal.where(site="a"))
    intervals = bin_intervals.resampled_frequencies(metric, TOY, cal.Bootstrap(50, seed=0))
    alone = bin_intervals.resampled_frequencies(cal.ECE, TOY[np.arange(0, 12, 3)], cal.Bootstrap(50, seed=0))
    assert np.array_equal(intervals, alone, equal_nan=True)


def test_the_band_is_binomial():
    from scipy.stats import binom

    n = 400
    events = cal.Predictions.from_probs([1] * n, [0.3] * n)
    ends = bin_intervals.calibrated_frequencies(cal.ECE, events, n=2000, seed=0, level=0.9)
    wanted = binom(n, 0.3).ppf([0.05, 0.95]) / n
    assert ends[4] == pytest.approx(wanted, abs=2.5 / n)  # a quantile of 2,000 draws is off by a step or two


def test_the_band_is_drawn_around_the_forecast_and_not_the_labels():
    display = plots.ReliabilityDisplay.from_predictions([0] * 50, [0.7] * 50, consistency=200, level=0.8)
    ((_, bottom, _, height),) = boxes(named(display.ax_, "80% if calibrated"))
    assert bottom < 0.7 < bottom + height
    assert bottom > 0.5


def test_the_isotonic_curve_is_the_regression():
    display = plots.ReliabilityDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.8], curve=plots.isotonic)
    line = named(display.ax_, "isotonic curve")
    assert line.get_xdata().tolist() == [0.1, 0.3, 0.6, 0.8]
    assert line.get_ydata().tolist() == [0, 0.5, 0.5, 1]


@pytest.mark.parametrize("method", [cal.ConfidenceBand(0.8, simultaneous=True), cal.ConsistencyBand(0.8, n=99)])
def test_the_band_of_a_curve_is_drawn_as_numbers_say(method):
    rng = np.random.default_rng(0)
    p = rng.random(80).round(2)
    y = (rng.random(80) < p).astype(int)
    display = plots.ReliabilityDisplay.from_predictions(y, p, curve=plots.isotonic, band=method)
    numbers = cal.reliability_band(y, p, curve=plots.isotonic, band=method)
    corners = named(display.ax_, method.words).get_paths()[0].vertices
    assert {tuple(corner) for corner in np.column_stack([numbers.forecast, numbers.low])} <= set(map(tuple, corners))
    assert {tuple(corner) for corner in np.column_stack([numbers.forecast, numbers.high])} <= set(map(tuple, corners))


def test_the_band_of_bins_is_drawn_as_boxes():
    rng = np.random.default_rng(0)
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    method = cal.ConfidenceBand(simultaneous=True)
    display = plots.ReliabilityDisplay.from_predictions(y, p, metric=cal.ADAPTIVE_ECE, band=method)
    numbers = cal.reliability_band(y, p, curve=plots.binned(cal.EqualMass()), band=method)
    drawn = boxes(named(display.ax_, "90% confidence, whole curve"))
    assert drawn[:, 1] == pytest.approx(numbers.low)
    assert drawn[:, 1] + drawn[:, 3] == pytest.approx(numbers.high)
    with pytest.raises(cal.CalibrationInputError, match="metric: must have a binning"):
        plots.ReliabilityDisplay.from_predictions(y, p, metric=cal.IsotonicError(), band=method)


def test_a_logit_axis_draws_what_is_exactly_one_at_its_end():
    display = plots.ReliabilityDisplay.from_predictions([1] * 20, [0.9] * 20, logit=True)
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "logit"
    low, high = display.ax_.get_ylim()
    ((_, bottom, _, height),) = boxes(named(display.ax_, "observed"))
    assert bottom == low
    assert bottom + height == pytest.approx(high)


@pytest.mark.parametrize("metric", [cal.SCE, cal.FULL_ECE, cal.SMECE, cal.BRIER])
def test_metrics_without_the_bins_of_one_event_are_refused(metric):
    with pytest.raises(cal.CalibrationInputError, match="metric: must pool the forecasts of one event into bins"):
        plots.ReliabilityDisplay.from_predictions(TOY, metric=metric)


def test_reliability_refuses_what_cannot_be_resampled():
    with pytest.raises(cal.CalibrationInputError, match="metric: must have a binning"):
        plots.ReliabilityDisplay.from_predictions(TOY, metric=cal.IsotonicError(), interval=cal.Bootstrap(9))
    for wrong in ({"consistency": 0}, {"consistency": 9, "level": 90}, {"consistency": 9, "seed": None}):
        with pytest.raises(cal.CalibrationInputError, match=str(list(wrong)[-1])):
            plots.ReliabilityDisplay.from_predictions(TOY, **wrong)


def test_the_histogram_shows_shares_of_right_and_of_wrong():
    display = plots.ConfidenceHistogramDisplay.from_predictions(TOY)
    confidence, hit = P.max(axis=1), P.argmax(axis=1) == y
    right = boxes(named(display.ax_, "right, n = 8"))
    wrong = boxes(named(display.ax_, "wrong, n = 4"))
    assert right[:, 3].sum() == pytest.approx(1)
    assert wrong[:, 3].sum() == pytest.approx(-1)
    for left, _, width, height in right:
        assert height == pytest.approx(np.mean((confidence[hit] > left) & (confidence[hit] <= left + width + 1e-12)))
    lines = {line.get_label(): line.get_xdata()[0] for line in display.ax_.lines}
    assert lines["mean confidence 0.677"] == pytest.approx(confidence.mean())
    assert lines["accuracy 0.667"] == pytest.approx(8 / 12)


def test_the_histogram_counts_what_its_bars_stand_for():
    display = plots.ConfidenceHistogramDisplay.from_predictions(SHIPPED)
    assert sum(int(text.get_text()) for text in display.ax_.texts if text.get_text().isdigit()) == 10_000


def test_signed_gaps_are_the_parts_in_order():
    display = plots.SignedGapsDisplay.from_predictions(SHIPPED)
    result = cal.CWMCS(SHIPPED)
    order = np.argsort(-np.array(result.values))
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == pytest.approx(np.array(result.values)[order])
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == [f"{result.about.names[index]} (1,000)" for index in order]


def test_many_classes_share_a_ribbon_and_none_is_lost():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(300, 0.05), 3000)
    many = cal.Predictions.from_probs(rng.integers(0, 290, 3000), shares)
    display = plots.SignedGapsDisplay.from_predictions(many, most=10)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(labels) == 11
    assert labels[-1] == "280 classes\nin between"
    drawn = sorted(bar.get_width() for bar in display.ax_.patches if bar.get_width() and bar.get_height() < 1)
    values = np.array(display.result.values)
    assert drawn == pytest.approx(sorted(values[~np.isnan(values)]))
    assert any("10 classes without any" in text.get_text() for text in display.ax_.texts)


def test_signed_gaps_have_their_null_and_intervals():
    bootstrap = cal.Bootstrap(50, seed=0)
    display = plots.SignedGapsDisplay.from_predictions(SHIPPED, interval=bootstrap, consistency=50, level=0.8)
    null = cal.consistency(cal.CWMCS, SHIPPED, n=50, seed=0).parts
    assert display.band == pytest.approx(np.quantile(null, [0.1, 0.9], axis=0).T)
    intervals = cal.CWMCS(SHIPPED, interval=bootstrap).intervals
    ends = {tuple(line[:, 0]) for line in named(display.ax_, "90% interval").get_segments()}
    assert ends == {(interval.low, interval.high) for interval in intervals}


def test_signed_gaps_refuse_other_metrics():
    for metric in (cal.CWECE, cal.MCS):
        with pytest.raises(cal.CalibrationInputError, match="metric: must have a signed gap for each class"):
            plots.SignedGapsDisplay.from_predictions(TOY, metric=metric)
    with pytest.raises(cal.CalibrationInputError, match="most"):
        plots.SignedGapsDisplay.from_predictions(TOY, most=1)


def test_a_ranking_gives_every_number_one_place():
    values = np.array([0.5, np.nan, -0.2, 0.1, 0.0, 0.4, -0.6])
    ranking = Ranking.of(values, most=3)
    assert ranking.named.tolist() == [0, 5, 6]
    assert ranking.rest.tolist() == [3, 4, 2]
    assert ranking.rows.tolist() == [0, 1, 5]
    assert ranking.ribbon_rows.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert Ranking.of(np.array([np.nan]), most=2).height == 0


def test_top_k_errors_are_those_of_the_lens():
    display = plots.TopKDisplay.from_predictions(TOY, lens=cal.InTopK, binning=cal.EqualWidth(5), consistency=9)
    metrics = [cal.BinnedError(lens=cal.InTopK(k), binning=cal.EqualWidth(5)) for k in (1, 2, 3)]
    assert named(display.ax_, "error").get_ydata() == pytest.approx([metric(TOY).value for metric in metrics])
    floors = [cal.consistency(metric, TOY, n=9, seed=0).mean for metric in metrics]
    assert named(display.ax_, "if calibrated, by noise alone").get_ydata() == pytest.approx(floors)
    (strip,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    assert boxes(strip.containers[0])[:, 3] == pytest.approx(diagnostics.mean_ranked_outputs(TOY, 3))


def test_top_k_stops_at_the_likeliest_classes_that_are_known():
    ids, probs = [[2, 0, 1], [1, 4, 0]], [[0.5, 0.2, 0.1], [0.6, 0.2, 0.1]]
    rows = cal.Predictions.from_top_k([2, 1], ids, probs, n_classes=9)
    assert plots.TopKDisplay.from_predictions(rows).ks.tolist() == [1, 2, 3]
    assert plots.TopKDisplay.from_predictions(rows, most=2).ks.tolist() == [1, 2]


def test_top_k_refuses_events():
    with pytest.raises(cal.CalibrationInputError, match="column_stack"):
        plots.TopKDisplay.from_predictions([1, 0], [0.9, 0.2])
    with pytest.raises(cal.CalibrationInputError, match="results: must be as many as outputs"):
        plots.TopKDisplay((), np.zeros(0))


def test_groups_are_the_rows_of_the_table():
    bootstrap = cal.Bootstrap(20, seed=0)
    display = plots.GroupsDisplay.from_predictions(SHIPPED, by="ink", interval=bootstrap, consistency=19)
    table = cal.table(SHIPPED, {"ece": cal.ECE}, by="ink", interval=bootstrap, null=19)
    rows = sorted(("dark", "medium", "light"), key=lambda row: -table[row]["ece"].value)
    (dots, _, everything) = display.ax_.lines
    assert dots.get_xdata() == pytest.approx([table[row]["ece"].value for row in rows])
    assert everything.get_xdata()[0] == table["all"]["ece"].value
    noise = boxes(named(display.ax_, "95% if calibrated"))[:, 2]
    assert noise == pytest.approx([table[row]["ece"].details["noise_95"] for row in rows])
    lines = named(display.ax_, "90% interval").get_segments()
    assert [tuple(line[:, 0]) for line in lines] == [
        (table[row]["ece"].interval.low, table[row]["ece"].interval.high) for row in rows
    ]
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == [f"{row} ({table[row]['ece'].n:,})" for row in rows]
    assert [*plots.GroupsDisplay.from_table(table, "ece").results] == [*display.results]


def test_a_signed_metric_has_no_one_sided_noise():
    display = plots.GroupsDisplay.from_predictions(TOY, by="site", metric=cal.MCS, consistency=9)
    assert not display.ax_.containers


def test_groups_refuse_tables_and_columns_that_are_none():
    with pytest.raises(cal.CalibrationInputError, match="make it with by="):
        plots.GroupsDisplay.from_table(cal.table(TOY, {"ece": cal.ECE}), "ece")
    with pytest.raises(cal.CalibrationInputError, match="did you mean 'ece'"):
        plots.GroupsDisplay.from_table(cal.table(TOY, {"ece": cal.ECE}, by="site"), "ecf")
    with pytest.raises(cal.CalibrationInputError, match="did you mean 'site'"):
        plots.GroupsDisplay.from_predictions(TOY, by="sites")
    with pytest.raises(cal.CalibrationInputError, match="results"):
        plots.GroupsDisplay({})


def test_likert_rows_show_ranges_and_frequencies():
    scale = {"seldom": cal.likert([(0, 0.3)])["[0, 0.3)"], "often": cal.likert([(0.3, 1)])["[0.3, 1]"]}
    display = plots.LikertDisplay.from_predictions([1, 0, 1, 1, 0], [0.21, 0.21, 0.21, 0.9, 0.5], scale=scale)
    assert boxes(display.ax_.patches)[:, [0, 2]] == pytest.approx(np.array([[0, 0.3], [0.3, 0.7]]))
    dots = [tuple(place) for cloud in display.ax_.collections for place in cloud.get_offsets().tolist()]
    assert sorted(dots) == [(0, 1), (pytest.approx(2 / 3), 0), (1, 1)]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["seldom", "often"]
    texts = [text.get_text() for text in display.ax_.texts]
    assert f"{display.results['seldom'].value:.3f}\nn = 3" in texts


def test_likert_refuses_other_metrics():
    with pytest.raises(cal.CalibrationInputError, match="scale: must measure the distance to an interval"):
        plots.LikertDisplay.from_predictions(TOY, scale={"all": cal.ECE})
    with pytest.raises(cal.CalibrationInputError, match="scale: must not be empty"):
        plots.LikertDisplay.from_predictions(TOY, scale={})


def test_sensitivity_draws_values_spread_and_sizes_in_order():
    curve = cal.sensitivity(cal.ECE, SHIPPED, values=[50, 5, 15], bootstrap=20)
    display = plots.SensitivityDisplay(curve, "ECE").plot()
    order = [1, 2, 0]
    line = named(display.ax_, "value")
    assert line.get_xdata().tolist() == [5, 15, 50]
    assert line.get_ydata() == pytest.approx(curve.values[order])
    corners = named(display.ax_, "± 1 standard deviation").get_paths()[0].vertices
    for setting, value, sd in zip(curve.settings, curve.values, curve.sds, strict=True):
        heights = corners[corners[:, 0] == setting, 1]
        assert heights.min() == pytest.approx(value - sd)
        assert heights.max() == pytest.approx(value + sd)
    (strip,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    for column, sizes in enumerate(strip.lines):
        assert sizes.get_ydata().tolist() == curve.bin_sizes[order, column].tolist()
    assert len(named(display.ax_, "stable value").get_xdata()) == curve.stable.sum()


def test_sensitivity_to_the_share_of_rows_has_no_bin_sizes():
    display = plots.SensitivityDisplay.from_predictions(TOY, over="share", values=[0.5, 1], bootstrap=9)
    assert display.figure_.axes == [display.ax_]


def test_sensitivity_over_a_wide_range_is_drawn_on_a_logarithmic_axis():
    options = {"metric": cal.FULL_ECE, "over": "gamma", "bootstrap": 5}
    wide = plots.SensitivityDisplay.from_predictions(TOY, values=[0.01, 0.1, 1.0], **options)
    narrow = plots.SensitivityDisplay.from_predictions(TOY, values=[0.2, 0.5, 1.0], **options)
    assert (wide.ax_.get_xscale(), narrow.ax_.get_xscale()) == ("log", "linear")


def test_before_and_after_are_two_reliability_diagrams():
    after = cal.Predictions.from_logits(SHIPPED.labels, SHIPPED.values / 2)
    display = plots.BeforeAfterDisplay.from_predictions(
        SHIPPED, after, metric=cal.ADAPTIVE_ECE, names=("raw", "halved")
    )
    for panel, predictions in zip(display.axes_, (SHIPPED, after), strict=True):
        known = plots.ReliabilityDisplay.from_predictions(predictions, metric=cal.ADAPTIVE_ECE)
        assert np.array_equal(boxes(panel.patches), boxes(known.ax_.patches))
    values = [cal.ADAPTIVE_ECE(predictions).value for predictions in (SHIPPED, after)]
    title = f"ADAPTIVE_ECE {values[0]:.4f} raw, {values[1]:.4f} halved, n = 10,000"
    assert display.ax_.get_title(loc="left") == title


def test_before_and_after_refuse_other_rows():
    with pytest.raises(cal.CalibrationInputError, match=r"after: must have the rows of before \(12\), got 11 rows"):
        plots.BeforeAfterDisplay.from_predictions(TOY, TOY[:11])
    with pytest.raises(cal.CalibrationInputError, match="after: must be Predictions, got ndarray"):
        plots.BeforeAfterDisplay.from_predictions(TOY, P)


def test_risk_and_coverage_of_several_models():
    models = {"toy": TOY, "some": TOY[:6]}
    display = plots.RiskCoverageDisplay.from_predictions(models, uncertainty=diagnostics.doubt)
    for line, model in zip(display.ax_.lines, models.values(), strict=True):
        curve = diagnostics.risk_coverage(model, diagnostics.doubt)
        assert np.array_equal(line.get_xdata(), curve.coverage)
        assert np.array_equal(line.get_ydata(), curve.risk)
    first, second = display.ax_.lines
    assert first.get_label().endswith("n = 12")
    assert first.get_linestyle() != second.get_linestyle()
    assert display.ax_.get_title(loc="left") == "Risk and coverage: n = 6 to 12"


def test_risk_and_coverage_refuse_what_is_no_model():
    with pytest.raises(cal.CalibrationInputError, match="models: must be Predictions, got ndarray at 'a'"):
        plots.RiskCoverageDisplay.from_predictions({"a": P})
    with pytest.raises(cal.CalibrationInputError, match="models: must be a dictionary"):
        plots.RiskCoverageDisplay.from_predictions({})
    with pytest.raises(cal.CalibrationInputError, match="curves"):
        plots.RiskCoverageDisplay({})


def test_small_multiples_are_the_worst_classes_first():
    display = plots.SmallMultiplesDisplay.from_predictions(SHIPPED, most=3)
    result = cal.SCE(SHIPPED)
    worst = np.argsort(-np.array(result.values))[:3]
    assert display.worst.tolist() == worst.tolist()
    assert "the worst 3 of 10" in display.ax_.get_title(loc="left")
    for panel, index in zip(display.axes_, worst, strict=True):
        alone = dataclasses.replace(cal.ECE, lens=cal.OneClass(int(index)))
        known = plots.ReliabilityDisplay.from_predictions(SHIPPED, metric=alone)
        assert np.array_equal(boxes(panel.containers[0]), boxes(known.ax_.containers[0]))
        assert panel.get_title(loc="left").startswith(result.about.names[index])


def test_small_multiples_have_bands_of_their_class():
    display = plots.SmallMultiplesDisplay.from_predictions(TOY, consistency=20, level=0.8)
    alone = dataclasses.replace(cal.SCE, lens=cal.OneClass(1))
    known = bin_intervals.calibrated_frequencies(alone, TOY, n=20, seed=0, level=0.8)
    assert np.array_equal(display.bands[1], known, equal_nan=True)
    with pytest.raises(cal.CalibrationInputError, match="needs a binned error of every class"):
        plots.SmallMultiplesDisplay.from_predictions(TOY, metric=cal.CWECE, consistency=9)


def test_small_multiples_refuse_one_question():
    with pytest.raises(cal.CalibrationInputError, match="metric: must pool the forecasts of several events"):
        plots.SmallMultiplesDisplay.from_predictions(TOY, metric=cal.ECE)


def test_comparisons_are_paired_and_corrected():
    softer = cal.Predictions.from_logits(SHIPPED.labels, SHIPPED.values / 2)
    models = {"a": SHIPPED, "b": softer, "c": softer}
    display = plots.ComparisonDisplay.from_predictions(models, n=50)
    known = cal.compare_all(cal.ECE, models, 50, 0)
    values, differences = display.axes_
    assert [line.get_xdata()[0] for line in values.lines] == [cal.ECE(entry).value for entry in models.values()]
    dots = [line for line in differences.lines if line.get_marker() == "o"]
    assert [dot.get_xdata()[0] for dot in dots] == [entry.difference for entry in known.values()]
    ends = [tuple(lines.get_segments()[0][:, 0]) for lines in differences.collections]
    assert ends == [(entry.interval.low, entry.interval.high) for entry in known.values()]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, False, True]
    assert [text.get_text() for text in differences.texts] == [
        f"p = {entry.adjusted_p_value:.2g}" for entry in known.values()
    ]


def test_comparisons_with_a_reference():
    models = {"a": SHIPPED[:500], "b": SHIPPED[:500], "c": SHIPPED[:500]}
    display = plots.ComparisonDisplay.from_predictions(models, reference="b", n=20)
    assert list(display.comparisons) == [("a", "b"), ("c", "b")]
    assert all(comparison.adjusted_p_value is not None for comparison in display.comparisons.values())
    with pytest.raises(cal.CalibrationInputError, match="reference: is unknown, got 'd'"):
        plots.ComparisonDisplay.from_predictions(models, reference="d", n=20)


def test_comparisons_need_two_models_of_the_same_rows():
    for few in ({"a": TOY}, TOY):
        with pytest.raises(cal.CalibrationInputError, match="models: must be at least two"):
            plots.ComparisonDisplay.from_predictions(few)
    with pytest.raises(cal.CalibrationInputError, match="must have the rows of a"):
        plots.ComparisonDisplay.from_predictions({"a": TOY, "b": TOY[:5]}, n=9)
    with pytest.raises(cal.CalibrationInputError, match="results: must be two or more"):
        plots.ComparisonDisplay({}, {})


def test_colours_differ_in_lightness_so_that_they_read_in_grey():
    def lightness(colour):
        red, green, blue = matplotlib.colors.to_rgb(colour)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert abs(lightness(colours.OVER) - lightness(colours.UNDER)) > 0.05
    assert colours.OVER_HATCH != colours.UNDER_HATCH
    assert len({(dashes, marker) for _, dashes, marker in colours.SERIES}) == len(colours.SERIES)


def test_small_multiples_count_on_one_kind_of_axis():
    p = np.r_[np.linspace(0.02, 0.98, 40), np.full(60, 0.01)]
    shares = np.column_stack([p * 0.5, p * 0.5, 1 - p])
    display = plots.SmallMultiplesDisplay.from_predictions(np.arange(100) % 3, shares)
    scales = {ax.get_yscale() for ax in display.figure_.axes if ax not in (*display.axes_, display.ax_)}
    assert scales == {"log"}
    assert any("samples (log)" in text.get_text().replace("\n", " ") for text in display.ax_.texts)


def test_neighbours_that_were_not_compared_share_no_ground():
    curves = [
        cal.sensitivity(cal.ECE, SHIPPED, values=values, bootstrap=20)
        for values in ([5, 10, 15, 50], [50, 15, 10, 5], [50, 5, 15, 10])
    ]
    assert all(curve.stable[1:-1].all() for curve in curves)
    grounds = [len(plots.SensitivityDisplay(curve).plot().ax_.patches) for curve in curves]
    assert grounds == [1, 1, 0]


def test_class_bins_are_drawn_one_by_one_and_pooled():
    metrics = {"SCE": cal.SCE.replace(binning=cal.EqualWidth(10)), "TACE": cal.TACE.replace(binning=cal.EqualMass(5))}
    display = plots.ClassBinsDisplay.from_predictions(SHIPPED, metrics=metrics)
    _, *lines = display.ax_.lines
    assert len(lines) == 4
    for (name, metric), dots, line in zip(metrics.items(), lines[::2], lines[1::2], strict=True):
        bins = metric(SHIPPED).bins
        points = [
            (bins.forecast[k, b, 0], bins.frequency[k, b, 0])
            for k in range(bins.shape[0])
            for b in range(bins.shape[1])
            if bins.counts[k, b]
        ]
        assert dots.get_xydata() == pytest.approx(np.array(points))
        assert line.get_label() == f"{name} {metric(SHIPPED).value:.4f}"
        for b, (forecast, frequency) in enumerate(line.get_xydata()):
            sizes = bins.counts[:, b]
            total = sum(sizes[k] * bins.forecast[k, b, 0] for k in range(len(sizes)) if sizes[k])
            happened = sum(sizes[k] * bins.frequency[k, b, 0] for k in range(len(sizes)) if sizes[k])
            assert (forecast, frequency) == pytest.approx((total / sizes.sum(), happened / sizes.sum()))
    for refused in ({"full": cal.FULL_ECE}, {"brier": cal.BRIER}, {}):
        with pytest.raises(cal.CalibrationInputError, match="metrics: must"):
            plots.ClassBinsDisplay.from_predictions(SHIPPED, metrics=refused)


def test_the_decision_curve_draws_net_benefits():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    labels = (rng.random(200) < p).astype(int)
    models = {"sharp": cal.Predictions.from_probs(labels, p), "flat": cal.Predictions.from_probs(labels, p / 2 + 0.2)}
    at = [0.1, 0.3, 0.8]
    display = plots.DecisionCurveDisplay.from_predictions(models, thresholds=at)
    *lines, everybody, nobody = display.ax_.lines
    for line, model in zip(lines, models.values(), strict=True):
        assert line.get_xdata().tolist() == at
        assert line.get_ydata().tolist() == [cal.NetBenefit(t)(model).value for t in at]
    always = cal.Predictions.from_probs(labels, np.ones(200))
    assert everybody.get_ydata() == pytest.approx([cal.NetBenefit(t)(always).value for t in at], abs=1e-12)
    assert nobody.get_ydata().tolist() == [0, 0, 0]
    assert [line.get_label() for line in display.ax_.lines] == ["sharp", "flat", "acting on all", "acting on none"]
    assert len({line.get_linestyle() for line in lines}) == 2
    assert display.ax_.get_title(loc="left") == "Decision curve: n = 200"


def test_the_decision_curve_refuses_other_samples_and_several_questions():
    event = cal.Predictions.from_probs([1, 0, 1], [0.9, 0.2, 0.6])
    with pytest.raises(cal.CalibrationInputError, match="models: must be about the same samples, got 2 sets of them"):
        plots.DecisionCurveDisplay.from_predictions({"a": event, "b": event[:2]})
    with pytest.raises(cal.CalibrationInputError, match="lens: must ask one event of some samples, got 3 questions"):
        plots.DecisionCurveDisplay.from_predictions(TOY, lens=cal.Classwise())
    with pytest.raises(cal.CalibrationInputError, match="threshold"):
        plots.DecisionCurveDisplay.from_predictions(event, thresholds=[1.0])
    with pytest.raises(cal.CalibrationInputError, match="benefits"):
        plots.DecisionCurveDisplay(np.zeros(1), {}, np.zeros(1), 1)
