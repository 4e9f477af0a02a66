"""How like texts are: a page's next version to the one before, and pages of many sites to each other.

Shingles: how much of a text is
still there in its next version. A text is lower-cased, split on white space and cut into all runs of four tokens,
each a 64-bit hash; the resemblance of two texts is |A n B| / |A u B|. `exact_resemblance` needs both texts,
`sketch_resemblance` estimates it from 128 bytes of each (MinHash, below). Which text of a page counts is decided in
`formats.document`, what a resemblance means is said by `verdict`.

Source: Broder, *On the resemblance and containment of documents*, 1997 (resemblance, shingles, min-wise sampling);
Edwards 2001, section 2, names shingles as the judge of a non-trivial change.

The verdict on a fetched copy: did the page change, and does the change count. It stands between the text of a 200
answer (`formats.document`) and the page's history (`change_rate`): ``new`` (no copy before), 304, gone and failed are
known from the answer alone and are not decided here.

Near-duplicates among many pages: sketches, bands that bring likely pairs together, mirrors. A *sketch* is 128 bytes
of a text, one of the least of its shingles (runs of four tokens) in each of 128 equal parts of the range of their
hashes, so that the shingles are hashed and sorted once instead of permuted 128 times. Two texts agree in a byte as
often as their sets of shingles overlap, and otherwise once in 256, for which `sketch_resemblance` allows. A *band* is
eight bytes of it; pages that agree in one of eight bands are a candidate pair: at a resemblance of .9 all but 1 in
100 pairs are, at .6 one in 8. A sketch is comparable with other sketches alone: its tokens are hashed in one pass
over the bytes, so that only ASCII letters are surely lower-cased and only ASCII white space divides.

Source: Broder, *On the resemblance and containment of documents*, 1997; Li, Owen, Zhang, *One permutation hashing*,
2012; Shrivastava, *Optimal densification for fast and accurate minwise hashing*, 2017; Li, König, *b-bit minwise
hashing*, 2010; Indyk, Motwani 1998 (banding); Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*,
2000 (mirrors by their share of duplicates).

How similar a text is to a query: the cosine of their tf-idf vectors, idf estimated from the texts seen so far. Place
in the walk: the examiner asks it of a page whose policy has a `topic`, and of what is written on the links to pages
that nobody has seen, and in their URLs. Words are counted over all texts that were learned; those met once only are
forgotten when there are too many, for they are as rare as unknown ones.

A page is *hot* when it is on topic; one that waits is hot when a link's text or its URL is, or when it is a few links
from a hot page. Hot pages go before all others (Cho 1998, hot_queue).

Source: Cho 1998, section 2 (IS: an inner product of tf-idf vectors, idf "estimated from the pages seen so far"),
section 5 (anchor texts and URLs, hot_queue). Deviation: vectors are normalised, so that a similarity is from 0 to 1
and a long page is no better than a short one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from contextlib import nullcontext
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    Sketches = npt.NDArray[np.uint8]
    Hashes = npt.NDArray[np.uint64]
    Words = npt.NDArray[np.uint32]

_Number = TypeVar("_Number", bound="np.integer[Any]")

__all__ = [
    "BANDS",
    "DIFF_BYTES",
    "FAR",
    "HOT",
    "NEAR",
    "SKETCH_BYTES",
    "Compared",
    "Topics",
    "Verdict",
    "WordCounts",
    "band_keys",
    "distinct",
    "exact_resemblance",
    "is_hot",
    "is_mirror",
    "links_from_hot",
    "mixed",
    "shingles",
    "sketch",
    "sketch_form",
    "sketch_resemblance",
    "unified",
    "verdict",
    "with_hot_first",
]

_TOKENS = 4
# Odd multipliers (splitmix64's) make a position-dependent mix; uint64 arithmetic is meant to wrap around here.
_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], dtype=np.uint64)
_SHIFT = np.uint64(32)


def shingles(text: str) -> npt.NDArray[np.uint64]:
    """64-bit hashes of a text's runs of four tokens, in order, repeats kept; shape (max(1, tokens - 3),).

    A text shorter than four tokens is one shingle, an empty text none. Each token is hashed once; the four are
    combined by numpy.
    """
    words = text.lower().split()
    if not words:
        return np.empty(0, dtype=np.uint64)
    # One encoding of the whole is faster than one per token; str.split knows all of Unicode's white space.
    tokens = " ".join(words).encode("utf-8", "surrogatepass").split(b" ")
    hashes = np.fromiter(map(xxh3_64_intdigest, tokens), dtype=np.uint64, count=len(tokens))
    width = max(1, len(tokens) - _TOKENS + 1)
    mixed = hashes[:width] * _MIX[0]
    for place in range(1, min(_TOKENS, len(tokens))):
        mixed ^= mixed >> _SHIFT
        mixed += hashes[place : place + width] if len(tokens) >= _TOKENS else hashes[place : place + 1]
        mixed *= _MIX[place]
    return np.asarray(mixed ^ (mixed >> _SHIFT))


def exact_resemblance(text_a: str, text_b: str) -> float:
    """Jaccard resemblance of the shingle sets of two texts, 0..1; two empty texts resemble each other fully.

    Both are read and their shingles sorted: 1 ms for two texts of 16 kB, a fifth of what MinHash by 128 permutations
    takes of them.
    """
    a, b = distinct(shingles(text_a)), distinct(shingles(text_b))
    if not len(a) and not len(b):
        return 1.0
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


Verdict = Literal["same", "minor", "changed"]
DIFF_BYTES: Final = 20_000
"""Most bytes of a diff in UTF-8."""
_DIFF_LINES: Final = 4000
"""Lines of either text that a diff looks at: its time grows with their product at worst."""
_DIFF_LINE: Final = 2000
"""Characters of a line that a diff shows."""


class Compared(NamedTuple):
    """The verdict on a new copy, and the resemblance of its text to the old one's where that was computed."""

    verdict: Verdict
    resemblance: float | None = None


