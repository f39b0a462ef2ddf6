"""Deployment files for several hosts: valid for their readers, without root, with limits, health checks and a usable
overlay file."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.config.overlay_config import read_config
from broker.deployment.manifests.plan import DeployError, service_name

ROOT = Path(__file__).resolve().parents[4]

SEVERAL_HOSTS = """
schema = 1
[overlay]
name = "plant"
protocol = "d-dbr"
[store]
data_dir = "data"
fsync = "checkpoint"
[[broker]]
id = "b1"
listen = "0.0.0.0:7001"
address = "10.1.0.1:7001"
mqtt = "127.0.0.1:1883"
[[broker]]
id = "B_2"
listen = "10.1.0.2:7001"
admin = "127.0.0.1:7300"
[[broker]]
id = "b3"
listen = "10.1.0.2:7002"
[[link]]
between = ["b1", "B_2"]
[[link]]
between = ["B_2", "b3"]
latency_ms = 4.0
"""
ONE_MACHINE = SEVERAL_HOSTS.replace("0.0.0.0", "127.0.0.1").replace("10.1.0.2", "127.0.0.1")
ONE_MACHINE = ONE_MACHINE.replace('address = "10.1.0.1:7001"\n', "").replace("127.0.0.1:7001", "127.0.0.1:7000", 1)


class StrictLoader(yaml.SafeLoader):
    """Refuses a mapping with a key twice, of which PyYAML keeps the last, and a key that is no string."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key) for key, _ in node.value]
        assert all(isinstance(key, str) for key in keys), keys
        assert len(set(keys)) == len(keys), f"a key occurs twice: {keys}"
        return super().construct_mapping(node, deep)


def read_documents(path: Path) -> list[Any]:
    return list(yaml.load_all(path.read_text(encoding="utf-8"), StrictLoader))


def read_yaml(path: Path) -> Any:
    (document,) = read_documents(path)
    return document


