"""What enters from outside: the seeds of a policy file, and the notes of other processes.

The inbox: how another process tells a running crawl what to do. One folder, one file per note; with a store on a
server a list there. Its place is before the walk: `webfountain now` and `webfountain forget` write notes, the crawl's
worker reads them twice a second (idle ones on one store take turns), acts, and deletes each when its effect is in the
store. A note is written under a temporary name and renamed, so that a reader never sees half of one; without a crawl
it waits for the next.

Whoever may write into the folder may leave anything there, so nothing in it ends a crawl: what is no note, or names
what is no URL, is set aside as ``.refused`` with one line in the log, and only the newest of those are kept. A folder
that cannot be read at this moment (too many open files) is read at the next.

Seeds enter the store: the first links of a crawl, and of every later start that finds new ones in the file. Place in
the walk: its beginning. A seeds file is read line by line and handed over in batches, so 100,000 sites take no
memory. A seed that the policy itself refuses is not dropped in silence: the result names it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import stat
import time
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import xxhash

from webfountain.errors import StoreError, UrlError
from webfountain.records import Link
from webfountain.store.contract import FeedEntry
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge, Reason
    from webfountain.repository import Erased
    from webfountain.store.contract import Claim, Claims, Feed, FrontierStore

__all__ = [
    "FOLDER",
    "SEED_BATCH",
    "Delivered",
    "Discover",
    "FeedInbox",
    "Forget",
    "Inbox",
    "Letter",
    "Note",
    "Notes",
    "Now",
    "Received",
    "Returned",
    "SeedsLoaded",
    "Take",
    "erase",
    "letters_of",
    "load_seeds",
    "load_seeds_once",
    "seed_links",
]

FOLDER = "inbox"
"""The folder's name within an embedded store's folder."""
MOST_BYTES: Final = 64_000_000
"""A note is at most so long: about a million URLs."""
REFUSED_KEPT: Final = 100
NOTES_AT_ONCE: Final = 16
"""Notes in a feed that a process takes at a time; the others are for other processes."""
NOTE_S: Final = 60.0
"""A note that was taken and not done in this time is another's."""
_ABANDONED_S: Final = 3600.0
"""A draft of this age is of a process that was killed before it renamed it."""
_BUSY: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR})

logger = logging.getLogger(__name__)


class Now(msgspec.Struct, frozen=True, tag="now", tag_field="note"):
    """Put these canonical URLs on the immediate queue, in order."""

    urls: tuple[str, ...]


class Forget(msgspec.Struct, frozen=True, tag="forget", tag_field="note"):
    """Remove one page by its canonical URL, or with no `url` the whole site, for good."""

    site: str
    url: str | None = None


class Take(msgspec.Struct, frozen=True, tag="take", tag_field="note"):
    """Of an ant to another: a site stands at an address that is yours, take it."""

    site: str


class Returned(msgspec.Struct, frozen=True, tag="returned", tag_field="note"):
    """Of a borrower to the holder of a site (`colony`): its slots are back, or will be, for the site refused one."""

    site: str
    borrower: str
    token: int
    next_at: float
    """No request in these slots before this time; where it is not `over`, in any of the site."""
    failures: int = 0
    """Refusals in a row."""
    over: bool = True


Note = Now | Forget
Letter = Take | Forget | Returned
"""What ants leave each other (`store.contract.Claims.post`): sites that follow their address, what is to be erased,
what became of a loan."""


class Received(NamedTuple):
    """A note, and the file or the entry of a feed that it came in."""

    source: Path | FeedEntry
    note: Note


class Delivered(NamedTuple):
    """What the notes of one delivery did."""

    immediate: int = 0
    """URLs put on the immediate queue."""
    forgotten: int = 0
    """Page records removed."""
    erased: int = 0
    """WARC records removed."""
    barred: tuple[Forget, ...] = ()
    """What was forgotten: other ants may have copies of it."""


_decoder: msgspec.json.Decoder[Note] = msgspec.json.Decoder(Note)


