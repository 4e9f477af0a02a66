"""Importance of a page: from a ranking, between two rankings, from several scores, as a class; or from its depth alone.

Scores are relative to the mean of the known pages (a page of score 1 is an average one), so that they mean the same
before and after a ranking of a larger web. `ranking` publishes the scores of a ranking; `OnlineImportance` credits what
is fetched until the next one; `importance_class` says in which lane of its site a page waits.

Source: Abiteboul, Preda, Cobena, *Adaptive on-line page importance computation*, 2003 (cash); Policies 2006 (several
scores, weighed by the page's policy); Cho 1998, section 2 (combined metrics).
"""

from __future__ import annotations

__all__ = ["CLASSES", "OnlineImportance", "combined", "importance_by_depth", "importance_class"]

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

CLASSES: Final = 64
"""Classes of importance, two to a doubling, from a 256th of the mean to 2^24 times the mean."""

_LOWEST: Final = -16
"""Twice the log2 of the lowest class."""

_PRIOR: Final = 0.1
"""Score of a page before anything is known of its in-links: what no link brings, 1 - d at d = 0.9."""

_SHARE = 0.5
"""Importance of a page relative to one a directory above it."""


def importance_class(scores: Array) -> npt.NDArray[np.uint8]:
    """(n,) 0..63, the greater the more important, of scores (n,) >= 0 relative to the mean; 16 is an average page."""
    with np.errstate(divide="ignore"):
        halves = np.floor(2.0 * np.log2(scores)) - _LOWEST
    return np.asarray(np.clip(halves, 0, CLASSES - 1).astype(np.uint8))


def combined(scores: Mapping[str, Array], weights: Mapping[str, float]) -> Array:
    """(n,) mean of several scores, each (n,) relative to its mean, by the weights of a policy.

    Raises ValueError when a weight names no score, is negative, or all are 0.
    """
    absent = sorted(weights.keys() - scores.keys())
    if absent or min(weights.values(), default=0.0) < 0 or sum(weights.values()) <= 0:
        raise ValueError(f"weights {dict(weights)} must be >= 0, not all 0, of {', '.join(scores)}")
    total = sum(weights.values())
    return np.asarray(sum(scores[name] * (weight / total) for name, weight in weights.items()))


def importance_by_depth(paths: Sequence[str]) -> Array:
    """(n,) 1 for a page in the root directory, half of that for each directory below."""
    depth = [sum(bool(name) for name in path.split("?", 1)[0].split("/")[:-1]) for path in paths]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))


class OnlineImportance:
    """What is known of pages between two rankings: an estimated rank, and cash that flows to where nobody was yet.

    Pages are named by a number, in a crawl by their fingerprint. *Rank*: a fetched page credits its score, dampened,
    to its targets in equal parts, on top of what the last ranking gave them. *Cash*: a seed begins with some; a fetch
    hands all cash of the page to its targets and leaves it none, so that in the end cash lies where few paths end
    that were crawled already. A page that is fetched again hands on only what it has got since: being fetched often
    inflates nobody.
    """

    def __init__(self, *, damping: float = 0.9) -> None:
        self._damping = damping
        self._rank: dict[int, float] = {}
        self._handed_on: dict[int, float] = {}
        self._cash: dict[int, float] = {}

    def seed(self, page: int, cash: float) -> None:
        """Give a page cash of its own."""
        self._cash[page] = self._cash.get(page, 0.0) + cash

    def publish(self, pages: Iterable[int], scores: Iterable[float], crawled: Iterable[int]) -> None:
        """A new ranking holds: these pages have these scores, and the links of those `crawled` are in it."""
        self._rank = dict(zip(pages, scores, strict=True))
        rank = self._rank
        self._handed_on = {page: rank[page] for page in crawled if page in rank}

    def credit(self, page: int, targets: Sequence[int]) -> None:
        """A page was fetched and links to these targets, each named once."""
        cash, rank = self._cash, self._rank
        spent = cash.pop(page, 0.0)
        score = rank.get(page, _PRIOR)
        gain = score - self._handed_on.get(page, 0.0)
        self._handed_on[page] = score
        if not targets:
            return
        part, gained = spent / len(targets), self._damping * gain / len(targets)
        for target in targets:
            cash[target] = cash.get(target, 0.0) + part
            rank[target] = rank.get(target, _PRIOR) + gained

    def rank(self, page: int) -> float:
        """Estimated score of a page relative to the mean."""
        return self._rank.get(page, _PRIOR)

    def cash(self, page: int) -> float:
        """Cash that a page has got since it was last fetched."""
        return self._cash.get(page, 0.0)
