"""Benchmarks of matching and of the simulation itself, as commands. They export no names. Of `experiments` they may
import workloads.
"""
