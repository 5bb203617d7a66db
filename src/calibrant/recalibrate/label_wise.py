"""Label by label: how a method that calibrates an event calibrates labels of which any may be true.

Label l asks the event "l is true of this sample". Each is calibrated on its own column, with the weights of the rows,
to the bit as it would be alone; nothing is divided by a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Ints
from calibrant.recalibrate.fitting.certificate import Certificate
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.fitting.one_vs_all import together

Map = TypeVar("Map")


def events(scores: ModelScores) -> Iterator[ModelScores]:
    """The scores of each label as those of one event.

    >>> scores = ModelScores(np.array([[.9, .2], [.8, .4]]), "probabilities", independent=True)
    >>> [event.values.tolist() for event in events(scores)]
    [[0.9, 0.8], [0.2, 0.4]]
    """
    return (ModelScores(np.ascontiguousarray(column), scores.input) for column in scores.values.T)


def learnt(lesson: Lesson, learn: Callable[[Lesson], Map]) -> dict[Any, Map]:
    """What is learnt of each label, as of one event; what is refused is said of that label.

    >>> scores = ModelScores(np.array([[.9, .2], [.8, .4]]), "probabilities", independent=True)
    >>> lesson = Lesson(scores, np.array([[1, 0], [0, 0]]), np.ones(2), ("dog", "cat"))
    >>> learnt(lesson, lambda event: event.labels.tolist())
    {'dog': [1, 0], 'cat': [0, 0]}
    """
    maps = {}
    for name, scores, outcomes in zip(lesson.classes, events(lesson.scores), lesson.labels.T, strict=True):
        try:
            maps[name] = learn(Lesson(scores, outcomes.astype(np.int64), lesson.weight, (0, 1)))
        except CalibrationInputError as error:
            where = f"label {name}" if error.where is None else f"{error.where} of label {name}"
            raise CalibrationInputError(
                error.parameter, error.expected, got=error.got, where=where, hint=error.hint
            ) from None
    return maps


def stacked(parts: Sequence[ModelScores]) -> ModelScores:
    """What each label's scores became, a column a label: logits where all are.

    >>> even, rare = ModelScores(np.array([0.0]), "logits"), ModelScores(np.array([0.25]), "probabilities")
    >>> stacked([even, rare]).values.tolist(), stacked([even, even]).values.tolist()
    ([[0.5, 0.25]], [[0.0, 0.0]])
    """
    exact = all(part.input == "logits" for part in parts)
    columns = [part.values if exact else part.probabilities for part in parts]
    return ModelScores(np.column_stack(columns), "logits" if exact else "probabilities", independent=True)


def joint(certificates: Sequence[Certificate], names: Sequence[Any]) -> Certificate:
    """The certificate of all labels: log losses are means over labels; no answer is right or wrong.

    >>> never = Certificate(False, message="never true", n=9, log_loss_after=0.25)
    >>> certificate = joint([Certificate(n=9, log_loss_after=0.5), never], ["dog", "outdoors"])
    >>> certificate.log_loss_after, certificate.converged, certificate.message
    (0.375, False, 'label outdoors: never true')
    """
    ending = together([certificate.ending for certificate in certificates], names, "label")
    before, after = (
        sum(getattr(certificate, f"log_loss_{when}") for certificate in certificates) / len(certificates)
        for when in ("before", "after")
    )
    return Certificate(**vars(ending), n=certificates[0].n, log_loss_before=before, log_loss_after=after)


def strata(labels: Ints) -> Ints:
    """A kind for each row, so that folds share out every label: the rarest label that is true of it, else L.

    >>> strata(np.array([[1, 1], [1, 0], [1, 0], [0, 0]])).tolist()
    [1, 0, 0, 2]
    """
    rarity = np.where(labels == 1, labels.sum(axis=0, dtype=np.int64), len(labels) + 1)
    return np.where(labels.any(axis=1), rarity.argmin(axis=1), labels.shape[1])
