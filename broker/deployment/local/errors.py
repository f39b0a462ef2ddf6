"""Errors of local deployments, with their exit codes."""

from __future__ import annotations


class DeploymentError(Exception):
    exit_code = 1


class PreflightError(DeploymentError):
    """A mistake that was found before any process was started."""

    exit_code = 3


class AdminError(DeploymentError):
    """A broker's admin pages cannot be reached, or refused the request."""

    exit_code = 4


class UnreachablePeerError(DeploymentError):
    exit_code = 4


class NotConnectedInTimeError(DeploymentError):
    exit_code = 5
