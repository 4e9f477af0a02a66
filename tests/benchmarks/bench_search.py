"""Full-text search: CPU milliseconds of a query at 10^5 pages, and the index as a share of the texts.

``python -m tests.benchmarks.bench_search [--pages N]``. The texts of the queries are drawn from a Zipf law. That is the
worst case for the size, so it is also measured on real prose, the manuals of Python's standard library.
"""

from __future__ import annotations

import argparse
import ast
import random
import sysconfig
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from webfountain.search.search_index import IndexedText, SearchFilter, SearchIndex

if TYPE_CHECKING:
    from collections.abc import Iterable

ROUNDS = 7
WORDS = 400
VOCABULARY = 60_000


def drawn(many: int) -> tuple[list[str], Iterable[str]]:
    """The vocabulary, the commonest word first, and that many texts."""
    draw = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))
    return words, (" ".join(draw.choices(words, cum_weights=weights, k=WORDS)) for _ in range(many))


def prose() -> list[str]:
    """The docstrings of each module of the standard library."""
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
    """An index of texts, and its size as a share of theirs."""
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
    index.close()  # moves the write-ahead log into the file
    return SearchIndex(folder / "index"), sum(path.stat().st_size for path in folder.iterdir()) / size


def main() -> None:
    """Make both, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    given = parser.parse_args()
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
