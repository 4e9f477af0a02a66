"""Rankings of a link graph: PageRank, TrustRank, backlinks; a page is counted whether it was crawled or not.

PageRank x = (1-d) v + d (P' x + v * sum of x over pages without links) is, up to a factor, the solution of the linear
system y = (1-d) v + d P' y, in which such pages need no care; x is y over its sum. Each step reads each block of the
graph once and keeps nothing of it. Double precision holds the solution and measures what it misses, which proves the
error; single precision finds the correction, in half the time: by ORTHOMIN(4) (Vinsome 1976), which needs two steps for
three of the power iteration, or, should that stall, by the power iteration, which cannot.

Source: Cho 1998, section 2 (IR, d = 0.9, a page without links links to every page); Policies 2006 (TrustRank's
dampening and splitting). Deviation: scores sum to 1, the paper's to the number of pages.

A link graph as in-links, block by block: what a ranking reads once per step. Pages are numbered from 0. A block holds
the in-links of a run of pages; blocks may lie in memory or be memory-mapped files (`ranking.ranker` makes those from
the link log), so that a ranking needs memory for its vectors only. What a page gives to each of its targets is one
number per page, its `share`, so that links have no weights of their own.

Source: Cho 1998, section 2 (link structure); Cho 2000, section 2.1 (the graph of sites).

Importance of a page: from a ranking, between two rankings, from several scores; or from its place in the site alone.
Scores are relative to the mean of the known pages (a page of score 1 is an average one), so that they mean the same
before and after a ranking of a larger web. `ranking` publishes the scores of a ranking; `OnlineImportance` credits
what is fetched until the next one. In which lane of its site a page waits is the store's to say
(`store.contract.class_of`).

Source: Abiteboul, Preda, Cobena, *Adaptive on-line page importance computation*, 2003 (cash); Policies 2006 (several
scores, weighed by the page's policy); Cho 1998, section 2 (combined metrics, location).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import numpy as np

from webfountain.errors import NotConverged

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64] | npt.NDArray[np.int32]
    _Single = npt.NDArray[np.float32]

__all__ = [
    "BLOCK_EDGES",
    "DAMPENING",
    "DAMPING",
    "METRICS",
    "PRIOR",
    "LinkBlock",
    "LinkGraph",
    "LinksSeen",
    "OnlineImportance",
    "Ranking",
    "backlinks",
    "importance_by_depth",
    "in_links",
    "is_home",
    "location",
    "pagerank",
    "trustrank",
    "worth_of_waiting",
]

_Page = TypeVar("_Page", bound="Hashable")

METRICS: Final = ("pagerank", "trust", "backlinks", "topic", "location")
"""The scores that a policy can weigh, in the order in which a page's record keeps those that it does."""

PRIOR: Final = 0.1
"""Score of a page before anything is known of its in-links: what no link brings, 1 - d at d = 0.9."""

_SHARE: Final = 0.5
"""Importance of a page relative to one a directory above it."""

_HOME: Final = 2.0
"""Importance of a home page relative to another page of its directory."""


def importance_by_depth(paths: Sequence[str]) -> Array:
    """(n,) 1 for a page in the root directory, half of that for each directory below."""
    depth = [sum(bool(name) for name in path.split("?", 1)[0].split("/")[:-1]) for path in paths]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))


def is_home(url: str) -> bool:
    """Whether a canonical URL is that of a site's home page."""
    return url.find("/", 8) == len(url) - 1


def location(urls: Sequence[str]) -> Array:
    """(n,) importance by the URL alone: half of it for each directory, twice of it for a directory's own page.

    `urls` are canonical. A page that a query asks for is less than the page without.

    Source: Cho 1998, section 2 (IL: fewer slashes, "home"). Deviation: no domain counts more than another.
    """
    paths = [url[url.find("/", 8) :] for url in urls]
    asks = np.array(["?" in path for path in paths])
    homes = np.array([path.split("?", 1)[0].rpartition("/")[2].split(".")[0] in _HOMES for path in paths])
    return importance_by_depth(paths) * np.where(homes, _HOME, 1.0) * np.where(asks, _SHARE, 1.0)


_HOMES: Final = frozenset({"", "index", "home", "default", "welcome"})


def worth_of_waiting(rank: Array, cash: Array) -> Array:
    """(n,) what pages that wait are worth, both (n,) relative to their means: the geometric mean of rank and cash.

    A ranking alone stays in the large sites it knows; cash alone leads wherever the crawl has not been, important or
    not. Their product leads to where both agree, whatever the scale of either: of the single orders that were tried
    on all graphs the best (`bench_ordering`), and a page whose cash is not known (nan) is worth its rank.
    """
    return np.where(np.isnan(cash), rank, np.sqrt(rank * cash))


