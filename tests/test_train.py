"""Training for calibration: values worked by hand, plain loops, gradients, limits, precision, devices, refusals."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from oracles import train as oracle

torch = pytest.importorskip("torch")
from calibrant import train  # noqa: E402 - it needs torch

pytestmark = pytest.mark.slow

ROW = (2.0, 0.5, -1.0)
Z = torch.tensor([ROW], dtype=torch.float64)
FIRST, LAST = torch.tensor([0]), torch.tensor([2])

ROWWISE = {
    "cross entropy": (train.cross_entropy, oracle.cross_entropy),
    "smoothing": (partial(train.label_smoothing_loss, alpha=0.3), partial(oracle.label_smoothing, alpha=0.3)),
    "focal": (partial(train.focal_loss, gamma=2.5), partial(oracle.focal, gamma=2.5)),
    "faint focal": (partial(train.focal_loss, gamma=0.5), partial(oracle.focal, gamma=0.5)),
    "flsd": (
        partial(train.flsd_loss, threshold=0.3, below=4, above=1.5),
        partial(oracle.sample_dependent_focal, threshold=0.3, below=4, above=1.5),
    ),
    "margin": (partial(train.margin_loss, alpha=0.7, margin=1.5), partial(oracle.margin, alpha=0.7, width=1.5)),
}
BATCHWISE = {
    "mmce": (partial(train.mmce, width=0.3), partial(oracle.mmce, width=0.3)),
    "soft bins, order 2": (
        partial(train.soft_binned_ece, n_bins=7, temperature=0.02),
        partial(oracle.soft_binned_error, n_bins=7, temperature=0.02, order=2),
    ),
    "soft bins, order 1": (
        partial(train.soft_binned_ece, n_bins=4, temperature=0.1, order=1),
        partial(oracle.soft_binned_error, n_bins=4, temperature=0.1, order=1),
    ),
    "soft bins, order 3": (
        partial(train.soft_binned_ece, n_bins=15, temperature=0.001, order=3),
        partial(oracle.soft_binned_error, n_bins=15, temperature=0.001, order=3),
    ),
}
LOSSES = {
    **{name: loss for name, (loss, _) in (ROWWISE | BATCHWISE).items()},
    "mmce loss": train.mmce_loss,
    "soft ece loss": train.soft_ece_loss,
}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
EVERY_ROWWISE = pytest.mark.parametrize("loss", [pair[0] for pair in ROWWISE.values()], ids=ROWWISE.keys())


def to_nine_digits(value):
    return pytest.approx(value, rel=0, abs=1e-9)


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12)


def batch(seed, n=9, classes=4, scale=2.0, soft=False):
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.normal(scale=scale, size=(n, classes)))
    labels = rng.dirichlet(np.full(classes, 0.5), size=n) if soft else rng.integers(0, classes, size=n)
    return logits, torch.tensor(labels)


# ---- values ----------------------------------------------------------------------------------------------------------


def test_cross_entropy_of_one_row():
    assert train.cross_entropy(Z, FIRST).item() == to_nine_digits(0.2413112967)


def test_label_smoothing_of_one_row():
    assert train.label_smoothing_loss(Z, FIRST, 0.1).item() == to_nine_digits(0.3913112967)


def test_label_smoothing_over_the_wrong_classes_alone_is_a_larger_alpha():
    assert train.label_smoothing_loss(Z, FIRST, 0.1 * 3 / 2).item() == to_nine_digits(0.4663112967)
    assert oracle.label_smoothing_of_others(ROW, 0, 0.1) == to_nine_digits(0.4663112967)


@pytest.mark.parametrize(("gamma", "value"), [(1, 0.0517378576), (2, 0.0110927501), (3, 0.0023783185)])
def test_focal_loss_of_one_row(gamma, value):
    assert train.focal_loss(Z, FIRST, gamma).item() == to_nine_digits(value)


def test_an_unlikely_class_has_the_stronger_focus():
    assert train.flsd_loss(Z, LAST).item() == to_nine_digits(2.6551147544)  # p = .0391, gamma 5
    assert train.flsd_loss(Z, FIRST).item() == to_nine_digits(0.0023783185)  # p = .786, gamma 3


def test_margin_loss_of_one_row():
    assert train.margin_loss(Z, FIRST, alpha=0.1, margin=2).item() == to_nine_digits(0.2746446300)


def test_mixup_loss_of_one_row():
    mixed = train.Mixed(torch.zeros(1, 1), FIRST, LAST, share=0.3)
    assert train.mixup_loss(Z, mixed).item() == to_nine_digits(2.3413112967)
    soft = torch.tensor([[0.3, 0.0, 0.7]], dtype=torch.float64)
    assert train.cross_entropy(Z, soft).item() == to_nine_digits(2.3413112967)


def test_the_default_schedule_changes_at_epochs_100_and_250():
    gamma = train.GammaSchedule()
    assert [gamma(epoch) for epoch in (0, 99, 100, 249, 250, 349, 10_000)] == [5, 5, 3, 3, 2, 2, 2]


def test_two_certain_answers_of_which_one_is_wrong():
    # confidences .8 and .8, hits 1 and 0: residuals .2 and -.8 under one kernel value of 1, the mean residual is -.3
    logits = torch.tensor([[math.log(4), 0.0]] * 2, dtype=torch.float64)
    labels = torch.tensor([0, 1])
    assert train.mmce(logits, labels).item() == close(0.3)
    assert train.soft_binned_ece(logits, labels).item() == close(0.3)
    assert train.mmce_loss(logits, labels, 2.0).item() == close(train.cross_entropy(logits, labels).item() + 0.6)
    assert train.soft_ece_loss(logits, labels, 0.5).item() == close(train.cross_entropy(logits, labels).item() + 0.15)


def test_residuals_of_unlike_confidence_meet_under_the_kernel():
    # confidences .8 and .6, both wrong: (.64 + .36 + 2 * .48 * e^(-.2 / .4)) / 4
    logits = torch.tensor([[math.log(4), 0.0], [math.log(1.5), 0.0]], dtype=torch.float64)
    expected = math.sqrt((1 + 0.96 * math.exp(-0.5)) / 4)
    assert train.mmce(logits, torch.tensor([1, 1])).item() == close(expected)


# ---- plain loops -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "plain"), ROWWISE.values(), ids=ROWWISE.keys())
@pytest.mark.parametrize("soft", [False, True], ids=["indices", "soft"])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), scale=st.sampled_from([0.0, 0.3, 3.0, 20.0]))
def test_rows_agree_with_the_plain_loop(loss, plain, soft, seed, classes, scale):
    logits, labels = batch(seed, 5, classes, scale, soft)
    expected = [plain(row, label) for row, label in zip(logits.tolist(), labels.tolist(), strict=True)]
    assert loss(logits, labels, reduction="none").tolist() == pytest.approx(expected, rel=1e-11, abs=1e-12)  # 1 - p
    assert loss(logits, labels).item() == pytest.approx(math.fsum(expected) / 5, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize(("loss", "plain"), BATCHWISE.values(), ids=BATCHWISE.keys())
@pytest.mark.parametrize("soft", [False, True], ids=["indices", "soft"])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), classes=st.integers(2, 6))
def test_batches_agree_with_the_plain_loop(loss, plain, soft, seed, n, classes):
    logits, labels = batch(seed, n, classes, soft=soft)
    assert loss(logits, labels).item() == to_nine_digits(plain(logits.tolist(), labels.tolist()))


@pytest.mark.parametrize("order", [1, 2])
def test_soft_bins_harden_into_bins_of_equal_width(order):
    logits, labels = batch(3, n=400, classes=5)
    binned = cal.BinnedError(distance=cal.power(order), aggregate=cal.root(order))
    hard = binned(cal.Predictions.from_logits(labels, logits)).value
    soft = train.soft_binned_ece(logits, labels, temperature=1e-9, order=order).item()
    assert soft == to_nine_digits(hard)  # no confidence lies so near an edge that it would be shared


def test_one_soft_bin_compares_mean_confidence_and_accuracy():
    logits, labels = batch(4, n=50)
    hit = (logits.argmax(1) == labels).double()
    expected = (hit - logits.softmax(1).amax(1)).mean().abs().item()
    for order in (1, 2, 3.5):
        assert train.soft_binned_ece(logits, labels, n_bins=1, order=order).item() == close(expected)


def test_a_very_wide_kernel_compares_mean_confidence_and_accuracy():
    logits, labels = batch(5, n=50)
    hit = (logits.argmax(1) == labels).double()
    expected = (hit - logits.softmax(1).amax(1)).mean().abs().item()
    assert train.mmce(logits, labels, width=1e12).item() == to_nine_digits(expected)


# ---- limits ----------------------------------------------------------------------------------------------------------

PLAIN = {
    "no smoothing": partial(train.label_smoothing_loss, alpha=0),
    "no focus": partial(train.focal_loss, gamma=0),
    "no focus on either side": partial(train.flsd_loss, below=0, above=0),
    "no penalty": partial(train.margin_loss, alpha=0, margin=0),
    "a wide margin": partial(train.margin_loss, alpha=5, margin=1e6),
}


@pytest.mark.parametrize("loss", PLAIN.values(), ids=PLAIN.keys())
@pytest.mark.parametrize("soft", [False, True], ids=["indices", "soft"])
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_strength_zero_is_cross_entropy_with_its_gradient(loss, soft, scale):
    logits, labels = batch(6, scale=scale, soft=soft)
    logits.requires_grad_()
    reference = train.cross_entropy(logits, labels, reduction="none")
    losses = loss(logits, labels, reduction="none")
    torch.testing.assert_close(losses, reference, rtol=1e-12, atol=1e-12)
    slopes = [torch.autograd.grad(rows.sum(), logits)[0] for rows in (losses, reference)]
    torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", [train.mmce_loss, train.soft_ece_loss])
def test_weight_zero_is_cross_entropy(loss):
    logits, labels = batch(7)
    assert loss(logits, labels, 0).item() == train.cross_entropy(logits, labels).item()


def test_torch_agrees_on_cross_entropy():
    logits, labels = batch(8)
    theirs = torch.nn.functional.cross_entropy(logits, labels)
    assert train.cross_entropy(logits, labels).item() == close(theirs.item())


@EVERY_LOSS
def test_one_hot_labels_count_as_their_indices(loss):
    logits, labels = batch(9)
    one_hot = torch.nn.functional.one_hot(labels, 4)
    for soft in (one_hot, one_hot.double(), one_hot.bool()):
        torch.testing.assert_close(loss(logits, soft), loss(logits, labels), rtol=1e-12, atol=1e-12)


@EVERY_ROWWISE
def test_soft_labels_are_blends_of_the_losses_of_their_classes(loss):
    logits, labels = batch(10, soft=True)
    classes = [loss(logits, torch.full((9,), k), reduction="none") for k in range(4)]
    blend = (torch.stack(classes, 1) * labels).sum(1)
    torch.testing.assert_close(loss(logits, labels, reduction="none"), blend, rtol=1e-12, atol=1e-12)


@EVERY_LOSS
@given(seed=st.integers(0, 10**6), shift=st.floats(-50, 50))
@settings(max_examples=10)
def test_a_constant_added_to_a_row_and_the_order_of_rows_and_classes_change_nothing(loss, seed, shift):
    logits, labels = batch(seed)
    rng = np.random.default_rng(seed)
    rows, classes = torch.tensor(rng.permutation(9)), torch.tensor(rng.permutation(4))
    moved = (logits + shift)[rows][:, classes]
    renamed = classes.argsort()[labels[rows]]
    assert loss(moved, renamed).item() == pytest.approx(loss(logits, labels).item(), rel=1e-10, abs=1e-11)  # 50 + z


def test_a_penalty_sees_calibration_and_not_accuracy():
    logits = torch.log(torch.tensor([[0.75, 0.25]], dtype=torch.float64)).repeat(4, 1)
    labels = torch.tensor([0, 0, 0, 1])
    assert train.mmce(logits, labels).item() == pytest.approx(0, abs=1e-7)  # the root of a square of 1e-16
    assert train.soft_binned_ece(logits, labels, order=1).item() == close(0)


# ---- gradients -------------------------------------------------------------------------------------------------------


@EVERY_LOSS
@pytest.mark.parametrize("soft", [False, True], ids=["indices", "soft"])
def test_gradients_are_those_of_small_differences(loss, soft):
    logits, labels = batch(11, n=5, soft=soft)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), logits.requires_grad_())


@EVERY_LOSS
def test_second_derivatives_are_those_of_small_differences(loss):
    logits, labels = batch(12, n=3, classes=3)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, labels), logits.requires_grad_())


@pytest.mark.parametrize(("loss", "plain"), (ROWWISE | BATCHWISE).values(), ids=(ROWWISE | BATCHWISE).keys())
def test_gradients_are_those_of_the_plain_loop(loss, plain):
    logits, labels = batch(13, n=4, classes=3)
    rows, names, step = logits.tolist(), labels.tolist(), 1e-6

    def total(rows):
        if plain in [pair[1] for pair in BATCHWISE.values()]:
            return plain(rows, names)
        return math.fsum(plain(row, name) for row, name in zip(rows, names, strict=True)) / 4

    expected = []
    for i in range(4):
        for k in range(3):
            ends = []
            for sign in (1, -1):
                moved = [list(row) for row in rows]
                moved[i][k] += sign * step
                ends.append(total(moved))
            expected.append((ends[0] - ends[1]) / (2 * step))
    (slopes,) = torch.autograd.grad(loss(logits.requires_grad_(), labels), logits)
    assert slopes.flatten().tolist() == pytest.approx(expected, rel=0, abs=1e-8)  # rounding over the step: 1e-16 / 1e-6


@EVERY_LOSS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("soft", [False, True], ids=["indices", "soft"])
@pytest.mark.parametrize("gap", [0.0, 20.0, 1e3, 1e6])
def test_saturated_and_tied_logits_have_finite_losses_and_gradients(loss, dtype, soft, gap):
    logits = torch.tensor([[gap, 0.0, 0.0], [0.0, gap, 0.0], [0.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    if soft:
        labels = 0.9 * torch.nn.functional.one_hot(labels, 3) + 0.1 / 3
    value = loss(logits, labels)
    (slope,) = torch.autograd.grad(value, logits)
    assert torch.isfinite(value)
    assert torch.isfinite(slope).all()


def test_a_batch_without_residuals_has_no_error_and_no_gradient():
    logits = torch.tensor([[1e3, 0.0], [0.0, 1e3]], requires_grad=True)
    for penalty in (train.mmce, train.soft_binned_ece):
        value = penalty(logits, torch.tensor([0, 1]))
        assert value.item() == 0
        assert torch.autograd.grad(value, logits)[0].abs().max() == 0


@pytest.mark.parametrize("gamma", [0.5, 1, 3])
def test_a_focal_loss_of_certainty_keeps_its_digits_in_float32(gamma):
    for gap in (10.0, 18.0, 30.0):  # 1 - p = e^-gap, which rounds to 0 in float32 beyond 17; log p is its negative
        loss = train.focal_loss(torch.tensor([[gap, 0.0]]), FIRST, gamma).item()
        rest = 1 / (1 + math.exp(gap))
        assert loss == pytest.approx(-math.log1p(-rest) * rest**gamma, rel=1e-4)  # 24 bits of an exponent near 100


def test_soft_labels_may_learn_too():
    logits, labels = batch(14, soft=True)
    train.cross_entropy(logits, labels.requires_grad_()).backward()
    torch.testing.assert_close(labels.grad, -logits.log_softmax(1) / 9)


def test_a_probability_on_the_threshold_is_not_below_it():
    uniform = torch.zeros(1, 5, dtype=torch.float64)
    assert train.flsd_loss(uniform, FIRST, below=5, above=0).item() == to_nine_digits(math.log(5))


# ---- precision and devices -------------------------------------------------------------------------------------------


@EVERY_LOSS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(loss, dtype):
    logits, labels = batch(15)
    half = logits.to(dtype).requires_grad_()
    value = loss(half, labels)
    assert value.dtype == torch.float32
    assert value.item() == loss(half.detach().float(), labels).item()
    value.backward()
    assert half.grad.dtype == dtype


@EVERY_LOSS
def test_float64_is_kept_and_float32_is_close_to_it(loss):
    logits, labels = batch(16)
    assert loss(logits, labels).dtype == torch.float64
    single = loss(logits.float(), labels)
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(loss(logits, labels).item(), rel=1e-5, abs=1e-6)  # 24 bits


@EVERY_LOSS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_changes_no_bit_of_a_loss(loss, dtype):
    logits, labels = batch(17)
    for given_logits in (logits, logits.float(), logits.to(dtype)):
        with torch.autocast("cpu", dtype=dtype):
            inside = loss(given_logits, labels)
        outside = loss(given_logits, labels)
        assert inside.dtype == outside.dtype
        assert inside.item() == outside.item()


@EVERY_LOSS
def test_a_layer_learns_under_autocast(loss):
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = layer(torch.randn(8, 6))
        value = loss(logits, torch.arange(8) % 4)
    assert logits.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    value.backward()
    assert torch.isfinite(layer.weight.grad).all()
    assert layer.weight.grad.abs().max() > 0


@EVERY_LOSS
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees_with_the_processor(loss):
    logits, labels = batch(18)
    value = loss(logits.cuda().requires_grad_(), labels.cuda())
    assert value.device.type == "cuda"
    assert value.item() == to_nine_digits(loss(logits, labels).item())
    value.backward()
    with torch.autocast("cuda", dtype=torch.float16):
        half = loss(logits.cuda().half(), labels.cuda())
    assert half.dtype == torch.float32
    # float16 keeps 11 bits of a logit of up to 10
    assert half.item() == pytest.approx(loss(logits.half(), labels).item(), rel=1e-4, abs=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_cuda_batches_mix_with_a_generator_of_either_device(device):
    generator = torch.Generator(device).manual_seed(0)
    mixed = train.mixup(torch.eye(4).cuda(), torch.arange(4).cuda(), 1.0, generator=generator)
    assert mixed.inputs.device.type == mixed.partner_labels.device.type == "cuda"
    torch.testing.assert_close(mixed.soft_labels(4), mixed.inputs)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_indices_of_any_integer_type_count_alike(dtype):
    logits, labels = batch(19)
    assert train.focal_loss(logits, labels.to(dtype)).item() == train.focal_loss(logits, labels).item()


def test_soft_labels_in_bfloat16_sum_to_one_as_far_as_they_can():
    logits, labels = batch(20, n=200, soft=True)
    value = train.cross_entropy(logits, labels.bfloat16()).item()
    assert value == pytest.approx(train.cross_entropy(logits, labels).item(), rel=0.01)  # 8 bits of a mass


# ---- mix-up ----------------------------------------------------------------------------------------------------------


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_mixed_batch_is_its_shares_of_both_samples():
    inputs, labels = torch.eye(5, dtype=torch.float64), torch.arange(5)
    mixed = train.mixup(inputs, labels, 1.0, generator=seeded())
    assert sorted(mixed.partner_labels.tolist()) == list(range(5))
    for i in range(5):
        expected = mixed.share * inputs[i] + (1 - mixed.share) * inputs[mixed.partner_labels[i]]
        torch.testing.assert_close(mixed.inputs[i], expected)
    torch.testing.assert_close(mixed.soft_labels(5).double(), mixed.inputs, rtol=0, atol=1e-7)  # float32 labels


def test_the_same_seed_mixes_alike_and_another_one_does_not():
    inputs, labels = torch.randn(8, 3, 4, generator=seeded()), torch.arange(8)
    first, again, other = (train.mixup(inputs, labels, 0.4, generator=seeded(seed)) for seed in (1, 1, 2))
    assert first.share == again.share != other.share
    assert torch.equal(first.inputs, again.inputs)
    assert first.inputs.shape == inputs.shape


def test_no_strength_leaves_the_batch_as_it_is():
    inputs, labels = torch.randn(6, 2, generator=seeded()), torch.arange(6)
    mixed = train.mixup(inputs, labels, 0, generator=seeded())
    assert mixed.share == 1
    assert torch.equal(mixed.inputs, inputs)
    logits = torch.randn(6, 6, generator=seeded())
    assert train.mixup_loss(logits, mixed).item() == train.cross_entropy(logits, labels).item()


@pytest.mark.parametrize("alpha", [1e-300, 1e-3, 1.0, 1e3, 1e15])
def test_shares_lie_in_the_unit_interval_at_any_strength(alpha):
    generator = seeded()
    inputs, labels = torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)
    shares = [train.mixup(inputs, labels, alpha, generator=generator).share for _ in range(200)]
    assert all(0 <= share <= 1 for share in shares)


CUMULATIVE = {
    0.5: lambda x: 2 / math.pi * np.arcsin(np.sqrt(x)),
    1.0: lambda x: x,
    2.0: lambda x: x**2 * (3 - 2 * x),
}


@pytest.mark.parametrize("alpha", CUMULATIVE)
def test_shares_follow_the_beta_law(alpha):
    generator, n = seeded(7), 4000
    inputs, labels = torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)
    shares = np.sort([train.mixup(inputs, labels, alpha, generator=generator).share for _ in range(n)])
    heights = CUMULATIVE[alpha](shares)
    distance = max((np.arange(1, n + 1) / n - heights).max(), (heights - np.arange(n) / n).max())
    assert distance < 1.95 / math.sqrt(n)  # Kolmogorov: false alarm 2 exp(-2 * 1.95^2) = 0.001 for each alpha


@pytest.mark.parametrize("alpha", [0.1, 0.2, 5.0])
def test_shares_have_the_variance_of_the_beta_law(alpha):
    generator, n = seeded(8), 4000
    inputs, labels = torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)
    shares = np.array([train.mixup(inputs, labels, alpha, generator=generator).share for _ in range(n)])
    squares = (shares - 0.5) ** 2
    error = squares.std() / math.sqrt(n)
    assert abs(squares.mean() - 1 / (4 * (2 * alpha + 1))) < 4 * error  # four deviations: false alarm below 1e-4


def test_a_mixed_loss_is_the_loss_of_mixed_labels():
    logits, labels = batch(21)
    mixed = train.mixup(torch.zeros(9, 1), labels, 1.0, generator=seeded(3))
    own, partner = (torch.nn.functional.one_hot(part, 4).double() for part in (mixed.labels, mixed.partner_labels))
    soft = mixed.share * own + (1 - mixed.share) * partner
    assert train.mixup_loss(logits, mixed).item() == close(train.cross_entropy(logits, soft).item())
    focal = partial(train.focal_loss, gamma=2, reduction="none")
    torch.testing.assert_close(train.mixup_loss(logits, mixed, focal), focal(logits, soft))


def test_soft_labels_mix_too():
    logits, labels = batch(22, soft=True)
    mixed = train.mixup(torch.zeros(9, 1), labels, 1.0, generator=seeded(3))
    value = train.cross_entropy(logits, mixed.soft_labels(4)).item()
    assert train.mixup_loss(logits, mixed).item() == close(value)


def test_gradients_flow_through_mixed_inputs():
    inputs = torch.ones(4, 2, requires_grad=True)
    train.mixup(inputs, torch.arange(4), 1.0, generator=seeded()).inputs.sum().backward()
    torch.testing.assert_close(inputs.grad, torch.ones(4, 2))


# ---- training --------------------------------------------------------------------------------------------------------


@EVERY_LOSS
def test_descent_lowers_every_loss(loss):
    logits, labels = batch(23, n=32)
    logits.requires_grad_()
    before = loss(logits, labels).item()
    optimiser = torch.optim.SGD([logits], lr=0.05)
    for _ in range(20):
        optimiser.zero_grad()
        loss(logits, labels).backward()
        optimiser.step()
    assert loss(logits.detach(), labels).item() < before


# ---- refusals --------------------------------------------------------------------------------------------------------


@EVERY_LOSS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite_are_refused(loss, bad):
    logits, labels = batch(24)
    logits[3, 1] = bad
    with pytest.raises(cal.CalibrationInputError, match=r"logits: must be finite, got .* at row 3"):
        loss(logits, labels)


LOGITS = torch.zeros(2, 3)
LABELS = torch.tensor([0, 1])
REFUSED = [
    (LOGITS, torch.tensor([0, 3]), r"labels: must be class indices in 0\.\.2, got 3 at row 1"),
    (LOGITS, torch.tensor([-100, 1]), r"got -100 at row 0; leave out the rows to be ignored"),
    (
        LOGITS,
        torch.tensor([0.0, 1.0]),
        r"labels: must be whole numbers where .* indices, got torch.float32",
    ),
    (LOGITS, torch.tensor([0j, 1j]), "labels: must be whole numbers"),
    (LOGITS, torch.zeros(3, dtype=torch.long), r"labels: must have shape \(2,\), or \(2, 3\) where soft, got \(3,\)"),
    (LOGITS, torch.zeros(2, 2), r"labels: must have shape"),
    (LOGITS, [0, 1], "labels: must be a torch tensor, got list"),
    (LOGITS, torch.zeros(2, dtype=torch.long, device="meta"), "labels: must lie on cpu, as logits do, got meta"),
    (
        LOGITS,
        torch.tensor([[1, 0, 0], [1, 1, 0]]),
        r"labels: .* must be masses that sum to 1, got .* row 1",
    ),
    (LOGITS, torch.tensor([[1.0, 0, 0], [0.5, 0.45, 0]]), r"labels: rows of soft labels .* row 1"),
    (LOGITS, torch.tensor([[1.5, -0.5, 0], [1.0, 0, 0]]), r"labels: rows of soft labels .* row 0"),
    (LOGITS, torch.tensor([[1.0, 0, 0], [math.nan, 1, 0]]), r"labels: rows of soft labels .* row 1"),
    (LOGITS, torch.zeros(2, 3, dtype=torch.complex64), "labels: must be real where they are soft, got torch.complex64"),
    (LOGITS.long(), LABELS, "logits: must be a torch tensor of floats, got torch.int64"),
    (LOGITS.numpy(), LABELS, "logits: must be a torch tensor of floats, got ndarray"),
    (LOGITS[0], LABELS, r"logits: must have shape \(n, K\) .* got \(3,\); make one logit z into two"),
    (LOGITS[:0], LABELS[:0], r"logits: must have shape \(n, K\) with at least one row and two classes, got \(0, 3\)"),
    (LOGITS[:, :1], LABELS, r"logits: must have shape .*, got \(2, 1\)"),
    (LOGITS[None], LABELS, r"logits: must have shape .*, got \(1, 2, 3\)"),
]


@pytest.mark.parametrize(("logits", "labels", "message"), REFUSED, ids=range(len(REFUSED)))
@EVERY_LOSS
def test_what_is_no_batch_is_refused(loss, logits, labels, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        loss(logits, labels)


@EVERY_ROWWISE
@pytest.mark.parametrize("reduction", ["sum", None, 1])
def test_a_reduction_is_a_mean_or_none(loss, reduction):
    with pytest.raises(cal.CalibrationInputError, match='reduction: must be "mean" or "none"'):
        loss(LOGITS, LABELS, reduction=reduction)


AT_LEAST_0 = "must be a finite number of at least 0, got"
STRENGTHS = [
    (train.label_smoothing_loss, "alpha", [-0.1, 1, 1.0, 2], r"must lie in \[0, 1\), got"),
    (train.focal_loss, "gamma", [-1, math.inf], AT_LEAST_0),
    (train.flsd_loss, "below", [-1, math.inf], AT_LEAST_0),
    (train.flsd_loss, "above", [-1, math.inf], AT_LEAST_0),
    (train.flsd_loss, "threshold", [0, 1, -0.1], "must lie strictly between 0 and 1, got"),
    (train.margin_loss, "alpha", [-1, math.inf], AT_LEAST_0),
    (train.margin_loss, "margin", [-1, math.inf], AT_LEAST_0),
    (train.mmce_loss, "weight", [-1, math.inf], AT_LEAST_0),
    (train.mmce_loss, "width", [0, -1, math.inf], "must be a finite number above 0, got"),
    (train.soft_ece_loss, "weight", [-1, math.inf], AT_LEAST_0),
    (train.soft_ece_loss, "temperature", [0, -1, math.inf], "must be a finite number above 0, got"),
    (train.soft_ece_loss, "n_bins", [0, 2.0], "must be a whole number of at least 1, got"),
    (train.soft_ece_loss, "order", [0.5, math.inf], "needs a finite order p of at least 1, got"),
]


@pytest.mark.parametrize(("loss", "parameter", "values", "message"), STRENGTHS)
def test_an_impossible_strength_is_refused(loss, parameter, values, message):
    for value in (*values, math.nan, "1", True, None, torch.tensor(0.5)):
        with pytest.raises(cal.CalibrationInputError, match=f"{parameter}: {message}"):
            loss(LOGITS, LABELS, **{parameter: value})


def test_what_cannot_be_mixed_is_refused():
    mix = partial(train.mixup, generator=seeded())
    inputs = torch.zeros(2, 3)
    for alpha in (-1, math.nan, math.inf, "1", True):
        with pytest.raises(cal.CalibrationInputError, match=f"alpha: {AT_LEAST_0}"):
            mix(inputs, LABELS, alpha)
    with pytest.raises(cal.CalibrationInputError, match=r"inputs: .* of floats, got torch.int64 of shape \(2, 3\)"):
        mix(inputs.long(), LABELS)
    with pytest.raises(cal.CalibrationInputError, match=r"inputs: .*, got torch.float32 of shape \(\)"):
        mix(torch.tensor(1.0), LABELS)
    with pytest.raises(cal.CalibrationInputError, match=r"inputs: .*, got list"):
        mix([[1.0]], LABELS)
    with pytest.raises(cal.CalibrationInputError, match=r"labels: must be .* \(2,\) or \(2, K\), got \(3,\)"):
        mix(inputs, torch.arange(3))
    with pytest.raises(cal.CalibrationInputError, match=r"labels: .*, got list"):
        mix(inputs, [0, 1])
    with pytest.raises(cal.CalibrationInputError, match=r"generator: must be a torch.Generator, got int"):
        train.mixup(inputs, LABELS, generator=0)
    with pytest.raises(cal.CalibrationInputError, match="mixed: must be what mixup returned, got Tensor"):
        train.mixup_loss(LOGITS, LABELS)
    with pytest.raises(cal.CalibrationInputError, match="classes: must be a whole number of at least 2, got 1"):
        mix(inputs, LABELS).soft_labels(1)


@pytest.mark.parametrize(
    ("starts", "gammas", "message"),
    [
        ((1, 5), (5.0, 3.0), r"starts: must be rising epochs, the first of them 0, got \(1, 5\)"),
        ((0, 5, 5), (5.0, 3.0, 2.0), "starts: must be rising epochs"),
        ((), (), "starts: must be rising epochs"),
        ((0, 1.5), (5.0, 3.0), "starts: must be rising epochs"),
        (0, (5.0,), "starts: must be a tuple, got 0"),
        ((0,), 5.0, "gammas: must be a tuple, got 5.0"),
        ((0, 5), (5.0,), r"gammas: must be 2 numbers, one a start, got \(5.0,\)"),
        ((0,), (-1.0,), f"gammas: {AT_LEAST_0} -1.0"),
        ((0,), ("5",), "gammas: must be a finite number"),
    ],
)
def test_an_impossible_schedule_is_refused(starts, gammas, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        train.GammaSchedule(starts, gammas)


def test_a_schedule_is_a_value():
    schedule = train.GammaSchedule([0, 10], [4, 1])
    assert schedule == train.GammaSchedule((0, 10), (4, 1))
    assert hash(schedule) == hash(train.GammaSchedule((0, 10), (4, 1)))
    with pytest.raises(cal.CalibrationInputError, match="epoch: must be a whole number of at least 0, got -1"):
        schedule(-1)
