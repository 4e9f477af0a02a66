"""The index of sites: stores of older versions get it by themselves, and a list of many shards is merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.servers.valkey import single
from tests.store.invariants import check_valid
from tests.store.stores import lease, link, outcome
from webfountain.errors import InputError
from webfountain.store.embedded.disk import WriteBatch, open_writing
from webfountain.store.embedded.keys import META, RANK, RANKED, Meta, after
from webfountain.store.embedded.opening import open_embedded
from webfountain.store.opening import open_store
from webfountain.store.shared.store import SharedStore
from webfountain.store.site_orders import SITE_ORDERS, SiteOrder, cursor_of, most_first, place_of, ranks_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import FrontierStore

NAMES = [f"https://s{number}.example" for number in range(40)]


def filled(store: FrontierStore) -> dict[SiteOrder, list[str]]:
    """Forty sites, of which some were crawled; the orders."""
    for number, name in enumerate(NAMES):
        store.queues.discover([link(n, site=name) for n in range(1 + number % 7)], at=1.0 + number)
    for at, site in enumerate(store.sites.activate(10, owner="ant", until=1e9, at=1e8), 100):
        store.queues.settle([outcome(each, float(at)) for each in lease(store, site, at % 7)], at=float(at))
    return orders(store)


def orders(store: FrontierStore) -> dict[SiteOrder, list[str]]:
    return {order: [record.site for _, record in store.sites.ranked(order, "", 100)] for order in SITE_ORDERS}


def test_ranks_sort_as_their_order_does_and_cursors_are_read_back() -> None:
    assert sorted([0.0, 3, 2**53], key=most_first) == [2**53, 3, 0.0]
    ranks = ranks_of(pages=3, failed=1, due=7.5, changed=2.5, is_active=False)
    for rank in ranks.values():
        assert place_of(cursor_of(rank, "http://ä.example")) == (rank, "http://ä.example")
    assert ranks["due"] > ranks_of(pages=0, failed=0, due=99.0, changed=0.0, is_active=True)["due"]
    assert place_of("") == (b"", "")


def test_a_folder_of_an_older_version_gets_its_orders_when_it_is_opened(tmp_path: Path) -> None:
    url = f"rocksdb://{tmp_path}"
    store = open_store(url, collection="tests", period_s=10.0)
    expected = filled(store)
    assert len(set(map(tuple, expected.values()))) == len(SITE_ORDERS) - 1, "nothing failed: by name"
    store.close()
    disk = open_writing(tmp_path)
    batch, value = WriteBatch(raw_mode=True), disk.get(META)
    assert value is not None
    for family in (RANK, RANKED):
        batch.delete_range(family, after(family))
    batch.put(META, msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:-1]))  # as a version without them leaves it
    assert not msgspec.msgpack.decode(msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:-1]), type=Meta).is_ranked
    disk.write(batch)
    disk.close()
    reader = open_embedded(tmp_path, collection=None, period_s=None, read_only=True)
    assert len(reader.sites.ranked("name", "", 100)) == 40
    with pytest.raises(InputError, match="older version"):
        reader.sites.ranked("pages", "", 1)
    reader.close()
    store = open_store(url, collection="tests", period_s=10.0)
    found = orders(store)
    assert {**found, "due": []} == {**expected, "due": []}
    check_valid(store)
    store.close()


def test_a_server_of_an_older_version_gets_its_orders_when_a_crawl_opens_it() -> None:
    with single() as (server, _):
        url = f"{server}?shards=8"
        store = open_store(url, collection="tests", period_s=10.0)
        expected = filled(store)
        assert isinstance(store, SharedStore)
        store._shards.ask("UNLINK", "ranks")
        with pytest.raises(InputError, match="older version"):
            store.sites.ranked("changed", "", 5)
        store.close()
        store = open_store(url, collection="tests", period_s=10.0)
        assert orders(store) == expected
        for order in SITE_ORDERS:
            found: list[str] = []
            cursor = ""
            while part := store.sites.ranked(order, cursor, 7):
                found += [record.site for _, record in part]
                cursor = part[-1][0]
            assert found == expected[order], order
        store.close()
