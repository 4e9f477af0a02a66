"""Every store does what the reference does, step by step, also when its process dies between two steps.

A crash is the folder as it lies on the disk at that moment, opened by a new store; the reference crashes by
giving back all leases and active sites. Two ants share the store: each is paused, wakes, renews, comes too late, is
taken over, and keeps using every lease that it ever had.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.store.invariants import check_valid
from tests.store.stores import PERIOD_S, server_url
from webfountain.records import Copy, Link, Move, Outcome, SiteLease, SiteState
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.embedded.opening import open_embedded
from webfountain.store.embedded.store import EmbeddedStore
from webfountain.store.lanes import AT_ONCE, CLASSES, LANES
from webfountain.store.memory.store import MemoryStore
from webfountain.store.shared.opening import open_shared
from webfountain.store.shared.store import SharedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import Lease, PageRecord
    from webfountain.store.answers import LeaseBatch

SITES = ("https://a.example", "https://b.example:8080", "http://ü.example")
KEYS = tuple(bytes([n]) * 8 for n in range(6))
OWNERS = ("ant", "other")
GRADES = (0.0, 1e-9, 0.5, 0.6, 1e9)


def grades_of(turn: int) -> Callable[[Sequence[PageRecord]], list[float]]:
    """Importances by the pages' URLs, others each turn."""
    return lambda records: [GRADES[(ord(record.url[-1]) + turn) % len(GRADES)] for record in records]


sites = st.sampled_from(SITES)
keys = st.sampled_from(KEYS)
owners = st.sampled_from(OWNERS)
counts = st.integers(1, 4)
ticks = st.sampled_from((0.0, 0.25, 3.0, 12.5))
few = st.integers(0, 3)
KINDS = {
    "crawled": ("new", "changed", "minor", "same", "not_modified"),
    "redirected": ("redirected",),
    "gone": ("gone",),
    "failed": ("failed",),
    "refused": ("refused_by_robots", "refused"),
}


@st.composite
def found(draw: st.DrawFn) -> Link:
    site, key = draw(sites), draw(keys)
    return Link(
        url=draw(st.sampled_from((f"{site}/{key[0]}?é", f"{site}", f"http://elsewhere.example/{key[0]}"))),
        site=site,
        key=key,
        depth=draw(st.integers(0, 3)),
        policy=draw(st.sampled_from(("default", "favor"))),
        importance=draw(st.sampled_from((0.0, -0.0, 0.5, 0.75, -3.0, 1e9))),
        source=draw(st.sampled_from(("", "http://x.example/"))),
        request=draw(st.sampled_from((None, b"\x80"))),
    )