class OnlineImportance(Generic[_Page]):
    """What was learned of pages since the last ranking: the rank they gained, and cash that flows to where nobody was.

    *Rank*: a fetched page credits its score, dampened, to its targets in equal parts, on top of what the last ranking
    gave them. *Cash*: a seed begins with some; a fetch hands all cash of the page to its targets and leaves it none,
    so that in the end cash lies where few paths end that were crawled already. A page that is fetched again hands on
    only what it has got since: being fetched often inflates nobody. *Backlinks*: pages that credited a page since the
    last ranking and whose links were not in that, each once.

    Each page has a row in a few arrays, so that a page with its links costs some array steps and a look-up a link.

    Parameters
    ----------
    most : pages of which something is kept; of more those stay that have most cash, that gained most, and of those
        fetched the ones found last, a quarter of `most` each. None: all
    by_rank : what waits is worth its rank alone, and outgrows its bound by the square of that
    """

    def __init__(self, *, damping: float = 0.9, most: int | None = None, by_rank: bool = False) -> None:
        self._damping = damping
        self._by_rank = by_rank
        self._most = most
        self._row_of: dict[_Page, int] = {}
        self.links = 0
        """Backlinks that were counted since the last ranking, of all pages."""
        self._use(np.empty((len(_EMPTY_ROW), 0)))

    def __len__(self) -> int:
        return len(self._row_of)

    def seed(self, page: _Page, cash: float) -> None:
        """Give a page cash of its own."""
        [row] = self._rows([page])
        self._cash[row] = self.cash(page) + cash

    def rank(self) -> None:
        """A new ranking holds, and all that was credited is in it. Cash stays."""
        self._gained[:] = 0.0
        self._handed_on[:] = np.nan
        self._bounds[:] = np.inf
        self._backlinks[:] = 0.0
        self.links = 0

    def credit(
        self,
        page: _Page,
        targets: Sequence[_Page],
        *,
        score: float,
        linked: bool,
        endowed: float = 0.0,
        scale: float = 1.0,
    ) -> dict[int, float]:
        """A page was fetched and links to these targets, each named once; places and products of the outgrown.

        Those are the targets whose product of rank and cash is beyond their bound, which then is `_AGAIN` times it
        (`by_rank`: of rank and rank).

        Parameters
        ----------
        score : of the page by the last ranking, PRIOR where that did not know it
        linked : whether its links were in that ranking: then its targets have had their parts of that score
        endowed : cash that the page has if it has got none
        scale : what cash is multiplied with, where the product of rank and cash is compared with a bound (`expect`)
        """
        own, *named = self._rows([page, *targets])
        cash, gained, handed_on = float(self._cash[own]), float(self._gained[own]), float(self._handed_on[own])
        spent = endowed if isnan(cash) else cash
        self._cash[own] = np.nan
        self._handed_on[own] = score + gained
        outgrown: dict[int, float] = {}
        if named:
            before = (score if linked else 0.0) if isnan(handed_on) else handed_on
            rows = np.array(named, dtype=np.intp)
            if isnan(handed_on) and not linked:
                self._backlinks[rows] += 1.0
                self.links += len(named)
            held = np.fmax(self._cash.take(rows), 0.0)
            held += spent / len(named)
            self._cash[rows] = held
            worth = self._gained.take(rows)
            worth += self._damping * (score + gained - before) / len(named)
            self._gained[rows] = worth
            worth += self._ranks.take(rows)
            worth *= worth if self._by_rank else held * scale
            places = (worth >= self._bounds.take(rows)).nonzero()[0]
            if len(places):
                products = worth[places]
                self._bounds[rows[places]] = _AGAIN * products
                outgrown = dict(zip(places.tolist(), products.tolist(), strict=True))
        if self._most is not None and len(self._row_of) > self._most:
            self._forget(self._most // 4)
        return outgrown

    def gain(self, page: _Page) -> float:
        """Score that a page got since the last ranking, on top of what that gave it."""
        return float(self._gained[self._row_of.get(page, 0)])

    def cash(self, page: _Page, absent: float = 0.0) -> float:
        """Cash that a page has got since it was last fetched; `absent` of one that has got none, or was forgotten."""
        found = float(self._cash[self._row_of.get(page, 0)])
        return absent if isnan(found) else found

    def gains_and_cash(self, pages: Sequence[_Page]) -> tuple[Array, Array]:
        """(n,) each of pages; the cash is nan of those that have got none."""
        row_of = self._row_of
        rows = np.array([row_of.get(page, 0) for page in pages], dtype=np.intp)
        return self._gained[rows], self._cash[rows]

    def backlinks(self, pages: Sequence[_Page]) -> Array:
        """(n,) pages that were found to link each since the last ranking."""
        row_of = self._row_of
        return np.asarray(self._backlinks[[row_of.get(page, 0) for page in pages]])

    def expect(self, pages: Sequence[_Page], ranks: Array, bounds: Array) -> None:
        """Of pages that wait, (n,) each: rank by the last ranking, and a bound of the product of rank and cash."""
        rows = np.array(self._rows(pages), dtype=np.intp)
        self._ranks[rows], self._bounds[rows] = ranks, bounds

    def _rows(self, pages: Sequence[_Page]) -> list[int]:
        """Where the pages stand, new ones after all others; row 0 is that of a page of which nothing is known."""
        row_of = self._row_of
        # Most are known, and the look-ups are most of what a page's credit costs.
        rows: list[int] = list(map(row_of.get, pages))  # type: ignore[arg-type]
        if None in rows:
            rows = [row_of.setdefault(page, len(row_of) + 1) for page in pages]
        if len(row_of) >= len(self._cash):
            self._use(self._columns)
        return rows

    def _use(self, columns: Array) -> None:
        """Go on with these rows, and room for as many more."""
        known = columns.shape[1]
        room = np.repeat(_EMPTY_ROW[:, np.newaxis], 2 * max(known, len(self._row_of) + 1, _FEW), axis=1)
        room[:, :known] = columns
        self._columns = room
        self._gained, self._cash, self._handed_on, self._ranks, self._bounds, self._backlinks = room

    def _forget(self, part: int) -> None:
        """Let go of pages but for so many of each kind."""
        pages = list(self._row_of)
        keep = np.zeros(len(pages) + 1, dtype=np.bool_)
        columns = self._columns[:, : len(keep)]
        for least_first in (np.argsort(columns[0]), np.argsort(np.fmax(columns[1], -1.0))):
            keep[least_first[-part:]] = True
        keep[np.flatnonzero(~np.isnan(columns[2]))[-part:]] = True
        keep[0] = True
        kept = np.flatnonzero(keep)
        self._row_of = {pages[old - 1]: new for new, old in enumerate(kept.tolist()) if old}
        self._use(columns[:, kept])


_FEW: Final = 500
_AGAIN: Final = 4.0
_EMPTY_ROW: Final = np.array([0.0, np.nan, np.nan, np.nan, np.inf, 0.0])
"""Of a page of which nothing is known: gained, cash, handed on, rank, bound, backlinks."""


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
    """

    nodes: int
    blocks: Sequence[LinkBlock]
    share: Array

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
        return LinkGraph(self.nodes, self.blocks, np.where(crawled, self.share, 0.0))

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


_Real = TypeVar("_Real", np.float32, np.float64)

DAMPING: Final = 0.9
"""The surfer follows a link with this probability (Cho 1998)."""

DAMPENING: Final = 0.85
"""Trust that is left after one hop."""

_GAIN: Final = 1e-3
"""A correction lets what is missing fall by this much before it is measured anew; single precision could do 1e-5."""

_KEPT: Final = 4
"""Directions that a step of ORTHOMIN is made orthogonal to: two vectors in single precision each."""

_LONGEST: Final = 100
"""Steps of ORTHOMIN after which it is measured what they were worth."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores that sum to 1 (n,), steps (each reads every link once), and a bound of their L1 error."""

    scores: Array
    steps: int
    error: float


def pagerank(
    graph: LinkGraph,
    *,
    damping: float = DAMPING,
    teleport: Array | None = None,
    start: Array | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 10_000,
) -> Ranking:
    """PageRank of every page, within `tolerance` of the true one in the L1 norm, whatever the graph's size.

    Parameters
    ----------
    damping : probability of following a link, 0 <= d < 1
    teleport : (n,) weights >= 0, not all 0, of the pages where a surfer who follows no link goes on; None: all alike
    start : (n,) an earlier ranking (any weights >= 0, not all 0), from which fewer steps are needed; None: `teleport`
    tolerance : of the sum of absolute errors; proven by the residual, not guessed from the last step

    Raises
    ------
    ValueError
        for an argument out of range.
    NotConverged
        when `max_steps` were not enough.
    """
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"damping {damping} is not within [0, 1)")
    if graph.nodes == 0:
        return Ranking(np.zeros(0), 0, 0.0)
    base = _weights(teleport, graph.nodes) * (1.0 - damping)
    y = base / (1.0 - damping) if start is None else _weights(start, graph.nodes)
    exact, quick = _Links(graph, damping, np.float64), _Links(graph, damping, np.float32)
    # Solutions of the system sum to less than 1 where pages without links are; the scale at which nothing is missing
    # in the sum makes an earlier ranking the start that it should be.
    y *= (1.0 - damping) / (1.0 - float(exact.pull(y).sum()))
    steps, last = 1, np.inf
    while True:
        missing = exact.pull(y)
        missing += base
        missing -= y
        steps += 1
        # y misses the solution by (I - dP')^-1 missing, whose norm is at most that over 1-d; scaling may double it.
        lacking = float(np.abs(missing).sum())
        error = 2.0 * lacking / ((1.0 - damping) * float(y.sum()))
        if error <= tolerance:
            return Ranking(y / y.sum(), steps, error)
        if steps >= max_steps:
            raise NotConverged(f"PageRank after {steps} steps: error at most {error:.1e}, tolerance {tolerance:.1e}")
        # Relative to what is missing: the corrections of a fine tolerance would be lost in single precision.
        flow = (missing / lacking).astype(np.float32)
        correct = _orthomin if error < 0.5 * last else _power
        correction, taken = correct(quick, flow, max(0.5 * tolerance / error, _GAIN), max_steps - steps)
        y += correction * np.float64(lacking)
        steps, last = steps + taken, error if correct is _orthomin else np.inf


