"""A web of sites with known links: pages in a tree under a home page, a menu on each page, and links between sites."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.records import Fetch


class LinkedWeb:
    """`sites` sites of a few to some hundred pages; links between sites prefer those that are linked already.

    `urls[k]` is page k, `links[k]` the pages that it links, `importance[k]` its PageRank. Page 0 is the first site's
    home page.
    """

    def __init__(self, sites: int = 40, *, seed: int = 1) -> None:
        rng = random.Random(seed)
        self.urls: list[str] = []
        self.links: list[list[int]] = []
        pages = [[self._page(f"http://s{site}.example/")] for site in range(sites)]
        for site, own in enumerate(pages):
            size = max(5, min(400, int(rng.paretovariate(0.8) * 8)))
            for number in range(1, size):
                parent = own[rng.randrange(max(1, number // 3))]
                own.append(self._page(f"http://s{site}.example/{number}"))
                self.links[parent].append(own[-1])
                self.links[own[-1]] += own[: rng.choice((1, 3, 6))]  # the menu
                if rng.random() < 0.3:
                    self.links[own[-1]].append(own[rng.randrange(number)])
        popular = [own[0] for own in pages]
        for own in pages:
            for page in own:
                while rng.random() < 0.35:
                    # What is linked is linked more; mostly home pages, now and then a page within.
                    target = rng.choice(popular) if rng.random() < 0.8 else rng.choice(rng.choice(pages))
                    self.links[page].append(target)
                    popular.append(target)
        self.links = [sorted(set(targets) - {page}) for page, targets in enumerate(self.links)]
        self.number = {url: page for page, url in enumerate(self.urls)}
        self.indptr = np.cumsum([0, *map(len, self.links)]).astype(np.int32)
        self.indices = np.array([target for targets in self.links for target in targets], dtype=np.int32)
        self.importance: npt.NDArray[np.float64] = pagerank(LinkGraph.from_csr(self.indptr, self.indices)).scores

    def _page(self, url: str) -> int:
        self.urls.append(url)
        self.links.append([])
        return len(self.urls) - 1

    def answer(self, fetch: Fetch, at: float) -> Any:
        """What the web says: a page and its links, no robots.txt, no sitemap."""
        page = self.number.get(fetch.url)
        if page is None:
            return 404, {}, b"", 0.01
        body = f"page {page} " + "".join(f"<a href='{self.urls[target]}'>x</a>" for target in self.links[page])
        return 200, {"content-type": "text/html"}, body.encode(), 0.01

    def found(self, order: list[int], count: int) -> float:
        """Importance of the first pages of an order."""
        return float(self.importance[order[:count]].sum())
