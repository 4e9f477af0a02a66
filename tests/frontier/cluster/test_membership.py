"""The membership of an ant: terms, roles, an even share of the sites; a lone ant answers the same and never waits."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from contextlib import ExitStack, closing
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from tests.store.invariants import check_valid
from tests.store.local_claims import LocalClaims
from tests.store.stores import server_url
from webfountain.clock import ManualClock
from webfountain.frontier.cluster.ant_notes import GUEST, ROLE, AntNote, Colony, ants_of
from webfountain.frontier.cluster.membership import (
    FEW,
    ControllerState,
    LoneAnt,
    Membership,
    join_ants,
    most_sites,
    surplus,
)
from webfountain.records import FetchResult, Link
from webfountain.repository.repository import Repository, folder_of_ant
from webfountain.store.memory.census import MemoryCensus
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.frontier.drive import Web
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch
    from webfountain.store.answers import Claim, Statistics
    from webfountain.store.contract import FrontierStore

BEAT = 5.0
PAGES = {"": linked(*[f"p{number}" for number in range(20)])} | {f"p{number}": b"x" for number in range(20)}
SITES = [f"http://s{number}.example" for number in range(12)]
HOME = "http://home.example/"
FIRST, SECOND = "203.0.113.44", "203.0.113.45"


class Ants:
    """Ants on one store and one clock. One that is stopped does nothing and is answered all the same; a killed one has
    done all it will. `server`: URL of a store on a server, which each opens for itself."""

    def __init__(
        self,
        collection: Collection,
        web: Web,
        n: int,
        *,
        hosts: dict[str, str] | None = None,
        server: str | None = None,
        kind: type[Drive] = Drive,
    ) -> None:
        self._server, self._kind = server, kind
        self.clock = ManualClock(1_000_000.0)
        cycle = collection.cycle
        self.claims = LocalClaims()
        self.store = MemoryStore(period_s=cycle.period_s, fastest_s=cycle.fastest_s, claims=self.claims)
        self._collection, self._web, self._hosts = collection, web, hosts or {}
        self.all: list[Drive] = []
        self.stopped: set[Drive] = set()
        for _ in range(n):
            self.join()

    def join(self, **config: Any) -> Drive:
        """One more."""
        name = f"ant{len(self.all)}"
        drive = self._kind(
            self._collection,
            self._web,
            store=self.store if self._server is None else self._opened(self._server),
            clock=self.clock,
            owner=name,
            heartbeat_seconds=BEAT,
            **config,
        )
        own = {site.partition("//")[2]: f"203.0.113.{number + 1}" for number, site in enumerate(SITES)}
        drive.addresses = {host: [address] for host, address in (own | self._hosts).items()}
        self.all.append(drive)
        return drive

    def _opened(self, server: str) -> FrontierStore:
        cycle = self._collection.cycle
        return open_store(server, collection="ants", period_s=cycle.period_s, fastest_s=cycle.fastest_s)

    @property
    def living(self) -> list[Drive]:
        """Those that are neither stopped nor killed."""
        return [drive for drive in self.all if drive not in self.stopped]

    def run(self, seconds: float = 3600.0, *, until: Callable[[], object] = lambda: False) -> None:
        """Until a time, or `until()`, or nothing happens any more but heartbeats."""
        end, quiet = self.clock.now() + seconds, 0
        while self.clock.now() < end and not until():
            did = False
            for drive in self.living:
                did = self._beat(drive) or did
                self._lapse(drive)
                did = drive.step() or did
            if did:
                quiet = 0
                continue
            quiet += 1
            if quiet > 300:
                return
            self.clock.set(min(max(self._next(), self.clock.now() + 1e-3), end))

    def _beat(self, drive: Drive) -> bool:
        heart = drive.frontier.heart
        assert heart is not None
        beat = heart.beat()
        if beat is not None:
            heart.apply(beat())
        return False

    @staticmethod
    def _lapse(drive: Drive) -> None:
        if not drive.frontier.may_send():
            drive.flying = [
                (drive.clock.now(), number, FetchResult(fetched.fetch, drive.clock.now(), 0.0, error="lapsed"))
                for _, number, fetched in drive.flying
            ]

    def _next(self) -> float:
        soon = [self.clock.now() + 0.5]
        for drive in self.living:
            soon += [drive.flying[0][0]] if drive.flying else []
            soon += [at for at in (drive.frontier.wake_at(), drive.frontier.work_at()) if at > self.clock.now()]
        return min(soon)

    def asked(self) -> Counter[str]:
        return Counter(url for drive in self.all for _, kind, url in drive.log if kind == "page")

    def requests(self) -> list[tuple[float, str, str]]:
        """(time, site, ant) of every request, in order."""
        return sorted((at, url.split("/p", 1)[0].split("/robots", 1)[0].rstrip("/"), drive.frontier.owner)
                      for drive in self.all for at, _, url in drive.log)  # fmt: skip


def seeds(sites: Sequence[str]) -> list[str]:
    return [f"{site}/" for site in sites]


def done(ants: Ants, sites: int) -> bool:
    return ants.store.census.statistics().pages["crawled"] == 21 * sites


def test_sites_of_one_address_are_one_ants_and_its_delay_holds_among_them() -> None:
    hosts = {site.partition("//")[2]: f"203.0.113.{number % 3}" for number, site in enumerate(SITES)}
    ants = Ants(collection_of(seeds(SITES)), site_of_pages(PAGES), 3, hosts=hosts)
    ants.run(until=lambda: done(ants, len(SITES)))
    assert set(ants.asked().values()) == {1}
    assert len(ants.asked()) == 21 * len(SITES)
    by_address: dict[str, list[tuple[float, str]]] = {}
    for at, site, ant in ants.requests():
        by_address.setdefault(hosts[site.partition("//")[2]], []).append((at, ant))
    for visits in by_address.values():
        assert all(later - earlier >= 1.0 for (earlier, _), (later, _) in pairwise(visits))
        assert sum(a != b for (_, a), (_, b) in pairwise(visits)) <= 2, "an address hardly ever changes hands"
    assert sum(drive.metrics.get("ant/sites_handed_over") for drive in ants.all) > 0
    check_valid(ants.store)


class _Detours(Drive):
    """The downloader of an ant: a fetch at the dead address waits for its turn at the next one."""

    waits: tuple[Fetch, float] | None = None

    def step(self) -> bool:
        if self.waits is not None and self.waits[1] <= self.clock.now():
            fetch, _ = self.waits
            wait_s = self.frontier.sites.flights.detour(fetch, SECOND)
            self.waits = None if wait_s <= 0.0 else (fetch, self.clock.now() + wait_s)
            if self.waits is None:
                super()._send(fetch)
        return super().step()

    def _send(self, fetch: Fetch) -> None:
        if fetch.address == FIRST:
            self.waits = fetch, self.clock.now()
        else:
            super()._send(fetch)


def test_a_fetch_goes_on_at_another_address_of_its_host_as_soon_as_its_ant_has_claimed_it() -> None:
    ants = Ants(collection_of([HOME], delay_factor=0), site_of_pages(PAGES), 2, kind=_Detours)
    for drive in ants.all:
        drive.addresses["home.example"] = [FIRST, SECOND]
    ants.run(60.0, until=lambda: done(ants, 1))
    assert done(ants, 1)


def test_what_one_ant_finds_on_a_site_of_another_reaches_that_ant_over_a_server(tmp_path: Path) -> None:
    """A ring of sites whose pages link to the next one's next page alone: no site has work but what another brings."""

    def web(fetch: Fetch, at: float) -> Answer:
        site, _, path = fetch.url.rpartition("/")
        if path == "robots.txt":
            return 404, {}, b"", 0.05
        link = f"{SITES[(SITES.index(site) + 1) % len(SITES)]}/p{int(path[1:]) + 1}"
        body = f"<title>t</title><a href={link}>x</a>" if path != "p9" else "<title>t</title>"
        return 200, {"Content-Type": "text/html"}, body.encode(), 0.05

    server = f"{server_url()}?prefix={tmp_path.name}&shards=4"
    ants = Ants(collection_of([f"{site}/p0" for site in SITES]), web, 0, server=server)
    for _ in range(2):
        ants.join(active_sites=6)
    begin = ants.clock.now()
    ants.run(until=lambda: len(ants.asked()) == 10 * len(SITES))
    assert set(ants.asked().values()) == {1}
    assert len(ants.asked()) == 10 * len(SITES)
    by_ant = {ant: {site for _, site, who in ants.requests() if who == ant} for ant in ("ant0", "ant1")}
    assert all(by_ant.values()), "each ant had sites, whose links led to the other's"
    assert ants.clock.now() - begin < 20.0, "ten pages of a site, a second apart: what comes is heard of at once"
    for drive in ants.all:
        drive.frontier.close()


