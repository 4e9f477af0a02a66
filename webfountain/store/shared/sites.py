"""The list of sites of the shared store. Each shard keeps several sorted lists of its sites; a list of all sites merges
those of the shards.

Each process looks for due sites in its own random order of shards, so that processes do not compete for the same shard.
When a store of an older version is opened, its sites are added to the sorted lists (`rank_sites`).
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError
from webfountain.records import SiteLease, SiteRecord, SiteState
from webfountain.store.codec import decode_state, encode_state
from webfountain.store.site_orders import UNRANKED, cursor_of, place_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webfountain.store.answers import ParkRequest
    from webfountain.store.shared.due_times import DueTimes
    from webfountain.store.shared.lives import GuardedShards, ServerLives
    from webfountain.store.shared.scripts import Shards
    from webfountain.store.site_orders import SiteOrder

__all__ = ["SharedSites", "rank_sites", "site_record"]

_RANK_BYTES: Final = 8
_NO_RANK: Final = bytes(_RANK_BYTES)
_SPARE: Final = 4
"""Each shard returns this many sites more than its equal share, because sites are spread unevenly."""
_RANKED_AT_ONCE: Final = 100
_RANKED: Final = b"\0ranked"
"""If this member is in a shard's sorted set of ranks, the set contains all sites of the shard."""
_Command = tuple[bytes, tuple[Any, ...]]

_AT_ONCE: Final = 1000
"""Number of sites that one script lists: few, because a running script blocks all others."""


