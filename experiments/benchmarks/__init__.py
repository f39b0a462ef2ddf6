"""Benchmarks of matching and of the simulation itself, as commands."""
