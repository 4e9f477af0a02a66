"""Policies 2006 in the frontier: policies spread from the seeds, trust fades, spam is switched, edits hold."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.policy.collection_file import parse_collection

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOME, SPAM = "http://home.example", "http://spam.example"
WEB = {
    f"{HOME}/": f"<a href='/a'>a</a> <a href='{SPAM}/'>s</a>",
    f"{HOME}/a": "<a href='/a/b'>b</a>",
    f"{HOME}/a/b": "end",
    f"{SPAM}/": "<a href='/casino'>c</a>",
    f"{SPAM}/casino": "casino casino casino <a href='/more'>m</a> <a href='http://home.example/good'>g</a>",
    f"{SPAM}/more": "more",
    f"{HOME}/good": "good",
}


def answer(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    body = WEB.get(fetch.url)
    return (404, {}, b"", 0.01) if body is None else (200, {"content-type": "text/html"}, body.encode(), 0.01)


def crawled(rest: str, *, collection: str = 'scope = "any"\n') -> Drive:
    drive = Drive(collection_of([f"{HOME}/"], collection=collection, rest=rest), answer, recrawl=False)
    drive.run()
    return drive


def pages(drive: Drive) -> dict[str, tuple[str, float]]:
    """URL -> policy, trust."""
    return {record.url: (record.policy, round(record.trust, 6)) for _, record in drive.store.pages.records()}


def test_trust_fades_along_the_links_and_is_kept_with_each_page() -> None:
    found = pages(crawled("[policies.default]\ntrust = 1.0\ndampening = 0.5\n"))
    assert [found[f"{HOME}{path}"][1] for path in ("/", "/a", "/a/b")] == [1.0, 0.5, 0.25]


def test_trust_orders_what_is_new_where_policies_distinguish_pages_by_it() -> None:
    drive = crawled("[policies.default]\ntrust = 1.0\ndampening = 0.5\n")
    worth = {record.url: record.importance for _, record in drive.store.pages.records()}
    assert worth[f"{HOME}/a"] > worth[f"{HOME}/a/b"] > 0
    assert {record.importance for _, record in crawled("").store.pages.records()} == {0.0}


def test_a_policy_spreads_over_its_site_and_others_get_the_other_one() -> None:
    rest = '[policies.favor]\nspread = "site"\notherwise = "strange"\n[policies.strange]\ntrust = 0.1\n'
    found = pages(crawled(rest, collection='scope = "any"\npolicy = "favor"\n'))
    assert found[f"{HOME}/a/b"][0] == "favor"
    assert found[f"{SPAM}/"] == ("strange", 0.1)
    assert found[f"{SPAM}/casino"][0] == "strange"


def test_a_page_that_shows_spam_is_switched_and_what_it_links_from_then_on_is_not_taken_in() -> None:
    drive = crawled("[[switch]]\nwhen = { text = 'casino', count = 3 }\nto = 'distrust'\n")
    found = pages(drive)
    assert found[f"{SPAM}/casino"] == ("distrust", 0.0)
    assert f"{SPAM}/more" not in found
    assert found[f"{SPAM}/"][0] == "default"


def test_good_links_on_bad_pages_can_still_be_followed() -> None:
    rest = "[[switch]]\nwhen = { text = 'casino', count = 3 }\nto = 'distrust'\n[policies.distrust]\nfollow = true\n"
    rest += 'spread = "site"\n'
    found = pages(crawled(rest))
    assert found[f"{SPAM}/more"] == ("distrust", 0.0)
    assert found[f"{HOME}/good"] == ("default", 0.0)


TWICE = {
    f"{HOME}/": "<a href='/both'>b</a>",
    f"{SPAM}/": f"<a href='{HOME}/both'>b</a> <a href='{HOME}/'>h</a>",
    f"{HOME}/both": "<a href='/below'>x</a>",
    f"{HOME}/below": "x",
}


@pytest.mark.parametrize(
    ("rule", "first", "policy"),
    [
        ("first", HOME, "good"),
        ("first", SPAM, "bad"),
        ("most-trusted", HOME, "good"),
        ("most-trusted", SPAM, "good"),
        ("least-trusted", HOME, "bad"),
        ("least-trusted", SPAM, "bad"),
    ],
)
@pytest.mark.parametrize("later_s", [9.0, 0.3], ids=["crawled", "leased"])
def test_a_page_found_under_two_policies_has_the_one_that_the_conflict_rule_says(
    rule: str, first: str, policy: str, later_s: float
) -> None:
    """Whichever of the two pages that link it is fetched first, by so much; a seed keeps its own."""
    seeds = [f'{{ url = "{HOME}/", policy = "good" }}', f'{{ url = "{SPAM}/", policy = "bad" }}']
    head = f'[collection]\nname = "t"\nscope = "any"\nseeds = [{", ".join(seeds)}]\n[cycle]\nperiod = "1d"\n'
    rest = f"[policies.good]\ntrust = 0.9\n[policies.bad]\ntrust = 0.2\n[conflict]\nrule = '{rule}'\n"
    agent = '[politeness]\nuser_agent = "tester/1.0 (+http://example.org/bot)"\n[network]\nallow_private = true\n'
    collection = parse_collection(head + agent + rest, Path("t.toml"))

    def late(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01 if fetch.site == first else later_s
        return 200, {"content-type": "text/html"}, TWICE[fetch.url].encode(), 0.01

    drive = Drive(collection, late, recrawl=False)
    drive.addresses = {"home.example": ["203.0.113.1"], "spam.example": ["203.0.113.2"]}
    drive.run()
    found = pages(drive)
    assert found[f"{HOME}/"][0] == "good"
    assert found[f"{HOME}/both"] == (policy, {"good": 0.9, "bad": 0.2}[policy])


def test_a_page_that_is_gone_can_be_switched_by_its_status() -> None:
    drive = crawled("[[switch]]\nwhen = { status = 404 }\nto = 'distrust'\n", collection="")
    assert "distrust" not in {policy for policy, _ in pages(drive).values()}
    WEB_BEFORE = dict(WEB)
    try:
        del WEB[f"{HOME}/a"]
        drive = crawled("[[switch]]\nwhen = { status = 404 }\nto = 'distrust'\n", collection="")
    finally:
        WEB.clear()
        WEB.update(WEB_BEFORE)
    assert pages(drive)[f"{HOME}/a"][0] == "distrust"


def test_after_an_edit_nothing_that_it_denies_is_asked_also_of_what_was_in_the_hand() -> None:
    every = "".join(f"<a href='/{kind}/{n}'>x</a>" for n in range(30) for kind in ("keep", "drop"))

    def site(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        return 200, {"content-type": "text/html"}, (every if fetch.url.endswith("example/") else "x").encode(), 0.01

    collection = collection_of([f"{HOME}/"], delay_factor=0)
    drive = Drive(collection, site, recrawl=False)
    drive.run(until=lambda: len(drive.log) > 12)
    before = len(drive.log)
    drive.frontier.work.adopt(
        collection_of([f"{HOME}/"], delay_factor=0, rest="[policies.default]\ndeny = ['/drop/']\n")
    )
    drive.run()
    later = [url for _, kind, url in drive.log[before:] if kind == "page"]
    assert later
    assert not [url for url in later if "/drop/" in url]
    assert sum("/keep/" in url for _, _, url in drive.log) == 30


def test_each_policy_bounds_the_time_between_two_visits_to_its_pages() -> None:
    """Nothing is known of the pages' changes: without bounds all are visited every two and a half days."""
    often = "<a href='/often/1'>a</a> <a href='/seldom/1'>b</a> <a href='/usual'>c</a>"
    rest = """
[policies.default]
spread = "site"
[policies.often]
revisit = { max_interval = "6h" }
[policies.seldom]
revisit = { min_interval = "20d" }
[[switch]]
when = { text = "often" }
to = "often"
[[switch]]
when = { text = "seldom" }
to = "seldom"
"""

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        body = often if fetch.url == f"{HOME}/" else fetch.url.rsplit("/")[-2 if fetch.url[-1] == "1" else -1]
        return 200, {"content-type": "text/html"}, body.encode(), 0.01

    drive = Drive(collection_of([f"{HOME}/"], rest=rest), web)
    drive.run(seconds=19 * 86_400.0)
    visits = {path: [at for at, _, url in drive.log if url == f"{HOME}{path}"] for path in _KINDS}
    gaps = {path: [b - a for a, b in pairwise(times)] for path, times in visits.items()}
    assert len(visits["/seldom/1"]) == 1
    assert len(gaps["/often/1"]) >= 19 * 4 - 1
    assert max(gaps["/often/1"]) < 6.1 * 3600
    assert min(gaps["/usual"]) > 86_400.0
    drive.run(seconds=2 * 86_400.0)
    assert sum(url == f"{HOME}/seldom/1" for _, _, url in drive.log) == 2


