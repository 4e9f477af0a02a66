"""Lease the pages of one active site, request them, and settle them.

The site requests leases when few of its leased URLs are left (`refill`). Before a leased page is fetched, it is checked
against policy and robots.txt once more (`dealt`). Each fetched page is examined and settled. If the store has no due
page, the site waits until `wake_at`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.inbox.blocks import BLOCKED, RECHECK_S
from webfountain.frontier.planning.schedule import within_policy
from webfountain.frontier.sites.site_files import DISALLOWED
from webfountain.frontier.visit import acknowledged, deferred, put_off, refused
from webfountain.metrics import observed
from webfountain.policy.judge import Origin
from webfountain.store.answers import Refill
from webfountain.store.lanes import recrawl_place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.frontier.sites.addresses import Place
    from webfountain.frontier.sites.hand import Hand
    from webfountain.frontier.sites.site_changes import SiteChanges
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_files import SiteFiles
    from webfountain.frontier.visit import Visit
    from webfountain.records import Fetch, Lease, OutcomeKind, PageRecord, SiteLease
    from webfountain.store.answers import LeaseBatch

__all__ = ["PRIVATE", "SitePages"]

RELOOK: Final = 0.02
"""A site requests leases again after this part of a period if it did not get all due pages."""
PRIVATE: Final = "private-address"
"""Error word of the pages of a site with a private address."""
_HAIR_S: Final = 1e-3
"""A site requests leases this many seconds after a page's due time, because a rounded time could be too early."""
_BARRED: Final[dict[str, OutcomeKind]] = {PRIVATE: "refused", DISALLOWED: "refused_by_robots"}
"""Outcome of a barred site's pages, by error word ("failed" for all other errors)."""


