"""Addresses of the active sites: which site is at which address, and which address gets the next request.

Addresses take turns, and so do the sites at one address (the two upper tiers in Figure 1 of Edwards 2001). Every
address and every site has a gate that spaces out its requests. A fetch from `ring` uses a slot of its site's gate and a
slot of its address's gate. After a fetch, `SitePoliteness` gives its slots back, and the caller updates the ring
(`Tier.wake`). If an address does not answer, the site moves to another address of its host (`detour`).

With several ants (`shared`), only one ant sends requests to an address. An ant must claim a new address before it uses
the address (`unclaimed`). No request is sent to the address until the claim is `granted`. If another ant holds the
address, the sites at the address must leave the active list (`refused`). An ant that lends slots takes them out of the
gates of the site and of its address (`cluster.loans`).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from webfountain.frontier.sites.sequencers import ByWorth, RoundRobin, Tier
from webfountain.records import Fetch
from webfountain.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.frontier.sites.hand import Hand
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import FetchKind

__all__ = ["AddressGroup", "Addresses", "Place"]

_CLAIM_S: Final = 0.25
"""If a fetch in flight needs an address that this ant has not claimed yet, the fetch tries again after this time, in
seconds.
"""
_NEEDED_S: Final = 2.0
"""An address without sites is kept for this time, in seconds, after a fetch in flight needed it; a claim takes less."""


class AddressGroup(Tier[Fetch]):
    """The active sites at one address, which take turns behind a common gate.

    With `per_ip = false`, each group has a single site.
    """

    __slots__ = ("address", "is_leaving", "is_lent", "is_ours", "key", "needed_until", "places")

    def __init__(
        self,
        key: str,
        address: str,
        above: RoundRobin[Fetch],
        concurrency: int,
        *,
        is_ours: bool,
        is_lent: bool = False,
    ) -> None:
        super().__init__(above, concurrency, joins=is_ours)
        self.key = key
        self.address = address
        self.is_ours = is_ours
        """True if this ant may send requests to the address."""
        self.is_lent = is_lent
        """True if another ant holds the address and lends this ant some of its slots."""
        self.is_leaving = False
        """True if this ant gives the address up to another ant. An address that is given up gets no new request, and
        its sites are parked as soon as possible.
        """
        self.places: dict[Place, None] = {}
        self.needed_until = 0.0
        """Until this time, UTC seconds, a fetch in flight may need the address, even if no site is there."""


class Place:
    """One site's address group, and the other addresses of the site's host.

    `numbers` yields a unique number for each request of the crawl.
    """

    __slots__ = ("_numbers", "fallbacks", "group", "hand", "name")

    def __init__(self, name: str, hand: Hand, numbers: Iterator[int]) -> None:
        self.name = name
        self.hand = hand
        self._numbers = numbers
        self.group: AddressGroup | None = None
        """Sites at the same address; None until the site's host is resolved."""
        self.fallbacks: tuple[str, ...] = ()
        """Other addresses of the site's host, in the order in which they are tried."""

    def join(self, group: AddressGroup, fallbacks: tuple[str, ...]) -> None:
        """Put the site into a group. It gets no turn before the next `wake`."""
        self.group, self.fallbacks = group, fallbacks
        group.add(self.hand)
        group.places[self] = None

    def wake(self) -> None:
        """Update the time of the site's next turn in its group."""
        if self.group is not None:
            self.group.wake(self.hand)

    def request(self, kind: FetchKind, url: str, **more: Any) -> Fetch:
        """Return a request to the site, with an address and a unique number."""
        address = None if self.group is None else self.group.address
        return Fetch(next(self._numbers), kind, url, self.name, address, fallbacks=self.fallbacks, **more)


