"""Rankings of a link graph: PageRank, TrustRank, backlinks; a page is counted whether it was crawled or not.

PageRank x = (1-d) v + d (P' x + v * sum of x over pages without links) is, up to a factor, the solution of the linear
system y = (1-d) v + d P' y, in which such pages need no care; x is y over its sum. Each step reads each block of the
graph once and keeps nothing of it. Double precision holds the solution and measures what it misses, which proves the
error; single precision finds the correction, in half the time: by ORTHOMIN(4) (Vinsome 1976), which needs two steps for
three of the power iteration, or, should that stall, by the power iteration, which cannot.

Source: Cho 1998, section 2 (IR, d = 0.9, a page without links links to every page); Policies 2006 (TrustRank's
dampening and splitting). Deviation: scores sum to 1, the paper's to the number of pages.
"""

from __future__ import annotations

__all__ = ["DAMPENING", "DAMPING", "Ranking", "backlinks", "pagerank", "trustrank", "wander"]

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from webfountain.errors import NotConverged

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.link_graph import LinkGraph

    Array = npt.NDArray[np.float64]
    _Single = npt.NDArray[np.float32]

_Real = TypeVar("_Real", np.float32, np.float64)

DAMPING: Final = 0.9
"""The surfer follows a link with this probability (Cho 1998)."""

DAMPENING: Final = 0.85
"""Trust that is left after one hop."""

_GAIN: Final = 1e-3
"""A correction lets what is missing fall by this much before it is measured anew; single precision could do 1e-5."""

_KEPT: Final = 4
"""Directions that a step of ORTHOMIN is made orthogonal to: two vectors in single precision each."""

_LONGEST: Final = 100
"""Steps of ORTHOMIN after which it is measured what they were worth."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores that sum to 1 (n,), steps (each reads every link once), and a bound of their L1 error."""

    scores: Array
    steps: int
    error: float


def pagerank(
    graph: LinkGraph,
    *,
    damping: float = DAMPING,
    teleport: Array | None = None,
    start: Array | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 10_000,
) -> Ranking:
    """PageRank of every page, within `tolerance` of the true one in the L1 norm, whatever the graph's size.

    Parameters
    ----------
    damping : probability of following a link, 0 <= d < 1
    teleport : (n,) weights >= 0, not all 0, of the pages where a surfer who follows no link goes on; None: all alike
    start : (n,) an earlier ranking (any weights >= 0, not all 0), from which fewer steps are needed; None: `teleport`
    tolerance : of the sum of absolute errors; proven by the residual, not guessed from the last step

    Raises
    ------
    ValueError
        for an argument out of range.
    NotConverged
        when `max_steps` were not enough.
    """
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"damping {damping} is not within [0, 1)")
    if graph.nodes == 0:
        return Ranking(np.zeros(0), 0, 0.0)
    base = _weights(teleport, graph.nodes) * (1.0 - damping)
    y = base / (1.0 - damping) if start is None else _weights(start, graph.nodes)
    exact, quick = _Links(graph, damping, np.float64), _Links(graph, damping, np.float32)
    # Solutions of the system sum to less than 1 where pages without links are; the scale at which nothing is missing
    # in the sum makes an earlier ranking the start that it should be.
    y *= (1.0 - damping) / (1.0 - float(exact.pull(y).sum()))
    steps, last = 1, np.inf
    while True:
        missing = exact.pull(y)
        missing += base
        missing -= y
        steps += 1
        # y misses the solution by (I - dP')^-1 missing, whose norm is at most that over 1-d; scaling may double it.
        lacking = float(np.abs(missing).sum())
        error = 2.0 * lacking / ((1.0 - damping) * float(y.sum()))
        if error <= tolerance:
            return Ranking(y / y.sum(), steps, error)
        if steps >= max_steps:
            raise NotConverged(f"PageRank after {steps} steps: error at most {error:.1e}, tolerance {tolerance:.1e}")
        # Relative to what is missing: the corrections of a fine tolerance would be lost in single precision.
        flow = (missing / lacking).astype(np.float32)
        correct = _orthomin if error < 0.5 * last else _power
        correction, taken = correct(quick, flow, max(0.5 * tolerance / error, _GAIN), max_steps - steps)
        y += correction * np.float64(lacking)
        steps, last = steps + taken, error if correct is _orthomin else np.inf


