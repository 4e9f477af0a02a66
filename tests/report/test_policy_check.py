"""What an edited policy file would do to the URLs that a store knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.policy.collections import collection_of
from webfountain.cli import main
from webfountain.policy.judge import Judge
from webfountain.ranking.link_journal import NOFOLLOW, UNFOLLOWED
from webfountain.ranking.link_log import LinkLog
from webfountain.records import Link, PageRecord
from webfountain.report.policy_check import policy_effect
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SITE = "https://docs.example.org"


def test_known_urls_that_the_file_denies_are_counted_by_reason_with_a_sample() -> None:
    judge = Judge(collection_of("[policies.default]\ndeny = ['/old/']"), year=2026)
    records = [PageRecord(f"{SITE}/old/{n}", state="crawled", depth=1) for n in range(25)]
    records += [PageRecord(f"{SITE}/new/{n}", depth=1) for n in range(5)]
    records += [PageRecord("https://elsewhere.example/", depth=1), PageRecord(f"{SITE}/deep", depth=99)]
    effect = policy_effect(judge, records)
    assert effect.known == 32
    assert effect.dropped == {"denied": 25, "out_of_scope": 1, "too_deep": 1}
    assert len(effect.sample_dropped) == 10


def test_urls_refused_by_the_policy_of_before_are_reported_where_the_file_takes_them_in_again() -> None:
    judge = Judge(collection_of("[policies.default]\ndeny = ['/old/']"), year=2026)
    refused = [
        PageRecord(f"{SITE}/new", state="refused", error="denied", depth=1),
        PageRecord(f"{SITE}/old/1", state="refused", error="denied", depth=1),
        PageRecord(f"{SITE}/robots", state="refused", error="robots.txt", depth=1),
    ]
    effect = policy_effect(judge, refused)
    assert (effect.taken, effect.sample_taken) == (1, (f"{SITE}/new",))
    assert effect.dropped == {}


def test_a_url_is_judged_under_its_own_policy_and_another_projects_request_not_at_all() -> None:
    judge = Judge(collection_of("[policies.favor]\ndeny = ['/x']"), year=2026)
    records = [
        PageRecord(f"{SITE}/x", policy="favor", depth=1),
        PageRecord(f"{SITE}/x", depth=1),
        PageRecord(f"{SITE}/x", policy="favor", depth=1, request=b"{}"),
    ]
    assert policy_effect(judge, records).dropped == {"denied": 1}


def test_links_that_were_refused_are_reported_where_the_file_takes_them_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the newest rows of the link log; not what is known by now, nor links of a page that is not."""
    names = ("a.zip", "b.pdf", "c.zip", "known.zip")
    links = [Link(f"{SITE}/{name}", SITE, fingerprint(f"{SITE}/{name}")) for name in names]
    log = LinkLog(str(tmp_path / "links"), writer="ant")
    for page in ("", "again", "spam"):
        other = [Link(f"{SITE}/{page}.zip", SITE, fingerprint(f"{SITE}/{page}.zip"))]
        log.append(f"{SITE}/{page}", SITE, at=1.0, links=[*links, *other], flags=bytes([UNFOLLOWED] * 5))
    log.append(f"{SITE}/spam", SITE, at=2.0, links=links[2:3], flags=bytes([NOFOLLOW]))
    log.flush()
    store = open_store(f"rocksdb://{tmp_path}", collection="test", period_s=86_400.0, fastest_s=900.0)
    known = [Link(f"{SITE}/{page}", SITE, fingerprint(f"{SITE}/{page}")) for page in ("", "known.zip", "spam")]
    store.queues.discover(known, at=1.0)
    store.close()
    (tmp_path / "new.toml").write_text(
        f'[collection]\nname = "test"\nseeds = ["{SITE}/"]\n[policies.default]\ndeny = ["pdf$"]\n'
        '[politeness]\nuser_agent = "tester/1.0 (+http://example.org/bot)"\n'
    )
    assert main(["policy", "check", str(tmp_path / "new.toml"), "--against", f"rocksdb://{tmp_path}", "--json"]) == 0
    [effect] = [each["effect"] for each in json.loads(capsys.readouterr().out)]
    assert effect["sample_followed"] == [f"{SITE}/.zip", f"{SITE}/a.zip", f"{SITE}/c.zip"]
    assert (effect["followed"], effect["known"], effect["dropped"]) == (3, 3, {})
