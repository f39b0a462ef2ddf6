"""The admin pages answer only requests for their own host, not those of foreign sites. Beyond loopback they need a
token."""

from __future__ import annotations

import asyncio
import http.client
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from broker.config.tables import ConfigError
from broker.deployment.local.admin_client import TOKEN_FILE_VARIABLE, AdminClient
from broker.deployment.local.errors import AdminError
from broker.deployment.local.preflight import check_brokers
from broker.runtime.admin_access import AdminAccess
from broker.runtime.server import BrokerServer
from broker.security.authentication import InsecureError
from broker.security.security_config import load_security
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.command_line import CommandLine

LEAVE = {"X-Mercast": "leave"}
TOKEN = "a token of the admin pages"
PAGES = [("GET", "/status"), ("GET", "/metrics"), ("GET", "/healthz"), ("POST", "/leave")]
FOREIGN: dict[str, Mapping[str, str]] = {
    "a rebound name": {"Host": "evil.example:{port}"},
    "a rebound name with its own origin": {"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"},
    "a name that begins like an address": {"Host": "127.0.0.1.evil.example:{port}"},
    "a name after an address": {"Host": "127.0.0.1@evil.example"},
    "an address that is not bound": {"Host": "192.0.2.7:{port}"},
    "no host": {"Host": ""},
    "a foreign origin": {"Origin": "http://evil.example"},
    "another port of this machine": {"Origin": "http://127.0.0.1:1"},
    "a file": {"Origin": "null"},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "a page of the same site": {"Sec-Fetch-Site": "same-site"},
}
OWN: dict[str, Mapping[str, str]] = {
    "no browser": {},
    "localhost": {"Host": "localhost:{port}"},
    "upper case": {"Host": "LOCALHOST"},
    "IPv6": {"Host": "[::1]:{port}"},
    "a forwarded port": {"Host": "127.0.0.1:8080"},
    "a configured name": {"Host": "b1.example.org"},
    "the same origin": {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
    "an address that a user entered": {"Sec-Fetch-Site": "none"},
}


def send(port: int, method: str, page: str, headers: Mapping[str, str], host: str = "127.0.0.1") -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, port, timeout=20.0)
    try:
        values = {name: value.replace("{port}", str(port)) for name, value in headers.items()}
        connection.putrequest(method, page, skip_host="Host" in values)
        for name, value in values.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def overlay_file(tmp_path: Path, admin: str = "", **table: object) -> OverlayFileMaker:
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"admin": table} if table else None)
    if admin:
        text = file.path.read_text()
        file.path.write_text(text.replace(f"127.0.0.1:{file.admin_ports['b1']}", f"{admin}:{file.admin_ports['b1']}"))
    return file


def beyond_loopback(tmp_path: Path, **table: object) -> OverlayFileMaker:
    """An overlay whose admin pages have a token and are reachable from other machines."""
    (tmp_path / "admin.token").write_text(f"{TOKEN}\n")
    return overlay_file(tmp_path, "0.0.0.0", token_file="admin.token", **table)