@pytest.mark.parametrize("phase", [0.02, 0.25, 0.5, 0.75, 0.98])
def test_a_killed_ants_sites_go_on_with_another_within_two_heartbeats_and_the_delay(phase: float) -> None:
    ants = Ants(collection_of(seeds(SITES), min_delay="2s"), site_of_pages(PAGES), 2)
    ants.run(until=lambda: sum(ants.asked().values()) > 60)
    dead = ants.all[0]
    assert dead.frontier.heart is not None
    beat_at = dead.frontier.heart.next_at()
    ants.run(until=lambda: ants.clock.now() >= beat_at + phase * BEAT)
    assert dead.log
    ants.stopped.add(dead)
    killed_at = ants.clock.now()
    mine = {url.split("/", 3)[2] for _, _, url in dead.log} - {url.split("/", 3)[2] for _, _, url in ants.all[1].log}
    ants.run(until=lambda: done(ants, len(SITES)))
    first: dict[str, float] = {}
    for at, _, url in ants.all[1].log:
        first.setdefault(url.split("/", 3)[2], at)
    waits = [first[site] - killed_at for site in mine]
    assert mine
    assert max(waits) <= 2 * BEAT + 2.0, "two heartbeats and the delay, whenever in a heartbeat it died"
    assert all(many <= 2 for many in ants.asked().values())
    assert sum(many == 2 for many in ants.asked().values()) <= len(mine), "at most what was under way is asked again"
    check_valid(ants.store)


