"""What a store knows, as plain data: exact over a small store whose every number is known."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.stores import active, lease
from webfountain.clock import ManualClock
from webfountain.errors import InputError, RepositoryError, UrlError
from webfountain.frontier.sites.domain_shares import SHARES, ShareSnapshot
from webfountain.records import Copy, Fetch, FetchResult, Link, Move, Outcome
from webfountain.report import copy as report_copy
from webfountain.report import pages, status
from webfountain.report.texts import texts, texts_since
from webfountain.repository.repository import Pages, Repository
from webfountain.repository.warc_writer import Capture
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.records import OutcomeKind, State

PERIOD_S = 60.0
URLS = ["https://a.org/1", "https://a.org/2", "https://b.org/1", "https://b.org/2"]
BODY = "<html><title> A  title </title><body><p>Grüße <script>no</script></body></html>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "repository"


@pytest.fixture
def store(folder: Path) -> Iterator[MemoryStore]:
    """a.org/1 crawled with a copy at 100 s, a.org/2 gone at 110 s, b.org never crawled."""
    opened = MemoryStore(period_s=PERIOD_S)
    opened.queues.discover([Link(url=url, site=site_of(url), key=fingerprint(url)) for url in URLS], at=90.0)
    (site,) = opened.sites.activate(1, owner="x", until=1e9, at=95.0)
    leases = {each.record.url: each for each in lease(opened, site, 9)}
    first, second = leases[URLS[0]], leases[URLS[1]]
    copy = write(folder, URLS[0], BODY.encode("latin-1"))
    crawled = msgspec.structs.replace(
        first.record,
        state="crawled",
        bucket=100,
        last_crawled=100.0,
        last_changed=100.0,
        status=200,
        digest=hashlib.sha1(BODY.encode("latin-1")).hexdigest(),
        copy=copy,
        copied=100.0,
        verdict="new",
    )
    gone = msgspec.structs.replace(
        second.record, state="gone", last_crawled=110.0, status=404, failures=1, due=1e6, verdict="gone"
    )
    opened.queues.settle(
        [Outcome(first.id, "new", crawled, 0.1, 2), Outcome(second.id, "gone", gone, 0.1, 0)], at=110.0
    )
    yield opened
    opened.close()


def unexpected(error: RepositoryError) -> None:
    raise error


def write(folder: Path, url: str, body: bytes) -> Copy:
    fetch = Fetch(id=1, kind="page", url=url, site=site_of(url), address="127.0.0.1")
    headers = (("content-type", "text/html; charset=iso-8859-1"),)
    repository = Repository(folder, clock=ManualClock(100.0))
    (copy,) = repository.write(
        [Capture(FetchResult(fetch=fetch, at=100.0, seconds=0.1, status=200, headers=headers, body=body))]
    )
    repository.close()
    assert copy is not None
    return copy


def test_status_counts_every_state_and_the_rate_of_this_and_the_last_period(store: MemoryStore) -> None:
    found = status.status(store, at=130.0)
    assert found["known"] == 4
    assert {name: count for name, count in found["pages"].items() if count} == {
        "crawled": 1,
        "gone": 1,
        "never-crawled": 2,
    }
    assert found["sites"] == 2
    assert found["fetches"] == 2
    assert found["since"] == 90.0
    assert found["pages_per_second"] == pytest.approx(2 / 40)


def test_status_of_an_empty_store_invents_nothing() -> None:
    found = status.status(MemoryStore(period_s=PERIOD_S), at=130.0)
    assert found["known"] == 0
    assert found["freshness"] is None
    assert found["pages_per_second"] == 0.0


def test_a_page_has_the_promised_fields(store: MemoryStore) -> None:
    """DESIGN.md section 7: "A page record has at least"."""
    rows = {row.url: row for row in pages.pages(store)}
    promised = {
        "url",
        "site",
        "state",
        "policy",
        "importance",
        "bucket",
        "checks",
        "changes",
        "first_seen",
        "last_crawled",
    }
    promised |= {"last_changed", "status", "error", "digest", "etag", "last_modified", "depth"}
    assert promised <= set(rows[URLS[0]].__struct_fields__)
    assert rows[URLS[0]].site == "https://a.org"
    assert len(rows[URLS[0]].digest or "") == 40
    assert rows[URLS[2]].last_crawled is None


def test_pages_can_be_asked_by_site_and_state(store: MemoryStore) -> None:
    assert [row.url for row in pages.pages(store, state="gone")] == [URLS[1]]
    assert {row.url for row in pages.pages(store, site="https://b.org")} == {URLS[2], URLS[3]}
    with pytest.raises(InputError, match=r"--site 'https://c\.org' is not known"):
        list(pages.pages(store, site="https://c.org"))


def test_sites_list_their_pages_by_state_and_what_json_cannot_say_is_none(store: MemoryStore) -> None:
    rows = {row["site"]: row for row in pages.sites(store)}
    assert rows["https://a.org"]["pages"]["crawled"] == 1
    assert rows["https://b.org"]["pages"]["never-crawled"] == 2
    assert all(row["due"] is None or math.isfinite(row["due"]) for row in rows.values())
    msgspec.json.encode(list(rows.values()))


def test_texts_are_what_has_a_copy_and_not_what_was_never_held(store: MemoryStore, folder: Path) -> None:
    kept = Pages(folder)
    (came,) = texts(store, kept, unreadable=unexpected)
    assert came == {
        "url": URLS[0], "verdict": "new", "fetched": 100.0, "title": "A title", "text": came["text"],
        "cursor": store.changes.end(),
    }  # fmt: skip
    assert came["text"] == "Grüße"
    settled(store, URLS[0], "gone", 150.0)
    (went,) = texts(store, kept, unreadable=unexpected)
    assert (went["verdict"], went["fetched"], went["text"]) == ("gone", 150.0, None)
    kept.close()


def test_texts_since_a_cursor_name_each_page_once_as_it_is_now(store: MemoryStore, folder: Path) -> None:
    kept, begin = Pages(folder), store.changes.since(0.0)
    (row,) = texts_since(store, kept, begin, unreadable=unexpected)  # the page that was never held is no news
    assert (row["url"], row["verdict"], row["text"].strip()) == (URLS[0], "new", "Grüße")
    after = row["cursor"]
    assert list(texts_since(store, kept, after, unreadable=unexpected)) == []
    for kind, at in (("changed", 120.0), ("redirected", 130.0)):
        settled(store, URLS[0], kind, at)  # type: ignore[arg-type]
    assert list(texts_since(store, kept, after, unreadable=unexpected)) == [
        {"url": URLS[0], "verdict": "redirected", "fetched": 130.0, "title": None, "text": None,
         "cursor": store.changes.end()}
    ]  # fmt: skip
    assert list(texts_since(store, kept, store.changes.since(131.0), unreadable=unexpected)) == []
    kept.close()


def settled(store: MemoryStore, url: str, kind: OutcomeKind, at: float) -> None:
    """One more fetch of a page that was crawled."""
    (home,) = (one for one in store.sites.activate(9, owner="x", until=at, at=math.inf) if one.site == site_of(url))
    found = {one.key: one for one in lease(store, home, 9, queue="recrawl")}
    one = found[fingerprint(url)]
    went: State = "redirected" if kind == "redirected" else "gone" if kind == "gone" else "crawled"
    record = msgspec.structs.replace(one.record, state=went, last_crawled=at, digest=f"{at}", due=at)
    store.queues.settle([Outcome(one.id, kind, record)], at=at)


def test_a_copy_that_cannot_be_read_stops_no_other_text(store: MemoryStore, folder: Path) -> None:
    url = "https://b.org/1"
    store.queues.immediate([Link(url, site_of(url), fingerprint(url))], at=100.0)
    (one,) = lease(store, active(store, site_of(url)), 1, queue="immediate")
    there = msgspec.structs.replace(
        one.record, state="crawled", last_crawled=100.0, copied=100.0, copy=write(folder, url, b"here"), verdict="new"
    )
    store.queues.settle([Outcome(one.id, "new", there)], at=100.0)
    first = store.pages.get("https://a.org", fingerprint(URLS[0]))
    assert first is not None
    assert first.copy is not None
    path = next(folder.glob("*.warc.gz"))
    data = bytearray(path.read_bytes())
    data[first.copy.offset + 30] ^= 255
    path.write_bytes(data)
    lost: list[RepositoryError] = []
    rows = list(texts(store, Pages(folder), unreadable=lost.append))
    assert {row["url"] for row in rows} == {url}
    assert len(lost) == 1


def test_another_pages_record_is_no_copy(store: MemoryStore, folder: Path) -> None:
    """After a loss, new records may lie where a page's copy was."""
    place = write(folder, "https://b.org/2", BODY.encode("latin-1"))
    record = store.pages.get("https://a.org", fingerprint(URLS[0]))
    assert record is not None
    assert record.copy is not None
    store.pages.relocate([Move("https://a.org", fingerprint(URLS[0]), old=record.copy, new=place)])
    with pytest.raises(RepositoryError, match=r"the record is of https://b\.org/2, not of https://a\.org/1"):
        report_copy.cat(store, Pages(folder), URLS[0])
    lost: list[RepositoryError] = []
    assert list(texts(store, Pages(folder), unreadable=lost.append)) == []
    assert len(lost) == 1


