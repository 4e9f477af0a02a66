"""The command `simulate ordering`: compare the orders in which a virtual crawler takes pages.

The crawler starts at one page and knows only the links of crawled pages. Orderings are compared by one of the models of
Cho 1998. The model *threshold* (PST) measures which share of the hot pages has been crawled. The model *crawl-and-stop*
(PCS) measures which share of the K most important pages is among the first K crawled. The model *limited-buffer* (PBC)
measures which share of the hot pages is in a buffer. A full buffer drops the page with the lowest estimated importance.

Source: Cho 1998, sections 3 and 4.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.errors import InputError
from webfountain.lab.simulate.crawled_graph import CrawledGraph
from webfountain.lab.simulate.orderings import ORDERINGS, ordering

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from webfountain.lab.simulate.orderings import Ordering

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]

__all__ = [
    "MODELS",
    "PERCENTS",
    "Array",
    "Crawl",
    "GraphFile",
    "Pages",
    "chosen_orderings",
    "crawl",
    "hot_pages",
    "load_graph",
    "shares",
    "simulate_ordering",
]

MODELS = ("threshold", "crawl-and-stop", "limited-buffer")
PERCENTS: Final = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
"""Percentages of the crawl at which the document reports values."""


@dataclass(frozen=True, slots=True)
class GraphFile:
    """The links of n pages: all targets (m,) in one array, and the position (n+1,) at which the targets of each page
    start.
    """

    indptr: npt.NDArray[np.int32]
    indices: npt.NDArray[np.int32]

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, slots=True)
class Crawl:
    """Result of a crawl: pages (k,) in order, contents of the buffer, and CPU time of rankings, in seconds."""

    order: Pages
    buffers: list[Pages]
    seconds: float


def load_graph(file: Path) -> GraphFile:
    """Read `indptr` and `indices` from an npz file. Raise InputError if an array is missing, or if the arrays do not
    fit each other."""
    try:
        with np.load(file) as arrays:
            graph = GraphFile(arrays["indptr"], arrays["indices"])
    except OSError as error:
        raise InputError(f"--graph: {file}: {error.strerror or error}") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--graph: {file} is not an npz file with the arrays indptr and indices ({error})") from error
    starts, targets = graph.indptr, graph.indices
    if starts.ndim != 1 or targets.ndim != 1 or not len(starts) or starts[0] != 0 or starts[-1] != len(targets):
        raise InputError(f"--graph: {file}: indptr and indices are not successor lists")
    if (np.diff(starts) < 0).any() or (len(targets) and not 0 <= targets.min() <= targets.max() < graph.nodes):
        raise InputError(f"--graph: {file}: indptr must not fall, and indices must lie within 0..{graph.nodes - 1}")
    return graph


def simulate_ordering(
    graph: Path,
    *,
    start: int,
    orderings: Sequence[str],
    hot_share: float | None = None,
    hot_backlinks: int | None = None,
    model: str = "threshold",
    buffer_share: float = 0.1,
    seed: int = 0,
    plot: Path | None = None,
) -> dict[str, Any]:
    """Crawl a graph by each ordering, and return the JSON document of `simulate ordering` (DESIGN section 7).

    Parameters
    ----------
    graph : an npz file with `indptr` and `indices`
    start : the page that is known at the start
    hot_share : share of all pages, ordered by PageRank, that are hot (default 0.01) ...
    hot_backlinks : ... or the least number of backlinks of a hot page
    buffer_share : size of a limited buffer, as a share of all pages
    plot : folder for the curves as PNG and SVG

    In the document, `seconds` is the time that rankings took, and `area` the mean of an ordering's curve, 0..1.

    Raises InputError before the crawl if an argument or a file cannot be used.
    """
    web = load_graph(graph)
    names = chosen_orderings("--orderings", orderings, ORDERINGS)
    if not 0 <= start < web.nodes:
        raise InputError(f"--start: {start} is not within 0..{web.nodes - 1}")
    if model not in MODELS:
        raise InputError(f"--model: {model!r} is not one of {', '.join(MODELS)}")
    if not 0 < buffer_share <= 1:
        raise InputError(f"--buffer-share: {buffer_share} is not within (0, 1]")
    importance = _importance(web, hot_backlinks)
    hot = hot_pages(importance, hot_share=hot_share, hot_backlinks=hot_backlinks)
    curves: dict[str, Array] = {}
    document: dict[str, Any] = {"nodes": web.nodes, "hot": len(hot), "orderings": {}}
    for name in names:
        buffer = round(buffer_share * web.nodes) if model == "limited-buffer" else 0
        done = crawl(web, start, name, importance=importance, seed=seed, buffer=buffer)
        curve = shares(done, importance, hot, model)
        curves[name] = curve
        document["orderings"][name] = {
            "area": float(curve.mean()),
            "share_at": {str(each): float(curve[max(0, len(curve) * each // 100 - 1)]) for each in PERCENTS},
            "seconds": done.seconds,
        }
    if plot is not None:
        from webfountain.lab.simulation_figures import draw_hot_pages  # noqa: PLC0415  (matplotlib)

        draw_hot_pages(curves, plot, model)
    return document


def crawl(
    web: GraphFile, start: int, name: str, *, importance: Array | None = None, seed: int = 0, buffer: int = 0
) -> Crawl:
    """Crawl all pages reachable from `start`, by one ordering.

    Parameters
    ----------
    importance : (n,) true importance, which only the ideal ordering uses
    buffer : size of a limited buffer in pages, 0 for none
    """
    seen = CrawledGraph(web.indptr, web.indices)
    chosen: Ordering = ordering(name, seen, importance=importance, seed=seed)
    starts, targets = web.indptr.tolist(), web.indices.tolist()
    chosen.add(start, [start], [start])
    step = max(1, web.nodes // 100)
    order: list[int] = []
    kept: list[int] = []
    buffers: list[Pages] = []
    seen.known[start] = True
    while (page := chosen.next()) is not None:
        order.append(page)
        seen.crawled[page] = True
        found = targets[starts[page] : starts[page + 1]]
        new = []
        for target in found:
            if not seen.known[target]:
                seen.known[target] = True
                new.append(target)
        chosen.add(page, found, new)
        if len(order) % step == 0:
            chosen.rank()
            if buffer:
                kept = _best(kept + order[-step:], chosen.estimates(), buffer)
                buffers.append(np.array(kept, dtype=np.int64))
    return Crawl(np.array(order, dtype=np.int64), buffers, chosen.seconds)


def hot_pages(importance: Array, *, hot_share: float | None = None, hot_backlinks: int | None = None) -> Pages:
    """Return the most important pages, best first.

    Raises InputError if both arguments are given, if an argument is out of range, or if no page is hot.
    """
    if hot_share is not None and hot_backlinks is not None:
        raise InputError("give only one of --hot-share and --hot-backlinks")
    order = np.argsort(-importance, kind="stable")
    if hot_backlinks is not None:
        found = order[importance[order] >= hot_backlinks]
        if hot_backlinks < 1 or not len(found):
            raise InputError(
                f"--hot-backlinks: no page has {hot_backlinks} backlinks (allowed: 1 to {int(max(importance))})"
            )
        return found
    share = 0.01 if hot_share is None else hot_share
    if not 0 < share <= 1:
        raise InputError(f"--hot-share: {share} is not within (0, 1]")
    return order[: max(1, round(share * len(importance)))]


def shares(done: Crawl, importance: Array, hot: Pages, model: str) -> Array:
    """Return the share that `model` measures after each of the k crawled pages, (k,)."""
    if model == "threshold":
        return np.cumsum(np.isin(done.order, hot)) / len(hot)
    if model == "limited-buffer":
        held = [float(np.isin(each, hot).sum()) / len(hot) for each in done.buffers]
        return np.interp(np.arange(1, len(done.order) + 1), np.arange(1, len(held) + 1) * _step(importance), held)
    place = np.empty(len(importance), dtype=np.int64)
    place[np.argsort(-importance, kind="stable")] = np.arange(len(importance))
    # The page with rank p that is crawled as the q-th counts from K = max(p, q) on.
    counts = np.bincount(np.maximum(place[done.order], np.arange(len(done.order))), minlength=len(importance))
    return (np.cumsum(counts) / np.arange(1, len(importance) + 1))[: len(done.order)]


def _step(importance: Array) -> int:
    return max(1, len(importance) // 100)


def _importance(web: GraphFile, hot_backlinks: int | None) -> Array:
    links = LinkGraph.from_csr(web.indptr, web.indices)
    return pagerank(links).scores if hot_backlinks is None else links.in_degree().astype(np.float64)


def chosen_orderings(option: str, given: Sequence[str], known: Sequence[str]) -> list[str]:
    names = [name for each in given for name in (known if each == "all" else [each])]
    for name in names:
        if name not in known:
            raise InputError(f"{option}: {name!r} is unknown (allowed: all, {', '.join(known)})")
    if not names:
        raise InputError(f"{option}: none given (allowed: all, {', '.join(known)})")
    return list(dict.fromkeys(names))


def _best(pages: list[int], estimates: Array, count: int) -> list[int]:
    worth = estimates[pages]
    best = np.argsort(-worth, kind="stable")[:count]
    return [pages[each] for each in best.tolist()]