class Erasing(Protocol):
    """Where copies can be taken down: a repository, or those of many ants."""

    def erase(self, is_forgotten: Callable[[str], bool], store: FrontierStore) -> Erased:
        """Remove every record, of every version, whose URL `is_forgotten`."""
        ...


_letters: msgspec.json.Decoder[Letter] = msgspec.json.Decoder(Letter)
_serial = count()


def letters_of(found: Iterable[bytes]) -> Iterator[Letter]:
    """Letters that were collected; what is none is left out, with a line in the log."""
    for data in found:
        try:
            yield _letters.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("A letter of another ant cannot be read: %s", error)


class Notes:
    """What waits for a crawl, wherever it lies."""

    def waiting(self, at: float) -> list[Received]:
        """The notes that wait, oldest first. What is no note is set aside, not read again."""
        raise NotImplementedError

    def done(self, received: Sequence[Received]) -> None:
        """Delete notes whose effect is in the store. A second call has no effect."""
        raise NotImplementedError

    def deliver(self, store: FrontierStore, repository: Erasing | None, *, at: float) -> Delivered:
        """Act on the notes that wait, in order, and delete them when their effect is kept.

        A kill in between repeats notes, which changes nothing: an immediate URL is there once, a forgotten page
        is gone. The copies of all forgotten pages are erased in one pass over the repository.
        """
        received = self.waiting(at)
        if not received:
            return Delivered()
        immediate = forgotten = erased = 0
        barred: list[Forget] = []
        for each in received:
            note = self._checked(each)
            if isinstance(note, Now):
                immediate += store.immediate([_link(url) for url in note.urls], at=at)
            elif note is not None:
                key = None if note.url is None else fingerprint(note.url)
                forgotten += store.forget(note.site, key, at=at)
                barred.append(note)
        if barred and repository is not None:
            erased = erase(repository, barred, store)
        self.done(received)
        return Delivered(immediate, forgotten, erased, tuple(barred))

    def _checked(self, received: Received) -> Note | None:
        """A note whose URLs passed the door that seeds pass; None when nothing of it did."""
        note = received.note
        if isinstance(note, Forget):
            try:
                home, url = canonical(note.site), None if note.url is None else canonical(note.url)
                if site_of(home) + "/" != home or (url is not None and site_of(url) != site_of(home)):
                    raise UrlError(f"{note.site!r} is no site, or not the page's")
            except UrlError as error:
                self._refuse(received, note, error)
                return None
            return Forget(site_of(home), url)
        good, bad, why = [], [], None
        for text in note.urls:
            try:
                good.append(canonical(text))
            except UrlError as error:
                bad.append(text)
                why = why or error
        if why is not None:
            self._refuse(received, Now(tuple(bad)), why)
        return Now(tuple(good)) if good else None

    def _refuse(self, received: Received, note: Note, why: UrlError) -> None:
        """What of a note cannot be done."""
        raise NotImplementedError


