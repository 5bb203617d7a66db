"""What is not collected where an optional package is missing."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/calibrant/train", "src/calibrant/experiments/models"]
