"""Sketches of texts: 128 bytes from which the resemblance of two texts is estimated.

A sketch is a MinHash of datasketch (128 permutations, `affine32`) over the shingles of a text, its runs of four tokens.
The lowest byte of each hash value is kept. `sketch_resemblance` counts the equal bytes of two sketches, and corrects
for chance matches (one in 256). Of a long text, about 512 shingles are used: those whose hashes are multiples of a
power of two. If the number of shingles of a text is near the limit between two powers, the text has two sketches
(`sketches`). A *band* is eight successive bytes of a sketch. Two pages are candidates if at least one of their eight
bands is equal. Of the pairs with resemblance .9, 99 % are candidates. Of the pairs with resemblance .6, one in eight is
a candidate.

Only ASCII letters are lower-cased, and only ASCII white space separates tokens.

Source: Broder, *On the resemblance and containment of documents*, 1997 (shingles, samples modulo m); Li, König, *b-bit
minwise hashing*, 2010; Indyk, Motwani, *Approximate nearest neighbors*, 1998 (bands).

The import of scipy by datasketch takes 0.3 s, so it is delayed until scipy is used.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from xxhash import xxh3_64_intdigest

from webfountain.core.shingles import BAND_MIX, distinct, mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Sketches = npt.NDArray[np.uint8]
    Hashes = npt.NDArray[np.uint64]
    Words = npt.NDArray[np.uint32]
    from datasketch import MinHash

__all__ = [
    "BANDS",
    "MOST_SHINGLES",
    "ROWS",
    "SKETCH_BYTES",
    "Hashes",
    "Sketches",
    "Words",
    "band_keys",
    "minhash_class",
    "most_resemblance",
    "sketch",
    "sketch_form",
    "sketch_resemblance",
    "sketch_rows",
    "sketches",
]

SKETCH_BYTES: Final = 128
"""Number of permutations of a MinHash, one byte each."""
BANDS: Final = 8
ROWS: Final = 8
"""Number of bytes per band: the choice of datasketch for `MinHashLSH(threshold=0.7, num_perm=64)`."""
LEAST_SHINGLES: Final = 24
"""A text with fewer shingles than this has no sketch. Short texts, like "please enable JavaScript", are the same on
many unrelated pages.
"""
MOST_SHINGLES: Final = 512
"""A text with more shingles than this is sampled."""
_NEAR: Final = 1.125
"""Two texts are compared in a common sample if their numbers of shingles differ by at most this factor."""
_CHANCE: Final = 1.0 / 256.0
"""Probability that two different hash values have the same lowest byte."""
_SKETCH_TOKENS: Final = 4
_SPACE: Final = 32
"""Largest value of a byte that separates tokens."""
_BLOCK: Final = 1 << 16
_LOWER: Final = np.uint64(0x2020202020202020)
"""In each of eight bytes, the bit that differs between small and capital ASCII letters."""
_FIRST_BYTES: Final = np.array([(1 << 8 * many) - 1 for many in range(9)], dtype=np.uint64)
_SKETCH_SHIFT: Final = np.uint64(32)
_MOST_AT_ONCE: Final = 640
"""If a sample has more hashes than this, repeated hashes are dropped before the sketch is computed."""
_GREATEST: Final = np.uint32((1 << 32) - 1)
"""Hash value of an empty set."""
_NUMBERS: Final = np.arange(BANDS, dtype=np.uint64) * BAND_MIX[0]
_INTEGRATION: Final = "scipy.integrate"


def sketch(text: str, key: int = 0) -> bytes | None:
    """Return the sketch of a text; None if the text has fewer than `LEAST_SHINGLES` shingles.

    `key` (64 bits) is the secret key of the token hashes.
    """
    return next(iter(sketches(text, key)), None)


def sketches(text: str, key: int = 0) -> list[bytes]:
    """Return the sketch of a text, or two if its number of shingles is near a limit between two sampling rates.

    The caller stores only the first sketch, but compares other texts with all sketches of the list. The list is empty
    if `sketch` returns None.
    """
    found = _shingles(text.encode("utf-8", "surrogatepass"), _keys_of_tokens(key))
    many = len(found)
    if many < LEAST_SHINGLES:
        return []
    moduli = dict.fromkeys(map(_modulus, (many, int(many / _NEAR), int(many * _NEAR))))
    return [_signature(found.compress(found & np.uint32(modulus - 1) == 0)) for modulus in moduli]


def _modulus(shingles: int) -> int:
    """Return the power of two by which a text with `shingles` shingles is sampled."""
    return 1 << ((shingles - 1) // MOST_SHINGLES).bit_length()


def _signature(hashes: Words) -> bytes:
    """Return the lowest bytes of a MinHash, equal to those of `MinHash.update_batch` (a test compares them)."""
    multipliers, offsets = _permutations()
    # One array with a long row per permutation: `update_batch` makes two arrays of short rows, which takes longer.
    values = multipliers * _finalized(distinct(hashes) if len(hashes) > _MOST_AT_ONCE else hashes)
    values += offsets
    return bytes(values.min(axis=1, initial=_GREATEST).astype(np.uint8))


def _finalized(hashes: Words) -> Words:
    """Return the hashes mixed by MurmurHash3's finalizer (Appleby), the first step of the scheme `affine32`."""
    found = hashes ^ (hashes >> np.uint32(16))
    found *= np.uint32(0x85EBCA6B)
    found ^= found >> np.uint32(13)
    found *= np.uint32(0xC2B2AE35)
    found ^= found >> np.uint32(16)
    return found