class SitePages:
    """Leases and fetches of one site's pages, and its request for more leases (a refill).

    A site has at most one open request for leases (a refill) at a time. A page is under way from the time it leaves the
    hand until `settled` counts it.
    """

    __slots__ = (
        "_changes",
        "_context",
        "_files",
        "_hand",
        "_place",
        "_refilled_at",
        "_refreshed",
        "_sleeps",
        "barred",
        "has_more",
        "is_ordered",
        "served",
        "under_way",
        "wake_at",
    )

    def __init__(self, context: SiteContext, place: Place, hand: Hand, files: SiteFiles, changes: SiteChanges) -> None:
        self._context = context
        self._changes = changes
        self._place = place
        self._hand = hand
        self._files = files
        self._sleeps = False  # The site is blocked.
        self._refreshed = False  # The store received something after the last refill, which may not include it.
        self._refilled_at = -inf
        """Time of the last request for leases, UTC seconds."""
        self.is_ordered = False
        """True if a request for leases waits for the store's answer."""
        self.under_way = 0
        """Number of fetches in flight, plus the number of pages that were fetched but are not settled yet."""
        self.served = 0
        """Number of fetches of pages and files since the site became active."""
        self.has_more = True
        """True if the store may have more due pages."""
        self.barred: str | None = None
        """Error with which every lease of the site's pages ends, without a fetch; None if pages may be fetched."""
        self.wake_at = inf
        """Time of the site's next timer, UTC seconds."""

    # ------------------------------------------------------------ changes of its content

    def is_under_way(self) -> bool:
        """Return whether the site has an unfinished fetch, an unsettled page, or a pending request for leases."""
        return bool(self.under_way or self.is_ordered)

    def has_leased(self) -> bool:
        """Return whether any page of the site is leased, in the hand or in flight."""
        return bool(self.under_way or self._hand.pages())

    def sent(self) -> None:
        """Count a fetch."""
        self.under_way += 1
        self.served += 1

    def settled(self, many: int) -> None:
        """Count `many` settled pages or fetched files as finished."""
        self.under_way -= many

    # ------------------------------------------------------------------- leases

    def open(self, batch: Batch) -> None:
        """Allow leases because robots.txt is known, and fetch the immediate pages that waited for it."""
        self.has_more = True
        self.release_held(batch)

    def refill(self, lease: SiteLease, batch: Batch) -> None:
        """Request leases. Do not call this method again before the store's answer has come."""
        self.is_ordered, self._refreshed = True, False
        self._refilled_at = batch.at
        self.wake_at = inf  # It is computed again from the leases, and from the pages that are settled meanwhile.
        never, recrawl = self._hand.room()
        horizon = self._context.follower.schedule.horizon(batch.at)
        batch.refills.append(Refill(lease, never_crawled=never, recrawl=recrawl, horizon=horizon))

    def dealt(self, dealt: LeaseBatch, batch: Batch) -> None:
        """Put the requested leases into the hand, except for pages that policy or robots.txt now refuse."""
        if self.is_blocked(batch.at):
            batch.release(lease.id for lease in dealt.never_crawled + dealt.recrawl)
            self.is_ordered = False
            return
        never, recrawl = (
            [fetch for fetch in map(self._request, leases) if self._may_fetch(fetch, batch)]
            for leases in (dealt.never_crawled, dealt.recrawl)
        )
        # Pages that were due but not leased (the hand was full, clocks are read seldom) are checked again soon. A page
        # that came due while the store answered was not yet within the horizon; the next refill leases it.
        soonest = batch.at + RELOOK * self._context.collection.cycle.period_s
        for lane, order in dealt.lanes:
            due = self._context.follower.schedule.due(lane, order)
            self.wake_at = min(self.wake_at, (due if due > self._refilled_at else soonest) + _HAIR_S)
        self.is_ordered = False
        full = not dealt.is_empty
        self._hand.deal(never, recrawl, full=full)
        if not full and not self._refreshed:
            self.has_more = False

    def add_immediate(self, leases: Iterable[Lease]) -> None:
        """Add immediate pages that wait until `release_held` is called."""
        self._hand.hold(map(self._request, leases))

    def release_held(self, batch: Batch) -> None:
        """Fetch the immediate pages that waited for robots.txt, if it allows them."""
        for fetch in self._hand.take_held():
            if self._may_fetch(fetch, batch):
                self._hand.add_urgent(fetch)

    def refresh(self) -> None:
        """Allow a new request for leases, because the store has new or released URLs of the site."""
        self.has_more = self._refreshed = True

    def recall(self, batch: Batch) -> None:
        """Release the leases of known pages, because the store has more urgent ones."""
        batch.release(self._hand.flush_recrawl())
        self.refresh()

    def judge_again(self, batch: Batch) -> None:
        """After an edit of the policy file or the blocks, release all pages in the hand, because each page must be
        judged again.
        """
        batch.release(self._hand.flush())
        self.refresh()
        if self._sleeps or self.is_blocked(batch.at):
            self._sleeps, self.wake_at = False, batch.at

    def outrank(self, importance: float, batch: Batch) -> bool:
        """Release the leased pages that are less important than a new page, and return whether there were any."""
        outranked = self._hand.flush_outranked(importance)
        if outranked:
            batch.release(outranked)
            self.refresh()
        return bool(outranked)

    def is_blocked(self, at: float) -> bool:
        """Return whether a note blocks the whole site."""
        return self._blocked_until(f"{self._place.name}/", at) is not None

    def sleep_if_blocked(self, batch: Batch) -> bool:
        """Return whether the site is blocked. A blocked site releases its pages, and waits until the block ends or must
        be checked again.
        """
        until = self._blocked_until(f"{self._place.name}/", batch.at)
        self._sleeps = until is not None
        if until is not None:
            batch.release(self._hand.flush())
            self.wait_until(min(until, batch.at + RECHECK_S))
        return self._sleeps

    def wait_until(self, at: float) -> None:
        """Set the site's next timer to the time `at`."""
        self.wake_at = at

    # --------------------------------------------------------------------- ends

    def bar(self, error: str) -> None:
        """From now on, end every lease of the site's pages with this error, without a fetch."""
        self.barred = error

    def give_up(self, error: str, batch: Batch) -> None:
        """End every lease of the site's pages with this error, now and later."""
        self.barred, self.has_more = error, True
        for fetch in self._hand.take_pages():
            self._may_fetch(fetch, batch)
        self.release_held(batch)

    def settle(self, lease: Lease, visit: Visit, batch: Batch) -> None:
        """Add an examined page to the batch, to be settled."""
        context = self._context
        if context.judge.has_bounds:
            revisit = context.judge.policies.rules[visit.record.policy].table.revisit
            record = within_policy(visit.record, revisit, context.follower.schedule)
            visit = visit if record is visit.record else msgspec.structs.replace(visit, record=record)
        self._note_due(visit.record)
        if lease.record.state != "never-crawled" and lease.record.immediate is None:
            context.metrics.add(_lag(lease.record, context.follower.schedule, visit.fetched.at))
        batch.settle(lease, visit.outcome, visit)

    def _may_fetch(self, fetch: Fetch, batch: Batch) -> bool:
        """Return whether a leased page may be fetched. If the page may not be fetched, settle it as refused or failed,
        or put it off.
        """
        assert fetch.lease is not None
        until = self._blocked_until(fetch.url, batch.at)
        kind, error = self._objection(fetch.lease.record) if until is None else ("refused", BLOCKED)
        if kind is None:
            price, believed = self._context.follower.schedule.price, self._context.believed
            due = self._changes.puts_off_until(fetch.lease.record, at=batch.at, price=price, believed=believed)
            if due is None:
                return True
            outcome = put_off(fetch.lease, due=due)
        elif until is not None:
            outcome = deferred(fetch.lease, error, due=min(until, batch.at + RECHECK_S))
        elif kind == "failed":
            outcome = acknowledged(fetch.lease, status=None, error=error, at=batch.at)
        else:
            outcome = refused(fetch.lease, kind, error, period_s=self._context.collection.cycle.period_s, at=batch.at)
        self.under_way += 1
        self._note_due(outcome.record)
        batch.refuse(fetch.lease, outcome)
        self._context.metrics.inc(f"outcome/{kind or 'put_off'}")
        return False

    def _blocked_until(self, url: str, at: float) -> float | None:
        """Return the time until which a URL of the site is blocked, or None."""
        blocked = self._context.blocked
        return blocked.until(url, at, site=self._place.name) if blocked.by_site else None

    def _objection(self, record: PageRecord) -> tuple[OutcomeKind | None, str]:
        if self.barred is not None:
            return _BARRED.get(self.barred, "failed"), self.barred
        context = self._context
        if record.request is None:
            [verdict] = context.judge.judge([record.url], Origin("queued", record.depth, record.policy))
            if verdict.reason is not None:
                return "refused", verdict.reason
        if not context.obey_robots or self._files.robots.allows(record.url):
            return None, ""
        if record.request is not None and context.ignores_robots(record.request):
            return None, ""
        return "refused_by_robots", DISALLOWED

    def _note_due(self, record: PageRecord) -> None:
        """Set the site's timer to the page's due time, if the due time is earlier."""
        due = self._context.follower.schedule.due(*recrawl_place(record))
        self.wake_at = min(self.wake_at, due + _HAIR_S)

    def _request(self, lease: Lease) -> Fetch:
        """Return the request for a leased page. The request is conditional if our copy has validators."""
        record = lease.record
        has_copy = record.state == "crawled" and record.digest is not None and not self._context.needs_links(record)
        return self._place.request(
            "page",
            record.url,
            lease=lease,
            etag=record.etag if has_copy else None,
            last_modified=record.last_modified if has_copy else None,
        )


def _lag(record: PageRecord, schedule: Schedule, at: float) -> dict[str, float]:
    """Return, for a histogram in the stats, how long a known page was overdue when it was fetched."""
    due = schedule.due(*recrawl_place(record))
    return observed("due/lag", at - due) if 0.0 < due <= at else {}
