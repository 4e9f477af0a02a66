"""Ants that sleep, leave and join at random, on a web that redirects, refuses and has dead addresses: no error, a valid
store, and no site that is asked too soon.
"""

from __future__ import annotations

import heapq
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.frontier.cluster.test_membership import Ants, seeds
from tests.frontier.drive import Answer, Drive, collection_of
from tests.store.invariants import check_valid
from webfountain.records import FetchResult

if TYPE_CHECKING:
    from webfountain.records import Fetch

DEAD = ("203.0.113.200", "203.0.113.201")
ALIVE = ("203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4")
DELAYS = {"100ms": 0.1, "1s": 1.0}
TURNS = 40


class RestlessWeb:
    """The answers of a web in which everything may happen."""

    def __init__(self, rng: random.Random, sites: list[str]) -> None:
        self._rng = rng
        self._sites = sites
        self._slow_s = rng.choice([0.05, 0.5, 3.0])

    def __call__(self, fetch: Fetch, at: float) -> Answer:
        rng, seconds = self._rng, self._slow_s * self._rng.random()
        luck = rng.random()
        if luck < 0.04:
            return rng.choice(["connect", "timeout"])
        if luck < 0.08:
            return 429, {"retry-after": str(rng.choice([1, 30, 100]))}, b"", seconds
        if luck < (0.12 if fetch.kind == "page" else 0.2):
            path = {"robots": "robots.txt", "sitemap": "sitemap9.xml", "page": f"p{rng.randrange(40)}"}[fetch.kind]
            return 301, {"location": f"{rng.choice(self._sites)}/{path}"}, b"", seconds
        if fetch.kind == "robots":
            sitemaps = "".join(f"Sitemap: {rng.choice(self._sites)}/sitemap{n}.xml\n" for n in range(2))
            rules = f"User-agent: *\nCrawl-delay: 1\n{sitemaps}".encode()
            status = rng.choice([200, 404, 404, 503])
            return status, {"content-type": "text/plain"}, rules if status == 200 else b"", seconds
        if fetch.kind == "sitemap":
            places = "".join(f"<url><loc>{fetch.site}/p{n}</loc></url>" for n in range(5))
            return 200, {"content-type": "application/xml"}, f"<urlset>{places}</urlset>".encode(), seconds
        homes = [rng.choice(self._sites) if rng.random() < 0.2 else fetch.site for _ in range(6)]
        links = "".join(f'<a href="{home}/p{rng.randrange(40)}">x</a>' for home in homes)
        return 200, {"content-type": "text/html"}, f"{links}{at}".encode(), seconds


class RestlessAnt(Drive):
    """An ant whose downloader tries the next address of a host whose first one is dead. Half of the fetches of a site
    that another ant took over are cut, the others are answered all the same.
    """

    rng: random.Random
    apart: float = 0.0
    """Share of the fetches that are counted apart, like those in a downloader slot of their own."""

    def __init__(self, *parts: Any, **config: Any) -> None:
        super().__init__(*parts, **config)
        self._detours: list[tuple[float, int, Fetch]] = []

    def step(self) -> bool:
        now = self.clock.now()
        waiting, self._detours = self._detours, []
        for at, tries, fetch in waiting:
            if at <= now:
                self._detour(at, tries, fetch)
            else:
                self._detours.append((at, tries, fetch))
        lost = self.frontier.sites.departures.take_lost()
        for entry in [each for each in self.flying if each[2].fetch.site in lost and self.rng.random() < 0.5]:
            self.flying.remove(entry)
            self.flying.append((now, entry[1], FetchResult(entry[2].fetch, now, 0.0, error="lapsed")))
        heapq.heapify(self.flying)
        return super().step()

    def end(self) -> None:
        """Leave the others in good order."""
        self.frontier.stop()
        while self.flying:
            self._land(heapq.heappop(self.flying)[2])
        while (batch := self.frontier.work.take()) is not None:
            self.frontier.work.absorb(self.frontier.worker.run(batch))
        self.frontier._sign_off()

    def _send(self, fetch: Fetch) -> None:
        if self.rng.random() < self.apart:
            self.frontier.sites.flights.count_apart(fetch)
        if fetch.address in DEAD and fetch.fallbacks:
            self._detours.append((self.clock.now(), 0, fetch))
        else:
            super()._send(fetch)

    def _detour(self, at: float, tries: int, fetch: Fetch) -> None:
        wait_s = self.frontier.sites.flights.detour(fetch, fetch.fallbacks[0])
        if wait_s <= 0.0:
            super()._send(fetch)
        elif tries < 20:
            self._detours.append((at + min(wait_s, 1.0), tries + 1, fetch))
        else:
            result = FetchResult(fetch, at, 5.0, error="timeout", address=fetch.fallbacks[0])
            self.open[fetch.site] = self.open.get(fetch.site, 0) + 1
            heapq.heappush(self.flying, (at, fetch.id, result))


