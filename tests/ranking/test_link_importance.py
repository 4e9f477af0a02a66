"""Importance in the running crawl: links are logged, rankings taken up, the queues follow, a kill harms nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import numpy as np
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.ranking.linked_web import LinkedWeb
from tests.ranking.rankers import AtOnce, wait_for
from webfountain.clock import ManualClock
from webfountain.core.topics import HOT, WordCounts
from webfountain.lab.simulate.crawl_order import GraphFile
from webfountain.lab.simulate.crawl_order import crawl as virtual_crawl
from webfountain.policy.collection_file import read_collection
from webfountain.ranking.link_importance import RisenPages, live_importance
from webfountain.ranking.link_journal import FOLLOWED, NOFOLLOW, REDIRECT, UNFOLLOWED
from webfountain.ranking.link_log import LinkLogReader
from webfountain.ranking.ranker_process import Job, RankerProcess
from webfountain.ranking.scores import EpochScores, publish_scores
from webfountain.ranking.topic_words import words_of
from webfountain.records import LinkedPage, PageRecord
from webfountain.store.contract import WORDS
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOME = "http://home.example"
RANKING = '[ranking]\nevery = "1m"\n'


def web(links: dict[str, list[str]]) -> Any:
    """A site's pages by path; a page that is not named has no links."""

    def answer(fetch: Fetch, at: float) -> Any:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        body = "".join(f"<a href='{path}'>x</a>" for path in links.get(fetch.url.removeprefix(HOME), []))
        return 200, {"content-type": "text/html"}, f"{fetch.url} {body}".encode(), 0.01

    return answer


def drive(
    folder: Path, links: dict[str, list[str]], *, rest: str = RANKING, cost_s: float = 0.0, **given: Any
) -> tuple[Drive, AtOnce]:
    collection, ranker = collection_of([f"{HOME}/"], rest=rest), AtOnce(cost_s=cost_s)
    clock = ManualClock(1_000_000.0)
    importance = live_importance(collection, folder, writer="ant", at=clock.now(), ranker=ranker)
    made = Drive(collection, web(links), clock=clock, importance=importance, recrawl=False, **given)
    return made, ranker


# Twenty pages in a row, each of which links the same late one; it stands last on the home page.
PAGES = [f"/{n}" for n in range(20)]
LINKS = {"/": [*PAGES, "/hot", *(f"/z{n}" for n in range(20))], **{page: ["/hot"] for page in PAGES}}


def test_a_crawl_without_ranking_has_nothing_of_it(tmp_path: Path) -> None:
    assert live_importance(collection_of([f"{HOME}/"]), tmp_path, writer="ant", at=0.0) is None
    plain, _ = drive(tmp_path, LINKS, rest="")
    plain.run()
    assert list(tmp_path.iterdir()) == []
    assert {record.importance for _, record in plain.store.pages.records()} == {0.0}


def test_each_fetched_page_is_a_row_of_the_log_with_its_known_targets(tmp_path: Path) -> None:
    crawl, _ = drive(tmp_path, LINKS)
    crawl.run()
    crawl.frontier.close()
    rows = {row["source"]: row for table in LinkLogReader(str(tmp_path / "links")).rows() for row in table.to_pylist()}
    number = {path: int.from_bytes(fingerprint(f"{HOME}{path}"), "big") for path in (*LINKS, "/hot")}
    assert len(rows) == 42
    for path, targets in LINKS.items():
        wanted = [int.from_bytes(fingerprint(f"{HOME}{target}"), "big") for target in targets]
        assert rows[number[path]]["targets"] == wanted
    assert rows[number["/hot"]]["targets"] == []


