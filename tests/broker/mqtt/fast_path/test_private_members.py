"""The fast path depends on private members of aiomqtt and paho. These tests name the member that a new version lacks.
No other part of the gateway uses private members."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import aiomqtt
import pytest

import broker.mqtt
from broker.config.tables import ConfigError
from broker.mqtt.fast_path.client import FastMqttClient
from broker.mqtt.fast_path.private_members import (
    AIOMQTT_ATTRIBUTES,
    AIOMQTT_HOOKS,
    PAHO_ATTRIBUTES,
    check_private_members,
    missing_members,
)

GATEWAY = Path(broker.mqtt.__file__).parent


async def library_client() -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1")


def private_uses(file: Path) -> set[tuple[str, str]]:
    """Private attributes in a module, each with the expression that has it."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            found.add((ast.unparse(node.value), node.attr))
    return found


def test_the_installed_aiomqtt_and_paho_have_the_private_members() -> None:
    missing = missing_members(asyncio.run(library_client()))
    assert not missing, f"{', '.join(missing)} is missing in the installed version, but the fast path needs it"


@pytest.mark.parametrize(("hook", "callback"), AIOMQTT_HOOKS.items())
def test_paho_calls_the_hooks_of_aiomqtt(hook: str, callback: str) -> None:
    client = asyncio.run(library_client())
    assert getattr(client._client, callback) == getattr(client, hook), (
        f"aiomqtt.Client.{hook} is not paho's callback {callback} any more"
    )


@pytest.mark.parametrize("hook", sorted(AIOMQTT_HOOKS.keys() & vars(FastMqttClient).keys()))
def test_overridden_hooks_have_the_parameters_of_aiomqtt(hook: str) -> None:
    theirs, ours = (
        list(inspect.signature(getattr(each, hook)).parameters) for each in (aiomqtt.Client, FastMqttClient)
    )
    assert ours == theirs, f"the parameters of aiomqtt.Client.{hook} have changed"


@pytest.mark.parametrize("name", [*AIOMQTT_HOOKS, *AIOMQTT_ATTRIBUTES, *PAHO_ATTRIBUTES])
def test_a_missing_member_is_named_with_the_switch_that_does_without_it(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    paho = SimpleNamespace(**{each: None for each in PAHO_ATTRIBUTES if each != name})
    members: dict[str, object] = dict.fromkeys((*AIOMQTT_HOOKS, *AIOMQTT_ATTRIBUTES))
    client = SimpleNamespace(**{each: value for each, value in (members | {"_client": paho}).items() if each != name})
    monkeypatch.setattr(aiomqtt, "Client", lambda _: cast("aiomqtt.Client", client))
    with pytest.raises(ConfigError, match=rf"Client\.{name}\b.*fast_path = false"):
        check_private_members()


def test_the_list_of_private_members_is_complete() -> None:
    client = asyncio.run(library_client())
    uses = private_uses(GATEWAY / "fast_path" / "client.py")
    inherited = {name for owner, name in uses if owner in ("self", "super()") and hasattr(client, name)}
    overridden = {name for name in vars(FastMqttClient) if not name.startswith("__") and hasattr(aiomqtt.Client, name)}
    assert inherited | overridden == {*AIOMQTT_HOOKS, *AIOMQTT_ATTRIBUTES}
    others = {use for use in uses if use[0] not in ("self", "super()")}
    assert others == {("client", name) for name in PAHO_ATTRIBUTES}


def test_no_other_module_of_the_gateway_uses_private_members() -> None:
    for file in sorted(GATEWAY.rglob("*.py")):
        if file != GATEWAY / "fast_path" / "client.py":
            foreign = {use for use in private_uses(file) if use[0] != "self"}
            assert not foreign, f"{file}: {foreign}"
            derived = [
                node.name
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                if isinstance(node, ast.ClassDef) and any("aiomqtt" in ast.unparse(base) for base in node.bases)
            ]
            assert not derived, f"{file}: {derived}"