_KINDS = ("/often/1", "/seldom/1", "/usual")


HUB = {
    "/": "<a href='/good'>g</a> <a href='/hub'>h</a>",
    "/good": "<a href='/shared'>s</a>",
    "/shared": "s",
    "/hub": "<a href='/x'>x</a> <a href='/shared'>s</a>",
    "/x": "<a href='/x/y'>y</a>",
    "/x/y": "<a href='/x/y/z'>z</a>",
    "/x/y/z": "z",
}


@pytest.mark.parametrize(
    ("also", "distrusted"), [("linked", {"/hub"}), ("discovered", {"/hub", "/x", "/x/y", "/x/y/z"})]
)
def test_on_request_what_was_discovered_through_a_switched_page_follows_it_with_all_that_came_of_that(
    also: str, distrusted: set[str]
) -> None:
    rest = f"[[switch]]\nwhen = {{ text = 'casino' }}\nto = 'distrust'\nalso = '{also}'\n"
    rest += '[policies.default]\nrevisit = { max_interval = "6h" }\n'
    now_spam: list[str] = []

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        path = fetch.url.removeprefix(HOME)
        body = HUB[path] + (" casino" if path in now_spam else "")
        return 200, {"content-type": "text/html"}, body.encode(), 0.01

    drive = Drive(collection_of([f"{HOME}/"], rest=rest), web)
    drive.run(seconds=600)
    assert {policy for policy, _ in pages(drive).values()} == {"default"}
    now_spam.append("/hub")
    drive.run(seconds=86_400.0)
    found = pages(drive)
    assert {url.removeprefix(HOME) for url, (policy, _) in found.items() if policy == "distrust"} == distrusted
    assert found[f"{HOME}/shared"] == ("default", 0.5)


