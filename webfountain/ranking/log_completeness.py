"""Completeness of a link log: the time since which each fetched page has its row in the log.

A damaged file loses the rows of pages, and a log that is younger than its crawl never had the rows of earlier pages. A
page that changes is logged again in any case. An unchanged page is logged when it is first fetched after the log
became complete: then its links are read again (`pages.examiner`). So no row is missing for longer than until the next
visit. The time is in a small file of the log, for all crawls that write it.
"""

from __future__ import annotations

from math import isfinite
from typing import Final

from webfountain.ranking.link_files import DamagedFile, LogFiles

__all__ = ["FILE", "GRACE_S", "complete_since", "incomplete_until", "open_log"]

FILE: Final = "complete-since"
GRACE_S: Final = 900.0
"""Seconds after which every crawl that writes the log knows of the damage and has ended the fetches that it had
started."""


def complete_since(files: LogFiles) -> float | None:
    """Return the time, UTC seconds; None if no crawl has opened the log.

    Raises DamagedFile if the content is not a time, RepositoryError if the disk reports an error.
    """
    text = files.text(FILE)
    if text is None:
        return None
    try:
        since = float(text)
        if not isfinite(since):
            raise ValueError(f"{since} is no time")
    except ValueError as error:
        raise files.damaged(FILE, error) from error
    return since


def open_log(url: str, *, at: float, has_lost: bool) -> float:
    """Return the time for a crawl that opens the log. If no time is known, the log is complete from now on.

    `has_lost` says whether rows were lost with a damaged journal.
    """
    files = LogFiles(url)
    try:
        since = complete_since(files)
    except DamagedFile:
        since = None
    if has_lost:
        return incomplete_until(files, at)
    if since is None:
        since = at
        files.replace_text(FILE, str(since))
    return since


def incomplete_until(files: LogFiles, at: float) -> float:
    """Record that rows were found to be lost `at` this time. Return the time from which the log is complete."""
    since = at + GRACE_S
    files.replace_text(FILE, str(since))
    return since
