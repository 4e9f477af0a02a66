"""Every store keeps the provenance of its pages, in at most 16 bytes a URL, and reads pages that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.stores import ALWAYS, BACKENDS, SITE, active, lease, link, make_store, outcome
from webfountain.policy.provenance import Provenance, arrived
from webfountain.records import PageRecord
from webfountain.store.codec import decode_page, encode_page
from webfountain.store.embedded.keys import NEVER, NeverEntry, pack_waiting, waiting_record
from webfountain.store.opening import load_store, open_store
from webfountain.store.shared.codec import decode_value, encode_body, encode_value
from webfountain.store.transfer_file import read_rows, write_rows

if TYPE_CHECKING:
    from pathlib import Path

LINKED = arrived("link", links=60)
SWITCHED = Provenance("link", "switch", b"ab", 1_700_000_000, 60).encode()
MOST = 16


@pytest.mark.parametrize("backend", BACKENDS)
def test_provenance_comes_with_the_link_and_stays_with_the_record_through_every_step(
    backend: str, tmp_path: Path
) -> None:
    store = make_store(backend, tmp_path)
    store.queues.discover([msgspec.structs.replace(link(n), provenance=LINKED) for n in (1, 2, 3)], at=1.0)
    found = [record.provenance for _, record in store.pages.records()]
    assert found == [LINKED] * 3

    def switch(record: PageRecord) -> PageRecord:
        return msgspec.structs.replace(record, policy="distrust", provenance=SWITCHED, depth=7)

    store.queues.reassign(SITE, [link(2).key], switch)
    home = active(store)
    leases = lease(store, home, 3)
    assert {one.record.provenance for one in leases} == {LINKED, SWITCHED}
    store.queues.settle([outcome(one, 5.0) for one in leases], at=5.0)
    assert (page := store.pages.get(SITE, link(2).key)) is not None
    assert (page.provenance, page.policy, page.depth) == (SWITCHED, "distrust", 7)
    store.queues.reassign(SITE, [link(3).key], switch)
    store.pages.evict(home, [link(3).key], at=6.0)
    assert (page := store.pages.get(SITE, link(3).key)) is not None
    assert (page.state, page.provenance) == ("never-crawled", SWITCHED)
    assert lease(store, home, 9, queue="recrawl", horizon=ALWAYS)
    store.close()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_an_export_carries_it(suffix: str, tmp_path: Path) -> None:
    store = make_store("embedded", tmp_path / "one")
    store.queues.discover([msgspec.structs.replace(link(1), provenance=LINKED), link(2)], at=1.0)
    write_rows(tmp_path / f"f{suffix}", store.rows())
    store.close()
    load_store(f"rocksdb://{tmp_path}/two", read_rows(tmp_path / f"f{suffix}"))
    again = open_store(f"rocksdb://{tmp_path}/two", collection=None, period_s=None)
    assert {record.url[-1]: record.provenance for _, record in again.pages.records()} == {"1": LINKED, "2": b""}
    again.close()


@pytest.mark.parametrize("state", ["never-crawled", "crawled"])
@pytest.mark.parametrize("reported", [LINKED, SWITCHED])
def test_provenance_takes_at_most_sixteen_bytes_per_url_in_either_store(state: str, reported: bytes) -> None:
    """With what names the linking page on the same site, and against a record that has neither."""
    plain = PageRecord(f"{SITE}/1", depth=2, first_seen=1e9, trust=0.3)
    if state == "crawled":
        plain = msgspec.structs.replace(plain, state="crawled", last_crawled=2e9, copied=2e9, digest="ab" * 20)
    record = msgspec.structs.replace(plain, source=b"\xf1" * 8, provenance=reported)
    with_source = msgspec.structs.replace(plain, source=b"\xf1" * 8)

    def embedded(page: PageRecord) -> int:
        return len(encode_page(page) if state == "crawled" else pack_waiting(SITE, b"k" * 8, page))

    def shared(page: PageRecord) -> int:
        return len(encode_body(SITE, page))

    for size in (embedded, shared):
        assert size(record) - size(with_source) <= 11, "what this version adds"
    assert len(record.source) + len(record.provenance) <= MOST
    if reported == LINKED:
        assert shared(record) - shared(plain) <= MOST
        assert embedded(record) - embedded(plain) <= MOST


def test_pages_of_an_older_store_have_no_provenance() -> None:
    """Their records end before the field, in each of the codecs."""
    record = PageRecord(f"{SITE}/1", source=b"\xf1" * 8, provenance=SWITCHED)
    before = PageRecord.__struct_fields__.index("provenance")
    old = msgspec.msgpack.encode(msgspec.msgpack.decode(encode_page(record))[:before])
    assert decode_page(old).provenance == b""
    waiting = msgspec.msgpack.decode(pack_waiting(SITE, b"k" * 8, record))
    entry = NEVER + b"s" * 8 + b"\x01" + b"\x00" * 8
    before = NeverEntry.__struct_fields__.index("provenance")
    assert waiting_record(SITE, entry, msgspec.msgpack.encode(waiting[:before]))[1].provenance == b""
    value = encode_value(SITE, msgspec.structs.replace(record, provenance=b""), 1)
    assert decode_value(SITE, value).provenance == b""
    value = encode_value(SITE, record, 1)
    assert (decode_value(SITE, value).source, decode_value(SITE, value).provenance) == (record.source, SWITCHED)