DECOY = {
    "/": "<a href='/decoy'>d</a> <a href='/well'>w</a>",
    "/decoy": "fine prose" + "".join(f"<a href='/bad/{number}'>b</a>" for number in range(30)),
    "/well": "fine prose" + "".join(f"<a href='/good/{number}'>g</a>" for number in range(30)),
}


@pytest.mark.parametrize(("rule", "bad_first"), [("", 30), ("when = { discovered = 0.5, count = 2 }", 9)])
def test_a_page_that_proves_to_lead_to_what_is_distrusted_is_and_the_rest_of_that_waits_behind_all_else(
    rule: str, bad_first: int
) -> None:
    """Nine: two that show it, and what was in the site's hand then."""

    def web(fetch: Fetch, at: float) -> Answer:
        path = fetch.url.removeprefix(HOME)
        body = DECOY.get(path, "casino" if path.startswith("/bad") else "good")
        is_page = fetch.kind == "page"
        return (200, {"content-type": "text/html"}, body.encode(), 0.01) if is_page else (404, {}, b"", 0.01)

    rest = "[policies.default]\ndampening = 0.9\n[[switch]]\nwhen = { text = 'casino' }\nto = 'distrust'\n"
    rest += f"[[switch]]\n{rule}\nto = 'distrust'\nalso = 'discovered'\n" if rule else ""
    drive = Drive(collection_of([f"{HOME}/"], rest=rest), web, recrawl=False, hand=1)
    drive.run()
    asked = [url.removeprefix(HOME) for url in drive.asked()]
    last_good = max(place for place, path in enumerate(asked) if path.startswith("/good"))
    assert sum(path.startswith("/bad") for path in asked[:last_good]) == bad_first
    assert pages(drive)[f"{HOME}/decoy"][0] == ("distrust" if rule else "default")
    assert pages(drive)[f"{HOME}/well"][0] == "default"
    assert len(asked) == len(set(asked)) == 63
    drive.check_valid()


