"""Scenarios: what a simulation runs, as a TOML file and as values.

`load` reads a scenario, the other modules make its overlay, clients, publications and faults from a seed. `shipped` has
the scenarios that come with the project.
"""
