"""Failures of the gateway: killed, disconnected, overloaded, receiving its own deliveries. QoS 1 messages are not lost,
queues stay bounded, and drops are counted by reason."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from broker import connect_sync
from matching.expressions.values import Value
from tests.broker.mqtt.conftest import StartMosquitto, StartOverlay
from tests.harness.conditions import wait_until
from tests.harness.gateway_processes import RunningOverlay
from tests.harness.mosquitto import WAIT_S, Mosquitto

DEVICES = 'topics = ["devices/{room}/{sensor}"]'
UNBOUNDED = "max_queued_messages 0"


def numbers(count: int, start: int = 0) -> list[str]:
    return [f'{{"n":{number}}}' for number in range(start, start + count)]


def test_messages_that_arrived_while_the_gateway_was_killed_arrive_after_its_restart(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES, general='[store]\ndata_dir = "data"')
    mosquitto.publish("mercast/subscribe/all", "n >= 0", "-r")
    overlay.wait_for_names("b1", 1)
    with mosquitto.listening("mercast/deliver/all", form="%p") as listener:
        mosquitto.publish_lines("devices/a/b", numbers(200), "-q", "1")
        overlay.brokers["b1"].kill()
        mosquitto.publish_lines("devices/a/b", numbers(200, 200), "-q", "1")
        overlay.brokers["b1"].start()
        wait_until(lambda: set(listener.lines) >= set(numbers(400)), what="all 400 messages, each at least once")


@pytest.mark.slow
def test_no_qos_1_message_is_lost_when_mosquitto_restarts(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto(UNBOUNDED)
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    mosquitto.publish("mercast/subscribe/all", "n >= 0", "-r", "-q", "1")
    overlay.wait_for_names("b1", 1)
    broker = overlay.brokers["b1"]
    with connect_sync(f"mercast://{broker.listen}") as client, client.subscribe("n >= 0") as accepted:
        for turn in range(3):
            mosquitto.publish_lines("devices/a/b", numbers(300, 300 * turn), "-q", "1")
            mosquitto.stop()
            mosquitto.start()
        found: set[Value] = set()
        while len(found) < 900:
            found.add(accepted.next(WAIT_S)["n"])
    with mosquitto.listening("mercast/deliver/all", form="%p") as listener:
        mosquitto.publish_lines("devices/a/b", numbers(10, 900), "-q", "1")
        wait_until(lambda: set(listener.lines) >= set(numbers(10, 900)), what="the last ten messages")
    assert broker.gateway()["connections"] >= 2
    assert broker.gateway()["drops"] == {}


def test_messages_queued_while_the_broker_accepts_none_are_published_once_however_often_mosquitto_restarts(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto(f"{UNBOUNDED}\nmax_inflight_messages 50")
    overlay = start_overlay(
        [("b1", f"{{ port = {mosquitto.port}, intake = 50 }}"), ("b2", "")],
        DEVICES,
        general="[limits]\nwindow = 4\npublish_window = 8",
        dead_after="60s",
    )
    broker, other = overlay.brokers["b1"], overlay.brokers["b2"]

    def accepted() -> int:
        gateway = broker.gateway()
        return int(gateway["waiting"]) + int(gateway["unanswered"])

    with connect_sync(f"mercast://{other.listen}") as client, client.subscribe("n >= 0") as stream:
        overlay.wait_for_remote("b1", 1)
        # It settles no publication, so the window of the gateway's broker fills up.
        other.send_signal(signal.SIGSTOP)
        try:
            mosquitto.publish_lines("devices/a/b", numbers(100), "-q", "1")
            for connections in (2, 3, 4):
                wait_until(lambda: accepted() >= 50, what="the intake is full")
                mosquitto.stop()
                mosquitto.start()
                wait_until(
                    lambda connections=connections: broker.gateway()["connections"] == connections,  # type: ignore[misc]
                    what="the gateway has connected again",
                )
                # mosquitto 2.0.11 may exceed the announced limit, but there are no more messages than these.
                assert accepted() <= 100
        finally:
            other.send_signal(signal.SIGCONT)
        found = [stream.next(WAIT_S)["n"] for _ in range(100)]
        mosquitto.publish("devices/a/b", '{"n":100}', "-q", "1")
        found.append(stream.next(WAIT_S)["n"])
    assert found == list(range(101))
    assert broker.gateway()["drops"] == {}


def test_a_subscription_that_was_withdrawn_while_the_gateway_was_cut_off_is_ended(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto: Mosquitto = start_mosquitto("persistent_client_expiration 1h")
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    for name in ("stays", "goes"):
        mosquitto.publish(f"mercast/subscribe/{name}", "n >= 0", "-r", "-q", "1")
    overlay.wait_for_names("b1", 2)
    broker = overlay.brokers["b1"]
    broker.send_signal(signal.SIGSTOP)
    # At QoS 0 the MQTT broker keeps nothing for a disconnected client. Only retained messages remain.
    mosquitto.stop()
    mosquitto.start()
    mosquitto.publish("mercast/subscribe/goes", "", "-r")
    broker.send_signal(signal.SIGCONT)
    wait_until(lambda: broker.gateway()["connections"] >= 2, what="the gateway has connected again")
    overlay.wait_for_names("b1", 1)
    assert broker.status()["tables"]["local_subscriptions"] == 1


def test_a_subscription_that_was_withdrawn_while_a_durable_broker_was_down_is_ended(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES, general='[store]\ndata_dir = "data"')
    mosquitto.publish("mercast/subscribe/stays", "n >= 0", "-r", "-q", "1")
    mosquitto.publish("mercast/subscribe/goes", "n >= 5", "-r", "-q", "1")
    overlay.wait_for_names("b1", 2)
    overlay.brokers["b1"].kill()
    mosquitto.publish("mercast/subscribe/goes", "", "-r")
    overlay.brokers["b1"].start()
    overlay.wait_for_names("b1", 1)
    broker = overlay.brokers["b1"]
    mosquitto.publish("mercast/subscribe/stays", "n = 0", "-r", "-q", "1")
    with mosquitto.listening("mercast/deliver/#") as listener:
        mosquitto.publish("devices/a/b", '{"n":7}', "-q", "1")
        wait_until(lambda: broker.status()["tables"]["local_subscriptions"] == 1, what="one subscription is left")
        mosquitto.publish("devices/a/b", '{"n":0}', "-q", "1")
        wait_until(lambda: 'mercast/deliver/stays {"n":0}' in listener.lines, what="a delivery for the one that stays")
    assert not any(line.startswith("mercast/deliver/goes") for line in listener.lines)


def test_two_gateways_that_publish_everything_at_one_mosquitto_make_no_loop(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    other = f'{{ port = {mosquitto.port}, subscribe = "x/subscribe", deliver = "x/deliver", error = "x/error" }}'
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"'), ("b2", other)], 'topics = ["#"]')
    mosquitto.publish("mercast/subscribe/a", "n >= 0", "-r")
    mosquitto.publish("x/subscribe/a", "n >= 0", "-r")
    overlay.wait_for_names("b1", 1)
    overlay.wait_for_names("b2", 1)
    overlay.wait_for_remote("b1", 1)
    overlay.wait_for_remote("b2", 1)
    with mosquitto.listening("#", "-T", "+/subscribe/#", "-T", "+/subscribe", "-T", "devices/#") as listener:
        mosquitto.publish("devices/a/b", '{"n":1}', "-q", "1")
        # Both gateways publish the message, and both deliver both publications: exactly four.
        listener.wait_for(4)
        mosquitto.publish("devices/a/b", '{"n":2}', "-q", "1")
        lines = listener.wait_for(8)
    assert sorted(lines) == sorted(
        [f'{prefix}/deliver/a {{"n":{n}}}' for prefix in ("mercast", "x") for n in (1, 1, 2, 2)]
    )


def test_two_overlays_with_gateways_at_one_mosquitto_make_no_loop(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mosquitto = start_mosquitto()
    one = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], 'topics = ["#"]')
    other = f'{{ port = {mosquitto.port}, subscribe = "y/s", deliver = "y/d", error = "y/e", identifier = "y" }}'
    two = RunningOverlay(tmp_path_factory.mktemp("two"), [("c1", other)], 'topics = ["#"]')
    try:
        two.start()
        mosquitto.publish("mercast/subscribe/a", "n >= 0", "-r")
        mosquitto.publish("y/s/a", "n >= 0", "-r")
        one.wait_for_names("b1", 1)
        two.wait_for_names("c1", 1)
        with mosquitto.listening(
            "#", "-T", "+/subscribe/#", "-T", "+/subscribe", "-T", "y/s/#", "-T", "y/s"
        ) as listener:
            mosquitto.publish("devices/a/b", '{"n":1}', "-q", "1")
            mosquitto.publish("devices/a/b", '{"n":2}', "-q", "1")
            lines = listener.wait_for(6)
        assert sorted(lines) == sorted(
            f'{topic} {{"n":{n}}}' for topic in ("devices/a/b", "mercast/deliver/a", "y/d/a") for n in (1, 2)
        )
        wait_until(lambda: two.brokers["c1"].gateway()["drops"]["delivered-by-gateway"] == 2, what="marks are seen")
    finally:
        two.stop()


@pytest.mark.slow
def test_ten_thousand_names_are_entered_and_each_receives_its_publications(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto(UNBOUNDED)
    script = (
        "import asyncio, sys, aiomqtt\n"
        "async def main():\n"
        "    async with aiomqtt.Client('127.0.0.1', int(sys.argv[1])) as client:\n"
        "        ask = lambda n: client.publish(f'mercast/subscribe/n{n}', f'n = {n}', retain=True, qos=n % 2)\n"
        "        client.pending_calls_threshold = 1_000\n"
        "        for n in range(0, 10_000, 100):\n"
        "            await asyncio.gather(*map(ask, range(n, n + 100)))\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", script, str(mosquitto.port)], check=True, timeout=120)
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    overlay.wait_for_names("b1", 10_000)
    with mosquitto.listening("mercast/deliver/#") as listener, mosquitto.listening("mercast/error/#") as errors:
        mosquitto.publish_lines("devices/a/b", numbers(5, 4_000), "-q", "1")
        assert listener.wait_for(5) == [f'mercast/deliver/n{n} {{"n":{n}}}' for n in range(4_000, 4_005)]
        mosquitto.publish("mercast/subscribe/one-too-many", "n = 1", "-r")
        assert "no more may be" in errors.wait_for(1)[0]
    assert overlay.brokers["b1"].gateway()["drops"] == {"names-full": 1}


@pytest.mark.parametrize(("fast_path", "qos"), [("true", 0), ("false", 0), ("false", 1)])
def test_a_burst_without_backpressure_is_dropped_counted_and_leaves_the_gateway_serving(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay, fast_path: str, qos: int
) -> None:
    mosquitto = start_mosquitto(UNBOUNDED)
    table = f"{{ port = {mosquitto.port}, intake = 20, fast_path = {fast_path} }}"
    overlay = start_overlay([("b1", table)], DEVICES)
    mosquitto.publish("mercast/subscribe/all", "n >= 0", "-r")
    overlay.wait_for_names("b1", 1)
    broker = overlay.brokers["b1"]
    broker.send_signal(signal.SIGSTOP)
    mosquitto.publish_lines("devices/a/b", numbers(3_000), "-q", str(qos))
    broker.send_signal(signal.SIGCONT)

    def handled() -> int:
        gateway = broker.gateway()
        return int(gateway["taken"]) + int(gateway["drops"].get("intake-full", 0))

    if fast_path == "false":
        # The next message would be dropped too: without the fast path QoS 1 messages are not held back.
        wait_until(lambda: handled() == 3_000, what="the burst is over")
    with mosquitto.listening("mercast/deliver/all", form="%p") as listener:
        mosquitto.publish("devices/a/b", '{"n":7777}', "-q", "1")
        wait_until(lambda: '{"n":7777}' in listener.lines, what="the message after the burst")
    gateway = broker.gateway()
    assert gateway["drops"].keys() <= {"intake-full"}
    assert handled() == 3_001
    if gateway["drops"]:
        assert f'mercast_mqtt_drops{{broker="b1",reason="intake-full"}} {gateway["drops"]["intake-full"]:g}' in (
            broker.metrics()
        )


def test_a_burst_at_qos_1_waits_and_is_not_lost(start_mosquitto: StartMosquitto, start_overlay: StartOverlay) -> None:
    mosquitto = start_mosquitto(UNBOUNDED)
    overlay = start_overlay([("b1", f"{{ port = {mosquitto.port}, intake = 20 }}")], DEVICES)
    mosquitto.publish("mercast/subscribe/all", "n >= 0", "-r")
    overlay.wait_for_names("b1", 1)
    with mosquitto.listening("mercast/deliver/all", form="%p") as listener:
        mosquitto.publish_lines("devices/a/b", numbers(2_000), "-q", "1")
        assert listener.wait_for(2_000, 60) == numbers(2_000)
    assert overlay.brokers["b1"].gateway()["drops"] == {}


def test_a_delivery_that_the_mqtt_broker_refuses_is_dropped_and_the_rest_arrives(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    large, small = start_mosquitto(), start_mosquitto("message_size_limit 1000")
    overlay = start_overlay([("b1", f'"127.0.0.1:{large.port}"'), ("b2", f'"127.0.0.1:{small.port}"')], DEVICES)
    small.publish("mercast/subscribe/all", "n >= 0", "-r")
    overlay.wait_for_names("b2", 1)
    overlay.wait_for_remote("b1", 1)
    with small.listening("mercast/deliver/all", form="%p") as listener:
        large.publish("devices/a/b", '{"n":1}', "-q", "1")
        large.publish("devices/a/b", '{"n":2, "text": "%s"}' % ("x" * 5_000), "-q", "1")
        large.publish("devices/a/b", '{"n":3}', "-q", "1")
        wait_until(lambda: '{"n":3}' in listener.lines, what="what comes after the one that is too large")
    assert set(listener.lines) == {'{"n":1}', '{"n":3}'}
    assert overlay.brokers["b2"].gateway()["drops"].keys() <= {"undeliverable"}


def test_values_that_mqtt_cannot_carry_as_properties_disturb_nothing(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    mosquitto.publish("mercast/subscribe/all", "EXISTS text", "-r")
    overlay.wait_for_names("b1", 1)
    texts = ["\0", "\n", "\x7f", "\x9f", "\ufdd0", "\uffff", "\U0001fffe", "ä\U0001f600"]
    bodies = [json.dumps({"text": text, f"name {text}": 1}) for text in texts]
    with mosquitto.listening("mercast/deliver/all", form="%p") as listener:
        for body in bodies:
            mosquitto.publish("devices/a/b", body, "-q", "1")
        assert listener.wait_for(len(bodies)) == bodies
    gateway = overlay.brokers["b1"].gateway()
    assert (gateway["connections"], gateway["drops"]) == (1, {})


@pytest.mark.slow
def test_messages_are_published_no_faster_than_they_can_be_delivered(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto(f"{UNBOUNDED}\nmax_inflight_messages 0")
    # Each message is delivered to twenty names, so deliveries lag. The broker queues only a few of them.
    overlay = start_overlay([("b1", f"{{ port = {mosquitto.port} }}")], DEVICES, general="[delivery]\noutbox = 3000")
    for number in range(20):
        mosquitto.publish(f"mercast/subscribe/s{number}", "n >= 0", "-r")
    overlay.wait_for_names("b1", 20)
    with mosquitto.listening("mercast/deliver/s7", form="%p") as listener:
        mosquitto.publish_lines("devices/a/b", numbers(5_000), "-q", "1")
        wait_until(lambda: len(listener.lines) >= 5_000, 120, "all 5,000 messages")
    assert listener.lines == numbers(5_000)
    broker = overlay.brokers["b1"]
    assert (broker.gateway()["drops"], broker.status()["drops"]) == ({}, {})
