"""The threat model, line by line: each attack is refused with a reason and counted."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from broker import ClientError, ConnectError, RefusedError, connect, tls
from broker.config.tables import ConfigError
from broker.runtime.server import BrokerServer
from broker.security.access import AccessList
from broker.security.authentication import PeerCredentials
from broker.security.certificates import Authority, create_authority, issue_certificate, write_certificates
from broker.security.credential_authenticator import CredentialAuthenticator
from broker.wire.client_frames import Reason
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.secured_overlay import HERE, rule, shown, with_certificates, with_tokens

SECRET = "a word that nobody guesses"
OPEN = rule("desk", certificate="desk", publish="TRUE", subscribe="TRUE", advertise="TRUE")


async def refused_error(url: str, **credentials: object) -> ClientError:
    with pytest.raises(ClientError) as refused:
        async with connect(url, timeout=5.0, **credentials):  # type: ignore[arg-type]
            pass
    return refused.value


def write_pair(folder: Path, name: str, pair: tuple[bytes, bytes]) -> None:
    (folder / f"{name}.pem").write_bytes(pair[0])
    (folder / f"{name}.key").write_bytes(pair[1])


def authority_of(folder: Path) -> Authority:
    """The authority whose key `write_certificates` wrote."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Authority(x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()), key)


def test_publications_cross_a_link_and_reach_a_client_over_tls(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1"), tls=shown(tmp_path, "desk")) as publisher,
            connect(file.url("b2"), tls=shown(tmp_path, "lab")) as reader,
            reader.subscribe("n > 0") as stream,
        ):
            await overlay.quiet()
            await publisher.publish({"n": 1})
            assert (await stream.next(20.0))["n"] == 1

    run(test)


