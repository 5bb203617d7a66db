"""Specifications: what is known of pieces, how they are written, spelled and read again."""
