"""Secured brokers as processes: certificates and tokens from commands, reload on SIGHUP, and logs without secrets."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from broker import Client, ClientError, RefusedError, connect, tls
from broker.client.credentials import environment_credentials
from broker.config.tables import ConfigError
from broker.security.certificates import write_certificates
from broker.security.credential_issuer import issue_token
from tests.harness.broker_processes import OverlayFileMaker, Processes, run
from tests.harness.conditions import wait_until
from tests.harness.mercast_broker import ROOT
from tests.harness.secured_overlay import HERE, TLS, rule, shown, with_certificates

SECRET = "xyzzy-a-word-that-nobody-guesses"
WRONG = "plugh-a-guess-that-is-wrong"


def mercast(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mercast", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_certificates_and_tokens_that_the_commands_make_work_as_typed(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    certs = tmp_path / "certs"
    issued = mercast("certs", str(file.path), "--out", str(certs), "--client", "desk")
    assert issued.returncode == 0, issued.stderr
    assert "for trying out" in issued.stderr
    assert tomllib.loads(issued.stdout)["tls"]["ca"] == f"{certs}/ca.pem"
    assert (certs / "ca.key").stat().st_mode & 0o077 == 0
    again = mercast("certs", str(file.path), "--out", str(certs))
    assert (again.returncode, "exists" in again.stderr) == (3, True)
    token = mercast("token", "desk")
    (tmp_path / "access.toml").write_text(token.stderr)
    text = file.path.read_text().replace("[[broker]]", '[acl]\nfile = "access.toml"\n[[broker]]', 1)
    file.path.write_text(text.replace("[acl]", f"{issued.stdout}[acl]", 1))
    credentials = {"MERCAST_CA": str(certs / "ca.pem"), "MERCAST_TOKEN": token.stdout.strip()}
    with Processes(file) as processes:
        processes.linked()
        refused = mercast("pub", "-s", file.url("b1"), "a=1", **credentials)
        assert refused.returncode == 1
        assert "these credentials" in refused.stderr, "the rule is for clients called desk"
        accepted = mercast("pub", "-s", file.url("b1"), "a=1", MERCAST_CLIENT="desk", **credentials)
        assert accepted.returncode == 0, accepted.stderr


def test_on_sighup_a_client_that_lost_its_rule_is_disconnected_and_a_bad_list_changes_nothing(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"], acl=rule("desk", SECRET, publish="TRUE"))
    access = tmp_path / "access.toml"
    with Processes(file) as processes:

        async def test() -> None:
            options = {"name": "desk", "token": SECRET, "tls": shown(tmp_path), "reconnect_within": 1.0}
            async with connect(file.url("b1"), **options) as client:  # type: ignore[arg-type]
                await client.publish({"a": 1})
                access.write_text("[[client]\n")
                os.kill(processes.pid("b1"), signal.SIGHUP)
                await asyncio.to_thread(wait_until, lambda: "security not reloaded" in processes.log("b1"))
                await client.publish({"a": 2})
                access.write_text(rule("other", SECRET, publish="TRUE"))
                os.kill(processes.pid("b1"), signal.SIGHUP)
                await asyncio.to_thread(wait_until, lambda: "unauthorised" in processes.log("b1"))
                with pytest.raises(ClientError):
                    await publish_until_refused(client)

        run(test)


def test_on_sighup_a_new_authority_replaces_the_old_one_and_bad_files_change_nothing(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1", "b2"], [("b1", "b2")])
    certs, old = tmp_path / "certs", tmp_path / "old"
    shutil.copytree(certs, old)

    async def is_accepted(trusted: Path, presented: Path) -> bool:
        context = tls(trusted / "ca.pem", presented / "desk.pem", presented / "desk.key")
        try:
            async with connect(file.url("b1"), tls=context, timeout=5.0) as connected:
                return await connected.publish({"a": 1}) is not None
        except ClientError:
            return False

    def has_logged_again(before: int, id: str, message: str) -> bool:
        return processes.log(id).count(message) > before

    def reload(*ids: str, message: str) -> None:
        for id in ids:
            before = processes.log(id).count(message)
            os.kill(processes.pid(id), signal.SIGHUP)
            wait_until(partial(has_logged_again, before, id, message))

    with Processes(file) as processes:
        processes.linked()
        assert asyncio.run(is_accepted(old, old))
        (certs / "b1.pem").write_text("no certificate")
        reload("b1", message="security not reloaded")
        assert asyncio.run(is_accepted(old, old))
        shutil.rmtree(certs)
        write_certificates(certs, "anew", {"b1": HERE, "b2": HERE}, ("desk",))
        reload("b1", "b2", message="security reloaded")
        assert asyncio.run(is_accepted(certs, certs))
        assert not asyncio.run(is_accepted(certs, old))
        processes.terminate("b2")
        processes.restart("b2")
        processes.linked()


async def publish_until_refused(client: Client) -> None:
    while True:
        await client.publish({"a": 3})
        # A pause between two publications.
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("certs/desk.key", None, None), "MERCAST_CA: {}/certs/desk.key is not a certificate in PEM form"),
        (("certs/ca.pem", "certs/desk.pem", None), "MERCAST_KEY is not set, and {}/certs/desk.pem holds no key"),
        (("certs/ca.pem", "certs/desk.key", None), "MERCAST_CERTIFICATE: {}/certs/desk.key is not a certificate in"),
        (("certs/ca.pem", "certs/none.pem", None), "MERCAST_CERTIFICATE: there is no file {}/certs/none.pem"),
        (("certs/ca.pem", "certs/desk.pem", "certs/b1.key"), "MERCAST_KEY: {0}/certs/b1.key is not the key of {0}/"),
    ],
    ids=str,
)
def test_files_that_cannot_be_used_are_named_with_their_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str | None, ...], message: str
) -> None:
    write_certificates(tmp_path / "certs", "test", {"b1": HERE}, ("desk",))
    for variable, file in zip(("MERCAST_CA", "MERCAST_CERTIFICATE", "MERCAST_KEY"), files, strict=True):
        monkeypatch.setenv(variable, str(tmp_path / file) if file else "")
    with pytest.raises(ClientError, match=re.escape(message.format(tmp_path))):
        environment_credentials()


@pytest.mark.parametrize("name", ["", " ", "*", "sensor-?"])
def test_no_token_is_issued_for_a_pattern(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a client"):
        issue_token(name)
    assert capsys.readouterr().out == ""


def test_no_secret_is_ever_logged_or_shown(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1", "b2"], [("b1", "b2")], acl=rule("desk", SECRET, publish="TRUE"))
    with Processes(file, arguments=["--log", "debug"]) as processes:
        processes.linked()

        async def test() -> None:
            async with connect(file.url("b1"), name="desk", token=SECRET, tls=shown(tmp_path)) as client:
                await client.publish({"a": 1})
            with pytest.raises(RefusedError):
                async with connect(file.url("b1"), name="desk", token=WRONG, tls=shown(tmp_path)):
                    pass

        run(test)
        shown_by_admin = str(processes.status("b1"))
        logs = processes.log("b1") + processes.log("b2")
    key = (tmp_path / "certs" / "b1.key").read_text().splitlines()[1]
    assert "refused" in logs
    for secret in (SECRET, WRONG, key):
        assert secret not in logs
        assert secret not in shown_by_admin


def test_a_broker_for_other_machines_starts_with_authentication_and_not_without(tmp_path: Path) -> None:
    port = OverlayFileMaker(tmp_path, ["b1"]).ports["b1"]
    everywhere = {"b1": f"0.0.0.0:{port}"}
    bare = OverlayFileMaker(tmp_path, ["b1"], name="bare", listen=everywhere)
    refused = mercast("broker", str(bare.path), "--id", "b1")
    assert (refused.returncode, "--insecure" in refused.stderr) == (3, True)
    with_certificates(tmp_path, ["b1"])
    safe = OverlayFileMaker(tmp_path, ["b1"], name="safe", listen=everywhere, tables={"tls": TLS})
    with Processes(safe) as processes:
        assert processes.status("b1")["broker"] == "b1"
