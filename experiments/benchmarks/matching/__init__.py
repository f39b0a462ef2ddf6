"""Matching indexes compared on one workload: `mercast match bench`."""
