"""Measure what each optional part costs a crawl: ``python -m tests.benchmarks.bench_extras [--pages S L]``.

With ``--beside N``, N pages are ranked and published during a crawl. Its pages per second and per CPU second are
divided by the rates of a crawl that ranks only its own few pages (goal: 0.8 at 10^7). The seconds for the epoch's files
(goal: 60) and for the whole ranking are printed too. A ranking begins after 12 s of CPU, and the crawl must last longer
than the ranking: ``--pages 1000 18000`` for 10^6, 80,000 for 10^7. Most of the cost is the ranker's process, which has
the lowest priority.

Otherwise the CPU milliseconds of a page are printed, as the slope between a short and a long run on the web of
`bench_crawl`. The crawls run with duplicate detection, with ranking and scores, with both, and with neither. The goal
is 0.8 of the pages per CPU second with all parts. Most of the detector's cost is the sketch of a text.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

from tests.benchmarks.bench_crawl import WEB, fountain
from webfountain.ranking.link_log import LinkLog
from webfountain.ranking.scores import EpochScores
from webfountain.records import Link
from webfountain.urls import fingerprint

DUPLICATES: dict[str, dict[str, object]] = {"duplicates": {"detect": True}}
RANKING: dict[str, dict[str, object]] = {
    "ranking": {"every": "1h"},
    "policies__default": {"score": {"pagerank": 0.8, "trust": 0.2}},
}
WITH: dict[str, dict[str, dict[str, object]]] = {
    "nothing": {},
    "duplicates": DUPLICATES,
    "ranking": RANKING,
    "both": DUPLICATES | RANKING,
}


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, nargs=2, default=(1_000, 6_000))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--extras", default="duplicates,ranking,both")
    parser.add_argument("--beside", type=int, metavar="N")
    options = parser.parse_args()
    if options.beside is not None:
        _beside(options.beside, options.pages[1], options.rounds)
        return
    pages = options.pages
    spent = dict.fromkeys(["nothing", *options.extras.split(",")], 0.0)
    for _ in range(options.rounds):
        for name in spent:
            tables = WITH[name]
            costs = []
            for many in pages:
                folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
                costs.append(fountain(folder, many, tables=tables))
                shutil.rmtree(folder)
            short, long = costs
            spent[name] += 1000 * (long.cpu_s - short.cpu_s) / (long.pages - short.pages) / options.rounds
    for name, each in spent.items():
        ratio = spent["nothing"] / each
        print(f"with {name:11}{each:7.3f} ms a page, {ratio:.2f} of the pages a CPU second (goal .8)")


def _beside(count: int, pages: int, rounds: int) -> None:
    """Print the rates with the large ranking and without."""
    WEB["pages"] = max(WEB["pages"], pages + pages // 10)
    log = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
    _write_log(str(log), count)
    rates: dict[str, list[tuple[float, float]]] = {"alone": [], "beside": []}
    published: list[tuple[float, float]] = []
    for _ in range(rounds):
        for name, found in rates.items():
            folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
            if name == "beside":
                shutil.copytree(log, folder / "links")
            tables = RANKING | {"ranking": {"every": "1h", "links": str(folder / "links")}}
            fountain(folder, pages, tables=tables)
            report = json.loads((folder / f"ours-{pages}.json").read_bytes())
            found.append((pages / report["seconds"], pages / report["cpu_seconds"]))
            if name == "beside":
                [scores] = folder.glob("store-*/scores")
                held = EpochScores(scores)
                assert len(held) >= count, "nothing was published while the crawl ran"
                begun, first, done = (
                    (scores / file).stat().st_mtime
                    for file in ("job", f"epoch-{held.epoch:08d}/fingerprints.npy", "EPOCH")
                )
                published.append((done - first, done - begun))
            shutil.rmtree(folder)
    shutil.rmtree(log)
    wall, cpu = (np.mean(rates["beside"], axis=0) / np.mean(rates["alone"], axis=0)).tolist()
    print(f"beside a ranking of {count:,} pages: {wall:.2f} of the pages a second, {cpu:.2f} a CPU second (goal .8)")
    wrote, ranked = np.max(published, axis=0).tolist()
    print(f"its files were written in {wrote:.2f} s (goal 60), {ranked:.0f} s after its start, at most")


def _write_log(url: str, count: int) -> None:
    """Write a log of pages with ten links each, until `count` pages are known."""
    log = LinkLog(url, writer="before")
    for page in range(count // 10):
        names = [f"http://known.example/{10 * page + k}" for k in range(10)]
        links = [Link(name, "http://known.example", fingerprint(name)) for name in names]
        log.append(names[0], "http://known.example", at=1.0, links=links)
    log.flush()


if __name__ == "__main__":
    main()
