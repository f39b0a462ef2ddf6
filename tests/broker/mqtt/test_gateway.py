"""The gateway with a real mosquitto, MQTT clients and real brokers. Clients receive exactly the messages that match
their expressions, unchanged."""

from __future__ import annotations

import json

import pytest

from tests.broker.mqtt.conftest import StartMosquitto, StartOverlay
from tests.harness.conditions import wait_until

DEVICES = 'topics = ["devices/{room}/{sensor}"]'


def test_an_mqtt_client_receives_exactly_the_matching_messages_across_two_brokers(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    west, east = start_mosquitto(), start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{west.port}"'), ("b2", f'"127.0.0.1:{east.port}"')], DEVICES)
    east.publish("mercast/subscribe/hot", "temperature > 30 AND room = 'lab'", "-r")
    overlay.wait_for_names("b2", 1)
    overlay.wait_for_remote("b1", 1)
    with east.listening("mercast/deliver/#") as listener:
        west.publish("devices/lab/t1", '{"temperature": 31.5, "note": "ä"}', "-q", "1")
        west.publish("devices/lab/t1", '{"temperature": 30}', "-q", "1")
        west.publish("devices/hall/t1", '{"temperature": 45}', "-q", "1")
        west.publish("devices/lab/t2", '{ "temperature":\t1e2 }')
        assert listener.wait_for(2) == [
            'mercast/deliver/hot {"temperature": 31.5, "note": "ä"}',
            'mercast/deliver/hot { "temperature":\t1e2 }',
        ]
    wait_until(lambda: overlay.brokers["b1"].gateway()["taken"] == 4, what="all four messages are accepted")


def test_user_properties_and_topic_levels_become_attributes_and_are_delivered_back(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], 'topics = ["plant/{line:number}/{kind}/#"]')
    mosquitto.publish("mercast/subscribe/a", "line = 7 AND speed > 2.5 AND urgent = TRUE AND zip = '01234'", "-r")
    overlay.wait_for_names("b1", 1)
    properties = [("speed", "3"), ("urgent", "true"), ("zip", "01234"), ("digits", '"12"')]
    options = [word for name, value in properties for word in ("-D", "publish", "user-property", name, value)]
    with mosquitto.listening("mercast/deliver/a", "-V", "5", form="%j") as listener:
        mosquitto.publish("plant/7/press/x/y", b"\x00\xff\x01", "-V", "5", "-q", "1", *options)
        mosquitto.publish("plant/8/press", b"\x00\xff\x01", "-V", "5", "-q", "1", *options)
        mosquitto.publish("plant/seven/press", b"\x00\xff\x01", "-V", "5", "-q", "1", *options)
        (line,) = listener.wait_for(1)
    message = json.loads(line)
    assert message["properties"]["user-properties"] == {
        "speed": "3",
        "urgent": "true",
        "zip": "01234",
        "digits": '"12"',
        "line": "7",
        "kind": "press",
        "mqtt_topic": "plant/7/press/x/y",
        "mercast-gateway": "mercast-test-b1",
    }
    broker = overlay.brokers["b1"]
    wait_until(
        lambda: broker.gateway()["drops"] == {"topic-level": 1}, what="the message with a word for a number is dropped"
    )
    wait_until(lambda: broker.gateway()["left_out"] == {"payload-not-json": 2}, what="two payloads are noted")


def test_the_body_arrives_byte_for_byte(start_mosquitto: StartMosquitto, start_overlay: StartOverlay) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    mosquitto.publish("mercast/subscribe/all", "EXISTS room", "-r")
    overlay.wait_for_names("b1", 1)
    bodies = [bytes(range(256)), b"", b'{"a": 1, "a": 2}', b"[1, 2", b"nothing", b"\xff" * 100_000]
    with mosquitto.listening("mercast/deliver/all", form="%x") as listener:
        for body in bodies:
            mosquitto.publish("devices/lab/t1", body, "-q", "1")
        assert [bytes.fromhex(line) for line in listener.wait_for(len(bodies))] == bodies


