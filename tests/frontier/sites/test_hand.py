"""A site's hand: what comes first, how its two queues are drawn, and that nothing is lost or served twice."""

from __future__ import annotations

import random
from collections import Counter
from math import inf
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.sites.domain_shares import DomainShare
from webfountain.frontier.sites.hand import MAX_UNREAD, Hand
from webfountain.frontier.sites.politeness import Gate
from webfountain.records import Fetch, FetchKind, Lease, LeaseId, PageRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

SITE = "http://a.example"


def page(path: str, importance: float = 0.0) -> Fetch:
    record = PageRecord(f"{SITE}/{path}", importance=importance)
    return Fetch(1, "page", record.url, SITE, None, lease=Lease(LeaseId(SITE, 1, 1), path.encode(), record))


def file(kind: FetchKind, path: str) -> Fetch:
    return Fetch(1, kind, f"{SITE}/{path}", SITE, None)


def hand_of(
    weights: Sequence[float] = (0.5, 0.5), *, domain: DomainShare | None = None, seed: int = 1, slots: int = 100_000
) -> Hand:
    """A hand behind a gate of so many slots."""
    gate, rng = Gate(slots), random.Random(seed)
    return Hand(gate, lambda _: weights, lambda _: 1.0, rng, size=8, largest=8, domain=domain)


def served(hand: Hand, most: int = 1000) -> list[str]:
    found: list[str] = []
    while len(found) < most and hand.times()[0] <= 0.0:
        fetch = hand.next(0.0)
        assert fetch is not None, "it said that it has one"
        found.append(fetch.url.removeprefix(f"{SITE}/"))
    assert len(found) == most or hand.next(0.0) is None
    return found


def test_an_immediate_url_goes_before_files_and_files_go_before_pages_whenever_they_come() -> None:
    hand = hand_of()
    hand.deal([page("new")], [page("old")], full=False)
    assert hand.times() == (0.0, inf)
    hand.add_file(file("sitemap", "sitemap.xml"))
    hand.add_urgent(page("now"))
    assert hand.times() == (0.0, 0.0)
    assert served(hand, 2) == ["now", "sitemap.xml"]
    hand.add_urgent(page("again"))
    assert served(hand)[0] == "again"
    assert hand.times() == (inf, inf)


def test_a_robots_txt_goes_before_all_once_immediate_urls_wait_for_it() -> None:
    hand = hand_of()
    hand.add_file(file("sitemap", "sitemap.xml"))
    hand.add_file(file("robots", "robots.txt"))
    hand.hasten_files()
    assert hand.times() == (0.0, 0.0)
    assert served(hand) == ["robots.txt", "sitemap.xml"]


@given(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1), st.integers())
def test_the_two_queues_give_everything_once_and_each_in_its_order(new: int, old: int, p: float, seed: int) -> None:
    hand = hand_of((p, 1 - p), seed=seed)
    hand.deal([page(f"n{i}") for i in range(new)], [page(f"o{i}") for i in range(old)], full=False)
    assert hand.pages() == hand.backlog() == new + old
    found = served(hand)
    assert [path for path in found if path[0] == "n"] == [f"n{i}" for i in range(new)]
    assert [path for path in found if path[0] == "o"] == [f"o{i}" for i in range(old)]


def test_a_hand_waits_for_its_gate_and_while_two_of_its_bodies_wait_to_be_read() -> None:
    gate = Gate()
    hand = Hand(gate, lambda _: (0.5, 0.5), lambda _: 1.0, random.Random(1), size=8, largest=8)
    hand.deal([page("n1"), page("n2")], [], full=False)
    hand.add_urgent(page("now"))
    assert served(hand) == ["now"]
    assert hand.times() == (inf, inf)
    gate.give(5.0)
    assert (hand.times(), hand.next(4.9)) == ((5.0, inf), None)
    for _ in range(MAX_UNREAD):
        hand.add_unread(1)
    assert (hand.times(), hand.next(5.0)) == ((inf, inf), None)
    hand.add_unread(-1)
    assert hand.next(5.0) is not None
    gate.give(0.0)
    assert hand.next(0.0) is not None
    gate.give(0.0)
    assert hand.times() == (inf, inf), "an empty hand waits for no time"


def test_the_draw_follows_the_weights_and_a_change_of_plan_at_once() -> None:
    weights = [0.8, 0.2]
    hand = hand_of(weights)
    hand.deal([page("n")] * 20_000, [page("o")] * 20_000, full=False)
    first = Counter(served(hand, 10_000))
    weights[:] = [0.1, 0.9]
    second = Counter(served(hand, 10_000))
    assert abs(first["n"] / 10_000 - 0.8) < 0.02
    assert abs(second["n"] / 10_000 - 0.1) < 0.02


def test_of_equally_important_new_urls_the_one_that_probably_has_a_page_is_first() -> None:
    chances = {"n1": 0.2, "n2": 0.9, "n3": 0.5, "much": 0.1}
    hand = Hand(
        *(Gate(100), lambda _: (1.0, 0.0), lambda record: chances[record.url.removeprefix(f"{SITE}/")]),
        random.Random(1), size=8, largest=8,
    )  # fmt: skip
    hand.deal([page("n1"), page("n2")], [], full=False)
    hand.deal([page("n3"), page("much", 9.0)], [], full=False)
    assert served(hand) == ["much", "n2", "n3", "n1"]


def test_a_queue_of_weight_zero_is_served_when_the_other_is_empty() -> None:
    hand = hand_of((0.0, 1.0))
    hand.deal([page("n")], [page("o")], full=False)
    assert served(hand) == ["o", "n"]
    hand = hand_of((0.0, 0.0))
    hand.deal([page("n")], [page("o")], full=False)
    assert sorted(served(hand)) == ["n", "o"]


def test_a_domain_that_used_its_share_stops_the_pages_but_neither_files_nor_immediate_urls() -> None:
    domain = DomainShare("a.example")
    hand = hand_of(domain=domain)
    hand.deal([page("new", 1.0)], [page("old", 1.0)], full=False)
    domain.is_open = False
    assert (hand.times(), hand.worth()) == ((inf, inf), -inf)
    assert hand.next(0.0) is None
    hand.add_file(file("robots", "robots.txt"))
    hand.add_urgent(page("now"))
    assert served(hand) == ["now", "robots.txt"]
    domain.is_open = True
    assert sorted(served(hand)) == ["new", "old"]


def test_a_hand_is_worth_its_best_next_page_and_more_than_any_if_others_wait_for_it() -> None:
    hand, other = hand_of(), hand_of()
    assert hand.worth() == -inf
    hand.deal([page("little", 0.01)], [page("much", 9.0)], full=False)
    other.deal([page("little", 0.01)], [], full=False)
    assert inf > hand.worth() > other.worth() > -inf
    other.add_file(file("robots", "robots.txt"))
    assert other.worth() == inf


def test_what_is_taken_out_of_a_hand_is_not_served() -> None:
    hand = hand_of()
    hand.deal([page("little", 0.01), page("much", 9.0)], [page("old")], full=False)
    hand.add_urgent(page("now"))
    hand.add_file(file("robots", "robots.txt"))
    assert len(hand.flush_outranked(1.0)) == 1
    assert len(hand.flush_recrawl()) == 1
    assert [fetch.kind for fetch in hand.take_files()] == ["robots"]
    assert served(hand) == ["much"]
