"""Make the JSON document of the command `rank`: a graph or a link log, ranked by one method."""

from __future__ import annotations

import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import DAMPENING, DAMPING, Ranking, backlinks, pagerank, trustrank
from webfountain.errors import InputError
from webfountain.ranking.link_log import LinkLogReader, fingerprint
from webfountain.ranking.ranker import positions, ranked_log

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.ranking.ranker import Fingerprints

__all__ = ["METHODS", "rank_file", "rank_log"]

METHODS = ("pagerank", "trustrank", "backlinks")
TOP: Final = 100


def _ranked(graph: LinkGraph, method: str, *, damping: float | None, trusted: npt.NDArray[np.int64] | None) -> Ranking:
    """Rank a graph by a method of `METHODS`. Raise InputError if an argument does not fit the method."""
    if damping is not None and not 0 <= damping < 1:
        raise InputError(f"--damping: {damping} is not within [0, 1)")
    if (trusted is None) == (method == "trustrank"):
        raise InputError("--method trustrank needs --trusted, and no other method takes it")
    if graph.nodes == 0:
        raise InputError("there is no page to rank")
    if method == "backlinks":
        if damping is not None:
            raise InputError("--damping has no effect with --method backlinks")
        return backlinks(graph)
    if trusted is not None:
        return trustrank(graph, trusted, dampening=DAMPENING if damping is None else damping)
    return pagerank(graph, damping=DAMPING if damping is None else damping)


def rank_file(
    file: Path, *, method: str, damping: float | None, trusted: Path | None, out: Path | None
) -> dict[str, Any]:
    """Rank a graph in an npz file with `indptr` and `indices`. Return the JSON document that `rank` prints (DESIGN
    section 7).

    `trusted` is a file with one page number per line. `out` is an .npy file for all scores, in the order of page
    numbers. `seconds` is the duration of the ranking, without the reading of the file.
    """
    try:
        with np.load(file) as arrays:
            graph = LinkGraph.from_csr(arrays["indptr"], arrays["indices"])
    except OSError as error:
        raise InputError(f"--graph: {file}: {error.strerror or error}") from error
    except (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--graph: {file} is not an npz file with the arrays indptr and indices ({error})") from error
    seeds = None if trusted is None else _numbers(trusted, graph.nodes)
    begin = time.perf_counter()
    ranking = _ranked(graph, method, damping=damping, trusted=seeds)
    seconds = time.perf_counter() - begin
    top = _top(ranking.scores)
    return _document(graph, ranking, seconds, [[page, float(ranking.scores[page])] for page in top], out)


def rank_log(url: str, *, method: str, damping: float | None, trusted: Path | None, out: Path | None) -> dict[str, Any]:
    """Rank the pages of a link log as `rank_file` does, with URLs in place of numbers. The file `out` contains the
    scores in the order of URL fingerprints.
    """
    with tempfile.TemporaryDirectory(prefix="webfountain-rank-") as scratch:
        begin = time.perf_counter()
        log = ranked_log(url, Path(scratch))
        if not log.graph.nodes:
            raise InputError(
                f"{url}: no crawl has logged links there (ranking.every in the policy file switches it on)"
            )
        seeds = None if trusted is None else _places(trusted, log.fingerprints)
        ranking = _ranked(log.graph, method, damping=damping, trusted=seeds)
        seconds = time.perf_counter() - begin
        top = _top(ranking.scores)
        urls = _urls(url, log.fingerprints[top])
        listed = [[urls.get(int(log.fingerprints[page]), ""), float(ranking.scores[page])] for page in top]
        return _document(log.graph, ranking, seconds, listed, out)


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
            raise InputError(f"--trusted: {file}: {line!r} is not a page number within 0..{nodes - 1}")
        found.append(int(line))
    if not found:
        raise InputError(f"--trusted: {file} names no page")
    return np.array(found, dtype=np.int64)


def _places(file: Path, pages: Fingerprints) -> npt.NDArray[np.int64]:
    found = positions(np.array(sorted(map(fingerprint, _lines(file))), dtype=np.uint64), pages)
    if not len(found):
        raise InputError(f"--trusted: {file}: none of its pages is in the link log")
    return found


def _urls(url: str, wanted: Fingerprints) -> dict[int, str]:
    found: dict[int, str] = {}
    for table in LinkLogReader(url).names():
        keys = table["fingerprint"].to_numpy()
        hit = np.flatnonzero(np.isin(keys, wanted))
        found.update(zip(keys[hit].tolist(), table["url"].take(hit).to_pylist(), strict=True))
    return found
