"""pub, sub and bench as processes against a real broker: what they print, and how they end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker import connect_sync
from broker.client.cli.bench_workload import MARK, BenchWorkload
from broker.client.errors import ClientError
from broker.client.options import chosen_servers
from matching import parse
from matching.matcher import unpack_attributes
from tests.harness.client_processes import brokers
from tests.harness.command_line import CommandLine, line_of
from tests.harness.ports import free_ports


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with brokers(tmp_path_factory.mktemp("broker"), ["b1"]) as running:
        yield running["b1"].url


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "run", tmp_path)


def test_pub_prints_ids_and_sub_prints_matching_publications(command: CommandLine, server: str) -> None:
    with command.started("sub", "kind = 'a' AND n > 1", "kind = 'b'", "-s", server, "--count", "3") as sub:
        assert line_of(sub, is_stderr=True) == "subscribed at b1"
        printed = command.succeed(
            "pub", "-s", server, "--json", input='{"kind": "a", "n": 1}\n{"kind": "a", "n": 2}'
        ).out
        ids = [json.loads(line)["id"] for line in printed.splitlines()]
        assert len(set(ids)) == 2
        assert all(id.startswith("b1/") for id in ids)
        command.succeed("pub", "kind=b", "note='two words'", "--count", "2", "--payload", "p", "-s", server)
        assert [line_of(sub) for _ in range(3)] == [
            "kind=a n=2",
            "kind=b note='two words'  payload: 'p'",
            "kind=b note='two words'  payload: 'p'",
        ]
        assert sub.wait(60) == 0


def test_pub_with_an_id_is_received_once(command: CommandLine, server: str) -> None:
    with command.started("sub", "EXISTS order", "-s", server, "--count", "2") as sub:
        assert line_of(sub, is_stderr=True) == "subscribed at b1"
        for order in (7, 7, 8):
            command.succeed("pub", f"order={order}", "--name", "shop", "--id", f"order-{order}", "-s", server)
        assert [line_of(sub) for _ in range(2)] == ["order=7", "order=8"]
        assert sub.wait(60) == 0


def test_the_server_is_set_by_the_option_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCAST_SERVER", raising=False)
    assert chosen_servers(None) == "mercast://127.0.0.1:7001"
    monkeypatch.setenv("MERCAST_SERVER", "mercast://127.0.0.1:7002")
    assert chosen_servers(None) == "mercast://127.0.0.1:7002"
    assert chosen_servers("mercast://127.0.0.1:7003") == "mercast://127.0.0.1:7003"


def test_without_a_broker_pub_ends_with_its_own_code(command: CommandLine) -> None:
    assert command.run("pub", "a=1", "-s", f"mercast://127.0.0.1:{free_ports(1)[0]}").code == 4


def test_a_timeout_without_a_count_is_no_failure(command: CommandLine, server: str) -> None:
    listening = command.run("sub", "never = 1", "-s", server, "--timeout", "200ms")
    assert (listening.code, listening.out) == (0, "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["pub", "price"], 2, "is not name=value"),
        (["sub", "price >"], 2, "line 1, column 8: the text ends too early; expected a value"),
        (["sub", "never = 1", "--count", "1", "--timeout", "100ms"], 5, "0 of 1 publications came within 0.1 s"),
        (["sub", "never = 1", "--timeout", "soon"], 2, "--timeout: 'soon' is not a duration"),
        (["pub", "a=1", "--id", "x"], 2, "--id belongs to one publication of one client: give --name"),
        (["pub", "a=1", "--id", "x", "--name", "n", "--count", "2"], 2, "--id belongs to one publication"),
        (["pub", "a=1", "--expires", "foo"], 2, "--expires: 'foo' is not a duration"),
        (["bench", "--duration", "foo"], 2, "--duration: 'foo' is not a duration"),
        (["sub", "never = 1", "--durable", "desk"], 1, "durable"),
        (["pub", "a=1", "--mode", "twice"], 1, "mode 'twice' is not known; take at-least-once or at-most-once"),
        (["bench", "--subscriptions", "0"], 1, "--subscriptions is 0; there must be one at least"),
        (["bench", "--duration", "0s"], 1, "--duration is 0s; nothing can be measured in no time"),
        (["bench", "--matching", "2"], 1, "--matching is 2.0; it must be above 0 and at most 0.5"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_are_one_line(command: CommandLine, server: str, words: list[str], code: int, message: str) -> None:
    outcome = command.run(*words, "-s", server)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err.splitlines()[-1]
    assert "Traceback" not in outcome.err


def test_a_mistake_in_an_expression_is_shown_without_a_broker(command: CommandLine) -> None:
    outcome = command.run("sub", "a = 1", "price >> 3", "-s", "mercast://127.0.0.1:1")
    assert outcome.code == 2
    assert outcome.err.splitlines()[:2] == ["  price >> 3", "        ^"]
    assert "unknown operator '>>'" in outcome.err


def test_a_line_of_the_input_that_cannot_be_read_is_named(command: CommandLine, server: str) -> None:
    outcome = command.run("pub", "-s", server, input='{"a": 1}\n{"a": [1]}\n')
    assert outcome.code == 2
    assert "line 2 of standard input: attribute 'a'" in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--mode", "at-least-once"], ["--mode", "at-most-once"], ["--rate", "200"]], ids=" ".join
)
def test_bench_counts_owed_and_received_deliveries(command: CommandLine, server: str, options: list[str]) -> None:
    words = ["--subscribers", "3", "--subscriptions", "100", "--matching", "0.1", "--duration", "1s", "--warm-up", "0s"]
    printed = json.loads(command.succeed("bench", "-s", server, "--json", *words, *options).out)
    assert printed["missing"] == printed["refused"] == printed["repeated"] == 0
    assert printed["delivered_in_all"] == printed["expected_in_all"] > 0
    assert printed["published"] > 0
    assert 0 < printed["latency_ms_p50"] <= printed["latency_ms_p99"] <= printed["latency_ms_max"]


def test_a_bench_that_is_interrupted_ends_without_a_traceback(command: CommandLine, server: str) -> None:
    words = ["--subscribers", "3", "--subscriptions", "100", "--matching", "0.1", "--duration", "100s"]
    with command.started("bench", "-s", server, *words) as bench:
        with connect_sync(server) as client, client.subscribe("EXISTS symbol") as quotes:
            # Quotes arrive only while it publishes.
            assert quotes.next(60.0) is not None
        bench.send_signal(signal.SIGINT)
        _, message = bench.communicate(timeout=60)
    assert bench.returncode != 0
    assert "Traceback" not in message
    assert "never retrieved" not in message


@pytest.mark.parametrize("matching", [0.001, 0.01, 0.5])
def test_the_bench_workload_knows_which_clients_must_receive_a_publication(matching: float) -> None:
    workload = BenchWorkload(subscriptions=600, clients=7, matching=matching, size=200, seed=3)
    assert sum(map(len, workload.subscriptions)) == 600
    parsed = [[parse(text) for text in texts.values()] for texts in workload.subscriptions]
    for quote in workload.quotes[:40]:
        publication = unpack_attributes(quote.attributes)
        matches = [sum(each.evaluate(publication) is True for each in expressions) for expressions in parsed]
        assert quote.clients == sum(map(bool, matches))
        assert abs(sum(matches) - 600 * matching) <= 1
        assert len(quote.attributes) + MARK.size + len(quote.padding) == 200


def test_a_bench_of_too_small_publications_is_refused() -> None:
    with pytest.raises(ClientError, match="--size 20 is too small"):
        BenchWorkload(subscriptions=1, clients=1, matching=0.5, size=20, seed=0)
