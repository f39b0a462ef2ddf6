"""Simulation of a scenario: the run, the oracle of what is owed, the summary, the command."""
