"""Programs that some tests need beside Python: found, or named with the command that installs them.

Where changes are judged (`CI` is set) a missing program fails the test; elsewhere the test is skipped and says why.
"""

from __future__ import annotations

import os
import shutil

import pytest

PACKAGES = {
    "chromium": "chromium",
    "g++": "g++",
    "git": "git",
    "ip": "iproute2",
    "java": "openjdk-17-jre-headless",
    "mosquitto": "mosquitto",
    "mosquitto_passwd": "mosquitto",
    "mosquitto_pub": "mosquitto-clients",
    "mosquitto_sub": "mosquitto-clients",
}
"""The Debian package of each program."""


def path_of(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is not None:
        return found
    message = f"{program} is missing; Debian, Ubuntu: apt-get install {PACKAGES[program]}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
