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
    └── NotConverged                 a numerical iteration did not reach its tolerance

The web's misbehaviour is data (a status, an outcome), never one of these.
"""

from __future__ import annotations

__all__ = [
    "CursorLost",
    "InputError",
    "NotConverged",
    "PolicyError",
    "RepositoryError",
    "StoreBound",
    "StoreError",
    "StoreHeld",
    "StoreVersion",
    "UrlError",
    "WebfountainError",
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


class NotConverged(WebfountainError):
    """An iteration ended without reaching its tolerance; the text gives steps, residual and tolerance."""
