"""Renders HTML pages from the templates of this package. A page embeds its style and its images, and has no script."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: object) -> str:
    """Renders a template of the folder `templates`. Escapes all values."""
    environment = Environment(
        loader=PackageLoader("experiments"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)


def svg_address(path: Path) -> str:
    """The drawing as an address that contains it, for the `src` of an image."""
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
