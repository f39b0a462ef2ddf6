"""A mosquitto process on a free loopback port, and its command-line clients."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.harness.conditions import wait_until
from tests.harness.ports import free_port
from tests.harness.programs import path_of

WAIT_S = 20.0
READY = "listening-to-it-all"


class Mosquitto:
    """An MQTT broker. It can be started again after `stop`, with the same port and sessions."""

    def __init__(self, folder: Path, *, port: int | None = None, settings: str = "") -> None:
        self.port = port or free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._configuration = folder / f"mosquitto-{self.port}.conf"
        self._configuration.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\npersistence_file mosquitto-{self.port}.db\nuser root\n{settings}\n"
        )

    def start(self) -> None:
        with (self._folder / f"mosquitto-{self.port}.log").open("ab") as log:
            self._process = subprocess.Popen([path_of("mosquitto"), "-c", str(self._configuration)], stderr=log)
        wait_until(self._listens, what=f"mosquitto listens on port {self.port}")

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / f"mosquitto-{self.port}.log").read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(WAIT_S)
            self._process = None

    def publish(self, topic: str, message: str | bytes, *options: str) -> None:
        """Publishes with mosquitto_pub. The option `-r` retains the message, `-q 1` waits for an acknowledgement."""
        content = message.encode() if isinstance(message, str) else message
        command = [path_of("mosquitto_pub"), "-p", str(self.port), "-t", topic, *options]
        command += ["-s"] if content else ["-n"]
        subprocess.run(command, input=content, check=True, timeout=WAIT_S)

    def publish_lines(self, topic: str, lines: list[str], *options: str) -> None:
        """Publishes one message for each line."""
        command = [path_of("mosquitto_pub"), "-p", str(self.port), "-t", topic, "-l", *options]
        subprocess.run(command, input="\n".join(lines).encode(), check=True, timeout=4 * WAIT_S)

    @contextlib.contextmanager
    def listening(self, topic: str, *options: str, form: str = "%t %p") -> Iterator[Listener]:
        """Runs mosquitto_sub, which is subscribed when the block starts."""
        self.publish("test/ready", READY, "-r")
        command = [path_of("mosquitto_sub"), "-p", str(self.port), "-t", topic, "-F", form, "-q", "1", *options]
        # mosquitto_sub subscribes to this topic last. Its retained message shows that both subscriptions are active.
        command += ["-t", "test/ready"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
        listener = Listener(process)
        try:
            wait_until(lambda: listener.is_subscribed, what=f"mosquitto_sub is subscribed to {topic}")
            yield listener
        finally:
            process.terminate()
            process.wait(WAIT_S)
            listener.close()


class Listener:
    """Lines that mosquitto_sub printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.is_subscribed = False
        self.lines: list[str] = []
        self._process = process
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if READY in line or READY.encode().hex() in line:
                self.is_subscribed = True
            else:
                self.lines.append(line.rstrip("\n"))

    def close(self) -> None:
        self._thread.join(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait_for(self, count: int, within_s: float = WAIT_S) -> list[str]:
        """Waits for `count` lines, and returns all lines."""
        wait_until(
            lambda: len(self.lines) >= count,
            within_s,
            lambda: f"{count} messages; there are {len(self.lines)}, the last {self.lines[-5:]}",
        )
        return list(self.lines)
