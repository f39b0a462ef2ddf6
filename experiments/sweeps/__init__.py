"""Sweeps: parameters of many runs, their outcomes on disk, and their distribution over processes or Spark."""
