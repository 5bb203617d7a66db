"""Networks with torch: sizes, shapes, gradients, seeds and initialisations."""

import doctest
import importlib
import pkgutil

import pytest

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training import networks
from calibrant.experiments.training.networks import NAMES, build
from calibrant.experiments.training.networks.building import _maker

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
from calibrant.experiments.training.networks.vit import Attention  # noqa: E402

EVERY_MODEL = pytest.mark.parametrize("name", NAMES)
LIGHT = pytest.mark.parametrize("name", ["cnn", "densenet40", "mlp", "mobilenet_v2", "resnet18", "resnet110", "vit"])
"""One or two of every family that are quick on a processor."""


def counted(name, shape, classes):
    """A network without memory for its weights, to count them."""
    with torch.device("meta"):
        return _maker(name)(shape, classes)


def parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # threads of many processes wait for each other longer than they compute
    yield
    torch.set_num_threads(before)


def test_every_example_prints_what_it_says():
    tried = 0
    for module in pkgutil.walk_packages(networks.__path__, networks.__name__ + "."):
        result = doctest.testmod(importlib.import_module(module.name), optionflags=doctest.NORMALIZE_WHITESPACE)
        assert result.failed == 0, module.name
        tried += result.attempted
    assert tried > 20


# ---- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "classes", "count"),
    [
        ("resnet18", 10, 11_173_962),  # 11.17 million
        ("resnet34", 10, 21_282_122),
        ("resnet50", 10, 23_520_842),
        ("resnet110", 10, 1_727_962),  # 1.7 million, He et al. (2016), table 6
        ("densenet40", 10, 1_019_722),  # 1.0 million, Huang et al. (2017), table 2
        ("densenet100", 10, 769_162),  # DenseNet-BC, 0.8 million, the same table
        ("densenet121", 10, 6_956_298),
        ("vgg16", 10, 14_728_266),
        ("mobilenet_v2", 1000, 3_504_872),  # strides change no weight: as published for ImageNet
        # ImageNet's published sizes, whose stem has 7 x 7 filters: less 64 filters of 3 (49 - 9) weights
        ("resnet18", 1000, 11_689_512 - 7_680),
        ("resnet34", 1000, 21_797_672 - 7_680),
        ("resnet50", 1000, 25_557_032 - 7_680),
        # and, in these, less the stem's normalisation of 64 channels, which the network for small pictures has not
        ("densenet121", 1000, 7_978_856 - 7_680 - 128),
        ("densenet201", 1000, 20_013_928 - 7_680 - 128),
        # thirteen convolutions with normalisation, and one affine layer in place of three
        ("vgg16", 1000, 138_365_992 - (25_088 + 1) * 4096 - (4096 + 1) * 4096 - (4096 + 1) * 1000 + 513 * 1000),
    ],
)
def test_networks_have_their_published_sizes(name, classes, count):
    assert parameters(counted(name, (3, 32, 32), classes)) == count


@pytest.mark.parametrize(
    ("name", "first_filters"),
    [
        ("resnet18", 64),
        ("resnet50", 64),
        ("resnet110", 16),
        ("densenet40", 16),
        ("densenet100", 24),
        ("mobilenet_v2", 32),
        ("vgg16", 64),
    ],
)
def test_one_channel_in_place_of_three_saves_two_thirds_of_the_first_filters(name, first_filters):
    grey, coloured = (parameters(counted(name, (channels, 28, 28), 10)) for channels in (1, 3))
    assert coloured - grey == first_filters * 9 * 2


def test_the_small_convolutional_network_by_hand():
    convolutions = (25 + 1) * 32 + (25 * 32 + 1) * 64
    affine = (3136 + 1) * 1024 + (1024 + 1) * 10
    assert parameters(build("cnn", shape=(1, 28, 28), classes=10)) == convolutions + affine == 3_274_634
    kinds = [type(layer).__name__ for layer in build("cnn", shape=(1, 28, 28), classes=10)]
    assert kinds == [*["Conv2d", "ReLU", "MaxPool2d"] * 2, "Flatten", "Linear", "ReLU", "Linear"]


def test_the_transformer_by_hand():
    tokens = (16 * 3 + 1) * 192 + 192 + 65 * 192
    attention = 2 * 192 + (192 + 1) * 3 * 192 + (192 + 1) * 192
    computing = 2 * 192 + (192 + 1) * 768 + (768 + 1) * 192
    end = 2 * 192 + (192 + 1) * 10
    assert parameters(build("vit", shape=(3, 32, 32), classes=10)) == tokens + 6 * (attention + computing) + end