def wander(graph: LinkGraph, start: Array, *, teleport: Array, steps: int, damping: float = DAMPING) -> Array:
    """(n,) where surfers are who set out from `start` and took so many steps: PageRank that still knows its start.

    Parameters
    ----------
    start, teleport : (n,) weights >= 0, not all 0, of where surfers set out, and where one goes on who follows no link
    """
    at, base = _weights(start, graph.nodes), _weights(teleport, graph.nodes)
    links = _Links(graph, damping, np.float64)
    for _ in range(steps):
        at = links.pull(at)
        at += base * (1.0 - at.sum())
    return at


def trustrank(
    graph: LinkGraph, trusted: npt.NDArray[np.int64], *, dampening: float = DAMPENING, tolerance: float = 1e-10
) -> Ranking:
    """Trust that spreads from the pages `trusted`: a hop leaves `dampening` of it, split among the links.

    Raises ValueError when no page is trusted or one is not in the graph, NotConverged as `pagerank`.

    Source: Policies 2006 (TrustRank); it is PageRank whose surfer always starts from a trusted page.
    """
    if len(trusted) == 0 or trusted.min() < 0 or trusted.max() >= graph.nodes:
        raise ValueError(f"trusted pages must be some, within 0..{graph.nodes - 1}")
    teleport = np.zeros(graph.nodes)
    teleport[trusted] = 1.0
    return pagerank(graph, damping=dampening, teleport=teleport, tolerance=tolerance)


def backlinks(graph: LinkGraph) -> Ranking:
    """Each page's share of all links (IB of Cho 1998, scaled to sum to 1)."""
    counts = graph.in_degree().astype(np.float64)
    return Ranking(counts / max(1.0, counts.sum()), 1, 0.0)


def _weights(teleport: Array | None, nodes: int) -> Array:
    if teleport is None:
        return np.full(nodes, 1.0 / nodes)
    if teleport.shape != (nodes,) or not (teleport >= 0).all() or not 0 < teleport.sum() < np.inf:
        raise ValueError(f"teleport must be {nodes} weights >= 0 that are not all 0")
    return np.asarray(teleport / teleport.sum())


def _power(links: _Links[np.float32], flow: _Single, least: float, steps: int) -> tuple[_Single, int]:
    """(Sum of what `flow` becomes along the links until only `least` of it is left, in the L1 norm; steps taken)."""
    total = flow.copy()
    taken = 0
    while taken < steps and float(np.abs(flow).sum(dtype=np.float64)) > least:
        flow = links.pull(flow)
        total += flow
        taken += 1
    return total, taken


def _orthomin(links: _Links[np.float32], flow: _Single, least: float, steps: int) -> tuple[_Single, int]:
    """The same by ORTHOMIN: what is left of `flow` is made least in the L2 norm over the last few directions."""
    total = np.zeros_like(flow)
    kept: deque[tuple[_Single, _Single, float]] = deque(maxlen=_KEPT)
    taken = 0
    while taken < min(steps, _LONGEST) and float(np.abs(flow).sum(dtype=np.float64)) > least:
        direction = flow.copy()
        effect = flow - links.pull(flow)
        taken += 1
        for earlier, its_effect, square in kept:
            part = np.float32(float(effect @ its_effect) / square)
            direction -= part * earlier
            effect -= part * its_effect
        square = float(effect @ effect)
        if square == 0.0:
            break
        length = np.float32(float(flow @ effect) / square)
        total += length * direction
        flow = flow - length * effect
        kept.append((direction, effect, square))
    return total, taken


class _Links(Generic[_Real]):
    """A graph's blocks as matrices of ones in one precision, which share the ones and copy no page number."""

    def __init__(self, graph: LinkGraph, damping: float, precision: type[_Real]) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415  (0.3 s at start)

        self._share: npt.NDArray[_Real] = (graph.share * damping).astype(precision)
        ones = np.ones(max((len(block.sources) for block in graph.blocks), default=0), dtype=precision)
        self._blocks = [
            (
                first,
                csr_array((ones[: len(sources)], sources, indptr), shape=(len(indptr) - 1, graph.nodes)),
            )
            for first, indptr, sources in graph.blocks
        ]
        self._returns: _Links[_Real] | None = (
            None if graph.returns is None else _Links(graph.returns, damping, precision)
        )

    def pull(self, scores: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
        """(n,) what each page gets from those that link to it."""
        given = scores * self._share
        pulled = np.empty_like(scores)
        for first, block in self._blocks:
            pulled[first : first + block.shape[0]] = block @ given
        if self._returns is not None:
            pulled += self._returns.pull(scores)
        return pulled
