"""Brokers: the core without I/O, and what drives it."""
