"""A served store, which the service opens, closes after a failure, and opens again later.

All calls run one after another in the thread of the store, so a slow store delays no other store. After a failure the
service tries to open the store again, with growing pauses. If the folder of a store is replaced, the service opens the
new store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from webfountain.api.opening import open_stored
from webfountain.errors import CursorLost, InputError, RepositoryError, StoreAway, StoreError, WebfountainError
from webfountain.history.live import EVERY_S
from webfountain.service.problems import ProblemError
from webfountain.service.streams import READ, StreamParts
from webfountain.service.tail import ChangeTail, SharedAnswer
from webfountain.store.locations import folder_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.api.changes import PageChange
    from webfountain.api.collection import StoredCollection
    from webfountain.service.settings import StoreEntry

__all__ = ["MAX_WAITING", "ServedStore"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

MAX_WAITING: Final = 64
"""Maximum number of requests that may wait for a store's thread; further requests are refused."""
ANSWER_S: Final = 10.0
"""A store that does not answer within this number of seconds counts as unavailable."""
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 15.0


class ServedStore:
    """A store that the service reads, with its own thread. `clock` returns monotonic seconds."""

    def __init__(self, entry: StoreEntry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = entry.name
        self._entry = entry
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"webfountain-{entry.name}")
        self._collection: StoredCollection | None = None
        self._identity: object = None
        self._failure: WebfountainError | None = None
        self._retry_at = 0.0
        self._retry_s = _FIRST_RETRY_S
        self._waiting = 0
        self.tail = ChangeTail(lambda: self.call(lambda collection: collection.changes_end()))
        self.parts = StreamParts(self._changes)
        self.live = SharedAnswer(lambda: self.call(lambda collection: collection.live()), seconds=EVERY_S / 2)

    @property
    def failure(self) -> str | None:
        """Reason why the store cannot be read; None if the last attempt succeeded."""
        return None if self._failure is None else str(self._failure)

    async def call(self, function: Callable[[StoredCollection], _T]) -> _T:
        """Call a function with the open collection, in the thread of the store.

        Raises
        ------
        WebfountainError
            from the function; StoreError and InputError if the store cannot be opened.
        ProblemError
            when too many requests wait for the store.
        """
        if self._waiting >= MAX_WAITING:
            raise ProblemError(503, "busy", f"too many requests wait for the store {self.name!r}", retry_after_s=2)
        self._waiting += 1
        asked = asyncio.get_running_loop().run_in_executor(self._thread, self._use, function)
        asked.add_done_callback(lambda _: self._count_down())
        try:
            return await asyncio.wait_for(asyncio.shield(asked), ANSWER_S)
        except TimeoutError:
            self._give_up()
            asked.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise StoreAway(f"the store {self.name!r} does not answer") from None

    async def _changes(self, cursor: str) -> list[PageChange]:
        return await self.call(lambda collection: collection.changes(since=cursor, limit=READ))

    def close(self) -> None:
        """Close the store as soon as its running calls have ended."""
        self._give_up()
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _count_down(self) -> None:
        self._waiting -= 1

    def _give_up(self) -> None:
        """Stop waiting for an unavailable server. The next request opens the store again."""
        collection = self._collection
        if collection is not None:
            collection.end_within(0.0)

    # ------------------------------------------------------------- its thread

    def _use(self, function: Callable[[StoredCollection], _T]) -> _T:
        collection = self._opened()
        try:
            return function(collection)
        except (InputError, CursorLost, RepositoryError):
            raise
        except StoreError as error:
            self._close()
            self._fail(error)
            raise

    def _opened(self) -> StoredCollection:
        """Return the collection, and open it if necessary."""
        if self._collection is not None and self._identity != self._identity_now():
            logger.warning("The folder of the store %s was replaced; the store is reopened", self.name)
            self._close()
        if self._collection is not None:
            return self._collection
        if self._failure is not None and self._clock() < self._retry_at:
            raise self._failure
        try:
            self._collection = open_stored(self._entry.url, repository=self._entry.repository)
        except (WebfountainError, OSError) as error:
            failure = error if isinstance(error, StoreError) else StoreError(str(error))
            self._fail(failure)
            raise failure from None
        if self._failure is not None:
            logger.warning("The store %s is available again", self.name)
        self._identity, self._failure, self._retry_s = self._identity_now(), None, _FIRST_RETRY_S
        return self._collection

    def _fail(self, error: StoreError) -> None:
        if self._failure is None or str(self._failure) != str(error):
            logger.warning("The store %s cannot be read: %s", self.name, error)
        self._failure = error
        self._retry_at = self._clock() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    def _close(self) -> None:
        if self._collection is not None:
            with contextlib.suppress(WebfountainError, OSError):
                self._collection.close()
            self._collection = None

    def _identity_now(self) -> object:
        """Return a value that changes when the store's folder is replaced; None for a store on a server."""
        folder = folder_of(self._entry.url)
        if folder is None:
            return None
        try:
            found = (folder / "db" / "IDENTITY").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