SHARED = {
    "/": "<a href='/decoy'>d</a> <a href='/way'>w</a>",
    "/way": "<a href='/on'>w</a>",
    "/on": "<a href='/well'>w</a>",
    "/decoy": "fine prose <a href='/bad/1'>b</a> <a href='/bad/2'>b</a>"
    + "".join(f"<a href='/z/{n}'>z</a>" for n in range(150)),
    "/well": "fine prose <a href='/z/149'>z</a>",
    "/z/149": "fine prose <a href='/below'>b</a>",
}


@pytest.mark.parametrize(("rule", "policy"), [("first", "distrust"), ("most-trusted", "default")])
def test_what_went_with_the_page_that_led_to_it_comes_back_when_a_trusted_page_links_it(rule: str, policy: str) -> None:
    """`/well` is fetched while it waits under distrust; a link like its own was seen before, and counts now."""

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        path = fetch.url.removeprefix(HOME)
        body = SHARED.get(path, "casino" if path.startswith("/bad") else "fine")
        return 200, {"content-type": "text/html"}, body.encode(), 0.01

    rest = f"[policies.default]\ndampening = 0.9\n[conflict]\nrule = '{rule}'\n"
    rest += "[[switch]]\nwhen = { text = 'casino' }\nto = 'distrust'\n"
    rest += "[[switch]]\nwhen = { discovered = 0.5, count = 2 }\nto = 'distrust'\nalso = 'discovered'\n"
    drive = Drive(collection_of([f"{HOME}/"], rest=rest), web, recrawl=False, hand=1)
    drive.run()
    found = pages(drive)
    assert found[f"{HOME}/decoy"][0] == "distrust"
    assert found[f"{HOME}/z/149"][0] == policy
    assert (f"{HOME}/below" in found) == (policy == "default")
    drive.check_valid()


def test_a_page_in_another_language_or_off_the_topic_is_switched_by_what_it_shows() -> None:
    german = "Die Katze und der Hund sind mit dem Kind in das Haus gegangen und es ist nicht mehr da, wo sie war."
    english = "The river and the hill are where they were, and all of it is as it has been for as long as they know."
    web = {
        f"{HOME}/": "<a href='/de'>d</a> <a href='/off'>o</a> <a href='/on'>o</a>" + english,
        f"{HOME}/de": german + "<a href='/de/more'>m</a>",
        f"{HOME}/off": english + "<a href='/off/more'>m</a>",
        f"{HOME}/on": english + " Stream processing, stream processing with streams. <a href='/on/more'>m</a>",
    }
    rest = """
[policies.default]
topic = { query = "stream processing" }
[[switch]]
when = { language_not = ["en"] }
to = "distrust"
[[switch]]
when = { similarity = 0.3 }
to = "favor"
"""

    def answer_of(fetch: Fetch, at: float) -> Answer:
        body = web.get(fetch.url)
        return (404, {}, b"", 0.01) if body is None else (200, {"content-type": "text/html"}, body.encode(), 0.01)

    drive = Drive(collection_of([f"{HOME}/"], rest=rest), answer_of, recrawl=False)
    drive.run()
    found = pages(drive)
    assert found[f"{HOME}/de"][0] == "distrust"
    assert f"{HOME}/de/more" not in found
    assert [found[f"{HOME}{path}"][0] for path in ("/off", "/off/more", "/on", "/on/more")] == [
        "default", "default", "favor", "favor",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["all", "main"])
