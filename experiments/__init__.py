"""Experiments: workloads, benchmarks, the papers' figures and the analysis of traces."""
