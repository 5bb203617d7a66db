"""What is not collected: examples, which run when the pages are built, and what an optional package is missing for."""

from importlib.util import find_spec

collect_ignore = ["docs/gallery", "docs/examples"]
if not find_spec("torch"):
    collect_ignore += ["src/calibrant/train", "src/calibrant/experiments/training/models"]
