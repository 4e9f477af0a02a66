"""Near-duplicates among many pages: sketches, bands that bring likely pairs together, mirrors.

A *sketch* is one byte of each component of a page's MinHash signature (`shingles.signature`): two unequal components
agree in it once in 256, for which `sketch_resemblance` allows. A *band* is ten bytes of it; pages that agree in one of
twelve bands are a candidate pair: at a resemblance of .9 all but 6 in 1000 pairs are, at .6 one in 14.

Source: Indyk, Motwani 1998 (banding); Li, König, *b-bit minwise hashing*, 2010; Cho, Shivakumar, Garcia-Molina,
*Finding replicated web collections*, 2000 (mirrors by their share of duplicates).
"""

from __future__ import annotations

__all__ = ["BANDS", "SKETCH_BYTES", "band_keys", "mirrors", "sketch_resemblance", "sketches"]

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.shingles import PERMUTATIONS, SIGNATURE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Sketches = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]

SKETCH_BYTES: Final = PERMUTATIONS
BANDS: Final = 12
_ROWS: Final = 10
_CHANCE: Final = 1.0 / 256.0
"""How often unequal components agree in their byte."""

_MIX: Final = np.random.default_rng(0x5EED).integers(0, 2**63, _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def sketches(signatures: Sequence[bytes]) -> Sketches:
    """(n, 128) sketches of signatures of `shingles.signature`; ValueError when one has another length."""
    if any(len(each) != SIGNATURE_BYTES for each in signatures):
        raise ValueError(f"a signature must have {SIGNATURE_BYTES} bytes")
    words = np.frombuffer(b"".join(signatures), dtype="<u4").reshape(len(signatures), PERMUTATIONS)
    # Least values of many are small: the upper byte of a product is even where their own is not.
    return ((words * np.uint32(0x9E3779B1)) >> np.uint32(24)).astype(np.uint8)


def band_keys(found: Sketches) -> npt.NDArray[np.uint64]:
    """(n, 12) 64-bit keys of the bands of sketches (n, 128); the number of the band is in its key."""
    rows = found[:, : BANDS * _ROWS].reshape(len(found), BANDS, _ROWS).astype(np.uint64)
    keys = (rows + np.uint64(1)) @ _MIX + np.arange(BANDS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(keys ^ (keys >> np.uint64(32)))


def sketch_resemblance(a: Sketches, b: Sketches) -> npt.NDArray[np.float64]:
    """(n,) estimated resemblance of pairs of sketches (n, 128), 0..1; standard error .027 at .9."""
    equal = np.count_nonzero(a == b, axis=1) / SKETCH_BYTES
    return np.asarray(np.maximum(0.0, (equal - _CHANCE) / (1.0 - _CHANCE)))


def mirrors(
    site: Ints, original: Ints, pages: Ints, *, share: float = 0.5, least: int = 10
) -> list[tuple[int, int, float]]:
    """Sites that copy another: (site, its original, share of its pages), greatest share first.

    Parameters
    ----------
    site, original : (d,) of each duplicate page its site, and the site of the page that it resembles
    pages : (sites,) pages of each site
    share, least : of a site's pages must resemble those of one other site, and so many at least
    """
    elsewhere = site != original
    pairs, counts = np.unique(np.stack([site[elsewhere], original[elsewhere]]), axis=1, return_counts=True)
    of_pages = counts / np.maximum(1, pages[pairs[0]])
    kept = np.flatnonzero((of_pages >= share) & (counts >= least))
    order = kept[np.argsort(-of_pages[kept], kind="stable")]
    return [(int(pairs[0, k]), int(pairs[1, k]), float(of_pages[k])) for k in order.tolist()]
