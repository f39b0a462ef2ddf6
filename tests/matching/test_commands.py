"""The commands on expressions: their output, their errors and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mercast
from matching.registry import names

PROGRAM = "import sys, mercast; sys.argv[0] = 'mercast'; mercast.main()"


def run(*words: str, text: str | bytes = "") -> subprocess.CompletedProcess[str]:
    given = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], input=given, capture_output=True)
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


def output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """The output of the command, which runs in this process for speed."""
    monkeypatch.setattr(sys, "argv", ["mercast", *words])
    with pytest.raises(SystemExit) as ended:
        mercast.main()
    assert ended.value.code in (0, None)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["symbol='IBM' and price<100"], "symbol = 'IBM' AND price < 100"),
        (["[symbol,eq,'IBM'],[price,>,80]"], "symbol = 'IBM' AND price > 80"),
        (['{"attribute": "a", "operator": "exists"}'], "EXISTS a"),
        (["a = 1", "--form", "json"], '{"attribute": "a", "operator": "=", "value": 1}'),
        (["a = 1 and b = 'x'", "--form", "padres"], "[a,=,1],[b,eq,'x']"),
        (["not (a = 1 or b < 2)", "--normal", "nnf"], "a != 1 AND b >= 2"),
        (["a = 1 and (b = 2 or c = 3)", "--normal", "dnf"], "a = 1 AND b = 2 OR a = 1 AND c = 3"),
        (["a = 1 or b = 2 and c = 3", "--normal", "cnf"], "(a = 1 OR b = 2) AND (a = 1 OR c = 3)"),
    ],
)
def test_parse_prints_the_requested_form(
    words: list[str], printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert output(capsys, monkeypatch, "match", "parse", *words) == printed + "\n"


def test_parse_describes_the_expression_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output(capsys, monkeypatch, "match", "parse", "b = 1 AND NOT (a = 'é')", "--json")
    assert json.loads(printed) == {
        "text": "b = 1 AND NOT a = 'é'",
        "predicates": 2,
        "depth": 3,
        "attributes": ["b", "a"],
        "is_conjunction": True,
        "expression": {
            "and": [
                {"attribute": "b", "operator": "=", "value": 1},
                {"not": {"attribute": "a", "operator": "=", "value": "é"}},
            ]
        },
    }


def test_parse_reads_standard_input() -> None:
    done = run("match", "parse", "-", text="a = 1\n  AND b = 'é'\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a = 1 AND b = 'é'\n", "")


def test_an_error_is_shown_with_a_caret_on_standard_error_and_ends_with_2() -> None:
    done = run("match", "parse", "-", text="a = 1 AND\n\tprice => 3\n")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "   price => 3",
        "         ^",
        "mercast: line 2, column 8: unknown operator '=>' (did you mean '>='?); expected an operator",
    ]


def test_bytes_that_are_not_utf8_are_refused_with_their_place() -> None:
    done = run("match", "parse", "-", text=b"a = '\xff'")
    assert done.returncode == 2
    assert "mercast: line 1, column 5: a =: '\\udcff' has a lone surrogate at 0" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["parse", "TRUE AND (" * 2000], "mercast: the expression, in levels, is 1,001, the limit is 1,000"),
        (["parse", "a IN (1)", "--form", "padres"], "mercast: the PADRES form has no operator for a IN (1)"),
        (["explain", "a = 1", "a"], "mercast: column 1: 'a' is not name=value"),
    ],
)
def test_an_error_of_the_user_is_reported_in_one_line(words: list[str], message: str) -> None:
    done = run("match", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["symbol=IBM", "price=130"], ["symbol=IBM price=130"], ['{"symbol": "IBM", "price": 130}']]
)
def test_explain_gives_the_reason_and_ends_with_0(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output(capsys, monkeypatch, "match", "explain", "symbol = 'IBM' AND price < 100", *words)
    assert printed.splitlines() == [
        "does not match: price is 130, not below 100",
        "",
        "false      AND",
        "  true       symbol = 'IBM'  symbol is 'IBM', equal to 'IBM'",
        "  false      price < 100     price is 130, not below 100",
    ]


def test_explain_as_json_has_every_node(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    printed = output(capsys, monkeypatch, "match", "explain", "--json", "NOT a = 1", "b=2")
    assert json.loads(printed) == {
        "matches": False,
        "truth": None,
        "reason": "undefined, does not match: a is missing",
        "nodes": [
            {"level": 0, "truth": None, "node": "NOT", "found": None, "reason": None},
            {"level": 1, "truth": None, "node": "a = 1", "found": None, "reason": "a is missing: undefined"},
        ],
    }


def test_indexes_lists_every_index_and_the_expressions_that_it_accepts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = output(capsys, monkeypatch, "match", "indexes").splitlines()
    assert table[0].split() == ["NAME", "ACCEPTS", "BACKENDS", "WHAT", "IT", "IS"]
    assert [line.split()[0] for line in table[1:]] == list(names())
    rows = json.loads(output(capsys, monkeypatch, "match", "indexes", "--json"))
    assert [row["name"] for row in rows] == list(names())
    scan = next(row for row in rows if row["name"] == "scan")
    assert (scan["accepts"], scan["title"]) == ("any expression", "linear scan")


@pytest.mark.parametrize("command", ["parse", "explain", "indexes"])
def test_each_command_has_help_with_examples(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output(capsys, monkeypatch, "match", command, "--help")
    assert f"mercast match {command}" in printed
    assert "Examples" in printed
