"""Comparison of matching indexes on one workload: `mercast match bench`."""