def test_what_is_not_followed_is_logged_with_the_reason_as_a_flag(tmp_path: Path) -> None:
    """And is asked by nobody: a nofollow link, one that the policy denies, one out of scope, a redirect there."""
    away = "http://away.example/"
    body = f"<a href='/a'>x</a><a rel=nofollow href='/b'>x</a><a href='/c.zip'>x</a><a href='{away}'>x</a>"
    answers = {
        "/": (200, {"content-type": "text/html"}, body.encode(), 0.01),
        "/a": (302, {"location": away}, b"", 0.01),
    }

    def answer(fetch: Fetch, at: float) -> Any:
        return answers.get(fetch.url.removeprefix(HOME), (404, {}, b"", 0.01))

    for every in ('[ranking]\nevery = "1m"\n', ""):
        collection = collection_of([f"{HOME}/"], rest=f"{every}[policies.default]\ndeny = ['zip$']\n")
        clock, links = ManualClock(1_000_000.0), tmp_path / "links"
        importance = live_importance(collection, tmp_path, writer="ant", at=clock.now(), ranker=AtOnce())
        crawl = Drive(collection, answer, clock=clock, importance=importance, recrawl=False)
        crawl.run()
        crawl.frontier.close()
        assert paths(crawl) == ["/", "/a"]
        assert crawl.metrics.get("judge/out_of_scope") == 2
    pages, names = (f"read_parquet('{links}/segments/{kind}-*.parquet')" for kind in ("links", "names"))
    query = f"""
        with link as (select source, unnest(targets) as target, unnest(flags) as flag from {pages})
        select one.url, other.url, flag from link join {names} one on source = one.fingerprint
        join {names} other on target = other.fingerprint order by all
    """
    assert duckdb.execute(query).fetchall() == [
        (f"{HOME}/", away, UNFOLLOWED),
        (f"{HOME}/", f"{HOME}/a", FOLLOWED),
        (f"{HOME}/", f"{HOME}/b", NOFOLLOW),
        (f"{HOME}/", f"{HOME}/c.zip", UNFOLLOWED),
        (f"{HOME}/a", away, REDIRECT | UNFOLLOWED),
    ]


@pytest.mark.parametrize("rest", [RANKING, ""])
def test_by_backlinks_what_more_pages_link_is_asked_sooner_before_any_ranking_too(tmp_path: Path, rest: str) -> None:
    crawl, _ = drive(tmp_path, LINKS, rest=f"{rest}[policies.default]\nscore = {{ backlinks = 1 }}\n", hand=2)
    crawl.run()
    assert crawl.asked().index(f"{HOME}/hot") < 10


def test_without_rankings_a_page_that_many_pages_link_to_is_fetched_before_pages_found_earlier(tmp_path: Path) -> None:
    crawl, _ = drive(tmp_path, LINKS, rest="", hand=2)
    crawl.run()
    plain = crawl.asked().index(f"{HOME}/hot")
    crawl, ranker = drive(tmp_path, LINKS, rest="[policies.default]\nscore = { pagerank = 1 }\n", hand=2)
    crawl.run()
    assert not ranker.jobs  # learned online alone
    assert crawl.asked().index(f"{HOME}/hot") < plain / 2


def test_before_the_first_ranking_pages_are_fetched_in_the_order_in_which_they_were_found(tmp_path: Path) -> None:
    crawl, ranker = drive(tmp_path, LINKS, rest='[ranking]\nevery = "1d"\n', hand=2)
    crawl.run()
    assert not ranker.jobs
    assert paths(crawl) == ["/", *PAGES, "/hot", *(f"/z{n}" for n in range(20))]


def test_risen_pages_of_a_site_are_returned_once_best_first_without_fetched_ones() -> None:
    risen = RisenPages(most=100)
    for key, worth in [(b"a", 2.0), (b"b", 8.0), (b"c", 4.0), (b"a", 16.0), (b"d", 1.0)]:
        risen.add("s", key, worth)
    risen.add("t", b"e", 32.0)
    risen.drop("s", b"b")
    assert risen.take("s", 1) == [b"a"]
    assert risen.take("s", 9) == [b"c", b"d"]
    assert risen.take("s", 9) == []
    for number in range(100):
        risen.add("u", bytes((number,)), 1.0)
    assert len(risen.take("t", 9) + risen.take("u", 999)) <= 100


