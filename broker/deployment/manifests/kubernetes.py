"""Kubernetes manifests: for each broker a service that names it and a stateful set of one, and one overlay file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from broker.deployment.manifests.compose import DATA, DOCKERFILE
from broker.deployment.manifests.plan import SECRETS, Place, Plan, check_no_config_error, service_name
from broker.deployment.manifests.settings import HEALTH_SCRIPT, USER_ID, Resources
from broker.deployment.manifests.yaml_text import Yaml, to_documents, to_yaml
from topologies.files.toml_writer import TomlValue

FOLDER = "/etc/mercast"


def kubernetes_files(plan: Plan, image: str, storage: str, resources: Resources) -> dict[str, str]:
    """By path."""
    overlay = plan.overlay_text({place.id: _settings(place) for place in plan.places})
    check_no_config_error(Path("overlay.toml"), overlay)
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
        "Dockerfile": DOCKERFILE,
    }
    # A pod whose overlay file changed is started anew, because this is another pod then.
    digest = hashlib.sha256(overlay.encode()).hexdigest()[:16]
    for place in plan.places:
        documents = [_service(place, name), _stateful_set(plan, place, name, image, storage, resources, digest)]
        files[f"{place.name}.yaml"] = to_documents(documents)
    manifests: list[Yaml] = [path for path in files if path.endswith(".yaml")]
    files["kustomization.yaml"] = to_yaml(
        {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": manifests}
    )
    return files


def _settings(place: Place) -> dict[str, TomlValue]:
    settings: dict[str, TomlValue] = {
        "listen": f"0.0.0.0:{place.port}",
        "address": f"{place.name}:{place.port}",
        "admin": f"127.0.0.1:{place.admin_port}",
    }
    if place.is_durable:
        settings["data_dir"] = f"{DATA}/{place.name}"
    return settings


def secret_name(plan: Plan, place: Place) -> str:
    return f"mercast-{service_name(plan.overlay)}-{place.name}"


def _labels(place: Place, name: str) -> dict[str, Yaml]:
    return {"app": name, "broker": place.name}


def _service(place: Place, name: str) -> Yaml:
    labels = _labels(place, name)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": place.name, "labels": labels},
        "spec": {
            # Without an address of its own: the name leads to the pod. Brokers look for each other before they serve.
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [{"name": "mercast", "port": place.port, "targetPort": place.port}],
        },
    }


def _stateful_set(
    plan: Plan, place: Place, name: str, image: str, storage: str, resources: Resources, digest: str
) -> Yaml:
    labels = _labels(place, name)
    volumes: list[Yaml] = [{"name": "overlay", "configMap": {"name": name}}, {"name": "tmp", "emptyDir": {}}]
    if plan.secrets_of(place):
        # Readable for the broker's group alone.
        volumes.append({"name": "secrets", "secret": {"secretName": secret_name(plan, place), "defaultMode": 0o440}})
    spec: dict[str, Yaml] = {
        "serviceName": place.name,
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
                "containers": [_container(plan, place, image, resources)],
                "volumes": volumes,
            },
        },
    }
    if place.is_durable:
        spec["volumeClaimTemplates"] = [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
            }
        ]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": place.name, "labels": labels},
        "spec": spec,
    }


def _container(plan: Plan, place: Place, image: str, resources: Resources) -> Yaml:
    mounts: list[Yaml] = [
        {"name": "overlay", "mountPath": FOLDER, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if plan.secrets_of(place):
        mounts.append({"name": "secrets", "mountPath": SECRETS, "readOnly": True})
    if place.is_durable:
        mounts.append({"name": "data", "mountPath": DATA})
    insecure: list[Yaml] = ["--insecure"] if plan.is_insecure else []
    check: dict[str, Yaml] = {
        # From within: the admin pages are for the broker's own host alone.
        "exec": {"command": ["python", "-c", HEALTH_SCRIPT.format(port=place.admin_port)]},
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "failureThreshold": 3,
    }
    limits: dict[str, Yaml] = {"cpu": f"{round(1000 * resources.cpus)}m", "memory": f"{resources.memory_mib}Mi"}
    requests: dict[str, Yaml] = {"cpu": f"{round(250 * resources.cpus)}m", "memory": f"{resources.memory_mib // 2}Mi"}
    return {
        "name": "broker",
        "image": image,
        "args": ["broker", f"{FOLDER}/overlay.toml", "--id", place.id, *insecure],
        "ports": [{"name": "mercast", "containerPort": place.port}],
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
