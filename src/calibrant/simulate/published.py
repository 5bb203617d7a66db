"""Published fits: the score laws and calibration curves that were fitted to ten networks, as printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.kernels.caching import cached_property
from calibrant.simulate.calibration_curves import CalibrationCurve
from calibrant.simulate.scores import BetaScores


@dataclass(frozen=True)
class PublishedCurve:
    """One curve of a published table: which coefficients it has, its Akaike criterion, and the curve.

    The criteria are not to be compared closely: constant curves of different links are one model and have
    different ones in print.
    """

    terms: str
    """"b0", "b1" or "b0_b1": the coefficients that were fitted; the other one is 0."""
    aic: float
    curve: CalibrationCurve


@dataclass(frozen=True)
class PublishedFit:
    """A network's scores and curves, as printed, and its binned error (fraction, 15 equal-width bins, L2)."""

    name: str
    scores: BetaScores
    curves: tuple[PublishedCurve, ...]
    """All twelve, best first."""
    observed: float
    """The binned error of the network's own predictions."""
    simulated: float
    """The mean binned error over simulated data, as printed; from a curve fitted to other data than the table's."""

    @property
    def curve(self) -> CalibrationCurve:
        """The best curve."""
        return self.curves[0].curve

    @property
    def drawn(self) -> tuple[BetaScores, CalibrationCurve, float, float]:
        """What a picture shows: the law, the curve, the binned error as observed and as simulated."""
        return self.scores, self.curve, self.observed, self.simulated


class _Published(Mapping[str, PublishedFit]):
    """The published fits by name, made when first asked for."""

    @cached_property
    def _fits(self) -> dict[str, PublishedFit]:
        fits = {}
        for line in _SCORES.split("\n")[1:-1]:
            name, a, b, observed, simulated = line.split()
            curves = tuple(_curve(row) for row in _CURVES[name].split("\n")[1:-1])
            law = BetaScores(float(a), float(b))
            fits[name] = PublishedFit(name, law, curves, float(observed) / 100, float(simulated) / 100)
        return fits

    def __getitem__(self, name: str) -> PublishedFit:
        if name not in self._fits:
            raise CalibrationInputError("name", "is no published fit", got=repr(name), hint=nearest(name, self._fits))
        return self._fits[name]

    def __contains__(self, name: object) -> bool:
        return name in self._fits

    def __iter__(self) -> Iterator[str]:
        return iter(self._fits)

    def __len__(self) -> int:
        return len(self._fits)

    def __repr__(self) -> str:
        return f"PUBLISHED({', '.join(self)})"


PUBLISHED: Mapping[str, PublishedFit] = _Published()
"""The fits by network and data set.

References: Roelofs et al. (2022), tables 1-3; the winner of densenet40_c10 has b1 alone (its b0 is misprinted).

>>> from calibrant.simulate import PUBLISHED
>>> PUBLISHED["resnet110_c10"].scores, PUBLISHED["resnet110_c10"].curve
(BetaScores(a=2.7752, b=0.0478), CalibrationCurve(name='logflip_logflip', b0=-0.24, b1=0.3))
"""


def _curve(row: str) -> PublishedCurve:
    family, terms, aic, *coefficients = row.split()
    known = dict(zip(terms.split("_"), map(float, coefficients), strict=True))
    return PublishedCurve(terms, float(aic), CalibrationCurve(family, known.get("b0", 0.0), known.get("b1", 0.0)))


_SCORES = """
    resnet110_c10       2.7752  0.0478   6.67   8.42
    resnet110_SD_c10    2.1714  0.0394   6.54   8.79
    resnet_wide32_c10   2.3806  0.0379   6.09   8.44
    densenet40_c10      1.9824  0.0397   6.70   8.09
    resnet110_c100      1.1823  0.1081  20.26  18.87
    resnet110_SD_c100   1.1233  0.1147  17.44  15.78
    resnet_wide32_c100  1.0611  0.0650  20.40  17.53
    densenet40_c100     1.0805  0.0808  23.12  19.69
    resnet152_imgnet    1.1359  0.2069   6.85   9.26
    densenet161_imgnet  1.1928  0.2206   6.15   6.87
"""
"""Name, a, b, observed and simulated error in %."""