class FeedInbox(Notes):
    """The notes in a list on the store's server, of which each goes to one of the crawl's processes."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def put(self, note: Note) -> None:
        """Leave a note."""
        self._feed.put([msgspec.json.encode(note)])

    def waiting(self, at: float) -> list[Received]:
        """See `Notes.waiting`. One round trip; a note that another process took and did not do comes after a minute."""
        found = []
        for taken in self._feed.take(NOTES_AT_ONCE, until=at + NOTE_S, at=at):
            try:
                found.append(Received(taken, _decoder.decode(taken.data)))
            except msgspec.DecodeError as error:
                logger.warning("A note in the store's inbox is none, and is dropped (%s): %.200r", error, taken.data)
                self._feed.done([taken])
        return found

    def done(self, received: Sequence[Received]) -> None:
        """See `Notes.done`. One round trip."""
        self._feed.done([each.source for each in received if isinstance(each.source, FeedEntry)])

    def is_empty(self) -> bool:
        """Whether every note was done."""
        return not self._feed.waiting()

    def _refuse(self, received: Received, note: Note, why: UrlError) -> None:
        logger.warning("Of a note in the store's inbox this cannot be done (%s): %.500r", why, note)


class Inbox(Notes):
    """The notes in one folder, which is made with the first of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stuck: set[str] = set()
        self._was_busy = False

    def put(self, note: Note) -> Path:
        """Leave a note; it is whole as soon as it can be seen. Raises StoreError when the folder is not writable."""
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(_serial)}.json"
        path = self._folder / name
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_suffix(".tmp")
            draft.write_bytes(msgspec.json.encode(note))
            draft.rename(path)
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot leave a note there: {error.strerror}") from None
        return path

    def waiting(self, at: float = 0.0) -> list[Received]:
        """See `Notes.waiting`. What is no note is set aside as `.refused`."""
        try:
            names = sorted(os.listdir(self._folder))
            self._was_busy = False
        except FileNotFoundError:
            return []
        except OSError as error:
            if not self._was_busy:
                logger.warning("%s: cannot be read now: %s", self._folder, error.strerror)
            self._was_busy = True
            return []
        self._sweep(names)
        notes = [name for name in names if name.endswith(".json") and name not in self._stuck]
        found = (self._read(self._folder / name) for name in notes)
        return [received for received in found if received is not None]

    def done(self, received: Sequence[Received]) -> None:
        """See `Notes.done`."""
        for path in [each.source for each in received if not isinstance(each.source, FeedEntry)]:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._leave(path, f"cannot be deleted ({error.strerror}); it was acted on")

    def _read(self, path: Path) -> Received | None:
        try:
            return Received(path, _decoder.decode(_bytes_of(path)))
        except msgspec.DecodeError as error:
            self._set_aside(path, f"is no note: {error}")
        except FileNotFoundError:
            pass  # a note deleted by hand between listing and reading
        except OSError as error:
            if error.errno not in _BUSY:
                self._set_aside(path, f"is no note: {error.strerror}")
        return None

    def _refuse(self, received: Received, note: Note, why: UrlError) -> None:
        """Keep what of a note cannot be done where its author may find it."""
        assert not isinstance(received.source, FeedEntry)
        path = received.source.with_suffix(".refused")
        logger.warning("%s: set aside as %s: %s", received.source, path.name, why)
        with contextlib.suppress(OSError):
            path.write_bytes(msgspec.json.encode(note))

    def _set_aside(self, path: Path, why: str) -> None:
        try:
            path.rename(path.with_suffix(".refused"))
        except OSError as error:
            self._leave(path, f"{why}; it cannot be set aside ({error.strerror})")
        else:
            logger.warning("%s: set aside as %s: %s", path, path.with_suffix(".refused").name, why)

    def _leave(self, path: Path, why: str) -> None:
        """Do not look at a file again that can be neither done nor moved."""
        self._stuck.add(path.name)
        logger.warning("%s: %s", path, why)

    def _sweep(self, names: Sequence[str]) -> None:
        """Remove drafts of killed processes, and what was set aside but for the newest."""
        refused = [name for name in names if name.endswith(".refused")]
        for name in refused[:-REFUSED_KEPT]:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        for name in names:
            with contextlib.suppress(OSError):
                if name.endswith(".tmp") and (self._folder / name).stat().st_mtime < time.time() - _ABANDONED_S:
                    (self._folder / name).unlink()


