"""Commands do not use a run folder that another user can have written, and end only processes that `mercast up` began.

Tests with another user need root. The others make folders of this user that others can write to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.deployment.local.errors import DeploymentError
from broker.deployment.local.lifecycle import stop_overlay
from broker.deployment.local.processes import ProcessIdentity
from broker.deployment.local.run_folder import BrokerState, OverlayState, RunFolder, running_folders
from tests.harness.command_line import WITHIN_S
from tests.harness.conditions import wait_until
from tests.harness.other_user import NOBODY, SOMEBODY, words_as

ROOT_USER = 0
COMMANDS = ("down", "down pair", "down --all", "status", "leave pair --id b1", "up {overlay}")


@contextmanager
def sleeper(*before: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that a command could end by mistake. `before`: the words before its command."""
    process = subprocess.Popen([*before, "sleep", "600"], stdin=subprocess.DEVNULL)
    try:
        # setpriv replaces itself with the command, which keeps the id and the start time.
        wait_until(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0] == b"sleep")
        yield process
    finally:
        process.kill()
        process.wait()


def start_time(pid: int) -> int:
    """The start time as any user can read it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def state_of(pid: int, started: int) -> dict[str, object]:
    """The content of a state file that names this process as supervisor and as broker."""
    process = {"pid": pid, "started": started}
    broker = {"id": "b1", "process": process, "phase": "serving", "listen": "127.0.0.1:1", "admin": "127.0.0.1:1"}
    return {
        "name": "pair",
        "file": "pair.toml",
        "supervisor": process,
        "brokers": [{**broker, "restarts": 0, "last_exit": None}],
    }


def write_folder(root: Path, state: Mapping[str, object]) -> None:
    """Writes a run folder that only this user can write to."""
    for folder in (root, root / "pair"):
        folder.mkdir(mode=0o700)
    file = root / "pair" / "overlay.json"
    file.write_text(json.dumps(state))
    file.chmod(0o600)


def mercast(before: list[str], run_folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-P", "-m", "mercast", *words],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        env={**os.environ, "MERCAST_RUN_DIR": str(run_folder)},
        check=False,
    )


def overlay_file(folder: Path) -> Path:
    file = folder / "pair.toml"
    file.write_text('schema = 1\n[overlay]\nname = "pair"\n[[broker]]\nid = "b1"\nlisten = "127.0.0.1:0"\n')
    return file


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("victim", "attacker"), [(ROOT_USER, NOBODY), (NOBODY, SOMEBODY)])
def test_a_command_ends_no_process_that_another_user_named(
    tmp_path: Path, victim: int, attacker: int, command: str
) -> None:
    as_victim, root = words_as(victim), tmp_path / "run"
    file = overlay_file(tmp_path)
    with sleeper(*as_victim) as process:
        write_folder(root, state_of(process.pid, start_time(process.pid)))
        for path in (root, root / "pair", root / "pair" / "overlay.json"):
            os.chown(path, attacker, attacker)
        root.chmod(0o777)
        (root / "pair").chmod(0o777)
        done = mercast(as_victim, root, *command.format(overlay=file).split())
        assert process.poll() is None, done
        assert done.returncode == 1, done
        assert f"{root} belongs to user" in done.stderr
        assert f"({attacker})" in done.stderr or f"user {attacker}," in done.stderr
        assert "set MERCAST_RUN_DIR to a folder of your own" in done.stderr


@pytest.mark.parametrize("part", ["", "pair", "pair/overlay.json"])
def test_each_part_of_the_run_folder_must_belong_to_the_user(tmp_path: Path, part: str) -> None:
    as_root, root = words_as(ROOT_USER), tmp_path / "run"
    with sleeper() as process:
        write_folder(root, state_of(process.pid, start_time(process.pid)))
        os.chown(root / part, NOBODY, NOBODY)
        done = mercast(as_root, root, "down")
        assert process.poll() is None
        assert done.returncode == 1
        assert f"{root / part} belongs to user" in done.stderr


@pytest.mark.parametrize("user", [ROOT_USER, NOBODY])
def test_a_user_ends_the_processes_of_the_own_run_folder(tmp_path: Path, user: int) -> None:
    as_user, root = words_as(user), tmp_path / "run"
    with sleeper(*as_user) as process:
        write_folder(root, state_of(process.pid, start_time(process.pid)))
        for path in (root, root / "pair", root / "pair" / "overlay.json"):
            os.chown(path, user, user)
        done = mercast(as_user, root, "down")
        assert done.returncode == 0, done
        assert process.wait(WITHIN_S) == -signal.SIGTERM


def test_root_ends_no_process_of_another_user() -> None:
    with sleeper(*words_as(NOBODY)) as process:
        identity = ProcessIdentity(process.pid, start_time(process.pid))
        assert not identity.is_alive
        assert not identity.send(signal.SIGKILL)
        assert process.poll() is None


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with sleeper() as process:
        yield process


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]) -> Path:
    """A run folder that names the process."""
    root = tmp_path / "run"
    write_folder(root, state_of(process.pid, start_time(process.pid)))
    monkeypatch.setenv("MERCAST_RUN_DIR", str(root))
    return root


def check_refused(root: Path, message: str) -> None:
    for use in (running_folders, RunFolder(root / "pair").state, lambda: stop_overlay(RunFolder(root / "pair"), 1.0)):
        with pytest.raises(DeploymentError) as refused:
            use()
        assert message in str(refused.value)


def test_a_private_run_folder_is_read(root: Path, process: subprocess.Popen[bytes]) -> None:
    (folder,) = running_folders()
    assert folder.path == root / "pair"
    state = folder.state()
    assert state is not None
    assert state.supervisor == ProcessIdentity.of(process.pid)


@pytest.mark.parametrize("right", [0o020, 0o002], ids=["group", "others"])
@pytest.mark.parametrize("part", ["", "pair", "pair/overlay.json"])
def test_a_run_folder_that_others_can_write_to_is_refused(root: Path, part: str, right: int) -> None:
    path = root / part
    path.chmod(path.stat().st_mode | right)
    check_refused(root, f"{path} has the mode")
    check_refused(root, f"`chmod go-w {path}`")


@pytest.mark.parametrize("part", ["", "pair", "pair/overlay.json"])
def test_a_symbolic_link_in_the_run_folder_is_refused(root: Path, part: str) -> None:
    path = root / part
    elsewhere = root.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    check_refused(root, f"{path} is a symbolic link")


def test_a_pipe_in_place_of_the_state_is_refused_without_waiting(root: Path) -> None:
    file = root / "pair" / "overlay.json"
    file.unlink()
    os.mkfifo(file, 0o600)
    check_refused(root, f"{file} is not a file")


@pytest.mark.parametrize("pid", [-1, 0, 1 << 40, "7", None])
def test_a_state_with_an_impossible_process_id_is_refused(root: Path, pid: object) -> None:
    file = root / "pair" / "overlay.json"
    file.write_text(json.dumps({**state_of(1, 1), "supervisor": {"pid": pid, "started": 1}}))
    check_refused(root, f"{file} is no state of an overlay")


def test_other_files_and_folders_beside_run_folders_are_ignored(root: Path) -> None:
    (root / "notes.txt").write_text("a file of the user")
    (root / "empty").mkdir()
    (root / "link").symlink_to(root.parent)
    assert [folder.name for folder in running_folders()] == ["pair"]


def test_run_folders_are_private_whatever_the_umask_is(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run" / "pair")
    before = os.umask(0)
    try:
        folder.create()
        folder.write_state(OverlayState("pair", "pair.toml", ProcessIdentity.of(os.getpid()), ()))
        folder.open_log(folder.supervisor_log).close()
    finally:
        os.umask(before)
    modes = {
        path.name: path.stat().st_mode & 0o777 for path in (folder.path.parent, folder.path, *folder.path.iterdir())
    }
    assert modes == {"run": 0o700, "pair": 0o700, "overlay.json": 0o600, "supervisor.log": 0o600}


def test_a_log_is_not_written_through_a_symbolic_link(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run" / "pair")
    folder.create()
    mine = tmp_path / "mine"
    mine.write_text("unchanged")
    folder.log_of("b1").symlink_to(mine)
    with pytest.raises(DeploymentError, match="is a symbolic link"):
        folder.open_log(folder.log_of("b1"))
    assert mine.read_text() == "unchanged"


@pytest.mark.parametrize("is_start_known", [True, False])
def test_a_process_with_a_reused_id_is_not_ended(is_start_known: bool) -> None:
    with sleeper() as process:
        identity = ProcessIdentity(process.pid, start_time(process.pid) - 1 if is_start_known else 0)
        assert not identity.is_alive
        assert not BrokerState("b1", identity, "serving").is_alive
        assert not identity.send(signal.SIGKILL)
        assert process.poll() is None
