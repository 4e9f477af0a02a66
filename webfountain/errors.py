"""The error tree. A message gives the bad value, the allowed range and the place.

- `WebfountainError`: the root; the command line prints its text as one line and exits with status 1

  - `InputError`: wrong arguments or input (file, key, value); exit status 2

    - `CursorLost`: the change log no longer reaches back to a cursor
    - `PolicyError`: a policy file's key is unknown, mistyped or out of range
    - `UrlError`: a text that is no crawlable URL

  - `StoreError`: the store cannot do what was asked; nothing was written

    - `StoreAway`: the store's server did not answer in time
    - `StoreHeld`: another process has the store open for writing
    - `StoreVersion`: written by another version of the format; exit status 2
    - `StoreBound`: the store belongs to another collection; exit status 2

  - `RepositoryError`: a copy cannot be read or written (disk full, folder not writable)

    - `RepositoryHeld`: another process is writing there

  - `NotConverged`: a numerical iteration did not reach its tolerance

Errors of the web are data (a status, an outcome), never one of these exceptions.
"""

from __future__ import annotations

__all__ = [
    "CursorLost",
    "InputError",
    "NotConverged",
    "PolicyError",
    "RepositoryError",
    "RepositoryHeld",
    "StoreAway",
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
    """Wrong arguments or input; the text names file, key and value. Correct the input and call again."""

    exit_status = 2


class CursorLost(InputError):
    """The change log no longer reaches back to a cursor. Read the whole list of pages, which gives a new cursor."""


class PolicyError(InputError):
    """A policy file is wrong: ``FILE: KEY.PATH: what is wrong with VALUE``."""


class UrlError(InputError):
    """A text is not an absolute http(s) URL that can be crawled."""


class StoreError(WebfountainError):
    """The store refused or failed; the step had no effect."""


class StoreAway(StoreError):
    """The store's server did not answer in time. Acknowledged steps are kept; unsettled pages are fetched again."""


class StoreHeld(StoreError):
    """Another process writes to this store. Stop that process, or use commands that work beside it (`webfountain now`,
    `status`).
    """


class StoreVersion(StoreError):
    """The store has a format that this version cannot read. Use another folder, or the version that wrote the store."""

    exit_status = 2


class StoreBound(StoreError):
    """The store belongs to another collection. Give another ``--store`` for this collection."""

    exit_status = 2


class RepositoryError(WebfountainError):
    """A page's copy could not be written or read. Nothing was settled, so the fetch is repeated when the disk works."""


class RepositoryHeld(RepositoryError):
    """Another process is writing in a folder of copies. Stop that process, or give another folder."""


class NotConverged(WebfountainError):
    """An iteration ended without reaching its tolerance; the text gives steps, residual and tolerance."""
