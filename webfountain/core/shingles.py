"""Shingles, which show how much two texts have in common.

A text is lower-cased, split at white space and cut into all runs of four tokens. Each run is hashed to 64 bits. The
resemblance of two texts is |A ∩ B| / |A ∪ B|, where A and B are their sets of shingles.

Source: Broder, *On the resemblance and containment of documents*, 1997 (resemblance, shingles, min-wise sampling);
Edwards 2001, section 2 (shingles as the test of a non-trivial change).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

__all__ = ["BAND_MIX", "Hashes", "distinct", "exact_resemblance", "mixed", "shingles"]

_Number = TypeVar("_Number", bound="np.integer[Any]")

_TOKENS = 4
# Odd multipliers (those of splitmix64) make the mix depend on the position. The uint64 arithmetic wraps on purpose.
BAND_MIX: Final = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], dtype=np.uint64
)
_SHIFT = np.uint64(32)


def shingles(text: str) -> npt.NDArray[np.uint64]:
    """Return the (max(1, tokens - 3),) 64-bit hashes of a text's runs of four tokens, in order, with repeats.

    A text with one to three tokens is one shingle; an empty text has none.
    """
    words = text.lower().split()
    if not words:
        return np.empty(0, dtype=np.uint64)
    # Encoding the whole text once is faster than once per token. str.split handles all white space of Unicode.
    tokens = " ".join(words).encode("utf-8", "surrogatepass").split(b" ")
    hashes = np.fromiter(map(xxh3_64_intdigest, tokens), dtype=np.uint64, count=len(tokens))
    width = max(1, len(tokens) - _TOKENS + 1)
    mixed = hashes[:width] * BAND_MIX[0]
    for place in range(1, min(_TOKENS, len(tokens))):
        mixed ^= mixed >> _SHIFT
        mixed += hashes[place : place + width] if len(tokens) >= _TOKENS else hashes[place : place + 1]
        mixed *= BAND_MIX[place]
    return np.asarray(mixed ^ (mixed >> _SHIFT))


def exact_resemblance(text_a: str, text_b: str) -> float:
    """Return the Jaccard resemblance of the shingle sets of two texts, 0..1. Two empty texts have resemblance 1."""
    a, b = distinct(shingles(text_a)), distinct(shingles(text_b))
    if not len(a) and not len(b):
        return 1.0
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


def distinct(numbers: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return the distinct values of (n,) numbers, ascending.

    Sorting is much faster than `numpy.unique` of numpy 2.4.
    """
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def mixed(numbers: Hashes) -> Hashes:
    """Return numbers spread evenly over 64 bits (finalizer of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * BAND_MIX[1]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * BAND_MIX[2]
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))
