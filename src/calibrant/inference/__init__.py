"""Inference: how sure we are. Intervals, nulls, comparisons, sensitivity."""
