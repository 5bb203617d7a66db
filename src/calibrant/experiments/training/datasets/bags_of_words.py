"""Bags of words: labelled texts from a CSV or TSV file, by a vocabulary of the training texts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import MOST_BYTES
from calibrant.experiments.training.datasets.source import (
    SPLIT,
    LabelledRows,
    Source,
    Transform,
    by_column,
    coded,
    label_name,
)
from calibrant.files.csv import read_csv
from calibrant.kernels.caching import cached_property

TEXT = "text"
"""The column of texts."""
MOST_WORDS = 5000
"""The largest vocabulary."""
LEAST_TEXTS = 2
"""A word must stand in so many training texts to be known."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def read_text(path: Path, label: str | None = None) -> Source:
    """Texts weighted by tf-idf: columns `text` and `label`, and `split` where the file assigns rows to parts."""
    return _source(path, label, fit_tf_idf)


def read_counts(path: Path, label: str | None = None) -> Source:
    """Texts as counts of words, from the same files."""
    return _source(path, label, fit_counts)


def words_of(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, apostrophes within them, in lower case.

    >>> words_of("Don't panic, Dr. Ångström: 42 is_it!")
    ["don't", 'panic', 'dr', 'ångström', '42', 'is', 'it']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))


@dataclass(frozen=True)
class Vocabulary:
    """The known words, and in how many of how many training texts each stands.

    >>> vocabulary = vocabulary_of(["good film", "bad film", "good good story"])
    >>> vocabulary.words, vocabulary.texts_with, vocabulary.texts
    (('film', 'good'), (2, 2), 3)
    >>> vocabulary.counts(["good good film", "unseen"]).tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """

    words: tuple[str, ...]
    texts_with: tuple[int, ...]
    texts: int

    @cached_property
    def place(self) -> dict[str, int]:
        """The column of each word."""
        return {word: column for column, word in enumerate(self.words)}

    def counts(self, texts: Iterable[str]) -> Array:
        """How often does each known word stand in each text? In float32 (n, words)."""
        texts = list(texts)
        if 4 * len(texts) * len(self.words) > MOST_BYTES:
            raise CalibrationInputError("texts", "must fit into memory", got=f"{len(texts):,} rows")
        counts = np.zeros((len(texts), len(self.words)), np.float32)
        for row, text in enumerate(texts):
            for word, count in Counter(words_of(text)).items():
                if word in self.place:
                    counts[row, self.place[word]] = count
        return counts

    def tf_idf(self, texts: Iterable[str]) -> Array:
        r"""How much does each known word tell one text from the others? In float32 (n, words).

        .. math:: w_{tj} = c_{tj} \Big(1 + \ln \frac{1 + n}{1 + n_j}\Big), \quad x_t = w_t / \lVert w_t \rVert_2

        for a word that stands in n_j of the n training texts and c times in the text. A text of unknown words is 0.

        References: Spärck Jones (1972); the smoothing is scikit-learn's.

        >>> vocabulary_of(["good film", "bad film", "good story"]).tf_idf(["film", "good film"]).round(4).tolist()
        [[1.0, 0.0], [0.707099974155426, 0.707099974155426]]
        """
        weights = self.counts(texts)
        weights *= (1 + np.log((1 + self.texts) / (1 + np.array(self.texts_with)))).astype(np.float32)
        length = np.sqrt(np.einsum("tj,tj->t", weights, weights, dtype=np.float64))
        weights /= np.where(length > 0, length, 1.0).astype(np.float32)[:, None]
        return weights


def vocabulary_of(texts: Sequence[str], *, most: int = MOST_WORDS, least_texts: int = LEAST_TEXTS) -> Vocabulary:
    """Which words are known after reading the texts: those in the most texts, and of equals the first by alphabet.

    Their columns are in alphabetical order.

    >>> vocabulary_of(["a b", "b c", "c b"], most=1).words
    ('b',)
    """
    counts = Counter(word for text in texts for word in set(words_of(text)))
    common = [(word, count) for word, count in counts.items() if count >= least_texts]
    kept = sorted(sorted(common, key=lambda pair: (-pair[1], pair[0]))[:most])
    if not kept:
        raise CalibrationInputError(
            "texts", f"must have words that stand in {least_texts} training texts or more", got="none"
        )
    return Vocabulary(tuple(word for word, _ in kept), tuple(count for _, count in kept), len(texts))


def fit_tf_idf(train: Array) -> Callable[[Array], Array]:
    """Texts to tf-idf, by the vocabulary of the training texts."""
    return vocabulary_of(train.tolist()).tf_idf


def fit_counts(train: Array) -> Callable[[Array], Array]:
    """Texts to counts of words, by the vocabulary of the training texts."""
    return vocabulary_of(train.tolist()).counts


def _source(path: Path, label: str | None, fit: Callable[[Array], Transform]) -> Source:
    if not path.is_file():
        raise CalibrationInputError(
            str(path), "must be a CSV or TSV file with the columns text and label", got="no such file"
        )
    columns = read_csv(InputFile.of(path))
    if TEXT not in columns:
        raise CalibrationInputError(str(path), f"must have the column {TEXT!r}", got=", ".join(columns))
    name = label_name([column for column in columns if column != TEXT], label, str(path))
    labels, classes = coded(columns[name], f"{path}, column {name!r}")
    texts = np.array(columns.raw[TEXT], dtype=object)  # as written, whatever numbers they may look like
    return Source(classes, by_column(LabelledRows(texts, labels), columns.get(SPLIT), str(path)), fit=fit)
