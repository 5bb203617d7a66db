"""Options: every place that takes labels and forecasts takes the same options, and makes the same number of them."""

import inspect
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant import CalibrationInputError, Predictions, plots
from calibrant.cli.commands import group
from calibrant.door.options import OPTIONS, DoorOptions, LabelOptions, ScoreOptions
from calibrant.files import read
from calibrant.recalibrate.fitting.lessons import as_lesson

RNG = np.random.default_rng(3)
N = 24
P = RNG.dirichlet([1.0, 1.0, 1.0], N)
Y = np.array([RNG.choice(3, p=row) for row in P])
NAMES = ["cat", "dog", "owl"]
NAMED = np.array(NAMES)[Y]
IGNORED = np.where(np.arange(N) % 5 == 0, 255, Y)
WITH_GAPS = np.where(np.arange(N)[:, None] % 7 == 0, np.nan, P)
WEIGHT = np.arange(N) % 4 + 1.0
CASES = {
    "classes": (NAMED, P, {"classes": NAMES}),
    "sample_weight": (Y, P, {"sample_weight": WEIGHT}),
    "ignore_index": (IGNORED, P, {"ignore_index": 255}),
    "class_axis": (Y.reshape(4, 6), np.moveaxis(P.reshape(4, 6, 3), -1, 1), {"class_axis": 1}),
    "normalize": (Y, 3 * P, {"normalize": True}),
    "missing": (Y, WITH_GAPS, {"missing": "drop"}),
}
"""Labels and forecasts that need the option: without it there is an error, or another number."""
SCALE = cal.likert([0, 0.5, 1])


def drawn(kind, pick, **choices):
    """What a picture shows of labels and forecasts."""

    def entry(y, p, **options):
        return pick(kind.from_predictions(y, p, **choices, **options))

    return entry


class Fitted:
    """A model that says what it is told."""

    def predict_proba(self, forecasts):
        return forecasts


def estimated(y, p, **options):
    return plots.ReliabilityDisplay.from_estimator(Fitted(), p, y, **options).result.value


def summarised(y, p, **options):
    return cal.ECE.conclude(cal.ECE.summarise(y, p, **options)).value


def streamed(y, p, **options):
    return cal.Stream(cal.ECE).update(y, p, **options).result().value


def tabled(y, p, **options):
    return cal.table(y, p, {"ece": cal.ECE}, **options)["all"]["ece"].value


def asserted(y, p, **options):
    return cal.assert_calibrated(y, p, at_most=1.0, **options).value


ENTRIES = {
    "a metric": lambda y, p, **options: cal.ECE(y, p, **options).value,
    "summarise": summarised,
    "Stream": streamed,
    "table": tabled,
    "assert_calibrated": asserted,
    "from_estimator": estimated,
    "ReliabilityDisplay": drawn(plots.ReliabilityDisplay, lambda display: display.result.value),
    "ConfidenceHistogramDisplay": drawn(
        plots.ConfidenceHistogramDisplay, lambda display: display.result.value, metric=cal.ECE
    ),
    "SignedGapsDisplay": drawn(plots.SignedGapsDisplay, lambda display: list(display.result.values)),
    "TopKDisplay": drawn(plots.TopKDisplay, lambda display: display.results[0].value, most=1),
    "SmallMultiplesDisplay": drawn(plots.SmallMultiplesDisplay, lambda display: display.result.value),
    "SensitivityDisplay": drawn(
        plots.SensitivityDisplay, lambda display: display.sensitivity.values[0], values=[15], bootstrap=2
    ),
    "RiskCoverageDisplay": drawn(plots.RiskCoverageDisplay, lambda display: display.curves[""].aurc),
    "LikertDisplay": drawn(plots.LikertDisplay, lambda display: display.results["[0.5, 1]"].value, scale=SCALE),
}


