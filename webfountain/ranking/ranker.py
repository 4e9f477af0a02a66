"""The ranker computes scores of pages from a link log, in a process of its own.

Each source and each target of a link is a page, so pages that were never fetched are ranked too. To save memory, the
ranker loads the links to only a part of the pages at a time.
"""

from __future__ import annotations

__all__ = ["Fingerprints", "RankedLog", "positions", "publish_ranking", "ranked_log"]

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.core.link_graph import LinkBlock, LinkGraph
from webfountain.core.order_replay import replay_losses
from webfountain.core.pagerank import backlinks, pagerank, trustrank
from webfountain.core.shingles import distinct
from webfountain.ranking.link_journal import NOFOLLOW, UNFOLLOWED
from webfountain.ranking.link_log import LinkLogReader, fingerprint
from webfountain.ranking.scores import last_replay, places, publish_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    Fingerprints = npt.NDArray[np.uint64]
    Scores = npt.NDArray[np.float64]
    Times = npt.NDArray[np.float64]

FEWEST_REPLAYED: Final = 200
"""Minimum number of crawled pages for a comparison of crawl orders (`core.order_replay`)."""
MOST_REPLAYED: Final = 5000
"""Maximum number of crawled pages for which the ranker still compares the crawl orders."""
MOST_REPLAYED_LINKS: Final = 1_000_000
"""Maximum number of logged links for which the ranker still compares the crawl orders."""
_TARGETS_A_BLOCK: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class RankedLog:
    """The pages of a link log, as (n,) ascending fingerprints, and the links between them, as a graph.

    The number of a page in the graph is the index of its fingerprint in `fingerprints`.

    `crawled` (n,) marks the pages with a row in the log.
    """

    fingerprints: Fingerprints
    graph: LinkGraph
    crawled: npt.NDArray[np.bool_]
    times: npt.NDArray[np.float64]
    """(n,) time of the newest row of each page, or inf for a page without a row."""
    pairs: npt.NDArray[np.int32] | None
    """(m, 2) source and target of each link, or None for a large log."""


def publish_ranking(url: str, folder: Path, *, trusted: Mapping[str, float] | None = None, at: float = 0.0) -> int:
    """Rank a link log by PageRank, backlinks and trust, publish the scores, and return the number of the epoch.

    Each score is divided by its mean over all pages. The score `crawled` is 1 for pages with a row in the log. The
    scores of sites are published in the subfolder `sites` (Cho 2000, section 2.1). `trusted` maps URLs to their trust,
    0 to 1. If `trusted` is empty, pages get no trust score.
    """
    with tempfile.TemporaryDirectory(prefix="ranking-", dir=folder.parent) as scratch:
        log = ranked_log(url, Path(scratch))
        count = len(log.fingerprints)
        if not count:
            return publish_scores(folder, log.fingerprints, {}, at=at)
        found = {"pagerank": pagerank(log.graph).scores, "backlinks": backlinks(log.graph).scores}
        weights = {fingerprint(page): trust for page, trust in (trusted or {}).items() if trust > 0}
        seeds = positions(np.array(sorted(weights), dtype=np.uint64), log.fingerprints)
        if len(seeds):
            given = np.array([weights[page] for page in log.fingerprints[seeds].tolist()])
            found["trust"] = trustrank(log.graph, seeds, weights=given).scores
        scores = {name: each * count for name, each in found.items()} | {"crawled": log.crawled.astype(np.float64)}
        _publish_sites(url, folder / "sites", at)
        replayed, losses = replayed_orders(folder, log, found["pagerank"], found["backlinks"])
        return publish_scores(
            folder, log.fingerprints, scores, at=at, links=log.graph.edges, replayed=replayed, losses=losses
        )


