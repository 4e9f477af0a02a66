"""The notes that a program leaves for the crawl of a collection, and the present blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.api.answers import BlockAnswer
from webfountain.api.notes import NoteDesk
from webfountain.clock import SystemClock
from webfountain.frontier.inbox.blocks import blocks_of, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.api.answers import NoteAnswer
    from webfountain.store.contract import FrontierStore

__all__ = ["CollectionNotes"]


class CollectionNotes:
    """The part of a collection that sends notes. A running crawl reads them within a second; otherwise the next crawl
    does."""

    def __init__(self, store: FrontierStore, url: str) -> None:
        self._store = store
        self._url = url
        self._clock = SystemClock()

    def now(self, urls: Sequence[str]) -> NoteAnswer:
        """Request the crawl to fetch URLs as soon as politeness allows. Raise InputError for no URLs or too many."""
        return self._desk().now(urls, at=self._clock.now())

    def forget(self, url: str | None = None, *, site: str | None = None) -> NoteAnswer:
        """Request the permanent removal of a page or a site. Raise InputError unless
        exactly one valid value is given.
        """
        return self._desk().forget(url, site)

    def pause(self) -> NoteAnswer:
        """Stop new requests of the crawl until `resume`, also after a restart.
        Requests in flight are still completed.
        """
        return self._desk().pause()

    def resume(self) -> NoteAnswer:
        """Resume a paused crawl."""
        return self._desk().resume()

    def block(self, prefix: str, *, until: float | None = None) -> NoteAnswer:
        """Block a site or the URLs with a prefix until a time (UTC seconds), or until `unblock`.

        What is known about them stays, with all copies. Raise UrlError if the text is not a URL, InputError if there
        are too many blocks or the time is past.
        """
        return self._desk().block(prefix, until, at=self._clock.now())

    def unblock(self, prefix: str) -> NoteAnswer:
        """End the block of a prefix. Raise InputError if it is not blocked."""
        return self._desk().unblock(prefix)

    def blocks(self) -> list[BlockAnswer]:
        """Return the present blocks, sorted by prefix."""
        at = self._clock.now()
        return [BlockAnswer(each.prefix, each.until) for each in blocks_of(self._store.board) if ends(each) > at]

    def drain(self, ant: str) -> NoteAnswer:
        """Tell one crawling process to give up its sites and end. Other processes take the sites over.

        `ant` is its name in `StatusAnswer.ants` or `LiveSnapshot.owner`. Raise InputError for any other name.
        """
        return self._desk().drain(ant, at=self._clock.now())

    def _desk(self) -> NoteDesk:
        return NoteDesk(self._store, self._url)