def test_a_stopped_ant_that_wakes_sends_nothing_of_what_it_lost_and_settles_nothing() -> None:
    ants = Ants(collection_of(seeds(SITES), min_delay="2s"), site_of_pages(PAGES, seconds=1.0), 2)
    ants.run(until=lambda: sum(ants.asked().values()) > 60 and ants.all[0].flying)
    sleeper = ants.all[0]
    ants.stopped.add(sleeper)
    before = len(sleeper.log)
    ants.run(60.0)
    lost = sleeper.frontier.progress.statistics().active_sites
    ants.stopped.clear()
    assert not sleeper.frontier.may_send()
    assert sleeper.frontier.next() is None, "the clock is looked at before each request"
    settled = sleeper.metrics.get("ant/settled")
    sleeper.step()
    assert sleeper.metrics.get("ant/settled") == settled
    ants.run(until=lambda: done(ants, len(SITES)))
    assert lost > 0
    assert sleeper.metrics.get("ant/sites_lost") == lost
    at_once: dict[str, float] = {}
    for at, site, _ in ants.requests():
        assert at - at_once.get(site, 0.0) >= 2.0, "a site never hears of two ants at once"
        at_once[site] = at
    assert before <= len(sleeper.log)
    check_valid(ants.store)


def test_what_is_under_way_of_a_site_that_was_lost_is_named_once_so_that_it_is_cut() -> None:
    ants = Ants(collection_of(seeds(SITES), min_delay="2s"), site_of_pages(PAGES, seconds=1.0), 2)
    ants.run(until=lambda: sum(ants.asked().values()) > 60 and ants.all[0].flying)
    sleeper = ants.all[0]
    under_way = {fetched.fetch.site for _, _, fetched in sleeper.flying}
    ants.stopped.add(sleeper)
    ants.run(60.0)
    assert not sleeper.frontier.sites.departures.take_lost()
    ants._beat(sleeper)
    assert sleeper.frontier.sites.departures.take_lost() == under_way
    assert not sleeper.frontier.sites.departures.take_lost()