def replayed_orders(folder: Path, log: RankedLog, ranks: Scores, backlinks: Scores) -> tuple[int, Sequence[float]]:
    """Compare crawl orders by simulated crawls of the logged pages, if a comparison is due (`core.order_replay`).

    In a small crawl, a comparison is due whenever the number of crawled pages has grown by half. Return the number of
    pages in the last comparison, and the total loss of each crawl order in all comparisons.
    """
    last, losses = last_replay(folder)
    crawled = int(np.count_nonzero(log.crawled))
    if log.pairs is None or crawled < max(FEWEST_REPLAYED, 1.5 * last):
        return last, losses
    pages = np.argsort(log.times, kind="stable")[:crawled]
    number = np.full(len(log.times), -1, dtype=np.int64)
    number[pages] = np.arange(crawled)
    sources, targets = number[log.pairs[:, 0]], number[log.pairs[:, 1]]
    is_between = (sources >= 0) & (targets >= 0)
    sources, targets = sources[is_between], targets[is_between]
    order = np.argsort(sources, kind="stable")  # each page's links stay in order
    ends = np.cumsum(np.bincount(sources, minlength=crawled)).tolist()
    flat = targets[order].tolist()
    links = [flat[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    found = replay_losses(links, ranks=ranks[pages], backlinks=backlinks[pages])
    return crawled, [sum(each) for each in zip(losses or [0.0] * len(found), found, strict=True)]


def is_small(crawled: int, links: int) -> bool:
    """Return whether a log is small enough for a comparison of crawl orders (`core.order_replay`)."""
    return crawled <= MOST_REPLAYED and links <= MOST_REPLAYED_LINKS


def _publish_sites(url: str, folder: Path, at: float) -> None:
    """Rank the sites of a link log by the links between them. Several links from one site to another count once."""
    found: list[npt.NDArray[np.uint64]] = [np.zeros((0, 2), dtype=np.uint64)]
    waiting = 0
    for table in LinkLogReader(url).rows(columns=["site", "target_sites", "flags"]):
        degree = np.diff(table["flags"].combine_chunks().offsets.to_numpy())
        home, linked = table["site"].to_numpy(), _flat(table, "target_sites")
        sites = distinct(np.concatenate([home, linked]))
        both = np.repeat(np.searchsorted(sites, home), degree) * len(sites) + np.searchsorted(sites, linked)
        both = distinct(both[_counted(table)])
        found.append(np.stack([sites[both // len(sites)], sites[both % len(sites)]], axis=1))
        waiting += len(both)
        if waiting > max(len(found[0]), 1 << 20):
            found, waiting = [_distinct_pairs(np.concatenate(found))], 0
    pairs = _distinct_pairs(np.concatenate(found))
    sites = distinct(pairs.ravel())
    between = pairs[pairs[:, 0] != pairs[:, 1]]
    starts = np.append(np.searchsorted(between[:, 0], sites), len(between))
    graph = LinkGraph.from_csr(starts, np.searchsorted(sites, between[:, 1]))
    publish_scores(folder, sites, {"pagerank": pagerank(graph).scores * len(sites)}, at=at)


def _distinct_pairs(pairs: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    ordered = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[first]


def ranked_log(url: str, scratch: Path) -> RankedLog:
    """Return the graph of the links in a link log.

    The graph is stored in files in the folder `scratch`, which must exist while the graph is used.

    Links that the crawl does not follow, such as nofollow links, are ignored (Policies 2006). Several links from one
    page to another count once.
    """
    reader = LinkLogReader(url)
    pages = _all_pages(reader)
    nodes = len(pages)
    blocks = -(-nodes // _TARGETS_A_BLOCK)
    files = [scratch / f"links-{each}" for each in range(blocks)]
    crawled = np.zeros(nodes, dtype=np.bool_)
    times = np.full(nodes, np.inf)
    few: list[npt.NDArray[np.int32]] | None = []
    links = 0
    for sources, at, degrees, targets in _links(reader):
        rows = np.searchsorted(pages, sources)
        crawled[rows], times[rows] = True, at
        pairs = np.empty((len(targets), 2), dtype=np.int32)
        pairs[:, 0], pairs[:, 1] = np.repeat(rows, degrees), places(pages, targets)
        links += len(pairs)
        few = [*few, pairs] if few is not None and is_small(int(np.count_nonzero(crawled)), links) else None
        home = pairs[:, 1] // _TARGETS_A_BLOCK
        order = np.argsort(home, kind="stable")
        ends = np.searchsorted(home[order], np.arange(blocks + 1))
        for block in np.flatnonzero(np.diff(ends)).tolist():
            with files[block].open("ab") as file:
                pairs[order[ends[block] : ends[block + 1]]].tofile(file)
    degree = np.zeros(nodes, dtype=np.int64)
    made = [_block(file, each, nodes, degree) for each, file in enumerate(files)]
    share = np.divide(1.0, degree, out=np.zeros(nodes), where=degree > 0)
    in_order = None if few is None else np.concatenate([np.zeros((0, 2), dtype=np.int32), *few])
    return RankedLog(pages, LinkGraph(nodes, made, share), crawled, times, in_order)


def _all_pages(reader: LinkLogReader) -> Fingerprints:
    """Return the (n,) ascending fingerprints of all pages in the log and of all targets of followed links."""
    pages = np.zeros(0, dtype=np.uint64)
    fresh: list[Fingerprints] = []
    waiting = 0
    for table in reader.rows(columns=["source", "targets", "flags"]):
        fresh += [table["source"].to_numpy(), _flat(table, "targets")[_counted(table)]]
        waiting += len(fresh[-1]) + len(fresh[-2])
        # Merge when there are as many new fingerprints as known ones, so that the total cost is a few sorts.
        if waiting > max(len(pages), 1 << 20):
            pages, fresh, waiting = distinct(np.concatenate([pages, *fresh])), [], 0
    return distinct(np.concatenate([pages, *fresh])) if fresh else pages


def _links(reader: LinkLogReader) -> Iterator[tuple[Fingerprints, Times, npt.NDArray[np.intp], Fingerprints]]:
    """Yield the newest row of each page, in batches: (pages, times, numbers of links, link targets)."""
    shards, segments = set(reader.shards), reader.files
    fresh: dict[int, float] = {}
    # Files that are not compacted have the newest rows, so they are read last and searched first.
    for table in reader.rows(files=[each for each in segments if each not in shards], columns=["source", "time"]):
        for source, at in zip(table["source"].to_pylist(), table["time"].to_pylist(), strict=True):
            fresh[source] = max(at, fresh.get(source, at))
    written: set[int] = set()
    for file in segments:
        for table in reader.rows(files=[file], columns=["source", "time", "targets", "flags"]):
            source, at = table["source"].to_numpy(), table["time"].to_numpy()
            if fresh:
                newest = [
                    fresh.get(page, when) == when and not (page in fresh and page in written)
                    for page, when in zip(source.tolist(), at.tolist(), strict=True)
                ]
                written.update(page for page in source[newest].tolist() if page in fresh)
                if not all(newest):  # `filter` imports pyarrow.compute, as `_flat` says
                    table = table.filter(newest)  # noqa: PLW2901
                    source, at = source[newest], at[newest]
            counted = _counted(table)
            starts = table["targets"].combine_chunks().offsets.to_numpy()
            degrees = np.diff(np.concatenate([[0], np.cumsum(counted)])[starts - starts[0]])
            yield source, at, degrees, _flat(table, "targets")[counted]


def _counted(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Return for each link of a table whether the ranking uses the link."""
    return np.asarray((_flat(table, "flags") & (NOFOLLOW | UNFOLLOWED)) == 0)


def _flat(table: pa.Table, column: str) -> npt.NDArray[Any]:
    lists = table[column].combine_chunks()
    # Its `flatten` would import pyarrow.compute, which takes as long as the ranking of some thousand pages.
    bounds = lists.offsets.to_numpy()
    return np.asarray(lists.values.to_numpy()[bounds[0] : bounds[-1]])


def _block(file: Path, number: int, nodes: int, degree: npt.NDArray[np.int64]) -> LinkBlock:
    """Return the links in a file as a part of the graph, sorted by target. Add the number of links of each page to
    `degree`."""
    first = number * _TARGETS_A_BLOCK
    rows = min(_TARGETS_A_BLOCK, nodes - first)
    pairs = np.fromfile(file, dtype=np.int32).reshape(-1, 2) if file.exists() else np.zeros((0, 2), dtype=np.int32)
    keys = distinct((pairs[:, 1].astype(np.int64) - first) * nodes + pairs[:, 0])
    sources = (keys % nodes).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys // nodes, minlength=rows))]).astype(np.int32)
    degree += np.bincount(sources, minlength=nodes)
    sources.tofile(file)
    mapped = np.memmap(file, dtype=np.int32, mode="r") if len(sources) else sources
    return LinkBlock(first, indptr, mapped)


def positions(wanted: Fingerprints, pages: Fingerprints) -> npt.NDArray[np.int64]:
    """Return the positions at which `pages` contains the pages in `wanted`. Pages that are in `wanted` but not in
    `pages` are omitted."""
    at = np.searchsorted(pages, wanted)
    at = at[at < len(pages)] if len(pages) else at[:0]
    return at[np.isin(pages[at], wanted)]
