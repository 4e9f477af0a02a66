"""Ranking: cnr-2000 beside networkx and igraph, and its growth: ``python -m tests.benchmarks.bench_rank [--full]``.

All are given the graph in the form they rank (CSR, igraph's own) and run in turn, CPU seconds; errors are L1 distances
to a ranking of tolerance 1e-13. Generated graphs (power-law targets, sites of 1000 pages, ten links a page) of 10^5 to
10^7 links, with ``--full`` 10^8, tell time and memory per link; memory is the graph's arrays. The dominating cost is
one gather per link and step.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.rank import LinkGraph, pagerank

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "graph" / "cnr-2000.npz"
ROUNDS = 3


def main() -> None:
    """A line for each library, then one for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 10^8 links: 1.5 GB")
    full = parser.parse_args().full
    if DATA.exists():
        with np.load(DATA) as arrays:
            _beside_others(arrays["indptr"], arrays["indices"])
    for links in (10**5, 10**6, 10**7, *([10**8] if full else [])):
        _grow(links)


def _beside_others(indptr: npt.NDArray[np.int32], indices: npt.NDArray[np.int32]) -> None:
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
    """The power iteration of networkx 3.6, `_pagerank_scipy`, on a matrix that is there already."""
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
    rng = np.random.default_rng(1)
    nodes = links // 10
    sources = np.sort(rng.integers(0, nodes, links, dtype=np.int32))
    near = rng.random(links, dtype=np.float32) < 0.8
    targets = (nodes * rng.random(links, dtype=np.float32) ** 3).astype(np.int32)
    homes = sources // 1000 * 1000
    targets[near] = np.minimum(homes[near] + (1000 * rng.random(int(near.sum())) ** 2).astype(np.int32), nodes - 1)
    indptr = np.searchsorted(sources, np.arange(nodes + 1)).astype(np.int32)
    del sources, homes, near
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


if __name__ == "__main__":
    main()
