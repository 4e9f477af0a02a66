"""A host's first address is dead: the crawl goes on at its second one, as politely as anywhere."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, Web, collection_of

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch

DEAD, ALIVE = "203.0.113.4", "203.0.113.5"
SITE = "http://two.example"


class Street(Drive):
    """Does what the downloader does: where the address is dead it asks for a turn at the next."""

    def __init__(self, collection: Collection, answer: Web) -> None:
        super().__init__(collection, answer, recrawl=False)
        self.turns: list[tuple[float, str | None]] = []

    def _send(self, fetch: Fetch) -> None:
        self.turns.append((self.clock.now(), fetch.address))
        if fetch.address == DEAD:
            assert fetch.fallbacks == (ALIVE,)
            assert self.frontier.sites.flights.detour(fetch, ALIVE) == 0.0
        super()._send(fetch)


def test_a_host_whose_first_address_is_dead_is_crawled_by_its_second() -> None:
    def answer(fetch: Fetch, _: float) -> Answer:
        if fetch.kind == "robots":
            return 404, {}, b"", 0.0
        links = b"".join(b'<a href="/%d">x</a>' % n for n in range(4)) if fetch.url.endswith("/") else b""
        return 200, {"content-type": "text/html"}, links + fetch.url.encode(), 0.0

    street = Street(collection_of([SITE + "/"], delay_factor=0), answer)
    street.addresses = {"two.example": [DEAD, ALIVE]}
    street.run(seconds=100)
    assert street.outcomes["new"] == 5
    assert [address for _, address in street.turns] == [DEAD] + [ALIVE] * 5  # once, then the site stands at ALIVE
    times = [at for at, _ in street.turns]
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(times))
