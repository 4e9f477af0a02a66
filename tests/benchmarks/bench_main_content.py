"""Compare the main content with resiliparse and trafilatura: F1 by words on labelled pages, and CPU of a page.

The F1 is also printed for pages held out from tuning and for pages with linked cards. Most of the cost is cutting the
page into blocks. ``python -m tests.benchmarks.bench_main_content``
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from tests.formats.card_pages import card_pages
from tests.formats.held_out_pages import held_out_pages
from tests.formats.labelled_pages import labelled_pages, words_of
from webfountain.formats.document import tree_of
from webfountain.formats.main_content import main_blocks
from webfountain.formats.markdown import plain_text_of
from webfountain.formats.page_blocks import blocks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUNDS = 5


def ours(html: str) -> str:
    return plain_text_of(main_blocks(blocks_of(tree_of(html.encode(), None))))


def extractors() -> dict[str, Callable[[str], str]]:
    """Return the installed extractors, and print which extractors are missing."""
    found: dict[str, Callable[[str], str]] = {"webfountain": ours}
    for name, module, call in (
        ("resiliparse", "resiliparse.extract.html2text", _resiliparse),
        ("trafilatura", "trafilatura", _trafilatura),
    ):
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            print(f"{name}: not installed (pip install '.[benchmark]')")
            continue
        found[name] = lambda html, call=call, loaded=loaded: call(loaded, html)  # type: ignore[misc]
    return found


def _resiliparse(module: Any, html: str) -> str:
    return str(module.extract_plain_text(html, main_content=True, alt_texts=False, comments=True))


def _trafilatura(module: Any, html: str) -> str:
    return module.extract(html, include_comments=True, include_tables=True) or ""


def f1(found: Sequence[str], truth: Sequence[str]) -> float:
    return 2 * sum((Counter(found) & Counter(truth)).values()) / (len(found) + len(truth))


def main() -> None:
    extract_by = extractors()
    sets = {"labelled": labelled_pages(), "held out": held_out_pages(), "with linked cards": card_pages()}
    for title, pages in sets.items():
        print(f"{len(pages)} pages, {title}; worst: the page with the least F1")
        print("| extractor | F1 in the mean | least | worst | CPU of a page, ms |\n|---|---|---|---|---|")
        times: dict[str, list[float]] = {name: [] for name in extract_by}
        for _ in range(ROUNDS):
            for name, extract in extract_by.items():
                begun = time.process_time()
                for page in pages:
                    extract(page.html)
                times[name].append((time.process_time() - begun) / len(pages))
        for name, extract in extract_by.items():
            scores = {page.name: f1(words_of(extract(page.html)), page.main) for page in pages}
            worst = min(scores, key=scores.__getitem__)
            cpu = 1000 * median(times[name])
            print(f"| {name} | {fmean(scores.values()):.3f} | {scores[worst]:.3f} | {worst} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
