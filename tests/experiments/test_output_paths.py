"""Proves that an unwritable path is refused by name before the work, and left unchanged."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

import mercast
from experiments.errors import OutputError
from experiments.output_paths import check_file, check_folder
from experiments.scenario.load import load
from experiments.simulate.run import simulate


def test_a_folder_that_can_be_made_is_not_left_behind(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    check_file(tmp_path / "c" / "page.html")
    assert not list(tmp_path.iterdir())


def test_an_existing_file_keeps_its_content(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("before")
    check_file(page)
    assert page.read_text() == "before"


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=rf"cannot write to {tmp_path}/file: it is a file, not a folder"):
        check_folder(tmp_path / "file")
    with pytest.raises(OutputError, match=rf"cannot write to {tmp_path}/file/x: Not a directory"):
        check_folder(tmp_path / "file" / "x")


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=rf"cannot write to {tmp_path}: it is a folder; name a file"):
        check_file(tmp_path)
    with pytest.raises(OutputError, match=rf"x.toml: there is no folder {tmp_path}/none"):
        check_file(tmp_path / "none" / "x.toml", makes_folder=False)


def test_a_run_that_cannot_be_written_is_refused_also_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError) as refused:
        simulate(load("line"), "fbr", lambda *_: None, tmp_path / "file" / "fbr")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "line", "--out", "{file}"),
        ("simulate", "line", "--out", "{file}/x"),
        ("analyse", "{file}", "--out", "{file}"),
        ("analyse", "--follow", "{folder}", "--out", "{file}"),
        ("analyse-bench", "--keep", "{file}"),
        ("demo", "--out", "{file}"),
        ("experiment", "run", "text-1.3", "--runs", "{file}", "--out", "{folder}"),
        ("experiment", "run", "text-1.3", "--runs", "{folder}", "--out", "{file}"),
        ("experiment", "report", "--out", "{folder}"),
        ("experiment", "report", "--out", "{file}/x.html"),
        ("calibrate", "{folder}/none/x.toml"),
        ("simulate", "line", "--out", "{folder}/{long}"),
        ("analyse", "{file}", "--out", "{folder}/{long}"),
        ("experiment", "report", "--out", "{folder}/{long}"),
        ("calibrate", "{folder}/{long}"),
    ],
)
def test_each_command_refuses_before_its_work(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr("experiments.analysis.spark_session.check_programs", lambda: None)
    filled = [word.format(file=file, folder=tmp_path, long=300 * "x") for word in words]
    monkeypatch.setattr(sys, "argv", ["mercast", *filled])
    with pytest.raises(SystemExit) as stop:
        mercast.main()
    assert stop.value.code == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"mercast: cannot write to {tmp_path}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
