"""A back end in plain Python: what every function of the seam gives, entry by entry, whole numbers exactly."""

import math
import struct
from fractions import Fraction

import numpy as np

LOW = (1 << 26) - 1


def units(value):
    """The nearest whole number of 2^-52, halves to even."""
    return round(Fraction(float(value)) * (1 << 52))


def limbs(totals):
    """Whole numbers of units as hi * 2^-26 + lo * 2^-52."""
    whole = np.array([int(total) for total in totals], object)
    return (whole >> 26).astype(np.int64), (whole & LOW).astype(np.int64)


def row_sums(values):
    if values.shape[1] == 1:
        return np.array([float(row[0]) for row in values])
    return np.array([min(sum(map(units, row)), 1 << 52) / (1 << 52) for row in values.tolist()])


def brier(outputs, targets):
    n, v, d = outputs.shape
    scores = np.empty((n, v))
    for i in range(n):
        for question in range(v):
            total = 0
            for c in range(d):
                truth = float(targets[i] == question * d + c) if targets.ndim == 1 else float(targets[i, question, c])
                gap = float(outputs[i, question, c]) - truth
                total += units(gap * gap)  # unlike a power, a product is rounded once
            scores[i, question] = total / (1 << 52)
    return scores


def event_scores(outputs, targets, logs):
    total = infinite = 0
    for output, target in zip(outputs.tolist(), targets.tolist(), strict=True):
        likely = output if target == 0 else 1 - output
        if logs and likely == 0:
            infinite += 1
        else:
            gap = 1 - output if target == 0 else output
            total += units(-math.log(likely) if logs else gap * gap)
    return total >> 26, total & LOW, infinite


def event_logs(outputs, targets):
    likely = [output if target == 0 else 1 - output for output, target in zip(outputs.tolist(), targets, strict=True)]
    return np.array([-math.inf if share == 0 else math.log(share) for share in likely])


def extremes(values):
    numbers = values.tolist()
    if any(number != number for number in numbers):
        return math.nan, math.nan
    return min(numbers, default=math.inf), max(numbers, default=-math.inf)


def taken(values, columns):
    return np.array([row[column] for row, column in zip(values, columns, strict=True)], values.dtype)


def row_survey(values):
    entries = [float(entry) for row in values for entry in row]
    sums = [math.fsum(map(float, row)) for row in values]
    extremes = (
        min(entries, default=math.inf),
        max(entries, default=-math.inf),
        min(sums, default=math.inf),
        max(sums, default=-math.inf),
    )
    if any(map(math.isnan, entries)):
        extremes = (math.nan,) * 4
    top = np.array([row.index(max(row)) for row in values.tolist()], np.int64)
    return *extremes, top, values[np.arange(len(values)), top]


def leaders(scores, k):
    order = [sorted(range(scores.shape[1]), key=lambda c, row=row: (-row[c], c))[:k] for row in scores.tolist()]
    return np.array(order, np.int64).reshape(len(scores), k)


def code(value, inner, closed, grain):
    value = round(Fraction(float(value)) * Fraction(grain)) if grain else float(value)
    return sum(edge < value if closed == "right" else edge <= value for edge in inner.tolist())


def scalar_codes(values, inner, closed, grain):
    codes = [code(value, inner, closed, grain) for value in values.ravel()]
    return np.array(codes, np.int64).reshape(values.shape)


def scalar_totals(outputs, targets, inner, closed, grain, keep, group, groups):
    n, v = outputs.shape
    bins = len(inner) + 1
    size, summed, happened = ([0] * (groups * v * bins) for _ in range(3))
    for i in range(n):
        for question in range(v):
            if keep is not None and not keep[i, question]:
                continue
            first = 0 if group is None else int(group[i]) * v
            cell = (first + question) * bins + code(outputs[i, question], inner, closed, grain)
            size[cell] += 1
            summed[cell] += units(outputs[i, question])
            happened[cell] += units(targets[i] == question if targets.ndim == 1 else targets[i, question])
    return np.array(size, np.int64), *limbs(summed), *limbs(happened)


def cell_numbers(values, lasts):
    ends = lasts.tolist()
    cells = [next(place for place, last in enumerate(ends) if value <= last) for value in values.tolist()]
    return np.array(cells, np.int64)


def cell_totals(values, hits, lasts):
    totals = [[0] * len(lasts) for _ in range(7)]
    for value, hit in zip(values.tolist(), hits.tolist(), strict=True):
        (cell,) = cell_numbers(np.array([value]), lasts)
        (mixed,) = struct.unpack("<Q", struct.pack("<d", value + 0.0))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> shift)) * factor % (1 << 64)
        mark = mixed % ((1 << 31) - 1)
        parts = 1, int(hit), units(value), int(hit) * units(value), units(value * value), mark, mark * mark
        for total, part in zip(totals, parts, strict=True):
            total[cell] += part
    summed = [limb for total in totals[2:5] for limb in limbs(total)]
    marks = [[each % ((1 << 31) - 1) for each in total] for total in totals[5:]]
    return np.array([*totals[:2], *summed, *marks], np.int64)


