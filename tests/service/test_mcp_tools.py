"""The tools answer what the collection holds, and keep every text of a stranger under `untrusted`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.crawled import SITES, crawled_store
from tests.service.pages.strangers import SITE, hostile_store
from webfountain.api.search import INDEX_FILE
from webfountain.report.store_reading import copies, reading
from webfountain.search.follower import Follower
from webfountain.search.search_index import SearchIndex
from webfountain.service.mcp_tools import MAX_TEXT, CollectionTools
from webfountain.service.pages.strangers_text import _INVISIBLE
from webfountain.service.served_store import ServedStore
from webfountain.service.settings import StoreEntry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a search index."""
    return with_index(tmp_path_factory.mktemp("tools") / "store", crawled_store)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same of a site where every text is a payload."""
    return with_index(tmp_path_factory.mktemp("hostile") / "store", hostile_store)


def with_index(folder: Path, crawl: Callable[[Path], str]) -> str:
    url = crawl(folder)
    with reading(url) as store, copies(url, None) as pages:
        index = SearchIndex(folder / INDEX_FILE)
        Follower(store, pages, index, unreadable=lambda _: None).catch_up()
        index.close()
    return url


def ask(url: str, questions: Callable[[CollectionTools], Awaitable[None]]) -> None:
    async def run() -> None:
        store = ServedStore(StoreEntry("one", url))
        try:
            await questions(CollectionTools(store))
        finally:
            store.close()

    asyncio.run(run())


def test_each_tool_answers_from_the_collection(plain: str) -> None:
    async def questions(tools: CollectionTools) -> None:
        found = json.loads(await tools.search("words of a page", site=SITES[0], limit=100))
        assert found["index"]["behind"] == 0
        urls = {each["untrusted"]["url"] for each in found["items"]}
        assert f"{SITES[0]}/3" in urls
        assert all(url.startswith(SITES[0]) for url in urls)
        page = json.loads(await tools.read_page(f"{SITES[0]}/3", offset=2))
        assert page["untrusted"]["text"].startswith(" words of a page"[1:]) or "words" in page["untrusted"]["text"]
        assert page["next_offset"] is None
        page = json.loads(await tools.read_page(f"{SITES[0]}/3", format="markdown"))
        assert f"[4]({SITES[0]}/4)" in page["untrusted"]["text"]
        page = json.loads(await tools.read_page(f"{SITES[0]}/3", main=True))
        assert page["untrusted"]["text"] == "/3 words of a page"
        assert json.loads(await tools.freshness())["known"] > 0
        assert json.loads(await tools.freshness(f"{SITES[0]}/7"))["state"] == "gone"
        assert json.loads(await tools.freshness(f"{SITES[0]}/none")) == {"known": False}
        assert json.loads(await tools.explain(f"{SITES[0]}/3"))["untrusted"]["why"]
        assert "not known" in json.loads(await tools.read_page(f"{SITES[0]}/none"))["error"]
        assert "limit" in json.loads(await tools.search("page", limit=1000))["error"]

    ask(plain, questions)


def test_changes_come_in_parts_each_once(plain: str) -> None:
    async def questions(tools: CollectionTools) -> None:
        urls, cursor = list[str](), ""
        while True:
            part = json.loads(await tools.changes_since(cursor, hours=90_000.0, site=SITES[1], limit=7))
            if not part["items"] and part["cursor"] == cursor:
                break
            urls += [each["untrusted"]["url"] for each in part["items"]]
            cursor = part["cursor"]
        assert len(set(urls)) == len({url for url in urls if url.startswith(SITES[1])}) > 25

    ask(plain, questions)


def strings_outside(value: Any) -> Iterator[str]:
    """Every text of an answer that is not under `untrusted`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from strings_outside(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "untrusted":
                yield from strings_outside(each)


def test_texts_of_strangers_are_marked_and_visible(hostile: str) -> None:
    async def questions(tools: CollectionTools) -> None:
        answers = [await tools.changes_since(hours=90_000.0, limit=100), await tools.search("script", limit=50)]
        answers += [await tools.read_page(f"{SITE}/{number}") for number in range(16)]
        answers += [await tools.explain(f"{SITE}/{number}") for number in range(16)]
        for answer in answers:
            assert not _INVISIBLE.search(answer)
            assert len(answer) < 4 * MAX_TEXT + 100_000
            for text in strings_outside(json.loads(answer)):
                assert "canary" not in text
                assert "evil" not in text
        assert any("canary" in answer for answer in answers)
        assert "[U+202E]" in answers[2 + 11]

    ask(hostile, questions)
