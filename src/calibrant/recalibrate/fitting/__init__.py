"""Fitting: what methods of recalibration share to be fitted and certified."""
