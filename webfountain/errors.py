"""The error tree. A message gives the bad value, the allowed range and the place.

::

    WebfountainError                 root; the command line prints its text as one line and exits with 1
    ├── InputError                   wrong arguments or input (file, key, value); exit status 2
    │   ├── CursorLost               the change log no longer reaches back to a cursor
    │   ├── PolicyError              a policy file's key is unknown, mistyped or out of range
    │   └── UrlError                 a text that is no crawlable URL
    ├── StoreError                   the store cannot do what was asked; nothing was written
    │   ├── StoreHeld                another process has the store open for writing
    │   ├── StoreVersion             written by another version of the format; exit status 2
    │   └── StoreBound               the store belongs to another collection; exit status 2
    ├── RepositoryError              a copy cannot be read or written (disk full, folder not writable)
    │   └── RepositoryHeld           another process is writing there
    └── NotConverged                 a numerical iteration did not reach its tolerance

The web's misbehaviour is data (a status, an outcome), never one of these.

Texts of strangers on a terminal: what would move its cursor or turn its lines around is shown as U+FFFD.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "CursorLost",
    "InputError",
    "NotConverged",
    "PolicyError",
    "RepositoryError",
    "RepositoryHeld",
    "StoreBound",
    "StoreError",
    "StoreHeld",
    "StoreVersion",
    "UrlError",
    "WebfountainError",
    "shown",
    "shown_lines",
]


class WebfountainError(Exception):
    """Root of all errors that this package raises on purpose."""

    exit_status = 1


class InputError(WebfountainError):
    """What the user gave cannot be used; the text names file, key and value. Mend the input and call again."""

    exit_status = 2


class CursorLost(InputError):
    """The change log no longer reaches back so far. Take the whole list, and go on with the cursor it ends with."""


class PolicyError(InputError):
    """A policy file is wrong: ``FILE: KEY.PATH: what is wrong with VALUE``."""


class UrlError(InputError):
    """A text is no absolute http(s) URL that can be crawled."""


class StoreError(WebfountainError):
    """The store refused or failed; the step had no effect."""


class StoreHeld(StoreError):
    """Another process writes to this store. Stop it, or use its command line (`webfountain now`, `status`)."""


class StoreVersion(StoreError):
    """The store was written in a format that this version does not read. Use another folder, or that version."""

    exit_status = 2


class StoreBound(StoreError):
    """The store holds another collection. Give another ``--store`` for this one."""

    exit_status = 2


class RepositoryError(WebfountainError):
    """A page's copy could not be written or read. Nothing was settled: the fetch repeats when the disk is well."""


class RepositoryHeld(RepositoryError):
    """Another process is writing in a folder of copies. Stop it, or give another folder."""


class NotConverged(WebfountainError):
    """An iteration ended without reaching its tolerance; the text gives steps, residual and tolerance."""


_CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
"""C0 but for tab and line feed, DEL, C1, marks and overrides of direction, separators, annotations."""
_IN_LINES: Final = re.compile(f"[{_CONTROLS}]")
_IN_A_LINE: Final = re.compile(f"[\\t\\n{_CONTROLS}]")


def shown(text: str) -> str:
    """A text as one line that only prints."""
    return _IN_A_LINE.sub("\ufffd", text)


def shown_lines(text: str) -> str:
    """A text of several lines; line feeds and tabs stay."""
    return _IN_LINES.sub("\ufffd", text)
