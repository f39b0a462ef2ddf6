"""Removes a broker from its overlay by a request to its admin pages."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

from broker.config.address import parse_address
from broker.config.tables import ConfigError
from broker.deployment.local.admin_address import find_admin_address

LEAVE_WITHIN_S = 30.0


class AdminError(Exception):
    """The broker's admin pages cannot be reached, or the broker refused the request."""

    exit_code = 4


def request_leave(overlay: str | None, id: str | None, admin: str | None) -> None:
    """Requests that a broker leave its overlay, and prints the broker's answer."""
    address = parse_address(admin) if admin else None
    if address is None:
        if overlay is None or id is None:
            raise ConfigError("say which broker is to leave: OVERLAY.toml and --id, or --admin HOST:PORT")
        address = find_admin_address(overlay, id)
    request = urllib.request.Request(f"http://{address}/leave", method="POST", headers={"X-Mercast": "leave"})
    try:
        with urllib.request.urlopen(request, timeout=LEAVE_WITHIN_S) as answer:
            print(answer.read().decode().strip(), file=sys.stderr)
    except urllib.error.HTTPError as error:
        raise AdminError(f"{address} answered {error.code}: {error.read().decode()[:200]}") from error
    except (urllib.error.URLError, OSError) as error:
        raise AdminError(f"no broker's admin pages at {address}: {getattr(error, 'reason', error)}") from error
