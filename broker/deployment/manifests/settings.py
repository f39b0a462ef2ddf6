"""Settings that systemd units, compose files and Kubernetes manifests share."""

from __future__ import annotations

from dataclasses import dataclass

USER_ID = 10_001
"""The id of the unprivileged user in containers."""

HEALTH_SCRIPT = "import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/healthz', timeout=3)"
"""A health check that fails unless the broker serves. It is written in Python, which every broker's host has."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resource limits of one broker."""

    memory_mib: int = 512
    cpus: float = 1.0
