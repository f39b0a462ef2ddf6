"""A trace or a result names its code version: with git, without git, and inside the checkout of another project."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from broker.trace.code_version import CodeVersion, read_code_version
from tests.harness.programs import path_of


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        [path_of("git"), "-C", str(folder), *author, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "code.py").write_text("one = 1\n")
    (folder / "results.csv").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def test_a_checkout_has_its_commit(checkout: Path) -> None:
    found = read_code_version(checkout)
    assert found == CodeVersion(version("mercast"), git(checkout, "rev-parse", "HEAD"), is_changed=False)
    assert str(found) == f"mercast {found.version}, commit {found.commit[:12]}"


@pytest.mark.parametrize("file", ["code.py", "new.py"])
def test_code_that_is_not_committed_is_a_change(checkout: Path, file: str) -> None:
    (checkout / file).write_text("two = 2\n")
    found = read_code_version(checkout)
    assert found.is_changed is True
    assert str(found).endswith("with changes")


def test_results_that_are_not_committed_are_none(checkout: Path) -> None:
    (checkout / "results.csv").write_text("2\n")
    (checkout / "figure.svg").write_text("<svg/>")
    assert read_code_version(checkout).is_changed is False


def test_without_git_the_commit_is_unknown(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = read_code_version(checkout)
    assert found == CodeVersion(version("mercast"), "unknown", None)
    assert str(found).endswith("commit unknown")


def test_outside_a_checkout_the_commit_is_unknown(tmp_path: Path) -> None:
    assert read_code_version(tmp_path).commit == "unknown"


def test_packages_that_are_installed_in_another_checkout_do_not_use_its_commit(checkout: Path) -> None:
    site_packages = checkout / ".venv" / "site-packages"
    site_packages.mkdir(parents=True)
    assert read_code_version(site_packages).commit == "unknown"
