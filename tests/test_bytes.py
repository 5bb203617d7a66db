"""Summaries as bytes: one form for each content, whatever the batches; nothing else is read; sums subtract exactly."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest

import calibrant as cal
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Totals
from calibrant.specification.bit_packing import as_bits, from_bits
from calibrant.specification.packing import MAGIC, _fits, packed
from calibrant.summaries import About

RNG = np.random.default_rng(11)
N = 83
ROWS = RNG.multinomial(64, RNG.dirichlet(np.ones(5), N)) / 64
LABELS = RNG.integers(0, 5, N)
SOFT = RNG.dirichlet(np.ones(5), N)
SOFT[::3] = np.eye(5)[LABELS[::3]]
PLACES = ["north", "south", "east"]


def predictions(kind, rows=slice(None)):
    """Some of the rows of one kind; batches are made apart, as from files."""
    p, y = ROWS[rows], LABELS[rows]
    weight = {
        "whole": WEIGHTS,
        "fractional": WEIGHTS + 0.375,
        "tiny": (WEIGHTS + 1) * 1.7e-6,
        "large": WEIGHTS * 2e8 + 1,
        "ones": np.ones(N),
    }
    if kind in weight:
        return cal.Predictions.from_probs(y, p, sample_weight=weight[kind][rows])
    if kind == "soft":
        return cal.Predictions.from_probs(SOFT[rows], p)
    if kind == "narrow":
        return cal.Predictions.from_probs(y, p.astype(np.float32))
    if kind == "logits":
        return cal.Predictions.from_logits(y, np.log(p + 1e-9))
    if kind == "event":
        return cal.Predictions.from_probs(y % 2, p[:, 0])
    if kind == "ignored":
        return cal.Predictions.from_probs(np.where(y == 4, 9, y), p, ignore_index=9)
    return cal.Predictions.from_probs(y, p, classes=["a", "b", "c", "d", "é\ud800"])


WEIGHTS = RNG.integers(1, 4, N).astype(float)
WEIGHTS[::20] = 0
KINDS = ["plain", "whole", "fractional", "tiny", "large", "ones", "soft", "narrow", "logits", "event", "ignored"]
METRICS = {
    **cal.RECIPES,
    "grid": cal.BinnedError(lens=cal.TopK(2), binning=cal.Grid(4)),
    "grid of groups": cal.BinnedError(lens=cal.Groups({"a": [0, 1], "b": [2], "c": [3, 4]}), binning=cal.Grid(3)),
    "grid by label": cal.BinnedError(lens=cal.ByLabel(cal.TopK(2)), binning=cal.Grid(4)),
    "grid of some": cal.BinnedError(lens=cal.Between(cal.TopLabel(), 0.4, 1), binning=cal.Grid(4)),
    "groups": cal.BinnedError(lens=cal.Groups({"a": [0, 1], "b": [2, 3, 4]}), binning=cal.KDTree(0.2)),
    "tree by label": cal.BinnedError(lens=cal.ByLabel(cal.TopK(2)), binning=cal.KDTree(0.3)),
    "tree of some": cal.BinnedError(lens=cal.Above(cal.Classwise(), 0.2), binning=cal.KDTree(0.3)),
    "table by label": cal.BinnedError(lens=cal.ByLabel(cal.TopLabel()), binning=cal.EqualMass(4)),
    "nothing": cal.ECE.replace(select=cal.confidence_between(0.0, 1e-9)),
    "no score": cal.BRIER.replace(select=cal.confidence_between(0.0, 1e-9)),
    "no table": cal.ADAPTIVE_ECE.replace(select=cal.confidence_between(0.0, 1e-9)),
    "no rows": cal.FULL_ECE.replace(select=cal.confidence_between(0.0, 1e-9)),
    "no cell": cal.BinnedError(
        lens=cal.TopK(2), binning=cal.Grid(4), select=cal.confidence_between(0.0, 1e-9)
    ),
}  # fmt: skip


def summarised(name, kind, rows=slice(None)):
    try:
        return METRICS[name].summarise(predictions(kind, rows))
    except cal.CalibrationInputError as reason:
        pytest.skip(str(reason))


def numbers(result):
    return [result.value, *result.values, *result.details.values()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METRICS)
def test_a_summary_comes_back_from_its_bytes_and_concludes_to_the_same(name, kind):
    summary = summarised(name, kind)
    data = summary.to_bytes()
    again = cal.Summary.from_bytes(data)
    assert type(again) is type(summary)
    assert again.about == summary.about
    assert again.keeps_rows == summary.keeps_rows
    assert again.to_bytes() == data
    if kind != "soft" or name not in ("ECE_DEBIASED", "ECE_KDE"):  # they refuse soft labels when they conclude
        expected, result = METRICS[name].conclude(summary), METRICS[name].conclude(again)
        assert np.array_equal(numbers(result), numbers(expected), equal_nan=True)
        assert result.notes == expected.notes
    assert (again + summary).to_bytes() == (summary + summary).to_bytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METRICS)
def test_forty_batches_in_any_order_have_the_bytes_of_one(name, kind):
    whole = summarised(name, kind)
    order = np.random.default_rng(3).permutation(N)
    kept = order if kind != "ignored" else [i for i in order if LABELS[i] != 4]
    batches = np.array_split(kept, 40)
    if kind == "ignored":  # a batch of left out rows alone is refused; they join the others
        batches = [np.append(batch, np.flatnonzero(LABELS == 4)[i::40]) for i, batch in enumerate(batches)]
    parts = [METRICS[name].summarise(predictions(kind, batch)) for batch in batches]
    assert sum(parts).to_bytes() == whole.to_bytes()
    assert sum(parts[::-1]).to_bytes() == whole.to_bytes()
    pairs = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    assert sum(pairs).to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("name", ["ECE", "ADAPTIVE_ECE", "FULL_ECE", "BRIER", "SKCE"])
def test_the_precision_of_a_sum_is_the_coarser_whatever_the_order(name):
    wide, narrow = (METRICS[name].summarise(predictions(kind)) for kind in ("large", "narrow"))
    assert (wide + narrow).to_bytes() == (narrow + wide).to_bytes()
    if wide.keeps_rows:
        assert (wide + narrow).precision.bits == (narrow + wide).precision.bits == 24


def test_minus_zero_and_zero_are_one_forecast():
    for metric in (cal.ECE, cal.ADAPTIVE_ECE, cal.FULL_ECE.replace(lens=cal.TopLabel()), cal.BRIER):
        plain, signed = (metric.summarise([1, 0], [zero, 0.5]) for zero in (0.0, -0.0))
        assert plain.to_bytes() == signed.to_bytes()


def test_minus_zero_and_zero_are_one_edge():
    plain, signed = (cal.ECE.replace(binning=cal.Edges([zero, 0.5, 1])) for zero in (0.0, -0.0))
    assert plain.summarise([1], [0.7]).to_bytes() == signed.summarise([1], [0.7]).to_bytes()


def test_weights_of_one_have_the_bytes_of_none():
    for name in METRICS:
        plain = METRICS[name].summarise(cal.Predictions.from_probs(LABELS, ROWS))
        assert METRICS[name].summarise(predictions("ones")).to_bytes() == plain.to_bytes(), name


def test_soft_rows_that_turn_out_hard_have_the_bytes_of_hard_ones():
    mixed = cal.Predictions.from_probs(SOFT, ROWS)[::3]
    hard = cal.Predictions.from_probs(LABELS[::3], ROWS[::3])
    for metric in (cal.FULL_ECE, cal.ADAPTIVE_ECE, cal.ECE, cal.SKCE, cal.TOP5_ECE, cal.BRIER):
        assert metric.summarise(mixed).to_bytes() == metric.summarise(hard).to_bytes()


@pytest.mark.parametrize("k", [2, 5])
def test_a_batch_that_turns_out_hard_adds_to_the_bytes_of_soft_rows(k):
    random = np.random.default_rng(5)
    p, soft = random.dirichlet(np.ones(k), 400), random.dirichlet(np.ones(k), 400)
    soft[:200] = np.eye(k)[random.integers(0, k, 200)]
    for y, forecasts in ((soft, p), (soft[:, 1], p[:, 1])):
        whole, hard, rest = (
            cal.LOG_LOSS.summarise(cal.Predictions.from_probs(y[rows], forecasts[rows]))
            for rows in (slice(None), slice(200), slice(200, None))
        )
        assert (hard + rest).to_bytes() == whole.to_bytes()


def test_rows_of_labels_have_one_form_however_they_were_batched():
    """A batch with one true label a row at most is like one of classes; its sum with others is not."""
    rows = cal.Predictions.from_multilabel([[1, 0], [1, 1], [0, 0]], [[0.9, 0.2], [0.8, 0.7], [0.1, 0.3]])
    for metric in (cal.SKCE, cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(0.5))):
        parts = [metric.summarise(rows[[row]]) for row in range(3)]
        through = [cal.Summary.from_bytes(part.to_bytes()) for part in parts]
        expected = metric.summarise(rows).to_bytes()
        assert {sum(parts).to_bytes(), sum(through).to_bytes(), sum(through[::-1]).to_bytes()} == {expected}


def test_soft_rows_have_one_form_whatever_type_they_came_in():
    shares = np.array([[0.5, 0.5], [1.0, 0.0]], np.float32)
    rows = cal.Predictions.from_probs(shares, [[0.6, 0.4], [0.3, 0.7]])
    parts = [cal.Summary.from_bytes(cal.SKCE.summarise(rows[[row]]).to_bytes()) for row in (0, 1)]
    assert sum(parts).to_bytes() == cal.SKCE.summarise(rows).to_bytes()


def test_bytes_do_not_depend_on_the_order_of_the_machine():
    view = cal.FULL_ECE.summarise(predictions("whole"))
    swapped = dataclasses.replace(
        view,
        outputs=view.outputs.astype(view.outputs.dtype.newbyteorder()),
        targets=view.targets.astype(">i8"),
        weight=view.weight.astype(">f8"),
    )
    assert swapped.to_bytes() == view.to_bytes()
    bins = cal.ECE.summarise(predictions("plain"))
    limbs = Totals(bins.size.hi.astype(">i8"), bins.size.lo.astype(">i8"))
    assert dataclasses.replace(bins, size=limbs).to_bytes() == bins.to_bytes()


def test_the_bytes_of_this_version_stay_what_they_are():
    """A change of the format needs a new version."""
    data = cal.ECE.replace(binning=cal.EqualWidth(1)).summarise([1, 0], [0.75, 0.25]).to_bytes()
    assert data[:18] == b"calibrant summary\x00"
    assert hashlib.sha256(data).hexdigest() == "f8902b8f5f0d9041756c437d9e77938f785de408bc2f7d803c5bb8375539cbc4"


# ---- what is refused -------------------------------------------------------------------------------------------------

SMALL = cal.ECE.replace(binning=cal.EqualWidth(2)).summarise([1, 0], [0.75, 0.25]).to_bytes()


def refused(data, match="must be the bytes of a summary"):
    with pytest.raises(cal.CalibrationInputError, match=match):
        cal.Summary.from_bytes(data)


def test_every_flipped_bit_is_refused():
    for place in range(8 * len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[place // 8] ^= 1 << place % 8
        refused(bytes(damaged))


def test_every_truncation_and_every_byte_more_is_refused():
    for length in range(len(SMALL)):
        refused(SMALL[:length])
    for more in (b"\x00", b"a", SMALL):
        refused(SMALL + more)
        refused(more + SMALL)


def test_what_is_not_bytes_is_refused():
    for data in ("text", None, 3, [1, 2], np.zeros(3)):
        refused(data)
    assert cal.Summary.from_bytes(bytearray(SMALL)).to_bytes() == SMALL
    assert cal.Summary.from_bytes(memoryview(SMALL)).to_bytes() == SMALL


def parted(data):
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(data[len(MAGIC) : start], "little")
    return json.loads(data[start:stop]), data[stop:-32]


def sealed(header, arrays, magic=MAGIC):
    text = header if isinstance(header, bytes) else json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = magic + len(text).to_bytes(8, "little") + text + arrays
    return body + hashlib.sha256(body).digest()


def test_another_version_is_named():
    header, arrays = parted(SMALL)
    assert sealed(header, arrays) == SMALL
    refused(sealed(header, arrays, MAGIC[:-1] + b"\x07"), "format version 7; read them with a newer calibrant")


def test_whole_numbers_come_back_from_their_bits():
    rng = np.random.default_rng(0)
    for count in (0, 1, 63, 64, 65, 1000):
        for width in range(65):
            numbers = (
                rng.integers(0, 1 << 64, count, np.uint64, endpoint=False) if width else np.zeros(count, np.uint64)
            )
            numbers >>= np.uint64(min(63, 64 - width))
            numbers[rng.random(count) < 0.5] >>= np.uint64(width // 2)
            data = as_bits(numbers)
            again, end = from_bits(b"before" + data + b"behind", 6, count)
            assert np.array_equal(again, numbers)
            assert end == 6 + len(data)
            widths = [
                max((int(each).bit_length() for each in numbers[row : row + 64]), default=0)
                for row in range(0, count, 64)
            ]
            bits = sum(wide * min(64, count - 64 * row) for row, wide in enumerate(widths))
            assert len(data) == len(widths) + -(-bits // 8)
            for length in range(max(0, len(data) - 3), len(data)):
                with pytest.raises(ValueError, match="longer than the bytes"):
                    from_bits(data[:length], 0, count)


LIES = [
    "\x00", [], {}, None, True, False, -1, 0, 1, 2, 1.5, 1 << 62, 1 << 80, 10**4000, "x", ["a"], [[]], [["a", 1]],
    {"array": "u1", "shape": [1 << 50]}, {"array": "u1", "shape": [0, 1 << 50]}, {"array": "u1", "shape": [-1, -1]},
    {"array": "O", "shape": [0]}, {"array": "u8", "shape": [0]}, {"array": "f8", "shape": ["a"]},
    {"array": "f8", "shape": [0.5]}, {"array": "f8", "shape": 3}, {"array": "f8"}, {"array": "u1", "shape": [0] * 40},
    {"array": "f8", "shape": [0]}, {"array": ["u1"], "shape": [0]}, {"array": "u1", "shape": [True]},
    {"Totals": {}}, {"Totals": []}, {"Bins": {}}, {"Summary": {}},
    {"About": {"n": 1}}, {"object": {}}, {"a": 1, "b": 2}, {"Precision": {"bits": 1 << 70, "summed": False}},
    {"Precision": {"bits": 24, "summed": True}},
]  # fmt: skip


def places(document, path=()):
    yield path
    if isinstance(document, (dict, list)):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from places(document[key], (*path, key))


def changed(document, path, value):
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = changed(document[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize("name", ["ECE", "grid", "BRIER", "ADAPTIVE_ECE", "tree by label"])
def test_headers_that_lie_are_refused_and_nothing_else_happens(name):
    """A lie that is a summary of its own is read as that; no lie raises anything but the one error."""
    data = METRICS[name].summarise(predictions("whole", slice(0, 6))).to_bytes()
    header, arrays = parted(data)
    believed = []
    for path in places(header):
        for lie in LIES:
            lying = sealed(changed(header, path, lie), arrays)
            if lying == data:
                continue
            try:
                summary = cal.Summary.from_bytes(lying)
            except cal.CalibrationInputError:
                continue
            assert summary.to_bytes() == lying
            believed.append([key for key in path if isinstance(key, str)][-1:])
            METRICS[name].answer(summary)  # what is believed concludes
    assert believed
    assert not {path[0] for path in believed} & {"array", "shape"}


@pytest.mark.parametrize("name", ["ECE", "grid", "BRIER", "ADAPTIVE_ECE", "tree by label"])
def test_arrays_that_lie_raise_nothing_but_the_one_error(name):
    data = METRICS[name].summarise(predictions("whole", slice(0, 6))).to_bytes()
    header, arrays = parted(data)
    rng = np.random.default_rng(0)
    for _ in range(600):
        lie = bytearray(arrays)
        for place in rng.integers(0, len(lie), rng.integers(1, 4)):
            lie[place] = rng.integers(0, 256)
        try:
            METRICS[name].conclude(cal.Summary.from_bytes(sealed(header, bytes(lie))))
        except cal.CalibrationInputError:
            continue


def test_noise_is_refused():
    rng = np.random.default_rng(0)
    for length in (0, 1, 17, 18, 31, 32, 33, 60, 1000):
        refused(rng.bytes(length))
        refused(sealed(rng.bytes(length), rng.bytes(40)))
        refused(MAGIC + rng.bytes(length))
        body = MAGIC + rng.bytes(length)
        refused(body + hashlib.sha256(body).digest())
    for text in (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 900 + b"]" * 900, b"nan", b"Infinity", b'"\xff"'):
        refused(sealed(text, b""))


def test_another_form_of_the_same_content_is_refused():
    header, arrays = parted(SMALL)
    spaced = json.dumps(header, sort_keys=True).encode()
    refused(sealed(spaced, arrays), "another form")
    twice = json.dumps(header, sort_keys=True, separators=(",", ":")).replace('"n":2', '"n":1,"n":2').encode()
    refused(sealed(twice, arrays), "another form")
    extra = changed(header, ("Bins", "more"), None) if "more" in header["Bins"] else header
    extra = {"Bins": {**extra["Bins"], "more": None}}
    refused(sealed(extra, arrays), "another form")


def test_limbs_that_were_not_carried_are_refused():
    bins = cal.ECE.summarise(predictions("plain"))
    for size in (
        Totals(bins.size.hi, bins.size.lo + (1 << 26)),
        Totals(bins.size.hi - 1, bins.size.lo + (1 << 26)),
        Totals(bins.size.hi, bins.size.lo, np.zeros_like(bins.size.hi)),
        Totals(bins.size.hi, bins.size.lo[:, :1]),
    ):
        refused(packed(dataclasses.replace(bins, size=size)))


def test_summaries_that_cannot_be_are_refused():
    bins, table = cal.ECE.summarise(predictions("plain")), cal.ADAPTIVE_ECE.summarise(predictions("plain"))
    view, grid = (METRICS[name].summarise(predictions("whole")) for name in ("tree by label", "grid"))
    one = Totals.whole(np.ones(bins.shape, np.int64)[:, :, 0])
    wrong = [
        dataclasses.replace(bins, size=bins.size - one),
        dataclasses.replace(bins, targets=bins.targets - one.reshape(*one.shape, 1)),
        dataclasses.replace(bins, outputs=bins.size.reshape(*one.shape, 1) + one.reshape(*one.shape, 1)),
        dataclasses.replace(bins, requested=bins.requested[:0]),
        dataclasses.replace(bins, requested=bins.requested + 1),
        dataclasses.replace(bins, low=np.where(bins.low == 0, np.nan, bins.low)),
        dataclasses.replace(bins, high=np.where(bins.high == 1, np.inf, bins.high)),
        dataclasses.replace(bins, low=bins.high, high=bins.low),
        dataclasses.replace(bins, low=None),
        dataclasses.replace(grid, cells=grid.cells[::-1]),
        dataclasses.replace(bins, about=dataclasses.replace(bins.about, n=0)),
        dataclasses.replace(bins, about=dataclasses.replace(bins.about, soft=-1)),
        dataclasses.replace(bins, about=dataclasses.replace(bins.about, soft=N + 1)),
        dataclasses.replace(bins, about=dataclasses.replace(bins.about, remarks=(("b", 1), ("a", 1)))),
        dataclasses.replace(table, counts=table.counts.astype(np.int64) - 1),
        dataclasses.replace(table, targets=table.counts.astype(np.int64) + 1),
        dataclasses.replace(table, values=table.values + 1),
        dataclasses.replace(table, starts=table.starts + 1),
        dataclasses.replace(table, starts=table.starts[:0]),
        dataclasses.replace(table, values=table.values[:-1]),
        dataclasses.replace(table, precisions=((Precision(54), table.about.n),)),
        dataclasses.replace(table, precisions=((Precision(53), table.about.n + 1),)),
        dataclasses.replace(table, precisions=((Precision(53), 1), (Precision(24), table.about.n - 1))),
        dataclasses.replace(view, group=view.group + 3),
        dataclasses.replace(view, targets=view.targets + 3),
        dataclasses.replace(view, outputs=view.outputs - 0.5),
        dataclasses.replace(view, outputs=np.where(view.outputs > 0.5, np.nan, view.outputs)),
        dataclasses.replace(view, weight=-view.weight),
        dataclasses.replace(view, groups=1 << 40),
    ]
    for summary in wrong:
        refused(packed(summary))


def test_what_cannot_be_read_is_not_written():
    bins = cal.ECE.summarise(predictions("plain"))
    with pytest.raises(cal.CalibrationInputError, match="bins whose ends are no interval"):
        dataclasses.replace(bins, low=None).to_bytes()
    with pytest.raises(cal.CalibrationInputError, match="must be possible to be written as bytes, got -1 soft labels"):
        dataclasses.replace(bins, about=dataclasses.replace(bins.about, soft=-1)).to_bytes()


@pytest.mark.parametrize(("numbers", "fits"), [(np.zeros(2, np.int64), True), (np.zeros(2), False), (None, True)])
def test_an_array_is_declared_by_its_type_or_by_an_alias_of_it(numbers, fits):
    """`numpy.typing.NDArray` is one or the other, by the version of NumPy and of Python."""
    typing_extensions = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar", bound=np.generic)
    plain = np.ndarray[Any, np.dtype[scalar]]
    alias = typing_extensions.TypeAliasType("alias", plain, type_params=(scalar,))
    assert _fits(numbers, plain[np.int64] | None) == fits
    assert _fits(numbers, alias[np.int64] | None) == fits
    assert _fits(np.zeros(2), alias[Any])


def test_a_summary_of_ones_own_must_declare_its_axes():
    @dataclass(frozen=True, eq=False)
    class Highest(cal.Summary):
        highest: float

    with pytest.raises(cal.CalibrationInputError, match="declares its axes, to be written as bytes, got Highest"):
        Highest(About(1, "event"), 0.5).to_bytes()

    @dataclass(frozen=True, eq=False)
    class Bins(cal.Summary):
        axes = {}  # noqa: RUF012
        kept: object

    with pytest.raises(cal.CalibrationInputError, match="to be written as bytes, got Bins"):
        Bins(About(1, "event"), 0.5).to_bytes()

    @dataclass(frozen=True, eq=False)
    class HighestOfAll(cal.Summary):
        axes = {"highest": "a"}  # noqa: RUF012
        highest: np.ndarray | set[int]

    summary = HighestOfAll(About(1, "event"), {3})
    with pytest.raises(cal.CalibrationInputError, match="must hold arrays, totals, numbers and text"):
        summary.to_bytes()


# ---- subtraction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METRICS)
def test_what_was_added_is_taken_away_to_the_bit(name, kind):
    a, b = (summarised(name, kind, rows) for rows in (slice(0, 50), slice(50, N)))
    if a.keeps_rows:
        with pytest.raises(cal.CalibrationInputError, match="must keep no rows to be subtracted"):
            (a + b) - b
        return
    assert ((a + b) - b).to_bytes() == a.to_bytes()
    assert ((a + b) - a).to_bytes() == b.to_bytes()
    assert ((a + b) - b).about == a.about
    left = METRICS[name].conclude((a + b) - b)
    assert np.array_equal(numbers(left), numbers(METRICS[name].conclude(a)), equal_nan=True)
    nothing = a - a
    assert nothing.about.n == 0
    assert (nothing + b).to_bytes() == b.to_bytes()


@pytest.mark.parametrize("name", ["ECE", "SCE", "BRIER", "grid"])
def test_days_of_several_kinds_are_taken_away_to_the_bit(name):
    """Weights, soft labels, remarks and precision come and go."""
    kinds = ["whole", "fractional", "large", "soft", "narrow", "ignored", "ones"]
    days = [METRICS[name].summarise(predictions(kind)) for kind in kinds]
    for day in days:
        for other in days:
            assert ((day + other) - other).to_bytes() == day.to_bytes()
    assert (sum(days) - sum(days[1:])).to_bytes() == days[0].to_bytes()


def test_cells_that_became_empty_are_gone():
    a, b = (METRICS["grid"].summarise(predictions("plain", rows)) for rows in (slice(0, 3), slice(3, N)))
    assert len((a + b).cells) > len(a.cells)
    assert np.array_equal(((a + b) - b).cells, a.cells)


def test_which_summaries_keep_rows():
    kept = {name for name, metric in METRICS.items() if metric.summarise(predictions("plain")).keeps_rows}
    assert {"ADAPTIVE_ECE", "FULL_ECE", "SKCE", "ECE_SWEEP", "SMECE"} <= kept
    assert not kept & {"ECE", "SCE", "MCS", "BRIER", "LOG_LOSS", "ACCURACY", "grid", "CWECE"}
    assert cal.Summary(About(1, "event")).keeps_rows


def taken(match, a, b):
    with pytest.raises(cal.CalibrationInputError, match=match):
        a - b


def test_more_than_there_is_cannot_be_taken_away():
    few, rows = predictions("plain", slice(0, 9)), predictions("plain")
    taken("must hold all that is taken away from it, got -74 rows", cal.ECE.summarise(few), cal.ECE.summarise(rows))
    for metric in (cal.ECE, METRICS["grid"], cal.BRIER):
        other = cal.Predictions.from_probs(LABELS, ROWS[::-1], classes=few.classes)[:9]
        if metric is not cal.BRIER:  # its sizes are the rows, and a score may have any sign
            taken(
                "taken away from it, got .*(below 0|above the size)",
                metric.summarise(rows[20:40]),
                metric.summarise(other),
            )
        weighted = cal.Predictions.from_probs(LABELS[:9], ROWS[:9], classes=few.classes, sample_weight=np.full(9, 50.0))
        taken("size below 0", metric.summarise(rows), metric.summarise(weighted))
        soft = cal.Predictions.from_probs(SOFT, ROWS, classes=few.classes)[:9]
        taken("-6 soft labels", metric.summarise(rows), metric.summarise(soft))
        half = cal.Predictions.from_probs(LABELS[:9], ROWS[:9], classes=few.classes, sample_weight=np.full(9, 0.5))
        taken("-9 fractional weights", metric.summarise(rows), metric.summarise(half))
        flagged = dataclasses.replace(few, flags={"left out: label 9": np.ones(9, int)})
        taken("-9 left out: label 9", metric.summarise(rows), metric.summarise(flagged))


def test_outcomes_and_outputs_that_are_not_there_cannot_be_taken_away():
    def events(y, p):
        return cal.MCS.summarise(y, p)

    taken("targets below 0", events([0, 0, 0], [0.5] * 3), events([1], [0.5]))
    taken("targets above the size", events([1, 1, 1], [0.5] * 3), events([0], [0.5]))
    taken("outputs below 0", events([1, 0, 0], [0.1] * 3), events([0], [0.9]))
    taken("outputs above the size", events([1, 0, 0], [0.9] * 3), events([0], [0.1]))
    taken(
        "a size without rows",
        cal.MCS.summarise([1], [0.5], sample_weight=[2]),
        cal.MCS.summarise([1], [0.5], sample_weight=[1]),
    )
    infinite = cal.LOG_LOSS.summarise([1], [0.0])
    taken("infinite below 0", cal.LOG_LOSS.summarise([1, 1], [0.5, 0.5]), infinite)
    taken("infinite above the size", infinite + infinite, cal.LOG_LOSS.summarise([1], [0.5]))


def test_another_forecast_of_the_same_cell_cannot_be_taken_away():
    cells = cal.ADAPTIVE_ECE.refine().summarise
    a, b, more = cells([1], [0.3115]), cells([1], [0.31151]), cells([1], [0.9])
    assert np.array_equal(a.values, b.values)
    for summary in (a, a + more):
        taken("counts below 1", summary, b)
    taken("counts below 1", b, a)
    taken("outputs that forecasts of these entries cannot have", cells([1, 1], [0.3106] * 2), cells([1], [0.3124]))
    assert len((a - a).values) == 0


def test_scores_that_are_not_there_cannot_be_taken_away():
    def brier(y, p):
        return cal.BRIER.summarise(y, p)

    taken("scores outside of 0 to 2", brier([1, 1], [0.9, 0.9]), brier([1], [0.1]))
    taken("scores outside of 0 to 2", brier([1, 1, 1, 1], [0.0] * 4), brier([1, 1, 1], [1.0] * 3))
    taken("total of no samples", brier([1], [0.9]), brier([1], [0.1]))
    log_loss = cal.LOG_LOSS.summarise
    taken("a total of no finite scores", log_loss([1, 1], [0.0, 0.5]), log_loss([1], [0.25]))
    worst = cal.Predictions.from_probs([2], [[1.0, 9e-4, 0.0]])
    assert (cal.BRIER.summarise(worst) - cal.BRIER.summarise(worst[:0])).about.n == 1  # 2 and the tolerance of rows


@pytest.mark.parametrize("metric", [cal.ECE, cal.BRIER, cal.ADAPTIVE_ECE.refine()], ids=str)
def test_squares_of_weights_that_are_not_there_cannot_be_taken_away(metric):
    a, b = (metric.summarise([1, 1], [0.5, 0.5], sample_weight=weight) for weight in ([1, 3], [2, 2]))
    taken("squares of no samples|counts below 1", a, b)
    taken("squares of no samples|squares below 0|counts below 1", b, a)


@pytest.mark.parametrize("kind", ["plain", "whole"])
def test_cells_that_cannot_be_are_refused(kind):
    table = cal.ECCE_MAD.refine().summarise(predictions(kind))
    one = Totals.whole(np.ones(len(table.counts), np.int64))
    wrong = [
        dataclasses.replace(table, **{name: getattr(table, name) + one})
        for name in ("outputs", "true_outputs", "squared_outputs")
    ]
    wrong += [
        dataclasses.replace(table, outputs=table.outputs - table.outputs),
        dataclasses.replace(table, true_outputs=table.outputs),
        dataclasses.replace(table, squared_outputs=table.outputs - table.outputs),
        dataclasses.replace(table, squares=one - one),
        dataclasses.replace(table, values=np.where(table.closed, np.nextafter(table.values, 0), table.values)),
        dataclasses.replace(table, closed=~table.closed),
        dataclasses.replace(table, about=dataclasses.replace(table.about, n=0)),
    ]
    for summary in wrong:
        with pytest.raises(cal.CalibrationInputError, match="must be possible to be written as bytes"):
            summary.to_bytes()
    for name in ("outputs", "true_outputs", "squared_outputs"):  # of cells; sums of edges are not written
        refused(packed(dataclasses.replace(table, **{name: getattr(table, name) + one})))
    refused(packed(dataclasses.replace(table, counts=table.counts - table.counts)))
    for values in (table.values[::-1], np.append(table.values[:-1], table.values[0])):
        refused(packed(dataclasses.replace(table, values=values)))


def test_scores_that_cannot_be_are_refused():
    scores = cal.BRIER.summarise(predictions("plain"))
    one = Totals.whole(np.ones(1, np.int64))
    refused(packed(dataclasses.replace(scores, infinite=one)), "infinite scores where none can be")
    refused(packed(dataclasses.replace(scores, total=scores.size + scores.size + one)), "outside of 0 to 2")


def test_summaries_of_other_metrics_cannot_be_taken_away():
    rows = predictions("plain")
    taken("must come from one metric to be subtracted, got binning", cal.ECE.summarise(rows), cal.MCS.summarise(rows))
    taken(
        "to be subtracted, got score", cal.BRIER.summarise(rows), cal.BRIER.replace(score=cal.log_score).summarise(rows)
    )
    for other in (1, 0, None, "a"):
        with pytest.raises(TypeError):
            cal.ECE.summarise(rows) - other
