"""The examples of the documentation work as typed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from broker.config.gateway_config import GatewayTable
from broker.config.overlay_config import build_config
from broker.deployment.local.overlay_files import find_overlay_file
from tests.harness.programs import path_of
from topologies.files.toml import parse_overlay

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs/mqtt.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@pytest.mark.slow
def test_the_two_minutes_work_as_typed(tmp_path: Path) -> None:
    (lines,) = blocks("sh")
    assert lines in (ROOT / "README.md").read_text()
    folder = Path(path_of("mosquitto_pub")).parent
    for port in (11883, 11884, 7021, 7022):
        if not is_free(port):
            pytest.skip(f"port {port} of the documentation's lines is in use")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "mercast"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mercast "$@"\n')
    command.chmod(0o755)
    search = os.pathsep.join([str(bin_folder), str(folder), str(Path(path_of("mosquitto")).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "MERCAST_RUN_DIR": str(tmp_path / "run")}
    script = "trap 'mercast down mqtt; kill $west $east' EXIT\n" + lines
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    (expected,) = re.findall(r"```\n(\{.*?)```", TEXT, re.DOTALL)
    assert (tmp_path / "hot.txt").read_text() == expected, done.stdout + done.stderr
    assert done.stdout.endswith(expected), done.stdout + done.stderr


def test_the_overlay_that_is_shown_is_the_one_that_is_started() -> None:
    (shown,) = blocks("toml")
    started = find_overlay_file("mqtt")
    one = build_config(parse_overlay(shown, "docs"), Path("docs"))
    other = build_config(parse_overlay(started.read_text(), "shipped"), Path("shipped"))
    assert (one.gateways, one.overlay, one.brokers.keys()) == (other.gateways, other.overlay, other.brokers.keys())
    assert {id: table.listen for id, table in one.brokers.items()} == {
        id: table.listen for id, table in other.brokers.items()
    }
    assert tomllib.loads(shown)["overlay"]["name"] == "mqtt"


def test_every_key_is_in_the_table() -> None:
    (table,) = re.findall(r"\| key \|.*?\n\n", TEXT, re.DOTALL)
    keys = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:] if row))
    assert sorted(keys) == sorted(GatewayTable.__struct_fields__)
