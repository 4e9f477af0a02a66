"""Addresses: where each active site stands, and who is polite to ask now.

The two upper tiers of Figure 1 of Edwards 2001: a round robin over addresses, under each a round robin over its
sites, every address and every site behind its own gate. A site enters once its address is known: at once where its
name is one, else when its host is resolved. Whoever takes a fetch out of `ring` shuts the gates it passed; `landed`
opens them again when politeness says. Where an address does not answer, a site stands at the next of its host that
does (`detour`). What a site asks for is the site's (`site`) and the ant's (`ant`).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from webfountain.frontier.sites import politeness
from webfountain.frontier.sites.ring import RoundRobin
from webfountain.frontier.sites.site import Group
from webfountain.urls import host_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.metrics import Metrics
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import Fetch, Fetched

__all__ = ["Addresses"]


class Addresses:
    """The addresses of the active sites. `ring` gives the next fetch that politeness allows."""

    def __init__(self, rules: PolitenessTable, *, rng: random.Random, metrics: Metrics) -> None:
        self._rules = rules
        self._rng = rng
        self._metrics = metrics
        self.ring: RoundRobin[Fetch] = RoundRobin()
        self._groups: dict[str, Group] = {}
        self._empty: list[Group] = []
        self._waiting: dict[str, list[ActiveSite]] = {}
        self._unresolved: list[str] = []

    # ------------------------------------------------------- coming and going

    def enter(self, site: ActiveSite) -> None:
        """A site became active: it takes its place, or waits for its host's address."""
        host = host_of(site.site)
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            site.resolving = True
            waiting = self._waiting.setdefault(host, [])
            if not waiting:
                self._unresolved.append(host)
            waiting.append(site)
        else:
            self._settle_in(site, address)

    def unresolved(self) -> list[str]:
        """Hosts whose address is needed; each is told once until `resolved` answers."""
        hosts, self._unresolved = self._unresolved, []
        return hosts

    def resolved(self, host: str, addresses: Sequence[str]) -> list[ActiveSite]:
        """The addresses of a host, best first; none: it cannot be reached. Returns the sites that waited for it."""
        sites = [site for site in self._waiting.pop(host, ()) if site.resolving]
        for site in sites:
            site.resolving = False
            if addresses:
                site.fallbacks = tuple(addresses[1:])
                self._settle_in(site, addresses[0])
        return sites

    def _settle_in(self, site: ActiveSite, address: str) -> None:
        """Take a site's place under its address, or alone where addresses are told apart by `per_ip = false`."""
        group = self._group_at(site, address)
        group.address = address
        site.group = group
        group.ring.add(site.sequencer)
        self.ring.wake(group.sequencer)

    def _group_at(self, site: ActiveSite, address: str) -> Group:
        key = address if self._rules.per_ip else site.site
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, address, self._rules.concurrency)
            self.ring.add(group.sequencer)
            self._empty.append(group)  # until `sweep` finds somebody there
        return group

    def leave(self, site: ActiveSite) -> None:
        """A site is active no more. Its address is remembered until `sweep` finds it free."""
        site.resolving = False
        group = site.group
        if group is not None:
            group.ring.remove(site.sequencer)
            if not len(group.ring):
                self._empty.append(group)

    def detour(self, site: ActiveSite, group: Group, address: str, at: float) -> float:
        """A fetch under way, let out by `group`, has no answer there and would ask another address of its host.

        Returns how many seconds it must wait, and is to ask again then (inf: until somebody else has landed); 0.0 when
        it may go on: its slot is that address's now, and the site stands there.
        """
        there = self._group_at(site, address)
        if there is not group:
            opens = there.gate.open_at()
            if opens > at:
                return opens - at
            there.gate.take()
            group.gate.give(at)  # nothing was asked there
            self.ring.wake(group.sequencer)
        self._move(site, address)
        return 0.0

    def _move(self, site: ActiveSite, address: str) -> None:
        """Stand at another address of the host from now on; the one before comes last among its fallbacks."""
        before = site.group
        assert before is not None
        addresses = (before.address, *site.fallbacks)
        at = addresses.index(address)
        site.fallbacks = (*addresses[at + 1 :], *addresses[:at])
        self.leave(site)
        self._settle_in(site, address)

    def sweep(self, at: float) -> None:
        """Forget addresses without a site whose gate is open again: until then the next site there must wait too."""
        kept = []
        for group in self._empty:
            if len(group.ring) or self._groups.get(group.key) is not group:
                continue
            if group.gate.open_at() > at:
                kept.append(group)
            else:
                self.ring.remove(group.sequencer)
                del self._groups[group.key]
        self._empty = kept

    # ------------------------------------------------------------ whose turn

    def wake(self, site: ActiveSite) -> None:
        """Look again when a site is available, and whether it is in a hurry."""
        if site.group is not None:
            site.group.ring.wake(site.sequencer)
            self.ring.wake(site.group.sequencer)

    def landed(self, site: ActiveSite, group: Group, fetched: Fetched) -> bool:
        """A fetch ended, however: the gates of its site and its address's `group` open again when politeness says.

        Returns whether the site is to be left alone: it asked for that, or cannot be reached.
        """
        rules = self._rules
        wait = politeness.delay_after(
            fetched.seconds,
            min_delay=rules.min_delay,
            factor=rules.delay_factor,
            crawl_delay=site.crawl_delay,
            max_delay=rules.max_delay,
        )
        site.gate.give(fetched.at + wait)
        group.gate.give(fetched.at + min(wait, max(rules.min_delay, rules.delay_factor * fetched.seconds)))
        self.ring.wake(group.sequencer)
        if fetched.address in site.fallbacks:
            self._move(site, fetched.address)  # it answered, but its turn there did not come
        refuses = politeness.refuses(fetched.status, fetched.error)
        if refuses:
            self._back_off(site, fetched)
        elif fetched.status is not None:
            site.failures = 0
        self.wake(site)
        return refuses

    def unasked(self, site: ActiveSite, group: Group, at: float) -> None:
        """A fetch of a site did not take place."""
        site.gate.give(at)
        group.gate.give(at)
        self.ring.wake(group.sequencer)
        self.wake(site)

    def _back_off(self, site: ActiveSite, fetched: Fetched) -> None:
        """Shut the gate of a site for longer with each refusal, and as long as it asked."""
        site.failures += 1
        base = max(1.0, 10.0 * self._rules.min_delay)
        if fetched.header("retry-after") is not None:
            self._metrics.inc("politeness/retry_after")
        asked = politeness.retry_after(fetched.header("retry-after"), at=fetched.at)
        site.gate.hold(fetched.at + max(asked, politeness.backoff(site.failures, base=base, rng=self._rng)))
        self._metrics.inc("politeness/backed_off")
