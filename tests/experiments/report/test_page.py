"""Proves in a real browser that the page of the committed results needs no other file and shows every figure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

import experiments
from experiments.errors import FigureError
from experiments.figures.registry import find, names
from experiments.report.page import write_page
from tests.harness.programs import path_of

RESULTS = Path(experiments.__file__).parent / "results"
FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE, DESKTOP = 390, 1280


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "report.html"
    write_page(RESULTS, out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path_of("chromium"), args=list(FLAGS))
        yield started
        started.close()


def test_every_experiment_is_on_the_page_and_has_committed_results(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    for name in names():
        assert f'id="{name}"' in text
        assert f'href="#{name}"' in text
        assert (RESULTS / f"{name}.csv").is_file()
        assert (RESULTS / f"{name}.png").is_file()


def test_every_section_names_its_code_version_or_that_none_was_recorded(report: Path) -> None:
    sections = report.read_text(encoding="utf-8").split('<section class="entry"')[1:]
    for section in sections:
        assert re.search(r"Code: (not recorded|mercast \S+, commit (unknown|[0-9a-f]{12}))", section), section[:80]


def test_the_page_needs_no_other_file(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "@import" not in text
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address.startswith(("data:image/svg+xml;base64,", "#")), address


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_browser_shows_the_page_without_errors(report: Path, browser: Browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(report.as_uri())
    assert complaints == []
    assert [url for url in requested if not url.startswith(("data:", report.as_uri()))] == []
    assert page.locator("section.entry").count() == len(names())
    figures = page.locator("section.entry img")
    assert figures.count() == sum(len(find(name).panels) for name in names())
    widths = page.evaluate("Array.from(document.images, image => image.complete ? image.naturalWidth : 0)")
    assert all(natural > 100 for natural in widths)
    shown = page.evaluate("Array.from(document.images, image => image.getBoundingClientRect().width)")
    assert min(shown) > 0.8 * min(width, 400)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_results_without_their_figure_are_named(tmp_path: Path) -> None:
    for name in ("text-1.3.json", "text-1.3.csv"):
        (tmp_path / name).write_bytes((RESULTS / name).read_bytes())
    with pytest.raises(FigureError, match=r"text-1\.3-1\.svg is missing"):
        write_page(tmp_path, tmp_path / "page.html")