def deploy(tmp_path: Path, overlay: str, *words: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    path, out = tmp_path / "overlay.toml", tmp_path / "out"
    path.write_text(overlay)
    command = [sys.executable, "-m", "mercast", "deploy", words[0], str(path), "--out", str(out), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False), out


def deployed(tmp_path: Path, overlay: str, *words: str) -> Path:
    done, out = deploy(tmp_path, overlay, *words)
    assert done.returncode == 0, done.stderr
    written = sorted(str(path) for path in out.rglob("*") if path.is_file())
    assert sorted(done.stdout.splitlines()) == written
    return out


def test_units_are_written_for_the_hosts_that_the_overlay_names(tmp_path: Path) -> None:
    out = deployed(tmp_path, SEVERAL_HOSTS, "systemd", "--insecure")
    assert sorted(path.name for path in out.iterdir()) == ["10.1.0.1", "10.1.0.2"]
    units = sorted(path.name for path in (out / "10.1.0.2").glob("*.service"))
    assert "mercast-b-2.service" in units
    assert "mercast-b3.service" in units
    text = (out / "10.1.0.2/mercast-b-2.service").read_text()
    assert '--id "B_2" --insecure' in text
    assert "\nUser=mercast\n" in text
    assert "\nMemoryMax=512M\n" in text
    health = (out / "10.1.0.2/mercast-b-2-health.service").read_text()
    assert "http://127.0.0.1:7300/healthz" in health
    assert (out / "10.1.0.1/install.sh").stat().st_mode & 0o111


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is missing; Debian, Ubuntu: apt-get install systemd")
    program = tmp_path / "bin" / "mercast"
    program.parent.mkdir()
    for name in ("mercast", "python"):
        (program.parent / name).write_text("#!/bin/sh\n")
        (program.parent / name).chmod(0o755)
    out = deployed(tmp_path, SEVERAL_HOSTS, "systemd", "--insecure", "--program", str(program))
    units = [str(path) for path in (out / "10.1.0.2").iterdir() if path.suffix in (".service", ".timer")]
    assert len(units) == 8
    done = subprocess.run([verify, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if str(out) in line or "mercast" in line]
    assert complaints == []
    assert done.returncode == 0, done.stderr


def test_a_unit_with_a_wrong_line_would_be_found(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is missing; Debian, Ubuntu: apt-get install systemd")
    unit = tmp_path / "mercast-x.service"
    unit.write_text("[Service]\nType=nonsense\nExecStart=/nowhere/mercast\n")
    done = subprocess.run([verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_brokers_can_read_the_overlay_file_for_the_hosts(tmp_path: Path) -> None:
    out = deployed(tmp_path, SEVERAL_HOSTS, "systemd", "--insecure")
    config = read_config(out / "10.1.0.1/overlay.toml")
    assert config.broker("b1").data_dir == Path("/var/lib/mercast/b1")
    assert config.broker("B_2").data_dir == Path("/var/lib/mercast/b-2")
    assert str(config.broker("b1").admin) == "127.0.0.1:7101"
    assert str(config.broker("b1").neighbours[0].address) == "10.1.0.2:7001"
    assert config.store.fsync == "checkpoint"
    assert config.gateways["b1"].table.port == 1883
    assert config.overlay.link("B_2", "b3").latency_ms == 4.0


def test_compose_services_run_without_root_and_within_limits(tmp_path: Path) -> None:
    out = deployed(tmp_path, ONE_MACHINE, "compose", "--insecure", "--memory", "256", "--cpus", "0.5")
    compose = read_yaml(out / "compose.yaml")
    assert list(compose["services"]) == ["b-2", "b1", "b3"]
    service = compose["services"]["b-2"]
    assert service["command"] == ["broker", "/etc/mercast/overlay.toml", "--id", "B_2", "--insecure"]
    assert service["user"] == "10001:10001"
    assert service["cap_drop"] == ["ALL"]
    assert service["deploy"]["resources"]["limits"] == {"cpus": "0.5", "memory": "256M"}
    assert "127.0.0.1:7300/healthz" in service["healthcheck"]["test"][-1]
    assert service["volumes"][1] == "data-b-2:/var/lib/mercast"
    assert set(compose["volumes"]) == {"data-b1", "data-b-2", "data-b3"}
    assert "\nUSER 10001:10001\n" in (out / "Dockerfile").read_text()
    config = read_config(out / "overlay.toml")
    assert str(config.broker("b3").neighbours[0].address) == "b-2:7001"
    assert str(config.broker("b3").listen) == "0.0.0.0:7002"


def test_compose_for_several_hosts_is_a_folder_for_each(tmp_path: Path) -> None:
    out = deployed(tmp_path, SEVERAL_HOSTS, "compose", "--insecure")
    here, there = (read_yaml(out / host / "compose.yaml") for host in ("10.1.0.1", "10.1.0.2"))
    assert list(here["services"]) == ["b1"]
    assert there["services"]["b3"]["ports"] == ["7002:7002"]
    config = read_config(out / "10.1.0.1/overlay.toml")
    assert str(config.broker("b1").neighbours[0].address) == "10.1.0.2:7001"


def manifests(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    kustomization = read_yaml(out / "kustomization.yaml")
    found = {}
    for path in kustomization["resources"]:
        for document in read_documents(out / path):
            found[document["kind"], document["metadata"]["name"]] = document
    return found


def test_kubernetes_manifests_fit_together(tmp_path: Path) -> None:
    out = deployed(tmp_path, SEVERAL_HOSTS, "kubernetes", "--insecure", "--image", "registry/mercast:1")
    found = manifests(out)
    assert [key for key in found if key[0] == "StatefulSet"] == [
        ("StatefulSet", "b-2"),
        ("StatefulSet", "b1"),
        ("StatefulSet", "b3"),
    ]
    text = found["ConfigMap", "mercast-plant"]["data"]["overlay.toml"]
    written = tmp_path / "as-deployed.toml"
    written.write_text(text)
    config = read_config(written)
    for name, id in (("b1", "b1"), ("b-2", "B_2"), ("b3", "b3")):
        service, stateful = found["Service", name], found["StatefulSet", name]["spec"]
        pod = stateful["template"]["spec"]
        (container,) = pod["containers"]
        assert service["spec"]["selector"] == stateful["template"]["metadata"]["labels"]
        assert stateful["selector"]["matchLabels"] == stateful["template"]["metadata"]["labels"]
        assert stateful["serviceName"] == name
        assert container["args"] == ["broker", "/etc/mercast/overlay.toml", "--id", id, "--insecure"]
        assert container["image"] == "registry/mercast:1"
        address = config.brokers[id].contact_address
        assert address is not None
        assert str(address) == f"{name}:{service['spec']['ports'][0]['port']}"
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["resources"]["limits"] == {"cpu": "1000m", "memory": "512Mi"}
        assert "/healthz" in container["livenessProbe"]["exec"]["command"][-1]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        provided = {volume["name"] for volume in pod["volumes"]}
        provided |= {claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]}
        assert mounted == provided
        data_dir = config.broker(id).data_dir
        assert data_dir is not None
        assert any(data_dir.is_relative_to(mount["mountPath"]) for mount in container["volumeMounts"])


def test_kustomize_reads_the_manifests(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing; the manifests were read with PyYAML alone")
    out = deployed(tmp_path, SEVERAL_HOSTS, "kubernetes", "--insecure")
    done = subprocess.run([kubectl, "kustomize", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("kind: StatefulSet") == 3


SECURE = (
    SEVERAL_HOSTS
    + """
[tls]
ca = "certs/ca.pem"
certificate = "certs/{broker}.pem"
key = "certs/{broker}.key"
[acl]
file = "access.toml"
"""
)


def test_certificates_have_host_paths_and_keys_are_not_copied(tmp_path: Path) -> None:
    done, out = deploy(tmp_path, SECURE, "systemd")
    assert done.returncode == 0, done.stderr
    assert f"put ca.pem, b1.pem, b1.key, access.toml into {out / '10.1.0.1' / 'secrets'}" in done.stderr
    install = (out / "10.1.0.1/install.sh").read_text()
    assert "install -m 0640 -g mercast secrets/b1.key /etc/mercast-secrets/b1.key\n" in install
    assert "b3.key" not in install
    assert "--insecure" not in (out / "10.1.0.1/mercast-b1.service").read_text()
    config = read_config(out / "10.1.0.1/overlay.toml")
    assert config.raw_tables["tls"]["key"] == "/etc/mercast-secrets/{broker}.key"
    assert config.raw_tables["acl"] == {"file": "/etc/mercast-secrets/access.toml"}
    assert subprocess.run(["sh", "-n", str(out / "10.1.0.1/install.sh")], check=False).returncode == 0


def test_the_token_of_the_admin_pages_has_a_host_path(tmp_path: Path) -> None:
    done, out = deploy(tmp_path, SECURE + '[admin]\ntoken_file = "admin.token"\n', "systemd")
    assert done.returncode == 0, done.stderr
    assert "access.toml, admin.token into" in done.stderr
    assert read_config(out / "10.1.0.1/overlay.toml").admin.token_file == "/etc/mercast-secrets/admin.token"


def test_containers_get_the_secrets_mounted(tmp_path: Path) -> None:
    out = deployed(tmp_path, SECURE, "compose")
    compose = read_yaml(out / "10.1.0.1/compose.yaml")
    assert "./secrets:/etc/mercast-secrets:ro" in compose["services"]["b1"]["volumes"]


def test_pods_get_the_secrets_mounted(tmp_path: Path) -> None:
    done, out = deploy(tmp_path, SECURE, "kubernetes")
    files = "--from-file=ca.pem --from-file=b1.pem --from-file=b1.key --from-file=access.toml"
    assert f"kubectl create secret generic mercast-plant-b1 {files}" in done.stderr
    pod = manifests(out)["StatefulSet", "b1"]["spec"]["template"]["spec"]
    assert {"name": "secrets", "secret": {"secretName": "mercast-plant-b1", "defaultMode": 0o440}} in pod["volumes"]
    mounts = pod["containers"][0]["volumeMounts"]
    assert {"name": "secrets", "mountPath": "/etc/mercast-secrets", "readOnly": True} in mounts


def test_brokers_with_names_that_yaml_reads_as_other_types_keep_them(tmp_path: Path) -> None:
    overlay = ONE_MACHINE.replace('"b1"', '"1e3"').replace('"B_2"', '"y"').replace('"b3"', '"null"')
    services = read_yaml(deployed(tmp_path, overlay, "compose", "--insecure") / "compose.yaml")["services"]
    assert {name: service["command"][3] for name, service in services.items()} == {
        "1e3": "1e3",
        "null": "null",
        "y": "y",
    }


@pytest.mark.parametrize("missing", ["jinja2", "yaml"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path: Path, missing: str) -> None:
    path, out = tmp_path / "overlay.toml", tmp_path / "out"
    path.write_text(SEVERAL_HOSTS)
    words = ("deploy", "kubernetes", str(path), "--out", str(out), "--insecure")
    code = f"import sys\nsys.modules[{missing!r}] = None\nsys.argv[1:] = {words!r}\nimport mercast\nmercast.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    says = f"mercast: deployment files need {missing}: pip install 'mercast[deploy]'\n"
    assert (done.returncode, done.stderr) == (3, says)
    assert not out.exists()


@pytest.mark.parametrize("word", ["50%", "a$b"])
def test_a_name_with_a_special_meaning_in_a_unit_is_refused(tmp_path: Path, word: str) -> None:
    done, out = deploy(tmp_path, SEVERAL_HOSTS.replace('"plant"', f'"{word}"'), "systemd", "--insecure")
    assert done.returncode == 3
    assert f"{word!r} cannot stand in a systemd unit" in done.stderr
    assert not out.exists()


def test_an_overlay_without_authentication_needs_the_option_insecure(tmp_path: Path) -> None:
    for kind in ("systemd", "compose", "kubernetes"):
        done, out = deploy(tmp_path, SEVERAL_HOSTS, kind)
        assert done.returncode == 3
        assert "--insecure" in done.stderr
        assert not out.exists()


def test_existing_files_are_overwritten_only_with_force(tmp_path: Path) -> None:
    deployed(tmp_path, ONE_MACHINE, "compose", "--insecure")
    done, _ = deploy(tmp_path, ONE_MACHINE, "compose", "--insecure")
    assert done.returncode == 3
    assert "--force" in done.stderr
    again, _ = deploy(tmp_path, ONE_MACHINE, "compose", "--insecure", "--force")
    assert again.returncode == 0


def test_an_mqtt_broker_on_loopback_causes_a_warning_for_containers(tmp_path: Path) -> None:
    done, _ = deploy(tmp_path, SEVERAL_HOSTS, "compose", "--insecure")
    assert "the MQTT broker of b1 is at 127.0.0.1" in done.stderr


@pytest.mark.parametrize(
    ("overlay", "kind", "words"),
    [
        (ONE_MACHINE, "systemd", "mercast up"),
        (SEVERAL_HOSTS.replace("10.1.0.2:7002", "127.0.0.1:7002"), "compose", "b3 have no address"),
        (SEVERAL_HOSTS.replace("10.1.0.2:7002", "10.1.0.2:0"), "systemd", "any free port"),
        (SEVERAL_HOSTS.replace('"b3"', '"B-2"'), "kubernetes", "would both be called 'b-2'"),
    ],
)
def test_an_overlay_that_cannot_be_deployed_is_refused_with_the_reason(
    tmp_path: Path, overlay: str, kind: str, words: str
) -> None:
    done, out = deploy(tmp_path, overlay, kind, "--insecure")
    assert done.returncode == 3
    assert words in done.stderr
    assert not out.exists()


def test_the_lines_of_the_documentation_work_as_typed(tmp_path: Path) -> None:
    text = (ROOT / "docs/deployment.md").read_text()
    (overlay,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "overlay.toml").write_text(overlay)
    lines = re.findall(r"^mercast deploy .*$", text, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        command = [sys.executable, "-m", "mercast", *line.split()[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "units/10.1.0.1/mercast-b1.service").exists()
    assert (tmp_path / "compose/10.1.0.2/compose.yaml").exists()
    assert (tmp_path / "manifests/kustomization.yaml").exists()


def test_service_names_are_valid_host_names() -> None:
    assert service_name("T:0.1") == "t-0-1"
    with pytest.raises(DeployError, match="no name for a host"):
        service_name("§§")
