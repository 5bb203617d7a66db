"""Data sets: names, splits, scaling, tables, texts and the bundled sets."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training import datasets
from calibrant.experiments.training.datasets.bags_of_words import vocabulary_of, words_of
from calibrant.experiments.training.datasets.cifar import (
    CIFAR10_CLASSES,
    CIFAR10_HIERARCHY,
    CIFAR100_CLASSES,
    SUPERCLASSES,
)
from calibrant.experiments.training.datasets.dataset import Dataset, Split, held_out, standardise, stratified_order
from calibrant.experiments.training.datasets.idx import FASHION_CLASSES, FASHION_HIERARCHY
from calibrant.experiments.training.datasets.source import LabelledRows, coded

labels_of = st.lists(st.integers(0, 4), min_size=1, max_size=80).map(lambda labels: np.array(labels, np.int64))
seeds = st.integers(0, 2**32 - 1)


# fmt: off
# the published number of the superclass of every class
COARSE = [
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7,
    6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10,
    16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16,
    12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
]
# fmt: on


def table(folder, rows=60, name="rows.csv", extra=""):
    """A CSV file whose first column is its row's number."""
    lines = [f"number,weight,label{',split' if extra else ''}"]
    parts = {0: "train", 1: "train", 2: "val", 3: "test"}
    for row in range(rows):
        tail = f",{parts[row % 4]}" if extra else ""
        lines.append(f"{row},{row % 7 + 0.5},{'abc'[row % 3]}{tail}")
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def numbers(data):
    """The row numbers of each part: scaling keeps the order, and a table has every number once."""
    parts = data.train, data.validation, data.test
    joined = np.concatenate([part.inputs[:, 0] for part in parts])
    assert len(np.unique(joined)) == len(joined)
    ranks = np.argsort(np.argsort(joined))
    return [chunk.tolist() for chunk in np.split(ranks, np.cumsum([len(part) for part in parts])[:-1])]


# ---- names -----------------------------------------------------------------------------------------------------------


def test_every_name_is_accepted_and_neighbours_are_suggested():
    for name in (*datasets.NAMES, *(f"{kind}:file" for kind in datasets.KINDS)):
        datasets.check_name(name)
    with pytest.raises(CalibrationInputError, match="did you mean 'fashion_mnist'"):
        datasets.check_name("fashion-mnist")


@pytest.mark.parametrize("name", ["csv", "csv:", "cifar10:here", "parquet:rows", "", None, 3])
def test_what_names_no_data_set_is_refused(name):
    with pytest.raises(CalibrationInputError, match="must name a data set"):
        datasets.check_name(name)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"validation": 1.0}, "validation: must be a share"),
        ({"validation": -0.1}, "validation: must be a share"),
        ({"validation": math.nan}, "validation: must be a share"),
        ({"seed": -1}, "seed: must be a whole number"),
        ({"seed": 0.5}, "seed: must be a whole number"),
        ({"limit": 2}, "limit: must be a whole number of at least 3"),
    ],
)
def test_options_out_of_range_are_refused(tmp_path, options, match):
    table(tmp_path)
    with pytest.raises(CalibrationInputError, match=match):
        datasets.load("csv:rows.csv", root=tmp_path, **options)


# ---- splits ----------------------------------------------------------------------------------------------------------


@given(labels=labels_of, share=st.floats(0, 0.99), seed=seeds)
def test_rows_are_held_out_once_and_none_is_lost(labels, share, seed):
    out, stay = held_out(labels, share, seed=seed, stage=0)
    assert sorted([*out, *stay]) == list(range(len(labels)))
    assert len(out) == (max(1, round(share * len(labels))) if share else 0)


@given(labels=labels_of, seed=seeds, share=st.floats(0, 1))
def test_every_first_part_has_the_classes_in_proportion(labels, seed, share):
    order = stratified_order(labels, seed=seed, stage=1)
    first = order[: round(share * len(labels))]
    sizes = Counter(labels.tolist())
    for group, size in sizes.items():
        wanted = len(first) * size / len(labels)
        assert abs((labels[first] == group).sum() - wanted) <= (1 + len(sizes)) / 2 + 1e-9  # wanted is rounded


@given(copies=st.integers(1, 20), classes=st.integers(1, 6), seed=seeds, share=st.floats(0, 1))
def test_equal_classes_stay_equal_to_within_one_row(copies, classes, seed, share):
    labels = np.tile(np.arange(classes), copies)
    first = stratified_order(labels, seed=seed, stage=1)[: round(share * len(labels))]
    counts = np.bincount(labels[first], minlength=classes)
    assert counts.max() - counts.min() <= 1