class LinksSeen:
    """The links of a crawl as far as it is, and where surfers on them are who know nothing of the other pages' links.

    Pages not crawled are most of what is known, and what they link to decides what is important. Three guesses: they
    link to every page alike (`wander` with `returned` 0: PageRank), to where they are linked from (`wander`), or as
    the crawled pages do that are linked beside them (`wander_alike`). Each costs what the crawled pages' links cost.

    Parameters
    ----------
    indptr, indices : successor lists of n pages; only those of `crawled` pages are read
    known, crawled : (n,) the crawled pages and all that they link to; the crawled pages
    """

    def __init__(
        self, indptr: Ints, indices: Ints, known: npt.NDArray[np.bool_], crawled: npt.NDArray[np.bool_]
    ) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415  (0.3 s at start)

        self._known = known
        self._rows = np.flatnonzero(crawled)
        degree = np.diff(indptr)[self._rows]
        starts = np.concatenate([[0], np.cumsum(degree)])
        targets = indices[np.arange(starts[-1]) + np.repeat(indptr[self._rows] - starts[:-1], degree)]
        ones = np.ones(len(targets))

        def rows_to(chosen: npt.NDArray[np.bool_]) -> csr_array[np.float64, tuple[int, int]]:
            ends = np.concatenate([[0], np.cumsum(chosen)])[starts]
            return csr_array((ones[: ends[-1]], targets[chosen], ends), shape=(len(self._rows), len(known)))

        inner = crawled[targets]
        self._inner, self._outer = rows_to(inner), rows_to(~inner)
        self._share = _shares(degree)
        self._inner_share = _shares(np.diff(self._inner.indptr))
        self._outer_share = _shares(np.bincount(targets[~inner], minlength=len(known)))

    def wander(self, start: Array, *, steps: int, returned: float = 0.0) -> Array:
        """(n,) where surfers are who set out from `start`; pages not crawled send `returned` of them back.

        That a page links to where it is linked from (home page, menu) is a better guess than that it links to every
        page alike: links within a site are mostly mutual, and the more pages of a site are known, the more will link
        to its menu. PageRank that still knows its start, for as few steps as that start shall be known.

        Parameters
        ----------
        start : (n,) weights >= 0, not all 0; who follows no link goes on at any known page
        returned : 0..1, split among the crawled pages that link to the page
        """
        at: Array = start / start.sum()
        for _ in range(steps):
            given = at[self._rows] * (DAMPING * self._share)
            back = (DAMPING * returned) * (self._outer @ (at * self._outer_share)) if returned else None
            at = self._follow(given)
            if back is not None:
                at[self._rows] += back
            self._go_on(at)
        return at

    def wander_alike(self, start: Array, *, steps: int) -> Array:
        """(n,) the same; who is on a page not crawled goes on as from a crawled page that is linked beside it.

        Pages that one page links to, the articles of a list, the home pages of a directory, mostly link alike: their
        menu, that list, their neighbours, or nothing. Where none of them was crawled, the page that links to them
        stands for them.
        """
        at: Array = start / start.sum()
        alone = self._inner_share == 0
        for _ in range(steps):
            beside = self._outer @ (at * self._outer_share)
            acting = at[self._rows] + (self._inner.T @ (beside * self._inner_share))[self._rows]
            acting[alone] += beside[alone]
            at = self._follow(acting * (DAMPING * self._share))
            self._go_on(at)
        return at

    def _follow(self, given: Array) -> Array:
        """(n,) what the targets get where each crawled page gives so much to each of its own."""
        return np.asarray(self._inner.T @ given + self._outer.T @ given)

    def _go_on(self, at: Array) -> None:
        """Those who followed no link are at the known pages, as many at each."""
        at[self._known] += (1.0 - at.sum()) / np.count_nonzero(self._known)


