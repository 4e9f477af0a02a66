"""What limits the rate of this process now, in words (`rate_limit`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.rate_limit import RateLimit, limit_words

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["limit_now", "report_limit"]


def limit_now(progress: Progress, sites: ActiveList, at: float) -> str:
    """Return a text that says what limits the rate of a process now."""
    return limit_words(progress.hold(at), sites.statistics(), preparing=sites.preparing())


def report_limit(progress: Progress, sites: ActiveList, batch: Batch) -> None:
    """Put the limit into a batch, for readers of the store."""
    batch.limit = RateLimit(batch.at, limit_now(progress, sites, batch.at))
