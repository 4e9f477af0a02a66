"""Shingles against a plain set of tuples, sketches against MinHash, and both on the real versions of real pages."""

from __future__ import annotations

import itertools
import json
import random
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.shingles import exact_resemblance, shingles
from webfountain.core.sketch import SKETCH_BYTES, sketch, sketch_resemblance
from webfountain.formats.document import tree_of, visible_text

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

texts = st.lists(st.sampled_from(["a", "b", "c", "d", "é", "Ω", "漢", "\ud800"]), max_size=30).map(" ".join)


def reference(text_a: str, text_b: str) -> float:
    def grams(text: str) -> set[tuple[str, ...]]:
        tokens = text.lower().split()
        return {tuple(tokens[i : i + 4]) for i in range(max(1, len(tokens) - 3))} if tokens else set()

    a, b = grams(text_a), grams(text_b)
    return len(a & b) / len(a | b) if a | b else 1.0


@given(texts, texts)
def test_the_exact_resemblance_is_that_of_the_sets_of_four_tokens(text_a: str, text_b: str) -> None:
    assert exact_resemblance(text_a, text_b) == reference(text_a, text_b)


@given(texts)
def test_case_and_white_space_do_not_count(text: str) -> None:
    assert shingles(text).tolist() == shingles("\n\t" + text.upper().lower().replace(" ", " \u00a0 ")).tolist()


def test_order_counts_and_a_short_text_is_one_shingle() -> None:
    assert exact_resemblance("a b c d", "d c b a") == 0.0
    assert len(shingles("a b c")) == len(shingles("a b c d")) == 1
    assert len(shingles("")) == 0
    assert exact_resemblance("a b c", "a b c c") == 0.0


def estimates(pairs: list[tuple[str, str]]) -> npt.NDArray[np.float64]:
    both = [b"".join(sketch(text) or b"" for text in side) for side in zip(*pairs, strict=True)]
    old, new = (np.frombuffer(side, dtype=np.uint8).reshape(len(pairs), SKETCH_BYTES) for side in both)
    return sketch_resemblance(old, new)


def minhash(text: str) -> MinHash:
    """128 permutations of all shingles, by the library that others use."""
    found = MinHash(num_perm=128, seed=1, hashfunc=int, scheme="affine32")
    found.update_batch((shingles(text) >> np.uint64(32)).tolist())
    return found


def test_a_sketch_estimates_about_as_well_as_minhash_with_four_times_the_bytes() -> None:
    rng = random.Random(7)
    pairs = []
    for _ in range(60):
        words = [str(rng.randrange(10**9)) for _ in range(300)]
        pairs.append((" ".join(words), " ".join(word if rng.random() < 0.97 else "x" + word for word in words)))
    exact = np.array([exact_resemblance(a, b) for a, b in pairs])
    errors = estimates(pairs) - exact
    peers = np.array([minhash(a).jaccard(minhash(b)) for a, b in pairs]) - exact
    assert abs(errors.mean()) < 0.01
    assert np.sqrt((errors**2).mean()) < 1.4 * np.sqrt((peers**2).mean())


@pytest.mark.untraced
@pytest.mark.shared
def test_on_real_versions_the_estimate_is_close_and_the_verdicts_are_right(shared_data: Path) -> None:
    """Every fourth pair of consecutive versions."""
    with zipfile.ZipFile(shared_data / "timeweb" / "timeweb.zip") as web:
        index = json.loads(web.read("index.json"))
        versions = [history for site in index.values() for history in site.values()]
        found = [(a, b) for v in versions for (_, a), (_, b) in itertools.pairwise(v) if a and b][::4]
        text = {digest: visible_text(tree_of(web.read(f"blobs/{digest}"), None)) for p in found for digest in p}
    pairs = [(text[a], text[b]) for a, b in found]
    exact = np.array([exact_resemblance(a, b) for a, b in pairs])
    estimate = estimates(pairs)
    assert (np.abs(exact - estimate) <= 0.05).mean() >= 0.95
    is_clear = np.abs(exact - 0.95) > 0.05
    assert ((exact < 0.95) == (estimate < 0.95))[is_clear].mean() >= 0.99
