"""Metrics of traces: functions from DataFrame to DataFrame, one module for each topic."""