def _ranked(shards: Shards, letter: str, rank: bytes, name: str, n: int) -> list[tuple[bytes, str]]:
    """Return (rank, name) of the next `n` sites after a position, in one or two round trips.

    `letter` selects the order in which sites are sorted; "" means by name.
    """
    share = min(n, 2 * n // shards.count + _SPARE)
    found = _members(shards, letter, rank, name, dict.fromkeys(range(shards.count), share))
    last = sorted(chain.from_iterable(found.values()))[:n][-1:] or [b""]
    is_short = sum(map(len, found.values())) < n
    # A shard that returned as many sites as were requested may have more of the first n sites.
    more = {s: n for s, some in found.items() if len(some) == share < n and (is_short or some[-1] < last[0])}
    found |= _members(shards, letter, rank, name, more)
    members = sorted(chain.from_iterable(found.values()))[:n]
    if not letter:
        return [(_NO_RANK, member.decode()) for member in members]
    return [(member[1 : 1 + _RANK_BYTES], member[1 + _RANK_BYTES :].decode()) for member in members]


def _members(shards: Shards, letter: str, rank: bytes, name: str, limits: dict[int, int]) -> dict[int, list[bytes]]:
    if letter:
        prefix = letter.encode()
        begin = b"(" + prefix + rank + name.encode() if rank else b"[" + prefix
        bounds, key = (begin, b"(" + bytes([prefix[0] + 1])), "ranks"
    else:
        bounds, key = (b"(" + name.encode() if name else b"-", b"+"), "names"
    asked = {s: (shards.key(s, key), limit) for s, limit in limits.items()}
    sent: list[_Command] = [(of, ("ZRANGEBYLEX", of, *bounds, "LIMIT", 0, limit)) for of, limit in asked.values()]
    return dict(zip(asked, shards.answers(sent), strict=True))


def rank_sites(shards: Shards, newest: Callable[[], Mapping[str, float]]) -> None:
    """Add every site to the sorted lists of its shard, if an older version wrote a shard without these lists.

    `newest` returns the time of each site's newest entry in the change log. If no shard lacks its sorted lists, the
    call takes one round trip.
    """
    begin = dict.fromkeys(_unranked(shards), b"-")
    times = newest() if begin else {}
    while begin:
        keys = {shard: shards.key(shard, "names") for shard in begin}
        sent: list[_Command] = [
            (key, ("ZRANGEBYLEX", key, begin[shard], "+", "LIMIT", 0, _RANKED_AT_ONCE)) for shard, key in keys.items()
        ]
        found = dict(zip(keys, shards.answers(sent), strict=True))
        shards.run("rank", {shard: _with_times(names, times) for shard, names in found.items() if names})
        ended = [shards.key(shard, "ranks") for shard, names in found.items() if len(names) < _RANKED_AT_ONCE]
        shards.answers([(key, ("ZADD", key, 0, _RANKED)) for key in ended])
        begin = {shard: b"(" + names[-1] for shard, names in found.items() if len(names) == _RANKED_AT_ONCE}


def _unranked(shards: Shards) -> list[int]:
    return [shard for shard, score in enumerate(shards.ask("ZSCORE", "ranks", _RANKED)) if score is None]


def _with_times(names: Sequence[bytes], newest: Mapping[str, float]) -> list[list[Any]]:
    return [[name.decode(), newest.get(name.decode(), 0.0)] for name in names]


class SharedSites:
    """Implementation of `SiteList` in the shared store."""

    def __init__(self, shards: GuardedShards, lives: ServerLives, due_times: DueTimes, *, rng: random.Random) -> None:
        self._shards = shards
        self._lives = lives
        self._due_times = due_times
        self._order = list(range(shards.count))
        rng.shuffle(self._order)

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease due sites, in one round trip, or more if too few sites are found. Within a shard, the longest overdue
        sites are first.
        """
        found: list[SiteLease] = []
        if n <= 0:
            return found
        first = self._due_times.first()
        waiting = [shard for shard in self._order if first[shard] <= at]
        while waiting and len(found) < n:
            asked = waiting[: n - len(found)]
            least, more = divmod(n - len(found), len(asked))
            shares = {shard: least + (i < more) for i, shard in enumerate(asked)}
            answers = self._shards.run("activate", {s: [share, owner, until, at] for s, share in shares.items()})
            for shard, share in shares.items():
                found += map(_taken, answers[shard])
                if len(answers[shard]) < share:
                    waiting.remove(shard)
        self._lives.hold(found, lease_s=until - at)
        self._due_times.hurry(self._shards.of(lease.site) for lease in found if lease.record.immediate)
        return found

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease the named sites that are free, in two round trips, or one if no site is free."""
        sent: dict[int, list[Any]] = {}
        for name in sites:
            sent.setdefault(self._shards.of(name), [0, owner, until, at]).append(name)
        answers = self._shards.run("activate", sent)
        # A site that was not due may be taken over when the lease ends.
        found = {shard: [_taken(answer) for answer in each] for shard, each in answers.items() if each}
        self._lives.hold([lease for each in found.values() for lease in each], lease_s=until - at)
        self._due_times.ring(found)
        self._due_times.hurry(found)
        return [lease for each in found.values() for lease in each]

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """Extend site leases, in three round trips: two check for lost steps, and one extends the leases."""
        self._shards.check()
        self._lives.prolong(until)
        parts = self._shards.by_shard([(lease.site, lease) for lease in leases])
        sent = {s: [until, *([leases[i].site, leases[i].token] for i in positions)] for s, positions in parts.items()}
        held = [False] * len(leases)
        for shard, answers in self._shards.run("renew", sent).items():
            for i, answer in zip(parts[shard], answers, strict=True):
                held[i] = bool(answer)
        return [msgspec.structs.replace(one, until=until) for one, is_held in zip(leases, held, strict=True) if is_held]

    def park(self, parked: Sequence[ParkRequest], *, at: float) -> int:
        """Take sites off the active list, in two round trips, or one if no site was parked."""
        sent: dict[int, list[Any]] = {}
        for one in parked:
            lease = one.lease
            entry = [lease.site, lease.token, float(one.due), encode_state(one.state)]
            sent.setdefault(self._shards.of(lease.site), [at]).append(entry)
        answers = self._shards.run("park", sent)
        self._lives.drop([one.lease for one in parked])
        self._due_times.ring([shard for shard, many in answers.items() if many])
        return sum(answers.values())

    def next_due(self) -> float | None:
        """Return the earliest time at which `activate` may return a site, in one or two round trips."""
        first = min(self._due_times.first())
        return None if first == math.inf else first

    def urgent(self, owner: str) -> list[SiteLease]:
        """Return the owner's sites with immediate URLs, in one round trip, or three if immediate URLs may have
        arrived.
        """
        asked = self._due_times.take_hurried()
        found = self._shards.ask("EXISTS", "hurry", shards=asked)
        hurried = [shard for shard, exists in zip(asked, found, strict=True) if exists]
        answers = self._shards.run("urgent", {shard: [owner] for shard in hurried})
        self._due_times.hurry(hurried)
        leases = [_site_lease(answer) for each in answers.values() for answer in each]
        return sorted(leases, key=lambda lease: lease.site)

    def get(self, site: str) -> SiteRecord | None:
        """Return one site, in one round trip."""
        [answer] = self._shards.step(site, "read", ["sites", site])
        return None if answer is None else site_record(answer)

    def part(self, site: str, number: int) -> bytes | None:
        """Return a numbered part of a site's learned data, in one round trip."""
        found: bytes | None = self._shards.step(site, "read", ["part", site, str(number)])
        return found

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return sites in order of name, in one round trip."""
        asked = {shard: ["after", name, n] for shard in range(self._shards.count)}
        found = [site_record(each) for answer in self._shards.run("read", asked).values() for each in answer]
        return sorted(found, key=lambda record: record.site)[:n]

    def ranked(self, order: SiteOrder, cursor: str, n: int) -> list[tuple[str, SiteRecord]]:
        """Return sites in one of the `site_orders`, in three or four round trips."""
        rank, name = place_of(cursor)
        found = _ranked(self._shards, "" if order == "name" else order[0], rank, name, n)
        if not cursor and order != "name" and _unranked(self._shards):
            raise InputError(UNRANKED)
        named: dict[int, list[str]] = {}
        for _, site in found:
            named.setdefault(self._shards.of(site), ["sites"]).append(site)
        answers = self._shards.run("read", named)
        records = {
            record.site: record for each in answers.values() for one in each if one and (record := site_record(one))
        }
        return [(cursor_of(rank, site), records[site]) for rank, site in found if site in records]

    def names(self) -> Iterator[str]:
        """Yield the names of all sites, in order, in one round trip per thousand sites."""
        after = ""
        while found := self.after(after, _AT_ONCE):
            yield from (record.site for record in found)
            after = found[-1].site


def site_record(answer: Sequence[Any]) -> SiteRecord:
    """Decode an answer of `site_answer` in `lua/parts/answers.lua`."""
    name, due, first, owner, immediate, epoch, _, _, state, learned, changed, *pages = answer
    return SiteRecord(
        site=name.decode(),
        pages=tuple(pages),
        due=float(due),
        first_seen=float(first),
        state=decode_state(state) if state else SiteState(),
        owner=None if owner is None else owner.decode(),
        immediate=immediate,
        epoch=epoch,
        learned=learned,
        changed=float(changed),
    )


def _site_lease(answer: Sequence[Any]) -> SiteLease:
    return SiteLease(answer[0].decode(), answer[6], float(answer[7]), site_record(answer))


def _taken(answer: Sequence[Any]) -> SiteLease:
    """Decode an answer of `activate`: the previous owner or None, then a site lease."""
    lost_by = None if answer[0] is None else answer[0].decode()
    return msgspec.structs.replace(_site_lease(answer[1:]), lost_by=lost_by)
