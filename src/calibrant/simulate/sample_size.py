"""Sample sizes: how many samples it takes to notice a calibration error, and how exactly simulation knows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from calibrant.checks import number, order, whole
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.simulate.calibration_curves import CalibrationCurve
from calibrant.simulate.detection import Detection, power
from calibrant.simulate.named import to_json
from calibrant.simulate.scores import Scores
from calibrant.simulate.targets import order_of
from calibrant.simulate.truth import curve_with_error

FEWEST = 20
"""The smallest number of samples that is tried first."""
CONFIDENCE = 0.9
"""How often the interval of a number of samples holds the number that endless replicates would give."""
SPREAD = (-0.15, -0.09, -0.03, 0.03, 0.09, 0.15)
"""Where power is simulated, as shares of the square root of n about the answer: the probit is nearly straight there."""
ROUNDS = 12
"""Rounds after which an interval stays as wide as it is."""

Simulated = Callable[[int, int], Detection]
"""The detection at a number of samples, from a number of replicates."""


@dataclass(frozen=True)
class SamplesNeeded:
    """How many samples it takes to notice an error, with an interval for what simulation leaves open."""

    n: int
    """The number at which the fitted power is the wanted one."""
    low: int
    """Fewer samples than this are too few; 1 where the fewest that are tried are enough."""
    high: int
    """This many samples are enough."""
    confidence: float
    """How often low and high lie on both sides of the number that endless replicates would give."""
    replicates: int
    """Replicates at each of the numbers of samples that the answer was read from."""
    detections: tuple[Detection, ...]
    """The powers that the answer was read from."""
    error: float
    curve: CalibrationCurve
    wanted: float
    level: float
    p: float

    @property
    def at_most(self) -> bool:
        """Whether the fewest samples that are tried are enough already."""
        return self.low == 1

    def __str__(self) -> str:
        simulated = f"{self.replicates:,} replicates at {len(self.detections)} sizes"
        answer = (
            f"{self.n:,} samples or fewer ({self.replicates:,} replicates)"
            if self.at_most
            else f"about {self.n:,} samples ({self.confidence:.0%} interval {self.low:,} to {self.high:,}; {simulated})"
        )
        return (
            f"{answer} to notice a true L{self.p:g} error of {self.error:g} with power {self.wanted:g} "
            f"at level {self.level:g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        named = {"curve": self.curve.name, "b0": self.curve.b0, "b1": self.curve.b1}
        return {**vars(self), **named, "detections": [vars(detection) for detection in self.detections]}

    def to_json(self) -> str:
        """The answer as JSON."""
        return to_json(self.to_dict())


def samples_needed(
    metric: Metric,
    scores: Scores,
    error: float,
    *,
    wanted: float = 0.8,
    level: float = 0.05,
    p: float | None = None,
    within: float = 0.1,
    replicates: int = 400,
    most: int = 200_000,
    seed: int = 0,
    n_jobs: int = 1,
) -> SamplesNeeded:
    r"""How many samples do I need to notice a true calibration error of this size?

    The model is over-confident along the curve s^d whose true L^p error is `error` (p is the metric's own, else 2). n
    is doubled until the power is at least `wanted`. Around that n the power is simulated at six sizes, and

    .. math:: \Phi^{-1}(\text{power}) = c_0 + c_1 \sqrt n

    is fitted to them; the answer is where the line reaches `wanted`, its 90% interval Fieller's. Sizes move to the
    answer, and replicates grow from `replicates`, until the interval is narrower than the share `within` of it, or 12
    rounds have passed. Where 20 samples are enough, no smaller number is tried. Refused where `most` samples are not.

    References: Roelofs et al. (2022), section 5.4; Fieller (1954).

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, samples_needed
    >>> needed = samples_needed(cal.ECE_SWEEP, UNIFORM, 0.1, within=0.2)
    >>> 100 < needed.low < needed.n < needed.high < 250
    True
    """
    whole(most, "most", FEWEST)
    whole(replicates, "replicates", 2)
    number(wanted, "wanted", "must lie strictly between 0 and 1", lambda share: 0 < share < 1)
    number(within, "within", "must be a share above 0", lambda share: 0 < share < np.inf)
    p = float(p or order_of(metric) or 2.0)
    order(p, "p")
    curve = curve_with_error(scores, error, p)

    def simulated(n: int, count: int) -> Detection:
        return power({"it": metric}, scores, curve, n, level, count, seed, n_jobs=n_jobs)["it"]

    enough = _enough(simulated, wanted, most, replicates, error)
    if enough.n == FEWEST and enough.power - NormalDist().inv_cdf(CONFIDENCE) * enough.mc_error >= wanted:
        return SamplesNeeded(FEWEST, 1, FEWEST, CONFIDENCE, replicates, (enough,), error, curve, wanted, level, p)
    detections = _narrowed(simulated, wanted, most, replicates, within, enough.n / math.sqrt(2))
    n, low, high = reaching(wanted, detections)
    if not math.isfinite(high):
        raise CalibrationInputError(
            "wanted", "must be a power that is reached once", got=f"{wanted:g}, about which power does not rise with n"
        )
    sizes = math.ceil(n), math.floor(low), math.ceil(high)
    return SamplesNeeded(*sizes, CONFIDENCE, detections[0].replicates, detections, error, curve, wanted, level, p)


def _enough(simulated: Simulated, wanted: float, most: int, replicates: int, error: float) -> Detection:
    """The first of doubled numbers of samples whose power is the wanted one."""
    detection = simulated(FEWEST, replicates)
    while detection.power < wanted:
        if detection.n == most:
            raise CalibrationInputError(
                "error", f"must be noticeable with {most:,} samples", got=f"power {detection.power:.2f} for {error:g}"
            )
        detection = simulated(min(2 * detection.n, most), replicates)
    return detection


def _narrowed(
    simulated: Simulated, wanted: float, most: int, replicates: int, within: float, centre: float
) -> tuple[Detection, ...]:
    """Powers at sizes around the answer, from replicates that make its interval narrow enough."""
    detections: tuple[Detection, ...] = ()
    for _ in range(ROUNDS):
        sizes = sorted({min(most, max(2, round(centre * (1 + share) ** 2))) for share in SPREAD})
        detections = tuple(simulated(n, replicates) for n in sizes)
        n, low, high = reaching(wanted, detections)
        inside = sizes[0] <= n <= sizes[-1]
        width = (high - low) / (within * n)
        if inside and width <= 1:
            break
        centre = min(2 * centre, max(centre / 2, n))
        if inside:
            replicates = math.ceil(replicates * min(4.0, 1.2 * max(1.0, width) ** 2))
    return detections


def reaching(wanted: float, detections: tuple[Detection, ...]) -> tuple[float, float, float]:
    """Where a line through the powers reaches the wanted one, and Fieller's interval; endless where it may be flat."""
    normal = NormalDist()
    count = detections[0].replicates
    roots = np.sqrt([detection.n for detection in detections])
    shares = [(count * detection.power + 0.5) / (count + 1) for detection in detections]  # off 0 and 1
    probits = np.array([normal.inv_cdf(share) for share in shares])
    errors = [detection.mc_error / normal.pdf(probit) for detection, probit in zip(detections, probits, strict=True)]
    variance = float(np.mean(np.square(errors))) * normal.inv_cdf((1 + CONFIDENCE) / 2) ** 2
    steps = roots - roots.mean()
    spread = float(steps @ steps)
    slope = float(steps @ probits) / spread if spread else 0.0
    missing = normal.inv_cdf(wanted) - float(probits.mean())
    steepness = slope**2 - variance / spread if spread else 0.0
    if slope <= 0 or steepness <= 0:
        return float(roots.mean()) ** 2, 1.0, math.inf
    centre = slope * missing / steepness
    half = math.sqrt(variance * (missing**2 / spread + steepness / len(roots))) / steepness
    ends = [float(roots.mean()) + step for step in (missing / slope, centre - half, centre + half)]
    n, low, high = (max(end, 1.0) ** 2 for end in ends)
    return n, low, high
