"""Writes deployment files, and prints the steps that are left to the user."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from broker.config.address import Address
from broker.deployment.manifests.plan import DeployError, Plan


def write_files(files: Mapping[str, str], folder: Path, *, is_forced: bool) -> None:
    """Writes the files and prints their paths on stdout. Overwrites existing files only if `is_forced`."""
    existing = [path for path in files if (folder / path).exists()]
    if existing and not is_forced:
        raise DeployError(f"{folder / existing[0]} is there already; say --force, or another --out")
    for path, text in files.items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise DeployError(f"cannot write {target}: {error.strerror}") from error
        if path.endswith(".sh"):
            target.chmod(0o755)
        print(target)


def warn_of_gateways(plan: Plan) -> None:
    """Warns if a gateway's MQTT broker is on loopback, which a container cannot reach."""
    for placement in plan.placements:
        if placement.mqtt and Address(placement.mqtt, 0).is_loopback:
            print(
                f"mercast: the MQTT broker of {placement.id} is at {placement.mqtt}, which within a container is the "
                "container itself; give its host's name in the overlay file",
                file=sys.stderr,
            )


def print_secret_files(plan: Plan, folder: Path) -> None:
    """Prints the secret files that the user must copy. Mercast itself never copies keys."""
    for host, placements in plan.by_host().items():
        names = dict.fromkeys(name for placement in placements for name in plan.secrets_of(placement))
        if names:
            print(f"mercast: put {', '.join(names)} into {folder / host / 'secrets'}", file=sys.stderr)


def print_secret_commands(plan: Plan) -> None:
    """Prints the kubectl commands that create each broker's secret."""
    from broker.deployment.manifests.kubernetes import secret_name

    for placement in plan.placements:
        if names := plan.secrets_of(placement):
            files = " ".join(f"--from-file={name}" for name in names)
            command = f"kubectl create secret generic {secret_name(plan, placement)} {files}"
            print(f"mercast: before you apply them: {command}", file=sys.stderr)