@given(labels=labels_of, seed=seeds, shares=st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)))
def test_a_larger_share_holds_out_what_a_smaller_one_does(labels, seed, shares):
    small, large = (held_out(labels, share, seed=seed, stage=2)[0] for share in sorted(shares))
    assert set(small) <= set(large)


def test_three_rows_of_four_and_two_are_two_and_one():
    labels = np.array([0, 0, 0, 0, 1, 1])
    for seed in range(20):
        first = stratified_order(labels, seed=seed, stage=0)[:3]
        assert np.bincount(labels[first]).tolist() == [2, 1]


def test_the_only_row_of_a_class_has_its_place_in_the_middle():
    # nine rows have the places 1/18, 3/18, 5/18, 7/18, 9/18 ...; the only one has 1/2
    labels = np.array([0] * 9 + [1])
    for seed in range(20):
        order = stratified_order(labels, seed=seed, stage=0)
        assert order.tolist().index(9) in (4, 5)


def test_a_split_is_the_same_on_every_machine_and_day():
    # written down once from this code: a change here changes every study's rows
    out, _ = held_out(np.arange(40) % 4, 0.2, seed=7, stage=1)
    assert out.tolist() == [4, 5, 9, 12, 26, 31, 34, 35]


def test_seeds_and_stages_draw_other_rows():
    labels = np.arange(400) % 4
    drawn = [held_out(labels, 0.2, seed=seed, stage=stage)[0].tolist() for seed, stage in ((0, 0), (1, 0), (0, 1))]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def test_every_row_is_as_likely_to_be_held_out():
    labels = np.array([0] * 12 + [1] * 8)
    counts = np.zeros(20)
    for seed in range(2000):
        counts[held_out(labels, 0.25, seed=seed, stage=0)[0]] += 1
    # each of 20 rows is drawn 500 of 2000 times, sd 19.4: 100 is 5.2 sd, a false alarm once in 3e5
    assert np.abs(counts - 500).max() < 100


def test_parts_of_a_loaded_set_share_no_row(tmp_path):
    table(tmp_path)
    data = datasets.load("csv:rows.csv", root=tmp_path, validation=0.25, seed=3)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [36, 12, 12]
    assert sorted(row for part in numbers(data) for row in part) == list(range(60))
    assert all(part == sorted(part) for part in numbers(data))
    assert np.bincount(data.validation.labels).tolist() == [4, 4, 4]


def test_the_test_rows_do_not_depend_on_the_seed_and_the_validation_rows_do(tmp_path):
    table(tmp_path)
    first, second = (numbers(datasets.load("csv:rows.csv", root=tmp_path, seed=seed)) for seed in (0, 1))
    assert first[2] == second[2]
    assert first[1] != second[1]


def test_labels_stay_with_their_rows(tmp_path):
    table(tmp_path)
    data = datasets.load("csv:rows.csv", root=tmp_path, seed=2)
    for rows, part in zip(numbers(data), (data.train, data.validation, data.test), strict=True):
        assert part.labels.tolist() == [row % 3 for row in rows]


def test_the_same_seed_gives_the_same_bits(tmp_path):
    table(tmp_path)
    first, second = (datasets.load("csv:rows.csv", root=tmp_path, seed=5, limit=20) for _ in range(2))
    for part in ("train", "validation", "test"):
        assert getattr(first, part).inputs.tobytes() == getattr(second, part).inputs.tobytes()
        assert getattr(first, part).labels.tobytes() == getattr(second, part).labels.tobytes()


def test_a_limit_keeps_training_rows_alone_and_in_proportion(tmp_path):
    table(tmp_path)
    whole = datasets.load("csv:rows.csv", root=tmp_path)
    small = datasets.load("csv:rows.csv", root=tmp_path, limit=9)
    assert np.bincount(small.train.labels).tolist() == [3, 3, 3]
    assert np.array_equal(small.validation.labels, whole.validation.labels)
    assert np.array_equal(small.test.labels, whole.test.labels)
    assert len(datasets.load("csv:rows.csv", root=tmp_path, limit=10_000).train) == len(whole.train)


def test_no_validation_rows_may_be_asked_for(tmp_path):
    table(tmp_path)
    data = datasets.load("csv:rows.csv", root=tmp_path, validation=0)
    assert len(data.validation) == 0
    assert data.validation.inputs.shape == (0, 2)
    assert len(data.train) == 48


