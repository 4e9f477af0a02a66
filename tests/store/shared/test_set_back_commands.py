"""A server that goes back in time in the middle of a whole command: it ends with one line, or is done all the same."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.servers.set_backs import WAYS, TimeMachine
from tests.store.shared.test_lives import SITES, opened
from tests.store.stores import link, links
from webfountain.errors import StoreError
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import open_store
from webfountain.store.revision import revise
from webfountain.store.shared import maintenance
from webfountain.store.shared.opening import load_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.set_backs import Way
    from webfountain.store.revision import Revisable, Revision
    from webfountain.store.transfer_rows import Row


@pytest.fixture(params=WAYS)
def machine(request: pytest.FixtureRequest) -> Iterator[TimeMachine]:
    way: Way = request.param
    with TimeMachine(way) as machine:
        yield machine


def after(rows: Iterator[Row], n: int, call: Callable[[], object]) -> Iterator[Row]:
    """The rows, with a call before one of them."""
    for number, row in enumerate(rows):
        if number == n:
            call()
        yield row


def test_an_export_of_two_states_is_none(machine: TimeMachine) -> None:
    """The first sites were those of the lost life, the last those of the present one, and the status was 0."""
    with opened(f"{machine.url}?shards=4") as store:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        machine.remember()
        store.queues.discover([link(number, site=site) for site in SITES for number in (2, 3)], at=2.0)
        with pytest.raises(StoreError, match=r"was replaced while it was read|connection was lost") as caught:
            list(after(store.rows(), 4, machine.go_back))
        assert "\n" not in str(caught.value)
        assert list(store.rows()), "and the next one is whole"


def test_an_import_that_lost_rows_is_not_complete(machine: TimeMachine) -> None:
    """It ended with status 0, and the store had some of the pages."""
    source = MemoryStore(period_s=10.0)
    source.queues.discover([link(number, site=site) for site in SITES for number in range(900)], at=1.0)
    [head, *rest] = source.rows()
    rows = [msgspec.structs.replace(head, collection="tests"), *rest]
    with pytest.raises(StoreError, match="was replaced during the import; import again"):
        load_shared(f"{machine.url}?shards=4", after(after(iter(rows), 2100, machine.remember), 4300, machine.go_back))
    with pytest.raises(StoreError, match="an earlier import into it is incomplete"), opened(machine.url):
        pass
    load_shared(f"{machine.url}?shards=4", iter(rows))
    with opened(machine.url) as store:
        assert store.census.statistics().pages["never-crawled"] == 900 * len(SITES)


@pytest.mark.parametrize("whole_site", [False, True])
def test_a_take_down_that_the_server_lost_half_way_is_done_again(machine: TimeMachine, *, whole_site: bool) -> None:
    """Its first step was undone, and the page was back, although the caller was told that it is forgotten."""
    with opened(f"{machine.url}?shards=2") as store:
        store.queues.discover(links(1, 2, site=SITES[0]), at=1.0)
        machine.remember()
        erase = store.changes.erase
        moments = iter([machine.go_back])

        def interrupted(site: str, key: bytes | None = None) -> None:
            next(moments, lambda: None)()
            store.sites.renew([], until=3.0)
            erase(site, key)

        store.changes.erase = interrupted  # type: ignore[method-assign]
        assert store.pages.forget(SITES[0], None if whole_site else link(1).key, at=2.0) == 1 + whole_site
        assert store.pages.get(SITES[0], link(1).key) is None
        assert store.queues.discover(links(1, site=SITES[0]), at=4.0).new == 0, "it is barred"


def test_a_value_that_was_settled_is_settled_again(machine: TimeMachine) -> None:
    """The key of the sketches: an ant that joined after the loss made another one, and found no duplicate."""
    with opened(f"{machine.url}?shards=2") as store:
        store.queues.discover(links(1, site=SITES[0]), at=1.0)
        machine.remember()
        store.queues.discover(links(2, site=SITES[0]), at=1.0)
        assert store.board.settle_value("key", b"first") == b"first"
        machine.go_back()
        store.sites.renew([], until=3.0)
        with opened(machine.url) as later:
            assert later.board.settle_value("key", b"second") == b"first"


def test_a_change_of_units_that_the_server_lost_in_part_is_made_again(machine: TimeMachine) -> None:
    with opened(f"{machine.url}?shards=4") as store:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        machine.remember()
    moments = iter([machine.go_back])

    def revised(shard: Revisable, revision: Revision) -> None:
        next(moments, lambda: None)()
        revise(shard, revision)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "revise", revised)
        with pytest.raises(StoreError, match="was replaced during the change; start again"):
            open_store(machine.url, collection="tests", period_s=20.0, fastest_s=1.0)
        with closing(open_store(machine.url, collection="tests", period_s=20.0, fastest_s=1.0)) as again:
            assert len(list(again.pages.records())) == len(SITES)
