"""Surfers on the known links of a partial crawl, against dense references."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.core.test_pagerank import drawn_lists
from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.lab.simulate.crawled_links import CrawledLinks

if TYPE_CHECKING:
    from webfountain.core.model import Array


def test_wandering_long_leads_to_pagerank() -> None:
    lists = drawn_lists(50, 2)
    start, everywhere = np.zeros(50), np.ones(50, dtype=np.bool_)
    start[7] = 3.0
    links = CrawledLinks(*lists, everywhere, everywhere)
    assert links.wander(start, steps=0).tolist() == (start / 3.0).tolist()
    np.testing.assert_allclose(links.wander(start, steps=300), pagerank(LinkGraph.from_csr(*lists)).scores, atol=1e-9)
    np.testing.assert_allclose(links.wander_alike(start, steps=300), links.wander(start, steps=300), atol=1e-12)


def settled(assumed: Array) -> Array:
    """PageRank of the pages whose transitions are these; rows that sum to less go on anywhere with the rest."""
    nodes = len(assumed)
    assumed = assumed + (1.0 - assumed.sum(axis=1, keepdims=True)) / nodes
    return np.linalg.solve(np.eye(nodes) - 0.9 * assumed.T, np.full(nodes, 0.1 / nodes)).astype(np.float64)


def test_a_page_that_was_not_crawled_gives_to_those_that_link_to_it() -> None:
    """0 -> 1, 2 and 1 -> 2 are known; 2's own links are not: it gives half of 0.8 to each, its list is unread."""
    crawled, known = np.array([True, True, False]), np.ones(3, dtype=np.bool_)
    links = CrawledLinks(np.array([0, 2, 3, 4]), np.array([1, 2, 2, 1]), known, crawled)
    assumed = np.array([[0, 0.5, 0.5], [0, 0, 1], [0.4, 0.4, 0]])
    np.testing.assert_allclose(links.wander(np.ones(3), steps=300, returned=0.8), settled(assumed), atol=1e-10)


def test_a_page_that_was_not_crawled_is_taken_to_link_as_those_that_are_linked_beside_it() -> None:
    """0 -> 1, 2, 3 and 1 -> 0 and 2 -> 4 are known, 1 and 2 stand for 3; nothing beside 4 is known: 2 stands for it."""
    crawled, known = np.array([True, True, True, False, False]), np.ones(5, dtype=np.bool_)
    links = CrawledLinks(np.array([0, 3, 4, 5, 6, 7]), np.array([1, 2, 3, 0, 4, 3, 3]), known, crawled)
    third = 1 / 3
    assumed = np.array(
        [[0, third, third, third, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0.5, 0, 0, 0, 0.5], [0, 0, 0, 0, 1]]
    )
    np.testing.assert_allclose(links.wander_alike(np.ones(5), steps=300), settled(assumed), atol=1e-10)
