"""Triton's kernels give the numbers of torch's operations: on a GPU, or else run by Triton's interpreter."""

import os
import sys

import pytest

torch = pytest.importorskip("torch")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("Triton was imported without its interpreter", allow_module_level=True)
    os.environ["TRITON_INTERPRET"] = "1"  # read where Triton is imported
pytest.importorskip("triton")

from calibrant.kernels import along_rows, down_columns, fused, rowwise  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # the interpreter subtracts infinities in NumPy
SHAPES = [(1, 1), (5, 3), (3, 70), (40, 16), (40, 64), (40, 150)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(params=[32, 1024])
def widest(request, monkeypatch):
    """Rows in one tile, and rows that are walked along."""
    monkeypatch.setattr(along_rows, "WIDEST", request.param)
    monkeypatch.setattr(along_rows, "RESIDENT", 64)
    monkeypatch.setattr(along_rows, "_at_once", lambda device: 16)
    return request.param


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    """Columns of several tiles."""
    monkeypatch.setattr(down_columns, "STEPS", 8)
    monkeypatch.setattr(down_columns, "SUMMED", (4, 8))


def logits(shape, dtype):
    torch.manual_seed(0)
    rows = 3 * torch.randn(shape)
    rows[0] = rows[0, 0]
    return rows.to(DEVICE, dtype)


def probabilities(shape, dtype):
    rows = torch.softmax(logits(shape, torch.float32), dim=1).to(DEVICE, dtype)
    rows[-1] = 0.0
    rows[-1, -1] = 1.0
    return rows


def carried(table):
    return torch.stack((table[0], table[1] + (table[2] >> 26), table[2] & (1 << 26) - 1))


@pytest.mark.usefixtures("widest")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_walk_along_rows_of_probabilities(shape, dtype):
    values = probabilities(shape, dtype)
    for outside in (0, 1):
        labels = torch.arange(len(values), device=DEVICE) % shape[1]
        labels[-1] += outside * shape[1]
        (top, place, ends), (expected, places, others) = (each.tops(values, labels) for each in (along_rows, rowwise))
        assert torch.equal(top, expected)
        assert torch.equal(place, places)
        assert [ends[0].max(), ends[1].max(), ends[4].max()] == [others[0].max(), others[1].max(), outside]
        sums = torch.stack((ends[2].max() - others[2].max(), ends[3].max() - others[3].max()))
        assert sums.abs().max() <= 1e-6  # float32, in another order
    truth = torch.arange(len(values), device=DEVICE) % (shape[1] + 1) - 1
    assert torch.equal(along_rows.squared_errors(values, truth), rowwise.squared_errors(values, truth))


@pytest.mark.usefixtures("widest")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_walk_along_rows_of_logits(shape, dtype):
    values = logits(shape, dtype)
    for labels in (None, torch.arange(len(values), device=DEVICE)):
        (parts, place, ends), (expected, places, others) = (
            each.exponentials(values, labels) for each in (along_rows, rowwise)
        )
        assert torch.equal(parts[0], expected[0])
        assert torch.equal(place, places)
        assert torch.allclose(parts[1:], expected[1:], rtol=1e-6, atol=1e-12)  # float32
        outside = labels is not None and len(values) > shape[1]
        assert [ends[0].max(), ends[1].max(), ends[2].max()] == [others[0].max(), others[1].max(), outside]
    sums = along_rows.tempered(values, expected[0], 0.7), rowwise.tempered(values, expected[0], 0.7)
    assert torch.allclose(*sums, rtol=1e-6, atol=1e-6)  # float32


def test_scores_are_added_in_two_limbs():
    scores = torch.linspace(-2, 3, 3001, dtype=torch.float64, device=DEVICE)[:, None].exp()
    for odd in ((), (torch.inf,), (torch.nan, -torch.inf, 1e9)):
        scores[7 : 7 + len(odd), 0] = torch.tensor(odd)
        tables = torch.zeros((2, 4, 1), dtype=torch.int64, device=DEVICE)
        for table, module in zip(tables, (along_rows, rowwise), strict=True):
            module.add_scores(table, scores, 1e10)
        assert torch.equal(*tables)
        assert tables[0, 2:, 0].tolist() == [len(odd[:2]), len(odd) if len(odd) > 1 else 0]


@pytest.mark.parametrize("right_closed", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_walk_down_columns(dtype, right_closed):
    values = probabilities((300, 5), dtype)
    values[:40, 2] = 0.25
    edges = torch.tensor([0.125, 0.25, 0.5], device=DEVICE)
    tables = torch.zeros((2, 3, 20), dtype=torch.int64, device=DEVICE)
    for table, module in zip(tables, (down_columns, rowwise), strict=True):
        module.add_columns(table, values, edges, right_closed)
    assert torch.equal(*map(carried, tables))


@pytest.mark.parametrize("right_closed", [True, False])
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64], ids=str)
def test_the_walk_over_events(dtype, right_closed):
    values = probabilities((300, 5), torch.float32)[:, 2].to(dtype)  # not contiguous
    values[:40] = 0.25
    truth = (torch.arange(300, device=DEVICE) % 3 == 0).long() - 1
    edges = torch.tensor([0.125, 0.25, 0.5], device=DEVICE, dtype=torch.promote_types(dtype, torch.float32))
    tables = torch.zeros((2, 5, 4), dtype=torch.int64, device=DEVICE)
    for table, module in zip(tables, (down_columns, rowwise), strict=True):
        module.add_events(table, values, truth, edges, right_closed)
    assert torch.equal(*map(carried, tables))
    assert torch.equal(*(table[3:] for table in tables))