def test_holding_out_every_row_is_refused(tmp_path):
    (tmp_path / "two.csv").write_text("a,label\n1,x\n2,y\n", encoding="utf-8")
    with pytest.raises(CalibrationInputError, match="train: must have rows"):
        datasets.load("csv:two.csv", root=tmp_path)


# ---- the data set ----------------------------------------------------------------------------------------------------


def rows_of(labels):
    return Split(np.zeros((len(labels), 2), np.float32), np.array(labels, np.int64))


def test_a_split_holds_float32_in_c_order_and_int64():
    with pytest.raises(CalibrationInputError, match="inputs: must be float32"):
        Split(np.zeros((2, 2)), np.zeros(2, np.int64))
    with pytest.raises(CalibrationInputError, match="inputs: must be float32 in C order"):
        Split(np.zeros((3, 2), np.float32).T, np.zeros(2, np.int64))
    with pytest.raises(CalibrationInputError, match="labels: must be 2 numbers"):
        Split(np.zeros((2, 2), np.float32), np.zeros(3, np.int64))


def test_a_data_set_refuses_labels_beyond_its_classes():
    good, bad = rows_of([0, 1]), rows_of([0, 2])
    with pytest.raises(CalibrationInputError, match=r"must have labels in 0\.\.1, got 2 at row 1"):
        Dataset("pets", good, good, bad, ("cat", "dog"))


@pytest.mark.parametrize("groups", [{"a": ("cat",)}, {"a": ("cat", "dog"), "b": ("dog",)}, {"a": ("cat", "cow")}])
def test_a_level_of_the_hierarchy_must_hold_every_class_once(groups):
    rows = rows_of([0, 1])
    with pytest.raises(CalibrationInputError, match="must hold every class once"):
        Dataset("pets", rows, rows, rows, ("cat", "dog"), {"kind": groups})


@pytest.mark.parametrize(
    ("classes", "hierarchy"),
    [
        (FASHION_CLASSES, FASHION_HIERARCHY),
        (CIFAR10_CLASSES, CIFAR10_HIERARCHY),
        (CIFAR100_CLASSES, {"superclass": SUPERCLASSES}),
    ],
)
def test_published_hierarchies_hold_every_class_once_and_make_lenses(classes, hierarchy):
    rows = rows_of(range(len(classes)))
    Dataset("published", rows, rows, rows, classes, hierarchy)
    forecasts = cal.Predictions.from_probs(
        np.arange(len(classes)), np.full((len(classes), len(classes)), 1 / len(classes)), classes=list(classes)
    )
    for groups in hierarchy.values():
        # one leaf, where every class is forecast as often as it is true: so is every group
        error = cal.BinnedError(lens=cal.Groups(groups), binning=cal.KDTree())(forecasts)
        assert error.value == pytest.approx(0, abs=1e-12)


def test_cifar_100_has_twenty_superclasses_of_five_in_the_published_numbers():
    assert [len(group) for group in SUPERCLASSES.values()] == [5] * 20
    assert len(CIFAR100_CLASSES) == 100
    assert (CIFAR100_CLASSES[0], CIFAR100_CLASSES[1], CIFAR100_CLASSES[47], CIFAR100_CLASSES[99]) == (
        "apple",
        "aquarium_fish",
        "maple_tree",
        "worm",
    )
    coarse = [next(i for i, group in enumerate(SUPERCLASSES.values()) if name in group) for name in CIFAR100_CLASSES]
    assert coarse == COARSE


# ---- scaling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 3), (7, 2, 4, 5)])
def test_scaling_agrees_with_a_plain_loop(kind, shape):
    inputs = np.random.default_rng(0).integers(0, 256, shape).astype(kind)
    scaled = standardise(inputs)(inputs)
    assert scaled.dtype == np.float32
    for channel in range(shape[1]):
        values = [float(value) for value in inputs[:, channel].ravel()]
        mean = math.fsum(values) / len(values)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
        wanted = [(value - mean) / deviation for value in values]
        assert scaled[:, channel].ravel().tolist() == pytest.approx(wanted, rel=0, abs=1e-6)  # float32


def test_a_column_that_never_changes_becomes_zero():
    inputs = np.array([[3.0, 1.0], [3.0, 2.0]])
    assert standardise(inputs)(inputs).tolist() == [[0.0, -1.0], [0.0, 1.0]]
    black = np.zeros((2, 1, 2, 2), np.uint8)
    assert not standardise(black)(black).any()


