"""Names: what labels and forecasts are called in files that other tools write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LABELS = ("label", "labels", "y")
"""What labels are called as a rule."""
OTHER_LABELS = (
    "y_true", "y_test", "target", "targets", "true_label", "true_class", "truth", "ground_truth", "actual", "observed",
    "outcome", "gold",
)  # fmt: skip
OTHER_FORECASTS = (
    "prob", "proba", "probability", "probabilities", "y_prob", "y_probs", "y_proba", "y_score", "y_pred_proba",
    "y_pred_prob", "score", "scores", "pred_proba", "pred_prob", "predicted_probability", "prediction", "predictions",
    "forecast", "softmax",
)  # fmt: skip
"""What one column of forecasts, or a matrix of them, is called elsewhere."""
OTHER_PREFIXES = ("prob_", "proba_", "probability_", "y_prob_", "y_proba_", "pred_proba_", "score_")
"""What precedes the class in the names of several columns elsewhere."""

OTHER_MARKS = ("label_", "labels_", "y_true_", "true_", "target_")
"""What precedes the label in the names of columns of 0 and 1 elsewhere."""


def called(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Those of some names that are known, whatever their case, with blanks or hyphens for underscores.

    >>> called(["Y True", "p", "region"], OTHER_LABELS)
    ['Y True']
    """
    return [name for name in names if _plain(name) in known]


def prefixed(names: Iterable[str], prefixes: Sequence[str]) -> dict[str, list[str]]:
    """Names of two columns or more that begin alike, by what they begin with.

    >>> prefixed(["prob_cat", "prob_dog", "score_1"], OTHER_PREFIXES)
    {'prob_': ['prob_cat', 'prob_dog']}
    """
    every = list(names)
    columns = {prefix: [name for name in every if name.startswith(prefix)] for prefix in prefixes}
    return {prefix: alike for prefix, alike in columns.items() if len(alike) > 1}


def paired(names: Iterable[str]) -> tuple[str, str] | None:
    """What labels and forecasts begin with, where each of several labels has a column of both.

    >>> paired(["label_cat", "label_dog", "prob_cat", "prob_dog"]), paired(["label", "p_cat", "p_dog"])
    (('label_', 'prob_'), None)
    """
    forecasts = prefixed(names := list(names), ("p_", *OTHER_PREFIXES))
    for mark, columns in prefixed(names, OTHER_MARKS).items():
        for prefix, others in forecasts.items():
            if {name.removeprefix(mark) for name in columns} == {name.removeprefix(prefix) for name in others}:
                return mark, prefix
    return None


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")
