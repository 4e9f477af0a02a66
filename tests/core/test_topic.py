"""Similarity of a text to a query: tf-idf, idf from what was seen (Cho 1998, section 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.resemblance import Topics

WORDS = st.lists(st.sampled_from(["stream", "processing", "river", "the", "and"]), max_size=12).map(" ".join)


def test_the_same_words_are_wholly_similar_and_none_in_common_not_at_all() -> None:
    topics = Topics()
    assert topics.similarity("stream processing", "Stream, processing!") == pytest.approx(1.0)
    assert topics.similarity("stream processing", "a river runs") == 0.0
    assert topics.similarity("stream", "") == 0.0


def test_a_rare_word_in_common_counts_for_more_than_one_that_every_text_has() -> None:
    topics = Topics()
    before = topics.similarity("the watermark", "the river"), topics.similarity("the watermark", "watermark river")
    assert before[0] == pytest.approx(before[1])
    for _ in range(50):
        topics.learn("the river and the hill")
    assert topics.similarity("the watermark", "the river") < 0.25
    assert topics.similarity("the watermark", "watermark river") > 0.5


def test_a_text_that_speaks_of_the_topic_more_often_is_more_similar() -> None:
    topics = Topics()
    once = topics.similarity("flink", "flink runs on a cluster of many small machines")
    often = topics.similarity("flink", "flink runs flink jobs on a flink cluster of many machines")
    assert 0 < once < often < 1


@given(WORDS, WORDS, st.lists(WORDS, max_size=5))
def test_a_similarity_is_from_0_to_1_and_the_same_both_ways(one: str, other: str, seen: list[str]) -> None:
    topics = Topics()
    for text in seen:
        topics.learn(text)
    found = topics.similarity(one, other)
    assert 0.0 <= found <= 1.0
    assert found == pytest.approx(topics.similarity(other, one))


def test_words_are_forgotten_when_there_are_too_many_the_rarest_first() -> None:
    topics = Topics(most_words=100)
    for number in range(200):
        topics.learn(f"common word{number}")
    assert topics.similarity("common", "common x1 x2") < topics.similarity("rare", "rare x1 x2")