def test_a_ranking_is_begun_in_time_and_brought_into_the_queues(tmp_path: Path) -> None:
    crawl, ranker = drive(tmp_path, LINKS, rest='[ranking]\nevery = "5s"\n', hand=2)
    crawl.run()
    assert len(ranker.jobs) >= 3
    assert crawl.metrics.get("ranking/epochs") >= 3
    assert crawl.metrics.get("ranking/moved") > 0
    assert EpochScores(tmp_path / "scores").epoch == crawl.metrics.get("ranking/epochs")


def test_a_seeds_file_that_is_cut_when_a_ranking_begins_does_not_end_the_crawl(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, seeds, ranker, clock = tmp_path / "policy.toml", tmp_path / "seeds.txt", AtOnce(), ManualClock(1_000_000.0)
    rules = "[ranking]\nevery = '5s'\n[network]\nallow_private = true\n"
    rules += "[politeness]\nuser_agent = 'one/1 (+https://a.example)'\n"
    file.write_text(f"[collection]\nname = 'one'\nseeds_file = 'seeds.txt'\nlimits.pages = 99\n{rules}")
    seeds.write_text(f"{HOME}/\n")
    collection = read_collection(file)
    importance = live_importance(collection, tmp_path, writer="ant", at=clock.now(), ranker=ranker)
    crawl = Drive(collection, web(LINKS), clock=clock, importance=importance, recrawl=False)
    seeds.write_text(f"{HOME}/\ncut off")
    crawl.run(until=lambda: "seeds.txt:2" in caplog.text)
    assert not ranker.jobs
    seeds.write_text(f"{HOME}/\n")
    crawl.run(until=lambda: ranker.jobs)
    assert ranker.jobs


def test_rankings_that_are_asked_for_take_a_twentieth_of_a_core_at_most(tmp_path: Path) -> None:
    crawl, ranker = drive(tmp_path, LINKS, rest='[ranking]\nevery = "1s"\n', cost_s=0.4)
    crawl.run()
    begun = [job.at for job in ranker.jobs]
    assert len(begun) >= 3
    assert min(np.diff(begun)) >= 8.0


@pytest.mark.parametrize(("cost_s", "ranked"), [(0.0, True), (1e9, False)])
def test_a_collection_that_doubled_is_ranked_unless_that_costs_more_than_the_share_of_rankings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost_s: float, ranked: bool
) -> None:
    monkeypatch.setattr("webfountain.ranking.rankings.FEWEST", 10)
    crawl, ranker = drive(tmp_path, LINKS, rest='[ranking]\nevery = "1d"\n', cost_s=cost_s)
    crawl.run()
    assert bool(ranker.jobs) == ranked


def test_a_crawl_that_begins_again_is_ranked_when_its_crawled_pages_doubled_not_its_known_ones(tmp_path: Path) -> None:
    known = np.arange(3000, dtype=np.uint64)
    scores = {"pagerank": np.ones(3000), "crawled": np.where(known < 300, 1.0, 0.0)}
    publish_scores(tmp_path / "scores", known, scores)
    ranker, collection = AtOnce(), collection_of([f"{HOME}/"], rest='[ranking]\nevery = "1d"\n')
    importance = live_importance(collection, tmp_path, writer="ant", at=0.0, ranker=ranker)
    assert importance is not None
    for first, last in ((0, 299), (299, 300)):
        assert not ranker.jobs
        pages = [PageRecord(f"{HOME}/{number}") for number in range(first, last)]
        importance.record([LinkedPage(page, HOME, [], 1.0, again=False) for page in pages])
        importance.tend(1.0, known=3000)
    assert len(ranker.jobs) == 1
    importance.close()


