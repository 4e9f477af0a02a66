"""The service answers what the Python API answers, in parts, with ETags, and says plainly what is wrong."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import shutil
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest
from openapi_spec_validator import validate

from tests.api.crawled import PAGES, SITES, crawled_store, served
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import BlockNote, ForgetNote, NowNote, Pause, Resume
from webfountain.report.store_reading import inbox_folder
from webfountain.service.answers import PagesPart
from webfountain.service.table import OPERATIONS, PREFIX
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.api.crawled import ServiceClient

ONE = "/v1/collections/one"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store that nobody writes."""
    return crawled_store(tmp_path_factory.mktemp("service") / "store")


def ask(url: str, questions: Callable[[ServiceClient], Awaitable[None]], **settings: Any) -> None:
    """Ask the service in a loop of its own."""

    async def run() -> None:
        async with served(url, **settings) as service:
            await questions(service)

    asyncio.run(run())


def test_a_copy_is_answered_as_text_markdown_or_html(url: str) -> None:
    page = f"{SITES[0]}/3"

    async def questions(service: ServiceClient) -> None:
        status, found = await service.get(f"{ONE}/text", url=page, format="markdown")
        assert status == 200
        assert f"[4]({SITES[0]}/4)" in found["text"]
        assert (found["title"], found["format"]) == ("Page /3", "markdown")
        _, found = await service.get(f"{ONE}/text", url=page, main="true")
        assert found["text"] == "/3 words of a page"
        _, found = await service.get(f"{ONE}/texts", format="html", limit=3)
        assert all(each["text"].startswith("<title>") for each in found["items"] if each["text"])
        assert (await service.get(f"{ONE}/text", url=f"{SITES[0]}/none"))[0] == 404
        status, problem = await service.get(f"{ONE}/text", url=page, format="pdf")
        assert status == 400
        assert "format" in problem["detail"]

    ask(url, questions)


