"""A compose file and a Dockerfile. If brokers have addresses on several hosts, each host has its own files.

Brokers in one compose file find each other by their service names.
"""

from __future__ import annotations

from pathlib import Path

from broker.deployment.manifests.plan import DATA, SECRETS, USER_ID, Placement, Plan, Resources, check_overlay_text
from broker.deployment.manifests.rendering import Yaml, render, to_yaml

OVERLAY = "/etc/mercast/overlay.toml"


def compose_files(plan: Plan, resources: Resources) -> dict[str, str]:
    """Returns the text of each file by path."""
    overlay = plan.overlay_text({each.id: each.container_settings(each.host or each.name) for each in plan.placements})
    check_overlay_text(Path("overlay.toml"), overlay)
    files: dict[str, str] = {}
    for host, placements in plan.by_host().items():
        folder = f"{host}/" if host else ""
        files[f"{folder}compose.yaml"] = to_yaml(_compose(plan, placements, resources))
        files[f"{folder}Dockerfile"] = dockerfile()
        files[f"{folder}overlay.toml"] = overlay
    return files


def dockerfile() -> str:
    return render("Dockerfile", user_id=USER_ID, data=DATA)


def _compose(plan: Plan, placements: list[Placement], resources: Resources) -> Yaml:
    compose: dict[str, Yaml] = {
        "name": f"mercast-{plan.overlay}".lower().replace(" ", "-"),
        "services": {placement.name: _service(plan, placement, resources) for placement in placements},
    }
    volumes: dict[str, Yaml] = {f"data-{placement.name}": {} for placement in placements if placement.is_durable}
    if volumes:
        compose["volumes"] = volumes
    return compose


def _service(plan: Plan, placement: Placement, resources: Resources) -> Yaml:
    volumes: list[Yaml] = [f"./overlay.toml:{OVERLAY}:ro"]
    if plan.secrets_of(placement):
        volumes.append(f"./secrets:{SECRETS}:ro")
    if placement.is_durable:
        volumes.append(f"data-{placement.name}:{DATA}")
    insecure: list[Yaml] = ["--insecure"] if plan.is_insecure else []
    # On one machine only local clients need the port. On several hosts the other brokers need it too.
    published = (
        f"{placement.port}:{placement.port}" if placement.host else f"127.0.0.1:{placement.port}:{placement.port}"
    )
    return {
        "build": ".",
        "image": "mercast",
        "command": ["broker", OVERLAY, "--id", placement.id, *insecure],
        "user": f"{USER_ID}:{USER_ID}",
        "read_only": True,
        "tmpfs": ["/tmp"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "restart": "unless-stopped",
        "stop_grace_period": "30s",
        "ports": [published],
        "volumes": volumes,
        "healthcheck": {
            "test": ["CMD", "python", "-c", placement.health_script],
            "interval": "10s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "10s",
        },
        "deploy": {"resources": {"limits": {"cpus": f"{resources.cpus:g}", "memory": f"{resources.memory_mib}M"}}},
    }
