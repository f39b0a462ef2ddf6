"""Deployment of an overlay: `local` runs its brokers on this machine, `manifests` writes files for several hosts. Both
are commands and export no names. Of the broker packages they may import config and security.
"""
