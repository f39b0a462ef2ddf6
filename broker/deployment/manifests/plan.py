"""What an overlay file says about its hosts, and the file as the deployed brokers are to read it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from broker.config.address import Address
from broker.config.overlay_config import OverlayConfig, build_config
from broker.config.tables import ConfigError
from topologies.files.toml import OverlayFile, format_overlay, parse_overlay, read_overlay_file
from topologies.files.toml_writer import TomlValue

FIRST_ADMIN_PORT = 7100
UNSPECIFIED = ("0.0.0.0", "::")
TABLES_OF_AUTHENTICATION = ("tls", "acl")
SECRET_KEYS = {"tls": ("ca", "certificate", "key"), "acl": ("file", "brokers_token_file")}
"""By table, the keys that name files."""
SECRETS = "/etc/mercast-secrets"
"""Where deployed brokers find these files."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?")


class DeployError(Exception):
    exit_code = 3


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one broker is to run."""

    id: str
    name: str
    """Its id as services, units and host names may be called."""
    host: str
    """Where others reach it; empty when the file says no more than this machine."""
    port: int
    admin_port: int
    is_durable: bool
    mqtt: str
    """The MQTT broker's host, where it has a gateway."""


@dataclass(frozen=True, slots=True)
class Plan:
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
        """Names of the files that the broker needs beside the overlay file."""
        named = (
            value.replace("{broker}", placement.id)
            for table, keys in SECRET_KEYS.items()
            for key in keys
            if isinstance(value := self.file.tables.get(table, {}).get(key), str)
        )
        return tuple(dict.fromkeys(Path(each).name for each in named))

    def _table(self, name: str) -> dict[str, TomlValue]:
        """As the hosts read it: state where each broker has its own place, files where they are put."""
        table = dict(self.file.tables[name])
        if name == "store":
            table.pop("data_dir", None)
        for key in SECRET_KEYS.get(name, ()):
            if isinstance(value := table.get(key), str):
                table[key] = f"{SECRETS}/{Path(value).name}"
        return table

    def overlay_text(self, settings: dict[str, dict[str, TomlValue]]) -> str:
        """The overlay file with these keys for its brokers."""
        of_brokers = {
            placement.id: {**self.file.broker_settings.get(placement.id, {}), **settings[placement.id]}
            for placement in self.placements
        }
        tables = {name: self._table(name) for name in self.file.tables}
        return format_overlay(replace(self.file, broker_settings=of_brokers, tables=tables))


def read_plan(path: Path, *, is_insecure: bool) -> Plan:
    file = read_overlay_file(path)
    config = build_config(file, path)
    placements = tuple(_place(config, number, broker.id) for number, broker in enumerate(file.overlay.brokers))
    _check(placements, path)
    if not is_insecure and not any(table in file.tables for table in TABLES_OF_AUTHENTICATION):
        raise DeployError(
            f"{path} says nothing of authentication ({' or '.join(f'[{name}]' for name in TABLES_OF_AUTHENTICATION)}), "
            "and brokers on several hosts would be open to everybody who reaches them; "
            "add it, or say --insecure where the network keeps others out"
        )
    return Plan(file, file.overlay.name, placements, is_insecure)


def _place(config: OverlayConfig, number: int, id: str) -> Placement:
    broker = config.broker(id)
    reached_at = broker.address or broker.listen
    if not reached_at.port:
        raise DeployError(f'broker {id} listens on any free port; others need to know which: listen = "host:7001"')
    gateway = config.gateways.get(id)
    return Placement(
        id=id,
        name=service_name(id),
        host=_host(reached_at),
        port=reached_at.port,
        admin_port=broker.admin.port if broker.admin and broker.admin.port else FIRST_ADMIN_PORT + number,
        is_durable=broker.data_dir is not None,
        mqtt=gateway.table.host if gateway else "",
    )


def _host(address: Address) -> str:
    return "" if address.is_loopback or address.host in UNSPECIFIED else address.host


def service_name(id: str) -> str:
    """Letters, digits and dashes, as host names want it."""
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
    """What was written must be readable as it stands."""
    try:
        config = build_config(parse_overlay(text, str(path)), path)
        for broker in config.overlay.brokers:
            config.broker(broker.id)
    except ConfigError as error:
        raise DeployError(f"the overlay file for the hosts would not do: {error}") from error
