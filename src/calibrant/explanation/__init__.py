"""Explanation: what other libraries would report for the same predictions, and why they differ."""

from calibrant.explanation.explained import ChangedChoice, Explanation, Reported, explain
from calibrant.explanation.library_bins import LibraryBins
from calibrant.explanation.mesh_smooth import MeshSmoothError

__all__ = ["ChangedChoice", "Explanation", "LibraryBins", "MeshSmoothError", "Reported", "explain"]