def test_the_next_crawl_begins_with_the_last_ones_ranking(tmp_path: Path) -> None:
    first, _ = drive(tmp_path, LINKS, rest='[ranking]\nevery = "5s"\n')
    first.run()
    first.frontier.close()
    again, _ = drive(tmp_path, LINKS, rest='[ranking]\nevery = "1d"\n')
    again.run(seconds=3)
    worth = {record.url: record.importance for _, record in again.store.pages.records()}
    assert worth[f"{HOME}/hot"] > 2 * worth[f"{HOME}/z1"]


def test_a_url_that_speaks_of_the_topic_is_asked_before_others(tmp_path: Path) -> None:
    links = {"/": ["/garden/roses", "/blog/stream-processing", "/stream-of-water-and-much-else", "/garden/lilies"]}
    rest = "[policies.default]\nscore = { topic = 1 }\ntopic = { query = 'stream processing', min_similarity = 0.2 }\n"
    crawl, _ = drive(tmp_path, links, rest=rest, hand=1)
    crawl.run()
    asked = [url.removeprefix(HOME) for url in crawl.asked()]
    assert asked[:3] == ["/", "/blog/stream-processing", "/stream-of-water-and-much-else"]


TOPIC = "[policies.default]\ntopic = { query = 'stream processing', min_similarity = 0.5 }\n"


def topical(pages: dict[str, tuple[str, list[tuple[str, str]]]]) -> Any:
    """A site's pages by path: text, and (path, what is written on it) of each link."""

    def answer(fetch: Fetch, at: float) -> Any:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        text, links = pages.get(fetch.url.removeprefix(HOME), ("nothing to see", []))
        body = text + "".join(f" <a href='{path}'><b>{anchor}</b></a>" for path, anchor in links)
        return 200, {"content-type": "text/html"}, body.encode(), 0.01

    return answer


def crawl_on_topic(
    pages: dict[str, tuple[str, list[tuple[str, str]]]],
    *,
    rest: str = TOPIC,
    store: Any = None,
    folder: Any = None,
    hand: int = 1,
) -> Drive:
    """A crawl that holds one page of a site at a time, so that each choice is made with all that is known."""
    collection, clock = collection_of([f"{HOME}/"], rest=rest), ManualClock(1_000_000.0)
    importance = live_importance(collection, folder or Path("never"), writer="ant", at=clock.now(), ranker=AtOnce())
    return Drive(
        collection, topical(pages), clock=clock, importance=importance, recrawl=False, hand=hand, store=store
    )  # fmt: skip


def paths(crawl: Drive) -> list[str]:
    return [url.removeprefix(HOME) for url in crawl.asked()]


MANY = [(f"/page{number}", "more") for number in range(12)]


def test_a_page_that_a_link_text_or_its_url_says_is_on_topic_is_asked_before_all_others() -> None:
    """Cho 1998: hot_queue. Without a topic they come in the order of their links."""
    pages = {"/": ("home", [*MANY, ("/a", "All of Stream Processing"), ("/b/stream%2Dprocessing", "more")])}
    crawl = crawl_on_topic(pages)
    crawl.run()
    assert set(paths(crawl)[1:3]) == {"/a", "/b/stream%2Dprocessing"}
    plain = crawl_on_topic(pages, rest="")
    plain.run()
    assert paths(plain)[-2:] == ["/a", "/b/stream%2Dprocessing"]
    assert {record.scores for _, record in plain.store.pages.records()} == {()}


@pytest.mark.parametrize("hand", [1, 16])
def test_pages_within_three_links_of_one_on_topic_are_asked_before_all_others_and_the_fourth_is_not(hand: int) -> None:
    """But for one that is asked meanwhile each time; by their places in the site the others go first.

    What is in the site's hand and not on topic goes back for them.
    """
    deep = [f"/deep/down/there{number}" for number in range(7)]
    chain = {path: ("on the way", [(following, "next")]) for path, following in pairwise(deep)}
    pages = {
        "/": ("home", [*MANY, ("/hot", "stream processing")]),
        "/hot": ("Stream processing, stream after stream, processing on and on", [(deep[0], "next")]),
        **chain,
    }
    crawl = crawl_on_topic(pages, rest=f"{TOPIC}score = {{ location = 1 }}\n", hand=hand)
    crawl.run()
    asked = paths(crawl)
    assert asked[1] == "/hot"
    assert [path for path in asked[2:8] if path in deep] == deep[:3]
    assert asked[-4:] == deep[3:]
    crawl.check_valid()


