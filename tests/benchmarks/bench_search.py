"""Measure full-text search: CPU milliseconds of a query at 10^5 pages, and the size of the index as a share of the
texts.

``python -m tests.benchmarks.bench_search [--pages N]``. The texts of the queries are drawn from a Zipf law. That is the
worst case for the size, so it is also measured on real prose, the manuals of Python's standard library.

``--live S`` crawls the generated web for S seconds with an index beside it, and prints how long after its fetch a page
was found with its new text (bound of the project: 2 s).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import random
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.acceptance.crawls import policy
from webfountain.api.search import INDEX_FILE
from webfountain.commands.children import index_beside
from webfountain.lab.demo.process import DemoServer
from webfountain.search.search_index import IndexedText, SearchFilter, SearchIndex
from webfountain.service.settings import StoreEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

ROUNDS = 7
WORDS = 400
VOCABULARY = 60_000


def drawn(many: int, words: int = WORDS) -> tuple[list[str], Iterable[str]]:
    """Return the vocabulary, the most common word first, and `many` texts of `words` words."""
    draw = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))
    return known, (" ".join(draw.choices(known, cum_weights=weights, k=words)) for _ in range(many))


def prose() -> list[str]:
    """Return the docstrings of each module of the standard library."""
    texts = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = " ".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds))
        if len(found) > 500:
            texts.append(found[:20_000])
    return texts


def indexed(folder: Path, texts: Iterable[str]) -> tuple[SearchIndex, float]:
    """Return an index of texts, and its size as a share of the size of the texts."""
    index, size, batch = SearchIndex(folder / "index"), 0, list[IndexedText]()
    for number, text in enumerate(texts):
        size += len(text.encode())
        batch.append(
            IndexedText(f"https://site-{number % 1000}.example/{number}", "new", float(number), text[:40], text)
        )
        if len(batch) == 200:
            index.apply(batch, str(number))
            batch = []
    index.apply(batch, "end")
    while index.shrink():
        pass
    index.close()  # moves the write-ahead log into the file
    return SearchIndex(folder / "index"), sum(path.stat().st_size for path in folder.iterdir()) / size


def live(seconds: float) -> None:
    """Print the lags between fetches and their entries in the index, without the whole list at the start."""
    with (
        tempfile.TemporaryDirectory() as name,
        DemoServer(seed=3, sites=6, pages=300, period=20, latency=0.002) as web,
    ):
        folder = Path(name)
        rules = policy(folder, web.urls, cycle={"period": "20s"}, politeness={"min_delay": "100ms"})
        line = ["crawl", str(rules), f"--store=rocksdb://{folder}/store", f"--max-seconds={seconds:g}"]
        command = [sys.executable, "-m", "webfountain", *line]
        crawl = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path, lags, last, begun = folder / "store" / INDEX_FILE, list[float](), 0, time.time()
        while not (folder / "store" / "live.json").exists():
            time.sleep(0.05)
        with index_beside([StoreEntry("store", f"rocksdb://{folder}/store")]):
            while crawl.poll() is None:
                time.sleep(0.02)
                with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as base:
                    rows = base.execute("SELECT id, fetched FROM pages WHERE id > ? ORDER BY id", (last,)).fetchall()
                    last = rows[-1][0] if rows else last
                    if time.time() - begun > seconds / 3:
                        lags += [time.time() - fetched for _, fetched in rows]
        lags.sort()
        print(
            f"{len(lags)} changes: found {median(lags):.2f} s after the fetch, 99 of 100 within "
            f"{lags[len(lags) * 99 // 100]:.2f} s, all within {lags[-1]:.2f} s"
        )


def main() -> None:
    """Make both indexes, query them, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=float)
    parser.add_argument("--pages", type=int, default=100_000)
    given = parser.parse_args()
    if given.live:
        live(given.live)
        return
    with tempfile.TemporaryDirectory() as folder:
        texts = prose()
        index, share = indexed(Path(folder), texts)
        index.close()
        print(f"{len(texts):,} texts of real prose: the index is {share:.2f} of them")
    with tempfile.TemporaryDirectory() as folder:
        words, drawn_texts = drawn(given.pages)
        index, share = indexed(Path(folder), drawn_texts)
        print(f"{given.pages:,} drawn texts of {WORDS} words: the index is {share:.2f} of them")
        queries = {
            "the commonest word": (words[0], SearchFilter()),
            "two common words": (f"{words[3]} {words[9]}", SearchFilter()),
            "a rare word": (words[VOCABULARY // 2], SearchFilter()),
            "a phrase": (f'"{words[0]} {words[1]}"', SearchFilter()),
            "a beginning": (words[100][:2] + "*", SearchFilter()),
            "of one site": (words[0], SearchFilter(site="https://site-7.example")),
            "of a time": (words[0], SearchFilter(since=given.pages * 0.99, verdict="new")),
        }
        for name, (query, wanted) in queries.items():
            times = []
            for _ in range(ROUNDS):
                began = time.process_time()
                found = index.find(query, wanted)
                times.append(time.process_time() - began)
            print(f"{name:20} {median(times) * 1000:7.1f} ms CPU  {len(found)} found")
        index.close()


if __name__ == "__main__":
    main()
