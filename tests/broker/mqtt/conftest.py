"""Fixtures: mosquitto and overlays that are stopped, whatever a test does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.harness.gateway_processes import RunningOverlay
from tests.harness.mosquitto import Mosquitto

StartMosquitto: TypeAlias = Callable[..., Mosquitto]
StartOverlay: TypeAlias = Callable[..., RunningOverlay]


@pytest.fixture
def start_mosquitto(tmp_path: Path) -> Iterator[StartMosquitto]:
    started: list[Mosquitto] = []

    def start(settings: str = "") -> Mosquitto:
        mosquitto = Mosquitto(tmp_path, settings=settings)
        started.append(mosquitto)
        mosquitto.start()
        return mosquitto

    yield start
    for mosquitto in started:
        mosquitto.stop()


@pytest.fixture
def start_overlay(tmp_path: Path) -> Iterator[StartOverlay]:
    started: list[RunningOverlay] = []

    def start(brokers: Sequence[tuple[str, str]], shared: str = "", **options: str) -> RunningOverlay:
        overlay = RunningOverlay(tmp_path, brokers, shared, **options)
        started.append(overlay)
        overlay.start()
        return overlay

    yield start
    for overlay in started:
        overlay.stop()
