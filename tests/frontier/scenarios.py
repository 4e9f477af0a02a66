"""Small webs under small policy files, and what a person works out by hand that a crawl of them holds.

A page is written ``host/path``; its site is ``http://host.org``. All hosts stand at one address, so pages are asked
one by one, in the order of what they are worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.frontier.drive import Drive
from webfountain.frontier.inbox.seeds import load_seeds
from webfountain.policy.collection_file import parse_collection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tests.frontier.drive import Answer
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["Scenario", "crawl", "edit", "held", "long", "rules_of", "short", "standings"]

HEAD = """
[collection]
name = "scenario"
scope = "any"
{collection}
seeds = [{seeds}]
[politeness]
user_agent = "tester/1.0 (+http://example.org/bot)"
[network]
allow_private = true
[cycle]
period = "1d"
"""


def long(name: str) -> str:
    """The URL of a page."""
    host, _, path = name.partition("/")
    return f"http://{host}.org/{path}"


def short(url: str) -> str:
    """The name of a page."""
    return url.removeprefix("http://").replace(".org/", "/", 1)


@dataclass(frozen=True)
class Scenario:
    """A web and a policy file. Of `web` each page has its links and its words; one that begins with ``->`` redirects.

    `seeds` are pages, ``page = policy`` where the line names one. `holds` says of pages their policy and trust, `lacks`
    which are not known, `order` in which order those of it were asked first.
    """

    name: str
    web: Mapping[str, str]
    seeds: str
    rules: str
    holds: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    lacks: str = ""
    order: str = ""
    collection: str = ""

    def __str__(self) -> str:
        return self.name


def rules_of(scenario: Scenario, *, seeds: str | None = None, rules: str | None = None) -> Collection:
    """The collection of a scenario, with other seeds or rules if these are given."""
    lines = []
    for seed in (scenario.seeds if seeds is None else seeds).split(","):
        page, _, policy = (part.strip() for part in seed.partition("="))
        lines.append(f'{{ url = "{long(page)}"' + (f', policy = "{policy}" }}' if policy else " }"))
    head = HEAD.format(collection=scenario.collection, seeds=", ".join(lines))
    return parse_collection(head + (scenario.rules if rules is None else rules), Path("scenario.toml"))


def crawl(
    scenario: Scenario, collection: Collection, *, until: int | None = None, seconds: float | None = None, **more: Any
) -> Drive:
    """A crawl that has come to rest, or has asked `until` pages; with `seconds` one that asks pages again."""

    def answer(fetch: Fetch, at: float) -> Answer:
        page = scenario.web.get(short(fetch.url))
        if fetch.kind != "page" or page is None:
            return 404, {}, b"", 0.01
        if page.startswith("->"):
            return 301, {"location": long(page[2:].strip())}, b"", 0.01
        words = [f"<a href='{long(word)}'>x</a>" if "/" in word else word for word in page.split()]
        return 200, {"content-type": "text/html"}, " ".join(words).encode(), 0.01

    drive = Drive(collection, answer, recrawl=seconds is not None, hand=1, **more)
    drive.run(seconds=seconds, until=None if until is None else lambda: len(drive.asked()) >= until)
    return drive


def edit(drive: Drive, collection: Collection, *, seconds: float | None = None) -> None:
    """An edited policy file takes effect on a running crawl, as the scheduler has it; it comes to rest, or goes on."""
    drive.frontier.work.adopt(collection)
    load_seeds(
        collection,
        drive.frontier.worker.entrance.judge,
        drive.frontier.worker.entrance.due.discover,
        at=drive.clock.now(),
    )
    drive.run(seconds=seconds)


def held(store: FrontierStore) -> dict[str, PageRecord]:
    """All that is known, by name."""
    return {short(record.url): record for _, record in store.pages.records()}


def standings(pages: Mapping[str, PageRecord], names: Iterable[str]) -> dict[str, tuple[str, float]]:
    """Policy and trust of those of some pages that are known."""
    return {name: (pages[name].policy, round(pages[name].trust, 6)) for name in names if name in pages}