def test_there_is_one_list():
    assert set(OPTIONS) == DoorOptions.__optional_keys__
    assert LabelOptions.__optional_keys__ == set(OPTIONS) - {"sample_weight"}
    assert ScoreOptions.__optional_keys__ == {"class_axis", "normalize"}
    assert set(CASES) == set(OPTIONS)
    for make in (Predictions.from_probs, Predictions.from_logits):
        keywords = {
            each.name: each.default
            for each in inspect.signature(make).parameters.values()
            if each.kind is each.KEYWORD_ONLY and each.name != "copy"
        }
        assert keywords == {name: option.default for name, option in OPTIONS.items()}
    assert set(OPTIONS) <= set(inspect.signature(as_lesson).parameters)


def test_the_guide_tells_every_option():
    page = Path(__file__).parents[1].joinpath("docs", "options.md").read_text(encoding="utf-8")
    for name, option in OPTIONS.items():
        default = repr(option.default).replace("'", '"')
        assert f"| `{name}` | `{default}` | {option.meaning} |" in page


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_takes_every_option_and_makes_the_same_number(entry, option):
    y, p, options = CASES[option]
    checked = Predictions.from_probs(y, p, **options)
    assert ENTRIES[entry](y, p, **options) == ENTRIES[entry](checked, None)


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_changes_something(option):
    y, p, options = CASES[option]
    try:
        without = cal.ECE(y, p).value
    except CalibrationInputError:
        return
    assert without != cal.ECE(y, p, **options).value


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("entry", sorted(set(ENTRIES) - {"from_estimator"}))
def test_options_beside_predictions_are_refused(entry, option):
    made = Predictions.from_probs(Y, P)
    with pytest.raises(CalibrationInputError, match=f"{option}: must be left out"):
        ENTRIES[entry](made, None, **CASES[option][2])


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_unknown_option_is_refused_and_the_nearest_is_named(entry):
    with pytest.raises(CalibrationInputError, match=r"ignore_indx: is no option, got 1; did you mean 'ignore_index'"):
        ENTRIES[entry](Y, P, ignore_indx=1)


def test_an_unknown_option_may_be_near_to_a_keyword_of_the_call_itself():
    with pytest.raises(CalibrationInputError, match="did you mean 'metric'"):
        plots.ReliabilityDisplay.from_predictions(Y, P, metrc=cal.ECE)
    with pytest.raises(CalibrationInputError, match="did you mean 'interval'"):
        cal.ECE(Y, P, intervall=3)


def test_groups_are_drawn_with_options():
    with pytest.raises(CalibrationInputError, match="column: is unknown"):  # after the labels were let in
        plots.GroupsDisplay.from_predictions(IGNORED, P, by="region", ignore_index=255)
    with pytest.raises(CalibrationInputError, match=r"must lie in 0\.\.2, got 255"):
        plots.GroupsDisplay.from_predictions(IGNORED, P, by="region")


# ---- recalibrators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", OPTIONS)
def test_a_recalibrator_learns_the_same_with_the_option_as_from_checked_rows(option):
    y, p, options = CASES[option]
    checked = Predictions.from_probs(y, p, **options)
    known = cal.TemperatureScaling(input="probabilities").fit(checked.values, checked.labels, checked.weight)
    fitted = cal.TemperatureScaling(input="probabilities").fit(p, y, **options)
    assert fitted.temperature_ == known.temperature_
    assert fitted.certificate_.n == len(checked)
    assert [*map(str, fitted.classes_)] == [*checked.classes]
    crossed = cal.cross_fit(cal.TemperatureScaling(input="probabilities"), p, y, **options)
    again = cal.cross_fit(
        cal.TemperatureScaling(input="probabilities"), checked.values, checked.labels, sample_weight=checked.weight
    )
    assert cal.ECE(crossed).value == cal.ECE(again).value
    assert [note for note in crossed.notes if "left out" in note] == [
        note for note in checked.notes if "left out" in note
    ]


def test_groups_of_rows_that_are_left_out_are_left_out_of_cross_fitting():
    method = cal.TemperatureScaling(input="probabilities")
    kept = IGNORED != 255
    groups = np.arange(N) // 3
    one = cal.cross_fit(method, P, IGNORED, groups=groups, ignore_index=255)
    other = cal.cross_fit(method, P[kept], Y[kept], groups=groups[kept])
    assert np.array_equal(one.values, other.values)