def verdict(
    old_digest: str,
    digest: str,
    *,
    min_change: float,
    text: str,
    old_text: Callable[[], str | None],
    old_sketch: bytes | None = None,
) -> Compared:
    """Judge a new copy against the old one: ``same``, ``minor`` or ``changed``.

    Equal digests are the same copy. With `min_change` 0 every other byte counts. Else the change counts when the
    resemblance of the two visible texts is below 1 - `min_change`.

    Parameters
    ----------
    old_digest, digest : digests of the two bodies after content decoding
    min_change : `change.min_change` of the collection, 0..1
    text : visible text of the new copy
    old_text : loads the old copy's text; called once, and only when the digests differ and `min_change` is above 0
    old_sketch : what decides where that is None (the text was lost, or is with another machine): of 755 pairs of real
        versions 97 % of such verdicts were those of the texts, all where the resemblance was .05 from the threshold.
        Without it the change counts, so that the page is not taken for fresh

    Source: Edwards 2001, section 2 (only a non-trivial change, judged by shingles, makes a page obsolete).
    """
    if old_digest == digest:
        return Compared("same")
    if min_change <= 0:
        return Compared("changed")
    before = old_text()
    if before == text:
        return Compared("minor", 1.0)
    if before is not None:
        resemblance = exact_resemblance(before, text)
    elif old_sketch is not None and (new_sketch := sketch(text)) is not None:
        old, new = (np.frombuffer(each, dtype=np.uint8)[None] for each in (old_sketch, new_sketch))
        resemblance = float(sketch_resemblance(old, new)[0])
    else:
        return Compared("changed")
    return Compared("changed" if resemblance < 1 - min_change else "minor", resemblance)


def unified(before: str, text: str) -> str:
    """A unified diff of two visible texts, without file names, cut at a line's end to at most `DIFF_BYTES`.

    Of long texts the first lines are compared, of long lines their beginning; some 10 ms for two pages of 20 kB.
    """
    old, new = ([line[:_DIFF_LINE] for line in islice(whole.splitlines(), _DIFF_LINES)] for whole in (before, text))
    kept: list[str] = []
    room = DIFF_BYTES
    for line in islice(difflib.unified_diff(old, new, lineterm=""), 2, None):
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            break
        kept.append(line + "\n")
    return "".join(kept)


