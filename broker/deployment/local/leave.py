"""Removes a broker from its overlay by a request to its admin pages."""

from __future__ import annotations

import sys

from broker.config.address import parse_address
from broker.config.tables import ConfigError
from broker.deployment.local.admin_address import find_admin_pages
from broker.deployment.local.admin_client import AdminClient


def request_leave(overlay: str | None, id: str | None, admin: str | None) -> None:
    """Requests that a broker leave its overlay, and prints the broker's answer."""
    if admin:
        answer = AdminClient().request_leave(parse_address(admin))
    elif overlay is None or id is None:
        raise ConfigError("say which broker is to leave: OVERLAY.toml and --id, or --admin HOST:PORT")
    else:
        pages = find_admin_pages(overlay, id)
        answer = AdminClient(pages.overlay_file).request_leave(pages.address)
    print(answer, file=sys.stderr)