def test_a_client_without_certificate_or_token_is_refused_and_counted(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            error = await refused_error(file.url("b1"), tls=shown(tmp_path))
            assert isinstance(error, RefusedError)
            assert error.reason == Reason.UNAUTHORISED
            assert overlay["b1"].violations.counts["unauthorised"] == 1

    run(test)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    return str([getattr(record, "fields", {}) for record in caplog.records])


def test_a_certificate_of_another_authority_is_refused_at_the_handshake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = with_certificates(tmp_path, ["b1"])
    write_pair(tmp_path, "stranger", issue_certificate(create_authority("others"), "desk"))
    stranger = tls(tmp_path / "certs" / "ca.pem", tmp_path / "stranger.pem", tmp_path / "stranger.key")

    async def test() -> None:
        async with InLoop(file) as overlay:
            error = await refused_error(file.url("b1"), tls=stranger)
            assert isinstance(error, ConnectError)
            assert "does not take this certificate" in str(error)
            assert not overlay["b1"].clients.sessions
            assert overlay["b1"].violations.counts["tls"] == 1
            assert "signature" in logged(caplog) or "issuer" in logged(caplog)

    run(test)


def test_an_expired_certificate_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = with_certificates(tmp_path, ["b1"])
    certs = tmp_path / "certs"
    write_pair(certs, "old", issue_certificate(authority_of(certs), "desk", lifetime=-timedelta(minutes=1)))

    async def test() -> None:
        async with InLoop(file) as overlay:
            error = await refused_error(file.url("b1"), tls=shown(tmp_path, "old"))
            assert isinstance(error, ConnectError)
            assert "does not take this certificate" in str(error)
            assert not overlay["b1"].clients.sessions
            assert overlay["b1"].violations.counts["tls"] == 1
            assert "certificate has expired" in logged(caplog)

    run(test)


def test_a_client_refuses_a_broker_of_another_authority_or_of_another_host(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"])
    certs = tmp_path / "certs"
    write_pair(certs, "b1", issue_certificate(authority_of(certs), "b1", ["elsewhere.example"]))
    write_certificates(tmp_path / "others", "others", {}, ("desk",))
    others = tls(tmp_path / "others" / "ca.pem")

    async def test() -> None:
        async with InLoop(file) as overlay:
            wrong_host = await refused_error(file.url("b1"), tls=shown(tmp_path, "desk"))
            assert "TLS" in str(wrong_host)
            assert "certificate verify failed" in str(wrong_host).replace("_", " ").lower()
            assert "TLS" in str(await refused_error(file.url("b1"), tls=others))
            await until(lambda: overlay["b1"].violations.counts["tls"] == 2)

    run(test)


def test_older_tls_and_plain_connections_are_refused(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"])
    old = shown(tmp_path, "desk")
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2

    async def test() -> None:
        async with InLoop(file) as overlay:
            assert "TLS" in str(await refused_error(file.url("b1"), tls=old))
            in_the_clear = await refused_error(file.url("b1"))
            assert isinstance(in_the_clear, ConnectError)
            assert "perhaps it speaks TLS: set MERCAST_CA" in str(in_the_clear)
            assert not overlay["b1"].clients.sessions
            await until(lambda: overlay["b1"].violations.counts["tls"] >= 2)

    run(test)


def test_a_connection_without_a_tls_handshake_is_closed_after_the_hello_time(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1"])

    async def test() -> None:
        async with InLoop(file) as overlay:
            reader, writer = await asyncio.open_connection("127.0.0.1", file.ports["b1"])
            await until(lambda: len(overlay["b1"].listener.pending) == 1)
            assert await reader.read() == b""
            assert overlay["b1"].violations.counts == {"tls": 1}
            assert not overlay["b1"].listener.pending
            writer.close()

    run(test)


def test_a_missing_or_wrong_token_is_refused_without_saying_which(tmp_path: Path) -> None:
    file = with_tokens(tmp_path, rule("desk", SECRET, publish="TRUE"))

    async def test() -> None:
        async with InLoop(file) as overlay:
            texts = {
                str(await refused_error(file.url("b1"), name="desk")),
                str(await refused_error(file.url("b1"), name="desk", token="guess")),
                str(await refused_error(file.url("b1"), name="nobody", token=SECRET)),
            }
            assert len(texts) == 1
            assert overlay["b1"].violations.counts["unauthorised"] == 3
            async with connect(file.url("b1"), name="desk", token=SECRET) as client:
                assert await client.publish({"a": 1}) is not None

    run(test)


def test_nobody_publishes_subscribes_or_advertises_beyond_its_rights(tmp_path: Path) -> None:
    rights = {"publish": "room = 'lab'", "subscribe": "temperature > 0", "advertise": "room = 'lab'"}
    file = with_tokens(tmp_path, rule("desk", SECRET, **rights))

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1"), name="desk", token=SECRET) as client:
            await client.publish({"room": "lab"})
            with pytest.raises(RefusedError, match="may publish only what satisfies room = 'lab'"):
                await client.publish({"room": "hall"})
            with pytest.raises(RefusedError, match="may subscribe to only what temperature > 0 covers"):
                async with client.subscribe("TRUE"):
                    pass
            async with client.subscribe("temperature > 30"):
                pass
            with pytest.raises(RefusedError, match="may advertise only"):
                await client.advertise("room = 'hall'")
            await client.advertise("room = 'lab' AND temperature > 3")
            assert overlay["b1"].violations.counts["forbidden"] == 3

    run(test)


def test_a_broker_that_is_not_in_the_overlay_is_refused_even_with_a_certificate(tmp_path: Path) -> None:
    file = with_certificates(tmp_path, ["b1", "b2"], [("b1", "b2")])
    intruder = intruder_file(tmp_path, file, "b9")
    write_pair(tmp_path / "certs", "b9", issue_certificate(authority_of(tmp_path / "certs"), "b9", HERE))

    async def test() -> None:
        async with InLoop(file) as overlay:
            server = BrokerServer(intruder.broker("b9"))
            await server.start()
            await until(lambda: overlay["b1"].violations.counts["unauthorised"] > 0)
            assert set(overlay["b1"].neighbours.links) == {"b2"}
            await server.stop()

    run(test)


def test_a_broker_cannot_use_the_name_of_another(tmp_path: Path) -> None:
    """The broker presents b2's id with b3's certificate."""
    file = with_certificates(tmp_path, ["b1", "b2", "b3"], [("b1", "b2"), ("b1", "b3")])
    for end in ("pem", "key"):
        shutil.copy(tmp_path / "certs" / f"b3.{end}", tmp_path / "certs" / f"b2.{end}")

    async def test() -> None:
        servers = {id: BrokerServer(file.broker(id)) for id in ("b1", "b2")}
        for server in servers.values():
            await server.start()
        await until(lambda: sum(server.violations.counts["unauthorised"] for server in servers.values()) > 0)
        assert not servers["b1"].neighbours.links
        for server in servers.values():
            await server.stop()

    run(test)


def test_without_tls_brokers_authenticate_by_their_token(tmp_path: Path) -> None:
    file = with_tokens(tmp_path, OPEN, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with InLoop(file) as overlay:
            assert "b2" in overlay["b1"].neighbours.links
        guess = tmp_path / "guess"
        guess.mkdir()
        shutil.copy(tmp_path / "access.toml", guess)
        (guess / "brokers.token").write_text("not the word that they know")
        text = file.path.read_text()
        (guess / "test.toml").write_text(text)
        from broker.config.overlay_config import read_config

        servers = [BrokerServer(file.broker("b1")), BrokerServer(read_config(guess / "test.toml").broker("b2"))]
        for server in servers:
            await server.start()
        await until(lambda: any(server.violations.counts["unauthorised"] for server in servers))
        assert not servers[0].neighbours.links
        for server in servers:
            await server.stop()

    run(test)


def intruder_file(tmp_path: Path, file: OverlayFileMaker, id: str) -> OverlayFileMaker:
    """An overlay file with an additional broker, a neighbour of b1 that the other brokers do not know."""
    own = tmp_path / "intruder"
    own.mkdir()
    (own / "certs").symlink_to(tmp_path / "certs")
    made = OverlayFileMaker(own, ["b1", id], [("b1", id)], tables={"tls": tls_table()})
    text = made.path.read_text().replace(f":{made.ports['b1']}", f":{file.ports['b1']}")
    made.path.write_text(text)
    return made


def tls_table() -> dict[str, object]:
    from tests.harness.secured_overlay import TLS

    return dict(TLS)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"tls": {"ca": "certs/ca.pem"}}, "[tls] needs certificate"),
        ({"tls": {"ca": "no", "certificate": "no", "key": "no"}}, "there is no file"),
        ({"tls": {"cert": "x"}}, "tls.cert is unknown; known: ca, certificate, key"),
        ({"acl": {"file": "access.toml"}}, "needs brokers_token_file"),
        ({"acl": {"brokers_token_file": "short"}}, "16 are the least"),
    ],
)
def test_an_unsafe_configuration_is_refused(tmp_path: Path, tables: dict[str, dict[str, object]], message: str) -> None:
    (tmp_path / "access.toml").write_text(OPEN)
    (tmp_path / "short").write_text("short")
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables=tables)

    async def test() -> None:
        with pytest.raises(ConfigError) as refused:
            BrokerServer(file.broker("b1"))
        assert message in str(refused.value)
        assert str(file.path) in str(refused.value)

    run(test)


