"""The configuration of an overlay: addresses, durations, and the tables of an overlay file.

`read_config` reads an overlay file. This package imports the core's settings, the wire's limits and topologies.
"""
