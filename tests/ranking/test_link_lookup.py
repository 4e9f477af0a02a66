"""The links of one page: as of its newest fetch, from journals, segments and shards, from its own site and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain import urls
from webfountain.ranking import link_lookup
from webfountain.ranking.link_journal import NOFOLLOW
from webfountain.ranking.link_log import LinkLog, compact
from webfountain.ranking.link_lookup import LinkLookup, LoggedLink, LoggedLinks
from webfountain.records import Link
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

A, B, C = "https://a.example", "https://b.example", "https://c.example"


def append(log: LinkLog, page: str, at: float, targets: Sequence[str], flags: bytes = b"") -> None:
    links = [Link(target, site_of(target), urls.fingerprint(target)) for target in targets]
    log.append(page, site_of(page), at=at, links=links, flags=flags)


def linked(*pages: str) -> LoggedLinks:
    return LoggedLinks([LoggedLink(page, followed=True) for page in pages], complete=True)


def test_links_are_found_in_shards_segments_and_journals(tmp_path: Path) -> None:
    url, journal = str(tmp_path / "links"), tmp_path / "journal"
    log = LinkLog(url, writer="ant", journal=journal)
    append(log, f"{A}/", 1.0, [f"{A}/x", f"{B}/"])
    append(log, f"{C}/", 1.0, [f"{B}/"], bytes([NOFOLLOW]))
    log.flush()
    compact(url, shards=3)
    append(log, f"{B}/", 2.0, [f"{A}/", f"{B}/y"])
    log.flush()
    append(log, f"{B}/y", 3.0, [f"{B}/", f"{A}/x"])
    log.commit()
    reader = LinkLookup(url, journal=journal)
    assert reader.out_of(f"{A}/", most=9) == linked(f"{A}/x", f"{B}/")
    assert reader.out_of(f"{B}/", most=9) == linked(f"{A}/", f"{B}/y")
    assert reader.out_of(f"{B}/y", most=9) == linked(f"{B}/", f"{A}/x")
    assert reader.out_of(f"{B}/y", most=1) == linked(f"{B}/")._replace(complete=False)
    assert reader.out_of(f"{A}/unknown", most=9) == linked()
    found = reader.into(f"{B}/", most=9)
    assert found.complete
    assert sorted(found.links) == [
        LoggedLink(f"{A}/", followed=True), LoggedLink(f"{B}/y", followed=True), LoggedLink(f"{C}/", followed=False)
    ]  # fmt: skip
    log.close()


def test_a_page_that_was_fetched_again_links_as_it_does_now(tmp_path: Path) -> None:
    url = str(tmp_path)
    for at, targets in ((1.0, [f"{B}/"]), (2.0, [f"{B}/z"])):
        log = LinkLog(url, writer="ant")
        append(log, f"{A}/", at, targets)
        log.flush()
    reader = LinkLookup(url, journal=None)
    assert reader.into(f"{B}/", most=9) == linked()
    assert reader.into(f"{B}/z", most=9) == linked(f"{A}/")
    compact(url)
    assert reader.into(f"{B}/", most=9) == linked()


def test_a_lookup_reads_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LinkLog(str(tmp_path), writer="ant")
    for number in range(60):
        append(log, f"{A}/{number}", 1.0, [f"{B}/"])
    log.flush()
    monkeypatch.setattr(link_lookup, "MOST_ROWS", 20)
    monkeypatch.setattr(link_lookup, "_BATCH", 10)
    found = LinkLookup(str(tmp_path), journal=None).into(f"{B}/", most=100)
    assert (len(found.links), found.complete) == (20, False)


def test_a_lookup_of_names_reads_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LinkLog(str(tmp_path), writer="ant")
    append(log, f"{A}/", 1.0, [f"{B}/{number}" for number in range(60)])
    log.flush()
    monkeypatch.setattr(link_lookup, "MOST_NAMES", 20)
    monkeypatch.setattr(link_lookup, "MOST_ROWS", 10)
    found = LinkLookup(str(tmp_path), journal=None).out_of(f"{A}/", most=100)
    assert len(found.links) <= 20
    assert not found.complete
