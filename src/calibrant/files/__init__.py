"""Files: predictions read from files and written to them."""

from calibrant.files.reading import SHIPPED, read, read_scores, write

__all__ = ["SHIPPED", "read", "read_scores", "write"]
