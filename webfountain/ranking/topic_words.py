"""Word counts that show whether a page is on topic, shared by the ants of a crawl."""

from __future__ import annotations

import threading
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.topics import Topics, WordCounts
from webfountain.store.contract import WORDS

if TYPE_CHECKING:
    from webfountain.store.contract import Board

__all__ = ["TopicWords", "words_of"]

_EXCHANGE_S: Final = 60.0
"""Time between two exchanges of word counts, in seconds."""
_NO_WORDS: Final = msgspec.msgpack.encode(WordCounts())


class TopicWords:
    """The word counts of this process, which it shares with other ants and with later crawls of the store."""

    def __init__(self) -> None:
        self.topics = Topics(threading.Lock())
        """Word counts of the pages that this process and other ants have examined. Several threads that examine pages
        may add words at the same time.
        """
        self._share_at = -inf

    def share(self, board: Board, *, at: float) -> None:
        """Exchange the word counts with other ants, at most once a minute."""
        is_first = self._share_at == -inf
        if at < self._share_at or not (is_first or self.topics.has_learned):
            return
        self._share_at = at + _EXCHANGE_S
        published = words_of(board)
        made = self.topics.exchange(published)
        if made != published:
            board.put_value(WORDS, msgspec.msgpack.encode(made))


def words_of(board: Board) -> WordCounts:
    """Return the word counts that the ants have published, or empty counts if none can be read."""
    try:
        return msgspec.msgpack.decode(board.value(WORDS) or _NO_WORDS, type=WordCounts)
    except msgspec.MsgspecError:
        return WordCounts()
