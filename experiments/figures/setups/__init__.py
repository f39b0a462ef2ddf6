"""Overlays and workloads that several figures share."""
