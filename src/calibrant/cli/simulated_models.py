"""Models: the distribution of scores and the calibration curve that the words of `calibrant simulate` name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from calibrant.cli.group import usage
from calibrant.cli.questions import refuse_classes
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.metric import Metric
from calibrant.simulate.calibration_curves import (
    IDENTITY,
    LINKS,
    TRANSFORMS,
    CalibrationCurve,
    logistic_curve,
    power_curve,
)
from calibrant.simulate.calibration_curves import described as curve_described
from calibrant.simulate.classes import SoftmaxScores, Tempered
from calibrant.simulate.published import PUBLISHED
from calibrant.simulate.sampling import Law
from calibrant.simulate.scores import UNIFORM, BetaScores
from calibrant.simulate.truth import curve_with_error, true_calibration_error

F = TypeVar("F", bound=Callable[..., Any])
Maker = Callable[..., Any]

ERROR = 0.05
"""The true error of a simulated model where no other is asked for."""
CALL = re.compile(r"(\w+)\s*(?:\(([^()]*)\))?")

SCORES: dict[str, Maker] = {"uniform": lambda: UNIFORM, "beta": BetaScores, "softmax": SoftmaxScores}
CURVES: dict[str, Maker] = {
    "calibrated": lambda: IDENTITY,
    "power": power_curve,
    "logistic": logistic_curve,
    "tempered": Tempered,
    **{
        f"{link}_{transform}": lambda b0, b1, name=f"{link}_{transform}": CalibrationCurve(name, b0, b1)
        for link in LINKS
        for transform in TRANSFORMS
    },
}

_OPTIONS = (
    click.option(
        "--model", metavar="NAME", help="Scores and curve fitted to a published network, such as resnet110_c10."
    ),
    click.option(
        "--scores",
        metavar="WORDS",
        help="The distribution of scores: uniform (default), beta(A, B) or softmax(CLASSES, SPREAD).",
    ),
    click.option(
        "--curve",
        metavar="WORDS",
        help="The calibration curve: calibrated, power(D), logistic(SLOPE, OFFSET), log_log(B0, B1) and other links, "
        "or tempered(T).",
    ),
    click.option(
        "--error",
        type=float,
        metavar="E",
        help=f"Instead of --curve: the curve s^d that has this true error (default {ERROR:g}).",
    ),
)


def model_options(command: F) -> F:
    """The options that say what is simulated; `SimulatedModel.of` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class SimulatedModel:
    """A distribution of scores, a calibration curve, and how both are printed."""

    scores: Law
    curve: Any

    @classmethod
    def of(
        cls, model: str | None, scores: str | None, curve: str | None, error: float | None, order: float | None
    ) -> SimulatedModel:
        """The model that the options name.

        >>> SimulatedModel.of("resnet110_c10", None, None, None, None).scores
        BetaScores(a=2.7752, b=0.0478)
        >>> print(SimulatedModel.of(None, "beta(2, 1)", "power(2)", None, None).words)
        scores beta(2, 1); observed frequency at score s: s^2; true error L1 0.1667, L2 0.1826
        """
        if model is not None and (scores is not None or curve is not None or error is not None):
            raise CalibrationInputError("--model", "must stand alone", got="--scores, --curve or --error as well")
        if curve is not None and error is not None:
            raise CalibrationInputError("--error", "stands instead of --curve", got="both")
        if model is not None:
            if model not in PUBLISHED:
                hint = nearest(model, PUBLISHED)
                raise CalibrationInputError("--model", "is no published fit", got=repr(model), hint=hint)
            return cls(PUBLISHED[model].scores, PUBLISHED[model].curve)
        law = UNIFORM if scores is None else spelled("--scores", scores, SCORES)
        shape = None if curve is None else spelled("--curve", curve, CURVES)
        if isinstance(law, SoftmaxScores) != isinstance(shape, Tempered):
            raise CalibrationInputError("--curve", "must be tempered(T) of softmax scores, and of no others", got=curve)
        if shape is None:
            shape = curve_with_error(law, ERROR if error is None else error, 1.0 if order is None else order)
        return cls(law, shape)

    @property
    def words(self) -> str:
        """The model in a line."""
        if isinstance(self.scores, SoftmaxScores):
            words = f"scores softmax({self.scores.classes}, {self.scores.spread:g})"
            return f"{words}; true class probabilities: the scores at temperature {self.curve.temperature:g}"
        assert isinstance(self.scores, BetaScores)
        shape = f"beta({self.scores.a:g}, {self.scores.b:g})"
        errors = ", ".join(f"L{p} {true_calibration_error(self.scores, self.curve, p):.4f}" for p in (1, 2))
        return (
            f"scores {'uniform' if self.scores == UNIFORM else shape}; observed frequency at score s: "
            f"{self.curve.formula}; true error {errors}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**self.scores.described(), **curve_described(self.curve)}


def spelled(option: str, text: str, makers: dict[str, Maker]) -> Any:
    """What a word with numbers, such as beta(2, 1), stands for.

    >>> spelled("--scores", "beta(2, 1)", SCORES)
    BetaScores(a=2.0, b=1.0)
    """
    match = CALL.fullmatch(text.strip())
    name = match[1].lower() if match else text
    if match is None or name not in makers:
        raise CalibrationInputError(option, "is unknown", got=repr(text), hint=nearest(name, makers))
    try:
        values = [float(number) for number in (match[2] or "").split(",") if number.strip()]
        return makers[name](*(int(value) if name == "softmax" and value.is_integer() else value for value in values))
    except (TypeError, ValueError) as reason:
        if isinstance(reason, CalibrationInputError):
            raise CalibrationInputError(option, str(reason)) from None
        raise CalibrationInputError(option, "needs numbers as its help says", got=repr(text)) from None


def simulated_model(
    metrics: Mapping[str, Metric],
    model: str | None,
    scores: str | None,
    curve: str | None,
    error: float | None,
    order: float | None,
) -> SimulatedModel:
    """The model that the options name; refused where it cannot answer the metrics."""
    simulated = usage(lambda _: SimulatedModel.of(model, scores, curve, error, order), "")
    if not isinstance(simulated.scores, SoftmaxScores):
        refuse_classes(metrics)
    return simulated