def _bytes_of(path: Path) -> bytes:
    """What a file holds; OSError for what is no plain file of at most MOST_BYTES, and never a wait for one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        if found.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes")
        return file.read()


def _link(url: str) -> Link:
    return Link(url=url, site=site_of(url), key=fingerprint(url))


def erase(repository: Erasing, barred: Sequence[Forget], store: FrontierStore) -> int:
    """Remove the copies of what is forgotten; how many records."""
    return repository.erase(lambda url: _is_barred(url, barred), store).records


def _is_barred(url: str, barred: Sequence[Forget]) -> bool:
    return any(url == note.url if note.url is not None else site_of(url) == note.site for note in barred)


SEED_BATCH: Final = 1000
_LOADING_S: Final = 30.0
"""An ant that loads seeds and has not begun another batch of them for so long is dead, or as good as that."""
_LOADED_S: Final = 60.0
"""Ants that start so long after the seeds were loaded need not load them again."""


class Discover(Protocol):
    """Makes links known, as the duplicate URL eliminator does."""

    def __call__(self, links: Sequence[Link], *, at: float) -> Sequence[Link]:
        """Those that were new."""
        ...


class SeedsLoaded(msgspec.Struct, frozen=True):
    """What became of the seeds; `refused` has the number of each reason, with the first URL for the log."""

    new: int
    known: int
    refused: dict[Reason, tuple[int, str]]

    @property
    def read(self) -> int:
        """All that the policy file and the seeds file named."""
        return self.new + self.known + sum(many for many, _ in self.refused.values())


def load_seeds(collection: Collection, judge: Judge, discover: Discover, *, at: float) -> SeedsLoaded:
    """Make every seed known that the collection's own rules do not refuse.

    Raises
    ------
    PolicyError
        at a line of the seeds file that is no URL (it changed since the policy file was read); seeds before it
        are known then, and a second call repeats nothing.
    """
    new = known = 0
    refused: dict[Reason, tuple[int, str]] = {}
    links = seed_links(collection, judge, refused)
    while batch := list(itertools.islice(links, SEED_BATCH)):
        found = len(discover(batch, at=at))
        new += found
        known += len(batch) - found
    return SeedsLoaded(new, known, refused)


def load_seeds_once(
    collection: Collection,
    judge: Judge,
    discover: Discover,
    claims: Claims,
    *,
    owner: str,
    now: Callable[[], float],
    rest: Callable[[], bool],
) -> SeedsLoaded:
    """`load_seeds` for ants that start together: one loads a seeds file, the others wait for it and read none.

    Parameters
    ----------
    now : UTC seconds
    rest : waits for a moment; False: this ant ends, and needs no seeds any more
    """
    name = f"seeds/{_digest(collection)}"

    def claim() -> Claim:
        at = now()
        return claims.claim([name], owner=owner, until=at + _LOADING_S, at=at)[0]

    def claim_and_discover(links: Sequence[Link], *, at: float) -> Sequence[Link]:
        claim()
        return discover(links, at=at)

    while (held := claim()).owner != owner:
        # Who has loaded them leaves the name to nobody for a while; of who dies before that it runs out.
        if not held.owner or not rest():
            return SeedsLoaded(0, 0, {})
    loaded = load_seeds(collection, judge, claim_and_discover, at=now())
    claims.drop({name: now() + _LOADED_S}, owner=owner, at=now())
    return loaded


def _digest(collection: Collection) -> str:
    """Of all that decides which seeds there are."""
    digest = xxhash.xxh3_128(collection.text.encode())
    if collection.seeds_file is not None:
        with contextlib.suppress(OSError):  # `load_seeds` says why it cannot be read
            digest.update(collection.seeds_file.read_bytes())
    return digest.hexdigest()


def seed_links(collection: Collection, judge: Judge, refused: dict[Reason, tuple[int, str]]) -> Iterator[Link]:
    """The seeds as links, in order; those refused are entered in `refused` as the iteration meets them."""
    seeds = collection.seeds_with_policies()
    while batch := list(itertools.islice(seeds, SEED_BATCH)):
        for policy, named in itertools.groupby(batch, key=lambda seed: seed[1]):
            urls = [url for url, _ in named]
            for url, verdict in zip(urls, judge.judge(urls, judge.seed(policy)), strict=True):
                if verdict.reason is None:
                    yield Link(
                        url,
                        site_of(url),
                        fingerprint(url),
                        policy=verdict.policy,
                        importance=judge.importance(verdict),
                        trust=verdict.trust,
                    )
                else:
                    many, first = refused.get(verdict.reason, (0, url))
                    refused[verdict.reason] = (many + 1, first)