def test_a_copy_has_the_digest_of_its_record_under_any_spelling_of_its_url(store: MemoryStore, folder: Path) -> None:
    kept = Pages(folder)
    copy = report_copy.cat(store, kept, "HTTPS://A.org:443/1#part")
    record = store.pages.get("https://a.org", fingerprint(URLS[0]))
    assert record is not None
    assert hashlib.sha1(copy.body).hexdigest() == record.digest
    kept.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://a.org/9", "is not known here"),
        (URLS[1], r"is known \(gone\) but has no copy"),
        (URLS[2], "never-crawled"),
    ],
)
def test_a_page_without_a_copy_says_why(store: MemoryStore, folder: Path, url: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        report_copy.cat(store, Pages(folder), url)


def test_what_is_no_url_is_refused(store: MemoryStore, folder: Path) -> None:
    with pytest.raises(UrlError, match="not an absolute"):
        report_copy.cat(store, Pages(folder), "a.org/1")


def test_status_shows_how_many_domains_are_busy(store: MemoryStore) -> None:
    assert status.status(store, at=200.0)["domains"] is None
    store.board.put_value(SHARES, msgspec.msgpack.encode(ShareSnapshot(150.0, 3, 9, 0.25)))
    found = status.status(store, at=200.0)["domains"]
    assert found == {"time": 150.0, "busy": 3, "blocked": 9, "share": 0.25}
