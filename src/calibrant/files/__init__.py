"""Files: predictions read from files and written to them."""

from calibrant.files.reading import SHIPPED, read, read_scores, write
from calibrant.files.score_columns import ScoreColumns

__all__ = ["SHIPPED", "ScoreColumns", "read", "read_scores", "write"]
