"""The errors of overlays, their parameters and their files.

TopologyError(ValueError)      exit code 3, bad configuration
  OverlayError                 the brokers, links and clusters do not make an overlay
  ParameterError               parameters that no generator or clustering can satisfy
  OverlayFileError             a file has wrong content; the message names file and place
PictureError(RuntimeError)     exit code 1, the picture could not be drawn
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

WORDS_SHOWN = 20


class TopologyError(ValueError):
    """The user's description of an overlay is invalid."""

    exit_code = 3


class OverlayError(TopologyError):
    """Brokers, links and clusters that do not fit together."""


class ParameterError(TopologyError):
    """Parameters that no overlay can satisfy, or that a model does not know."""


class OverlayFileError(TopologyError):
    """A file that cannot be read as an overlay."""


class PictureError(RuntimeError):
    """A picture that could not be drawn."""

    exit_code = 1


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns the end of an error message: the nearest known word, or the list of known words."""
    words = sorted(known)
    spelt = {known_word.casefold(): known_word for known_word in words}
    close = difflib.get_close_matches(word.casefold(), spelt, n=1, cutoff=0.6)
    if close:
        return f"did you mean {spelt[close[0]]!r}?"
    shown = words if len(words) <= WORDS_SHOWN else [*words[:WORDS_SHOWN], "…"]
    return f"known: {', '.join(shown)}"
