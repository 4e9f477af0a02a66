"""The command `simulate urlcache`: send the links of a virtual crawl through caches of recently seen URLs.

Each page's links are one batch, as in the crawl. The trace *between ants* contains only links between sites of
different ants. Each ant has its own cache (Broder 2003, section 6). The cache STATIC contains the most frequent URLs of
a crawl that began at another page. Pages with neighbouring numbers count as one site.

Source: Broder 2003, sections 4 to 6, Figures 2 to 5.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.core.url_cache import LruCache
from webfountain.errors import InputError
from webfountain.lab.simulate.crawl_order import chosen_orderings, crawl, load_graph
from webfountain.lab.simulate.orderings import ORDERINGS
from webfountain.lab.simulate.url_caches import ClockCache, MinCache, RandomCache, StaticCache, next_requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from webfountain.lab.simulate.crawl_order import GraphFile
    from webfountain.lab.simulate.url_caches import UrlCache

    Requests = npt.NDArray[np.int64]

__all__ = [
    "POLICIES",
    "SITE_PAGES",
    "LinkTrace",
    "Requests",
    "between_ants",
    "crawl_trace",
    "miss_rate",
    "simulate_urlcache",
]

POLICIES = ("infinite", "min", "lru", "clock", "random", "static")
"""All names that ``--policies`` accepts."""

SITE_PAGES: Final = 1000
"""Number of consecutive page numbers that count as a site."""

_BATCH: Final = 4096


@dataclass(frozen=True, slots=True)
class LinkTrace:
    """Links in the order of the crawl.

    Attributes
    ----------
    urls : (m,) requested page
    ant : (m,) ant whose cache is used
    """

    urls: Requests
    ant: Requests

    @property
    def distinct(self) -> int:
        """Return the smallest possible number of misses: the number of different pairs of ant and URL."""
        return len(np.unique(self.ant * (1 + int(self.urls.max(initial=0))) + self.urls))

    def by_ant(self) -> Iterator[Requests]:
        for ant in np.unique(self.ant):
            yield self.urls[self.ant == ant]


def simulate_urlcache(
    graph: Path,
    *,
    start: int,
    sizes: Sequence[int],
    policies: Sequence[str],
    ordering: str = "breadth-first",
    ants: int = 1,
    static_start: int | None = None,
    seed: int = 0,
    plot: Path | None = None,
) -> dict[str, Any]:
    """Compute the miss rate of each policy at each cache size. Return the JSON document of `simulate urlcache` (DESIGN
    section 7).

    Parameters
    ----------
    sizes : entries of a cache (of each ant)
    ordering : order of the virtual crawl, one of `orderings.ORDERINGS`
    ants : 1 for the full trace; more: only the links from one ant to another
    static_start : start of the crawl whose most frequent URLs STATIC contains; None: another page drawn by `seed`
    plot : folder for the figures of miss rates, absolute and relative to MIN, as PNG and SVG

    Raises InputError before the crawl if an argument or a file cannot be used.
    """
    web = load_graph(graph)
    names = chosen_orderings("--policies", policies, POLICIES)
    _check(web, sizes, ordering=ordering, ants=ants, starts={"--start": start, "--static-start": static_start})
    source, urls = crawl_trace(web, start, ordering, seed=seed)
    trace = LinkTrace(urls, np.zeros(len(urls), dtype=np.int64)) if ants == 1 else between_ants(source, urls, ants)
    if not len(trace.urls):
        raise InputError(f"--start: a crawl from page {start} finds no link")
    popular = np.zeros(0, dtype=np.int64)
    if "static" in names:
        elsewhere = int(np.random.default_rng(seed).integers(web.nodes)) if static_start is None else static_start
        popular = _most_frequent(crawl_trace(web, elsewhere, ordering, seed=seed)[1])
    rates = {
        name: {str(size): miss_rate(trace, name, size, popular=popular, seed=seed) for size in sizes} for name in names
    }
    if plot is not None:
        from webfountain.lab.simulation_figures import draw_miss_rates  # noqa: PLC0415  (matplotlib)

        draw_miss_rates(rates, plot)
    return {"requests": len(trace.urls), "distinct": trace.distinct, "policies": rates}


def crawl_trace(web: GraphFile, start: int, ordering: str, *, seed: int = 0) -> tuple[Requests, Requests]:
    """Return (source, target) of each link (m,), in the order of a virtual crawl."""
    order = crawl(web, start, ordering, seed=seed).order
    starts = web.indptr.astype(np.int64)
    degree = starts[order + 1] - starts[order]
    first = np.repeat(starts[order] - np.concatenate([[0], np.cumsum(degree)[:-1]]), degree)
    return np.repeat(order, degree), web.indices[first + np.arange(len(first))].astype(np.int64)


def between_ants(source: Requests, urls: Requests, ants: int) -> LinkTrace:
    """Return the links that lead from a site of one ant to a site of another ant."""
    owner, target = _ant_of(source, ants), _ant_of(urls, ants)
    across = owner != target
    return LinkTrace(urls[across], owner[across])


def miss_rate(trace: LinkTrace, policy: str, size: int, *, popular: Requests, seed: int = 0) -> float:
    """Return the share of the requests that miss the cache, with `size` entries per ant. `popular` are the URLs for
    STATIC, the most frequent first."""
    missed = 0
    for urls in trace.by_ant():
        if policy == "infinite" or (policy != "static" and size >= len(urls)):
            missed += len(np.unique(urls))
            continue
        cache = _cache(policy, size, urls, popular, seed)
        requests = urls.tolist()
        for begin in range(0, len(requests), _BATCH):
            missed += len(cache.missing(requests[begin : begin + _BATCH]))
    return missed / len(trace.urls)


def _cache(policy: str, size: int, urls: Requests, popular: Requests, seed: int) -> UrlCache:
    if policy == "min":
        return MinCache(size, next_requests(urls))
    if policy == "random":
        return RandomCache(size, random.Random(seed))
    if policy == "static":
        return StaticCache(popular[:size].tolist())
    return LruCache(size) if policy == "lru" else ClockCache(size)


def _most_frequent(urls: Requests) -> Requests:
    counts = np.bincount(urls)
    return np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]


def _ant_of(pages: Requests, ants: int) -> Requests:
    mixed = (pages // SITE_PAGES).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(ants)).astype(np.int64)


def _check(web: GraphFile, sizes: Sequence[int], *, ordering: str, ants: int, starts: Mapping[str, int | None]) -> None:
    for option, page in starts.items():
        if page is not None and not 0 <= page < web.nodes:
            raise InputError(f"{option}: {page} is not within 0..{web.nodes - 1}")
    allowed = [name for name in ORDERINGS if name != "ideal"]
    if ordering not in allowed:
        raise InputError(f"--ordering: {ordering!r} is not one of {', '.join(allowed)}")
    if not sizes or min(sizes) < 1:
        raise InputError(f"--sizes: {','.join(map(str, sizes)) or 'no size'} given (allowed: sizes of at least 1)")
    if ants < 1:
        raise InputError(f"--ants: {ants} is below 1")
