"""Similarity of a text to a query: the cosine of their tf-idf vectors.

The examiner compares pages, link texts and URLs with topics. If there are too many different words, words that occurred
once are dropped.

A page on topic is *hot*. A waiting page is hot if its URL or a link text is on topic, or if a hot page is a few links
away. Hot pages are fetched before all others (Cho 1998, hot_queue).

Source: Cho 1998, section 2 (IS: an inner product of tf-idf vectors, idf "estimated from the pages seen so far"),
section 5 (anchor texts and URLs, hot_queue). Deviation: vectors are normalised, so a long page has no advantage.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import nullcontext
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec
import numpy as np

from webfountain.urls import path_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy.typing as npt

__all__ = ["FAR", "HOT", "NEAR", "Topics", "WordCounts", "is_hot", "links_from_hot", "with_hot_first"]

MOST_WORDS: Final = 200_000
"""Largest number of different words that are counted, at about 100 bytes each."""
SHARED_WORDS: Final = 20_000
"""Number of the most frequent words that are published, at 10 bytes each."""
MOST_TEXTS: Final = 1 << 16
"""After this many texts, all counts are halved, so that old words fade."""
_LONGEST: Final = 20_000
"""Only this many characters of a text are read, about 3,000 words."""
NEAR: Final = 3
"""A waiting page is hot if it is at most this many links from a hot page (Cho 1998, section 5)."""
FAR: Final = NEAR + 1.0
HOT: Final = 32.0
"""Least importance of a hot page; pages of the same policy that are not hot stay below it."""
_HOTTEST: Final = 512.0
"""Importance of a hot page that would have the mean importance if it were not hot."""
_WORD: Final = re.compile(r"[^\W_]{2,40}")
"""Pattern of a word: 2 to 40 letters or digits. A run of more than 40 letters or digits counts as several words."""

_LINK_TEXT: Final = 256


class WordCounts(msgspec.Struct, frozen=True, array_like=True):
    """Published counts: the number of texts, and how many of them contain each frequent word."""

    texts: int = 0
    texts_with: dict[str, int] = {}


class Topics:
    """Word counts of the crawled texts, from which similarities are computed. All methods are thread-safe if `teaching`
    is a lock.

    Parameters
    ----------
    teaching : lock to hold while counts change, needed if several threads call `learn`
    most_words, most_shared, most_texts : as MOST_WORDS, SHARED_WORDS and MOST_TEXTS
    """

    def __init__(
        self,
        teaching: AbstractContextManager[object] | None = None,
        *,
        most_words: int = MOST_WORDS,
        most_shared: int = SHARED_WORDS,
        most_texts: int = MOST_TEXTS,
    ) -> None:
        self._most, self._most_shared, self._most_texts = most_words, most_shared, most_texts
        self._texts = 0
        self._texts_with: Counter[str] = Counter()
        self._shared = WordCounts()  # counts at the last exchange
        self._asked: tuple[str, int, dict[str, float]] = ("", -1, {})
        self._teaching = nullcontext() if teaching is None else teaching

    @property
    def has_learned(self) -> bool:
        """Return whether a text was counted since the last `exchange`."""
        return self._texts != self._shared.texts

    def learn(self, text: str) -> None:
        """Count the words of one more text."""
        with self._teaching:
            self._texts += 1
            self._texts_with.update(dict.fromkeys(_counted(text), 1))
            if len(self._texts_with) > self._most:
                self._texts_with = Counter({word: n for word, n in self._texts_with.items() if n > 1})
                if len(self._texts_with) > self._most:
                    self._texts_with = Counter(dict(self._texts_with.most_common(self._most // 2)))

    def exchange(self, published: WordCounts) -> WordCounts:
        """Merge this process's counts since the last exchange into the `published` counts. Return the merged counts,
        which the caller publishes.

        If two processes publish at once, some new counts are lost, but their words will occur again.
        """
        with self._teaching:
            before, texts, known = self._shared, self._texts, self._texts_with
            self._texts = max(texts, published.texts + texts - before.texts)
            is_whole = len(before.texts_with) < self._most_shared
            for word, many in published.texts_with.items():
                own = known[word]
                known[word] = max(own, many + own - before.texts_with.get(word, 0 if is_whole else own))
            if self._texts > self._most_texts:
                self._texts //= 2
                known = self._texts_with = Counter({word: n // 2 for word, n in known.items() if n > 1})
            counts = np.fromiter(known.values(), dtype=np.int64, count=len(known))
            if len(counts) > self._most_shared:
                least = int(np.partition(counts, -self._most_shared)[-self._most_shared])
                commonest = {word: n for word, n in known.items() if n >= least}
                shared = dict(islice(sorted(commonest.items(), key=_by_count), self._most_shared))
            else:
                shared = dict(known)
            self._shared = WordCounts(self._texts, shared)
            self._asked = ("", -1, {})
            return self._shared

    def promise(self, query: str, url: str, anchor: str) -> float:
        """Return the larger of two estimates of an unfetched page's similarity: from the link's text, and from the
        URL's words.
        """
        path = url[path_start(url) + 1 :]
        if "%" in path:
            path = unquote(path)
        written = self.similarity(query, anchor) if anchor else 0.0
        return max(written, self.similarity(query, path)) if path else written

    def similarity(self, query: str, text: str) -> float:
        """Return the similarity of a text to a query: 0 without a common word, 1 with the same words in the same
        proportion.
        """
        spoken_of = _any_word_of(query)
        # Nearly all link texts contain no word of the query.
        if spoken_of is None or spoken_of.search(text[:_LONGEST].lower()) is None:
            return 0.0
        wanted, found = self._weights_of_query(query), self._weights(text)
        product = sum(weight * found.get(word, 0.0) for word, weight in wanted.items())
        return min(1.0, product / (_length(wanted) * _length(found)))

    def _weights_of_query(self, query: str) -> dict[str, float]:
        asked, texts, weights = self._asked
        if asked != query or texts != self._texts:
            texts, weights = self._texts, self._weights(query)
            self._asked = query, texts, weights
        return weights

    def _weights(self, text: str) -> dict[str, float]:
        texts, known = self._texts, self._texts_with
        return {word: (1 + math.log(n)) * _idf(texts, known[word]) for word, n in _counted(text).items()}


def _by_count(counted: tuple[str, int]) -> tuple[int, str]:
    """Return a sort key that puts the highest count first and orders equal counts by the word."""
    return -counted[1], counted[0]


def links_from_hot(scores: Sequence[float]) -> float:
    """Return the distance of a page from the nearest hot page, in links: 0 for a hot page, at most FAR.

    `scores` are the topic scores in the page's record (`PageRecord.scores`).
    """
    return min(scores[1], FAR) if len(scores) > 1 else FAR


def is_hot(scores: Sequence[float], least: float, *, waits: bool) -> bool:
    """Return whether a page is hot, that is, its similarity is at least `least`. A page that `waits` is also hot if it
    is near a hot page.
    """
    return bool(scores) and (scores[0] >= least or (waits and links_from_hot(scores) <= NEAR))


def with_hot_first(importance: npt.NDArray[np.float64], hot: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the (n,) importances of waiting pages, with `hot` pages (n,) raised above all others.

    Source: Cho 1998, section 5 (two queues, each in the order of the metric).
    """
    raised = np.maximum(HOT, _HOTTEST * np.sqrt(np.maximum(importance, 0.0)))
    return np.asarray(np.where(hot, raised, np.minimum(importance, np.nextafter(HOT, 0.0))))


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_LONGEST].lower())


def _counted(text: str) -> Mapping[str, int]:
    return _counted_link(text) if len(text) <= _LINK_TEXT else _counted_page(text[:_LONGEST])


_counted_link = lru_cache(4096)(lambda text: Counter(_words(text)))


_counted_page = lru_cache(2)(lambda text: Counter(_words(text)))


@lru_cache(256)
def _any_word_of(query: str) -> re.Pattern[str] | None:
    """Return a pattern for any word of the query in a lower-case text; None if the query has no words."""
    words = sorted(set(_words(query)))
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, words))})(?![^\W_])") if words else None


def _idf(texts: int, texts_with: int) -> float:
    return 1.0 + math.log((1 + texts) / (1 + texts_with))


def _length(weights: dict[str, float]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights.values()))
