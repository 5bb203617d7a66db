"""The door: what arrays, labels and weights must be to become predictions."""