def test_status_sites_pages_and_page_are_answered(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        status, found = await service.get(f"{ONE}/status")
        assert status == 200
        assert found["known"] == 2 * (PAGES + 1)
        assert not found["crawling"]
        assert 0 < found["freshness"] <= 1
        status, sites = await service.get(f"{ONE}/sites", limit=1)
        assert [each["site"] for each in sites["items"]] == [SITES[0]]
        _, more = await service.get(f"{ONE}/sites", after=sites["next"])
        assert [each["site"] for each in more["items"]] == [SITES[1]]
        assert more["next"] is None
        assert (await service.get(f"{ONE}/site", site=SITES[1]))[1] == more["items"][0]
        status, page = await service.get(f"{ONE}/page", url=f"{SITES[0]}/7")
        assert (status, page["state"], page["status"]) == (200, "gone", 404)
        status, explained = await service.get(f"{ONE}/explain", url=f"{SITES[0]}/8")
        assert (status, explained["known"]) == (200, True)

    ask(url, questions)


def test_pages_come_in_parts_each_once(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            _, part = await service.get(f"{ONE}/pages", site=SITES[0], limit=7, after=after)
            found += [each["url"] for each in part["items"]]
            after = part["next"]
        assert len(found) == len(set(found)) == PAGES + 1
        _, gone = await service.get(f"{ONE}/pages", site=SITES[0], state="gone")
        assert [each["url"] for each in gone["items"]] == [f"{SITES[0]}/7"]

    ask(url, questions)


def test_a_copy_is_an_attachment_that_no_browser_runs(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        async with service.client.get(f"{service.address}{ONE}/copy", params={"url": f"{SITES[0]}/3"}) as response:
            body = await response.read()
            assert b"<title>Page /3" in body
            assert response.headers["Content-Type"] == "application/octet-stream"
            assert response.headers["Content-Disposition"].startswith("attachment")
            assert "sandbox" in response.headers["Content-Security-Policy"]

    ask(url, questions)


def test_sites_are_sorted_from_part_to_part(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        for sort in ("name", "pages", "due", "failed", "changed"):
            _, whole = await service.get(f"{ONE}/sites", sort=sort)
            _, first = await service.get(f"{ONE}/sites", sort=sort, limit=1)
            _, second = await service.get(f"{ONE}/sites", sort=sort, limit=1, after=first["next"])
            assert first["items"] + second["items"] == whole["items"]
            assert {each["site"] for each in whole["items"]} == set(SITES)
        assert whole["items"][0]["last_changed"] >= whole["items"][1]["last_changed"] > 0
        status, found = await service.get(f"{ONE}/sites", sort="pages", after="http://a.example")
        assert (status, "is not a cursor" in found["detail"]) == (400, True)
        assert (await service.get(f"{ONE}/sites", sort="color"))[0] == 400

    ask(url, questions)


def test_texts_and_changes_go_on_where_they_ended(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        texts, since = [], ""
        while True:
            _, part = await service.get(f"{ONE}/texts", limit=25, since=since)
            if not part["items"]:
                break
            texts += part["items"]
            since = part["next"]
        assert {each["url"] for each in texts} == {
            f"{site}/{n}" for site in SITES for n in [*range(PAGES), ""] if n != 7
        }
        _, first = await service.get(f"{ONE}/changes", limit=5)
        assert len(first["items"]) == 5
        assert {each["verdict"] for each in first["items"]} == {"new"}
        _, rest = await service.get(f"{ONE}/changes", limit=200, since=first["next"])
        _, none = await service.get(f"{ONE}/changes", since=rest["next"])
        assert (none["items"], none["next"]) == ([], rest["next"])
        _, some = await service.get(f"{ONE}/changes", limit=200, site=SITES[1], verdict="new")
        assert {each["site"] for each in some["items"]} == {SITES[1]}
        _, waited = await service.get(f"{ONE}/changes", since=rest["next"], feed="long", wait=0.2)
        assert waited["items"] == []

    ask(url, questions)


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("sites?sort=foo", "sort: 'foo' is not allowed (allowed: 'changed' | 'due' | 'failed' | 'name' | 'pages')"),
        ("sites?limit=0", "limit: '0' is not allowed (allowed: a whole number, 1 to 200)"),
        ("page", "url is missing (required)"),
        ("page?ulr=x", "ulr is an unknown key (did you mean url? allowed: url)"),
        ("changes?verdict=new,update", "'update' is not a verdict (allowed: new, changed, minor, returned, gone, "),
    ],
)
def test_the_error_for_a_wrong_parameter_says_what_is_allowed(url: str, path: str, detail: str) -> None:
    async def questions(service: ServiceClient) -> None:
        status, problem = await service.get(f"{ONE}/{path}")
        assert status == 400
        assert problem["detail"].startswith(detail)

    ask(url, questions)


def test_history_and_live_snapshots_are_answered(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        for step in ("minute", "hour", "day"):
            _, history = await service.get(f"{ONE}/history", step=step)
            assert sum(each["fetches"] for each in history["items"]) > 2 * PAGES
        _, live = await service.get(f"{ONE}/live")
        assert live["items"][0]["owner"] == "test"

    ask(url, questions)


def test_what_was_answered_before_is_not_sent_again(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        where = f"{service.address}{ONE}/pages?site={SITES[0]}"
        async with service.client.get(where) as response:
            tag = response.headers["ETag"]
            whole = await response.read()
        async with service.client.get(where, headers={"If-None-Match": tag}) as response:
            assert (response.status, await response.read()) == (304, b"")
        async with aiohttp.ClientSession(auto_decompress=False) as client, client.get(where) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(await response.read()) == whole
        assert len(msgspec.json.decode(whole, type=PagesPart).items) == PAGES + 1

    ask(url, questions)


def test_notes_reach_the_inbox_of_the_crawl(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "store"
    shutil.copytree(url.removeprefix("rocksdb://"), folder)

    async def questions(service: ServiceClient) -> None:
        await service.log_in()
        status, found = await service.post(f"{ONE}/now", {"urls": [f"{SITES[0]}/new#x", "http://c.example/", "no url"]})
        assert status == 200
        assert found["accepted"] == [f"{SITES[0]}/new"]
        assert [each["url"] for each in found["refused"]] == ["http://c.example/", "no url"]
        status, found = await service.post(f"{ONE}/forget", {"site": SITES[1]})
        assert (status, found["accepted"]) == (200, [SITES[1]])
        status, found = await service.post(f"{ONE}/forget", {})
        assert status == 400
        assert (await service.post(f"{ONE}/pause", {}))[0] == 200
        assert (await service.post(f"{ONE}/resume", {}))[0] == 200
        status, found = await service.post(f"{ONE}/block", {"prefix": f"{SITES[0]}/shop/", "until": 4e9})
        assert (status, found["accepted"]) == (200, [f"{SITES[0]}/shop/"])
        assert (await service.post(f"{ONE}/block", {"prefix": SITES[0], "until": 5.0}))[0] == 400
        assert (await service.post(f"{ONE}/unblock", {"prefix": SITES[0]}))[0] == 400
        assert await service.get(f"{ONE}/blocks") == (200, {"items": []})
        status, found = await service.post(f"{ONE}/drain", {"ant": "nobody"})
        assert (status, "no process crawls this store" in found["detail"]) == (400, True)

    ask(f"rocksdb://{folder}", questions)
    notes = [received.note for received in Inbox(inbox_folder(folder)).waiting()]
    assert notes == [
        NowNote((f"{SITES[0]}/new",)),
        ForgetNote(SITES[1]),
        Pause(),
        Resume(),
        BlockNote(f"{SITES[0]}/shop/", 4e9),
    ]


def test_a_policy_is_checked_but_reads_no_file_of_the_machine(url: str) -> None:
    agent = '[politeness]\nuser_agent = "test/1.0 (+http://example.org/bot)"\n'
    good = f'{agent}[collection]\nname = "test"\nseeds = ["{SITES[0]}/"]\n[policies.default]\ndeny = ["/1"]\n'

    async def questions(service: ServiceClient) -> None:
        await service.log_in()
        _, found = await service.post(f"{ONE}/policy/check", {"text": good, "against": True})
        assert found["valid"]
        assert found["effect"]["dropped"]
        _, found = await service.post(f"{ONE}/policy/check", {"text": good.replace("deny", "denny")})
        assert (found["valid"], "denny" in found["error"]) == (False, True)
        text = '[collection]\nname = "x"\nseeds_file = "/etc/passwd"\n'
        _, found = await service.post(f"{ONE}/policy/check", {"text": text})
        assert not found["valid"]
        assert "root" not in found["error"]

    ask(url, questions)


def test_the_description_is_valid_and_complete(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        _, found = await service.get("/v1/openapi.json")
        validate(found)
        assert {path for path in found["paths"] if path.startswith("/v1/collections/")} == {
            each.path for each in OPERATIONS
        }
        _, page = await service.get("/v1/reference")
        assert all(path in page.decode() for path in found["paths"])
        assert b"<script" not in page
        assert found["paths"][f"{PREFIX}/now"]["post"]["security"] == [{"token": []}, {"session": []}]

    ask(url, questions)


def test_a_scrape_has_the_figures_of_all_collections(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        status, found = await service.get("/metrics")
        text = found.decode()
        assert status == 200
        assert 'webfountain_store_up{collection="one"} 1.0' in text
        assert "webfountain_freshness_ratio" in text
        assert "http://a.example" not in text, "no label names a site"
        assert 'ant="test"' not in text, "that crawl is dead"

    ask(url, questions)


def test_under_a_base_path_everything_is_there(url: str) -> None:
    async def questions(service: ServiceClient) -> None:
        assert service.address.endswith("/crawl")
        assert (await service.get(f"{ONE}/status"))[0] == 200
        assert (await service.get("/healthz"))[1] == {"alive": True}
        await service.log_in()
        assert (await service.post(f"{ONE}/forget", {}))[0] == 400

    ask(url, questions, base_path="/crawl")


def test_a_store_that_comes_and_goes_is_said_and_served_again(tmp_path: Path, url: str) -> None:
    folder, whole = tmp_path / "store", url.removeprefix("rocksdb://")

    async def questions(service: ServiceClient) -> None:
        status, found = await service.get(f"{ONE}/status")
        assert (status, found["kind"]) == (503, "store-away")
        assert (await service.get("/readyz"))[0] == 503
        assert (await service.get("/healthz"))[0] == 200
        shutil.copytree(whole, folder)
        status = 503
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                while status == 503:
                    await asyncio.sleep(0.1)
                    status, _ = await service.get(f"{ONE}/status")
        assert status == 200
        assert (await service.get("/readyz"))[0] == 200
        shutil.rmtree(folder)
        open_store(f"rocksdb://{folder}", collection="another", period_s=60.0).close()
        status, found = await service.get(f"{ONE}/status")
        assert (status, found["known"]) == (200, 0), "a store that was made anew is opened anew"

    ask(f"rocksdb://{folder}", questions)


def test_a_store_of_another_format_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    (folder / "db").mkdir(parents=True)
    (folder / "db" / "CURRENT").write_text("MANIFEST-000001\n")

    async def questions(service: ServiceClient) -> None:
        status, found = await service.get(f"{ONE}/status")
        assert status == 503
        assert found["kind"] in ("store-away", "store-format")
        _, found = await service.get("/v1/collections")
        assert not found["items"][0]["available"]
        assert found["items"][0]["problem"]

    ask(f"rocksdb://{folder}", questions)


def test_a_stream_reports_what_changes_while_it_is_open(tmp_path: Path, url: str) -> None:
    """Two streams and a long poll wait; then a page is forgotten by the one who has the store."""
    folder = tmp_path / "store"
    shutil.copytree(url.removeprefix("rocksdb://"), folder)
    store = open_store(f"rocksdb://{folder}", collection=None, period_s=None)
    page = f"{SITES[0]}/5"

    async def questions(service: ServiceClient) -> None:
        where = f"{service.address}{ONE}/changes"
        cursor = store.changes.end()
        async with (
            service.client.get(where, params={"feed": "sse"}) as first,
            service.client.get(where, params={"feed": "sse"}, headers={"Last-Event-ID": cursor}) as second,
        ):
            waiting = asyncio.create_task(service.get(f"{ONE}/changes", since=cursor, feed="long", wait=20))
            for stream in (first, second):
                assert await stream.content.readline() == b"retry: 2000\n"
                await stream.content.readline()
            from webfountain.urls import fingerprint

            store.pages.forget(SITES[0], fingerprint(page), at=5.0)
            for stream in (first, second):
                assert (await stream.content.readline()).startswith(b"id: ")
                assert await stream.content.readline() == b"event: forgotten\n"
                assert page.encode() in await stream.content.readline()
            _, found = await waiting
            assert [each["url"] for each in found["items"]] == [page]

    try:
        ask(f"rocksdb://{folder}", questions)
    finally:
        store.close()


def test_base64_is_how_json_has_bytes() -> None:
    """`CopyAnswer.body` in JSON."""
    assert msgspec.json.encode(b"\xff") == b'"' + base64.b64encode(b"\xff") + b'"'
