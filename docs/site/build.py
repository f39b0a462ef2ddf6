"""Builds the documentation site: `make docs`.

Pages keep the paths that they have in the repository, so that a link works in both places. The API reference has a
page for each package. A warning, a broken link, or an exported name without a docstring fails the build.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import griffe
import tomli_w
import zensical

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Path(__file__).with_name("zensical.toml")
BUILD = ROOT / "build"
PAGES = BUILD / "pages"
SITE = BUILD / "site"

ITEM = re.compile(r" *([-*]|\d+\.) ")

# An entry of the navigation: a page, or a folder of pages; several entries; or entries by their titles.
Entry: TypeAlias = "str | list[Entry] | dict[str, Entry]"

PACKAGES = ("broker", "experiments", "matching", "mercast", "routing", "topologies")


class Warnings(logging.Handler):
    """Collects the warnings of the tools. Zensical itself counts only those about links."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the text of a warning or error."""
        self.messages.append(f"{record.name}: {record.getMessage()}")


class Page(HTMLParser):
    """The anchors of a page, its links, and the addresses of scripts, styles and pictures that it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors = {"", "top"}
        self.links: list[str] = []
        self.resources: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes the anchors and addresses of one tag."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        addresses = self.links if tag == "a" else self.resources
        addresses.extend(values[name] for name in ("href", "src") if name in values)


def main() -> None:
    """Builds the site in `build/site`. Exits with the problems if there are any."""
    warnings = Warnings()
    logging.getLogger().addHandler(warnings)
    packages = load_packages(ROOT, PACKAGES)
    copy_pages()
    for package in packages:
        write_reference(package)
    write_contents(packages)
    navigation = write_settings()
    problems = [*undocumented(packages), *unlisted(navigation), *misread_lists(PAGES)]
    shutil.rmtree(SITE, ignore_errors=True)
    try:
        zensical.build(str(BUILD / "zensical.toml"), {"clean": True, "strict": True})
    except RuntimeError as error:
        problems.append(str(error))
    else:
        problems += broken_addresses(SITE)
    if problems := problems + warnings.messages:
        sys.exit("\n".join(problems))
    print(f"{SITE.relative_to(ROOT)}/index.html")


def load_packages(folder: Path, names: Iterable[str]) -> list[griffe.Module]:
    """Reads the public packages without an import: two levels, and each package below them that exports names."""
    loader = griffe.GriffeLoader(search_paths=[folder])
    for name in names:
        loader.load(name)
    loader.resolve_aliases(implicit=False)
    found = [package for name in names for package in tree(loader.modules_collection[name])]
    return [package for package in found if package.path.count(".") < 2 or package.exports is not None]


def tree(package: griffe.Module) -> Iterator[griffe.Module]:
    """The package and all packages below it, by name."""
    yield package
    for _, module in sorted(package.modules.items()):
        if module.is_init_module and not module.is_alias:
            yield from tree(module)


def undocumented(packages: list[griffe.Module]) -> Iterator[str]:
    """The exported names without a docstring."""
    for package in packages:
        for name in map(str, package.exports or ()):
            if name not in package.members:
                yield f"{package.path} exports {name}, which it neither defines nor imports"
            elif not package.members[name].has_docstring:
                yield f"{package.members[name].canonical_path}, exported by {package.path}, has no docstring"


def copy_pages() -> None:
    """Copies the pages of the repository, and the files that they need, to `build/pages`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    documents = [path for pattern in ("*.md", "*.png", "*.css") for path in (ROOT / "docs").rglob(pattern)]
    for source in (*ROOT.glob("*.md"), *documents):
        target = PAGES / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def write_contents(packages: list[griffe.Module]) -> None:
    """Writes the first page of the API reference: a table of the packages."""
    rows = ["# API", "", "| package | |", "| --- | --- |"]
    for package in packages:
        page = reference_page(package).relative_to(PAGES / "api").as_posix()
        rows.append(f"| [{package.path}]({page}) | {first_paragraph(package)} |")
    (PAGES / "api" / "README.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def first_paragraph(package: griffe.Module) -> str:
    text = package.docstring.value if package.docstring else ""
    return text.partition("\n\n")[0].replace("\n", " ")


def reference_page(package: griffe.Module) -> Path:
    top, _, rest = package.path.partition(".")
    return PAGES / "api" / top / f"{rest or 'README'}.md"


def write_reference(package: griffe.Module) -> None:
    """Writes the page of a package: the names that it exports, or all modules of a package without `__all__`."""
    text = [f"# {package.path}", f"::: {package.path}"]
    if package.exports is None:
        for name, module in sorted(package.modules.items()):
            # `mercast --help` describes the commands.
            if not module.is_init_module and not name.startswith("_") and name != "commands":
                text.append(f"## {module.path}\n\n::: {module.path}\n    options:\n      heading_level: 3")
    page = reference_page(package)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(text) + "\n", encoding="utf-8")


