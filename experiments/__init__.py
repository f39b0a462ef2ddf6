"""Experiments: workloads, simulations, benchmarks, the papers' figures and the analysis of traces. It may import
`broker`, `routing`, `matching` and `topologies`; each subpackage says which others of `experiments` it may import. Each
subpackage exports its own names.
"""
