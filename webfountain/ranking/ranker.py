"""The ranker: from a link log, or a graph file, to scores; a process of its own beside the crawl.

The log's rows are read once: fingerprints become page numbers (their place in the sorted list of all sources and
targets, so that pages nobody has fetched are ranked too), links are sorted into files by target, and each file
becomes a block of in-links that is mapped into memory while the ranking reads it. So memory holds the list of
fingerprints, a block, and the ranking's vectors.
"""

from __future__ import annotations

__all__ = ["METHODS", "RankedLog", "publish_ranking", "rank_file", "rank_log", "rank_with", "ranked_log"]

import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.core.rank import DAMPENING, DAMPING, LinkBlock, LinkGraph, Ranking, backlinks, pagerank, trustrank
from webfountain.core.resemblance import distinct
from webfountain.errors import InputError
from webfountain.ranking import NOFOLLOW, UNFOLLOWED, publish_scores
from webfountain.ranking.link_log import LinkLogReader, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt
    import pyarrow as pa

    Fingerprints = npt.NDArray[np.uint64]
    Links = npt.NDArray[np.int32]

METHODS = ("pagerank", "trustrank", "backlinks")
TOP: Final = 100
_TARGETS_A_BLOCK: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class RankedLog:
    """Pages of a link log: (n,) fingerprints, ascending, the graph whose page numbers are places in them.

    `crawled` (n,) tells of which the log has a row.
    """

    fingerprints: Fingerprints
    graph: LinkGraph
    crawled: npt.NDArray[np.bool_]


def rank_with(
    graph: LinkGraph, method: str, *, damping: float | None, trusted: npt.NDArray[np.int64] | None
) -> Ranking:
    """Rank a graph by a method of `METHODS`; InputError when an argument does not fit it."""
    if damping is not None and not 0 <= damping < 1:
        raise InputError(f"--damping: {damping} is not within [0, 1)")
    if (trusted is None) == (method == "trustrank"):
        raise InputError("--trusted goes with --method trustrank, and only with it")
    if graph.nodes == 0:
        raise InputError("there is no page to rank")
    if method == "backlinks":
        if damping is not None:
            raise InputError("--damping means nothing for --method backlinks")
        return backlinks(graph)
    if trusted is not None:
        return trustrank(graph, trusted, dampening=DAMPENING if damping is None else damping)
    return pagerank(graph, damping=DAMPING if damping is None else damping)


