"""What can be wrong with a deployment."""

from __future__ import annotations


class DeploymentError(Exception):
    exit_code = 1


class PreflightError(DeploymentError):
    """Found before anything was started."""

    exit_code = 3


class UnreachablePeerError(DeploymentError):
    exit_code = 4


class NotConnectedInTimeError(DeploymentError):
    exit_code = 5