def trustrank(
    graph: LinkGraph,
    trusted: npt.NDArray[np.int64],
    *,
    weights: Array | None = None,
    dampening: float = DAMPENING,
    tolerance: float = 1e-10,
) -> Ranking:
    """Trust that spreads from the pages `trusted`: a hop leaves `dampening` of it, split among the links.

    `weights` (k,) say how far each of them is trusted; None: all alike.

    Raises ValueError when no page is trusted or one is not in the graph, NotConverged as `pagerank`.

    Source: Policies 2006 (TrustRank); it is PageRank whose surfer always starts from a trusted page.
    """
    if len(trusted) == 0 or trusted.min() < 0 or trusted.max() >= graph.nodes:
        raise ValueError(f"trusted pages must be some, within 0..{graph.nodes - 1}")
    teleport = np.zeros(graph.nodes)
    teleport[trusted] = 1.0 if weights is None else weights
    return pagerank(graph, damping=dampening, teleport=teleport, tolerance=tolerance)


def backlinks(graph: LinkGraph) -> Ranking:
    """Each page's share of all links (IB of Cho 1998, scaled to sum to 1)."""
    counts = graph.in_degree().astype(np.float64)
    return Ranking(counts / max(1.0, counts.sum()), 1, 0.0)


def _weights(teleport: Array | None, nodes: int) -> Array:
    if teleport is None:
        return np.full(nodes, 1.0 / nodes)
    if teleport.shape != (nodes,) or not (teleport >= 0).all() or not 0 < teleport.sum() < np.inf:
        raise ValueError(f"teleport must be {nodes} weights >= 0 that are not all 0")
    return np.asarray(teleport / teleport.sum())


