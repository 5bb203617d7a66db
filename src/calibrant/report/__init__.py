"""The report: one page that says whether probabilities can be trusted."""

from calibrant.report.calibration_report import Report

__all__ = ["Report"]