def test_a_broker_that_others_may_join_needs_a_token_to_authenticate_them(tmp_path: Path) -> None:
    (tmp_path / "access.toml").write_text(OPEN)
    acl = {"file": "access.toml", "lets_others_join": True}
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"acl": acl})
    with pytest.raises(ConfigError, match="needs brokers_token_file"):
        BrokerServer(file.broker("b1"))


@pytest.mark.parametrize("token", ["", "a guess"])
def test_without_tls_and_a_token_no_peer_is_accepted_as_a_broker(token: str) -> None:
    authenticator = CredentialAuthenticator(
        lambda: AccessList(()), has_tls=False, brokers=("b1",), lets_others_join=True, gateway_client="mqtt-gateway-b1"
    )
    for name in ("b1", "b9"):
        refused = authenticator.refusal(PeerCredentials(name, True, token, "127.0.0.1:1"))
        assert refused is not None
        assert "brokers' token" in refused


def test_a_broker_joins_one_that_lets_others_join_by_their_token_only(tmp_path: Path) -> None:
    (tmp_path / "access.toml").write_text(OPEN)
    (tmp_path / "brokers.token").write_text("the brokers of this overlay know this")
    acl = {"file": "access.toml", "brokers_token_file": "brokers.token", "lets_others_join": True}
    file = OverlayFileMaker(tmp_path, ["b1"], tables={"acl": acl})
    own = tmp_path / "own"
    own.mkdir()
    stranger = OverlayFileMaker(own, ["b8"])
    friend = OverlayFileMaker(tmp_path, ["b9"], tables={"acl": acl}, name="friend")
    friend.path.write_text(friend.path.read_text().replace('name = "friend"', 'name = "test"'))

    async def test() -> None:
        async with InLoop(file) as overlay:
            b1 = overlay["b1"]
            servers = [BrokerServer(stranger.broker("b8")), BrokerServer(friend.broker("b9"))]
            for server in servers:
                await server.start(b1.listen)
            await until(lambda: "b9" in b1.neighbours.links and b1.violations.counts["unauthorised"] > 0)
            assert set(b1.neighbours.links) == {"b9"}
            for server in servers:
                await server.stop()

    run(test)
