"""Mutations: bytes, text, documents, archives and arrays that are changed a little, by a generator that is given."""

import io
import json
import warnings
import zipfile

import numpy as np

WORDS = [
    "", " ", "0", "1", "-1", "0.5", "1.5", "nan", "NaN", "inf", "-inf", "1e999", "1e-320", "0x1p-2", "1_0", "1,5", "½",
    "true", "false", "null", "None", "yes", "[]", "{}", '"', "'", ",", ";", "\t", "\r", "\n", "\x00", "\ufeff",
    "label", "labels", "y", "p", "probs", "logits", "p_0", "p_1", "confidence", "correct", "=1+1", "'0.5", "9" * 40,
]  # fmt: skip
"""What stands in the place of a word."""
VALUES = [None, True, False, 0, 1, -1, 0.5, 1.5, -0.0, 1e308, 5e-324, 2**63, 10**30, "", "nan", "1", [], {}, [0], [[0]]]
"""What stands in the place of a value of a document."""


def flips(content):
    """Every content that differs in one bit."""
    for place in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)


def of_bytes(content, random):
    """Bits flipped; or a stretch cut out, doubled, zeroed, moved, overwritten; or the end cut off."""
    damaged = bytearray(content)
    start, stop = sorted(random.integers(0, len(content) + 1, 2).tolist())
    stop = min(stop, start + int(random.integers(1, 40)))
    kind = random.integers(0, 8)
    if kind < 3:
        for place in random.integers(0, 8 * len(content), int(random.integers(1, 6))).tolist():
            damaged[place // 8] ^= 1 << place % 8
    elif kind == 3:
        del damaged[start:stop]
    elif kind == 4:
        damaged[start:start] = damaged[start:stop]
    elif kind == 5:
        damaged[start:stop] = bytes(stop - start)
    elif kind == 6:
        damaged[start:stop] = random.integers(0, 256, stop - start, np.uint8).tobytes()
    else:
        del damaged[start:]
    return bytes(damaged)


def of_text(content, random, separators=(",", "\n")):
    """Words between separators exchanged, doubled, removed, or replaced by strange ones; lines, too."""
    if random.random() < 0.3:
        return of_bytes(content, random)
    text = content.decode("utf-8")
    separator = separators[int(random.integers(len(separators)))]
    words = text.split(separator)
    first, second = random.integers(0, len(words), 2).tolist()
    kind = random.integers(0, 5)
    if kind == 0:
        words[first], words[second] = words[second], words[first]
    elif kind == 1:
        words.insert(first, words[second])
    elif kind == 2:
        del words[first]
    else:
        words[first] = str(random.choice(WORDS))
    return separator.join(words).encode("utf-8", "surrogatepass")


def of_document(content, random):
    """A value somewhere in a document replaced, removed, doubled, or put under another key."""
    if random.random() < 0.2:
        return of_bytes(content, random)
    document = json.loads(content)
    holder, key = _place(document, random)
    kind = random.integers(0, 4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[str(random.choice(WORDS))] = holder.pop(key)
    elif kind == 1:
        holder.insert(key, holder[key])
    elif kind == 2 and isinstance(holder[key], (int, float)):
        holder[key] = holder[key] * float(random.choice([-1, 0, 0.5, 2, 1e300]))
    else:
        holder[key] = VALUES[int(random.integers(len(VALUES)))]
    return json.dumps(document).encode()


def of_lines(content, random):
    """A document in one of several lines changed, or the text of the lines."""
    if random.random() < 0.5:
        return of_text(content, random, (",", "\n", ":"))
    lines = content.splitlines()
    index = int(random.integers(len(lines)))
    lines[index] = of_document(lines[index], random)
    return b"\n".join(lines)


def of_archive(content, random):
    """A member of an archive removed, doubled, renamed or changed; or the bytes of the archive."""
    if random.random() < 0.4:
        return of_bytes(content, random)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
        comment = archive.comment
    index = int(random.integers(len(members)))
    name, member = members[index]
    kind = random.integers(0, 4)
    if kind == 0:
        del members[index]
    elif kind == 1:
        members.insert(index, (name, member))
    elif kind == 2:
        members[index] = (f"{random.choice(WORDS)}.npy".replace("\x00", "0"), member)
    else:
        members[index] = (name, of_array_file(member, random))
    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that stands twice
        with zipfile.ZipFile(target, "w") as archive:
            for name, member in members:
                archive.writestr(name, member)
            archive.comment = comment
    return target.getvalue()


def of_array_file(content, random):
    """The header of a NPY file changed, or its bytes."""
    if random.random() < 0.4:
        return of_bytes(content, random)
    header = content[:128]
    for before, after in (
        (b"<f8", b">f8"),
        (b"<i8", b"<u8"),
        (b"<f8", b"<i8"),
        (b"False", b"True "),
        (b"(", b"(("),
        (b")", b"L)"),
        (b",", b" "),
    ):
        if random.random() < 0.3:
            header = header.replace(before, after, 1)
    return header + content[128:]


def of_values(array, random):
    """An array with strange values in it, of another type, or of another shape."""
    array = np.array(array)
    kind = int(random.integers(0, 9))
    place = int(random.integers(array.size))
    if kind < 3:
        floats = array.astype(np.float64)
        floats.flat[place] = random.choice([np.nan, np.inf, -np.inf, -0.1, 1.1, 1e300, -1e-300, 0.5, 2.0, -1.0])
        return floats
    if kind == 3:
        types = [
            "f2",
            "f4",
            "f8",
            "i1",
            "u1",
            "i8",
            "u8",
            "?",
            "c16",
            "U8",
            "S8",
            "O",
            "M8[s]",
            "m8[s]",
            ">f8",
            "longdouble",
        ]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return array.astype(types[int(random.integers(len(types)))])
    if kind == 4:
        return [array[:0], array[1:], array[..., None], array[None], array.T, array.ravel()[0], np.repeat(array, 2, 0)][
            int(random.integers(7))
        ]
    if kind == 5:
        mixed = array.tolist()
        mixed[int(random.integers(len(mixed)))] = [None, "", "a", [], [0.5], {}, 10**30, b"1", 1j][
            int(random.integers(9))
        ]
        return mixed
    if kind == 6:
        return np.ma.masked_array(array, mask=random.random(array.shape) < 0.2)
    if kind == 7:
        return [None, "text", 3, 0.5, [], {}, iter(array.tolist()), array.tolist(), range(3), {1, 2}][
            int(random.integers(10))
        ]
    return array[random.permutation(len(array))] if array.ndim else array


def _place(document, random):
    """Where a value is in a document: what holds it, and under which key."""
    places = []

    def walk(holder):
        inside = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in inside:
            places.append((holder, key))
            if isinstance(value, (dict, list)):
                walk(value)

    walk(document)
    return places[int(random.integers(len(places)))]