def test_a_page_that_proves_to_be_off_topic_makes_no_other_page_hot() -> None:
    pages = {
        "/": ("home", [*MANY, ("/bait", "stream processing")]),
        "/bait": ("casino", [("/deep/down/there", "next")]),
    }
    crawl = crawl_on_topic(pages, rest=f"{TOPIC}score = {{ location = 1 }}\n")
    crawl.run()
    asked = paths(crawl)
    assert asked[1] == "/bait"
    assert asked[-1] == "/deep/down/there"


@pytest.mark.parametrize("rule", ["first", "most-trusted"])
def test_a_waiting_page_becomes_hot_when_a_later_link_says_so(rule: str) -> None:
    pages = {
        "/": ("home", [*MANY, ("/late", "more"), *((f"{path}0", "more") for path, _ in MANY)]),
        "/page0": ("a page of many other words and more besides them", [("/late", "on stream processing")]),
    }
    crawl = crawl_on_topic(pages, rest=f"{TOPIC}[conflict]\nrule = '{rule}'\n")
    crawl.run()
    asked = paths(crawl)
    assert 0 < asked.index("/late") - asked.index("/page0") <= 2  # one was in the hand
    crawl.check_valid()


def test_what_is_hot_is_kept_through_a_restart(tmp_path: Path) -> None:
    pages = {
        "/": ("home", [*MANY, ("/hot", "stream processing")]),
        "/hot": ("stream processing", [("/c1", "next"), ("/c2", "next")]),
        "/c1": ("on the way", [("/d1", "next")]),
    }
    store = open_store(f"rocksdb://{tmp_path}/store", collection="test", period_s=86_400.0, fastest_s=900.0)
    before = crawl_on_topic(pages, store=store)
    before.run(until=lambda: "/hot" in paths(before) and not before.flying)
    before.frontier.close()
    store = open_store(f"rocksdb://{tmp_path}/store", collection="test", period_s=86_400.0, fastest_s=900.0)
    after = crawl_on_topic(pages, store=store)
    after.run()
    asked = [path for path in paths(after) if path != "/hot"]
    assert set(asked[:3]) == {"/c1", "/c2", "/d1"}
    after.frontier.close()


def test_what_was_seen_shows_which_words_are_rare() -> None:
    """Every page speaks of data, one of streams: a link that says *streams* promises more than one that says *data*."""
    texts = {path: (f"data {path}", list[tuple[str, str]]()) for path, _ in MANY}
    pages = {"/": ("data", [*MANY, ("/first", "some data"), ("/second", "some streams")]), **texts}
    crawl = crawl_on_topic(pages, rest="[policies.default]\ntopic = { query = 'data streams' }\n")
    crawl.run()
    learned = crawl.importance
    assert learned is not None
    common, rare = (
        learned.words.topics.promise("data streams", f"{HOME}/", text) for text in ("some data", "some streams")
    )
    assert rare > 1.5 * common > 0


def test_which_words_are_rare_is_known_after_a_kill_and_published_once_a_minute() -> None:
    """A hundred pages, one a second."""
    links = [(f"/page{number}", "more") for number in range(99)]
    pages = {"/": ("data", links), **{path: (f"data {path}", list[tuple[str, str]]()) for path, _ in links}}
    rest = "[policies.default]\ntopic = { query = 'data' }\n"
    store = open_store("memory:", collection="test", period_s=86_400.0, fastest_s=900.0)
    crawl_on_topic(pages, rest=rest, store=store).run()  # and nobody closes it
    published = words_of(store.board)
    assert 50 < published.texts == published.texts_with["data"] < 100
    again = crawl_on_topic({}, rest=rest, store=store).importance
    assert again is not None
    assert again.words.topics.exchange(WordCounts()).texts == published.texts
    store.board.put_value(WORDS, b"of another version")
    assert words_of(store.board) == WordCounts()


