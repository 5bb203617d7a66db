"""Questions: whether predictions can answer the metrics that were asked for, said in the words that were typed."""

from __future__ import annotations

from collections.abc import Mapping

import click

from calibrant.errors.asking import Asking
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.specification import spelling

SCORES = {"brierscore": "brier", "logscore": "log_loss"}
"""Scores that ask about the top label where they stand alone, and the metric that is meant by most who type them."""
SUITABLE = "without -m, the metrics that suit these predictions are measured"


def refuse_score_alone(text: str) -> None:
    """Refuse the name of a score without a lens: of classes it would ask about the top label, which is seldom meant.

    >>> refuse_score_alone("top_label/brier_score")
    """
    meant = SCORES.get(spelling.plain(text))
    if meant is not None:
        hint = f"{meant} is the usual metric; top_label/{text} asks about the top label alone"
        raise click.UsageError(f"metric: needs a lens beside a score, got {text!r}; {hint}")


def refuse_classes(metrics: Mapping[str, Metric]) -> None:
    """Refuse metrics that cannot be asked of simulated models of one event."""
    event = Predictions.from_probs([1], [0.5])
    for name, metric in metrics.items():
        try:
            check_questions({name: metric}, event)
        except CalibrationInputError as error:
            hint = "--scores 'softmax(3, 2)' --curve 'tempered(2)' simulates one of classes"
            raise click.UsageError(f"{name} {error.expected}; this model predicts one event, {hint}") from None


def check_questions(metrics: Mapping[str, Metric], predictions: Predictions) -> None:
    """Refuse a metric whose question these predictions cannot answer, by the name that it was asked for.

    >>> import calibrant as cal
    >>> check_questions({"sce": cal.SCE}, cal.Predictions.from_confidence([True, False], [.9, .6]))
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: sce: is a question about classes, got confidences of top answers; \
without -m, the metrics that suit these predictions are measured
    """
    for name, metric in metrics.items():
        if not isinstance(metric, Asking):
            continue
        try:
            metric.lens(predictions[:1])
        except CalibrationInputError as error:
            raise CalibrationInputError(
                name, error.expected, got=error.got, where=error.where, hint=error.hint or SUITABLE
            ) from None
