"""Integrations: calibrant in the world of other libraries."""
