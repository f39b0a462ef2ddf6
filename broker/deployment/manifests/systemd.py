"""systemd units: a folder for each host, with a unit for each of its brokers, the overlay file, and a health check."""

from __future__ import annotations

from pathlib import Path

from broker.deployment.manifests.plan import DATA, SECRETS, DeployError, Plan, Resources, check_overlay_text
from broker.deployment.manifests.rendering import render

FOLDER = "/etc/mercast"
FORBIDDEN_IN_UNITS = ("%", "\n", '"', "\\", "$")


def systemd_files(plan: Plan, program: str, resources: Resources) -> dict[str, str]:
    """Returns the text of each file by path."""
    if plan.is_on_one_machine:
        raise DeployError("all brokers listen on this machine alone; on one machine `mercast up` starts them")
    overlay = plan.overlay_text({each.id: each.settings() for each in plan.placements})
    check_overlay_text(Path("overlay.toml"), overlay)
    _check_names(plan)
    python = program.rpartition("/")[0] + "/python"
    files: dict[str, str] = {}
    for host, placements in plan.by_host().items():
        files[f"{host}/overlay.toml"] = overlay
        for placement in placements:
            unit = f"mercast-{placement.name}"
            values = {"placement": placement, "unit": unit}
            files[f"{host}/{unit}.service"] = render(
                "broker.service", **values, plan=plan, program=program, folder=FOLDER, resources=resources
            )
            files[f"{host}/{unit}-health.service"] = render("health.service", **values, python=python)
            files[f"{host}/{unit}-restart.service"] = render("restart.service", **values)
            files[f"{host}/{unit}-health.timer"] = render("health.timer", **values)
        units = [f"mercast-{each.name}{suffix}" for each in placements for suffix in (".service", "-health.timer")]
        secrets = dict.fromkeys(name for placement in placements for name in plan.secrets_of(placement))
        files[f"{host}/install.sh"] = render(
            "install.sh", units=units, secrets=secrets, secrets_folder=SECRETS, folder=FOLDER, state=DATA
        )
    return files


def _check_names(plan: Plan) -> None:
    """Raises DeployError for a name that has a meaning of its own in a unit."""
    for text in (*(placement.id for placement in plan.placements), plan.overlay):
        if any(each in text for each in FORBIDDEN_IN_UNITS):
            raise DeployError(f"{text!r} cannot stand in a systemd unit; take letters, digits and dashes")