def test_scaling_in_blocks_misses_no_row():
    inputs = np.arange(10_000.0)[:, None]
    scaled = standardise(inputs)(inputs)[:, 0]
    assert np.all(np.diff(scaled) > 0)


def test_inputs_are_scaled_by_the_training_rows_alone(tmp_path):
    table(tmp_path)
    data = datasets.load("csv:rows.csv", root=tmp_path, limit=12)
    assert data.train.inputs.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)  # float32
    assert data.train.inputs.std(axis=0) == pytest.approx([1, 1], abs=1e-6)
    assert abs(data.test.inputs.mean(axis=0)).max() > 1e-3


# ---- labels ----------------------------------------------------------------------------------------------------------


def test_whole_floats_are_numbers_of_classes():
    codes, classes = coded(np.array([2.0, 0.0, 2.0]), "y")
    assert (codes.tolist(), classes) == ([1, 0, 1], ("0", "2"))


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.array([0.5, 1.0]), "must be names or whole numbers, got 0.5 at row 0"),
        (np.array([1.0, np.nan]), "must be names or whole numbers, got nan at row 1"),
        (np.array([1, 1]), "must tell at least two classes apart"),
        (np.zeros((2, 2)), "must be one name or whole number a row"),
    ],
)
def test_labels_that_are_no_classes_are_refused(labels, match):
    with pytest.raises(CalibrationInputError, match=match):
        coded(labels, "y")


def test_inputs_and_labels_must_be_as_many():
    with pytest.raises(CalibrationInputError, match="must be as many, got 2 and 3"):
        LabelledRows(np.zeros(2), np.zeros(3))


# ---- tables ----------------------------------------------------------------------------------------------------------


def test_a_split_column_assigns_rows(tmp_path):
    table(tmp_path, rows=40, extra="split")
    data = datasets.load("csv:rows.csv", root=tmp_path, validation=0.5)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [20, 10, 10]
    train = [row for row in range(40) if row % 4 < 2]
    assert numbers(data) == [train, list(range(2, 40, 4)), list(range(3, 40, 4))]


def test_another_label_column_follows_a_number_sign(tmp_path):
    (tmp_path / "flowers.csv").write_text("length,species\n" + "1,rosa\n2,iris\n" * 10, encoding="utf-8")
    data = datasets.load("csv:flowers.csv#species", root=tmp_path)
    assert data.classes == ("iris", "rosa")
    assert data.shape == (1,)


def test_a_number_sign_may_be_part_of_a_file_name(tmp_path):
    table(tmp_path, name="rows#1.csv")
    assert len(datasets.load("csv:rows#1.csv", root=tmp_path).classes) == 3


def test_an_absolute_path_needs_no_root(tmp_path):
    path = table(tmp_path)
    assert len(datasets.load(f"csv:{path}").test) == 12


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("a,b\n1,2\n3,4\n", r"must have one column of labels \(label, labels, y, target\), got none"),
        ("a,label,y\n1,2,3\n", "must have one column of labels .* got label and y"),
        ("label\nx\ny\n", "must have columns beside the labels"),
        ("a,label\nred,x\nblue,y\n", "column 'a' must have a number in every row, got 'red' at line 2"),
        ("a,label\n1,x\n,y\n", "column 'a' must have a number in every row"),
        ("a,label\n1,x\n2,x\n", "must tell at least two classes apart"),
        ("a,label,split\n1,x,train\n2,y,dev\n", "must say train, validation or test, got 'dev' at row 1"),
        ("a,label,split\n1,x,test\n2,y,test\n", "must leave rows to train on"),
        ("a,label\n1\n", "must have 2 values in every row"),
        ("", "must not be empty"),
    ],
)
def test_tables_that_leave_doubt_are_refused(tmp_path, content, match):
    (tmp_path / "rows.csv").write_text(content, encoding="utf-8")
    with pytest.raises(CalibrationInputError, match=match):
        datasets.load("csv:rows.csv", root=tmp_path)


def test_a_label_column_that_is_not_there_is_named(tmp_path):
    table(tmp_path)
    with pytest.raises(CalibrationInputError, match="must have the label column 'lable'; did you mean 'label'"):
        datasets.load("csv:rows.csv#lable", root=tmp_path)