SKETCH_BYTES: Final = 128
BANDS: Final = 8
LEAST_SHINGLES: Final = 24
"""A text of fewer says too little: pages that ask for JavaScript all say the same."""
_ROWS: Final = 8
_CHANCE: Final = 1.0 / 256.0
"""How often unequal components agree in their byte."""
_SKETCH_TOKENS: Final = 4
_SPACE: Final = 32
"""Bytes up to this one divide tokens."""
_BLOCK: Final = 1 << 16
_LOWER: Final = np.uint64(0x2020202020202020)
"""The bits that tell small ASCII letters from capitals; what else they tell apart is alike to a sketch."""
_FIRST_BYTES: Final = np.array([(1 << 8 * many) - 1 for many in range(9)], dtype=np.uint64)
_SKETCH_SHIFT: Final = np.uint64(32)
_PART: Final = np.uint32(32 - 7)
_SPREAD: Final = np.uint32(0x9E3779B1)
_BAND_MIX: Final = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], dtype=np.uint64
)
_NO_HASH: Final = np.uint32(0xFFFFFFFF)
"""A hash that is this one, of four billion, counts as none."""
_NUMBERS: Final = np.arange(BANDS, dtype=np.uint64) * _BAND_MIX[0]


def sketch(text: str) -> bytes | None:
    """`SKETCH_BYTES` bytes of a text; None of one of fewer than `LEAST_SHINGLES` shingles. About 4 ns a character."""
    found = _shingles(text.encode("utf-8", "surrogatepass"))
    if len(found) < LEAST_SHINGLES:
        return None
    # The least hash in each part; a part without one takes that of another part, drawn once for all texts. To sort all
    # takes three times as long.
    least = np.full(SKETCH_BYTES, _NO_HASH)
    np.minimum.at(least, (found >> _PART).astype(np.intp), found)
    full = least != _NO_HASH
    if not full.all():
        empty = np.flatnonzero(~full)
        drawn = _donors()[empty]
        least[empty] = least[drawn[np.arange(len(empty)), full[drawn].argmax(axis=1)]]
    least *= _SPREAD
    return least.astype("<u4").view(np.uint8)[3::4].tobytes()


@cache
def sketch_form() -> str:
    """Tells sketches, and the keys of their bands, from those that another version of this module draws."""
    drawn = sketch(" ".join(f"{word}{number}" for number in range(400) for word in ("Form", "of", "the", "été")))
    assert drawn is not None
    keys = band_keys(np.frombuffer(drawn, dtype=np.uint8).reshape(1, -1))
    return f"{xxh3_64_intdigest(drawn + keys.tobytes()):016x}"


def band_keys(found: Sketches) -> Hashes:
    """(n, 8) 64-bit keys of the bands of sketches (n, 128); the number of the band is in its key."""
    rows = np.ascontiguousarray(found[:, : BANDS * _ROWS]).view("<u8")
    return mixed(rows ^ _NUMBERS)


def sketch_resemblance(a: Sketches, b: Sketches) -> npt.NDArray[np.float64]:
    """(n,) estimated resemblance of pairs of sketches (n, 128), 0..1; standard error .027 at .9."""
    equal = np.count_nonzero(a == b, axis=1) / SKETCH_BYTES
    return np.asarray(np.maximum(0.0, (equal - _CHANCE) / (1.0 - _CHANCE)))


