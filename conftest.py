"""What is not collected: examples, which run when the pages are built, and what an optional package is missing for; and
which pages are slow."""

from importlib.util import find_spec

import pytest

collect_ignore = ["docs/gallery", "docs/examples", "docs/guides"]  # guides run in tests/test_guides.py
collect_ignore += ["src/calibrant/scale/spark.py"]  # its examples run with the session of tests/test_scan_spark.py
if not find_spec("torch"):
    collect_ignore += ["src/calibrant/train", "src/calibrant/experiments/training/networks"]
    collect_ignore += ["src/calibrant/experiments/training/given_weights.py"]
    collect_ignore += [
        f"src/calibrant/kernels/{name}.py" for name in ("order_statistics", "rowwise", "tensors", "torch")
    ]
if not find_spec("torchmetrics"):
    collect_ignore += ["src/calibrant/integrations/torchmetrics.py"]
if not find_spec("triton"):
    collect_ignore += [f"src/calibrant/kernels/{name}.py" for name in ("along_rows", "down_columns", "fused")]

SLOW_PAGES = {"choose.md", "index.md", "inference.md", "metrics.md", "plots.md", "report.md", "simulation.md"}
"""Pages whose examples take seconds."""


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples of slow pages."""
    for item in items:
        if item.path.parent.name == "docs" and item.path.name in SLOW_PAGES:
            item.add_marker("slow")