def sums_by_code(codes, values, count):
    sums = [0] * count
    for place, value in zip(codes.tolist(), values.tolist(), strict=True):
        sums[place] += value
    return np.array(sums, np.int64)


def ordered(values, hits):
    if values.ndim > 1:
        rows = [ordered(*row) for row in zip(values, hits, strict=True)]
        return (
            tuple(np.array(parts).reshape(values.shape) for parts in zip(*rows, strict=True))
            if rows
            else (values, hits * 1)
        )
    pairs = sorted(zip((values + 0.0).tolist(), hits.tolist(), strict=True))
    return np.array([pair[0] for pair in pairs], values.dtype), np.array([pair[1] for pair in pairs], np.int64)


def distinct(values, hits):
    table = {}
    for value, hit in zip(values.tolist(), hits.tolist(), strict=True):
        count, positives = table.get(value + 0.0, (0, 0))
        table[value + 0.0] = count + 1, positives + int(hit)
    rows = [(value, *table[value]) for value in sorted(table)]
    return (
        np.array([row[0] for row in rows], values.dtype),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
    )


def entries(groups, values):
    keys = list(zip(groups.tolist(), values.tolist(), strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    first = [place for place in range(len(order)) if not place or keys[order[place]] != keys[order[place - 1]]]
    return np.array(order, np.int64), np.array(first, np.int64)


def running(values, counts, hits, every):
    rows = [(0, 0, 0)]
    for value, count, hit in zip(values.tolist(), counts.tolist(), hits.tolist(), strict=True):
        rank, total, came = rows[-1]
        rows.append((rank + count, total + units(value) * count, came + hit))
    rows = [row for place, row in enumerate(rows) if place % every == 0 or place == len(rows) - 1]
    ranks, totals, came = zip(*rows, strict=True)
    return np.array(ranks), *limbs(totals), np.array(came) << 26


def table_sums(values, counts, hits):
    true = squares = 0
    for value, count, hit in zip(values.tolist(), counts.tolist(), hits.tolist(), strict=True):
        true += units(value) * hit
        squares += units(value * value) * count
    return true >> 26, true & LOW, squares >> 26, squares & LOW


def path_ends(values, counts, hits):
    path, spread, cubes = [0], [], []
    for value, count, hit in zip(values.tolist(), counts.tolist(), hits.tolist(), strict=True):
        path.append(path[-1] + (hit << 52) - units(value) * count)
        v = value * (1 - value)
        spread.append(v * count)
        cubes.append(v * math.sqrt(v) * count)
    return *limbs([min(path), max(path)]), math.fsum(spread), math.fsum(cubes)


def rising(counts, hits):
    """The lower hull of running hits over running samples, corner by corner: each next one has the least rate."""
    ranks, came = ([sum(each[:place].tolist()) for place in range(len(each) + 1)] for each in (counts, hits))
    corners = [0]
    while corners[-1] < len(counts):
        start = corners[-1]
        rates = [
            Fraction(came[end] - came[start], ranks[end] - ranks[start]) for end in range(start + 1, len(counts) + 1)
        ]
        least = min(rates)
        corners.append(start + 1 + max(place for place, rate in enumerate(rates) if rate == least))
    return tuple(np.array(each) for each in (corners, [ranks[c] for c in corners], [came[c] for c in corners]))


def column_cuts(values, targets, cuts):
    wholes, ends = np.zeros((6, values.shape[1], len(cuts)), np.int64), np.zeros((2, values.shape[1], len(cuts)))
    for column in range(values.shape[1] if len(values) else 0):
        hits = (targets == column).tolist()
        pairs = sorted((value + 0.0, int(hit)) for value, hit in zip(values[:, column].tolist(), hits, strict=True))
        for place, cut in enumerate(cuts.tolist()):
            value = pairs[min(cut, len(pairs) - 1)][0]
            ties = [hit for each, hit in pairs if each == value]
            below = [hit for each, hit in pairs if each < value]
            total = sum(units(each) for each, _ in pairs[:cut])
            wholes[:, column, place] = (
                *(total >> 26, total & LOW, sum(below), sum(ties), cut - len(below), len(ties)),
            )
            ends[:, column, place] = value, pairs[max(cut - 1, 0)][0]
    return *wholes, *ends


def column_sums(values, rows):
    return limbs([sum(units(values[row, c]) for row in rows) for c in range(values.shape[1])])


def square_sums(values, rows):
    return limbs(
        [sum(units(float(values[row, c]) * float(values[row, c])) for row in rows) for c in range(values.shape[1])]
    )


def partition(values, rows, axis, threshold):
    below = [row for row in rows.tolist() if float(values[row, axis]) < threshold]
    return np.array(below, np.int64), np.array([row for row in rows.tolist() if row not in below], np.int64)


# ---- floats ----------------------------------------------------------------------------------------------------------


def log_sum_exp(logits):
    """log(sum of exp(z)); minus infinity of nothing."""
    top = max(logits, default=-math.inf)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(z - top) for z in logits))


