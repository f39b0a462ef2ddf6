"""Overlays of real processes on the command line: up, sub, pub, status, trace, down, and mistakes before a start."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.config.address import parse_address
from broker.config.duration import DurationError
from broker.config.overlay_config import read_config
from broker.deployment.local.admin_address import find_admin_pages
from broker.deployment.local.errors import DeploymentError, PreflightError
from broker.deployment.local.overlay_files import find_overlay_file, shipped_names
from broker.deployment.local.preflight import check_brokers, select_brokers
from broker.deployment.local.processes import ProcessIdentity
from broker.deployment.local.run_folder import BrokerState, OverlayState, RunFolder
from broker.deployment.local.status import BrokerLine, OverlayStatus, print_overlays, watch_overlays
from tests.harness.client_processes import overlay_text
from tests.harness.command_line import WITHIN_S, CommandLine, line_of
from tests.harness.conditions import wait_until
from tests.harness.ports import free_ports
from topologies.errors import OverlayFileError


@pytest.fixture
def command(tmp_path: Path) -> Iterator[CommandLine]:
    place = tmp_path / "place"
    # Folders of the user with the names of our packages must not hide the packages.
    (place / "broker").mkdir(parents=True)
    (place / "mercast").mkdir()
    line = CommandLine(tmp_path / "run", place)
    yield line
    line.run("down", "--all")


def two_brokers(folder: Path, name: str = "pair", settings: str = "") -> tuple[Path, dict[str, int]]:
    ports = dict(zip(("b1", "b2"), free_ports(2), strict=True))
    file = folder / f"{name}.toml"
    file.write_text(overlay_text(ports, name=name, links=[("b1", "b2")], settings=settings))
    return file, ports


@pytest.mark.slow
def test_up_sub_pub_status_trace_and_down(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    up = command.succeed("up", str(file))
    assert all(f"mercast://127.0.0.1:{port}" in up.out for port in ports.values())
    assert "overlay pair is up" in up.err
    near, far = (f"mercast://127.0.0.1:{ports[id]}" for id in ("b1", "b2"))
    with command.started("sub", "price > 90", "-s", far, "--count", "3", "--json") as sub:
        assert line_of(sub, is_stderr=True) == "subscribed at b2"
        # Repeated until it is delivered, because the subscription must reach the other broker first.
        traced = command.succeed("trace", "-s", near, "symbol=IBM price=92.5", "--json").out
        while not any(step["what"] == "delivered" for step in json.loads(traced)["steps"]):
            traced = command.succeed("trace", "-s", near, "symbol=IBM price=92.5", "--json").out
        brokers = [step["broker"] for step in json.loads(traced)["steps"]]
        assert (brokers[0], brokers[-1]) == ("b1", "b2")
        command.succeed("pub", "symbol=IBM price=80", "-s", near)
        command.succeed("pub", "symbol=IBM price=95", "--payload", "hello", "-s", near)
        command.succeed("pub", "-s", near, input='{"price": 96}\n\n{"price": 3}\n')
        received = [json.loads(line_of(sub)) for _ in range(3)]
        assert sub.wait(WITHIN_S) == 0
    assert [(each["attributes"]["price"], each["payload"]) for each in received] == [
        (92.5, ""),
        (95, "hello"),
        (96, ""),
    ]
    assert received[0]["id"] == json.loads(traced)["publication"]
    assert received[0]["hops"] == 1
    (overlay,) = command.status()
    assert [broker["status"]["neighbours"] for broker in overlay["brokers"]] == [{"b2": True}, {"b1": True}]
    with command.started("status", "--watch", "--json", "--every", "100ms") as watching:
        shown = [json.loads(line_of(watching)) for _ in range(2)]
    assert all(each[0]["overlay"] == "pair" for each in shown)
    table = command.succeed("status").out
    assert "pair, d-dbr" in table
    assert table.count("serving") == 2
    down = command.succeed("down")
    assert "overlay pair is down (2 brokers)" in down.err
    assert command.status() == []
    assert command.run("down").code == 1
    assert not any(_listens(port) for port in ports.values())


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_port_in_use_is_named_before_anything_is_started(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    with socket.socket() as occupier:
        occupier.bind(("127.0.0.1", ports["b2"]))
        occupier.listen()
        outcome = command.run("up", str(file))
    assert outcome.code == 3
    assert f"broker b2: listen = '127.0.0.1:{ports['b2']}': the port is in use" in outcome.err
    assert command.status() == []
    assert not _listens(ports["b1"])


def test_brokers_without_an_address_or_with_a_misspelt_key_are_refused(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    file.write_text(file.read_text().replace(f'listen = "127.0.0.1:{ports["b2"]}"', ""))
    outcome = command.run("up", str(file))
    assert outcome.code == 3
    assert "broker b2 has no address; add listen = " in outcome.err
    file.write_text(file.read_text().replace("[overlay]", '[overlay]\nprotocoll = "d-dbr"'))
    outcome = command.run("up", str(file))
    assert outcome.code == 3
    assert "overlay.protocoll is unknown; did you mean 'protocol'?" in outcome.err


def test_brokers_that_other_machines_reach_are_not_started_without_insecure(
    command: CommandLine, tmp_path: Path
) -> None:
    file, _ = two_brokers(tmp_path)
    file.write_text(file.read_text().replace('listen = "127.0.0.1', 'listen = "0.0.0.0'))
    outcome = command.run("up", str(file))
    assert outcome.code == 3
    assert "--insecure" in outcome.err


def test_a_missing_part_of_the_installation_is_named_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = two_brokers(tmp_path)
    monkeypatch.setitem(sys.modules, "aiomqtt", None)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    # Admin pages on a free port may be missing.
    _check(file)
    text = file.read_text()
    file.write_text(text.replace('id = "b2"', 'id = "b2"\nmqtt = "127.0.0.1:1883"'))
    with pytest.raises(PreflightError, match=r"broker b2 .* pip install 'mercast\[mqtt\]'"):
        _check(file)
    file.write_text(text.replace("127.0.0.1:0", f"127.0.0.1:{free_ports(1)[0]}", 1))
    with pytest.raises(PreflightError, match=r"broker b1 .* pip install 'mercast\[admin\]'"):
        _check(file)


def _check(file: Path) -> None:
    check_brokers(select_brokers(read_config(file), ()), is_insecure=False, allows_missing_peers=False)


def test_without_admin_pages_status_names_the_missing_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    lines = tuple(BrokerLine(id, "serving", 1, "127.0.0.1:7001", None, 0, None) for id in ("b1", "b2"))
    print_overlays([OverlayStatus("pair", "pair.toml", lines)], is_json=False)
    assert capsys.readouterr().err.count("pip install 'mercast[admin]'") == 1


def test_a_missing_key_is_named_before_anything_is_started(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    tls = '[tls]\nca = "ca.pem"\ncertificate = "{broker}.pem"\nkey = "{broker}.key"\n'
    file.write_text(file.read_text().replace("[[broker]]", f"{tls}[[broker]]", 1))
    (tmp_path / "b1.pem").write_text("a certificate")
    outcome = command.run("up", str(file))
    assert outcome.code == 3
    assert f"[tls] key: there is no file {tmp_path / 'b1.key'}" in outcome.err
    assert not any(_listens(port) for port in ports.values())


@pytest.mark.slow
def test_a_neighbour_elsewhere_must_be_reachable(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    outcome = command.run("up", str(file), "--only", "b1")
    assert outcome.code == 4
    assert f"broker b1: its neighbour b2 at 127.0.0.1:{ports['b2']} cannot be reached" in outcome.err
    assert command.status() == []
    assert "no such broker" in command.run("up", str(file), "--only", "b3").err
    command.succeed("up", str(file), "--only", "b1", "--allow-missing-peers")
    # Needs another name, because b1 already runs under the overlay's name.
    command.succeed("up", str(file), "--only", "b2", "--name", "rest")
    statuses = {overlay["overlay"]: overlay["brokers"][0]["status"] for overlay in command.status()}
    assert statuses["rest"]["neighbours"] == {"b1": True}


@pytest.mark.slow
def test_two_overlays_run_side_by_side_and_are_stopped_by_name(command: CommandLine, tmp_path: Path) -> None:
    one, one_ports = two_brokers(tmp_path, "one")
    other, other_ports = two_brokers(tmp_path, "other")
    command.succeed("up", str(one))
    again = command.run("up", str(one))
    assert again.code == 1
    assert "overlay one is up already" in again.err
    command.succeed("up", str(other))
    assert [overlay["overlay"] for overlay in command.status()] == ["one", "other"]
    unclear = command.run("down")
    assert unclear.code == 1
    assert "several overlays are up: one, other" in unclear.err
    command.succeed("pub", "a=1", "-s", f"mercast://127.0.0.1:{one_ports['b1']}")
    command.succeed("down", "one")
    assert [overlay["overlay"] for overlay in command.status()] == ["other"]
    command.succeed("pub", "a=1", "-s", f"mercast://127.0.0.1:{other_ports['b1']}")
    assert command.run("pub", "a=1", "-s", f"mercast://127.0.0.1:{one_ports['b1']}").code == 4


@pytest.mark.parametrize("is_json", [False, True])
def test_status_is_not_watched_without_a_pause(is_json: bool) -> None:
    with pytest.raises(DurationError, match=r"--every is 0s; brokers are asked every 0.1s at the most"):
        watch_overlays([], [], 0.0, is_json=is_json)


@pytest.mark.slow
def test_a_crashed_broker_is_started_again_and_subscribers_find_it(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    command.succeed("up", str(file))
    server = f"mercast://127.0.0.1:{ports['b1']}"
    with command.started("sub", "n > 0", "-s", server) as sub:
        assert line_of(sub, is_stderr=True) == "subscribed at b1"
        (overlay,) = command.status()
        first = overlay["brokers"][0]["pid"]
        os.kill(first, signal.SIGKILL)

        def is_restarted() -> bool:
            broker = command.status()[0]["brokers"][0]
            return broker["restarts"] == 1 and broker["status"] is not None

        wait_until(is_restarted, WITHIN_S)
        assert command.status()[0]["brokers"][0]["pid"] != first
        assert "lost broker b1" in line_of(sub, is_stderr=True)
        n = 0
        while not _has_line(sub.stdout):
            n += 1
            command.succeed("pub", f"n={n}", "-s", server)
        assert line_of(sub) == f"n={n}"
    command.succeed("down")


def _has_line(stream: object) -> bool:
    import selectors

    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)  # type: ignore[arg-type]
        return bool(selector.select(0.2))


@pytest.mark.slow
def test_a_broker_that_leaves_stays_away_and_is_shown_as_left(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    command.succeed("up", str(file))
    (overlay,) = command.status()
    assert "b2 leaves the overlay" in command.succeed("leave", "--admin", overlay["brokers"][1]["admin"]).err

    def has_left() -> bool:
        b2 = command.status()[0]["brokers"][1]
        assert not b2["restarts"]
        return bool(b2["phase"] == "left")

    wait_until(has_left, WITHIN_S)
    # Longer than the supervisor's pause before a restart.
    time.sleep(2.0)
    (overlay,) = command.status()
    b1, b2 = overlay["brokers"]
    assert (b1["phase"], b2["phase"], b2["restarts"], b2["pid"]) == ("serving", "left", 0, None)
    assert not _listens(ports["b2"])
    assert "left" in command.succeed("status").out
    outcome = command.run("leave", "pair", "--id", "b2")
    assert (outcome.code, "b2 has left overlay pair already" in outcome.err) == (1, True)
    command.succeed("down")


@pytest.mark.slow
def test_leave_finds_admin_pages_on_a_free_port_by_file_and_by_name(command: CommandLine, tmp_path: Path) -> None:
    file, _ = two_brokers(tmp_path)
    outcome = command.run("leave", str(file), "--id", "b2")
    assert outcome.code == 1
    assert "was not started by `mercast up` here" in outcome.err
    assert "no overlay 'pair' is up here" in command.run("leave", "pair", "--id", "b2").err
    command.succeed("up", str(file))
    assert "overlay pair has no broker 'b7' here" in command.run("leave", "pair", "--id", "b7").err
    assert "b2 leaves the overlay" in command.succeed("leave", str(file), "--id", "b2").err
    assert "b1 leaves the overlay" in command.succeed("leave", "pair", "--id", "b1").err
    command.succeed("down")


def write_run_folder(folder: Path, name: str, file: Path, brokers: dict[str, str | None]) -> None:
    """Writes a run folder that shows these brokers as serving, with their admin addresses."""
    here = ProcessIdentity.of(os.getpid())
    run = RunFolder(folder / name)
    run.create()
    states = (BrokerState(id, here, "serving", "127.0.0.1:7001", admin) for id, admin in brokers.items())
    run.write_state(OverlayState(name, str(file), here, tuple(states)))


def test_leave_accepts_the_name_of_an_overlay_with_a_dot_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = two_brokers(tmp_path)
    monkeypatch.setenv("MERCAST_RUN_DIR", str(tmp_path / "run"))
    write_run_folder(tmp_path / "run", "pair.v2", file, {"b1": "127.0.0.1:7101"})
    assert find_admin_pages("pair.v2", "b1").address == parse_address("127.0.0.1:7101")
    with pytest.raises(OverlayFileError, match=r"cannot read overlay file pair\.v3"):
        find_admin_pages("pair.v3", "b1")


def test_leave_reports_why_a_broker_has_no_admin_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = two_brokers(tmp_path)
    monkeypatch.setenv("MERCAST_RUN_DIR", str(tmp_path / "run"))
    write_run_folder(tmp_path / "run", "pair", file, {"b1": None})
    with pytest.raises(DeploymentError, match=r"b1 of overlay pair has no admin pages; .*pair.toml says admin = 'off'"):
        find_admin_pages("pair", "b1")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(DeploymentError, match=r"b1 of overlay pair has no admin pages; pip install 'mercast\[admin\]'"):
        find_admin_pages("pair", "b1")


@pytest.mark.slow
def test_down_stops_brokers_whose_supervisor_was_killed(command: CommandLine, tmp_path: Path) -> None:
    file, ports = two_brokers(tmp_path)
    command.succeed("up", str(file))
    state = json.loads((tmp_path / "run" / "pair" / "overlay.json").read_text())
    os.kill(state["supervisor"]["pid"], signal.SIGKILL)
    assert all(_listens(port) for port in ports.values())
    command.succeed("down")
    assert not any(_listens(port) for port in ports.values())


@pytest.mark.slow
def test_the_supervisor_goes_on_while_others_can_write_to_its_run_folder(command: CommandLine, tmp_path: Path) -> None:
    file, _ = two_brokers(tmp_path)
    command.succeed("up", str(file))
    (before,) = command.status()
    folder = tmp_path / "run" / "pair"
    folder.chmod(0o770)
    os.kill(before["brokers"][0]["pid"], signal.SIGKILL)
    assert f"`chmod go-w {folder}`" in command.run("status").err
    wait_until(lambda: "cannot be started" in (folder / "supervisor.log").read_text())
    folder.chmod(0o700)
    wait_until(lambda: any(each["id"] == "b1" and each["status"] for each in command.status()[0]["brokers"]))
    command.succeed("down")


@pytest.mark.slow
def test_a_broker_that_cannot_start_is_shown_with_its_last_log_lines(command: CommandLine, tmp_path: Path) -> None:
    file, _ = two_brokers(tmp_path)
    (tmp_path / "taken").write_text("a file where a folder should be")
    file.write_text(file.read_text().replace('id = "b2"', 'id = "b2"\ndata_dir = "taken"'))
    outcome = command.run("up", str(file))
    assert outcome.code == 1
    assert "broker b2 ended with code" in outcome.err
    assert "taken" in outcome.err
    assert command.status() == []


def test_the_shipped_overlay_is_found_by_name_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "demo" in shipped_names()
    config = read_config(find_overlay_file("demo"))
    assert config.broker("b1").listen == parse_address("127.0.0.1:7001")
    assert len(config.overlay.brokers) == 5


def test_an_unknown_overlay_is_refused_with_the_names_of_the_shipped_ones(command: CommandLine) -> None:
    outcome = command.run("up", "dmo")
    assert outcome.code == 3
    assert "no file and no shipped overlay 'dmo'" in outcome.err
    assert "demo" in outcome.err
    assert "there is no file nowhere.toml" in command.run("up", "nowhere.toml").err


def test_a_folder_of_processes_that_have_ended_is_no_overlay(command: CommandLine, tmp_path: Path) -> None:
    gone = {"pid": 2**22 - 1, "started": 7}
    stale = tmp_path / "run" / "stale"
    # Explicit modes: commands refuse a folder or a file that others can write to.
    stale.parent.mkdir(mode=0o700)
    stale.mkdir(mode=0o700)
    broker = {"id": "b1", "process": gone, "phase": "serving", "listen": "127.0.0.1:1", "admin": None}
    state = {
        "name": "stale",
        "file": "x",
        "supervisor": {"pid": os.getpid(), "started": 7},
        "brokers": [{**broker, "restarts": 0, "last_exit": None}],
    }
    (stale / "overlay.json").write_text(json.dumps(state))
    (stale / "overlay.json").chmod(0o600)
    # The state has this process's id with another start time, so it must not count as the supervisor.
    assert command.status() == []
    assert command.run("down", "stale").code == 1
