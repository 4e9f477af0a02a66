"""A link graph as in-links, block by block: what a ranking reads once per step.

Pages are numbered from 0. A block holds the in-links of a run of pages; blocks may lie in memory or be memory-mapped
files (`ranking.ranker` makes those from the link log), so that a ranking needs memory for its vectors only. What a
page gives to each of its targets is one number per page, its `share`, so that links have no weights of their own.

Source: Cho 1998, section 2 (link structure); Cho 2000, section 2.1 (the graph of sites).
"""

from __future__ import annotations

__all__ = ["BLOCK_EDGES", "LinkBlock", "LinkGraph", "in_links", "site_graph"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64] | npt.NDArray[np.int32]

BLOCK_EDGES: Final = 1 << 20
"""Links of a block: with a working copy of 4 bytes each it stays within 8 MB."""


class LinkBlock(NamedTuple):
    """In-links of the pages `first` .. `first + len(indptr) - 2`: `sources[indptr[k]:indptr[k+1]]` link to `first + k`.

    `indptr` starts at 0; `sources` are page numbers.
    """

    first: int
    indptr: Ints
    sources: Ints


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Immutable; the blocks cover all pages in order.

    Attributes
    ----------
    nodes : number of pages, n
    blocks : in-links of consecutive runs of pages
    share : (n,) what part of its score a page gives to each of its targets, 1/outdegree; 0 for a page without links
    returns : a second graph of the same pages whose links count too, with shares of their own; see `returning`
    """

    nodes: int
    blocks: Sequence[LinkBlock]
    share: Array
    returns: LinkGraph | None = None

    @classmethod
    def from_csr(cls, indptr: Ints, indices: Ints, *, block_edges: int = BLOCK_EDGES) -> LinkGraph:
        """The graph of successor lists: page u links to `indices[indptr[u]:indptr[u+1]]`; a link twice counts twice.

        Raises ValueError when the arrays are no such lists.
        """
        nodes = len(indptr) - 1
        degree = np.diff(indptr)
        if nodes < 0 or indptr[0] != 0 or indptr[-1] != len(indices) or (degree < 0).any():
            raise ValueError("indptr must rise from 0 to the number of indices")
        if len(indices) and (indices.min() < 0 or indices.max() >= nodes):
            raise ValueError(f"indices must lie within 0..{nodes - 1}")
        starts, sources = in_links(indptr, indices, nodes)
        return cls(nodes, _cut(starts, sources, block_edges), _shares(degree))

    def crawled_only(self, crawled: npt.NDArray[np.bool_]) -> LinkGraph:
        """The same graph as far as it is known when these pages (n,) were crawled: the others give nothing on."""
        return LinkGraph(self.nodes, self.blocks, np.where(crawled, self.share, 0.0), self.returns)

    def returning(self, indptr: Ints, indices: Ints, crawled: npt.NDArray[np.bool_], part: float) -> LinkGraph:
        """This graph, in which a page that was not crawled gives `part` of its score back to the pages that link to it.

        Nothing is known of such a page's links. That it links to where it is linked from (home page, menu) is a
        better guess than that it links to every page alike: links within a site are mostly mutual, and the more
        pages of a site are known, the more will link to its menu.

        Parameters
        ----------
        indptr, indices : successor lists of all pages; only those of `crawled` pages are read
        part : 0..1
        """
        degree = np.where(crawled, np.diff(indptr), 0)
        starts = np.zeros_like(indptr)
        np.cumsum(degree, out=starts[1:])
        known = indices[np.repeat(crawled, np.diff(indptr))]
        known_in = np.bincount(known, minlength=self.nodes)
        share = np.where(crawled, 0.0, part * _shares(known_in))
        back = LinkGraph(self.nodes, _cut(starts, known, BLOCK_EDGES), share)
        return LinkGraph(self.nodes, self.blocks, self.share, back)

    @property
    def edges(self) -> int:
        """Number of links."""
        return sum(len(block.sources) for block in self.blocks)

    def in_degree(self) -> npt.NDArray[np.int64]:
        """(n,) links that lead to each page."""
        if not self.blocks:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.diff(block.indptr).astype(np.int64) for block in self.blocks])


def in_links(indptr: Ints, indices: Ints, columns: int) -> tuple[Ints, Ints]:
    """(indptr, sources) of the transposed lists, sources ascending; `columns` is the number of targets.

    The dtype of page numbers is kept; one byte a link is needed besides the two lists.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415  (start-up time of whoever only builds a graph)

    marks = np.ones(len(indices), dtype=np.int8)
    turned = csr_array((marks, indices, indptr), shape=(len(indptr) - 1, columns)).tocsc()
    return turned.indptr, turned.indices


def site_graph(indptr: Ints, indices: Ints, site: Ints, *, sites: int) -> LinkGraph:
    """The graph of sites: one link from a site to another that any of its pages links to; links within a site go.

    Parameters
    ----------
    indptr, indices : successor lists of n pages
    site : (n,) number of each page's site, below `sites`

    Source: Cho 2000, section 2.1 (hypernodes, by whose PageRank the 270 sites were chosen).
    """
    sources = np.repeat(site, np.diff(indptr)).astype(np.int64)
    targets = site[indices].astype(np.int64)
    pairs = np.unique(sources[sources != targets] * sites + targets[sources != targets])
    degree = np.bincount(pairs // sites, minlength=sites)
    starts = np.concatenate([[0], np.cumsum(degree)])
    return LinkGraph.from_csr(starts, pairs % sites)


def _shares(degree: Ints) -> Array:
    return np.divide(1.0, degree, out=np.zeros(len(degree)), where=degree > 0)


def _cut(starts: Ints, sources: Ints, block_edges: int) -> list[LinkBlock]:
    """Runs of pages with about `block_edges` in-links each, a page never cut."""
    bounds = np.arange(0, len(sources) + block_edges, block_edges)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(starts, bounds[1:-1]), [len(starts) - 1]]))
    return [
        LinkBlock(int(a), starts[a : b + 1] - starts[a], sources[starts[a] : starts[b]])
        for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]