def test_link_texts_are_logged_where_the_policy_of_a_page_has_a_topic(tmp_path: Path) -> None:
    pages = {"/": ("home", [("/a", "on <i>stream</i> processing"), ("/b", ""), ("/a", "again")])}
    for number, rest in enumerate((f"{RANKING}{TOPIC}", RANKING)):
        crawl = crawl_on_topic(pages, rest=rest, folder=tmp_path / str(number))
        crawl.run()
        crawl.frontier.close()
        tables = LinkLogReader(str(tmp_path / str(number) / "links")).rows()
        anchors = [row["anchors"] for table in tables for row in table.to_pylist() if row["targets"]]
        assert anchors == ([None] if number else [["on stream processing again", ""]])


def test_of_a_full_collection_a_page_on_topic_stays_and_one_that_only_promised_goes() -> None:
    collection = collection_of([f"{HOME}/"], rest=TOPIC)
    importance = live_importance(collection, Path("never"), writer="ant", at=0.0)
    assert importance is not None
    on, off = (
        PageRecord(url=f"{HOME}/{name}", state="crawled", importance=600.0, scores=scores)
        for name, scores in (("on", (0.5, 0.0)), ("off", (0.1, 1.0)))
    )
    waiting = PageRecord(url=f"{HOME}/stream-processing")
    worth = importance.importance([on, off, waiting])
    assert min(worth[0], worth[2]) >= HOT > worth[1]


@pytest.mark.parametrize("score", ["{ location = 1 }", "{ pagerank = 1, location = 8 }"])
def test_a_policy_weighs_what_its_pages_are_worth_by(tmp_path: Path, score: str) -> None:
    links = {"/": ["/a/b/deep", "/a/less", "/top"]}
    crawl, _ = drive(tmp_path, links, rest=f"[policies.default]\nscore = {score}\n", hand=1)
    crawl.run()
    assert crawl.asked() == [f"{HOME}{path}" for path in ("/", "/top", "/a/less", "/a/b/deep")]
    assert list(tmp_path.iterdir()) == []  # nothing is ranked, nothing logged


@pytest.mark.parametrize("rest", ["", '[ranking]\nevery = "1d"\n'])
def test_where_more_sites_wait_than_there_is_room_for_those_that_many_sites_link_join_first(
    tmp_path: Path, rest: str
) -> None:
    """Sixty sites in a row; ten that join early link one that was discovered last of all."""
    sites = [f"http://s{number}.example" for number in range(60)]
    hub, popular = sites[0], "http://z-popular.example"

    def answer(fetch: Fetch, at: float) -> Any:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        found = [*sites[1:], popular] if fetch.site == hub else [popular] if fetch.site in sites[1:11] else []
        body = "".join(f"<a href='{site}/'>x</a>" for site in found)
        return 200, {"content-type": "text/html"}, f"{fetch.url} {body}".encode(), 0.01

    collection = collection_of([f"{hub}/"], collection='scope = "any"\n', politeness="per_ip = false\n", rest=rest)
    clock = ManualClock(1_000_000.0)
    importance = live_importance(collection, tmp_path, writer="ant", at=clock.now(), ranker=AtOnce())
    crawl = Drive(collection, answer, clock=clock, importance=importance, recrawl=False, active_sites=2)
    crawl.run()
    asked = crawl.asked()
    assert len(asked) == len(set(asked)) == 61
    assert (asked.index(f"{popular}/") < 35) == bool(rest)