def test_a_store_that_is_away_for_longer_than_the_lease_stops_the_ant_and_costs_no_page() -> None:
    ants = Ants(collection_of(seeds(SITES[:2])), site_of_pages(PAGES, seconds=0.5), 1)
    ant = ants.all[0]
    ants.run(until=lambda: len(ant.asked()) > 5 and ant.flying)
    asked, away = len(ant.log), ants.clock.now()
    while ants.clock.now() < away + 30.0:  # it goes on, but no heartbeat and no batch comes through
        ants.clock.advance(0.5)
        ants._lapse(ant)
        while (fetch := ant.frontier.next()) is not None:
            ant._send(fetch)
    assert all(at < away + 2 * BEAT for at, _, _ in ant.log[asked:])
    while ant.flying:
        ant._land(heapq.heappop(ant.flying)[2])
    assert ant.frontier.sites.addresses.ring.wake_at() < inf
    assert ant.frontier.wake_at() == inf, "a heartbeat comes first, so nothing wakes it until then"
    ants.run(until=lambda: done(ants, 2))
    assert done(ants, 2)
    assert all(many <= 2 for many in ants.asked().values())
    check_valid(ants.store)


def test_sites_are_shared_out_when_an_ant_joins_late() -> None:
    ants = Ants(collection_of(seeds(SITES), min_delay="2s"), site_of_pages(PAGES), 1)
    ants.run(until=lambda: sum(ants.asked().values()) > 24)
    late = ants.join()
    ants.run(60.0)
    assert len({url.split("/", 3)[2] for _, _, url in late.log}) >= 3
    ants.run(until=lambda: done(ants, len(SITES)))
    assert set(ants.asked().values()) == {1}


def test_addresses_are_left_to_others_though_their_robots_txt_was_not_asked_yet() -> None:
    """Their turn came never: what waited in them waited for ever."""
    hosts = {site.partition("//")[2]: f"203.0.113.{number // 4}" for number, site in enumerate(SITES)}
    ants = Ants(collection_of(seeds(SITES), min_delay="9s"), site_of_pages({"": b"x"}), 2, hosts=hosts)
    ants.run(until=lambda: any(drive.log for drive in ants.all))
    for drive in ants.all:
        drive.frontier.sites.addresses.let_go(12)
    ants.run(300.0, until=lambda: ants.store.census.statistics().pages["crawled"] == len(SITES))
    assert set(ants.asked().values()) == {1}
    assert len(ants.asked()) == len(SITES)


def test_ants_end_together_when_none_has_anything_to_do() -> None:
    ants = Ants(collection_of(seeds(SITES)), site_of_pages(PAGES), 0)
    for _ in range(3):
        ants.join(until_idle=True)
    ended: dict[Drive, float] = {}

    def all_ended() -> bool:
        for drive in ants.living:
            if drive not in ended and drive.frontier.finish_reason() == "idle":
                ended[drive] = ants.clock.now()
        return len(ended) == 3

    ants.run(until=all_ended)
    assert done(ants, len(SITES))
    last = max(at for drive in ants.all for at, _, _ in drive.log)
    assert all(at >= last for at in ended.values())
    assert max(ended.values()) - last < 60.0


class _Counting(MemoryCensus):
    """How often the counts were asked for."""

    times = 0

    def statistics(self) -> Statistics:
        self.times += 1
        return super().statistics()


class _CountingStore(MemoryStore):
    census: _Counting

    def __init__(self, claims: LocalClaims) -> None:
        super().__init__(period_s=86_400.0, claims=claims)
        self.census = _Counting(self.table, period_s=86_400.0, fastest_s=900.0)


def test_idle_ants_ask_the_store_for_little_and_take_new_sites_all_the_same() -> None:
    ants = Ants(collection_of(seeds(SITES[:1])), site_of_pages({"": b"x"}), 0)
    ants.store = store = _CountingStore(ants.claims)
    for _ in range(40):
        ants.join()
    ants.run(120.0)
    store.census.times, begun = 0, ants.clock.now()
    ants.run(60.0)
    assert store.census.times <= ants.clock.now() - begun, (
        "one takes the sum of all shards, at most once a second for all"
    )
    found_at = ants.clock.now()
    store.queues.discover([Link(f"{SITES[1]}/", SITES[1], fingerprint(f"{SITES[1]}/"))], at=found_at)
    ants.run(60.0, until=lambda: any(SITES[1] in url for drive in ants.all for _, _, url in drive.log))
    assert ants.clock.now() - found_at <= 1.5, "one of forty looks within a second"


class _ReadCounter(LocalClaims):
    """How often the notes of all were read."""

    times = 0

    def claims(self, kind: str) -> list[Claim]:
        self.times += kind == "ant"
        return super().claims(kind)


def _members(claims: LocalClaims, n: int) -> list[Membership]:
    store = MemoryStore(period_s=86_400.0, claims=claims)
    return [join_ants(store, claims, owner=f"m{i}", heartbeat_s=BEAT, start=0.0, steady=lambda: 0.0) for i in range(n)]


