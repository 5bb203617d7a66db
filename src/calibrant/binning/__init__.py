"""Binning: how samples are pooled."""

from calibrant.binning.contract import Binning
from calibrant.binning.fixed import Edges, EqualWidth
from calibrant.binning.ranked import EqualMass, Quantiles
from calibrant.binning.sweep import Sweep
from calibrant.binning.vectors import Grid, KDTree

__all__ = ["Binning", "Edges", "EqualMass", "EqualWidth", "Grid", "KDTree", "Quantiles", "Sweep"]