@cache
def _permutations() -> tuple[Words, Words]:
    """Return the factors and summands (n, 1) of the permutations."""
    multipliers, offsets = minhash_class()(SKETCH_BYTES, scheme="affine32").permutations
    return multipliers.reshape(-1, 1), offsets.reshape(-1, 1)


@cache
def sketch_form(key: int = 0) -> str:
    """Return a name for the format of sketches and band keys."""
    drawn = sketch(" ".join(f"{word}{number}" for number in range(400) for word in ("Form", "of", "the", "été")), key)
    assert drawn is not None
    keys = band_keys(np.frombuffer(drawn, dtype=np.uint8).reshape(1, -1))
    return f"{xxh3_64_intdigest(drawn + keys.tobytes()):016x}"


def band_keys(found: Sketches) -> Hashes:
    """Return the (n, 8) 64-bit keys of the bands of (n, 128) sketches."""
    rows = np.ascontiguousarray(found[:, : BANDS * ROWS]).view("<u8")
    return mixed(rows ^ _NUMBERS)


def sketch_resemblance(a: Sketches, b: Sketches) -> npt.NDArray[np.float64]:
    """Return the (n,) estimated resemblances, 0..1, of pairs of (n, 128) sketches. At a resemblance of .9, the standard
    error is .03.
    """
    equal = np.count_nonzero(a == b, axis=1) / SKETCH_BYTES
    return np.asarray(np.maximum(0.0, (equal - _CHANCE) / (1.0 - _CHANCE)))


def sketch_rows(drawn: Sequence[bytes]) -> Sketches:
    """Return sketches as the rows of an array (n, 128)."""
    return np.frombuffer(b"".join(drawn), dtype=np.uint8).reshape(-1, SKETCH_BYTES)


def most_resemblance(drawn: Sequence[bytes], others: Sketches) -> npt.NDArray[np.float64]:
    """Return the (n,) estimated resemblances of one text to each of (n, 128) sketches.

    `drawn` are the one or two sketches of the text; the more similar one counts.
    """
    return np.asarray(np.max([sketch_resemblance(row, others) for row in sketch_rows(drawn)], axis=0))