def crawl_by_budget(web: LinkedWeb, folder: Path, fetches: int, *, rest: str) -> list[int]:
    """Pages in the order in which a crawl asks for them that may ask for a page in five seconds."""
    collection = collection_of(
        [web.urls[0]], collection='scope = "any"\n', politeness="per_ip = false\n", period="1000s",
        rest=f"capacity_pages_per_period = 200\n{rest}",
    )  # fmt: skip
    clock = ManualClock(1_000_000.0)
    importance = live_importance(collection, folder, writer="ant", at=clock.now(), ranker=AtOnce())
    crawl = Drive(collection, web.answer, clock=clock, importance=importance, recrawl=False, hand=1)
    crawl.run(until=lambda: len(crawl.asked()) >= fetches)
    return [web.number[url] for url in crawl.asked()]


def test_a_tenth_of_the_pages_brings_four_fifths_of_what_the_ideal_order_would(tmp_path: Path) -> None:
    web = LinkedWeb(seed=3)
    ideal = virtual_crawl(GraphFile(web.indptr, web.indices), 0, "ideal", importance=web.importance).order.tolist()
    tenth = len(web.urls) // 10
    order = crawl_by_budget(web, tmp_path, tenth, rest='[ranking]\nevery = "250s"\n')
    assert web.found(order, tenth) >= 0.8 * web.found(ideal, tenth)


def test_a_ranker_that_is_killed_leaves_the_epoch_in_force_and_the_log_readable(tmp_path: Path) -> None:
    crawl, _ = drive(tmp_path, LINKS, rest='[ranking]\nevery = "5s"\n')
    crawl.run()
    crawl.frontier.close()
    before = EpochScores(tmp_path / "scores").epoch
    job = Job(str(tmp_path / "links"), str(tmp_path / "scores"), at=2e6, newer_than=1.5e6)
    killed = RankerProcess()
    killed.start(job)
    killed.stop()  # SIGKILL, wherever it is
    after = EpochScores(tmp_path / "scores").epoch
    assert after in (before, before + 1)
    assert sum(table.num_rows for table in LinkLogReader(str(tmp_path / "links")).rows()) >= 42
    whole = RankerProcess()
    whole.start(msgspec.structs.replace(job, at=3e6, newer_than=2.5e6))
    wait_for(whole)
    assert whole.failed() is None
    assert whole.cost_s() > 0.01
    assert EpochScores(tmp_path / "scores").epoch == after + 1
    whole.stop()


def test_a_collection_of_a_fixed_size_comes_to_rest_with_the_best_pages(tmp_path: Path) -> None:
    """Though the pages' texts change all the time, pages do not displace each other in turn."""
    web = LinkedWeb(4, seed=5)
    most = len(web.urls) // 10

    def answer(fetch: Fetch, at: float) -> Any:
        status, headers, body, seconds = web.answer(fetch, at)
        return status, headers, body + f"at {at // 500}".encode(), seconds

    collection = collection_of(
        [web.urls[0]], collection=f'scope = "any"\n[collection.limits]\npages = {most}\n', period="1000s",
        politeness="per_ip = false\n", rest=f'capacity_pages_per_period = {2 * most}\n[ranking]\nevery = "250s"\n',
    )  # fmt: skip
    clock = ManualClock(1_000_000.0)
    importance = live_importance(collection, tmp_path, writer="ant", at=clock.now(), ranker=AtOnce())
    crawl = Drive(collection, answer, clock=clock, importance=importance)
    crawl.run(seconds=3_000.0)
    before = crawl.metrics.get("collection/evicted")
    crawl.run(seconds=1_500.0)
    assert crawl.metrics.get("collection/evicted") == before > 0
    held = [web.number[record.url] for _, record in crawl.store.pages.records(state="crawled")]
    assert 0.9 * most <= len(held) <= most
    best = sorted(web.importance, reverse=True)[:most]
    assert sum(web.importance[number] for number in held) >= 0.8 * sum(best)
