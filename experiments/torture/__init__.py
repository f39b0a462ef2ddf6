"""Torture: random schedules of faults on broker cores in memory, with an oracle of owed deliveries. Of `experiments` it
may import simulate and sweeps.
"""
