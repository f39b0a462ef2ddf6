"""Proves what `mercast torture` prints, and that processes and Spark give the same result as one process."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker.core.retransmission import Retransmission
from mercast.command_line import compose
from tests.harness.command_line import CommandLine


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "run", tmp_path)


def counts(text: str) -> dict[str, object]:
    shown: dict[str, object] = json.loads(text)
    del shown["cpu_seconds"]
    return shown


def test_schedules_of_some_seeds_pass(command_line: CommandLine) -> None:
    shown = command_line.succeed("torture", "--seeds", "0:8").out
    assert "8 schedules, 0 failed" in shown
    assert "merc" in shown


def test_a_given_schedule_is_run(command_line: CommandLine) -> None:
    words = ("torture", "--seed", "3", "-p", "merc", "--mode", "durable", "--json")
    steps = "subscribe.1 pause.2 publish.3 crash.4 restart.5"
    shown = json.loads(command_line.succeed(*words, "--steps", steps).out)
    assert shown["schedules"] == {"merc durable": 1}
    assert shown["failures"] == []


def test_a_schedule_may_be_in_a_file(command_line: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "steps.txt"
    path.write_text("subscribe.1\npublish.2\n")
    assert "1 schedules, 0 failed" in command_line.succeed("torture", "--seed", "3", "--steps-file", str(path)).out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", "5:2"), "--seeds 5:2: the first seed must be below the last one"),
        (("--seeds", "many"), "--seeds many: write the first and the last seed, as 0:1000"),
        (("--protocol", "mesh"), "--protocol mesh: no protocol is called so; there are"),
        (("--fault", "fire"), "--fault fire: no fault is called so; there are cut"),
        (("--seed", "1", "--steps", "jump.1"), "step 1, 'jump.1': no step is called 'jump'"),
        (("--duration", "soon"), "--duration: 'soon' is not a duration"),
    ],
)
def test_an_invalid_option_is_named(command_line: CommandLine, words: tuple[str, ...], message: str) -> None:
    outcome = command_line.run("torture", *words)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_failure_is_printed_with_its_replay_and_ends_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without retransmission, a lost frame is never sent again."""
    monkeypatch.setattr(Retransmission, "_choose", lambda *_: [])
    words = ["torture", "--seeds", "0:12", "--protocol", "flooding", "--loss", "0.1"]
    result = CliRunner().invoke(compose(words), words)
    assert result.exit_code == 1
    assert "in custody" in result.output
    (replay, *_) = [line.strip() for line in result.output.splitlines() if "--steps" in line]
    assert replay.startswith("mercast torture --seed ")
    again = shlex.split(replay)[1:]
    repeated = CliRunner().invoke(compose(again), again)
    assert repeated.exit_code == 1
    assert replay in repeated.output


@pytest.mark.slow
def test_processes_and_spark_give_the_result_of_one_process(command_line: CommandLine) -> None:
    words = ("torture", "--seeds", "0:60", "--json")
    one = counts(command_line.succeed(*words, "--jobs", "1").out)
    assert counts(command_line.succeed(*words, "--jobs", "2").out) == one
    assert counts(command_line.succeed(*words, "--master", "local[2]").out) == one
