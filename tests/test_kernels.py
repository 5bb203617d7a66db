"""Kernels: what every back end must give, in little memory, and the same bits however the rows are cut up."""

import inspect
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant import kernels
from oracles import kernels as loops


def large(n=6000, k=1000, dtype=np.float32):
    rng = np.random.default_rng(0)
    p = rng.random((n, k), dtype=np.float32) ** 40
    p /= p.sum(axis=1, keepdims=True)
    y = p.argmax(axis=1)
    y[::4] = rng.integers(0, k, len(y[::4]))
    return p.astype(dtype), y


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ECE", "SCE", "CWECE", "MCS", "ECE_SWEEP", "ACCURACY", "BRIER", "LOG_LOSS"])
def test_no_temporary_is_as_large_as_the_matrix(name):
    p, y = large()
    metric = cal.RECIPES[name]
    metric(y[:10], p[:10])  # imports and caches
    tracemalloc.start()
    metric(y, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < p.nbytes / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ECE", "SCE"])
def test_logits_are_never_copied_whole(name):
    p, y = large(n=12_000)
    logits = np.log(p + 1e-7)
    predictions = cal.Predictions.from_logits(y, logits)
    tracemalloc.start()
    cal.RECIPES[name](predictions)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * logits.nbytes  # the float64 softmax of all rows would be twice the float32 logits


@pytest.mark.slow
@pytest.mark.parametrize("block", [7, 1000, 1 << 22])
def test_the_size_of_blocks_changes_no_bit(monkeypatch, block):
    p, y = large(n=300, k=40)
    expected = {name: recipe(y, p).value for name, recipe in cal.RECIPES.items()}
    monkeypatch.setattr("calibrant.kernels.row_blocks.BLOCK", block)
    monkeypatch.setattr("calibrant.binning.fixed.STREAM", block)
    monkeypatch.setattr("calibrant.errors.asking.STREAM", block)
    assert {name: recipe(y, p).value for name, recipe in cal.RECIPES.items()} == expected


def test_softmax_survives_logits_of_any_size():
    logits = np.array([[1000.0, 0.0, -1000.0], [-1e5, -1e5, -1e5], [0.0, 700.0, 710.0]])
    p = kernels.softmax(logits, *kernels.normalisers(logits))
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert p[1].tolist() == pytest.approx([1 / 3] * 3)


def test_logits_that_round_to_one_probability_keep_their_order():
    logits = np.array([[0.0, 1e-17, 0.0], [40.0, 40.0 + 1e-14, -1.0]])
    predictions = cal.Predictions.from_logits([1, 1], logits)
    assert predictions.predicted.tolist() == [1, 1]


@pytest.mark.parametrize("k", [1, 2, 16, 17, 20])
def test_leaders_are_the_largest_and_ties_go_to_the_lowest_class(k):
    scores = np.random.default_rng(0).integers(0, 5, (50, 20)).astype(float)
    expected = np.array([sorted(range(20), key=lambda c, row=row: (-row[c], c))[:k] for row in scores])
    assert np.array_equal(kernels.leaders(scores, k), expected)


# ---- the contract of back ends ---------------------------------------------------------------------------------------

SEAM = [name for name in kernels.__all__ if name not in ("backends", "serving", "using")]
BACKENDS = kernels.backends()
EXACT = {
    "brier", "cell_numbers", "cell_totals", "column_cuts", "column_sums", "distinct", "entries", "leaders", "ordered",
    "partition", "rising", "row_sums", "running", "scalar_codes", "scalar_totals", "square_sums",
    "sums_by_code", "taken",
}  # fmt: skip
"""What is promised to the bit; the others are floats that agree to 1e-12."""
SIZES = [(0, 3), (1, 1), (1, 4), (7, 3), (30, 20), (2100, 1)]
DTYPES = [np.float32, np.float64]


def probabilities(rng, n, k, dtype):
    """Ties, borders, -0.0, the smallest and what rounds to a half unit among them."""
    rows = rng.dirichlet(np.full(k, 0.5), n).astype(dtype) if n else np.zeros((0, k), dtype)
    flat = rows.reshape(-1)
    special = [-0.0, 0.0, 1.0, 0.5, 1e-300, 2.0**-53, 3 * 2.0**-53, 1 - 2.0**-53, 0.2, 0.7, 1 / 3]
    places = rng.integers(0, max(1, flat.size), flat.size // 3)
    flat[places] = rng.choice(np.array(special, dtype), len(places))
    return rows


def scattered(array):
    """The same numbers, not contiguous and read-only."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype) if array.ndim else array
    wide[..., ::2] = array
    wide.setflags(write=False)
    return wide[..., ::2]


def logits(rng, n, k, dtype):
    rows = rng.normal(0, 3, (n, k)).astype(dtype)
    rows[::5] *= 40
    rows[1::5, :] = rows[1::5, :1]
    return rows


def of_matrices(make):
    """A call for each size, type and layout."""

    def calls(rng):
        for n, k in SIZES:
            for dtype in DTYPES:
                for layout in (np.asarray, scattered):
                    yield from make(rng, n, k, dtype, layout)

    return calls


@of_matrices
def of_probabilities(rng, n, k, dtype, layout):
    yield (layout(probabilities(rng, n, k, dtype)),)


@of_matrices
def of_scores(rng, n, k, dtype, layout):
    for count in {1, 2, k} if k > 1 else {1}:
        yield layout(probabilities(rng, n, k, dtype).round(1)), count


@of_matrices
def of_answers(rng, n, k, dtype, layout):
    outputs = probabilities(rng, n, k, dtype)
    for v, d in {(k, 1), (1, k)}:
        yield layout(outputs).reshape(n, v, d), rng.integers(-1, k, n)
        yield layout(outputs).reshape(n, v, d), probabilities(rng, n, k, np.float64).reshape(n, v, d)


def borders(bins, dtype, grain):
    inner = np.arange(1, bins) / bins
    return np.rint(inner * grain) if grain else inner.astype(dtype)


@of_matrices
def of_codes(rng, n, k, dtype, layout):
    for bins in (1, 2, 10, 60):
        for closed in ("left", "right"):
            yield layout(probabilities(rng, n, k, dtype)), borders(bins, dtype, 0.0), closed, 0.0
            grain = 2.0**44
            yield layout(probabilities(rng, n, k, np.float64)), borders(bins, np.float64, grain), closed, grain


@of_matrices
def of_events(rng, n, k, dtype, layout):
    p = probabilities(rng, n, k, dtype)
    targets, soft = rng.integers(-1, k, n), probabilities(rng, n, k, np.float64)
    keep, group = rng.random((n, k)) < 0.6, rng.integers(0, 3, n)
    for bins, closed in ((1, "right"), (2, "left"), (10, "right"), (60, "left")):
        inner = borders(bins, dtype, 0.0)
        yield layout(p), targets, inner, closed, 0.0, None, None, 1
        yield layout(p), soft, inner, closed, 0.0, None, None, 1
        yield layout(p), targets, inner, closed, 0.0, keep, None, 1
        yield layout(p), targets, inner, closed, 0.0, None, group, 3
        yield layout(p), soft, inner, closed, 0.0, keep, group, 3
        grain = 2.0**44
        wide = p.astype(np.float64)
        yield layout(wide), targets, borders(bins, np.float64, grain), closed, grain, None, None, 1


def of_whole_numbers(rng):
    for n in (0, 1, 50, 3000):
        for count in (1, 4, 5000):
            codes = rng.integers(0, count, n)
            yield codes, rng.integers(-(1 << 50), 1 << 50, n), count
            yield codes, scattered(rng.integers(0, 2, n)), count


@of_matrices
def of_columns(rng, n, k, dtype, layout):
    values, hits = probabilities(rng, n, k, dtype)[:, 0], rng.random(n) < 0.5
    yield layout(values), hits
    yield layout(values.round(1)), np.ones(n, bool)


def of_cells(rng):
    few = np.array([0.0, np.nextafter(0.2, 0), 0.2, 0.5, np.nextafter(1, 0), 1.0])
    many = np.append(np.unique(rng.random(300) ** 6), 1.0)
    for values, hits in of_columns(rng):
        for lasts in (few, many):
            yield values, hits, lasts


def of_values_in_cells(rng):
    for values, _, lasts in of_cells(rng):
        yield values, lasts


@of_matrices
def of_groups(rng, n, k, dtype, layout):
    values = probabilities(rng, n, k, dtype)[:, 0]
    yield rng.integers(0, 3, n), layout(values)
    yield np.sort(rng.integers(0, 3, n)), layout(np.full(n, 0.5, dtype))


def of_columns_and_replicates(rng):
    yield from of_columns(rng)
    for values in (rng.random((4, 50)), rng.random((4, 50)).round(1).astype(np.float32)):
        yield values, rng.integers(0, 2, values.shape)


@of_matrices
def of_rows(rng, n, k, dtype, layout):
    values = np.abs(probabilities(rng, n, k, dtype))
    yield layout(values), np.arange(n)
    yield layout(values), rng.permutation(n)[: n // 2]


@of_matrices
def of_cuts(rng, n, k, dtype, layout):
    targets = rng.integers(-1, k, n)
    for values in (probabilities(rng, n, k, dtype), probabilities(rng, n, k, dtype).round(1)):
        for bins in (1, 3, 15):
            yield layout(values), targets, np.ceil(np.arange(bins + 1) * n / bins).astype(np.int64)


def of_tables(rng):
    """Distinct values in order, how often each was given and how often it came true."""
    for m in (0, 1, 2, 7, 300):
        for dtype in DTYPES:
            values = np.unique(probabilities(rng, m, 1, dtype) + dtype(0))
            counts = rng.integers(1, 5000, len(values)).astype(rng.choice(["u2", "u4", "i8"]))
            yield values, counts, (counts * rng.random(len(values)).round(1)).astype(np.uint16)
            outcomes = rng.integers(0, 2, len(values)).astype(rng.choice(["u1", "i8"]))  # equal rates side by side
            yield values, np.ones(len(values), np.uint8), outcomes


def of_tables_at_places(rng):
    for table in of_tables(rng):
        yield from ((*table, every) for every in (1, 64))


def of_counts(rng):
    for values, counts, hits in of_tables(rng):
        if len(values):  # a pool has a rate
            yield counts, hits


@of_matrices
def of_nodes(rng, n, k, dtype, layout):
    values = probabilities(rng, n, k, dtype)
    for threshold in (0.0, 0.2, 0.5, 1.0, float(values.mean()) if n else 0.1):
        yield layout(values), rng.permutation(n)[: 200 if n > 200 else n], k - 1, threshold


@of_matrices
def of_one_event(rng, n, k, dtype, layout):
    outputs, targets = probabilities(rng, n, k, dtype)[:, 0], rng.integers(-1, 1, n)
    yield layout(outputs), targets, False
    yield layout(outputs), targets, True
    yield layout(outputs), targets.astype(np.int8), False
    yield layout(outputs), targets.astype(np.int8), True


@of_matrices
def of_events_alone(rng, n, k, dtype, layout):
    yield layout(probabilities(rng, n, k, dtype)[:, 0]), rng.integers(-1, 1, n)


@of_matrices
def of_logits(rng, n, k, dtype, layout):
    yield (layout(logits(rng, n, k, dtype)),)


@of_matrices
def of_logits_and_normalisers(rng, n, k, dtype, layout):
    rows = logits(rng, n, k, dtype)
    yield layout(rows), *loops.normalisers(rows)


@of_matrices
def of_logits_and_classes(rng, n, k, dtype, layout):
    for count in {1, max(1, k - 1)}:
        yield layout(logits(rng, n, k, dtype)), np.argsort(rng.random((n, k)), axis=1)[:, :count]


@of_matrices
def of_logits_and_groups(rng, n, k, dtype, layout):
    yield layout(logits(rng, n, k, dtype)), (np.arange(k), np.arange(0, k, 2), np.array([k - 1]))


@of_matrices
def of_logits_and_labels(rng, n, k, dtype, layout):
    for inverse in (0.1, 1.0, 3.0):
        yield layout(logits(rng, n, k, dtype)), rng.integers(0, k, n), inverse


@of_matrices
def of_rows_and_columns(rng, n, k, dtype, layout):
    yield layout(probabilities(rng, n, k, dtype)), rng.integers(0, k, n)


def of_points(rng):
    for m, d in ((1, 1), (5, 1), (40, 3)):
        for shape in ("exponential", "gaussian"):
            yield rng.dirichlet(np.ones(d + 1), m)[:, :d], rng.dirichlet(np.ones(d + 1), m + 2)[:, :d], shape


def of_points_and_scales(rng):
    for call in of_points(rng):
        yield from ((*call, scale) for scale in (0.01, 0.5, 20.0))


def of_residuals(rng):
    for a, b, shape, scale in of_points_and_scales(rng):
        yield a, b[: len(a)] - a, rng.integers(1, 4, len(a)), shape, scale, 0, len(a)
    for m, d in ((1, 2), (3, 2), (37, 3), (70, 9), (66, 40)):
        points, counts = rng.dirichlet(np.ones(d), m), rng.integers(1, 4, m)
        points[1:] = np.where(rng.random((m - 1, 1)) < 0.2, points[:1], points[1:])  # some are equal
        residuals = np.eye(d)[rng.integers(0, d, m)] - points
        for shape in ("exponential", "gaussian"):
            for begin, end in ((0, m), (0, m // 2), (m // 2, m)):
                yield points, residuals, counts, shape, 0.3, begin, end


def of_numbers(rng):
    """Lengths around what is read at once; nan, infinities and the largest numbers at any place."""
    for n in (0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 200):
        for dtype in (np.int64, np.int32, np.uint8, np.bool_, np.float32, np.float64):
            numbers = rng.integers(0, 100, n).astype(dtype)
            if n:
                edge = np.iinfo(dtype) if dtype in (np.int64, np.int32, np.uint8) else None
                numbers[rng.integers(n)] = -numbers[0] if edge is None and dtype is not np.bool_ else numbers[0]
                specials = [edge.min, edge.max] if edge else [True] if dtype is np.bool_ else [np.nan, np.inf, -np.inf]
                for special in specials:
                    changed = numbers.copy()
                    changed[rng.integers(n)] = special
                    yield from ((each,) for each in (changed, scattered(changed)))
            yield from ((each,) for each in (numbers, scattered(numbers), numbers[::-1]))


CALLS = {
    "apart": of_logits_and_classes,
    "brier": of_answers,
    "cell_numbers": of_values_in_cells,
    "cell_totals": of_cells,
    "column_cuts": of_cuts,
    "column_sums": of_rows,
    "distances": of_points,
    "distinct": of_columns,
    "entries": of_groups,
    "event_logs": of_events_alone,
    "event_scores": of_one_event,
    "every_log_odds": of_logits,
    "extremes": of_numbers,
    "leaders": of_scores,
    "log_odds": of_logits_and_classes,
    "logits_survey": of_logits,
    "normalisers": of_logits,
    "ordered": of_columns_and_replicates,
    "pair_sums": of_residuals,
    "partition": of_nodes,
    "path_ends": of_tables,
    "pooled": of_logits_and_groups,
    "rising": of_counts,
    "row_sums": of_probabilities,
    "row_survey": of_probabilities,
    "running": of_tables_at_places,
    "scalar_codes": of_codes,
    "scalar_totals": of_events,
    "similarities": of_points_and_scales,
    "softmax": of_logits_and_normalisers,
    "softplus": of_logits,
    "square_sums": of_rows,
    "sums_by_code": of_whole_numbers,
    "table_sums": of_tables,
    "taken": of_rows_and_columns,
    "tempered": of_logits_and_labels,
}


def is_plain(value):
    """Whether a value may pass the seam."""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return value is None or type(value) in (np.ndarray, int, float, str, bool)


def check(name, result, expected, narrow):
    if isinstance(expected, tuple):
        assert type(result) is tuple
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            check(name, one, other, narrow)
    elif name in EXACT:
        assert np.shape(result) == np.shape(expected)
        assert np.array_equal(result, expected)
        assert result.dtype.kind in {"f": "f", "i": "iu"}[expected.dtype.kind]
        assert np.array_equal(np.signbit(result), np.signbit(expected))
    else:  # sums of float32 rows are made in float32; tails of exp underflow
        within = 1e-5 if narrow and name == "row_survey" else 1e-12
        assert np.shape(result) == np.shape(expected)
        assert np.allclose(result, expected, rtol=within, atol=within, equal_nan=True)


@pytest.mark.parametrize("name", SEAM)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("block", [1 << 18, pytest.param(64, marks=pytest.mark.slow)])
def test_every_back_end_gives_what_the_plain_loops_give(backend, name, block, monkeypatch):
    monkeypatch.setattr("calibrant.kernels.row_blocks.BLOCK", block)
    calls = 0
    for arguments in CALLS[name](np.random.default_rng(0)):
        before = [np.array(argument) for argument in arguments if isinstance(argument, np.ndarray)]
        result = getattr(BACKENDS[backend], name)(*arguments)
        assert all(map(is_plain, arguments))
        assert is_plain(result)
        narrow = any(getattr(argument, "dtype", None) == np.float32 for argument in arguments)
        expected = getattr(loops, name)(*arguments)
        if name == "table_sums":
            assert result == expected
        if name == "path_ends":  # the path is exact, the sums are floats
            check("running", result[:2], expected[:2], narrow)
        if name == "event_scores":  # squares are exact, logarithms are floats
            assert result == expected or arguments[-1]
            result, expected = (
                ((high + low * 2.0**-26) * 2.0**-26, infinite) for high, low, infinite in (result, expected)
            )
        check(name, result, expected, narrow)
        after = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        assert [one.tobytes() for one in before] == [other.tobytes() for other in after]
        calls += 1
    assert calls >= 6


def test_the_contract_covers_the_seam():
    assert sorted(CALLS) == sorted(SEAM)
    assert set(SEAM) >= EXACT


@pytest.mark.parametrize("name", SEAM)
def test_back_ends_have_the_functions_of_the_seam_with_one_signature(name):
    expected = list(inspect.signature(getattr(loops, name)).parameters)
    for module in BACKENDS.values():
        assert list(inspect.signature(getattr(module, name)).parameters) == expected
    for backend, module in BACKENDS.items():
        with kernels.using(backend):
            assert getattr(kernels, name) is getattr(module, name)


def test_no_back_end_knows_the_types_behind_the_seam():
    """Totals, precision and views stay outside; heavy loops of the library are called through the seam alone."""
    folder = Path(kernels.__file__).parent
    for stem in ("numpy", "logits", "pairs", "row_blocks"):
        text = (folder / f"{stem}.py").read_text(encoding="utf-8")
        assert not re.search(r"import .*\b(Totals|Precision|View)\b", text)


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_float32_logits_are_raised_in_float32_whatever_the_batch(backend):
    """To 1e-7 of float64, in the same bits row by row; the columns left of the largest, at the end and far below."""
    z = (np.random.default_rng(3).standard_normal((9, 1500)) * np.linspace(0.5, 60, 9)[:, None]).astype(np.float32)
    z[0, 0] = z[1, 1499] = z[2, 1024] = 300
    z[3, 5:] = -1000
    survey = BACKENDS[backend].logits_survey
    low, high, *rows = survey(z)
    *_, rest, squares = exact = survey(z.astype(np.float64))
    assert (low, high) == exact[:2]
    assert all((now == then).all() for now, then in zip(rows[:2], exact[2:4], strict=True))
    assert np.abs(1 / (1 + rows[2]) - 1 / (1 + rest)).max() < 1e-7
    assert np.allclose(rows[3], squares, rtol=3e-6, atol=1e-30)
    assert (rows[2] != rest).any()
    alone = [survey(z[i : i + 1])[2:] for i in range(len(z))]
    assert all(
        (np.concatenate(part) == whole).all() for part, whole in zip(zip(*alone, strict=True), rows, strict=True)
    )
    few = z[:, :255]
    assert np.allclose(survey(few)[4], survey(few.astype(np.float64))[4], rtol=1e-13)


def test_extremes_of_broken_rows_are_nan_or_infinite():
    assert np.isnan(kernels.row_survey(np.array([[0.5, np.nan], [0.2, 0.1]]))[:4]).all()
    assert kernels.row_survey(np.array([[np.inf, -np.inf]]))[:2] == (-np.inf, np.inf)
    blocks = np.full((3, 1 << 18), 0.25)
    blocks[1, 5] = np.nan
    assert np.isnan(kernels.row_survey(blocks)[:4]).all()
