"""The recorder keeps what a crawl counted, each fetch once, also of several processes on one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.store.local_claims import LocalClaims
from webfountain.clock import ManualClock
from webfountain.frontier.sites.site import SiteStatistics, State
from webfountain.history.archive import Archive
from webfountain.history.live import LiveSnapshot, WaitReason, live_site
from webfountain.history.publishing import ClaimPlace, FilePlace, drop_dead, read_claims, read_file
from webfountain.history.recorder import Recorder, fetches_of
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

SEEDS = ["http://a.example/", "http://b.example/"]


def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    """A web of eleven pages a site; robots.txt allows all."""
    del at
    if fetch.kind == "robots":
        return 404, {}, b"", 0.1
    links = "".join(f"<a href='/{number}'>{number}</a>" for number in range(10))
    return 200, {"content-type": "text/html"}, f"<title>t</title>{fetch.url}{links}".encode(), 0.1


def recorded(drive: Drive) -> Recorder:
    return Recorder(drive.frontier, drive.metrics, now=drive.clock.now)


def test_each_fetch_stands_in_the_history_once() -> None:
    drive = Drive(collection_of(SEEDS), answer)
    recorder = recorded(drive)
    for _ in range(4):
        drive.run(seconds=20)
        recorder.snapshot()
        recorder.record(drive.store)
    kept = Archive(drive.store.board).read("minute", since=0, until=float("inf"))
    assert sum(each.fetches for each in kept) == fetches_of(drive.metrics.snapshot()) > 10
    assert sum(each.seconds for each in kept) == pytest.approx(80)
    assert kept[-1].pages == tuple(drive.store.census.statistics().pages.values())
    assert sum(sum(each.limits.values()) for each in kept) == pytest.approx(80)
    assert sum(each.links_new for each in kept) == drive.metrics.get("duplicates/new")


def test_a_snapshot_says_what_limits_and_how_fast(tmp_path: Path) -> None:
    drive = Drive(collection_of(SEEDS), answer)
    recorder, place = recorded(drive), FilePlace(tmp_path)
    drive.run(seconds=10)
    made = recorder.snapshot(lag_s=0.5)
    assert made.limit == drive.frontier.progress.limit(drive.frontier.now())
    assert made.lag_s == 0.5
    assert made.pages_per_second == pytest.approx(made.fetched / 10)
    place.put(made)
    assert read_file(tmp_path) == [made]
    assert (tmp_path / "live.json").stat().st_mode & 0o077 == 0
    place.remove()
    place.remove()
    assert read_file(tmp_path) == []


@pytest.mark.parametrize("found", [b"", b"{}", b"\xff\xfe", b'{"owner": 1}', b"[" * 1000])
def test_a_file_that_is_no_snapshot_counts_as_absent(tmp_path: Path, found: bytes) -> None:
    (tmp_path / "live.json").write_bytes(found)
    assert read_file(tmp_path) == []


def test_a_snapshot_has_the_active_sites_and_why_they_wait() -> None:
    drive = Drive(collection_of(SEEDS), answer)
    drive.run(until=lambda: drive.frontier.progress.statistics().in_flight)
    made = recorded(drive).snapshot()
    assert {site.site for site in made.live} <= {"http://a.example", "http://b.example"}
    assert sum(made.waits.values()) == len(made.live) > 0
    assert "in flight" in made.waits


def test_of_processes_on_a_server_the_dead_go() -> None:
    drive = Drive(collection_of(SEEDS), answer)
    claims = LocalClaims()
    first = recorded(drive).snapshot()
    second = msgspec.structs.replace(first, owner="other", at=first.at + 200)
    for snapshot in (first, second):
        ClaimPlace(claims).put(snapshot)
    assert [each.owner for each in read_claims(claims)] == ["other", "test"]
    assert drop_dead(claims, owner="other", at=second.at) == 1
    assert [each.owner for each in read_claims(claims)] == ["other"]


def test_one_of_several_processes_keeps_the_history() -> None:
    clock = ManualClock(1_000_000.0)
    drive, other = (Drive(collection_of(SEEDS), answer, clock=clock, owner=name) for name in ("test", "other"))
    assert isinstance(drive.store, MemoryStore)
    drive.store.claims = LocalClaims()
    first, second = recorded(drive), recorded(other)
    assert first.record(drive.store) is not None
    assert second.record(drive.store) is None
    clock.set(clock.now() + 600)
    assert second.record(drive.store) is not None, "the first one is gone"


@pytest.mark.parametrize(
    ("changes", "reason", "until"),
    [
        ({"under_way": 1, "opens_at": 99.0}, "in flight", None),
        ({"barred": "private-address"}, "barred", None),
        ({"state": State.RESOLVING}, "address", None),
        ({"state": State.ROBOTS}, "robots.txt", None),
        ({"state": State.SHUT, "opens_at": 500.0}, "no robots.txt", 500.0),
        ({"opens_at": 99.0, "hand": 3}, "polite", 99.0),
        ({"opens_at": 99.0, "failures": 2}, "back-off", 99.0),
        ({"opens_at": float("inf")}, "polite", None),
        ({"hand": 2}, "ready", None),
        ({"is_empty": True}, "not due", None),
        ({}, "leasing", None),
    ],
)
def test_a_site_reports_why_it_waits(changes: dict[str, object], reason: WaitReason, until: float | None) -> None:
    quiet = SiteStatistics(
        state=State.OPEN, is_empty=False, barred=None, address="127.0.0.1", opens_at=0.0, failures=0,
        hand=0, immediate=0, held=0, files=0, under_way=0,
    )  # fmt: skip
    site = live_site("http://a.example", msgspec.structs.replace(quiet, **changes), at=10.0)
    assert (site.reason, site.until) == (reason, until)


def test_a_snapshot_is_read_as_it_was_written() -> None:
    made = recorded(Drive(collection_of(SEEDS), answer)).snapshot()
    assert msgspec.json.decode(msgspec.json.encode(made), type=LiveSnapshot) == made
