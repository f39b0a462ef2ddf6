"""The access list: which rule matches a client, what a right covers, and how an invalid list is refused."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgpack
import pytest

from broker.client.credentials import environment_credentials
from broker.config.tables import ConfigError
from broker.security.access import ALL_RIGHTS, NO_RIGHTS, Rights, read_access_list
from matching.languages.sql import parse
from tests.harness.mercast_broker import ROOT
from tests.harness.secured_overlay import rule

SECRET = "a word that nobody guesses"


def write_list(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "access.toml"
    path.write_text(text)
    return path


def test_the_rule_for_a_name_counts_if_the_credentials_fit(tmp_path: Path) -> None:
    text = rule("sensor-*", SECRET, publish="a = 1") + rule("*", certificate="desk", subscribe="TRUE")
    access = read_access_list(write_list(tmp_path, text))
    assert access.rights_of("sensor-7", SECRET, ()) == Rights(publish=parse("a = 1"))
    assert access.rights_of("sensor-7", "a wrong word", ()) is None
    assert access.rights_of("other", SECRET, ()) is None
    assert access.rights_of("other", "", ("desk",)) == Rights(subscribe=parse("TRUE"))
    assert access.rights_of("other", "", ("desktop",)) is None


def test_the_rules_in_the_documentation_admit_clients_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documented = (ROOT / "docs" / "security.md").read_text()
    (rules,) = [text for text in re.findall(r"```toml\n(.*?)```", documented, re.S) if text.startswith("[[client]]")]
    access = read_access_list(write_list(tmp_path, rules.replace("…", hashlib.sha256(SECRET.encode()).hexdigest())))
    monkeypatch.delenv("MERCAST_CA", raising=False)
    monkeypatch.delenv("MERCAST_CERTIFICATE", raising=False)
    monkeypatch.setenv("MERCAST_CLIENT", "sensor-1")
    assert access.rights_of(environment_credentials()["name"], SECRET, ()) is not None
    monkeypatch.setenv("MERCAST_CLIENT", "desk")
    assert access.rights_of(environment_credentials()["name"], "", ("desk",)) is not None


def test_a_rule_with_token_and_certificate_requires_both(tmp_path: Path) -> None:
    access = read_access_list(write_list(tmp_path, rule("desk", SECRET, certificate="desk")))
    assert access.rights_of("desk", SECRET, ()) is None
    assert access.rights_of("desk", "", ("desk",)) is None
    assert access.rights_of("desk", SECRET, ("desk",)) is not None


def test_rights_cover_the_named_expressions_and_nothing_else() -> None:
    rights = Rights(parse("room = 'lab'"), parse("temperature > 0"), parse("room IN ('lab', 'hall')"))
    assert rights.refusal_to_publish(msgpack.packb({"room": "lab", "t": 3})) is None
    assert rights.refusal_to_publish(msgpack.packb({"room": "hall"})) is not None
    assert rights.refusal_to_publish(msgpack.packb({})) is not None
    assert rights.refusal_to_subscribe("temperature > 30 AND room = 'lab'") is None
    assert rights.refusal_to_subscribe("temperature > -1") is not None
    assert rights.refusal_to_subscribe("TRUE") is not None
    assert rights.refusal_to_subscribe("temperature > 3 OR room = 'lab'") is not None
    assert rights.refusal_to_advertise("room = 'hall'") is None
    assert rights.refusal_to_advertise("room != 'lab'") is not None


def test_a_right_to_subscribe_defines_which_publications_may_be_seen() -> None:
    seen: bytes = msgpack.packb({"temperature": 3})
    hidden: bytes = msgpack.packb({"temperature": -3})
    rights = Rights(subscribe=parse("temperature > 0"))
    assert rights.may_see(seen)
    assert not rights.may_see(hidden)
    assert not rights.may_see(msgpack.packb({"room": "lab"}))
    assert not rights.may_see(b"no attributes")
    assert ALL_RIGHTS.may_see(hidden)
    assert not Rights(publish=parse("TRUE")).may_see(seen)


def test_all_rights_and_none() -> None:
    packed: bytes = msgpack.packb({"a": 1})
    assert ALL_RIGHTS.refusal_to_publish(packed) is None
    assert ALL_RIGHTS.refusal_to_subscribe("NOT EXISTS a") is None
    assert NO_RIGHTS.refusal_to_publish(packed) == "this client may not publish"
    assert NO_RIGHTS.refusal_to_subscribe("a = 1") == "this client may not subscribe to anything"
    assert NO_RIGHTS.refusal_to_advertise("a = 1") == "this client may not advertise anything"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[client]\n", "is not TOML"),
        ('[clients]\nname = "x"', "clients is unknown; did you mean 'client'?"),
        ("client = 3", "client is 3; it must be a list of tables; write [[client]] above each"),
        ('[[client]]\ntoken_sha256 = "ab"', "client.1.token_sha256: it must be 64 hexadecimal digits"),
        ("[[client]]\nanonymous = true", "client.1.name is missing"),
        ('[[client]]\nname = "x"', "client.1 lets anybody be 'x'"),
        (
            '[[client]]\nname = "x"\nanonymous = true\ncertificate = "x"',
            "client.1 (x) asks for credentials",
        ),
        ('[[client]]\nname = "x"\nanonymus = true', "client.1.anonymus (x) is unknown; did you mean 'anonymous'?"),
        ('[[client]]\nname = "x"\nanonymous = true\npublish = "a ="', "client.1.publish (x): "),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_by_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_access_list(write_list(tmp_path, text))
    assert message in str(refused.value)
    assert "access.toml" in str(refused.value)
