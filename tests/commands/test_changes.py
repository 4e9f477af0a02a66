"""The rows of the change log end with the cursor to continue with, whatever is left out."""

from __future__ import annotations

import msgspec

from tests.store.stores import active, lease
from webfountain.commands.changes import rows_after
from webfountain.records import Link, Outcome
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

URL = "https://a.org/1"


def test_changes_of_one_site_have_the_cursor_of_the_whole_log() -> None:
    store = MemoryStore(period_s=60.0)
    store.queues.discover([Link(url=URL, site=site_of(URL), key=fingerprint(URL))], at=90.0)
    home = active(store, site_of(URL))
    (first,) = lease(store, home, 1)
    new = msgspec.structs.replace(first.record, state="crawled", last_crawled=110.0, digest="1", due=110.0)
    store.queues.settle([Outcome(first.id, "new", new)], at=110.0)
    (second,) = lease(store, home, 1, queue="recrawl")
    changed = msgspec.structs.replace(second.record, last_crawled=120.0, digest="2", due=120.0)
    store.queues.settle([Outcome(second.id, "changed", changed)], at=120.0)
    store.pages.forget(site_of(URL), fingerprint(URL), at=140.0)
    rows = list(rows_after(None, store))
    assert [(row["sequence"], row["verdict"], row["time"]) for row in rows] == [
        (1, "new", 110.0), (2, "changed", 120.0), (3, "forgotten", 140.0),
    ]  # fmt: skip
    of_one = rows_after(rows[0]["cursor"], store, "https://a.org")
    assert [row["verdict"] for row in of_one] == ["changed", "forgotten"]
    assert list(rows_after(None, store, "https://b.org")) == [{"cursor": rows[-1]["cursor"]}]
    assert list(rows_after(rows[-1]["cursor"], store)) == [{"cursor": rows[-1]["cursor"]}]
