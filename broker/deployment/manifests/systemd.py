"""systemd units: a folder for each host, with a unit for each of its brokers, the overlay file, and a health check."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from broker.deployment.manifests.plan import SECRETS, DeployError, Placement, Plan, check_overlay_text
from broker.deployment.manifests.settings import HEALTH_SCRIPT, Resources
from topologies.files.toml_writer import TomlValue

FOLDER = "/etc/mercast"
STATE = "/var/lib/mercast"
FORBIDDEN_IN_UNITS = ("%", "\n", '"', "\\", "$")


def systemd_files(plan: Plan, program: str, resources: Resources) -> dict[str, str]:
    """Returns the text of each file by path."""
    if plan.is_on_one_machine:
        raise DeployError("all brokers listen on this machine alone; on one machine `mercast up` starts them")
    settings: dict[str, dict[str, TomlValue]] = {
        placement.id: {
            "admin": f"127.0.0.1:{placement.admin_port}",
            **({"data_dir": f"{STATE}/{placement.name}"} if placement.is_durable else {}),
        }
        for placement in plan.placements
    }
    overlay = plan.overlay_text(settings)
    check_overlay_text(Path("overlay.toml"), overlay)
    files: dict[str, str] = {}
    for host, placements in plan.by_host().items():
        files[f"{host}/overlay.toml"] = overlay
        for placement in placements:
            unit = f"mercast-{placement.name}"
            files[f"{host}/{unit}.service"] = _service(plan, placement, program, resources)
            files[f"{host}/{unit}-health.service"] = _health(placement, unit, program)
            files[f"{host}/{unit}-restart.service"] = _restart(placement, unit)
            files[f"{host}/{unit}-health.timer"] = _timer(placement, unit)
        files[f"{host}/install.sh"] = _install(plan, placements)
    return files


def _service(plan: Plan, placement: Placement, program: str, resources: Resources) -> str:
    insecure = " --insecure" if plan.is_insecure else ""
    for text in (placement.id, plan.overlay):
        if any(each in text for each in FORBIDDEN_IN_UNITS):
            raise DeployError(f"{text!r} cannot stand in a systemd unit; take letters, digits and dashes")
    return f"""[Unit]
Description=Mercast broker {placement.id} of overlay {plan.overlay}
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User=mercast
Group=mercast
ExecStart={program} broker {FOLDER}/overlay.toml --id "{placement.id}"{insecure}
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
StateDirectory=mercast/{placement.name}
StateDirectoryMode=0700
LimitNOFILE=65536
MemoryMax={resources.memory_mib}M
CPUQuota={round(100 * resources.cpus)}%
TasksMax=64
NoNewPrivileges=true
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true
PrivateDevices=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectControlGroups=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=true
LockPersonality=true
CapabilityBoundingSet=

[Install]
WantedBy=multi-user.target
"""


def _health(placement: Placement, unit: str, program: str) -> str:
    python = program.rpartition("/")[0] + "/python"
    return f"""[Unit]
Description=Health of Mercast broker {placement.id}
After={unit}.service
OnFailure={unit}-restart.service

[Service]
Type=oneshot
User=mercast
ExecStart={python} -c "{HEALTH_SCRIPT.format(port=placement.admin_port)}"
"""


def _restart(placement: Placement, unit: str) -> str:
    return f"""[Unit]
Description=Restarts Mercast broker {placement.id}, which gave no answer

[Service]
Type=oneshot
ExecStart=/bin/systemctl try-restart {unit}.service
"""


def _timer(placement: Placement, unit: str) -> str:
    return f"""[Unit]
Description=Looks after Mercast broker {placement.id} twice a minute

[Timer]
OnActiveSec=60
OnUnitActiveSec=30
Unit={unit}-health.service

[Install]
WantedBy=timers.target
"""


def _install(plan: Plan, placements: list[Placement]) -> str:
    units = " ".join(
        f"mercast-{placement.name}.service mercast-{placement.name}-health.timer" for placement in placements
    )
    secrets = dict.fromkeys(name for placement in placements for name in plan.secrets_of(placement))
    copies = [f"install -d -m 0750 -g mercast {SECRETS}"] if secrets else []
    copies += [f"install -m 0640 -g mercast secrets/{quote(name)} {SECRETS}/{quote(name)}" for name in secrets]
    return f"""#!/bin/sh
# Run as root on this host, in this folder, where mercast is installed.
set -eu
id mercast >/dev/null 2>&1 || useradd --system --home-dir {STATE} --shell /usr/sbin/nologin mercast
install -d -m 0755 {FOLDER}
install -m 0644 overlay.toml {FOLDER}/overlay.toml
{"".join(f"{line}{chr(10)}" for line in copies)}install -m 0644 mercast-*.service mercast-*.timer /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now {units}
"""
