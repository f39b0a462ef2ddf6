"""The deployment plan: the hosts and ports of an overlay's brokers, and the overlay file for the hosts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from broker.config.address import Address
from broker.config.overlay_config import OverlayConfig, build_config
from broker.config.tables import ConfigError
from topologies.files.toml import OverlayFile, TomlValue, format_overlay, parse_overlay, read_overlay_file

FIRST_ADMIN_PORT = 7100
UNSPECIFIED = ("0.0.0.0", "::")
AUTHENTICATION_TABLES = ("tls", "acl")
SECRET_KEYS = {"tls": ("ca", "certificate", "key"), "acl": ("file", "brokers_token_file"), "admin": ("token_file",)}
"""The keys that name files, by table."""
SECRETS = "/etc/mercast-secrets"
"""The folder of these files on the hosts."""
DATA = "/var/lib/mercast"
"""The folder on the hosts that has the data folders of durable brokers."""
USER_ID = 10_001
"""The id of the unprivileged user in containers."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?")


class DeployError(Exception):
    """The overlay cannot be deployed as requested."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Resources:
    """The resource limits of one broker."""

    memory_mib: int = 512
    cpus: float = 1.0


@dataclass(frozen=True, slots=True)
class Placement:
    """The host and ports of one broker."""

    id: str
    name: str
    """The broker's id in a form that is valid for services, units and host names."""
    host: str
    """The host that others connect to; empty if the broker has only a loopback or unspecified address."""
    port: int
    admin_port: int
    is_durable: bool
    mqtt: str
    """The host of the gateway's MQTT broker; empty without a gateway."""

    @property
    def health_script(self) -> str:
        """A health check that fails unless the broker serves. It is in Python, which every broker's host has."""
        return f"import urllib.request as r; r.urlopen('http://127.0.0.1:{self.admin_port}/healthz', timeout=3)"

    def settings(self) -> dict[str, TomlValue]:
        """The keys of the broker's table on its host."""
        admin: dict[str, TomlValue] = {"admin": f"127.0.0.1:{self.admin_port}"}
        return {**admin, "data_dir": f"{DATA}/{self.name}"} if self.is_durable else admin

    def container_settings(self, host: str) -> dict[str, TomlValue]:
        """The keys of the broker's table in a container that other brokers reach at `host`."""
        return {"listen": f"0.0.0.0:{self.port}", "address": f"{host}:{self.port}", **self.settings()}


@dataclass(frozen=True, slots=True)
class Plan:
    """The placements of an overlay's brokers, with the overlay file that they come from."""

    file: OverlayFile
    overlay: str
    placements: tuple[Placement, ...]
    is_insecure: bool

    @property
    def is_on_one_machine(self) -> bool:
        return not any(placement.host for placement in self.placements)

    def by_host(self) -> dict[str, list[Placement]]:
        hosts: dict[str, list[Placement]] = {}
        for placement in self.placements:
            hosts.setdefault(placement.host, []).append(placement)
        return hosts

    def secrets_of(self, placement: Placement) -> tuple[str, ...]:
        """Names of the files in [tls], [acl] and [admin] that the broker needs."""
        named = (
            value.replace("{broker}", placement.id)
            for table, keys in SECRET_KEYS.items()
            for key in keys
            if isinstance(value := self.file.tables.get(table, {}).get(key), str)
        )
        return tuple(dict.fromkeys(Path(each).name for each in named))

    def _table(self, name: str) -> dict[str, TomlValue]:
        """A table for the hosts: without the shared data_dir, because each broker has its own, and with host paths."""
        table = dict(self.file.tables[name])
        if name == "store":
            table.pop("data_dir", None)
        for key in SECRET_KEYS.get(name, ()):
            if isinstance(value := table.get(key), str):
                table[key] = f"{SECRETS}/{Path(value).name}"
        return table

    def overlay_text(self, settings: dict[str, dict[str, TomlValue]]) -> str:
        """Returns the overlay file for the hosts. `settings` has keys for each broker's table."""
        broker_settings = {
            placement.id: {**self.file.broker_settings.get(placement.id, {}), **settings[placement.id]}
            for placement in self.placements
        }
        tables = {name: self._table(name) for name in self.file.tables}
        return format_overlay(replace(self.file, broker_settings=broker_settings, tables=tables))


def read_plan(path: Path, *, is_insecure: bool) -> Plan:
    """Reads an overlay file and plans its deployment. Raises DeployError without authentication or `is_insecure`."""
    file = read_overlay_file(path)
    config = build_config(file, path)
    placements = tuple(_place(config, number, broker.id) for number, broker in enumerate(file.overlay.brokers))
    _check(placements, path)
    if not is_insecure and not any(table in file.tables for table in AUTHENTICATION_TABLES):
        raise DeployError(
            f"{path} says nothing of authentication ({' or '.join(f'[{name}]' for name in AUTHENTICATION_TABLES)}), "
            "and brokers on several hosts would be open to everybody who reaches them; "
            "add it, or say --insecure where the network keeps others out"
        )
    return Plan(file, file.overlay.name, placements, is_insecure)


def _place(config: OverlayConfig, number: int, id: str) -> Placement:
    broker = config.broker(id)
    contact = broker.address or broker.listen
    if not contact.port:
        raise DeployError(f'broker {id} listens on any free port; others need to know which: listen = "host:7001"')
    gateway = config.gateways.get(id)
    return Placement(
        id=id,
        name=service_name(id),
        host=_host(contact),
        port=contact.port,
        admin_port=broker.admin.port if broker.admin and broker.admin.port else FIRST_ADMIN_PORT + number,
        is_durable=broker.data_dir is not None,
        mqtt=gateway.table.host if gateway else "",
    )


def _host(address: Address) -> str:
    return "" if address.is_loopback or address.host in UNSPECIFIED else address.host


def service_name(id: str) -> str:
    """Returns a name with letters, digits and dashes only, as host names require."""
    name = re.sub(r"[^a-z0-9]+", "-", id.lower()).strip("-")
    if not _NAME.fullmatch(name):
        raise DeployError(f"broker id {id!r} gives no name for a host; take letters and digits, 52 at most")
    return name


def _check(placements: tuple[Placement, ...], path: Path) -> None:
    names: dict[str, str] = {}
    for placement in placements:
        other = names.setdefault(placement.name, placement.id)
        if other != placement.id:
            raise DeployError(f"{path}: brokers {other} and {placement.id} would both be called {placement.name!r}")
    local = [placement.id for placement in placements if not placement.host]
    if local and len(local) < len(placements):
        raise DeployError(
            f"{path}: brokers {', '.join(local)} have no address that other hosts reach, and others do; "
            'give each an address = "host:port"'
        )


def check_overlay_text(path: Path, text: str) -> None:
    """Raises DeployError if a broker cannot read the overlay file that was generated for the hosts."""
    try:
        config = build_config(parse_overlay(text, str(path)), path)
        for broker in config.overlay.brokers:
            config.broker(broker.id)
    except ConfigError as error:
        raise DeployError(f"the overlay file for the hosts would not do: {error}") from error
