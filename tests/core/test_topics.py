"""Similarity of a text to a query: tf-idf, idf from what was seen (Cho 1998, section 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.topics import Topics, WordCounts

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


def taught(*texts: str, most_shared: int = 1000, most_texts: int = 1000) -> Topics:
    topics = Topics(most_shared=most_shared, most_texts=most_texts)
    for text in texts:
        topics.learn(text)
    return topics


def test_what_several_have_seen_is_added_up_and_each_counts_once_however_often_they_exchange() -> None:
    one, other = taught("a river", "a river"), taught("river stream")
    published = WordCounts()
    for topics in (one, other, one, other, one):
        published = topics.exchange(published)
    one.learn("stream")
    assert other.exchange(one.exchange(published)) == WordCounts(4, {"river": 3, "stream": 2})
    assert not one.has_learned


def test_words_that_are_lost_when_two_publish_at_once_are_counted_again() -> None:
    one, other = taught("river"), taught("stream", "stream")
    lost, published = one.exchange(WordCounts()), other.exchange(WordCounts())
    assert lost.texts_with == {"river": 1}
    assert one.exchange(published).texts_with == {"river": 1, "stream": 2}


def test_the_next_crawl_goes_on_with_what_was_learned() -> None:
    common = ["the river and the hill"] * 50
    before, after = taught(*common), Topics()
    after.exchange(before.exchange(WordCounts()))
    asked = ("the watermark", "the river")
    assert after.similarity(*asked) == before.similarity(*asked) < 0.25 < Topics().similarity(*asked)


def test_what_is_published_is_bounded_and_words_of_long_ago_fade() -> None:
    topics = taught(*(f"common word{n % 300} word{n}" for n in range(1000)), most_shared=200, most_texts=900)
    published = topics.exchange(WordCounts())
    assert published.texts == published.texts_with["common"] == 500
    assert len(published.texts_with) == 200
    assert taught("x" * 20_000).exchange(WordCounts()).texts_with == {"x" * 40: 1}
