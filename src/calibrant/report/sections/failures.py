"""Failures: how many errors remain when the least certain rows are left to somebody else."""

from __future__ import annotations

import numpy as np

from calibrant import diagnostics
from calibrant.errors.mean_score import entropy
from calibrant.report.charts import Line, lines
from calibrant.report.page import Figure, Grid, Section
from calibrant.report.study import Study, tried


def failures_section(study: Study) -> Section | None:
    """Risk against coverage, and the accuracy after referring some of the rows."""
    given = study.predictions
    if given.kind != "classes" or given.soft is not None or given.weight is not None or study.width > 100:
        return None
    found = tried(lambda: diagnostics.risk_coverage(given, entropy))
    if found is None:
        return None
    n = len(given)
    at = np.unique(np.linspace(max(1, n // 100), n, 100).astype(int)) - 1
    rows = [(f"{100 * share:g}%", found.accuracy_after_referring(share)) for share in (0, 0.05, 0.1, 0.2, 0.3, 0.5)]
    picture = lines(
        "failures-picture",
        [Line("risk", ((at + 1) / n).tolist(), np.asarray(found.risk)[at].tolist())],
        ("share of rows kept, most certain first", "share of errors"),
        f"Risk against coverage, n = {n:,}",
        f"The share of errors among the rows kept; area under it {found.aurc:.4f}.",
    )
    said = f"Rows are referred by the entropy of their forecast; area under the risk-coverage curve {found.aurc:.4f}."
    grid = Grid(("referred", "accuracy on the rest"), rows, "Accuracy after referring the least certain rows")
    return Section("failures", "Failure detection", (said,), (Figure("failures-figure", picture, f"n = {n:,}.", grid),))