def distinct(numbers: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """The different ones of (n,) numbers, ascending.

    `numpy.unique` of numpy 2.4 puts them into a hash table: of 2,000 numbers that takes 18 times as long as to sort
    them, of a million 100 times.
    """
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def mixed(numbers: Hashes) -> Hashes:
    """64-bit numbers spread evenly over the range, equal ones alike: the finalizer of splitmix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _BAND_MIX[1]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _BAND_MIX[2]
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


_MIRRORED_SHARE: Final = 0.5
_MIRRORED_PAGES: Final = 10
"""A site is a mirror of another when so large a share of its pages that were judged, and so many, repeat that one's."""


def is_mirror(duplicates: int, pages: int) -> bool:
    """Whether a site is a mirror of another: half of its pages are duplicates of that one's, and ten of them."""
    return duplicates >= _MIRRORED_PAGES and duplicates >= _MIRRORED_SHARE * pages


def _shingles(data: bytes) -> Words:
    """32-bit hashes of all runs of four tokens, repeats kept."""
    tokens = _token_hashes(data)
    if len(tokens) < _SKETCH_TOKENS:
        return np.empty(0, dtype=np.uint32)
    # A pair, then a pair of pairs two tokens apart: each of the four has a factor of its own.
    pairs = tokens[:-1] * _BAND_MIX[0]
    pairs += tokens[1:]
    runs = pairs[:-2] * _BAND_MIX[2]
    runs += pairs[2:]
    runs ^= runs >> _SKETCH_SHIFT
    runs *= _BAND_MIX[3]
    return np.asarray((runs >> _SKETCH_SHIFT).astype(np.uint32))


def _token_hashes(data: bytes) -> Hashes:
    """A hash of each token, in blocks that stay in the cache; a token across two blocks is cut there."""
    if len(data) <= _BLOCK:
        return _tokens_of(data)
    return np.concatenate([_tokens_of(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)])


def _tokens_of(block: bytes) -> Hashes:
    """Of each token its first eight bytes, of a longer one also its last eight and its length, or all; spread."""
    buffer = b" " + block + b" " * 8
    divides = np.frombuffer(buffer, dtype=np.uint8) <= _SPACE
    edges = (divides[1:] ^ divides[:-1]).nonzero()[0]
    before, last = edges[::2], edges[1::2]
    length = last - before
    # The eight bytes from each byte on; copied, for what is not aligned is gathered slowly.
    eights = np.ndarray((len(buffer) - 7,), dtype="<u8", buffer=buffer, strides=(1,)).copy()
    hashes = eights.take(before + 1)
    hashes |= _LOWER
    hashes &= _FIRST_BYTES.take(length, mode="clip")
    hashes *= _BAND_MIX[1]
    longer = (length > 8).nonzero()[0]
    lengths = length.take(longer)
    ends = eights.take(last.take(longer) - 7)
    ends |= _LOWER
    ends *= _BAND_MIX[2]
    ends += lengths.astype(np.uint64)
    ends ^= ends >> _SKETCH_SHIFT
    hashes[longer] += ends
    for place in longer[lengths > 16].tolist():  # few, but where nothing divides words
        hashes[place] = xxh3_64_intdigest(buffer[before[place] + 1 : last[place] + 1].lower())
    hashes *= _BAND_MIX[3]
    return np.asarray(hashes ^ (hashes >> _SKETCH_SHIFT))


@cache
def _donors() -> npt.NDArray[np.int64]:
    """(128, 128) for each part in which order the others are asked for their least hash."""
    rng = np.random.default_rng(0x5EED)
    return np.asarray(rng.permuted(np.tile(np.arange(SKETCH_BYTES), (SKETCH_BYTES, 1)), axis=1))


MOST_WORDS: Final = 200_000
"""Different words that are counted, about 100 bytes each."""
SHARED_WORDS: Final = 20_000
"""Of these the commonest are published, 10 bytes each: what is rarer is in next to no text."""
MOST_TEXTS: Final = 1 << 16
"""Of more texts the counts are halved, so that words of long ago fade."""
_LONGEST: Final = 20_000
"""Characters of a text that are read: some 3,000 words."""
NEAR: Final = 3
"""Links from a hot page at most, for a page that waits to be hot for that (Cho 1998, section 5)."""
FAR: Final = NEAR + 1.0
HOT: Final = 32.0
"""Importance from which on there are hot pages alone, where a policy has a topic."""
_HOTTEST: Final = 512.0
"""Importance of a hot page that else would have that of a mean page."""
_WORD: Final = re.compile(r"[^\W_]{2,40}")
"""Longer ones, which no query has, are counted in parts: a server may send them without end."""


class WordCounts(msgspec.Struct, frozen=True, array_like=True):
    """Of so many texts how many have each word; the commonest words, as they are published."""

    texts: int = 0
    texts_with: dict[str, int] = {}


class Topics:
    """What was learned of the words of the web that is crawled. Any thread may ask.

    Parameters
    ----------
    teaching : held while something is learned, where several threads teach
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
        self._shared = WordCounts()  # as of the last exchange
        self._asked: tuple[str, int, dict[str, float]] = ("", -1, {})
        self._teaching = nullcontext() if teaching is None else teaching

    @property
    def has_learned(self) -> bool:
        """Whether any text came since the last exchange."""
        return self._texts != self._shared.texts

    def learn(self, text: str) -> None:
        """One more text was seen."""
        with self._teaching:
            self._texts += 1
            self._texts_with.update(dict.fromkeys(_counted(text), 1))
            if len(self._texts_with) > self._most:
                self._texts_with = Counter({word: n for word, n in self._texts_with.items() if n > 1})
                if len(self._texts_with) > self._most:
                    self._texts_with = Counter(dict(self._texts_with.most_common(self._most // 2)))

    def exchange(self, published: WordCounts) -> WordCounts:
        """Learn what others published, the crawls before among them; what is to be published in its place.

        Each adds to what is published what it has seen itself since its last exchange. Should two publish at once, what
        one of them saw since his last is not added to what others saw of the same words; the words come again.
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
        """What a page that nobody has seen promises by a link's text and the words of its canonical URL's path.

        The better of both: one is often a menu's word, or a number.
        """
        path = url[url.find("/", 8) + 1 :]
        if "%" in path:
            path = unquote(path)
        written = self.similarity(query, anchor) if anchor else 0.0
        return max(written, self.similarity(query, path)) if path else written

    def similarity(self, query: str, text: str) -> float:
        """0 where they share no word, 1 where they have the same words in the same proportion."""
        spoken_of = _any_word_of(query)
        # Nearly all links of a page say nothing of it.
        if spoken_of is None or spoken_of.search(text[:_LONGEST].lower()) is None:
            return 0.0
        wanted, found = self._weights_of_query(query), self._weights(text)
        product = sum(weight * found.get(word, 0.0) for word, weight in wanted.items())
        return min(1.0, product / (_length(wanted) * _length(found)))

    def _weights_of_query(self, query: str) -> dict[str, float]:
        """Remembered until the next text is learned: the links of a page are asked about in a row."""
        asked, texts, weights = self._asked
        if asked != query or texts != self._texts:
            texts, weights = self._texts, self._weights(query)
            self._asked = query, texts, weights
        return weights

    def _weights(self, text: str) -> dict[str, float]:
        texts, known = self._texts, self._texts_with
        return {word: (1 + math.log(n)) * _idf(texts, known[word]) for word, n in _counted(text).items()}


def _by_count(counted: tuple[str, int]) -> tuple[int, str]:
    """The most first, and always in the same order."""
    return -counted[1], counted[0]


def links_from_hot(scores: Sequence[float]) -> float:
    """How many links a page is from a hot page by its scores (`PageRecord.scores`), 0 for one itself, at most FAR."""
    return min(scores[1], FAR) if len(scores) > 1 else FAR


def is_hot(scores: Sequence[float], least: float, *, waits: bool) -> bool:
    """Whether a page is on topic, its similarity `least` or more; one that `waits` is hot near to one, too."""
    return bool(scores) and (scores[0] >= least or (waits and links_from_hot(scores) <= NEAR))


def with_hot_first(importance: npt.NDArray[np.float64], hot: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """(n,) importances by which pages wait, those that are hot (n,) before all others: HOT and more, others less.

    Of hot pages the classes are twice as wide, so that there is room for all of them.

    Source: Cho 1998, section 5 (two queues, each in the order of the metric).
    """
    raised = np.maximum(HOT, _HOTTEST * np.sqrt(np.maximum(importance, 0.0)))
    return np.asarray(np.where(hot, raised, np.minimum(importance, np.nextafter(HOT, 0.0))))


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_LONGEST].lower())


def _counted(text: str) -> Mapping[str, int]:
    """The words of a text; a page's is asked for again at once, the texts of its links with the next page's."""
    return _counted_link(text) if len(text) <= _LINK_TEXT else _counted_page(text[:_LONGEST])


_LINK_TEXT: Final = 256
_counted_link = lru_cache(4096)(lambda text: Counter(_words(text)))
_counted_page = lru_cache(2)(lambda text: Counter(_words(text)))


@lru_cache(256)
def _any_word_of(query: str) -> re.Pattern[str] | None:
    """Finds any of the query's words in a text in lower case; None: it has none."""
    words = sorted(set(_words(query)))
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, words))})(?![^\W_])") if words else None


def _idf(texts: int, texts_with: int) -> float:
    """Smoothed, so that a word of every text, and a word of none, has a weight."""
    return 1.0 + math.log((1 + texts) / (1 + texts_with))


def _length(weights: dict[str, float]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights.values()))
