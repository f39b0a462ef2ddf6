"""The gateway's connection to an MQTT broker: with TLS and a password, to an MQTT broker that stops reading, and to a
server that is not an MQTT broker."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from broker import RefusedError, connect_sync, tls
from broker.security.certificates import write_certificates
from tests.broker.mqtt.conftest import StartMosquitto, StartOverlay
from tests.harness.conditions import wait_until
from tests.harness.mosquitto import WAIT_S
from tests.harness.ports import free_port
from tests.harness.programs import path_of

DEVICES = 'topics = ["devices/{room}/{sensor}"]'
UNBOUNDED = "max_queued_messages 0"


def lines(count: int, size: int) -> list[str]:
    return [json.dumps({"n": number, "text": "x" * size}) for number in range(count)]


def test_a_gateway_reaches_an_mqtt_broker_by_tls_and_password(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay, tmp_path: Path
) -> None:
    write_certificates(tmp_path / "certs", "test", {"mosquitto": ("localhost", "127.0.0.1")}, ())
    passwords = tmp_path / "passwords"
    command = [path_of("mosquitto_passwd"), "-b", "-c", str(passwords), "gateway", "a secret of the gateway"]
    subprocess.run(command, check=True, timeout=WAIT_S)
    passwords.chmod(0o600)
    (tmp_path / "password").write_text("a secret of the gateway\n")
    port = free_port()
    # A client with a user name needs its password. The listener without TLS is for the test's own clients.
    mosquitto = start_mosquitto(
        f"{UNBOUNDED}\nlistener {port} 127.0.0.1\ncertfile {tmp_path}/certs/mosquitto.pem\n"
        f"keyfile {tmp_path}/certs/mosquitto.key\npassword_file {passwords}\n"
    )
    own = (
        f'{{ port = {port}, ca_file = "{tmp_path}/certs/ca.pem", username = "gateway", '
        f'password_file = "{tmp_path}/password" }}'
    )
    overlay = start_overlay([("b1", own)], DEVICES)
    mosquitto.publish("mercast/subscribe/all", "n >= 0", "-r", "-q", "1")
    overlay.wait_for_names("b1", 1)
    sent = lines(300, 5_000)
    with mosquitto.listening("mercast/deliver/all", form="%p") as listener:
        mosquitto.publish_lines("devices/a/b", sent, "-q", "1")
        assert listener.wait_for(len(sent)) == sent
    assert overlay.brokers["b1"].gateway()["connections"] == 1
    assert "a secret of the gateway" not in (tmp_path / "b1.log").read_text()


def test_a_gateway_of_a_secured_broker_connects_without_an_access_rule(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay, tmp_path: Path
) -> None:
    here = ("localhost", "127.0.0.1")
    write_certificates(tmp_path / "certs", "test", {"b1": here, "b2": here}, ())
    (tmp_path / "access.toml").write_text("")
    secured = (
        '[tls]\nca = "certs/ca.pem"\ncertificate = "certs/{broker}.pem"\nkey = "certs/{broker}.key"\n'
        '[acl]\nfile = "access.toml"'
    )
    west, east = start_mosquitto(), start_mosquitto()
    brokers = [("b1", f'"127.0.0.1:{west.port}"'), ("b2", f'"127.0.0.1:{east.port}"')]
    overlay = start_overlay(brokers, DEVICES, general=secured)
    east.publish("mercast/subscribe/all", "n >= 0", "-r", "-q", "1")
    overlay.wait_for_names("b2", 1)
    overlay.wait_for_remote("b1", 1)
    with east.listening("mercast/deliver/all", form="%p") as listener:
        west.publish("devices/a/b", '{"n":1}', "-q", "1")
        assert listener.wait_for(1) == ['{"n":1}']
    context = tls(tmp_path / "certs" / "ca.pem")
    with pytest.raises(RefusedError), connect_sync(f"mercast://{overlay.brokers['b1'].listen}", tls=context):
        pass


@pytest.mark.parametrize("qos", [0, 1])
def test_deliveries_wait_while_the_mqtt_broker_reads_nothing(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay, qos: int
) -> None:
    away, here = start_mosquitto(UNBOUNDED), start_mosquitto(UNBOUNDED)
    at_here = f"{{ port = {here.port}, deliver_qos = {qos} }}"
    overlay = start_overlay([("b1", f'"127.0.0.1:{away.port}"'), ("b2", at_here)], DEVICES)
    here.publish("mercast/subscribe/all", "n >= 0", "-r", "-q", "1")
    overlay.wait_for_names("b2", 1)
    overlay.wait_for_remote("b1", 1)
    # More than socket buffers hold.
    sent = lines(400, 40_000)
    with here.listening("mercast/deliver/all", form="%p") as listener:
        os.kill(here.process_id, signal.SIGSTOP)
        away.publish_lines("devices/a/b", sent, "-q", "1")
        wait_until(lambda: overlay.brokers["b1"].gateway()["taken"] == len(sent), what="all messages are accepted")
        os.kill(here.process_id, signal.SIGCONT)
        assert listener.wait_for(len(sent)) == sent
    gateway = overlay.brokers["b2"].gateway()
    assert (gateway["connections"], gateway["drops"]) == (1, {})


def test_a_gateway_retries_when_the_server_is_no_mqtt_broker(start_overlay: StartOverlay, tmp_path: Path) -> None:
    greeting = b"\x20\x03\x00\x00\x00"
    nonsense = [b"SSH-2.0\r\n", greeting + b"\x32\xff\xff\xff\xff\xff", greeting + b"\x34\x02\x00\x00"]
    nonsense += [greeting + b"\x90\x01\x00", greeting + b"\x30\x03\x00\x09a", b""]
    answered = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]

        def answer() -> None:
            for words in nonsense:
                connection, _ = server.accept()
                with connection:
                    connection.recv(1_000)
                    connection.sendall(words)
                    if words:
                        connection.settimeout(2 * WAIT_S)
                        while connection.recv(1_000):
                            pass
            answered.set()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        table = f'{{ port = {port}, redial_first = "10ms", redial_at_most = "20ms" }}'
        overlay = start_overlay([("b1", table)], DEVICES)
        wait_until(answered.is_set, 3 * WAIT_S, "the gateway has dialled again after each answer")
        thread.join(WAIT_S)
    status = overlay.brokers["b1"].status()
    assert status["parts"]["mqtt"]["is_connected"] is False
    assert "never retrieved" not in (tmp_path / "b1.log").read_text()