@cache
def _keys_of_tokens(key: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    first, second, third = mixed(np.array([key], dtype=np.uint64) * BAND_MIX[:3]).tolist()
    return np.uint64(first), np.uint64(second), np.uint64(third)


def _shingles(data: bytes, key: tuple[np.uint64, np.uint64, np.uint64]) -> Words:
    """Return the 32-bit hashes of all runs of four tokens, with repeats."""
    tokens = _token_hashes(data, key)
    if len(tokens) < _SKETCH_TOKENS:
        return np.empty(0, dtype=np.uint32)
    # First combine neighbouring tokens, then pairs that are two tokens apart. So each of the four tokens gets its own
    # factor.
    pairs = tokens[:-1] * BAND_MIX[0]
    pairs += tokens[1:]
    runs = pairs[:-2] * BAND_MIX[2]
    runs += pairs[2:]
    runs ^= runs >> _SKETCH_SHIFT
    runs *= BAND_MIX[3]
    return np.asarray((runs >> _SKETCH_SHIFT).astype(np.uint32))


def _token_hashes(data: bytes, key: tuple[np.uint64, np.uint64, np.uint64]) -> Hashes:
    """Return the hashes of the tokens, block by block for the processor's cache. A token is cut at the end of a
    block.
    """
    if len(data) <= _BLOCK:
        return _tokens_of(data, key)
    return np.concatenate([_tokens_of(data[at : at + _BLOCK], key) for at in range(0, len(data), _BLOCK)])


def _tokens_of(block: bytes, key: tuple[np.uint64, np.uint64, np.uint64]) -> Hashes:
    """Return a hash of each token, from its first and last eight bytes and its length.

    A token of more than 16 bytes is hashed as a whole by xxh3.
    """
    buffer = b" " + block + b" " * 8
    divides = np.frombuffer(buffer, dtype=np.uint8) <= _SPACE
    edges = (divides[1:] ^ divides[:-1]).nonzero()[0]
    before, last = edges[::2], edges[1::2]
    length = last - before
    # For each byte, the eight bytes that start there. They are copied, because unaligned reads are slow.
    eights = np.ndarray((len(buffer) - 7,), dtype="<u8", buffer=buffer, strides=(1,)).copy()
    hashes = eights.take(before + 1)
    hashes |= _LOWER
    hashes &= _FIRST_BYTES.take(length, mode="clip")
    hashes ^= key[
        0
    ]  # The key must enter before any product. Otherwise two tokens would collide under every key or under no key.
    hashes *= BAND_MIX[1]
    longer = (length > 8).nonzero()[0]
    lengths = length.take(longer)
    ends = eights.take(last.take(longer) - 7)
    ends |= _LOWER
    ends ^= key[1]
    ends *= BAND_MIX[2]
    ends += lengths.astype(np.uint64)
    ends ^= ends >> _SKETCH_SHIFT
    hashes[longer] += ends
    for place in longer[lengths > 16].tolist():  # few tokens are that long, except in scripts without spaces
        hashes[place] = xxh3_64_intdigest(buffer[before[place] + 1 : last[place] + 1].lower(), int(key[2]))
    hashes ^= key[2]
    hashes *= BAND_MIX[3]
    return np.asarray(hashes ^ (hashes >> _SKETCH_SHIFT))


@cache
def minhash_class() -> type[MinHash]:
    """Return `datasketch.MinHash`, imported on the first call."""
    if "datasketch" not in sys.modules and _INTEGRATION not in sys.modules:
        standing_in = ModuleType(_INTEGRATION)
        vars(standing_in)["quad"] = _quad
        sys.modules[_INTEGRATION] = standing_in
        try:
            importlib.import_module("datasketch")
        finally:
            del sys.modules[_INTEGRATION]
    from datasketch import MinHash  # noqa: PLC0415

    found: type[MinHash] = MinHash
    return found


def _quad(*args: Any, **kwargs: Any) -> Any:
    from scipy.integrate import quad  # noqa: PLC0415  (0.3 s)

    return quad(*args, **kwargs)