def _beat(one: Membership, at: float, *, sites: int = 3) -> None:
    request = one.request(AntNote(at, sites), leases=[], claimed=[], controller=ControllerState())
    one.take_in(one.heartbeats.carry_out(request))


def test_of_many_ants_one_reads_what_all_say_and_each_knows_what_it_comes_to() -> None:
    claims = _ReadCounter()
    members = _members(claims, 3 * FEW)
    for turn in range(3):
        claims.times = 0
        for one in members:
            _beat(one, BEAT * turn)
    assert claims.times == 1, "not once for each of them"
    assert {one.colony for one in members} == {Colony(3 * FEW, 9 * FEW, fewest=3)}
    assert {one.fair() for one in members} == {3.0}
    assert sum(one.share() for one in members) == pytest.approx(1.0)
    for one in members[1:]:  # the one that counted is dead
        _beat(one, 10 * BEAT)
    for one in members[1:]:
        _beat(one, 11 * BEAT)
    assert {one.colony.ants for one in members[1:]} == {3 * FEW - 1}, "another counts"


@pytest.mark.parametrize("many", [2, 3 * FEW])
def test_all_are_idle_from_when_the_last_of_them_is_and_not_before_it_was_said(many: int) -> None:
    members = _members(LocalClaims(), many)
    for turn in range(2):
        for one in members:
            _beat(one, BEAT * turn)
    for one in members[1:]:
        one.rest(resting=True, at=6.0)
    for turn in range(2, 5):
        for one in members:
            _beat(one, BEAT * turn)
    assert {one.idle_since() for one in members} == {None}, "one has something to do"
    members[0].rest(resting=True, at=24.0)
    for turn in range(5, 8):
        for one in members:
            _beat(one, BEAT * turn)
    assert {one.idle_since() for one in members} == {24.0}
    members[1].rest(resting=False, at=40.0)
    members[1].rest(resting=True, at=41.0)
    assert members[1].idle_since() is None, "what it found meanwhile the others do not know"


def test_an_ant_that_leaves_hands_its_addresses_over_with_their_delay() -> None:
    hosts = {site.partition("//")[2]: "203.0.113.1" for site in SITES[:3]}
    ants = Ants(collection_of(seeds(SITES[:3]), min_delay="30s"), site_of_pages(PAGES), 1, hosts=hosts)
    ants.run(until=lambda: len(ants.all[0].asked()) == 2 and not ants.all[0].flying)
    ants.all[0].step()
    ants.all[0].frontier.close()
    ants.stopped.add(ants.all[0])
    assert ants_of(ants.claims, 0.0) == {}
    ants.join()
    ants.run(until=lambda: ants.all[1].log)
    times = [at for at, _, _ in ants.requests()]
    assert times[-1] - times[-2] >= 30.0


@pytest.mark.parametrize("end", ["leaves", "dies"])
def test_robots_txt_its_delay_and_a_back_off_go_with_a_site_to_the_next_ant(end: str) -> None:
    refusals = iter([(429, {"retry-after": "100"}, b"", 0.05)])

    def tired(fetch: Fetch, path: str, at: float) -> Answer | None:
        return next(refusals, None) if path == "p5" else None

    robots = (200, b"User-agent: *\nCrawl-delay: 7\nDisallow: /p3\n")
    web = site_of_pages(PAGES, robots=robots, extra=tired)
    ants = Ants(collection_of(seeds(SITES[:1])), web, 1)
    first = ants.all[0]
    ants.run(until=lambda: first.outcomes["failed"])
    ants.run(1.0)  # until that is with the store
    if end == "leaves":
        first.frontier.close()
    ants.stopped.add(first)
    second = ants.join()
    ants.run(3600.0, until=lambda: ants.store.census.statistics().pages["crawled"] == 19)
    assert ants.store.census.statistics().pages["crawled"] == 19
    assert second.asked(), "the next ant goes on"
    assert [ant.asked("robots") for ant in ants.all] == [[f"{SITES[0]}/robots.txt"], []], "it is known what it says"
    assert f"{SITES[0]}/p3" not in ants.asked()
    times = [at for at, _, _ in ants.requests()]
    assert second.log[0][0] - first.log[-1][0] >= 100.0, "nobody asks before the site said"
    assert min(later - earlier for earlier, later in pairwise(times[1:])) >= 7.0


