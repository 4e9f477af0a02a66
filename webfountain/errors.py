"""All errors that webfountain raises on purpose. The text of an error says where the wrong value is, and which values
are allowed.

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

A failed request to a site raises no error of webfountain; the failure is recorded as a status or an outcome.
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
    """The change log no longer contains the changes after a consumer's cursor. The consumer must read the whole list of
    pages, which comes with a new cursor.
    """


class PolicyError(InputError):
    """A policy file is wrong: ``FILE: KEY.PATH: what is wrong with VALUE``."""


class UrlError(InputError):
    """A text is not an absolute http(s) URL that can be crawled."""


class StoreError(WebfountainError):
    """The store refused a transaction, or the transaction failed and changed nothing."""


class StoreAway(StoreError):
    """The store's server did not answer in time. All changes that the server has confirmed are kept, and unsettled
    pages are fetched again.
    """


class StoreHeld(StoreError):
    """Another process has opened this store for writing. Stop the other process, or use commands that work during a
    crawl (`webfountain now`, `status`).
    """


class StoreVersion(StoreError):
    """The store has a format that this version cannot read. Use another folder, or the version of webfountain that
    wrote the store.
    """

    exit_status = 2


class StoreBound(StoreError):
    """The store belongs to another collection. Choose another ``--store`` for this collection."""

    exit_status = 2


class RepositoryError(WebfountainError):
    """A page's copy could not be written or read. A page whose copy was not written is not settled, and is fetched
    again when the disk works.
    """


class RepositoryHeld(RepositoryError):
    """Another process is writing to this folder of copies. Stop the other process, or choose another folder."""


class NotConverged(WebfountainError):
    """An iterative computation ended before it reached its tolerance. The error message contains the number of
    iterations, the residual and the tolerance.
    """
