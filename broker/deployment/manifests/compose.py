"""A compose file and a Dockerfile; where the overlay's brokers have addresses on several hosts, a file for each host.

Within one file brokers find each other by their services' names.
"""

from __future__ import annotations

from pathlib import Path

from broker.deployment.manifests.plan import SECRETS, Place, Plan, check_no_config_error
from broker.deployment.manifests.settings import HEALTH_SCRIPT, USER_ID, Resources
from broker.deployment.manifests.yaml_text import Yaml, to_yaml
from topologies.files.toml_writer import TomlValue

DATA = "/var/lib/mercast"
OVERLAY = "/etc/mercast/overlay.toml"

DOCKERFILE = f"""FROM python:3.11-slim
# What pip installs: a version, a wheel beside this file, or a git address.
ARG MERCAST="mercast[admin,mqtt]"
RUN pip install --no-cache-dir "${{MERCAST}}" \\
 && useradd --uid {USER_ID} --create-home --shell /usr/sbin/nologin mercast \\
 && install -d -o mercast -g mercast {DATA}
USER {USER_ID}:{USER_ID}
ENTRYPOINT ["mercast"]
"""


def compose_files(plan: Plan, resources: Resources) -> dict[str, str]:
    """By path."""
    overlay = plan.overlay_text({place.id: _settings(place) for place in plan.places})
    check_no_config_error(Path("overlay.toml"), overlay)
    files: dict[str, str] = {}
    for host, places in plan.by_host().items():
        folder = f"{host}/" if host else ""
        files[f"{folder}compose.yaml"] = to_yaml(_compose(plan, places, resources))
        files[f"{folder}Dockerfile"] = DOCKERFILE
        files[f"{folder}overlay.toml"] = overlay
    return files


def _settings(place: Place) -> dict[str, TomlValue]:
    settings: dict[str, TomlValue] = {
        "listen": f"0.0.0.0:{place.port}",
        "address": f"{place.host or place.name}:{place.port}",
        "admin": f"127.0.0.1:{place.admin_port}",
    }
    if place.is_durable:
        settings["data_dir"] = f"{DATA}/{place.name}"
    return settings


def _compose(plan: Plan, places: list[Place], resources: Resources) -> Yaml:
    compose: dict[str, Yaml] = {
        "name": f"mercast-{plan.overlay}".lower().replace(" ", "-"),
        "services": {place.name: _service(plan, place, resources) for place in places},
    }
    volumes: dict[str, Yaml] = {f"data-{place.name}": {} for place in places if place.is_durable}
    if volumes:
        compose["volumes"] = volumes
    return compose


def _service(plan: Plan, place: Place, resources: Resources) -> Yaml:
    volumes: list[Yaml] = [f"./overlay.toml:{OVERLAY}:ro"]
    if plan.secrets_of(place):
        volumes.append(f"./secrets:{SECRETS}:ro")
    if place.is_durable:
        volumes.append(f"data-{place.name}:{DATA}")
    insecure: list[Yaml] = ["--insecure"] if plan.is_insecure else []
    # On one machine the port is for this machine's clients; on several, for the other hosts too.
    published = f"{place.port}:{place.port}" if place.host else f"127.0.0.1:{place.port}:{place.port}"
    return {
        "build": ".",
        "image": "mercast",
        "command": ["broker", OVERLAY, "--id", place.id, *insecure],
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
            "test": ["CMD", "python", "-c", HEALTH_SCRIPT.format(port=place.admin_port)],
            "interval": "10s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "10s",
        },
        "deploy": {"resources": {"limits": {"cpus": f"{resources.cpus:g}", "memory": f"{resources.memory_mib}M"}}},
    }
