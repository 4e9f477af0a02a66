"""Rankings against dense and plain reference versions, and the figures that real graphs must give."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webfountain.core.link_graph import LinkGraph, in_links
from webfountain.core.pagerank import backlinks, pagerank, trustrank
from webfountain.errors import NotConverged

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


def drawn_lists(nodes: int, seed: int, *, links: float = 3.0) -> Lists:
    """Successor lists of a graph with hubs, pages without links, links to itself; some links twice."""
    rng = np.random.default_rng(seed)
    degree = np.minimum(rng.poisson(links, nodes) * rng.integers(0, 2, nodes), nodes)
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    return indptr, (nodes * rng.random(indptr[-1]) ** 2).astype(np.int32)


def dense_pagerank(lists: Lists, damping: float, teleport: Array) -> Array:
    """The stationary distribution of the surfer, by solving the dense system."""
    indptr, indices = lists
    nodes = len(indptr) - 1
    matrix = np.zeros((nodes, nodes))
    for page in range(nodes):
        row = indices[indptr[page] : indptr[page + 1]]
        if len(row):
            np.add.at(matrix[page], row, 1.0 / len(row))
        else:
            matrix[page] = teleport
    return np.linalg.solve(np.eye(nodes) - damping * matrix.T, (1.0 - damping) * teleport).astype(np.float64)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 0.9, 0.99]), st.integers(1, 50))
def test_pagerank_is_that_of_the_dense_system_in_any_blocks(nodes: int, seed: int, damping: float, block: int) -> None:
    lists = drawn_lists(nodes, seed)
    teleport = np.random.default_rng(seed).random(nodes) + 0.01
    teleport /= teleport.sum()
    graph = LinkGraph.from_csr(*lists, block_edges=block)
    found = pagerank(graph, damping=damping, teleport=teleport)
    truth = dense_pagerank(lists, damping, teleport)
    assert np.abs(found.scores - truth).sum() <= found.error + 1e-13
    assert found.error <= 1e-10


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 60), st.integers(0, 10_000))
def test_trust_comes_from_the_trusted_pages_alone(nodes: int, seed: int) -> None:
    lists = drawn_lists(nodes, seed)
    teleport = np.zeros(nodes)
    teleport[[0, nodes - 1]] = 0.5
    found = trustrank(LinkGraph.from_csr(*lists), np.array([0, nodes - 1]))
    np.testing.assert_allclose(found.scores, dense_pagerank(lists, 0.85, teleport), atol=1e-10)


def test_trust_is_dampened_and_split() -> None:
    """0 -> 1, 2; 1 -> 3: half of what is left after a hop for each; what no link leads to has none."""
    graph = LinkGraph.from_csr(np.array([0, 2, 3, 3, 3, 3]), np.array([1, 2, 3]))
    scores = trustrank(graph, np.array([0]), dampening=0.8).scores
    np.testing.assert_allclose(scores / scores[0], [1.0, 0.4, 0.4, 0.32, 0.0], rtol=1e-9)


def test_backlinks_are_counted() -> None:
    lists = drawn_lists(40, 3)
    expected = np.zeros(40)
    for target in lists[1].tolist():
        expected[target] += 1
    np.testing.assert_allclose(backlinks(LinkGraph.from_csr(*lists, block_edges=7)).scores, expected / expected.sum())


def test_an_earlier_ranking_needs_fewer_steps() -> None:
    graph = LinkGraph.from_csr(*drawn_lists(2000, 1))
    first = pagerank(graph)
    again = pagerank(graph, start=first.scores)
    assert again.steps < first.steps / 4
    np.testing.assert_allclose(again.scores, first.scores, atol=1e-10)


def test_the_tolerance_does_not_loosen_with_size_and_what_does_not_converge_raises() -> None:
    small, large = (LinkGraph.from_csr(*drawn_lists(nodes, 1)) for nodes in (100, 20_000))
    assert max(pagerank(graph, tolerance=1e-9).error for graph in (small, large)) <= 1e-9
    with pytest.raises(NotConverged, match="after 4 steps"):
        pagerank(large, max_steps=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"damping": 1.0},
        {"damping": -0.1},
        {"teleport": np.zeros(3)},
        {"teleport": np.ones(2)},
        {"teleport": np.array([1.0, -1.0, 1.0])},
    ],
)
def test_arguments_out_of_range_raise(wrong: dict[str, Array | float]) -> None:
    graph = LinkGraph.from_csr(np.array([0, 1, 2, 2]), np.array([1, 2]))
    with pytest.raises(ValueError, match=r"damping|teleport"):
        pagerank(graph, **wrong)  # type: ignore[arg-type]


def test_an_invalid_graph_raises_and_an_empty_one_has_an_empty_ranking() -> None:
    for lists in (([0, 2], [1, 0]), ([0, 1, 0], []), ([0, 1], [3])):
        with pytest.raises(ValueError, match=r"indptr|indices"):
            LinkGraph.from_csr(np.array(lists[0]), np.array(lists[1], dtype=np.int64))
    assert pagerank(LinkGraph.from_csr(np.array([0]), np.zeros(0, dtype=np.int32))).scores.shape == (0,)
    with pytest.raises(ValueError, match="trusted"):
        trustrank(LinkGraph.from_csr(np.array([0, 0]), np.zeros(0, dtype=np.int32)), np.array([1]))


def test_reversing_the_lists_of_links_twice_gives_the_same_lists() -> None:
    indptr, indices = drawn_lists(50, 4)
    sorted_rows = [sorted(indices[a:b].tolist()) for a, b in itertools.pairwise(indptr)]
    back = in_links(*in_links(indptr, indices, 50), 50)
    assert [back[1][a:b].tolist() for a, b in zip(back[0][:-1], back[0][1:], strict=True)] == sorted_rows


@pytest.mark.shared
def test_on_a_real_graph_the_reference_scores_are_met(shared_data: Path) -> None:
    """Issue 9: the 50 scores of cnr-2000 to 1e-9."""
    with np.load(shared_data / "graph" / "cnr-2000.npz") as arrays:
        graph = LinkGraph.from_csr(arrays["indptr"], arrays["indices"])
    reference = json.loads((shared_data / "graph" / "cnr-2000-pagerank-top.json").read_text())["top"]
    found = pagerank(graph)
    assert found.error <= 1e-10
    assert max(abs(found.scores[page] - score) for page, score in reference) <= 1e-9
    assert sorted(np.argsort(-found.scores)[:50].tolist()) == sorted(page for page, _ in reference)
