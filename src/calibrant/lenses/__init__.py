"""Lenses: which question is asked of each forecast.

A lens is any callable from `Predictions` to a `View`; those here are frozen values. Scalar lenses
(`TopLabel`, `InTopK`, `Ranked`, `OneClass`, `Classwise`, `Flat`) ask about events, d = 1. Vector lenses (`Full`,
`TopK`, `Groups`) keep a whole distribution, completed to the simplex.
"""

from calibrant.lenses.around import Above, Between, ByLabel, ByPrediction
from calibrant.lenses.distributions import Full, Groups, TopK
from calibrant.lenses.events import Classwise, Flat, InTopK, OneClass, Ranked, TopLabel
from calibrant.lenses.lens import Lens

__all__ = [
    "Above",
    "Between",
    "ByLabel",
    "ByPrediction",
    "Classwise",
    "Flat",
    "Full",
    "Groups",
    "InTopK",
    "Lens",
    "OneClass",
    "Ranked",
    "TopK",
    "TopLabel",
]