def test_an_empty_retained_message_unsubscribes_and_another_one_replaces(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    mosquitto.publish("mercast/subscribe/one", "x = 1", "-r")
    mosquitto.publish("mercast/subscribe/with/levels", "x >= 1", "-r")
    overlay.wait_for_names("b1", 2)
    with mosquitto.listening("mercast/deliver/#") as listener:
        mosquitto.publish("devices/a/b", '{"x":1}', "-q", "1")
        assert sorted(listener.wait_for(2)) == ['mercast/deliver/one {"x":1}', 'mercast/deliver/with/levels {"x":1}']
        mosquitto.publish("mercast/subscribe/with/levels", "", "-r")
        mosquitto.publish("mercast/subscribe/one", "x = 2", "-r")
        overlay.wait_for_names("b1", 1)
        mosquitto.publish("devices/a/b", '{"x":1}', "-q", "1")
        mosquitto.publish("devices/a/b", '{"x":2}', "-q", "1")
        assert listener.wait_for(3)[2:] == ['mercast/deliver/one {"x":2}']
    assert overlay.brokers["b1"].status()["tables"]["local_subscriptions"] == 1


def test_errors_appear_under_the_subscriptions_name_and_stop_nothing(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    overlay.wait_for_names("b1", 0)
    with mosquitto.listening("mercast/error/#") as errors, mosquitto.listening("mercast/deliver/#") as listener:
        mosquitto.publish("mercast/subscribe/bad", "temperature >", "-r")
        mosquitto.publish("mercast/subscribe/binary", b"\xff\xfe", "-r")
        mosquitto.publish("mercast/subscribe/good", "x > 0", "-r")
        reported = {line.split(" ", 1)[0]: line for line in errors.wait_for(2)}
        assert "expected a value" in reported["mercast/error/bad"]
        assert "not UTF-8" in reported["mercast/error/binary"]
        overlay.wait_for_names("b1", 1)
        mosquitto.publish("devices/a/b", '{"x":1}', "-q", "1")
        assert listener.wait_for(1) == ['mercast/deliver/good {"x":1}']
    assert overlay.brokers["b1"].gateway()["drops"] == {"subscription-refused": 1}


def test_names_and_expressions_beyond_the_brokers_limits_are_refused_and_stop_nothing(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    longest, too_long, far_too_long = "l" * 255, "t" * 256, "f" * 2_000
    overlay.wait_for_names("b1", 0)
    with mosquitto.listening("mercast/error/#") as errors, mosquitto.listening("mercast/deliver/#") as listener:
        for name in (far_too_long, too_long, longest):
            mosquitto.publish(f"mercast/subscribe/{name}", "x > 0", "-r", "-q", "1")
        mosquitto.publish("mercast/subscribe/wordy", f"x = '{'y' * 66_000}'", "-r", "-q", "1")
        reported = {line.split(" ", 1)[0]: line for line in errors.wait_for(2)}
        assert "its name has 256 bytes; the limit is 255" in reported[f"mercast/error/{too_long}"]
        assert "has 66006 bytes; the limit is 65536" in reported["mercast/error/wordy"]
        overlay.wait_for_names("b1", 1)
        mosquitto.publish("devices/a/b", '{"x":1}', "-q", "1")
        assert listener.wait_for(1) == [f'mercast/deliver/{longest} {{"x":1}}']
    broker = overlay.brokers["b1"]
    assert broker.gateway()["drops"] == {"name-too-long": 2}
    assert broker.status()["violations"] == {}


def test_a_publication_of_an_ordinary_client_reaches_mqtt_as_json(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay
) -> None:
    from broker import connect_sync

    mosquitto = start_mosquitto()
    overlay = start_overlay([("b1", f'"127.0.0.1:{mosquitto.port}"')], DEVICES)
    mosquitto.publish("mercast/subscribe/ibm", "symbol = 'IBM'", "-r")
    overlay.wait_for_names("b1", 1)
    with mosquitto.listening("mercast/deliver/#") as listener:
        with connect_sync(f"mercast://{overlay.brokers['b1'].listen}") as client:
            client.publish({"symbol": "IBM", "price": 92.5, "is_open": True})
            client.publish({"symbol": "IBM"}, b"as it is")
        assert listener.wait_for(2) == [
            'mercast/deliver/ibm {"symbol":"IBM","price":92.5,"is_open":true}',
            "mercast/deliver/ibm as it is",
        ]


def test_a_gateway_uses_mqtt_3_1_1_by_choice(start_mosquitto: StartMosquitto, start_overlay: StartOverlay) -> None:
    mosquitto = start_mosquitto()
    mosquitto.publish("devices/lab/old", '{"x": 5}', "-r")
    overlay = start_overlay([("b1", f'{{ port = {mosquitto.port}, version = "3.1.1" }}')], DEVICES)
    mosquitto.publish("mercast/subscribe/a", "x = 1 AND room = 'lab'", "-r")
    overlay.wait_for_names("b1", 1)
    with mosquitto.listening("mercast/deliver/#") as listener:
        mosquitto.publish("devices/lab/t1", '{"x": 1}', "-q", "1")
        assert listener.wait_for(1) == ['mercast/deliver/a {"x": 1}']
    assert overlay.brokers["b1"].gateway()["drops"] == {"retained": 1}


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_gateway_without_the_fast_path_delivers_reports_errors_and_reconnects(
    start_mosquitto: StartMosquitto, start_overlay: StartOverlay, version: str
) -> None:
    mosquitto = start_mosquitto("max_queued_messages 0")
    table = f'{{ port = {mosquitto.port}, version = "{version}", fast_path = false }}'
    overlay = start_overlay([("b1", table)], DEVICES)
    broker = overlay.brokers["b1"]
    overlay.wait_for_names("b1", 0)
    with mosquitto.listening("mercast/error/#") as errors:
        mosquitto.publish("mercast/subscribe/bad", "n >", "-r", "-q", "1")
        mosquitto.publish("mercast/subscribe/lab", "n >= 0 AND room = 'lab'", "-r", "-q", "1")
        assert "expected a value" in errors.wait_for(1)[0]
    overlay.wait_for_names("b1", 1)
    sent = [json.dumps({"n": number}) for number in range(300)]
    with mosquitto.listening("mercast/deliver/lab", "-V", "5", "-q", "1", form="%j") as listener:
        mosquitto.publish("devices/hall/t1", '{"n": 1}', "-q", "1")
        mosquitto.publish_lines("devices/lab/t1", sent, "-q", "1")
        messages = [json.loads(line) for line in listener.wait_for(len(sent))]
    assert [message["payload"] for message in messages] == sent
    expected = {"n": "0", "room": "lab", "sensor": "t1", "mqtt_topic": "devices/lab/t1"}
    properties = messages[0].get("properties", {}).get("user-properties")
    assert properties == (None if version == "3.1.1" else expected | {"mercast-gateway": "mercast-test-b1"})
    wait_until(lambda: broker.gateway()["delivered"] == len(sent), what="all deliveries are acknowledged")
    assert broker.gateway()["taken"] == len(sent) + 1
    mosquitto.publish("mercast/subscribe/bad", "", "-r", "-q", "1")
    mosquitto.stop()
    mosquitto.start()
    wait_until(lambda: broker.gateway()["connections"] == 2, what="the gateway is connected again")
    with mosquitto.listening("mercast/deliver/lab", form="%p") as listener:
        mosquitto.publish("devices/lab/t1", '{"n": 300}', "-q", "1")
        assert listener.wait_for(1) == ['{"n": 300}']
    assert broker.gateway()["drops"] == {"subscription-refused": 1}
