"""Compare ranking with networkx and igraph on cnr-2000, and measure its growth: ``python -m tests.benchmarks.bench_rank
[--full]``.

All libraries get the graph in their own form (CSR, igraph's own) and run in turn. Errors are L1 distances to a ranking
with tolerance 1e-13. Generated graphs (power-law targets, sites of 1000 pages, ten links per page) of 10^5 to 10^7
links, with ``--full`` 10^8, show time and memory per link. Memory is the arrays of the graph. Most of the cost is one
gather per link and step. ``--parquet LINKS...`` uses the same graphs as a compacted link log, which takes 30 bytes per
link on disk, and prints the power by which the time grows. Each graph is ranked in a separate process, and the peak
memory above that of an idle process is printed, including mapped files.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.core.shingles import mixed
from webfountain.ranking.link_log import compact
from webfountain.ranking.ranker import ranked_log

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

P = ParamSpec("P")
T = TypeVar("T")

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "graph" / "cnr-2000.npz"
ROUNDS = 3


def main() -> None:
    """Print a line for each library, then a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 10^8 links: 1.5 GB")
    parser.add_argument("--parquet", type=float, nargs="+", metavar="LINKS")
    options = parser.parse_args()
    if options.parquet:
        _from_parquet([int(links) for links in options.parquet])
        return
    full = options.full
    if DATA.exists():
        with np.load(DATA) as arrays:
            _beside_others(arrays["indptr"], arrays["indices"])
    for links in (10**5, 10**6, 10**7, *([10**8] if full else [])):
        _grow(links)


