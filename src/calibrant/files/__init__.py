"""Files: predictions read from files and written to them."""

from calibrant.files.reading import SHIPPED, read, read_scores, write
from calibrant.files.score_columns import Scores

__all__ = ["SHIPPED", "Scores", "read", "read_scores", "write"]