@pytest.mark.parametrize("what", FOREIGN)
def test_requests_of_foreign_sites_are_refused(tmp_path: Path, what: str) -> None:
    file = overlay_file(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay:
            for method, page in PAGES:
                headers = {**(LEAVE if method == "POST" else {}), **FOREIGN[what]}
                status, text = await asyncio.to_thread(send, file.admin_ports["b1"], method, page, headers)
                assert status == 403, page
                assert any(name in text for name in ("Host is", "Origin is", "Sec-Fetch-Site is")), text
            assert not overlay["b1"].leave_requested.is_set()

    run(test)


@pytest.mark.parametrize("what", OWN)
def test_requests_for_the_own_host_are_answered(tmp_path: Path, what: str) -> None:
    file = overlay_file(tmp_path, hosts=["b1.example.org"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            for method, page in PAGES:
                headers = {**(LEAVE if method == "POST" else {}), **OWN[what]}
                status, _ = await asyncio.to_thread(send, file.admin_ports["b1"], method, page, headers)
                assert status == 200, page
            assert overlay["b1"].leave_requested.is_set()

    run(test)


def test_the_hosts_of_the_brokers_own_addresses_are_known(tmp_path: Path) -> None:
    file = beyond_loopback(tmp_path)
    file.path.write_text(file.path.read_text().replace('id = "b1"\n', 'id = "b1"\naddress = "b1.plant.example:7001"\n'))
    broker = file.broker("b1")
    assert broker.admin is not None
    access = AdminAccess(broker, broker.admin, str)
    for host in ("b1.plant.example:7101", "10.1.0.7:7101", "[2001:db8::7]:7101", "localhost"):
        assert access.refusal("/status", {"Host": host}) is None
    assert access.refusal("/status", {"Host": "evil.example"}) is not None


@pytest.mark.parametrize("admin", ["0.0.0.0", "[::]", "192.0.2.7", "b1.example.org"])
def test_pages_beyond_loopback_without_a_token_are_refused_at_the_start(tmp_path: Path, admin: str) -> None:
    file = overlay_file(tmp_path, admin)

    async def test() -> None:
        with pytest.raises(InsecureError) as refused:
            BrokerServer(file.broker("b1"))
        for words in (f"admin = '{admin}:", "[admin] token_file", "--insecure", 'admin = "127.0.0.1:'):
            assert words in str(refused.value)
        BrokerServer(file.broker("b1"), is_insecure=True)

    run(test)
    with pytest.raises(InsecureError, match=r"\[admin\] token_file"):
        check_brokers([file.broker("b1")], is_insecure=False, allows_missing_peers=True)


def test_the_command_refuses_pages_beyond_loopback_without_a_token(tmp_path: Path) -> None:
    file = overlay_file(tmp_path, "0.0.0.0")
    done = CommandLine(tmp_path, tmp_path).run("broker", str(file.path), "--id", "b1")
    assert (done.code, "[admin] token_file" in done.err) == (3, True), done


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", f"Basic {TOKEN}", TOKEN, "Bearer another token", f"Bearer {TOKEN} and more", "Bearer é"],
)
def test_pages_with_a_token_refuse_requests_without_it(tmp_path: Path, authorization: str) -> None:
    file = beyond_loopback(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay:
            for method, page in PAGES:
                headers = {**LEAVE, **({"Authorization": authorization} if authorization else {})}
                status, text = await asyncio.to_thread(send, file.admin_ports["b1"], method, page, headers)
                assert status == (200 if page == "/healthz" else 401), page
                assert TOKEN not in text
            assert not overlay["b1"].leave_requested.is_set()

    run(test)


def test_pages_with_a_token_answer_requests_that_present_it(tmp_path: Path) -> None:
    file = beyond_loopback(tmp_path)

    async def test() -> None:
        async with InLoop(file) as overlay:
            for method, page in PAGES:
                headers = {"Authorization": f"Bearer {TOKEN}", **(LEAVE if method == "POST" else {})}
                assert (await asyncio.to_thread(send, file.admin_ports["b1"], method, page, headers))[0] == 200, page
            assert overlay["b1"].leave_requested.is_set()

    run(test)


def test_the_token_is_read_again_with_the_certificates(tmp_path: Path) -> None:
    file = beyond_loopback(tmp_path)

    async def status_with(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return (await asyncio.to_thread(send, file.admin_ports["b1"], "GET", "/status", headers))[0]

    async def test() -> None:
        async with InLoop(file) as overlay:
            (tmp_path / "admin.token").write_text("the next token of the pages")
            overlay["b1"].reload_security()
            assert [await status_with(TOKEN), await status_with("the next token of the pages")] == [401, 200]
            (tmp_path / "admin.token").write_text("short")
            overlay["b1"].reload_security()
            assert await status_with("the next token of the pages") == 200, "an invalid file changes nothing"

    run(test)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"short", "holds 5 characters; 16 are the least"), (b"\xff" * 20, "is not a text in UTF-8")],
)
def test_a_token_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    file = beyond_loopback(tmp_path)
    (tmp_path / "admin.token").write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load_security(file.broker("b1"))
    assert f"[admin] token_file {tmp_path / 'admin.token'} {reason}" in str(refused.value)


@pytest.mark.slow
def test_commands_find_the_token_in_the_overlay_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = beyond_loopback(tmp_path)
    address = f"127.0.0.1:{file.admin_ports['b1']}"
    command = CommandLine(tmp_path / "run", tmp_path)
    command.succeed("up", str(file.path))
    try:
        (overlay,) = command.status()
        assert overlay["brokers"][0]["status"]["broker"] == "b1"
        for words in (("status", "--admin", address), ("leave", "--admin", address)):
            outcome = command.run(*words)
            assert (outcome.code, f"set {TOKEN_FILE_VARIABLE} to the file" in outcome.err) == (4, True), outcome
        monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(tmp_path / "admin.token"))
        CommandLine(tmp_path / "run", tmp_path).succeed("status", "--admin", address)
        assert "b1 leaves the overlay" in command.succeed("leave", str(file.path), "--id", "b1").err
    finally:
        command.succeed("down")


def test_a_name_that_is_not_configured_is_explained_to_the_user_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = overlay_file(tmp_path)
    port = file.admin_ports["b1"]

    def resolved(address: tuple[str, int], *options: object, **named: object) -> socket.socket:
        assert address == ("plant.example", port)
        return create_connection(("127.0.0.1", port), *options, **named)  # type: ignore[arg-type]

    create_connection = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", resolved)

    async def test() -> None:
        async with InLoop(file):
            with pytest.raises(AdminError, match=r"Host is 'plant\.example:\d+', .* add its name to \[admin\] hosts"):
                await asyncio.to_thread(AdminClient().fetch_status, f"plant.example:{port}")

    run(test)
