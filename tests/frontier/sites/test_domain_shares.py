"""No domain has more than its share of a period's fetches, unless few others want theirs."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.frontier.sites.domain_shares import DomainShares, FetchCounts
from webfountain.metrics import Metrics
from webfountain.records import Link
from webfountain.urls import fingerprint, host_of, registered_domain, site_of

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOUR = 3600.0
LARGE = [f"http://s{number}.large.com" for number in range(12)]
SMALL = [f"http://d{number}.org" for number in range(24)]


def answer(fetch: Fetch, at: float) -> Answer:
    return (200 if fetch.kind == "page" else 404), {"content-type": "text/html"}, fetch.url.encode(), 0.1


def drive_of(share: float | None, pages: dict[str, int], *, rest: str = "", period: str = "1h") -> Drive:
    """A crawl of sites with so many pages each."""
    limits = "" if share is None else f"[collection.limits]\ndomain_share = {share}"
    collection = collection_of(
        [f"{next(iter(pages))}/"], collection=f'scope = "any"\n{limits}', politeness="per_ip = false",
        delay_factor=0, period=period, rest=rest,
    )  # fmt: skip
    drive = Drive(collection, answer)
    links = [
        Link(f"{site}/{number}", site, fingerprint(f"{site}/{number}"))
        for site, many in pages.items()
        for number in range(many)
    ]
    drive.store.queues.discover(links, at=drive.clock.now())
    return drive


def fetches(drive: Drive) -> Counter[str]:
    return Counter(registered_domain(host_of(site_of(url))) for url in drive.asked())


def test_a_large_domain_has_its_share_at_every_moment_and_the_others_are_kept_busy() -> None:
    """Without a share it has a third of the fetches: as many as it has sites."""
    pages = dict.fromkeys([*LARGE, *SMALL], 150)
    free = drive_of(None, pages)
    free.run(seconds=30)
    assert fetches(free)["large.com"] >= 0.3 * len(free.asked())
    drive = drive_of(0.1, pages)
    drive.run(seconds=60)
    urls = drive.asked()
    had = 0
    for number, url in enumerate(urls, start=1):
        had += "large.com" in url
        assert had <= 0.1 * (number + 11) + 1
    assert had >= 0.09 * len(urls)
    assert len(fetches(drive)) == 25
    assert drive.metrics.get("shares/reassigned") == 0


def test_where_few_can_still_be_fetched_the_rest_of_the_period_is_reassigned() -> None:
    """Two domains with a share of a twentieth each: all is fetched in the end, and the shares hold again afterwards."""
    drive = drive_of(0.05, {LARGE[0]: 200, SMALL[0]: 200}, period="1h")
    drive.run(seconds=0.9 * HOUR)
    assert fetches(drive) == {"large.com": 201, "d0.org": 200}
    assert drive.metrics.get("shares/reassigned") >= 1


def test_a_slow_domain_does_not_hold_the_others_back() -> None:
    """It asks to be left alone for hours; of the others each has far more than its share then."""

    def busy(fetch: Fetch, at: float) -> Answer:
        if "d" in host_of(fetch.site) and fetch.kind == "page":
            return 503, {"retry-after": "7200"}, b"", 0.1
        return answer(fetch, at)

    drive = drive_of(0.05, {LARGE[0]: 300} | dict.fromkeys(SMALL, 5))
    drive.answer = busy
    drive.run(seconds=0.9 * HOUR)
    assert fetches(drive)["large.com"] == 301


def test_a_new_period_gives_all_their_share_again_and_immediate_urls_are_not_held_back() -> None:
    shares = DomainShares(0.25, period_s=HOUR, capacity=None, start=0.0, metrics=Metrics())
    domain = shares.enter("http://a.com")
    while domain.is_open:
        shares.spend(domain)
    assert domain.fetches == 1
    assert shares.check(10.0, [(domain, False)] * 1, idle=False) == {"http://a.com"}, "it alone has anything to fetch"
    while domain.is_open:
        shares.spend(domain)
    assert shares.check(HOUR, [], idle=False) == {"http://a.com"}
    assert (domain.fetches, domain.is_open) == (0, True)


def test_what_was_seen_is_published_with_the_numbers_of_busy_and_blocked_domains() -> None:
    metrics = Metrics()
    shares = DomainShares(0.5, period_s=HOUR, capacity=100, start=0.0, metrics=metrics)
    one, two, three = (shares.enter(f"http://{name}.com") for name in "abc")
    shares.check(1.0, [(one, True), (one, False), (two, False), (three, False)], idle=False)
    assert shares.seen is not None
    assert (shares.seen.busy, shares.seen.blocked) == (1, 2)
    assert (metrics.get("shares/busy"), metrics.get("shares/blocked")) == (1, 2)
    shares.check(2.0, [(one, True)], idle=False)
    assert shares.seen.blocked == 2, "not yet time"
    shares.check(10.0, [(one, True)], idle=False)
    assert (metrics.get("shares/busy"), metrics.get("shares/blocked")) == (1, 0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_blocked_domain_is_opened_by_fetches_of_other_domains(seed: int) -> None:
    """A model: a domain is open exactly while one fetch more is within its share."""
    rng = random.Random(seed)
    shares = DomainShares(0.2, period_s=HOUR, capacity=None, start=0.0, metrics=Metrics())
    domains = [shares.enter(f"http://d{number}.com") for number in range(10)]
    for made in range(1, 500):
        domain = rng.choice([each for each in domains if each.is_open] or domains)
        shares.spend(domain)
        for each in domains:
            assert each.is_open == (each.fetches + 1 <= 0.2 * (made + 5) + 1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_other_ants_fetched_counts_from_a_heartbeat_on(seed: int) -> None:
    """Three ants, of which two have sites of `large`; each tells the sum of all at every fiftieth fetch."""
    rng = random.Random(seed)
    ants = [DomainShares(0.2, period_s=HOUR, capacity=None, start=0.0, metrics=Metrics()) for _ in range(3)]
    small = [[ant.enter(f"http://d{number}-{here}.com") for number in range(6)] for here, ant in enumerate(ants)]
    large = [ant.enter("http://www.large.com") for ant in ants[:2]]
    for made in range(1, 3000):
        here = rng.randrange(3)
        choice = [large[here]] * 6 if here < 2 else []
        choice = [one for one in choice + small[here] if one.is_open] or small[here]
        ants[here].spend(rng.choice(choice))
        had = sum(one.fetches for one in large)
        assert had <= 0.2 * (made + 5) + 50
        if made % 50 == 0:
            reported = [ant.spent() for ant in ants]
            total = FetchCounts.of(reported)
            for ant, own in zip(ants, reported, strict=True):
                ant.take_in(total, own)
            for one in large:
                assert one.is_open == (had + 1 <= 0.2 * (made + 5) + 1e-9)
    assert had >= 0.15 * made
    assert FetchCounts.of([]) is None
    assert FetchCounts.of(
        [FetchCounts(1, 5, {"a": 3}), FetchCounts(2, 7, {"a": 1}), FetchCounts(2, 2, {"a": 1, "b": 1})]
    ) == FetchCounts(2, 9, {"a": 2, "b": 1})
    for ant in ants:
        ant.check(HOUR, [], idle=False)
        assert ant.spent() == FetchCounts(1)
        assert ant.take_in(FetchCounts(0, 100, {"large.com": 100}), FetchCounts(0)) == set(), "of the period before"
