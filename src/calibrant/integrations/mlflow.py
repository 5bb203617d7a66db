"""MLflow: the numbers of a model's calibration as metrics of a run, and the report as its artifact."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recipes import BRIER, ECE, LOG_LOSS, MCS
from calibrant.result import Result


def log_calibration(
    predictions: Predictions,
    *,
    metrics: Mapping[str, Metric] | None = None,
    prefix: str = "calibration_",
    report: str | None = "calibration.html",
    client: Any = None,
    **options: Any,
) -> dict[str, Result]:
    """Log calibration numbers, and the report page, to the active MLflow run.

    `report` names the artifact, or is None for numbers alone; other options go to `Report.of`. `client` is the mlflow
    module unless another with `log_metric` and `log_artifact` is given.

    >>> class Printing:
    ...     def log_metric(self, name, value):
    ...         print(name, round(value, 4))
    >>> rows = Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .6])
    >>> _ = log_calibration(rows, metrics={"ece": ECE}, report=None, client=Printing())
    calibration_ece 0.275
    """
    if client is None:
        import mlflow as client  # type: ignore[import-not-found, no-redef]
    chosen = {"ece": ECE, "mcs": MCS, "brier": BRIER, "log_loss": LOG_LOSS} if metrics is None else metrics
    results = {name: metric(predictions) for name, metric in chosen.items()}
    for name, result in results.items():
        client.log_metric(prefix + re.sub(r"[^\w\-. /]", "_", name), result.value)
    if report is not None:
        from calibrant.report import Report

        with tempfile.TemporaryDirectory() as folder:
            client.log_artifact(str(Report.of(predictions, **options).save(Path(folder, report))))
    return results