def test_a_narrow_transformer_has_a_head_for_each_64_of_its_width():
    tokens, attention, computing = (16 + 1) * 64 + 64 + 50 * 64, 128 + 65 * 256, 128 + 65 * 256 + 257 * 64
    network = build("vit", shape=(1, 28, 28), classes=10, width=64)
    assert parameters(network) == tokens + 6 * (attention + computing) + 128 + 65 * 10


def test_every_64_of_the_width_attend_by_themselves():
    layer, tokens = Attention(128), torch.randn(3, 17, 128)
    queries, keys, values = layer.asked(tokens).detach().split(128, dim=2)
    heads = [
        torch.softmax(queries[..., own] @ keys[..., own].transpose(1, 2) / 8, dim=2) @ values[..., own]
        for own in (slice(64), slice(64, 128))
    ]
    torch.testing.assert_close(layer(tokens), layer.joined(torch.cat(heads, dim=2)))


@pytest.mark.parametrize(
    ("name", "convolutions"),
    # the number in a name counts convolutions and the affine layer, without those of shortcuts
    [
        ("resnet18", 17),
        ("resnet34", 33),
        ("resnet50", 49),
        ("resnet110", 109),
        ("densenet40", 39),
        ("densenet100", 99),
        ("densenet121", 120),
        ("densenet201", 200),
        ("vgg16", 13),
        ("mobilenet_v2", 52),
    ],
)
def test_networks_are_as_deep_as_their_names_say(name, convolutions):
    network = counted(name, (3, 32, 32), 10)
    depth = sum(
        isinstance(layer, torch.nn.Conv2d) and "shortcut" not in where for where, layer in network.named_modules()
    )
    assert depth == convolutions


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("resnet18", 4), ("resnet50", 4), ("resnet110", 8), ("densenet40", 8), ("densenet121", 4), ("mobilenet_v2", 4)],
)
def test_small_pictures_keep_their_size_at_first(name, sizes):
    """What comes to the last pooling of 32 x 32, as published for these pictures."""
    network = build(name, shape=(3, 32, 32), classes=10).eval()
    pool = next(i for i, layer in enumerate(network) if isinstance(layer, torch.nn.AdaptiveAvgPool2d))
    with torch.no_grad():
        assert network[:pool](torch.zeros(1, 3, 32, 32)).shape[2:] == (sizes, sizes)


def kinds(layers):
    return [type(layer).__name__ for layer in layers]


def test_residual_blocks_are_activated_after_the_sum():
    for name in ("resnet18", "resnet34", "resnet50", "resnet110"):
        layers = kinds(counted(name, (3, 32, 32), 10))
        blocks = (len(layers) - 6) // 2
        assert layers == ["Conv2d", "BatchNorm2d", "ReLU", *["Added", "ReLU"] * blocks, *END]
    basic, bottleneck = (counted(name, (3, 32, 32), 10)[3].body for name in ("resnet18", "resnet50"))
    assert kinds(basic) == ["Conv2d", "BatchNorm2d", "ReLU", "Conv2d", "BatchNorm2d"]
    assert kinds(bottleneck) == [*["Conv2d", "BatchNorm2d", "ReLU"] * 2, "Conv2d", "BatchNorm2d"]
    assert [layer.kernel_size[0] for layer in bottleneck if isinstance(layer, torch.nn.Conv2d)] == [1, 3, 1]


END = ["AdaptiveAvgPool2d", "Flatten", "Linear"]


def test_a_residual_block_by_plain_steps():
    network = build("resnet110", shape=(1, 8, 8), classes=3).eval()
    halving = next(layer for layer in network if kinds([layer]) == ["Added"] and kinds([layer.shortcut]) == ["Padded"])
    first, _, _, second, _ = halving.body
    inputs = torch.randn(2, 16, 8, 8, generator=torch.Generator().manual_seed(0))
    functional = torch.nn.functional
    scale = (1 + 1e-5) ** -0.5  # a normalisation that has seen nothing: variance 1, plus its epsilon
    hidden = functional.relu(scale * functional.conv2d(inputs, first.weight, stride=2, padding=1))
    wanted = scale * functional.conv2d(hidden, second.weight, padding=1)
    wanted[:, 8:24] += inputs[:, :, ::2, ::2]
    assert torch.allclose(halving(inputs), wanted, atol=1e-5)  # float32


