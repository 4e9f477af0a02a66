"""Orderings on real and generated graphs: ``python -m tests.benchmarks.bench_ordering [--graph FILE --start NODE]``.

cnr-2000 from node 217849 and the apache sites from their largest home page: area and shares of hot pages found, by
PageRank and by backlinks, and at how many hundredths of the crawl `fountain` lies below PageRank order or OPIC, and
below backlink order.
CPU seconds of ranking beside them. The dominating cost is the rankings.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.lab.simulate.crawl_order import crawl, hot_pages, load_graph, shares

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "graph"
GRAPHS = ((DATA / "cnr-2000.npz", 217_849), (DATA / "apache-sites.npz", 20_679))
NAMES = ("breadth-first", "backlinks", "opic", "pagerank", "fountain")


def main() -> None:
    """A table for each graph and each meaning of hot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path)
    parser.add_argument("--start", type=int, default=0)
    given = parser.parse_args()
    for file, start in GRAPHS if given.graph is None else ((given.graph, given.start),):
        web = load_graph(file)
        links = LinkGraph.from_csr(web.indptr, web.indices)
        done = {name: crawl(web, start, name) for name in NAMES}
        for meaning, importance in (
            ("PageRank", pagerank(links).scores),
            ("backlinks", links.in_degree().astype(np.float64)),
        ):
            hot = hot_pages(importance)
            curves = {name: shares(each, importance, hot, "threshold") for name, each in done.items()}
            print(f"{file.stem}, hot by {meaning}: area, then after 1, 5, 10, 20, 30, 50, 70 %; seconds of ranking")
            for name, curve in curves.items():
                at = [f"{curve[max(0, len(curve) * each // 100 - 1)]:.3f}" for each in (1, 5, 10, 20, 30, 50, 70)]
                print(f"  {name:14} {curve.mean():.3f}  {' '.join(at)}  {done[name].seconds:.1f}")
            places = np.arange(1, 101) * len(curves["opic"]) // 100 - 1
            best = np.maximum(curves["opic"], curves["pagerank"])[places]
            for rival, curve in (("the better of OPIC and PageRank", best), ("backlinks", curves["backlinks"][places])):
                below = curve - curves["fountain"][places]
                print(f"  fountain below {rival} at {np.count_nonzero(below > 0)} of 100, by {below.max():.3f}")


if __name__ == "__main__":
    main()