def test_switches_and_topics_read_the_text_that_the_collection_takes(text: str) -> None:
    """Words in a banner and in a navigation are not what a page is about where the main content is taken."""
    prose = "The river and the hill are where they were, and all of it is as it has been for as long as they know. " * 3
    banner = "<div class=cookie-banner><p>Stream processing with streams, and a casino.</p></div>"
    body = f"<body>{banner}<main><p>{prose}</p></main><nav><a href='/on'>Stream processing streams</a></nav>"
    rest = f"""
[content]
text = "{text}"
[policies.default]
topic = {{ query = "stream processing" }}
[[switch]]
when = {{ text = "casino" }}
to = "distrust"
"""
    drive = Drive(
        collection_of([f"{HOME}/"], rest=rest),
        lambda fetch, at: (200, {"content-type": "text/html"}, body.encode(), 0.01),
        recrawl=False,
        obey_robots=False,
    )
    drive.run()
    [record] = [each for _, each in drive.store.pages.records() if each.url == f"{HOME}/"]
    assert record.policy == ("distrust" if text == "all" else "default")
    if text == "main":
        assert record.scores[0] == 0.0


def test_favor_raises_what_it_links_distrust_lowers_it_and_by_itself_does_not_add_it_at_all() -> None:
    """Three seeds of one site link three pages each, in turn: which of them are asked first?"""
    kinds = ("distrust", "default", "favor")
    seeds = [f'{{ url = "{HOME}/{kind}", policy = "{kind}" }}' for kind in kinds]

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        kind = fetch.url.removeprefix(f"{HOME}/")
        links = "".join(f"<a href='/{kind}/{n}'>x</a>" for n in range(3)) if kind in kinds else ""
        return 200, {"content-type": "text/html"}, links.encode(), 0.01

    def order(rest: str) -> list[str]:
        head = f'[collection]\nname = "t"\nseeds = [{", ".join(seeds)}]\n[network]\nallow_private = true\n'
        agent = '[politeness]\nuser_agent = "tester/1.0 (+http://example.org/bot)"\n'
        drive = Drive(parse_collection(head + agent + rest, Path("t.toml")), web, recrawl=False, hand=1)
        drive.run()
        return [url.split("/")[3] for url in drive.asked() if url.count("/") == 4]

    assert order("[policies.distrust]\nfollow = true\n") == ["favor"] * 3 + ["default"] * 3 + ["distrust"] * 3
    assert order("") == ["favor"] * 3 + ["default"] * 3


def test_several_collections_in_one_store_have_each_its_own_rules_and_share_what_is_known() -> None:
    """Seeds under policies of their own: filters, scores and intervals differ, links and pages are one web."""
    rest = """
[policies.docs]
allow = ['/docs']
score = { location = 1 }
[policies.news]
deny = ['/old']
revisit = { max_interval = "1h" }
"""
    seeds = [f'{{ url = "{HOME}/docs", policy = "docs" }}', f'{{ url = "{HOME}/news", policy = "news" }}']
    head = f'[collection]\nname = "t"\nseeds = [{", ".join(seeds)}]\n[network]\nallow_private = true\n'
    agent = '[politeness]\nuser_agent = "tester/1.0 (+http://example.org/bot)"\n'
    every = "".join(f"<a href='{path}'>x</a>" for path in ("/docs/a", "/old/b", "/news/c"))

    def web(fetch: Fetch, at: float) -> Answer:
        return (
            (404, {}, b"", 0.01) if fetch.kind != "page" else (200, {"content-type": "text/html"}, every.encode(), 0.01)
        )

    drive = Drive(parse_collection(head + agent + rest, Path("t.toml")), web, recrawl=False)
    drive.run()
    found = {url.removeprefix(HOME): policy for url, (policy, _) in pages(drive).items()}
    assert found == {"/docs": "docs", "/news": "news", "/docs/a": "docs", "/news/c": "news"}
    assert len(drive.asked()) == len(found)
