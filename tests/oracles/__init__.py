"""Oracles: every definition of the literature in the plainest loop, to hold the fast library to."""
