"""Rankings of a link graph: PageRank, TrustRank, backlinks. All known pages count, even pages that were never crawled.

PageRank x = (1-d) v + d (P' x + v * sum of x over pages without links) is, up to a factor, the solution of the linear
system y = (1-d) v + d P' y. The linear system has no special case for pages without links. PageRank is y divided by its
sum. The residual is computed in double precision, and the error bound follows from the residual. Corrections are
computed in single precision, by ORTHOMIN(4) (Vinsome 1976), or by the power iteration if ORTHOMIN stalls. ORTHOMIN
needs about two thirds of the steps of the power iteration.

Source: Cho 1998, section 2 (IR, d = 0.9, a page without links links to every page); Policies 2006 (TrustRank's
dampening and splitting). Deviation: scores sum to 1; in the paper they sum to the number of pages.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from webfountain.core.sparse_product import add_product
from webfountain.errors import NotConverged

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.link_graph import LinkGraph

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64] | npt.NDArray[np.int32]
    _Single = npt.NDArray[np.float32]

__all__ = ["DAMPENING", "DAMPING", "Array", "Ints", "Ranking", "backlinks", "pagerank", "trustrank"]

_Real = TypeVar("_Real", np.float32, np.float64)

DAMPING: Final = 0.9
"""Probability that the surfer follows a link (Cho 1998)."""

DAMPENING: Final = 0.85
"""Share of its trust that a page passes on along its links."""

_GAIN: Final = 1e-3
"""The residual is computed anew once the corrections have reduced it by this factor."""

_KEPT: Final = 4
"""Number of earlier directions that ORTHOMIN keeps."""

_LONGEST: Final = 100
"""Largest number of ORTHOMIN steps before the residual is computed anew."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores (n,) with sum 1, the number of steps, and a bound on the L1 error."""

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
    """Compute the PageRank of every page, with an L1 error of at most `tolerance`.

    Parameters
    ----------
    damping : probability of following a link, 0 <= d < 1
    teleport : (n,) weights >= 0, not all 0, of the pages where a surfer who follows no link continues; None: equal
    start : (n,) an earlier ranking (any weights >= 0, not all 0), which saves steps; None: `teleport`
    tolerance : bound of the sum of absolute errors; it is proven by the residual, not estimated from the last step

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
    # Solutions of the system sum to less than 1 if there are pages without links. So an earlier ranking is scaled until
    # its residual sums to 0, which makes it a good start.
    y *= (1.0 - damping) / (1.0 - float(exact.pull(y).sum()))
    steps, last = 1, np.inf
    while True:
        missing = exact.pull(y)
        missing += base
        missing -= y
        steps += 1
        # The error of y is (I - dP')^-1 times `missing`. So its norm is at most that of `missing` divided by 1-d;
        # scaling may double the error.
        lacking = float(np.abs(missing).sum())
        error = 2.0 * lacking / ((1.0 - damping) * float(y.sum()))
        if error <= tolerance:
            return Ranking(y / y.sum(), steps, error)
        if steps >= max_steps:
            raise NotConverged(f"PageRank after {steps} steps: the error may be {error:.1e}, above {tolerance:.1e}")
        # Divided by the norm of the residual, because single precision would lose small corrections.
        flow = (missing / lacking).astype(np.float32)
        correct = _orthomin if error < 0.5 * last else _power
        correction, taken = correct(quick, flow, max(0.5 * tolerance / error, _GAIN), max_steps - steps)
        y += correction * np.float64(lacking)
        steps, last = steps + taken, error if correct is _orthomin else np.inf


def trustrank(
    graph: LinkGraph,
    trusted: npt.NDArray[np.int64],
    *,
    weights: Array | None = None,
    dampening: float = DAMPENING,
    tolerance: float = 1e-10,
) -> Ranking:
    """Spread trust from the pages `trusted` along the links. Each page passes on the share `dampening` of its trust,
    divided equally among its links.

    `weights` (k,) gives the trust of each page in `trusted`; if None, all are trusted equally.

    Raises ValueError if no page is trusted or a trusted page is not in the graph; NotConverged as `pagerank` does.

    Source: Policies 2006 (TrustRank); PageRank whose surfer always starts from a trusted page.
    """
    if len(trusted) == 0 or trusted.min() < 0 or trusted.max() >= graph.nodes:
        raise ValueError(f"at least one trusted page is needed, and all must be within 0..{graph.nodes - 1}")
    teleport = np.zeros(graph.nodes)
    teleport[trusted] = 1.0 if weights is None else weights
    return pagerank(graph, damping=dampening, teleport=teleport, tolerance=tolerance)


def backlinks(graph: LinkGraph) -> Ranking:
    """Return each page's share of all links (IB of Cho 1998, scaled to sum to 1)."""
    counts = graph.in_degree().astype(np.float64)
    return Ranking(counts / max(1.0, counts.sum()), 1, 0.0)


def _weights(teleport: Array | None, nodes: int) -> Array:
    if teleport is None:
        return np.full(nodes, 1.0 / nodes)
    if teleport.shape != (nodes,) or not (teleport >= 0).all() or not 0 < teleport.sum() < np.inf:
        raise ValueError(f"teleport must have {nodes} weights >= 0, at least one above 0")
    return np.asarray(teleport / teleport.sum())


def _power(links: _Links[np.float32], flow: _Single, least: float, steps: int) -> tuple[_Single, int]:
    """Pass `flow` along the links until its L1 norm is at most `least`. Return the sum of the flow over all steps, and
    the number of steps.
    """
    total = flow.copy()
    taken = 0
    while taken < steps and float(np.abs(flow).sum(dtype=np.float64)) > least:
        flow = links.pull(flow)
        total += flow
        taken += 1
    return total, taken


def _orthomin(links: _Links[np.float32], flow: _Single, least: float, steps: int) -> tuple[_Single, int]:
    """Compute the same as `_power`, by ORTHOMIN."""
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
    """The blocks of a graph as sparse matrices of ones, in single or double precision."""

    def __init__(self, graph: LinkGraph, damping: float, precision: type[_Real]) -> None:
        self._share: npt.NDArray[_Real] = (graph.share * damping).astype(precision)
        self._ones: npt.NDArray[_Real] = np.ones(
            max((len(block.sources) for block in graph.blocks), default=0), dtype=precision
        )
        self._blocks = graph.blocks

    def pull(self, scores: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
        """Return the (n,) score that each page receives along its in-links."""
        given = scores * self._share
        pulled = np.zeros_like(scores)
        for first, indptr, sources in self._blocks:
            add_product(indptr, sources, self._ones, given, pulled[first : first + len(indptr) - 1])
        return pulled
