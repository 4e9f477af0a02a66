"""`webfountain explain`: which seed, links, policy, rule and robots line made a page what it is, or kept it out."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.cli import main
from webfountain.clock import ManualClock
from webfountain.errors import InputError
from webfountain.frontier.inbox.blocks import UrlBlock, change_blocks
from webfountain.policy.provenance import arrived
from webfountain.ranking.link_importance import live_importance
from webfountain.ranking.scores import publish_scores
from webfountain.records import Link
from webfountain.report.explain import collection_of as collection_in_force
from webfountain.report.explain import explain, refusal_of
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.frontier.drive import Answer
    from webfountain.records import Fetch
    from webfountain.report.url_facts import Explanation

HOME, FAR = "http://home.example", "http://far.example"
PAGES = {
    f"{HOME}/": f"<a href='/a'>a</a> <a href='{FAR}/'>far</a> <a href='/old'>old</a> <a href='/private/x'>p</a>",
    f"{HOME}/a": "<a href='/a/b'>b</a> <a href='/files/x.zip'>z</a>",
    f"{HOME}/a/b": "end",
    f"{HOME}/new": "new",
    f"{FAR}/": "casino casino casino <a href='/casino'>more</a>",
}
ROBOTS = "# for all\nUser-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nAllow: /private/open\n"
RULES = """
[policies.favor]
spread = "site"
deny = ['\\.zip$', '^ftp']
[[switch]]
when = { text = 'casino', count = 3 }
to = "distrust"
"""


def web(fetch: Fetch, at: float) -> Answer:
    if fetch.kind == "robots":
        found: tuple[int, Mapping[str, str], bytes, float] = (200, {}, ROBOTS.encode(), 0.01)
        return found if fetch.site == HOME else (404, {}, b"", 0.01)
    if fetch.url == f"{HOME}/old":
        return 301, {"location": "/new"}, b"", 0.01
    body = PAGES.get(fetch.url)
    return (404, {}, b"", 0.01) if body is None else (200, {"content-type": "text/html"}, body.encode(), 0.01)


@pytest.fixture(scope="module")
def drive() -> Drive:
    """A crawl that came to rest."""
    collection = collection_of([f"{HOME}/"], collection='scope = "any"\npolicy = "favor"\n', rest=RULES)
    driven = Drive(collection, web, recrawl=False)
    driven.run()
    return driven


def of(drive: Drive, url: str) -> Explanation:
    return explain(drive.store, drive.collection, url, at=drive.clock.now())


def test_the_path_leads_from_the_seed_over_the_links_to_the_page(drive: Drive) -> None:
    found = of(drive, f"{HOME}/a/b")
    assert [(hop.url, hop.by, hop.depth) for hop in found.path] == [
        (f"{HOME}/", "seed", 0),
        (f"{HOME}/a", "link", 1),
        (f"{HOME}/a/b", "link", 2),
    ]
    assert [hop.policy for hop in found.path] == ["favor"] * 3
    assert [round(hop.trust, 4) for hop in found.path] == [1.0, 0.85, 0.7225]
    assert found.page is not None
    assert (found.page["policy"], found.page["state"]) == ("favor", "crawled")


def test_no_rate_of_change_is_claimed_after_one_visit(drive: Drive) -> None:
    assert any("Until a second visit it counts as changing every" in why for why in of(drive, f"{HOME}/a/b").why)


def test_a_block_comes_first_and_keeps_a_url_from_being_fetched_now(drive: Drive) -> None:
    at = drive.clock.now()
    for until, words in ((None, "it is blocked"), (at + 7200.0, "it is blocked for 2 hours")):
        change_blocks(drive.store, UrlBlock(f"{HOME}/a", until), blocked=True, at=at)
        try:
            for url in (f"{HOME}/a/b", f"{HOME}/a/unknown"):
                why = refusal_of(drive.store, drive.collection, url, at=at)
                assert why == f"{words} (`webfountain unblock` removes the block)"
                assert of(drive, url).why[0] == f"I{why[1:]}."
            assert refusal_of(drive.store, drive.collection, f"{HOME}/new", at=at) is None
        finally:
            change_blocks(drive.store, UrlBlock(f"{HOME}/a"), blocked=False, at=at)
    assert refusal_of(drive.store, drive.collection, f"{HOME}/a/b", at=at) is None


def test_a_redirect_on_the_path_is_reported_as_one(drive: Drive) -> None:
    found = of(drive, f"{HOME}/new")
    assert [hop.by for hop in found.path] == ["seed", "link", "redirect"]
    assert any(sentence.startswith(f"It redirects to {HOME}/new") for sentence in found.why), found.why


def test_a_page_of_another_site_names_the_page_that_linked_it_and_the_switch_that_moved_it(drive: Drive) -> None:
    last = of(drive, f"{FAR}/").path[-1]
    assert (last.inherited, last.policy) == ("default", "distrust")
    assert last.because == "switched from 'default' by switch[0], 1970-01-12 13:46 UTC"
    assert (last.cause, last.rule, last.at) == ("switch", "switch[0]", 1_000_004.0)


@pytest.mark.parametrize(
    ("url", "reason", "key", "value"),
    [
        (f"{HOME}/files/x.zip", "denied", "policies.favor.deny[0]", r"\.zip$"),
        (f"{HOME}/{'x/' * 9}", "trap_repeated", "discovery.max_repeated_segments", 3),
        (f"{HOME}/{'x' * 3000}", "too_long", "discovery.max_url_length", 2083),
    ],
)
def test_an_unknown_url_is_given_the_key_that_kept_it_out(
    drive: Drive, url: str, reason: str, key: str, value: object
) -> None:
    found = of(drive, url)
    assert not found.known
    first = found.verdicts[0]
    assert first.rule is not None
    assert (first.policy, first.reason, first.rule.key, first.rule.value) == ("favor", reason, key, value)


def test_a_url_out_of_scope_is_reported(drive: Drive) -> None:
    narrow = collection_of([f"{HOME}/"])
    found = explain(drive.store, narrow, "http://else.example/", at=drive.clock.now())
    assert found.why == ("It is not known here: its site is out of scope (collection.scope = 'site').",)


def test_a_url_that_no_rule_keeps_out_was_linked_by_nobody(drive: Drive) -> None:
    found = of(drive, f"{HOME}/unheard")
    assert found.why == (
        "No rule refuses it under 'favor', 'default': no fetched page of these policies, less than 20 hops from a "
        "seed, links to it, or it was forgotten.",
        "A link under 'distrust' is refused: links under its policy are not followed (policies.distrust.follow = "
        "False).",
    )


def test_an_unknown_url_that_some_policies_refuse_is_given_their_keys(drive: Drive) -> None:
    """A fetched page may link to it under one of these policies."""
    found = of(drive, f"{HOME}/files/x.zip")
    assert found.why[0].startswith("No rule refuses it under 'default': no fetched page of these policies, less ")
    assert found.why[1] == (
        r"A link under 'favor' is refused: a pattern denies it (policies.favor.deny[0] = '\\.zip$')."
    )


@pytest.mark.parametrize(
    ("page", "url", "printed"),
    [
        (f"{HOME}/a/b", f"{HOME}/a/b/c", "So that page did not link to it at its last fetch"),
        (
            f"{HOME}/a",
            f"{HOME}/files/x.zip",
            "under 'favor' and 2 hops from the seed, it is refused: a pattern denies it",
        ),
        (
            f"{FAR}/",
            f"{FAR}/casino",
            "it is refused: links under its policy are not followed (policies.distrust.follow = False)",
        ),
    ],
)
def test_an_unknown_url_is_explained_as_a_known_page_links_it(drive: Drive, page: str, url: str, printed: str) -> None:
    found = explain(drive.store, drive.collection, url, at=drive.clock.now(), linked_by=page)
    assert printed in found.why[0]
    with pytest.raises(InputError, match="the page is not known here"):
        explain(drive.store, drive.collection, url, at=drive.clock.now(), linked_by=f"{HOME}/unheard")


def test_a_page_that_is_too_deep_where_it_is_linked_is_reported() -> None:
    driven = Drive(collection_of([f"{HOME}/"], collection="limits.depth = 1\n"), web, recrawl=False)
    driven.run()
    found = explain(driven.store, driven.collection, f"{HOME}/a/b", at=driven.clock.now(), linked_by=f"{HOME}/a")
    assert found.why == (
        f"As a link of {HOME}/a, under 'default' and 2 hops from the seed, it is refused: it is too many hops "
        "from a seed (collection.limits.depth = 1).",
    )


def test_a_seed_that_its_own_policy_refuses_is_reported() -> None:
    collection = collection_of([f"{HOME}/", f"{HOME}/x.zip"], rest="[policies.default]\ndeny = ['zip$']\n")
    driven = Drive(collection, web, recrawl=False)
    driven.run()
    assert of(driven, f"{HOME}/x.zip").why[0] == (
        "It is a seed (collection.seeds[1]) that is refused: a pattern denies it (policies.default.deny[0] = 'zip$')."
    )


def test_what_its_importance_is_made_of_is_reported_with_what_the_last_ranking_has_of_it(tmp_path: Path) -> None:
    rest = "[policies.default]\nscore = { pagerank = 3, location = 1 }\n[ranking]\nevery = '1d'\n"
    collection = collection_of([f"{HOME}/"], rest=rest)
    driven = Drive(collection, web, recrawl=False)
    driven.run()

    def why(path: str) -> list[str]:
        found = explain(driven.store, collection, f"{HOME}{path}", at=driven.clock.now(), scores=tmp_path / "scores")
        return [line for line in found.why if "mportance is" in line or "anking" in line]

    made_of = "Its importance is 0.75 pagerank + 0.25 location, each divided by the mean of all pages."
    assert why("/a") == [made_of]
    keys = np.frombuffer(fingerprint(f"{HOME}/a"), dtype=">u8").astype(np.uint64)
    publish_scores(tmp_path / "scores", keys, {"pagerank": np.array([1.5])})
    assert why("/a") == [made_of, "Ranking 1 gives it pagerank 1.5."]
    assert why("/a/b") == [made_of, "Ranking 1 gives it no score, because it is newer."]


@pytest.mark.parametrize(
    ("rest", "blended"),
    [
        ("", True),
        ("[policies.default]\nscore = { pagerank = 1, backlinks = 1 }\n", False),
        ("[policies.default]\nscore = { location = 1 }\n", False),
        ("[collection.limits]\npages = 100\n", False),
    ],
)
def test_a_page_that_waits_in_the_blended_orders_is_reported_to_do_so(rest: str, blended: bool) -> None:
    collection = collection_of([f"{HOME}/"], rest=f"{rest}[ranking]\nevery = '1d'\n")
    driven = Drive(collection, web, recrawl=False, hand=1)
    words = "While it waits, its pagerank stands for a blend of breadth-first, backlink and PageRank order."
    driven.run(until=lambda: driven.store.pages.get(HOME, fingerprint(f"{HOME}/a")))
    assert (words in of(driven, f"{HOME}/a").why) == blended
    driven.run()
    assert words not in of(driven, f"{HOME}/a").why


def test_an_unknown_url_names_the_pages_that_link_it_where_the_link_log_has_them(tmp_path: Path) -> None:
    """And what became of each link: nofollow, refused under its policy; three pages are named, the rest counted."""
    pages = {
        f"{HOME}/": f"<a href='/a'></a><a href='/b'></a><a href='{FAR}/'></a><a rel=nofollow href='/mine'></a>",
        f"{FAR}/": "<a href='/more'></a>",
        **{f"{HOME}/{name}": "<a href='/x.zip'></a><a href='/a'></a><a href='/b'></a><a href='/c'></a><a href='/d'></a>"
           for name in "abcd"},
    }  # fmt: skip

    def answer(fetch: Fetch, at: float) -> Answer:
        body = pages.get(fetch.url)
        return (404, {}, b"", 0.01) if body is None else (200, {"content-type": "text/html"}, body.encode(), 0.01)

    rest = '[ranking]\nevery = "1d"\n[policies.default]\ndeny = ["zip$"]\nspread = "site"\notherwise = "distrust"\n'
    collection, clock = collection_of([f"{HOME}/"], collection='scope = "any"\n', rest=rest), ManualClock(1_000_000.0)
    importance = live_importance(collection, tmp_path, writer="ant", at=clock.now())
    assert importance is not None
    driven = Drive(collection, answer, clock=clock, importance=importance, recrawl=False)
    driven.run()
    importance.close()

    def why(url: str) -> tuple[str, ...]:
        return explain(driven.store, collection, url, at=clock.now(), links=str(tmp_path / "links")).why

    assert why(f"{HOME}/mine") == (f"{HOME}/ links to it with nofollow.",)
    denied = "links to it, under 'default': refused, a pattern denies it (policies.default.deny[0] = 'zip$')."
    assert why(f"{HOME}/x.zip") == (*(f"{HOME}/{name} {denied}" for name in "abc"), "1 more page links to it.")
    [refused] = why(f"{FAR}/more")
    assert refused.startswith(f"{FAR}/ links to it, under 'distrust': refused, links under its policy are not followed")
    assert why(f"{HOME}/none")[0].startswith("No rule refuses it")


def test_what_a_page_has_to_do_with_its_topic_is_reported_by_its_text_or_by_its_links() -> None:
    texts = {f"{HOME}/": "of many other things <a href='/hot'>on river floods</a> <a href='/cold'>x</a>"}

    def site(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        return 200, {"content-type": "text/html"}, texts.get(fetch.url, "river floods").encode(), 0.01

    rest = "[policies.default]\ntopic = { query = 'river floods', min_similarity = 0.6 }\n"
    collection = collection_of([f"{HOME}/"], rest=rest)
    driven = Drive(collection, site, recrawl=False, importance=live_importance(collection, Path(), writer="a", at=0.0))
    driven.run(until=lambda: driven.store.pages.get(HOME, fingerprint(f"{HOME}/hot")))
    waits = "It goes before others: its similarity to 'river floods' is 0.82 by its links and URL, and 0.6 is required."
    assert waits in of(driven, f"{HOME}/hot").why
    driven.run()
    assert (
        "It is on topic: its similarity to 'river floods' is 1 by its text, and 0.6 is required."
        in of(driven, f"{HOME}/hot").why
    )


def test_the_robots_line_that_refuses_is_reported_with_its_number(drive: Drive) -> None:
    found = of(drive, f"{HOME}/private/x")
    assert found.known
    assert found.robots is not None
    assert (found.robots.allowed, found.robots.number, found.robots.line) == (False, 6, "Disallow: /private/")
    allowed = of(drive, f"{HOME}/private/open").robots
    assert allowed is not None
    assert (allowed.allowed, allowed.line) == (True, "Allow: /private/open")


def test_what_has_no_canonical_form_is_reported_and_another_spelling_leads_to_the_page(drive: Drive) -> None:
    assert of(drive, "mailto:me@home.example").why[0].startswith("It has no canonical form: ")
    found = of(drive, "HTTP://Home.example:80/a#part")
    assert found.known
    assert found.why[0] == f"Its canonical form is {HOME}/a."
    assert of(drive, f"{HOME}/a/").alike == (f"{HOME}/a",)


def test_the_next_visit_is_when_the_schedule_has_the_page_due_and_its_site_may_be_asked() -> None:
    rest = '[policies.default]\nrevisit = { max_interval = "6h" }\n'
    driven = Drive(collection_of([f"{HOME}/"], rest=rest), web)
    driven.run(seconds=600)
    found = of(driven, f"{HOME}/a")
    record = driven.store.pages.get(HOME, fingerprint(f"{HOME}/a"))
    assert record is not None
    assert record.last_crawled is not None
    assert found.next_visit == pytest.approx(record.last_crawled + 6 * 3600)
    assert of(driven, f"{HOME}/private/x").next_visit is not None


def test_the_policy_file_in_force_is_the_one_that_the_crawl_kept_also_after_an_edit() -> None:
    driven = Drive(collection_of([f"{HOME}/"]), web, recrawl=False)
    assert collection_in_force(driven.store).scope == "site"
    driven.frontier.work.adopt(collection_of([f"{HOME}/"], collection='scope = "any"\n'))
    driven.run()
    assert collection_in_force(driven.store).scope == "any"


def test_the_command_prints_sentences_or_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"rocksdb://{tmp_path}/store"
    collection = collection_of([f"{HOME}/"], rest=RULES)
    with contextlib.closing(open_store(store, collection="test", period_s=86_400.0, at=0.0)) as opened:
        opened.queues.discover([Link(f"{HOME}/", HOME, fingerprint(f"{HOME}/"))], at=0.0)
        linked = Link(f"{HOME}/a", HOME, fingerprint(f"{HOME}/a"), depth=1, source=f"{HOME}/")
        opened.queues.discover([msgspec.structs.replace(linked, provenance=arrived("link", links=1))], at=0.0)
    assert main(["explain", f"{HOME}/a", "--store", store]) == 2
    assert "stores the file that is in force" in capsys.readouterr().err
    (tmp_path / "test.toml").write_text(collection.text)
    assert main(["explain", f"{HOME}/a", "--store", store, "--collection", str(tmp_path / "test.toml")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [f"{HOME}/a", f"{HOME}/ is a seed.", f"It links to {HOME}/a (found 1970-01-01 00:00 UTC)."]
    options = ["--store", store, "--collection", str(tmp_path / "test.toml"), "--json"]
    assert main(["explain", f"{HOME}/x.zip", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["known"] is False
    assert found["verdicts"][0]["reason"] is None