def test_dense_layers_activate_first_and_see_all_before_them():
    layer = counted("densenet121", (3, 32, 32), 10)[1]
    assert kinds(layer.body) == ["BatchNorm2d", "ReLU", "Conv2d"] * 2
    plain = counted("densenet40", (3, 32, 32), 10)
    widths = [layer.body[0].num_features for layer in plain if kinds([layer]) == ["Appended"]]
    assert widths == list(range(16, 16 + 36 * 12, 12))
    halved = counted("densenet100", (3, 32, 32), 10)
    widths = [layer.body[0].num_features for layer in halved if kinds([layer]) == ["Appended"]]
    assert [widths[0], widths[16], widths[32]] == [24, (24 + 192) // 2, (108 + 192) // 2]


def test_inverted_bottlenecks_end_without_an_activation():
    network = counted("mobilenet_v2", (3, 32, 32), 10)
    blocks = [layer.body if kinds([layer]) == ["Added"] else layer for layer in list(network)[3:20]]
    assert kinds(blocks[0]) == ["Conv2d", "BatchNorm2d", "ReLU6", "Conv2d", "BatchNorm2d"]
    assert all(
        kinds(block) == [*["Conv2d", "BatchNorm2d", "ReLU6"] * 2, "Conv2d", "BatchNorm2d"] for block in blocks[1:]
    )
    assert [layer.groups for layer in blocks[1] if isinstance(layer, torch.nn.Conv2d)] == [1, 96, 1]
    assert kinds(network).count("Added") == 10  # every block but the first of its stage


@torch.no_grad()
def test_attention_agrees_with_a_plain_loop():

    attention = Attention().double()
    tokens = torch.randn(2, 5, 192, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    asked, sought, values = attention.asked(tokens).split(192, dim=2)
    joined = torch.empty_like(tokens)
    for row in range(2):
        for head in range(3):
            part = slice(64 * head, 64 * head + 64)
            for token in range(5):
                scores = [float(asked[row, token, part] @ sought[row, other, part]) / 8 for other in range(5)]
                shares = torch.tensor(scores, dtype=torch.float64).softmax(0)
                joined[row, token, part] = sum(shares[other] * values[row, other, part] for other in range(5))
    assert torch.allclose(attention(tokens), attention.joined(joined), rtol=0, atol=1e-9)


def test_patches_become_tokens_in_reading_order():
    tokens = build("vit", shape=(1, 8, 12), classes=3)[0]
    picture = torch.randn(1, 1, 8, 12, generator=torch.Generator().manual_seed(0))
    filters = tokens.patches.weight.flatten(1)
    last = filters @ picture[0, 0, 4:8, 8:12].flatten() + tokens.patches.bias + tokens.places[0, 6]
    placed = tokens(picture)[0]
    assert torch.allclose(placed[6], last, atol=1e-5)  # float32
    assert torch.equal(placed[0], tokens.places[0, 0])


# ---- running ---------------------------------------------------------------------------------------------------------


@EVERY_MODEL
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_logits_have_their_shape(name, shape):
    with torch.no_grad():
        logits = build(name, shape=shape, classes=7).eval()(torch.zeros(2, *shape))
    assert logits.shape == (2, 7)
    assert logits.dtype == torch.float32
    assert torch.isfinite(logits).all()


@LIGHT
@pytest.mark.parametrize("shape", [(1, 8, 8), (2, 12, 20)])
def test_pictures_may_be_small_or_oblong(name, shape):
    with torch.no_grad():
        assert build(name, shape=shape, classes=3).eval()(torch.zeros(2, *shape)).shape == (2, 3)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_tables_go_to_affine_networks(name):
    assert build(name, shape=(13,), classes=3)(torch.zeros(5, 13)).shape == (5, 3)


def test_sides_that_patches_do_not_fill_are_refused():
    with pytest.raises(CalibrationInputError, match="must have sides that are multiples of 4 for vit, got"):
        build("vit", shape=(1, 28, 30), classes=10)


@EVERY_MODEL
def test_every_parameter_gets_a_gradient(name):
    shape = (1, 8, 8)
    network = build(name, shape=shape, classes=5)
    pictures = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    torch.nn.functional.cross_entropy(network(pictures), torch.arange(4)).backward()
    for where, parameter in network.named_parameters():
        assert parameter.grad is not None, where
        assert torch.isfinite(parameter.grad).all(), where
    moved = sum(bool(parameter.grad.any()) for parameter in network.parameters())
    assert moved / len(list(network.parameters())) > 0.95  # a bias before a normalisation may cancel to 0


@LIGHT
def test_a_few_steps_learn_a_few_pictures(name):
    network = build(name, shape=(1, 8, 8), classes=3, initialisation="glorot")
    pictures = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(6) % 3
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    losses = []
    for _ in range(6):
        loss = torch.nn.functional.cross_entropy(network(pictures), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


@EVERY_MODEL
def test_evaluation_does_not_depend_on_the_other_rows(name):
    network = build(name, shape=(1, 8, 8), classes=4, seed=3).double()
    rows = torch.randn(3, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.train()(3 * rows + 1)  # normalisations that have seen other rows
        network.eval()
        together = network(rows)
        alone = torch.cat([network(rows[index : index + 1]) for index in range(3)])
        among = network(torch.cat([100 * rows[:1], rows]))[1:]
    assert torch.allclose(together, alone, rtol=1e-10, atol=1e-10)
    assert torch.allclose(together, among, rtol=1e-10, atol=1e-10)


def test_training_mode_does_depend_on_them_where_batches_are_normalised():
    network = build("resnet18", shape=(1, 12, 12), classes=4).train()
    rows = torch.randn(4, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert not torch.allclose(network(rows)[:2], network(torch.cat([rows[:2], 9 * rows[2:]]))[:2], atol=1e-3)


# ---- seeds -----------------------------------------------------------------------------------------------------------


def drawn(network):
    return torch.cat([parameter.flatten() for parameter in network.state_dict().values()])


@LIGHT
def test_a_seed_fixes_every_weight_and_another_changes_them(name):
    first, same, other = (build(name, shape=(1, 12, 12), classes=4, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(drawn(first), drawn(same))
    assert not torch.equal(drawn(first), drawn(other))


@pytest.mark.parametrize("initialisation", networks.INITIALISATIONS)
def test_building_neither_uses_nor_moves_torchs_own_state(initialisation):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    network = build("cnn", shape=(1, 12, 12), classes=4, seed=5, initialisation=initialisation)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(
        drawn(network), drawn(build("cnn", shape=(1, 12, 12), classes=4, seed=5, initialisation=initialisation))
    )


def test_a_network_is_made_on_the_processor_whatever_the_default_device():
    with torch.device("meta"):
        network = build("mlp", shape=(4,), classes=3)
    assert {parameter.device.type for parameter in network.parameters()} == {"cpu"}


# ---- initialisations -------------------------------------------------------------------------------------------------


def affine(network):
    return [layer for layer in network.modules() if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]


@LIGHT
def test_glorot_keeps_weights_within_its_bound_and_biases_at_zero(name):
    network = build(name, shape=(1, 12, 12), classes=4, initialisation="glorot")
    for layer in affine(network):
        filters = layer.weight[0, 0].numel() if layer.weight.ndim == 4 else 1
        bound = (6 / (filters * (layer.weight.shape[0] + layer.weight.shape[1]))) ** 0.5
        largest = layer.weight.abs().max().item()
        assert largest <= bound * (1 + 1e-6)  # float32
        assert largest > 0.8 * bound or layer.weight.numel() < 30
        assert layer.bias is None or not layer.bias.any()


@LIGHT
def test_normal_weights_and_biases_have_mean_zero_and_deviation_one(name):
    network = build(name, shape=(1, 12, 12), classes=4, initialisation="normal")
    layers = affine(network)
    for values in ([layer.weight for layer in layers], [layer.bias for layer in layers if layer.bias is not None]):
        joined = torch.cat([value.detach().flatten() for value in values]).double()
        if len(joined) < 50:
            continue
        # five standard errors of a mean and of a deviation: a false alarm once in 1.7 million
        assert abs(joined.mean().item()) < 5 / len(joined) ** 0.5
        assert abs(joined.std().item() - 1) < 5 / (2 * len(joined)) ** 0.5


def test_normalisations_keep_their_own_start():
    for initialisation in networks.INITIALISATIONS:
        network = build("resnet18", shape=(1, 12, 12), classes=4, initialisation=initialisation)
        for layer in network.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                assert torch.all(layer.weight == 1)
                assert not layer.bias.any()


def test_default_is_torchs_own_start():
    ours = build("linear", shape=(4,), classes=3, seed=9)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        theirs = torch.nn.Linear(4, 3)
    assert torch.equal(ours[1].weight, theirs.weight)
    assert torch.equal(ours[1].bias, theirs.bias)
