"""Traces: the tables that simulations and running brokers record, and their files.

`schema` defines the tables and their digest, `files` writes and reads them as Parquet, `recorder` turns the effects of
a running broker into rows. This package imports the core's effects and inputs.
"""
