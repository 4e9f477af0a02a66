"""A virtual crawl through the real judge: what the frontier does with a page, without sites, politeness and a store.

A page is fetched, may be switched, and its links are judged under its policy; what is new waits in the lane of its
importance, the most important lane first and in it the first come, as in a site's never-crawled queue. One page is
fetched at a time, over all sites: that is the order that the crawl's ring of sites approaches.

Where a policy weighs trust by a ranking (`score`), the links found so far are ranked by the crawl's own TrustRank every
`RANK_EVERY` fetches; between two rankings a page gets its part of the trust of those that link it. A page that is
switched because of what was discovered through it (``when.discovered``) takes with it what waits of that.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import trustrank
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.switches import PageFacts
from webfountain.store.lanes import class_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.policy.spam_web import SpamWeb
    from webfountain.policy.collection import Collection
    from webfountain.policy.url_rules import Verdict

__all__ = ["RANK_EVERY", "VirtualCrawl", "breadth_first"]

RANK_EVERY = 200


def breadth_first(web: SpamWeb) -> Iterator[str]:
    """The pages in the order in which a crawl without policies fetches them, from the same seeds."""
    waiting = deque([*web.favored, *web.distrusted])
    known = set(waiting)
    while waiting:
        url = waiting.popleft()
        yield url
        new = [link for link in web.pages[url].links if link not in known]
        known.update(new)
        waiting.extend(new)


class VirtualCrawl:
    """A crawl under the collection's policies; iterate it for the pages in their order, until none is left."""

    def __init__(self, web: SpamWeb, collection: Collection) -> None:
        self._web, self._judge, self._collection = web, Judge(collection, year=2026), collection
        self._ranks = any(policy.score is not None for policy in collection.policies.values())
        self._number: dict[str, int] = {}
        self._urls: list[str] = []
        self._known: list[tuple[str, float, int]] = []  # policy, trust, depth
        self._worth: list[float] = []
        self._links: list[tuple[int, int]] = []
        self._fetched: set[int] = set()
        self._waiting: list[tuple[int, int]] = []  # lane, number
        self._source: dict[int, int] = {}
        self._discovered: defaultdict[int, list[int]] = defaultdict(list)
        self._ended: Counter[int] = Counter()  # pages fetched that were discovered through each
        self._switched: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._moves_to = {rule.to for rule in collection.tables.switch}

    def __iter__(self) -> Iterator[str]:
        for url, policy in self._collection.seeds_with_policies():
            self._take_in([url], self._judge.seed(policy))
        trusted = np.array([self._number[url] for url in self._web.favored])
        while self._waiting:
            lane, page = heapq.heappop(self._waiting)
            if page in self._fetched or lane != class_of(self._worth[page]):
                continue
            self._fetched.add(page)
            yield self._urls[page]
            self._follow(page)
            if self._ranks and len(self._fetched) % RANK_EVERY == 0:
                self._rank(trusted)

    def _follow(self, page: int) -> None:
        url, (policy, trust, depth) = self._urls[page], self._known[page]
        shown = self._web.pages[url]
        switch = self._judge.switched(policy, PageFacts(200, shown.text))
        if switch is not None:
            policy, trust = switch.to, self._judge.trust_switched(policy, trust, to=switch.to)
        self._witness(page, None if switch is None else policy)
        known = len(self._urls)
        found = self._take_in(shown.links, Origin("link", depth + 1, policy, trust, url))
        self._links += [(page, target) for target in found]
        for new in range(known, len(self._urls)):
            self._source[new] = page
            self._discovered[page].append(new)
        if self._ranks:
            part = self._judge.policies.rules[policy].table.dampening * self._worth[page] / max(len(found), 1)
            for target in found:
                self._worth[target] += part
                self._wait(target)

    def _witness(self, page: int, switched_to: str | None) -> None:
        """A page was fetched: what that says of the one through which it was discovered, and so on."""
        source = self._source.get(page)
        if source is not None:
            self._ended[source] += 1
        while source is not None and switched_to is not None:
            self._switched[source][switched_to] += 1
            policy, trust, _ = self._known[source]
            seen = PageFacts(followed=self._ended[source], switched=self._switched[source])
            switch = self._judge.switched(policy, seen)
            if switch is None:
                return
            switched_to = switch.to
            trust = self._judge.trust_switched(policy, trust, to=switch.to)
            for each in (source, *self._discovered[source]):
                self._known[each] = (switch.to, trust, self._known[each][2])
                self._worth[each] = min(self._worth[each], trust)
                self._wait(each)
            source = self._source.get(source)

    def _take_in(self, urls: Sequence[str], origin: Origin) -> list[int]:
        taken = []
        for url, verdict in zip(urls, self._judge.judge(urls, origin), strict=True):
            if verdict.reason is not None:
                continue
            if url not in self._number:
                self._number[url] = len(self._urls)
                self._urls.append(url)
                self._known.append((verdict.policy, verdict.trust, origin.depth))
                online = self._ranks and origin.kind == "link"
                self._worth.append(0.0 if online else self._importance(verdict))
                self._wait(len(self._urls) - 1)
            else:
                self._settle_conflict(self._number[url], verdict, origin)
            taken.append(self._number[url])
        return taken

    def _settle_conflict(self, page: int, verdict: Verdict, origin: Origin) -> None:
        """A known page was found again: the frontier's rule for it (`pages.conflicts`), but for refetches."""
        policy, trust, depth = self._known[page]
        rule = self._collection.conflict
        if rule == "first" or not depth:
            return
        if page in self._fetched and policy in self._moves_to:
            return
        if verdict.trust > trust if rule == "most-trusted" else verdict.trust < trust:
            self._known[page] = (verdict.policy, verdict.trust, depth)
            self._discovered[self._source[page]].remove(page)
            self._source[page] = self._number[origin.source]
            self._discovered[self._source[page]].append(page)
            if not self._ranks:
                self._worth[page] = self._importance(verdict)
            self._wait(page)

    def _importance(self, verdict: Verdict) -> float:
        return verdict.trust if self._judge.policies.is_trusting else 0.0

    def _wait(self, page: int) -> None:
        if page not in self._fetched:
            heapq.heappush(self._waiting, (class_of(self._worth[page]), page))

    def _rank(self, trusted: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        pages = len(self._urls)
        links = np.array(self._links)
        links = links[np.argsort(links[:, 0], kind="stable")]
        indptr = np.zeros(pages + 1, dtype=np.int64)
        np.add.at(indptr, links[:, 0] + 1, 1)
        graph = LinkGraph.from_csr(np.cumsum(indptr).astype(np.int32), links[:, 1].astype(np.int32))
        dampening = self._judge.policies.rules["favor"].table.dampening
        scores = trustrank(graph, trusted, dampening=dampening, tolerance=1e-6).scores * pages
        # A page that is not trusted at all is not by whoever links it, either.
        self._worth = np.where([trust > 0 for _, trust, _ in self._known], scores, 0.0).tolist()
        self._waiting = []
        for page in range(pages):
            self._wait(page)
