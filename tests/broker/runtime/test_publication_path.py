"""The way of a publication stays short enough to read."""

from __future__ import annotations

from tests.harness.programs import needs_compiler
from tests.harness.publication_path import measure

MOST_FILES = 25


@needs_compiler  # The indexes in Python consist of more files.
def test_a_publication_passes_few_files_on_its_way_through_two_brokers() -> None:
    files = measure().files
    assert "broker/core/publications.py" in files
    assert len(files) <= MOST_FILES, "\n".join(files)