@pytest.mark.parametrize("name", ["csv:none.csv", "npz:none.npz", "text:none.csv", "counts:none.csv", "folder:none"])
def test_files_that_are_not_there_are_named(tmp_path, name):
    with pytest.raises(CalibrationInputError, match=r"none(\.csv|\.npz)?: must be a"):
        datasets.load(name, root=tmp_path)


# ---- arrays ----------------------------------------------------------------------------------------------------------


def saved(folder, **arrays):
    np.savez(folder / "rows.npz", **arrays)
    return "npz:rows.npz"


def test_one_pair_of_arrays_is_split_by_the_seed(tmp_path):
    name = saved(tmp_path, X=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2)
    data = datasets.load(name, root=tmp_path)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [14, 2, 4]


def test_arrays_of_parts_are_taken_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    name = saved(
        tmp_path,
        train_images=rng.integers(0, 256, (12, 28, 28, 3), dtype=np.uint8),
        train_labels=np.arange(12)[:, None] % 3,
        val_images=rng.integers(0, 256, (6, 28, 28, 3), dtype=np.uint8),
        val_labels=np.arange(6)[:, None] % 3,
        test_images=rng.integers(0, 256, (9, 28, 28, 3), dtype=np.uint8),
        test_labels=np.arange(9)[:, None] % 3,
    )
    data = datasets.load(name, root=tmp_path)
    assert [part.inputs.shape for part in (data.train, data.validation, data.test)] == [
        (12, 3, 28, 28),
        (6, 3, 28, 28),
        (9, 3, 28, 28),
    ]
    assert data.test.labels.tolist() == [0, 1, 2] * 3


def test_grey_pictures_get_a_channel_and_channels_first_stay(tmp_path):
    grey = saved(tmp_path, x_train=np.ones((8, 5, 6)), y_train=[0, 1] * 4, x_test=np.ones((4, 5, 6)), y_test=[0, 1] * 2)
    assert datasets.load(grey, root=tmp_path).shape == (1, 5, 6)
    first = saved(tmp_path, inputs=np.ones((20, 3, 5, 3)), labels=[0, 1] * 10)
    assert datasets.load(first, root=tmp_path).shape == (3, 5, 3)


def test_labels_mean_one_class_in_all_parts(tmp_path):
    name = saved(
        tmp_path,
        x_train=np.ones((8, 2)),
        y_train=["b", "c"] * 4,
        x_test=np.ones((2, 2)),
        y_test=["c", "a"],
    )
    data = datasets.load(name, root=tmp_path)
    assert data.classes == ("a", "b", "c")
    assert data.test.labels.tolist() == [2, 0]


def test_an_array_of_classes_names_them(tmp_path):
    name = saved(tmp_path, x=np.ones((20, 2)), y=np.arange(20) % 2, classes=["no", "yes", "maybe"])
    assert datasets.load(name, root=tmp_path).classes == ("no", "yes", "maybe")


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"x": np.full((4, 2), np.nan), "y": [0, 1, 0, 1]}, "must hold finite numbers, got nan at row 0"),
        ({"x": np.ones(4), "y": [0, 1, 0, 1]}, "must hold rows of numbers or pictures"),
        ({"x": np.ones((4, 2)), "y": [0, 1, 0]}, "must be as many, got 4 and 3"),
        ({"x": np.array([["a"], ["b"]]), "y": [0, 1]}, "must hold rows of numbers or pictures"),
        ({"y": [0, 1]}, "must hold inputs"),
        ({"x_train": np.ones((4, 2)), "y_test": [0, 1]}, "must hold labels beside 'x_train'"),
        ({"x": np.ones((2, 2)), "y": [0, 7], "classes": ["a", "b"]}, r"must have labels in 0\.\.1, got 7 at row 1"),
    ],
)
def test_arrays_that_leave_doubt_are_refused(tmp_path, arrays, match):
    with pytest.raises(CalibrationInputError, match=match):
        datasets.load(saved(tmp_path, **arrays), root=tmp_path)


# ---- texts -----------------------------------------------------------------------------------------------------------

TEXTS = ["The film was good.", "A bad, bad film!", "good story; good end", "the story was bad", "unique film"]


def tf_idf(train, text):
    """The weights of a text by plain loops."""
    counted = Counter(word for other in train for word in set(words_of(other)))
    known = sorted(word for word, count in counted.items() if count >= 2)
    weights = [words_of(text).count(word) * (1 + math.log((1 + len(train)) / (1 + counted[word]))) for word in known]
    length = math.sqrt(math.fsum(weight**2 for weight in weights))
    return [weight / length if length else 0.0 for weight in weights]