def write_settings() -> Entry:
    """Writes Zensical's settings with the whole navigation, and returns the navigation."""
    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    project = settings["project"]
    project |= {"docs_dir": PAGES.name, "site_dir": SITE.name, "nav": list(map(expanded, project["nav"]))}
    project["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [".."]
    (BUILD / "zensical.toml").write_text(tomli_w.dumps(settings), encoding="utf-8")
    navigation: Entry = project["nav"]
    return navigation


def unlisted(navigation: Entry) -> Iterator[str]:
    """The pages that are not in the navigation."""
    listed = set(leaves(navigation))
    for path in PAGES.rglob("*.md"):
        if path.relative_to(PAGES).as_posix() not in listed:
            yield f"{path.relative_to(PAGES)} is not in the navigation; add it to nav in {SETTINGS.relative_to(ROOT)}"


def expanded(entry: Entry) -> Entry:
    """An entry of the navigation, with a folder replaced by the pages in it."""
    if isinstance(entry, dict):
        return {title: expanded(below) for title, below in entry.items()}
    if isinstance(entry, list):
        return list(map(expanded, entry))
    folder = PAGES / entry
    if not folder.is_dir():
        return entry
    below = sorted(folder.iterdir(), key=lambda path: (path.name != "README.md", path.stem))
    return [
        {path.name: expanded(name)} if path.is_dir() else name
        for path in below
        for name in [path.relative_to(PAGES).as_posix()]
    ]


def misread_lists(pages: Path) -> Iterator[str]:
    """Lists that Zensical shows as text or flat, although a repository shows them as they are meant."""
    for path in sorted(pages.rglob("*.md")):
        before, is_code = "", False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            is_code ^= line.lstrip().startswith("```")
            place = f"{path.relative_to(pages)}:{number}"
            if not is_code and ITEM.match(line):
                if line.startswith(" ") and not line.startswith("    "):
                    yield f"{place}: indent the item of an inner list by four spaces"
                elif before and not before.startswith((" ", "#")) and not ITEM.match(before):
                    yield f"{place}: put an empty line before the list"
            before = line


def leaves(entry: Entry) -> Iterator[str]:
    """The pages below an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(below)


def broken_addresses(site: Path) -> Iterator[str]:
    """Links of the site that lead nowhere, and resources that it would load from another host."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for page in pages.values():
        place = page.path.relative_to(site)
        for address in page.resources:
            if urlsplit(address).netloc:
                yield f"{place} loads {address} from another host"
        for address in page.links + page.resources:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            # A server shows 404.html at any address, so its links start at the top of the site.
            start = site if parts.path.startswith("/") else page.path.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page.path
            if not target.exists() or (target in pages and unquote(parts.fragment) not in pages[target].anchors):
                yield f"{place} has a broken link: {address}"


if __name__ == "__main__":
    main()
