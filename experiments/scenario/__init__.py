"""Scenarios: the description of a simulation, as a TOML file and as values.

`load` reads a scenario. The other modules generate its overlay, clients, publications and faults from a seed. The
folder `shipped` has the scenarios that come with the project.
"""
