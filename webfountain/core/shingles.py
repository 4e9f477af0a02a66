"""Shingles: how much of a text is still there in its next version.

A text is lower-cased, split on white space and cut into all runs of four tokens, each a 64-bit hash; the
resemblance of two texts is |A n B| / |A u B|. `resemblance` estimates it from two 512-byte MinHash signatures, so
that near duplicates are found without the texts; `exact_resemblance` needs both texts. Which text of a page counts
is decided in `repository.text`, what a resemblance means in `change`.

Source: Broder, *On the resemblance and containment of documents*, 1997 (resemblance, shingles, min-wise sampling);
Edwards 2001, section 2, names shingles as the judge of a non-trivial change.
"""

from __future__ import annotations

__all__ = [
    "PERMUTATIONS",
    "SIGNATURE_BYTES",
    "exact_resemblance",
    "resemblance",
    "resemblance_near",
    "shingles",
    "signature",
]

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    import numpy.typing as npt

PERMUTATIONS = 128
"""Components of a signature: the standard error of an estimate is sqrt(J(1-J)/128), .019 at J = .95."""

SIGNATURE_BYTES = 4 * PERMUTATIONS
"""A signature is 128 little-endian uint32 words."""

_TOKENS = 4
# Odd multipliers (splitmix64's) make a position-dependent mix; uint64 arithmetic is meant to wrap around here.
_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], dtype=np.uint64)
_SHIFT = np.uint64(32)
_MARGIN = 0.1
_BATCH = 16_384


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
    """Jaccard resemblance of the shingle sets of two texts, 0..1; two empty texts resemble each other fully."""
    return _jaccard(shingles(text_a), shingles(text_b))


def signature(text: str) -> bytes:
    """MinHash signature of a text: `SIGNATURE_BYTES` bytes, comparable with any other made by this function.

    All shingles enter. Keeping one in four by modulo was tried: a third less CPU, but on the versions of real pages
    98.8 % instead of 99.8 % of the verdicts farther than .05 from the threshold were right.
    """
    return _signature(shingles(text))


def resemblance(signature_a: bytes, signature_b: bytes) -> float:
    """Share of equal components of two signatures: an unbiased estimate of the resemblance, 0..1.

    Raises ValueError when one of them is no signature (another length).
    """
    if len(signature_a) != SIGNATURE_BYTES or len(signature_b) != SIGNATURE_BYTES:
        raise ValueError(
            f"signatures of {len(signature_a)} and {len(signature_b)} bytes; both must have {SIGNATURE_BYTES}"
        )
    a, b = np.frombuffer(signature_a, dtype="<u4"), np.frombuffer(signature_b, dtype="<u4")
    return float(np.count_nonzero(a == b)) / PERMUTATIONS


def resemblance_near(text_a: str, text_b: str, threshold: float) -> float:
    """Resemblance of two texts, exact where that decides: MinHash first, the sets when it is within .1 of `threshold`.

    .1 is three standard errors of the estimate at J = .85, so the answer is on the right side of any threshold
    near 1; the shingles are made once, which leaves the exact count a tenth of the whole cost.
    """
    a, b = shingles(text_a), shingles(text_b)
    if max(len(a), len(b)) > _BATCH:  # of that many sorting costs less than drawing, and a fraction of the memory
        return _jaccard(a, b)
    estimate = resemblance(_signature(a), _signature(b))
    return estimate if abs(estimate - threshold) > _MARGIN else _jaccard(a, b)


def _jaccard(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> float:
    a, b = np.unique(a), np.unique(b)
    if not len(a) and not len(b):
        return 1.0
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


def _signature(hashes: npt.NDArray[np.uint64]) -> bytes:
    minhash = _prototype().copy()
    # datasketch's 32-bit scheme takes 32-bit integers only: the high word, the better mixed one.
    for at in range(0, len(hashes), _BATCH):  # it takes 1 kB a shingle, and a text may have half a million
        minhash.update_batch((hashes[at : at + _BATCH] >> _SHIFT).tolist())
    return bytes(minhash.hashvalues.astype("<u4").tobytes())


@cache
def _prototype() -> Any:
    """The empty MinHash: its permutations cost 2 ms to draw and are shared by all copies.

    `affine32` is datasketch's bijective scheme; the older one multiplies 61-bit by 32-bit numbers and wraps in
    uint64, which biases estimates.
    """
    from datasketch import MinHash  # noqa: PLC0415  (0.1 s to import, needed from the first changed page on)

    return MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=int, scheme="affine32")
