"""Explanation: what other libraries would report for the same predictions, and why they differ."""

from calibrant.explanation.explained import Choice, Explanation, Reported, explain
from calibrant.explanation.library_bins import LibraryBins

__all__ = ["Choice", "Explanation", "LibraryBins", "Reported", "explain"]