def test_maps_are_recalibrated_in_their_shape():
    maps = np.moveaxis(P.reshape(4, 6, 3), -1, 1)
    fitted = cal.TemperatureScaling(input="probabilities").fit(P, Y)
    for ask in ("predict_proba", "predict_log_proba"):
        flat, made = getattr(fitted, ask)(P), getattr(fitted, ask)(maps, class_axis=1)
        assert made.shape == maps.shape
        assert np.array_equal(np.moveaxis(made, 1, -1).reshape(-1, 3), flat)
    assert np.array_equal(fitted.predict(maps, class_axis=1), fitted.predict(P).reshape(4, 6))
    assert np.array_equal(fitted.predict_proba(5 * P, normalize=True).round(12), fitted.predict_proba(P).round(12))


def test_maps_of_one_event_are_recalibrated_in_their_shape():
    p, y = P[:, 0].reshape(2, 3, 4), (Y == 0).reshape(2, 3, 4)
    fitted = cal.PlattScaling(input="probabilities").fit(p, y)
    known = cal.PlattScaling(input="probabilities").fit(p.ravel(), y.ravel())
    assert np.array_equal(fitted.predict_proba(p), known.predict_proba(p.ravel()).reshape(p.shape))
    assert fitted.predict(p).shape == p.shape


def test_recalibrators_refuse_unknown_options_and_those_that_make_no_sense():
    fitted = cal.TemperatureScaling().fit(np.log(P), Y)
    with pytest.raises(CalibrationInputError, match="did you mean 'ignore_index'"):
        cal.TemperatureScaling().fit(np.log(P), Y, ignore_indx=1)
    with pytest.raises(CalibrationInputError, match="did you mean 'class_axis'"):
        fitted.predict_proba(np.log(P), class_axes=1)
    with pytest.raises(CalibrationInputError, match=r"missing: is no option.*class_axis, normalize"):
        fitted.predict_proba(np.log(P), missing="drop")
    with pytest.raises(CalibrationInputError, match="normalize: needs probabilities, got logits"):
        cal.TemperatureScaling().fit(np.log(P), Y, normalize=True)
    with pytest.raises(CalibrationInputError, match="normalize: needs probabilities, got logits"):
        Predictions.from_logits(Y, np.log(P), normalize=True)
    with pytest.raises(
        CalibrationInputError, match=r"must be finite, got nan at row 0, column 0; 12 such values in all$"
    ):
        fitted.predict_proba(WITH_GAPS)


# ---- files and commands ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", OPTIONS)
def test_files_and_commands_take_what_arrays_take(option, tmp_path):
    y, p, options = CASES[option]
    known = Predictions.from_probs(y, p, **options)
    weighted = option == "sample_weight"
    np.savez(tmp_path / "it.npz", label=y, probs=p, heavy=WEIGHT)
    made = read(tmp_path / "it.npz", weight="heavy") if weighted else read(tmp_path / "it.npz", **options)
    assert cal.ECE(made).value == cal.ECE(known).value
    words = {"classes": "cat,dog,owl", "normalize": None, "sample_weight": "heavy"}
    name = "--weight" if weighted else f"--{option.replace('_', '-')}"
    value = words.get(option, next(iter(options.values())))
    command = ["measure", str(tmp_path / "it.npz"), "-m", "ece", "--format", "csv", name]
    ended = CliRunner().invoke(group, [*command, *([] if value is None else [str(value)])])
    assert ended.exit_code == 0, ended.output
    assert repr(cal.ECE(known).value) in ended.stdout


