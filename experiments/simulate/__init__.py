"""Simulation of a scenario: the run, the oracle of owed deliveries, the summary, the commands."""
