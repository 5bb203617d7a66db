"""The report: one page that says whether probabilities can be trusted."""

try:
    from calibrant.report.calibration_report import Report
except ModuleNotFoundError as missing:
    if missing.name not in ("jinja2", "markupsafe"):
        raise
    raise ModuleNotFoundError("calibrant.report needs jinja2: pip install 'calibrant[cli]'", name="jinja2") from None

__all__ = ["Report"]
