"""Shingles and signatures against a plain set of tuples, and on the real versions of real pages."""

from __future__ import annotations

import itertools
import json
import random
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webfountain.core.resemblance import (
    SIGNATURE_BYTES,
    exact_resemblance,
    resemblance,
    shingles,
    signature,
)
from webfountain.formats.document import tree_of, visible_text

if TYPE_CHECKING:
    from pathlib import Path

SIGNATURE_START = "d13614023d4ece51"
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


@settings(deadline=None)  # the first signature imports datasketch
@given(texts)
def test_case_and_white_space_do_not_count(text: str) -> None:
    assert signature(text) == signature("\n\t" + text.upper().lower().replace(" ", " \u00a0 "))


def test_order_counts_and_a_short_text_is_one_shingle() -> None:
    assert exact_resemblance("a b c d", "d c b a") == 0.0
    assert len(shingles("a b c")) == len(shingles("a b c d")) == 1
    assert len(shingles("")) == 0
    assert exact_resemblance("a b c", "a b c c") == 0.0


def test_signatures_estimate_the_resemblance_without_bias() -> None:
    rng = random.Random(7)
    errors = []
    for _ in range(60):
        words = [str(rng.randrange(10**9)) for _ in range(300)]
        other = [word if rng.random() < 0.97 else "x" + word for word in words]
        a, b = " ".join(words), " ".join(other)
        errors.append(resemblance(signature(a), signature(b)) - exact_resemblance(a, b))
    assert abs(sum(errors) / 60) < 0.01
    assert max(map(abs, errors)) < 4 * 0.044


def test_a_signature_has_a_fixed_size_and_does_not_depend_on_the_process() -> None:
    assert len(signature("")) == len(signature("a b c d e")) == SIGNATURE_BYTES
    assert signature("the quick brown fox jumps")[:8].hex() == SIGNATURE_START


def test_what_is_no_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="3 and 512 bytes"):
        resemblance(b"abc", signature("a"))


@pytest.mark.untraced
@pytest.mark.shared
def test_on_real_versions_the_estimate_is_close_and_the_verdicts_are_right(shared_data: Path) -> None:
    """The acceptance line of issue 2, on every fourth pair of consecutive versions."""
    with zipfile.ZipFile(shared_data / "timeweb" / "timeweb.zip") as web:
        index = json.loads(web.read("index.json"))
        versions = [history for site in index.values() for history in site.values()]
        pairs = [(a, b) for v in versions for (_, a), (_, b) in itertools.pairwise(v) if a and b][::4]
        text = {digest: visible_text(tree_of(web.read(f"blobs/{digest}"), None)) for p in pairs for digest in p}
    exact = [exact_resemblance(text[a], text[b]) for a, b in pairs]
    estimate = [resemblance(signature(text[a]), signature(text[b])) for a, b in pairs]
    assert sum(abs(x - e) <= 0.05 for x, e in zip(exact, estimate, strict=True)) >= 0.95 * len(pairs)
    far = [(x, e) for x, e in zip(exact, estimate, strict=True) if abs(x - 0.95) > 0.05]
    assert sum((x < 0.95) == (e < 0.95) for x, e in far) >= 0.99 * len(far)
