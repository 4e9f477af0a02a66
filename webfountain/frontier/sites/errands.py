"""Errands of a site that are not its pages: robots.txt by RFC 9309, then its sitemaps. Their fetches are polite too.

robots.txt is asked once per site and kept for a day: 4xx allows everything, 5xx and no answer refuse everything until
a retry succeeds, redirects are followed (section 2.3.1). No page of a site goes out before its robots.txt is known.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from webfountain import urls
from webfountain.formats.robots import MAX_ROBOTS_BYTES, RobotsRules, robots_verdict
from webfountain.frontier.sites import politeness
from webfountain.frontier.sites.site import ALLOW_ALL

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from webfountain.frontier.sites.ant import Ant
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetched

__all__ = ["ROBOTS_LIFE_S", "Errands"]

ROBOTS_LIFE_S: Final = 86_400.0
"""RFC 9309 section 2.4: a cached version should not be used for more than 24 hours."""
MAX_HOPS: Final = 5
MAX_SITEMAPS: Final = 100
"""Sitemaps of one site that are read; an index that names more is cut and counted."""


class Errands:
    """Sends for robots.txt and sitemaps, and understands the answers."""

    def __init__(
        self,
        *,
        ant: Ant,
        collection: Collection,
        judge: Judge,
        metrics: Metrics,
        rng: random.Random,
        obey_robots: bool = True,
        robot: str | None = None,
    ) -> None:
        self._ant = ant
        self._judge = judge
        self._metrics = metrics
        self._rng = rng
        self._obey_robots = obey_robots
        self._with_sitemaps = collection.discovery.sitemaps
        self._reread_s = collection.cycle.period_s
        self._max_delay_s = float(collection.politeness.max_delay)
        self.base_s = max(1.0, 10.0 * collection.politeness.min_delay)
        token = robot or collection.politeness.robots_token
        self._rules = functools.lru_cache(maxsize=1024)(lambda body: RobotsRules.parse(body, token))

    def prepare(self, site: ActiveSite, at: float) -> None:
        """Make a site ready for its pages: with known rules at once, else after its robots.txt."""
        if site.robots_pending or site.resolving or site.group is None:
            return
        if not self._obey_robots or site.barred:
            site.robots_ok = True
        elif site.robots_at is None or not site.robots_ok or at - site.robots_at >= ROBOTS_LIFE_S:
            self._send_for_robots(site, f"{site.site}/robots.txt")
            return
        elif site.robots_body:
            site.robots = self._rules(site.robots_body)
        self._open(site, at)

    def outdated(self, at: float) -> list[ActiveSite]:
        """Active sites whose robots.txt has lived its time; one with an order out must wait for its deal."""
        if not self._obey_robots:
            return []
        return [
            site
            for site in self._ant.sites.values()
            if site.robots_at is not None
            and at - site.robots_at >= ROBOTS_LIFE_S
            and not (site.shut or site.robots_pending or site.ordered or site.barred)
        ]

    def _send_for_robots(self, site: ActiveSite, url: str) -> None:
        site.robots_pending = True
        site.held += site.immediate.flush()  # the new rules decide, not those that were in force when they came
        queue = site.immediate if site.held else site.errands
        queue.load([self._ant.errand(site, "robots", url)])
        self._ant.look(site)

    def hasten(self, site: ActiveSite) -> None:
        """An immediate URL waits for the site's robots.txt: if that was not asked yet, it goes before all others."""
        waiting = site.errands.flush()
        site.immediate.load(fetch for fetch in waiting if fetch.kind == "robots")
        site.errands.load(fetch for fetch in waiting if fetch.kind != "robots")
        self._ant.hurry(site)

    def robots_landed(self, site: ActiveSite, fetched: Fetched) -> None:
        """Follow, obey or refuse."""
        target = urls.join(fetched.fetch.url, fetched.location or "") if _redirects(fetched.status) else None
        if target is not None and site.robots_hops < MAX_HOPS:
            site.robots_hops += 1
            self._send_for_robots(site, target)
            return
        site.robots_hops = 0
        site.robots_pending = False
        site.robots_at = fetched.at
        ruling = robots_verdict(fetched.status, fetched.error)
        if ruling == "refuse":
            self._shut(site, fetched.at)
            return
        self._metrics.inc(f"robots/{ruling}")
        site.robots_body = fetched.body[:MAX_ROBOTS_BYTES] if ruling == "rules" else None
        site.robots = self._rules(site.robots_body) if site.robots_body else ALLOW_ALL
        site.robots_ok = True
        site.robots_failures = 0
        site.crawl_delay = site.robots.crawl_delay or 0.0
        site.gate.hold(fetched.at + min(site.crawl_delay, self._max_delay_s))  # it also holds before the first page
        self._open(site, fetched.at)

    def _shut(self, site: ActiveSite, at: float) -> None:
        """robots.txt cannot be had: everything is refused, and it is asked for again after a back-off."""
        site.robots_ok = False
        site.robots_failures += 1
        site.dry = True
        site.recrawl_at = at + politeness.backoff(site.robots_failures, base=self.base_s, rng=self._rng)
        site.gate.hold(site.recrawl_at)  # also when an immediate URL makes the site active before
        self._metrics.inc("robots/refuse")
        self._ant.look(site)

    def _open(self, site: ActiveSite, at: float) -> None:
        """Rules are known: sitemaps are sent for, leases may be ordered."""
        site.dry = False
        if self._with_sitemaps and not site.barred:
            self.send_for_sitemaps(site, site.robots.sitemaps, at)
        self._ant.look(site)

    def send_for_sitemaps(self, site: ActiveSite, found: Iterable[str], at: float) -> None:
        """Fetch those sitemaps that were not read within a period, newly named ones at once."""
        for name in found:
            url = urls.join(site.site + "/", name)
            if url is None or not self._judge.is_in_scope(urls.site_of(url)):
                self._metrics.inc("sitemap/out_of_scope")
            elif url not in site.sitemaps and len(site.sitemaps) >= MAX_SITEMAPS:
                self._metrics.inc("sitemap/too_many")
            elif at - site.sitemaps.get(url, float("-inf")) >= self._reread_s:
                site.sitemaps[url] = at
                site.errands.load([self._ant.errand(site, "sitemap", url)])
                self._metrics.inc("sitemap/fetched")


def _redirects(status: int | None) -> bool:
    return status is not None and 300 < status < 400 and status != 304
