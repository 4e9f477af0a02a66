"""Every page answers, shows no stranger's text as anything but text, and lets nobody operate who may not."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.api.crawled import PAGES, SITES, crawled_store, served
from tests.service.pages.strangers import PAYLOADS, SITE, hostile_store
from webfountain.api.search import INDEX_FILE
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import BlockNote, ForgetNote, NowNote, Pause
from webfountain.records import Link
from webfountain.report.last_check import CheckResult, keep_check
from webfountain.report.store_reading import inbox_folder, reading
from webfountain.search.search_index import IndexedText, SearchIndex
from webfountain.service.pages.reports import TABLES
from webfountain.service.pages.strangers_text import _INVISIBLE
from webfountain.service.pages.views import VIEWS
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.api.crawled import ServiceClient

ONE = "/collections/one"
MAX_COMPRESSED = 100_000


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store that nobody writes."""
    return crawled_store(tmp_path_factory.mktemp("pages") / "store")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of a site where every text is a payload."""
    return hostile_store(tmp_path_factory.mktemp("hostile") / "store")


def ask(url: str, questions: Callable[[ServiceClient], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with served(url, **settings) as service:
            await questions(service)

    asyncio.run(run())


async def page(service: ServiceClient, path: str, *, status: int = 200) -> str:
    async with service.client.get(service.address + path) as response:
        body = await response.text()
        assert response.status == status, body[-500:]
        assert "script-src 'self'" in response.headers["Content-Security-Policy"]
        return body


async def send(service: ServiceClient, path: str, *, status: int = 200, origin: str | None = None, **form: str) -> str:
    headers = {} if origin is None else {"Origin": origin}
    async with service.client.post(service.address + path, data=form, headers=headers) as response:
        body = await response.text()
        assert response.status == status, body[-500:]
        return body


def addresses(site: str, urls: list[str]) -> list[str]:
    """Paths of all pages, those about a site and about some URLs among them."""
    plain = [f"{ONE}{view.path}" for view in VIEWS if view.name not in ("site", "pages", "compare", "links")]
    return [
        "/",
        *plain,
        f"{ONE}?span=days",
        f"{ONE}/changes?view=side",
        f"{ONE}/sites?only=failing",
        f"{ONE}/site?site={quote(site)}",
        f"{ONE}/pages?site={quote(site)}",
        *(f"{ONE}/{name}?url={quote(url)}" for url in urls for name in ("page", "compare", "links")),
        *(f"{ONE}/changes?{name}={quote(PAYLOADS[2])}" for name in ("site", "prefix")),
        *(f"{ONE}/sites?after={quote(payload, errors='replace')}" for payload in PAYLOADS),
        *(
            f"{ONE}/{name}?url={quote(payload, errors='replace')}"
            for payload in PAYLOADS
            for name in ("page", "compare", "links")
        ),
    ]


def assert_harmless(body: str, path: str) -> None:
    """Only our own script, no handlers, no styles, no foreign frames or forms, links of http(s), nothing invisible."""
    shown = re.sub(
        r"(<textarea[^>]*>).*?(</textarea>)", r"\1\2", body, flags=re.DOTALL
    )  # an editor keeps what is in it
    assert not _INVISIBLE.search(shown), f"{path}: an invisible character"
    assert "1337" not in body, f"{path}: a text was run as a template"
    found = LexborHTMLParser(body)
    scripts = [node.attributes.get("src") or "inline" for node in found.css("script")]
    assert len(scripts) == 1, path
    assert scripts[0].startswith("/assets/live.js"), path
    assert not found.css("style, iframe, base, object, embed, img, animate, meta[http-equiv]"), path
    assert found.css_first("footer") is not None, f"{path}: a text left its frame"
    for node in found.css("*"):
        for name, value in node.attributes.items():
            assert not name.startswith("on"), f"{path}: {name}"
            assert name not in ("style", "srcdoc", "autofocus"), f"{path}: {name}"
            if name in ("href", "src", "action", "formaction"):
                assert (value or "").startswith(("/", "#", "http://", "https://")), f"{path}: {value}"
                assert not (value or "").startswith("//"), f"{path}: {value}"


def test_every_page_shows_the_texts_of_strangers_as_texts(hostile: str) -> None:
    async def questions(service: ServiceClient) -> None:
        await service.log_in()
        _, part = await service.get("/v1/collections/one/pages", site=SITE, limit=200)
        urls = [each["url"] for each in part["items"]]
        assert len(urls) > 2 * len(PAYLOADS) - 4
        bodies = {}
        for path in addresses(SITE, urls):
            bodies[path] = await page(service, path)
            assert_harmless(bodies[path], path)
            assert len(bodies[path]) < 1_000_000, path
        text = "".join(bodies.values())
        assert "&lt;script&gt;canary()&lt;/script&gt;" in text
        assert "[U+202E]" in text

    ask(hostile, questions)


def test_an_edited_policy_with_payloads_is_shown_as_text(hostile: str) -> None:
    async def questions(service: ServiceClient) -> None:
        await service.log_in()
        for payload in PAYLOADS:
            text = f'[collection]\nname = "{payload}"\n'
            found = await send(service, f"{ONE}/policy", text=text, digest=payload[:60], act="check")
            assert_harmless(found, payload)
            assert_harmless(await send(service, f"{ONE}/now", urls=payload, act="check"), payload)
            assert_harmless(await send(service, f"{ONE}/now", urls=payload, act="send"), payload)

    ask(hostile, questions)


def test_pages_say_what_the_collection_holds(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        assert ">one<" in await page(service, "/")
        assert "Fetches by outcome" in await page(service, ONE)
        for order in ("name", "pages", "failed", "changed", "due"):
            assert SITES[0] in await page(service, f"{ONE}/sites?sort={order}")
        gone = await page(service, f"{ONE}/page?url={SITES[0]}/7")
        assert ">gone<" in gone
        assert "Page /3" in await page(service, f"{ONE}/page?url={SITES[0]}/3")
        changes = await page(service, f"{ONE}/changes?site={SITES[1]}")
        assert SITES[0] not in changes
        assert "not known here" in await page(service, f"{ONE}/site?site=http://c.example", status=404)
        assert "no served collection" in await page(service, "/collections/none", status=404)
        assert "twice" in await page(service, f"{ONE}/sites?after=1&after=2", status=400)
        older = await page(service, f"{ONE}/changes?before=1")
        assert "No entry of the change log matches" in older

    ask(plain, questions)


def test_all_changes_are_reached_page_by_page(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        path: str | None = f"{ONE}/changes"
        urls: list[str] = []
        while path is not None:
            found = LexborHTMLParser(await page(service, path))
            urls += [node.text() for node in found.css(".change h2")]
            more = found.css_first("a[rel=next]")
            path = None if more is None else more.attributes["href"]
            assert len(urls) < 10_000
        _, part = await service.get("/v1/collections/one/changes", limit=200)
        assert set(urls) == {each["url"] for each in part["items"]}

    ask(plain, questions)


def test_a_reader_sees_no_button_and_can_send_no_form(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        for path in (ONE, f"{ONE}/now", f"{ONE}/policy", f"{ONE}/page?url={SITES[0]}/3", f"{ONE}/site?site={SITES[0]}"):
            assert 'method="post"' not in (await page(service, path)).replace(
                f'<form method="post" action="{ONE}/policy">', ""
            )
        await send(service, ONE, status=401, act="pause")
        await service.log_in()
        await send(service, ONE, status=403, origin="http://evil.example", act="pause")
        await send(service, ONE, status=403, origin="null", act="pause")

    ask(plain, questions)


def test_forms_reach_the_inbox_of_the_crawl(tmp_path: Path, plain: str) -> None:
    folder = tmp_path / "store"
    shutil.copytree(plain.removeprefix("rocksdb://"), folder)

    async def questions(service: ServiceClient) -> None:
        await service.log_in()
        assert "stops its requests" in await send(service, ONE, origin=service.address, act="pause")
        checked = await send(service, f"{ONE}/now", urls=f"{SITES[0]}/3\n\n{SITES[0]}/new\nno url", act="check")
        assert [word in checked for word in ("b-known", "b-taken", "b-refused")] == [True] * 3
        assert "1 URL was sent" in await send(service, f"{ONE}/now", urls=f"{SITES[0]}/new", act="send")
        assert "Enter at least one URL" in await send(service, f"{ONE}/now", urls=" \n", act="send")
        where = f"{ONE}/site?site={SITES[1]}"
        assert "not forgotten" in await send(service, where, site=SITES[1], act="forget")
        await send(service, where, site=SITES[1], act="forget", sure="yes")
        assert "until it is unblocked" in await send(service, where, site=SITES[1], act="block")
        assert "no crawling process" in await send(service, f"{ONE}/ants", drain="nobody", sure="yes")
        await send(service, f"{ONE}/page?url={SITES[0]}/3", url=f"{SITES[0]}/3", act="now")

    ask(f"rocksdb://{folder}", questions)
    notes = [received.note for received in Inbox(inbox_folder(folder)).waiting()]
    assert [type(note) for note in notes] == [Pause, NowNote, ForgetNote, BlockNote, NowNote]
    assert notes[1:3] == [NowNote((f"{SITES[0]}/new",)), ForgetNote(SITES[1])]


def test_tables_are_whole_as_csv_and_as_json(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        where = f"{service.address}{ONE}/tables/pages"
        async with service.client.get(where, params={"site": SITES[0]}) as response:
            rows = list(csv.DictReader(io.StringIO(await response.text())))
        assert {row["url"] for row in rows} == {f"{SITES[0]}/{n}" for n in [*range(PAGES), ""]}
        about = {"site": SITES[0], "url": f"{SITES[0]}/", "words": "page"}
        for name, table in TABLES.items():
            params = {"format": "json"} | ({table.about: about[table.about]} if table.about else {})
            async with service.client.get(f"{service.address}{ONE}/tables/{name}", params=params) as response:
                assert response.status == (400 if name == "search" else 200), name
                found = json.loads(await response.text()) if response.status == 200 else []
                assert found or name in (
                    "active",
                    "checks",
                    "plan",
                    "cycles",
                    "blocks",
                    "waiting",
                    "links",
                    "search",
                ), name
            if table.about:
                assert "is missing" in await page(service, f"{ONE}/tables/{name}", status=400)
        await page(service, f"{ONE}/tables/nonsense", status=404)

    ask(plain, questions)


def test_a_filtered_page_offers_the_filtered_table(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        found = LexborHTMLParser(await page(service, f"{ONE}/pages?site={SITES[0]}&state=crawled"))
        links = [node.attributes["href"] or "" for node in found.css(".save a")]
        assert links
        for link in links:
            assert "state=crawled" in link
            async with service.client.get(service.address + link) as response:
                assert response.status == 200, link
        none = {"site": SITES[0], "state": "failed", "format": "json"}
        async with service.client.get(f"{service.address}{ONE}/tables/pages", params=none) as response:
            assert await response.json() == []

    ask(plain, questions)


def test_filtered_changes_and_sorted_sites_offer_the_same_as_tables(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        async def table(path: str) -> list[dict[str, Any]]:
            links = LexborHTMLParser(await page(service, f"{ONE}/{path}")).css(".save a")
            async with service.client.get(service.address + str(links[-1].attributes["href"])) as response:
                rows: list[dict[str, Any]] = await response.json()
                return rows

        whole = await table("changes")
        found = await table(f"changes?verdict=new&prefix={SITES[0]}/1&view=side")
        assert found == [row for row in whole if row["verdict"] == "new" and row["url"].startswith(f"{SITES[0]}/1")]
        assert 0 < len(found) < len(whole)
        assert [row for row in whole if row["site"] == SITES[1]] == await table(f"changes?site={SITES[1]}")
        assert await table("changes?verdict=gone") == await table("changes?least=100") == []
        assert len(await table("sites")) == len(await table("sites?sort=changed")) == 2
        none = {"only": "failing", "format": "json"}
        async with service.client.get(f"{service.address}{ONE}/tables/sites", params=none) as response:
            assert await response.json() == []

    ask(plain, questions)


def test_a_search_by_day_offers_the_table_of_these_days(tmp_path: Path, plain: str) -> None:
    folder = tmp_path / "store"
    shutil.copytree(plain.removeprefix("rocksdb://"), folder)
    with reading(plain) as store:
        end = store.changes.end()
    index = SearchIndex(folder / INDEX_FILE)
    days = {"first": 0.0, "second": 86400.0, "third": 172_800.0}
    index.apply([IndexedText(f"{SITES[0]}/{day}", "new", at, day, "words") for day, at in days.items()], end)
    index.close()

    async def questions(service: ServiceClient) -> None:
        found = LexborHTMLParser(await page(service, f"{ONE}/search?words=words&since=1970-01-02&until=1970-01-02"))
        link = found.css(".save a")[1].attributes["href"] or ""
        async with service.client.get(service.address + link) as response:
            assert [row["title"] for row in await response.json()] == ["second"]

    ask(f"rocksdb://{folder}", questions)


def test_two_versions_are_compared_in_both_views(tmp_path: Path) -> None:
    kept = crawled_store(tmp_path / "kept", seconds=1800.0, rest='[repository]\nkeep = "all"')

    async def questions(service: ServiceClient) -> None:
        home = f"{ONE}/compare?url={quote(SITES[0])}/"
        found = LexborHTMLParser(await page(service, home))
        times = [node.attributes["value"] or "" for node in found.css("#c-new option")]
        assert len(times) > 2
        assert len(found.css("tr.current")) == 2
        assert found.css(".diff.inline ins")
        for old, new in ((times[-1], times[0]), (times[0], times[-1])):
            side = LexborHTMLParser(await page(service, f"{home}&old={old}&new={new}&view=side"))
            assert [node.text(strip=True) for node in side.css(".side del, .side ins")] == [
                str(int(float(old))), str(int(float(new)))
            ]  # fmt: skip
        assert "equal" in await page(service, f"{home}&old={old}&new={old}")
        assert "is kept" in await page(service, f"{home}&old=1&new=2")
        assert "Only one version is kept" in await page(service, f"{ONE}/compare?url={SITES[0]}/3")
        assert "No older version is kept" in await page(service, f"{home}&new={times[-1]}")

    ask(kept, questions)


def test_the_last_check_is_shown(tmp_path: Path, plain: str) -> None:
    folder = tmp_path / "store"
    shutil.copytree(plain.removeprefix("rocksdb://"), folder)

    async def questions(service: ServiceClient) -> None:
        assert "The collection has not been checked yet" in await page(service, f"{ONE}/checks")
        damage = CheckResult(
            1e9, 2.0, whole=False, mended=False, pages=1, sites=1, lost_copies=3, wrong_counts=1,
            examples=["http://a.example/3: it is cut"],
        )  # fmt: skip
        keep_check(None, f"rocksdb://{folder}", damage)
        found = await page(service, f"{ONE}/checks")
        assert "The last check found damage" in found
        assert "3 copies are missing or damaged" in found
        assert "1 URL on 1 site, 0 copies" in found
        assert "1 count was wrong" in found
        assert "http://a.example/3: it is cut" in found
        status, answer = await service.get("/v1/collections/one/check")
        assert (status, answer["result"]["lost_copies"]) == (200, 3)

    ask(f"rocksdb://{folder}", questions)


def test_under_a_base_path_links_and_assets_are_there(plain: str) -> None:
    async def questions(service: ServiceClient) -> None:
        found = LexborHTMLParser(await page(service, ONE))
        paths = [
            node.attributes.get("href") or node.attributes.get("src") or "" for node in found.css("a, link, script")
        ]
        local = {path for path in paths if not path.startswith("#")}
        assert all(path.startswith("/crawl/") for path in local)
        for path in local:
            async with service.client.get(service.address.removesuffix("/crawl") + path) as response:
                assert response.status == 200, path

    ask(plain, questions, base_path="/crawl")


def test_a_store_that_is_away_is_said_on_a_page(tmp_path: Path) -> None:
    async def questions(service: ServiceClient) -> None:
        assert "no folder" in await page(service, "/")
        assert "no folder" in await page(service, ONE, status=503)

    ask(f"rocksdb://{tmp_path}/none", questions)


def test_a_page_of_a_store_without_a_policy_file_is_shown(tmp_path: Path) -> None:
    store = open_store(f"rocksdb://{tmp_path}/store", collection="test", period_s=60.0)
    store.queues.discover([Link(f"{SITE}/1", SITE, fingerprint(f"{SITE}/1"))], at=1.0)
    store.close()

    async def questions(service: ServiceClient) -> None:
        for path in ("", "/changes", "/sites", f"/site?site={SITE}", f"/pages?site={SITE}", "/policy", "/now", "/plan"):
            await page(service, ONE + path)
        assert "cannot be explained" in await page(service, f"{ONE}/page?url={SITE}/1")

    ask(f"rocksdb://{tmp_path}/store", questions)