_CURVES = {
    "resnet110_c10": """
        logflip_logflip b0_b1 2779.22 -0.24 0.30
        logit_logflip b0_b1 2790.40 -0.55 -0.38
        logit_logflip b1 2827.51 -0.31
        logit_logit b0_b1 2840.70 -0.38 0.36
        logit_logit b1 2900.02 0.30
        logflip_logflip b1 2932.09 0.34
        log_log b0_b1 3221.72 -0.06 2.53
        logit_logit b0 3799.63 1.99
        logflip_logflip b0 3811.98 -2.13
        log_log b0 3829.05 -0.13
        logit_logflip b0 3868.40 1.95
        log_log b1 4281.78 4.75
    """,
    "resnet110_SD_c10": """
        logit_logflip b0_b1 2498.98 -0.27 -0.35
        logit_logit b1 2502.52 0.30
        logit_logflip b1 2508.70 -0.30
        logit_logit b0_b1 2538.41 -0.26 0.33
        logflip_logflip b0_b1 2550.29 -0.36 0.27
        logflip_logflip b1 2572.85 0.35
        log_log b0_b1 2594.91 -0.08 1.98
        log_log b0 3137.19 -0.19
        logflip_logflip b0 3150.42 -1.80
        logit_logit b0 3175.58 1.58
        logit_logflip b0 3179.67 1.56
        log_log b1 3697.37 3.77
    """,
    "resnet_wide32_c10": """
        logit_logit b1 2483.34 0.26
        logflip_logflip b0_b1 2487.69 -0.47 0.22
        logit_logit b0_b1 2511.39 -0.13 0.28
        logit_logflip b0_b1 2558.45 -0.26 -0.28
        logit_logflip b1 2586.47 -0.25
        log_log b0_b1 2647.03 -0.12 1.87
        logflip_logflip b1 2713.17 0.30
        log_log b0 2981.24 -0.21
        logflip_logflip b0 2983.05 -1.70
        logit_logit b0 2989.90 1.49
        logit_logflip b0 3055.55 1.45
        log_log b1 4582.09 4.61
    """,
    "densenet40_c10": """
        logit_logflip b1 2910.62 -0.26
        logit_logit b0_b1 2961.31 -0.40 0.31
        logit_logflip b0_b1 3000.23 -0.38 -0.31
        logflip_logflip b0_b1 3001.78 -0.31 0.24
        logit_logit b1 3021.54 0.25
        logflip_logflip b1 3027.78 0.31
        log_log b0_b1 3153.38 -0.12 2.04
        log_log b0 3531.22 -0.22
        logflip_logflip b0 3589.11 -1.60
        logit_logit b0 3601.85 1.37
        logit_logflip b0 3679.95 1.30
        log_log b1 4735.18 4.27
    """,
    "resnet110_c100": """
        logflip_logflip b0_b1 8181.97 -0.11 0.28
        logit_logit b0_b1 8206.19 -0.88 0.39
        logflip_logflip b1 8301.28 0.31
        logit_logflip b0_b1 8371.53 -1.01 -0.40
        logit_logit b1 8732.11 0.25
        log_log b0_b1 8918.21 -0.16 2.35
        logit_logflip b1 8926.99 -0.23
        logit_logflip b0 10903.83 0.74
        logit_logit b0 10943.95 0.72
        logflip_logflip b0 10964.91 -1.12
        log_log b0 11002.20 -0.40
        log_log b1 11850.89 4.26
    """,
    "resnet110_SD_c100": """
        logit_logit b0_b1 7873.61 -0.88 0.49
        logflip_logflip b0_b1 7878.19 -0.09 0.35
        logflip_logflip b1 7932.28 0.38
        logit_logflip b0_b1 7944.61 -1.04 -0.52
        logit_logit b1 8315.51 0.32
        log_log b0_b1 8437.82 -0.11 2.18
        logit_logflip b1 8510.36 -0.30
        log_log b1 9988.07 3.30
        logit_logit b0 10803.27 0.80
        log_log b0 10810.90 -0.37
        logflip_logflip b0 10823.15 -1.16
        logit_logflip b0 10834.48 0.78
    """,
    "resnet_wide32_c100": """
        logflip_logflip b0_b1 7183.93 -0.13 0.21
        logit_logit b0_b1 7219.14 -0.98 0.33
        logflip_logflip b1 7233.51 0.25
        logit_logflip b0_b1 7297.00 -1.06 -0.34
        logit_logit b1 7626.21 0.19
        log_log b0_b1 7650.97 -0.24 2.51
        logit_logflip b1 7795.28 -0.17
        logflip_logflip b0 8977.39 -0.98
        logit_logflip b0 8987.38 0.49
        log_log b0 9000.24 -0.49
        logit_logit b0 9009.51 0.49
        log_log b1 11911.51 5.48
    """,
    "densenet40_c100": """
        logit_logit b0_b1 8158.28 -0.97 0.34
        logflip_logflip b0_b1 8229.43 -0.12 0.22
        logit_logflip b0_b1 8267.77 -1.08 -0.35
        logflip_logflip b1 8368.86 0.25
        logit_logit b1 8783.50 0.19
        log_log b0_b1 8832.20 -0.25 2.26
        logit_logflip b1 8918.57 -0.18
        logit_logit b0 10138.24 0.47
        logit_logflip b0 10182.61 0.45
        logflip_logflip b0 10242.15 -0.94
        log_log b0 10261.01 -0.50
        log_log b1 13322.10 5.25
    """,
    "resnet152_imgnet": """
        logflip_logflip b0_b1 18729.85 -0.12 0.58
        logit_logit b0_b1 18783.22 -0.29 0.65
        log_log b0_b1 18785.44 -0.03 1.32
        logflip_logflip b1 18872.14 0.65
        logit_logit b1 19074.37 0.57
        logit_logflip b0_b1 19095.40 -0.82 -0.79
        log_log b1 19840.25 1.53
        logit_logflip b1 20062.10 -0.50
        logflip_logflip b0 26935.09 -1.41
        log_log b0 26968.50 -0.28
        logit_logflip b0 27012.77 1.12
        logit_logit b0 27084.11 1.11
    """,
    "densenet161_imgnet": """
        log_log b0_b1 18202.41 -0.03 1.27
        logit_logit b0_b1 18460.70 -0.25 0.68
        logflip_logflip b1 18521.48 0.67
        logflip_logflip b0_b1 18534.07 -0.10 0.61
        logit_logit b1 18822.25 0.60
        logit_logflip b0_b1 18913.25 -0.77 -0.80
        log_log b1 19493.85 1.44
        logit_logflip b1 19562.58 -0.54
        logit_logflip b0 26426.38 1.19
        logflip_logflip b0 26445.91 -1.46
        logit_logit b0 26519.76 1.18
        log_log b0 26662.65 -0.27
    """,
}
"""Family, coefficients, Akaike criterion, values."""
