"""Notes to the crawl: a program's requests, checked before they are sent; and the blocks in force.

A running crawl acts within a second. Without a running crawl, the next crawl acts. Requested URLs obey politeness and
robots.txt too.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.api.answers import BlockAnswer, NoteAnswer, RefusedUrl
from webfountain.api.details import CollectionDetails
from webfountain.clock import SystemClock
from webfountain.errors import InputError
from webfountain.frontier.cluster.ant_notes import ants_of
from webfountain.frontier.inbox.blocks import MAX_BLOCKS, blocks_of, ends
from webfountain.frontier.inbox.inboxes import FeedInbox, Inbox
from webfountain.frontier.inbox.notes import BlockNote, Drain, ForgetNote, NowNote, Pause, Resume, UnblockNote
from webfountain.history.publishing import read_file
from webfountain.report.store_reading import inbox_folder
from webfountain.store.locations import folder_of, is_in_use
from webfountain.urls import canonical, site_of, site_of_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.inbox.notes import Note
    from webfountain.store.contract import FrontierStore

__all__ = ["MAX_URLS", "CollectionNotes"]

MAX_URLS: Final = 10_000
"""Maximum number of URLs in one note."""


class CollectionNotes:
    """The part of a collection that sends notes to the crawl of a store."""

    def __init__(self, store: FrontierStore, url: str) -> None:
        self._store = store
        self._url = url
        self._clock = SystemClock()
        self.details = CollectionDetails(store, url)

    def now(self, urls: Sequence[str]) -> NoteAnswer:
        """Make the crawl fetch URLs as soon as politeness allows. The answer names the URLs that the policy file
        refuses, with the reason.

        Raises
        ------
        InputError
            when there are no URLs, or too many.
        """
        if not 1 <= len(urls) <= MAX_URLS:
            raise InputError(f"urls: {len(urls)} given (allowed: 1 to {MAX_URLS})")
        judged = self.details.refusals(urls, at=self._clock.now())
        accepted = [name for name, why in judged if why is None]
        refused = [RefusedUrl(name, why) for name, why in judged if why is not None]
        if accepted:
            self._leave(NowNote(tuple(accepted)))
        return NoteAnswer("now", accepted, refused)

    def forget(self, url: str | None = None, *, site: str | None = None) -> NoteAnswer:
        """Request the permanent removal of a page or a whole site. Records and copies are deleted, and later links are
        refused.

        Raises
        ------
        InputError
            when both or neither of `url` and `site` are given, or the value is invalid.
        """
        if (url is None) == (site is None):
            raise InputError("forget: give either url or site")
        if url is not None:
            name = canonical(url)
            self._leave(ForgetNote(site_of(name), name))
            return NoteAnswer("forget", [name])
        home = site_of_text(site or "")
        self._leave(ForgetNote(home))
        return NoteAnswer("forget", [home])

    def pause(self) -> NoteAnswer:
        """Keep the crawl from new requests until `resume`, even after a restart. Running requests are completed."""
        self._leave(Pause())
        return NoteAnswer("pause", [])

    def resume(self) -> NoteAnswer:
        """Resume a paused crawl."""
        self._leave(Resume())
        return NoteAnswer("resume", [])

    def block(self, prefix: str, *, until: float | None = None) -> NoteAnswer:
        """Block a site or the URLs with a prefix until a time (UTC seconds), or until `unblock`.

        The records and copies of the blocked pages stay.

        Raises
        ------
        UrlError
            when the prefix is not a URL.
        InputError
            when the time is past, or there are too many blocks.
        """
        name, at = canonical(prefix), self._clock.now()
        if until is not None and not at < until < inf:
            raise InputError(f"until {until} is not a time in the future (allowed: UTC seconds after now, {at:.0f})")
        if sum(each.prefix != name and ends(each) > at for each in blocks_of(self._store.board)) >= MAX_BLOCKS:
            raise InputError(
                f"block {name}: there are {MAX_BLOCKS} blocks already; unblock some, or refuse URLs in the policy file"
            )
        self._leave(BlockNote(name, until))
        return NoteAnswer("block", [name])

    def unblock(self, prefix: str) -> NoteAnswer:
        """End the block of a prefix. Raise InputError if it is not blocked."""
        name = canonical(prefix)
        if all(each.prefix != name for each in blocks_of(self._store.board)):
            raise InputError(f"unblock {name}: it is not blocked (`webfountain block` lists the blocks)")
        self._leave(UnblockNote(name))
        return NoteAnswer("unblock", [name])

    def blocks(self) -> list[BlockAnswer]:
        """Return the blocks in force, sorted by prefix."""
        at = self._clock.now()
        return [BlockAnswer(each.prefix, each.until) for each in blocks_of(self._store.board) if ends(each) > at]

    def drain(self, ant: str) -> NoteAnswer:
        """Make one crawling process give up its sites and end. Other processes take the sites over.

        `ant` is its name in `StatusAnswer.ants` or `LiveSnapshot.owner`. Raise InputError for any other name.
        """
        found = self._processes()
        if ant not in found:
            known = f"the crawling processes are {', '.join(found)}" if found else "no process crawls this store now"
            raise InputError(f"drain {ant!r}: no crawling process has this name; {known}")
        self._leave(Drain(ant))
        return NoteAnswer("drain", [ant])

    def _processes(self) -> list[str]:
        """Return the names of the crawling processes."""
        claims, folder = self._store.claims, folder_of(self._url)
        if claims is not None:
            return sorted(ants_of(claims, claims.time() or self._clock.now()))
        live = [] if folder is None or not is_in_use(folder) else read_file(folder)
        return [each.owner for each in live]

    def _leave(self, note: Note) -> None:
        feed, folder = self._store.feed(), folder_of(self._url)
        if feed is not None:
            FeedInbox(feed).put(note)
        elif folder is not None:
            Inbox(inbox_folder(folder)).put(note)
