"""The orders of a crawl: one for each feature that is on, called at the points that it defines, in their order."""

from __future__ import annotations

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.batch import Batch, BatchResult
from webfountain.frontier.stage import Order, Orders

HOME = "http://home.example/"


class NamedOrder(Order):
    """Writes its name down when it adds to a batch."""

    def __init__(self, name: str, done: list[str]) -> None:
        self._name, self._done = name, done

    def add(self, batch: Batch) -> None:
        self._done.append(self._name)


class Absorbing(NamedOrder):
    """It also applies results."""

    def absorb(self, result: BatchResult) -> None:
        self._done.append(f"{self._name} absorbs")


def test_each_point_calls_those_that_define_it_in_the_order_of_the_list() -> None:
    done: list[str] = []
    orders = Orders([NamedOrder("first", done), Order(), Absorbing("second", done), NamedOrder("third", done)])
    for _, add in orders.add:
        add(Batch(0.0))
    assert done == ["first", "second", "third"]
    for absorb in orders.absorb:
        absorb(BatchResult(Batch(0.0)))
    assert done[3:] == ["second absorbs"]
    assert (orders.before_send, orders.absorbed, orders.adopt) == ([], [], [])


class Seldom(Order):
    """It adds to a batch every ten seconds."""

    def __init__(self) -> None:
        self.added: list[float] = []

    def add(self, batch: Batch) -> None:
        self.added.append(batch.at)
        self.due = batch.at + 10.0


def test_an_order_that_acts_from_time_to_time_is_not_called_before_it_is_due() -> None:
    seldom = Seldom()
    drive = Drive(collection_of([HOME]), lambda fetch, at: "dns")
    drive.frontier.work.orders.add.append((seldom, seldom.add))
    begun = drive.clock.now()
    for seconds in (0.0, 9.0, 11.0, 12.0, 21.5):
        drive.clock.set(begun + seconds)
        if (batch := drive.frontier.work.take()) is not None:
            drive.frontier.work.absorb(drive.frontier.worker.run(batch))
    assert [at - begun for at in seldom.added] == [0.0, 11.0, 21.5]


def test_only_one_batch_is_out_and_a_stopped_crawl_orders_nothing() -> None:
    drive = Drive(collection_of([HOME]), lambda fetch, at: "dns")
    batch = drive.frontier.work.take()
    assert batch is not None
    assert batch.room > 0
    assert drive.frontier.work.take() is None
    drive.frontier.work.absorb(drive.frontier.worker.run(batch))
    drive.frontier.stop()
    last = drive.frontier.work.take()
    assert last is None or (last.room, last.refills) == (0, [])