def normalisers(logits):
    top, rest = np.empty((2, len(logits)))
    for i, row in enumerate(logits.tolist()):
        first = row.index(max(row))
        top[i] = row[first]
        rest[i] = math.fsum(math.exp(z - row[first]) for c, z in enumerate(row) if c != first)
    return top, rest


def logits_survey(logits):
    low, high, _, _, column, top = row_survey(logits)
    top, rest = normalisers(logits)
    squares = [
        math.fsum(math.exp(z - max(row)) ** 2 for c, z in enumerate(row) if c != first)
        for row, first in zip(logits.tolist(), column.tolist(), strict=True)
    ]
    return low, high, column, top, rest, np.array(squares)


def softmax(logits, top, rest):
    rows = [[math.exp(z - top[i]) / (1 + rest[i]) for z in row] for i, row in enumerate(logits.tolist())]
    return np.array(rows).reshape(logits.shape)


def softplus(values):
    return np.array([max(x, 0.0) + math.log1p(math.exp(-abs(x))) for x in values.ravel().tolist()]).reshape(
        values.shape
    )


def apart(logits, classes):
    rows = []
    for row, some in zip(logits.tolist(), classes.tolist(), strict=True):
        others = [z for c, z in enumerate(row) if c not in some]
        rows.append([row[c] - max(row) for c in some] + [log_sum_exp(others) - max(row)])
    return np.array(rows).reshape(len(logits), classes.shape[1] + 1)


def log_odds(logits, classes):
    odds = []
    for row, some in zip(logits.tolist(), classes.tolist(), strict=True):
        odds.append(log_sum_exp([row[c] for c in some]) - log_sum_exp([z for c, z in enumerate(row) if c not in some]))
    return np.array(odds).reshape(len(logits), 1)


def every_log_odds(logits):
    rows = [[z - log_sum_exp(row[:c] + row[c + 1 :]) for c, z in enumerate(row)] for row in logits.tolist()]
    return np.array(rows).reshape(logits.shape)


def pooled(logits, members):
    rows = [[log_sum_exp([row[c] for c in some]) - max(row) for some in members] for row in logits.tolist()]
    return np.array(rows).reshape(len(logits), len(members))


def tempered(logits, labels, inverse):
    loss, first, second = np.empty((3, len(logits)))
    for i, row in enumerate(logits.tolist()):
        moved = [z - max(row) for z in row]
        shares = [math.exp(z * inverse - log_sum_exp([each * inverse for each in moved])) for z in moved]
        loss[i] = log_sum_exp([z * inverse for z in moved]) - inverse * moved[labels[i]]
        mean = math.fsum(share * z for share, z in zip(shares, moved, strict=True))
        first[i] = mean - moved[labels[i]]
        second[i] = math.fsum(share * z * z for share, z in zip(shares, moved, strict=True)) - mean**2
    return loss, first, second


def distances(a, b, shape):
    def distance(p, q):
        gaps = [abs(x - y) for x, y in zip(p, q, strict=True)]
        return math.dist(p, q) if shape == "gaussian" else math.fsum(gaps) / min(2, len(gaps))

    return np.array([[distance(p, q) for q in b.tolist()] for p in a.tolist()]).reshape(len(a), len(b))


def similarities(a, b, shape, scale):
    power = {"exponential": lambda x: x, "gaussian": lambda x: x * x / 2}[shape]
    each = [math.exp(-power(distance / scale)) for distance in distances(a, b, shape).ravel().tolist()]
    return np.array(each).reshape(len(a), len(b))


def pair_sums(points, residuals, counts, shape, scale, begin, end):
    alike = similarities(points, points, shape, scale)
    pairs, selves = [], []
    for i in range(len(points)):
        for j in range(len(points)):
            if not begin <= min(i, j) < end:
                continue
            term = alike[i, j] * math.fsum(x * y for x, y in zip(residuals[i], residuals[j], strict=True))
            pairs.append(counts[i] * counts[j] * term)
            if i == j:
                selves.append(counts[i] * term)
    return math.fsum(pairs), math.fsum(selves)