def _beside_others(indptr: npt.NDArray[np.int32], indices: npt.NDArray[np.int32]) -> None:
    # With two threads on a busy machine PRPACK spends three to nine seconds, most of it waiting for each other.
    os.environ["OMP_NUM_THREADS"] = "1"
    import igraph
    from scipy.sparse import csr_array

    nodes = len(indptr) - 1
    graph = LinkGraph.from_csr(indptr, indices)
    truth = pagerank(graph, tolerance=1e-13).scores
    matrix = csr_array((np.ones(len(indices)), indices, indptr), shape=(nodes, nodes))
    sources = np.repeat(np.arange(nodes), np.diff(indptr))
    other = igraph.Graph(n=nodes, edges=np.stack([sources, indices], 1), directed=True)
    ways: dict[str, Callable[[], npt.NDArray[np.float64]]] = {
        "webfountain, 1e-10": lambda: pagerank(graph).scores,
        "networkx' iteration, the same error": lambda: _networkx(matrix),
        "igraph (PRPACK)": lambda: np.array(other.pagerank(damping=0.9)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.process_time()
            found = way()
            seconds[name].append(time.process_time() - begin)
            if len(seconds[name]) == ROUNDS:
                ratio = np.median(seconds["webfountain, 1e-10"]) / np.median(seconds[name])
                error = np.abs(found - truth).sum()
                print(f"{name}: {np.median(seconds[name]):.2f} s, ours over it {ratio:.2f}, L1 error {error:.1e}")


def _networkx(matrix: object) -> npt.NDArray[np.float64]:
    """Return the result of the power iteration of networkx 3.6, `_pagerank_scipy`, on a ready matrix."""
    import scipy as sp

    nodes, _ = matrix.shape  # type: ignore[attr-defined]
    out = np.asarray(matrix.sum(axis=1)).ravel()  # type: ignore[attr-defined]
    dangling = np.where(out == 0)[0]
    out[out != 0] = 1.0 / out[out != 0]
    steps = sp.sparse.csr_array(sp.sparse.spdiags(out, 0, nodes, nodes)) @ matrix
    x = np.repeat(1.0 / nodes, nodes)
    even = x.copy()
    while True:
        last = x
        x = 0.9 * (x @ steps + sum(x[dangling]) * even) + 0.1 * even
        if np.abs(x - last).sum() < 2e-11:  # the step that leaves our error
            return np.asarray(x)


def _grow(links: int) -> None:
    indptr, targets = _generated(links)
    nodes = len(indptr) - 1
    graph = LinkGraph.from_csr(indptr, targets)
    size = sum(block.sources.nbytes + block.indptr.nbytes for block in graph.blocks) + indptr.nbytes + targets.nbytes
    begin = time.process_time()
    found = pagerank(graph)
    seconds = time.process_time() - begin
    per_link = seconds / found.steps / links
    print(
        f"{links:.0e} links: {seconds:.2f} s, {found.steps} steps, {per_link * 1e9:.2f} ns a link and step,"
        f" graph {size / links:.1f} bytes a link, vectors {84 * nodes / links:.1f}"
    )


def _generated(links: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the successor lists of a generated graph."""
    rng = np.random.default_rng(1)
    nodes = links // 10
    sources = np.sort(rng.integers(0, nodes, links, dtype=np.int32))
    near = rng.random(links, dtype=np.float32) < 0.8
    targets = (nodes * rng.random(links, dtype=np.float32) ** 3).astype(np.int32)
    homes = sources // 1000 * 1000
    targets[near] = np.minimum(homes[near] + (1000 * rng.random(int(near.sum())) ** 2).astype(np.int32), nodes - 1)
    indptr = np.searchsorted(sources, np.arange(nodes + 1)).astype(np.int32)
    return indptr, targets


class RankingCost(NamedTuple):
    """The CPU seconds of reading and of ranking a log, the numbers of steps and pages, and the peak memory in bytes."""

    read_s: float
    rank_s: float
    steps: int
    pages: int
    peak: int


def _from_parquet(sizes: list[int]) -> None:
    """Print a line for each size, and the power of the number of links by which the time grows."""
    seconds = []
    for links in sizes:
        with tempfile.TemporaryDirectory(prefix="webfountain-bench-") as folder:
            url = f"{folder}/links"
            _alone(_write_log, links, url)
            found = _alone(_ranked, url, folder)
        seconds.append(found.read_s + found.rank_s)
        step = found.rank_s / found.steps / links
        print(
            f"{links:.0e} links in Parquet: read {found.read_s:.1f} s, {found.read_s / links * 1e9:.0f} ns a link;"
            f" ranked {found.rank_s:.1f} s, {found.steps} steps, {step * 1e9:.2f} ns a link and step;"
            f" at most {found.peak / links:.1f} bytes a link",
            flush=True,
        )
    if len(sizes) > 1:
        power, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
        print(f"time grows by links^{power:.2f}")


def _alone(act: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run a function in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(act, *args, **options).result()


def _write_log(links: int, url: str) -> None:
    """Write compacted segments of 100,000 pages, with evenly spread fingerprints."""
    indptr, targets = _generated(links)
    nodes = len(indptr) - 1
    numbers = np.arange(nodes, dtype=np.uint64)
    keys, sites = mixed(numbers), mixed(numbers[: nodes // 1000 + 1] << np.uint64(32))
    (Path(url) / "segments").mkdir(parents=True)
    for first in range(0, nodes, 100_000):
        last = min(nodes, first + 100_000)
        pages, linked = np.arange(first, last), targets[indptr[first] : indptr[last]]
        ends = pa.array(indptr[first : last + 1] - indptr[first])
        rows = {
            "source": keys[pages],
            "site": sites[pages // 1000],
            "time": np.ones(len(pages)),
            "sequence": pages.astype(np.uint64),
            "targets": pa.ListArray.from_arrays(ends, pa.array(keys[linked])),
            "target_sites": pa.ListArray.from_arrays(ends, pa.array(sites[linked // 1000])),
            "flags": pa.ListArray.from_arrays(ends, pa.array(np.zeros(len(linked), dtype=np.uint8))),
            "anchors": pa.nulls(len(pages), pa.list_(pa.string())),
        }
        urls = [f"http://s{page // 1000}.example/{page}" for page in pages.tolist()]
        names = {"fingerprint": keys[pages], "site": sites[pages // 1000], "url": urls}
        stem = f"00000000-bench-{first:016d}.parquet"
        pq.write_table(pa.table(names), f"{url}/segments/names-{stem}", compression="zstd")
        pq.write_table(pa.table(rows), f"{url}/segments/links-{stem}", compression="zstd")
    assert compact(url) == nodes


def _ranked(url: str, scratch: str) -> RankingCost:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    log = ranked_log(url, Path(scratch))
    read = time.process_time()
    found = pagerank(log.graph)
    ranked = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert log.crawled.all()
    return RankingCost(read - begin, ranked - read, found.steps, len(found.scores), 1024 * peak)


if __name__ == "__main__":
    main()
