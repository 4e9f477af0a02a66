"""Compare orderings on real and generated graphs: ``python -m tests.benchmarks.bench_ordering [--graph FILE --start
NODE]``.

The graphs are cnr-2000 from node 217849, the apache sites from their largest home page, and generated sites. Printed
are the area and the share of the hot pages found at each tenth of the crawl, by PageRank and by backlinks. `fountain`
is the order of the live crawl. Its distance at a tenth from the best of breadth-first, backlink and PageRank order is
printed too. `--live` also crawls the graph over HTTP. Most of the cost is the rankings and the importance of links.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.acceptance.test_order import live_order
from tests.ranking.linked_web import LinkedWeb
from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.lab.simulate.crawl_order import Crawl, GraphFile, crawl, hot_pages, load_graph, shares

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "graph"
GRAPHS = ((DATA / "cnr-2000.npz", 217_849), (DATA / "apache-sites.npz", 20_679))
RIVALS = ("breadth-first", "backlinks", "pagerank")


def main() -> None:
    """Print a table for each graph and each meaning of hot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path, help="one graph instead of all: an npz with indptr and indices")
    parser.add_argument("--start", type=int, default=0, help="the page where its crawl starts")
    parser.add_argument("--live", action="store_true", help="crawl it over HTTP too; for a graph of some 10,000 pages")
    given = parser.parse_args()
    for name, web, start in (
        graphs() if given.graph is None else [(given.graph.stem, load_graph(given.graph), given.start)]
    ):
        links = LinkGraph.from_csr(web.indptr, web.indices)
        done = {order: crawl(web, start, order) for order in (*RIVALS, "opic", "fountain")}
        if given.live:
            with tempfile.TemporaryDirectory() as folder:
                order = live_order(web, start, Path(folder))
            done["over HTTP"] = Crawl(np.array(order, dtype=np.int64), [], 0.0)
        for meaning, importance in (
            ("PageRank", pagerank(links).scores),
            ("backlinks", links.in_degree().astype(np.float64)),
        ):
            report(f"{name}, hot by {meaning}", done, importance)


def graphs() -> Iterator[tuple[str, GraphFile, int]]:
    """Return the graphs with their names and start pages."""
    for file, start in GRAPHS:
        yield file.stem, load_graph(file), start
    for sites, seed in ((700, 1), (500, 2)):
        made = LinkedWeb(sites, seed=seed)
        yield f"{sites} generated sites", GraphFile(made.indptr, made.indices), 0


def report(title: str, done: dict[str, Crawl], importance: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Print the areas and shares of all orders, and the distance of our order from the best rival."""
    hot = hot_pages(importance)
    curves = {name: shares(each, importance, hot, "threshold") for name, each in done.items()}
    places = {name: np.arange(1, 11) * len(curve) // 10 - 1 for name, curve in curves.items()}
    tenths = {name: curve[places[name]] for name, curve in curves.items()}
    best = np.max([tenths[name] for name in RIVALS], axis=0)
    print(f"{title}: area, then at each tenth; most below the best of {', '.join(RIVALS)}; seconds of ranking")
    for name, curve in curves.items():
        at = " ".join(f"{each:.3f}" for each in tenths[name])
        below = max(0.0, (best - tenths[name]).max())
        print(f"  {name:14} {curve.mean():.3f}  {at}  {below:.3f}  {done[name].seconds:.1f}")


if __name__ == "__main__":
    main()
