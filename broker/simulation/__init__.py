"""Brokers in a discrete-event simulation: the unchanged core, driven by SimPy in virtual time."""
