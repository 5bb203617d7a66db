"""The compiled kernels: the same bits as NumPy around the widths of vectors, at every level, with any threads."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import calibrant as cal
from calibrant import kernels
from calibrant.binning import cells
from calibrant.kernels import compiled, native
from calibrant.kernels import numpy as plain

pytestmark = pytest.mark.skipif("native" not in kernels.backends(), reason="no compiled kernels")
LEVELS = [
    level
    for place, level in enumerate(compiled.LEVELS)
    if compiled.library(level) is not None and compiled.library("plain").calibrant_runs(place)
]
WIDTHS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130]
SPECIAL = [0.0, -0.0, 1.0, 0.5, 5e-324, 1e-310, 1e-40, 2.0**-53, 3 * 2.0**-54, 1 - 2.0**-53, 2.0**-29, 2.0**-30, 1 / 15]


@pytest.fixture(autouse=True)
def fused(monkeypatch):
    """What is fused is tested where it takes long, too."""
    monkeypatch.setattr(native, "fuses", lambda: True)


def test_without_an_instruction_that_fuses_exponentials_are_those_of_numpy(monkeypatch):
    monkeypatch.setattr(native, "fuses", lambda: False)
    z = np.random.default_rng(0).normal(0, 5, (20, 30))
    same(native.logits_survey(z), plain.logits_survey(z))
    same(native.softmax(z, *native.normalisers(z)), plain.softmax(z, *plain.normalisers(z)))
    same(native.tempered(z, np.arange(20), 0.7), plain.tempered(z, np.arange(20), 0.7))


@pytest.fixture(params=LEVELS)
def level(request, monkeypatch):
    """Let one level serve."""
    loaded = compiled.library(request.param)
    monkeypatch.setattr(compiled, "library", lambda name=None: loaded)
    return request.param


def values(rng, n, width, dtype):
    """Ties, subnormal numbers, 0, 1 and edges among others."""
    rows = rng.random((n, width)) ** 4
    rows = np.where(rng.random(rows.shape) < 0.3, rng.choice(SPECIAL, rows.shape), rows)
    rows = np.where(rng.random(rows.shape) < 0.2, np.round(rows, 1), rows)
    return rows.astype(dtype)


def same(mine, theirs):
    """Equal to the bit, but for the width of whole numbers."""
    mine, theirs = (each if isinstance(each, tuple) else (each,) for each in (mine, theirs))
    for one, other in zip(mine, theirs, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_whole_numbers_are_those_of_numpy(level, width, dtype):
    rng = np.random.default_rng(width)
    for n in (1, 3, 40):
        p = values(rng, n, width, dtype)
        targets, soft = rng.integers(-1, width, n), rng.random((n, width))
        rows = rng.permutation(n)[: n // 2 + 1]
        for bins, closed in ((1, "right"), (15, "right"), (10, "left"), (300, "left")):
            inner = (np.arange(1, bins) / bins).astype(p.dtype)
            same(native.scalar_codes(p, inner, closed, 0.0), plain.scalar_codes(p, inner, closed, 0.0))
            for truth in (targets, soft):
                call = p, truth, inner, closed, 0.0, None, None, 1
                same(native.scalar_totals(*call), plain.scalar_totals(*call))
        cuts = np.sort(rng.integers(0, n + 1, 5))
        same(native.column_cuts(p, targets, cuts), plain.column_cuts(p, targets, cuts))
        same(native.brier(p[:, None, :], targets), plain.brier(p[:, None, :], targets))
        same(native.leaders(p, min(width, 3)), plain.leaders(p, min(width, 3)))
        same(native.row_survey(p)[4:], plain.row_survey(p)[4:])
        same(native.column_sums(np.abs(p), rows), plain.column_sums(np.abs(p), rows))
        same(native.square_sums(p, rows), plain.square_sums(p, rows))
        same(native.distinct(p[:, 0], targets == 0), plain.distinct(p[:, 0], targets == 0))


@pytest.mark.parametrize("n", [2047, 2048, 2049, 5000, 70_000])
def test_long_columns_are_counted_as_numpy_counts_them(level, n):
    rng = np.random.default_rng(n)
    for dtype in (np.float32, np.float64):
        p, targets = values(rng, n, 1, dtype), rng.integers(-1, 1, n)
        for large in (p, np.full_like(p, 1.0)):  # sums of units that would leave 64 bits
            inner, cuts = (np.arange(1, 15) / 15).astype(dtype), np.arange(16) * n // 15
            call = large, targets, inner, "right", 0.0, None, None, 1
            same(native.scalar_totals(*call), plain.scalar_totals(*call))
            same(native.scalar_totals(large, targets.astype(np.int8), *call[2:]), plain.scalar_totals(*call))
            at_cuts = plain.column_cuts(large, targets, cuts)
            for told in (targets, targets.astype(np.int8)):
                same(native.column_cuts(large, told, cuts), at_cuts)
            same(native.distinct(large[:, 0], targets == 0), plain.distinct(large[:, 0], targets == 0))
            squares = plain.event_scores(large[:, 0], targets, False)
            for told in (targets, targets.astype(np.int8)):
                assert native.event_scores(large[:, 0], told, False) == squares


@pytest.mark.parametrize("n", [*WIDTHS, 1000])
def test_distinct_values_are_counted_around_the_widths_of_vectors(level, n):
    rng = np.random.default_rng(n)
    for dtype in (np.float32, np.float64):
        for p in (
            np.full(n, 0.3),
            rng.choice([0.0, 0.1, 1.0], n),
            rng.choice(rng.random(n // 3 + 1), n),
            rng.random(n),
        ):
            for hits in (np.ones(n, bool), np.zeros(n, bool), rng.random(n) < 0.5):
                same(native.distinct(p.astype(dtype), hits), plain.distinct(p.astype(dtype), hits))


@pytest.mark.parametrize("most", [254, 255, 256, 257, 70_000])
def test_more_equal_values_than_a_byte_holds_are_counted(level, most):
    rng = np.random.default_rng(most)
    for dtype in (np.float32, np.float64):
        p = np.repeat(np.array([0.0, 0.1, 0.5, 1.0], dtype), [3, most, 1, most])
        for hits in (np.ones(len(p), bool), rng.random(len(p)) < 0.5):
            order = rng.permutation(len(p))
            same(native.distinct(p[order], hits[order]), plain.distinct(p[order], hits[order]))


@pytest.mark.parametrize("first", [1 / 256, np.nextafter(np.float32(1 / 256), 0), 1e-3, 0.5])
def test_few_bins_around_their_smallest_edge_are_those_of_numpy(level, first):
    rng = np.random.default_rng(0)
    around = [np.nextafter(np.float32(first), end) for end in (0, 1)] + [first, 1 / 256, 0.0, 1.0]
    for dtype in (np.float32, np.float64):
        inner = np.array([first, *np.linspace(0.6, 0.99, 13)], dtype)
        for n in (1, 511, 512, 513, 1031):
            for p in (rng.choice([*around, *inner], (n, 1)).astype(dtype), np.ones((n, 2), dtype)[:, :1]):
                for targets in (np.zeros(n, np.int64), rng.integers(-1, 1, n)):
                    for closed in ("right", "left"):
                        call = p, targets, inner, closed, 0.0, None, None, 1
                        same(native.scalar_totals(*call), plain.scalar_totals(*call))
                        same(native.scalar_totals(p, targets.astype(np.int8), *call[2:]), plain.scalar_totals(*call))


@pytest.mark.parametrize("width", [9, 131])
def test_cuts_of_long_columns_are_those_of_sorted_ones(level, width):
    rng = np.random.default_rng(width)
    for dtype in (np.float32, np.float64):
        p, targets = values(rng, 1500, width, dtype), rng.integers(-1, width, 1500)
        p[:, 0], p[:, 1], p[:, 2] = 0.25, rng.choice([0.9, 0.90001, 0.90002], 1500), p[:, 2] * 2.0**-30
        targets[: len(targets) // 3] = 1
        for count in (1, 15, 300):
            cuts = np.arange(count + 1) * 1500 // count
            same(native.column_cuts(p, targets, cuts), plain.column_cuts(p, targets, cuts))
            same(
                native.column_cuts(p[::2, 1:4], targets[::2], cuts // 2),
                plain.column_cuts(p[::2, 1:4], targets[::2], cuts // 2),
            )


def test_values_that_are_no_probabilities_leave_the_memory_whole(level):
    for dtype in (np.float32, np.float64):
        for width in (1, 9):
            p = np.random.default_rng(0).choice(np.array([0.5, 3.0, np.inf], dtype), (3000, width))
            p[:, -1] = 3.0
            smallest = native.column_cuts(p, np.zeros(3000, np.int64), np.array([0, 1500, 3000]))[6][:, 0]
            assert smallest[:-1].tolist() == [0.5] * (width - 1)
            assert 1 < smallest[-1] <= 2  # the last key that has a bucket


def test_every_level_gives_the_same_floats_in_large_matrices(monkeypatch):
    rng = np.random.default_rng(0)
    z, labels = rng.normal(0, 5, (4300, 1003)).astype(np.float32), rng.integers(0, 1003, 4300)
    z[5, :4] = -1e30, 1e30, 80.0, -1e30
    assert z.size > 1 << 22  # float32 exponentials
    p = rng.dirichlet(np.ones(43), 70)
    residuals, counts = np.eye(43)[rng.integers(0, 43, 70)] - p, np.ones(70, np.int64)
    results = []
    for loaded in map(compiled.library, LEVELS):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "library", lambda name=None, loaded=loaded: loaded)
            pairs = [native.pair_sums(p, residuals, counts, shape, 0.2, 0, 70) for shape in ("exponential", "gaussian")]
            results.append((*native.tempered(z, labels, 0.8), *native.logits_survey(z)[2:], np.array(pairs)))
    for other in results[1:]:
        same(results[0], other)
    for mine, theirs in zip(results[0][:3], plain.tempered(z, labels, 0.8), strict=True):
        assert np.allclose(mine, theirs, rtol=1e-5, atol=1e-5)  # both in float32


def test_cells_are_counted_as_numpy_counts_them(level):
    rng = np.random.default_rng(0)
    lasts = cells.lasts()
    ends = np.concatenate(
        [lasts, cells.firsts(), np.nextafter(lasts, 2.0)[:-1], values(rng, 5000, 1, np.float64)[:, 0]]
    )
    for p in (ends, ends.astype(np.float32), 1 / (1 + np.exp(rng.normal(0, 9, 20_000))), np.full(70_000, 1.0)):
        hits = rng.random(len(p)) < p
        totals = native.cell_totals(p, hits, lasts)
        same(totals, plain.cell_totals(p, hits, lasts))
        same(native.cell_numbers(p, lasts), plain.cell_numbers(p, lasts))
        assert np.array_equal(totals[0], np.bincount(np.searchsorted(lasts, p.astype(float)), minlength=len(lasts)))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_level_gives_the_same_floats(width, monkeypatch):
    rng = np.random.default_rng(width)
    for dtype in (np.float32, np.float64):
        z, p = rng.normal(0, 20, (30, width)).astype(dtype), values(rng, 999, 1, dtype)[:, 0]
        labels, hits = rng.integers(0, width, 30), rng.integers(-1, 1, 999)
        found = []
        for loaded in map(compiled.library, LEVELS):
            with monkeypatch.context() as patch:
                patch.setattr(compiled, "library", lambda name=None, loaded=loaded: loaded)
                top, rest = native.normalisers(z)
                softmax, slopes = native.softmax(z, top, rest), native.tempered(z, labels, 0.7)
                found.append((top, rest, softmax, *slopes, np.array(native.event_scores(p, hits, True))))
        for other in found[1:]:
            same(found[0], other)


def test_the_number_of_threads_changes_no_bit(level, monkeypatch):
    rng = np.random.default_rng(0)
    p = values(rng, 3000, 40, np.float32)
    targets, inner = rng.integers(-1, 40, 3000), (np.arange(1, 15) / 15).astype(np.float32)

    def results():
        return (
            native.scalar_totals(p, targets, inner, "right", 0.0, None, None, 1),
            native.column_cuts(p, targets, np.arange(16) * 200),
            native.logits_survey(p)[2:],
            native.row_survey(p)[4:],
            (native.brier(p[:, None, :], targets), native.softmax(p, *native.normalisers(p))),
            native.column_sums(p, np.arange(3000)),
            native.event_scores(p[:, 0], targets, True),
            native.cell_totals(p.ravel(), np.repeat(targets > 3, 40), np.array([0.1, 0.5, 1.0])),
        )

    alone = results()
    for threads in (2, 3, 7):
        monkeypatch.setattr(native, "threads_for", lambda size, threads=threads: threads)
        for one, other in zip(alone, results(), strict=True):
            same(one, other)


def test_threads_of_python_may_call_at_once():
    p = values(np.random.default_rng(0), 2000, 50, np.float32)
    expected = native.logits_survey(p)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: native.logits_survey(p), range(16)):
            same(result, expected)


def test_a_back_end_can_be_asked_for():
    y, p = [0, 1, 1], [[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]]
    with kernels.using("numpy"):
        assert kernels.serving()[0] == "numpy"
        value = cal.ECE(y, p).value
        with kernels.using("native"):
            assert kernels.serving()[0] == "native"
            assert cal.ECE(y, p).value == value
        assert kernels.serving()[0] == "numpy"
    with pytest.raises(cal.CalibrationInputError, match="using: must be one of the kernels that are there: numpy"):
        kernels.using("fortran").__enter__()


@pytest.mark.parametrize("name", ["numpy", "native", "fortran"])
def test_the_environment_asks_for_a_back_end(name):
    code = "import calibrant; print(calibrant.kernels.serving())"
    environment = {**os.environ, "CALIBRANT_KERNELS": name}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    if name == "fortran":
        assert "CALIBRANT_KERNELS: must be one of the kernels that are there: numpy, native" in ended.stderr
    else:
        assert ended.stdout.strip() == repr((name, "asked for by CALIBRANT_KERNELS"))


@pytest.mark.parametrize("name", ["ECE", "SCE", "ACE", "ADAPTIVE_ECE", "ECE_SWEEP", "BRIER", "FULL_ECE", "TOP5_ECE"])
def test_recipes_have_the_same_bits_with_both_back_ends(name):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(12, 0.3), 1500).astype(np.float32)
    y = rng.integers(0, 12, 1500)
    results = []
    for backend in ("numpy", "native"):
        with kernels.using(backend):
            results.append(cal.RECIPES[name](y, p))
    assert results[0].to_json() == results[1].to_json()


def test_equal_mass_at_once_is_what_the_table_gives():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(4), 2500).round(2)
    predictions = cal.Predictions.from_probs(rng.integers(0, 4, 2500), p, normalize=True)
    for metric in (cal.ACE, cal.ADAPTIVE_ECE, cal.ACE.replace(binning=cal.EqualMass(5000))):
        at_once, by_table = metric(predictions), metric.conclude(metric.summarise(predictions))
        assert at_once.to_json() == by_table.to_json()
        assert at_once.bins.outputs.same(by_table.bins.outputs)
        assert at_once.bins.targets.same(by_table.bins.targets)
        assert np.array_equal(at_once.bins.low, by_table.bins.low, equal_nan=True)
        assert np.array_equal(at_once.bins.high, by_table.bins.high, equal_nan=True)
