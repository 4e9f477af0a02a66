"""Sketches estimate the resemblance that the texts have; bands bring near-duplicates together."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.near_duplicates import BANDS, band_keys, mirrors, sketch_resemblance, sketches
from webfountain.core.shingles import PERMUTATIONS, resemblance


def drawn_pairs(share: float, pairs: int, seed: int) -> tuple[list[bytes], list[bytes]]:
    """Signatures of pairs of pages of which this share of the shingles is common."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 20, (pairs, PERMUTATIONS), dtype=np.uint32)
    other = rng.integers(0, 1 << 20, a.shape, dtype=np.uint32)
    b = np.where(rng.random(a.shape) < share, a, other)
    return [row.astype("<u4").tobytes() for row in a], [row.astype("<u4").tobytes() for row in b]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_a_sketch_tells_what_the_signature_tells(share: float) -> None:
    a, b = drawn_pairs(share, 300, 1)
    found = sketch_resemblance(sketches(a), sketches(b))
    truth = np.array([resemblance(*pair) for pair in zip(a, b, strict=True)])
    assert np.abs(found - truth).max() <= 0.04
    assert found.mean() == pytest.approx(truth.mean(), abs=0.004)


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.95, 0.999, 1.0), (0.9, 0.98, 1.0), (0.6, 0.03, 0.12), (0.2, 0.0, 0.001)]
)
def test_pages_meet_in_a_band_the_more_they_resemble(share: float, least: float, most: float) -> None:
    a, b = (band_keys(sketches(each)) for each in drawn_pairs(share, 3000, 2))
    assert a.shape == (3000, BANDS)
    assert least <= (a == b).any(axis=1).mean() <= most


def test_what_is_no_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="512 bytes"):
        sketches([b"short"])
    assert band_keys(sketches([])).shape == (0, BANDS)


def test_a_mirror_is_a_site_most_of_whose_pages_are_another_sites() -> None:
    """Site 1 copies site 0 (80 of 100 pages); site 2 has a few of them; site 3 repeats itself."""
    site = np.array([1] * 80 + [2] * 15 + [3] * 50)
    original = np.array([0] * 95 + [3] * 50)
    assert mirrors(site, original, np.array([200, 100, 100, 60])) == [(1, 0, 0.8)]
