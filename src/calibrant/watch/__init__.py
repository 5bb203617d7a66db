"""Watch: the calibration of a model in use, with alarms that stay valid however often one looks."""

from calibrant.watch.closed_windows import ClosedWindow, WatchSettings, watch_state
from calibrant.watch.joining import Joining
from calibrant.watch.looks import Look, look
from calibrant.watch.model_differences import score_difference
from calibrant.watch.watching import Watch

__all__ = ["ClosedWindow", "Joining", "Look", "Watch", "WatchSettings", "look", "score_difference", "watch_state"]
