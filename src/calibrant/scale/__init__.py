"""Scale: the same numbers from files, days and machines that no memory holds together."""

from calibrant.scale.state import State

__all__ = ["State"]
