"""Deployment of an overlay: `local` runs its brokers on this machine, `manifests` writes files for several hosts.

This package imports config and security.
"""
