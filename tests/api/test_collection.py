"""A program reads a collection as it is, by plain calls or by asyncio, and goes through its changes once."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

import webfountain
from tests.api.crawled import PAGES, SITES, crawled_store
from webfountain import ForgottenPage, GonePage, InputError, NewPage, PageChange
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return crawled_store(tmp_path_factory.mktemp("api") / "store")


@pytest.fixture
def own(tmp_path: Path, url: str) -> str:
    """A store of the test's own."""
    shutil.copytree(url.removeprefix("rocksdb://"), tmp_path / "store")
    return f"rocksdb://{tmp_path / 'store'}"


def test_a_text_comes_in_every_format(url: str) -> None:
    page = f"{SITES[0]}/3"
    with webfountain.open(url) as collection:
        assert collection.text(page, format="markdown").startswith("/3 words of a page")
        assert f"[4]({SITES[0]}/4)" in collection.text(page, format="markdown")
        assert collection.text(page, format="html").startswith("<title>Page /3</title><p>")
        assert collection.text(page, main=True) == "/3 words of a page"
        found = collection.page_text(page, format="markdown", main=True)
        assert (found.title, found.format, found.text) == ("Page /3", "markdown", "/3 words of a page")
        assert found.metadata.title == "Page /3"
        (first, *_) = collection.texts(format="markdown", limit=5)
        assert f"]({SITES[0]}/" in (first.text or "")
        texts = {each.url: each.text for each in collection.texts(main=True, limit=40)}
        assert texts[page] == "/3 words of a page"


def test_versions_are_compared_in_every_format(url: str) -> None:
    with webfountain.open(url) as collection:
        newest = collection.versions(f"{SITES[0]}/")[0].fetched
        assert not collection.compare(f"{SITES[0]}/", old=newest, new=newest, format="markdown").diff


def test_every_public_name_is_there_and_typed() -> None:
    for name in webfountain.__all__:
        assert getattr(webfountain, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        webfountain.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_a_collection_is_read_by_plain_calls(url: str) -> None:
    with webfountain.open(url) as collection:
        status = collection.status()
        assert status.known == 2 * (PAGES + 1)
        assert [site.site for site in collection.sites()] == list(SITES)
        page = collection.page(f"{SITES[0]}/3")
        assert page is not None
        assert page.state == "crawled"
        assert "words of a page" in collection.text(page.url)
        assert b"<title>Page /3" in collection.copy(page.url).body
        assert collection.page(f"{SITES[0]}/unknown") is None
        assert collection.explain(page.url).known
        assert sum(each.fetches for each in collection.history("hour", since=0)) >= status.pages["crawled"]
        assert len(list(collection.every_page(SITES[0]))) == PAGES + 1
        some, cursor = collection.pages(SITES[0], limit=20)
        assert cursor is not None
        more, end = collection.pages(SITES[0], limit=20, after=cursor)
        assert len({page.url for page in some + more}) == PAGES + 1
        assert end is None
        with pytest.raises(InputError, match="not a cursor"):
            collection.pages(SITES[0], after="%")


def test_what_is_wrong_is_one_error_with_one_line(url: str, tmp_path: Path) -> None:
    with webfountain.open(url) as collection:
        with pytest.raises(InputError, match="is not known here"):
            collection.pages("http://c.example")
        with pytest.raises(InputError, match="out of range"):
            collection.sites(limit=0)
        with pytest.raises(InputError, match="has no copy"):
            collection.copy(f"{SITES[0]}/7")
        with pytest.raises(InputError, match="is not a valid name"):
            collection.changes(reader="../escape")
    with pytest.raises(InputError, match="there is no folder"), webfountain.open(f"rocksdb://{tmp_path}/none"):
        pass


def named(change: PageChange) -> str:
    match change:
        case NewPage():
            return "new"
        case GonePage() | ForgottenPage():
            return "gone"
        case _:
            return "other"


def test_a_reader_goes_on_where_it_said_done(own: str) -> None:
    with webfountain.open(own) as collection:
        first = collection.changes(reader="index", limit=10)
        assert {named(change) for change in first} == {"new"}
        assert collection.changes(reader="index", limit=10)[0].cursor == first[0].cursor, "nothing is done yet"
        first[3].done()
    with webfountain.open(own) as collection:
        assert collection.changes(reader="index", limit=1)[0].cursor == first[4].cursor
        assert collection.changes(reader="another", limit=1)[0].cursor == first[0].cursor
        with pytest.raises(RuntimeError, match="give the reader a name"):
            collection.changes(limit=1)[0].done()


def test_changes_are_followed_while_somebody_writes(own: str) -> None:
    async def follow() -> list[str]:
        found: list[str] = []
        async with webfountain.open(own) as collection:
            end = await collection.call(lambda read: read.changes_end())
            store.pages.forget(SITES[0], fingerprint(f"{SITES[0]}/5"), at=1.0)
            async for change in collection.changes(since=end, reader="index"):
                found.append(change.url)
                await change.done()
                if len(found) == 1:
                    store.pages.forget(SITES[0], fingerprint(f"{SITES[0]}/6"), at=2.0)
                else:
                    break
            async for change in collection.changes(reader="index", follow=False):
                found.append(f"again {change.url}")
        return found

    store = open_store(own, collection=None, period_s=None)
    try:
        assert asyncio.run(follow()) == [f"{SITES[0]}/5", f"{SITES[0]}/6"]
    finally:
        store.close()


def test_a_collection_is_read_by_asyncio(url: str) -> None:
    async def read() -> None:
        async with webfountain.open(url) as collection:
            assert (await collection.status()).known == 2 * (PAGES + 1)
            assert [site.site async for site in collection.sites()] == list(SITES)
            assert len([page async for page in collection.pages(SITES[0])]) == PAGES + 1
            texts = [text.url async for text in collection.texts()]
            assert len(texts) == len(set(texts)) == 2 * PAGES
            assert "Page /4" in (await collection.copy(f"{SITES[0]}/4")).body.decode()
            assert await collection.live()

    asyncio.run(read())


def test_a_note_waits_for_the_crawl(own: str) -> None:
    with webfountain.open(own) as collection:
        answer = collection.now([f"{SITES[0]}/wanted", "http://elsewhere.example/"])
        assert answer.accepted == [f"{SITES[0]}/wanted"]
        assert answer.refused[0].url == "http://elsewhere.example/"
        assert collection.forget(f"{SITES[0]}/3").accepted == [f"{SITES[0]}/3"]
        with pytest.raises(InputError, match="give either url or site"):
            collection.forget()


def test_run_crawl_reports_what_is_wrong_with_a_policy(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[collection]\nnam = 1\n")
    with pytest.raises(InputError, match=r"policy\.toml"):
        webfountain.run_crawl(policy, store=f"rocksdb://{tmp_path}/store")
