"""Sketches estimate the resemblance that the texts have; bands bring near-duplicates together."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.resemblance import (
    BANDS,
    SKETCH_BYTES,
    band_keys,
    exact_resemblance,
    is_mirror,
    sketch,
    sketch_resemblance,
)


def drawn_texts(changed: float, pairs: int, *, words: int = 800, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs of texts, the second with this share of its words changed."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(pairs):
        a = [f"Word{number}" for number in rng.integers(0, 50_000, words).tolist()]
        b = [f"other{number}" if rng.random() < changed else a[number] for number in range(words)]
        texts.append((" ".join(a), " ".join(b)))
    return texts


def sketched(texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(sketch(text) or b"" for text in texts), dtype=np.uint8).reshape(-1, SKETCH_BYTES)


@pytest.mark.parametrize(
    ("changed", "words"), [(0.0, 800), (0.01, 800), (0.03, 800), (0.2, 800), (1.0, 800), (0.03, 60)]
)
def test_a_sketch_estimates_the_resemblance_of_texts(changed: float, words: int) -> None:
    """Long texts, and short ones that leave most parts without a shingle of their own."""
    pairs = drawn_texts(changed, 60, words=words)
    found = sketch_resemblance(sketched([a for a, _ in pairs]), sketched([b for _, b in pairs]))
    errors = found - np.array([exact_resemblance(a, b) for a, b in pairs])
    assert np.abs(errors).max() <= (0.15 if words == 800 else 0.3)
    assert errors.mean() == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.95, 0.999, 1.0), (0.9, 0.97, 1.0), (0.6, 0.05, 0.2), (0.2, 0, 0.001)]
)
def test_pages_meet_in_a_band_the_more_they_resemble(share: float, least: float, most: float) -> None:
    rng = np.random.default_rng(2)
    a, other = (rng.integers(0, 256, (3000, SKETCH_BYTES), dtype=np.uint8) for _ in range(2))
    keys, others = band_keys(a), band_keys(np.where(rng.random(a.shape) < share, a, other))
    assert keys.shape == (3000, BANDS)
    assert least <= (keys == others).any(axis=1).mean() <= most


def test_case_and_white_space_are_no_difference_and_a_text_of_a_few_words_has_no_sketch() -> None:
    words = [f"word{number}" for number in range(40)]
    assert sketch(" ".join(words)) == sketch("\n\n" + "\t ".join(words).upper() + " ")
    assert sketch("You need to enable JavaScript to run this app.") is None
    assert sketch("") is None


def test_a_long_text_has_the_sketch_of_all_of_it() -> None:
    """Longer than one block; a change at its end is seen."""
    words = [f"word{number}" for number in range(40_000)]
    long, longer = " ".join(words), " ".join(words + [f"more{number}" for number in range(20_000)])
    found = sketch_resemblance(sketched([long]), sketched([longer]))[0]
    assert found == pytest.approx(2 / 3, abs=0.12)


def test_a_mirror_is_a_site_half_of_whose_pages_are_another_sites() -> None:
    assert is_mirror(80, 100)
    assert not is_mirror(15, 100)
    assert not is_mirror(5, 5)
