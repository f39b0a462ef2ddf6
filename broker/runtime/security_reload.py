"""Reads a broker's security files again while it runs."""

from __future__ import annotations

from broker.config.overlay_config import ConfigError
from broker.log import Log
from broker.runtime.client_registry import ClientRegistry
from broker.security.authentication import Security


def reload_security(security: Security, clients: ClientRegistry, log: Log) -> None:
    """Reads certificates and the access list again, and enforces the new rights.

    Disconnects clients that are no longer authorised, and revokes entries that rights no longer cover.
    """
    try:
        security.reload()
    except ConfigError as error:
        log.error("security not reloaded", reason=str(error))
        return
    clients.update_rights()
    log.info("security reloaded")
