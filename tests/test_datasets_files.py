"""The files of data sets: IDX, CIFAR, folders of pictures; whole, missing, cut short, false and hostile ones."""

import gzip
import io
import os
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training import datasets
from calibrant.experiments.training.datasets import bounded, cifar
from calibrant.experiments.training.datasets.idx import PACKAGED, read_idx
from calibrant.experiments.training.datasets.pickled import Recorded, array_of, read_pickle
from calibrant.experiments.training.datasets.picture_folders import read_pictures

NUMPY_ONLY = """
import sys
for name in ("torch", "scipy", "sklearn", "PIL", "pandas", "pyarrow", "pydantic", "yaml", "click"):
    sys.modules[name] = None
from calibrant.experiments.training import datasets, networks
print(len(datasets.NAMES), len(networks.NAMES))
"""


def test_data_sets_and_the_names_of_models_need_numpy_alone():
    done = subprocess.run([sys.executable, "-c", NUMPY_ONLY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8", "16"]


# ---- IDX -------------------------------------------------------------------------------------------------------------


def idx(array, kind=8):
    header = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.tobytes()


def write_mnist(folder, *, train=40, test=20, packed=True):
    """Pictures whose pixels are all ten times their label."""
    for part, count in (("train", train), ("t10k", test)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        pictures = np.broadcast_to(10 * labels[:, None, None], (count, 28, 28)).astype(np.uint8)
        for what, array in (("images-idx3", pictures), ("labels-idx1", labels)):
            content = idx(array)
            name = f"{part}-{what}-ubyte"
            (folder / (name + ".gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    return folder


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_files_are_read_packed_or_not(tmp_path, name, packed):
    data = datasets.load(name, root=write_mnist(tmp_path, packed=packed), validation=0.25)
    assert [part.inputs.shape for part in (data.train, data.validation, data.test)] == [
        (30, 1, 28, 28),
        (10, 1, 28, 28),
        (20, 1, 28, 28),
    ]
    assert data.test.labels.tolist() == list(range(10)) * 2
    # labels 0..9 equally often: mean 45, sd sqrt(825)
    assert data.test.inputs[3, 0, 5, 5] == pytest.approx((30 - 45) / 825**0.5, abs=1e-6)  # float32


@given(array=st.lists(st.integers(0, 255), max_size=30), dimensions=st.integers(1, 4))
def test_an_array_comes_back_from_its_file(tmp_path_factory, array, dimensions):
    values = np.array(array, np.uint8).reshape((len(array), *[1] * (dimensions - 1)))
    path = tmp_path_factory.mktemp("idx") / "values"
    path.write_bytes(idx(values))
    assert np.array_equal(read_idx(path), values)


def test_a_missing_set_says_how_to_get_it(tmp_path):
    with pytest.raises(CalibrationInputError, match=r"fashion_mnist: needs the file train-images-idx3-ubyte\.gz or"):
        datasets.load("fashion_mnist", root=tmp_path)
    with pytest.raises(CalibrationInputError, match="apt-get install dataset-fashion-mnist"):
        datasets.load("fashion_mnist", root=tmp_path)
    with pytest.raises(CalibrationInputError, match="mnist: needs the folder of its files, got none; pass root=FOLDER"):
        datasets.load("mnist")
    with pytest.raises(CalibrationInputError, match=r"cifar-10-binary.tar.gz or cifar-10-python.tar.gz"):
        datasets.load("cifar10")
    with pytest.raises(CalibrationInputError, match=r"cifar100: needs cifar-100-binary.tar.gz or .*got none in"):
        datasets.load("cifar100", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "must go on for 4 more bytes, got 0"),
        (b"\0\0\x08", "must go on for 4 more bytes, got 3"),
        (b"\0\0\x0d\x01\0\0\0\1\0\0\0\0", "must be an IDX file of unsigned bytes, got 00 00 0d 01"),
        (b"\0\0\x08\0", "must be an IDX file of unsigned bytes"),
        (b"\0\0\x08\x09" + bytes(36), "must be an IDX file of unsigned bytes"),
        (b"\x89PNG....", "must be an IDX file of unsigned bytes"),
        (b"\0\0\x08\x01\0\0", "must go on for 4 more bytes, got 2"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "must go on for 5 more bytes, got 3; it is cut short"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "must end where its header says, got more bytes"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "must hold a reasonable size"),
        (b"\0\0\x08\x01\0\xff\0\0", "must hold the 16,711,680 bytes it announces, got 8"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_false_idx_files_are_refused(tmp_path, content, match, packed):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(CalibrationInputError, match=match.replace("got 8", r"got \d")):
        read_idx(path)


def test_a_gzip_file_that_is_cut_or_changed_is_refused(tmp_path):
    packed = gzip.compress(idx(np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8)))
    path = tmp_path / "file.gz"
    for content in (packed[:2500], packed[:-3], packed[:-8] + b"\0\0\0\0" + packed[-4:], packed[:20] + b"x" * 900):
        path.write_bytes(content)
        with pytest.raises(CalibrationInputError, match=r"must be a whole file|must go on for|it announces"):
            read_idx(path)


def test_a_gzip_bomb_is_left_packed(tmp_path, monkeypatch):
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x05hello" + bytes(64 << 20)))
    read = []
    plain = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: read.append(size) or plain(self, size))
    with pytest.raises(CalibrationInputError, match="must end where its header says"):
        read_idx(bomb)
    assert all(0 < size <= 1 << 20 for size in read)
    assert sum(read) < 100


def test_bytes_are_asked_for_in_pieces_however_many_are_announced():
    class Recording(io.BytesIO):
        asked = 0

        def read(self, size=-1):
            self.asked = max(self.asked, size)
            return super().read(size)

    file = Recording(b"abc")
    with pytest.raises(CalibrationInputError, match="must go on for 8,589,934,592 more bytes, got 3"):
        bounded.exactly(file, 8 << 30, Path("file"))
    assert file.asked == 1 << 20
    assert bounded.exactly(Recording(bytes(3 << 20)), 3 << 20, Path("file")) == bytes(3 << 20)


def test_the_largest_honest_ratio_of_gzip_is_within_the_bound():
    packed = gzip.compress(bytes(1 << 22), 9)
    assert 900 < (1 << 22) / len(packed) < bounded.DEFLATE_RATIO


@pytest.mark.parametrize(
    ("name", "array", "match"),
    [
        ("train-labels-idx1-ubyte", np.full(40, 10, np.uint8), r"must have labels in 0\.\.9, got 10 at row 0"),
        ("train-labels-idx1-ubyte", np.zeros(39, np.uint8), "must hold 40 labels, one a picture"),
        ("train-images-idx3-ubyte", np.zeros((40, 27, 28), np.uint8), "must hold pictures of 28 x 28"),
        ("t10k-images-idx3-ubyte", np.zeros((0, 28, 28), np.uint8), "must hold pictures of 28 x 28"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path, name, array, match):
    write_mnist(tmp_path, packed=False)
    (tmp_path / name).write_bytes(idx(array))
    with pytest.raises(CalibrationInputError, match=match):
        datasets.load("mnist", root=tmp_path)


@pytest.mark.skipif(not PACKAGED.is_dir(), reason="needs the package dataset-fashion-mnist")
def test_the_packaged_fashion_mnist_has_its_published_rows():
    data = datasets.load("fashion_mnist", seed=1)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [54_000, 6_000, 10_000]
    assert np.bincount(data.train.labels).tolist() == [5400] * 10
    assert np.bincount(data.validation.labels).tolist() == [600] * 10
    assert data.test.labels[:5].tolist() == [9, 2, 1, 1, 6]
    assert abs(data.train.inputs.mean(dtype=np.float64)) < 1e-6  # float32
    assert data.train.inputs.std(dtype=np.float64) == pytest.approx(1, abs=1e-6)  # float32


# ---- CIFAR -----------------------------------------------------------------------------------------------------------


def string(text):
    """Text as Python 2 pickled it: an opcode, a length, the bytes."""
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text


def small(number):
    return b"K" + bytes([number]) if number < 256 else b"J" + struct.pack("<i", number)


def pickled_array(array):
    """An array as NumPy on Python 2 pickled it by protocol 2."""
    shape = b"(" + b"".join(map(small, array.shape)) + b"t"
    call = b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87R"
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return call + b"(K\x01" + shape + kind + b"\x89" + string(array.tobytes()) + b"tb"


def pickled_batch(pixels, **labels):
    items = [string(b"data") + pickled_array(pixels)]
    for key, values in labels.items():
        items.append(string(key.encode()) + b"](" + b"".join(map(small, values)) + b"e")
    return b"\x80\x02}q\x00(" + b"".join(items) + b"u."


def pixels_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)


def cifar_files(name, version):
    """The files of a small set by their names: ten rows each."""
    classes = 10 if name == "cifar10" else 100
    ending = ".bin" if version == "binary" else ""
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"] if classes == 10 else ["train", "test"]
    files = {}
    for seed, stem in enumerate(names):
        pixels, labels = pixels_of(10, seed), [(7 * row + seed) % classes for row in range(10)]
        if version == "python":
            keys = {"labels": labels} if classes == 10 else {"coarse_labels": [0] * 10, "fine_labels": labels}
            files[stem] = pickled_batch(pixels, **keys)
        else:
            columns = [labels] if classes == 10 else [[0] * 10, labels]
            files[stem + ending] = np.column_stack([*columns, pixels]).astype(np.uint8).tobytes()
    return files


FOLDERS = {
    ("cifar10", "binary"): "cifar-10-batches-bin",
    ("cifar10", "python"): "cifar-10-batches-py",
    ("cifar100", "binary"): "cifar-100-binary",
    ("cifar100", "python"): "cifar-100-python",
}
EVERY_VERSION = pytest.mark.parametrize(("name", "version"), FOLDERS)


def write_cifar(root, name, version):
    folder = root / FOLDERS[name, version]
    folder.mkdir()
    for file, content in cifar_files(name, version).items():
        (folder / file).write_bytes(content)
    return folder


def write_archive(root, name, version, files=None):
    stem = "cifar-10" if name == "cifar10" else "cifar-100"
    path = root / f"{stem}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, content in (cifar_files(name, version) if files is None else files).items():
            member = tarfile.TarInfo(f"{FOLDERS[name, version]}/{file}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@EVERY_VERSION
@pytest.mark.parametrize("form", ["folder", "files", "archive"])
def test_both_versions_are_read_unpacked_or_not(tmp_path, name, version, form):
    if form == "archive":
        root = write_archive(tmp_path, name, version).parent
    else:
        folder = write_cifar(tmp_path, name, version)
        root = folder if form == "files" else tmp_path
    data = datasets.load(name, root=root, validation=0)
    batches = 5 if name == "cifar10" else 1
    assert data.train.inputs.shape == (10 * batches, 3, 32, 32)
    classes = 10 if name == "cifar10" else 100
    assert data.test.labels.tolist() == [(7 * row + batches) % classes for row in range(10)]
    # pixels undone from their scaling: the test picture's second channel, third row, fourth column
    raw = np.concatenate([pixels_of(10, seed) for seed in range(batches)]).reshape(-1, 3, 32, 32)
    mean, deviation = raw[:, 1].mean(), raw[:, 1].std()
    wanted = pixels_of(10, batches).reshape(-1, 3, 32, 32)[0, 1, 2, 3]
    assert data.test.inputs[0, 1, 2, 3] * deviation + mean == pytest.approx(int(wanted), abs=1e-3)  # float32 times 74


def test_both_versions_hold_the_same_rows(tmp_path):
    for name in ("cifar10", "cifar100"):
        loaded = []
        for version in ("binary", "python"):
            root = tmp_path / f"{name}-{version}"
            root.mkdir()
            write_cifar(root, name, version)
            loaded.append(datasets.load(name, root=root))
        assert loaded[0].train.inputs.tobytes() == loaded[1].train.inputs.tobytes()
        assert loaded[0].hierarchy == loaded[1].hierarchy


def test_a_binary_file_must_be_whole_records(tmp_path):
    folder = write_cifar(tmp_path, "cifar10", "binary")
    (folder / "data_batch_3.bin").write_bytes(bytes(3073 * 2 - 1))
    with pytest.raises(CalibrationInputError, match=r"data_batch_3\.bin: must be whole records of 3073 bytes"):
        datasets.load("cifar10", root=tmp_path)
    (folder / "data_batch_3.bin").write_bytes(b"\x0a" + bytes(3072))
    with pytest.raises(CalibrationInputError, match=r"data_batch_3.bin: must have labels in 0\.\.9, got 10"):
        datasets.load("cifar10", root=tmp_path)


def test_a_file_beyond_the_bound_is_refused_unread(tmp_path, monkeypatch):
    write_cifar(tmp_path, "cifar100", "binary")
    monkeypatch.setattr(cifar, "_MOST_BYTES", 1000)
    with pytest.raises(CalibrationInputError, match="must hold files of a reasonable size, got 30,740 bytes"):
        datasets.load("cifar100", root=tmp_path)


def test_an_archive_must_be_whole_and_hold_every_file(tmp_path):
    files = cifar_files("cifar100", "python")
    path = write_archive(tmp_path, "cifar100", "python", {"train": files["train"]})
    with pytest.raises(CalibrationInputError, match="must hold cifar-100-python/test, got none"):
        datasets.load("cifar100", root=tmp_path)
    path = write_archive(tmp_path, "cifar100", "python")
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(CalibrationInputError, match=r"must be a whole archive|must go on for"):
        datasets.load("cifar100", root=tmp_path)
    path.write_bytes(b"no archive at all")
    with pytest.raises(CalibrationInputError, match="must be a whole archive"):
        datasets.load("cifar100", root=tmp_path)


def test_an_archive_that_announces_too_much_is_refused(tmp_path):
    path = tmp_path / "cifar-100-binary.tar.gz"
    member = tarfile.TarInfo("cifar-100-binary/train.bin")
    member.size = 40 << 30
    path.write_bytes(gzip.compress(member.tobuf()))
    with pytest.raises(CalibrationInputError, match="must hold files of a reasonable size, got 42,949,672,960 bytes"):
        datasets.load("cifar100", root=tmp_path)


def test_links_in_an_archive_are_not_followed(tmp_path):
    path = tmp_path / "cifar-100-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("cifar-100-binary/train.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(CalibrationInputError, match=r"must hold cifar-100-binary/train\.bin, got none"):
        datasets.load("cifar100", root=tmp_path)


# ---- pickles ---------------------------------------------------------------------------------------------------------


def test_plain_values_come_back():
    import pickle

    value = {"a": [1, 300, 70_000, -5, 2**40], "b": (None, True, False), "c": ((1,), (1, 2), (1, 2, 3), ()), "d": {}}
    for protocol in (0, 1, 2):
        assert read_pickle(pickle.dumps(value, protocol=protocol), "values") == value


def test_an_array_of_python_2_comes_back():
    array = pixels_of(3)[:, :5]
    assert np.array_equal(array_of(read_pickle(b"\x80\x02" + pickled_array(array) + b".", "data"), "data"), array)


def test_calls_in_a_pickle_are_recorded_and_never_made(tmp_path):
    import pickle

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    for protocol in (0, 1, 2):
        read = read_pickle(pickle.dumps(Hostile(), protocol=protocol), "batch")
        assert isinstance(read, Recorded)
        assert read.name.endswith(" mkdir")
    folder = write_cifar(tmp_path, "cifar100", "python")
    (folder / "train").write_bytes(pickle.dumps({"data": Hostile(), "fine_labels": [1]}, protocol=2))
    with pytest.raises(CalibrationInputError, match="train: must hold data and fine_labels"):
        datasets.load("cifar100", root=tmp_path)
    items = string(b"data") + b"cposix\nmkdir\nU\x04made\x85R" + string(b"fine_labels") + b"](K\x01e"
    (folder / "train").write_bytes(b"\x80\x02}(" + items + b"u.")
    with pytest.raises(CalibrationInputError, match="train: must be an array of unsigned bytes, got posix mkdir"):
        datasets.load("cifar100", root=tmp_path)
    assert not (tmp_path / "made").exists()
    assert not Path("made").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b".",
        b"\x80\x02",
        b"\x80\x02K\x01",
        b"\x80\x02]K\x01",
        b"\xffgarbage",
        b"\x80\x02T\xff\xff\xff\x7fshort.",
        b"\x80\x02R.",
        b"\x80\x02K\x01K\x02R.",
        b"\x80\x02K\x01K\x02b.",
        b"\x80\x02K\x01K\x02a.",
        b"\x80\x02K\x01K\x02K\x03s.",
        b"\x80\x02}(K\x01u.",
        b"\x80\x02}]K\x01s.",
        b"\x80\x02e.",
        b"\x80\x02h\x07.",
        b"\x80\x02\x87.",
        b"\x80\x02ccopy_reg\n_reconstructor\n)\x81.",
        b"(i__main__\nThing\n.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02P7\n.",
        b"\x80\x05\x95\0\0\0\0\0\0\0\0N.",
    ],
)
def test_pickles_that_are_false_or_of_other_kinds_are_refused(content):
    with pytest.raises(CalibrationInputError, match="batch: must be a pickle of plain lists and arrays"):
        read_pickle(content, "batch")


@given(content=st.binary(max_size=60))
def test_any_bytes_are_a_value_or_refused(content):
    for head in (b"", b"\x80\x02}("):
        try:
            read_pickle(head + content, "batch")
        except CalibrationInputError:
            continue


@given(place=st.integers(0, 400), value=st.integers(0, 255))
def test_any_changed_byte_is_a_value_or_refused(place, value):
    content = bytearray(pickled_batch(pixels_of(2)[:, :100], labels=[1, 2]))
    content[place % len(content)] = value
    try:
        batch = read_pickle(bytes(content), "batch")
        if isinstance(batch, dict) and b"data" in batch:
            array_of(batch[b"data"], "batch")
    except CalibrationInputError:
        pass


def test_arrays_whose_shape_or_kind_does_not_fit_are_refused():
    def state(**changes):
        parts = {"version": 1, "shape": (2, 3), "kind": Recorded("numpy dtype", (b"u1", 0, 1)), "order": False}
        parts |= {"content": b"abcdef"} | changes
        return Recorded("numpy.core.multiarray _reconstruct", (), tuple(parts.values()))

    assert array_of(state(), "data").tolist() == [[97, 98, 99], [100, 101, 102]]
    for changes in (
        {"shape": (2, 4)},
        {"shape": (-1, 3)},
        {"shape": (2, None)},
        {"shape": (10**30, 3)},
        {"kind": Recorded("numpy dtype", (b"O8", 0, 1))},
        {"kind": Recorded("os system", (b"u1",))},
        {"order": True},
        {"content": [1, 2]},
    ):
        with pytest.raises(CalibrationInputError, match=r"data: must (be an array|have the bytes)"):
            array_of(state(**changes), "data")
    with pytest.raises(CalibrationInputError, match="must be an array of unsigned bytes"):
        array_of(Recorded("numpy.core.multiarray _reconstruct", ()), "data")


@pytest.mark.parametrize(
    ("batch", "match"),
    [
        (pickled_batch(pixels_of(3), fine_labels=[1, 2]), "each with a label, got .3, 3072. and 2 labels"),
        (pickled_batch(pixels_of(3)[:, :99], fine_labels=[1, 2, 3]), "must hold rows of 3072 bytes"),
        (pickled_batch(pixels_of(3), fine_labels=[1, 2, 100]), r"must have labels in 0\.\.99, got 100 at row 2"),
        (pickled_batch(pixels_of(3), fine_labels=[1, 2, 300]), "must have a list of small numbers as labels"),
        (pickled_batch(pixels_of(3), labels=[1, 2, 3]), "must hold data and fine_labels"),
        (b"\x80\x02](K\x01e.", "must hold data and fine_labels, got list"),
    ],
)
def test_batches_that_do_not_fit_are_refused(tmp_path, batch, match):
    folder = write_cifar(tmp_path, "cifar100", "python")
    (folder / "test").write_bytes(batch)
    with pytest.raises(CalibrationInputError, match=match):
        datasets.load("cifar100", root=tmp_path)


# ---- folders of pictures ---------------------------------------------------------------------------------------------


def write_pictures(folder, classes=("cat", "dog"), count=10, shape=(8, 9, 3), seed=0):
    rng = np.random.default_rng(seed)
    for name in classes:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for index in range(count):
            picture = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
            picture.save(folder / name / f"{index:03}.png")


def test_a_folder_of_classes_is_a_data_set(tmp_path):
    write_pictures(tmp_path / "pets")
    (tmp_path / "pets" / "notes.txt").write_text("not a class")
    (tmp_path / "pets" / "cat" / "notes.txt").write_text("not a picture")
    (tmp_path / "pets" / "cat" / ".hidden.png").write_text("not a picture")
    (tmp_path / "pets" / ".cache").mkdir()
    data = datasets.load("folder:pets", root=tmp_path)
    assert data.classes == ("cat", "dog")
    assert data.shape == (3, 8, 9)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [14, 2, 4]


def test_a_folder_of_parts_is_taken_as_it_is(tmp_path):
    for part, count in (("train", 6), ("val", 2), ("test", 3)):
        write_pictures(tmp_path / part, count=count)
    data = datasets.load(f"folder:{tmp_path}")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [12, 4, 6]
    assert data.test.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_pixels_keep_their_places(tmp_path):
    write_pictures(tmp_path, count=5)
    data = datasets.load(f"folder:{tmp_path}", validation=0)
    raw = np.random.default_rng(0).integers(0, 256, (10, 8, 9, 3), dtype=np.uint8)
    joined = np.concatenate([data.train.inputs, data.test.inputs])
    # scaling keeps the order of values within a channel, so ranks of one picture's channel tell it
    brightest = {tuple(np.argsort(picture[1].ravel(), kind="stable")[-3:]) for picture in joined}
    assert brightest == {tuple(np.argsort(picture[:, :, 1].ravel(), kind="stable")[-3:]) for picture in raw}


def test_png_and_jpeg_are_read_by_pillow(tmp_path):
    for name, ending in (("a", "png"), ("b", "jpg")):
        (tmp_path / name).mkdir()
        for index in range(5):
            Image.fromarray(np.full((8, 8), 40 * index, np.uint8)).save(tmp_path / name / f"{index}.{ending}")
    data = datasets.load(f"folder:{tmp_path}", validation=0)
    assert data.shape == (1, 8, 8)
    values = np.unique(np.concatenate([data.train.inputs, data.test.inputs]).round(3))
    assert len(values) == 5  # a plain surface survives JPEG


def test_palettes_become_colours(tmp_path):
    picture = Image.new("P", (8, 8))
    picture.putpalette([10, 20, 30] + [0] * 765)
    picture.save(tmp_path / "a.png")
    assert read_pictures([tmp_path / "a.png"])[0, :, 0, 0].tolist() == [10, 20, 30]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "I;16", "CMYK"])
def test_transparency_and_other_depths_are_refused(tmp_path, mode):
    write_pictures(tmp_path, count=5)
    Image.new(mode, (9, 8)).save(tmp_path / "cat" / ("x.jpg" if mode == "CMYK" else "x.png"))
    with pytest.raises(CalibrationInputError, match="must be grey or coloured in 8 bits, without transparency"):
        datasets.load(f"folder:{tmp_path}")


def test_uneven_sizes_are_refused_by_name(tmp_path):
    write_pictures(tmp_path, count=3)
    Image.new("RGB", (8, 9)).save(tmp_path / "dog" / "001.png")
    with pytest.raises(
        CalibrationInputError, match=r"001.png: must have the size of the others, 9 x 8 coloured, got 8"
    ):
        datasets.load(f"folder:{tmp_path}")


def test_grey_among_coloured_is_refused(tmp_path):
    write_pictures(tmp_path, count=3)
    Image.new("L", (9, 8)).save(tmp_path / "dog" / "001.png")
    with pytest.raises(CalibrationInputError, match="got 9 x 8 grey"):
        datasets.load(f"folder:{tmp_path}")


def test_false_pictures_are_refused_by_name(tmp_path):
    write_pictures(tmp_path, count=3)
    path = tmp_path / "cat" / "x.png"
    path.write_bytes(b"no picture")
    with pytest.raises(CalibrationInputError, match=r"x.png: must be a PNG, JPEG, PPM or PGM picture"):
        datasets.load(f"folder:{tmp_path}")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 9, 3), dtype=np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(CalibrationInputError, match=r"x.png: must be a whole picture"):
        datasets.load(f"folder:{tmp_path}")


def test_pictures_beyond_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    write_pictures(tmp_path, count=3)
    monkeypatch.setattr("calibrant.experiments.training.datasets.picture_folders.MOST_BYTES", 1000)
    with pytest.raises(CalibrationInputError, match=r"must fit into memory, got pictures of 1,296 bytes"):
        datasets.load(f"folder:{tmp_path}")


def test_without_pillow_the_error_says_what_to_do(tmp_path, monkeypatch):
    write_pictures(tmp_path, count=3)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(CalibrationInputError, match="needs Pillow to be read; pip install pillow"):
        datasets.load(f"folder:{tmp_path}")


def test_folders_that_leave_doubt_are_refused(tmp_path):
    with pytest.raises(CalibrationInputError, match="each of two or more classes, got 0"):
        datasets.load(f"folder:{tmp_path}")
    write_pictures(tmp_path, count=3)
    (tmp_path / "cow").mkdir()
    with pytest.raises(CalibrationInputError, match="cow: must hold pictures"):
        datasets.load(f"folder:{tmp_path}")
    with pytest.raises(CalibrationInputError, match="takes its labels from sub-folders, got the column 'kind'"):
        datasets.load(f"folder:{tmp_path}#kind")


def test_a_class_that_is_only_tested_is_refused(tmp_path):
    write_pictures(tmp_path / "train", count=3)
    write_pictures(tmp_path / "test", classes=("cat", "cow"), count=3)
    with pytest.raises(CalibrationInputError, match="cow: must be a class that is trained on"):
        datasets.load(f"folder:{tmp_path}")


@pytest.mark.parametrize(
    ("content", "pixels"),
    [
        (b"P5 2 1 255\n\x01\xff", [[[1, 255]]]),
        (b"P6\n1 2\n255\n\x01\x02\x03\x04\x05\x06", [[[1], [4]], [[2], [5]], [[3], [6]]]),
        (b"P2\n# a comment 7\n2 1\n255\n1 255\n", [[[1, 255]]]),
        (b"P2 3 1 4\n0 1 4", [[[0, 64, 255]]]),
    ],
)
def test_grey_and_colour_maps_by_hand(tmp_path, content, pixels):
    path = tmp_path / "a.ppm"
    path.write_bytes(content)
    assert read_pictures([path])[0].tolist() == pixels


@pytest.mark.parametrize("content", [b"", b"P5 1 1 65535\n\0\0", b"P5 2 2 255\nabc", b"P2 2 1 255\n1 x"])
def test_false_maps_are_refused(tmp_path, content):
    path = tmp_path / "a.pgm"
    path.write_bytes(content)
    with pytest.raises(CalibrationInputError, match=r"a\.pgm: must be (a|grey)"):
        read_pictures([path])
