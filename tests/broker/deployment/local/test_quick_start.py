"""The quick start of the documentation works, line by line as a user types it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker.config.overlay_config import read_config
from broker.deployment.local.overlay_files import find_overlay_file

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "clients.md"


def quick_start() -> list[str]:
    block = re.search(r"## Quick start\n+```console\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return [line.removeprefix("$ ") for line in block[1].splitlines() if line.startswith("$ ")]


def test_it_has_five_lines() -> None:
    assert [line.split()[1] for line in quick_start()] == ["up", "sub", "pub", "trace", "down"]


@pytest.mark.slow
def test_it_works_as_typed(tmp_path: Path) -> None:
    config = read_config(find_overlay_file("demo"))
    for broker in config.overlay.brokers:
        with socket.socket() as probe:
            address = config.broker(broker.id).listen
            if probe.connect_ex((address.host, address.port)) == 0:
                pytest.skip(f"{address} is in use")
    environment = {
        **{key: value for key, value in os.environ.items() if key != "MERCAST_SERVER"},
        "MERCAST_RUN_DIR": str(tmp_path / "run"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    try:
        done = subprocess.run(
            ["bash", "-ec", "\n".join(quick_start())],
            capture_output=True,
            text=True,
            timeout=180,
            cwd=tmp_path,
            env=environment,
        )
    finally:
        subprocess.run(["mercast", "down", "--all"], env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {"symbol=IBM price=92.5", "symbol=IBM price=93.5"} <= set(done.stdout.splitlines())
    assert "passed 3 brokers and was delivered to client-" in done.stdout
    assert "overlay demo is down (5 brokers)" in done.stderr
