"""Addresses: where each active site stands, and who is polite to ask now.

The two upper tiers of Figure 1 of Edwards 2001: a round robin over addresses, under each a round robin over its
sites, every address and every site behind its own gate. A site enters once its address is known: at once where its
name is one, else when its host is resolved. Whoever takes a fetch out of `ring` shuts the gates it passed; the site
opens them again when its fetch has landed (`politeness.Standing`), and is then to be looked at again (`wake`).
Where an address does not answer, a site stands at the next of its host that does (`detour`).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.sites.ring import RoundRobin
from webfountain.frontier.sites.sequencer import Gate, Polite
from webfountain.urls import host_of

if TYPE_CHECKING:
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import Fetch

__all__ = ["AddressStatistics", "Addresses", "Group"]


class Group:
    """Active sites behind one address, or one site alone: the second tier, whose members are sites' sequencers."""

    __slots__ = ("address", "gate", "key", "ring", "sequencer")

    def __init__(self, key: str, address: str, concurrency: int) -> None:
        self.key = key
        self.address = address
        self.ring: RoundRobin[Fetch] = RoundRobin()
        self.gate = Gate(concurrency)
        self.sequencer: Polite[Fetch] = Polite(self.ring, self.gate)


class AddressStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot: addresses known, hosts that wait to be resolved."""

    addresses: int
    resolving: int


class Addresses:
    """The addresses of the active sites. `ring` gives the next fetch that politeness allows."""

    def __init__(self, rules: PolitenessTable) -> None:
        self._rules = rules
        self.ring: RoundRobin[Fetch] = RoundRobin()
        self._groups: dict[str, Group] = {}
        self._empty: list[Group] = []
        self._waiting: dict[str, list[ActiveSite]] = {}
        self._unresolved: list[str] = []

    # ------------------------------------------------------- coming and going

    def enter(self, site: ActiveSite) -> Group | None:
        """A site became active: its place, or None while its host's address is not known (`unresolved`)."""
        host = host_of(site.name)
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            waiting = self._waiting.setdefault(host, [])
            if not waiting:
                self._unresolved.append(host)
            waiting.append(site)
            return None
        return self.place(site, address)

    def unresolved(self) -> list[str]:
        """Hosts whose address is needed; each is named once until `waiting_for` it is asked."""
        hosts, self._unresolved = self._unresolved, []
        return hosts

    def waiting_for(self, host: str) -> list[ActiveSite]:
        """The sites that waited for the address of a host, and no longer do."""
        return self._waiting.pop(host, [])

    def place(self, site: ActiveSite, address: str) -> Group:
        """A site's place under its address, or alone where addresses are told apart by `per_ip = false`."""
        group = self._group_at(site, address)
        group.address = address
        group.ring.add(site.sequencer)
        self.ring.wake(group.sequencer)
        return group

    def _group_at(self, site: ActiveSite, address: str) -> Group:
        key = address if self._rules.per_ip else site.name
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, address, self._rules.concurrency)
            self.ring.add(group.sequencer)
            self._empty.append(group)  # until `sweep` finds somebody there
        return group

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
        self.move(site, address)
        return 0.0

    def move(self, site: ActiveSite, address: str) -> None:
        """Let a site stand at another address of its host; the one before comes last among its fallbacks."""
        before = site.group
        assert before is not None
        addresses = (before.address, *site.fallbacks)
        at = addresses.index(address)
        self.leave(site)
        site.moved(self.place(site, address), (*addresses[at + 1 :], *addresses[:at]))

    def leave(self, site: ActiveSite) -> None:
        """A site is active no more. Its address is remembered until `sweep` finds it free."""
        group = site.group
        if group is not None:
            group.ring.remove(site.sequencer)
            if not len(group.ring):
                self._empty.append(group)
            return
        waiting = self._waiting.get(host_of(site.name), [])
        if site in waiting:
            waiting.remove(site)

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
        group = site.group
        if group is not None:
            group.ring.wake(site.sequencer)
            self.ring.wake(group.sequencer)

    def wake_group(self, group: Group) -> None:
        """Look again when an address is available, whose gate was given back."""
        self.ring.wake(group.sequencer)

    def statistics(self) -> AddressStatistics:
        """A frozen snapshot."""
        return AddressStatistics(addresses=len(self._groups), resolving=len(self._waiting))
