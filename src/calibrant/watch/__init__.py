"""Watch: the calibration of a model in use, with alarms that stay valid however often one looks."""

from calibrant.watch.closed_windows import ClosedWindow, WatchSettings, cell_counts, watch_state
from calibrant.watch.confidence_sequences import mean_gap_sequence, slope_sequence, window_gap_sequence
from calibrant.watch.joining import Joining
from calibrant.watch.looks import Look, look
from calibrant.watch.model_differences import score_difference
from calibrant.watch.watching import Watch

__all__ = [
    "ClosedWindow",
    "Joining",
    "Look",
    "Watch",
    "WatchSettings",
    "cell_counts",
    "look",
    "mean_gap_sequence",
    "score_difference",
    "slope_sequence",
    "watch_state",
    "window_gap_sequence",
]
