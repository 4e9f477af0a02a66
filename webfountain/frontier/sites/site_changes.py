"""Count a site's page changes, first fetches of URLs, and gone pages that returned.

The site's change rate is assumed for a page with a short history, and decides the page's bucket together with the
history. A gone page is requested again sooner if gone pages of the site often returned and fetches are cheap
(`core.return_time`). The hand of a site sorts and weights never-crawled URLs by the chance that they have a page
(`core.first_fetch`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from webfountain.core.buckets import bucket_of
from webfountain.core.change_rate import Prior, Totals, estimate_interval
from webfountain.core.first_fetch import SITE, UNFETCHED, FirstFetches, part_of_share
from webfountain.core.return_time import (
    CAME_BACK,
    LONGEST,
    NEVER_LIVED,
    Returns,
    price_of_interval,
    time_to_return,
)
from webfountain.frontier.planning.schedule import VISITS_PER_CHANGE
from webfountain.policy.provenance import arrival_of, was_added
from webfountain.records import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.frontier.visit import Visit
    from webfountain.records import PageRecord, SiteState

__all__ = ["PRIOR_PERIODS", "SiteChanges"]

PRIOR_PERIODS: Final = 10.0
"""Mean change interval that is assumed before any change was observed, in periods."""
PRIOR_CHANGES: Final = 2.0
"""Weight of the assumed change interval in the mean interval of a site, as a number of observed changes."""
MOST_CLASSES: Final = 24
"""Maximum number of classes of URLs for which a site's first fetches are counted. URLs of one class have the same
source and directory.
"""
_AGAIN: Final = 0.25
"""If a gone page is put off, it is checked again after this share of the time since its last request."""


class SiteChanges:
    """Counts of one site: page changes, first fetches and returned gone pages, and the total time of observation."""

    __slots__ = ("classes", "count", "first", "gone", "observed_s")

    def __init__(self, state: SiteState) -> None:
        self.restore(state)

    def restore(self, state: SiteState) -> None:
        """Load the counts from a stored state."""
        self.count, self.observed_s = state.changes, state.observed_time
        self.gone = {
            "copied": Returns(state.revived, state.dead_time),
            "added": Returns(*state.unborn_added),
            "old": Returns(state.born, state.unborn_time, state.unborn, state.unborn_asked),
        }
        """How often, and after how long, gone pages of each kind (`_kind_of`) came back."""
        self.classes = {name: Returns(found, gone_s) for name, found, gone_s in state.unborn_classes}
        """For each class of URLs: how often, and after how long, a page appeared at a URL that was gone at its first
        fetch.
        """
        self.first = FirstFetches(state.first_fetches)

    def stored(self, state: SiteState) -> SiteState:
        """Return `state` with the current counts."""
        copied, old = self.gone["copied"], self.gone["old"]
        return msgspec.structs.replace(
            state,
            changes=self.count,
            observed_time=self.observed_s,
            revived=copied.found,
            dead_time=copied.gone_s,
            born=old.found,
            unborn_time=old.gone_s,
            unborn=old.urls,
            unborn_asked=old.asked,
            unborn_added=tuple(self.gone["added"]),
            unborn_classes=tuple((name, each.found, each.gone_s) for name, each in self.classes.items()),
            first_fetches=tuple(self.first.items()),
        )

    def add(self, before: PageRecord, visit: Visit, *, price: float | None, believed: Prior, fastest_s: float) -> Visit:
        """Count the visit to a page; `before` is the page's record before the visit. Return the visit with the bucket
        of a crawled page, or with the due time of a gone page.

        A fetch is worthwhile if it saves at least `price` seconds in which copies are outdated. If `price` is None, the
        price of an average page of the site is used. `believed` is the change interval that is assumed before any
        observation. `fastest_s` is the change interval of bucket 0.
        """
        bucket = self._bucket(before, visit, believed, fastest_s)
        if visit.record.checks > before.checks:
            self.count += visit.kind == "changed"
            self.observed_s += visit.observed_time
        # A failed fetch does not end the observed time: the next fetch that shows anything counts all of it.
        is_shown, kind = visit.kind == "gone" or visit.record.state == "crawled", _kind_of(before)
        if before.state == "gone" and is_shown and before.last_crawled is not None:
            came, waited = visit.record.state == "crawled", max(visit.fetched.at - before.last_crawled, 0.0)
            self.gone[kind] = self.gone[kind].add(came=came, waited_s=waited)
            if before.digest is None and (name := _class_of(before, self.classes)) is not None:
                self.classes[name] = self.classes.get(name, Returns()).add(came=came, waited_s=waited)
        elif visit.kind == "gone" and before.digest is None:
            self.gone[kind] = self.gone[kind]._replace(urls=self.gone[kind].urls + 1)
        if before.state == "never-crawled" and is_shown:
            self.first.count(_class_of(before, self.first), lived=visit.kind != "gone")
        if visit.kind != "gone":
            if bucket == visit.record.bucket:
                return visit
            return msgspec.structs.replace(visit, record=msgspec.structs.replace(visit.record, bucket=bucket))
        # The waits of a gone page grow about evenly, so their sum is half of the last wait times their number.
        at, gone_s = visit.fetched.at, 0.0
        if before.state == "gone" and before.last_crawled is not None:
            gone_s = (at - before.last_crawled) * (before.failures + 1) / 2
        due = at + self._wait_of_gone(before, gone_s=gone_s, price=price, believed=believed)
        return msgspec.structs.replace(visit, record=msgspec.structs.replace(visit.record, due=due))

    def _bucket(self, before: PageRecord, visit: Visit, believed: Prior, fastest_s: float) -> int:
        """Return the bucket byte of a visited page."""
        record = visit.record
        if visit.kind not in ANSWERED:
            return record.bucket
        prior = self.prior(believed)
        if before.digest is None:
            return bucket_of(prior.interval, fastest_s)
        totals = Totals(record.checks, record.changes, visit.fetched.at - record.first_seen)
        return bucket_of(estimate_interval(record.history, totals=totals, prior=prior), fastest_s)

    def puts_off_until(self, record: PageRecord, *, at: float, price: float | None, believed: Prior) -> float | None:
        """Return the time until which a due page is put off, or None if the page may be requested now.

        A gone page is put off if fetches have become so expensive that another request is not yet worthwhile. If a page
        is put off, it is checked again later, because fetches may become cheaper.
        """
        if price is None or record.state != "gone" or record.immediate is not None or record.last_crawled is None:
            return None
        waited = at - record.last_crawled
        gone_s = waited * (record.failures - 1) / 2
        wait = self._wait_of_gone(record, gone_s=gone_s, price=price, believed=believed)
        again = max(_AGAIN * waited, believed.interval / PRIOR_PERIODS)
        return None if wait <= waited else at + min(wait - waited, again)

    def prior(self, believed: Prior) -> Prior:
        """Return the site's mean change interval. The fewer changes a site has shown, the closer the result is to the
        assumed interval `believed`.
        """
        return Prior((self.observed_s + PRIOR_CHANGES * believed.interval) / (self.count + PRIOR_CHANGES))

    def chance(self, record: PageRecord) -> float:
        """Return the chance that a never-crawled URL of the site has a page."""
        made, lived = self.first.get(SITE, UNFETCHED)
        return 1.0 if lived == made else self.first.chance(_class_of(record, self.first))

    def part_of_share(self, record: PageRecord, *, price: float | None, believed: Prior) -> float:
        """Return a factor, from 0 to 1, for the weight of a never-crawled queue that begins with `record`."""
        chance = self.chance(record)
        if price is None or chance == 1.0:
            return 1.0
        return part_of_share(chance, change_s=self.prior(believed).interval, price_s=price)

    def _wait_of_gone(self, page: PageRecord, *, gone_s: float, price: float | None, believed: Prior) -> float:
        """Return the seconds between two requests of a gone page, from one to `LONGEST` periods.

        When the page was last requested, it had been gone for at least `gone_s` seconds.
        """
        period = believed.interval / PRIOR_PERIODS
        change_s = self.prior(believed).interval
        if price is None:
            price = price_of_interval(change_s / VISITS_PER_CHANGE, change_s)
        kind = _kind_of(page)
        rate = self.gone[kind].rate(usual_s=(NEVER_LIVED if kind == "old" else CAME_BACK) * period)
        if page.digest is None and (name := _class_of(page, self.classes)) in self.classes:
            rate = self.classes[name].rate_within(rate)
        wait = self.gone[kind].spacing * time_to_return(rate, gone_s=gone_s, price_s=price)
        return min(max(wait, period), LONGEST * period)


def _kind_of(record: PageRecord) -> Literal["copied", "added", "old"]:
    """Return the kind of a gone page: "copied" if it had a copy, "added" if an added link made it known."""
    return "copied" if record.digest is not None else "added" if was_added(record.provenance) else "old"


def _class_of(record: PageRecord, known: Mapping[str, object]) -> str | None:
    """Return the class of a URL: its source and its first directory. Return None for a new class if the site already
    has `MOST_CLASSES` classes.
    """
    start = record.url.find("/", 8)
    directory = record.url[start : record.url.find("/", start + 1) + 1] if start >= 0 else ""
    source = "added" if was_added(record.provenance) else arrival_of(record.provenance)
    name = f"{source} {'' if '?' in directory else directory}"
    return name if name in known or len(known) < MOST_CLASSES else None