@pytest.mark.parametrize("shared", [True, False])
def test_a_site_that_moves_keeps_its_change_detection_where_its_copies_cannot_be_read(
    tmp_path: Path, shared: bool
) -> None:
    """Two ants that each claimed a number as `crawl.session` does; the one that has the site leaves."""
    words = [str(number) for number in range(2000)]
    versions = iter([words, [*words[:1000], "a", *words[1000:]], [*words[:1000], "b", *words[1400:]]])

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.url.endswith("robots.txt"):
            return 404, {}, b"", 0.05
        return 200, {"content-type": "text/html"}, f"<p>{' '.join(next(versions))}</p>".encode(), 0.05

    revisit = '[policies.default]\nrevisit = { max_interval = "60s" }'
    ants = Ants(collection_of(seeds(SITES[:1]), rest=revisit), web, 0)
    with ExitStack() as stack:
        for number in (1, 2):
            root = tmp_path / (f"machine{number}" if not shared else "machine")
            ants.claims.claim([f"repository/{number}"], owner=str(root), until=inf, at=0.0)
            copies = stack.enter_context(closing(Repository(folder_of_ant(root, number), number=number)))
            ants.join(repository=copies)
        ants.run(until=lambda: ants.store.census.statistics().pages["crawled"])
        [first] = [drive for drive in ants.all if drive.log]
        [second] = [drive for drive in ants.all if not drive.log]
        url = f"{SITES[0]}/"
        assert (first.page(url).sketch is None) is shared, "kept where it is of use alone"
        first.frontier.close()
        ants.stopped.add(first)
        ants.run(until=lambda: second.outcomes.total() == 2)
        assert second.outcomes == {"minor": 1, "changed": 1}
        second.frontier.close()


CAPACITY = "capacity_pages_per_period = 400"


@pytest.mark.untraced
def test_one_ant_plans_and_another_goes_on_when_it_is_gone() -> None:
    collection = collection_of(seeds(SITES), period="100s", rest=CAPACITY)
    ants = Ants(collection, site_of_pages(PAGES), 3)
    ants.run(400.0)
    planners = [drive for drive in ants.all if drive.metrics.get("controller/plan_adopted")]
    assert len(planners) == 1, "one made the plans"
    plans = [drive.frontier.planner.follower.plan for drive in ants.all]
    assert None not in plans
    assert len({plan.start for plan in plans if plan is not None}) == 1, "all follow the same"

    def prices() -> set[float | None]:
        return {drive.frontier.planner.follower.schedule.price for drive in ants.all if drive not in planners}

    ants.run(2 * BEAT, until=lambda: len(prices()) == 1)  # each hears of it at its own heartbeat
    assert len(prices()) == 1, "at the price that the controller last said"
    ants.stopped.add(planners[0])
    before = planners[0].frontier.planner.follower.plan
    ants.run(0.9 * BEAT)
    assert all(drive.frontier.planner.follower.plan == before for drive in ants.living), (
        "without a controller the last plan stays"
    )
    ants.run(3 * BEAT)
    [owner] = [role.owner for role in ants.claims.claims("role") if role.name == ROLE]
    assert owner != planners[0].frontier.owner
    ants.run(2000.0, until=lambda: all(drive.frontier.planner.follower.plan != before for drive in ants.living))
    assert all(drive.frontier.planner.follower.plan != before for drive in ants.living), "the next controller plans"


@pytest.mark.untraced
def test_the_budget_is_shared_by_all() -> None:
    collection = collection_of(seeds(SITES), period="100s", min_delay="1ms", delay_factor=0, rest=CAPACITY)
    ants = Ants(collection, site_of_pages(PAGES, seconds=0.01), 3)
    ants.run(300.0)
    began = min(at for at, _, _ in ants.requests())
    fetched = sum(ants.asked().values())
    span = ants.clock.now() - began
    assert fetched <= 4.0 * span * 1.3 + 60


