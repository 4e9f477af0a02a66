"""A text that somebody writes so that its sketch, under a key that is known, is that of another text."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core import sketch

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["colliding"]

_PIECE = 5000


def colliding(text: str, *, key: int = 0, tries: int = 900_000) -> str:
    """Return other words with nearly the sketch of a text: for each permutation four words of a small, fitting value.

    So few words that no sample is taken of them.
    """
    wanted = np.frombuffer(sketch.sketch(text, key) or b"", dtype=np.uint8)
    rng = random.Random(1)
    words = [f"{rng.getrandbits(32):x}" for _ in range(tries)]
    # In pieces of one block each: a longer text is cut within a word.
    pieces = [words[first : first + _PIECE] for first in range(0, tries, _PIECE)]
    keys = sketch._keys_of_tokens(key)
    best = np.full(sketch.SKETCH_BYTES, np.iinfo(np.uint32).max, dtype=np.uint32)
    places = np.full(sketch.SKETCH_BYTES, -1)
    for nth, piece in enumerate(pieces):
        values = _permuted(sketch._shingles(" ".join(piece).encode(), keys))
        values[(values & np.uint32(255)) != wanted] = np.iinfo(np.uint32).max
        at = values.argmin(axis=0)
        least = values[at, np.arange(sketch.SKETCH_BYTES)]
        places[least < best] = at[least < best] + nth * _PIECE
        best = np.minimum(best, least)
    blocks = [" ".join(words[place : place + 4]) for place in places.tolist() if place >= 0]
    # Runs across two blocks spoil some values: other orders are tried.
    most, steps = _agreeing(blocks, wanted, key), 1500
    for _ in range(steps):
        one, other = rng.randrange(len(blocks)), rng.randrange(len(blocks))
        blocks[one], blocks[other] = blocks[other], blocks[one]
        now = _agreeing(blocks, wanted, key)
        if now < most:
            blocks[one], blocks[other] = blocks[other], blocks[one]
        most = max(most, now)
    return " ".join(blocks)


def _permuted(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """(n, 128) what each permutation makes of each hash: the hash values of a MinHash of that one alone."""
    from datasketch.minhash import _fmix

    a, b = (each.ravel() for each in sketch._permutations())
    return np.asarray(_fmix(hashes.reshape(-1, 1), 32) * a + b, dtype=np.uint32)


def _agreeing(blocks: list[str], wanted: npt.NDArray[np.uint8], key: int) -> int:
    drawn = sketch.sketch(" ".join(blocks), key)
    return int((np.frombuffer(drawn or b"", dtype=np.uint8) == wanted).sum())