class Disorder:
    """Some ants, and what happens to them."""

    def __init__(self, seed: int, *, apart: bool) -> None:
        self.rng = rng = random.Random(seed)
        self.delay = rng.choice(list(DELAYS))
        self._apart = 0.1 if apart else 0.0
        sites = [f"http://s{number}.example" for number in range(rng.choice([4, 12, 20]))]
        politeness = f"concurrency = {rng.choice([1, 3]) if apart else 1}\nper_ip = {rng.choice(['true', 'false'])}"
        collection = collection_of(
            seeds(sites), min_delay=self.delay, delay_factor=rng.choice([0, 2]), politeness=politeness
        )
        self.ants = Ants(collection, RestlessWeb(rng, sites), 0, kind=RestlessAnt)
        self._hosts = [site.partition("//")[2] for site in sites]
        self._size = rng.choice([3, 8, 100])
        self.every: list[RestlessAnt] = []
        for _ in range(rng.choice([1, 2, 3])):
            self.join()

    def join(self) -> None:
        """One more ant, for which the hosts may have other addresses."""
        ant = self.ants.join(active_sites=self._size)
        assert isinstance(ant, RestlessAnt)
        ant.rng, ant.apart = random.Random(self.rng.random()), self._apart
        ant.addresses = {host: self._addresses() for host in self._hosts}
        self.every.append(ant)

    def turn(self) -> None:
        """Let the ants crawl for a while, then let something happen to one of them."""
        ants, rng = self.ants, self.rng
        ants.run(rng.choice([1.0, 5.0, 20.0]))
        living, luck = ants.living, rng.random()
        if luck < 0.25 and len(living) > 1:
            ants.stopped.add(rng.choice(living))
        elif luck < 0.5 and ants.stopped:
            ants.stopped.remove(min(ants.stopped, key=lambda ant: ant.frontier.owner))
        elif luck < 0.6 and len(ants.all) < 6:
            self.join()
        elif luck < 0.7 and len(living) > 1:
            leaver = rng.choice(living)
            assert isinstance(leaver, RestlessAnt)
            leaver.end()
            ants.all.remove(leaver)
        elif luck < 0.8:
            ants.clock.advance(rng.choice([3.0, 12.0, 40.0]))

    def requests(self) -> list[tuple[str, float]]:
        """(site, time) of each request of every ant, by site."""
        return sorted(("/".join(url.split("/")[:3]), at) for ant in self.every for at, _, url in ant.log)

    def _addresses(self) -> list[str]:
        alive = self.rng.sample(ALIVE, self.rng.choice([1, 1, 2]))
        return [self.rng.choice(DEAD), *alive] if self.rng.random() < 0.3 else alive


def check_disorder(seed: int) -> None:
    disorder = Disorder(seed, apart=seed % 2 == 1)
    for _ in range(TURNS):
        disorder.turn()
    check_valid(disorder.ants.store)
    requests = disorder.requests()
    assert requests
    if seed % 2 == 0:  # a fetch that is counted apart leaves its slot to another
        waits = [later - before for (site, before), (other, later) in pairwise(requests) if site == other]
        assert min(waits) >= DELAYS[disorder.delay] - 1e-6


@pytest.mark.parametrize("seed", [5, 40])
def test_ants_in_disorder_keep_the_store_valid_and_their_distance(seed: int) -> None:
    """Seeds with which fetches that landed after their site had left ended the crawl by KeyError or ValueError."""
    check_disorder(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300))
def test_three_hundred_disorders(seed: int) -> None:
    check_disorder(seed)
