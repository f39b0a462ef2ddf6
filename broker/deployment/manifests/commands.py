"""The commands `mercast deploy systemd`, `compose` and `kubernetes`, which write files for several hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

Overlay = Annotated[Path, typer.Argument(help="The overlay file.", metavar="OVERLAY.toml")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write to. Created if missing.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Run brokers without authentication. Only for networks that you trust.")
]
Memory = Annotated[int, typer.Option(min=64, metavar="MIB", help="The memory limit of one broker.")]
Cpus = Annotated[float, typer.Option(min=0.1, help="The processor limit of one broker.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def systemd(
    overlay: Overlay,
    out: Out = Path("deploy"),
    program: Annotated[
        str, typer.Option(metavar="PATH", help="Where mercast is installed on the hosts.")
    ] = "/opt/mercast/bin/mercast",
    memory: Memory = 512,
    cpus: Cpus = 1.0,
    insecure: Insecure = False,
    force: Force = False,
) -> None:
    """Write systemd units: a folder for each host that the overlay names.

    Each folder has the host's units, the overlay file and an install.sh. A
    timer checks each broker's health and restarts a broker that does not answer.

    \b
    Examples:
      mercast deploy systemd overlay.toml --out units
      mercast deploy systemd overlay.toml --program /usr/local/bin/mercast --memory 1024
    """
    from broker.deployment.manifests.output import print_secret_files, write_files
    from broker.deployment.manifests.plan import Resources, read_plan
    from broker.deployment.manifests.systemd import systemd_files

    plan = read_plan(overlay, is_insecure=insecure)
    write_files(systemd_files(plan, program, Resources(memory, cpus)), out, is_forced=force)
    print_secret_files(plan, out)


def compose(
    overlay: Overlay,
    out: Out = Path("deploy"),
    memory: Memory = 512,
    cpus: Cpus = 1.0,
    insecure: Insecure = False,
    force: Force = False,
) -> None:
    """Write a compose file, a Dockerfile and the overlay file.

    If brokers have addresses on several hosts, each host gets a folder with
    these files. Otherwise all brokers are services of one compose file.

    \b
    Examples:
      mercast deploy compose overlay.toml --insecure
      docker compose --project-directory deploy up --build
    """
    from broker.deployment.manifests.compose import compose_files
    from broker.deployment.manifests.output import print_secret_files, warn_of_gateways, write_files
    from broker.deployment.manifests.plan import Resources, read_plan

    plan = read_plan(overlay, is_insecure=insecure)
    write_files(compose_files(plan, Resources(memory, cpus)), out, is_forced=force)
    print_secret_files(plan, out)
    warn_of_gateways(plan)


def kubernetes(
    overlay: Overlay,
    out: Out = Path("deploy"),
    image: Annotated[str, typer.Option(help="The image of the pods. The written Dockerfile builds one.")] = "mercast",
    storage: Annotated[str, typer.Option(help="The volume size of a broker with a store.")] = "1Gi",
    memory: Memory = 512,
    cpus: Cpus = 1.0,
    insecure: Insecure = False,
    force: Force = False,
) -> None:
    """Write Kubernetes manifests: a service and a stateful set for each broker.

    \b
    Examples:
      mercast deploy kubernetes overlay.toml --image registry.example.org/mercast:1
      kubectl apply -k deploy
    """
    from broker.deployment.manifests.kubernetes import kubernetes_files
    from broker.deployment.manifests.output import print_secret_commands, warn_of_gateways, write_files
    from broker.deployment.manifests.plan import Resources, read_plan

    plan = read_plan(overlay, is_insecure=insecure)
    write_files(kubernetes_files(plan, image, storage, Resources(memory, cpus)), out, is_forced=force)
    print_secret_commands(plan)
    warn_of_gateways(plan)


COMMANDS: dict[str, Callable[..., None]] = {
    "deploy systemd": systemd,
    "deploy compose": compose,
    "deploy kubernetes": kubernetes,
}