@pytest.mark.untraced
def test_a_domain_has_its_share_of_what_all_fetch_though_one_ant_has_its_sites() -> None:
    """Twelve sites of it beside twenty others at one ant, twenty at another: by its own count it had half as much."""
    wide = [f"http://w{number}.large.com" for number in range(12)]
    small = [f"http://d{number}.org" for number in range(40)]
    limits = "scope = 'any'\n[collection.limits]\ndomain_share = 0.1\n"
    collection = collection_of(seeds([wide[0]]), collection=limits, delay_factor=0, politeness="per_ip = false\n")

    def web(fetch: Fetch, at: float) -> Answer:
        return (200 if fetch.kind == "page" else 404), {"content-type": "text/html"}, b"x", 0.01

    ants = Ants(collection, web, 0)
    one, other = ants.join(), ants.join()
    for sites, drive in ((wide + small[:20], one), (small[20:], other)):
        urls = [f"{site}/{number}" for site in sites for number in range(100)]
        ants.store.queues.discover(
            [Link(url, url[: url.index("/", 8)], fingerprint(url)) for url in urls], at=ants.clock.now()
        )
        ants.stopped = {each for each in ants.all if each is not drive}
        ants.run(0.5)
    ants.stopped = set()
    ants.run(30.0)
    had = [sum("large.com" in url for url in drive.asked()) for drive in (one, other)]
    every = len(one.asked()) + len(other.asked())
    assert 0.08 * every < sum(had) < 0.1 * (every + 11) + 2 * BEAT


def test_a_file_on_a_site_of_another_ant_is_not_asked_by_a_second_one() -> None:
    """Two sites lead their robots.txt to a third host, which is a site of the crawl: its owner alone asks there."""
    hub = "http://s0.example"

    pages = site_of_pages(PAGES, seconds=0.5)

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots" and not fetch.url.startswith(hub):
            return 301, {"location": f"{hub}/robots.txt"}, b"", 0.1
        return pages(fetch, at)

    ants = Ants(collection_of(seeds(SITES[:6])), web, 3)
    ants.run(until=lambda: done(ants, 6))
    assert done(ants, 6)
    times = [(at, ant) for at, site, ant in ants.requests() if site == hub]
    assert all(later - earlier >= 1.0 for (earlier, _), (later, _) in pairwise(times))
    assert set(ants.asked().values()) == {1}
    check_valid(ants.store)


def test_an_ant_that_wakes_asks_no_guest_whose_site_another_ant_has_meanwhile() -> None:
    """Its claim on the guest had ended, and the heartbeat claimed the guest again."""
    ones = ["http://one.example", "http://two.example"]

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "robots":
            return 200, {"content-type": "text/html"}, PAGES[""], 0.1
        other = ones[fetch.site == ones[0]]
        return (301, {"location": f"{other}/robots.txt"}, b"", 0.1) if not ants.stopped else (404, {}, b"", 0.1)

    ants = Ants(collection_of(seeds(ones), politeness="per_ip = false"), web, 0)
    sleeper = ants.join(active_sites=1)
    guests = sleeper.frontier.sites.sites.guests
    ants.run(until=lambda: guests)
    [guest] = guests
    ants.stopped.add(sleeper)
    other = ants.join()
    ants.run(30.0)
    assert other.frontier.sites.sites.by_name[guest].lease is not None
    before = len(sleeper.log)
    ants.stopped.clear()
    ants.run(3.0)
    assert sleeper.frontier.may_send()
    assert not [url for _, _, url in sleeper.log[before:] if url.startswith(guest)]


def test_a_guest_that_became_a_site_of_its_ant_stays_though_another_ant_claims_it_now() -> None:
    """The claim had been dropped, but the heartbeat that was under way still asked for it."""
    ants = Ants(collection_of(seeds(SITES[:1])), site_of_pages(PAGES), 1)
    [drive] = ants.all
    ants.run(until=lambda: drive.flying)
    claims = drive.frontier.sites.claims
    assert claims is not None
    claims.lost(f"{GUEST}{SITES[0]}", drive.frontier.work.batches.gather())
    assert [lease.site for lease in drive.frontier.sites.leases()] == SITES[:1]


class _Disk(Repository):
    """A repository on a disk whose room is told."""

    left = 10**12

    def free_bytes(self) -> int:
        return self.left


