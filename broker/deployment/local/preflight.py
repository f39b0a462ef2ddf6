"""Checks that find mistakes before any broker is started."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from importlib.util import find_spec

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig, OverlayConfig
from broker.deployment.local.errors import PreflightError, UnreachablePeerError
from broker.security.authentication import check_exposure
from broker.security.security_config import load_security
from topologies.errors import nearest

REACH_WITHIN_S = 2.0


def select_brokers(config: OverlayConfig, only: Sequence[str]) -> list[BrokerConfig]:
    """Returns the brokers to start: those in `only`, or all. Each must have a `listen` address."""
    known = [broker.id for broker in config.overlay.brokers]
    for id in only:
        if id not in known:
            raise PreflightError(f"--only {id}: {config.path} has no such broker; {nearest(id, known)}")
    return [config.broker(id) for id in known if not only or id in only]


def check_brokers(brokers: Sequence[BrokerConfig], *, is_insecure: bool, allows_missing_peers: bool) -> None:
    """Checks security, installed packages, ports, and neighbours that run elsewhere."""
    for broker in brokers:
        # load_security reads certificates, keys and access lists, so that a missing file is found here.
        check_exposure(broker.listen, broker.admin, load_security(broker), is_insecure)
        _check_installed(broker)
        _check_port(broker, broker.listen, "listen")
        if broker.admin is not None:
            _check_port(broker, broker.admin, "admin")
    if not allows_missing_peers:
        _check_peers(brokers)


def _check_installed(broker: BrokerConfig) -> None:
    """Raises if an optional package is missing. Otherwise the broker would exit and be restarted forever."""
    where = f"broker {broker.id} of {broker.overlay.path}"
    if broker.id in broker.overlay.gateways and find_spec("aiomqtt") is None:
        raise PreflightError(f"{where} has an MQTT gateway, and aiomqtt is not installed: pip install 'mercast[mqtt]'")
    if broker.admin is not None and broker.admin.port and lacks_admin_pages():
        raise PreflightError(f"{where} has admin pages, and aiohttp is not installed: pip install 'mercast[admin]'")


def lacks_admin_pages() -> bool:
    """Whether the package that serves admin pages is not installed."""
    return find_spec("aiohttp") is None


def _check_port(broker: BrokerConfig, address: Address, key: str) -> None:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            raise PreflightError(_port_error(broker, address, key, error)) from None


def _port_error(broker: BrokerConfig, address: Address, key: str, error: OSError) -> str:
    where = f"broker {broker.id}: {key} = {str(address)!r}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: the port is in use; `mercast status` shows the overlays here, `ss -ltnp` all programs; "
            f"or copy {broker.overlay.path}, change {key} there and start the copy"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where} is no address of this machine; start that broker where it is, and here the others with --only"
    if error.errno == errno.EACCES:
        return f"{where}: this user may not use that port; take one from 1024 on"
    return f"{where}: {error.strerror or error}"


def _check_peers(brokers: Sequence[BrokerConfig]) -> None:
    """Raises if a neighbour that is not started here cannot be reached."""
    here = {broker.id for broker in brokers}
    for broker in brokers:
        for neighbour in broker.neighbours:
            if neighbour.id in here or neighbour.address is None:
                continue
            address = neighbour.address
            try:
                socket.create_connection((address.host, address.port), timeout=REACH_WITHIN_S).close()
            except OSError as error:
                raise UnreachablePeerError(
                    f"broker {broker.id}: its neighbour {neighbour.id} at {address} cannot be reached "
                    f"({error.strerror or error}); start it first, or say --allow-missing-peers"
                ) from None