def test_a_saved_map_is_applied_to_rows_that_are_normalised(tmp_path):
    np.savez(tmp_path / "three.npz", probs=3 * P)
    (tmp_path / "map.json").write_text(cal.TemperatureScaling(input="probabilities").fit(P, Y).to_json())
    command = ["recalibrate", "apply", str(tmp_path / "map.json"), str(tmp_path / "three.npz")]
    output = ["-o", str(tmp_path / "out.npz")]
    assert CliRunner().invoke(group, [*command, *output]).exit_code != 0
    ended = CliRunner().invoke(group, [*command, *output, "--normalize"])
    assert ended.exit_code == 0, ended.output


def test_options_that_a_file_does_not_take_are_refused(tmp_path):
    np.savez(tmp_path / "it.npz", label=Y, probs=P)
    with pytest.raises(CalibrationInputError, match="did you mean 'normalize'"):
        read(tmp_path / "it.npz", normalise=True)
    np.savez(tmp_path / "top.npz", correct=Y == 0, confidence=P[:, 0])
    with pytest.raises(CalibrationInputError, match="normalize: needs one label and the probability of every class"):
        read(tmp_path / "top.npz", normalize=True)
    assert len(read(tmp_path / "top.npz", ignore_index=1)) == (Y != 0).sum()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_missing_cells_of_files_can_be_left_out(kind, tmp_path):
    path = tmp_path / f"it.{kind}"
    labels, forecasts, site = ["cat", None, "dog", "dog"], [0.25, 0.5, None, 0.75], ["a", None, "b", "c"]
    if kind == "csv":
        path.write_text("label,p_cat,p_dog,site\ncat,.25,.75,a\n,.5,.5,\ndog,NA,.5,b\ndog,.75,.25,c\n")
    elif kind == "jsonl":
        rows = zip(labels, forecasts, site, strict=True)
        path.write_text(
            "".join(
                json.dumps({"label": y, "p_cat": p, "p_dog": 0.5 if p is None else 1 - p, "site": s}) + "\n"
                for y, p, s in rows
            )
        )
    else:
        pyarrow = pytest.importorskip("pyarrow.parquet")
        other = [0.5 if p is None else 1 - p for p in forecasts]
        table = pytest.importorskip("pyarrow").table(
            {"label": labels, "p_cat": forecasts, "p_dog": other, "site": site}
        )
        pyarrow.write_table(table, path)
    with pytest.raises(CalibrationInputError):
        read(path)
    made = read(path, missing="drop")
    assert made.classes == ("cat", "dog")
    assert made.labels.tolist() == [0, 1]
    assert made.values.tolist() == [[0.25, 0.75], [0.75, 0.25]]
    assert made.notes == ("2 rows were left out: missing values",)
    assert made.columns["site"].tolist() == ["a", "c"]


def test_labels_with_gaps_name_columns_and_outcomes_as_those_without_do(tmp_path):
    path = tmp_path / "it.csv"
    path.write_text("label,p_3,p_5\n5,.25,.75\n,.5,.5\n3,.75,.25\n")
    assert read(path, missing="drop").labels.tolist() == [1, 0]
    path.write_text("label,p\nTrue,.25\n,.5\nfalse,.75\n")
    assert read(path, missing="drop").labels.tolist() == [1, 0]
    path.write_text("correct,confidence\nTrue,.25\n,.5\nfalse,nan\n")
    assert read(path, missing="drop").labels.tolist() == [1]


def test_a_class_called_none_is_no_missing_value(tmp_path):
    path = tmp_path / "it.csv"
    path.write_text("label,p_none,p_dog\nnone,.25,.75\n,.5,.5\ndog,.75,.25\n")
    assert read(path, missing="drop").labels.tolist() == [0, 1]


# ---- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ECE", "ADAPTIVE_ECE", "SCE", "BRIER", "FULL_ECE", "ECE_SWEEP"])
def test_a_stream_is_the_metric_of_all_rows(name):
    metric = cal.RECIPES[name]
    stream = cal.Stream(metric)
    buffer, labels = np.empty((8, 3)), np.empty(8, int)
    for rows in (slice(0, 8), slice(8, 16), slice(16, 24)):  # one buffer for all batches
        buffer[:], labels[:] = P[rows], IGNORED[rows]
        assert stream.update(labels, buffer, ignore_index=255) is stream
    known = metric(IGNORED, P, ignore_index=255)
    assert stream.result().value == known.value
    assert stream.result().notes == known.notes
    assert metric.conclude(stream.summary).value == known.value
    assert stream.reset() is stream
    assert stream.update(Predictions.from_probs(Y, P)).result().value == metric(Y, P).value


