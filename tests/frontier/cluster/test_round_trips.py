"""What a crawl asks of the server of its store: a batch many things at once, never one page at a time."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from tests.store.stores import server_url
from webfountain.clock import ManualClock
from webfountain.store.opening import open_store
from webfountain.store.shared.connection import ServerConnection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

SITES = [f"http://s{number}.example" for number in range(30)]
NAMES = [f"p{number}" for number in range(20)]
MAP = "<urlset>" + "".join(f"<url><loc>{name}</loc><lastmod>2026-11-10</lastmod></url>" for name in NAMES) + "</urlset>"
ROBOTS = b"Sitemap: /sitemap.xml"
PAGES = {
    "": linked(*NAMES),
    "sitemap.xml": MAP.encode(),
    **{name: linked(*NAMES, name.replace("p", "q")) for name in NAMES},
}


def test_a_page_costs_less_than_one_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trips = 0
    send = ServerConnection.send

    def counted(self: ServerConnection, commands: Sequence[Any]) -> list[Any]:
        nonlocal trips
        trips += bool(commands)
        return send(self, commands)

    monkeypatch.setattr(ServerConnection, "send", counted)
    store = open_store(f"{server_url()}?prefix={tmp_path.name}", collection="tests", period_s=86_400.0)
    with closing(store):
        drive = Drive(collection_of([f"{site}/" for site in SITES]), site_of_pages(PAGES, robots=(200, ROBOTS)),
                      store=store, clock=ManualClock(1_800_000_000.0), heartbeat_seconds=60.0)  # fmt: skip
        drive.addresses = {site.partition("//")[2]: [f"203.0.113.{n + 1}"] for n, site in enumerate(SITES)}
        drive.run(seconds=60.0, until=lambda: sum(drive.outcomes.values()) > 600)
        pages = sum(drive.outcomes.values())
    assert len(drive.asked("sitemap")) == len(SITES)
    assert pages > 600
    assert trips < pages