def rank_file(
    file: Path, *, method: str, damping: float | None, trusted: Path | None, out: Path | None
) -> dict[str, Any]:
    """Rank a graph of an npz file with `indptr` and `indices`; the JSON document of `rank` (DESIGN section 7).

    `trusted` has a page number on each line; `out` takes all scores (.npy), in the order of the numbers. `seconds`
    are the ranking's without reading the file.
    """
    try:
        with np.load(file) as arrays:
            graph = LinkGraph.from_csr(arrays["indptr"], arrays["indices"])
    except OSError as error:
        raise InputError(f"--graph: {file}: {error.strerror or error}") from error
    except (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--graph: {file}: no npz with successor lists indptr and indices ({error})") from error
    seeds = None if trusted is None else _numbers(trusted, graph.nodes)
    begin = time.perf_counter()
    ranking = rank_with(graph, method, damping=damping, trusted=seeds)
    seconds = time.perf_counter() - begin
    top = _top(ranking.scores)
    return _document(graph, ranking, seconds, [[page, float(ranking.scores[page])] for page in top], out)


def rank_log(url: str, *, method: str, damping: float | None, trusted: Path | None, out: Path | None) -> dict[str, Any]:
    """Rank the pages of a link log; as `rank_file`, with URLs for numbers; `out` is in the order of fingerprints."""
    with tempfile.TemporaryDirectory(prefix="webfountain-rank-") as scratch:
        begin = time.perf_counter()
        log = ranked_log(url, Path(scratch))
        seeds = None if trusted is None else _places(trusted, log.fingerprints)
        ranking = rank_with(log.graph, method, damping=damping, trusted=seeds)
        seconds = time.perf_counter() - begin
        top = _top(ranking.scores)
        urls = _urls(url, log.fingerprints[top])
        listed = [[urls.get(int(log.fingerprints[page]), ""), float(ranking.scores[page])] for page in top]
        return _document(log.graph, ranking, seconds, listed, out)


def publish_ranking(url: str, folder: Path, *, trusted: Mapping[str, float] | None = None, at: float = 0.0) -> int:
    """Rank a link log by PageRank and backlinks, and by trust in these URLs; publish the scores; the epoch's number.

    What a process beside the crawl does. Scores are relative to the mean; that of `crawled` is 1 where the log has a
    row. Sites are ranked by the links between them (Cho 2000, section 2.1) in the folder `sites` below. Trusted URLs,
    each with how far it is trusted, 0 to 1, have no say where they are not in the log; without any there is no trust
    score.
    """
    with tempfile.TemporaryDirectory(prefix="ranking-", dir=folder.parent) as scratch:
        log = ranked_log(url, Path(scratch))
        count = len(log.fingerprints)
        if not count:
            return publish_scores(folder, log.fingerprints, {}, at=at)
        found = {"pagerank": pagerank(log.graph).scores, "backlinks": backlinks(log.graph).scores}
        weights = {fingerprint(page): trust for page, trust in (trusted or {}).items() if trust > 0}
        seeds = _known(np.array(sorted(weights), dtype=np.uint64), log.fingerprints)
        if len(seeds):
            given = np.array([weights[page] for page in log.fingerprints[seeds].tolist()])
            found["trust"] = trustrank(log.graph, seeds, weights=given).scores
        scores = {name: each * count for name, each in found.items()} | {"crawled": log.crawled.astype(np.float64)}
        _publish_sites(url, folder / "sites", at)
        return publish_scores(folder, log.fingerprints, scores, at=at, links=log.graph.edges)


def _publish_sites(url: str, folder: Path, at: float) -> None:
    """Rank the sites of a link log by the links between them; one counts once, however many pages link."""
    found: list[npt.NDArray[np.uint64]] = [np.zeros((0, 2), dtype=np.uint64)]
    waiting = 0
    for table in LinkLogReader(url).rows():
        degree = np.diff(table["targets"].combine_chunks().offsets.to_numpy())
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
    """The graph of a link log, its blocks in files of `scratch`, which must live as long as the graph is used.

    Links that the page's author takes back (nofollow) do not count, nor those that the crawl does not follow: a page's
    score is divided among its valid outlinks (Policies 2006). A link that stands on a page twice counts once.
    """
    reader = LinkLogReader(url)
    pages = _all_pages(reader)
    nodes = len(pages)
    blocks = -(-nodes // _TARGETS_A_BLOCK)
    files = [scratch / f"links-{each}" for each in range(blocks)]
    crawled = np.zeros(nodes, dtype=np.bool_)
    for rows, sources, targets in _links(reader):
        crawled[np.searchsorted(pages, rows)] = True
        pairs = np.empty((len(sources), 2), dtype=np.int32)
        pairs[:, 0], pairs[:, 1] = np.searchsorted(pages, sources), np.searchsorted(pages, targets)
        home = pairs[:, 1] // _TARGETS_A_BLOCK
        order = np.argsort(home, kind="stable")
        ends = np.searchsorted(home[order], np.arange(blocks + 1))
        for block in np.flatnonzero(np.diff(ends)).tolist():
            with files[block].open("ab") as file:
                pairs[order[ends[block] : ends[block + 1]]].tofile(file)
    degree = np.zeros(nodes, dtype=np.int64)
    made = [_block(file, each, nodes, degree) for each, file in enumerate(files)]
    share = np.divide(1.0, degree, out=np.zeros(nodes), where=degree > 0)
    return RankedLog(pages, LinkGraph(nodes, made, share), crawled)


def _all_pages(reader: LinkLogReader) -> Fingerprints:
    """(n,) fingerprints of all sources, and of all targets of links that count, ascending."""
    pages = np.zeros(0, dtype=np.uint64)
    fresh: list[Fingerprints] = []
    waiting = 0
    for table in reader.rows():
        fresh += [table["source"].to_numpy(), _flat(table, "targets")[_counted(table)]]
        waiting += len(fresh[-1]) + len(fresh[-2])
        # Merged when there are as many as are known, so that the whole costs a few sorts.
        if waiting > max(len(pages), 1 << 20):
            pages, fresh, waiting = distinct(np.concatenate([pages, *fresh])), [], 0
    return distinct(np.concatenate([pages, *fresh])) if fresh else pages


def _links(reader: LinkLogReader) -> Iterator[tuple[Fingerprints, Fingerprints, Fingerprints]]:
    """(pages, sources of links, their targets) of the links that count, of the newest row of each page."""
    shards, segments = set(reader.shards), reader.files
    fresh: dict[int, float] = {}
    # What is not compacted holds the newest rows: those are read last and looked through first.
    for table in reader.rows(files=[each for each in segments if each not in shards]):
        for source, at in zip(table["source"].to_pylist(), table["time"].to_pylist(), strict=True):
            fresh[source] = max(at, fresh.get(source, at))
    written: set[int] = set()
    for file in segments:
        for table in reader.rows(files=[file]):
            source, at = table["source"].to_numpy(), table["time"].to_numpy()
            if fresh:
                newest = [
                    fresh.get(page, when) == when and not (page in fresh and page in written)
                    for page, when in zip(source.tolist(), at.tolist(), strict=True)
                ]
                written.update(page for page in source[newest].tolist() if page in fresh)
                table = table.filter(newest)  # noqa: PLW2901
                source = source[newest]
            degree = np.diff(table["targets"].combine_chunks().offsets.to_numpy())
            counted = _counted(table)
            yield source, np.repeat(source, degree)[counted], _flat(table, "targets")[counted]


def _counted(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Of each link of the rows whether it counts."""
    return np.asarray((_flat(table, "flags") & (NOFOLLOW | UNFOLLOWED)) == 0)


def _flat(table: pa.Table, column: str) -> npt.NDArray[Any]:
    return np.asarray(table[column].combine_chunks().flatten().to_numpy())


def _block(file: Path, number: int, nodes: int, degree: npt.NDArray[np.int64]) -> LinkBlock:
    """In-links of one run of pages, mapped from a file; counts what each source gives into `degree`."""
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


def _document(
    graph: LinkGraph, ranking: Ranking, seconds: float, top: list[list[Any]], out: Path | None
) -> dict[str, Any]:
    if out is not None:
        try:
            with out.open("wb") as file:
                np.save(file, ranking.scores)
        except OSError as error:
            raise InputError(f"--out: {out}: {error.strerror or error}") from error
    return {
        "seconds": seconds,
        "iterations": ranking.steps,
        "nodes": graph.nodes,
        "edges": graph.edges,
        "top": top,
    }


def _top(scores: npt.NDArray[np.float64]) -> list[int]:
    order = np.argsort(-scores, kind="stable")[:TOP]
    return [int(page) for page in order]


def _lines(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--trusted: {file}: {error}") from error
    return [line for line in lines if line and not line.startswith("#")]


def _numbers(file: Path, nodes: int) -> npt.NDArray[np.int64]:
    found = []
    for line in _lines(file):
        if not line.isdecimal() or int(line) >= nodes:
            raise InputError(f"--trusted: {file}: {line!r} is no page number within 0..{nodes - 1}")
        found.append(int(line))
    if not found:
        raise InputError(f"--trusted: {file} names no page")
    return np.array(found, dtype=np.int64)


def _places(file: Path, pages: Fingerprints) -> npt.NDArray[np.int64]:
    found = _known(np.array(sorted(map(fingerprint, _lines(file))), dtype=np.uint64), pages)
    if not len(found):
        raise InputError(f"--trusted: {file}: no page of it is in the link log")
    return found


def _known(wanted: Fingerprints, pages: Fingerprints) -> npt.NDArray[np.int64]:
    """Places of those of `wanted` that are among `pages`."""
    at = np.searchsorted(pages, wanted)
    at = at[at < len(pages)] if len(pages) else at[:0]
    return at[np.isin(pages[at], wanted)]


def _urls(url: str, wanted: Fingerprints) -> dict[int, str]:
    """URLs of a few fingerprints."""
    found: dict[int, str] = {}
    for table in LinkLogReader(url).names():
        keys = table["fingerprint"].to_numpy()
        hit = np.flatnonzero(np.isin(keys, wanted))
        found.update(zip(keys[hit].tolist(), table["url"].take(hit).to_pylist(), strict=True))
    return found
