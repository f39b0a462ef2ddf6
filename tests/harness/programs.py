"""Finds programs that some tests need, or says how to install them.

A missing program fails the test if `CI` is set. Otherwise the test is skipped with a message.
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
    "setpriv": "util-linux",
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


needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX") or "c++") is None,
    reason="no C++ compiler, and so no native core; Debian, Ubuntu: apt-get install g++",
)
"""Marks tests of the native core. With a compiler they run, and fail if the core was not built."""
