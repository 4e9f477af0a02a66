"""Define the notes (such as `now` and `forget`) that other processes leave for a running crawl, and execute the notes.

A `Note` comes from outside the crawl (`inboxes`). A `Letter` is a note from one ant to another, which the active list
puts into a batch and the worker sends (`cluster.claims`).
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from webfountain.errors import UrlError
from webfountain.frontier.inbox.blocks import UrlBlock, change_blocks
from webfountain.frontier.requests_by_url import keys_of_url
from webfountain.policy.provenance import arrived
from webfountain.records import Link
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from webfountain.repository.retention import ErasureResult
    from webfountain.store.contract import Board, FrontierStore, PageRecords
    from webfountain.store.shared_contract import FeedEntry

__all__ = [
    "PAUSED",
    "BlockNote",
    "CopyEraser",
    "DeliveryResult",
    "Drain",
    "ForgetNote",
    "Letter",
    "Note",
    "Notes",
    "NowNote",
    "Pause",
    "ReceivedNote",
    "Resume",
    "SlotReturn",
    "TakeSiteNote",
    "UnblockNote",
    "decoder",
    "erase",
    "is_paused",
    "letters_of",
    "serial",
    "set_paused",
]

logger = logging.getLogger(__name__)
serial = count()
PAUSED: Final = "paused"
"""Name of the published value that is b"1" while the crawl is paused."""


class NowNote(msgspec.Struct, frozen=True, tag="now", tag_field="note"):
    """A note that puts canonical URLs, in order, on the immediate queues of their sites."""

    urls: tuple[str, ...]


class ForgetNote(msgspec.Struct, frozen=True, tag="forget", tag_field="note"):
    """A note that removes a page for good, or a whole site if `url` is None."""

    site: str
    url: str | None = None


class Pause(msgspec.Struct, frozen=True, tag="pause", tag_field="note"):
    """A note that stops all requests of a crawl until a `Resume` note, even if the crawl is restarted."""


class Resume(msgspec.Struct, frozen=True, tag="resume", tag_field="note"):
    """A note that ends a pause."""


class BlockNote(msgspec.Struct, frozen=True, tag="block", tag_field="note"):
    """A note that blocks all URLs with a prefix until a time, UTC seconds, or until an `UnblockNote`."""

    prefix: str
    until: float | None = None


class UnblockNote(msgspec.Struct, frozen=True, tag="unblock", tag_field="note"):
    """A note that unblocks a URL prefix."""

    prefix: str


class Drain(msgspec.Struct, frozen=True, tag="drain", tag_field="note"):
    """A note or letter that makes one ant give up its sites and end."""

    ant: str


class ReceivedNote(NamedTuple):
    """A note with its source: a file, or an entry in the list on the server."""

    source: Path | FeedEntry
    note: Note


class DeliveryResult(NamedTuple):
    """What changed when some notes were carried out."""

    immediate: int = 0
    """Number of URLs that were put on immediate queues."""
    forgotten: int = 0
    """Number of page records that were removed."""
    erased: int = 0
    """Number of WARC records that were removed."""
    barred: tuple[ForgetNote, ...] = ()
    """Notes about forgotten pages and sites, whose copies the other ants must erase, too."""
    drained: tuple[str, ...] = ()
    """Names of the ants that must end."""


class CopyEraser(Protocol):
    """An object that erases copies, such as a repository or the repositories of many ants."""

    def erase(self, is_forgotten: Callable[[str], bool], store: PageRecords) -> ErasureResult:
        """Remove the WARC records of all versions of each forgotten URL."""
        ...


class Notes:
    """An inbox: the waiting notes of a crawl."""

    def waiting(self, at: float) -> list[ReceivedNote]:
        """Return the waiting notes, oldest first. Invalid notes are set aside, so that they are not read again."""
        raise NotImplementedError

    def done(self, received: Sequence[ReceivedNote]) -> None:
        """Delete notes that were carried out and whose effect is in the store."""
        raise NotImplementedError

    def deliver(self, store: FrontierStore, repository: CopyEraser | None, *, at: float) -> DeliveryResult:
        """Carry out the waiting notes in order, and delete each of them when its effect is in the store.

        If the process is killed, the next process carries the same notes out again, which does no harm. All copies of
        forgotten pages are erased in one pass over the repository.
        """
        received = self.waiting(at)
        if not received:
            return DeliveryResult()
        immediate = forgotten = erased = 0
        barred: list[ForgetNote] = []
        drained: list[str] = []
        done: list[ReceivedNote] = []
        for each in received:
            note = self._checked(each)
            if isinstance(note, BlockNote | UnblockNote) and not _change_block(store, note, at=at):
                continue  # another process is changing the list; the note is read again
            done.append(each)
            if isinstance(note, NowNote):
                links = [_link(url, key) for url in note.urls for key in keys_of_url(store.pages, url)]
                immediate += store.queues.immediate(links, at=at)
            elif isinstance(note, Pause | Resume):
                set_paused(store.board, paused=isinstance(note, Pause))
            elif isinstance(note, Drain):
                drained.append(note.ant)
            elif isinstance(note, ForgetNote):
                keys = [None] if note.url is None else keys_of_url(store.pages, note.url)
                forgotten += sum(store.pages.forget(note.site, key, at=at) for key in keys)
                barred.append(note)
        if barred and repository is not None:
            erased = erase(repository, barred, store.pages)
        self.done(done)
        return DeliveryResult(immediate, forgotten, erased, tuple(barred), tuple(drained))

    def _checked(self, received: ReceivedNote) -> Note | None:
        """Return a note with only its valid URLs, in canonical form, or None if no URL is valid."""
        note = received.note
        if isinstance(note, Pause | Resume | Drain):
            return note
        if isinstance(note, BlockNote | UnblockNote):
            try:
                return msgspec.structs.replace(note, prefix=canonical(note.prefix))
            except UrlError as error:
                self._refuse(received, note, error)
                return None
        if isinstance(note, ForgetNote):
            try:
                home, url = canonical(note.site), None if note.url is None else canonical(note.url)
                if site_of(home) + "/" != home or (url is not None and site_of(url) != site_of(home)):
                    raise UrlError(f"{note.site!r} is not a site, or not the site of the page")
            except UrlError as error:
                self._refuse(received, note, error)
                return None
            return ForgetNote(site_of(home), url)
        good, bad, why = [], [], None
        for text in note.urls:
            try:
                good.append(canonical(text))
            except UrlError as error:
                bad.append(text)
                why = why or error
        if why is not None:
            self._refuse(received, NowNote(tuple(bad)), why)
        return NowNote(tuple(good)) if good else None

    def _refuse(self, received: ReceivedNote, note: Note, why: UrlError) -> None:
        """Log the invalid part of a note."""
        raise NotImplementedError


def erase(repository: CopyEraser, barred: Sequence[ForgetNote], pages: PageRecords) -> int:
    """Remove the copies of forgotten pages, and return the number of removed WARC records."""
    return repository.erase(lambda url: _is_barred(url, barred), pages).records


def is_paused(board: Board) -> bool:
    """Return whether the crawl that uses a store is paused."""
    return board.value(PAUSED) == b"1"


def set_paused(board: Board, *, paused: bool) -> None:
    """Pause or resume the crawl that uses a store."""
    board.put_value(PAUSED, b"1" if paused else b"")


Note = NowNote | ForgetNote | Pause | Resume | BlockNote | UnblockNote | Drain


decoder: msgspec.json.Decoder[Note] = msgspec.json.Decoder(
    NowNote | ForgetNote | Pause | Resume | BlockNote | UnblockNote | Drain
)


def _change_block(store: FrontierStore, note: BlockNote | UnblockNote, *, at: float) -> bool:
    """Add or remove a block, as a note requests. Return False if another process is changing the blocks, so that the
    caller must try again.
    """
    if isinstance(note, BlockNote):
        return change_blocks(store, UrlBlock(note.prefix, note.until), blocked=True, at=at)
    if not change_blocks(store, UrlBlock(note.prefix), blocked=False, at=at):
        return False
    # A blocked site is parked for long; one page on its immediate queue makes it due.
    pages, _ = store.pages.part_of(site_of(note.prefix), b"", 1)
    store.queues.immediate(
        [_link(each.url, key) for each in pages for key in keys_of_url(store.pages, each.url)], at=at
    )
    return True


def _link(url: str, key: bytes) -> Link:
    return Link(url=url, site=site_of(url), key=key, provenance=arrived("now"))


def _is_barred(url: str, barred: Sequence[ForgetNote]) -> bool:
    return any(url == note.url if note.url is not None else site_of(url) == note.site for note in barred)


class TakeSiteNote(msgspec.Struct, frozen=True, tag="take", tag_field="note"):
    """A letter that asks the holder of an address to take over a site at this address."""

    site: str


class SlotReturn(msgspec.Struct, frozen=True, tag="returned", tag_field="note"):
    """A letter by which an ant returns borrowed slots to the ant that lent them (`cluster.loans`). If `over` is False,
    the letter only reports that the site refused a request, and another letter returns the slots later.
    """

    site: str
    borrower: str
    token: int
    next_at: float
    """The lender must not use the returned slots (or, if `over` is False, any slot of the site) before this time, UTC
    seconds.
    """
    failures: int = 0
    """Number of requests in a row that the site refused."""
    over: bool = True


Letter = TakeSiteNote | ForgetNote | SlotReturn | Drain
"""Any letter between ants (`Claims.post`)."""


_letters: msgspec.json.Decoder[Letter] = msgspec.json.Decoder(TakeSiteNote | ForgetNote | SlotReturn | Drain)


def letters_of(found: Iterable[bytes]) -> Iterator[Letter]:
    """Yield the decoded letters. Invalid letters are logged and dropped."""
    for data in found:
        try:
            yield _letters.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("Cannot read a letter from another ant: %.200s", error)
