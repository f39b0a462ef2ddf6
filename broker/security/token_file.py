"""Reads files that contain a token."""

from __future__ import annotations

from pathlib import Path

from broker.config.tables import ConfigError

FEWEST_CHARACTERS = 16


def read_token(path: Path, key: str) -> str:
    """Returns the token in the file. Errors name `key`, the place that names the file."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key} {path} is not a text in UTF-8") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key} {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(token) < FEWEST_CHARACTERS:
        raise ConfigError(f"{key} {path} holds {len(token)} characters; {FEWEST_CHARACTERS} are the least")
    return token
