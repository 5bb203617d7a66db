"""Findings: tables and figures of what a study found."""
