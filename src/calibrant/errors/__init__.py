"""Errors: the estimators, one a file."""
