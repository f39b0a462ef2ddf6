"""Kubernetes manifests: a service and a stateful set of one pod for each broker, and one overlay file for all."""

from __future__ import annotations

import hashlib
from pathlib import Path

from broker.deployment.manifests.compose import dockerfile
from broker.deployment.manifests.plan import (
    DATA,
    SECRETS,
    USER_ID,
    Placement,
    Plan,
    Resources,
    check_overlay_text,
    service_name,
)
from broker.deployment.manifests.rendering import Yaml, to_yaml

FOLDER = "/etc/mercast"


def kubernetes_files(plan: Plan, image: str, storage: str, resources: Resources) -> dict[str, str]:
    """Returns the text of each file by path."""
    overlay = plan.overlay_text({each.id: each.container_settings(each.name) for each in plan.placements})
    check_overlay_text(Path("overlay.toml"), overlay)
    name = f"mercast-{service_name(plan.overlay)}"
    files = {
        "overlay.yaml": to_yaml(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"app": name}},
                "data": {"overlay.toml": overlay},
            }
        ),
        "Dockerfile": dockerfile(),
    }
    # The digest is part of the pod template, so Kubernetes restarts a pod when the overlay file changes.
    digest = hashlib.sha256(overlay.encode()).hexdigest()[:16]
    for placement in plan.placements:
        files[f"{placement.name}.yaml"] = to_yaml(
            _service(placement, name), _stateful_set(plan, placement, name, image, storage, resources, digest)
        )
    manifests: list[Yaml] = [path for path in files if path.endswith(".yaml")]
    files["kustomization.yaml"] = to_yaml(
        {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": manifests}
    )
    return files


def secret_name(plan: Plan, placement: Placement) -> str:
    return f"mercast-{service_name(plan.overlay)}-{placement.name}"


def _labels(placement: Placement, name: str) -> dict[str, Yaml]:
    return {"app": name, "broker": placement.name}


def _service(placement: Placement, name: str) -> Yaml:
    labels = _labels(placement, name)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": placement.name, "labels": labels},
        "spec": {
            # A headless service resolves to the pod. Brokers connect to each other before they are ready.
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [{"name": "mercast", "port": placement.port, "targetPort": placement.port}],
        },
    }


def _stateful_set(
    plan: Plan, placement: Placement, name: str, image: str, storage: str, resources: Resources, digest: str
) -> Yaml:
    labels = _labels(placement, name)
    volumes: list[Yaml] = [{"name": "overlay", "configMap": {"name": name}}, {"name": "tmp", "emptyDir": {}}]
    if plan.secrets_of(placement):
        # Only the owner and the broker's group can read the files.
        volumes.append(
            {"name": "secrets", "secret": {"secretName": secret_name(plan, placement), "defaultMode": 0o440}}
        )
    spec: dict[str, Yaml] = {
        "serviceName": placement.name,
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": {"mercast/overlay": digest}},
            "spec": {
                "terminationGracePeriodSeconds": 30,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": USER_ID,
                    "runAsGroup": USER_ID,
                    "fsGroup": USER_ID,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [_container(plan, placement, image, resources)],
                "volumes": volumes,
            },
        },
    }
    if placement.is_durable:
        spec["volumeClaimTemplates"] = [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
            }
        ]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": placement.name, "labels": labels},
        "spec": spec,
    }


def _container(plan: Plan, placement: Placement, image: str, resources: Resources) -> Yaml:
    mounts: list[Yaml] = [
        {"name": "overlay", "mountPath": FOLDER, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if plan.secrets_of(placement):
        mounts.append({"name": "secrets", "mountPath": SECRETS, "readOnly": True})
    if placement.is_durable:
        mounts.append({"name": "data", "mountPath": DATA})
    insecure: list[Yaml] = ["--insecure"] if plan.is_insecure else []
    check: dict[str, Yaml] = {
        # A command inside the container, because the admin pages listen on loopback only.
        "exec": {"command": ["python", "-c", placement.health_script]},
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "failureThreshold": 3,
    }
    limits: dict[str, Yaml] = {"cpu": f"{round(1000 * resources.cpus)}m", "memory": f"{resources.memory_mib}Mi"}
    requests: dict[str, Yaml] = {"cpu": f"{round(250 * resources.cpus)}m", "memory": f"{resources.memory_mib // 2}Mi"}
    return {
        "name": "broker",
        "image": image,
        "args": ["broker", f"{FOLDER}/overlay.toml", "--id", placement.id, *insecure],
        "ports": [{"name": "mercast", "containerPort": placement.port}],
        "volumeMounts": mounts,
        "livenessProbe": {**check, "initialDelaySeconds": 10},
        "readinessProbe": {**check, "initialDelaySeconds": 2},
        "resources": {"limits": limits, "requests": requests},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
