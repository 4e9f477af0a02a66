"""Notes: requests that a program sends to the crawl, such as `now`, `forget` and `block`.

A running crawl carries out a request within a second. If no crawl runs, the next crawl carries out the request. URLs
that a program requests are subject to politeness and robots.txt like all others.
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
"""Maximum number of URLs in one call of `now`."""


class CollectionNotes:
    """The methods of a collection that send requests to the crawl."""

    def __init__(self, store: FrontierStore, url: str) -> None:
        self._store = store
        self._url = url
        self._clock = SystemClock()
        self.details = CollectionDetails(store, url)

    def now(self, urls: Sequence[str]) -> NoteAnswer:
        """Request the crawl to fetch URLs as soon as politeness allows.

        The answer names the URLs that the policy file refuses, with the reason.

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
        """Pause the crawl until `resume`, even after a restart. Requests that have already started are completed."""
        self._leave(Pause())
        return NoteAnswer("pause", [])

    def resume(self) -> NoteAnswer:
        """Resume a paused crawl."""
        self._leave(Resume())
        return NoteAnswer("resume", [])

    def block(self, prefix: str, *, until: float | None = None) -> NoteAnswer:
        """Stop fetching a site or the URLs with a prefix, until the time `until` (UTC seconds) or until `unblock`.

        The records and copies of the blocked pages are kept.

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
        """End the block of a URL prefix. Raise InputError if the prefix is not blocked."""
        name = canonical(prefix)
        if all(each.prefix != name for each in blocks_of(self._store.board)):
            raise InputError(f"unblock {name}: it is not blocked (`webfountain block` lists the blocks)")
        self._leave(UnblockNote(name))
        return NoteAnswer("unblock", [name])

    def blocks(self) -> list[BlockAnswer]:
        """Return the current blocks, sorted by prefix."""
        at = self._clock.now()
        return [BlockAnswer(each.prefix, each.until) for each in blocks_of(self._store.board) if ends(each) > at]

    def drain(self, ant: str) -> NoteAnswer:
        """Make one crawling process end, so that other processes take over its sites.

        `ant` is the name of the process, as in `StatusAnswer.ants` or `LiveSnapshot.owner`. Raise InputError for an
        unknown name.
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
