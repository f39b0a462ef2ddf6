"""The checks of `make docs` find what they are for. The build itself runs in CI."""

from __future__ import annotations

from pathlib import Path

from docs.site import build

LAZY = '''"""A package."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sample.things import LIMIT, Plain, Record, documented

__all__ = ["LIMIT", "Missing", "Plain", "Record", "documented"]
'''
THINGS = '''
from dataclasses import dataclass

LIMIT = 3

class Plain:
    """A class."""

@dataclass
class Record:
    field: int

def documented() -> None:
    """A function."""
'''


def test_an_exported_name_without_a_docstring_is_named(tmp_path: Path) -> None:
    package = tmp_path / "sample"
    package.mkdir()
    (package / "__init__.py").write_text(LAZY)
    (package / "things.py").write_text(THINGS)
    assert list(build.undocumented(build.load_packages(tmp_path, ["sample"]))) == [
        "sample.things.LIMIT, exported by sample, has no docstring",
        "sample exports Missing, which it neither defines nor imports",
        "sample.things.Record, exported by sample, has no docstring",
    ]


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "start.html").write_text('<h2 id="here">Here</h2><a href="../index.html">Back</a>')
    (tmp_path / "index.html").write_text(
        '<a href="guide/start.html#here">right</a> <a href="/guide/start.html">right</a>'
        '<a href="https://example.org/">not checked</a>'
        '<a href="guide/start.html#there">wrong</a> <a href="source.py">wrong</a> <img src="picture.png">'
    )
    assert list(build.broken_addresses(tmp_path)) == [
        "index.html has a broken link: guide/start.html#there",
        "index.html has a broken link: source.py",
        "index.html has a broken link: picture.png",
    ]


def test_a_resource_of_another_host_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<script src="https://example.org/a.js"></script><img src="data:image/png,">')
    assert list(build.broken_addresses(tmp_path)) == ["index.html loads https://example.org/a.js from another host"]


def test_a_list_that_the_site_would_show_as_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "Right:\n\n- one\n    - inner\n- two\n\n# Heading\n- right\n\n"
        "```\ntext\n- code\n```\n\n"
        "Wrong:\n- one\n  - inner\n"
    )
    assert list(build.misread_lists(tmp_path)) == [
        "page.md:16: put an empty line before the list",
        "page.md:17: indent the item of an inner list by four spaces",
    ]
