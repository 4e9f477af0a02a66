"""Every store does what the reference does, step by step, also when its process dies between two steps.

A crash is the folder as it lies on the disk at that moment, opened by a new store; the reference crashes by
giving back all leases and active sites.
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

from tests.store.stores import PERIOD_S
from webfountain.records import Copy, Link, Move, Outcome, SiteState
from webfountain.store.contract import LANES, Parked
from webfountain.store.embedded.opening import open_embedded
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from webfountain.records import Lease
    from webfountain.store.embedded.store import EmbeddedStore

SITES = ("https://a.example", "https://b.example:8080", "http://ü.example")
KEYS = tuple(bytes([n]) * 8 for n in range(6))
OWNER = "ant"

sites = st.sampled_from(SITES)
keys = st.sampled_from(KEYS)
counts = st.integers(1, 4)
ticks = st.sampled_from((0.0, 0.25, 3.0, 12.5))
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
        importance=draw(st.sampled_from((0.0, -0.0, 0.5, -3.0, 1e9))),
        source=draw(st.sampled_from(("", "http://x.example/"))),
        request=draw(st.sampled_from((None, b"\x80"))),
    )


@st.composite
def parkings(draw: st.DrawFn) -> Parked:
    state = SiteState(next_at=draw(ticks), robots=draw(st.sampled_from((None, b"Disallow: /"))))
    return Parked(draw(sites), draw(st.sampled_from((0.0, 103.0, 120.0, math.inf))), state)


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
        self.lost: list[Lease] = []
        self.late_before = 0

    def opened(self) -> EmbeddedStore:
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
            self.activate(2, 1000.0)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root)

    def both(self, expected: object, got: object) -> None:
        assert got == expected

    def leased(self, expected: list[Lease], got: list[Lease]) -> None:
        assert [(one.site, one.key, one.record) for one in got] == [(one.site, one.key, one.record) for one in expected]
        self.out += zip(expected, got, strict=True)

    @rule(by=ticks)
    def time_passes(self, by: float) -> None:
        self.at += by

    @rule(batch=st.lists(found(), max_size=6))
    def discover(self, batch: list[Link]) -> None:
        self.both(self.reference.discover(batch, at=self.at), self.store.discover(batch, at=self.at))

    @rule(batch=st.lists(found(), max_size=3))
    def immediate(self, batch: list[Link]) -> None:
        self.both(self.reference.immediate(batch, at=self.at), self.store.immediate(batch, at=self.at))

    @rule(site=sites, n=counts, wait=ticks)
    def lease_never(self, site: str, n: int, wait: float) -> None:
        until, at = self.at + wait, self.at
        self.leased(
            self.reference.lease(site, n, queue="never-crawled", owner=OWNER, until=until, at=at),
            self.store.lease(site, n, queue="never-crawled", owner=OWNER, until=until, at=at),
        )

    @rule(site=sites, n=counts, wait=ticks, back=st.lists(st.sampled_from((-8.0, 0.0, 8.0)), min_size=3, max_size=3))
    def lease_recrawl(self, site: str, n: int, wait: float, back: list[float]) -> None:
        until, at = self.at + wait, self.at
        horizon = [at - back[lane % 3] for lane in range(LANES)]
        self.leased(
            self.reference.lease(site, n, queue="recrawl", owner=OWNER, until=until, at=at, horizon=horizon),
            self.store.lease(site, n, queue="recrawl", owner=OWNER, until=until, at=at, horizon=horizon),
        )

    @rule(n=counts, wait=ticks)
    def lease_immediate(self, n: int, wait: float) -> None:
        until, at = self.at + wait, self.at
        self.leased(
            self.reference.lease_immediate(n, owner=OWNER, until=until, at=at),
            self.store.lease_immediate(n, owner=OWNER, until=until, at=at),
        )

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(range(len(self.out))), min_size=1, max_size=3))
        expected, got = [], []
        for index in chosen:
            ours, theirs = self.out[index]
            one = data.draw(outcomes(ours, self.at))
            expected.append(one)
            got.append(msgspec.structs.replace(one, token=theirs.token))
        self.both(self.reference.settle(expected, at=self.at), self.store.settle(got, at=self.at))
        self.out = [pair for index, pair in enumerate(self.out) if index not in chosen]

    @precondition(lambda self: self.lost)
    @rule()
    def settle_what_a_crash_took(self) -> None:
        one = self.lost[-1]
        record = msgspec.structs.replace(one.record, state="gone")
        assert self.store.settle([Outcome(one.token, "gone", record)], at=self.at).applied == 0
        self.reference.settle([Outcome(-1, "gone", record)], at=self.at)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        ours, theirs = data.draw(st.sampled_from(self.out))
        self.reference.release([ours.token, ours.token])
        self.store.release([theirs.token, theirs.token])

    @rule()
    def reclaim(self) -> None:
        self.both(self.reference.reclaim(at=self.at), self.store.reclaim(at=self.at))

    @rule(n=counts, wait=ticks)
    def activate(self, n: int, wait: float) -> None:
        until, at = self.at + wait, self.at
        self.both(
            self.reference.activate(n, owner=OWNER, until=until, at=at),
            self.store.activate(n, owner=OWNER, until=until, at=at),
        )

    @rule(site=sites, wait=ticks)
    def activate_site(self, site: str, wait: float) -> None:
        until, at = self.at + wait, self.at
        self.both(
            self.reference.activate_site(site, owner=OWNER, until=until, at=at),
            self.store.activate_site(site, owner=OWNER, until=until, at=at),
        )

    @rule(batch=st.lists(parkings(), max_size=3))
    def park(self, batch: list[Parked]) -> None:
        self.reference.park(batch, at=self.at)
        self.store.park(batch, at=self.at)

    @rule(site=sites, chosen=st.lists(keys, max_size=4), ahead=ticks)
    def advance(self, site: str, chosen: list[bytes], ahead: float) -> None:
        due, at = self.at + ahead - 5, self.at
        self.both(
            self.reference.advance(site, chosen, due=due, at=at), self.store.advance(site, chosen, due=due, at=at)
        )

    @rule(site=sites, key=keys, old=st.integers(1, 3), new=st.integers(1, 3))
    def relocate(self, site: str, key: bytes, old: int, new: int) -> None:
        moves = [Move(site, key, Copy(old, 0, 1), Copy(new, 0, 1)), Move(site, key, Copy(new, 0, 1), Copy(4, 0, 1))]
        self.both(self.reference.relocate(moves), self.store.relocate(moves))

    @rule(site=sites, key=keys)
    def forget_page(self, site: str, key: bytes) -> None:
        self.both(self.reference.forget(site, key, at=self.at), self.store.forget(site, key, at=self.at))

    @precondition(lambda self: self.at > 140)
    @rule(site=sites)
    def forget_site(self, site: str) -> None:
        self.both(self.reference.forget(site, at=self.at), self.store.forget(site, at=self.at))

    @rule()
    def crash(self) -> None:
        left = self.root / str(self.openings)
        self.openings += 1
        self.store._disk._db.cancel_all_background(True)  # a compaction would change the folder under the copy
        shutil.copytree(left, self.root / str(self.openings))
        self.store = self.opened()
        self.late_before = self.reference.statistics().settle_lost
        self.reference.reclaim(at=math.inf)
        self.lost = [theirs for _, theirs in self.out]
        self.out = []

    @invariant()
    def valid(self) -> None:
        self.reference.check_valid()
        self.store.check_valid()

    @invariant()
    def same(self) -> None:
        ours, theirs = self.reference, self.store
        assert sorted(theirs.pages(), key=repr) == sorted(ours.pages(), key=repr)
        assert theirs.sites("", 9) == ours.sites("", 9)
        counts = ours.statistics()
        late = counts.settle_lost - self.late_before  # the process that died took its count along
        assert theirs.statistics() == msgspec.structs.replace(counts, settle_lost=late)
        assert theirs.census() == ours.census()
        assert theirs.census_rows(since=0) == ours.census_rows(since=0)
        assert theirs.copies() == ours.copies()
        assert theirs.next_site_due() == ours.next_site_due()
        for site in SITES:
            assert theirs.recrawl_due(site) == ours.recrawl_due(site)
            assert theirs.known(site, KEYS) == ours.known(site, KEYS)


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
    )
    kind = draw(st.sampled_from(KINDS[state]))
    return Outcome(lease.token, kind, record, draw(ticks), draw(st.integers(0, 2)))


@pytest.mark.soak
class TestLongRace(Race.TestCase):  # type: ignore[name-defined,misc]
    """The same race, many times as long, with other steps each time."""

    settings = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


TestRace = Race.TestCase
TestRace.settings = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
