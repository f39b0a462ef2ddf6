"""The most specific rule for a name decides: a wide rule admits nobody under a name that has a rule of its own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import RefusedError, connect
from broker.config.tables import ConfigError
from broker.security.access import AccessList, Rights, Rule, TokenDigest, read_access_list
from broker.security.authentication import PeerCredentials
from broker.security.security_config import load_security
from matching.languages.sql import parse
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.secured_overlay import anonymous_rule, rule, shown, with_certificates

SECRET = "a word that nobody guesses"
OTHER = "another word that nobody guesses"
ALL = {"publish": "TRUE", "subscribe": "TRUE"}


def access_list(folder: Path, *rules: str) -> AccessList:
    path = folder / "access.toml"
    path.write_text("".join(rules))
    return read_access_list(path)


def durable_broker(folder: Path, access: str) -> OverlayFileMaker:
    (folder / "access.toml").write_text(access)
    tables = {"acl": {"file": "access.toml"}, "store": {"data_dir": "data", "fsync": "never"}}
    return OverlayFileMaker(folder, ["b1"], tables=tables)


@pytest.mark.parametrize("is_wide_first", [False, True], ids=["narrow first", "wide first"])
def test_an_anonymous_client_cannot_take_the_durable_session_of_a_reserved_name(
    tmp_path: Path, is_wide_first: bool
) -> None:
    narrow, wide = rule("desk", SECRET, **ALL), anonymous_rule("*", **ALL)
    file = durable_broker(tmp_path, wide + narrow if is_wide_first else narrow + wide)

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1"), name="source") as source:
            async with (
                connect(file.url("b1"), name="desk", token=SECRET, durable=True) as desk,
                desk.subscribe("n > 0", name="numbers"),
            ):
                pass
            await source.publish({"n": 1})
            for token in ("", "a guess"):
                with pytest.raises(RefusedError, match="no client of that name with these credentials"):
                    async with connect(file.url("b1"), name="desk", token=token, durable=True, timeout=5.0):
                        pass
            assert overlay["b1"].violations.counts["unauthorised"] == 2
            async with (
                connect(file.url("b1"), name="desk", token=SECRET, durable=True) as desk,
                desk.subscribe("n > 0", name="numbers") as numbers,
            ):
                assert (await numbers.next(20.0))["n"] == 1

    run(test)


def test_a_client_with_a_certificate_cannot_use_a_name_with_another_certificate_in_its_rule(tmp_path: Path) -> None:
    acl = rule("*", certificate="*", **ALL) + rule("desk", certificate="desk", **ALL)
    file = with_certificates(tmp_path, ["b1"], acl=acl)

    async def test() -> None:
        async with InLoop(file):
            async with connect(file.url("b1"), name="lab", tls=shown(tmp_path, "lab")):
                pass
            with pytest.raises(RefusedError, match="no client of that name with these credentials"):
                async with connect(file.url("b1"), name="desk", tls=shown(tmp_path, "lab"), timeout=5.0):
                    pass
            async with connect(file.url("b1"), name="desk", tls=shown(tmp_path, "desk")):
                pass

    run(test)


@pytest.mark.parametrize("access", [anonymous_rule("*", **ALL), rule("mqtt-gateway-b1", SECRET, **ALL)])
def test_only_the_gateway_itself_has_its_name(tmp_path: Path, access: str) -> None:
    authenticator = load_security(durable_broker(tmp_path, access).broker("b1")).authenticator
    for token in ("", SECRET):
        assert authenticator.refusal(PeerCredentials("mqtt-gateway-b1", False, token, "127.0.0.1:1")) is not None
    internal = PeerCredentials("mqtt-gateway-b1", False, authenticator.internal_token, "127.0.0.1:1")
    assert authenticator.refusal(internal) is None


def test_without_an_access_list_a_certificate_does_not_admit_a_client_as_the_gateway(tmp_path: Path) -> None:
    authenticator = load_security(with_certificates(tmp_path, ["b1"]).broker("b1")).authenticator
    certificate = {"subject": ((("commonName", "desk"),),)}
    assert authenticator.refusal(PeerCredentials("desk", False, "", "127.0.0.1:1", certificate)) is None
    assert authenticator.refusal(PeerCredentials("mqtt-gateway-b1", False, "", "127.0.0.1:1", certificate)) is not None


def test_a_name_without_wildcards_is_more_specific_than_any_pattern(tmp_path: Path) -> None:
    wide = anonymous_rule("*d*e*s*k*") + anonymous_rule("desk*")
    access = access_list(tmp_path, wide, rule("desk", SECRET, publish="TRUE"))
    assert access.rights_of("desk", "", ()) is None
    assert access.rights_of("desk", SECRET, ()) == Rights(publish=parse("TRUE"))
    assert access.rights_of("desk-1", "", ()) == Rights()


def test_of_several_patterns_the_one_with_the_most_literal_characters_decides(tmp_path: Path) -> None:
    access = access_list(
        tmp_path,
        anonymous_rule("*"),
        rule("sensor-1*", SECRET, publish="n = 1"),
        rule("sensor-12*", OTHER, publish="n = 12"),
    )
    assert access.rights_of("sensor-1-ab", SECRET, ()) == Rights(publish=parse("n = 1"))
    assert access.rights_of("sensor-12-ab", OTHER, ()) == Rights(publish=parse("n = 12"))
    assert access.rights_of("sensor-12-ab", SECRET, ()) is None
    assert access.rights_of("sensor-12-ab", "", ()) is None
    assert access.rights_of("sensor-2", "", ()) == Rights()


def test_the_first_of_equally_specific_patterns_decides(tmp_path: Path) -> None:
    first, second = rule("a*", SECRET, publish="n = 1"), rule("*b", OTHER, publish="n = 2")
    for rules, token in (((first, second), SECRET), ((second, first), OTHER)):
        access = access_list(tmp_path, *rules)
        assert [access.rights_of("ab", each, ()) is not None for each in (SECRET, OTHER)] == [
            token == SECRET,
            token == OTHER,
        ]


def test_rules_with_the_same_name_are_alternatives_in_order(tmp_path: Path) -> None:
    access = access_list(
        tmp_path,
        rule("desk", SECRET, publish="n = 1"),
        rule("desk", certificate="desk", publish="n = 2"),
        anonymous_rule("*"),
    )
    assert access.rights_of("desk", SECRET, ()) == Rights(publish=parse("n = 1"))
    assert access.rights_of("desk", "", ("desk",)) == Rights(publish=parse("n = 2"))
    assert access.rights_of("desk", SECRET, ("desk",)) == Rights(publish=parse("n = 1"))
    assert access.rights_of("desk", "", ()) is None


def test_wildcards_in_the_name_of_a_client_are_plain_characters(tmp_path: Path) -> None:
    access = access_list(tmp_path, rule("desk", SECRET), rule("desk-*", OTHER), anonymous_rule("*"))
    for name in ("*", "d*", "des?", "[d]esk"):
        assert access.rights_of(name, "", ()) == Rights()
    assert access.rights_of("desk-*", "", ()) is None
    assert access.rights_of("desk-*", OTHER, ()) == Rights()


@pytest.mark.parametrize(("key", "value"), [("name", "sensor-?"), ("name", "sensor-[12]"), ("certificate", "lab-?")])
def test_a_pattern_with_another_wildcard_than_the_asterisk_is_refused(tmp_path: Path, key: str, value: str) -> None:
    rules = {"name": "x", "certificate": "x", key: value}
    with pytest.raises(ConfigError) as refused:
        access_list(tmp_path, rule(rules.pop("name"), **rules))
    assert f"client.1.{key}" in str(refused.value)
    assert "* is the only wildcard" in str(refused.value)


names = st.text("ab*?[]", min_size=1, max_size=4)
patterns = st.text("ab*", min_size=1, max_size=4)
tokens = st.sampled_from(["", SECRET, OTHER])


@st.composite
def any_rule(draw: st.DrawFn, name: st.SearchStrategy[str] = patterns) -> Rule:
    token = draw(tokens)
    return Rule(
        name=draw(name),
        token_sha256=TokenDigest(hashlib.sha256(token.encode()).hexdigest() if token else ""),
        anonymous=not token,
        publish=parse(f"n = {draw(st.integers(1, 3))}"),
    )


def literal_count(pattern: str) -> int:
    return len(pattern.replace("*", ""))


@given(own=any_rule(st.text("ab", min_size=1, max_size=3)), others=st.lists(any_rule()), data=st.data())
def test_adding_a_rule_changes_nothing_for_a_name_with_a_rule_of_its_own(
    own: Rule, others: list[Rule], data: st.DataObject
) -> None:
    before = [*others]
    before.insert(data.draw(st.integers(0, len(before))), own)
    added = data.draw(any_rule().filter(lambda each: each.name != own.name))
    after = [*before]
    after.insert(data.draw(st.integers(0, len(after))), added)
    token = data.draw(tokens)
    rights = AccessList(tuple(before)).rights_of(own.name, token, ())
    assert AccessList(tuple(after)).rights_of(own.name, token, ()) == rights
    alone = tuple(each for each in before if each.name == own.name)
    assert AccessList(alone).rights_of(own.name, token, ()) == rights


@given(
    rules=st.lists(any_rule(), unique_by=lambda each: ("*" in each.name, literal_count(each.name))),
    name=names,
    token=tokens,
    data=st.data(),
)
def test_the_order_of_rules_with_different_specificity_does_not_matter(
    rules: list[Rule], name: str, token: str, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rules))
    rights = AccessList(tuple(rules)).rights_of(name, token, ())
    assert AccessList(tuple(shuffled)).rights_of(name, token, ()) == rights
