"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Machines differ: how long an example takes is no reason to fail. Where changes are judged, runs must repeat.
settings.register_profile("mercast", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mercast")
