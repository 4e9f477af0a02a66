"""A link graph with known and crawled pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.link_graph import LinkGraph

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["CrawledGraph"]


class CrawledGraph:
    """A link graph; the flags known (n,) and crawled (n,) tell which pages are known and which are crawled. Only the
    links of crawled pages may be read.
    """

    def __init__(self, indptr: npt.NDArray[np.int32], indices: npt.NDArray[np.int32]) -> None:
        self.indptr, self.indices = indptr, indices
        self.graph = LinkGraph.from_csr(indptr, indices)
        self.known = np.zeros(self.graph.nodes, dtype=np.bool_)
        self.crawled = np.zeros(self.graph.nodes, dtype=np.bool_)