def test_summaries_of_bare_arrays_do_not_change_with_them():
    buffer = P.copy()
    summary = cal.FULL_ECE.summarise(Y, buffer)
    buffer[:] = 1 / 3
    assert cal.FULL_ECE.conclude(summary).value == cal.FULL_ECE(Y, P).value


def test_a_stream_that_refused_a_batch_is_as_it_was():
    stream = cal.Stream(cal.ECE).update(Y, P)
    with pytest.raises(CalibrationInputError):
        stream.update(Y, 2 * P)
    assert stream.result().value == cal.ECE(Y, P).value


def test_merged_streams_are_one_stream_of_all_batches():
    whole = cal.Stream(cal.ACE).update(Y, P).update(Y[:1], P[:1]).update(Y, P)
    here, there = cal.Stream(cal.ACE).update(Y, P), cal.Stream(cal.ACE).update(Y[:1], P[:1]).update(Y, P)
    kept = there.result().to_json()
    assert here.merge(there).result().to_json() == whole.result().to_json()
    assert there.result().to_json() == kept == cal.Stream(cal.ACE).merge(there).result().to_json()
    assert here.merge(cal.Stream(cal.ACE)).result().to_json() == whole.result().to_json()
    for other in (cal.Stream(cal.ECE), cal.Stream(cal.ACE.replace(binning=cal.EqualMass(3))), there.summary):
        with pytest.raises(CalibrationInputError, match="other: must be a stream of ACE"):
            here.merge(other)


def test_an_empty_stream_and_what_is_no_metric_are_refused():
    for stream in (cal.Stream(cal.ECE), cal.Stream(cal.ECE).update(Y, P).reset()):
        with pytest.raises(CalibrationInputError, match="Stream: must have seen predictions"):
            stream.result()
    with pytest.raises(CalibrationInputError, match="metric: must be a metric"):
        cal.Stream("ece")


def test_streams_take_metrics_of_ones_own_that_may_keep_what_they_are_given():
    class Kept(list):
        def __add__(self, other):
            return Kept([*self, *other])

    class Rows(cal.Metric):
        def summarise(self, predictions):
            return Kept([predictions.values])

        def conclude(self, summary):
            return np.concatenate(summary)

    buffer = P.copy()
    stream = cal.Stream(Rows()).update(Y, buffer)
    buffer[:] = P[::-1]
    assert np.array_equal(stream.update(Y, buffer).result(), np.concatenate([P, P[::-1]]))


# ---- pairs of options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(["sample_weight", "ignore_index", "missing"], 2)])
def test_rows_are_left_out_for_every_reason_and_counted_once(one, other):
    labels = np.where(np.arange(N) % 5 == 0, 255, Y)
    forecasts = WITH_GAPS if "missing" in (one, other) else P
    weight = np.where(np.arange(N) == 3, np.nan, WEIGHT) if "missing" in (one, other) else WEIGHT
    every = {"sample_weight": weight, "ignore_index": 255, "missing": "drop"}
    options = {name: every[name] for name in (one, other)}
    made = Predictions.from_probs(labels if "ignore_index" in options else Y, forecasts, **options)
    gone = np.zeros(N, bool)
    if "missing" in options:
        gone |= np.isnan(forecasts).any(axis=1) | (np.isnan(weight) & ("sample_weight" in options))
    if "ignore_index" in options:
        gone |= labels == 255
    assert len(made) == (~gone).sum()
    assert sum(count for _, count in made.remarks) == gone.sum()
    plain = Predictions.from_probs(
        Y[~gone], P[~gone], sample_weight=weight[~gone] if "sample_weight" in options else None
    )
    assert cal.ECE(made).value == cal.ECE(plain).value
