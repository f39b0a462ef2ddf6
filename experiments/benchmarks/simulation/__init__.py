"""Benchmark of the simulation's speed, and calibration of its cost profile."""
