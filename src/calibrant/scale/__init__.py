"""Scale: the same numbers from files, days and machines that no memory holds together."""

from calibrant.scale import spark
from calibrant.scale.scanning import Scan, first_rows, scan
from calibrant.scale.state import Results, State

__all__ = ["Results", "Scan", "State", "first_rows", "scan", "spark"]