def _power(links: _Links[np.float32], flow: _Single, least: float, steps: int) -> tuple[_Single, int]:
    """(Sum of what `flow` becomes along the links until only `least` of it is left, in the L1 norm; steps taken)."""
    total = flow.copy()
    taken = 0
    while taken < steps and float(np.abs(flow).sum(dtype=np.float64)) > least:
        flow = links.pull(flow)
        total += flow
        taken += 1
    return total, taken


def _orthomin(links: _Links[np.float32], flow: _Single, least: float, steps: int) -> tuple[_Single, int]:
    """The same by ORTHOMIN: what is left of `flow` is made least in the L2 norm over the last few directions."""
    total = np.zeros_like(flow)
    kept: deque[tuple[_Single, _Single, float]] = deque(maxlen=_KEPT)
    taken = 0
    while taken < min(steps, _LONGEST) and float(np.abs(flow).sum(dtype=np.float64)) > least:
        direction = flow.copy()
        effect = flow - links.pull(flow)
        taken += 1
        for earlier, its_effect, square in kept:
            part = np.float32(float(effect @ its_effect) / square)
            direction -= part * earlier
            effect -= part * its_effect
        square = float(effect @ effect)
        if square == 0.0:
            break
        length = np.float32(float(flow @ effect) / square)
        total += length * direction
        flow = flow - length * effect
        kept.append((direction, effect, square))
    return total, taken


class _Links(Generic[_Real]):
    """A graph's blocks as matrices of ones in one precision, which share the ones and copy no page number."""

    def __init__(self, graph: LinkGraph, damping: float, precision: type[_Real]) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415  (0.3 s at start)

        self._share: npt.NDArray[_Real] = (graph.share * damping).astype(precision)
        ones = np.ones(max((len(block.sources) for block in graph.blocks), default=0), dtype=precision)
        self._blocks = [
            (
                first,
                csr_array((ones[: len(sources)], sources, indptr), shape=(len(indptr) - 1, graph.nodes)),
            )
            for first, indptr, sources in graph.blocks
        ]

    def pull(self, scores: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
        """(n,) what each page gets from those that link to it."""
        given = scores * self._share
        pulled = np.empty_like(scores)
        for first, block in self._blocks:
            pulled[first : first + block.shape[0]] = block @ given
        return pulled