class Addresses:
    """The addresses of the active sites. `ring` returns the next fetch that politeness allows."""

    def __init__(self, rules: PolitenessTable, *, shared: bool = False, by_worth: bool = False) -> None:
        """By default, sites take equal turns. If `by_worth` is True, the site with the most valuable next page is
        served first.
        """
        self._rules = rules
        self._shared = shared and rules.per_ip
        self.ring: RoundRobin[Fetch] = ByWorth() if by_worth else RoundRobin()
        self._groups: dict[str, AddressGroup] = {}
        self.empty: dict[str, AddressGroup] = {}
        """Address groups without sites, by key."""
        self._waiting: dict[str, list[Place]] = {}
        self._unresolved: list[str] = []
        self._unclaimed: list[str] = []
        self._freed: list[str] = []

    def __len__(self) -> int:
        """Return the number of known addresses."""
        return len(self._groups)

    # ------------------------------------------------------- joining and leaving

    def enter(self, place: Place) -> AddressGroup | None:
        """Add a newly active site, and return its group. Return None while the address of the site's host is unknown
        (`unresolved`).
        """
        host = host_of(place.name)
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            waiting = self._waiting.setdefault(host, [])
            if not waiting:
                self._unresolved.append(host)
            waiting.append(place)
            return None
        return self.add(place, address)

    def unresolved(self) -> list[str]:
        """Return and forget the hosts that must be resolved."""
        hosts, self._unresolved = self._unresolved, []
        return hosts

    def resolved(self, host: str, addresses: Sequence[str]) -> list[tuple[Place, AddressGroup | None]]:
        """Return the sites that waited for the addresses of a host, each with its group, or with None if the host has
        no address.
        """
        waiting = self._waiting.pop(host, [])
        if not addresses:
            return [(place, None) for place in waiting]
        return [(place, self.add(place, addresses[0], tuple(addresses[1:]))) for place in waiting]

    def add(self, place: Place, address: str, fallbacks: tuple[str, ...] = ()) -> AddressGroup:
        """Put a site into the group of its address, or into a group of its own with `per_ip = false`. The site gets no
        turn before the next `Place.wake`.
        """
        group = self.group_at(place, address)
        group.address = address
        place.join(group, fallbacks)
        return group

    def add_lent(self, place: Place, address: str, slots: int) -> AddressGroup:
        """Add a borrowed site in a group of its own, with the `slots` slots that another ant lends."""
        group = AddressGroup(f"{place.name} {address}", address, self.ring, slots, is_ours=True, is_lent=True)
        self._groups[group.key] = group
        place.join(group, ())
        return group

    def group_at(self, place: Place, address: str) -> AddressGroup:
        """Return the group of the sites at an address; without `per_ip`, each site has a group of its own."""
        key = address if self._rules.per_ip else place.name
        group = self._groups.get(key)
        if group is None:
            concurrency, is_ours = self._rules.concurrency, not self._shared
            group = self._groups[key] = AddressGroup(key, address, self.ring, concurrency, is_ours=is_ours)
            if not is_ours:
                self._unclaimed.append(key)
        elif group.is_leaving and not group.places:
            group.is_leaving = False  # No other ant has claimed the address.
            self.ring.add(group)
        return group

    def detour(self, place: Place, group: AddressGroup, address: str, at: float) -> float:
        """Move a fetch in flight to another address of its host, because the address of `group` does not answer.

        Return 0.0 if the fetch and its site were moved to another address, or else the seconds until the next attempt.
        Return inf if the move must wait until another fetch ends.
        """
        there = self.group_at(place, address)
        if there is not group:
            opens = there.gate.opens_at if there.is_ours and not there.is_leaving else at + _CLAIM_S
            if opens > at:
                there.needed_until = at + _NEEDED_S
                if not there.places:
                    self.empty[there.key] = there
                return opens - at
            there.gate.take()
            group.gate.give(at)  # The old address received no request.
            self.ring.wake(group)
        self.move(place, address)
        if not there.places:
            self.empty[there.key] = there
        return 0.0

    def move(self, place: Place, address: str) -> None:
        """Move a site to another address of its host. The previous address becomes the last one to try. A site that
        left during its last fetch does not move.
        """
        before = place.group
        assert before is not None
        if place not in before.places:
            return
        addresses = (before.address, *place.fallbacks)
        at = addresses.index(address)
        self.leave(place)
        self.add(place, address, (*addresses[at + 1 :], *addresses[:at]))
        place.wake()

    def leave(self, place: Place) -> None:
        """Remove a site that is no longer active."""
        group = place.group
        if group is not None:
            group.remove(place.hand)
            del group.places[place]
            if not group.places:
                self.empty[group.key] = group
            return
        waiting = self._waiting.get(host_of(place.name), [])
        if place in waiting:
            waiting.remove(place)

    def sweep(self, at: float) -> None:
        """Remove each address that has an open gate but no site, unless a fetch in flight needs it. An address with a
        shut gate is kept, because the gate must apply to any new site at the address.
        """
        empty, self.empty = self.empty, {}
        for key, group in empty.items():
            if group.places or self._groups.get(key) is not group:
                continue
            if max(group.gate.opens_at, group.gate.next_for_others(at, 0.0), group.needed_until) > at:
                self.empty[key] = group
            else:
                self._remove(group)
                if self._shared and group.is_ours and not group.is_lent:
                    self._freed.append(key)

    def _remove(self, group: AddressGroup) -> None:
        if group.is_ours and not group.is_leaving:
            self.ring.remove(group)
        del self._groups[group.key]

    # ------------------------------------------------------ among several ants

    def unclaimed(self) -> list[str]:
        """Return and forget the addresses that must be claimed."""
        wanted, self._unclaimed = self._unclaimed, []
        return wanted

    def claimed(self) -> list[str]:
        """Return the addresses that this ant has claimed."""
        ours = (group for group in self._groups.values() if group.is_ours and not group.is_lent)
        return [group.key for group in ours] if self._shared else []

    def freed(self) -> list[str]:
        """Return the claimed addresses that were removed since the last call."""
        freed, self._freed = self._freed, []
        return freed

    def granted(self, key: str, *, open_at: float) -> bool:
        """Record that this ant has claimed an address, and may use it after the time `open_at`. Return False if no site
        needs the address."""
        group = self._groups.get(key)
        if group is None:
            return False
        if not group.is_ours:
            group.is_ours = True
            self.ring.add(group)
        group.gate.hold(open_at)
        self.ring.wake(group)
        return True

    def refused(self, key: str) -> list[Place]:
        """Give up an address that another ant holds. Return the sites at the address. The caller removes them from the
        active list."""
        group = self._groups.get(key)
        if group is None:
            return []
        self._remove(group)
        group.is_ours = False
        return list(group.places)

    def let_go(self, surplus: int) -> None:
        """Give up addresses with about `surplus` sites in all, beginning with the addresses that have the fewest
        sites.
        """
        for group in sorted(self._groups.values(), key=lambda group: len(group.places)):
            if group.is_ours and not (group.is_leaving or group.is_lent) and 0 < len(group.places) <= surplus:
                self.quit(group)
                surplus -= len(group.places)

    def quit(self, group: AddressGroup) -> None:
        """Send no new request to an address, so that its sites can leave when no fetch is in flight."""
        if group.is_ours and not group.is_leaving:
            self.ring.remove(group)
            group.is_leaving = True

    def leaving(self) -> list[AddressGroup]:
        """Return the addresses with sites that this ant is giving up."""
        return [group for group in self._groups.values() if group.is_leaving and group.places]

    def open_times(self, at: float) -> dict[str, float]:
        """Return, for each claimed address, when another ant may use it if this ant ends at `at`."""
        delay_s = self._rules.min_delay
        return {key: self._groups[key].gate.next_for_others(at, delay_s) for key in self.claimed()}
