"""Sketches estimate the resemblance that the texts have; bands bring near-duplicates together."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH

from tests.core.colliding_texts import colliding
from webfountain.core import sketch as sketch_module
from webfountain.core.shingles import exact_resemblance
from webfountain.core.sketch import (
    BANDS,
    MOST_SHINGLES,
    ROWS,
    SKETCH_BYTES,
    band_keys,
    most_resemblance,
    sketch,
    sketch_resemblance,
    sketch_rows,
    sketches,
)
from webfountain.duplicates.mirrors import is_mirror

ALONE = """
import sys
from webfountain.core.sketch import sketch
assert sketch(" ".join(f"word{number}" for number in range(100)))
assert "datasketch" in sys.modules and "scipy.integrate" not in sys.modules
from datasketch import MinHashLSH
index = MinHashLSH(threshold=0.7, num_perm=64)
assert (index.b, index.r) == (8, 8)
assert sys.modules["scipy.integrate"].__file__
"""


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


@pytest.mark.parametrize("words", [40, 500])
def test_a_sketch_is_the_lowest_bytes_of_the_minhash_that_datasketch_makes_of_the_shingles(words: int) -> None:
    """Given to it one at a time, by its documented way."""
    [(text, _)] = drawn_texts(0.0, 1, words=words)
    minhash = MinHash(num_perm=SKETCH_BYTES, hashfunc=int)
    for value in sketch_module._shingles(text.encode(), sketch_module._keys_of_tokens(0)):
        minhash.update(value)
    assert sketch(text) == bytes(int(value) & 255 for value in minhash.hashvalues)


def test_bands_are_those_that_datasketch_chooses() -> None:
    chosen = MinHashLSH(threshold=0.7, num_perm=64)
    assert (chosen.b, chosen.r) == (BANDS, ROWS)


@pytest.mark.parametrize("step", [1, 2, 4])
def test_texts_on_both_sides_of_a_step_of_the_sample_are_compared_by_a_sample_of_both(step: int) -> None:
    """Where one has a few shingles more than `MOST_SHINGLES`, or twice or four times as many, and the other fewer."""
    few = int(MOST_SHINGLES * step * 0.97)
    errors = []
    for long, _ in drawn_texts(0.0, 20, words=int(few * 1.07)):
        short = " ".join(long.split()[:few])
        true = exact_resemblance(long, short)
        for a, b in ((long, short), (short, long)):
            drawn = sketches(a)
            assert len(drawn) == 2
            assert drawn[0] == sketch(a)
            errors.append(most_resemblance(drawn, sketch_rows([sketch(b) or b""]))[0] - true)
    assert np.abs(errors).max() < 0.15
    assert np.mean(errors) == pytest.approx(0.0, abs=0.03)


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


def test_a_text_written_to_match_a_sketch_does_not_match_it_under_another_key() -> None:
    """Who does not know a store's key cannot write a page that is taken for another by its sketch."""
    [(text, _)] = drawn_texts(0.0, 1)
    other = colliding(text)
    assert exact_resemblance(text, other) == 0.0

    def alike(key: int) -> float:
        drawn = [np.frombuffer(sketch(each, key) or b"", dtype=np.uint8)[None] for each in (text, other)]
        return float(sketch_resemblance(*drawn)[0])

    assert alike(0) > 0.6, "the attack works where the key is known"
    assert max(alike(key) for key in (1, 2, 2**63, 0xFEED)) < 0.05


@pytest.mark.parametrize("changed", [0.0, 0.01, 0.03])
def test_sketches_of_one_key_compare_as_those_without(changed: float) -> None:
    pairs = drawn_texts(changed, 40)
    for key in (0, 2**64 - 1):
        drawn = [[np.frombuffer(sketch(each, key) or b"", dtype=np.uint8) for each in pair] for pair in pairs]
        found = sketch_resemblance(np.stack([a for a, _ in drawn]), np.stack([b for _, b in drawn]))
        errors = found - np.array([exact_resemblance(a, b) for a, b in pairs])
        assert errors.mean() == pytest.approx(0.0, abs=0.02)


def test_a_sketch_does_not_import_scipy_integrate_and_datasketch_still_chooses_its_bands() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)
