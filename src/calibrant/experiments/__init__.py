"""Experiments: networks trained in many ways, with every number of a study made from one file.

A study is a YAML file; its trials are trained by as many processes as there are and kept in a store; tables and figures
are made from the store. What trains a network needs NumPy and torch alone.
"""
