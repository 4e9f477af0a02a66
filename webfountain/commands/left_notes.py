"""Leave notes to a crawl in the inbox of its store, even while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webfountain.clock import SystemClock
from webfountain.frontier.inbox.inboxes import FeedInbox
from webfountain.store.shared_contract import has_ants

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.inbox.notes import ForgetNote, NowNote
    from webfountain.store.contract import FrontierStore

__all__ = ["gone_soon", "inbox_of", "leave"]

_TAKES_AT_MOST_S: Final = 5.0
"""Longest time to wait until a running crawl has read a note, seconds; it polls once a second."""


def inbox_of(store: FrontierStore) -> FeedInbox:
    """Return the inbox of a store on a server."""
    feed = store.feed()
    assert feed is not None, "a store on a server has an inbox there"
    return FeedInbox(feed)


def leave(store: FrontierStore, note: NowNote | ForgetNote) -> bool:
    """Put a note into the inbox on the server. Return whether a crawl has carried it out within a few seconds."""
    inbox = inbox_of(store)
    inbox.put(note)
    return has_ants(store.claims, at=SystemClock().now()) and gone_soon(lambda: not inbox.is_empty())


def gone_soon(waits: Callable[[], bool]) -> bool:
    """Wait until the crawl has read the note. Return False if it did not."""
    until = time.monotonic() + _TAKES_AT_MOST_S
    while waits():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
