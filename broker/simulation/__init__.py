"""A discrete-event simulation of brokers: SimPy drives the unchanged broker core in virtual time."""
