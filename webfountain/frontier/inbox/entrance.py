"""The entrance of URLs that come from outside the crawl: seeds, and links that a caller gives.

Place in the walk: in the worker thread. The judge refuses URLs or gives them a policy, the eliminator drops those that
are known, and the others are discovered.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from webfountain.errors import UrlError
from webfountain.policy.judge import Origin
from webfountain.policy.provenance import arrived
from webfountain.records import Link
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.duplicates.url_dedup import DuplicateEliminator
    from webfountain.policy.judge import Judge
    from webfountain.records import PageRecord

__all__ = ["Entrance"]


class Entrance:
    """The entrance of one process: its judge and its eliminator."""

    def __init__(self, judge: Judge, due: DuplicateEliminator) -> None:
        self.judge = judge
        self.due = due

    def discover(self, urls: Sequence[str], page: PageRecord, *, at: float) -> None:
        """Make URLs known as links of a page. Texts that are no URL are ignored, as are URLs that the judge refuses."""
        found = []
        for text in urls:
            with suppress(UrlError):
                found.append(canonical(text))
        origin = Origin("link", page.depth + 1, page.policy, page.trust, page.url, len(found))
        verdicts = self.judge.judge(found, origin)
        self.due.discover(
            [
                Link(
                    url, site_of(url), fingerprint(url), depth=page.depth + 1, policy=verdict.policy,
                    importance=self.judge.importance(verdict), source=page.url, trust=verdict.trust,
                    provenance=arrived("link", rule=verdict.rule),
                )
                for url, verdict in zip(found, verdicts, strict=True)
                if verdict.reason is None
            ],
            at=at,
        )  # fmt: skip
