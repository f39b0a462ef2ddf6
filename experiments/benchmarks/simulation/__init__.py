"""Benchmark of the simulation's speed, `mercast simulate-bench`, and calibration of its cost profile, `mercast
calibrate`. Of `experiments` it may import workloads.
"""
