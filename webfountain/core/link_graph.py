"""A link graph, stored as blocks of in-links.

Pages are numbered from 0. A block contains the in-links of consecutive pages. A ranking reads all blocks once per step.
Blocks are arrays in memory or memory-mapped files, so a ranking needs memory only for its vectors. Links have no
weights: a page gives the same amount, its `share`, to each of its targets.

Source: Cho 1998, section 2 (link structure); Cho 2000, section 2.1 (the graph of sites).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.shingles import distinct
from webfountain.core.sparse_product import turned

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64] | npt.NDArray[np.int32]

__all__ = ["BLOCK_EDGES", "Array", "Ints", "LinkBlock", "LinkGraph", "in_links", "shares"]

BLOCK_EDGES: Final = 1 << 20
"""Number of links per block."""
_FOUR_BYTES: Final = 1 << 31


class LinkBlock(NamedTuple):
    """In-links of `len(indptr) - 1` successive pages, beginning with page `first`. The pages
    `sources[indptr[k]:indptr[k+1]]` link to page `first + k`.

    `indptr` starts at 0; `sources` are page numbers.
    """

    first: int
    indptr: Ints
    sources: Ints


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """An immutable link graph whose blocks cover all pages in order.

    Attributes
    ----------
    nodes : number of pages, n
    blocks : in-links of consecutive runs of pages
    share : (n,) part of a page's score that each of its targets gets, 1/outdegree; 0 for a page without links
    """

    nodes: int
    blocks: Sequence[LinkBlock]
    share: Array

    @classmethod
    def from_csr(cls, indptr: Ints, indices: Ints, *, block_edges: int = BLOCK_EDGES) -> LinkGraph:
        """Build the graph from lists of targets: page u links to `indices[indptr[u]:indptr[u+1]]`. A repeated link
        counts twice.

        Raises ValueError if the arrays do not fit each other.
        """
        nodes = len(indptr) - 1
        degree = np.diff(indptr)
        if nodes < 0 or indptr[0] != 0 or indptr[-1] != len(indices) or (degree < 0).any():
            raise ValueError("indptr must rise from 0 to the number of indices")
        if len(indices) and (indices.min() < 0 or indices.max() >= nodes):
            raise ValueError(f"indices must lie within 0..{nodes - 1}")
        starts, sources = in_links(indptr, indices, nodes)
        return cls(nodes, _cut(starts, sources, block_edges), shares(degree))

    @property
    def edges(self) -> int:
        return sum(len(block.sources) for block in self.blocks)

    def in_degree(self) -> npt.NDArray[np.int64]:
        """Return the (n,) numbers of links to each page."""
        if not self.blocks:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.diff(block.indptr).astype(np.int64) for block in self.blocks])


def in_links(indptr: Ints, indices: Ints, columns: int) -> tuple[Ints, Ints]:
    """Return (indptr, sources): for each target, the pages that link to it, ascending. `columns` is the number of pages
    that can be targets.

    The result has four-byte numbers if these are large enough. Apart from the result, the call needs two bytes of
    memory per link.
    """
    small = max(len(indptr), len(indices), columns) < _FOUR_BYTES
    return turned(indptr, np.asarray(indices, np.int32 if small else np.int64), columns)


def shares(degree: Ints) -> Array:
    return np.divide(1.0, degree, out=np.zeros(len(degree)), where=degree > 0)


def _cut(starts: Ints, sources: Ints, block_edges: int) -> list[LinkBlock]:
    """Split the pages into blocks with about `block_edges` in-links each."""
    bounds = np.arange(0, len(sources) + block_edges, block_edges)
    cuts = distinct(np.concatenate([[0], np.searchsorted(starts, bounds[1:-1]), [len(starts) - 1]]))
    return [
        LinkBlock(int(a), starts[a : b + 1] - starts[a], sources[starts[a] : starts[b]])
        for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]