def test_rows_that_are_not_contiguous_are_walked_along():
    values = probabilities((40, 16), torch.float32)[::2]
    assert torch.equal(along_rows.tops(values, None)[1], rowwise.tops(values, None)[1])
    thresholds = values[:3].T.contiguous()
    assert torch.equal(down_columns.below(values, thresholds)[1], rowwise.below(values, thresholds)[1])


@pytest.mark.usefixtures("widest")
def test_what_is_not_finite_is_seen():
    values = logits((6, 70), torch.float32)
    for broken in (torch.nan, torch.inf, -torch.inf):
        values[3, 5] = broken
        low, high, _ = along_rows.exponentials(values, None)[2]
        assert not (low.max().isfinite() and high.max().isfinite())
    values[3, 5] = torch.nan
    assert along_rows.tops(values, None)[2][2].isnan().any()


@pytest.mark.parametrize("shape", [(1, 1), (300, 70)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_walk_down_columns_for_ranks(dtype, shape):
    values = probabilities(shape, dtype)
    thresholds = values[:3].float().T.contiguous()
    thresholds[0] = torch.inf
    (sums, largest), (expected, tops) = down_columns.below(values, thresholds), rowwise.below(values, thresholds)
    assert torch.equal(*(part[0] + (part[1] >> 26) for part in (sums, expected)))
    assert torch.equal(*(part[1] & (1 << 26) - 1 for part in (sums, expected)))
    assert torch.equal(largest, tops)


@pytest.mark.parametrize("shape", [(1, 1), (300, 70)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_walk_down_columns_for_digits(dtype, shape):
    values = probabilities(shape, dtype)
    values[-1, 0] = -0.0
    prefixes = (values[:4].float().T + 0.0).contiguous().view(torch.int32).sort(dim=1).values >> 20
    for wanted, shift, bits in ((prefixes[:, :1] * 0, 24, 6), (prefixes, 14, 6), (prefixes, 16, 4)):
        counts = [module.counted_digits(values, wanted, shift, bits) for module in (down_columns, rowwise)]
        assert torch.equal(*counts)
        assert counts[0].sum() > 0


@pytest.mark.parametrize("launch", [along_rows.tops, along_rows.exponentials])
def test_launches_are_operations_of_torch(launch, widest):
    """Of which no two outputs share memory."""
    values = probabilities((5, 3), torch.float32)
    operation = torch.library.triton_op(f"calibrant_tests::{launch.__name__}{widest}", launch, mutates_args=())
    parts, expected = operation(values, None), launch(values, None)
    assert torch.equal(parts[0], expected[0])


def test_operations_have_a_fallback_without_a_gpu():
    values = probabilities((5, 3), torch.float32).cpu()
    assert torch.equal(fused.operations.tops(values, None)[1], rowwise.tops(values, None)[1])
    table = torch.zeros((3, 6), dtype=torch.int64)
    fused.operations.add_columns(table, values, torch.tensor([0.5]), True)
    assert table[0].sum() == values.numel()
