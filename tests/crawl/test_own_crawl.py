"""The crawl of a collection beside its fetches: an edited policy file is adopted, and never ends the crawl."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tests.frontier.drive import collection_of
from webfountain.crawl import own_crawl
from webfountain.crawl.own_crawl import OwnCrawl
from webfountain.frontier.inbox.seeds import SeedReport
from webfountain.metrics import Metrics
from webfountain.policy.collection_file import PolicyPoll, read_collection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from webfountain.crawl.session import Session
    from webfountain.policy.collection import Collection


def session_of(*, adopt: Callable[[Collection], None], closing: Callable[[], bool]) -> Session:
    """A session without an engine and without a store, which reads the seeds of a collection as a crawl does."""

    async def call(function: Callable[[], Any]) -> Any:
        await asyncio.sleep(0)
        return function()

    class Slot:
        @property
        def closing(self) -> object:
            return closing() or None

    frontier = SimpleNamespace(work=SimpleNamespace(adopt=adopt))
    opened = SimpleNamespace(
        collection=collection_of(["http://one.example/"]),
        frontier=frontier,
        seeds=lambda collection: SeedReport(len(list(collection.seeds())), 0, {}),
    )
    crawler = SimpleNamespace(engine=SimpleNamespace(_slot=Slot()))
    worker = SimpleNamespace(stir=lambda: None)
    session = SimpleNamespace(opened=opened, spider=None, worker=worker, crawler=crawler, call=call, metrics=Metrics())
    return cast("Session", session)


def test_a_seeds_file_that_is_edited_again_while_it_is_loaded_does_not_end_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(own_crawl, "POLICY_POLL_S", 0.0)
    file, seeds = tmp_path / "policy.toml", tmp_path / "seeds.txt"
    file.write_text(
        '[collection]\nname = "one"\nseeds_file = "seeds.txt"\n[politeness]\nuser_agent = "one/1 (+https://a.example)"'
    )
    texts = iter(["http://one.example/\ncut off", "http://one.example/\nhttp://one.example/two\n"])
    seeds.write_text("http://one.example/")
    poll = PolicyPoll(read_collection(file))
    seeds.write_text("http://one.example/\nhttp://one.example/tw")

    def edit(_: Collection | None = None) -> None:
        if (text := next(texts, None)) is not None:
            seeds.write_text(text)

    def closing() -> bool:
        if "is invalid" in caplog.text:
            edit()
        return "is in force" in caplog.text

    caplog.set_level("INFO")
    crawl = OwnCrawl(session_of(adopt=edit, closing=closing), cast("Any", None), cast("Any", None))
    asyncio.run(asyncio.wait_for(crawl._adopt_edits(poll), 30.0))
    assert "could not be loaded completely" in caplog.text
    assert "seeds.txt:2" in caplog.text