def test_tf_idf_agrees_with_a_plain_loop():
    vocabulary = vocabulary_of(TEXTS)
    texts = [*TEXTS, "", "nothing known here", "film FILM film bad"]
    for row, text in zip(vocabulary.tf_idf(texts), texts, strict=True):
        assert row.tolist() == pytest.approx(tf_idf(TEXTS, text), rel=0, abs=1e-6)  # float32


def test_tf_idf_agrees_with_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    theirs = text.TfidfVectorizer(analyzer=words_of, min_df=2).fit(TEXTS)
    ours = vocabulary_of(TEXTS)
    assert ours.words == tuple(theirs.get_feature_names_out())
    assert np.abs(ours.tf_idf(TEXTS) - theirs.transform(TEXTS).toarray()).max() < 1e-6  # float32


def test_words_are_lower_case_runs_of_letters_and_digits():
    assert words_of("ﬁne STRASSE straße x_y 3.14 ’tis rock’n’roll") == [
        "fine",
        "strasse",
        "strasse",
        "x",
        "y",
        "3",
        "14",
        "tis",
        "rock'n'roll",
    ]
    assert words_of(" ... ") == []


def test_the_vocabulary_keeps_the_commonest_words_and_ties_go_by_the_alphabet():
    texts = ["b a c", "c b a", "c d", "d"]
    assert vocabulary_of(texts, most=3).words == ("a", "b", "c")
    assert vocabulary_of(texts, most=1).words == ("c",)
    assert vocabulary_of(texts, least_texts=3).words == ("c",)


def written(folder, rows, name="texts.csv", header="text,label"):
    separator = "\t" if name.endswith(".tsv") else ","
    lines = [header.replace(",", separator), *(separator.join(row) for row in rows)]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", ["texts.csv", "texts.tsv"])
def test_texts_become_bags_of_words(tmp_path, name):
    written(tmp_path, [("good film", "good"), ("bad film", "bad")] * 20, name)
    data = datasets.load(f"counts:{name}", root=tmp_path)
    assert data.classes == ("bad", "good")
    assert data.shape == (3,)
    assert data.test.inputs[data.test.labels == 0].tolist() == [[1.0, 1.0, 0.0]] * 4
    weighted = datasets.load(f"text:{name}", root=tmp_path)
    assert np.square(weighted.train.inputs).sum(axis=1) == pytest.approx(1, abs=1e-6)  # float32


def test_words_of_the_test_rows_alone_stay_unknown(tmp_path):
    rows = [("good film", "1", "train"), ("bad film", "0", "train")] * 5 + [("secret secret film", "1", "test")] * 3
    written(tmp_path, rows, header="text,label,split")
    data = datasets.load("counts:texts.csv", root=tmp_path)
    assert data.shape == (3,)
    assert data.test.inputs.tolist() == [[0.0, 1.0, 0.0]] * 3


def test_texts_that_look_like_numbers_are_texts(tmp_path):
    written(tmp_path, [("007 1e3", "a"), ("12", "b"), ("007 12", "a"), ("1e3", "b")] * 10)
    assert datasets.load("counts:texts.csv", root=tmp_path).shape == (3,)


def test_texts_without_a_common_word_are_refused(tmp_path):
    written(tmp_path, [(f"word{row}", "ab"[row % 2]) for row in range(20)])
    with pytest.raises(CalibrationInputError, match="texts: must have words that stand in 2 training texts"):
        datasets.load("text:texts.csv", root=tmp_path)


def test_a_text_file_without_texts_is_refused(tmp_path):
    written(tmp_path, [("a", "b")], header="words,label")
    with pytest.raises(CalibrationInputError, match="must have the column 'text', got words, label"):
        datasets.load("text:texts.csv", root=tmp_path)


# ---- bundled ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows", "shape", "classes"),
    [
        ("digits", 1797, (1, 8, 8), 10),
        ("iris", 150, (4,), 3),
        ("wine", 178, (13,), 3),
        ("breast_cancer", 569, (30,), 2),
    ],
)
def test_bundled_sets_have_their_published_sizes(name, rows, shape, classes):
    pytest.importorskip("sklearn")
    data = datasets.load(name)
    assert sum(map(len, (data.train, data.validation, data.test))) == rows
    assert (data.shape, len(data.classes)) == (shape, classes)
    assert len(data.test) == round(rows / 5)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(CalibrationInputError, match=r"iris: comes with scikit-learn.*calibrant\[sklearn\]"):
        datasets.load("iris")
