"""Rankings of a link graph: PageRank, TrustRank, backlinks; a page is counted whether it was crawled or not.

PageRank x = (1-d) v + d (P' x + v * sum of x over pages without links) is, up to a factor, the solution of the linear
system y = v + d P' y, in which such pages need no care; x is y over its sum. The system is solved by letting what is
missing flow along the links: single precision carries the flow, double precision the sum and, from time to time, the
residual that proves the error. Each step reads each block of the graph once and keeps nothing of it.

Source: Cho 1998, section 2 (IR, d = 0.9, a page without links links to every page); Policies 2006 (TrustRank's
dampening and splitting). Deviation: scores sum to 1, the paper's to the number of pages.
"""

from __future__ import annotations

__all__ = ["DAMPENING", "DAMPING", "Ranking", "backlinks", "pagerank", "trustrank", "wander"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from webfountain.errors import NotConverged

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.link_graph import LinkGraph

    Array = npt.NDArray[np.float64]

_Real = TypeVar("_Real", np.float32, np.float64)

DAMPING: Final = 0.9
"""The surfer follows a link with this probability (Cho 1998)."""

DAMPENING: Final = 0.85
"""Trust that is left after one hop."""

_SINGLE_GAIN: Final = 1e-5
"""Single precision lets a residual fall by this much before it is measured anew."""


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
    # Solutions of the system sum to less than 1 where pages without links are; the scale at which nothing is missing
    # in the sum makes an earlier ranking the start that it should be.
    y *= (1.0 - damping) / (1.0 - float(_pull(graph, y, damping).sum()))
    steps = 1
    while True:
        missing = _pull(graph, y, damping)
        missing += base
        missing -= y
        steps += 1
        # y misses the solution by (I - dP')^-1 missing, whose norm is at most that over 1-d; scaling may double it.
        error = 2.0 * float(np.abs(missing).sum()) / ((1.0 - damping) * float(y.sum()))
        if error <= tolerance:
            return Ranking(y / y.sum(), steps, error)
        if steps >= max_steps:
            raise NotConverged(f"PageRank after {steps} steps: error at most {error:.1e}, tolerance {tolerance:.1e}")
        steps += _flow(graph, missing, y, damping, tolerance / error, steps=max_steps - steps)


def wander(graph: LinkGraph, start: Array, *, teleport: Array, steps: int, damping: float = DAMPING) -> Array:
    """(n,) where surfers are who set out from `start` and took so many steps: PageRank that still knows its start.

    Parameters
    ----------
    start, teleport : (n,) weights >= 0, not all 0, of where surfers set out, and where one goes on who follows no link
    """
    at, base = _weights(start, graph.nodes), _weights(teleport, graph.nodes)
    for _ in range(steps):
        at = _pull(graph, at, damping)
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


def _flow(graph: LinkGraph, missing: Array, y: Array, damping: float, goal: float, *, steps: int) -> int:
    """Add to `y` what follows from `missing`, up to `goal` of it or what single precision can tell; the steps taken."""
    flow = missing.astype(np.float32)
    # Half the goal: the residual that remains is the flow not yet added and what rounding has left.
    least = float(np.abs(flow).sum(dtype=np.float64)) * max(0.5 * goal, _SINGLE_GAIN)
    taken = 0
    while True:
        y += flow
        if float(np.abs(flow).sum(dtype=np.float64)) <= least or taken >= steps:
            return taken
        flow = _pull(graph, flow, damping)
        taken += 1


def _pull(graph: LinkGraph, scores: npt.NDArray[_Real], damping: float) -> npt.NDArray[_Real]:
    """(n,) what each page gets from those that link to it, in the precision of `scores`."""
    from scipy.sparse import csr_array  # noqa: PLC0415  (0.3 s at start)

    given = scores * (graph.share * damping).astype(scores.dtype)
    longest = max((len(block.sources) for block in graph.blocks), default=0)
    ones = np.ones(longest, dtype=given.dtype)
    pulled = np.empty(graph.nodes, dtype=given.dtype)
    for first, indptr, sources in graph.blocks:
        rows = len(indptr) - 1
        block = csr_array((ones[: len(sources)], sources, indptr), shape=(rows, graph.nodes))
        pulled[first : first + rows] = block @ given
    if graph.returns is not None:
        pulled += _pull(graph.returns, scores, damping)
    return pulled
