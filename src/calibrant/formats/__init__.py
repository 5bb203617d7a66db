"""Formats: prediction files as named arrays, one format a module, read without trust and without pickle."""