class Race(RuleBasedStateMachine):
    """The embedded store against the reference, with the same steps."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="webfountain-test-"))
        self.openings = 0
        self.reference = MemoryStore(period_s=PERIOD_S)
        self.store = self.opened()
        self.at = 100.0
        self.out: list[tuple[Lease, Lease]] = []
        self.held: list[tuple[SiteLease, SiteLease]] = []
        self.before = (0, 0)

    def opened(self) -> EmbeddedStore | SharedStore:
        folder = self.root / str(self.openings)
        return open_embedded(folder, collection="tests", period_s=PERIOD_S, read_only=False)

    @initialize(most=st.booleans())
    def start(self, most: bool) -> None:
        """Most of the interest is in active sites with URLs waiting: begin there more often than chance would."""
        if most:
            batch = [
                Link(f"{site}/{key[0]}", site, key, importance=key[0] % 2) for site in SITES[:2] for key in KEYS[:4]
            ]
            self.discover(batch)
            self.activate(2, OWNERS[0], 12.5)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root)

    def both(self, expected: object, got: object) -> None:
        assert got == expected

    def leased(self, expected: Sequence[Lease], got: Sequence[Lease]) -> None:
        assert [(one.site, one.key, one.record) for one in got] == [(one.site, one.key, one.record) for one in expected]
        self.out += zip(expected, got, strict=True)

    def took(self, expected: list[SiteLease], got: list[SiteLease]) -> None:
        assert [(one.site, one.until, one.record) for one in got] == [
            (one.site, one.until, one.record) for one in expected
        ]
        self.held += zip(expected, got, strict=True)

    @rule(by=ticks)
    def time_passes(self, by: float) -> None:
        self.at += by

    @rule(batch=st.lists(found(), max_size=6))
    def discover(self, batch: list[Link]) -> None:
        self.both(self.reference.queues.discover(batch, at=self.at), self.store.queues.discover(batch, at=self.at))

    @rule(batch=st.lists(found(), max_size=3))
    def immediate(self, batch: list[Link]) -> None:
        self.both(self.reference.queues.immediate(batch, at=self.at), self.store.queues.immediate(batch, at=self.at))

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        urgent=few,
        never=few,
        recrawl=few,
        classes=st.none() | st.lists(st.sampled_from((-math.inf, 90.0, 103.0, math.inf)), min_size=3, max_size=3),
        back=st.lists(st.sampled_from((-8.0, 0.0, 8.0)), min_size=3, max_size=3),
    )
    def lease(
        self, data: st.DataObject, urgent: int, never: int, recrawl: int, classes: list[float] | None, back: list[float]
    ) -> None:
        """Of any site lease that ever was: the lost ones give nothing."""
        by_class = None if classes is None else [classes[lane % 3] for lane in range(CLASSES)]
        horizon = [self.at - back[lane % 3] for lane in range(LANES)]
        wanted = data.draw(st.lists(st.sampled_from(self.held), min_size=1, max_size=2))

        def refills(leases: list[SiteLease]) -> list[Refill]:
            return [Refill(one, urgent, never, recrawl, by_class, horizon) for one in leases]

        ours = self.reference.queues.lease(refills([one for one, _ in wanted]))
        theirs = self.store.queues.lease(refills([one for _, one in wanted]))
        for expected, got in zip(ours, theirs, strict=True):
            self.dealt(expected, got)

    def dealt(self, expected: LeaseBatch | None, got: LeaseBatch | None) -> None:
        if expected is None or got is None:
            assert expected is got
            return
        assert (got.site, got.lanes) == (expected.site, expected.lanes)
        for queue in ("immediate", "never_crawled", "recrawl"):
            self.leased(getattr(expected, queue), getattr(got, queue))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), learned=st.none() | st.binary(max_size=3), part=st.integers(0, 2))
    def settle(self, data: st.DataObject, learned: bytes | None, part: int) -> None:
        """Any lease that ever was, again and again: lost ones and those of before a crash change nothing."""
        chosen = data.draw(st.lists(st.sampled_from(range(len(self.out))), min_size=1, max_size=3))
        expected, got = [], []
        for index in chosen:
            ours, theirs = self.out[index]
            one = data.draw(outcomes(ours, self.at))
            expected.append(one)
            got.append(msgspec.structs.replace(one, lease=theirs.id))
        mine, yours = data.draw(st.sampled_from(self.held))
        state = [] if learned is None else [learned]
        self.both(
            self.reference.queues.settle(
                expected,
                at=self.at,
                learned=[(mine, each) for each in state],
                parts=[(mine, part, each) for each in state],
            ),
            self.store.queues.settle(
                got,
                at=self.at,
                learned=[(yours, each) for each in state],
                parts=[(yours, part, each) for each in state],
            ),
        )
        kept = [(site, number) for site in {mine.site, yours.site} for number in range(3)]
        self.both([self.reference.sites.part(*each) for each in kept], [self.store.sites.part(*each) for each in kept])

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        ours, theirs = data.draw(st.sampled_from(self.out))
        self.both(self.reference.queues.release([ours.id, ours.id]), self.store.queues.release([theirs.id, theirs.id]))

    @rule(n=counts, owner=owners, wait=ticks)
    def activate(self, n: int, owner: str, wait: float) -> None:
        """Also a takeover, where a lease has run out."""
        until, at = self.at + wait, self.at
        self.took(
            self.reference.sites.activate(n, owner=owner, until=until, at=at),
            self.store.sites.activate(n, owner=owner, until=until, at=at),
        )

    @rule(owner=owners, wait=ticks)
    def activate_at_once(self, owner: str, wait: float) -> None:
        until = self.at + wait
        self.took(
            self.reference.sites.activate(9, owner=owner, until=until, at=AT_ONCE),
            self.store.sites.activate(9, owner=owner, until=until, at=AT_ONCE),
        )

    @precondition(lambda self: self.held)
    @rule(data=st.data(), wait=ticks)
    def renew(self, data: st.DataObject, wait: float) -> None:
        """Of an ant that was paused too: it learns which sites it still has."""
        chosen = data.draw(st.lists(st.sampled_from(self.held), min_size=1, max_size=3))
        until = self.at + wait
        expected = self.reference.sites.renew([one for one, _ in chosen], until=until)
        got = self.store.sites.renew([one for _, one in chosen], until=until)
        assert [(one.site, one.until) for one in got] == [(one.site, one.until) for one in expected]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), due=st.sampled_from((0.0, 103.0, 120.0, math.inf)), robots=st.sampled_from((None, b"x")))
    def park(self, data: st.DataObject, due: float, robots: bytes | None) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.held), min_size=1, max_size=2))
        state = SiteState(next_at=due if due < math.inf else 0.0, robots=robots)
        self.both(
            self.reference.sites.park([ParkRequest(one, due, state) for one, _ in chosen], at=self.at),
            self.store.sites.park([ParkRequest(one, due, state) for _, one in chosen], at=self.at),
        )

    @rule(site=sites, chosen=st.lists(keys, max_size=4), ahead=ticks)
    def advance(self, site: str, chosen: list[bytes], ahead: float) -> None:
        due, at = self.at + ahead - 5, self.at
        self.both(
            self.reference.queues.advance(site, chosen, due=due, at=at),
            self.store.queues.advance(site, chosen, due=due, at=at),
        )

    @rule(site=sites, chosen=st.lists(keys, max_size=4), importance=st.sampled_from([0.0, 1.0, 300.0]))
    def reassign(self, site: str, chosen: list[bytes], importance: float) -> None:
        def revised(record: PageRecord) -> PageRecord | None:
            if record.policy == "other":
                return None
            return msgspec.structs.replace(record, policy="other", trust=0.5, importance=importance, source=b"12345678")

        self.both(
            self.reference.queues.reassign(site, chosen, revised), self.store.queues.reassign(site, chosen, revised)
        )

    @precondition(lambda self: self.held)
    @rule(data=st.data(), chosen=st.lists(keys, max_size=3))
    def evict(self, data: st.DataObject, chosen: list[bytes]) -> None:
        ours, theirs = data.draw(st.sampled_from(self.held))
        self.both(
            self.reference.pages.evict(ours, chosen, at=self.at), self.store.pages.evict(theirs, chosen, at=self.at)
        )

    @precondition(lambda self: self.held)
    @rule(data=st.data(), epoch=st.integers(1, 3), n=counts)
    def regrade(self, data: st.DataObject, epoch: int, n: int) -> None:
        ours, theirs = data.draw(st.sampled_from(self.held))

        self.both(
            self.reference.queues.regrade(ours, grades_of(epoch), epoch=epoch, n=n),
            self.store.queues.regrade(theirs, grades_of(epoch), epoch=epoch, n=n),
        )

    @precondition(lambda self: self.held)
    @rule(data=st.data(), chosen=st.lists(keys, max_size=3, unique=True), turn=st.integers(1, 3))
    def reweigh(self, data: st.DataObject, chosen: list[bytes], turn: int) -> None:
        ours, theirs = data.draw(st.sampled_from(self.held))
        self.both(
            self.reference.queues.reweigh(ours, chosen, grades_of(turn)),
            self.store.queues.reweigh(theirs, chosen, grades_of(turn)),
        )

    @rule(site=sites, key=keys, old=st.integers(1, 3), new=st.integers(1, 3))
    def relocate(self, site: str, key: bytes, old: int, new: int) -> None:
        moves = [Move(site, key, Copy(old, 0, 1), Copy(new, 0, 1)), Move(site, key, Copy(new, 0, 1), Copy(4, 0, 1))]
        self.both(self.reference.pages.relocate(moves), self.store.pages.relocate(moves))

    @rule(ago=ticks, most=st.integers(0, 9))
    def trim_changes(self, ago: float, most: int) -> None:
        before = self.at - ago
        self.both(
            self.reference.changes.trim(before=before, most=most), self.store.changes.trim(before=before, most=most)
        )

    @rule(site=sites, key=keys)
    def forget_page(self, site: str, key: bytes) -> None:
        self.both(self.reference.pages.forget(site, key, at=self.at), self.store.pages.forget(site, key, at=self.at))

    @precondition(lambda self: self.at > 140)
    @rule(site=sites)
    def forget_site(self, site: str) -> None:
        self.both(self.reference.pages.forget(site, at=self.at), self.store.pages.forget(site, at=self.at))

    @rule()
    def crash(self) -> None:
        left = self.root / str(self.openings)
        self.openings += 1
        assert isinstance(self.store, EmbeddedStore)
        self.store.steps.disk._db.cancel_all_background(True)  # a compaction would change the folder under the copy
        shutil.copytree(left, self.root / str(self.openings))
        self.store = self.opened()
        for home in self.reference.table:
            if home.holder is not None:
                home.return_leases()
                home.holder = None
                home.due = AT_ONCE if any(record.immediate for record in home.pages.values()) else home.due
        counts = self.reference.census.statistics()
        self.before = counts.settle_lost, counts.fenced  # the process that died took its counts along

    @invariant()
    def valid(self) -> None:
        check_valid(self.reference)
        check_valid(self.store)

    @invariant()
    def same(self) -> None:
        ours, theirs = self.reference, self.store
        assert sorted(theirs.pages.records(), key=repr) == sorted(ours.pages.records(), key=repr)
        assert theirs.sites.after("", 9) == ours.sites.after("", 9)
        counts = ours.census.statistics()
        lost, fenced = (
            count - before for count, before in zip((counts.settle_lost, counts.fenced), self.before, strict=True)
        )
        got = theirs.census.statistics()
        assert got == msgspec.structs.replace(counts, settle_lost=lost, fenced=fenced)
        assert theirs.census.buckets() == ours.census.buckets()
        assert theirs.census.rows(since=0) == ours.census.rows(since=0)
        assert theirs.pages.copies() == ours.pages.copies()
        assert [entry for _, entry in theirs.changes.after(None, 999)] == [
            entry for _, entry in ours.changes.after(None, 999)
        ]
        assert theirs.sites.next_due() == ours.sites.next_due()
        for owner in OWNERS:
            assert [one.site for one in theirs.sites.urgent(owner)] == [one.site for one in ours.sites.urgent(owner)]


@st.composite
def outcomes(draw: st.DrawFn, lease: Lease, at: float) -> Outcome:
    state = draw(st.sampled_from(sorted(KINDS)))
    due = draw(st.sampled_from((None, at + 1, at + 7.5))) if state == "crawled" else at + draw(ticks)
    record = msgspec.structs.replace(
        lease.record,
        state=state,
        bucket=draw(st.sampled_from((0, 7, 255))),
        last_crawled=at,
        due=due,
        failures=draw(st.integers(0, 1)),
        copy=draw(st.sampled_from((lease.record.copy, Copy(1, 0, 1), Copy(2, 0, 1)))),
        digest=draw(st.sampled_from((None, "a", "b"))),
        copied=at if state == "crawled" else lease.record.copied,
    )
    kind = draw(st.sampled_from(KINDS[state]))
    said = {"title": "T", "resemblance": 0.5, "diff": "+x"} if state == "crawled" else {"target": "http://x.example/"}
    return Outcome(lease.id, kind, record, draw(ticks), draw(st.integers(0, 2)), **said)  # type: ignore[arg-type]


@pytest.mark.soak
class TestLongRace(Race.TestCase):  # type: ignore[valid-type,misc]
    """The same race, many times as long, with other steps each time."""

    settings = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


class SharedRace(Race):
    """The shared store on a real server against the reference; here a crash is that all connections break."""

    def opened(self) -> SharedStore:
        return open_shared(
            f"{server_url()}?prefix=race-{self.root.name}-{self.openings}&shards=1",
            collection="tests",
            period_s=PERIOD_S,
        )

    @rule()
    def crash(self) -> None:
        assert isinstance(self.store, SharedStore)
        self.store._connection.disconnect()


@pytest.mark.soak
class TestLongSharedRace(SharedRace.TestCase):  # type: ignore[valid-type,misc]
    """The same over the shared store."""

    settings = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


_SHORT = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestRace = Race.TestCase
TestRace.settings = _SHORT
TestSharedRace = SharedRace.TestCase
TestSharedRace.settings = _SHORT