def test_an_ant_without_room_leaves_its_sites_to_the_others_and_all_wait_where_none_has_any(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ants = Ants(collection_of(seeds(SITES), min_delay="4s"), site_of_pages(PAGES), 0)
    disks = []
    with ExitStack() as stack:
        for number in (1, 2):
            disks.append(stack.enter_context(closing(_Disk(folder_of_ant(tmp_path, number), number=number))))
            ants.join(repository=disks[-1], least_free_bytes=10**9)
        ants.run(30.0)
        first = ants.all[0]
        disks[0].left = 10**9 - 1
        ants.run(6.0)
        asked = len(first.log)
        ants.run(30.0)
        assert len(first.log) == asked, "it takes nothing in"
        assert first.frontier.progress.statistics().active_sites == 0
        assert {site for _, site, ant in ants.requests()[-30:] if ant == "ant1"} == set(SITES), "the other has all"
        disks[1].left = 0
        ants.run(6.0)
        asked = len(ants.requests())
        ants.run(30.0)
        assert len(ants.requests()) == asked, "they wait"
        disks[0].left = disks[1].left = 10**12
        ants.run(until=lambda: done(ants, len(SITES)))
        assert done(ants, len(SITES))
        assert set(ants.asked().values()) == {1}
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert sum("MB left" in line for line in said) == sum("has room again" in line for line in said) == 2
    assert [line for line in said if "with a full disk" in line] == [
        f"Ants with a full disk: {many} of 2" for many in (1, 2, 0)
    ]


@pytest.mark.parametrize("notes", [b"", b"\xff"])
def test_letters_of_unknown_kinds_are_ignored(notes: bytes) -> None:
    ants = Ants(collection_of(seeds(SITES[:1])), site_of_pages(PAGES), 1)
    ants.claims.post("ant0", [notes, b'{"note":"take","site":"http://unknown.example"}'])
    ants.run(until=lambda: done(ants, 1))
    assert done(ants, 1)
    assert msgspec.msgpack.decode(ants.claims.claims("ant")[0].note)


def shared_out(have: list[int], *, heartbeats: int = 20, seed: int = 0) -> list[int]:
    """What the ants have in the end when each lets its surplus go in turn and whoever looks first takes it."""
    rng = random.Random(seed)
    waiting = 0
    for _ in range(heartbeats):
        total = sum(have) + waiting
        mean, fewest = sum(have) / len(have), min(have)
        for ant, mine in enumerate(have):
            many = surplus(mine, mean, fewest)
            have[ant] -= many
            waiting += many
        for ant in rng.sample(range(len(have)), len(have)):
            taken = max(min(waiting, most_sites(total / len(have), fewest) - have[ant]), 0)
            have[ant] += taken
            waiting -= taken
    assert sum(have) + waiting == total
    return have


@pytest.mark.parametrize(
    "have", [[26, 24, 26, 4], [80, 0, 0, 0], [27, 27, 26, 0], [100, 100, 100, 1], [12, 0, 0], [1000, 3], [7, 7, 7, 1]]
)
def test_each_ant_comes_within_a_quarter_of_the_mean(have: list[int]) -> None:
    mean = sum(have) / len(have)
    for seed in range(5):
        found = shared_out([*have], seed=seed)
        assert min(found) >= mean * 0.75 - 1, found
        assert max(found) <= mean * 1.25 + 2, found


@pytest.mark.parametrize("have", [[20, 20, 20], [22, 18, 20], [3, 2, 2], [1, 0], [0, 0], [2, 1, 1], [1, 1, 0]])
def test_an_ant_gives_up_no_site_while_all_have_about_the_mean(have: list[int]) -> None:
    mean, fewest = sum(have) / len(have), min(have)
    assert [surplus(mine, mean, fewest) for mine in have] == [0] * len(have)


def test_whoever_is_alone_rules_counts_and_waits_for_nobody() -> None:
    lone = LoneAnt("a", lease_s=600.0)
    assert (lone.rules, lone.counts, lone.ants, lone.idle_since()) == (True, True, 1, -inf)
    assert (lone.lease_s, lone.most_sites(10_000)) == (600.0, None)


def test_a_crawl_beats_where_others_may_use_its_store_and_nowhere_else() -> None:
    alone = Drive(collection_of([HOME]), lambda fetch, at: "dns")
    assert (alone.frontier.heart, alone.frontier.sites.claims) == (None, None)
    store = MemoryStore(period_s=60.0, fastest_s=1.0, claims=LocalClaims())
    shared = Drive(collection_of([HOME]), lambda fetch, at: "dns", store=store)
    assert shared.frontier.heart is not None
    assert shared.frontier.heart.beat() is not None
