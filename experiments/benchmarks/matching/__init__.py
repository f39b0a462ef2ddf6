"""Comparison of matching indexes on one workload: `mercast match bench`. Of `experiments` it may import workloads."""
